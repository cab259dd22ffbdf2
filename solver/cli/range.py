"""`truc range`: what the opponent can hold."""

from __future__ import annotations

from pathlib import Path

import click

from games.notation import format_hand
from solver.cli.common import json_option
from solver.cli.decision import (
    NOTHING,
    PLAYERS,
    accuracy_in_words,
    ask,
    case_in_words,
    decision_options,
    document,
    missing,
    opponents,
    range_document,
    range_rows,
    stakes,
    story,
    usage,
)


@click.command(name="range")
@click.argument("hand")
@decision_options
@json_option
def command(
    hand: str,
    text: str,
    discards: str,
    score: str | None,
    strategy: Path | None,
    variant: str | None,
    rules: Path | None,
    as_json: bool,
) -> None:
    """Say what the opponent can hold, given how he has played and the cards in HAND.

    HAND is what was dealt or what is still held, such as "8 8 7"; it belongs to the player whose turn it is after the
    line.  Each row is what the opponent still has in his hand; as text those under 0.05 % are added up, as JSON all
    of them are there.
    """
    asked = ask(text, discards, score, strategy, variant, rules)
    adviser, line = asked.adviser, asked.line

    from solver.advise import resolve
    from solver.cli.output import print_facts, print_json, print_table

    game = adviser.rules
    with usage():
        dealt, held = resolve(game, hand, line, score=adviser.score, discards=asked.discards)
        answer = adviser.at(line, asked.discards)
    h = answer.index(held)
    found = opponents(game, answer, (*held, *asked.discards), answer.opponent[h].tolist())
    if as_json:
        details = {
            "hand": format_hand(game, dealt),
            "held": format_hand(game, held),
            "case": answer.cases[h],
            "accuracy": answer.accuracy,
            "opponent": range_document(found),
        }
        print_json({**document(asked, answer), **details})
        return
    me, other = PLAYERS[answer.player], PLAYERS[1 - answer.player]
    click.echo(f"{game.name}: what the {other} can hold, as the {me} sees it with {format_hand(game, held) or NOTHING}")
    click.echo(f"line: {story(game, line, adviser.score)}")
    if asked.discards:
        click.echo(f"set aside: {format_hand(game, asked.discards)}")
    click.echo(f"stake: {stakes(game, line, answer.stake, adviser.score)}\n")
    print_table(["hand", "probability"], [range_rows(found)], right=[1])
    click.echo()
    facts = [("case", case_in_words(answer.cases[h])), ("accuracy", accuracy_in_words(answer.unit, answer.accuracy))]
    print_facts([*facts, *missing(asked)])
