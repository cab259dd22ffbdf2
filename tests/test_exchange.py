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
from solver.equity import decider, score_rules
from solver.strategy import Strategy, child, ending, find
from solver.tree import Tree
from tests.bridge import case_payoffs, make_rules
from tests.test_oracle import CASES, case_rules
from tests.test_tree_variants import CASES as VARIANTS
from tests.test_tree_variants import rules_of, with_tree

pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is not installed: pip install -e '.[openspiel]'")

from open_spiel.python import policy as policies  # noqa: E402
from open_spiel.python.algorithms import exploitability  # noqa: E402

from games.openspiel import load  # noqa: E402
from solver.compare import AGREE, random_table  # noqa: E402
from solver.openspiel import (  # noqa: E402
    ExchangeError,
    OpenSpielPolicy,
    imported,
    load_game,
    same_hand,
    tabular,
)
from solver.openspiel_algorithms import Remembered, sampled_table, worth  # noqa: E402

PLAIN = ("c3x2_L12",)
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
    with pytest.raises(ExchangeError, match="other rules"):
        OpenSpielPolicy(Strategy.uniform(Tree(folding)), load_game(preset("tiny")))
    with pytest.raises(ExchangeError, match="other rules"):
        imported(Tree(folding), both("tiny").template)
    # In points nobody can call the remainder, so a tree that has it is of another hand.
    calling = replace(preset("tiny"), remainder=True)
    with pytest.raises(ExchangeError, match="other rules"):
        imported(Tree(calling), policies.TabularPolicy(load_game(calling)))
    assert imported(Tree(preset("tiny")), policies.TabularPolicy(load_game(calling)))


# ------------------------------------------------------------------------------------------ the actions of other rules

SMALL = Rules("small", ("A", "2", "3"), "linear", 2, 2, (1, 2, 3), "nobody", target=4)
EVERYTHING = replace(SMALL, raise_when=("before", "after"), remainder=True, fold=True)
OTHERS: dict[str, tuple[Rules, int | None]] = {
    "everything": (EVERYTHING, None),
    "refused remainders": (replace(EVERYTHING, remainder_refused="match", all_tied="dealer"), None),
    "remainder": (replace(SMALL, remainder=True, order="circular"), None),
    "remainder, three cards": (replace(preset("tiny"), remainder=True), None),
    "leader decides": (replace(SMALL, decision_before_target=True, ladder=(3,)), 0),
    "dealer decides": (replace(EVERYTHING, remainder=False, decision_before_target=True, ladder=(3,)), 1),
}


def probabilities(rules: Rules, decider: int | None) -> Payoffs:
    """Some payoffs for each level of a tree."""
    rng, levels = np.random.default_rng(3), Tree(rules, decider=decider).levels
    win0, win1 = rng.uniform(0.5, 1, levels), rng.uniform(0, 0.5, levels)
    if decider is not None:
        win1[-1] = win0[-1]
    return Payoffs(tuple(win0), tuple(win1), 0.5, "match-winning probability")


@pytest.mark.parametrize(
    ("name", "reduced"),
    [(name, reduced) for name in OTHERS for reduced in (True, False) if not reduced or Tree(OTHERS[name][0]).reduced],
)
def test_every_action_there_and_back(name: str, reduced: bool) -> None:
    rules, decider = OTHERS[name]
    payoffs, tree = probabilities(rules, decider), Tree(rules, reduced, decider)
    game = load_game(rules, payoffs, decider)
    template, start = policies.TabularPolicy(game), Remembered(game.new_initial_state())
    for seed in range(2):
        table = random_table(template, seed)
        strategy = imported(tree, table, payoffs)
        found = strategy.evaluate()
        assert (found.value, found.nash_conv) == pytest.approx(worth(start, table), abs=AGREE)
        again = tabular(strategy, game, template)
        assert (found.value, found.nash_conv) == pytest.approx(worth(start, again), abs=AGREE)
        if not tree.reduced:
            expected = table.action_probability_array
            np.testing.assert_allclose(again.action_probability_array, expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("score", [(0, 0), (3, 0), (1, 3), (3, 3)])
def test_the_game_of_all_rules_has_the_hand_at_a_score(score: tuple[int, int]) -> None:
    """OpenSpiel has the whole ladder and is told where the match stands; the tree has what is left of it there."""
    rules = replace(SMALL, decision_before_target=True, raise_when=("before", "after"))
    who = decider(rules, score)
    tree = Tree(score_rules(rules, score), decider=who)
    win0, win1, declined = (0.6, 0.7, 0.8), (0.4, 0.3, 0.1), 0.55
    before = {(0, 0): "none", (3, 0): "leader", (1, 3): "dealer", (3, 3): "both"}[score]
    if before == "both":  # the hand decides the match, whatever its stake
        win0, win1 = (1.0,) * 3, (0.0,) * 3
    game = load(rules, win0, win1, 0.5, None, declined if who is not None else None, before)
    levels = 1 if 3 in score else 3
    more = () if who is None else (declined,)
    payoffs = Payoffs((*win0[-levels:], *more), (*win1[-levels:], *more), 0.5, "match-winning probability")
    table = random_table(policies.TabularPolicy(game), 1)
    found = imported(tree, table, payoffs).evaluate()
    expected = worth(Remembered(game.new_initial_state()), table)
    assert (found.value, found.nash_conv) == pytest.approx(expected, abs=AGREE)
    elsewhere = load(
        rules, (0.6, 0.7, 0.8), (0.4, 0.3, 0.1), 0.5, None, 0.5, "leader" if before != "leader" else "dealer"
    )
    assert not same_hand(elsewhere, tree)


@pytest.mark.slow
@pytest.mark.parametrize("name", with_tree(VARIANTS))
def test_uniform_play_of_the_exact_cases(name: str) -> None:
    """OpenSpiel's numbers and ours are those of data/exact_cases_variants.json, and so are the counts."""
    case, rules = VARIANTS[name], rules_of(VARIANTS[name])
    game = load_game(rules)
    template = policies.TabularPolicy(game)
    assert len(template.states) == case["infosets_all_p0"] + case["infosets_all_p1"]
    value, nash_conv = worth(Remembered(game.new_initial_state()), template)
    found = imported(Tree(rules), template).evaluate()
    expected = case["ev_uniform"], 2 * case["exploitability_uniform"]
    assert (value, nash_conv) == pytest.approx(expected, abs=AGREE)
    assert (found.value, found.nash_conv) == pytest.approx(expected, abs=AGREE)


def test_ends_with_every_action_are_the_referees() -> None:
    """Who wins and at which level, at random ends at scores where somebody decides and where nobody does."""
    rng = random.Random(1)
    rules = replace(EVERYTHING, decision_before_target=True)
    for score in ((0, 0), (3, 1), (0, 3)):
        at, who = score_rules(rules, score), decider(rules, score)
        tree = Tree(at, decider=who)
        deck = [rank for rank in range(rules.n_ranks) for _ in range(rules.copies)]
        for _ in range(300):
            dealt = rng.sample(deck, 2 * rules.hand_size)
            state = State.deal(at, dealt[: rules.hand_size], dealt[rules.hand_size :], score)
            while not state.is_over:
                before, action = state, rng.choice(state.legal_actions())
                state = state.apply(action)
            position = find(tree, before.line)
            assert child(tree, position, action) is None
            winner = 2 if state.winner == -1 else state.winner
            level = tree.levels - 1 if action == "decline" else state.level
            assert ending(tree, position, action) == (winner, level)


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
