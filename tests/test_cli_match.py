"""`truc match` and `--score` from the command line."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from games.rules import Rules, load_rules
from solver.cli import main
from solver.match import evaluate_match
from solver.match_run import open_store

ROOT = Path(__file__).resolve().parent.parent
RULES = """name = "three"
ranks = ["A", "2", "3"]
order = "circular"
copies = 4
hand_size = 3
ladder = [1, 2, 4]
all_tied = "nobody"
target = 3
"""


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("rules") / "three.toml"
    file.write_text(RULES)
    return file


@pytest.fixture(scope="module")
def match(rules: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("match")
    done = run("match", "solve", "--rules", rules, "--accuracy", "1e-3", "--workers", "1", "-o", folder)
    assert done.exit_code == 0, done.stderr
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of its own for what is known of matches, not for compiled code."""
    for module in ("solver.scores",):
        monkeypatch.setattr(f"{module}.cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache"


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments)])


def document(*arguments: Any) -> dict[str, Any]:
    done = run(*arguments, "--json")
    assert done.exit_code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def one_sentence(done: Result, code: int) -> str:
    assert done.exit_code == code
    assert done.stdout == ""
    errors = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 1
    assert errors[0].endswith(".")
    assert "Traceback" not in done.stderr
    return errors[0]


def test_solving_states_what_evaluating_finds(match: Path, rules: Path) -> None:
    again = document("match", "solve", "--rules", rules, "--accuracy", "1e-3", "-o", match)  # nothing is left to do
    found = document("match", "evaluate", match)
    keys = {"variant", "target", "unit", "value", "lower", "upper", "best_response", "gains", "exploitability"}
    assert keys <= found.keys() & again.keys()
    assert (found["target"], len(found["value"]), found["difference"]) == (3, 9, pytest.approx(0, abs=1e-15))
    for score, value in found["value"].items():
        assert 0 < found["lower"][score] <= value <= found["upper"][score] < 1
        assert value == pytest.approx(again["value"][score], abs=1e-15)
    leader, dealer = found["best_response"]
    assert found["exploitability"] == pytest.approx((leader + dealer - 1) / 2, abs=1e-15)
    assert 0 < found["exploitability"] <= 1e-3
    assert sum(found["gains"]) == pytest.approx(2 * found["exploitability"], abs=1e-15)


def test_table(match: Path) -> None:
    found = document("match", "table", match)
    rows = list(csv.DictReader(io.StringIO(run("match", "table", match, "--csv").stdout)))
    assert len(rows) == 9
    for row in rows:
        score = f"{row['leader']}-{row['dealer']}"
        numbers = [float(row[name]) for name in ("value", "lower", "upper")]
        assert numbers == pytest.approx([found[name][score] for name in ("value", "lower", "upper")], abs=1e-15)
    text = run("match", "table", match).stdout
    assert f"{100 * found['value']['0-2']:.1f}" in text
    assert f"{100 * (1 - found['value']['0-2']):.1f}" in text  # the dealer's table
    markdown = run("match", "table", match, "--markdown").stdout
    assert markdown.count("\n| ") == 10  # two tables of a head, a rule and three rows


def test_score_needs_a_table_and_then_has_one(rules: Path, cache: Path) -> None:
    error = one_sentence(run("advise", "A 2 3", "--rules", rules, "--score", "1-2"), 2)
    assert "truc match solve" in error
    done = run("match", "solve", "--rules", rules, "--accuracy", "1e-3", "--workers", "1")
    assert done.exit_code == 0, done.stderr
    assert (cache / "matches").is_dir()
    advice = document("advise", "A 2 3", "--rules", rules, "--score", "1-2")
    assert (advice["score"], advice["unit"]) == ("1-2", "match-winning probability")
    table = document("match", "table", "--rules", rules)
    best = max(action["ev"] for action in advice["actions"])
    assert 0 < best < 1
    whole = document("table", "--rules", rules, "--score", "1-2")
    mean = sum(
        hand["weight"] * sum(a["probability"] * a["ev"] for a in hand["actions"] if a["probability"])
        for hand in whole["hands"]
    )
    assert mean == pytest.approx(table["value"]["1-2"], abs=2e-3)
    text = run("advise", "A 2 3", "--rules", rules, "--score", "1-2").stdout
    assert "leader (non-dealer) 1, dealer 2, to 3" in text
    # At 2-2 no raise matters; but it is legal, and to be answered.
    answer = document("advise", "A 2 3", "--rules", rules, "--score", "2-2", "--line", "raise")
    assert {a["action"]: a["probability"] for a in answer["actions"]} == {"accept": 1.0, "refuse": 0.0}
    assert document("range", "A 2 3", "--rules", rules, "--score", "1-2", "--line", "2")["score"] == "1-2"


