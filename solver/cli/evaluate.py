"""`truc evaluate`: what a strategy is worth."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from solver.cli.common import game_options, json_option, numbers, rules_of, stored_strategy, tree_of
from solver.essential import essential
from solver.paths import usable_threads

if TYPE_CHECKING:
    from solver.strategy import Strategy


@click.command(name="evaluate")
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--uniform", is_flag=True, help="Evaluate playing every legal action equally often, instead of a file.")
@game_options
@json_option
def command(file: Path | None, uniform: bool, variant: str | None, rules: Path | None, as_json: bool) -> None:
    """Evaluate a strategy exactly: its value and the best responses to it.

    FILE is a strategy file as `truc solve` writes it, by default the one that comes with the program.  Its own rules
    count, so --variant and --rules are only needed without FILE.
    """
    if file is not None and uniform:
        raise click.UsageError("FILE and --uniform exclude each other, give one of them")
    strategy, header = _uniform(variant, rules) if uniform else stored_strategy(file, variant, rules)
    start = time.perf_counter()
    result = strategy.evaluate(usable_threads())
    seconds = time.perf_counter() - start

    from solver.cli.output import print_facts, print_json, worth

    game = strategy.tree.rules.name
    if as_json:
        iterations, score = (header.iterations, header.score) if header else (None, None)
        print_json(numbers(game, score, iterations, result, seconds))
        return
    subject = "every legal action equally often" if header is None else f"{header.iterations:,} iterations"
    at = "" if header is None or header.score is None else f" at {header.score}"
    click.echo(f"{game}: one hand{at}, {subject}")
    print_facts(worth(result))


def _uniform(variant: str | None, rules: Path | None) -> tuple[Strategy, None]:
    from solver.strategy import Strategy

    return Strategy.uniform(tree_of(essential(rules_of(variant, rules)))), None
