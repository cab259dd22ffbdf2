"""Strategies of a hand with fewer stakes as strategies of the whole hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from games.rules import ACCEPT, RAISE, REMAINDER, Rules
from games.state import State
from solver.best_response import Evaluator
from solver.cfr import PROBABILITY, Payoffs, Solver
from solver.equity import Score, hand_rules, hand_tree, match_from, payoffs, scores, whole_rules
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
CALLING = [(replace(rules, remainder=True), stakes) for rules, stakes in PLAIN if rules.all_tied == "nobody"]
FOLDING = [(replace(rules, fold=True, remainder_refused="match"), stakes) for rules, stakes in CALLING[::2]]
CASES = [*PLAIN, *CALLING, *FOLDING]


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


# ------------------------------------------------------------------------------------- raises and remainders left out


FROM = [(0, 3), (3, 0), (1, 2), (2, 1), (1, 4), (4, 1), (2, 2), (0, 1), (4, 4)]
SHORTER = [(rules, first) for rules, _ in CALLING[::3] for first in FROM]


def shorter_strategy(rules: Rules, first: tuple[int, int]) -> Strategy:
    """A random strategy of a hand whose two sides win the match from some levels on, without offers of no use."""
    rng, stakes = np.random.default_rng(5), min(len(LADDER), max(first) + 1)
    tree = Tree(cut(rules, stakes), match_from=first)
    win0 = [1.0 if level >= first[0] else float(x) for level, x in enumerate(np.sort(rng.uniform(0.5, 1, stakes)))]
    win1 = [0.0 if level >= first[1] else float(-x) for level, x in enumerate(np.sort(rng.uniform(-0.5, 0, stakes)))]
    pay = Payoffs((*win0, 1.0), (*win1, 0.0), float(rng.uniform(0.3, 0.6)), PROBABILITY)
    return Strategy(tree, pay, random_strategy(tree, rng))


def matters(line: list[str], first: tuple[int, int], stakes: int) -> list[str]:
    """The offers of use where a line without others leads to: `solver.equity.match_from`'s sentences, by a list."""
    level = min(line.count(RAISE), stakes - 1) if REMAINDER not in line else len(LADDER)
    if level + 1 >= stakes:
        return []
    me = 0
    for word in line:  # of one card each: who is to move
        me = 1 - me if word not in (*OFFERS, ACCEPT) else me
    called = [n for n, word in enumerate(line) if word in OFFERS]
    raiser = None if not called else sum(word not in (*OFFERS, ACCEPT) for word in line[: called[-1]]) % 2
    if raiser == me or (level >= first[me] and raiser is not None):
        return []
    both = level + 1 >= max(first)
    return [RAISE] if both else [REMAINDER] if level >= first[1 - me] else [RAISE, REMAINDER]


@pytest.mark.parametrize("first", FROM)
def test_which_offers_are_left_out(first: tuple[int, int]) -> None:
    """With one card each, at every line."""
    rules = next(rules for rules, _ in CALLING if rules.hand_size == 1)
    stakes = min(len(LADDER), max(first) + 1)
    strategy = Strategy.uniform(Tree(cut(rules, stakes), match_from=first))
    seen = set()
    lines: list[list[str]] = [[]]
    while lines:
        line = lines.pop()
        offers = matters(line, first, stakes)
        assert [word for word in strategy.at(tuple(line)).actions if word in OFFERS] == offers, line
        seen.add(tuple(offers))
        lines += [[*line, word, ACCEPT] for word in offers]
        if all(word in (*OFFERS, ACCEPT) for word in line):
            lines.append([*line, rules.ranks[0]])
    assert len(seen) > 1 or first == (4, 4)


@pytest.mark.parametrize(("rules", "first"), SHORTER)
def test_offers_of_no_use_bring_nothing(rules: Rules, first: tuple[int, int]) -> None:
    """With all offers a strategy is worth the same, and best responses to it are no better."""
    small = shorter_strategy(rules, first)
    large = lifted(small, rules)
    assert large.tree.match_from is None
    assert large.tree.rules == rules
    assert_adds_up(large)
    found, expected = large.evaluate(), small.evaluate()
    assert found.value == expected.value
    assert found.best_response == pytest.approx(expected.best_response, abs=1e-13)
    assert lifted(large, rules) is large


@pytest.mark.parametrize(("rules", "first"), SHORTER[::4])
def test_offers_of_no_use_are_answered_as_others(rules: Rules, first: tuple[int, int]) -> None:
    """At lines with them: as the other offer of the same turn, or as if nothing had been said."""
    small = shorter_strategy(rules, first)
    large = lifted(small, rules)
    met = 0
    for line in random_lines(rules, 7, 150):
        short: list[str] = []
        nothing = False  # whether the offer to be answered now is there for nothing
        for word in line:
            if word in OFFERS:
                offers = [each for each in small.at(tuple(short)).actions if each in OFFERS]
                nothing = not offers
                met += word not in offers
                short += [] if nothing else [word if word in offers else offers[0]]
            elif word == ACCEPT and nothing:
                nothing = False
            else:
                short.append(word)
        found = large.at(line)
        if nothing:
            assert found.actions[:1] == (ACCEPT,)
            assert (found.probabilities[:, 0] == 1).all()
            continue
        expected = small.at(tuple(short))
        assert found.player == expected.player
        for action, share in zip(found.actions, found.probabilities.T, strict=True):
            there = expected.probabilities.T[expected.actions.index(action)] if action in expected.actions else 0.0
            np.testing.assert_array_equal(share, there)
    assert met or first == (4, 4)  # no stake is enough


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("score", [(3, 1), (0, 3), (2, 1), (2, 3), (2, 2), (0, 2), (3, 3)])
def test_leaving_out_offers_loses_nothing(size: int, score: Score) -> None:
    """The hand with and without the offers that change nothing, solved apart, has one value."""
    rules = replace(match_rules(4 if size < 3 else 3, 4, size, (1, 2, 3), 4), remainder=True)
    dealing = {each: 1 - (each[0] - each[1] + 4) / 8 for each in scores(rules)}.__getitem__
    short, whole = hand_tree(rules, score), public_tree(whole_rules(rules, score))
    assert sum(short.rows) < sum(whole.rows)
    assert short.match_from == match_from(rules, score)
    intervals = []
    for tree in (short, whole):
        solver = Solver(tree, payoffs(rules, tree.rules.ladder, score, dealing))
        solver.step(600)
        result = Strategy.of(solver).evaluate()
        assert result.exploitability < 2e-4
        intervals.append(result.interval)
        if tree is short:  # what it proves there it proves here
            found = lifted(Strategy.of(solver), whole_rules(rules, score)).evaluate()
            assert found.best_response == pytest.approx(result.best_response, abs=1e-13)
    assert max(low for low, _ in intervals) <= min(high for _, high in intervals)


def test_where_refusing_loses_the_match_nothing_is_left_out() -> None:
    french = replace(match_rules(3, 3, 1, LADDER, 6), remainder=True)
    assert match_from(french, (5, 2)) == (0, 2)
    assert match_from(french, (2, 5)) == (2, 0)
    assert match_from(french, (0, 0)) == (3, 3)
    assert match_from(replace(french, ladder=(1, 2)), (1, 0)) == (2, 2)  # no stake is enough
    assert match_from(replace(french, remainder_refused="match"), (5, 2)) is None
    assert match_from(replace(french, remainder=False), (5, 2)) is None
