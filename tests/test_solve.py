"""A run: limits, evaluations, checkpoints; after any interruption it ends with the same bits."""

import dataclasses
import itertools
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from games.rules import preset
from solver import solve as module
from solver.cfr import Solver
from solver.solve import Point, Progress, Record, estimate, next_evaluation, solve
from solver.storage import StorageError, load_checkpoint, load_strategy
from solver.strategy import Strategy
from solver.tree import Tree

TINY, MINI = Tree(preset("tiny")), Tree(preset("mini"))


def test_accuracy_is_that_of_the_stored_strategy(tmp_path: Path) -> None:
    file = tmp_path / "s"
    outcome = solve(Solver(MINI), file, accuracy=1e-3)
    strategy, header = load_strategy(file)
    assert outcome.reason == "accuracy"
    assert outcome.evaluation == strategy.evaluate()
    assert outcome.evaluation.exploitability <= 1e-3
    assert header.iterations == outcome.iterations == outcome.history[-1].iterations


def test_goes_on_when_rounding_the_probabilities_costs_the_accuracy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = solve(Solver(MINI), tmp_path / "plain", accuracy=1e-3)
    save = module.save_strategy
    stored = []

    def worse_at_first(*args, **kwargs):
        result = save(*args, **kwargs)
        stored.append(result)
        off = 1.0 if len(stored) == 1 else 0.0
        return dataclasses.replace(result, best_response=(result.best_response[0] + off, result.best_response[1]))

    monkeypatch.setattr(module, "save_strategy", worse_at_first)
    outcome = solve(Solver(MINI), tmp_path / "s", accuracy=1e-3)
    assert len(stored) == 2
    assert outcome.iterations == next_evaluation(plain.iterations, 0.0, 1e-3)
    assert outcome.evaluation.exploitability <= 1e-3


def test_when_it_is_evaluated() -> None:
    assert next_evaluation(50, 1.0, 1e-3) == 100
    assert next_evaluation(1000, 2.25e-3, 1e-3) == 1500
    assert next_evaluation(1000, 1e-3, 1e-3) == next_evaluation(1000, -1e-18, 1e-3) == 1050
    assert next_evaluation(1000, 1e-3, None) == 1500
    assert next_evaluation(1, 0.0, 1e-3) == 2
    history = solve_in_memory(accuracy=1e-3)
    assert history[0].iterations == 50
    for point, after in itertools.pairwise(history):
        assert after.iterations == next_evaluation(point.iterations, point.exploitability, 1e-3)


def solve_in_memory(**limits) -> list[Point]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return solve(Solver(MINI), Path(folder) / "s", **limits).history


def test_the_first_limit_stops(tmp_path: Path) -> None:
    file = tmp_path / "s"
    assert solve(Solver(MINI), file, accuracy=1e-12, iterations=70).reason == "iterations"
    assert load_strategy(file)[1].iterations == 70
    assert solve(Solver(MINI), file, accuracy=1.0, iterations=70).iterations == 50
    assert solve(Solver(MINI), file, iterations=10, seconds=60.0).iterations == 10
    outcome = solve(Solver(MINI), file, accuracy=1e-12, seconds=0.3)
    assert outcome.reason == "seconds"
    assert 0.3 <= outcome.seconds < 5
    assert outcome.evaluation == load_strategy(file)[0].evaluate()


def test_progress_and_history(tmp_path: Path) -> None:
    seen: list[Progress] = []
    outcome = solve(Solver(MINI), tmp_path / "s", iterations=400, progress=seen.append)
    assert [each.latest for each in seen if each.new] == outcome.history
    assert [point.iterations for point in outcome.history] == [50, 75, 112, 168, 252, 378]
    assert [each.iterations for each in seen] == sorted(each.iterations for each in seen)
    assert outcome.history[-1].exploitability < outcome.history[0].exploitability


