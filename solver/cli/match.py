"""`truc match`: the whole match as a game of its own."""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from games.notation import format_score
from games.rules import Rules
from solver.cli.common import game_options, json_option, parsed_score, positive, rules_of, score_option
from solver.cli.errors import BAD_FILE, FAILURE, INTERRUPTED, NOT_REACHED, USAGE, Failure
from solver.cli.evaluate import against_every_action, every_action_option, may
from solver.cli.solve import ALGORITHMS, interruptible
from solver.paths import usable_threads

if TYPE_CHECKING:
    from solver.equity import Score, Worth
    from solver.match_run import Store, Workers
    from solver.strategy import Strategy

DEFAULT_ACCURACY = 1e-4
WARMING = 4  # scores that are solved before an estimate is worth anything

folder_argument = click.argument("folder", required=False, type=click.Path(file_okay=False, path_type=Path))


@click.group(name="match")
def command() -> None:
    """The match to the target: every score is a hand whose payoffs are match-winning probabilities."""


@command.command(name="solve")
@click.option(
    "--accuracy",
    type=float,
    callback=positive,
    default=DEFAULT_ACCURACY,
    show_default=True,
    metavar="X",
    help="Exploitability of the whole match, in match-winning probability.",
)
@click.option(
    "--algorithm", type=click.Choice(ALGORITHMS), default=ALGORITHMS[0], show_default=True, metavar="NAME",
    help=f"One of {', '.join(ALGORITHMS)}.",
)  # fmt: skip
@click.option(
    "--workers",
    type=click.IntRange(1, 256),
    metavar="N",
    help="Processes; the result does not depend on them.  [default: the cores there are]",
)
@click.option("--ray", metavar="ADDRESS", help="Run on a Ray cluster; 'local' starts one.  Needs the extra cluster.")
@click.option("--fresh", is_flag=True, help="Start anew although the folder has a match already.")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder for the strategies and match.json.  [default: in the user's cache folder, where --score finds it]",
)
@game_options
@json_option
@click.pass_context
def solve(
    ctx: click.Context,
    accuracy: float,
    algorithm: str,
    workers: int | None,
    ray: str | None,
    fresh: bool,
    output: Path | None,
    variant: str | None,
    rules: Path | None,
    as_json: bool,
) -> None:
    """Solve every score of the match, the last ones first.

    A run that was interrupted or killed goes on where it was when it is started again, and ends with the same bits.
    """
    game = rules_of(variant, rules)
    if workers is not None and ray is not None:
        raise click.UsageError("--workers and --ray exclude each other, give one of them")
    folder = _default(game) if output is None else output

    from solver.files import locked, remove_leftovers
    from solver.match import AccuracyError
    from solver.match_run import TABLE, WorkerError, solve_match

    try:
        folder.mkdir(parents=True, exist_ok=True)
        ctx.with_resource(locked(folder / TABLE))
        for file in (folder / TABLE, *folder.glob("*.safetensors")):
            remove_leftovers(file)
    except BlockingIOError as error:
        raise Failure(f"another run is solving {folder}, wait for its end or choose another -o", USAGE) from error
    except OSError as error:
        raise Failure(f"{folder} cannot be written: {error.strerror or error}", FAILURE) from error
    store = _store(folder, game, accuracy, algorithm, fresh)
    started = time.perf_counter()
    with interruptible() as stopped, _telling(game, store) as told:
        try:
            # The workers are made only now: what they inherit about signals is settled.
            done = store.complete or solve_match(store, _workers(workers, ray), lambda: bool(stopped), told)
        except AccuracyError as error:
            raise Failure(str(error), NOT_REACHED) from error
        except (ArithmeticError, WorkerError) as error:
            raise Failure(f"{error}; {folder} keeps what is solved") from error
        except OSError as error:
            raise Failure(f"{error.filename or folder} cannot be written: {error.strerror or error}") from error
    if not done:
        count = f"{len(store.entries)} of {game.target**2} scores are kept in {folder}"
        raise Failure(f"Interrupted; {count}, the same command goes on with them", INTERRUPTED)
    _show(game, store.known, as_json, {"folder": str(folder), "seconds": round(time.perf_counter() - started, 1)})


@command.command(name="table")
@folder_argument
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print Markdown tables.")
@game_options
@json_option
def table(
    folder: Path | None, as_csv: bool, as_markdown: bool, variant: str | None, rules: Path | None, as_json: bool
) -> None:
    """Show the match equity table: the winning probability at every score, with proved bounds.

    FOLDER is one that `truc match solve` wrote; by default the user's own match, else the table that comes with the
    program.  As CSV: leader, dealer (points before the hand), value, lower, upper (the leader's probabilities).
    """
    if as_csv + as_markdown + as_json > 1:
        raise click.UsageError("--csv, --markdown and --json exclude each other, give one of them")
    game, known = _known(folder, variant, rules)
    if as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(["leader", "dealer", "value", "lower", "upper"])
        for score in sorted(known):
            writer.writerow([*score, *_numbers(known[score])])
        return
    _show(game, known, as_json, {}, as_markdown)


