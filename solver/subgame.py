"""The rest of a hand from one public decision on, with what each player may hold there: values, gains, solutions.

With the reaches a and b of the players' holdings u and v at a line, and `left` copies of each rank not played, the
joint weight of (u, v) is a(u) b(v) prod_r left_r! / (left_r - u_r - v_r)!: the starting reaches have the 1/u! in them.
The kernels' values of a holding are divided by its *mass*, the weight of what the opponent can hold against it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from games.rules import ACCEPT, RAISE, REFUSE
from solver.cfr import ALGORITHMS, DEFAULT_ALGORITHM, Pair, Payoffs, Sweeper, lanes_array
from solver.kernels import BEST, EXPECT, LANES, LAST_TRICK, NO_CARDS
from solver.nodes import Ints
from solver.parts import Part, below
from solver.strategy import Decision, LineError, Position, actions, child, normalised, root, rows_at, step
from solver.tree import Tree

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Situation:
    """A public decision, and what the players of a strategy hold there.

    player: who acts; held: how many cards each has; played: which each has played, in order; left: shape (ranks,),
    copies not played; reach[p]: shape (H,), of p's holdings; presence[p]: how much of all that p could hold by the
    cards played, weighted by deals, plays p's part of the line.  discards: ranks out of the deck, taken off `left`.
    """

    position: Position
    player: int
    held: tuple[int, int]
    played: tuple[tuple[int, ...], tuple[int, ...]]
    left: Ints
    reach: tuple[Array, Array]
    presence: tuple[float, float]
    discards: tuple[int, ...] = ()


def situation(tree: Tree, strategy: Pair, line: tuple[str, ...], discards: tuple[int, ...] = ()) -> Situation:
    """Follow a line with a strategy's probabilities (shape (tree.rows[p], LANES)).  Raises `LineError`.

    discards: ranks of cards that are out of the deck from the start.
    """
    k = tree.rules.hand_size
    reach = [_anything(tree, k, ()), _anything(tree, k, ())]
    played: tuple[list[int], list[int]] = ([], [])
    position = root(tree)
    for n, action in enumerate(line):
        after = step(tree, position, line, n)
        decision = rows_at(tree, position, strategy)
        p = decision.player
        part = reach[p] * decision.probabilities[:, decision.actions.index(action)]
        if action in tree.rules.ranks:
            card = tree.rules.ranks.index(action)
            fewer = k - len(played[p]) - 1
            more = tree.holdings.more[fewer, : tree.size(fewer), card]
            part = np.where(more >= 0, part[more], 0.0)
            played[p].append(card)
        reach[p], position = part, after
    player = actions(tree, position)[0]
    counts = np.bincount([*played[0], *played[1], *discards], minlength=tree.rules.n_ranks)
    left = tree.rules.copies - counts
    if left.min() < 0:
        rank = tree.rules.ranks[int(left.argmin())]
        raise LineError(
            f"{' '.join(line)!r} has more cards of rank {rank} than the deck, which has {tree.rules.copies}"
        )
    held = (k - len(played[0]), k - len(played[1]))
    cards = tuple(played[0]), tuple(played[1])
    found = Situation(position, player, held, cards, left, (reach[0], reach[1]), (1.0, 1.0), discards)
    presence = []
    for p in range(2):
        possible = ways(tree, left, 0, held[p])[0]
        presence.append(float(reach[p] @ possible) / float(anything(tree, found, p) @ possible))
    return replace(found, presence=(presence[0], presence[1]))


def anything(tree: Tree, at: Situation, player: int) -> Array:
    """Shape (H,): the reach of a player of whom nothing is known but the cards played."""
    return _anything(tree, at.held[player], at.played[player])


def _anything(tree: Tree, k: int, played: tuple[int, ...]) -> Array:
    number = tree.holdings.number[k, : tree.size(k)] + np.bincount(played, minlength=tree.rules.n_ranks).astype(int)
    factorial = np.array([math.factorial(a) for a in range(tree.rules.hand_size + 1)])
    possible = (number <= tree.rules.copies).all(axis=1)
    return np.where(possible, 1.0 / factorial[number].prod(axis=1), 0.0)


def ways(tree: Tree, left: Ints, held: int, other: int) -> Array:
    """Shape (H of `held` cards, V of `other` cards): prod_r (left_r - u_r)(left_r - u_r - 1)... (v_r factors)."""
    number = tree.holdings.number
    rest = np.maximum(left - number[held, : tree.size(held)], 0)
    theirs = number[other, : tree.size(other)]
    top = tree.rules.copies
    falling = np.array([[math.perm(x, j) for j in range(tree.rules.hand_size + 1)] for x in range(top + 1)], float)
    result = np.ones((len(rest), len(theirs)))
    for r in range(len(left)):
        result *= falling[rest[:, r, None], theirs[None, :, r]]
    return result


class Beliefs:
    """What the players hold and believe at a situation.

    reach[p]: as given, scaled; possible[p]: shape (H,), above 0 where the cards played allow a holding; joint: shape
    (H0, H1), the probability of both holdings; share[p]: shape (H,), of each holding; mass[p]: shape (H,), see above,
    0 where nothing of the opponent's goes with a holding.
    """

    def __init__(self, tree: Tree, at: Situation, reach: Pair) -> None:
        self.possible = possible = ways(tree, at.left, 0, at.held[0])[0], ways(tree, at.left, 0, at.held[1])[0]
        scaled = [reach[p] / (reach[p] @ possible[p]) for p in range(2)]
        self.reach = scaled[0], scaled[1]
        self.ways = ways(tree, at.left, at.held[0], at.held[1]), ways(tree, at.left, at.held[1], at.held[0])
        self.mass = self.ways[0] @ scaled[1], self.ways[1] @ scaled[0]
        joint = (scaled[0] * possible[0])[:, None] * self.ways[0] * scaled[1]
        self.total = float(joint.sum())
        self.joint = joint / self.total if self.total > 0 else joint
        self.share = self.joint.sum(axis=1), self.joint.sum(axis=0)

    def opponent(self, player: int) -> Array:
        """Shape (H, V): what the opponent holds, given each holding of the player; 0 where that has no mass."""
        weights: Array = self.ways[player] * self.reach[1 - player]
        mass = self.mass[player][:, None]
        np.divide(weights, mass, out=weights, where=mass > 0)
        return weights


class Values(NamedTuple):
    """A strategy at the root: ev: shape (H, A), the acting player's, who plays on as well as he can against the
    strategy; accuracy: what both sides together gain by best responses, given what they hold."""

    ev: Array
    accuracy: float


@dataclass(slots=True)
class _Run:
    """CFR on a subgame, as far as it has come."""

    sweeper: Sweeper
    regret: Pair
    play: Pair
    average: Pair
    done: int = 0


class Subgame:
    """The rest of a hand from a decision before the last answer: everything but the last trick's second card.

    Strategies are pairs of arrays of shape (part.rows[p], LANES).
    """

    def __init__(self, tree: Tree, payoffs: Payoffs, at: Situation, beliefs: Beliefs, threads: int = 1) -> None:
        self.tree, self.payoffs, self.at, self.beliefs, self.threads = tree, payoffs, at, beliefs, threads
        gone = np.bincount(at.discards, minlength=tree.rules.n_ranks) if at.discards else None
        self.part = below(tree, at.position.block, at.position.lane, at.position.node, at.left, gone)
        self._exact = Sweeper(tree, payoffs, np.float64, threads, self.part, beliefs.reach)
        self._run: _Run | None = None

    @property
    def bytes(self) -> int:
        """Of memory, about: a strategy, what `solve` keeps, and the scratch arrays of both."""
        strategies = sum(self.part.rows) * LANES * (8 + (12 if self._run else 0))
        return strategies + (self.part.top_rows + self.tree.plan.scratch_rows * self.threads) * LANES * 12

    def stored(self, strategy: Pair, of: Part | None = None) -> Pair:
        """A copy of the rows below the root of a strategy for the whole tree, or for a part that this one is in."""
        copy, bases = self._arrays(np.float64), (self.tree if of is None else of).bases
        for b in self.part.members:
            for p, size in enumerate(self.tree.programs[self.tree.blocks[b].program].rows):
                here, there = int(self.part.bases[b, p]), int(bases[b, p])
                copy[p][here : here + size] = strategy[p][there : there + size]
        return copy

    def _arrays(self, dtype: npt.DTypeLike) -> Pair:
        return lanes_array(self.part.rows[0], dtype), lanes_array(self.part.rows[1], dtype)

    def table(self, strategy: Pair) -> Decision:
        """What a strategy does at the root."""
        return rows_at(self.tree, self.at.position, strategy, self.part)

    def put(self, strategy: Pair, table: Array) -> None:
        """Change what a strategy does at the root, for holdings with a choice."""
        position, player = self.at.position, self.at.player
        legal = self.table(strategy).legal
        in_rows = legal & (legal.sum(axis=1) > 1)[:, None]
        row = int(self.part.bases[position.block, player]) + self.tree.nodes[position.node].row
        strategy[player][row : row + int(in_rows.sum()), position.lane] = table[in_rows]

    def dominated(self) -> npt.NDArray[np.bool_]:
        """Shape (1, 1): nothing is known to be (see `LastTrick.dominated`)."""
        return np.zeros((1, 1), bool)

    def values(self, strategy: Pair) -> Values:
        """Evaluate a strategy by exact best responses (float64)."""
        me = self.at.player
        other = self._mean(1 - me, self._exact.values(1 - me, BEST, strategy))
        mine = self._exact.values(me, BEST, strategy)
        return Values(self._by_action(self._exact), other + self._mean(me, mine))

    def worth(self, player: int, strategy: Pair) -> Array:
        """Shape (H,): what a player's holdings are worth if he plays as well as he can against a strategy, nan where
        nothing of the opponent's goes with one."""
        return self._given(player, self._exact.values(player, BEST, strategy))

    def winning(self, player: int, strategy: Pair) -> Array:
        """Shape (H,): a player's chance to win the hand with each holding if nobody refuses any more, nan likewise."""
        sweeper, accepting = self._accepting(player, strategy)
        return self._given(player, sweeper.values(player, EXPECT, accepting))

    def _given(self, player: int, raw: Array) -> Array:
        mass = self.beliefs.mass[player]
        found: Array = np.divide(raw, mass, out=np.full_like(raw, np.nan), where=mass > 0)
        return found

    def _mean(self, player: int, raw: Array) -> float:
        mass = self.beliefs.mass[player]
        return float(self.beliefs.share[player] @ np.divide(raw, mass, out=np.zeros_like(raw), where=mass > 0))

    def _by_action(self, sweeper: Sweeper) -> Array:
        """Shape (H, A): what the acting player's sweep, the latest, has left at the root's children."""
        tree, (block, lane, i, _, _), me = self.tree, self.at.position, self.at.player
        node, placed = tree.nodes[i], tree.plan.nodes[me * len(tree.nodes) + i]
        shared = tree.programs[tree.blocks[block].program].shared
        column = (sweeper.scratch[0] if shared else sweeper.top)[:, lane]
        k, offers, slots = self.at.held[me], len(node.words), int(placed["slots"])
        size, plays = tree.size(k), tree.rules.n_ranks if node.cards != NO_CARDS else 0
        raw = np.full((size, offers + plays), np.nan)
        raw[:, :offers] = column[slots : slots + offers * size].reshape(offers, size).T
        if plays:
            hands, rest_size = tree.holdings, tree.size(k - 1)
            h, j = np.nonzero(hands.card[k, :size] >= 0)
            card, rest = hands.card[k, h, j], hands.rest[k, h, j]
            raw[h, offers + card] = column[slots + offers * size + card * rest_size + rest]
        mass = self.beliefs.mass[me][:, None]
        found: Array = np.divide(raw, mass, out=np.full_like(raw, np.nan), where=mass > 0)
        return found

    def refusals(self, strategy: Pair) -> Array:
        """Shape (H,): how often the opponent refuses a raise made now, nan where none is legal."""
        if RAISE not in actions(self.tree, self.at.position)[1]:
            return np.full(self.tree.size(self.at.held[self.at.player]), np.nan)
        after = child(self.tree, self.at.position, RAISE)
        assert after is not None
        answer = rows_at(self.tree, after, strategy, self.part)
        found: Array = self.beliefs.opponent(self.at.player) @ answer.probabilities[:, answer.actions.index(REFUSE)]
        return found

    def wins(self, strategy: Pair) -> Array:
        """Shape (H, A): the chance to win the hand after each action if nobody refuses any more."""
        sweeper, accepting = self._accepting(self.at.player, strategy)
        sweeper.values(self.at.player, EXPECT, accepting)
        found = self._by_action(sweeper)
        words = actions(self.tree, self.at.position)[1]
        if REFUSE in words:
            found[:, words.index(REFUSE)] = np.nan
        return found

    def _accepting(self, player: int, strategy: Pair) -> tuple[Sweeper, Pair]:
        """What counts a player's wins, and a strategy changed to accept whatever is called."""
        levels = self.tree.levels
        wins = (Payoffs((1.0,) * levels, (0.0,) * levels), Payoffs((0.0,) * levels, (-1.0,) * levels))[player]
        accepting = strategy[0].copy(), strategy[1].copy()
        for b in self.part.members:
            for p, (yes, no) in enumerate(_answers(self.tree, self.tree.blocks[b].program)):
                base = self.part.bases[b, p]
                accepting[p][base + yes], accepting[p][base + no] = 1.0, 0.0
        return Sweeper(self.tree, wins, np.float64, self.threads, self.part, self.beliefs.reach), accepting

    def solve(self, accuracy: float, most: int = 20_000) -> Pair:
        """A strategy whose exact accuracy is at most `accuracy`, or that of `most` iterations of CFR from nothing.

        Asked again for a better one, it goes on where it was.
        """
        algorithm = ALGORITHMS[DEFAULT_ALGORITHM]
        if self._run is None:
            sweeper = Sweeper(self.tree, self.payoffs, np.float32, self.threads, self.part, self.beliefs.reach)
            self._run = _Run(sweeper, self._arrays(np.float32), self._arrays(np.float32), self._arrays(np.float32))
        run, until = self._run, max(25, self._run.done)
        while True:
            steps = [algorithm.step(t, 1e-30) for t in range(run.done + 1, until + 1)]
            if steps:
                run.sweeper.update(steps, run.play, run.regret, run.average)
                run.done = until
            reached = self.values((run.average[0].astype(np.float64), run.average[1].astype(np.float64))).accuracy
            if reached <= accuracy or until >= most:
                return normalised(self.tree, run.average, run.play, self.part)
            until = min(until + max(10, round(until * min(1.0, (reached / accuracy) ** 0.5 - 1))), most)


@lru_cache(maxsize=64)
def _answers(tree: Tree, program: int) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]]:
    """By player: the rows in a program's block where he accepts, and where he refuses."""
    rows: tuple[list[int], list[int]] = ([], [])
    for node in tree.nodes[tree.programs[program].start : tree.programs[program].stop]:
        if node.words[:1] == (ACCEPT,):
            rows[node.player].extend(node.row + 2 * h for h in range(tree.size(node.spot.held[node.player])))
        elif node.kind == LAST_TRICK and node.raise_legal:
            rows[1 - node.player].extend(node.row_other + 2 * n for n in range(len(node.words) * tree.rules.n_ranks))
    yes = np.array(rows[0], np.int64), np.array(rows[1], np.int64)
    return (yes[0], yes[0] + 1), (yes[1], yes[1] + 1)