def test_checkpoint_is_kept_only_while_it_is_of_use(tmp_path: Path) -> None:
    file, checkpoint = tmp_path / "s", tmp_path / "c"
    solve(Solver(MINI), file, iterations=200, checkpoint=checkpoint, checkpoint_seconds=0.0)
    assert not checkpoint.exists()
    solve(Solver(MINI), file, accuracy=1e-3, checkpoint=checkpoint, checkpoint_seconds=0.0)
    assert not checkpoint.exists()
    solve(Solver(MINI), file, accuracy=1e-9, iterations=100, checkpoint=checkpoint)
    assert load_checkpoint(checkpoint)[0].iterations == 100


def test_a_checkpoint_that_cannot_be_written_does_not_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, *args: Any) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(module, "save_checkpoint", full)
    told: list[OSError] = []
    outcome = solve(
        Solver(MINI), tmp_path / "s", accuracy=1e-9, iterations=200, checkpoint=tmp_path / "c", checkpoint_seconds=0.0,
        unsaved=told.append,
    )  # fmt: skip
    assert outcome.reason == "iterations"
    assert [error.filename for error in told] == [str(tmp_path / "c")]
    assert load_strategy(tmp_path / "s")[1].iterations == 200
    with pytest.raises(OSError, match="No space"):
        solve(Solver(MINI), tmp_path / "s", iterations=9, checkpoint=tmp_path / "c", stop=lambda: True)


@pytest.mark.parametrize("algorithm", ["dcfr+", "cfr", "pdcfr+"])
def test_stopped_at_any_chunk_and_resumed_it_writes_the_same_bytes(tmp_path: Path, algorithm: str) -> None:
    whole, parts, checkpoint = tmp_path / "whole", tmp_path / "parts", tmp_path / "c"
    solve(Solver(MINI, algorithm=algorithm), whole, accuracy=1e-3, iterations=250)
    solver, record, stops = Solver(MINI, algorithm=algorithm), Record(), 0
    while True:
        calls = itertools.count()
        enough = 3 + stops % 5
        outcome = solve(
            solver, parts, accuracy=1e-3, iterations=250, checkpoint=checkpoint, record=record,
            stop=lambda calls=calls, enough=enough: next(calls) >= enough,
        )  # fmt: skip
        if outcome.reason != "stopped":
            break
        assert outcome.evaluation is None
        assert not parts.exists()
        stops += 1
        solver, extra = load_checkpoint(checkpoint, threads=1 + stops % 2)
        record = Record.of(extra)
        assert record.history == outcome.history
    assert stops > 3
    assert whole.read_bytes() == parts.read_bytes()


def test_a_record_is_read_with_suspicion() -> None:
    for extra in (
        {},
        {"next_evaluation": 1, "history": [{}], "seconds": 0},
        {"next_evaluation": [], "history": [], "seconds": 0},
        {"next_evaluation": 51, "history": [], "seconds": 0},
        {"next_evaluation": 50, "history": [], "seconds": 10**400},
        {"next_evaluation": 50, "history": [], "seconds": float("nan")},
        {"next_evaluation": 50, "history": [], "seconds": 0, "accuracy": "1e-3"},
        {"next_evaluation": 50, "history": [{"iterations": 1, "exploitability": None, "seconds": 0}], "seconds": 0},
        [],
    ):
        with pytest.raises(StorageError, match="how far its run had come"):
            Record.of(extra)


def test_estimate() -> None:
    by_number = estimate(Solver(MINI), accuracy=None, iterations=5000, seconds=None)
    assert by_number.iterations == 5000
    assert by_number.seconds == pytest.approx(5000 * by_number.seconds_per_iteration)
    assert estimate(Solver(MINI), accuracy=1e-4, iterations=3, seconds=None).iterations == 3
    right = solve_in_memory(accuracy=1e-4)[-1].iterations
    assert right / 3 < estimate(Solver(MINI), accuracy=1e-4, iterations=None, seconds=None).iterations < 3 * right


