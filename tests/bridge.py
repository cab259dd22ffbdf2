"""Between the oracle's information states and the rows of the solver's tree.

The oracle names a state by (player, dealt hand, line); the tree has it at the line's position, by the cards that are
still in hand.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import cache

import numpy as np

from games.rules import Rules
from solver.cfr import Pair, Payoffs, lanes_array
from solver.kernels import LANES, LAST_TRICK
from solver.strategy import Decision, Strategy, find, rows_at
from solver.tree import Tree
from tests import oracle
from tests.oracle import Policy, TrucHand
from tests.test_oracle import CASES, case_rules


def make_rules(
    n: int, copies: int, size: int, ladder: tuple[int, ...], order: str = "circular", tied: str = "nobody"
) -> Rules:
    """A rule set of n ranks."""
    ranks = tuple("23456789TJQKABCD"[:n])
    return Rules("test", ranks, order, copies, size, ladder, tied)  # type: ignore[arg-type]


def case_payoffs(name: str) -> Payoffs:
    """The payoffs of an exact case."""
    given = CASES[name]["payoffs"]
    if given is None:
        return Payoffs.points(case_rules(CASES[name]))
    return Payoffs(tuple(given["win0"]), tuple(given["win1"]), given["tie"])


class Bridge:
    """One game as the oracle and as the tree have it, with both ways between their numbers.

    For each of the oracle's slots (an action of an information state): `index`, its place in a flattened array of
    shape (tree.rows[owner], LANES), -1 for the only action of a state; `factor`, see `_factor`; `merged`, whether the
    tree may have one state for several of the oracle's; `weight`, of those the probability of the deal (the other
    hand is on the table by then).
    """

    def __init__(self, game: TrucHand, reduced: bool) -> None:
        self.game = game
        self.tree = Tree(game.rules, reduced)
        self.flat = oracle.flatten(game)
        slots = len(self.flat.owner)
        self.index = np.full(slots, -1, np.int64)
        self.merged = np.zeros(slots, bool)
        self.factor, self.weight = np.ones(slots), np.ones(slots)
        self.chance = {(a, b): p for (a, b, _), p in game.roots()}
        self.dealt = Counter[tuple[int, tuple[int, ...]]]()
        for (a, b), p in self.chance.items():
            self.dealt[0, a] += p
            self.dealt[1, b] += p
        places = tuple(np.arange(rows * LANES, dtype=float).reshape(rows, LANES) for rows in self.tree.rows)
        decisions: dict[tuple[str, ...], tuple[bool, Decision]] = {}
        for (player, hand, line), first, width in zip(self.flat.infos, self.flat.first, self.flat.width, strict=True):
            if line not in decisions:
                position = find(self.tree, line)
                last = self.tree.nodes[position.node].kind == LAST_TRICK and position.stage == 0
                decisions[line] = last, rows_at(self.tree, position, places)
            last, decision = decisions[line]
            played = game.public(line).played
            held = sorted((Counter(hand) - Counter(played[player])).elements())
            (row,) = np.flatnonzero((decision.holdings == np.array(held, np.int8)).all(axis=1))
            legal = decision.legal[row]
            names = tuple(action for action, yes in zip(decision.actions, legal, strict=True) if yes)
            both = (hand, hand)  # only the acting player's is looked at
            assert (decision.player, names) == (player, game.actions((*both, line)))
            part = slice(first, first + width)
            if width > 1:
                self.index[part] = decision.probabilities[row][legal].astype(np.int64)
                self.merged[part] = last
            self.factor[part] = self._factor(player, hand, played[1 - player])
            if last:
                other = tuple(sorted(played[1 - player]))
                self.weight[part] = self.chance[(hand, other) if player == 0 else (other, hand)]

    def _factor(self, player: int, hand: tuple[int, ...], seen: tuple[int, ...]) -> float:
        """Counterfactual regret = this times the tree's.

        P(deal) = P(own hand a) * prod_r (c - a_r)(c - a_r - 1)... / b_r! (b_r factors, c copies of a rank in the
        deck) / C(cards - size, size).  The last two are in the tree's starting reach, P(a) is nowhere in it.  Of the
        falling factorials it has at a state only those of the cards that the opponent still holds: his m_r played
        ones come in above it, on the way up.  They are the first m_r factors, and c - a_r is the same whether my own
        cards are held or on the table.
        """
        copies = self.game.rules.copies
        factor = self.dealt[player, hand]
        for rank, times in Counter(seen).items():
            factor *= math.perm(copies - hand.count(rank), times)
        return factor

    def vector(self, arrays: Pair) -> np.ndarray:
        """Numbers of the tree's rows by the oracle's slots, 1 where there is no row."""
        numbers = [np.append(arrays[p].ravel(), 1.0)[np.where(self.flat.owner == p, self.index, -1)] for p in range(2)]
        return np.where(self.flat.owner == 0, *numbers)

    def policy(self, arrays: Pair) -> Policy:
        """The oracle's policy with a tree strategy's probabilities."""
        return self.flat.table(self.vector(arrays))

    def arrays(self, policy: Policy) -> Pair:
        """An unreduced tree's strategy with the probabilities of a policy, uniform at states that no deal has."""
        vector, result = self.flat.vector(policy), Strategy.uniform(self.tree).probabilities
        for p in range(2):
            mine = (self.index >= 0) & (self.flat.owner == p)
            result[p].reshape(-1)[self.index[mine]] = vector[mine]
        return result

    def normalised(self, weights: np.ndarray) -> np.ndarray:
        """Weights by slot as probabilities, uniform where all are 0."""
        total = np.add.reduceat(weights, self.flat.first)[self.flat.info_of]
        return np.where(total > 0, weights / np.where(total > 0, total, 1.0), 1.0 / self.flat.width[self.flat.info_of])


@cache
def bridge(game: TrucHand, reduced: bool) -> Bridge:
    """One bridge for each game and kind of tree."""
    return Bridge(game, reduced)


def assert_close(found: np.ndarray, expected: np.ndarray, accuracy: float) -> None:
    """All numbers agree to an absolute accuracy."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=accuracy)


def random_strategy(tree: Tree, rng: np.random.Generator) -> Pair:
    """Random probabilities, none of them tiny, of every state of a tree."""

    def numbers(p: int) -> np.ndarray:
        starts, sizes = tree.states[p]
        weights = lanes_array(tree.rows[p], np.float64)
        weights[:] = rng.uniform(0.1, 1.0, weights.shape)
        if len(starts):
            weights /= np.repeat(np.add.reduceat(weights, starts, axis=0), sizes, axis=0)
        return weights

    return numbers(0), numbers(1)


def assert_adds_up(strategy: Strategy) -> None:
    """Each information state's probabilities, in the lanes that there are; nobody reads the others."""
    tree = strategy.tree
    for p, table in enumerate(strategy.probabilities):
        assert ((table >= 0) & (table <= 1)).all()
        ends = np.append(tree.bases[1:, p], tree.rows[p])
        lanes = np.zeros(table.shape, bool)
        for block, first, end in zip(tree.blocks, tree.bases[:, p], ends, strict=True):
            lanes[first:end, : len(block.histories)] = True
        starts, _ = tree.states[p]
        if len(starts):
            sums = np.add.reduceat(table, starts, axis=0)
            np.testing.assert_allclose(sums[lanes[starts]], 1.0, rtol=0, atol=1e-12)
        assert table.shape[1] == LANES
