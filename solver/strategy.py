"""Strategies: where a line of play lies in the tree, and what a strategy does there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from games.cards import hands
from games.rules import ACCEPT, REFUSE
from solver.best_response import Evaluation, evaluate
from solver.cfr import Floats, Pair, Payoffs, Solver, lanes_array
from solver.kernels import LAST_CARDS, LAST_TRICK, NO_CARDS, SPLIT, TERMINAL
from solver.nodes import NOBODY, AfterRaise, after_raise
from solver.parts import Part, whole
from solver.tree import Tree


class LineError(ValueError):
    """A line that the game does not have, or that ends the hand."""


class Position(NamedTuple):
    """A public decision: a block's lane, and a node of its program.

    In the last trick, which is one node, `led` is the card led to it and `stage` the decision: 0 the answerer's turn,
    1 the leader's answer to his raise, 2 the answerer's card after it was accepted, 3 and 4 the same for a remainder.
    """

    block: int
    lane: int
    node: int
    led: int = -1
    stage: int = 0

    @property
    def offer(self) -> int:
        """Which of the answerer's raises is on the table or accepted in the last trick, -1 if none."""
        return (self.stage + 1) // 2 - 1


@dataclass(frozen=True, slots=True)
class Decision:
    """One public decision and what a strategy does there.

    player: the seat to act; actions: public words, then one rank each (all ranks, if a card may be played); holdings:
    shape (H, k), the cards he may have left; legal: shape (H, A); probabilities: shape (H, A), 0 where not legal.
    """

    player: int
    actions: tuple[str, ...]
    holdings: npt.NDArray[np.int8]
    legal: npt.NDArray[np.bool_]
    probabilities: npt.NDArray[np.float64]


def root(tree: Tree) -> Position:
    """The leader's first decision."""
    return Position(0, 0, tree.programs[tree.blocks[0].program].start)


def actions(tree: Tree, position: Position) -> tuple[int, tuple[str, ...], bool]:
    """Who acts at a position, the public actions, and whether a card may be played."""
    node = tree.nodes[position.node]
    if node.kind != LAST_TRICK:
        return node.player, node.words, node.cards != NO_CARDS
    if position.stage % 2:
        return 1 - node.player, (ACCEPT, REFUSE), False
    return node.player, node.words if position.stage == 0 else (), True


def child(tree: Tree, position: Position, action: str) -> Position | None:
    """The decision that follows an action, None at the end of the hand.  Raises LineError."""
    _, words, cards = actions(tree, position)
    ranks = tree.rules.ranks
    if action not in words and not (cards and action in ranks):
        legal = (*words, *(ranks if cards else ()))
        raise LineError(f"{action!r} is not possible there; possible are {', '.join(legal)}")
    node = tree.nodes[position.node]
    if node.kind == LAST_TRICK:
        if action in node.words:
            return position._replace(stage=1 + 2 * node.words.index(action))
        return position._replace(stage=position.stage + 1) if action == ACCEPT else None
    after = _next(tree, position, action)
    return None if tree.nodes[after.node].kind == TERMINAL else after


def _next(tree: Tree, position: Position, action: str) -> Position:
    """The node that a legal action leads to, a decision or an end; not from the last trick, which is one node."""
    node = tree.nodes[position.node]
    if action in node.words:
        return position._replace(node=node.children[node.words.index(action)])
    card = tree.rules.ranks.index(action)
    if node.cards == SPLIT:
        block, lane = tree.entry[position.node, position.lane, card]
        return Position(block, lane, tree.programs[tree.blocks[block].program].start)
    if node.cards == LAST_CARDS:
        return position._replace(node=node.children[len(node.words)], led=card)
    return position._replace(node=node.children[len(node.words) + card])


def ending(tree: Tree, position: Position, action: str) -> tuple[int, int]:
    """Who wins by a legal action that ends the hand (a side, or `solver.tree.NOBODY`), and at which level of the
    ladder."""
    node = tree.nodes[position.node]
    if node.kind != LAST_TRICK:
        end = tree.nodes[_next(tree, position, action).node]
        return end.winner, end.spot.level
    if action == REFUSE:
        return node.player, after_raise_at(tree, position, node.words[position.offer]).refused
    outcome = _outcome(tree, position, tree.rules.ranks.index(action))
    return (node.player, 1 - node.player, NOBODY)[outcome], level(tree, position)


def level(tree: Tree, position: Position) -> int:
    """The level of the accepted stake at a position."""
    node = tree.nodes[position.node]
    if node.kind != LAST_TRICK or position.stage in (0, 1, 3):
        return node.spot.level
    return after_raise_at(tree, position, node.words[position.offer]).accepted


def after_raise_at(tree: Tree, position: Position, word: str) -> AfterRaise:
    """Where a raise or a remainder, called at a position, leads."""
    return after_raise(tree.rules, tree.nodes[position.node].spot.level, word)


def outcomes(tree: Tree, position: Position) -> npt.NDArray[np.int64]:
    """Shape (ranks,): who wins if the answerer plays each to the last trick: 0 he does, 1 the leader, 2 nobody."""
    return np.array([_outcome(tree, position, card) for card in range(tree.rules.n_ranks)])


def _outcome(tree: Tree, position: Position, card: int) -> int:
    """Who wins the hand if the answerer plays a card to the last trick: 0 he does, 1 the leader, 2 nobody."""
    return {1: 1, -1: 0, 0: tree.nodes[position.node].ties}[tree.rules.trick_winner(position.led, card)]


def find(tree: Tree, line: tuple[str, ...]) -> Position:
    """The decision after a line of actions.  Raises LineError, also when the line ends the hand."""
    position = root(tree)
    for n in range(len(line)):
        position = step(tree, position, line, n)
    return position


