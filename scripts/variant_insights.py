"""What is particular to a variant: remainder, declining before the target, redeal, the worth of the deal.

    python scripts/variant_insights.py --variant french     results/french/insights.md, from the match that
                                                             `truc match solve --variant french` keeps, and from
                                                             results/french/points

Tables are in insights/*.csv, with a manifest.  Matches by other rules, to compare with, are solved where matches are
kept if they are not there yet: some minutes.  Nothing is sampled.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from match_source import asked_match, complete_match
from reproduce import digest, family, write_csv
from variant_page import SIDES, Deal, Found, first_dealer, interval, page, rounded, scores
from variant_study import (
    Called,
    SmallRedeal,
    after_the_card,
    declining,
    names,
    small_redeal,
    solved_hand,
    solved_match,
    unravel,
    without_betting,
    without_decision,
    without_remainder,
)

from games.notation import format_score
from games.rules import Rules, preset
from solver.essential import essential
from solver.files import write_atomically
from solver.match_run import TABLE, Store
from solver.paths import shipped_strategy, shipped_table, usable_threads
from solver.scores import match_folder, read_table
from solver.storage import StorageError, load_strategy, packages
from solver.strategy import Strategy
from solver.takepoint import equity_rounding

ROOT = Path(__file__).resolve().parent.parent
GAMES = ("le-truc", "french", "catalan")  # whose deals are compared
PLAIN, COMPARED, POINTS, SMALL = 1e-4, 1e-3, 1e-5, 1e-4  # accuracies: matches, matches, hands, small decks in points
DECKS = ((3, 3, 2), (4, 3, 2), (2, 6, 3))  # ranks, copies and cards of the small decks with a redeal


def small_deck(rules: Rules, ranks: int, copies: int, cards: int) -> Rules:
    """A deck of the best ranks, with the first two stakes and no more of what needs a score."""
    return replace(
        rules, name=f"small-{rules.name}", ranks=rules.ranks[-ranks:], copies=copies, hand_size=cards,
        ladder=rules.ladder[:2], remainder=False, remainder_refused="stake", fold=False, decision_before_target=False,
        one_card=False,
    )  # fmt: skip


class Matches:
    """Where matches are that are only compared with."""

    def __init__(self, folder: Path | None, workers: int) -> None:
        self.folder, self.workers = folder, workers

    def solved(self, rules: Rules, accuracy: float) -> Store:
        """A match, solved now if need be.  Raises StorageError, OSError, ClickException."""
        folder = match_folder(rules) if self.folder is None else self.folder / rules.name
        if folder is None:
            raise click.ClickException("there is no cache folder: give one by --matches.")
        click.echo(f"{rules.name}: the match to {accuracy:g}", err=True)
        return solved_match(rules, accuracy, folder, self.workers)


def deals(rules: Rules, store: Store, strategy: Strategy, matches: Matches) -> Iterator[Deal]:
    """The deal's worth in this game, then in the others that come with the program."""
    known = preset(rules.name).hash == rules.hash if rules.name in GAMES else False
    for name in (rules.name, *(name for name in GAMES if known and name != rules.name)):
        if name == rules.name:
            game, start, points = rules, store.known[0, 0], strategy.evaluate()
        else:
            file, equity = shipped_strategy(name), shipped_table(name)
            if file is None or equity is None:
                continue
            game = preset(name)
            start, points = read_table(equity, game)[0, 0], load_strategy(file)[0].evaluate()
        plain = without_betting(game)
        match = matches.solved(plain, PLAIN)
        yield Deal(
            name, interval(points), interval(solved_hand(plain, POINTS).evaluate()),
            first_dealer(start, equity_rounding(game)), first_dealer(match.known[0, 0], equity_rounding(plain)),
        )  # fmt: skip


def study(store: Store, strategy: Strategy, matches: Matches) -> Found:
    """Everything.  Raises StorageError, OSError, ClickException."""
    rules = store.rules
    every = list(deals(rules, store, strategy, matches))
    without = None
    called: dict[tuple[int, int], Called] = {}
    if rules.remainder:
        without = matches.solved(without_remainder(rules), COMPARED)
        for score in scores(rules.target):
            click.echo(f"{rules.name}: calls at {format_score(score)}", err=True)
            called[score] = Called(store.strategy(score), score, rules.target)
    elif rules.decision_before_target:
        without = matches.solved(without_decision(rules), COMPARED)
    small: list[SmallRedeal] = []
    if rules.redeal:
        small = [small_redeal(small_deck(rules, *deck), SMALL) for deck in DECKS]
    return Found(
        store=store,
        points=strategy.evaluate(),
        deals=every,
        called=called,
        without=without,
        declining=dict(declining(store)),
        redeal=unravel(strategy) if rules.redeal else None,
        small=small,
        card=after_the_card(strategy, rules) if "after" in rules.raise_when else None,
    )


