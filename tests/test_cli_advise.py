"""`truc advise`, `truc table`, `truc range`: text, JSON, CSV and Markdown, filters, totals, errors."""

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest

from games.notation import format_hand
from games.rules import preset
from solver.advise import CASES, PLAYED, Adviser, resolve
from solver.cli.decision import RARE, case_in_words, range_rows, stakes, story
from solver.cli.table import Row, Totals, _details, _total_tables, _totals
from solver.explain import KINDS
from solver.paths import shipped_strategy
from solver.storage import load_strategy
from tests.test_cli import truc

DOCUMENT = {
    *("variant", "score", "unit", "iterations", "left_out", "line", "discards", "player", "stake", "accuracy"),
}
MINI = preset("mini")
LINES = ["", "raise", "3", "3 4", "r y 3 4 4", "A 4 2 4 raise", "3 3 raise accept", "A 4 2 4 3 raise"]


@pytest.fixture(scope="module")
def mini(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A strategy file of the mini game."""
    path = tmp_path_factory.mktemp("advise") / "mini.safetensors"
    truc("solve", "--variant", "mini", "-o", str(path))
    return str(path)


@pytest.fixture(scope="module")
def adviser(mini: str) -> Adviser:
    return Adviser(load_strategy(Path(mini))[0])


def document(*args: str) -> Any:
    """A command's JSON, which has no nan."""

    def never(constant: str) -> None:
        raise AssertionError(constant)

    return json.loads(truc(*args, "--json").stdout, parse_constant=never)


def reload(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


# -------------------------------------------------------------------------------------------------------------- advise


def test_advise_is_the_advisers(mini: str, adviser: Adviser) -> None:
    found = document("advise", "A 2 3", "--line", "raise", "--strategy", mini)
    advice = adviser.advise("A 2 3", "raise")
    assert found.keys() == DOCUMENT | {
        "hand", "held", "actions", "win", "refusal", "kind", "explanation", "case",
    }  # fmt: skip
    assert (found["variant"], found["score"], found["unit"]) == ("mini", None, "points per hand")
    assert (found["hand"], found["held"], found["line"], found["player"]) == ("A 2 3", "A 2 3", "raise", "dealer")
    assert found["iterations"] == load_strategy(Path(mini))[1].iterations
    assert [each.keys() for each in found["actions"]] == [{"action", "probability", "ev", "loss", "win"}] * 2
    for each, choice in zip(found["actions"], advice.choices, strict=True):
        assert (each["action"], each["win"] is None) == (choice.action, choice.win is None)
        assert [each["probability"], each["ev"], each["loss"]] == pytest.approx(
            [choice.probability, choice.ev, choice.loss], abs=1e-6
        )
    assert sum(each["probability"] for each in found["actions"]) == pytest.approx(1)
    assert min(each["loss"] for each in found["actions"]) == 0
    assert found["refusal"] is None  # no raise is possible there
    assert (found["kind"], found["explanation"], found["case"]) == (advice.kind, advice.explanation, advice.case)
    assert found["kind"] in KINDS
    assert found["case"] in CASES


def test_advise_in_words() -> None:
    text = truc("advise", "8 8 7", "--line", "5").stdout
    found = document("advise", "8 8 7", "--line", "5", "--variant", "le-truc")
    assert text.startswith("le-truc: one hand, in points (at no particular score of a match)\nthe dealer to act with ")
    assert "\nthe dealer to act with 7 8 8\nline: the leader plays 5\nstake: 1\n" in text
    assert max(map(len, text.splitlines())) <= 100
    assert all(line == line.rstrip() and "\x1b" not in line for line in text.splitlines())
    for part in (found["explanation"], "the opponent refuses it 48 % of the time", "on the path: ", "points per hand"):
        assert part in text
    best = max(found["actions"], key=lambda each: each["ev"])
    assert f"{best['action']}         100 %  {best['ev']:+.3f}  0.000  99 %" in text


@pytest.mark.parametrize(
    ("dealt", "held", "line"), [("2 3 4", "3 2", "3 4"), ("3 4 4", "", "A 4 2 4 3 raise"), ("A A A", "a,a", "A A r")]
)
def test_dealt_and_held(dealt: str, held: str, line: str, mini: str) -> None:
    """The hand as dealt and what is left of it are the same question."""
    for command in ("advise", "range"):
        for form in ([], ["--json"]):
            args = ["--line", line, "--strategy", mini, *form]
            assert truc(command, dealt, *args).stdout == truc(command, held, *args).stdout


def test_story() -> None:
    rules = preset("le-truc")
    line = ("raise", "accept", "8", "raise")
    assert story(rules, ()) == "the start of the hand"
    assert story(rules, line) == "the leader raises, the dealer accepts, the leader plays 8, the dealer raises"
    assert stakes(rules, line, 2) == "2, to be raised to 4"
    assert stakes(rules, line[:3], 2) == "2"
    assert len({case_in_words(case) for case in CASES}) == len(CASES)
    for case in CASES:
        assert case_in_words(case).startswith(f"{case}: ")


# --------------------------------------------------------------------------------------------------------------- range


def test_range(mini: str, adviser: Adviser) -> None:
    found = document("range", "2 3 4", "--line", "3", "--strategy", mini)
    assert found.keys() == DOCUMENT | {"hand", "held", "case", "opponent"}
    answer = adviser.at(("3",))
    shares = answer.opponent[answer.index(resolve(MINI, "2 3 4", ("3",))[1])]
    by_hand = {format_hand(MINI, v): share for v, share in zip(answer.opponent_holdings, shares, strict=True)}
    chances = [each["probability"] for each in found["opponent"]]
    assert sum(chances) == pytest.approx(1)
    assert chances == sorted(chances, reverse=True)
    for each in found["opponent"]:
        assert each["probability"] == pytest.approx(by_hand.pop(each["hand"]), abs=1e-6)
    assert set(by_hand.values()) <= {0}
    text = truc("range", "2 3 4", "--line", "3", "--strategy", mini).stdout
    assert "what the leader can hold, as the dealer sees it with 2 3 4\n" in text
    shown = [line for line in text.splitlines() if line.endswith(" %")]
    rare = [share for share in chances if share < RARE]
    assert len(shown) == len(chances) - len(rare) + bool(rare)


def test_ranges_have_what_the_cards_allow(mini: str) -> None:
    found = document("range", "4 4 4", "--line", "4", "--strategy", mini)
    assert all("4" not in each["hand"] for each in found["opponent"])
    assert len(found["opponent"]) == 6  # two of A 2 3


def test_rare_hands_are_added_up() -> None:
    rows = range_rows([("A", 0.9), ("2", 0.0992), ("3", 0.0004), ("4", 0.0004), ("5", 0.0)])
    assert rows == [["A", "90.00 %"], ["2", "9.92 %"], ["others (3)", "0.08 %"]]
    assert range_rows([("", 1.0)]) == [["(no card)", "100.00 %"]]


# --------------------------------------------------------------------------------------------------------------- table


@pytest.mark.parametrize("line", [LINES[-1], *(pytest.param(line, marks=pytest.mark.slow) for line in LINES[:-1])])
def test_table_agrees_with_advice(line: str, mini: str, adviser: Adviser) -> None:
    found = document("table", "--line", line, "--strategy", mini)
    assert found.keys() == DOCUMENT | {"hands", "totals"}
    assert sum(each["weight"] for each in found["hands"]) == pytest.approx(1) == found["totals"]["weight"]
    assert found["accuracy"] == max(each["accuracy"] for each in found["hands"])
    for each in found["hands"]:
        advice = adviser.advise(each["hand"], line)
        assert each["case"] == advice.case
        assert each["refusal"] == (None if advice.refusal is None else pytest.approx(advice.refusal, abs=1e-6))
        assert len(each["actions"]) == len(advice.choices)
        for mine, choice in zip(each["actions"], advice.choices, strict=True):
            assert mine["action"] == choice.action
            assert mine["probability"] == pytest.approx(choice.probability, abs=1e-6)
            assert mine["ev"] == pytest.approx(choice.ev, abs=1e-6)
            assert mine["loss"] == pytest.approx(choice.loss, abs=1e-6)
    totals = found["totals"]
    for total in totals["actions"]:
        played = [
            each["weight"] * action["probability"]
            for each in found["hands"]
            for action in each["actions"]
            if action["action"] == total["action"]
        ]
        assert total["probability"] == pytest.approx(sum(played))
    assert sum(total["probability"] for total in totals["actions"]) == pytest.approx(1)
    opponent = {each["hand"]: each["probability"] for each in totals["opponent"]}
    assert sum(opponent.values()) == pytest.approx(1)
    together = dict.fromkeys(opponent, 0.0)
    for each in found["hands"]:
        for other in document("range", each["hand"], "--line", line, "--strategy", mini)["opponent"]:
            together[other["hand"]] += each["weight"] * other["probability"]
    assert together == pytest.approx(opponent, abs=1e-6)


@pytest.mark.parametrize(
    "line", [*LINES[::3], *(pytest.param(line, marks=pytest.mark.slow) for line in LINES if line not in LINES[::3])]
)
def test_csv_reloads(line: str, mini: str) -> None:
    text = truc("table", "--line", line, "--strategy", mini, "--csv").stdout
    found = document("table", "--line", line, "--strategy", mini)
    rows = reload(text)
    names = [each["action"] for each in found["totals"]["actions"]]
    columns = [f"{name}_{what}" for name in names for what in ("probability", "ev", "loss")]
    assert text.splitlines()[0] == ",".join(["hand", "weight", "case", *columns])
    assert [row["hand"] for row in rows] == [each["hand"] for each in found["hands"]]
    assert sum(float(row["weight"]) for row in rows) == pytest.approx(1)
    for row, each in zip(rows, found["hands"], strict=True):
        assert row["case"] == each["case"]
        actions = {action["action"]: action for action in each["actions"]}
        for name in names:
            cells = [row[f"{name}_{what}"] for what in ("probability", "ev", "loss")]
            if name not in actions:
                assert cells == ["", "", ""]
                continue
            assert all(math.isfinite(float(cell)) for cell in cells)
            wanted = [actions[name][what] for what in ("probability", "ev", "loss")]
            assert [float(cell) for cell in cells] == pytest.approx(wanted, abs=1e-6)


def test_filters(mini: str) -> None:
    every = document("table", "--strategy", mini)
    fours = document("table", "--strategy", mini, "--holding", "4,4")
    assert [each["hand"] for each in fours["hands"]] == ["A 4 4", "2 4 4", "3 4 4", "4 4 4"]
    by_hand = {each["hand"]: each for each in every["hands"]}
    assert fours["totals"]["weight"] == pytest.approx(
        sum(by_hand[each["hand"]]["weight"] for each in fours["hands"])
    )  # fmt: skip
    assert sum(total["probability"] for total in fours["totals"]["actions"]) == pytest.approx(1)
    assert sum(each["probability"] for each in fours["totals"]["opponent"]) == pytest.approx(1)
    chance = {
        each["hand"]: next((a["probability"] for a in each["actions"] if a["action"] == "4"), 0)
        for each in every["hands"]
    }
    leads = document("table", "--strategy", mini, "--action", "4")
    assert [each["hand"] for each in leads["hands"]] == [hand for hand, share in chance.items() if share >= PLAYED]
    assert 0 < len(leads["hands"]) < len(every["hands"])
    (count,) = [total["hands"] for total in every["totals"]["actions"] if total["action"] == "4"]
    assert count == len(leads["hands"])
    both = reload(truc("table", "--strategy", mini, "--action", "4", "--holding", "4 4", "--csv").stdout)
    wanted = {each["hand"] for each in leads["hands"]} & {each["hand"] for each in fours["hands"]}
    assert {row["hand"] for row in both} == wanted
    assert document("table", "--strategy", mini, "--line", "r", "--action", "Y") == document(
        "table", "--strategy", mini, "--line", "RAISE", "--action", "accept"
    )
    assert document("table", "--strategy", mini, "--holding", "") == every


def test_table_in_words(mini: str) -> None:
    text = truc("table", "--strategy", mini, "--line", "3", "--holding", "4").stdout
    assert text.startswith("mini: the dealer to act, 10 hands of 20: those with 4\n  line      the leader plays 3\n")
    assert max(map(len, text.splitlines())) <= 100
    assert all(line == line.rstrip() for line in text.splitlines())
    assert "\nTogether, " in text
    assert "\nWhat the leader holds against them" in text
    whole = truc("table", "--strategy", mini).stdout
    assert sum(line.startswith("4 4 4 ") for line in whole.splitlines()) == 1
    assert "Together, 100.00 % of the range" in whole


def test_markdown(mini: str) -> None:
    text = truc("table", "--strategy", mini, "--line", "3", "--markdown").stdout
    lines = text.splitlines()
    assert lines[0] == "# mini: the dealer to act, 20 hands"
    heads = [line for line in lines if line.startswith("## ")]
    assert heads[0] == "## Hands"
    assert len(heads) == 3
    for head in heads:
        first = lines.index(head) + 2
        rows: list[str] = []
        while first + len(rows) < len(lines) and lines[first + len(rows)]:
            rows.append(lines[first + len(rows)])
        assert {row.count("|") for row in rows} == {rows[0].count("|")}
        assert all(row.startswith("| ") and row.endswith(" |") for row in rows)
        assert set(rows[1]) <= set("| -:")
    assert sum(line.startswith("| hand | weight | plays | EV | wins | refused |") for line in lines) == 1


def test_hands_outside_the_range_have_no_totals(adviser: Adviser) -> None:
    answer = adviser.at(())
    row = Row(0, (0, 0, 0), "A A A", 0.0, [1.0, *[0.0] * (len(answer.actions) - 1)], 0.0, answer)
    totals = _totals(MINI, answer, [row])
    assert totals == Totals(0.0, None, [1, *[0] * (len(answer.actions) - 1)], None)
    assert _total_tables(answer, totals) == []
    details = _details(answer, [row], totals)["totals"]
    assert details["opponent"] is None
    assert {each["probability"] for each in details["actions"]} == {None}


def test_own_rules_with_odd_labels(tmp_path: Path) -> None:
    """Labels that a CSV or Markdown reader might take for its own."""
    rules = tmp_path / "own.toml"
    rules.write_text(
        'name = "own"\nranks = ["a|b", "q;\'", "trey"]\norder = "linear"\ncopies = 2\nhand_size = 1\n'
        'ladder = [1, 2]\nall_tied = "nobody"\n'
    )
    file = str(tmp_path / "own.safetensors")
    truc("solve", "--rules", str(rules), "--iterations", "50", "-o", file)
    (row,) = reload(truc("table", "--strategy", file, "--holding", "a|b", "--csv").stdout)
    assert row["hand"] == "a|b"
    assert float(row["a|b_probability"]) + float(row["raise_probability"]) == pytest.approx(1)
    assert "| a\\|b |" in truc("table", "--strategy", file, "--markdown").stdout
    assert "the leader to act with trey" in truc("advise", "trey", "--strategy", file).stdout
    assert "(no card)" in truc("table", "--strategy", file, "--line", "trey raise").stdout


# --------------------------------------------------------------------------------------------------------- the shipped


def test_the_strategy_that_comes_with_the_program() -> None:
    header = load_strategy(shipped_strategy("le-truc") or Path())[1]
    found = document("table", "--line", "5", "--holding", "8 8")
    assert (found["variant"], found["iterations"]) == ("le-truc", header.iterations)
    assert len(found["hands"]) == 8
    ours = document("range", "8 7", "--line", "5 8 raise")
    assert (ours["hand"], ours["held"], ours["player"]) == ("5 7 8", "7 8", "leader")
    assert sum(each["probability"] for each in ours["opponent"]) == pytest.approx(1)


# -------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["advise", "A 2"], "the hand 'A 2' has 2 cards, it must have 3"),
        (["advise", "A 2 9"], "'9' in the hand is no card, the ranks are A 2 3 4"),
        (["advise", ""], "it must have 3"),
        (["advise", "A 2 3", "--line", "4 2 1"], "word 3 of the line, '1', is not legal"),
        (["advise", "A 2 3", "--line", "refuse"], "word 1 of the line, 'refuse', is not legal: legal is raise or"),
        (["advise", "A 2 3", "--line", "raise refuse"], "the line 'raise refuse' ends the hand: nobody has a decision"),
        (["advise", "A 2 3", "--line", "raise refuse 4"], "the hand is over before it"),
        (["advise", "A 2 3", "--line", "3 4"], "was dealt without 4, which the line shows played"),
        (["advise", "4 4 4", "--line", "4 4 4"], "has 5 cards of rank 4, but the deck has 4"),
        (["advise", "2 3 4", "--score", "0-0"], "is for a hand in points"),
        (["advise"], "Missing argument 'HAND'"),
        (["advise", "A 2 3", "--strategy", "none"], "does not exist"),
        (["advise", "A 2 3", "--variant", "tiny"], "is for the rules 'mini', but the options say 'tiny'"),
        (["range", "A 2 9"], "'9' in the hand is no card"),
        (["range", "A 2 3", "--line", "raise refuse"], "ends the hand"),
        (["range", "A 2 3", "--line", "3 4"], "was dealt without 4"),
        (["table", "--line", "raise refuse"], "ends the hand"),
        (["table", "--line", "x" * 2000], "too long"),
        (["table", "--action", "refuse"], "'refuse' is no action here, those are raise, A, 2, 3, 4"),
        (["table", "--action", ""], "'' is no action here"),
        (["table", "--line", "raise", "--action", "4"], "'4' is no action here, those are accept, refuse"),
        (["table", "--holding", "9"], "'9' in the hand is no card"),
        (["table", "--holding", "4 4 4 4"], "no hand contains 4 4 4 4 at the start of the hand"),
        (["table", "--holding", "4 4 4 4 4"], "but the deck has"),
        (["table", "--line", "3", "--action", "4", "--holding", "A A A"], "no hand contains A A A and plays 4 after"),
        (["table", "--csv", "--json"], "exclude each other"),
        (["table", "--markdown", "--csv"], "exclude each other"),
        (["table", "A 2 3"], "unexpected extra argument"),
    ],
)
def test_bad_input(args: list[str], message: str, mini: str) -> None:
    if "--strategy" not in args:
        args = [*args, "--strategy", mini]
    result = truc(*args, code=2)
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not result.stdout


