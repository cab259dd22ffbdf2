"""Forged files with a right checksum: whatever they hold, it is exit code 4 and one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from games.rules import preset
from solver.cfr import ALGORITHMS, Solver
from solver.cli import main
from solver.solve import Record, solve
from solver.storage import save_checkpoint
from solver.tree import Tree
from tests.test_malformed import refused
from tests.test_storage import rewritten

TREE = Tree(preset("tiny"))
DEEP: list[Any] = []
for _ in range(400):
    DEEP = [DEEP]
NONSENSE = [
    None, True, -1, 0.5, 10**400, -(10**400), 10**13, float("nan"), float("inf"), 1e300, "", "x" * 5000, "\x1b[1m\n",
    [], [1], {}, {"a": 1}, DEEP, [10**400] * 3, ["1"] * 3,
]  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a strategy and, for a predictive algorithm, a checkpoint."""
    folder = tmp_path_factory.mktemp("good")
    solver, record = Solver(TREE, algorithm="pcfr+"), Record()
    solve(solver, folder / "s", iterations=120, record=record)
    save_checkpoint(folder / "c", solver, asdict(record))
    return folder


def forged(folder: Path, files: Path, name: str, **changes: Any) -> list[str]:
    """The command that reads a file with other fields or tensors."""
    path = folder / {"s": "s.safetensors", "c": "r.checkpoint"}[name]
    path.write_bytes((files / name).read_bytes())
    rewritten(path, **changes)
    if name == "s":
        return ["verify", str(path)]
    return ["solve", "--variant", "tiny", "-o", str(folder / "r"), "--resume", "--iterations", "130"]


def header(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    fields: dict[str, Any] = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["header"])
    return fields


def places(value: Any) -> list[tuple[Any, ...]]:
    """Where something can be replaced in a header, however deep."""
    if isinstance(value, dict):
        return [(key, *rest) for key in value for rest in [(), *places(value[key])]]
    if isinstance(value, list):
        return [(i, *rest) for i in range(len(value)) for rest in [(), *places(value[i])]]
    return []


def replaced(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    if not place:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    if new is ... and len(place) == 1:
        del copy[place[0]]
    else:
        copy[place[0]] = replaced(value[place[0]], place[1:], new)
    return copy


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_headers(data: st.DataObject, files: Path, tmp_path: Path) -> None:
    """Anything anywhere in the header is refused, or makes no difference that could do harm."""
    name = data.draw(st.sampled_from("sc"))
    fields = header(files / name)
    place = data.draw(st.sampled_from(places(fields)))
    new = data.draw(st.sampled_from([*NONSENSE, ...]))
    changed = replaced(fields, place, new)
    command = forged(tmp_path, files, name, **{place[0]: changed.get(place[0], ...)})
    result = CliRunner().invoke(main, command, prog_name="truc")
    (tmp_path / "r").unlink(missing_ok=True)
    assert result.exit_code in (0, 4), (place, new, result.output, result.stderr)
    if result.exit_code == 4:
        assert result.stderr.startswith("Error: ")
        assert result.stderr.count("\n") == 1
        assert result.stderr[:-1].isprintable()
        assert len(result.stderr) < 1000


@pytest.mark.parametrize("new", NONSENSE, ids=range(len(NONSENSE)))
@pytest.mark.parametrize(
    "place",
    [
        ("s", "value"), ("s", "best_response"), ("s", "nash_conv"), ("s", "iterations"), ("s", "unit"), ("s", "rules"),
        ("s", "payoffs"), ("s", "payoffs", "win0"), ("s", "payoffs", "unit"), ("s", "algorithm"), ("s", "version"),
        ("c", "iterations"), ("c", "algorithm"), ("c", "algorithm", "gamma"), ("c", "algorithm", "plus"), ("c", "zero"),
        ("c", "payoffs"), ("c", "payoffs", "tie"), ("c", "extra"), ("c", "extra", "next_evaluation"),
        ("c", "extra", "history"), ("c", "extra", "seconds"), ("c", "extra", "accuracy"),
    ],
    ids="-".join,
)  # fmt: skip
def test_fields(place: tuple[str, ...], new: Any, files: Path, tmp_path: Path) -> None:
    """What the program goes by may be nothing else at all."""
    name, *rest = place
    if any(rest[-1] == key and type(new) is type(value) and new == value for key, value in MAY_BE):
        pytest.skip("may be so")
    fields = replaced(header(files / name), tuple(rest), new)
    command = forged(tmp_path, files, name, **{rest[0]: fields[rest[0]]})
    result = CliRunner().invoke(main, command, prog_name="truc")
    assert result.exit_code == 4, (result.output, result.stderr)
    assert result.stderr.count("\n") == 1


MAY_BE = [
    ("zero", 0.5), ("seconds", 0.5), ("accuracy", None), ("accuracy", 0.5), ("accuracy", 1e300), ("accuracy", 10**13),
    ("plus", True),
]  # fmt: skip
TENSORS: list[Callable[[dict[str, Any]], dict[str, Any]]] = [
    lambda t: {},
    lambda t: {name: each for name, each in t.items() if not name.endswith("1")},
    lambda t: {**t, "more": np.zeros(3, np.float32)},
    lambda t: {name: each[:-1] for name, each in t.items()},
    lambda t: {name: each[:, None] for name, each in t.items()},
    lambda t: {name: np.zeros(0, each.dtype) for name, each in t.items()},
    lambda t: {name: np.zeros((), each.dtype) for name, each in t.items()},
    lambda t: {name: each.astype(np.float16) for name, each in t.items()},
    lambda t: {name: each.astype(bool) for name, each in t.items()},
    lambda t: {name: each.astype(np.int64) for name, each in t.items()},
    *(lambda t, x=x: {name: np.full_like(each, x, np.float32) for name, each in t.items()}
      for x in (np.nan, np.inf, -np.inf, -1.0)),
    *(lambda t, name=name, x=x: {**t, name: np.full_like(t[name], x)} if name in t else {}
      for name, x in (("average0", -1.0), ("average1", np.nan), ("regret0", -1.0), ("regret1", np.inf),
                      ("play0", np.nan))),
]  # fmt: skip


@pytest.mark.parametrize("tensors", TENSORS, ids=range(len(TENSORS)))
@pytest.mark.parametrize("name", ["s", "c"])
def test_tensors(name: str, tensors: Callable, files: Path, tmp_path: Path) -> None:
    refused(forged(tmp_path, files, name, tensors=tensors), (4,))


def test_payoffs_in_points_are_the_stakes(files: Path, tmp_path: Path) -> None:
    payoffs = header(files / "s")["payoffs"]
    doubled = {**payoffs, "win0": [2 * x for x in payoffs["win0"]]}
    result = CliRunner().invoke(main, forged(tmp_path, files, "s", payoffs=doubled))
    assert (result.exit_code, result.stdout) == (4, "")
    assert "in points per hand the payoffs must be the stakes" in result.stderr
    result = CliRunner().invoke(main, forged(tmp_path, files, "s", unit="match-winning probability"))
    assert (result.exit_code, result.stdout) == (4, "")
    assert "but its payoffs in 'points per hand'" in result.stderr


def test_an_algorithm_of_somebody_else(files: Path, tmp_path: Path) -> None:
    other = {**asdict(ALGORITHMS["pcfr+"]), "gamma": 3.0}
    refused(forged(tmp_path, files, "c", algorithm=other), (4,))