@command.command(name="evaluate")
@folder_argument
@every_action_option
@game_options
@json_option
def evaluate(folder: Path | None, every_action: bool, variant: str | None, rules: Path | None, as_json: bool) -> None:
    """Compute the bounds of a solved match again, from the strategies in FOLDER.

    Exact best responses of each side to the whole match, hand by hand from the end.  Exit code 4 if other numbers
    come out than the folder states.
    """
    from solver.cli.progress import telling
    from solver.match import evaluate_match
    from solver.match_run import open_store
    from solver.storage import StorageError

    given = folder if folder is not None else _default(rules_of(variant, rules))
    try:
        store = open_store(given)
        if not store.complete:
            found, all_of_them = len(store.entries), store.rules.target**2
            raise Failure(f"{given} has only {found} of {all_of_them} scores, `truc match solve` goes on with it")
        with telling() as tell:
            name, count = store.rules.name, store.rules.target**2
            known = evaluate_match(
                store.rules,
                _answering_all(store) if every_action else store.strategy,
                usable_threads(),
                lambda done: tell(f"{name}: {done} of {count} scores evaluated"),
            )
    except StorageError as error:
        raise Failure(str(error), BAD_FILE) from error
    stated = store.known
    off = max(abs(x - y) for score in known for x, y in zip(known[score], stated[score], strict=True))
    more = {"folder": str(given), "difference": off}
    if every_action:
        more["every_action"] = True if as_json else may(store.rules)
    _show(store.rules, known, as_json, more)
    if off > 1e-12:
        raise Failure(f"{given} states other numbers than come out, by up to {off:.2g}", BAD_FILE)


def _answering_all(store: Store) -> Callable[[Score], Strategy]:
    """The strategies of a match in the game with every action."""
    return lambda score: against_every_action(store.strategy(score), store.rules)


@command.command(name="takepoint")
@score_option
@game_options
@json_option
def takepoint(score: str | None, variant: str | None, rules: Path | None, as_json: bool) -> None:
    """Show how sure of the hand one must be to accept a raise.

    The chance to win the hand from which accepting is at least as good as refusing, if no more raises come. Where the
    rules have a remainder, it is a raise to the match; where a score allows no raises, there is nothing to show.
    """
    from solver.cli.output import print_json, print_table
    from solver.takepoint import calls, take_point

    wanted = None if score is None else parsed_score(rules_of(variant, rules), score)
    game, known = _known(None, variant, rules)
    found: list[tuple[str, str, int, int | str, float | None]] = []
    for at in sorted(known) if wanted is None else [wanted]:
        for answerer, seat in enumerate(("leader", "dealer")):
            for call in calls(game, at):
                chance = take_point(game, at, answerer, call.level, known, call.word)
                raised = call.to if call.raised is None else call.raised
                found.append((format_score(at), seat, call.stake, raised, chance))
    if as_json:
        names = ("score", "answerer", "stake", "raised", "chance")
        points = [dict(zip(names, point, strict=True)) for point in found]
        print_json({"variant": game.name, "score": score, "unit": "chance to win the hand", "take_points": points})
        return
    rows = [
        [at, seat, f"{stake} to {raised}", "any" if chance is None else f"{chance:.1%}"]
        for at, seat, stake, raised, chance in found
    ]
    click.echo(f"{game.name}: the chance to win the hand from which to accept a raise, if no more raises come\n")
    print_table(["score", "answerer", "raise", "needs"], [rows], right=[3])


def _default(rules: Rules) -> Path:
    from solver.scores import match_folder

    folder = match_folder(rules)
    if folder is None:
        raise click.UsageError("there is no cache folder, give the folder of the match")
    return folder


def _store(folder: Path, rules: Rules, accuracy: float, algorithm: str, fresh: bool) -> Store:
    """The match in a folder as far as it is solved, or a new one.  Raises Failure, click.UsageError."""
    from solver.match_run import TABLE, Store, open_store
    from solver.storage import StorageError

    if fresh or not (folder / TABLE).is_file():
        return Store(folder, rules, accuracy, algorithm, {})
    try:
        store = open_store(folder)
    except StorageError as error:
        raise Failure(f"{error}; --fresh starts anew", BAD_FILE) from error
    if store.rules.hash != rules.hash:
        raise click.UsageError(f"{folder} has a match by the rules {store.rules.name!r}, choose another -o")
    if (store.accuracy, store.algorithm) != (accuracy, algorithm):
        kept = f"{store.accuracy:g} by {store.algorithm}"
        raise click.UsageError(f"{folder} has a match to the accuracy {kept}: choose another -o, or --fresh")
    store.check()
    return store


