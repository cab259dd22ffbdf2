"""`truc advise`: what to do with a hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from solver.cli.common import in_words, json_option
from solver.cli.decision import (
    NOTHING,
    PLAYERS,
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
    from games.rules import Rules
    from solver.advise import Advice


@click.command(name="advise")
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
    """Say what to do with HAND, what each action is worth, and why.

    HAND is what was dealt or what is still held, such as "8 8 7"; it belongs to the player whose turn it is after the
    line.  EV is what an action is worth to him if he plays on as well as he can; loss is what it gives away against
    the best action; wins is the chance to win the hand after it if nobody refuses any more.
    """
    adviser, header, line = ask(text, score, strategy, variant, rules)
    with usage():
        advice = adviser.advise(hand, line)

    from solver.cli.output import print_json

    if as_json:
        print_json({**document(adviser, header, advice), **_details(advice)})
    else:
        _show(adviser.rules, advice, header.score)


def _details(advice: Advice) -> dict[str, Any]:
    return {
        "hand": advice.hand,
        "held": advice.held,
        "actions": [
            {"action": each.action, "probability": each.probability, "ev": each.ev, "loss": each.loss, "win": each.win}
            for each in advice.choices
        ],
        "win": advice.win,
        "refusal": advice.refusal,
        "kind": advice.kind,
        "explanation": advice.explanation,
        "case": advice.case,
        "accuracy": advice.accuracy,
    }


def _show(rules: Rules, advice: Advice, score: str | None) -> None:
    from solver.cli.output import print_facts, print_table

    unit = advice.unit
    dealt = "" if advice.held == advice.hand else f" (dealt {advice.hand})"
    click.echo(f"{rules.name}: {in_words(rules, score)}")
    click.echo(f"the {PLAYERS[advice.player]} to act with {advice.held or NOTHING}{dealt}")
    click.echo(f"line: {story(rules, advice.line)}")
    click.echo(f"stake: {stakes(rules, advice.line, advice.stake)}\n")
    rows = [
        [
            each.action,
            percent(each.probability),
            amount(unit, each.ev, "+"),
            amount(unit, each.loss),
            "" if each.win is None else percent(each.win),
        ]
        for each in sorted(advice.choices, key=lambda each: (-each.probability, each.loss))
    ]
    print_table(["action", "probability", "EV", "loss", "wins"], [rows], right=[1, 2, 3, 4])
    facts = [("why", advice.explanation), ("wins", f"{percent(advice.win)} of the time if nobody refuses any more")]
    if advice.refusal is not None:
        facts.append(("a raise", f"the opponent refuses it {percent(advice.refusal)} of the time"))
    facts += [("case", case_in_words(advice.case)), ("accuracy", accuracy_in_words(unit, advice.accuracy))]
    click.echo()
    print_facts(facts)
