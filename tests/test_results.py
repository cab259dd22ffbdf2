"""The published results are what their manifests say."""

from __future__ import annotations

import csv
import hashlib
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from games.rules import preset
from solver.essential import essential, left_out
from solver.opening import openings
from solver.paths import shipped_strategy
from solver.storage import load_strategy

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results"
VARIANTS = ("le-truc", "french", "catalan")
MANIFESTS = {name: json.loads((RESULTS / name / "points" / "manifest.json").read_text()) for name in VARIANTS}
FILES = [(variant, name) for variant, manifest in MANIFESTS.items() for name in manifest["sha256"]]


@pytest.mark.parametrize(("variant", "name"), FILES)
def test_files_are_those_of_the_manifest(variant: str, name: str) -> None:
    found = hashlib.sha256((RESULTS / variant / "points" / name).read_bytes()).hexdigest()
    assert found == MANIFESTS[variant]["sha256"][name]


@pytest.mark.parametrize("variant", VARIANTS)
def test_strategy_is_as_good_as_published(variant: str) -> None:
    file, manifest, rules = RESULTS / variant / "points" / "strategy.safetensors", MANIFESTS[variant], preset(variant)
    assert shipped_strategy(variant) == file
    strategy, header = load_strategy(file)
    assert strategy.tree.rules == essential(rules)
    assert manifest["rules_hash"] == rules.hash
    assert manifest.get("left_out", {}) == left_out(rules)
    found = strategy.evaluate()
    assert found.exploitability == pytest.approx(manifest["exploitability"], abs=1e-12)
    assert found.value == pytest.approx(manifest["value"], abs=1e-12)
    assert found.exploitability <= 1e-5
    assert header.iterations == manifest["iterations"]
    assert file.stat().st_size <= 7_000_000
    low, high = manifest["value_interval"]
    assert low < found.value < high


@pytest.mark.parametrize("variant", VARIANTS)
def test_opening_table_is_the_strategys(variant: str) -> None:
    strategy, _ = load_strategy(RESULTS / variant / "points" / "strategy.safetensors")
    with (RESULTS / variant / "points" / "opening.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == {"le-truc": 120, "french": 120, "catalan": 220}[variant]
    for row, opening in zip(rows, openings(strategy), strict=True):
        assert row["hand"] == opening.hand
        assert float(row["raise"]) == pytest.approx(opening.raises, rel=1e-5)
        for rank in strategy.tree.rules.ranks:
            assert float(row[f"lead {rank}"]) == pytest.approx(opening.probabilities.get(rank, 0.0), rel=1e-5)


def test_the_wheel_has_what_is_shipped() -> None:
    """Strategies and equity tables of all three, from the results."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        included = tomllib.load(file)["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    wanted = {
        f"results/{variant}/{name}": f"solver/shipped/{variant}/{name}"
        for variant in VARIANTS
        for name in ("points/strategy.safetensors", "match/equity.json", "match/openings.csv")
    }
    assert wanted.items() <= included.items()
    for name in included:
        assert (ROOT / name).exists(), name


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_results_come_out_the_same(variant: str) -> None:
    script = [sys.executable, str(ROOT / "scripts" / "reproduce.py"), "--variant", variant, "--check"]
    done = subprocess.run(script, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
