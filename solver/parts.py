"""What sweeps go through: the whole public tree, or the subgame below one of its decisions."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from solver.kernels import LANES
from solver.nodes import Ints, Plan
from solver.tree import Tree


class Part(NamedTuple):
    """A part of the tree with one root.

    plan, ops: the tree's, changed at the root's block if it is a subgame; left: shape (blocks, ranks, LANES), copies of
    each rank not played yet at each block's root; members: the blocks, the root's first, parents before children;
    lane: the root's; bases: shape (blocks, 2), each player's first row of a member's; rows: how many rows each has;
    top_rows: of the scratch array that blocks share.
    """

    plan: Plan
    ops: Ints
    left: Ints
    members: tuple[int, ...]
    lane: int
    bases: Ints
    rows: tuple[int, int]
    top_rows: int


def whole(tree: Tree) -> Part:
    """The hand from its first decision."""
    members = tuple(range(len(tree.blocks)))
    return Part(tree.plan, tree.ops, cards_left(tree), members, 0, tree.bases, tree.rows, tree.plan.top_rows)


def below(tree: Tree, block: int, lane: int, root: int, left: Ints, gone: Ints | None = None) -> Part:
    """The hand from a decision node (not the last trick, which is one node) of a block's lane on.

    left: shape (ranks,), copies not played yet there; gone: likewise, those of them, already taken off, that are out of
    the deck without having been played.  The root's block is swept by those operations of its program
    that are below the root, the other blocks as in the whole tree; idle lanes have no reach.
    """
    plan, node, stop = tree.plan, tree.nodes[root], _stop(tree, root)
    blocks, sources, targets = plan.blocks.copy(), plan.sources.copy(), plan.targets.copy()
    program = tree.programs[tree.blocks[block].program]
    ops = [op for op in program.ops if 2 * root <= op < 2 * stop]
    down = len(ops) if program.shared else sum(1 for op in ops if op % 2 == 0)
    first = len(tree.ops)
    for player in range(2):
        placed, record = plan.nodes[player * len(tree.nodes) + root], blocks[player, block]
        record["held"] = node.spot.held
        record["reach"][node.player], record["reach"][1 - node.player] = placed["reach"], placed["other_reach"]
        record["out"] = placed["out"]
        # The operation that comes to a node takes the card that led there off what was left above it.
        record["left_at"] = placed["left_from"] if node.card >= 0 else placed["left"]
        record["ops"] = (first, first + down, first + len(ops))
        sources[player, block, :, :, 0] = tree.idle
        sources[player, block, :, lane] = [(row, 0) for row in tree.priors]
        targets[player, block] = [(tree.result, column) for column in range(LANES)]
    left_at_roots = cards_left(tree).copy()
    if gone is not None:
        left_at_roots = (left_at_roots - gone[:, None]).clip(min=0)
    left_at_roots[block] = 0
    left_at_roots[block, :, lane] = left
    if node.card >= 0:
        left_at_roots[block, node.card, lane] += 1
    members = [block]
    for b, each in enumerate(tree.blocks):
        if each.origin is not None and (
            root <= each.origin[1] < stop if each.origin[0] == block else each.origin[0] in members
        ):
            members.append(b)
    bases, rows = np.full_like(tree.bases, -1), np.zeros(2, np.int64)
    for b in members:
        bases[b] = blocks[:, b]["base"] = rows
        rows += tree.programs[tree.blocks[b].program].rows
    changed = plan._replace(blocks=blocks, sources=sources, targets=targets)
    sizes = int(rows[0]), int(rows[1])
    top = tree.result + tree.size(tree.rules.hand_size) if program.shared else plan.top_rows
    return Part(changed, np.append(tree.ops, ops), left_at_roots, tuple(members), lane, bases, sizes, top)


def _stop(tree: Tree, node: int) -> int:
    """The first node after all those below `node`; they are in depth-first order."""
    while tree.nodes[node].children:
        node = max(tree.nodes[node].children.values())
    return node + 1


@lru_cache(maxsize=16)
def cards_left(tree: Tree) -> Ints:
    """Shape (blocks, ranks, LANES): copies of each rank not played yet at each block's root; read-only."""
    left = np.full((len(tree.blocks), tree.rules.n_ranks, LANES), tree.rules.copies, np.int64)
    for b, block in enumerate(tree.blocks):
        for lane, history in enumerate(block.histories):
            for card in history:
                left[b, card, lane] -= 1
    left = left.clip(min=0)
    left.flags.writeable = False
    return left