KILLED_RUN = """
import os, random, signal, sys, time
from pathlib import Path
from typing import Any
from games.rules import preset
from solver import files, solve as module, storage
from solver.cfr import Solver
from solver.tree import Tree

module.CHUNK_SECONDS = 0.001
folder, kills, variant, iterations = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
file, checkpoint = folder / "s", folder / "c"
tree = Tree(preset(variant))
module.warm_up()

def run(checkpoint_seconds):
    for path in (file, checkpoint):
        files.remove_leftovers(path)
    solver, record = Solver(tree), module.Record()
    if checkpoint.exists():
        solver, extra = storage.load_checkpoint(checkpoint)
        record = module.Record.of(extra)
    module.solve(solver, file, iterations=iterations, checkpoint=checkpoint, record=record,
                 checkpoint_seconds=checkpoint_seconds)

def die_at(name, calls):
    real, seen = getattr(os, name), []
    def call(*args):
        seen.append(1)
        if len(seen) == calls:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args)
    setattr(os, name, call)

def child(prepare, checkpoint_seconds=0.0):
    pid = os.fork()
    if pid == 0:
        prepare()
        run(checkpoint_seconds)
        os._exit(0)
    return pid

rng, killed, leftovers = random.Random(1), 0, 0
# First inside of saves, where a temporary file is written and where it takes its place ...
for name, calls in (("fsync", 1), ("fsync", 4), ("replace", 1), ("replace", 3), ("chmod", 2)):
    pid = child(lambda: die_at(name, calls))
    killed += os.waitpid(pid, 0)[1] == signal.SIGKILL
    leftovers += len(list(folder.glob(".*.tmp")))
assert killed == 5 and leftovers >= 5, (killed, leftovers)
# ... then anywhere.
while True:
    last = killed == kills + 5
    pid = child(lambda: None, 10.0 if last else 0.0)
    if not last:
        time.sleep(rng.uniform(0.0, 0.12))
        os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    if status == 0:
        break
    assert status == signal.SIGKILL, status
    killed += 1
print(killed, sorted(path.name for path in folder.iterdir()))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL and fork")
@pytest.mark.parametrize(
    ("variant", "iterations"), [("tiny", 10_000), pytest.param("mini", 5_000, marks=pytest.mark.slow)]
)
def test_killed_at_any_moment_and_resumed_it_writes_the_same_bytes(
    tmp_path: Path, variant: str, iterations: int
) -> None:
    whole = tmp_path / "whole"
    solve(Solver(Tree(preset(variant))), whole, iterations=iterations)
    folder = tmp_path / "killed"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", KILLED_RUN, str(folder), "20", variant, str(iterations)],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    killed, names = done.stdout.split(maxsplit=1)
    assert int(killed) == 25  # so many were meant, before the run could end
    assert names.strip() == "['s']"
    assert (folder / "s").read_bytes() == whole.read_bytes()


def test_threads_do_not_matter(tmp_path: Path) -> None:
    for threads in (1, 2, 3):
        solve(Solver(MINI, threads=threads), tmp_path / f"{threads}", iterations=120, threads=threads)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes() == (tmp_path / "3").read_bytes()


def test_the_average_alone_is_evaluated_as_the_strategy_is(tmp_path: Path) -> None:
    """What nobody comes to does not count, so that evaluations on the way may leave out how it is filled in."""
    solver = Solver(TINY)
    outcome = solve(solver, tmp_path / "s", iterations=50)
    assert outcome.history[-1].exploitability == pytest.approx(Strategy.of(solver).evaluate().exploitability, abs=1e-12)


def test_a_thread_that_cannot_start_leaves_none_waiting() -> None:
    solver = Solver(Tree(preset("mini")), threads=2)
    pool = solver.sweeper.pool
    assert pool is not None
    submit = pool.submit

    def failing(run: Any, i: int) -> Any:
        if i == 1:
            raise RuntimeError("can't start new thread")
        return submit(run, i)

    pool.submit = failing  # type: ignore[method-assign]
    with pytest.raises(RuntimeError):
        solver.step()
    pool.shutdown(wait=True)
