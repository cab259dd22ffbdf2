"""What the commands share: options, and what they name."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from games.rules import Rules, RulesError, load_rules, preset, preset_names
from solver.cli.errors import BAD_FILE, Failure
from solver.paths import shipped_strategy

if TYPE_CHECKING:
    from solver.best_response import Evaluation
    from solver.storage import Header
    from solver.strategy import Strategy
    from solver.tree import Tree

DEFAULT_VARIANT = "le-truc"


def positive(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    """A callback for options of type float: finite and above 0."""
    if value is not None and not 0 < value < math.inf:
        raise click.BadParameter(f"{value!r} must be a number above 0, such as 1e-3.")
    return value


def game_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--variant and --rules, which go to `rules_of`."""
    variants = ", ".join(preset_names())
    variant = click.option("--variant", metavar="NAME", help=f"Rule set: {variants}.  [default: {DEFAULT_VARIANT}]")
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    rules = click.option("--rules", type=file, metavar="FILE", help="Rule set of your own, a TOML file.")
    return variant(rules(command))


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")


def rules_of(variant: str | None, file: Path | None) -> Rules:
    """The rule set that the options name, Le Truc without any.  Raises click.UsageError."""
    if variant is not None and file is not None:
        raise click.UsageError("--variant and --rules exclude each other, give one of them")
    try:
        return load_rules(file) if file is not None else preset(DEFAULT_VARIANT if variant is None else variant)
    except RulesError as error:
        raise click.UsageError(str(error)) from error


def tree_of(rules: Rules) -> Tree:
    """The public tree.  Raises click.UsageError if it is too large."""
    from solver.tree import Tree, TreeTooLargeError

    try:
        return Tree(rules)
    except TreeTooLargeError as error:
        raise click.UsageError(str(error)) from error


def open_strategy(file: Path) -> tuple[Strategy, Header]:
    """Read a strategy file.  Raises Failure."""
    from solver.storage import StorageError, load_strategy

    try:
        return load_strategy(file)
    except StorageError as error:
        raise Failure(str(error), BAD_FILE) from error


def stored_strategy(
    file: Path | None, variant: str | None, rules: Path | None, how: str = "FILE"
) -> tuple[Strategy, Header]:
    """A strategy file, by default the one that comes with the program, if it is of the game that the options name.

    how: how the command is given a file.  Raises Failure, click.UsageError.
    """
    wanted = None if variant is None and rules is None and file is not None else rules_of(variant, rules)
    if file is None and wanted is not None:
        same = (name for name in preset_names() if preset(name).hash == wanted.hash)  # whatever the rules are called
        file = next((found for found in map(shipped_strategy, same) if found is not None), None)
    if file is None:
        name = DEFAULT_VARIANT if wanted is None else wanted.name
        solve = f"truc solve --variant {name}" if rules is None else f"truc solve --rules {rules}"
        raise Failure(f"no strategy for {name!r} comes with the program, give what `{solve}` writes as {how}")
    strategy, header = open_strategy(file)
    stored = strategy.tree.rules
    if wanted is not None and wanted.hash != stored.hash:
        raise click.UsageError(f"{file} is for the rules {stored.name!r}, but the options say {wanted.name!r}")
    return strategy, header


def numbers(
    variant: str, score: str | None, iterations: int | None, result: Evaluation, seconds: float
) -> dict[str, Any]:
    """The keys of every JSON document about a strategy's worth."""
    return {
        "variant": variant,
        "score": score,
        "unit": result.unit,
        "iterations": iterations,
        "value": result.value,
        "value_interval": list(result.interval),
        "best_response": list(result.best_response),
        "nash_conv": result.nash_conv,
        "exploitability": result.exploitability,
        "seconds": round(seconds, 3),
    }
