"""The published results of a solved match: equity table, book of the first trick, take points, what scores change.

    python scripts/match_results.py [DIR]             from the match in a folder, by default where `truc match solve`
                                                      keeps it
    python scripts/match_results.py --variant french  the same for another rule set

DIR is not changed.  Everything is computed from its strategies without sampling and comes out the same on every run;
results/VARIANT/match/match.md explains it to card players.  A few minutes.  The pictures need matplotlib, from the
extra `dev`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click
from match_page import Found, page, script_command
from match_plots import Map, heat_maps
from match_source import asked_match, complete_match
from match_study import studies
from reproduce import digest, family, write_csv

from games.notation import format_score
from games.rules import RAISE, REMAINDER
from solver.book import Book, write_book
from solver.equity import Score
from solver.files import write_atomically
from solver.match_run import TABLE, Store
from solver.paths import usable_threads
from solver.scores import table_document
from solver.storage import StorageError, packages
from solver.takepoint import Call, Interval

ROOT = Path(__file__).resolve().parent.parent
DIGITS = 9  # decimals of values and bounds in the CSV files, the bounds rounded outwards
SIDES = ("leader", "dealer")


def decimals(value: float, lower: float, upper: float) -> list[str]:
    """A value and its bounds, which hold as printed."""
    unit = 10.0**DIGITS
    outward = (value, math.floor(lower * unit) / unit, math.ceil(upper * unit) / unit)
    return [f"{number:.{DIGITS}f}" for number in outward]


def write_json(path: Path, document: Any) -> None:
    """An indented JSON document."""
    write_atomically(path, (json.dumps(document, indent=1) + "\n").encode())


def write_equity(folder: Path, found: Found) -> None:
    """equity.json, which the program ships, and equity.csv."""
    document = table_document(found.rules, found.known, found.rounding)
    write_json(folder / "equity.json", document)
    columns = (document["value"], document["lower"], document["upper"])
    rows = [[*score, *decimals(*(column[format_score(score)] for column in columns))] for score in sorted(found.known)]
    write_csv(folder / "equity.csv", [*SIDES, "value", "lower", "upper"], rows)


def write_deal(folder: Path, found: Found) -> None:
    """deal.csv and best-of-three.json."""
    rows = [[*score, *decimals(*found.deal(*score))] for score in sorted(found.known)]
    write_csv(folder / "deal.csv", ["points", "others", "value", "lower", "upper"], rows)
    dealer, start = found.best_of_three, found.known[0, 0]
    document = {
        "variant": found.rules.name,
        "rules_hash": found.rules.hash,
        "unit": "probability to win two of three matches",
        "order": "the first dealer of a match is who did not deal first in the one before",
        "first_dealer": dealer._asdict(),
        "first_leader": Interval(1 - dealer.value, 1 - dealer.upper, 1 - dealer.lower)._asdict(),
        "before_the_lot": 0.5,
        "one_match": {
            "first_dealer": Interval(
                1 - start.value, 1 - start.upper - found.rounding, 1 - start.lower + found.rounding
            )._asdict()
        },
    }
    write_json(folder / "best-of-three.json", document)


def formulas(found: Found) -> Iterator[tuple[Score, int, Call, float | None]]:
    """Score, answerer, call, take point: for every raise and remainder."""
    for score in sorted(found.known):
        for answerer in range(2):
            for call in found.calls(score):
                yield score, answerer, call, found.take_point(score, answerer, call.level, call.word)


def write_takepoints(folder: Path, found: Found) -> None:
    """takepoints.csv, takepoints-first.csv, and both as takepoints.json."""
    rows = [[*score, SIDES[p], call.stake, call.to, point] for score, p, call, point in formulas(found)]
    write_csv(folder / "takepoints.csv", [*SIDES, "answerer", "stake", "raised", "take_point"], rows)
    first: list[list[Any]] = []
    by_formula: dict[str, Any] = {format_score(score): {side: {} for side in SIDES} for score in sorted(found.known)}
    measured: dict[str, Any] = {format_score(score): {} for score in sorted(found.known)}
    for score, p, call, point in formulas(found):
        by_formula[format_score(score)][SIDES[p]][f"{call.stake}-{call.to}"] = point
    for score in sorted(found.studied):
        for each in found.studied[score].takings:
            line, point = " ".join(each.line), found.take_point(score, each.answerer, 0, each.word)
            numbers = (each.made, each.accepted, each.threshold, point, each.misplaced)
            first.append([*score, line, SIDES[each.answerer], *numbers, each.case])
            measured[format_score(score)][line] = {
                "answerer": SIDES[each.answerer], "made": each.made, "accepted": each.accepted,
                "threshold": each.threshold, "misplaced": each.misplaced, "case": each.case,
            }  # fmt: skip
    names = ["made", "accepted", "threshold", "take_point", "misplaced", "case"]
    write_csv(folder / "takepoints-first.csv", [*SIDES, "line", "answerer", *names], first)
    document = {
        "variant": found.rules.name,
        "rules_hash": found.rules.hash,
        "unit": "chance to win the hand",
        "take_points": by_formula,
        "first_raise": measured,
    }
    write_atomically(folder / "takepoints.json", (json.dumps(document, separators=(",", ":")) + "\n").encode())


def write_openings(folder: Path, found: Found) -> None:
    """openings.csv: the first decisions by score."""
    rows: list[list[Any]] = []
    for score in sorted(found.studied):
        each = found.studied[score]
        rates = [number for rates in each.calls.values() for rate in rates for number in rate]
        rows.append([*score, *rates, *each.leads])
    names = [f"{side}_{what}" for side in SIDES for what in ("raises", "bluffs", "accepted")]
    if found.rules.remainder:
        names += [
            f"{side}_{what}" for side in SIDES for what in ("remainders", "remainder_bluffs", "remainder_accepted")
        ]
    write_csv(folder / "openings.csv", [*SIDES, *names, *(f"lead {rank}" for rank in found.rules.ranks)], rows)


def write_decisions(folder: Path, found: Found) -> None:
    """decisions.csv: whether the hand is played, at the scores where a side decides that first."""
    rows: list[list[Any]] = []
    for score, decision in found.decisions():
        numbers = (decision.plays, decision.threshold, found.play_point(score), decision.misplaced)
        rows.append([*score, SIDES[decision.side], *numbers])
    write_csv(folder / "decisions.csv", [*SIDES, "decides", "plays", "threshold", "play_point", "misplaced"], rows)


def write_plots(folder: Path, found: Found) -> None:
    """The heat maps."""
    target, across, up = found.rules.target, "dealer's points", "leader's points"
    equity = Map("", lambda score: found.known[score].value, 0.0, 1.0, "PuOr", 1)
    heat_maps(folder / "equity.png", target, [equity], across, up, "The leader wins the match, %")
    most = max(abs(found.deal(*score).value) for score in found.known)
    deal = Map("", lambda score: found.deal(*score).value, -most, most, "PuOr", 1)
    heat_maps(
        folder / "deal.png", target, [deal], "the other's points", "points", "What dealing is worth, % of a match"
    )
    titles = [
        (RAISE, "made", "raises.png", "Raises at the first turn, % of hands"),
        (RAISE, "bluffs", "bluffs.png", "Bluffs, % of these raises"),
        (RAISE, "accepted", "accepted.png", "Accepted, % of these raises"),
    ]
    if found.rules.remainder:
        titles.append((REMAINDER, "made", "remainders.png", "Remainders at the first turn, % of hands"))
    for word, what, name, title in titles:

        def rate(score: Score, p: int, word: str = word, what: str = what) -> float | None:
            number: float | None = getattr(found.studied[score].calls[word][p], what)
            return number

        maps = [Map(f"by the {side}", partial(rate, p=p), 0.0, 1.0) for p, side in enumerate(SIDES)]
        heat_maps(folder / name, target, maps, across, up, title)


def publish(store: Store, folder: Path, workers: int, command: str) -> Found:
    """Compute everything from a complete store and write it.  Raises StorageError, OSError."""
    import matplotlib as mpl

    folder.mkdir(parents=True, exist_ok=True)
    studied = {}
    for score, each in studies(store.folder, workers):
        studied[score] = each
        click.echo(f"\r{len(studied)} of {store.rules.target**2} scores", nl=False, err=True)
    click.echo(err=True)
    source = digest(store.folder / TABLE)
    write_book(folder / "book.safetensors", store.rules, lambda score: studied[score].page, store.accuracy, source)
    found = Found(store, studied, Book.load(folder / "book.safetensors"))
    write_equity(folder, found)
    write_deal(folder, found)
    write_takepoints(folder, found)
    write_openings(folder, found)
    if found.rules.decision_before_target:
        write_decisions(folder, found)
    write_plots(folder, found)
    write_atomically(folder / "match.md", page(found).encode())
    start = found.known[0, 0]
    names = [
        "accepted.png", "best-of-three.json", "bluffs.png", "book.safetensors", "deal.csv", "deal.png", "equity.csv",
        "equity.json", "equity.png", "match.md", "openings.csv", "raises.png", "takepoints-first.csv",
        "takepoints.csv", "takepoints.json",
    ]  # fmt: skip
    if found.rules.remainder:
        names.append("remainders.png")
    if found.rules.decision_before_target:
        names.append("decisions.csv")
    manifest = {
        "command": command,
        "variant": store.rules.name,
        "rules_hash": store.rules.hash,
        "accuracy": store.accuracy,
        "algorithm": store.algorithm,
        "match": source,
        "strategies": {format_score(score): store.entries[score]["checksum"] for score in sorted(store.entries)},
        "unit": "match-winning probability",
        "value": start.value,
        "value_interval": [start.lower - found.rounding, start.upper + found.rounding],
        "exploitability": start.exploitability,
        "rounding": found.rounding,
        "book_rounding": found.book.rounding,
        "packages": {**packages(), "matplotlib": mpl.__version__},
        "processor_family": family(),
        "sha256": {name: digest(folder / name) for name in sorted(names)},
    }
    write_json(folder / "manifest.json", manifest)
    return found


@click.command()
@click.argument("match", required=False, type=click.Path(file_okay=False, path_type=Path))
@click.option("--variant", default="le-truc", show_default=True, help="Rule set.")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="Default: results/VARIANT/match.")
@click.option("--workers", type=click.IntRange(1), help="Processes; default: the cores, at most 4.")
def main(match: Path | None, variant: str, folder: Path | None, workers: int | None) -> None:
    """Write the results of a solved MATCH."""
    wanted, chosen = asked_match(variant, match)
    try:
        import matplotlib  # noqa: F401 (before the work, not after it)
    except ModuleNotFoundError as error:
        raise click.ClickException("the pictures need matplotlib: pip install -e '.[dev]'.") from error
    try:
        store = complete_match(chosen, wanted, folder)
        where = ROOT / "results" / wanted.name / "match" if folder is None else folder
        command = script_command(wanted.name) + ("" if match is None else f" {match.name}")
        found = publish(store, where, workers or usable_threads(), command)
    except (StorageError, OSError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{where / 'match.md'}: the first dealer wins {1 - found.known[0, 0].value:.4%} of matches")


if __name__ == "__main__":
    main()