def _workers(count: int | None, ray: str | None) -> Workers:
    from solver.match_run import LocalWorkers, RayWorkers

    if ray is None:
        return LocalWorkers(count or usable_threads())
    try:
        return RayWorkers(ray)
    except ModuleNotFoundError as error:
        raise click.UsageError('Ray is not installed: pip install "le-truc[cluster]"') from error
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise click.UsageError(f"no Ray cluster answers at {ray!r}: {error}") from error


def _known(folder: Path | None, variant: str | None, file: Path | None) -> tuple[Rules, dict[Score, Worth]]:
    """The rules and what is known of their match.  Raises Failure, click.UsageError."""
    from solver.match_run import open_store
    from solver.scores import NoTableError, equity
    from solver.storage import StorageError

    try:
        if folder is None:
            game = rules_of(variant, file)
            return game, equity(game)
        store = open_store(folder)
    except NoTableError as error:
        raise click.UsageError(str(error)) from error
    except StorageError as error:
        raise Failure(str(error), BAD_FILE) from error
    if not store.complete:
        raise Failure(f"{folder} has only {len(store.entries)} of {store.rules.target**2} scores, go on solving it")
    return store.rules, store.known


def _numbers(worth: Worth) -> list[float]:
    return [worth.value, worth.lower, worth.upper]


def _show(
    rules: Rules, known: Mapping[Score, Worth], as_json: bool, more: dict[str, Any], as_markdown: bool = False
) -> None:
    from solver.cli.output import print_facts, print_json, print_table
    from solver.scores import table_document

    document = table_document(rules, known)
    if as_json:
        print_json({**document, **more})
        return
    points = range(rules.target)
    head = ["leader \\ dealer", *map(str, points)]
    leads = [[str(a), *(f"{100 * known[a, b].value:.1f}" for b in points)] for a in points]
    deals = [[str(b), *(f"{100 * (1 - known[a, b].value):.1f}" for a in points)] for b in points]
    widest = max(worth.upper - worth.lower for worth in known.values())
    titles = (
        f"{rules.name}: the leader's (non-dealer's) chance to win the match to {rules.target}, in percent",
        f"{rules.name}: the dealer's chance, in percent",
    )
    for title, rows, corner in ((titles[0], leads, head[0]), (titles[1], deals, "dealer \\ leader")):
        click.echo(f"{title}\n")
        if as_markdown:
            click.echo("| " + " | ".join([corner, *head[1:]]) + " |")
            click.echo("|" + " ---: |" * len(head))
            for row in rows:
                click.echo("| " + " | ".join(row) + " |")
        else:
            print_table([corner, *head[1:]], [rows], right=list(range(len(head))))
        click.echo()
    leader, dealer = (f"{100 * gain:.2g} %" for gain in document["gains"])
    start = known[0, 0]
    interval = f"between {100 * start.lower:.4f} and {100 * start.upper:.4f}"
    print_facts(
        [
            ("at 0-0", f"{100 * start.value:.4f} % to the leader, proved {interval}"),
            ("bounds", f"at most {100 * widest:.2g} % apart at any score"),
            ("best response", f"a perfect leader of the first hand would gain {leader}, a perfect dealer {dealer}"),
            ("exploitability", f"{document['exploitability']:.3g} of a match (half of what both could gain)"),
            *((name, str(value)) for name, value in more.items()),
        ]
    )


@contextmanager
def _telling(rules: Rules, store: Store) -> Iterator[Callable[[Store, set[Score]], None]]:
    """A function that tells how far a run is, with an estimate of the time left."""
    from solver.cli.progress import telling

    weights, start = _weights(rules), time.perf_counter()
    before = sum(weights[score] for score in store.entries)
    first = len(store.entries)

    with telling() as tell:

        def told(store: Store, running: set[Score]) -> None:
            done, seconds = len(store.entries), time.perf_counter() - start
            text = f"{rules.name}: {done} of {rules.target**2} scores, {seconds:.0f} s"
            if done - first >= WARMING:
                work = sum(weights[score] for score in store.entries)
                left = seconds * (sum(weights.values()) - work) / max(work - before, 1e-9)
                text += f", about {left:.0f} s left"
            if running:
                text += f", at {' '.join(format_score(score) for score in sorted(running))}"
            tell(text)

        yield told


def _weights(rules: Rules) -> dict[Score, float]:
    """How much work a score is, about: in proportion to its hand's regrets."""
    from solver.equity import hand_tree, scores

    return {score: float(sum(hand_tree(rules, score).rows)) for score in scores(rules)}