def test_solving_one_score(rules: Path, match: Path, cache: Path, tmp_path: Path) -> None:
    (cache / "matches").mkdir(parents=True)
    store = open_store(match)
    (cache / "matches" / f"three-{store.rules.hash[:12]}").symlink_to(match)
    file = tmp_path / "s.safetensors"
    solved = document("solve", "--rules", rules, "--score", "1-2", "--accuracy", "1e-3", "-o", file)
    assert (solved["score"], solved["unit"]) == ("1-2", "match-winning probability")
    assert solved["exploitability"] <= 1e-3
    assert solved["value"] == pytest.approx(store.known[1, 2].value, abs=2e-3)
    assert document("evaluate", file)["value"] == solved["value"]
    assert run("verify", file).exit_code == 0
    given = ("advise", "A 2 3", "--rules", rules, "--strategy", file)
    assert document(*given)["score"] == "1-2"
    assert "--score says '2-1'" in one_sentence(run(*given, "--score", "2-1"), 2)
    # The same file name is not for another score.
    refused = run("solve", "--rules", rules, "--score", "2-1", "--accuracy", "1e-3", "-o", file)
    assert "another game" in one_sentence(refused, 2)


def test_take_points(rules: Path, match: Path, cache: Path) -> None:
    (cache / "matches").mkdir(parents=True)
    store = open_store(match)
    (cache / "matches" / f"three-{store.rules.hash[:12]}").symlink_to(match)
    points = document("match", "takepoint", "--rules", rules, "--score", "0-0")["take_points"]
    assert [(p["answerer"], p["stake"], p["raised"]) for p in points] == [
        ("leader", 1, 2), ("leader", 2, 4), ("dealer", 1, 2), ("dealer", 2, 4),
    ]  # fmt: skip
    value = {score: worth.value for score, worth in store.known.items()}
    # The leader refuses a raise from 1 to 2: the dealer has 1 and leads next; accepting is for 2.
    refuse, lose, win = 1 - value[1, 0], 1 - value[2, 0], 1 - value[0, 2]
    assert points[0]["chance"] == pytest.approx((refuse - lose) / (win - lose), abs=1e-12)
    assert "28" in run("match", "takepoint", "--rules", rules).stdout or len(points) == 4


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["match", "solve", "--workers", "2", "--ray", "local"], 2, "exclude each other"),
        (["match", "solve", "--accuracy", "0"], 2, "'0'"),
        (["match", "table", "--csv", "--markdown"], 2, "exclude each other"),
        (["match", "table", "nowhere"], 4, "nowhere"),
        (["match", "evaluate", "nowhere"], 4, "nowhere"),
        (["match", "takepoint", "--score", "12-0"], 2, "'12-0'"),
        (["advise", "8 8 7", "--score", "7"], 2, "'7'"),
        (["solve", "--score", "5:3"], 2, "'5:3'"),
    ],
)
def test_bad_input(arguments: list[str], code: int, words: str) -> None:
    message = one_sentence(run(*arguments), code)
    assert words in message or words.strip("'") in message


def test_another_match_in_the_folder(match: Path, rules: Path) -> None:
    other = run("match", "solve", "--rules", rules, "--accuracy", "1e-2", "-o", match)
    assert "--fresh" in one_sentence(other, 2)
    assert "three" in one_sentence(run("match", "solve", "--variant", "tiny", "-o", match), 2)


