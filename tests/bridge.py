"""Between the oracle's information states and the rows of the solver's tree.

The oracle names a state by (player, dealt hand, line); the tree has it at the line's position, by the cards that are
still in hand.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np

from games.cards import hands
from games.rules import Rules
from solver.cfr import Pair, Payoffs, lanes_array
from solver.kernels import LANES, LAST_TRICK
from solver.strategy import Position, find, rows_at
from solver.tree import Tree
from tests import oracle
from tests.oracle import TrucHand
from tests.test_oracle import CASES, case_rules


def make_rules(
    n: int, copies: int, size: int, ladder: tuple[int, ...], order: str = "circular", tied: str = "nobody"
) -> Rules:
    """A rule set of n ranks."""
    ranks = tuple("A23456789TJQKXYZ"[:n])
    return Rules("test", ranks, order, copies, size, ladder, tied)  # type: ignore[arg-type]


def case_payoffs(name: str) -> Payoffs:
    """The payoffs of an exact case."""
    given = CASES[name]["payoffs"]
    if given is None:
        return Payoffs.points(case_rules(CASES[name]))
    return Payoffs(tuple(given["win0"]), tuple(given["win1"]), given["tie"], "match-winning probability")


class Bridge:
    """One game as the oracle and as the tree have it.

    For each of the oracle's slots (an action of an information state): owner, its player; index, its place in a
    flattened array of shape (tree.rows[owner], LANES), -1 for the only action of a state; merged, whether the tree
    has one state for several of the oracle's; factor, what the tree's regret has to be multiplied with to be the
    counterfactual one; weight, the probability of the deals that could have led here, for merged states.
    """

    def __init__(self, game: TrucHand, reduced: bool) -> None:
        self.game, self.rules = game, game.rules
        self.tree = Tree(game.rules, reduced)
        self.flat = oracle.flatten(game)
        self.owner = self.flat.owner
        slots = len(self.owner)
        self.index = np.full(slots, -1, np.int64)
        self.merged = np.zeros(slots, bool)
        self.factor, self.weight = np.ones(slots), np.ones(slots)
        numbers = tuple(
            np.arange(rows * LANES, dtype=np.float64).reshape(rows, LANES) for rows in self.tree.rows
        )
        chance = {(a, b): p for (a, b, _), p in game.roots()}
        dealt = Counter[tuple[int, tuple[int, ...]]]()
        for (a, b), p in chance.items():
            dealt[0, a] += p
            dealt[1, b] += p
        at = cache(lambda line: find(self.tree, line))
        rows = cache(lambda position: rows_at(self.tree, position, numbers))
        number = {tuple(map(int, h)): i for k in range(4) for i, h in enumerate(hands(len(self.rules.ranks), k, 12))}
        for (player, hand, line), first, width in zip(self.flat.infos, self.flat.first, self.flat.width, strict=True):
            position = at(line)
            decision = rows(position)
            played = game.public(line).played
            held = tuple(sorted((Counter(hand) - Counter(played[player])).elements()))
            row = self._row(decision.holdings, held, number)
            assert decision.player == player
            legal = decision.legal[row]
            assert [a for a, yes in zip(decision.actions, legal, strict=True) if yes] == list(
                game.actions(((), (), line)) if False else self._actions(player, hand, line)
            )
            part = slice(first, first + width)
            if width > 1:
                self.index[part] = decision.probabilities[row][legal].astype(np.int64)
            self.factor[part] = dealt[player, hand] * self._falling(hand, played[1 - player])
            if self.tree.nodes[position.node].kind == LAST_TRICK and position.stage == 0:
                self.merged[part] = width > 1
                other = tuple(sorted(played[1 - player]))
                self.weight[part] = chance.get((hand, other) if player == 0 else (other, hand), 0.0)
