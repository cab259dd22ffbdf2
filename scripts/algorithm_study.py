"""How many iterations does each algorithm need?  Writes a table, a plot and a README.

    python scripts/algorithm_study.py [--variant le-truc] [--iterations N] [--algorithm NAME ...] [--out DIR]

Every algorithm of `solver.cfr.ALGORITHMS`, and the VARIANTS below, runs from nothing on one hand played for points;
its average strategy is evaluated by exact best responses at geometrically growing iteration numbers.
"""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

import click
import matplotlib
import numpy as np

from games.rules import preset, preset_names
from solver.best_response import evaluate
from solver.cfr import ALGORITHMS, Algorithm, Payoffs, Solver
from solver.tree import Tree

# Each differs in one respect from an algorithm of the solver.
VARIANTS = {
    "cfr+ t^2": Algorithm(None, None, 2.0, plus=True),  # CFR+ with a steeper average
    "dcfr+ a1.2": Algorithm(1.2, 1.2, 2.0, plus=True),  # forgets more, and turns erratic
    "dcfr+ a2": Algorithm(2.0, 2.0, 2.0, plus=True),  # forgets less
    "dcfr+ t^4": Algorithm(1.5, 1.5, 4.0, plus=True),  # a steeper average
    "pdcfr+ c.1": Algorithm(1.5, 1.5, 2.0, plus=True, prediction=0.1),  # a small prediction that does not fade
    "pdcfr+ c.5": Algorithm(1.5, 1.5, 2.0, plus=True, prediction=0.5),  # and one as large as fpdcfr+'s at the start
}
EVERYTHING = {**ALGORITHMS, **VARIANTS}
TARGETS = (1e-2, 1e-3, 1e-4, 1e-5)
FIRST, PER_DOUBLING = 10, 2  # the first evaluation, and how many follow until the iterations have doubled
# Okabe & Ito's colours, told apart by colour-blind readers; after them the same again with another line style.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^v<>P*X"
STYLES = ("-", "--", ":", "-.")


class Point(NamedTuple):
    """algorithm: its name; iterations: done so far; seconds: spent on them, without evaluations; exploitability: of
    the average strategy, in the payoffs' unit."""

    algorithm: str
    iterations: int
    seconds: float
    exploitability: float


def checkpoints(last: int) -> list[int]:
    """Growing iteration numbers up to and including `last`."""
    steps = math.floor(PER_DOUBLING * math.log2(max(last / FIRST, 1.0)))
    marks = {round(FIRST * 2.0 ** (k / PER_DOUBLING)) for k in range(steps + 1)}
    return sorted({mark for mark in marks if mark < last} | {last})


def curve(name: str, tree: Tree, payoffs: Payoffs, iterations: int) -> list[Point]:
    """Run one algorithm on one thread and evaluate it on the way."""
    Solver(tree, payoffs, EVERYTHING[name]).step()  # compiles, if nothing has yet
    solver = Solver(tree, payoffs, EVERYTHING[name])
    points: list[Point] = []
    seconds = 0.0
    for mark in checkpoints(iterations):
        start = time.perf_counter()
        solver.step(mark - solver.iterations)
        seconds += time.perf_counter() - start
        points.append(Point(name, mark, seconds, evaluate(tree, payoffs, solver.average).exploitability))
    return points


def needed(points: Iterable[Point], target: float) -> float | None:
    """Iterations until the exploitability is `target`, interpolated between evaluations; None if never reached."""
    before: Point | None = None
    for point in points:
        if point.exploitability <= target:
            if before is None:
                return float(point.iterations)
            x = np.log([before.exploitability, point.exploitability])
            y = np.log([before.iterations, point.iterations])
            share = (x[0] - math.log(target)) / (x[0] - x[1])
            return float(np.exp(y[0] + share * (y[1] - y[0])))
        before = point
    return None


def rounded(iterations: float | None) -> str:
    """Two significant digits: the evaluations are too far apart for more."""
    return "-" if iterations is None else f"{int(float(f'{iterations:.1e}')):,}"


def described(algorithm: Algorithm) -> str:
    """Its parameters, as code would say them."""
    return ", ".join(f"{field.name}={getattr(algorithm, field.name)}" for field in fields(algorithm))


