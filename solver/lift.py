"""A strategy of a hand with fewer stakes as one of the whole hand: see `solver.equity.hand_rules`.

A raise beyond the highest stake that matters is never made, always accepted, and changes nothing: the play goes on as
at that stake.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from games.rules import Rules
from solver.cfr import lanes_array
from solver.kernels import LAST_TRICK, NO_CARDS, TERMINAL
from solver.nodes import Ints
from solver.strategy import Strategy
from solver.tree import Tree, public_tree


@dataclass(slots=True)
class _Rows:
    """Of a player and a program, from a block's base on: which rows are copied, from where, and which are 1; all
    others are 0."""

    to: list[Ints] = field(default_factory=list)
    of: list[Ints] = field(default_factory=list)
    ones: list[int] = field(default_factory=list)


def lifted(strategy: Strategy, rules: Rules) -> Strategy:
    """The strategy in the tree of `rules`, whose ladder begins with the strategy's; the strategy itself if it is that.

    The stakes beyond are worth what the highest stake of the strategy is: so it is only right at a score where that
    wins the match for either side.
    """
    small = strategy.tree
    if small.rules.ladder == rules.ladder:
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
    beyond = len(node.words) - len(other.words)  # raises that the small tree does not have; they come first
    if node.kind == LAST_TRICK:
        _match_last(tree, i, beyond > 0, other.row, other.row_other, rows)
        return
    same[i] = j
    mine, k = rows[node.player], node.spot.held[node.player]
    at, from_ = node.row, other.row
    for distinct in tree.holdings.distinct[k, : tree.size(k)].tolist():
        count = len(other.words) + (distinct if node.cards != NO_CARDS else 0)
        at += beyond
        if count > 1:
            mine.to.append(np.arange(at, at + count))
            mine.of.append(np.arange(from_, from_ + count))
            from_ += count
            at += count
        elif beyond:
            mine.ones.append(at)
            at += count
    for edge, child in node.children.items():
        if edge >= beyond:
            _match(tree, small, child, other.children[edge - beyond], same, rows)
            continue
        answer = tree.nodes[child]
        size = tree.size(answer.spot.held[answer.player])
        rows[answer.player].ones.extend(answer.row + 2 * h for h in range(size))
        _match(tree, small, answer.children[0], j, same, rows)


def _match_last(tree: Tree, i: int, beyond: bool, from_row: int, from_other: int, rows: tuple[_Rows, _Rows]) -> None:
    node, n = tree.nodes[i], tree.rules.n_ranks
    offers = len(node.words)
    if not offers:
        return
    count, answers = (offers + 1) * n * node.classes, 2 * offers * n
    answerer, leader = rows[node.player], rows[1 - node.player]
    if beyond:
        answerer.ones.extend(range(node.row + offers, node.row + count, offers + 1))
        leader.ones.extend(range(node.row_other, node.row_other + answers, 2))
        return
    answerer.to.append(np.arange(node.row, node.row + count))
    answerer.of.append(np.arange(from_row, from_row + count))
    leader.to.append(np.arange(node.row_other, node.row_other + answers))
    leader.of.append(np.arange(from_other, from_other + answers))
