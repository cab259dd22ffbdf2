"""A solving run: iterate until it is good enough, prove how good, store it; to be interrupted and resumed at will.

Everything that is stored depends on the run's own results only: where it is evaluated and where it stops are decided
by iteration numbers and exact evaluations, never by the clock, which only decides about chunks, progress and
checkpoints.  (`seconds`, a limit of wall time, is the exception that the user asks for.)
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from games.rules import Rules
from solver.best_response import Evaluation, Evaluator
from solver.cfr import Solver
from solver.storage import NONSENSE, StorageError, real, save_checkpoint, save_strategy, whole
from solver.strategy import Strategy
from solver.tree import Tree

FIRST_EVALUATION = 50
CHUNK_SECONDS = 0.15  # one native call, which nothing can interrupt
CHECKPOINT_SECONDS = 10.0
MOST = 1e18  # iterations that an estimate says

Reason = Literal["accuracy", "iterations", "seconds", "stopped"]


@dataclass(frozen=True, slots=True)
class Point:
    """Exploitability of the average strategy after some iterations; seconds of work until then, all runs together."""

    iterations: int
    exploitability: float
    seconds: float


@dataclass(slots=True)
class Record:
    """What a run keeps beside the solver's arrays, in its checkpoints too.

    next_evaluation: an iteration number; history: the evaluations so far; seconds: of work, all runs together;
    accuracy: what the run was asked for.
    """

    next_evaluation: int = FIRST_EVALUATION
    history: list[Point] = field(default_factory=list)
    seconds: float = 0.0
    accuracy: float | None = None

    @classmethod
    def of(cls, extra: dict[str, Any]) -> Record:
        """What a checkpoint kept.  Raises StorageError."""
        try:
            history = [Point(**point) for point in extra["history"]]
            for point in history:
                whole(point.iterations)
                real(point.exploitability, -1.0, 1e6)
                real(point.seconds, 0.0, 1e12)
            following, accuracy = whole(extra["next_evaluation"]), extra.get("accuracy")
            if following > (2 * history[-1].iterations + 1 if history else FIRST_EVALUATION):
                raise ValueError("it would not be evaluated for too long")
            accuracy = None if accuracy is None else real(accuracy, math.ulp(0.0), sys.float_info.max)
            return cls(following, history, real(extra["seconds"], 0.0, 1e12), accuracy)
        except NONSENSE as error:
            raise StorageError("the checkpoint does not say how far its run had come") from error


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is; `latest` is its last evaluation, and `new` if it is reported for the first time."""

    iterations: int
    seconds: float
    latest: Point | None
    new: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended; `evaluation` is that of the strategy as stored, None if it was stopped and stored nothing."""

    reason: Reason
    iterations: int
    seconds: float
    history: list[Point]
    evaluation: Evaluation | None


def solve(
    solver: Solver,
    file: Path,
    *,
    accuracy: float | None = None,
    iterations: int | None = None,
    seconds: float | None = None,
    checkpoint: Path | None = None,
    record: Record | None = None,
    threads: int = 1,
    score: str | None = None,
    stop: Callable[[], bool] = lambda: False,
    progress: Callable[[Progress], None] = lambda _: None,
    unsaved: Callable[[OSError], None] = lambda _: None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> Outcome:
    """Iterate until the first of three limits, and write the average strategy to `file`.

    accuracy: exploitability of the strategy as stored; iterations: of the solver, earlier runs included; seconds: of
    wall time, this run only.  checkpoint: written every `checkpoint_seconds` and when `stop` says so, removed at the
    end unless the accuracy was not reached; record: the `Record` of the checkpoint that `solver` comes from; unsaved:
    told once if a checkpoint cannot be written, which does not end the run.
    Raises OSError if the strategy cannot be written, or the checkpoint of a run that is stopped.
    """
    record = Record() if record is None else record
    record.accuracy = accuracy
    earlier, began = record.seconds, time.perf_counter()
    saved, chunk, warned = began, 1, False
    evaluate = Evaluator(solver.tree, solver.payoffs, threads)

    def keep() -> None:
        if checkpoint is not None:
            save_checkpoint(checkpoint, solver, asdict(record))

    def try_to_keep() -> None:
        nonlocal warned
        try:
            keep()
        except OSError as error:  # a full disk, perhaps: what has been computed is still here
            if not warned:
                unsaved(error)
            warned = True

    def store() -> Evaluation:
        return save_strategy(file, Strategy.of(solver), solver.algorithm, solver.iterations, score, threads)

    def finish(reason: Reason, stored: Evaluation) -> Outcome:
        if accuracy is not None and stored.exploitability > accuracy:
            try_to_keep()
        elif checkpoint is not None:
            checkpoint.unlink(missing_ok=True)
        return Outcome(reason, solver.iterations, record.seconds, record.history, stored)

    while True:
        elapsed = time.perf_counter() - began
        record.seconds = earlier + elapsed
        new = solver.iterations >= record.next_evaluation
        if new:
            exploitability = evaluate(solver.average).exploitability
            record.history.append(Point(solver.iterations, exploitability, record.seconds))
            record.next_evaluation = next_evaluation(solver.iterations, exploitability, accuracy)
        progress(Progress(solver.iterations, record.seconds, record.history[-1] if record.history else None, new))
        if new and accuracy is not None and exploitability <= accuracy:
            stored = store()  # rounding the probabilities costs a little: what counts is what is in the file
            if stored.exploitability <= accuracy:
                return finish("accuracy", stored)
        if iterations is not None and solver.iterations >= iterations:
            return finish("iterations", store())
        if seconds is not None and elapsed >= seconds:
            return finish("seconds", store())
        if stop():
            keep()
            return Outcome("stopped", solver.iterations, record.seconds, record.history, None)
        if time.perf_counter() - saved >= checkpoint_seconds:
            try_to_keep()
            saved = time.perf_counter()
        until = record.next_evaluation if iterations is None else min(record.next_evaluation, iterations)
        start = time.perf_counter()
        done = min(chunk, until - solver.iterations)
        solver.step(done)
        chunk = _next_chunk(chunk, done, time.perf_counter() - start)


def next_evaluation(iterations: int, exploitability: float, accuracy: float | None) -> int:
    """When to evaluate next: nearer, the nearer the target; evaluations then cost little, and little is overshot."""
    ratio = 1.5 if accuracy is None else math.sqrt(max(exploitability, 0.0) / accuracy)
    ratio = min(max(ratio, 1.05), 2.0)
    return max(round(iterations * ratio), iterations + 1)


def _next_chunk(chunk: int, done: int, seconds: float) -> int:
    """Iterations for CHUNK_SECONDS; at most twice as many as the last time, for the first ones are not typical."""
    return max(1, min(2 * chunk, int(done * CHUNK_SECONDS / max(seconds, 1e-9))))


def warm_up() -> None:
    """Compile what a run needs, with the smallest game there is, so that no measured time contains it."""
    rules = Rules("warm-up", ("A", "2", "3"), "linear", 1, 1, (1, 2), "nobody")
    solver = Solver(Tree(rules))
    solver.step()
    Evaluator(solver.tree, solver.payoffs)(solver.average)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run will take, from a short trial: see `estimate`."""

    iterations: int
    seconds: float
    seconds_per_iteration: float


def estimate(
    solver: Solver, *, accuracy: float | None, iterations: int | None, seconds: float | None, trial: float = 2.0
) -> Estimate:
    """Try at most about `trial` seconds and 100 iterations, and extrapolate; the solver is used up.

    Exploitability is taken to fall as t^-1.5, which DCFR+ was seen to do from 100 to 10,000 iterations within a factor
    of two; plain CFR, without discounts, as 1/t.
    """
    solver.step()
    began, done = time.perf_counter(), 1
    while done < 100 and time.perf_counter() - began < trial:
        solver.step(3)
        done += 3
    rate = (time.perf_counter() - began) / max(done - 1, 1)
    wanted = [iterations] if iterations is not None else []
    if accuracy is not None:
        power = 1.5 if solver.algorithm.plus or solver.algorithm.alpha is not None else 1.0
        ratio = Evaluator(solver.tree, solver.payoffs)(solver.average).exploitability / accuracy
        wanted.append(max(1, round(min(done * max(ratio, 0.0) ** (1 / power), MOST))))
    if seconds is not None:
        wanted.append(max(1, int(min(seconds / rate, MOST))))
    number = min(wanted)
    return Estimate(number, number * rate, rate)
