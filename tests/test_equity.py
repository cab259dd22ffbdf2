"""The match as a stochastic game: where hands lead, what their ends are worth, values that are fixed points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from games.match import Match
from games.rules import Rules
from games.state import State
from solver.cfr import PROBABILITY, Payoffs
from solver.equity import Score, Views, Worth, fixed_point, hand_rules, hand_tree, pair_of, payoffs, scores, successors
from solver.match import Hand, evaluate_match
from solver.strategy import Strategy
from solver.tree import public_tree
from tests.bridge import make_rules, random_strategy
from tests.test_oracle import MATCHES, case_rules, match_payoffs

TIED = ("nobody", "leader", "dealer")


def match_rules(
    n: int, copies: int, size: int, ladder: tuple[int, ...], target: int, order: str = "linear", tied: str = "nobody"
) -> Rules:
    """A match of n ranks."""
    return replace(make_rules(n, copies, size, ladder, order, tied), target=target)


def over(rules: Rules, level: int, winner: int) -> State:
    """A hand that is over, as far as a match is concerned."""
    return replace(State.public(rules), phase="over", level=level, winner=winner)


# ------------------------------------------------------------------------------------------------- where hands lead


@pytest.mark.parametrize(("ladder", "target"), [((1,), 3), ((1, 2, 4, 6, 8, 10, 12), 12), ((2, 3, 7), 5), ((9,), 4)])
def test_payoffs_and_successors_are_the_matches_own(ladder: tuple[int, ...], target: int) -> None:
    rules = match_rules(3, 4, 1, ladder, target)
    rng = np.random.default_rng(1)
    dealing = {score: float(x) for score, x in zip(scores(rules), rng.uniform(size=target**2), strict=True)}
    for a, b in scores(rules):
        before = Match(rules, dealer=1, points=(a, b))
        assert before.score == (a, b)

        def worth(level: int, winner: int, before: Match = before) -> float:
            """The winning probability of person 0, who leads this hand and deals the next one."""
            after = before.after_hand(over(rules, level, winner))
            assert after.is_over or after.dealer == 0
            return float(after.winner == 0) if after.is_over else dealing[after.score]

        levels = range(len(ladder))
        expected = Payoffs(
            tuple(worth(n, 0) for n in levels), tuple(worth(n, 1) for n in levels), worth(0, -1), PROBABILITY
        )
        assert payoffs(rules, ladder, (a, b), dealing.__getitem__) == expected
        ends = (before.after_hand(over(rules, n, winner)) for n in levels for winner in (0, 1))
        assert successors(rules, (a, b)) == {end.score for end in ends if not end.is_over}
        assert before.after_hand(over(rules, 0, -1)).score in pair_of((a, b))


@pytest.mark.parametrize(("ladder", "target"), [((1, 2, 4), 6), ((2, 5), 7)])
def test_scores_come_after_all_that_follows_them(ladder: tuple[int, ...], target: int) -> None:
    rules = match_rules(3, 4, 1, ladder, target)
    every = scores(rules)
    assert sorted(every) == list(product(range(target), repeat=2))
    for n, score in enumerate(every):
        assert successors(rules, score) <= set(every[:n])
        assert {score[::-1], score} == set(pair_of(score)) == set(pair_of(score[::-1]))


# --------------------------------------------------------------------------------------------------- stakes left out


def test_the_last_stake_is_the_first_that_wins_for_either_side() -> None:
    rules = match_rules(3, 4, 1, (1, 2, 4, 6, 8, 10, 12), 12)
    ladders = {score: hand_rules(rules, score).ladder for score in scores(rules)}
    assert ladders[11, 11] == (1,)
    assert ladders[11, 10] == ladders[10, 11] == (1, 2)
    assert ladders[11, 9] == ladders[8, 8] == (1, 2, 4)
    assert ladders[11, 0] == ladders[0, 0] == ladders[1, 5] == rules.ladder
    assert hand_rules(match_rules(3, 4, 1, (1, 2), 12), (0, 0)).ladder == (1, 2)  # no stake is enough
    for score, ladder in ladders.items():
        whole = payoffs(rules, rules.ladder, score, lambda after: 0.25)
        for level in range(len(ladder) - 1, len(rules.ladder)):
            assert ladder == rules.ladder or (whole.win0[level], whole.win1[level]) == (1.0, 0.0)


def test_refusing_loses_the_match_to_who_needs_a_point() -> None:
    rules = match_rules(3, 4, 1, (1, 2, 4), 5)
    for other in range(rules.target):
        # The refused side loses at the stake before the raise, the lowest of which is enough.
        assert set(payoffs(rules, rules.ladder, (other, 4), lambda after: 0.5).win1) == {0.0}
        assert set(payoffs(rules, rules.ladder, (4, other), lambda after: 0.5).win0) == {1.0}


# ------------------------------------------------------------------------------------------------------ fixed points


@pytest.mark.parametrize("name", MATCHES)
def test_uniform_play_on_the_whole_tree_is_worth_what_it_is(name: str) -> None:
    match = MATCHES[name]
    rules = replace(case_rules(match), target=match["target"])
    found = evaluate_match(rules, lambda score: Strategy.uniform(public_tree(rules)))
    numbers = {f"{a},{b}": worth for (a, b), worth in found.items()}
    for table, part in (("U", "value"), ("BL", "leader"), ("BD", "dealer")):
        assert numbers.keys() == match[table].keys()
        for score, worth in numbers.items():
            assert getattr(worth, part) == pytest.approx(match[table][score], abs=1e-9)
    assert numbers["0,0"].exploitability == pytest.approx(match["exploitability_uniform"], abs=1e-9)
    # Without the stakes that change nothing, uniform play is another strategy, but 0-0 has them all.
    assert hand_rules(rules, (0, 0)) == rules


def test_views_are_those_of_the_oracles_tables() -> None:
    match = MATCHES["m4_c3x4_L124"]
    rules = replace(case_rules(match), target=match["target"])
    known = {s: Worth(*(match[t][f"{s[0]},{s[1]}"] for t in ("U", "BL", "BD"))) for s in scores(rules)}
    for score in known:
        views = Views.of(rules, rules.ladder, score, known)
        tables = {
            "value": {s: 1 - v for s, v in match["U"].items()},
            "leader": match["BD"],
            "dealer": {s: 1 - v for s, v in match["BL"].items()},
        }
        for view, table in tables.items():
            found, expected = getattr(views, view), match_payoffs(match, table, *score)
            assert (list(found.win0), list(found.win1), found.tie) == tuple(expected.values())


def outcomes(rules: Rules) -> dict[tuple[int, int], Fraction]:
    """Probability of each (winner, level) when both play uniformly, by the referee on whole deals of cards."""
    deck = [rank for rank in range(rules.n_ranks) for _ in range(rules.copies)]
    found: dict[tuple[int, int], Fraction] = {}

    def walk(state: State, p: Fraction) -> None:
        if state.winner is not None:
            end = state.winner, state.level
            found[end] = found.get(end, Fraction()) + p
            return
        legal = state.legal_actions()
        for action in legal:
            walk(state.apply(action), p / len(legal))

    for i, j in product(range(len(deck)), repeat=2):
        if i != j:
            walk(State.deal(rules, [deck[i]], [deck[j]]), Fraction(1, len(deck) * (len(deck) - 1)))
    return found


def values_by_equations(rules: Rules, ends: Mapping[tuple[int, int], Fraction]) -> dict[Score, float]:
    """The leader's winning probability at each score, all at once as linear equations."""
    every = scores(rules)
    index = {score: n for n, score in enumerate(every)}
    matrix, right = np.eye(len(every)), np.zeros(len(every))
    for (a, b), n in index.items():
        for (winner, level), p in ends.items():
            after = Match(rules, dealer=1, points=(a, b)).after_hand(over(rules, level, winner))
            if after.is_over:
                right[n] += float(p) * (after.winner == 0)
            else:  # person 0 deals: 1 - the leader's
                right[n] += float(p)
                matrix[n, index[after.score]] += float(p)
    return dict(zip(every, np.linalg.solve(matrix, right).tolist(), strict=True))


