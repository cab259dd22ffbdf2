"""A numpy walk over the whole public tree with both players' strategies, for what the kernels do not tell.

Every node of every program is visited once (see `solver.tree`), with all histories that share the program as the last
axis, the lanes.  Reaches go down, and whatever a subclass of `Lanes` makes of them comes up.  Slower than the kernels
by far, and independent of them.

The probability of a deal and a line is in proportion to reach0(u) reach1(v) W(u, v) with the holdings u and v left: the
starting reaches are 1 / prod_r u_r!, and W = prod_r copies! / (copies - x_r)!, where x_r counts rank r among u, v and
the cards played.  So W of the same deal is the same all along a line.
"""

from __future__ import annotations

import math
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from games.cards import hands
from solver.kernels import LAST_CARDS, NO_CARDS, SPLIT
from solver.nodes import Node
from solver.strategy import Strategy

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Reach = tuple[Array, Array]
Histories = tuple[tuple[int, ...], ...]
R = TypeVar("R")


class Walk:
    """What the lanes of a walk share.  scale: a factor in all of W."""

    def __init__(self, strategy: Strategy, scale: float = 1.0) -> None:
        self.tree, self.strategy, self.scale = strategy.tree, strategy, scale
        self.pay = [strategy.payoffs.table(p, np.float64) for p in range(2)]
        game = self.tree.rules
        # 0 beyond the copies
        self._falling = np.array([math.perm(game.copies, x) for x in range(2 * game.hand_size + 1)], np.float64)
        self._weights: dict[tuple[Histories, tuple[int, int], tuple[int, ...]], Array] = {}
        self._below: dict[tuple[int, int], dict[int, list[int]]] = {}
        for b, block in enumerate(self.tree.blocks):
            if block.origin is not None:
                self._below.setdefault(block.origin, {}).setdefault(block.program, []).append(b)

    @property
    def start(self) -> Array:
        """Shape (H, 1): either player's reach of the dealt hands."""
        k = self.tree.rules.hand_size
        reach: Array = 1.0 / self.tree.holdings.factorial[k, : self.tree.size(k), None]
        return reach

    def programs_below(self, block: int, node: int) -> list[list[int]]:
        """The blocks that follow a SPLIT node, those of one program together."""
        return list(self._below[block, node].values())

    def weights(self, histories: Histories, held: tuple[int, int], cards: tuple[int, ...]) -> Array:
        """W: shape (H0, H1, L), after the cards of each lane's history and those of the program."""
        key = histories, held, tuple(sorted(cards))
        if key not in self._weights:
            ranks = self.tree.rules.n_ranks
            played = np.array([np.bincount((*history, *cards), minlength=ranks) for history in histories], np.int64)
            mine, theirs = (self.tree.holdings.number[k, : self.tree.size(k)] for k in held)
            result = np.full((len(mine), len(theirs), len(histories)), self.scale)
            for r in range(ranks):
                result *= self._falling[mine[:, None, None, r] + theirs[None, :, None, r] + played[None, None, :, r]]
            self._weights[key] = result
        return self._weights[key]


class Sigma(NamedTuple):
    """What is played at a decision.

    holdings: shape (H, k); legal, in_rows: shape (H, A), which actions they have and have rows for; shares: (H, A, L).
    """

    holdings: npt.NDArray[np.int8]
    legal: Mask
    in_rows: Mask
    shares: Array


