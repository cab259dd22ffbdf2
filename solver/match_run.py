"""Solving a match on several processors: a folder of strategy files that grows score by score.

The folder has `match.json` and one strategy file for each score, `L-D.safetensors`.  All that is computed depends on
the rules, the accuracy and the algorithm alone: not on the number of workers, on what they do first, or on how often a
run was killed and taken up again.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from games.notation import format_score
from games.rules import Rules, shown
from solver.best_response import Evaluation
from solver.cfr import ALGORITHMS, Payoffs
from solver.equity import Score, Worth, hand_rules, hand_tree, pair_of, scores, successors
from solver.files import write_atomically
from solver.match import solve_pair
from solver.storage import (
    STRATEGY,
    Header,
    StorageError,
    load_strategy,
    packages,
    read_header,
    real,
    whole,
    write_strategy,
)  # fmt: skip
from solver.strategy import Strategy

FORMAT, VERSION = "le-truc match", "1.0"
TABLE = "match.json"
PATIENCE = 0.2  # seconds between two looks at whether to stop
RETRIES = 3  # of a task whose worker died


class WorkerError(RuntimeError):
    """Workers that die again and again; the message is a sentence without its end."""


class Solved(NamedTuple):
    """What a task brings back of a score."""

    tensors: dict[str, Any]
    payoffs: Payoffs
    evaluation: Evaluation
    iterations: int
    worth: Worth


def task(
    rules: Rules, score: Score, known: Mapping[Score, Worth], accuracy: float, threads: int, algorithm: str
) -> dict[Score, Solved]:
    """Solve one pair of scores, in a worker."""
    solutions = solve_pair(rules, score, known, accuracy, threads, algorithm)
    return {
        each: Solved(found.tensors, found.payoffs, found.evaluation, found.iterations, found.worth)
        for each, found in solutions.items()
    }


@dataclass(slots=True)
class Store:
    """The folder of a match, solved as far as `entries` goes: worth, iterations and checksum of every score."""

    folder: Path
    rules: Rules
    accuracy: float
    algorithm: str
    entries: dict[Score, dict[str, Any]]

    @property
    def known(self) -> dict[Score, Worth]:
        """What the scores are worth."""
        return {score: Worth(*entry["worth"]) for score, entry in self.entries.items()}

    @property
    def complete(self) -> bool:
        """Whether every score is there."""
        return len(self.entries) == self.rules.target**2

    def file(self, score: Score) -> Path:
        """The strategy file of a score."""
        return self.folder / f"{format_score(score)}.safetensors"

    def load(self, score: Score) -> tuple[Strategy, Header]:
        """A score's strategy, in the tree of `hand_rules`, and its file's header.  Raises StorageError."""
        strategy, header = load_strategy(self.file(score))
        if header.checksum != self.entries[score]["checksum"]:
            raise StorageError(f"{self.file(score)}: not the strategy that {self.folder / TABLE} is about")
        return strategy, header

    def strategy(self, score: Score) -> Strategy:
        """A score's strategy by itself.  Raises StorageError."""
        return self.load(score)[0]

    def add(self, solved: Mapping[Score, Solved]) -> None:
        """Keep a pair.  Raises OSError."""
        for score, found in solved.items():
            tree = hand_tree(self.rules, score)
            checksum = write_strategy(
                self.file(score), tree, found.payoffs, found.tensors, found.evaluation,
                ALGORITHMS[self.algorithm], found.iterations, format_score(score),
            )  # fmt: skip
            self.entries[score] = {
                "worth": list(found.worth), "iterations": found.iterations, "checksum": checksum,
            }  # fmt: skip
        self.save()

    def save(self) -> None:
        """Write the table.  Raises OSError."""
        document = {
            "format": FORMAT, "version": VERSION, "variant": self.rules.name, "rules": self.rules.to_toml(),
            "rules_hash": self.rules.hash, "accuracy": self.accuracy, "algorithm": self.algorithm,
            "packages": packages(), "scores": {format_score(s): self.entries[s] for s in sorted(self.entries)},
        }  # fmt: skip
        write_atomically(self.folder / TABLE, (json.dumps(document, indent=1) + "\n").encode())

    def check(self) -> None:
        """Forget the scores whose files are not what the table says, so that they are solved again."""
        for score in list(self.entries):
            if not self._is_whole(score):
                for each in pair_of(score):
                    self.entries.pop(each, None)

    def _is_whole(self, score: Score) -> bool:
        entry = self.entries.get(score, {"checksum": None})  # forgotten already with the other one of its pair
        try:
            return bool(read_header(self.file(score), STRATEGY)["checksum"] == entry["checksum"])
        except StorageError:
            return False