@pytest.mark.parametrize("tied", TIED)
@pytest.mark.parametrize(
    ("n", "copies", "order"), [(2, 12, "linear"), (2, 2, "linear"), (3, 3, "circular"), (2, 1, "linear")]
)
def test_values_solve_the_linear_equations(n: int, copies: int, order: str, tied: str) -> None:
    rules = match_rules(n, copies, 1, (1, 3), 3, order, tied)
    expected = values_by_equations(rules, outcomes(rules))
    found = evaluate_match(rules, lambda score: Strategy.uniform(public_tree(rules)))
    for score, worth in found.items():
        assert worth.value == pytest.approx(expected[score], abs=1e-14)
        assert worth.lower <= worth.value + 1e-14
        assert worth.value <= worth.upper + 1e-14


@pytest.mark.parametrize("tied", TIED)
def test_at_the_last_point_only_cards_decide(tied: str) -> None:
    for n, copies, order in ((2, 2, "linear"), (2, 12, "linear"), (8, 4, "circular")):
        rules = match_rules(n, copies, 1, (1, 2), 1, order, tied)
        t = (copies - 1) / (n * copies - 1)  # both get the same rank
        w = (1 - t) / 2
        value = {"nobody": (w + t) / (1 + t), "leader": w + t, "dealer": w}[tied]
        tree = public_tree(hand_rules(rules, (0, 0)))
        (worth,) = evaluate_match(rules, lambda score, tree=tree: Strategy.uniform(tree)).values()
        assert worth == pytest.approx((value, value, 1 - value), abs=1e-15)


