"""`truc variants`: the rule sets that come with the program."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from games.rules import Rules, preset, preset_names
from solver.cli.common import DEFAULT_VARIANT, json_option
from solver.essential import left_out
from solver.paths import shipped_strategy


@click.command(name="variants")
@json_option
def command(as_json: bool) -> None:
    """List the rule sets, their differences, what is exact and what is left out."""
    from solver.cli.output import page_width, print_facts, print_json, print_table

    names = sorted(preset_names(), key=lambda name: (name != DEFAULT_VARIANT, name))
    rules = [preset(name) for name in names]
    if as_json:
        print_json({"variants": [_document(each) for each in rules], "exact": EXACT, "left_out": LEFT_OUT})
        return
    columns = [
        "variant",
        "cards, weakest first",
        "order",
        "hand",
        "stakes",
        "all tricks tied",
        "more rules",
        "strategy",
    ]
    if page_width() < MIN_PAGE:
        for each in rules:
            print_facts(list(zip(columns, _row(each), strict=True)))
            click.echo()
    else:
        print_table(columns, [[_row(each) for each in rules]], right=[3])
        click.echo()
    click.echo("circular: the first rank beats the last one and loses to all others")
    click.echo(f"exact: {EXACT}\nleft out: {LEFT_OUT}")
    for each in rules:
        for name, why in left_out(each).items():
            where = "hands" if name in left_out(each, in_match=True) else "hands in points"
            click.echo(f"left out of {where} of {each.name}: {name}, since {why}")
    click.echo(f"left out at a score of a match: {AT_A_SCORE}")
    click.echo(f"what changes no value: {PROOF}")


MIN_PAGE = 80  # columns; on fewer the table would break its words
EXACT = "hands and matches of two players, every card and every raise; values are bounded by exact best responses"
LEFT_OUT = "games for four players"
AT_A_SCORE = (
    "stakes beyond one that wins the match for either side, since they are equal; and with a remainder a second raise "
    "of whoever wins the match with the stake as it is, a raise against him that is not for the match, and the "
    "remainder where the next stake wins the match for either side, since another action is as good"
)
PROOF = (
    "who folds could play on and refuse everything; a redeal or the one-card hand needs both sides, and either can "
    "have the game without it; a raise after the card can be answered as if it had come before.  Advice is for all "
    "actions."
)
OTHER_RULES = {
    "remainder": "remainder",
    "fold": "fold",
    "redeal": "redeal",
    "decision_before_target": "decision before the target",
    "one_card": "one-card hand",
}


def _document(rules: Rules) -> dict[str, Any]:
    default = asdict(preset(DEFAULT_VARIANT))
    fields = asdict(rules)
    file = shipped_strategy(rules.name)
    return {
        **fields,
        "hash": rules.hash,
        "differs_in": [key for key, value in fields.items() if key != "name" and value != default[key]],
        "left_out": left_out(rules),
        "left_out_in_match": left_out(rules, in_match=True),
        "strategy": None if file is None else str(file),
    }


def _more(rules: Rules) -> list[str]:
    after = ["raise after the card"] if "after" in rules.raise_when else []
    return after + [name for field, name in OTHER_RULES.items() if getattr(rules, field)]


def _row(rules: Rules) -> list[str]:
    winner = {"nobody": "nobody scores", "leader": "leader wins", "dealer": "dealer wins"}[rules.all_tied]
    return [
        rules.name,
        f"{' '.join(rules.ranks)} ({rules.n_cards})",
        rules.order,
        str(rules.hand_size),
        " ".join(map(str, rules.ladder)),
        winner,
        ", ".join(_more(rules)) or "none",
        "none yet" if shipped_strategy(rules.name) is None else "included",
    ]
