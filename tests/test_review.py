"""`truc review`: what it prints, its JSON, and what it says to files that are none."""

import json
import random
import string
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from games.history import load_history
from solver.advise import Adviser
from solver.cli import main
from solver.grading import MARKS_FROM
from solver.storage import load_strategy

HISTORY = """truc-history 1
rules: mini
players: you, bot
hand 1: points, you leads
you: A 3 4
bot: 2 2 3
line: A 2 3 4
hand 2: points, bot leads
you: A A 2
line: raise accept 4 A
hand 3: points, bot leads
you: 4 4 4
bot: ? ? ?
line: raise refuse
result: bot 1
"""


@pytest.fixture(scope="module")
def strategy(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("review") / "mini.safetensors"
    assert (
        CliRunner().invoke(main, ["solve", "--variant", "mini", "--accuracy", "1e-5", "-o", str(path)]).exit_code == 0
    )
    return str(path)


@pytest.fixture
def hands(tmp_path: Path) -> Path:
    file = tmp_path / "hands"
    file.write_text(HISTORY)
    return file


def review(*args: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, ["review", *args], prog_name="truc")
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def document(*args: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(review(*args, "--json").stdout)
    return found


def test_json(strategy: str, hands: Path) -> None:
    found = document(str(hands), "--strategy", strategy)
    assert found["variant"] == "mini"
    assert found["players"] == ["you", "bot"]
    assert [hand["number"] for hand in found["hands"]] == [1, 2, 3]
    adviser = Adviser(load_strategy(Path(strategy))[0])
    seen = 0
    for hand in found["hands"]:
        for each in hand["decisions"]:
            advice = adviser.advise(each["hand"], each["line"])  # the numbers are those of the advice
            assert each["actions"] == [
                {"action": c.action, "probability": c.probability, "ev": c.ev, "loss": c.loss} for c in advice.choices
            ]
            chosen = next(c for c in each["actions"] if c["action"] == each["action"])
            assert each["loss"] == chosen["loss"]
            assert each["player"] in ("you", "bot")
            seen += 1
    you, bot = found["totals"]
    assert you["decisions"] + bot["decisions"] == seen
    assert (you["unknown"], bot["unknown"]) == (0, 3)
    assert you["cost"] == pytest.approx(
        sum(each["cost"] for hand in found["hands"] for each in hand["decisions"] if each["player"] == "you")
    )
    assert you["rate"] == pytest.approx(you["cost"] / you["decisions"])
    # Refusing with three fours is the blunder of the day.
    (refusal,) = found["hands"][2]["decisions"]
    assert (refusal["mark"], refusal["best"]) == ("??", "accept")
    assert refusal["cost"] >= MARKS_FROM["points per hand"][-1]
    assert found["hands"][2]["shares"]["you"]["result"] == -1
    assert found["hands"][2]["shares"]["bot"]["luck"] is None


def test_text_sorts_by_cost(strategy: str, hands: Path) -> None:
    out = review(str(hands), "--strategy", strategy).stdout
    assert out.startswith("mini: 3 hands of you and bot\n")
    rows = [
        line.split()
        for line in out.partition("Totals")[0].splitlines()
        if line.split()[:1] and line.split()[0].isdigit()
    ]
    costs = [float(next(word for word in reversed(row) if "." in word)) for row in rows]
    assert costs == sorted(costs, reverse=True)
    assert rows[0][:5] == ["3", "you", "4", "4", "4"]
    assert rows[0][-1] == "??"
    assert "3 decisions of bot could not be graded" in out
    only = review(str(hands), "--strategy", strategy, "--player", "bot").stdout
    assert "could not be graded" in only
    assert not any(row.split()[1:2] == ["you"] for row in only.splitlines())


def test_french(strategy: str, hands: Path) -> None:
    out = review(str(hands), "--strategy", strategy, "--lang", "fr").stdout
    assert "Les choix les plus coûteux" in out
    assert "refuser" in out
    assert "tenir" in out
    assert "." not in out.partition("Totaux")[0].replace("...", "").partition("coûteux")[2]  # decimal commas


def test_nothing_to_review(strategy: str, tmp_path: Path) -> None:
    file = tmp_path / "hands"
    file.write_text("truc-history 1\nrules: mini\nplayers: a, b\n")
    assert "no hands" in review(str(file), "--strategy", strategy).stdout
    assert document(str(file), "--strategy", strategy)["hands"] == []


def test_what_play_writes_is_reviewed(strategy: str, tmp_path: Path) -> None:
    file = tmp_path / "hands"
    typed = "A\n2\n3\n4\ny\n" * 6
    args = ["play", "--strategy", strategy, "--seed", "4", "-o", str(file)]
    assert CliRunner().invoke(main, args, input=typed).exit_code == 0
    found = document(str(file), "--strategy", strategy)
    assert len(found["hands"]) == len(load_history(file).hands) >= 2
    assert found["totals"][0]["decisions"] > 0


def test_wrong_usage(strategy: str, hands: Path, tmp_path: Path) -> None:
    assert "none of you, bot" in review(str(hands), "--player", "eve", code=2).output
    assert "no language" in review(str(hands), "--lang", "xx", code=2).output
    assert "the options say tiny" in review(str(hands), "--variant", "tiny", code=2).output
    assert "does not exist" in review(str(tmp_path / "none"), code=2).output
    broken = tmp_path / "broken"
    broken.write_text(HISTORY.replace("line: raise refuse", "line: raise raise"))
    message = review(str(broken), "--strategy", strategy, code=2).output
    assert "line 14: word 2 of the line, 'raise', is not legal: legal is accept or refuse" in message
    at_score = tmp_path / "score"
    at_score.write_text(HISTORY.replace("points, you", "3-4, you"))
    assert "truc match solve" in review(str(at_score), "--strategy", strategy, code=2).output


def test_random_files(tmp_path: Path) -> None:
    rng, file = random.Random(2), tmp_path / "hands"
    for n in range(60):
        if n % 2:
            file.write_bytes(bytes(rng.randrange(256) for _ in range(rng.randrange(100))))
        else:
            at = rng.randrange(len(HISTORY))
            file.write_text(HISTORY[:at] + rng.choice(string.printable) * 3 + HISTORY[at + 2 :])
        result = CliRunner().invoke(main, ["review", str(file), "--strategy", "/dev/null"])
        assert result.exit_code in (2, 4), result.output
        assert "Traceback" not in result.output
        assert len(result.output.splitlines()) == 1
