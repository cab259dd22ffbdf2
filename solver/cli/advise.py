"""`truc advise`: what to do with a hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from games.notation import format_hand
from solver.cli.common import chosen_language, in_words, json_option, lang_option
from solver.cli.decision import (
    NOTHING,
    PLAYERS,
    Question,
    accuracy_in_words,
    amount,
    ask,
    case_in_words,
    decision_options,
    document,
    stakes,
    story,
    usage,
)
from solver.words import percent

if TYPE_CHECKING:
    from solver.advise import Advice
    from solver.i18n import Strings


@click.command(name="advise")
@click.argument("hand")
@decision_options
@lang_option
@json_option
def command(
    hand: str,
    text: str,
    discards: str,
    score: str | None,
    strategy: Path | None,
    variant: str | None,
    rules: Path | None,
    lang: str | None,
    as_json: bool,
) -> None:
    """Say what to do with HAND, what each action is worth, and why.

    HAND is what was dealt or what is still held, such as "8 8 7"; it belongs to the player whose turn it is after the
    line.  EV is what an action is worth to him if he plays on as well as he can; loss is what it gives away against
    the best action; wins is the chance to win the hand after it if nobody refuses any more.
    """
    say = chosen_language(lang)
    asked = ask(text, discards, score, strategy, variant, rules)
    with usage():
        advice = asked.adviser.advise(hand, asked.line, discards)

    from solver.cli.output import print_json

    if as_json:
        print_json({**document(asked, advice), **details(advice, say)})
    else:
        _show(asked, advice, say)


def details(advice: Advice, say: Strings | None = None) -> dict[str, Any]:
    """The keys of every JSON document about a hand's advice."""
    return {
        "hand": advice.hand,
        "held": advice.held,
        "actions": [
            {
                "action": each.action,
                "probability": each.probability,
                "ev": each.ev,
                "loss": each.loss,
                "win": each.win,
            }
            for each in advice.choices
        ],
        "win": advice.win,
        "refusal": advice.refusal,
        "kind": advice.kind,
        "explanation": advice.explained(say),
        "case": advice.case,
        "accuracy": advice.accuracy,
    }


def _show(asked: Question, advice: Advice, say: Strings) -> None:
    from solver.cli.output import print_facts, print_table

    rules, score, unit = asked.adviser.rules, asked.adviser.score, advice.unit
    dealt = "" if advice.held == advice.hand else f" (dealt {advice.hand})"
    click.echo(f"{rules.name}: {in_words(rules, asked.header.score)}")
    click.echo(f"the {PLAYERS[advice.player]} to act with {advice.held or NOTHING}{dealt}")
    click.echo(f"line: {story(rules, advice.line, score)}")
    if asked.discards:
        click.echo(f"set aside: {format_hand(rules, asked.discards)}")
    click.echo(f"stake: {stakes(rules, advice.line, advice.stake, score)}\n")
    rows = [
        [
            each.action,
            percent(each.probability),
            amount(unit, each.ev, "+"),
            amount(unit, each.loss),
            "" if each.win is None else percent(each.win),
        ]
        for each in sorted(advice.choices, key=lambda each: -each.probability)
    ]
    print_table(["action", "probability", "EV", "loss", "wins"], [rows], right=[1, 2, 3, 4])
    facts = [("why", advice.explained(say))]
    if advice.win is not None:
        facts.append(("wins", f"{percent(advice.win)} of the time if nobody refuses any more"))
    if advice.refusal is not None:
        facts.append(("a raise", f"the opponent refuses it {percent(advice.refusal)} of the time"))
    facts += [("case", case_in_words(advice.case)), ("accuracy", accuracy_in_words(unit, advice.accuracy))]
    click.echo()
    print_facts(facts)