def test_evaluating_what_was_changed(match: Path, tmp_path: Path) -> None:
    for file in match.glob("*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    stated = json.loads((tmp_path / "match.json").read_text())
    stated["scores"]["1-1"]["worth"][0] += 1e-6
    (tmp_path / "match.json").write_text(json.dumps(stated))
    done = run("match", "evaluate", tmp_path)
    assert done.exit_code == 4
    assert "other numbers" in done.stderr
    (tmp_path / "1-1.safetensors").write_bytes((tmp_path / "1-2.safetensors").read_bytes())
    one_sentence(run("match", "evaluate", tmp_path), 4)


EVERYTHING = """name = "all"
ranks = ["3", "2", "A"]
order = "linear"
copies = 4
hand_size = 2
ladder = [1, 2, 3]
all_tied = "leader"
target = 4
raise_when = ["before", "after"]
fold = true
decision_before_target = true
one_card = true
"""


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Rules of which solving leaves much out, and their match."""
    folder = tmp_path_factory.mktemp("everything")
    rules = folder / "all.toml"
    rules.write_text(EVERYTHING)
    done = run("match", "solve", "--rules", rules, "--accuracy", "1e-3", "--workers", "1", "-o", folder / "match")
    assert done.exit_code == 0, done.stderr
    return rules, folder / "match"


def test_every_action(everything: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """What solving leaves out gains nothing, at any score and in the match."""
    _, folder = everything
    evaluated = dict[Any, Rules]()

    def spied(rules: Rules, strategy: Any, *more: Any) -> Any:
        def noted(score: Any) -> Any:
            found = strategy(score)
            evaluated[score] = found.tree.rules
            return found

        return evaluate_match(rules, noted, *more)

    monkeypatch.setattr("solver.match.evaluate_match", spied)
    plain = document("match", "evaluate", folder)
    assert not any(hand.fold or "after" in hand.raise_when for hand in evaluated.values())
    found = document("match", "evaluate", folder, "--every-action")
    assert all(hand.fold and "after" in hand.raise_when for hand in evaluated.values())
    assert {len(hand.ladder) for hand in evaluated.values()} == {1, 2, 3}
    assert len(evaluated) == 16
    assert found["every_action"] is True
    for key in ("value", "lower", "upper"):
        assert found[key] == pytest.approx(plain[key], abs=1e-12)
    text = run("match", "evaluate", folder, "--every-action").stdout
    assert "a best responder may raise after his card and fold" in text


@pytest.mark.parametrize("score", [None, "1-1", "3-1", "1-3", "3-3"])
def test_every_action_of_one_hand(score: str | None, everything: tuple[Path, Path], tmp_path: Path) -> None:
    rules, folder = everything
    file = tmp_path / "all.safetensors" if score is None else folder / f"{score}.safetensors"
    if score is None:
        document("solve", "--rules", rules, "--accuracy", "1e-2", "-o", file)
    plain = document("evaluate", file)
    found = document("evaluate", file, "--rules", rules, "--every-action")
    assert found.pop("every_action") is True
    assert found.keys() == plain.keys()
    assert found["value"] == pytest.approx(plain["value"], abs=1e-12)
    assert found["best_response"] == pytest.approx(plain["best_response"], abs=1e-12)
    text = run("evaluate", file, "--rules", rules, "--every-action").stdout
    assert "a best responder may raise after his card and fold" in text
    assert "does not say what was left out" in one_sentence(run("evaluate", file, "--every-action"), 2)


@pytest.mark.parametrize("score", ["2-1", "3-1", "1-3", "3-3"])
def test_every_kind_of_score(
    score: str, everything: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hand solved by itself, where somebody decides whether it is played, or nobody raises; advice, and its table."""
    rules, folder = everything
    loaded = load_rules(rules)
    monkeypatch.setattr("solver.scores.stored_match", lambda of: open_store(folder) if of.hash == loaded.hash else None)
    file = tmp_path / "hand.safetensors"
    found = document("solve", "--rules", rules, "--score", score, "--accuracy", "1e-4", "-o", file)
    known = document("match", "table", folder)["value"][score]
    assert found["value"] == pytest.approx(known, abs=2e-3)
    assert run("verify", file).exit_code == 0
    leader, dealer = map(int, score.split("-"))
    hand = document("advise", "A A", "--rules", rules, "--score", score)
    decides = (leader, dealer) in ((3, 1), (1, 3))
    words = [each["action"] for each in hand["actions"] if each["action"] not in loaded.ranks]
    assert words == (["play", "decline"] if decides else ["fold"] if 3 in (leader, dealer) else ["raise", "fold"])
    assert hand["player"] == ("dealer" if score == "1-3" else "leader")
    table = document("table", "--rules", rules, "--score", score)
    assert table["line"] == hand["line"]


def test_every_action_of_a_preset(tmp_path: Path) -> None:
    """Its rules need not be given: the file says what they are called."""
    file = tmp_path / "tiny.safetensors"
    document("solve", "--variant", "tiny", "--iterations", "10", "-o", file)
    assert document("evaluate", file, "--every-action")["value"] == document("evaluate", file)["value"]
    assert "the rules have no other actions" in run("evaluate", file, "--every-action").stdout
    both = run("evaluate", "--uniform", "--every-action", "--variant", "tiny")
    assert "exclude each other" in one_sentence(both, 2)


def test_interrupted_and_gone_on_with(rules: Path, match: Path, tmp_path: Path) -> None:
    """Ctrl-C in the middle: exit code 130, what was solved is kept, and the same command ends with the same bits."""
    command = [sys.executable, "-m", "solver", "match", "solve", "--rules", str(rules), "--accuracy", "1e-3"]
    command += ["--workers", "2", "-o", str(tmp_path / "m")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    table = tmp_path / "m" / "match.json"
    while process.poll() is None and not table.exists():
        pass
    process.send_signal(2)
    _, errors = process.communicate(timeout=60)
    if process.returncode != 0:  # it may just have finished
        assert process.returncode == 130
        assert "scores are kept" in errors
    assert subprocess.run(command, env=environment, capture_output=True, timeout=120).returncode == 0
    for file in match.glob("*"):
        assert (tmp_path / "m" / file.name).read_bytes() == file.read_bytes(), file.name
