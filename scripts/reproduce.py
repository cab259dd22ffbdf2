"""Make the published results of a rule set again, or check that they come out the same.

    python scripts/reproduce.py                     solve, and write results/le-truc/points
    python scripts/reproduce.py --variant french    the same for another rule set: results/french/points
    python scripts/reproduce.py --check             solve again elsewhere, and compare

What changes no value, or needs a score, is left out of the game (see `solver.essential`); the manifest says what.
With the versions and the processor family of the manifest the strategy file must be the same to the last bit.
Otherwise the new value and exploitability must fit the published ones: both value intervals hold the value of the game,
so they overlap, and the accuracy asked for is reached.  Only the pictures need matplotlib, from the extra `dev`.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import platform
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from games.rules import RAISE, Rules, RulesError, preset
from solver.cfr import DEFAULT_ALGORITHM, Solver
from solver.essential import essential, left_out
from solver.files import write_atomically
from solver.opening import Opening, openings
from solver.paths import usable_threads
from solver.solve import Outcome, Progress, solve
from solver.storage import load_strategy, packages
from solver.tree import Tree

ROOT = Path(__file__).resolve().parent.parent
ACCURACY = 1e-5  # points per hand
# Colour-blind safe (Okabe and Ito 2008; the last of Tol 2021), by rank from the weakest; labels name the ranks as well.
COLOURS = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7", "#999999", "#661100",
)  # fmt: skip
DARK = (0, 3, 5, 9)
CELL = 0.9  # of the distance between two hands in the picture


def run(rules: Rules, accuracy: float, file: Path) -> tuple[Outcome, Solver]:
    """Solve what matters of a rule set, telling how it goes on stderr."""
    solver = Solver(Tree(essential(rules)), algorithm=DEFAULT_ALGORITHM, threads=usable_threads())

    def tell(progress: Progress) -> None:
        if progress.new and progress.latest is not None:
            point = progress.latest
            click.echo(f"{point.iterations:6d} iterations  {point.exploitability:.3e}  {point.seconds:.1f} s", err=True)

    return solve(solver, file, accuracy=accuracy, threads=usable_threads(), progress=tell), solver


def digest(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def family() -> str:
    """What decides the last bits besides the versions: architecture, and the kind of processor code is compiled for."""
    from llvmlite import binding

    return f"{platform.machine()} {binding.get_host_cpu_name()}"


def write_csv(path: Path, header: list[str], rows: list[list[Any]]) -> None:
    """A table with a line of names, floats to 6 significant digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([f"{cell:.6g}" if isinstance(cell, float) else cell for cell in row] for row in rows)
    write_atomically(path, text.getvalue().encode())


def write_tables(folder: Path, rules: Rules, outcome: Outcome, found: list[Opening]) -> None:
    """convergence.csv and opening.csv."""
    points = [[point.iterations, point.exploitability] for point in outcome.history]
    write_csv(folder / "convergence.csv", ["iterations", "exploitability"], points)
    names = ["hand", "combinations", RAISE]
    names += [f"lead {rank}" for rank in rules.ranks] + [f"after raise {rank}" for rank in rules.ranks]
    rows: list[list[Any]] = []
    for each in found:
        later = each.after_raise or {}
        plain = [each.probabilities.get(rank, 0.0) for rank in rules.ranks]
        rows.append([each.hand, each.weight, each.raises, *plain, *(later.get(rank, 0.0) for rank in rules.ranks)])
    write_csv(folder / "opening.csv", names, rows)


