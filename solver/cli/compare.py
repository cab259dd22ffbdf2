"""`truc compare`: the same numbers by OpenSpiel and by us."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from games.rules import Rules, RulesError
from solver.cli.common import game_options, json_option, positive, rules_of, stored_strategy, tree_of
from solver.cli.errors import Failure
from solver.paths import shipped_for

if TYPE_CHECKING:
    from solver.compare import Comparison, Played, Tell
    from solver.strategy import Strategy

QUICK_HANDS, HANDS = 2_000, 100_000
QUICK_SECONDS, SECONDS = (10.0,), (60.0, 300.0)
ITERATIONS = 100  # of a strategy that is solved here, only to be played


def _ascending(ctx: click.Context, param: click.Parameter, values: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(sorted({value for value in values if positive(ctx, param, value)}))


@click.command(name="compare")
@click.option("--quick", is_flag=True, help="Less of everything: under a minute instead of a quarter of an hour.")
@click.option(
    "--seconds",
    type=float,
    multiple=True,
    callback=_ascending,
    metavar="S",
    help="Give MCCFR and our solver S seconds each; several times to look at each of these.  [default: 60 and 300, "
    "quick 10]",
)
@click.option(
    "--hands",
    type=click.IntRange(2, 10**8),
    metavar="N",
    help="Play N hands through OpenSpiel.  [default: 100,000, quick 2,000]",
)
@click.option(
    "--strategy",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The strategy to be played.  [default: the one that comes with the program, or else one solved briefly]",
)
@game_options
@json_option
def command(
    quick: bool,
    seconds: tuple[float, ...],
    hands: int | None,
    strategy: Path | None,
    variant: str | None,
    rules: Path | None,
    as_json: bool,
) -> None:
    """Compare this program with OpenSpiel, which has the same rules in an implementation of their own.

    Small decks: sizes, values, nash_conv, the policies of CFR and CFR+, and random hands.  The whole game in points:
    hands of a strategy and of random play through OpenSpiel, and OpenSpiel's external-sampling MCCFR beside our solver,
    one thread each.  Exit code 1 if anything disagrees.  It needs OpenSpiel: pip install 'le-truc[openspiel]'.
    """
    try:
        import pyspiel  # noqa: F401
    except ModuleNotFoundError as error:
        raise Failure("truc compare needs OpenSpiel: pip install 'le-truc[openspiel]'") from error
    from solver.cli.output import print_json
    from solver.cli.progress import telling
    from solver.compare import compare

    try:
        with telling() as tell:
            played, whole, source = _to_play(strategy, variant, rules, tell)
            result = compare(
                played,
                rules=whole,
                source=source,
                quick=quick,
                hands=hands or (QUICK_HANDS if quick else HANDS),
                seconds=seconds or (QUICK_SECONDS if quick else SECONDS),
                tell=tell,
            )
    except RulesError as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        print_json(result.json())
    else:
        _show(result)
    if not result.agrees:
        wrong = [deck.name for deck in result.decks if not deck.agrees]
        wrong += ["the hands played"] if not (result.played.agrees and result.random.agrees) else []
        raise Failure(f"OpenSpiel and this program disagree about {', '.join(wrong)}")


def _to_play(
    file: Path | None, variant: str | None, rules: Path | None, tell: Tell
) -> tuple[Strategy, Rules, str]:  # fmt: skip
    """The strategy to be played, all its rules, and where it comes from.  Raises Failure, click.UsageError."""
    from solver.cfr import Payoffs
    from solver.compare import HERE, STORED, solved

    whole = rules_of(variant, rules)
    if file is not None or shipped_for(whole) is not None:
        strategy, _ = stored_strategy(file, variant, rules)
        named = variant is not None or rules is not None
        return strategy, whole if named or file is None else strategy.tree.rules, STORED
    tree = tree_of(whole)
    tell(f"{whole.name}: solving the strategy to be played")
    return solved(tree, Payoffs.points(tree.rules), ITERATIONS), whole, HERE


def _show(result: Comparison) -> None:
    from solver.cli.output import print_facts, print_table
    from solver.compare import AGREE, CFR_ITERATIONS

    click.echo(f"Small decks: the largest difference between OpenSpiel and us (agreement: up to {AGREE:g})\n")
    rows = []
    for deck in result.decks:
        values = max(abs(a - b) for a, b in (worth.value for worth in deck.worths))
        gains = max(abs(a - b) for a, b in (worth.nash_conv for worth in deck.worths))
        numbers = [f"{x:.1e}" for x in (values, gains, *deck.cfr.values())]
        states = " / ".join(f"{number:,}" for number in dict.fromkeys(deck.information_states))
        wrong = len(deck.played.disagreements)
        hands = f"{deck.played.hands:,}" if deck.played.agrees else f"{deck.played.hands:,}, {wrong} wrong"
        rows.append([deck.name, states, str(len(deck.worths)), *numbers, hands])
    columns = ["deck", "states", "policies", "value", "nash_conv", "CFR policy", "CFR+ policy", "hands"]
    print_table(columns, [rows], right=range(1, len(columns)))
    click.echo(f"\nThe policies of CFR and CFR+ are the averages after {CFR_ITERATIONS} iterations on each side.")
    _left_out("small decks", result.left_out["small_decks"])

    race = result.race
    click.echo(f"\n{result.rules.name}: {result.source} played through OpenSpiel")
    print_facts([*_played(result.played, result.unit), *_played(result.random, result.unit, "random ")])
    _left_out("whole game", result.left_out["hands"])
    click.echo(f"\n{result.rules.name}: exploitability in {result.unit} on one thread, by exact best responses\n")
    rows = []
    for theirs, ours in zip(race.openspiel, race.ours, strict=True):
        row = [f"{ours.seconds:.0f} s", f"{theirs.exploitability:.3g}", f"{theirs.iterations:,}"]
        rows.append([*row, f"{ours.exploitability:.2e}", f"{ours.iterations:,}"])
    print_table(["after", "OpenSpiel's MCCFR", "iterations", "ours", "iterations"], [rows], right=range(5))
    level = race.level
    click.echo(
        f"\nOurs was as good as OpenSpiel's last after {level.seconds:.3g} s, in iteration {level.iterations:,}.\n"
        "An iteration of MCCFR samples a hand for each player; it is in C++, the rules of the game in Python."
    )


def _played(played: Played, unit: str, kind: str = "") -> list[tuple[str, str]]:
    return [
        (f"{kind}hands", f"{played.hands:,}, with {played.decisions:,} decisions: who acts, legal actions, payoffs"),
        ("disagreements", "; ".join(played.disagreements[:3]) or "none"),
        ("mean payoff", f"{played.mean:+.4f} ± {played.error:.4f} {unit} to the leader"),
        ("exact value", f"{played.value:+.6f}, which is {abs(played.sigmas):.1f} standard errors away"),
    ]


def _left_out(where: str, names: dict[str, str]) -> None:
    for name, why in names.items():
        click.echo(f"Left out of the {where}: {name}, since {why}.")
