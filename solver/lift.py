"""A strategy of a hand with fewer raises as one of the whole hand: see `solver.equity.hand_rules` and `match_from`.

An offer (a raise, or the remainder) that was left out is never made.  It is answered as the other one at the same turn,
if that was not left out, and then the play goes on as after that; else it is accepted, and the play goes on as if
nothing had been said.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from games.rules import RAISE, REMAINDER, Rules
from solver.cfr import lanes_array
from solver.kernels import LAST_TRICK, NO_CARDS, TERMINAL
from solver.nodes import Ints, Node
from solver.strategy import Strategy
from solver.tree import Tree, public_tree

NOTHING = -1  # what an offer is where the small tree has none


@dataclass(slots=True)
class _Rows:
    """Of a player and a program, from a block's base on: which rows are copied, from where, and which are 1; all
    others are 0."""

    to: list[Ints] = field(default_factory=list)
    of: list[Ints] = field(default_factory=list)
    ones: list[int] = field(default_factory=list)


def lifted(strategy: Strategy, rules: Rules) -> Strategy:
    """The strategy in the tree of `rules` with all offers, whose ladder begins with the strategy's; the strategy itself
    if it is that.

    The stakes beyond are worth what the highest stake of the strategy is: so it is only right at a score where that
    wins the match for either side.
    """
    small = strategy.tree
    if small.rules.ladder == rules.ladder and small.match_from is None:
        return strategy
    tree = public_tree(rules, small.decider)
    result = lanes_array(tree.rows[0], np.float64), lanes_array(tree.rows[1], np.float64)
    same: dict[int, int] = {}  # node -> the node of the small tree where the same is to be done
    rows: dict[int, tuple[_Rows, _Rows]] = {}  # by program
    for b, block in enumerate(tree.blocks):
        other = 0
        if block.origin is not None:
            first = block.histories[0]
            other, _ = small.entry[same[block.origin[1]], first[0] if len(first) == 2 else 0, first[-1]]
        if block.program not in rows:
            rows[block.program] = _Rows(), _Rows()
            start = small.programs[small.blocks[other].program].start
            _match(tree, small, tree.programs[block.program].start, start, same, rows[block.program])
        for p, found in enumerate(rows[block.program]):
            base, from_base = tree.bases[b, p], small.bases[other, p]
            if found.to:
                part = strategy.probabilities[p][from_base + np.concatenate(found.of)]
                result[p][base + np.concatenate(found.to)] = part
            result[p][base + np.array(found.ones, np.int64)] = 1.0
    pay, n = strategy.payoffs, len(small.rules.ladder)

    def longer(win: tuple[float, ...]) -> tuple[float, ...]:
        return win[:n] + win[n - 1 : n] * (len(rules.ladder) - n) + win[n:]

    payoffs = replace(pay, win0=longer(pay.win0), win1=longer(pay.win1))
    return Strategy(tree, payoffs, result)


def _match(tree: Tree, small: Tree, i: int, j: int, same: dict[int, int], rows: tuple[_Rows, _Rows]) -> None:
    """Find the rows of node i and of all below it, from node j of the small tree."""
    node, other = tree.nodes[i], small.nodes[j]
    if node.kind == TERMINAL:
        return
    as_small = _as_small(node, other)
    if node.kind == LAST_TRICK:
        _match_last(tree, node, other, as_small, rows)
        return
    same[i] = j
    mine, k = rows[node.player], node.spot.held[node.player]
    at, from_, words = node.row, other.row, _kept(node, other)
    for distinct in tree.holdings.distinct[k, : tree.size(k)].tolist():
        cards = distinct if node.cards != NO_CARDS else 0
        here, there = len(node.words) + cards, len(other.words) + cards
        kept = at + np.array([*words, *range(len(node.words), here)])
        if there > 1:
            mine.to.append(kept)
            mine.of.append(np.arange(from_, from_ + there))
            from_ += there
        elif here > 1:
            mine.ones.append(kept[0])
        if here > 1:
            at += here
    for edge, child in node.children.items():
        if edge >= len(node.words):
            _match(tree, small, child, other.children[edge - len(node.words) + len(other.words)], same, rows)
        elif as_small[edge] != NOTHING:
            _match(tree, small, child, other.children[as_small[edge]], same, rows)
        else:
            answer = tree.nodes[child]
            size = tree.size(answer.spot.held[answer.player])
            rows[answer.player].ones.extend(answer.row + 2 * h for h in range(size))
            _match(tree, small, answer.children[0], j, same, rows)


def _as_small(node: Node, other: Node) -> list[int]:
    """For each word of a node what it is for the same node of the small tree: one of its words, or NOTHING."""
    offers = [n for n, word in enumerate(other.words) if word in (RAISE, REMAINDER)]
    instead = offers[0] if offers else NOTHING
    return [other.words.index(word) if word in other.words else instead for word in node.words]


def _kept(node: Node, other: Node) -> list[int]:
    """Where the words of the small tree's node are among the node's."""
    return [node.words.index(word) for word in other.words]


def _match_last(tree: Tree, node: Node, other: Node, as_small: list[int], rows: tuple[_Rows, _Rows]) -> None:
    offers, fewer, n = len(node.words), len(other.words), tree.rules.n_ranks
    if not offers:
        return
    turns = np.arange(node.classes * n)[:, None]
    answerer, leader = rows[node.player], rows[1 - node.player]
    kept = node.row + turns * (offers + 1) + np.array([*_kept(node, other), offers])
    if fewer:
        answerer.to.append(kept.ravel())
        answerer.of.append(other.row + np.arange(kept.size))
    else:
        answerer.ones.extend(kept.ravel().tolist())
    led = np.arange(n)
    for edge, word in enumerate(as_small):
        first = node.row_other + 2 * (offers * led + edge)
        if word == NOTHING:
            leader.ones.extend(first.tolist())
            continue
        from_ = other.row_other + 2 * (fewer * led + word)
        leader.to.append((first[:, None] + (0, 1)).ravel())
        leader.of.append((from_[:, None] + (0, 1)).ravel())
