"""How fast an iteration is for each game, per information state: a part of `scripts/bench.py`."""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

from games.rules import preset
from solver.census import census
from solver.cfr import PROBABILITY, Payoffs, Solver
from solver.equity import hand_tree
from solver.tree import Tree, public_tree

BAR = 1.5  # times le-truc's, per information state
ROUNDS, CHUNK = 25, 10  # of the alternating measurement; iterations timed at a time


def games() -> dict[str, Tree]:
    """The hands that are compared, the first with itself: le-truc in points, and the others' at the start of a match
    and where most of their own rules matter."""
    french, catalan = preset("french"), preset("catalan")
    return {
        "le-truc": public_tree(preset("le-truc")),
        "french at 0-0": hand_tree(french, (0, 0)),
        "french at 6-6": hand_tree(french, (6, 6)),
        "catalan at 0-0": hand_tree(catalan, (0, 0)),
        "catalan at 11-5": hand_tree(catalan, (11, 5)),
    }


def measured() -> dict[str, Any]:
    """For each game: milliseconds of an iteration on one thread, and nanoseconds per information state, by medians of
    rounds in which all take turns."""
    trees = games()
    solvers = {}
    for name, tree in trees.items():
        levels = np.linspace(0, 0.4, tree.levels)
        payoffs = Payoffs(tuple(0.55 + levels), tuple(0.45 - levels), 0.5, PROBABILITY)
        solvers[name] = Solver(tree, payoffs)
        solvers[name].step(CHUNK)
    times: dict[str, list[float]] = {name: [] for name in trees}
    for _ in range(ROUNDS):
        for name, solver in solvers.items():
            start = time.perf_counter()
            solver.step(CHUNK)
            times[name].append((time.perf_counter() - start) / CHUNK)
    found: dict[str, Any] = {}
    for name, tree in trees.items():
        median, count = statistics.median(times[name]), census(tree).information_states
        found[name] = {"information_states": count, "iteration_ms": 1e3 * median, "ns_per_state": 1e9 * median / count}
    first = found["le-truc"]["ns_per_state"]
    return {name: row | {"ratio": row["ns_per_state"] / first, "bar": BAR} for name, row in found.items()}


def table(result: dict[str, Any]) -> str:
    """The figures for people."""
    lines = ["game                 information states   iteration ms   ns per state   against le-truc"]
    for name, row in result.items():
        lines.append(
            f"{name:18s} {row['information_states']:20,d} {row['iteration_ms']:14.2f} "
            f"{row['ns_per_state']:14.2f} {row['ratio']:17.2f}"
        )
    return "\n".join(lines)
