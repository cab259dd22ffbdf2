"""What the equilibrium teaches: how often to raise, to bluff and to refuse, and which sayings hold, for card players.

    python scripts/insights.py    from the strategy that comes with the program: results/le-truc/insights.md

Nothing is sampled and no number is written by hand: `insights_walk` goes through the whole public tree once with the
strategy, `insights_tally` counts.  The tables are in insights/*.csv too, with the plots and a manifest.  Ten seconds.
The plots need matplotlib, from the extra `dev`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from insights_page import DIGITS, SHOWN, Insights, LastCard, page
from insights_tally import FIELDS, Tally
from reproduce import COLOURS, digest, family, save, write_csv

from solver.files import write_atomically
from solver.paths import shipped_strategy
from solver.storage import StorageError, load_strategy, packages

ROOT = Path(__file__).resolve().parent.parent
VARIANT = "le-truc"


def write_tables(folder: Path, found: Insights) -> None:
    """The CSV files."""
    ladder, tally = found.rules.ladder, found.tally

    def write(name: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        short = [[round(cell, DIGITS) + 0.0 if isinstance(cell, float) else cell for cell in row] for row in rows]
        write_csv(folder / name, list(header), short)

    write(
        "raises.csv",
        ("turn", "stake", *FIELDS),
        ([turn, ladder[a], *each.values()] for (turn, a), each in sorted(tally.raising.items())),
    )
    write(
        "ends.csv",
        ("points", "end", "winner", "probability"),
        (
            [ladder[level], "refused" if refused else "played out", ("leader", "dealer", "nobody")[winner], chance]
            for (level, refused, winner), chance in sorted(tally.walk.ends.items())
        ),
    )
    each_hand = ([hand.name, hand.dealt, *hand.worth] for hand in found.hands())
    write("hands.csv", ("hand", "dealt", "leader", "dealer"), each_hand)
    write("last-card.csv", LastCard._fields, found.last_card())
    names = ("saying", "asked", "followed", "cost_leader", "cost_dealer", "verdict")
    write("sayings.csv", names, ([*each[:3], *each.costs, each.verdict] for each in found.sayings()))


def plot_raises(path: Path, found: Insights) -> None:
    """Raises when possible over turns, a line for each stake."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
    for level, stake in enumerate(found.rules.ladder):
        points = [
            (turn, each["raises"] / each["chances"])
            for (turn, at), each in sorted(found.tally.raising.items())
            if at == level and each["chances"] >= SHOWN
        ]
        if points:
            turns, shares = zip(*points, strict=True)
            axes.plot(turns, [100 * s for s in shares], "osD^v<>"[level % 7] + "-", color=COLOURS[level % 8],
                      label=f"stake {stake}")  # fmt: skip
    axes.set(xlabel="turn: number of the card to be played", ylabel="raises, % of those who may", ylim=(0, None))
    axes.set_xticks(range(1, 2 * found.rules.hand_size + 1))
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    save(figure, path)


def plot_theory(path: Path, found: Insights) -> None:
    """Bluffs and refusals at the last card, measured and by formula."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
    rows = found.last_card()
    where = np.arange(len(rows))
    series = (
        ("refusals", "o", COLOURS[5], [(row.refused, row.refused_formula) for row in rows]),
        ("bluffs among raises", "s", COLOURS[6], [(row.bluffs, row.bluffs_formula) for row in rows]),
    )
    for name, marker, colour, pairs in series:
        axes.plot(where, [100 * formula for _, formula in pairs], "_", color="0.4", markersize=28, zorder=1)
        axes.plot(where, [100 * measured for measured, _ in pairs], marker, color=colour, label=name)
    axes.plot([], [], "_", color="0.4", markersize=12, label="formula")
    axes.set_xticks(where, [f"{row.stake} to {row.raised}" for row in rows])
    axes.set(xlabel="raise at the last card", ylabel="%", ylim=(0, 45), xlim=(-0.6, max(len(rows), 1) - 0.4))
    axes.grid(axis="y", alpha=0.3)
    axes.legend(frameon=False, ncols=3)
    save(figure, path)


def plot_hands(path: Path, found: Insights) -> None:
    """How many deals have a hand that is worth at most so much, for both players."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
    for seat, (name, style) in enumerate((("leader", "-"), ("dealer", "--"))):
        ranked = sorted((hand.worth[seat], hand.dealt) for hand in found.hands())
        shares = 100 * np.cumsum([0.0, *(share for _, share in ranked)])
        axes.stairs([value for value, _ in ranked], shares, baseline=None, color=COLOURS[5 + seat], linestyle=style,
                    label=name)  # fmt: skip
    axes.axhline(0, color="0.4", linewidth=0.8)
    axes.set(xlabel="% of deals, the worst hands first", ylabel="points per hand", xlim=(0, 100))
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    save(figure, path)


def publish(file: Path, folder: Path, command: str) -> Insights:
    """Compute everything for a strategy file and write it.  Raises ClickException."""
    try:
        import matplotlib as mpl
    except ModuleNotFoundError as error:  # before the work, not after it
        raise click.ClickException("the plots need matplotlib: pip install -e '.[dev]'.") from error
    try:
        strategy, _ = load_strategy(file)
    except (StorageError, OSError) as error:
        raise click.ClickException(str(error)) from error
    rules = strategy.tree.rules
    if rules.hand_size != 3 or len(rules.ladder) < 2 or strategy.payoffs.total:
        raise click.ClickException(f"{file}: only three-card hands with raises, played for points, are described.")
    found = Insights(strategy, strategy.evaluate(), Tally(strategy))
    inside = folder / "insights"
    inside.mkdir(parents=True, exist_ok=True)
    write_tables(inside, found)
    plot_raises(inside / "raises.png", found)
    plot_theory(inside / "last-card.png", found)
    plot_hands(inside / "hands.png", found)
    write_atomically(folder / "insights.md", page(found, inside.name).encode())
    files = sorted(path for path in inside.iterdir() if path.suffix in (".csv", ".png"))
    manifest = {
        "command": command,
        "variant": rules.name,
        "rules_hash": rules.hash,
        "strategy": digest(file),
        "unit": found.evaluation.unit,
        "value": found.evaluation.value,
        "exploitability": found.evaluation.exploitability,
        "packages": {**packages(), "matplotlib": mpl.__version__},
        "processor_family": family(),
        "sha256": {"../insights.md": digest(folder / "insights.md"), **{path.name: digest(path) for path in files}},
    }
    write_atomically(inside / "manifest.json", (json.dumps(manifest, indent=1) + "\n").encode())
    return found


@click.command()
@click.option("--strategy", "file", type=click.Path(dir_okay=False, path_type=Path), help="Default: the one shipped.")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="Default: results/le-truc.")
def main(file: Path | None, folder: Path | None) -> None:
    """Write insights.md, and its tables and plots in insights/."""
    command = "python scripts/insights.py" + ("" if file is None else f" --strategy {file.name}")
    chosen = shipped_strategy(VARIANT) if file is None else file
    if chosen is None:
        raise click.ClickException(f"no strategy for {VARIANT} comes with this program: give one by --strategy.")
    if folder is None and file is not None:
        raise click.UsageError("--strategy needs --folder, lest the published results be overwritten.")
    where = ROOT / "results" / VARIANT if folder is None else folder
    found = publish(chosen, where, command)
    click.echo(f"{where / 'insights.md'}: value {found.evaluation.value:+.6f} {found.evaluation.unit}")


if __name__ == "__main__":
    main()
