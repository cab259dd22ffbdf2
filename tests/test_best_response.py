"""Values and best responses: against exact numbers, against the oracle, and against what must not matter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from games.cards import hands as holdings
from games.rules import preset
from solver.best_response import evaluate
from solver.cfr import Payoffs, Sweeper
from solver.kernels import EXPECT
from solver.strategy import Strategy
from solver.tree import Tree
from tests import oracle
from tests.bridge import bridge, case_payoffs, make_rules, random_strategy
from tests.oracle import TrucHand
from tests.test_oracle import CASES, case_game, case_rules

ODD = {
    "one card": make_rules(3, 2, 1, (1, 2, 4)),
    "one card, ties to the dealer": make_rules(5, 4, 1, (1, 3), tied="dealer"),
    "one card, no raise": make_rules(4, 1, 1, (1,)),
    "one rank": make_rules(1, 6, 3, (1, 2, 3), order="linear"),
    "one rank, ties to the leader": make_rules(1, 4, 2, (1, 2), order="linear", tied="leader"),
    "two ranks": make_rules(2, 3, 3, (1, 2), order="linear", tied="dealer"),
    "no pairs": make_rules(6, 1, 3, (1, 2)),
    "no pairs, two cards": make_rules(5, 1, 2, (1, 2, 3), order="linear"),
    "no raise": make_rules(3, 3, 3, (2,), tied="leader"),
    "two cards": make_rules(4, 2, 2, (1, 2, 4), tied="leader"),
    "three cards, ties to the dealer": make_rules(3, 2, 3, (1, 2, 4), tied="dealer"),
    "sixteen ranks": make_rules(16, 2, 1, (1, 2, 3)),
    "seventeen lanes": make_rules(7, 1, 2, (1, 2)),  # 21 first tricks of one result
}
ODD_GAMES = {name: TrucHand(rules) for name, rules in ODD.items()}


def scores(game: TrucHand, policy: oracle.Policy) -> tuple[float, float, float]:
    """The oracle's value and best responses."""
    return (
        oracle.expected_value(game, policy),
        oracle.best_response(game, policy, 0),
        oracle.best_response(game, policy, 1),
    )