def step(tree: Tree, position: Position, line: tuple[str, ...], n: int) -> Position:
    """The decision after action `n` of a line, from the one before it.  Raises LineError."""
    after = child(tree, position, line[n])
    if after is None:
        raise LineError(f"the hand is over after {' '.join(line[: n + 1])!r}: nobody has a decision")
    return after


def rows_at(tree: Tree, position: Position, arrays: Pair, part: Part | None = None) -> Decision:
    """What two arrays of shape (tree.rows[p], LANES), or of a part's rows, hold for a decision, in place of
    probabilities.

    A holding with a single action has 1 there: it has no row.
    """
    node = tree.nodes[position.node]
    player, words, cards = actions(tree, position)
    rules = tree.rules
    base = (tree if part is None else part).bases[position.block]
    column = arrays[player][:, position.lane]
    if node.kind == LAST_TRICK:
        return _last_trick(tree, position, player, words, cards, column, int(base[player]))
    k = node.spot.held[player]
    held, legal, in_rows = _choices(rules.n_ranks, rules.copies, k, len(words), cards)
    table = legal.astype(np.float64)
    row = int(base[player]) + node.row
    table[in_rows] = column[row : row + int(in_rows.sum())]
    return Decision(player, _labels(tree, words, cards), held, legal, table)


@lru_cache(maxsize=64)
def _choices(
    n_ranks: int, copies: int, k: int, offers: int, cards: bool
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """All holdings of k cards, shape (H, k), and which actions they have and have rows for, shape (H, A); read-only."""
    held = hands(n_ranks, k, copies)
    legal = np.zeros((len(held), offers + (n_ranks if cards else 0)), bool)
    legal[:, :offers] = True
    if cards:
        np.put_along_axis(legal, offers + held.astype(np.int64), True, axis=1)
    in_rows = legal & (legal.sum(axis=1) > 1)[:, None]
    for array in (held, legal, in_rows):
        array.flags.writeable = False
    return held, legal, in_rows


def _labels(tree: Tree, words: tuple[str, ...], cards: bool) -> tuple[str, ...]:
    return (*words, *(tree.rules.ranks if cards else ()))


def _last_trick(
    tree: Tree, position: Position, player: int, words: tuple[str, ...], cards: bool, column: Floats, base: int
) -> Decision:
    node = tree.nodes[position.node]
    n, c = tree.rules.n_ranks, position.led
    labels = _labels(tree, words, cards)
    if position.stage % 2:  # the leader has no card left
        row = base + node.row_other + 2 * (len(node.words) * c + position.offer)
        answer = column[row : row + 2].astype(np.float64)[None]
        return Decision(player, labels, np.zeros((1, 0), np.int8), np.ones((1, 2), bool), answer)
    legal = np.concatenate([np.ones((n, len(words)), bool), np.eye(n, dtype=bool)], axis=1)
    table = legal.astype(np.float64)
    if words:
        count, classes = len(words) + 1, node.classes
        rows = base + node.row + count * (classes * c + outcomes(tree, position))
        for a in range(len(words)):
            table[:, a] = column[rows + a]
        table[range(n), len(words) + np.arange(n)] = column[rows + len(words)]
    return Decision(player, labels, np.arange(n, dtype=np.int8)[:, None], legal, table)


class Strategy:
    """A strategy for both players.

    probabilities[p]: float64, shape (tree.rows[p], LANES), those of one information state add up to 1.
    """

    def __init__(self, tree: Tree, payoffs: Payoffs, probabilities: Pair) -> None:
        self.tree = tree
        self.payoffs = payoffs
        self.probabilities = probabilities

    @classmethod
    def uniform(cls, tree: Tree, payoffs: Payoffs | None = None) -> Strategy:
        """Equal weight on every legal action of a decision."""
        zeros = lanes_array(tree.rows[0], np.float64), lanes_array(tree.rows[1], np.float64)
        return cls(tree, payoffs or Payoffs.points(tree.rules), normalised(tree, zeros, zeros))

    @classmethod
    def of(cls, solver: Solver) -> Strategy:
        """A solver's average strategy.

        Where the average is empty, because its owner never plays that far, it is the current strategy: CFR goes on
        adapting that to the other player.
        """
        return cls(solver.tree, solver.payoffs, normalised(solver.tree, solver.average, solver.play))

    def evaluate(self, threads: int = 1) -> Evaluation:
        """Exact values and best responses."""
        return evaluate(self.tree, self.payoffs, self.probabilities, threads)

    def at(self, line: tuple[str, ...]) -> Decision:
        """The decision after a line of actions.  Raises LineError."""
        return rows_at(self.tree, find(self.tree, line), self.probabilities)


def normalised(tree: Tree, weights: Pair, otherwise: Pair, part: Part | None = None) -> Pair:
    """Probabilities in proportion to `weights`, else to the positive part of `otherwise`, else uniform.

    All have the rows of the tree, or of a part of it.
    """
    where = whole(tree) if part is None else part

    def normal(p: int) -> npt.NDArray[np.float64]:
        result = lanes_array(where.rows[p], np.float64)
        for b in where.members:
            sizes = np.array(tree.programs[tree.blocks[b].program].states[p], np.int64)
            if not len(sizes):
                continue
            rows = slice(int(where.bases[b, p]), int(where.bases[b, p] + sizes.sum()))
            block = result[rows]
            block += 1.0 / np.repeat(sizes, sizes)[:, None]
            for array in (otherwise[p], weights[p]):
                positive = np.maximum(array[rows], 0, dtype=np.float64)
                share = np.repeat(np.add.reduceat(positive, sizes.cumsum() - sizes, axis=0), sizes, axis=0)
                np.divide(positive, share, out=block, where=share > 0)
        return result

    return normal(0), normal(1)
