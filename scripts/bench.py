"""Measure speed and memory of the solver, as JSON (stdout) and as a table (stderr).

    python scripts/bench.py [--output results/bench.json]

Absolute times of a shared machine mean little; ratios of figures of one run mean more, so the passes and iterations
that are compared alternate.  The floor of an iteration is one streaming read and write of all regrets and averages:
the fastest of 20 passes of a compiled in-place multiply over the same arrays, with the same number of threads.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from games.rules import Rules, preset
from solver.best_response import Evaluator
from solver.cfr import ALGORITHMS, DEFAULT_ALGORITHM, Payoffs, Solver
from solver.kernels import scale_in_place
from solver.solve import FIRST_EVALUATION, next_evaluation
from solver.storage import packages, write_atomically
from solver.tree import Tree

ROOT = Path(__file__).resolve().parent.parent
ACCURACIES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
CHUNK = 10  # iterations timed at a time


@dataclass(frozen=True, slots=True)
class Speed:
    """One number of threads; milliseconds."""

    threads: int
    floor: float
    iteration: float
    fastest_iteration: float
    ratio_to_floor: float


def seconds(work: Callable[[], object]) -> float:
    """Wall time of a call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def speeds(tree: Tree, algorithm: str, rounds: int) -> list[Speed]:
    """Floor and iteration for one and two threads, taken in turn."""
    solvers = {threads: Solver(tree, algorithm=algorithm, threads=threads) for threads in (1, 2)}
    floors: dict[int, list[float]] = {threads: [] for threads in solvers}
    iterations: dict[int, list[float]] = {threads: [] for threads in solvers}
    with ThreadPoolExecutor(2) as pool:
        one = np.float32(1)

        def stream(threads: int) -> None:
            arrays = (*solvers[threads].regret, *solvers[threads].average)
            parts = [[np.array_split(array, threads)[i] for array in arrays] for i in range(threads)]
            list(pool.map(lambda part: [scale_in_place(array, one) for array in part], parts))

        for solver in solvers.values():
            solver.step()
        stream(1)
        for _ in range(rounds):
            for threads, solver in solvers.items():
                floors[threads].append(seconds(lambda threads=threads: stream(threads)))  # type: ignore[misc]
                iterations[threads].append(seconds(lambda solver=solver: solver.step(CHUNK)) / CHUNK)  # type: ignore[misc]
    found = []
    for threads in solvers:
        floor, median = min(floors[threads][:20]), statistics.median(iterations[threads])
        fastest = min(iterations[threads])
        found.append(Speed(threads, 1e3 * floor, 1e3 * median, 1e3 * fastest, median / floor))
    return found


def times_to(tree: Tree, algorithm: str, accuracy: float, threads: int) -> list[dict[str, float]]:
    """Seconds from the first iteration to the proof of each accuracy down to `accuracy`, evaluations included."""
    payoffs = Payoffs.points(tree.rules)
    solver, evaluator = Solver(tree, payoffs, algorithm, threads), Evaluator(tree, payoffs, threads)
    evaluator(solver.average)  # loads the compiled code
    targets = [a for a in ACCURACIES if a >= accuracy * 0.999]
    found: list[dict[str, float]] = []
    start = time.perf_counter()
    at = FIRST_EVALUATION
    while targets:
        solver.step(at - solver.iterations)
        reached = evaluator(solver.average).exploitability
        spent = time.perf_counter() - start
        while targets and reached <= targets[0]:
            found.append(
                {"accuracy": targets[0], "seconds": spent, "iterations": solver.iterations, "exploitability": reached}
            )
            targets.pop(0)
        if targets:
            at = next_evaluation(solver.iterations, reached, targets[0])
    return found


