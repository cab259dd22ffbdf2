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
    adviser, header, line = ask(text, score, strategy, variant, rules)

    from solver.advise import resolve
    from solver.cli.output import print_facts, print_json, print_table

    game = adviser.rules
    with usage():
        dealt, held = resolve(game, hand, line)
        answer = adviser.at(line)
    h = answer.index(held)
    found = opponents(game, answer, held, answer.opponent[h].tolist())
    if as_json:
        details = {
            "hand": format_hand(game, dealt),
            "held": format_hand(game, held),
            "case": answer.cases[h],
            "accuracy": answer.accuracy,
            "opponent": range_document(found),
        }
        print_json({**document(adviser, header, answer), **details})
        return
    me, other = PLAYERS[answer.player], PLAYERS[1 - answer.player]
    click.echo(f"{game.name}: what the {other} can hold, as the {me} sees it with {format_hand(game, held) or NOTHING}")
    click.echo(f"line: {story(game, line)}")
    click.echo(f"stake: {stakes(game, line, answer.stake)}\n")
    print_table(["hand", "probability"], [range_rows(found)], right=[1])
    click.echo()
    facts = [("case", case_in_words(answer.cases[h])), ("accuracy", accuracy_in_words(answer.unit, answer.accuracy))]
    print_facts(facts)
