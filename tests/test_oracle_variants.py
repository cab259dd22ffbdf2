"""The oracle's hand by the other rule sets' fields: lines, exact cases, and what theory says of the values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from games.rules import Rules
from tests import oracle, test_oracle
from tests.oracle import CHANCE, OVER, Game, TrucHand
from tests.oracle_variants import VariantHand
from tests.test_oracle import case_rules, other, ranks

EXACT = json.loads((Path(__file__).parent / "data" / "exact_cases_variants.json").read_text(encoding="utf-8"))
CASES = {case["name"]: case for case in EXACT["cases"]}
MATCHES = {match["name"]: match for match in EXACT["matches"]}


def slow(*values: Any) -> Any:
    """Parameters of a test that takes longer."""
    return pytest.param(*values, marks=pytest.mark.slow)


def value(game: Game) -> float:
    """The value of a game, proved by the best responses to an equilibrium from a linear program."""
    pytest.importorskip("scipy")
    from tests.oracle_lp import equilibrium

    policy = equilibrium(game)
    low, high = -oracle.best_response(game, policy, 1), oracle.best_response(game, policy, 0)
    assert low - 1e-12 <= high <= low + 1e-9
    return (low + high) / 2


@cache
def case_game(name: str) -> VariantHand:
    """The hand of an exact case, one object per name."""
    return VariantHand(case_rules(CASES[name]))


# ------------------------------------------------------------------------------------------------ the hand, by lines

AFTER = ("before", "after")
CATALAN = Rules("catalan", tuple("A2345678"), "linear", 4, 3, (1, 2, 3), "leader", raise_when=AFTER)
FRENCH = Rules("french", tuple("A2345678"), "linear", 4, 3, (1, 2, 4), "nobody", remainder=True)
FOLD, REDEAL, ONE = replace(CATALAN, fold=True), replace(FRENCH, redeal=True), replace(CATALAN, one_card=True)
TARGET, CLAIM = replace(ONE, decision_before_target=True), replace(FRENCH, fold=True, remainder_refused="match")
BOTH = replace(FRENCH, raise_when=AFTER)
DIFFERENT = {  # every end pays something else
    "win0": [10, 20, 40],
    "win1": [-10, -20, -40],
    "tie": 5,
    "match0": 100,
    "match1": -100,
    "one0": 1,
    "one1": -1,
}


def come(game: VariantHand, line: str, *deals: str) -> Any:
    """The history after a line whose actions must all be legal; `deals` have two hands each, as "872 644"."""
    h: Any = ((), (), ())
    for word in [*line.split(), None]:
        while game.player(h) == CHANCE:
            hands = [ranks(hand) for hand in deals[len(h[0])].split()]
            h = ((*h[0], hands[0]), (*h[1], hands[1]), h[2])
        if word is not None:
            assert word in game.actions(h), (word, h)
            h = game.child(h, word)
    return h


@pytest.mark.parametrize(
    ("rules", "line", "player", "actions"),
    [
        (CATALAN, "", 0, "raise 2 7 8"),
        (CATALAN, "8", 0, "raise pass"),
        (CATALAN, "8 pass", 1, "raise 4 6"),
        (CATALAN, "8 raise", 1, "accept refuse"),
        (CATALAN, "8 raise accept", 1, "raise 4 6"),  # the right is the other side's now
        (CATALAN, "8 raise accept 4", 1, "raise pass"),
        (CATALAN, "8 raise accept 4 pass", 0, "2 7"),  # he raised last
        (CATALAN, "8 raise accept 4 raise accept", 0, "2 7"),
        (CATALAN, "8 raise accept 4 pass 7", 1, "raise 4 6"),
        (CATALAN, "raise accept", 0, "2 7 8"),
        (CATALAN, "raise accept 8", 1, "raise 4 6"),  # who raised before his card may not after it
        (CATALAN, "8 pass 4 pass", 0, "raise 2 7"),  # who passed may raise at his very next turn
        (CATALAN, "8 pass raise accept 4", 0, "raise 2 7"),
        (CATALAN, "8 pass raise accept 4 raise accept", 0, "2 7"),
        (FOLD, "", 0, "raise fold 2 7 8"),
        (FOLD, "raise", 1, "accept refuse"),
        (FOLD, "raise accept", 0, "fold 2 7 8"),
        (FOLD, "8", 0, "raise pass"),
        (FRENCH, "", 0, "raise remainder 2 7 8"),
        (FRENCH, "remainder", 1, "accept refuse"),
        (FRENCH, "remainder accept", 0, "2 7 8"),
        (FRENCH, "remainder accept 8", 1, "4 6"),  # nothing can follow it
        (FRENCH, "raise accept 8 raise accept 4", 0, "2 7"),  # nor is it there at the top of the ladder
        (CLAIM, "remainder accept", 0, "fold 2 7 8"),
        (CLAIM, "remainder accept 8", 1, "fold 4 6"),
        (BOTH, "8", 0, "raise remainder pass"),
        (BOTH, "8 remainder accept", 1, "4 6"),
    ],
)
def test_actions_after_a_line(rules: Rules, line: str, player: int, actions: str) -> None:
    game = VariantHand(rules, DIFFERENT)
    h = come(game, line, "872 644")
    assert (game.player(h), " ".join(game.actions(h))) == (player, actions)
    assert game.info_state(h) == (player, (ranks(("872", "644")[player]),), tuple(line.split()))


@pytest.mark.parametrize(
    ("rules", "line", "pays"),
    [
        (CATALAN, "8 pass 4 pass 7 pass 6", 10),  # decided, so there is no more to ask
        (CATALAN, "8 raise refuse", 10),
        (CATALAN, "8 raise accept 4 raise refuse", -20),
        (CATALAN, "8 pass 4 raise refuse", -10),
        (FOLD, "fold", -10),
        (FOLD, "raise accept fold", -20),
        (FOLD, "raise accept 8 fold", 20),
        (FRENCH, "remainder refuse", 10),
        (FRENCH, "8 remainder refuse", -10),
        (FRENCH, "raise accept 8 remainder refuse", -20),
        (FRENCH, "remainder accept 8 4 7 4", 100),
        (FRENCH, "remainder accept 2 4 4 7 8 6", 100),
        (FRENCH, "remainder accept 2 4 6 7 8 4", 100),
        (CLAIM, "remainder refuse", 100),
        (CLAIM, "8 remainder refuse", -100),
        (CLAIM, "remainder accept fold", -100),
        (CLAIM, "remainder accept 8 fold", 100),
        (BOTH, "8 remainder accept 6 7 4", 100),
    ],
)
def test_a_hand_ends_with_this_payoff(rules: Rules, line: str, pays: float) -> None:
    game = VariantHand(rules, DIFFERENT)
    h = come(game, line, "872 644")
    assert (game.player(h), game.utility(h)) == (OVER, pays)


def test_all_tied_goes_to_whom_the_rules_say_whatever_the_stake() -> None:
    for all_tied, pays in (("nobody", 5), ("leader", 100), ("dealer", -100)):
        game = VariantHand(replace(FRENCH, all_tied=all_tied), DIFFERENT)
        assert game.utility(come(game, "remainder accept 8 8 7 7 2 2", "872 872")) == pays
    game = VariantHand(CATALAN)
    assert game.utility(come(game, "8 raise accept 8 pass 7 7 pass 2 2", "872 872")) == 2


def test_points_have_no_remainder_and_no_decision() -> None:
    game = VariantHand(FRENCH)
    assert game.actions(come(game, "", "872 644")) == ("raise", "2", "7", "8")
    game = VariantHand(replace(TARGET, one_card=False), None, (True, False))
    assert game.actions(come(game, "", "872 644")) == ("raise", "2", "7", "8")


def test_redeal() -> None:
    game, deals = VariantHand(REDEAL), ("872 644", "A35 278")
    for line, player, actions in (
        ("", 0, "propose keep"),
        ("keep", 0, "raise 2 7 8"),
        ("propose", 1, "agree decline"),
        ("propose decline", 0, "raise 2 7 8"),
        ("propose agree", 0, "raise A 3 5"),
        ("propose agree raise accept 5", 1, "raise 2 7 8"),
    ):
        h = come(game, line, *deals)
        assert (game.player(h), " ".join(game.actions(h))) == (player, actions)
    assert game.info_state(h) == (1, (ranks("644"), ranks("278")), tuple(line.split()))
    assert game.utility(come(game, "propose agree 5 8 2 raise refuse", *deals)) == 1
    before, _, _ = h = come(game, "propose", "872 644")
    outcomes = game.outcomes(game.child(h, "agree"))
    assert all(child[0][0] == before[0] for child, _ in outcomes)
    assert sum(p for _, p in outcomes) == pytest.approx(1, abs=1e-12)
    eight = sum(p for (hands, _, _), p in outcomes if 7 in hands[1])  # three of the 26 cards
    assert eight == pytest.approx(1 - (23 * 22 * 21) / (26 * 25 * 24), abs=1e-12)


def test_one_card() -> None:
    game = VariantHand(ONE)
    for line, deal, player, actions in (
        ("", "", 0, "cut tap"),
        ("tap", "", 1, "three one"),
        ("cut", "872 644", 0, "raise 2 7 8"),
        ("tap three", "872 644", 0, "raise 2 7 8"),
        ("tap one", "7 6", 0, "raise 7"),
        ("tap one 7", "7 6", 0, "raise pass"),
        ("tap one 7 raise accept", "7 6", 1, "raise 6"),
        ("tap one 7 raise accept raise accept", "7 6", 1, "6"),
    ):
        h = come(game, line, deal)
        assert (game.player(h), " ".join(game.actions(h))) == (player, actions)
        assert game.info_state(h)[1] == ((ranks(deal.split()[player]),) if deal else ())
    for deal, points in (("7 6", 3), ("6 6", 3), ("6 7", -3)):  # a tie goes to the leader
        h = come(game, f"tap one {deal[0]} raise accept raise accept {deal[2]}", deal)
        assert (game.player(h), game.utility(h)) == (OVER, points)


@pytest.mark.parametrize(
    ("before", "line", "player", "actions"),
    [
        ((False, False), "", 0, "cut tap"),
        ((True, False), "", 0, "play decline"),
        ((True, False), "play", 0, "2 7 8"),
        ((True, False), "play 8", 1, "4 6"),
        ((True, False), "decline", OVER, -1),
        ((True, False), "play 8 4 7 4", OVER, 40),
        ((False, True), "", 1, "play decline"),
        ((False, True), "play", 0, "2 7 8"),
        ((False, True), "decline", OVER, 1),
        ((False, True), "play 2 4 4 7 8 6", OVER, 40),
        ((True, True), "", 0, "2 7 8"),
        ((True, True), "8 4 7 4", OVER, 10),
    ],
)
def test_decision_before_the_target(before: tuple[bool, bool], line: str, player: int, actions: Any) -> None:
    game = VariantHand(TARGET, DIFFERENT, before)
    h = come(game, line, "872 644")
    assert game.player(h) == player
    assert (game.utility(h) if player == OVER else " ".join(game.actions(h))) == actions


@pytest.mark.parametrize("name", ["c3x2_L12", "c3x4_L12_leader"])
def test_the_core_rules_are_the_other_hands(name: str) -> None:
    rules = case_rules(test_oracle.CASES[name])
    core, game = TrucHand(rules), VariantHand(rules)
    policy = oracle.random_policy(core, np.random.default_rng(2))
    same = {(p, (hand,), line): probabilities for (p, hand, line), probabilities in policy.items()}
    assert same.keys() == oracle.uniform(game).keys()
    assert oracle.expected_value(game, same) == pytest.approx(oracle.expected_value(core, policy), abs=1e-13)
    for p in (0, 1):
        assert oracle.best_response(game, same, p) == pytest.approx(oracle.best_response(core, policy, p), abs=1e-13)


def test_best_response_across_a_redeal_is_the_best_of_all_pure_strategies() -> None:
    game = VariantHand(Rules("redeal", ("2", "3"), "linear", 2, 1, (1,), "nobody", redeal=True, fold=True))
    policy = oracle.random_policy(game, np.random.default_rng(4))
    own = [key for key in policy if key[0] == 0]
    assert len(own) == 10  # propose; the turn after keep, after decline, after agree with two hands seen
    best = max(
        oracle.expected_value(game, policy | dict(zip(own, pure, strict=True)))
        for pure in product(np.eye(2), repeat=len(own))
    )
    assert oracle.best_response(game, policy, 0) == pytest.approx(best, abs=1e-13)


# ------------------------------------------------------------------------------------------------------ exact cases


def counts(game: VariantHand) -> dict[str, int]:
    """The sizes of a game by the names of the exact cases; the deals are the first ones of a hand."""
    found = {"terminals": oracle.flatten(game).terminals, "deals": 0}
    for p in (0, 1):
        widths = [len(probabilities) for key, probabilities in oracle.uniform(game).items() if key[0] == p]
        found |= {f"infosets_all_p{p}": len(widths), f"infosets_ge2_p{p}": sum(w >= 2 for w in widths)}
    lines = [("cut",), ("tap", "three"), ("tap", "one")] if len(game.roots()) == 1 else [()]
    return found | {"deals": sum(len(game.outcomes(((), (), line))) for line in lines)}


LARGE = ("cat_l4x2", "cat_l3x3_one", "cat_l3x3_fold", "mcat3_l3x3_dec", "mfr4_l3x3_L124_match")


@pytest.mark.parametrize("name", [slow(name) if name in LARGE else name for name in CASES])
def test_sizes_and_uniform_values(name: str) -> None:
    case, game = CASES[name], case_game(name)
    policy = oracle.uniform(game)
    assert counts(game).items() <= case.items()
    assert oracle.expected_value(game, policy) == pytest.approx(case["ev_uniform"], abs=1e-9)
    assert oracle.best_response(game, policy, 0) == pytest.approx(case["br0_vs_uniform"], abs=1e-9)
    assert oracle.best_response(game, policy, 1) == pytest.approx(case["br1_vs_uniform"], abs=1e-9)
    assert oracle.nash_conv(game, policy) / 2 == pytest.approx(case["exploitability_uniform"], abs=1e-9)


@pytest.mark.parametrize("name", [slow(name) if "3x3" in name or "4x2" in name else name for name in CASES])
def test_values(name: str) -> None:
    assert value(case_game(name)) == pytest.approx(CASES[name]["value"], abs=1e-9)


@pytest.mark.parametrize(
    ("name", "accuracy"), [("fr_l3x4_L1_redeal", 1e-6), ("fr_l3x4_hs2_L12_redeal", 1e-3), slow("cat_l3x3", 5e-3)]
)
def test_cfr_brackets_the_exact_value(name: str, accuracy: float) -> None:
    game, exact = case_game(name), CASES[name]["value"]
    average = oracle.cfr(game, "pdcfr+", 150).average
    low, high = -oracle.best_response(game, average, 1), oracle.best_response(game, average, 0)
    assert low - 1e-9 <= exact <= high + 1e-9
    assert high - low < accuracy


class Forced(VariantHand):
    """A hand with a redeal that is always proposed and agreed to."""

    def actions(self, h: Any) -> tuple[str, ...]:
        """Nothing else at these two choices."""
        return {"propose": ("propose",), "agree": ("agree",)}.get(self.public(h[2]).phase) or super().actions(h)


@pytest.mark.parametrize("name", [name for name in CASES if "value_forced_redeal" in CASES[name]])
def test_redeals_by_force_and_not_at_all(name: str) -> None:
    case = CASES[name]
    assert value(Forced(case_rules(case))) == pytest.approx(case["value_forced_redeal"], abs=1e-9)
    without = VariantHand(replace(case_rules(case), redeal=False))
    assert value(without) == pytest.approx(case["value_without_redeal"], abs=1e-9)


# ------------------------------------------------------------------------------------------------------------ matches


def flat(payoffs: Mapping[str, Any]) -> list[float]:
    """Payoffs as a list."""
    return [*payoffs["win0"], *payoffs["win1"], *(payoffs[key] for key in ("tie", "match0", "match1", "one0", "one1"))]


class Hands:
    """The hands of a match; those whose histories are the same are flattened once, as only the payoffs differ."""

    def __init__(self, rules: Rules) -> None:
        self.rules, self.known = rules, dict[tuple[bool, bool], tuple[VariantHand, np.ndarray]]()

    def hand(self, before: tuple[bool, bool], payoffs: Mapping[str, Any]) -> VariantHand:
        """The hand with these payoffs, until the next call."""
        if not (self.rules.decision_before_target or self.rules.one_card):
            before = (False, False)
        if before not in self.known:
            k = len(self.rules.ladder)
            numbers = dict(zip(("tie", "match0", "match1", "one0", "one1"), range(2 * k + 1, 2 * k + 6), strict=True))
            numbered = {"win0": range(1, k + 1), "win1": range(k + 1, 2 * k + 1), **numbers}
            game = VariantHand(self.rules, numbered, before)
            self.known[before] = game, oracle.flatten(game).utility.astype(int)  # which payoff it is, 0 if not over
        game, numbers_at = self.known[before]
        game.payoffs = payoffs
        oracle.flatten(game).utility = np.array([0.0, *flat(payoffs)])[numbers_at]
        return game

    def at(self, a: int, b: int, deal: Mapping[str, float]) -> VariantHand:
        """The hand of one who leads at a-b and deals the next; `deal` is his probability as the dealer, by score."""
        target = self.rules.target

        def scores(x: int, y: int) -> float:
            return 1.0 if a + x >= target else 0.0 if b + y >= target else deal[f"{b + y},{a + x}"]

        payoffs = {
            "win0": [scores(s, 0) for s in self.rules.ladder],
            "win1": [scores(0, s) for s in self.rules.ladder],
            "tie": scores(0, 0),
            "match0": 1.0,
            "match1": 0.0,
            "one0": scores(1, 0),
            "one1": scores(0, 1),
        }
        return self.hand((a == target - 1, b == target - 1), payoffs)


@cache
def match_hands(name: str, **fields: Any) -> Hands:
    """The hands of an exact match."""
    return Hands(replace(case_rules(MATCHES[name]), target=MATCHES[name]["target"], **fields))


@pytest.mark.parametrize(
    ("name", "scores"), [("mfr3_l3x2_L12_stake", "0,0 1,2"), ("mcat4_l3x2_dec_one", "2,3 3,1 0,3 3,3")]
)
def test_hands_with_other_payoffs_are_those_built_with_them(name: str, scores: str) -> None:
    hands, last = match_hands(name), MATCHES[name]["target"] - 1
    for score in scores.split():
        a, b = map(int, score.split(","))
        game = hands.at(a, b, other(MATCHES[name]["U"]))
        built = VariantHand(hands.rules, game.payoffs, (a == last, b == last))
        np.testing.assert_array_equal(oracle.flatten(game).utility, oracle.flatten(built).utility)


@pytest.mark.parametrize("name", [slow(name) if name in LARGE else name for name in MATCHES])
def test_match_tables_against_uniform_are_fixed_points(name: str) -> None:
    match, hands = MATCHES[name], match_hands(name)
    assert match["uniform_value"] == match["U"]["0,0"]
    assert match["value"] == match["V"]["0,0"]
    assert (match["br_leader_vs_uniform"], match["br_dealer_vs_uniform"]) == (match["BL"]["0,0"], match["BD"]["0,0"])
    assert match["exploitability_uniform"] == pytest.approx((match["BL"]["0,0"] + match["BD"]["0,0"] - 1) / 2)
    for score in match["U"]:
        a, b = map(int, score.split(","))
        game = hands.at(a, b, other(match["U"]))
        assert oracle.expected_value(game, oracle.uniform(game)) == pytest.approx(match["U"][score], abs=1e-9)
        game = hands.at(a, b, match["BD"])  # the leader responds, next hand as the dealer
        assert oracle.best_response(game, oracle.uniform(game), 0) == pytest.approx(match["BL"][score], abs=1e-9)
        game = hands.at(a, b, other(match["BL"]))  # the dealer responds, next hand as the leader
        assert 1 + oracle.best_response(game, oracle.uniform(game), 1) == pytest.approx(match["BD"][score], abs=1e-9)
    last = match["target"] - 1
    for standing, sizes in match["hand"].items():
        a, b = (last if digit == "1" else 0 for digit in standing)
        assert counts(hands.at(a, b, other(match["U"]))) == sizes


@pytest.mark.parametrize("name", [name if name == "mfr3_l3x2_L12_stake" else slow(name) for name in MATCHES])
def test_match_values_are_fixed_points(name: str) -> None:
    match = MATCHES[name]
    for score, exact in match["V"].items():
        game = match_hands(name).at(*map(int, score.split(",")), other(match["V"]))
        assert value(game) == pytest.approx(exact, abs=1e-9)