def open_store(folder: Path) -> Store:
    """The match in a folder.  Raises StorageError."""
    file = folder / TABLE
    try:
        if file.exists() and not file.is_file():  # reading a device may never end
            raise StorageError(f"{file}: not a file")
        stated = json.loads(file.read_bytes())
        if stated["format"] != FORMAT or str(stated["version"]).split(".")[0] != VERSION.split(".")[0]:
            raise StorageError(f"{file}: not a {FORMAT} of version {VERSION}")
        rules = Rules.from_toml(stated["rules"], "its rules")
        if rules.hash != stated["rules_hash"] or stated["algorithm"] not in ALGORITHMS:
            raise StorageError(f"{file}: its rules or its algorithm are not what it states")
        entries = {}
        every = {format_score(score): score for score in scores(rules)}
        for text, entry in stated["scores"].items():
            worth = [real(x, 0.0, 1.0) for x in entry["worth"]]
            if len(worth) != 3 or text not in every:
                raise StorageError(f"{file}: the entry {shown(text)} is no score with three probabilities")
            entries[every[text]] = {
                "worth": worth, "iterations": whole(entry["iterations"]), "checksum": str(entry["checksum"]),
            }  # fmt: skip
        accuracy = real(stated["accuracy"], 1e-15, 1.0)
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(f"{file}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise StorageError(f"{file}: not a {FORMAT} file, or damaged") from error
    return Store(folder, rules, accuracy, stated["algorithm"], entries)


class Workers(Protocol):
    """Where tasks are run."""

    count: int

    def start(self, arguments: tuple[Any, ...]) -> Any:
        """Begin `task` with these arguments; returns a handle."""

    def finished(self, handles: Iterable[Any]) -> list[tuple[Any, dict[Score, Solved]]]:
        """Handles of tasks that ended, with what they brought, after at most PATIENCE seconds."""

    def close(self) -> None:
        """End all tasks, finished or not."""


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group: the parent ends its workers
    threading.Thread(target=_follow, daemon=True).start()


def _follow() -> None:
    """End with the parent, even if that is killed: an idle worker would wait for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class LocalWorkers:
    """Processes of this machine."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._arguments: dict[Future[Any], tuple[Any, ...]] = {}
        self._renamed: dict[Future[Any], Future[Any]] = {}
        self._deaths = 0
        self._pool = self._new()

    def _new(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self.count, multiprocessing.get_context("spawn"), initializer=_begin)

    def start(self, arguments: tuple[Any, ...]) -> Future[Any]:
        """See `Workers`."""
        try:
            future = self._pool.submit(task, *arguments)
        except BrokenProcessPool:  # a worker died since the last look; `finished` sees to its tasks
            self.close()
            self._pool = self._new()
            future = self._pool.submit(task, *arguments)
        self._arguments[future] = arguments
        return future

    def finished(self, handles: Iterable[Future[Any]]) -> list[tuple[Future[Any], dict[Score, Solved]]]:
        """See `Workers`.  Tasks whose process died are begun again."""
        given = list(handles)
        current = {self._renamed.get(handle, handle): handle for handle in given}
        done, _ = wait(current, timeout=PATIENCE, return_when=FIRST_COMPLETED)
        found = []
        try:
            for future in done:
                found.append((current[future], future.result()))
                self._arguments.pop(future, None)
        except BrokenProcessPool as error:
            self._deaths += 1
            if self._deaths > RETRIES:
                raise WorkerError(f"worker processes died {self._deaths} times, out of memory perhaps") from error
            self.close()
            self._pool = self._new()
            for future, handle in current.items():
                if handle not in [each for each, _ in found]:
                    self._renamed[handle] = self.start(self._arguments.pop(future))
        return found

    def close(self) -> None:
        """See `Workers`."""
        for process in list((getattr(self._pool, "_processes", None) or {}).values()):
            process.kill()
        self._pool.shutdown(wait=False, cancel_futures=True)


class RayWorkers:
    """A Ray cluster (extra `cluster`); Ray begins a task again when its worker dies."""

    def __init__(self, address: str) -> None:
        # By name: whether its types are known depends on what is installed, and they do not fit what is done here.
        ray: Any = importlib.import_module("ray")
        self._ray = ray
        ray.init(address=address, log_to_driver=False, include_dashboard=False)
        self.count = max(1, int(ray.cluster_resources().get("CPU", 1)))
        # A task that wants more processors than any node has would wait for ever.
        self._most = max(1, *(int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]))
        self._task = ray.remote(max_retries=RETRIES)(task)

    def start(self, arguments: tuple[Any, ...]) -> Any:
        """See `Workers`."""
        threads = min(arguments[4], self._most)
        return self._task.options(num_cpus=threads).remote(*arguments[:4], threads, *arguments[5:])

    def finished(self, handles: Iterable[Any]) -> list[tuple[Any, dict[Score, Solved]]]:
        """See `Workers`."""
        done, _ = self._ray.wait(list(handles), num_returns=1, timeout=PATIENCE)
        try:
            return [(handle, self._ray.get(handle)) for handle in done]
        except self._ray.exceptions.RaySystemError as error:
            raise WorkerError(f"the Ray cluster fails: {error}") from error
        except self._ray.exceptions.WorkerCrashedError as error:
            raise WorkerError(f"a Ray worker died {RETRIES + 1} times, out of memory perhaps") from error

    def close(self) -> None:
        """See `Workers`."""
        self._ray.shutdown()


def solve_match(
    store: Store,
    workers: Workers,
    stop: Callable[[], bool] = lambda: False,
    progress: Callable[[Store, set[Score]], None] = lambda store, running: None,
) -> bool:
    """Solve the scores that a store does not have yet; returns whether it is complete, False if `stop` said so.

    A pair of scores is begun as soon as all that can follow it is known.

    Raises OSError, `AccuracyError`, `WorkerError`, and ArithmeticError for a match that has no value, since nobody can
    ever win a hand.
    """
    left = {pair_of(score)[0] for score in scores(store.rules) if score not in store.entries}
    running: dict[Any, Score] = {}
    try:
        while left or running:
            known = store.known
            ready = [score for score in scores(store.rules) if score in left and _ready(store.rules, score, known)]
            free = workers.count - len(running)
            for score in ready[: max(free, 0)]:
                threads = max(1, workers.count // max(1, len(ready) + len(running)))
                running[workers.start((store.rules, score, known, store.accuracy, threads, store.algorithm))] = score
                left.remove(score)
            progress(store, {each for score in running.values() for each in pair_of(score)})
            for handle, solved in workers.finished(running):
                del running[handle]
                store.add(solved)
            if stop():
                return store.complete
    finally:
        workers.close()
    return True


def _ready(rules: Rules, score: Score, known: Mapping[Score, Worth]) -> bool:
    return all(after in known for each in pair_of(score) for after in successors(hand_rules(rules, each), each))
