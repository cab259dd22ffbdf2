"""A match on several processors: the same bits in any order, after any stop, after any kill."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from games.rules import Rules, preset
from solver.equity import Score, Worth, scores
from solver.match_run import (
    RETRIES,
    TABLE,
    LocalWorkers,
    Solved,
    Store,
    WorkerError,
    open_store,
    solve_match,
    task,
)
from solver.storage import StorageError, load_strategy
from tests.test_equity import match_rules
from tests.test_forged import NONSENSE, places, replaced

TINY = replace(preset("tiny"), target=3)
ACCURACY = 1e-3
DRIVER = """
import sys
from pathlib import Path
from solver.match_run import LocalWorkers, open_store, solve_match

if __name__ == "__main__":
    store = open_store(Path(sys.argv[1]))
    store.check()
    say = lambda store, running: print(len(store.entries), flush=True)
    assert solve_match(store, LocalWorkers(int(sys.argv[2])), progress=say)
"""


class Inline:
    """Workers without processes that end their tasks in an order of their own."""

    def __init__(self, count: int, seed: int) -> None:
        self.count, self.random, self.ready = count, random.Random(seed), dict[int, tuple[Any, ...]]()
        self.numbers = itertools.count()
        self.closed = False

    def start(self, arguments: tuple[Any, ...]) -> int:
        number = next(self.numbers)
        self.ready[number] = arguments
        return number

    def finished(self, handles: Iterable[int]) -> list[tuple[int, dict[Score, Solved]]]:
        handle = self.random.choice(list(handles))
        return [(handle, task(*self.ready.pop(handle)))]

    def close(self) -> None:
        self.closed = True


def begin(folder: Path, rules: Rules = TINY, accuracy: float = ACCURACY, algorithm: str = "fpdcfr+") -> Store:
    """An empty match in a folder, which is made."""
    folder.mkdir(exist_ok=True)
    store = Store(folder, rules, accuracy, algorithm, {})
    store.save()
    return store


def content(folder: Path) -> dict[str, bytes]:
    """What a match's folder has, without what killed processes leave."""
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.suffix != ".tmp"}


