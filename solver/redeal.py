"""The hand with its redeal, solved exactly for small decks: dense CFR and best responses in numpy, in float64.

A hand is one or two *stages*, the play before new cards are dealt and the play after an agreed redeal.  A stage is a
public tree, walked from the referee, and a list of *types*, what a player may know privately: his hand, and after the
redeal the pair (hand set aside, new hand), for each remembers his own discards.  Everything is an array over (public
node, type); card removal is one matrix of joint probabilities of both players' types.  The referee says what is legal,
so any rule set will do; but nothing is shared or reduced as in `solver.tree`, so the deck must be small.

In full games the redeal is left out, since it changes no value (`solver.essential`).  `redeal_loss` measures what that
costs a player who has agreed to one all the same.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from games.cards import counts, hands
from games.rules import AGREE, DEALER, LEADER, PROPOSE, Rules
from games.state import State
from solver.best_response import Evaluation
from solver.cfr import ALGORITHMS, DEFAULT_ALGORITHM, Algorithm, Payoffs
from solver.nodes import TreeTooLargeError, UnsupportedRulesError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Play = list[Floats]
"""A strategy for both players: for each stage, shape (D, A, T), adding up to 1 over the A actions if any is legal."""

MAX_TYPES = 4096  # their joint probabilities take 128 MiB
MAX_ENTRIES = 2**23  # 64 MiB for each of the regrets, the averages, what is played, and the values


class Types(NamedTuple):
    """The T private types of a stage, the same for both players.

    held, aside: shape (T, n_ranks), cards of each rank in the hand that is played and in the one set aside; joint:
    shape (T, T), probability of (leader's type, dealer's type); before: shape (T,), the type before the redeal.
    """

    held: Ints
    aside: Ints
    joint: Floats
    before: Ints


def dealt_types(rules: Rules, left: Sequence[int]) -> Types:
    """The types of a deal from a deck with `left` cards of each rank."""
    held = _hands(rules)
    aside = np.zeros_like(held)
    return Types(held, aside, _joint(held, aside, left), np.arange(len(held)))


def redealt_types(rules: Rules) -> Types:
    """The types after an agreed redeal: every (hand set aside, new hand).  Raises TreeTooLargeError."""
    every = _hands(rules)
    before, new = np.nonzero((every[:, None] + every[None] <= rules.copies).all(axis=2))
    if len(before) > MAX_TYPES:
        raise TreeTooLargeError(
            f"the rules {rules.name!r} have {len(before):,} pairs of a hand set aside and a new one, more than the "
            f"{MAX_TYPES:,} that a redeal is solved with: use fewer ranks or a smaller hand"
        )
    held, aside = every[new], every[before]
    return Types(held, aside, _joint(held, aside, [rules.copies] * rules.n_ranks), before)


def _hands(rules: Rules) -> Ints:
    return counts(hands(rules.n_ranks, rules.hand_size, rules.copies), rules.n_ranks).astype(np.int64)


def _joint(held: Ints, aside: Ints, left: Sequence[int]) -> Floats:
    """Probability of each pair of types: in proportion to prod_r left! / (a0! h0! a1! h1! rest!)."""
    factorial = np.array([math.factorial(x) for x in range(max(left) + 1)], dtype=np.float64)
    used = held + aside
    possible = (used <= np.array(left)).all(axis=1)
    own = np.where(possible, 1.0 / factorial[np.minimum(held, max(left))].prod(axis=1), 0.0)
    own /= factorial[np.minimum(aside, max(left))].prod(axis=1)
    joint: Floats = own[:, None] * own[None, :]
    for rank, copies in enumerate(left):
        rest = copies - used[:, None, rank] - used[None, :, rank]
        joint *= np.where(rest < 0, 0.0, factorial[copies] / factorial[np.maximum(rest, 0)])
    joint /= joint.sum()
    return joint


class Stage:
    """A public tree and its types, as arrays; D decisions are followed by E ends, then by one idle node.

    Decisions are in order of their depth, `levels` has each depth's slice.  player: shape (D,); child: shape (D, A), a
    node, the idle one where there is no such action; legal: shape (D, A, T); lines: what led to each decision; utility:
    shape (E,), to the leader; redealt: the end that leads to the next stage, if there is one.
    Raises TreeTooLargeError.
    """

    def __init__(self, start: State, types: Types, payoffs: Payoffs) -> None:
        self.types = types
        self.rules = start.rules
        decisions: list[State] = []
        edges: list[list[tuple[bool, int]]] = []  # per decision and action: whether that is a decision, and its number
        utility: list[float] = []
        depths: list[int] = []
        self.redealt: int | None = None
        waiting = deque([(start, 0, -1)])
        while waiting:  # breadth first
            state, depth, above = waiting.popleft()
            if above >= 0:
                edges[above].append((not _is_end(state), len(utility) if _is_end(state) else len(decisions)))
            if _is_end(state):
                if state.phase == "deal":
                    self.redealt = len(utility)
                utility.append(_utility(state, payoffs))
                continue
            decisions.append(state)
            edges.append([])
            depths.append(depth)
            self._check_size(len(decisions))
            waiting.extend((state.apply(action), depth + 1, len(decisions) - 1) for action in state.legal_actions())
        n, idle = len(decisions), len(decisions) + len(utility)
        self.nodes = idle + 1
        self.actions = [state.legal_actions() for state in decisions]
        self.lines = [state.line for state in decisions]
        self.player = np.array([state.to_play for state in decisions])
        self.own = tuple(np.flatnonzero(self.player == p) for p in range(2))
        self.utility = np.array(utility)
        bounds = np.searchsorted(depths, np.arange(depths[-1] + 2)).tolist()
        self.levels = [slice(a, b) for a, b in pairwise(bounds)]
        self.child = np.full((n, max(map(len, edges))), idle)
        for i, row in enumerate(edges):
            self.child[i, : len(row)] = [number if deciding else n + number for deciding, number in row]
        self._cards(decisions)

    def _check_size(self, decisions: int) -> None:
        most = len(self.types.held) * (self.rules.n_ranks + 3)
        if decisions * most > MAX_ENTRIES:
            raise TreeTooLargeError(
                f"the rules {self.rules.name!r} have more than {decisions - 1:,} public decisions with "
                f"{len(self.types.held):,} types of cards each, too many to be solved with a redeal: use fewer ranks "
                "or fewer stakes"
            )

    def _cards(self, decisions: list[State]) -> None:
        """What is legal with which type; and `consistent`, shape (2, D, T): whether a type can have played so."""
        held = self.types.held
        played = np.zeros((2, len(decisions), self.rules.n_ranks), np.int64)
        for i, state in enumerate(decisions):
            for seat, rank in state.played:
                played[seat, i, rank] += 1
        self.consistent: Bools = np.all(played[:, :, None, :] <= held, axis=3)
        legal = np.zeros((*self.child.shape, len(held)), bool)
        for i, (state, words) in enumerate(zip(decisions, self.actions, strict=True)):
            possible = self.consistent[state.to_play, i]
            for a, word in enumerate(words):
                if word in self.rules.ranks:
                    rank = self.rules.ranks.index(word)
                    legal[i, a] = possible & (held[:, rank] > played[state.to_play, i, rank])
                else:
                    legal[i, a] = possible
        self.legal = legal

    def information_states(self, player: int, least: int) -> int:
        """How many a player has with at least that many actions."""
        mine = self.own[player]
        joint = self.types.joint if player == 0 else self.types.joint.T
        met = self.consistent[1 - player, mine] @ joint.T > 0  # some hand of the other player goes with it
        return int((met & (self.legal[mine].sum(axis=1) >= least)).sum())

    def uniform(self) -> Floats:
        """Equal weight on every legal action."""
        return self.normal(np.zeros(self.legal.shape))

    def normal(self, *weights: Floats) -> Floats:
        """Probabilities in proportion to the first of the weights that has any, else uniform; shape (D, A, T)."""
        result = _uniform(self.legal)
        for weight in reversed(weights):
            total = weight.sum(axis=1, keepdims=True)
            np.divide(weight, total, out=result, where=total > 0)
        return result

    def reach(self, player: int, play: Floats, start: Floats) -> Floats:
        """A player's own probability of coming to each node, shape (nodes, T), from `start`, shape (T,)."""
        result = np.zeros((self.nodes, len(start)))
        result[0] = start
        factor = np.where((self.player == player)[:, None, None], play, 1.0)
        for level in self.levels:
            result[self.child[level]] = result[level][:, None] * factor[level]
        return result

    def values(self, player: int, play: Floats, reach: Floats, redealt: Floats | None, best: bool) -> Floats:
        """A player's counterfactual values, shape (nodes, T), his payoffs without `Payoffs.total`.

        reach: the other's; redealt: shape (T,), the values of what follows an agreed redeal; best: he responds best.
        """
        joint = self.types.joint if player == 0 else self.types.joint.T
        n, sign = len(self.player), 1.0 if player == 0 else -1.0
        result = np.zeros((self.nodes, len(joint)))
        result[n:-1] = (sign * self.utility)[:, None] * (reach[n:-1] @ joint.T)
        if self.redealt is not None and redealt is not None:
            result[n + self.redealt] = redealt
        for level in reversed(self.levels):
            below = result[self.child[level]]
            mine = (self.player[level] == player)[:, None]
            legal = self.legal[level]
            if best:
                own = np.where(legal, below, -np.inf).max(axis=1)
                own[~legal.any(axis=1)] = 0.0
            else:
                own = (play[level] * below).sum(axis=1)
            result[level] = np.where(mine, own, below.sum(axis=1))
        return result