CATALAN = """
name = "catalan-like"
ranks = ["4", "5", "6"]
order = "linear"
copies = 4
hand_size = 3
ladder = [1, 2, 3]
all_tied = "leader"
raise_when = ["before", "after"]
decision_before_target = true
one_card = true
"""
FRENCH = """
name = "french-like"
ranks = ["9", "8", "7"]
order = "linear"
copies = 4
hand_size = 3
ladder = [1, 2, 4]
all_tied = "nobody"
remainder = true
fold = true
redeal = true
"""
LEFT_OUT = {
    "catalan": {"raising after the card", "the one-card hand", "the decision before the target"},
    "french": {"fold", "redeal", "the remainder"},
}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Rule files with what only full rules have."""
    folder = tmp_path_factory.mktemp("own")
    for name, text in (("catalan", CATALAN), ("french", FRENCH)):
        (folder / f"{name}.toml").write_text(text)
    return {name: str(folder / f"{name}.toml") for name in ("catalan", "french")}


@pytest.mark.parametrize(
    ("game", "hand", "line", "told", "actions"),
    [
        ("catalan", "4 5 6", "", "the leader cuts", {"raise", "4", "5", "6"}),
        ("catalan", "4 5 6", "6", "the leader cuts, the leader plays 6", {"raise", "pass"}),
        ("catalan", "4 5 6", "6 truc", "the leader cuts, the leader plays 6, the leader raises", {"accept", "refuse"}),
        (
            "catalan", "4 6", "4 4 r y",
            "the leader cuts, the leader plays 4, the leader passes, the dealer plays 4, the dealer raises, "
            "the leader accepts", {"raise", "4", "6"},
        ),
        ("catalan", "5", "tap one", "the leader taps, the dealer deals one card each", {"raise", "5"}),
        ("french", "9 8 7", "", "the leader keeps the cards", {"raise", "fold", "9", "8", "7"}),
        ("french", "9 8 7", "start", "the start of the hand", {"propose", "keep"}),
        ("french", "9 8 7", "propose", "the leader proposes new cards", {"agree", "decline"}),
        ("french", "9 8 7", "propose n r y", "the leader proposes new cards, the dealer declines, the leader raises, "
            "the dealer accepts", {"fold", "9", "8", "7"}),
    ],
)  # fmt: skip
def test_full_rules(game: str, hand: str, line: str, told: str, actions: set[str], own: dict[str, str]) -> None:
    """Lines and actions of the full rules, of a hand that is solved on the spot and kept."""
    args = [hand, "--rules", own[game], "--line", line]
    text = truc("advise", *args).stdout
    assert f"\nline: {told}\n" in text
    assert all(f"{name}, since it " in text for name in LEFT_OUT[game])
    found = document("advise", *args)
    assert found.keys() == DOCUMENT | {"hand", "held", "actions", "win", "refusal", "kind", "explanation", "case"}
    assert found["left_out"].keys() == LEFT_OUT[game]
    assert {each["action"] for each in found["actions"]} == actions
    assert sum(each["probability"] for each in found["actions"]) == pytest.approx(1)
    assert found["kind"] in KINDS
    assert found["accuracy"] <= 0.05
    table = document("table", *args[1:])
    (row,) = [each for each in table["hands"] if each["hand"] == found["held"]]
    assert {each["action"]: each["ev"] for each in row["actions"]} == {
        each["action"]: each["ev"] for each in found["actions"]
    }
    assert set(actions) <= {each["action"] for each in table["totals"]["actions"]}
    reloaded = reload(truc("table", *args[1:], "--csv").stdout)
    assert [each["hand"] for each in reloaded] == [each["hand"] for each in table["hands"]]
    assert sum(each["probability"] for each in document("range", *args)["opponent"]) == pytest.approx(1)
    for each in found["actions"]:
        if each["action"] == "fold":
            assert (each["probability"], each["ev"], each["win"]) == (0, -found["stake"], None)
        if each["action"] == "agree":
            assert (each["probability"], each["ev"], each["loss"]) == (0, None, None)


def test_what_is_solved_on_the_spot_is_kept(own: dict[str, str]) -> None:
    args = ["advise", "4 5 6", "--rules", own["catalan"]]
    first = truc(*args)
    again = truc(*args)
    assert again.stdout == first.stdout
    assert not again.stderr


def test_discards(own: dict[str, str]) -> None:
    args = ["--rules", own["french"], "--line", "propose y 9"]
    for command in (["advise", "8 7 7"], ["range", "8 7 7"], ["table"]):
        assert "give them as --discards" in truc(*command, *args, code=2).stderr
        found = document(*command, *args, "--discards", "9 9 8")
        assert found["discards"] == "9 9 8"
        text = truc(*command, *args, "--discards", "9 9 8").stdout
        assert "set aside" in text
        assert "after a redeal: an approximation" in text
    ours = document("range", "8 7 7", *args, "--discards", "9 9 8")
    assert all("9 9" not in each["hand"] for each in ours["opponent"])  # one is on the table, two are mine
    assert "has 5 cards of rank 9" in truc("advise", "9 9 7", *args, "--discards", "9 9 8", code=2).stderr
    stray = truc("advise", "8 7 7", *args[:2], "--discards", "9 9 8", code=2).stderr
    assert "nobody has set cards aside" in stray
    assert len(stray.splitlines()) == 1


def test_before_the_cards(own: dict[str, str]) -> None:
    args = ["--rules", own["catalan"], "--line", "start"]
    assert "nobody has cards yet" in truc("advise", "4 5 6", *args, code=2).stderr
    found = document("table", *args)
    assert [each["action"] for each in found["hands"][0]["actions"]] == ["cut", "tap"]
    assert "(no card)" in truc("table", *args).stdout