def solved(folder: Path, rules: Rules = TINY) -> dict[str, bytes]:
    """A match solved in the plainest way."""
    assert solve_match(begin(folder, rules), Inline(1, 0))
    return content(folder)


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of the match that all tests solve."""
    return solved(tmp_path_factory.mktemp("match"))


def fill(folder: Path, files: dict[str, bytes]) -> Store:
    """A folder with these files."""
    folder.mkdir(exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return open_store(folder)


# ------------------------------------------------------------------------------------------------------ the same bits


def test_the_folder_has_every_score(wanted: dict[str, bytes], tmp_path: Path) -> None:
    store = fill(tmp_path, wanted)
    assert store.complete
    assert wanted.keys() == {TABLE} | {store.file(score).name for score in scores(TINY)}
    for score, worth in store.known.items():
        strategy, header = load_strategy(store.file(score))
        assert header.score == f"{score[0]}-{score[1]}"
        assert header.iterations == store.entries[score]["iterations"]
        assert np.array_equal(store.strategy(score).probabilities[0], strategy.probabilities[0])
        assert 0 <= worth.exploitability <= ACCURACY


@pytest.mark.parametrize("seed", [0, 5, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 5))])
def test_order_and_number_of_workers_do_not_matter(seed: int, wanted: dict[str, bytes], tmp_path: Path) -> None:
    workers = Inline(2 + seed, seed)
    assert solve_match(begin(tmp_path / "m"), workers)
    assert workers.closed
    assert content(tmp_path / "m") == wanted


def test_nor_do_they_if_the_lowest_stake_is_more_than_a_point(tmp_path: Path) -> None:
    """Then (a + 1, b + 1) does not follow from (a, b): it may be solved by then or not."""
    rules = match_rules(3, 2, 1, (2, 3), 5, "circular")
    files = solved(tmp_path / "a", rules)
    for seed in range(3):
        assert solve_match(begin(tmp_path / str(seed), rules), Inline(4, seed))
        assert content(tmp_path / str(seed)) == files


@pytest.mark.parametrize("seed", range(3))
def test_stopped_at_any_moment(seed: int, wanted: dict[str, bytes], tmp_path: Path) -> None:
    begin(tmp_path / "m")
    chance = random.Random(seed)
    for _ in range(100):
        store, workers = open_store(tmp_path / "m"), Inline(3, seed)
        if solve_match(store, workers, stop=lambda: chance.random() < 0.5):
            break
        assert workers.closed
    assert open_store(tmp_path / "m").complete
    assert content(tmp_path / "m") == wanted


def test_the_progress_is_told(tmp_path: Path) -> None:
    seen: list[tuple[int, set[Score]]] = []
    assert solve_match(
        begin(tmp_path / "m"), Inline(2, 1), progress=lambda store, running: seen.append((len(store.entries), running))
    )
    assert seen[0] == (0, {(2, 2)})
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert set().union(*(running for _, running in seen)) == set(scores(TINY))


# ---------------------------------------------------------------------------------------------------------- processes


@pytest.mark.parametrize("count", [1, 2])
def test_processes_come_to_the_same(count: int, wanted: dict[str, bytes], tmp_path: Path) -> None:
    assert solve_match(begin(tmp_path / "m"), LocalWorkers(count))
    assert content(tmp_path / "m") == wanted


def kill(processes: list[Any]) -> None:
    for process in processes:
        with suppress(ProcessLookupError):  # one may have died of the other's death
            os.kill(process.pid, signal.SIGKILL)


def test_a_killed_worker_is_replaced(wanted: dict[str, bytes], tmp_path: Path) -> None:
    killed = []

    def progress(store: Store, running: set[Score]) -> None:
        if (
            len(store.entries) >= 3 * len(killed)
            and len(killed) < 2
            and (children := multiprocessing.active_children())
        ):
            kill(children[-1:])
            killed.append(children[-1].pid)

    assert solve_match(begin(tmp_path / "m"), LocalWorkers(2), progress=progress)
    assert len(killed) == 2
    assert content(tmp_path / "m") == wanted


def test_a_worker_that_dies_between_two_tasks_is_replaced() -> None:
    """The pool then refuses new tasks."""
    workers = LocalWorkers(1)
    try:
        first = workers.start(ARGUMENTS)
        while not (found := workers.finished([first])):
            pass
        kill(multiprocessing.active_children())
        time.sleep(0.5)
        second = workers.start(ARGUMENTS)
        while not (again := workers.finished([second])):
            pass
        assert again[0][1][2, 2].worth == found[0][1][2, 2].worth
    finally:
        workers.close()


ARGUMENTS = (TINY, (2, 2), {}, ACCURACY, 1, "fpdcfr+")


def test_workers_that_always_die_are_given_up(tmp_path: Path) -> None:
    deaths = set()

    def progress(store: Store, running: set[Score]) -> None:
        children = multiprocessing.active_children()
        kill(children)
        deaths.update(child.pid for child in children)

    with pytest.raises(WorkerError, match="died"):
        solve_match(begin(tmp_path / "m"), LocalWorkers(1), progress=progress)
    assert len(deaths) >= RETRIES
    assert open_store(tmp_path / "m").entries == {}


def drive(folder: Path, count: int = 2) -> subprocess.Popen[str]:
    """The run of a folder, as processes in a group of their own."""
    root = Path(__file__).parent.parent
    script = folder.parent / "driver.py"
    script.write_text(DRIVER)
    return subprocess.Popen(
        [sys.executable, str(script), str(folder), str(count)], env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


@pytest.mark.parametrize("times", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_killed_many_times(times: int, tmp_path: Path) -> None:
    """The whole group at once, early or late, while a file is written or a worker starts."""
    rules, chance = replace(TINY, target=5), random.Random(times)
    expected = solved(tmp_path / "a", rules)
    begin(tmp_path / "b", rules)
    for _ in range(times):
        run = drive(tmp_path / "b")
        assert run.stdout is not None
        before, goal = len(open_store(tmp_path / "b").entries), chance.randrange(3)
        for line in run.stdout:
            if int(line) >= before + goal:
                break
        time.sleep(chance.uniform(0, 0.02 if goal else 0.3))
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
    assert not open_store(tmp_path / "b").complete
    run = drive(tmp_path / "b")
    run.communicate(timeout=60)
    assert run.returncode == 0
    assert content(tmp_path / "b") == expected


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="it asks /proc")
def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    begin(tmp_path / "m", replace(TINY, target=12), 1e-7)
    run = drive(tmp_path / "m")
    assert run.stdout is not None
    while int(run.stdout.readline()) < 2:
        pass
    children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
    os.kill(run.pid, signal.SIGKILL)
    try:
        wait_for(lambda: not any(Path(f"/proc/{child}").exists() for child in children))
    finally:
        for child in children:
            if Path(f"/proc/{child}").exists():
                os.kill(int(child), signal.SIGKILL)
        run.communicate()


def wait_for(happened: Callable[[], bool], seconds: float = 15.0) -> None:
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.05)


# ------------------------------------------------------------------------------------------------------ damaged folders


@pytest.mark.parametrize("name", ["2-2", "0-1", "0-0"])
@pytest.mark.parametrize("damage", ["missing", "empty", "a bit", "another", "a folder"])
def test_a_damaged_strategy_is_solved_again(name: str, damage: str, wanted: dict[str, bytes], tmp_path: Path) -> None:
    store = fill(tmp_path, wanted)
    file, score = tmp_path / f"{name}.safetensors", (int(name[0]), int(name[2]))
    whole = file.read_bytes()
    file.unlink()
    if damage == "empty":
        file.touch()
    elif damage == "a bit":
        file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    elif damage == "another":
        file.write_bytes(wanted["1-1.safetensors"])
    elif damage == "a folder":
        file.mkdir()
    with pytest.raises(StorageError):
        store.strategy(score)
    store.check()
    assert store.entries.keys() == set(scores(TINY)) - {score, score[::-1]}
    if damage == "a folder":
        file.rmdir()
    assert solve_match(store, Inline(1, 0))
    assert content(tmp_path) == wanted


def test_a_whole_folder_is_left_alone(wanted: dict[str, bytes], tmp_path: Path) -> None:
    store = fill(tmp_path, wanted)
    store.check()
    assert store.complete
    assert solve_match(store, Inline(1, 0))
    assert content(tmp_path) == wanted


def test_tables_that_are_none_are_refused(wanted: dict[str, bytes], tmp_path: Path) -> None:
    """Every field replaced by nonsense or left out, however deep: refused, or something that `check` sorts out."""
    good = json.loads(wanted[TABLE])
    good["scores"] = {score: good["scores"][score] for score in ("2-2", "0-0")}  # that is enough to be wrong
    fill(tmp_path, wanted)
    for place in places(good):
        for new in (*NONSENSE, ...):
            if place == () and new is ...:
                continue
            (tmp_path / TABLE).write_text(json.dumps(replaced(good, place, new)))
            store = opened(tmp_path)
            if store is not None:
                assert_sound(store)


def opened(folder: Path) -> Store | None:
    """A match, None if it is refused as it should be."""
    try:
        return open_store(folder)
    except StorageError as error:
        message = str(error).replace(str(folder), "")
    assert len(message) < 500
    assert message.isprintable()
    return None


def assert_sound(store: Store) -> None:
    """What is read of a table can be worked with."""
    assert 0 < store.accuracy <= 1
    for score, entry in store.entries.items():
        assert score in scores(store.rules)
        assert all(type(x) is float and 0 <= x <= 1 for x in Worth(*entry["worth"]))
        assert type(entry["iterations"]) is int
        assert entry["iterations"] >= 0
    store.check()
    store.save()
    assert open_store(store.folder).entries == store.entries


@pytest.mark.parametrize(
    "text",
    [b"", b"\x00", b"[]", b"null", b"{}", b"\xff\xfe", b"[" * 100_000, b'{"format": "le-truc match"}', b"9" * 10_000],
)
def test_files_that_are_no_table_are_refused(text: bytes, tmp_path: Path) -> None:
    (tmp_path / TABLE).write_bytes(text)
    with pytest.raises(StorageError):
        open_store(tmp_path)


def test_scores_that_no_match_has_are_refused(wanted: dict[str, bytes], tmp_path: Path) -> None:
    good = json.loads(wanted[TABLE])
    entry = good["scores"]["0-0"]
    for text in (
        "3-0",
        "0-3",
        "-1-0",
        "0",
        "0-0-0",
        "a-b",
        "",
        "0--1",
        "1e0-1",
        "99999999999999999999-0",
        "01-1",
        "\u0661-1",
    ):
        (tmp_path / TABLE).write_text(json.dumps({**good, "scores": {text: entry}}))
        with pytest.raises(StorageError):
            open_store(tmp_path)


def test_places_that_are_no_folder_of_a_match(tmp_path: Path) -> None:
    for folder in (tmp_path / "none", tmp_path, Path("\x00")):
        with pytest.raises(StorageError):
            open_store(folder)
    (tmp_path / TABLE).mkdir()
    with pytest.raises(StorageError):
        open_store(tmp_path)
    if hasattr(os, "mkfifo"):  # reading it would never end
        (tmp_path / TABLE).rmdir()
        os.mkfifo(tmp_path / TABLE)
        with pytest.raises(StorageError):
            open_store(tmp_path)
