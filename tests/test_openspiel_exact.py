"""The exact cases of the French and the Catalan game by OpenSpiel's own algorithms."""

import json
from pathlib import Path

import pytest

from games.rules import Rules

pytest.importorskip("pyspiel", reason="OpenSpiel is not installed: pip install -e '.[openspiel]'")

from open_spiel.python import policy as os_policy
from open_spiel.python.algorithms import exploitability

from games.openspiel import load

EXACT = json.loads((Path(__file__).parent / "data" / "exact_cases_variants.json").read_text(encoding="utf-8"))
CASES = {case["name"]: case for case in EXACT["cases"]}
MATCHES = {match["name"]: match for match in EXACT["matches"]}
KEYS = {"none": "00", "leader": "10", "dealer": "01", "both": "11"}
"""The counts of a match's hand by who is one point before the target."""


def case_rules(case) -> Rules:
    given = dict(case["rules"])
    given |= {key: tuple(given[key]) for key in ("ladder", "raise_when")}
    return Rules(name=case["name"], ranks=tuple("A2345678"[: given.pop("n")]), **given)


def uniform_best_response(game, player, counts):
    """OpenSpiel's best response of a player to the uniform policy; his information states are as many as they must."""
    result = exploitability.best_response(game, os_policy.UniformRandomPolicy(game), player)
    choices = [len(states[0][0].legal_actions()) for states in result["info_sets"].values()]
    assert len(choices) == counts[f"infosets_all_p{player}"]
    assert sum(number >= 2 for number in choices) == counts[f"infosets_ge2_p{player}"]
    return result


def ends(state) -> int:
    return 1 if state.is_terminal() else sum(map(ends, map(state.child, state.legal_actions())))


@pytest.mark.slow  # up to two minutes each
@pytest.mark.parametrize("name", CASES)
def test_exact_case(name):
    case, game = CASES[name], load(case_rules(CASES[name]))
    for player in (0, 1):
        result = uniform_best_response(game, player, case)
        assert result["on_policy_values"] == pytest.approx([case["ev_uniform"], -case["ev_uniform"]], abs=1e-9)
        assert result["best_response_value"] == pytest.approx(case[f"br{player}_vs_uniform"], abs=1e-9)
    assert ends(game.new_initial_state()) == case["terminals"]


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_nash_conv(name):
    case, game = CASES[name], load(case_rules(CASES[name]))
    found = exploitability.nash_conv(game, os_policy.UniformRandomPolicy(game))
    assert found / 2 == pytest.approx(case["exploitability_uniform"], abs=1e-9)


PLAIN_SCORES = {
    "mfr3_l3x2_L12_stake": ("0,1", "2,2"),
    "mcat4_l3x2_dec_one": ("2,3", "3,2", "3,3"),
}


def scores(name: str) -> tuple[str, ...]:
    """Of the bigger decks only some, for each takes a minute."""
    match = MATCHES[name]
    return tuple(match["V"]) if match["hand"]["00"]["terminals"] < 10000 else ("0,0", "0,2", "2,0", "2,2")


@pytest.mark.parametrize(
    ("name", "score"),
    [
        (name, score) if score in PLAIN_SCORES.get(name, ()) else pytest.param(name, score, marks=pytest.mark.slow)
        for name in MATCHES
        for score in scores(name)
    ],
)
def test_exact_match(name, score):
    """Each score's hand, the probabilities of winning the match at the next scores being those given."""
    match, rules = MATCHES[name], case_rules(MATCHES[name])
    target, (leader, dealer) = match["target"], map(int, score.split(","))
    there = (leader == target - 1, dealer == target - 1)
    before_target = {(False, False): "none", (True, False): "leader", (False, True): "dealer"}.get(there, "both")

    def game(after):
        """`after`: the dealer's probability of winning the match from the next hand on, where he leads."""

        def wins(points, side):
            a, b = (leader + points, dealer) if side == 0 else (leader, dealer + points)
            return 1.0 if a >= target else 0.0 if b >= target else 1 - after[f"{b},{a}"]

        win0, win1 = ([wins(stake, side) for stake in rules.ladder] for side in (0, 1))
        declined = wins(1, 1 if there[0] else 0)
        return load(rules, win0, win1, 1 - after[f"{dealer},{leader}"], (1.0, 0.0), declined, before_target)

    counts = match["hand"].get(KEYS[before_target], match["hand"]["00"])
    result = uniform_best_response(game(match["U"]), 0, counts)
    assert result["on_policy_values"][0] == pytest.approx(match["U"][score], abs=1e-9)
    # The next hand is led by the other player: the leader goes on with a best response of his as a dealer ...
    result = uniform_best_response(game({key: 1 - value for key, value in match["BD"].items()}), 0, counts)
    assert result["best_response_value"] == pytest.approx(match["BL"][score], abs=1e-9)
    # ... and the dealer with one as a leader.
    result = uniform_best_response(game(match["BL"]), 1, counts)
    assert 1 + result["best_response_value"] == pytest.approx(match["BD"][score], abs=1e-9)
    assert ends(game(match["U"]).new_initial_state()) == counts["terminals"]