def in_new_process(code: str, cache: str) -> dict[str, float]:
    """Run code that prints one JSON object, with its own cache of compiled code."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "PYTHONPATH": str(ROOT)}
    output = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    result: dict[str, float] = json.loads(output.stdout)
    return result


COMPILE = """
import json, resource, time
from games.rules import preset
from solver.best_response import evaluate
from solver.cfr import Solver
from solver.tree import Tree
solver = Solver(Tree(preset("tiny")))
start = time.perf_counter()
solver.step()
evaluate(solver.tree, solver.payoffs, solver.average)
spent = time.perf_counter() - start
solver = Solver(Tree(preset("le-truc")), threads=2)
solver.step(5)
evaluate(solver.tree, solver.payoffs, solver.average, 2)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"seconds": spent, "peak_mib": peak}))
"""


def measure(rules: Rules, algorithm: str, accuracy: float, rounds: int) -> dict[str, Any]:
    """Everything, as one JSON object."""
    start = time.perf_counter()
    tree = Tree(rules)
    build = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as cache:
        cold, warm = in_new_process(COMPILE, cache), in_new_process(COMPILE, cache)
    return {
        "variant": rules.name,
        "algorithm": algorithm,
        "machine": {"processor": processor(), "cores": os.cpu_count(), "system": platform.system()},
        "packages": packages(),
        "tree_seconds": build,
        "compile_seconds": cold["seconds"],
        "load_seconds": warm["seconds"],
        "peak_mib_compiling": cold["peak_mib"],
        "peak_mib": warm["peak_mib"],
        "speed_ms": [asdict(speed) for speed in speeds(tree, algorithm, rounds)],
        "two_threads": times_to(tree, algorithm, accuracy, 2),
    }


def processor() -> str:
    """The processor's name, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def table(result: dict[str, Any]) -> str:
    """The figures for people."""
    lines = [
        f"{result['variant']}, {result['algorithm']}, {result['machine']['processor']}",
        f"tree {result['tree_seconds']:.2f} s; compiling {result['compile_seconds']:.1f} s, "
        f"loading compiled code {result['load_seconds']:.2f} s",
        f"peak memory {result['peak_mib']:.0f} MiB, while compiling {result['peak_mib_compiling']:.0f} MiB",
        "threads   floor ms   iteration ms   fastest   median/floor",
    ]
    for speed in result["speed_ms"]:
        lines.append(
            f"{speed['threads']:7d} {speed['floor']:10.2f} {speed['iteration']:14.2f} "
            f"{speed['fastest_iteration']:9.2f} {speed['ratio_to_floor']:14.2f}"
        )
    one, two = result["speed_ms"]
    lines.append(
        f"two threads against one: {one['iteration'] / two['iteration']:.2f} (medians), "
        f"{one['fastest_iteration'] / two['fastest_iteration']:.2f} (fastest)"
    )
    lines.append("accuracy     seconds   iterations   (two threads)")
    for row in result["two_threads"]:
        lines.append(f"{row['accuracy']:8.0e} {row['seconds']:11.2f} {row['iterations']:12d}")
    return "\n".join(lines)


@click.command()
@click.option("--variant", default="le-truc", show_default=True, help="Rule set.")
@click.option("--algorithm", type=click.Choice(list(ALGORITHMS)), default=DEFAULT_ALGORITHM, show_default=True)
@click.option("--accuracy", default=1e-6, show_default=True, help="Smallest exploitability to go for, in points.")
@click.option("--rounds", default=40, show_default=True, help="Rounds of the alternating measurement.")
@click.option("--output", type=click.Path(path_type=Path), help="Also write the JSON to this file.")
def main(variant: str, algorithm: str, accuracy: float, rounds: int, output: Path | None) -> None:
    """Measure speed and memory; JSON to stdout, a table to stderr."""
    result = measure(preset(variant), algorithm, accuracy, rounds)
    text = json.dumps(result, indent=1)
    click.echo(table(result), err=True)
    click.echo(text)
    if output is not None:
        write_atomically(output, (text + "\n").encode())


if __name__ == "__main__":
    main()
