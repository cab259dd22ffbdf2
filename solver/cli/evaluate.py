"""`truc evaluate`: what a strategy is worth."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from games.rules import Rules, preset, preset_names
from solver.cli.common import game_options, json_option, numbers, parsed_score, rules_of, stored_strategy, tree_of
from solver.essential import essential
from solver.paths import usable_threads

if TYPE_CHECKING:
    from solver.storage import Header
    from solver.strategy import Strategy

every_action_option = click.option(
    "--every-action",
    is_flag=True,
    help="Let a best responder also raise after his card and fold, if the rules have that; solving leaves it out.",
)


@click.command(name="evaluate")
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--uniform", is_flag=True, help="Evaluate playing every legal action equally often, instead of a file.")
@every_action_option
@game_options
@json_option
def command(
    file: Path | None, uniform: bool, every_action: bool, variant: str | None, rules: Path | None, as_json: bool
) -> None:
    """Evaluate a strategy exactly: its value and the best responses to it.

    FILE is a strategy file as `truc solve` writes it, by default the one that comes with the program.  Its own rules
    count, so --variant and --rules are only needed without FILE.
    """
    if file is not None and uniform:
        raise click.UsageError("FILE and --uniform exclude each other, give one of them")
    if every_action and uniform:
        raise click.UsageError("--every-action and --uniform exclude each other, give one of them")
    strategy, header = _uniform(variant, rules) if uniform else stored_strategy(file, variant, rules)
    if every_action:
        assert header is not None
        strategy = against_every_action(strategy, _whole_rules(strategy, header, file, variant, rules))
    start = time.perf_counter()
    result = strategy.evaluate(usable_threads())
    seconds = time.perf_counter() - start

    from solver.cli.output import print_facts, print_json, worth

    game = strategy.tree.rules.name
    if as_json:
        iterations, score = (header.iterations, header.score) if header else (None, None)
        more = {"every_action": True} if every_action else {}
        print_json({**numbers(game, score, iterations, result, seconds), **more})
        return
    subject = "every legal action equally often" if header is None else f"{header.iterations:,} iterations"
    at = "" if header is None or header.score is None else f" at {header.score}"
    click.echo(f"{game}: one hand{at}, {subject}{f', {may(strategy.tree.rules)}' if every_action else ''}")
    print_facts(worth(result))


def _uniform(variant: str | None, rules: Path | None) -> tuple[Strategy, None]:
    from solver.strategy import Strategy

    return Strategy.uniform(tree_of(rules_of(variant, rules))), None


def against_every_action(strategy: Strategy, rules: Rules) -> Strategy:
    """A stored strategy in the game with every action of `rules` that a tree has.  Raises click.UsageError."""
    from solver.complete import completed
    from solver.nodes import TreeTooLargeError

    try:
        return completed(strategy, rules)
    except TreeTooLargeError as error:
        raise click.UsageError(f"--every-action: {error}") from error


def may(rules: Rules) -> str:
    """What a best responder may do that solving leaves out, in words."""
    extra = ["raise after his card"] if "after" in rules.raise_when else []
    extra += ["fold"] if rules.fold else []
    return f"a best responder may {' and '.join(extra)}" if extra else "the rules have no other actions"


def _whole_rules(
    strategy: Strategy, header: Header, file: Path | None, variant: str | None, rules: Path | None
) -> Rules:
    """The rules that a strategy's hand is the essential one of.  Raises click.UsageError.

    A file does not say what was left out: without options they are the preset's of the same name.
    """
    if file is None or variant is not None or rules is not None:
        return rules_of(variant, rules)
    from solver.equity import hand_rules

    hand = strategy.tree.rules
    if hand.name in preset_names():
        whole = preset(hand.name)
        score = None if header.score is None else parsed_score(whole, header.score)
        if hand.hash == (essential(whole) if score is None else hand_rules(whole, score)).hash:
            return whole
    raise click.UsageError(f"--every-action: {file} does not say what was left out, give --rules or --variant too")
