"""Strategies as OpenSpiel's policies and back: nothing is lost, and both sides value them alike."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from games.rules import Rules, preset
from games.state import State
from solver.cfr import Payoffs, Solver
from solver.strategy import Strategy, child, ending, find
from solver.tree import Tree
from tests.bridge import case_payoffs, make_rules
from tests.test_oracle import CASES, case_rules

pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is not installed: pip install -e '.[openspiel]'")

from open_spiel.python import policy as policies  # noqa: E402
from open_spiel.python.algorithms import exploitability  # noqa: E402

from solver.compare import AGREE, random_table  # noqa: E402
from solver.openspiel import ExchangeError, OpenSpielPolicy, imported, load_game, tabular  # noqa: E402
from solver.openspiel_algorithms import Remembered, sampled_table, worth  # noqa: E402

PLAIN = ("c3x2_L12", "c3x4_L12_leader")
EVERY = [name if name in PLAIN else pytest.param(name, marks=pytest.mark.slow) for name in CASES]


class Both:
    """A game as both sides have it, and our solution of it."""

    def __init__(self, rules: Rules, payoffs: Payoffs) -> None:
        self.tree, self.payoffs = Tree(rules), payoffs
        self.game = load_game(rules, payoffs)
        self.template = policies.TabularPolicy(self.game)
        self.root = Remembered(self.game.new_initial_state())
        solver = Solver(self.tree, payoffs)
        solver.step(300)
        self.solved = Strategy.of(solver)
        self.table = tabular(self.solved, self.game, self.template)


@cache
def both(name: str) -> Both:
    """An exact case, or a preset."""
    if name in CASES:
        return Both(case_rules(CASES[name]), case_payoffs(name))
    return Both(preset(name), Payoffs.points(preset(name)))


@pytest.mark.parametrize("name", EVERY)
def test_both_sides_value_policies_alike(name: str) -> None:
    """The solved policy and 20 random ones: value and nash_conv."""
    case = both(name)
    for table in (case.table, *(random_table(case.template, seed) for seed in range(20))):
        value, nash_conv = worth(case.root, table)
        found = imported(case.tree, table, case.payoffs).evaluate()
        assert found.value == pytest.approx(value, abs=AGREE)
        assert found.nash_conv == pytest.approx(nash_conv, abs=AGREE)
    assert imported(case.tree, case.table, case.payoffs).evaluate().nash_conv == pytest.approx(
        case.solved.evaluate().nash_conv, abs=1e-12
    )


def test_remembered_states_change_nothing() -> None:
    case = both("tiny")
    table = random_table(case.template, 1)
    value, nash_conv = worth(case.root, table)
    assert nash_conv == exploitability.nash_conv(case.game, table)
    policy = policies.python_policy_to_pyspiel_policy(table)
    assert pyspiel.nash_conv(case.game, policy, True) == pytest.approx(nash_conv, abs=1e-12)
    assert pyspiel.expected_returns(case.game.new_initial_state(), policy, -1, True)[0] == pytest.approx(
        value, abs=1e-12
    )


@pytest.mark.parametrize("name", EVERY)
def test_round_trip(name: str) -> None:
    case = both(name)
    again = tabular(imported(case.tree, case.table, case.payoffs), case.game, case.template)
    np.testing.assert_allclose(again.action_probability_array, case.table.action_probability_array, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    "rules",
    [
        make_rules(3, 2, 1, (1, 2, 4)),
        make_rules(5, 4, 1, (1, 3), tied="dealer"),
        make_rules(6, 1, 2, (1, 2)),
        make_rules(3, 2, 3, (1,), order="linear"),
        make_rules(2, 3, 3, (1, 2, 3), order="linear", tied="leader"),
    ],
)
@pytest.mark.parametrize("reduced", [True, False])
def test_odd_games(rules: Rules, reduced: bool) -> None:
    game, tree = load_game(rules), Tree(rules, reduced)
    template = policies.TabularPolicy(game)
    table = random_table(template, 1)
    strategy = imported(tree, table)
    found = strategy.evaluate()
    expected = worth(Remembered(game.new_initial_state()), table)
    assert (found.value, found.nash_conv) == pytest.approx(expected, abs=AGREE)
    if not reduced:
        again = tabular(strategy, game, template)
        np.testing.assert_allclose(again.action_probability_array, table.action_probability_array, rtol=0, atol=1e-15)


def test_merged_last_cards_are_weighted_by_how_likely_they_are() -> None:
    """The dealer has won a trick with the 2 and lost the 3; the last led card, a 4, beats A, 2 and 3."""
    rules = replace(preset("mini"), order="linear", ladder=(1, 2), name="test")
    raises, ace, two, three = 0, 3, 4, 5
    table = {
        "dealer [A 2 3] A": [(two, 1.0), (ace, 0.5), (raises, 0.5)],  # the 2 in half of the cases
        "dealer [2 2 3] A": [(two, 1.0)],
        "dealer [2 3 3] A": [(two, 1.0), (three, 3.0)],
        "dealer [A 3] A 2": [(three, 1.0)],
        "dealer [2 3] A 2": [(three, 2.0), (raises, 3.0)],  # with [3 3] it raises or plays the 3 equally often
        "dealer [A] A 2 3 4 4": [(raises, 0.9), (ace, 0.1)],
        "dealer [3] A 2 3 4 4": [(three, 1.0)],  # with the 2 it raises or plays equally often
    }
    after = imported(Tree(rules), table).at(("A", "2", "3", "4", "4"))
    # The leader has A 4 4, so there are 3 aces, 4 twos and 4 threes for the dealer: hands [A 2 3] 3 * 4 * 4,
    # [2 2 3] 6 * 4, [2 3 3] 4 * 6.
    weights = np.array([48 * 0.5 * 1.0, 24 * 1.0 * 0.4, 24 * 0.25 * 0.5])
    expected = weights @ [0.9, 0.5, 0.0] / weights.sum()
    assert after.probabilities[:3, 0] == pytest.approx([expected] * 3, abs=1e-12)
    assert after.probabilities[3, 0] == 0.5


def test_a_sparse_table_plays_uniformly_elsewhere() -> None:
    tree, uniform = Tree(preset("le-truc")), Strategy.uniform(Tree(preset("le-truc")))
    table = {"leader [A 3 8]": [(0, 30.0), (3, 10.0)], "dealer [2 2 5] raise": [(2, 1e-3)], "leader [7 7 7]": []}
    strategy = imported(tree, table)
    first = strategy.at(())
    row = first.holdings.tolist().index([0, 2, 7])
    assert first.probabilities[row, :2].tolist() == [0.75, 0.25]
    answers = strategy.at(("raise",))
    assert answers.probabilities[answers.holdings.tolist().index([1, 1, 4])].tolist() == [0.0, 1.0]
    changed = [int((a != b).sum()) for a, b in zip(strategy.probabilities, uniform.probabilities, strict=True)]
    assert changed == [3, 2]  # raise (the ace stays at 1/4) and two cards; accept and refuse
    assert imported(tree, {}).evaluate() == uniform.evaluate()


@pytest.mark.parametrize(
    "table",
    [
        {"leader [A 3 8] raise": [(1, 1.0)]},  # the dealer answers
        {"dealer [A 3] raise": [(1, 1.0)]},  # a card too few
        {"leader [A 3 9]": [(0, 1.0)]},
        {"leader [A 3 8]": [(4, 1.0)]},  # the 2, which is not held
        {"leader [A 3 8]": [(0, -1.0)]},
        {"leader [A 3 8]": [(0, float("nan"))]},
        {"leader [A 3 8] raise refuse": [(0, 1.0)]},
        {"leader [A 3 8] nothing": [(0, 1.0)]},
        {"nonsense": [(0, 1.0)]},
    ],
)
def test_policies_of_another_game_are_refused(table: dict[str, list[tuple[int, float]]]) -> None:
    with pytest.raises(ExchangeError):
        imported(Tree(preset("le-truc")), table)


def test_rules_must_be_the_games() -> None:
    with pytest.raises(ExchangeError, match="other rules"):
        OpenSpielPolicy(both("tiny").solved, load_game(preset("mini")))
    folding = replace(preset("tiny"), fold=True)
    with pytest.raises(ExchangeError, match="fold"):
        OpenSpielPolicy(Strategy.uniform(Tree(folding)), load_game(folding))


def test_any_policy_can_be_read() -> None:
    case = both("tiny")
    strategy = imported(case.tree, policies.UniformRandomPolicy(case.game))
    assert strategy.evaluate().nash_conv == pytest.approx(2 * CASES["c3x2_L12"]["exploitability_uniform"], abs=AGREE)
    own = OpenSpielPolicy(case.solved, case.game)
    assert imported(case.tree, own).evaluate().nash_conv == pytest.approx(case.solved.evaluate().nash_conv, abs=1e-12)


def test_sampled_policies_are_read_as_openspiel_plays_them() -> None:
    case = both("tiny")
    solver = pyspiel.ExternalSamplingMCCFRSolver(case.game, 1)
    for _ in range(200):
        solver.run_iteration()
    table, met = sampled_table(solver)
    assert len(table) < met <= len(case.template.states)
    average = solver.average_policy()
    for state in case.template.states:
        theirs = dict(average.action_probabilities(state))
        weights = dict(table.get(state.information_state_string(), [(action, 1.0) for action in theirs]))
        ours = {action: weight / sum(weights.values()) for action, weight in weights.items()}
        assert ours == pytest.approx(theirs, abs=1e-12)


def test_ends_are_the_referees() -> None:
    """Who wins and at which stake, at random ends of the whole game and of a small one."""
    rng = random.Random(1)
    for name in ("le-truc", "mini", "two-card"):
        rules = preset(name)
        tree = Tree(rules)
        deck = [rank for rank in range(rules.n_ranks) for _ in range(rules.copies)]
        for _ in range(300):
            dealt = rng.sample(deck, 2 * rules.hand_size)
            state = State.deal(rules, dealt[: rules.hand_size], dealt[rules.hand_size :])
            while not state.is_over:
                before, action = state, rng.choice(state.legal_actions())
                state = state.apply(action)
            position = find(tree, before.line)
            assert child(tree, position, action) is None
            winner = 2 if state.winner == -1 else state.winner
            assert ending(tree, position, action) == (winner, state.level)
