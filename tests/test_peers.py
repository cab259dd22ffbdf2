"""The comparison with other solvers of games: what is installed runs in a tiny form, what is not is missing."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from games.rules import Rules
from scripts.peers_worker import LiteEFG, OpenSpiel, legal_actions
from solver.cfr import Payoffs
from solver.gambit import write_efg
from solver.tree import Tree

ROOT = Path(__file__).resolve().parent.parent
RULES = Rules("c3x2_L12", ("A", "2", "3"), "circular", 2, 3, (1, 2), "nobody")
PEERS = {"openspiel": ("pyspiel", OpenSpiel), "liteefg": ("LiteEFG", LiteEFG)}


def quick(folder: Path, *options: str) -> dict[str, Any]:
    """The script's result."""
    command = [sys.executable, str(ROOT / "scripts" / "peers.py"), "--quick", "--folder", str(folder), *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert (folder / "peers.md").read_text().strip() == done.stdout.strip()
    result: dict[str, Any] = json.loads((folder / "peers.json").read_text())
    return result


@pytest.mark.slow
def test_quick(tmp_path: Path) -> None:
    """Whatever is installed; the number of information states is that of exact_cases.json."""
    (deck,) = quick(tmp_path)["decks"]
    assert (deck["deck"], deck["states"]) == ("c3x2_L12", 530 + 580)
    for name, solver in deck["solvers"].items():
        module = PEERS[name][0] if name in PEERS else "solver"
        if importlib.util.find_spec(module) is None:
            assert module in solver["missing"]
            continue
        assert solver["last"]["exploitability"] < 0.1  # in a second, even on a slow machine
        assert solver["states_per_second"] > 0
        assert solver["import_mib"] <= solver["peak_mib"]


@pytest.mark.parametrize("name", [*PEERS])
def test_policies_are_read_right(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our exploitability of a peer's average strategy is what the peer says itself."""
    module, kind = PEERS[name]
    pytest.importorskip(module, reason="the extra `peers` is not installed")
    pyspiel = pytest.importorskip("pyspiel", reason="the extra `peers` is not installed")
    from solver.openspiel import imported

    monkeypatch.setenv("HOME", str(tmp_path))
    efg = tmp_path / "game.efg"
    with efg.open("w") as file:
        write_efg(RULES, Payoffs.points(RULES), file)
    peer: Any = kind(RULES, efg)
    peer.run(20)
    ours = imported(Tree(RULES), dict(peer.result()["policy"])).evaluate().exploitability
    if name == "openspiel":
        game = pyspiel.load_efg_game(efg.read_text())
        theirs = pyspiel.exploitability(game, peer.solver.tabular_average_policy())
    else:
        theirs = sum(peer.env.exploitability(peer.graph.current_strategy(), "linear-avg-iterate")) / 2
    assert ours == pytest.approx(theirs, abs=1e-12)


def test_actions_of_an_information_state() -> None:
    assert legal_actions(RULES, "leader [A 3 3]") == [0, 3, 5]
    assert legal_actions(RULES, "leader [A 3 3] raise accept") == [3, 5]
    assert legal_actions(RULES, "dealer [A 3 3] raise") == [1, 2]
    assert legal_actions(RULES, "dealer [2 3] A A 2") == [0, 4, 5]
    others = replace(RULES, fold=True, raise_when=("before", "after"))
    assert legal_actions(others, "leader [A 3 3]") == [0, 3, 5, 6]
    assert legal_actions(others, "leader [3 3] A") == [0, 7]
    assert legal_actions(others, "dealer [A 2 3] A raise accept") == [3, 4, 5, 6]