def write_csv(path: Path, curves: dict[str, list[Point]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Point._fields)
        for points in curves.values():
            for point in points:
                writer.writerow(
                    (point.algorithm, point.iterations, f"{point.seconds:.3f}", f"{point.exploitability:.4e}")
                )


def write_plot(path: Path, curves: dict[str, list[Point]], variant: str, unit: str) -> None:
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8.5, 6.0), layout="constrained")
    for i, (name, points) in enumerate(curves.items()):
        axes.loglog(
            [point.iterations for point in points],
            [point.exploitability for point in points],
            color=COLOURS[i % len(COLOURS)],
            linestyle=STYLES[i // len(COLOURS) % len(STYLES)],
            marker=MARKERS[i % len(MARKERS)],
            markersize=4,
            linewidth=1.5,
            label=name,
        )
    axes.set_xlabel("iterations (one: both players update)")
    axes.set_ylabel(f"exploitability of the average strategy ({unit})")
    axes.set_title(f"Convergence of CFR algorithms on {variant}")
    axes.grid(which="major", color="0.85")
    axes.legend(title="algorithm", frameon=False)
    figure.savefig(path, dpi=150, metadata={"Software": None})
    pyplot.close(figure)


def readme(curves: dict[str, list[Point]], variant: str, iterations: int, unit: str) -> str:
    """The table of iterations needed, fastest algorithm first, and what the files hold."""

    def rank(name: str) -> tuple[float, ...]:
        reached = [needed(curves[name], target) for target in reversed(TARGETS)]
        return (*(math.inf if value is None else value for value in reached), curves[name][-1].exploitability)

    lines = [
        f"# Convergence of CFR algorithms on {variant}",
        "",
        "Written by `python scripts/algorithm_study.py"
        f" --variant {variant} --iterations {iterations}{_chosen(curves)}`, float32, one thread.",
        "",
        f"Iterations until the average strategy's exploitability, in {unit}, is at most the column's number,",
        f"interpolated between evaluations (`-`: not within {iterations:,}).",
        "",
        "| algorithm | " + " | ".join(f"{target:.0e}" for target in TARGETS) + f" | after {iterations:,} |",
        "|---|" + "---:|" * (len(TARGETS) + 1),
    ]
    for name in sorted(curves, key=rank):
        counts = " | ".join(rounded(needed(curves[name], target)) for target in TARGETS)
        lines.append(f"| {name} | {counts} | {curves[name][-1].exploitability:.1e} |")
    lines += [
        "",
        "![Exploitability by iterations](convergence.png)",
        "",
        "`convergence.csv` has a row for each evaluation:",
        "",
        "- `algorithm`: its name, see below;",
        "- `iterations`: done so far; in each both players update once;",
        "- `seconds`: spent on them, evaluations left out, on whatever machine ran this: compare within one file only;",
        f"- `exploitability`: of the average strategy, in {unit}: half of what both players together gain by best",
        "  responding, computed exactly.",
        "",
        "Parameters (explained at `solver.cfr.Algorithm`):",
        "",
        *(f"- `{name}`: {described(EVERYTHING[name])}" for name in curves),
        "",
    ]
    return "\n".join(lines)


def _chosen(curves: dict[str, list[Point]]) -> str:
    """The options that choose these algorithms."""
    return "" if list(curves) == list(EVERYTHING) else "".join(f' --algorithm "{name}"' for name in curves)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--variant", type=click.Choice(preset_names()), default="le-truc", show_default=True, help="Rule set.")
@click.option("--iterations", type=click.IntRange(min=1), default=3000, show_default=True, help="Of each algorithm.")
@click.option(
    "--algorithm", "names", type=click.Choice(list(EVERYTHING)), multiple=True, help="May be repeated; default: all."
)
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Folder.  [default: results/VARIANT/study]"
)
def main(variant: str, iterations: int, names: tuple[str, ...], out: Path | None) -> None:
    """Measure how fast each algorithm converges on one hand of VARIANT, played for points."""
    rules = preset(variant)
    tree = Tree(rules)
    payoffs = Payoffs.points(rules)
    curves: dict[str, list[Point]] = {}
    for name in dict.fromkeys(names or EVERYTHING):
        curves[name] = curve(name, tree, payoffs, iterations)
        last = curves[name][-1]
        click.echo(f"{name}: {last.exploitability:.2e} {payoffs.unit} after {last.seconds:.1f} s", err=True)
    folder = Path(__file__).parents[1] / "results" / variant / "study" if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    write_csv(folder / "convergence.csv", curves)
    write_plot(folder / "convergence.png", curves, variant, payoffs.unit)
    (folder / "README.md").write_text(readme(curves, variant, iterations, payoffs.unit), encoding="utf-8")


if __name__ == "__main__":
    main()