def _is_end(state: State) -> bool:
    return state.is_over or state.phase == "deal"


def _utility(state: State, payoffs: Payoffs) -> float:
    """What an end is worth to the leader; a redeal has nothing to itself."""
    if state.phase == "deal":
        return 0.0
    if state.winner == LEADER:
        return payoffs.win0[state.level]
    return payoffs.win1[state.level] if state.winner == DEALER else payoffs.tie


class Game:
    """One hand in one stage, or in two, of which the second follows an agreed redeal; payoffs: of every end."""

    def __init__(self, stages: list[Stage], payoffs: Payoffs) -> None:
        self.stages = stages
        self.payoffs = payoffs

    def information_states(self, player: int, least: int = 1) -> int:
        """How many a player has with at least that many actions, nothing merged."""
        return sum(stage.information_states(player, least) for stage in self.stages)

    def uniform(self) -> Play:
        """Equal weight on every legal action."""
        return [stage.uniform() for stage in self.stages]

    def reach(self, player: int, play: Play) -> list[Floats]:
        """A player's own probability of coming to each node of each stage, shape (nodes, T)."""
        found: list[Floats] = []
        for stage, strategy in zip(self.stages, play, strict=True):
            start = np.ones(len(stage.types.held))
            if found:
                above = self.stages[0]
                assert above.redealt is not None
                start = found[0][len(above.player) + above.redealt][stage.types.before]
            found.append(stage.reach(player, strategy, start))
        return found

    def values(self, player: int, play: Play, best: bool = False) -> list[Floats]:
        """A player's counterfactual values of each stage's nodes, shape (nodes, T): see `Stage.values`."""
        found: list[Floats] = []
        redealt: Floats | None = None
        for i, reach in reversed(list(enumerate(self.reach(1 - player, play)))):
            stage = self.stages[i]
            found.insert(0, stage.values(player, play[i], reach, redealt, best))
            if i:  # all new hands of one set aside
                types = len(self.stages[0].types.held)
                redealt = np.bincount(stage.types.before, found[0][0], types).astype(np.float64)
        return found

    def evaluate(self, play: Play) -> Evaluation:
        """Exact values and best responses, with a bound on rounding: see `_rounding`."""
        value, best0, best1 = (
            math.fsum(self.values(player, play, best)[0][0]) for player, best in ((0, False), (0, True), (1, True))
        )
        return Evaluation(
            value, (best0, best1 + self.payoffs.total), self._rounding(), self.payoffs.unit, self.payoffs.total
        )

    def _rounding(self) -> float:
        """A value is a sum of products of a payoff and probabilities; those of one deal and one own plan add up to 1.

        A product goes through at most R roundings: `joint` 2 n + 6, an end a sum over T types, a decision a
        normalised probability on the way down (A + 2) and a sum over A actions on the way up, a redeal a sum over T.
        """
        roundings = 4.0
        for stage in self.stages:
            actions, types = stage.child.shape[1], len(stage.types.held)
            roundings += 2 * stage.rules.n_ranks + 6 + 2 * types + len(stage.levels) * (2 * actions + 4)
        magnitude = max(abs(x) for x in (*self.payoffs.win0, *self.payoffs.win1, self.payoffs.tie))
        return roundings * 2.0**-53 / (1 - roundings * 2.0**-53) * magnitude


