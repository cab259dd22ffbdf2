"""`truc solve`: run the solver, show how to open, keep the strategy."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from errno import EACCES, EDQUOT, ENOSPC, EPERM, EROFS
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from games.rules import Rules
from solver.cli.common import (
    game_options,
    in_words,
    json_option,
    numbers,
    parsed_score,
    positive,
    rules_of,
    score_option,
    stored_strategy,
    tree_of,
)
from solver.cli.errors import BAD_FILE, FAILURE, INTERRUPTED, NOT_REACHED, USAGE, Failure
from solver.essential import essential
from solver.paths import usable_threads
from solver.signals import interrupted
from solver.words import percent

if TYPE_CHECKING:
    from solver.cfr import Payoffs, Solver
    from solver.solve import Outcome, Record
    from solver.tree import Tree

ALGORITHMS = (
    "fpdcfr+",
    "dcfr+",
    "dcfr",
    "cfr+",
    "cfr",
    "pcfr+",
    "pdcfr+",
)  # names of solver.cfr.ALGORITHMS, best first
DEFAULT_ACCURACY = (1e-3, 1e-4)  # points per hand; match-winning probability
SMALL_TREE = 20_000  # rows; below, threads wait for each other longer than they work


@click.command(name="solve")
@click.option(
    "--accuracy",
    type=float,
    callback=positive,
    metavar="X",
    help="Stop when the stored strategy's exploitability is at most X points per hand, or at a score X in winning "
    "probability.  [default, if no other limit is given: 1e-3, or 1e-4]",
)
@click.option("--iterations", type=click.IntRange(1, 10**9), metavar="N", help="Stop after N iterations in all.")
@click.option("--seconds", type=float, callback=positive, metavar="S", help="Stop after S seconds of this run.")
@click.option(
    "--algorithm",
    type=click.Choice(ALGORITHMS),
    metavar="NAME",
    help=f"One of {', '.join(ALGORITHMS)}.  [default: {ALGORITHMS[0]}]",
)
@click.option(
    "--threads",
    type=click.IntRange(1, 64),
    metavar="N",
    help="Threads to use; the result does not depend on them.  [default: the cores there are, up to 4]",
)
@click.option("--resume", is_flag=True, help="Go on from the checkpoint of an interrupted run.")
@click.option("--fresh", is_flag=True, help="Start anew although there is a checkpoint, and replace that.")
@click.option("--dry-run", is_flag=True, help="Only say how large the game is and about how long it would take.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Strategy file to write; the checkpoint lies beside it.  [default: NAME.safetensors, NAME-L-D.safetensors]",
)
@score_option
@game_options
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    accuracy: float | None,
    iterations: int | None,
    seconds: float | None,
    algorithm: str | None,
    threads: int | None,
    resume: bool,
    fresh: bool,
    dry_run: bool,
    output: Path | None,
    score: str | None,
    variant: str | None,
    rules: Path | None,
    as_json: bool,
) -> None:
    """Solve a game and write its strategy, with the proof of how good it is.

    The first limit that is reached stops the run.  Ctrl-C saves a checkpoint; `--resume` goes on from it and ends with
    the same bits as an undisturbed run.  Exit code 3 if --accuracy was given and not reached.
    """
    whole = rules_of(variant, rules)
    game, payoffs = _hand(whole, score)
    limits: dict[str, Any] = {"accuracy": accuracy, "iterations": iterations, "seconds": seconds}
    if not any(limits.values()):
        limits["accuracy"] = DEFAULT_ACCURACY[score is not None]
    if resume and fresh:
        raise click.UsageError("--resume and --fresh exclude each other, give one of them")
    name = game.name if score is None else f"{game.name}-{score}"
    file = Path(f"{name}.safetensors") if output is None else output
    checkpoint = file.parent / (file.name.removesuffix(".safetensors") + ".checkpoint")
    if not file.name:
        raise click.UsageError(f"-o {str(file)!r} is no name of a file")
    try:
        earlier = None if dry_run else _check_files(ctx, file, checkpoint, game, payoffs, resume, fresh)
        tree = tree_of(whole, score)
        used = threads or (1 if sum(tree.rows) < SMALL_TREE else usable_threads())
        if dry_run:
            _dry_run(tree, algorithm or ALGORITHMS[0], used, limits, as_json)
            return
        solver, record = _start(tree, payoffs, checkpoint, algorithm, used, resume)

        from solver.cli.progress import Reporter
        from solver.solve import solve, warm_up
    except KeyboardInterrupt as error:
        raise Failure("Interrupted before the first iteration; nothing was written", INTERRUPTED) from error
    if resume and accuracy is None and iterations is None and seconds is None and record.accuracy is not None:
        accuracy = limits["accuracy"] = record.accuracy  # go on to what the run was asked for

    def unsaved(error: OSError) -> None:
        with suppress(OSError):
            name = click.format_filename(checkpoint)
            click.echo(f"Warning: {name} cannot be written: {error.strerror or error}; the run goes on.", err=True)

    try:
        with interruptible() as stopped, Reporter(game.name, limits["accuracy"]) as reporter:
            warm_up()
            outcome = solve(
                solver,
                file,
                **limits,
                checkpoint=checkpoint,
                record=record,
                threads=used,
                score=score,
                stop=lambda: bool(stopped),
                progress=reporter,
                unsaved=unsaved,
            )
    except OSError as error:  # a full disk, most likely
        name = click.format_filename(error.filename or file)
        raise Failure(f"{name} cannot be written: {error.strerror or error}") from error
    if outcome.evaluation is None:
        with suppress(OSError):  # the terminal may be gone
            click.echo(f"Interrupted at {outcome.iterations:,} iterations; go on with: {_resuming(ctx)}", err=True)
        ctx.exit(INTERRUPTED)
    if earlier is not None and earlier < outcome.evaluation.exploitability:
        name = click.format_filename(file)
        click.echo(f"Note: {name} held a better strategy, of exploitability {earlier:.3g}; it is replaced.", err=True)
    _show(whole, file, solver, limits["accuracy"], outcome, as_json)
    if accuracy is not None and outcome.evaluation.exploitability > accuracy:
        name = click.format_filename(checkpoint)
        how = f"; go on with a higher limit and --resume ({name} is kept)" if checkpoint.exists() else ""
        reached = f"{outcome.evaluation.exploitability:.3g}"
        raise Failure(f"the accuracy {accuracy:g} was not reached, but {reached}{how}", NOT_REACHED)


def _hand(rules: Rules, score: str | None) -> tuple[Rules, Payoffs | None]:
    """The rules and payoffs of the hand at a score; None for points.

    Raises click.UsageError, Failure.
    """
    if score is None:
        return essential(rules), None

    from solver.equity import hand_rules
    from solver.scores import NoTableError, equity, hand_payoffs
    from solver.storage import StorageError

    at = parsed_score(rules, score)
    try:
        return hand_rules(rules, at), hand_payoffs(rules, at, equity(rules))
    except NoTableError as error:
        raise click.UsageError(f"--score {score}: {error}") from error
    except StorageError as error:
        raise Failure(str(error), BAD_FILE) from error


def _check_files(
    ctx: click.Context,
    file: Path,
    checkpoint: Path,
    rules: Rules,
    payoffs: Payoffs | None,
    resume: bool,
    fresh: bool,
) -> float | None:
    """Find out before the run what would spoil it at its end, and keep other runs away until then.

    Returns the exploitability of the strategy that will be replaced, if there is one.
    """
    from solver.storage import CHECKPOINT, STRATEGY

    for path in (file, checkpoint):
        try:
            _check_file(ctx, path)
        except OSError as error:
            code = FAILURE if error.errno in (EACCES, EPERM, EROFS, ENOSPC, EDQUOT) else USAGE
            raise Failure(f"{path} cannot be written: {error.strerror or error}", code) from error
    kept = checkpoint.exists()
    if resume and not kept:
        raise click.UsageError(f"there is no checkpoint {checkpoint} to resume from, leave --resume out to start")
    if kept and not (resume or fresh):
        raise click.UsageError(f"{checkpoint} keeps an unfinished run: --resume goes on with it, --fresh starts anew")
    if fresh:
        _check_contents(checkpoint, CHECKPOINT, rules, payoffs)
    stated = _check_contents(file, STRATEGY, rules, payoffs).get("nash_conv")
    return stated / 2 if isinstance(stated, float) else None


def _check_file(ctx: click.Context, path: Path) -> None:
    """A file can be written there, nobody else is at it, and what killed runs left is removed.

    Raises OSError, click.UsageError.
    """
    from solver.files import check_writable, locked, remove_leftovers

    if not path.parent.is_dir():
        raise click.UsageError(f"{path} is in a folder that does not exist")
    if path.exists() and not path.is_file():  # a device would be replaced by a file
        raise click.UsageError(f"{path} is there and not a file, choose another name")
    try:
        ctx.with_resource(locked(path))
    except BlockingIOError as error:
        raise click.UsageError(f"another run is writing {path}, wait for its end or choose another -o") from error
    check_writable(path)
    remove_leftovers(path)


def _check_contents(path: Path, kind: str, rules: Rules, payoffs: Payoffs | None) -> dict[str, Any]:
    """What a file states that will be replaced, if there is one.  Raises click.UsageError if it is of something else
    than this game, and so may not be."""
    from solver.storage import StorageError, check_game

    try:
        return check_game(path, kind, rules, payoffs) if path.exists() and path.stat().st_size else {}
    except StorageError as error:
        raise click.UsageError(f"{error}; it is not replaced, choose another -o or remove it") from error


@contextmanager
def interruptible() -> Iterator[list[int]]:
    """Collects SIGINT, SIGTERM and SIGHUP in a list, empty as long as there was none; a second one acts at once."""
    received: list[int] = [*interrupted]
    before: dict[signal.Signals, Any] = {}

    def receive(number: int, frame: FrameType | None) -> None:
        received.append(number)
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and not (name == "SIGHUP" and signal.getsignal(number) == signal.SIG_IGN):  # nohup
            before[number] = signal.signal(number, receive)
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _start(
    tree: Tree, payoffs: Payoffs | None, checkpoint: Path, algorithm: str | None, threads: int, resume: bool
) -> tuple[Solver, Record]:
    """A new solver, or that of the checkpoint if it is of the same game."""
    from solver import cfr
    from solver.solve import Record
    from solver.storage import StorageError, load_checkpoint

    if not resume:
        return cfr.Solver(tree, payoffs, algorithm=algorithm or ALGORITHMS[0], threads=threads), Record()
    try:
        solver, extra = load_checkpoint(checkpoint, threads)
    except StorageError as error:
        raise Failure(str(error), BAD_FILE) from error
    try:
        record = Record.of(extra)
    except StorageError as error:
        raise Failure(f"{checkpoint}: {error}", BAD_FILE) from error
    if solver.algorithm not in cfr.ALGORITHMS.values():
        raise Failure(f"{checkpoint}: its algorithm is none of this program's", BAD_FILE)
    stored, rules = solver.tree.rules, tree.rules
    if stored.hash != rules.hash or solver.payoffs != (payoffs or cfr.Payoffs.points(rules)):
        other = f"the rules {stored.name!r}" if stored.hash != rules.hash else "other payoffs"
        what = "in points" if payoffs is None else "at a score"
        raise click.UsageError(f"{checkpoint} belongs to {other}, this run is for {rules.name!r} {what}")
    if algorithm is not None and solver.algorithm != cfr.ALGORITHMS[algorithm]:
        raise click.UsageError(f"{checkpoint} belongs to another algorithm than {algorithm!r}, leave --algorithm out")
    return solver, record


def _resuming(ctx: click.Context) -> str:
    """The command that goes on with an interrupted run: the one that was given, and --resume."""
    words = ["truc", "solve"]
    for name, value in ctx.params.items():
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE and name not in ("resume", "fresh"):
            option = next(param.opts[-1] for param in ctx.command.params if param.name == name)
            words += [option] if value is True else [option, str(value)]
    return shlex.join([*words, "--resume"])


def _show(whole: Rules, file: Path, solver: Solver, accuracy: float | None, outcome: Outcome, as_json: bool) -> None:
    """The result, read back from the file."""
    from solver.cfr import ALGORITHMS
    from solver.cli.opening import table
    from solver.cli.output import page_width, print_facts, print_json, print_table, worth
    from solver.opening import openings, raise_share

    strategy, header = stored_strategy(file, None, None)
    result, rules = outcome.evaluation, strategy.tree.rules
    assert result is not None
    found = openings(strategy)
    algorithm = next(name for name, each in ALGORITHMS.items() if each == solver.algorithm)
    if as_json:
        document = numbers(rules.name, header.score, outcome.iterations, result, outcome.seconds)
        reached = None if accuracy is None else result.exploitability <= accuracy
        more: dict[str, Any] = {"algorithm": algorithm, "file": str(file), "accuracy": accuracy, "reached": reached}
        more["history"] = [asdict(point) for point in outcome.history]
        print_json({**document, **more, "opening": [each.json() for each in found]})
        return
    click.echo(f"{rules.name}: {in_words(whole, header.score)}")
    run = f"{outcome.iterations:,} iterations of {algorithm} in {outcome.seconds:.1f} seconds"
    print_facts([*worth(result), ("run", run), ("file", click.format_filename(file))])
    click.echo("\nHow the leader opens\n")
    columns, sections, right = table(found, page_width())
    print_table(columns, sections, right)
    click.echo("\n'leads' is the card led; 8:70 3:30 means the 8 in 70 % and the 3 in 30 % of the cases.")
    if len(rules.ladder) > 1:
        click.echo(f"Over all deals the leader raises first in {percent(raise_share(found))}.", nl=False)
        click.echo("  'after raise' is the card led once the dealer accepts." * ("after raise" in columns))


def _dry_run(tree: Tree, algorithm: str, threads: int, limits: dict[str, Any], as_json: bool) -> None:
    """How large the game is, and how long a short trial makes one expect."""
    from solver.census import census
    from solver.cfr import Solver
    from solver.cli.output import print_facts, print_json
    from solver.solve import estimate, warm_up

    count = census(tree)
    warm_up()
    solver = Solver(tree, algorithm=algorithm, threads=threads)
    arrays = [*solver.regret, *solver.average, *(solver.play if solver.algorithm.predictive else ())]
    memory = sum(array.nbytes for array in arrays)
    expected = estimate(solver, **limits)
    if as_json:
        print_json(
            {
                "variant": tree.rules.name,
                "decision_nodes": count.decisions,
                "information_states": count.information_states,
                "regrets": sum(count.stored_regrets),
                "memory_bytes": memory,
                "algorithm": algorithm,
                "threads": threads,
                "estimated_iterations": expected.iterations,
                "estimated_seconds": round(expected.seconds, 3),
            }
        )
        return
    click.echo(f"{tree.rules.name}: nothing was solved or written")
    when = f"{_long(expected.seconds, 1)} seconds on {threads} thread{'s' * (threads > 1)}"
    print_facts(
        [
            ("public decision nodes", f"{count.decisions:,}"),
            ("information states", f"{count.information_states:,}, {sum(count.choices):,} of them with a choice"),
            ("stored", f"{sum(count.stored_regrets):,} regrets and as many averages"),
            (
                "memory",
                f"{memory / 2**20:,.1f} MiB of arrays, and several times that for a moment to evaluate and store",
            ),
            ("expected", f"about {_long(expected.iterations, 0)} iterations of {algorithm}, {when}"),
            ("", "an estimate from a short trial: within a factor of two or so"),
        ]
    )


def _long(number: float, digits: int) -> str:
    """A number that may be beyond reading out."""
    return f"{number:,.{digits}f}" if number < 1e12 else f"{number:.0e}"
