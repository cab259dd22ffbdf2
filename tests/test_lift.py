"""Strategies of a hand with fewer stakes as strategies of the whole hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from games.rules import ACCEPT, RAISE, REMAINDER, Rules
from games.state import State
from solver.best_response import Evaluator
from solver.cfr import PROBABILITY, Payoffs, Solver
from solver.equity import hand_rules, payoffs, scores
from solver.kernels import BEST, EXPECT
from solver.lift import lifted
from solver.strategy import Strategy
from solver.tree import Tree, public_tree
from tests.bridge import assert_adds_up, make_rules, random_strategy
from tests.test_equity import TIED, match_rules

LADDER = (1, 2, 4, 6)
OFFERS = (RAISE, REMAINDER)
DECKS = {  # ranks, copies, order, by size of the hand
    1: [(2, 3, "linear"), (5, 1, "circular")],
    2: [(2, 2, "linear"), (4, 4, "circular")],
    3: [(3, 2, "circular"), (3, 4, "linear")],
}
PLAIN = [
    (make_rules(n, copies, size, LADDER, order, tied), stakes)
    for size, decks in DECKS.items()
    for n, copies, order in decks
    for tied in TIED
    for stakes in (1, 2, 3)
]
REMAINDER = [(replace(rules, remainder=True), stakes) for rules, stakes in PLAIN if rules.all_tied == "nobody"]
FOLDING = [(replace(rules, fold=True, remainder_refused="match"), stakes) for rules, stakes in REMAINDER[::2]]
CASES = [*PLAIN, *REMAINDER, *FOLDING]


def cut(rules: Rules, stakes: int) -> Rules:
    """The hand with the first stakes only."""
    return replace(rules, ladder=rules.ladder[:stakes])


def deciding(rules: Rules, stakes: int, rng: np.random.Generator) -> Payoffs:
    """Payoffs of a hand whose last stake wins the match for either side."""
    win0, win1 = np.sort(rng.uniform(0.5, 1, stakes - 1)), np.sort(rng.uniform(0, 0.5, stakes - 1))[::-1]
    most = 1 + rules.remainder
    tie = float(rng.uniform(0.3, 0.6))
    return Payoffs((*win0.tolist(), *[1.0] * most), (*win1.tolist(), *[0.0] * most), tie, PROBABILITY)


def small_strategy(rules: Rules, stakes: int, seed: int = 1) -> Strategy:
    """A random strategy of the hand with the first stakes only."""
    rng, tree = np.random.default_rng(seed), Tree(cut(rules, stakes))
    return Strategy(tree, deciding(rules, stakes, rng), random_strategy(tree, rng))


@pytest.mark.parametrize(("rules", "stakes"), CASES)
def test_values_and_best_responses_are_those_of_the_small_tree(rules: Rules, stakes: int) -> None:
    small = small_strategy(rules, stakes)
    large = lifted(small, rules)
    assert large.payoffs.win0[: stakes + 1] == (*small.payoffs.win0[:stakes], 1.0)
    assert large.payoffs.win1[stakes - 1 :] == (0.0,) * (len(LADDER) - stakes + 1 + rules.remainder)
    found = [Evaluator(s.tree, s.payoffs) for s in (large, small)]
    for player, mode in ((0, EXPECT), (1, EXPECT), (0, BEST), (1, BEST)):
        full, short = (
            e.value(player, mode, s.probabilities, s.payoffs) for e, s in zip(found, (large, small), strict=True)
        )
        assert full == short  # to the last bit


@pytest.mark.parametrize(("rules", "stakes"), CASES)
def test_each_state_adds_up_to_one(rules: Rules, stakes: int) -> None:
    """In the lanes that there are; nobody reads the others."""
    strategy = lifted(small_strategy(rules, stakes), rules)
    assert strategy.tree.rules == rules
    assert_adds_up(strategy)


def random_lines(rules: Rules, seed: int, count: int) -> set[tuple[str, ...]]:
    """Beginnings of play, with many raises."""
    rng, lines = np.random.default_rng(seed), set[tuple[str, ...]]()
    for _ in range(count):
        state = State.public(rules, (0, 0) if rules.needs_score else None)
        while not state.is_over:
            lines.add(state.line)
            legal = state.legal_actions()
            likely = RAISE if RAISE in legal else ACCEPT
            state = state.apply(likely if likely in legal and rng.random() < 0.6 else str(rng.choice(legal)))
    return lines


def without(line: tuple[str, ...], stakes: int) -> tuple[tuple[str, ...], bool]:
    """A line without raises beyond the first stakes, and whether one of them waits for its answer."""
    short: list[str] = []
    raises, beyond = 0, False
    for word in line:
        if word in OFFERS:
            raises += 1
            beyond = beyond or raises >= stakes
        if not (beyond and word in (*OFFERS, ACCEPT)):
            short.append(word)
    return tuple(short), beyond and line[-1] in OFFERS


@pytest.mark.parametrize(("rules", "stakes"), CASES)
def test_the_play_is_the_same_at_every_line(rules: Rules, stakes: int) -> None:
    """Beyond the last stake nobody raises, everybody accepts, and all goes on as if nothing had been said."""
    small = small_strategy(rules, stakes)
    large = lifted(small, rules)
    beyond = 0
    for line in random_lines(rules, stakes, 120):
        found = large.at(line)
        short, waiting = without(line, stakes)
        if waiting:
            assert found.actions[:1] == (ACCEPT,)
            assert (found.probabilities[:, 0] == 1).all()
            assert (found.probabilities[:, 1] == 0).all()
            beyond += 1
            continue
        expected = small.at(short)
        assert found.player == expected.player
        assert (found.holdings == expected.holdings).all()
        if found.actions != expected.actions:
            offers = OFFERS if rules.remainder else (RAISE,)
            assert found.actions == (*offers, *expected.actions)
            assert (found.probabilities[:, : len(offers)] == 0).all()
        np.testing.assert_array_equal(found.probabilities[:, -len(expected.actions) :], expected.probabilities)
    # With one card each player raises at most once: there is no third raise.
    assert beyond or (rules.hand_size, stakes) == (1, 3)


def test_the_whole_hands_strategy_is_itself() -> None:
    rules = make_rules(3, 2, 3, LADDER)
    strategy = small_strategy(rules, len(LADDER))
    assert lifted(strategy, rules) is strategy


@pytest.mark.parametrize("tied", TIED)
@pytest.mark.parametrize(("size", "score"), [(1, (3, 2)), (2, (3, 3)), (3, (2, 2)), (3, (1, 3))])
def test_leaving_out_stakes_loses_nothing(size: int, score: tuple[int, int], tied: str) -> None:
    """The hand with and without the stakes that change nothing, solved apart, has one value."""
    rules = match_rules(3, 4, size, LADDER, 4, "circular", tied)
    dealing = {each: 1 - (each[0] - each[1] + 4) / 8 for each in scores(rules)}.__getitem__
    small = hand_rules(rules, score)
    assert len(small.ladder) < len(rules.ladder)
    intervals, values = [], []
    for each in (small, rules):
        solver = Solver(public_tree(each), payoffs(rules, each.ladder, score, dealing))
        solver.step(400)
        strategy = Strategy.of(solver)
        result = strategy.evaluate()
        assert result.exploitability < 1e-4
        intervals.append(result.interval)
        values.append(result.value)
        if each is small:  # the interval that the small strategy proves in the whole hand is the same
            whole = lifted(strategy, rules)
            assert whole.payoffs == payoffs(rules, rules.ladder, score, dealing)
            assert whole.evaluate().best_response == pytest.approx(result.best_response, abs=1e-14)
    assert max(low for low, _ in intervals) <= min(high for _, high in intervals)
    assert values[0] == pytest.approx(values[1], abs=2e-4)