def redeal_game(
    rules: Rules, *, forced: bool = False, payoffs: Payoffs | None = None, score: tuple[int, int] | None = None
) -> Game:
    """The hand of a rule set with a redeal.

    forced: always proposed and agreed to, so that only the play after it is left; payoffs: default points, which go
    with no score; with one there is a remainder if the rules have it, and one level more.
    Raises UnsupportedRulesError, TreeTooLargeError.
    """
    if not rules.redeal:
        raise UnsupportedRulesError(f"the rules {rules.name!r} have redeal = false, there is nothing to solve here")
    pay = Payoffs.points(rules) if payoffs is None else payoffs
    after_types = redealt_types(rules)  # first, for it refuses what is too large
    start = State.public(rules, score)
    after = Stage(start.follow((PROPOSE, AGREE)), after_types, pay)
    if forced:
        return Game([after], pay)
    return Game([Stage(start, dealt_types(rules, [rules.copies] * rules.n_ranks), pay), after], pay)


class DenseSolver:
    """CFR on a `Game`, with any of `solver.cfr.ALGORITHMS`; alternating updates, as `solver.cfr.Solver` has them."""

    def __init__(self, game: Game, algorithm: str | Algorithm = DEFAULT_ALGORITHM, zero: float = 1e-30) -> None:
        self.game = game
        self.algorithm = ALGORITHMS[algorithm] if isinstance(algorithm, str) else algorithm
        self.zero = zero
        self.iterations = 0
        self._regret = [np.zeros(stage.legal.shape) for stage in game.stages]
        self._average = [np.zeros(stage.legal.shape) for stage in game.stages]
        self._play = game.uniform()

    def step(self, iterations: int = 1) -> None:
        """Iterate: both players' updates, `iterations` times."""
        for t in range(self.iterations + 1, self.iterations + iterations + 1):
            more = self.algorithm.shift(t) - self.algorithm.shift(t - 1)
            if more:
                for average in self._average:
                    np.ldexp(average, -more, out=average)
            for player in range(2):
                self._update(player, t)
        self.iterations += iterations

    def _update(self, player: int, t: int) -> None:
        step = self.algorithm.step(t, self.zero)
        values = self.game.values(player, self._play)
        reaches = self.game.reach(player, self._play)
        for i, stage in enumerate(self.game.stages):
            mine = stage.own[player]
            legal, play = stage.legal[mine], self._play[i][mine]
            self._average[i][mine] += step.weight * reaches[i][mine][:, None] * play
            gain = np.where(legal, values[i][stage.child[mine]] - values[i][mine][:, None], 0.0)
            old = self._regret[i][mine]
            regret = np.maximum(old * np.where(old > 0, step.gain, step.loss) + gain, step.floor)
            self._regret[i][mine] = regret
            basis = regret * step.ahead + step.prediction * gain if self.algorithm.predictive else regret
            self._play[i][mine] = _matched(np.where(legal & (basis > step.zero), basis, 0.0), legal)

    @property
    def average(self) -> Play:
        """The average strategy; the current one where its owner never plays that far."""
        return [
            stage.normal(average, play)
            for stage, average, play in zip(self.game.stages, self._average, self._play, strict=True)
        ]

    def run(self, accuracy: float, most: int = 100_000) -> tuple[Play, Evaluation]:
        """Iterate until the average strategy's exploitability is within `accuracy`.  Raises ArithmeticError."""
        while self.iterations < most:
            self.step(min(max(50, self.iterations // 4), most - self.iterations))
            average = self.average
            found = self.game.evaluate(average)
            if found.exploitability <= accuracy:
                return average, found
        raise ArithmeticError(f"{accuracy!r} was not reached in {most:,} iterations")


def _matched(basis: Floats, legal: Bools) -> Floats:
    total = basis.sum(axis=1, keepdims=True)
    result = _uniform(legal)
    np.divide(basis, total, out=result, where=total > 0)
    return result


def _uniform(legal: Bools) -> Floats:
    result: Floats = legal / np.maximum(legal.sum(axis=1, keepdims=True), 1)
    return result


@dataclass(frozen=True, slots=True)
class RedealLoss:
    """What playing without memory gives away once a redeal has been agreed to, in `unit`.

    value: of the play after a redeal that is always proposed and agreed to, both remembering their discards, exact to
    `error`; loss: by how much the leader's and the dealer's strategies without memory guarantee less than that.
    """

    value: float
    error: float
    loss: tuple[float, float]
    unit: str


def redeal_loss(rules: Rules, corrected: bool = False, accuracy: float = 1e-5) -> RedealLoss:
    """The loss against an exact best response of `without_memory`, after a redeal that is always agreed to.

    Whoever proposes and agrees without looking at his cards (always, or uniformly) loses this much per agreed redeal.
    accuracy: exploitability of all that is solved, in points.  Raises UnsupportedRulesError, TreeTooLargeError.
    """
    game = redeal_game(rules, forced=True)
    _, exact = DenseSolver(game).run(accuracy)
    found = game.evaluate(without_memory(rules, corrected, accuracy))
    return RedealLoss(
        exact.value,
        exact.exploitability + exact.rounding,
        (exact.value - (found.total - found.best_response[1]), found.best_response[0] - exact.value),
        found.unit,
    )


def without_memory(rules: Rules, corrected: bool = False, accuracy: float = 1e-5) -> Play:
    """How one plays on after an agreed redeal as if there had been none, in the stage of the forced `redeal_game`.

    corrected false: the new hand as in an equilibrium of the hand without a redeal, from the whole deck.
    corrected true: as in an equilibrium of the hand dealt from the deck without one's own discards, which gives the
    opponent's hands their right weights, but has him know one's discards in place of his own.
    """
    (stage,) = redeal_game(rules, forced=True).stages
    every = _hands(rules)
    index = {tuple(hand): h for h, hand in enumerate(every.tolist())}
    held = np.array([index[tuple(hand)] for hand in stage.types.held.tolist()])
    full = np.array([rules.copies] * rules.n_ranks)
    play = np.zeros(stage.legal.shape)
    for before, hand in enumerate(every):
        mine = stage.types.before == before
        if corrected or before == 0:
            left = full - hand if corrected else full
            (solved,), _ = DenseSolver(_dealt_game(rules, left)).run(accuracy)
        play[:, :, mine] = solved[:, :, held[mine]]
    return [play]


def _dealt_game(rules: Rules, left: Ints) -> Game:
    """The hand without a redeal, from a deck with `left` cards of each rank; decisions in the order after a redeal."""
    start, payoffs = State.public(replace(rules, redeal=False)), Payoffs.points(rules)
    return Game([Stage(start, dealt_types(rules, left.tolist()), payoffs)], payoffs)
