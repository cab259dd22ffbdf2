"""Counterfactual regret minimisation on the public tree.

Alternating full-width updates: in one iteration player 0 updates against player 1's strategy, then player 1 against
player 0's new one.  An iterate enters its player's average just before it is updated.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from games.rules import Rules
from solver.kernels import BOTH, DOWN, EXPECT, LANES, UP, WAIT, Step, sweep
from solver.nodes import Ints
from solver.parts import Part, whole
from solver.tree import Tree

Floats = npt.NDArray[np.floating[Any]]
Pair = tuple[Floats, Floats]  # one array for each player
POINTS, PROBABILITY = UNITS = ("points per hand", "match-winning probability")


@dataclass(frozen=True, slots=True)
class Payoffs:
    """What an end is worth to the leader: `win0[level]` if he wins the hand at that stake, `win1[level]` if the dealer
    does, `tie` if nobody does.  The dealer's utility is minus that, added to `total`.  unit: what is counted."""

    win0: tuple[float, ...]
    win1: tuple[float, ...]
    tie: float = 0.0
    unit: str = POINTS

    @property
    def total(self) -> float:
        """What both players get together: somebody wins the match, and a point won is a point lost."""
        return 1.0 if self.unit == PROBABILITY else 0.0

    def to(self, player: int, winner: int, level: int) -> float:
        """What a player gets if a side wins the hand at a level."""
        leader = (self.win0, self.win1)[winner][level]
        return leader if player == 0 else self.total - leader

    def half(self, level: int = 0) -> float:
        """Half of what lies between winning and losing at a level: in points, the stake."""
        return (self.win0[level] - self.win1[level]) / 2

    @staticmethod
    def points(rules: Rules) -> Payoffs:
        """The stake to whoever wins the hand."""
        return Payoffs(tuple(map(float, rules.ladder)), tuple(-float(stake) for stake in rules.ladder))

    def table(self, player: int, dtype: npt.DTypeLike) -> Floats:
        """Shape (levels, 3): `player`'s payoff, without `total`, when side 0, side 1, nobody wins."""
        leader = np.array([(a, b, self.tie) for a, b in zip(self.win0, self.win1, strict=True)])
        return (leader if player == 0 else -leader).astype(dtype)


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A regret update and an averaging scheme; t counts iterations from 1.

    Before iteration t adds its regrets, positive sums are multiplied by d(t-1, alpha) and negative ones by
    d(t-1, beta), where d(t, x) = t^x / (t^x + 1), d = 1 for x = None.  `plus` cuts negative sums to 0.  Iterate t has
    the weight t^gamma (see `shift`).  With a `prediction` the strategy matches max(sum * d(t, alpha) + c(t) * last
    regret, 0), where c(t) = prediction, or the smaller of that and sqrt(fading / t).
    """

    alpha: float | None
    beta: float | None
    gamma: float
    plus: bool
    prediction: float = 0.0
    fading: float | None = None

    @property
    def predictive(self) -> bool:
        """Whether what is played is not the sum of regrets itself."""
        return self.prediction > 0

    def shift(self, t: int) -> int:
        """How many powers of two are taken out of the averages and their weights by iteration t.

        The weights up to t add up to less than 2^(bits of t * (gamma + 1)), after millions of iterations perhaps more
        than float32 holds (2^128).  Until then the shift is 0; later it changes no other bits, being one of exponents.
        """
        return 64 * max(0, math.ceil((t.bit_length() * (self.gamma + 1) - 126) / 64))

    def step(self, t: int, zero: float) -> Step:
        """The numbers of iteration t; positive regrets up to `zero` count as none."""
        return Step(
            weight=math.ldexp(float(t) ** self.gamma, -self.shift(t)),
            gain=_discount(t - 1, self.alpha),
            loss=_discount(t - 1, self.beta),
            ahead=_discount(t, self.alpha),
            floor=0.0 if self.plus else -math.inf,
            zero=zero,
            prediction=self.prediction if self.fading is None else min(self.prediction, math.sqrt(self.fading / t)),
        )


def _discount(t: int, exponent: float | None) -> float:
    return 1.0 if exponent is None else float(t) ** exponent / (float(t) ** exponent + 1.0)


ALGORITHMS = {
    "cfr": Algorithm(None, None, 0.0, plus=False),  # Zinkevich et al. 2007
    "cfr+": Algorithm(None, None, 1.0, plus=True),  # Tammelin 2014
    "dcfr": Algorithm(1.5, 0.0, 2.0, plus=False),  # Brown & Sandholm 2019
    "dcfr+": Algorithm(1.5, 1.5, 2.0, plus=True),  # Xu et al. 2024
    "pcfr+": Algorithm(None, None, 2.0, plus=True, prediction=1.0),  # Farina et al. 2021
    "pdcfr+": Algorithm(2.3, 2.3, 5.0, plus=True, prediction=1.0),  # Xu et al. 2024
    # DCFR+ with a small, fading prediction.  The alternating updates circle the equilibrium almost undamped late in a
    # run; looking a little ahead damps that, looking as far ahead as pdcfr+ disturbs (`scripts/algorithm_study.py`).
    "fpdcfr+": Algorithm(1.5, 1.5, 2.0, plus=True, prediction=0.5, fading=5.0),
}
DEFAULT_ALGORITHM = "fpdcfr+"


def lanes_array(rows: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Zeros of shape (rows, LANES) that begin at a cache line."""
    size = np.dtype(dtype).itemsize
    raw = np.zeros(rows * LANES + 64 // size, dtype)
    start = -raw.ctypes.data % 64 // size
    return raw[start : start + rows * LANES].reshape(rows, LANES)


def prior_reach(tree: Tree) -> npt.NDArray[np.float64]:
    """Shape (H,): starting reach of each hand, 1 / prod_r a_r!, scaled so that the kernels' values are expectations.

    Against the hand a the opponent has each b with probability prod_r (copies - a_r)(copies - a_r - 1)... / b_r!
    (b_r factors) over C(cards - hand_size, hand_size); the falling factorials are the kernels' part.
    """
    k = tree.rules.hand_size
    factorial: npt.NDArray[np.int64] = tree.holdings.factorial[k, : tree.size(k)]
    return 1.0 / (factorial * comb(tree.rules.n_cards - k, k))


class Sweeper:
    """Runs sweeps over the blocks of a tree, or of a part of it, on one or more threads.

    The blocks below trick 1 are independent; each writes its own rows, so the same bits come out with any number of
    threads.  dtype: element type of reaches and values, and of the strategies that the sweeps read; reach: each
    player's at the root of the part, by default the dealt hands'.
    """

    def __init__(
        self,
        tree: Tree,
        payoffs: Payoffs,
        dtype: npt.DTypeLike,
        threads: int = 1,
        part: Part | None = None,
        reach: Pair | None = None,
    ) -> None:
        self.tree = tree
        self.part = whole(tree) if part is None else part
        self.pay = np.stack([payoffs.table(p, dtype) for p in range(2)])
        self.left = self.part.left.astype(dtype)
        self.top = lanes_array(self.part.top_rows, dtype)
        for row, given in zip(tree.priors, (prior_reach(tree),) * 2 if reach is None else reach, strict=True):
            self.top[row : row + len(given), 0] = given
        leaves = [b for b in self.part.members if tree.programs[tree.blocks[b].program].shared]
        crown = [b for b in self.part.members if b not in leaves]
        self.tasks = [
            [_tasks(p, crown if i == 0 else [], part) for p in range(2)]
            for i, part in enumerate(_balanced(leaves, tree, threads))
        ]
        self.scratch = [lanes_array(tree.plan.scratch_rows, dtype) for _ in self.tasks]
        self.pool = ThreadPoolExecutor(len(self.tasks)) if len(self.tasks) > 1 else None

    def update(self, steps: list[Step], play: Pair, regret: Pair, average: Pair) -> None:
        """CFR iterations, one for each of `steps`; changes the arrays in place."""
        both = [np.concatenate(tasks) for tasks in self.tasks]
        self._run(both, np.array([(step, step) for step in steps]), EXPECT, play, regret, average)

    def values(self, player: int, mode: int, play: Pair) -> npt.NDArray[np.float64]:
        """Shape (H,): the value of each of `player`'s holdings at the root, for mode BEST or EXPECT: with the dealt
        hands' reach, given that it was dealt."""
        self._run([tasks[player] for tasks in self.tasks], np.zeros((1, 2, len(Step._fields))), mode, play, None, None)
        size = self.tree.size(int(self.part.plan.blocks[player, self.part.members[0]]["held"][player]))
        return self.top[self.tree.result : self.tree.result + size, self.part.lane].astype(np.float64)

    def _run(
        self, tasks: list[Ints], steps: Floats, mode: int, play: Pair, regret: Pair | None, average: Pair | None
    ) -> None:
        tree, part, plan, gate = self.tree, self.part, self.part.plan, np.zeros(1, np.int64)

        def run(i: int) -> None:
            sweep(
                tasks[i], steps, gate, len(tasks), plan.blocks, self.left, plan.sources, plan.targets, part.ops,
                plan.nodes, tree.holdings, tree.rules.order == "circular", self.pay, play, regret, average, self.top,
                self.scratch[i], mode,
            )  # fmt: skip

        if self.pool is None:
            run(0)
            return
        # The threads wait for each other in the kernel, so the caller, who may be interrupted, is none of them.
        try:
            futures = [self.pool.submit(run, i) for i in range(len(tasks))]
        except BaseException:  # a thread that cannot start, or Ctrl-C: those that have must not wait for ever
            gate[0] = 1 << 40
            raise
        wait(futures)
        for future in futures:
            future.result()


def _tasks(player: int, crown: list[int], part: list[int]) -> Ints:
    """One thread's share of a sweep; the crown (turns 1 and 2) belongs to the first."""
    rows = [(player, DOWN, b) for b in crown] + [(player, WAIT, 0)]
    rows += [(player, BOTH, b) for b in part] + [(player, WAIT, 0)]
    rows += [(player, UP, b) for b in reversed(crown)]
    return np.array(rows, np.int64)


def _balanced(blocks: list[int], tree: Tree, threads: int) -> list[list[int]]:
    """Deal the blocks, largest first, to the thread with the least work."""
    work = {b: sum(tree.programs[tree.blocks[b].program].rows) for b in blocks}
    parts: list[list[int]] = [[] for _ in range(max(1, min(threads, len(blocks))))]
    for b in sorted(blocks, key=lambda b: (-work[b], b)):
        min(parts, key=lambda part: sum(work[c] for c in part)).append(b)
    return [sorted(part) for part in parts]


class Solver:
    """CFR on one hand.

    tree: the public tree; payoffs: default points; algorithm: a key of ALGORITHMS or an Algorithm; dtype: float32,
    or float64 to compare with other programs; zero: positive regrets up to this count as none.
    `regret[p]`, `average[p]`: shape (tree.rows[p], LANES), cumulative regrets and weighted sums of the strategies;
    `play[p]`: what the current strategy matches, `regret[p]` itself unless the algorithm predicts.
    """

    def __init__(
        self,
        tree: Tree,
        payoffs: Payoffs | None = None,
        algorithm: str | Algorithm = DEFAULT_ALGORITHM,
        threads: int = 1,
        dtype: npt.DTypeLike = np.float32,
        zero: float = 1e-30,
    ) -> None:
        self.tree = tree
        self.payoffs = Payoffs.points(tree.rules) if payoffs is None else payoffs
        self.algorithm = ALGORITHMS[algorithm] if isinstance(algorithm, str) else algorithm
        self.zero = zero
        self.iterations = 0
        self.regret = self._arrays(dtype)
        self.average = self._arrays(dtype)
        self.play = self._arrays(dtype) if self.algorithm.predictive else self.regret
        self.sweeper = Sweeper(tree, self.payoffs, dtype, threads)

    def _arrays(self, dtype: npt.DTypeLike) -> Pair:
        return lanes_array(self.tree.rows[0], dtype), lanes_array(self.tree.rows[1], dtype)

    def step(self, iterations: int = 1) -> None:
        """Iterate: both players' updates, `iterations` times."""
        last = self.iterations + iterations
        while self.iterations < last:
            first = self.iterations + 1
            more = self.algorithm.shift(first) - self.algorithm.shift(first - 1)
            if more:
                for average in self.average:
                    np.ldexp(average, -more, out=average)
            end = min(last, 2 ** first.bit_length() - 1)  # the shift is the same until there
            steps = [self.algorithm.step(t, self.zero) for t in range(first, end + 1)]
            self.sweeper.update(steps, self.play, self.regret, self.average)
            self.iterations = end
