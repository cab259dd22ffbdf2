"""Small decks as Gambit files: OpenSpiel and pygambit read the game that we mean."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from games.rules import Rules, preset
from solver.cfr import Payoffs
from solver.gambit import EfgError, write_efg
from tests.bridge import case_payoffs, make_rules
from tests.test_oracle import CASES, case_rules

PLAIN = ("c3x2_L12", "c3x4_L12_leader", "c3x4_L124_payoffs")
EVERY = [name if name in PLAIN else pytest.param(name, marks=pytest.mark.slow) for name in CASES]


def efg(name: str) -> str:
    """The file of an exact case."""
    text = io.StringIO()
    number = write_efg(case_rules(CASES[name]), case_payoffs(name), text)
    assert text.getvalue().count("\n") == number + 1
    return text.getvalue()


def test_lines() -> None:
    lines = efg("c3x2_L12").splitlines()
    assert lines[0] == 'EFG 2 R "Le Truc: c3x2_L12, points per hand" { "leader" "dealer" }'
    assert lines[1].startswith('c "" 1 "the leader\'s hand" { "[A A 2]" 1/10 ')
    assert lines[2] == 'c "" 2 "the dealer\'s hand against [A A 2]" { "[2 3 3]" 1 } 0'
    assert lines[3] == 'p "" 1 1 "leader [A A 2]" { "raise" "A" "2" } 0'
    assert 't "" 2 "leader scores 1" { 1.0, -1.0 }' in lines
    assert 't "" 6 "dealer scores 2" { -2.0, 2.0 }' in lines
    assert lines[-1].startswith("t ")


def test_chance_is_exact() -> None:
    for line in efg("c3x4_L12_leader").splitlines():
        if line.startswith("c "):
            assert sum(map(Fraction, re.findall(r"\] ?\" ([\d/]+)", line))) == 1


def test_payoffs_are_exact_decimals_of_constant_sum() -> None:
    ends = [line for line in efg("c3x4_L124_payoffs").splitlines() if line.startswith("t ")]
    assert ends
    for line in ends:
        leader, dealer = map(Fraction, re.findall(r"-?\d+\.?\d*(?=[, ])", line.split("{")[1]))
        assert leader + dealer == 0


def test_information_sets_are_those_that_are_counted() -> None:
    case, text = CASES["c3x2_L12"], efg("c3x2_L12")
    for player in (1, 2):
        sets = dict(re.findall(rf'^p "" {player} (\d+) "([^"]+)"', text, re.M))
        assert len(sets) == len(set(sets.values())) == case[f"infosets_all_p{player - 1}"]


def test_too_large() -> None:
    rules = preset("mini")
    file = io.StringIO()
    with pytest.raises(EfgError, match="more than 1,000 nodes"):
        write_efg(rules, Payoffs.points(rules), file, max_nodes=1000)
    assert file.getvalue() == ""


@pytest.mark.parametrize("name", EVERY)
def test_openspiel_reads_it(name: str, tmp_path: Path) -> None:
    pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is not installed: pip install -e '.[openspiel]'")
    path = tmp_path / "deck.efg"
    path.write_text(efg(name), encoding="utf-8")
    game = pyspiel.load_game(f"efg_game(filename={path})")
    uniform = pyspiel.UniformRandomPolicy(game)
    value = pyspiel.expected_returns(game.new_initial_state(), uniform, -1, False)[0]
    assert value == pytest.approx(CASES[name]["ev_uniform"], abs=1e-9)
    assert pyspiel.exploitability(game, uniform) == pytest.approx(CASES[name]["exploitability_uniform"], abs=1e-9)


@pytest.mark.parametrize("name", ["c3x2_L12", "c3x4_L124_payoffs"])
def test_gambit_reads_it(name: str) -> None:
    """Tried with pygambit 17.0.0b2."""
    gambit = pytest.importorskip("pygambit", reason="pygambit is not installed: pip install pygambit")
    game = gambit.read_efg(io.StringIO(efg(name)))
    assert game.is_const_sum
    assert game.is_perfect_recall
    profile = game.mixed_behavior_profile()  # every action equally often
    payoffs = profile.payoffs if hasattr(profile, "payoffs") else {"leader": profile.payoff("leader")}  # up to 16
    assert float(payoffs["leader"]) == pytest.approx(CASES[name]["ev_uniform"], abs=1e-9)


def test_labels_are_escaped() -> None:
    rules = make_rules(2, 2, 1, (1,), order="linear")
    odd = type(rules)(**{**{name: getattr(rules, name) for name in rules.__slots__}, "ranks": ('a"b', "c\\d")})
    text = io.StringIO()
    write_efg(odd, Payoffs.points(odd), text)
    assert r'"leader [a\"b]" { "a\"b" }' in text.getvalue()


# ------------------------------------------------------------------------------------------ the actions of other rules

SMALL = Rules("small", ("A", "2", "3"), "linear", 2, 2, (1, 2), "nobody", target=4)
EVERYTHING = replace(SMALL, raise_when=("before", "after"), remainder=True, fold=True)
PAYOFFS = Payoffs((0.6, 0.8, 1.0), (0.4, 0.3, 0.0), 0.5, "match-winning probability")
OTHERS: dict[str, tuple[Rules, Payoffs, tuple[int, int] | None, dict[str, object]]] = {
    # rules, payoffs, score, and what OpenSpiel's game of the same is given
    "everything": (
        EVERYTHING,
        PAYOFFS,
        (0, 0),
        {"win0": (0.6, 0.8), "win1": (0.4, 0.3), "tie": 0.5, "match": (1.0, 0.0)},
    ),
    "redeal": (replace(SMALL, redeal=True, copies=3, hand_size=1), Payoffs.points(SMALL), None, {}),
    "one card": (replace(SMALL, one_card=True), Payoffs.points(SMALL), None, {}),
    "leader decides": (
        replace(SMALL, decision_before_target=True),
        Payoffs((0.6, 1.0, 0.3), (0.4, 0.2, 0.3), 0.5, "match-winning probability"),
        (3, 1),
        {"win0": (0.6, 1.0), "win1": (0.4, 0.2), "tie": 0.5, "declined": 0.3, "before_target": "leader"},
    ),
    "points": (EVERYTHING, Payoffs.points(SMALL), None, {}),
}


def written(name: str) -> str:
    """The file of one of OTHERS."""
    rules, payoffs, score, _ = OTHERS[name]
    text = io.StringIO()
    write_efg(rules, payoffs, text, score=score)
    return text.getvalue()


@pytest.mark.parametrize("name", OTHERS)
def test_openspiel_has_the_same_game(name: str) -> None:
    """Its own game of the rules has the same information states, by name, value and exploitability."""
    pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is not installed: pip install -e '.[openspiel]'")
    from open_spiel.python import policy as policies

    from games.openspiel import load
    from solver.openspiel_algorithms import Remembered, worth

    rules, _, _, given = OTHERS[name]
    theirs = policies.TabularPolicy(load(rules, **given))
    text = written(name)
    labels = set(re.findall(r'^p "" \d \d+ "([^"]+)"', text, re.M))
    assert labels == {state.information_state_string() for state in theirs.states}
    game = pyspiel.load_efg_game(text)
    uniform = pyspiel.UniformRandomPolicy(game)
    value, nash_conv = worth(Remembered(theirs.game.new_initial_state()), theirs)
    found = pyspiel.expected_returns(game.new_initial_state(), uniform, -1, False)[0]
    assert (found, 2 * pyspiel.exploitability(game, uniform)) == pytest.approx((value, nash_conv), abs=1e-9)


def test_labels_of_other_ends() -> None:
    assert "leader wins the match" in written("everything")
    assert "wins the match" not in written("points")
    lines = written("leader decides").splitlines()
    assert lines[3] == 'p "" 1 1 "leader [A A]" { "play" "decline" } 0'
    assert '"dealer scores 1" { 0.3, -0.3 }' in written("leader decides")
    assert '"leader [A] aside [3] propose agree" { "raise" "A" }' in written("redeal")
    assert written("one card").splitlines()[1] == 'p "" 1 1 "leader []" { "cut" "tap" } 0'
