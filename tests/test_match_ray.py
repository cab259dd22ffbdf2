"""A match on a Ray cluster: the same bits as on one processor, also if a worker dies."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from solver.equity import Score
from solver.match_run import RayWorkers, Store, solve_match
from tests.test_match_run import TINY, Inline, begin, content, solved

ray = pytest.importorskip("ray")
TOKEN = secrets.token_hex(32)  # without one Ray writes one into the home folder; a process keeps its first one


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a cluster of its own needs."""
    monkeypatch.setenv("RAY_AUTH_TOKEN", TOKEN)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent))  # Ray's workers load the modules from there
    monkeypatch.delenv("RAY_ADDRESS", raising=False)


@pytest.fixture
def nodes() -> Iterator[str]:
    """The address of a cluster of two nodes with a processor each."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        cluster.add_node(num_cpus=1)
        yield cluster.address
    finally:
        ray.shutdown()
        cluster.shutdown()


def working() -> list[int]:
    """The processes at work on a task; Ray writes that into their names."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
        except OSError:  # it has ended
            continue
        if command.startswith(b"ray::task"):
            found.append(int(folder.name))
    return found


def test_a_local_cluster_comes_to_the_same(tmp_path: Path) -> None:
    workers = RayWorkers("local")
    assert workers.count >= 1
    assert solve_match(begin(tmp_path / "b"), workers)
    assert not ray.is_initialized()
    assert content(tmp_path / "b") == solved(tmp_path / "a")


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="it asks /proc")
def test_two_nodes_and_a_killed_worker_come_to_the_same(nodes: str, tmp_path: Path) -> None:
    rules, killed = replace(TINY, target=4), list[int]()
    before = set(working())  # of other clusters

    def progress(store: Store, running: set[Score]) -> None:
        mine = [pid for pid in working() if pid not in before]
        if len(killed) < 2 and mine and mine[0] not in killed:
            os.kill(mine[0], signal.SIGKILL)
            killed.append(mine[0])

    workers = RayWorkers(nodes)
    assert workers.count == 2
    assert solve_match(begin(tmp_path / "b", rules, 1e-4), workers, progress=progress)
    assert killed
    assert solve_match(begin(tmp_path / "a", rules, 1e-4), Inline(1, 0))
    assert content(tmp_path / "b") == content(tmp_path / "a")
