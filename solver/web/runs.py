"""Solving runs that the explorer starts: each in a thread, to be paused and taken up again, also after a restart.

A paused run is its checkpoint, in the user's cache folder; so is one that was running when the program ended, as it
was at its latest checkpoint.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from games.notation import format_score
from games.rules import Rules
from solver.best_response import Evaluation
from solver.cfr import Payoffs, Solver
from solver.equity import Score, hand_tree
from solver.essential import essential
from solver.paths import cache_folder
from solver.scores import equity, hand_payoffs
from solver.solve import Point, Progress, Record, solve
from solver.storage import CHECKPOINT, StorageError, check_game, load_checkpoint
from solver.tree import Tree, public_tree
from solver.web.library import UNAVAILABLE

Status = Literal["starting", "running", "pausing", "paused", "done", "failed"]
CHECKPOINT_SECONDS = 5.0


@dataclass
class Run:
    """A run of one game.  accuracy: what it goes for; history: its evaluations; reached: that of what was stored."""

    rules: Rules
    score: Score | None
    accuracy: float
    file: Path
    status: Status = "starting"
    iterations: int = 0
    seconds: float = 0.0
    history: list[Point] = field(default_factory=list)
    reached: Evaluation | None = None
    error: str = ""
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    @property
    def checkpoint(self) -> Path:
        """Where it is kept while it is not done."""
        return self.file.with_suffix(".checkpoint")

    @property
    def active(self) -> bool:
        """Whether it computes."""
        return self.status in ("starting", "running", "pausing")


class Runs:
    """All runs, one for each game, one computing at a time.  folder: where they are kept."""

    def __init__(self, folder: Callable[[], Path | None] = cache_folder) -> None:
        self._folder = folder
        self._runs: dict[tuple[str, Score | None], Run] = {}
        self._lock = threading.Lock()

    def find(self, rules: Rules, score: Score | None) -> Run | None:
        """The run of a game: of this program, or what an earlier one has left.  Raises StorageError."""
        with self._lock:
            run = self._runs.get((rules.hash, score))
        if run is not None:
            return run
        file = self._file(rules, score)
        run = Run(rules, score, 0.0, file, "paused")
        if not run.checkpoint.is_file():
            return None
        tree, payoffs = _game(rules, score)
        stated = check_game(run.checkpoint, CHECKPOINT, tree.rules, payoffs)
        record = Record.of(stated["extra"])
        run.accuracy, run.history = record.accuracy or 1e-3, record.history
        run.seconds, run.iterations = record.seconds, int(stated["iterations"])
        with self._lock:
            return self._runs.setdefault((rules.hash, score), run)

    @property
    def active(self) -> Run | None:
        """The run that computes now."""
        with self._lock:
            return next((run for run in self._runs.values() if run.active), None)

    def start(self, rules: Rules, score: Score | None, accuracy: float, threads: int) -> Run:
        """Begin a run, or go on with a paused one.  Raises StorageError, RuntimeError if another one computes."""
        run = self.find(rules, score)
        with self._lock:
            if any(other.active for other in self._runs.values()):
                raise RuntimeError("another run computes now, pause it first.")
            if run is None or run.status in ("done", "failed"):
                run = Run(rules, score, accuracy, self._file(rules, score))
            run.accuracy, run.status, run.error = accuracy, "starting", ""
            run._stop.clear()
            self._runs[rules.hash, score] = run
            run._thread = threading.Thread(target=_work, args=(run, threads), name="run", daemon=True)
            run._thread.start()
        return run

    def pause(self, run: Run) -> None:
        """Have a run write its checkpoint and stop."""
        if run.active:
            run.status = "pausing"
            run._stop.set()

    def discard(self, run: Run) -> None:
        """Forget a run that does not compute, and its checkpoint."""
        if not run.active:
            with self._lock:
                self._runs.pop((run.rules.hash, run.score), None)
            run.checkpoint.unlink(missing_ok=True)

    def close(self) -> None:
        """Pause what computes, and wait until it is written."""
        run = self.active
        if run is not None:
            self.pause(run)
            if run._thread is not None:
                run._thread.join(timeout=10)

    def _file(self, rules: Rules, score: Score | None) -> Path:
        cache = self._folder()
        if cache is None:
            raise StorageError("there is no cache folder to keep a run in")
        name = "points" if score is None else format_score(score)
        return cache / "runs" / f"{rules.name}-{rules.hash[:12]}" / f"{name}.safetensors"


def _game(rules: Rules, score: Score | None) -> tuple[Tree, Payoffs]:
    """Raises NoTableError, StorageError, TreeTooLargeError."""
    if score is None:
        tree = public_tree(essential(rules))
        return tree, Payoffs.points(tree.rules)
    return hand_tree(rules, score), hand_payoffs(rules, score, equity(rules))


def _work(run: Run, threads: int) -> None:
    """The whole of a run, in its thread."""

    def note(progress: Progress) -> None:
        run.iterations, run.seconds = progress.iterations, progress.seconds
        if progress.new and progress.latest is not None:
            run.history = [*run.history, progress.latest]

    try:
        run.file.parent.mkdir(parents=True, exist_ok=True)
        record = None
        if run.checkpoint.is_file():
            solver, extra = load_checkpoint(run.checkpoint, threads)
            record = Record.of(extra)
            run.history = list(record.history)
        else:
            solver = Solver(*_game(run.rules, run.score), threads=threads)
            run.history = []
        if run.status == "starting":
            run.status = "running"
        outcome = solve(
            solver, run.file, accuracy=run.accuracy, checkpoint=run.checkpoint, record=record, threads=threads,
            score=None if run.score is None else format_score(run.score), stop=run._stop.is_set, progress=note,
            checkpoint_seconds=CHECKPOINT_SECONDS,
        )  # fmt: skip
        run.history, run.iterations, run.seconds = list(outcome.history), outcome.iterations, outcome.seconds
        run.reached = outcome.evaluation
        run.status = "paused" if outcome.reason == "stopped" else "done"
    except UNAVAILABLE as error:
        run.error, run.status = str(error) or type(error).__name__, "failed"
    except Exception as error:  # a thread's exception would be seen by nobody
        run.error, run.status = f"unexpected {type(error).__name__}: {error}", "failed"
