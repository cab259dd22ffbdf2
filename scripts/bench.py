"""Measure speed and memory of the solver, as JSON (stdout) and as a table (stderr).

    python scripts/bench.py [--only advice|variants|explore] [--output results/bench.json]

Absolute times of a shared machine mean little; ratios of figures of one run mean more, so the passes and iterations
that are compared alternate.  The floor of an iteration is one streaming read and write of all regrets and averages:
the fastest of 20 passes of a compiled in-place multiply over the same arrays, with the same number of threads.

The latency of advice is that of one question to a new `Adviser` in a running program, its compiled code loaded; that
of the explorer is taken in a browser (scripts/bench_explore.py), and only when asked for.
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

import bench_explore
import bench_variants
import click
import numpy as np

from games.rules import Rules, preset
from games.state import State
from solver.advise import ON_PATH, SOLVED, Adviser
from solver.best_response import Evaluator
from solver.cfr import ALGORITHMS, DEFAULT_ALGORITHM, Payoffs, Solver
from solver.files import write_atomically
from solver.kernels import scale_in_place
from solver.paths import shipped_strategy
from solver.solve import FIRST_EVALUATION, next_evaluation
from solver.storage import load_strategy, packages
from solver.strategy import Strategy
from solver.tree import Tree

ROOT = Path(__file__).resolve().parent.parent
ACCURACIES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
CHUNK = 10  # iterations timed at a time
QUESTIONS, WARM_UP = 40, 20  # of each kind; before the first, until compiled code is loaded and tables are made
DEFAULT_VARIANT = "le-truc"
BARS = {  # milliseconds that the median is to stay under
    "on the path, trick 1": 50,
    "on the path, from trick 2 on": 5,
    "off the path, trick 1": 1000,
    "off the path, from trick 2 on": 50,
    "asked again": None,
    "shell": 1500,
}


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
    """Everything but advice, as one JSON object."""
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


def question(strategy: Strategy, rng: np.random.Generator, likely: bool) -> tuple[str, tuple[str, ...]]:
    """A dealt hand and a line; the players act by the strategy (likely), or at random."""
    rules = strategy.tree.rules
    deck = np.repeat(np.arange(rules.n_ranks), rules.copies)
    cards = rng.permutation(deck)[: 2 * rules.hand_size].tolist()
    state = State.deal(rules, cards[: rules.hand_size], cards[rules.hand_size :])
    for _ in range(rng.integers(12)):
        decision, player = strategy.at(state.line), state.to_play
        (h,) = np.flatnonzero((decision.holdings == np.array(state.held[player], np.int8)).all(axis=1))
        chances = decision.probabilities[h] if likely else decision.legal[h].astype(float)
        after = state.apply(decision.actions[rng.choice(len(chances), p=chances / chances.sum())])
        state = state if after.is_over else after
    return " ".join(rules.ranks[rank] for rank in state.dealt[state.to_play] or ()), state.line


def advice(strategy: Strategy) -> dict[str, Any]:
    """Latencies of advice in milliseconds: medians, 95th percentiles, how many questions, and what they should stay
    under."""
    rng = np.random.default_rng(1)
    found: dict[str, list[float]] = {name: [] for name in BARS}
    first = list(BARS)[:4]
    for n in range(100_000):
        missing = [name for name in first if len(found[name]) < QUESTIONS]
        if not missing:
            break
        hand, line = question(strategy, rng, likely=n % 2 == 0)
        adviser = Adviser(strategy)
        spent = 1e3 * seconds(lambda adviser=adviser, hand=hand, line=line: adviser.advise(hand, line))  # type: ignore[misc]
        again = 1e3 * seconds(lambda adviser=adviser, hand=hand, line=line: adviser.advise(hand, line))  # type: ignore[misc]
        where = "on the path" if adviser.advise(hand, line).case in (ON_PATH, SOLVED) else "off the path"
        trick = "trick 1" if sum(action in adviser.rules.ranks for action in line) < 2 else "from trick 2 on"
        if n >= WARM_UP and f"{where}, {trick}" in missing:
            found[f"{where}, {trick}"].append(spent)
            found["asked again"].append(again)
    found["shell"] = shell()
    return bench_explore.summary(found, BARS)


def shell(runs: int = 9) -> list[float]:
    """Milliseconds of a question from the shell, each in a new process, with its compiled code on the disk."""
    command = [sys.executable, "-m", "solver", "advise", "8 8 7", "--line", "5"]

    def ask() -> None:
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)

    ask()
    return [1e3 * seconds(ask) for _ in range(runs)]


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


def latencies(title: str, result: dict[str, Any]) -> str:
    """The latencies for people."""
    lines = [f"{title:30s}   median ms     95 %   bar"]
    for name, row in result.items():
        lines.append(f"{name:30s} {row['median_ms']:11.2f} {row['p95_ms']:8.2f}   {row['bar_ms'] or ''}")
    return "\n".join(lines)


@click.command()
@click.option("--variant", default=DEFAULT_VARIANT, show_default=True, help="Rule set.")
@click.option("--algorithm", type=click.Choice(list(ALGORITHMS)), default=DEFAULT_ALGORITHM, show_default=True)
@click.option("--accuracy", default=1e-6, show_default=True, help="Smallest exploitability to go for, in points.")
@click.option("--rounds", default=40, show_default=True, help="Rounds of the alternating measurement.")
@click.option(
    "--only",
    type=click.Choice(["advice", "variants", "explore"]),
    help="Measure only that; the file's other figures stay.",
)
@click.option("--output", type=click.Path(path_type=Path), help="Also write the JSON to this file.")
def main(variant: str, algorithm: str, accuracy: float, rounds: int, only: str | None, output: Path | None) -> None:
    """Measure speed and memory; JSON to stdout, tables to stderr."""
    result: dict[str, Any] = {}
    if only is None:
        result = measure(preset(variant), algorithm, accuracy, rounds)
        click.echo(table(result), err=True)
    elif output is not None and output.exists():
        result = json.loads(output.read_text())
    if only == "variants" or (only is None and variant == DEFAULT_VARIANT):  # the others against it
        result["variants"] = bench_variants.measured()
        click.echo(bench_variants.table(result["variants"]), err=True)
    if only == "variants":
        pass
    elif only == "explore":
        result["explore"] = bench_explore.explore()
        click.echo(latencies("explorer", result["explore"]), err=True)
    elif (shipped := shipped_strategy(variant)) is not None:
        result["advice"] = advice(load_strategy(shipped)[0])
        click.echo(latencies("advice", result["advice"]), err=True)
    elif only is not None:
        raise click.UsageError(f"no strategy for {variant!r} comes with the program")
    text = json.dumps(result, indent=1)
    click.echo(text)
    if output is not None:
        write_atomically(output, (text + "\n").encode())


if __name__ == "__main__":
    main()
