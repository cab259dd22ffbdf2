"""Equilibria of small games by linear programming, for the oracle to prove; needs SciPy.

The sequence form (Koller, Megiddo & von Stengel 1996): player 0's plan maximises what the other's best reply leaves
him, and the dual of the program is player 1's plan. Nothing rests on the program's own accuracy: the best responses to
the policy that it gives bracket the value.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array, hstack

from tests.oracle import Game, Policy, Tree, flatten


def equilibrium(game: Game) -> Policy:
    """An equilibrium of the game, as good as the linear program's floating-point solution."""
    tree = flatten(game)
    last = np.full((2, len(tree.parent)), -1)  # each player's own last slot on the way to each history
    for a, b in tree.levels[1:]:
        last[:, a:b] = np.where(tree.mover[a:b] == [[0], [1]], tree.slot[a:b], last[:, tree.parent[a:b]])
    # a player's sequences: 0 before his first move, then one for each of his slots, in order; slot -1 is that 0 too
    number = np.zeros((2, len(tree.owner) + 1), int)
    for p in (0, 1):
        number[p, :-1][tree.owner == p] = 1 + np.arange(np.sum(tree.owner == p))
    sizes = number.max(axis=1) + 1
    paid = np.flatnonzero(tree.utility)
    ends = (number[0, last[0, paid]], number[1, last[1, paid]])
    payoff = coo_array((tree.chance[paid] * tree.utility[paid], ends), shape=tuple(sizes)).tocsr()
    flow = [_flow(tree, p, number[p], last[p]) for p in (0, 1)]

    # variables: the plan of player 0, then what each information state of player 1's yields him; the first is the value
    states = [f.shape[0] for f in flow]
    cost, start = np.zeros(sizes[0] + states[1]), np.zeros(states[0])
    cost[sizes[0]], start[0] = -1.0, 1.0
    reply = hstack([-payoff.T, flow[1].T]).tocsr()
    plan = hstack([flow[0], coo_array((states[0], states[1]))]).tocsr()
    bounds = [(0, None)] * sizes[0] + [(None, None)] * states[1]
    found = linprog(cost, reply, np.zeros(sizes[1]), plan, start, bounds)
    assert found.success, found.message

    plans = found.x[: sizes[0]], -found.ineqlin.marginals
    weight = np.where(tree.owner == 0, plans[0][number[0, :-1]], plans[1][number[1, :-1]]).clip(0)
    total = np.add.reduceat(weight, tree.first)[tree.info_of]
    some = total > 1e-12  # elsewhere its owner never comes
    return tree.table(np.where(some, weight / np.where(some, total, 1.0), 1.0 / tree.width[tree.info_of]))


def _flow(tree: Tree, p: int, number: np.ndarray, last: np.ndarray) -> csr_array:
    """One row per information state of the player: its sequences, less the one that leads to it; row 0 is the start."""
    moves = np.flatnonzero(tree.mover == p)
    before = np.full(len(tree.owner), -1)
    before[tree.slot[moves]] = last[tree.parent[moves]]  # perfect recall: the same for all histories of a slot
    states, slots = np.flatnonzero(tree.owner[tree.first] == p), np.flatnonzero(tree.owner == p)
    row = np.zeros(len(tree.first), int)
    row[states] = 1 + np.arange(len(states))
    rows = np.concatenate([[0], row[tree.info_of[slots]], row[states]])
    columns = np.concatenate([[0], number[slots], number[before[tree.first[states]]]])
    signs = np.concatenate([np.ones(1 + len(slots)), -np.ones(len(states))])
    return coo_array((signs, (rows, columns)), shape=(1 + len(states), number.max() + 1)).tocsr()