def plot_convergence(path: Path, outcome: Outcome, title: str) -> None:
    """Exploitability over iterations, both logarithmic."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    axes.loglog(
        [point.iterations for point in outcome.history], [point.exploitability for point in outcome.history],
        marker="o", markersize=3, color=COLOURS[5],
    )  # fmt: skip
    axes.set(xlabel="iterations", ylabel="exploitability, points per hand", title=title)
    axes.grid(which="both", alpha=0.3)
    save(figure, path)


def plot_openings(path: Path, rules: Rules, found: list[Opening]) -> None:
    """A triangle of hands for each highest rank: the second card across, the third up; each cell a bar of the action
    mix: the card led in its colour, hatched as far as the hand raises first."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch, Rectangle

    names, n = rules.ranks, rules.n_ranks
    across = (n + 1) // 2
    figure, grid = plt.subplots(2, across, figsize=(2.6 * across, 6.2), layout="constrained", squeeze=False)
    for axes in grid.ravel():
        axes.set_axis_off()
    for axes, top in zip(grid.ravel(), reversed(range(n)), strict=False):
        for each in found:
            low, middle, high = each.cards
            if high != top:
                continue
            left = middle - 0.5 * CELL
            for rank, name in enumerate(names):
                colour = COLOURS[rank % len(COLOURS)]
                width = each.probabilities.get(name, 0.0)
                raised = each.raises * (each.after_raise or {}).get(name, 0.0)
                for share, hatch in ((width, None), (raised, "////")):
                    if share > 0.002:
                        axes.add_patch(
                            Rectangle((left, low - 0.5 * CELL), share * CELL, CELL, facecolor=colour,
                                      hatch=hatch, edgecolor="white" if hatch else "none", linewidth=0)
                        )  # fmt: skip
                        if share > 0.3:
                            dark = rank % len(COLOURS) in DARK
                            axes.text(left + share * CELL / 2, low, name, ha="center", va="center", fontsize=7,
                                      color="white" if dark else "black")  # fmt: skip
                        left += share * CELL
        axes.set(xlim=(-1.2, n - 0.4), ylim=(-1.2, n - 0.4), aspect="equal")
        axes.set_title(f"with {names[top]} as highest", fontsize=9)
        for rank in range(top + 1):
            axes.text(rank, -0.95, names[rank], ha="center", va="center", fontsize=7, color="0.4")
            axes.text(-0.95, rank, names[rank], ha="center", va="center", fontsize=7, color="0.4")
    handles = [Patch(facecolor=COLOURS[rank % len(COLOURS)], label=f"leads {name}") for rank, name in enumerate(names)]
    handles.append(Patch(facecolor="0.6", hatch="////", edgecolor="white", label="raises first"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=8, frameon=False)
    figure.suptitle("The leader's first decision: other two cards across (higher) and up (lower)", fontsize=10)
    save(figure, path)


def save(figure: Any, path: Path) -> None:
    """A picture without a date in it, so that it comes out the same."""
    import matplotlib.pyplot as plt

    picture = io.BytesIO()
    figure.savefig(picture, dpi=130, metadata={"Software": None})
    plt.close(figure)
    write_atomically(path, picture.getvalue())


def publish(rules: Rules, accuracy: float, folder: Path) -> None:
    """Write a rule set's results."""
    try:
        import matplotlib as mpl
    except ModuleNotFoundError as error:  # before the work, not after it
        raise click.ClickException("the pictures need matplotlib: pip install -e '.[dev]'.") from error
    folder.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    outcome, solver = run(rules, accuracy, folder / "strategy.safetensors")
    spent = time.perf_counter() - start
    assert outcome.evaluation is not None
    strategy, header = load_strategy(folder / "strategy.safetensors")
    found = openings(strategy)
    write_tables(folder, rules, outcome, found)
    title = {"le-truc": "Le Truc"}.get(rules.name, rules.name)
    plot_convergence(folder / "convergence.png", outcome, f"{title}, {DEFAULT_ALGORITHM}")
    if rules.hand_size == 3:
        plot_openings(folder / "opening.png", rules, found)
    result = outcome.evaluation
    files = sorted(path for path in folder.iterdir() if path.name != "manifest.json")
    manifest = {
        "command": f"python scripts/reproduce.py --variant {rules.name} --accuracy {accuracy:g}",
        "variant": rules.name,
        "rules_hash": rules.hash,
        **({"left_out": missing} if (missing := left_out(rules)) else {}),
        "algorithm": DEFAULT_ALGORITHM,
        "parameters": asdict(solver.algorithm),
        "iterations": outcome.iterations,
        "unit": result.unit,
        "value": result.value,
        "value_interval": list(result.interval),
        "best_response": list(result.best_response),
        "nash_conv": result.nash_conv,
        "exploitability": result.exploitability,
        "rounding": result.rounding,
        "seconds": round(spent, 1),
        "packages": {**header.packages, "matplotlib": mpl.__version__},
        "processor_family": family(),
        "made": time.strftime("%Y-%m-%d", time.gmtime()),
        "sha256": {path.name: digest(path) for path in files},
    }
    write_atomically(folder / "manifest.json", (json.dumps(manifest, indent=1) + "\n").encode())
    click.echo(f"{folder}: exploitability {result.exploitability:.3e} {result.unit}")


def check(rules: Rules, folder: Path) -> list[str]:
    """Solve again and compare; returns what does not fit."""
    manifest = json.loads((folder / "manifest.json").read_text())
    wrong = [
        f"{name} is not the file that the manifest describes"
        for name, wanted in manifest["sha256"].items()
        if digest(folder / name) != wanted
    ]
    accuracy = float(manifest["command"].split()[-1])
    with tempfile.TemporaryDirectory() as temporary:
        again = Path(temporary) / "strategy.safetensors"
        outcome, _ = run(rules, accuracy, again)
        result, found = outcome.evaluation, digest(again)
    assert result is not None
    same = packages().items() <= manifest["packages"].items() and family() == manifest["processor_family"]
    if same and found != manifest["sha256"]["strategy.safetensors"]:
        wrong.append("same versions and processor family, but the strategy file has other bits")
    (low, high), (published_low, published_high) = result.interval, manifest["value_interval"]
    if max(low, published_low) > min(high, published_high):
        wrong.append(f"the value interval [{low}, {high}] does not meet the published one")
    if result.exploitability > accuracy:
        wrong.append(f"exploitability {result.exploitability:.3e} is above {accuracy:g}")
    kind = "the same bits expected" if same else "other versions or processor, so values compared"
    click.echo(f"{folder}: exploitability {result.exploitability:.3e}, {outcome.iterations} iterations, {kind}")
    return wrong


@click.command()
@click.option("--variant", default="le-truc", show_default=True, help="Rule set.")
@click.option("--accuracy", default=ACCURACY, show_default=True, help="Exploitability to reach, in points per hand.")
@click.option("--check", "checking", is_flag=True, help="Compare with what is there instead of writing it.")
@click.option("--results", default=ROOT / "results", type=click.Path(path_type=Path), help="Folder of all results.")
def main(variant: str, accuracy: float, checking: bool, results: Path) -> None:
    """Make the published results again, or check them."""
    try:
        rules, folder = preset(variant), results / variant / "points"
    except RulesError as error:
        raise click.UsageError(str(error)) from error
    if not checking:
        publish(rules, accuracy, folder)
        return
    wrong = check(rules, folder)
    for sentence in wrong:
        click.echo(f"Error: {sentence}", err=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
