"""The public tree with folds, remainders and raises after the card, on the exact cases and against the oracle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from games.rules import Rules, preset
from solver.cfr import Payoffs, Solver
from solver.equity import decider, hand_rules, score_rules, scores
from solver.essential import essential, left_out
from solver.match import evaluate_match, solve_pair
from solver.nodes import UnsupportedRulesError
from solver.strategy import Strategy, root
from solver.tree import Tree, public_tree
from tests.bridge import random_strategy

FILE = json.loads((Path(__file__).parent / "data" / "exact_cases_variants.json").read_text())
CASES = {case["name"]: case for case in FILE["cases"]}
MATCHES = {case["name"]: case for case in FILE["matches"]}
NO_TREE = ("redeal", "one_card")


def rules_of(case: dict[str, Any]) -> Rules:
    given = {key: tuple(value) if isinstance(value, list) else value for key, value in case["rules"].items()}
    ranks = tuple("23456789TJQKABCD"[: given.pop("n")])
    return Rules(name=case["name"].replace("_", "-"), ranks=ranks, target=case.get("target", 12), **given)


def with_tree(cases: dict[str, Any]) -> list[str]:
    return [name for name, case in cases.items() if not any(case["rules"][field] for field in NO_TREE)]


@pytest.mark.parametrize("name", with_tree(CASES))
def test_uniform_play(name: str) -> None:
    case = CASES[name]
    found = Strategy.uniform(Tree(rules_of(case))).evaluate()
    expected = case["ev_uniform"], case["br0_vs_uniform"], case["br1_vs_uniform"]
    assert (found.value, *found.best_response) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", list(CASES))
def test_what_is_left_out_changes_no_value(name: str) -> None:
    """Solved with everything the tree has, and as the full games are: both intervals contain the exact value."""
    rules, value = rules_of(CASES[name]), CASES[name]["value"]
    for game in {essential(rules), rules} if name in with_tree(CASES) else {essential(rules)}:
        solver = Solver(Tree(game))
        solver.step(400)
        found = Strategy.of(solver).evaluate()
        assert found.exploitability < 1e-3
        assert found.interval[0] <= value <= found.interval[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", with_tree(CASES))
def test_exact_value(name: str) -> None:
    """To 1e-6, in float64."""
    case = CASES[name]
    solver = Solver(Tree(rules_of(case)), dtype=np.float64)
    while (found := Strategy.of(solver).evaluate()).exploitability > 1e-6 and solver.iterations < 20_000:
        solver.step(1000)
    assert found.value == pytest.approx(case["value"], abs=1e-6)


@pytest.mark.parametrize("name", with_tree(MATCHES))
def test_matches(name: str) -> None:
    case = MATCHES[name]
    rules = rules_of(case)
    uniform = evaluate_match(
        rules, lambda score: Strategy.uniform(public_tree(score_rules(rules, score), decider(rules, score)))
    )
    for score, worth in uniform.items():
        key = f"{score[0]},{score[1]}"
        assert worth == pytest.approx((case["U"][key], case["BL"][key], case["BD"][key]), abs=1e-9)
    known: dict[Any, Any] = {}
    for score in scores(rules):
        if score not in known:
            known |= {each: found.worth for each, found in solve_pair(rules, score, known, 1e-4).items()}
    for score, worth in known.items():
        value = case["V"][f"{score[0]},{score[1]}"]
        assert worth.lower - 1e-12 <= value <= worth.upper + 1e-12
        assert worth.value == pytest.approx(value, abs=2e-4)


def test_probabilities_add_up_with_every_action() -> None:
    rules = rules_of(CASES["cat_l3x3_fold"])
    tree = Tree(rules)
    strategy = Strategy(tree, Payoffs.points(rules), random_strategy(tree, np.random.default_rng(1)))
    decision = strategy.at(("3",))  # the leader may raise after his card
    assert decision.actions == ("raise", "pass")
    assert decision.player == 0
    assert decision.probabilities.sum(axis=1) == pytest.approx(1)
    assert strategy.at(("3", "pass")).actions == ("raise", "fold", "2", "3", "4")
    assert strategy.at(("3", "raise", "accept")).player == 1
    assert strategy.at(("raise", "accept")).actions == ("fold", "2", "3", "4")
    # Who raised before his card does not raise after it.
    assert strategy.at(("raise", "accept", "3")).player == 1
    assert root(tree).node == 0


def test_what_has_no_tree_is_refused() -> None:
    with pytest.raises(UnsupportedRulesError, match="redeal = true"):
        Tree(preset("french"))


def test_what_is_left_out() -> None:
    french, catalan = preset("french"), preset("catalan")
    assert left_out(french).keys() == {"fold", "redeal", "the remainder"}
    assert left_out(french, in_match=True).keys() == {"fold", "redeal"}
    assert left_out(catalan, in_match=True).keys() == {"raising after the card", "the one-card hand"}
    for rules in (french, catalan):
        assert not left_out(essential(rules)) | left_out(essential(rules, in_match=True), in_match=True)
        assert essential(essential(rules)) == essential(rules)
    assert hand_rules(french, (11, 3)).ladder == (1, 2, 4, 6, 8, 10)
    assert hand_rules(french, (11, 3)).remainder
    assert not left_out(preset("le-truc"))
    assert essential(preset("le-truc")) == preset("le-truc")
