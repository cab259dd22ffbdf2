"""What the commands share: options, and what they name."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from games.notation import NotationError, describe_score, format_score, parse_score
from games.rules import Rules, RulesError, load_rules, preset, preset_names
from solver.cli.errors import BAD_FILE, Failure
from solver.essential import essential, left_out
from solver.i18n import LANGUAGES, LanguageError, Strings, language, strings
from solver.paths import shipped_for, usable_threads

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


score_option = click.option(
    "--score",
    metavar="L-D",
    help="Score of the match, the leader's (non-dealer's) points first, such as 11-9.  [default: a hand in points]",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
lang_option = click.option(
    "--lang", metavar="CODE", help=f"Language: {', '.join(LANGUAGES)}.  [default: that of LC_ALL or LANG]"
)


def chosen_language(option: str | None) -> Strings:
    """The strings of a language.  Raises click.UsageError."""
    try:
        return strings(language(option))
    except LanguageError as error:
        raise click.UsageError(f"--lang: {error}") from error


def rules_of(variant: str | None, file: Path | None) -> Rules:
    """The rule set that the options name, Le Truc without any.  Raises click.UsageError."""
    if variant is not None and file is not None:
        raise click.UsageError("--variant and --rules exclude each other, give one of them")
    try:
        return load_rules(file) if file is not None else preset(DEFAULT_VARIANT if variant is None else variant)
    except RulesError as error:
        raise click.UsageError(str(error)) from error


def tree_of(rules: Rules, score: str | None = None) -> Tree:
    """The public tree of a rule set's hand, in points or at a score.  Raises click.UsageError if it is too large."""
    from solver.equity import hand_tree
    from solver.nodes import TreeTooLargeError, UnsupportedRulesError
    from solver.tree import Tree

    try:
        return Tree(essential(rules)) if score is None else hand_tree(rules, parsed_score(rules, score))
    except (TreeTooLargeError, UnsupportedRulesError) as error:
        raise click.UsageError(str(error)) from error


def open_strategy(file: Path) -> tuple[Strategy, Header]:
    """Read a strategy file.  Raises Failure."""
    from solver.storage import StorageError, load_strategy

    try:
        return load_strategy(file)
    except StorageError as error:
        raise Failure(str(error), BAD_FILE) from error


def stored_strategy(
    file: Path | None, variant: str | None, rules: Path | None, how: str = "FILE", score: str | None = None
) -> tuple[Strategy, Header]:
    """A strategy file if it is of the game that the options name, by default the one that comes with the program.

    With a score ("L-D") it is that hand's, from what is known of the match, or else solved on the spot.
    how: how the command is given a file.  Raises Failure, click.UsageError.
    """
    wanted = None if variant is None and rules is None and file is not None else rules_of(variant, rules)
    if file is None and score is not None:
        assert wanted is not None
        return _at_score(wanted, score)
    if file is None and wanted is not None:
        file = shipped_for(wanted)
    if file is None:
        name = DEFAULT_VARIANT if wanted is None else wanted.name
        solve = f"truc solve --variant {name}" if rules is None else f"truc solve --rules {rules}"
        raise Failure(f"no strategy for {name!r} comes with the program, give what `{solve}` writes as {how}")
    from solver.lift import lifted

    strategy, header = open_strategy(file)
    stored = strategy.tree.rules
    if score is not None and header.score != score:
        what = "in points" if header.score is None else f"at {header.score}"
        raise click.UsageError(f"{file} is for a hand {what}, but --score says {score!r}")
    if wanted is None or essential(wanted).hash == stored.hash:
        return lifted(strategy, stored), header  # with all offers
    if header.score is not None:  # of a hand without the stakes that change nothing at its score
        from solver.equity import hand_rules, whole_rules

        at = parsed_score(wanted, header.score)
        if hand_rules(wanted, at).hash == stored.hash:
            return lifted(strategy, whole_rules(wanted, at)), header
    raise click.UsageError(f"{file} is for the rules {stored.name!r}, but the options say {wanted.name!r}")


def strategy_to_ask(
    file: Path | None, variant: str | None, rules: Path | None, score: str | None = None
) -> tuple[Strategy, Header, Rules]:
    """As `stored_strategy`, and the rules with what is left out of the strategy's; a hand in points that does not come
    with the program is solved on the spot and kept.  Raises Failure, click.UsageError."""
    wanted = None if variant is None and rules is None and file is not None else rules_of(variant, rules)
    if file is None and score is None and wanted is not None and shipped_for(wanted) is None:
        return *_in_points(wanted), wanted
    strategy, header = stored_strategy(file, variant, rules, "--strategy FILE", score)
    return strategy, header, _full_rules(strategy.tree.rules, header) if wanted is None else wanted


def _full_rules(stored: Rules, header: Header) -> Rules:
    """The rule set that a strategy's rules were made from, if it is one that comes with the program."""
    if stored.name in preset_names():
        from solver.equity import whole_rules

        full = preset(stored.name)
        made = essential(full) if header.score is None else whole_rules(full, parsed_score(full, header.score))
        if made.hash == stored.hash:
            return full
    return stored


def _in_points(rules: Rules) -> tuple[Strategy, Header]:
    from solver.cli.progress import Reporter
    from solver.nodes import TreeTooLargeError
    from solver.scores import QUICK_POINTS, strategy_in_points
    from solver.storage import StorageError

    try:
        with Reporter(f"{rules.name} in points", QUICK_POINTS) as reporter:
            found = strategy_in_points(rules, usable_threads(), reporter)
    except TreeTooLargeError as error:
        raise click.UsageError(str(error)) from error
    except StorageError as error:
        raise Failure(str(error), BAD_FILE) from error
    assert found is not None
    return found


def parsed_score(rules: Rules, text: str) -> tuple[int, int]:
    """A score.  Raises click.UsageError."""
    try:
        return parse_score(rules, text)
    except NotationError as error:
        raise click.UsageError(str(error)) from error


def _at_score(rules: Rules, text: str) -> tuple[Strategy, Header]:
    from solver.cli.progress import Reporter
    from solver.scores import QUICK, NoTableError, strategy_at
    from solver.storage import StorageError

    score = parsed_score(rules, text)
    try:
        with Reporter(f"{rules.name} at {format_score(score)}", QUICK) as reporter:
            found = strategy_at(rules, score, usable_threads(), reporter)
    except NoTableError as error:
        raise click.UsageError(f"--score {text}: {error}") from error
    except StorageError as error:
        raise Failure(str(error), BAD_FILE) from error
    assert found is not None
    return found


def left_out_in_words(rules: Rules, in_match: bool) -> str:
    """What the solved game leaves out, and why; "" if that is nothing."""
    return "; ".join(f"{name}, since {why}" for name, why in left_out(rules, in_match).items())


def in_words(rules: Rules, score: str | None) -> str:
    """What a hand is played for."""
    missing = left_out_in_words(rules, score is not None)
    more = f"; left out: {missing}" if missing else ""
    if score is None:
        return f"one hand, in points (at no particular score of a match){more}"
    return f"one hand at {score}: {describe_score(rules, parsed_score(rules, score))}{more}"


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