def test_a_spoiled_last_hand_gives_the_lead_away() -> None:
    rules = match_rules(3, 2, 2, (1, 2), 1)
    tree = public_tree(rules)
    strategy = Strategy(tree, Payoffs.points(rules), random_strategy(tree, np.random.default_rng(4)))
    w = _value(strategy, (1.0, 1.0), 0.0)
    t = _value(strategy, (0.0, 0.0), 1.0)
    (worth,) = evaluate_match(rules, lambda score: strategy).values()
    assert 0.01 < t < 0.5
    assert worth.value == pytest.approx((w + t) / (1 + t), abs=1e-14)


def _value(strategy: Strategy, win0: tuple[float, ...], tie: float) -> float:
    """The probability of an end, as a value."""
    pay = Payoffs(win0, (0.0,) * len(win0), tie)
    return Strategy(strategy.tree, pay, strategy.probabilities).evaluate().value


@pytest.mark.parametrize("score", [(0, 0), (2, 0), (1, 1)])
def test_fixed_points_do_not_depend_on_the_guess(score: Score) -> None:
    rules = match_rules(2, 12, 1, (1, 2), 3)
    rng = np.random.default_rng(2)
    known = {each: Worth(*rng.uniform(size=3)) for each in scores(rules) if each not in pair_of(score)}
    hands = {each: Hand(hand_tree(rules, each)) for each in pair_of(score)}
    plays = {each: random_strategy(hand.tree, rng) for each, hand in hands.items()}

    def solve(guess: Mapping[Score, Worth] | None) -> dict[Score, Worth]:
        ladders = {each: hand.ladder for each, hand in hands.items()}
        return fixed_point(
            rules, pair_of(score), known, lambda each, views: hands[each].worth(plays[each], views), ladders, guess
        )

    found = solve(None)
    for numbers in ((0.0,) * 3, (1.0,) * 3, (1.0, 0.0, 1.0), (-1e3, 1e3, 7.0), tuple(rng.uniform(size=3))):
        for worth, other in zip(found.values(), solve(dict.fromkeys(hands, Worth(*numbers))).values(), strict=True):
            assert worth == pytest.approx(other, abs=1e-14)


@pytest.mark.parametrize("tied", TIED)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_values_settle_on_every_deck(size: int, tied: str) -> None:
    """Ranks by copies with as many ties as there can be, and with none; with one rank the leader or the dealer wins."""
    for n, copies in ((1, 8), (2, 12), (2, 3), (3, 2), (6, 1)):
        for ladder in ((1,), (1, 3), (5, 9)):
            rules = match_rules(n, copies, size, ladder, 2, "linear", tied)
            if (n, ladder, tied) == (1, (1,), "nobody"):
                continue  # nobody can ever win
            tree = public_tree(rules)
            for play in (random_strategy(tree, np.random.default_rng(3)), Strategy.uniform(tree).probabilities):
                strategy = Strategy(tree, Payoffs.points(rules), play)
                found = evaluate_match(rules, lambda score, strategy=strategy: strategy)
                assert all(0 <= x <= 1 for worth in found.values() for x in worth)
                assert all(worth.exploitability >= -1e-14 for worth in found.values())


def test_what_does_not_settle_is_an_error() -> None:
    views = []

    def spoiled(score: Score, view: Views) -> Worth:
        views.append(view)
        return Worth(view.value.tie, 0.5, 0.5)

    rules = match_rules(3, 4, 1, (1,), 1)
    with pytest.raises(ArithmeticError, match="a spoiled hand at"):
        fixed_point(rules, ((0, 0),), {}, spoiled, {(0, 0): (1,)}, {(0, 0): Worth(0.2, 0.5, 0.5)})
    assert len(views) == 10_000
