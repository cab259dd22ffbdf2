"""The strategies that the explorer shows: looked up or solved in the background, a few of them kept.

What is solved goes through `solver.scores`, so that it is the very strategy that `truc advise` would use, and is found
in the user's cache folder by both.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from games.history import History
from games.notation import format_score
from games.rules import Rules
from solver.advise import Adviser
from solver.bot import Advisers
from solver.equity import Score, Worth
from solver.grading import Review, review
from solver.nodes import TreeTooLargeError, UnsupportedRulesError
from solver.paths import shipped_for
from solver.scores import QUICK, QUICK_POINTS, NoTableError, equity, strategy_at, strategy_in_points
from solver.solve import Progress
from solver.storage import Header, StorageError, load_strategy
from solver.strategy import Strategy

KEPT = 6  # strategies, about 20 MB each and what is remembered of their answers
UNAVAILABLE = (NoTableError, StorageError, TreeTooLargeError, UnsupportedRulesError, OSError, MemoryError)
"""What looking a strategy up may raise; the messages are sentences."""

T = TypeVar("T")


@dataclass(slots=True)
class Source:
    """A strategy that answers.  lock: an adviser may be asked by one thread at a time."""

    adviser: Adviser
    header: Header
    lock: threading.RLock = field(default_factory=threading.RLock)

    def ask(self, question: Callable[[Adviser], T]) -> T:
        """The answer of the adviser, when nobody else asks it."""
        with self.lock:
            return question(self.adviser)


@dataclass(slots=True)
class Job:
    """A strategy that is being looked up or solved.  progress: of the solving, None as long as there is none."""

    future: Future[Source]
    target: float
    progress: Progress | None = None

    @property
    def share(self) -> float | None:
        """How much of the way is done, from 0 to 1, None if it cannot be told: by the logarithm of what is left."""
        if self.progress is None or self.progress.latest is None:
            return None
        import math

        left = math.log(max(self.progress.latest.exploitability / self.target, 1.0))
        return 1 - min(left / math.log(1e4), 1.0)


class Library:
    """Strategies by rule set and score (None: a hand in points).  Everything may be called from any thread."""

    def __init__(self, known: Mapping[str, Rules], threads: int = 1) -> None:
        self.known, self.threads = dict(known), threads
        self._jobs: OrderedDict[tuple[str, Score | None], Job] = OrderedDict()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(1, "strategies")
        self._players: dict[str, tuple[Advisers, threading.RLock]] = {}
        self._closed = False

    def job(self, rules: Rules, score: Score | None) -> Job:
        """The strategy of a hand, begun to be looked up if it is not there."""
        key = rules.hash, score
        with self._lock:
            job = self._jobs.get(key)
            if job is None or (job.future.done() and job.future.exception() is not None):
                job = Job(Future(), QUICK_POINTS if score is None else QUICK)
                self._jobs[key] = job
                self._pool.submit(self._look_up, rules, score, job)
            self._jobs.move_to_end(key)
            done = [k for k, kept in self._jobs.items() if kept.future.done()]
            for old in done[: max(len(self._jobs) - KEPT, 0)]:
                if old != key:
                    del self._jobs[old]
            return job

    def forget(self, rules: Rules, score: Score | None) -> None:
        """Look a strategy up again when it is next asked for."""
        with self._lock:
            job = self._jobs.get((rules.hash, score))
            if job is not None and job.future.done():
                del self._jobs[rules.hash, score]

    def play(self, rules: Rules, work: Callable[[Advisers], T]) -> T:
        """The result of work with those who play, give hints and grade by a rule set, when nobody else has them."""
        with self._lock:
            if rules.hash not in self._players:
                self._players[rules.hash] = Advisers(rules, self.threads), threading.RLock()
            advisers, lock = self._players[rules.hash]
        with lock:
            return work(advisers)

    def review(self, history: History, progress: Callable[[int], None]) -> Review:
        """A history graded by the strategies themselves, however long they take to be solved.

        Raises what `solver.grading.review` does.
        """
        advisers = Advisers(history.rules, self.threads, patience=600.0)
        try:
            return review(history, advisers, progress)
        finally:
            advisers.close()

    def close(self) -> None:
        """Stop what is being solved."""
        self._closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)
        for advisers, _ in self._players.values():
            advisers.close()

    def _look_up(self, rules: Rules, score: Score | None, job: Job) -> None:
        def note(progress: Progress) -> None:
            job.progress = progress

        try:
            found = self._found(rules, score, note)
            if found is None:
                job.future.cancel()
                return
            strategy, header = found
            job.future.set_result(Source(Adviser(strategy, self.threads, rules, score), header))
        except BaseException as error:  # whoever waits is told
            job.future.set_exception(error)

    def _found(
        self, rules: Rules, score: Score | None, note: Callable[[Progress], None]
    ) -> tuple[Strategy, Header] | None:
        if score is not None:
            return strategy_at(rules, score, self.threads, note, lambda: self._closed)
        file = shipped_for(rules)
        if file is not None:
            return load_strategy(file)
        return strategy_in_points(rules, self.threads, note, lambda: self._closed)


def table_of(rules: Rules) -> dict[Score, Worth] | None:
    """What the scores of a match are worth, None if nobody has solved it."""
    try:
        return equity(rules)
    except (NoTableError, StorageError):
        return None


def score_name(score: Score | None) -> str:
    """A score as it is written, "" for a hand in points."""
    return "" if score is None else format_score(score)