def write_tables(folder: Path, found: Found) -> list[str]:
    """The CSV files; returns their names."""
    written: list[str] = []

    def write(name: str, header: list[str], rows: list[list[Any]]) -> None:
        write_csv(folder / name, header, [[f"{c:.9g}" if isinstance(c, float) else c for c in row] for row in rows])
        written.append(name)

    rows: list[list[Any]] = []
    for deal in found.deals:
        for unit, betting, number in (
            ("points per hand", "yes", deal.points), ("points per hand", "no", deal.points_plain),
            ("match-winning probability", "yes", deal.match), ("match-winning probability", "no", deal.match_plain),
        ):  # fmt: skip
            rows.append([deal.variant, unit, betting, *number])
    write("deal.csv", ["variant", "unit", "betting", "value", "lower", "upper"], rows)
    if found.without is not None:
        with_, less = found.store.known, found.without.known
        names_ = [f"{table}_{what}" for table in ("with", "without") for what in ("value", "lower", "upper")]
        rows = [
            [
                *score,
                *(x for known in (with_, less) for x in (known[score].value, known[score].lower, known[score].upper)),
            ]
            for score in sorted(with_)
        ]
        write("equity.csv", [*SIDES, *names_], rows)
    if found.called:
        rows = [
            [*score, turn, SIDES[side], what, *rounded([each.chances, each.made, each.bluffs, each.conceded])]
            for score, called in found.called.items()
            for what, calls in (("match", called.for_match), ("less", called.for_less))
            for (turn, side), each in sorted(calls.items())
        ]
        write("calls.csv", [*SIDES, "turn", "who", "for", "chances", "made", "bluffs", "conceded"], rows)
    every = names(found.rules)
    if found.declining:
        header = [f"{format_score(score)} {what}" for score in found.declining for what in ("plays", "wins")]
        columns = [
            rounded(column.tolist()) for each in found.declining.values() for column in (each.plays, each.win)
        ]  # fmt: skip
        some = next(iter(found.declining.values()))
        rows = [
            [hand, dealt, *(round(column[h], 4) for column in columns)]
            for h, (hand, dealt) in enumerate(zip(every, rounded(some.share.tolist()), strict=True))
        ]
        write("declining.csv", ["hand", "dealt", *header], rows)
    if found.redeal is not None:
        worth = [rounded(side.tolist()) for side in found.redeal.worth]
        write("hands.csv", ["hand", *SIDES], [[hand, worth[0][h], worth[1][h]] for h, hand in enumerate(every)])
    return written


def publish(store: Store, file: Path, folder: Path, matches: Matches, command: str) -> Found:
    """Compute everything from a complete store and a strategy in points, and write it.

    Raises StorageError, OSError, ClickException.
    """
    strategy, _ = load_strategy(file)
    same = replace(essential(store.rules), name=strategy.tree.rules.name, target=strategy.tree.rules.target)
    if strategy.tree.rules != same or strategy.payoffs.total:
        raise StorageError(f"{file}: not a strategy of the hand of {store.rules.name!r} in points")
    found = study(store, strategy, matches)
    inside = folder / "insights"
    inside.mkdir(parents=True, exist_ok=True)
    written = write_tables(inside, found)
    write_atomically(folder / "insights.md", page(found, inside.name).encode())
    manifest = {
        "command": command,
        "variant": store.rules.name,
        "rules_hash": store.rules.hash,
        "match": digest(store.folder / TABLE),
        "strategy": digest(file),
        **({} if found.without is None else {"compared_with": found.without.rules.name,
                                             "compared_accuracy": found.without.accuracy}),
        "value": found.points.value,
        "exploitability": found.points.exploitability,
        "packages": packages(),
        "processor_family": family(),
        "sha256": {"../insights.md": digest(folder / "insights.md"),
                   **{name: digest(inside / name) for name in sorted(written)}},
    }  # fmt: skip
    write_atomically(inside / "manifest.json", (json.dumps(manifest, indent=1) + "\n").encode())
    return found


@click.command()
@click.argument("match", required=False, type=click.Path(file_okay=False, path_type=Path))
@click.option("--variant", default="french", show_default=True, help="Rule set.")
@click.option("--strategy", "file", type=click.Path(dir_okay=False, path_type=Path), help="Default: the one shipped.")
@click.option("--matches", type=click.Path(file_okay=False, path_type=Path), help="Where those to compare with are.")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="Default: results/VARIANT.")
@click.option("--workers", type=click.IntRange(1), help="Processes for solving; default: the cores, at most 4.")
def main(
    match: Path | None, variant: str, file: Path | None, matches: Path | None, folder: Path | None, workers: int | None
) -> None:
    """Write insights.md of a solved MATCH, and its tables in insights/."""
    wanted, chosen = asked_match(variant, match)
    try:
        store = complete_match(chosen, wanted, folder)
        points = shipped_strategy(wanted.name) if file is None else file
        if points is None:
            raise click.ClickException(f"no strategy of {variant} in points is there: give one by --strategy.")
        where = ROOT / "results" / wanted.name if folder is None else folder
        command = f"python scripts/variant_insights.py --variant {wanted.name}"
        command += "" if match is None else f" {match.name}"
        found = publish(store, points, where, Matches(matches, workers or usable_threads()), command)
    except (StorageError, OSError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{where / 'insights.md'}: the deal is worth {found.deals[0].points.value:+.6f} points per hand")


if __name__ == "__main__":
    main()