@pytest.mark.parametrize("reduced", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_uniform_has_the_exact_values(name: str, reduced: bool) -> None:
    case = CASES[name]
    tree = Tree(case_rules(case), reduced)
    found = Strategy.uniform(tree, case_payoffs(name)).evaluate()
    assert found.value == pytest.approx(case["ev_uniform"], abs=1e-9)
    assert found.best_response == pytest.approx((case["br0_vs_uniform"], case["br1_vs_uniform"]), abs=1e-9)
    assert found.exploitability == pytest.approx(case["exploitability_uniform"], abs=1e-9)
    assert found.nash_conv == 2 * found.exploitability


@pytest.mark.parametrize(
    "name", ["c3x2_L12", "c3x4_L12_leader", "c8x4_hs2_L12", pytest.param("c3x4_L124_payoffs", marks=pytest.mark.slow)]
)
def test_random_strategies_have_the_oracles_values(name: str) -> None:
    game, payoffs = case_game(name), case_payoffs(name)
    reduced, full = bridge(game, True), bridge(game, False)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        strategy = random_strategy(reduced.tree, rng)
        policy = reduced.policy(strategy)
        expected = scores(game, policy)
        for found in (
            evaluate(reduced.tree, payoffs, strategy),
            evaluate(full.tree, payoffs, full.arrays(policy)),  # the same strategy: nothing is lost by reducing
        ):
            assert (found.value, *found.best_response) == pytest.approx(expected, abs=1e-12)
        strategy = random_strategy(full.tree, rng)  # here the merged states may differ
        found = evaluate(full.tree, payoffs, strategy)
        assert (found.value, *found.best_response) == pytest.approx(scores(game, full.policy(strategy)), abs=1e-12)


@pytest.mark.parametrize("reduced", [True, False])
@pytest.mark.parametrize("name", ODD)
def test_odd_decks(name: str, reduced: bool) -> None:
    game, both = ODD_GAMES[name], bridge(ODD_GAMES[name], reduced)
    payoffs = Payoffs.points(game.rules)
    for seed in range(3):
        strategy = random_strategy(both.tree, np.random.default_rng(seed))
        found = evaluate(both.tree, payoffs, strategy)
        assert (found.value, *found.best_response) == pytest.approx(scores(game, both.policy(strategy)), abs=1e-12)


@pytest.mark.parametrize("name", ["c3x2_L12", "c4x4_L12", "c8x4_hs2_L12"])
def test_pure_strategies_have_the_oracles_values(name: str) -> None:
    game, both = case_game(name), bridge(case_game(name), True)
    strategy = random_strategy(both.tree, np.random.default_rng(3))
    for p in range(2):
        starts, sizes = both.tree.states[p]
        best = np.repeat(np.maximum.reduceat(strategy[p], starts, axis=0), sizes, axis=0)
        strategy[p][:] = strategy[p] == best
    found = evaluate(both.tree, case_payoffs(name), strategy)
    assert (found.value, *found.best_response) == pytest.approx(scores(game, both.policy(strategy)), abs=1e-12)


def test_values_are_conditional_on_the_hand() -> None:
    both = bridge(case_game("c4x4_L12"), True)
    strategy = random_strategy(both.tree, np.random.default_rng(2))
    values = both.flat.values(both.flat.vector(both.policy(strategy)))
    sweeper = Sweeper(both.tree, Payoffs.points(both.tree.rules), np.float64)
    hands = [tuple(map(int, row)) for row in holdings(4, 3, 4)]
    for player, sign in ((0, 1), (1, -1)):
        expected = dict.fromkeys(hands, 0.0)
        for value, (deal, chance) in zip(values, both.chance.items(), strict=False):  # the deals come first
            expected[deal[player]] += sign * chance * value / both.dealt[player, deal[player]]
        assert sweeper.values(player, EXPECT, strategy) == pytest.approx(list(expected.values()), abs=1e-12)


def test_the_full_game_against_uniform() -> None:
    """No other program has these numbers; what holds without knowing them, and the same bits on any threads."""
    uniform = Strategy.uniform(Tree(preset("le-truc")))
    found = uniform.evaluate()
    assert -found.best_response[1] < found.value < found.best_response[0]
    assert uniform.evaluate(threads=2) == uniform.evaluate(threads=3) == found


def test_values_scale_and_shift_with_the_payoffs() -> None:
    tree = Tree(case_rules(CASES["c3x4_L12_leader"]))
    strategy = random_strategy(tree, np.random.default_rng(4))
    plain = Payoffs.points(tree.rules)
    other = Payoffs(tuple(3 * x + 5 for x in plain.win0), tuple(3 * x + 5 for x in plain.win1), 5.0, "something")
    a, b = evaluate(tree, plain, strategy), evaluate(tree, other, strategy)
    assert b.value == pytest.approx(3 * a.value + 5, abs=1e-12)
    assert b.best_response == pytest.approx((3 * a.best_response[0] + 5, 3 * a.best_response[1] - 5), abs=1e-12)
    assert b.unit == "something"


@pytest.mark.parametrize(("side", "payoff"), [("leader", 1.0), ("dealer", -1.0)])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_all_tied_to_a_side_is_all_tied_to_nobody_at_that_price(side: str, payoff: float, size: int) -> None:
    rules = make_rules(3, 4, size, (1,))  # without raises both have the same states
    nobody = Tree(rules)
    strategy = random_strategy(nobody, np.random.default_rng(6))
    expected = evaluate(nobody, Payoffs((1.0,), (-1.0,), payoff), strategy)
    found = evaluate(Tree(replace(rules, all_tied=side)), Payoffs.points(rules), strategy)
    assert (found.value, *found.best_response) == pytest.approx((expected.value, *expected.best_response), abs=1e-12)
