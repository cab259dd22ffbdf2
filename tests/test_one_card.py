"""The choices before the deal, put together from their parts: exact cases, the oracle, and the match."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from games.rules import Rules
from games.state import State
from solver.before_deal import (
    UNIFORM,
    Choices,
    Parts,
    after_cut,
    after_one,
    cautious,
    evaluate_match,
    evaluation_before_deal,
    may_tap,
    worth_before_deal,
)
from solver.best_response import Evaluation
from solver.cfr import PROBABILITY, Solver
from solver.equity import Score, Worth, decider, hand_tree, score_rules, scores
from solver.match import Solution, solve_pair
from solver.strategy import Strategy
from solver.tree import Tree, public_tree
from tests import oracle
from tests.oracle_variants import VariantHand
from tests.test_oracle import case_rules
from tests.test_oracle_variants import AFTER, CASES, MATCHES

CASE = CASES["cat_l3x3_one"]
RULES = case_rules(CASE)
MATCH = MATCHES["mcat4_l3x2_dec_one"]
MATCH_RULES = replace(case_rules(MATCH), target=MATCH["target"])


def three(found: Evaluation) -> tuple[float, float, float]:
    """Value and both best responses."""
    return (found.value, *found.best_response)


# ---------------------------------------------------------------------------------------------------------- one hand


def test_uniform_play() -> None:
    cut, one = (Strategy.uniform(Tree(rules)).evaluate() for rules in (after_cut(RULES), after_one(RULES)))
    found = evaluation_before_deal(UNIFORM, cut, cut, one)
    expected = CASE["ev_uniform"], CASE["br0_vs_uniform"], CASE["br1_vs_uniform"]
    assert three(found) == pytest.approx(expected, abs=1e-9)
    assert found.exploitability == pytest.approx(CASE["exploitability_uniform"], abs=1e-9)


@pytest.mark.parametrize("choices", [UNIFORM, Choices(0.3, 0.8), Choices(0.0, 1.0), Choices(1.0, 0.0)])
def test_any_play_is_put_together_as_the_oracle_plays_it(choices: Choices) -> None:
    rules = Rules("deck", ("2", "3", "4"), "linear", 2, 2, (1, 2), "leader", raise_when=AFTER, one_card=True)
    whole, rng = VariantHand(rules), np.random.default_rng(3)
    policy = {key: x for key, x in oracle.uniform(whole).items() if not key[1]}
    policy[0, (), ()] = np.array([1 - choices.tap, choices.tap])
    policy[1, (), ("tap",)] = np.array([1 - choices.one, choices.one])
    parts = []
    for line in (("cut",), ("tap", "three"), ("tap", "one")):
        hand = VariantHand(after_one(rules) if line[-1] == "one" else after_cut(rules))
        play = oracle.random_policy(hand, rng)
        policy |= {(p, hands, (*line, *rest)): x for (p, hands, rest), x in play.items()}
        best = oracle.best_response(hand, play, 0), oracle.best_response(hand, play, 1)
        parts.append(Evaluation(oracle.expected_value(hand, play), best, 0.0, "points per hand"))
    assert policy.keys() == oracle.uniform(whole).keys()
    best = oracle.best_response(whole, policy, 0), oracle.best_response(whole, policy, 1)
    expected = (oracle.expected_value(whole, policy), *best)
    assert three(evaluation_before_deal(choices, *parts)) == pytest.approx(expected, abs=1e-13)


def test_the_option_changes_no_value() -> None:
    """Solved hands: the leader cuts, and the whole is as good as the hand alone."""
    found = []
    for rules in (after_cut(RULES), after_one(RULES)):
        solver = Solver(Tree(rules), dtype=np.float64)
        solver.step(1000)
        found.append(Strategy.of(solver).evaluate())
    cut, one = found
    whole = evaluation_before_deal(None, cut, cut, one)
    assert one.value > cut.value + 0.1  # one card would be to the leader's liking, so the dealer deals three
    assert three(whole) == three(cut)
    assert whole.exploitability < 1e-3
    assert whole.interval[0] <= CASE["value"] <= whole.interval[1]


def test_the_cautious_guarantee_most() -> None:
    """Of all choices before the deal, whatever the parts are like."""
    rng = np.random.default_rng(8)
    seen = set()
    for _ in range(200):
        parts = []
        for _ in range(3):
            value, first, second = rng.normal(), *rng.exponential(0.5, 2)
            parts.append(Worth(value, value + first, second - value))
        cut, tapped, one = parts
        seen.add(choices := cautious(cut, tapped, one))
        whole = worth_before_deal(None, cut, tapped, one)
        assert whole == worth_before_deal(choices, cut, tapped, one)
        others = [worth_before_deal(Choices(*each), cut, tapped, one) for each in product((0.0, 0.4, 1.0), repeat=2)]
        assert whole.leader == pytest.approx(min(other.leader for other in others))
        assert whole.dealer == pytest.approx(min(other.dealer for other in others))
        assert whole.leader + whole.dealer >= 0  # an interval still
    assert len(seen) == 4


def test_parts_must_be_counted_alike() -> None:
    cut = Evaluation(0.5, (0.6, 0.6), 0.0, PROBABILITY, 1.0)
    found = evaluation_before_deal(UNIFORM, cut, cut, replace(cut, value=0.7, rounding=1e-9))
    assert (found.unit, found.total, found.value) == (PROBABILITY, 1.0, pytest.approx(0.55))
    assert found.rounding >= 1e-9
    with pytest.raises(ValueError, match="points per hand"):
        evaluation_before_deal(UNIFORM, cut, cut, Evaluation(0.0, (0.1, 0.1), 0.0, "points per hand"))


# --------------------------------------------------------------------------------------------------------- the match


def test_nobody_taps_before_the_target() -> None:
    for score in scores(MATCH_RULES):
        assert may_tap(MATCH_RULES, score) == (State.begin(MATCH_RULES, score).phase == "cut")
    assert may_tap(RULES, None)
    assert not may_tap(after_cut(RULES), None)


def numbers(found: dict[Score, Worth], part: str) -> dict[str, float]:
    """One of the three numbers of every score, by the exact file's names."""
    return {f"{a},{b}": getattr(worth, part) for (a, b), worth in found.items()}