class Lanes(Generic[R]):
    """The histories of some blocks with one program, in lanes one after the other.

    A subclass says what comes up, an R: `visit` of a node and all below it, `last_trick`, and how an R is made of
    arrays whose last axis are the lanes (`arrays`, `made`).
    """

    def __init__(self, walk: Walk, blocks: list[int]) -> None:
        self.walk, self.tree, self.blocks = walk, walk.tree, blocks
        members = [self.tree.blocks[b] for b in blocks]
        self.histories: Histories = tuple(history for block in members for history in block.histories)
        sizes = self.tree.programs[members[0].program].rows
        self.rows = [
            np.concatenate(
                [
                    walk.strategy.probabilities[p][base : base + sizes[p], : len(block.histories)]
                    for base, block in zip((int(self.tree.bases[b, p]) for b in blocks), members, strict=True)
                ],
                axis=1,
            )
            for p in range(2)
        ]

    @property
    def root(self) -> int:
        """The program's first node."""
        return self.tree.programs[self.tree.blocks[self.blocks[0]].program].start

    def visit(self, i: int, reach: Reach, cards: tuple[int, ...]) -> R:
        """A node and all below it; cards: those played in this program so far."""
        raise NotImplementedError

    def last_trick(self, node: Node, parts: Array, theirs: Array, cards: tuple[int, ...]) -> list[R]:
        """The last trick: what comes of each card led.  The answerer, `node.player`, has one card left.

        parts: shape (ranks, H, L), the leader's reach by the card that he leads; theirs: the answerer's.
        """
        raise NotImplementedError

    def arrays(self, up: R) -> list[Array]:
        """The arrays of an R."""
        raise NotImplementedError

    def made(self, arrays: list[Array]) -> R:
        """The R of arrays."""
        raise NotImplementedError

    def sigma(self, node: Node) -> Sigma:
        """What is played at a decision that is not the last trick."""
        rules, k, offers = self.tree.rules, node.spot.held[node.player], len(node.words)
        held = hands(rules.n_ranks, k, rules.copies)
        legal = np.zeros((len(held), offers + rules.n_ranks * (node.cards != NO_CARDS)), bool)
        legal[:, :offers] = True
        if node.cards != NO_CARDS:
            np.put_along_axis(legal, offers + held.astype(np.int64), True, axis=1)
        in_rows = legal & (legal.sum(axis=1) > 1)[:, None]
        rows = self.rows[node.player][node.row : node.row + int(in_rows.sum())]
        shares = np.repeat(legal[:, :, None], rows.shape[1], axis=2).astype(np.float64)
        shares[in_rows] = rows
        return Sigma(held, legal, in_rows, shares)

    def after_cards(self, i: int, node: Node, reach: Reach, shares: Array, cards: tuple[int, ...]) -> list[R]:
        """What comes of playing each card, in this program's lanes; shares: shape (H, ranks, L)."""
        tree, me, n = self.tree, node.player, self.tree.rules.n_ranks
        mine, theirs = reach[me], reach[1 - me]
        fewer = node.spot.held[me] - 1
        more = tree.holdings.more[fewer, : tree.size(fewer)]  # (H of one card fewer, ranks)
        parts = [np.where(more[:, c, None] >= 0, (mine * shares[:, c])[more[:, c]], 0.0) for c in range(n)]
        if node.cards == LAST_CARDS:
            return self.last_trick(tree.nodes[node.children[len(node.words)]], np.stack(parts), theirs, cards)
        if node.cards == SPLIT:
            return self._split(i, me, np.stack(parts), theirs)
        children = [node.children[len(node.words) + c] for c in range(n)]
        return [
            self.visit(child, (part, theirs) if me == 0 else (theirs, part), (*cards, c))
            for c, (child, part) in enumerate(zip(children, parts, strict=True))
        ]

    def _split(self, i: int, me: int, parts: Array, theirs: Array) -> list[R]:
        """The programs below, gathered by the card played: their lanes are histories one card longer."""
        n, lanes = len(parts), theirs.shape[1]
        block = self.blocks[0]  # a block whose cards lead to other programs is the only one of its own
        gathered: list[Array] | None = None
        for blocks in self.walk.programs_below(block, i):
            below = type(self)(self.walk, blocks)
            last = np.array([history[-1] for history in below.histories])
            lane = np.array([history[0] if len(history) == 2 else 0 for history in below.histories])
            part, rest = parts[last, :, lane].T, theirs[:, lane]
            arrays = self.arrays(below.visit(below.root, (part, rest) if me == 0 else (rest, part), ()))
            if gathered is None:
                gathered = [np.zeros((n, lanes, *array.shape[:-1])) for array in arrays]
            for whole, array in zip(gathered, arrays, strict=True):
                whole[last, lane] = np.moveaxis(array, -1, 0)
        assert gathered is not None
        ordered = [np.moveaxis(whole, 1, -1) for whole in gathered]
        return [self.made([array[c] for array in ordered]) for c in range(n)]
