"""The published results are what their manifests say."""

from __future__ import annotations

import csv
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from games.rules import preset
from solver.opening import openings
from solver.storage import load_strategy

ROOT = Path(__file__).resolve().parent.parent
POINTS = ROOT / "results" / "le-truc" / "points"
MANIFEST = json.loads((POINTS / "manifest.json").read_text())


@pytest.mark.parametrize("name", MANIFEST["sha256"])
def test_files_are_those_of_the_manifest(name: str) -> None:
    assert hashlib.sha256((POINTS / name).read_bytes()).hexdigest() == MANIFEST["sha256"][name]


def test_strategy_is_as_good_as_published() -> None:
    strategy, header = load_strategy(POINTS / "strategy.safetensors")
    assert strategy.tree.rules == preset("le-truc")
    found = strategy.evaluate()
    assert found.exploitability == pytest.approx(MANIFEST["exploitability"], abs=1e-12)
    assert found.value == pytest.approx(MANIFEST["value"], abs=1e-12)
    assert found.exploitability <= 1e-5
    assert header.iterations == MANIFEST["iterations"]
    assert (POINTS / "strategy.safetensors").stat().st_size <= 7_000_000
    low, high = MANIFEST["value_interval"]
    assert low < found.value < high


def test_opening_table_is_the_strategys() -> None:
    strategy, _ = load_strategy(POINTS / "strategy.safetensors")
    with (POINTS / "opening.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 120
    for row, opening in zip(rows, openings(strategy), strict=True):
        assert row["hand"] == opening.hand
        assert float(row["raise"]) == pytest.approx(opening.raises, rel=1e-5)
        for rank in strategy.tree.rules.ranks:
            assert float(row[f"lead {rank}"]) == pytest.approx(opening.probabilities.get(rank, 0.0), rel=1e-5)


@pytest.mark.slow
def test_results_come_out_the_same() -> None:
    script = [sys.executable, str(ROOT / "scripts" / "reproduce.py"), "--check"]
    done = subprocess.run(script, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
