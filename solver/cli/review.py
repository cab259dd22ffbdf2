"""`truc review`: how well kept hands were played."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from games.history import HistoryError, load_history
from games.notation import format_line
from games.rules import Rules
from solver.cli.common import chosen_language, game_options, json_option, lang_option, rules_of, stored_strategy
from solver.cli.play import failures, spare_threads, strategy_option
from solver.i18n import Strings

if TYPE_CHECKING:
    from solver.bot import Advisers
    from solver.grading import Review, Totals

SHOWN = 20  # costly decisions that are shown


@click.command(name="review")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--player", metavar="NAME", help="Only this player's decisions.")
@json_option
@lang_option
@strategy_option
@game_options
def command(
    file: Path, player: str | None, as_json: bool, lang: str | None, strategy: Path | None, variant: str | None,
    rules: Path | None,
) -> None:  # fmt: skip
    """Grade the hands in FILE, as `truc play -o FILE` writes them.

    Each decision is graded by what it costs against the best: ?! an inaccuracy, ? a mistake, ?? a blunder.  Playing the
    other side of a mix costs nothing.  Cards that were never shown may be missing; whose cards are missing is not
    graded.  The format is described in games/HISTORY.md.
    """
    say = chosen_language(lang)
    given = None if variant is None and rules is None else rules_of(variant, rules)
    try:
        history = load_history(file, given)
    except HistoryError as error:
        raise click.UsageError(str(error)) from error
    if player is not None and player not in history.players:
        raise click.UsageError(f"--player {player} is none of {', '.join(history.players)}")

    from solver.cli.output import print_json
    from solver.grading import review

    with failures():
        advisers = _advisers(history.rules, strategy, rules)
        try:
            found = review(history, advisers)
        finally:
            advisers.close()
    if as_json:
        print_json(found.document())
    else:
        _show(found, say, None if player is None else history.players.index(player))


def _advisers(rules: Rules, file: Path | None, rule_file: Path | None) -> Advisers:
    from solver.bot import Advisers
    from solver.essential import essential

    if file is None:
        return Advisers(rules, spare_threads(), patience=600.0)
    strategy, header = stored_strategy(file, None, None, "--strategy FILE")
    if header.score is not None or strategy.tree.rules.hash != essential(rules).hash:
        raise click.UsageError(f"{file} is not for hands in points by the rules {rules.name!r}")
    return Advisers(rules, spare_threads(), patience=600.0, known={None: strategy})


def _show(review: Review, say: Strings, player: int | None) -> None:
    from solver.cfr import POINTS
    from solver.cli.output import print_table

    history = review.history
    names = history.players
    click.echo(
        say("review.title", variant=history.rules.name, hands=len(review.hands), first=names[0], second=names[1])
    )
    if not review.hands:
        click.echo(say("review.none"))
        return
    click.echo()
    costly = review.costly(player)
    click.echo(say("review.costly" if costly else "review.no_errors"))
    rows = [
        [
            str(hand.number),
            names[hand.player(each)],
            each.hand,
            format_line(each.line),
            say.action(each.action),
            say.action(each.best),
            say.bare(each.unit, each.cost),
            each.mark,
        ]
        for hand, each in costly[:SHOWN]
    ]
    if rows:
        keys = ("hand", "player", "cards", "line", "played", "best", "cost", "mark")
        print_table([say(f"review.column_{key}") for key in keys], [rows], right=(0, 6))
    click.echo()
    click.echo(say("review.totals"))
    players = (0, 1) if player is None else (player,)
    keys = ("player", "decisions", "errors", "total", "rate", "luck", "skill", "rest")
    sections = [[_totals(both[p], say) for p in players] for both in review.totals.values()]
    print_table([say(f"review.column_{key}") for key in keys], sections, right=range(1, len(keys)))
    click.echo()
    for unit in review.totals:
        click.echo(say("review.unit", unit=say("review.points_unit" if unit == POINTS else "review.match_unit")))
    for both in review.totals.values():
        for p in players:
            if both[p].unknown:
                click.echo(say("review.unknown", count=both[p].unknown, name=names[p]))
    quick = sum(hand.quick for hand in review.hands)
    if quick:
        click.echo(say("review.quick", count=quick))
    click.echo(say("review.luck", hands=sum(both[0].hands for both in review.totals.values())))


def _totals(each: Totals, say: Strings) -> list[str]:
    return [
        each.name,
        str(each.decisions),
        " / ".join(str(count) for count in each.errors.values()),
        say.bare(each.unit, each.cost),
        say.bare(each.unit, each.rate),
        *(say.bare(each.unit, value, "+") for value in (each.luck, each.skill, each.rest)),
    ]
