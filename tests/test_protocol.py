"""`truc bot`, driven as a foreign program would: over pipes, one line for each line."""

import json
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from games.notation import format_hand
from games.rules import preset
from games.state import State
from solver.advise import Adviser
from solver.cli import main
from solver.storage import load_strategy
from tests.test_cli import start

MINI = preset("mini")


class Program:
    """The other side of the pipes."""

    def __init__(self, *args: str) -> None:
        self.process = start("bot", *args, stdin=subprocess.PIPE)

    def ask(self, line: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer: str = self.process.stdout.readline()
        assert answer.endswith("\n")
        return answer[:-1]

    def close(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        code: int = self.process.wait(timeout=30)
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        assert self.process.stderr.read() == ""
        self.process.stdout.close()
        self.process.stderr.close()
        return code


@pytest.fixture(scope="module")
def strategy(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("bot") / "mini.safetensors"
    assert (
        CliRunner().invoke(main, ["solve", "--variant", "mini", "--accuracy", "1e-5", "-o", str(path)]).exit_code == 0
    )
    return str(path)


@pytest.fixture(scope="module")
def program(strategy: str) -> Iterator[Program]:
    """One bot of the mini game for all tests of this module."""
    program = Program("--strategy", strategy, "--seed", "1", "--level", "perfect")
    yield program
    assert program.close() == 0


def test_words(program: Program) -> None:
    assert program.ask("isready") == "readyok"
    assert program.ask("rules mini") == "ok"
    assert program.ask("hand 4 a, 2") == "ok"
    assert program.ask("line R") == "ok"
    assert program.ask("go") in ("play accept", "play refuse")
    assert program.ask("level club") == "ok"
    assert program.ask("seed 12") == "ok"
    first = [program.ask("go") for _ in range(8)]
    program.ask("seed 12")
    assert [program.ask("go") for _ in range(8)] == first
    assert program.ask("level perfect") == "ok"
    assert program.ask("score points") == "ok"
    assert program.ask("hand 4 4 4") == "ok"  # a new score is a new hand: the line is empty again
    assert program.ask("go").startswith("play ")


def test_advice_is_that_of_truc_advise(program: Program, strategy: str) -> None:
    adviser = Adviser(load_strategy(Path(strategy))[0])
    program.ask("rules mini")
    for hand, line in [("A 2 3", ""), ("A 3 4", "raise"), ("2 3", "4 3 raise accept"), ("4 4 4", "2")]:
        program.ask(f"line {line}")
        program.ask(f"hand {hand}")
        answer = program.ask("advise")
        if answer.startswith("error"):
            with pytest.raises(ValueError, match=r"\w"):
                adviser.advise(hand, line)
            continue
        found, advice = json.loads(answer), adviser.advise(hand, line)
        assert found["actions"] == [
            {"action": c.action, "probability": c.probability, "ev": c.ev, "loss": c.loss, "win": c.win}
            for c in advice.choices
        ]
        assert (found["line"], found["kind"], found["explanation"]) == (line, advice.kind, advice.explanation)
        assert found["quick"] is False


def test_a_whole_hand_against_it(program: Program) -> None:
    """A foreign program with its own referee: the bot plays both seats, and every move is legal."""
    rng = random.Random(5)
    program.ask("rules mini")
    for _ in range(5):
        deck = [rank for rank in range(MINI.n_ranks) for _ in range(MINI.copies)]
        rng.shuffle(deck)
        state = State.deal(MINI, deck[:3], deck[3:6])
        while not state.is_over:
            dealt = state.dealt[state.to_play]
            assert dealt is not None
            assert program.ask(f"line {' '.join(state.line)}") == "ok"
            assert program.ask(f"hand {format_hand(MINI, dealt)}") == "ok"
            word, _, action = program.ask("go").partition(" ")
            assert word == "play"
            state = state.apply(action)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("foo", "'foo' is no command, known are isready"),
        ("rules bridge", "there is no rule set 'bridge'"),
        ("score 3-4", "`truc match solve`"),
        ("score x", "LEADER-DEALER"),
        ("hand 9 9 9", "is no card"),
        ("hand", "has 0 cards"),
        ("hand A A A A", "4 cards"),
        ("line accept", "'accept', is not legal"),
        ("level god", "known are beginner"),
        ("seed -1", "whole number"),
        ("seed 99999999999999999999", "whole number"),
        ("discards 9", "is no card"),
        ("GO", "is no command"),
    ],
)
def test_errors(program: Program, line: str, message: str) -> None:
    program.ask("rules mini")
    answer = program.ask(line)
    assert answer.startswith("error ")
    assert message in answer
    assert program.ask("isready") == "readyok"


def test_what_is_missing(program: Program) -> None:
    program.ask("rules mini")
    assert program.ask("go").startswith("error there is no hand yet")
    program.ask("hand A A A")
    program.ask("line 4 4 4 4 3 3")  # the hand is over
    assert program.ask("go").startswith("error ")
    program.ask("line 4 3 4")  # the dealer has played a 3, which A A A does not have
    assert "was dealt without 3" in program.ask("advise")


def test_errors_change_nothing(program: Program) -> None:
    program.ask("rules mini")
    program.ask("hand A 2 3")
    before = program.ask("advise")
    for wrong in ("hand X", "line accept", "score 1-1", "rules none", "level none", "seed none"):
        assert program.ask(wrong).startswith("error ")
    assert program.ask("advise") == before


def test_random_lines(program: Program) -> None:
    """1,000 of them, some long, some nearly right: each gets one line, and the bot is well after it."""
    rng = random.Random(6)
    commands = ["isready", "rules", "score", "hand", "line", "discards", "level", "seed", "go", "advise"]
    words = [
        *MINI.ranks,
        "raise",
        "accept",
        "refuse",
        "r",
        "y",
        "n",
        "mini",
        "3-4",
        "points",
        "é",
        "\x00",
        "0" * 50,
        ",",
    ]
    letters = "".join(map(chr, range(32, 127))) + "éß\x01\x7f"
    program.ask("rules mini")
    for n in range(1000):
        if n % 3 == 0:
            line = "".join(rng.choice(letters) for _ in range(rng.randrange(1, 60)))
        else:
            line = " ".join([rng.choice(commands), *(rng.choice(words) for _ in range(rng.randrange(6)))])
        if not line.strip() or line.split(" ")[0] == "quit":
            continue
        answer = program.ask(line)
        assert answer == "ok" or answer.split(" ")[0] in ("error", "play", "readyok") or json.loads(answer), line
    assert "is no command" in program.ask("x" * 50_000)
    assert program.ask("rules mini") == "ok"
    assert program.ask("isready") == "readyok"


def test_quit_and_the_end_of_the_input(strategy: str) -> None:
    for typed, lines in (("isready\nquit\nisready\n", ["readyok", "bye"]), ("\n \nisready", ["readyok"])):
        result = CliRunner().invoke(main, ["bot", "--strategy", strategy], input=typed)
        assert result.exit_code == 0, result.output
        assert result.stdout.splitlines() == lines
    result = CliRunner().invoke(main, ["bot", "--strategy", strategy, "--level", "god"])
    assert result.exit_code == 2


def test_bytes_that_are_no_text(strategy: str) -> None:
    result = CliRunner().invoke(main, ["bot", "--strategy", strategy], input=b"\xff\xfe\n\x80 go\nisready\n")
    first, second, third = result.stdout.splitlines()
    assert first.startswith("error ")
    assert second.startswith("error ")
    assert third == "readyok"