def test_uniform_play_of_a_match() -> None:
    def uniform(score: Score, **fields: Any) -> Strategy:
        rules = replace(after_cut(score_rules(MATCH_RULES, score)), **fields)
        return Strategy.uniform(public_tree(rules, decider(MATCH_RULES, score)))

    def tapped(score: Score) -> Parts:
        return Parts(uniform(score), uniform(score), uniform(score, hand_size=1), UNIFORM)

    found = evaluate_match(MATCH_RULES, uniform, tapped)
    for table, part in (("U", "value"), ("BL", "leader"), ("BD", "dealer")):
        assert numbers(found, part) == pytest.approx(MATCH[table], abs=1e-9)
    assert found[0, 0].exploitability == pytest.approx(MATCH["exploitability_uniform"], abs=1e-9)


@cache
def solved_without() -> dict[Score, Solution]:
    """The match solved as it is without the choice before the deal."""
    found: dict[Score, Solution] = {}
    for score in scores(MATCH_RULES):
        if score not in found:
            known = {each: solution.worth for each, solution in found.items()}
            found |= solve_pair(after_cut(MATCH_RULES), score, known, 1e-4)
    return found


def test_the_option_changes_no_value_of_a_match() -> None:
    without = solved_without()

    def tapped(score: Score) -> Parts:
        solution = without[score]
        solver = Solver(public_tree(after_one(hand_tree(MATCH_RULES, score).rules)), solution.payoffs)
        solver.step(300)
        return Parts(solution.strategy, solution.strategy, Strategy.of(solver), None)

    found = evaluate_match(MATCH_RULES, lambda score: without[score].strategy, tapped)
    assert numbers(found, "value") == pytest.approx(MATCH["V"], abs=2e-4)
    for score, worth in found.items():
        exact = MATCH["V"][f"{score[0]},{score[1]}"]
        assert worth.lower - 1e-12 <= exact <= worth.upper + 1e-12
        assert worth == pytest.approx(without[score].worth, abs=1e-12)  # nobody takes the option
