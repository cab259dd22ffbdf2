"""The benchmark of advice: what it measures, and that the other figures of its file stay."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "scripts"))  # where the scripts find each other

import bench_variants  # noqa: E402

from games.rules import preset  # noqa: E402
from scripts import bench  # noqa: E402
from solver.census import census  # noqa: E402
from solver.tree import Tree  # noqa: E402

PUBLISHED = ROOT / "results" / "bench.json"


def test_only_advice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bench, "QUESTIONS", 1)
    monkeypatch.setattr(bench, "WARM_UP", 0)
    monkeypatch.setattr(bench, "shell", lambda: [1.0, 2.0, 4.0])
    file = tmp_path / "bench.json"
    file.write_text(json.dumps({"tree_seconds": 1.5, "advice": {}}))
    done = CliRunner().invoke(bench.main, ["--only", "advice", "--output", str(file)])
    assert done.exit_code == 0, done.output
    found = json.loads(file.read_text())
    assert found["tree_seconds"] == 1.5
    assert list(found["advice"]) == list(bench.BARS)
    assert [row["number"] for row in found["advice"].values()] == [1, 1, 1, 1, 4, 3]
    assert all(0 < row["median_ms"] <= row["p95_ms"] for row in found["advice"].values())
    assert found["advice"]["shell"]["median_ms"] == 2.0


def test_no_strategy_no_advice() -> None:
    done = CliRunner().invoke(bench.main, ["--only", "advice", "--variant", "tiny"])
    assert done.exit_code == 2
    assert "no strategy for 'tiny'" in done.output


def test_published_latencies() -> None:
    """Under their bars when they were measured."""
    for name, row in json.loads(PUBLISHED.read_text())["advice"].items():
        assert row["bar_ms"] == bench.BARS[name]
        assert row["bar_ms"] is None or row["median_ms"] <= row["bar_ms"], name


def test_only_variants(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bench_variants, "ROUNDS", 1)
    monkeypatch.setattr(bench_variants, "CHUNK", 1)
    trees = {"le-truc": Tree(preset("mini")), "tiny": Tree(preset("tiny"))}
    monkeypatch.setattr(bench_variants, "games", lambda: trees)
    file = tmp_path / "bench.json"
    file.write_text(json.dumps({"tree_seconds": 1.5}))
    done = CliRunner().invoke(bench.main, ["--only", "variants", "--output", str(file)])
    assert done.exit_code == 0, done.output
    found = json.loads(file.read_text())
    assert found["tree_seconds"] == 1.5
    assert found["variants"]["le-truc"]["information_states"] == census(trees["le-truc"]).information_states
    assert list(found["variants"]) == list(trees)
    assert found["variants"]["le-truc"]["ratio"] == 1.0


def test_published_speed_of_the_variants() -> None:
    """Per information state no more than 1.5 times slower than le-truc, when that was measured."""
    found = json.loads(PUBLISHED.read_text())["variants"]
    assert len(found) > 1
    assert all(0 < row["ratio"] <= row["bar"] == bench_variants.BAR for row in found.values())
