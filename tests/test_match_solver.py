"""The solved match: exact values, the oracle's best responses, theory, and simulated matches."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from games.match import Match
from games.rules import Rules, preset
from games.state import State
from solver import match as module
from solver.best_response import Evaluator
from solver.cfr import POINTS, Payoffs
from solver.equity import Score, Views, Worth, scores
from solver.kernels import EXPECT
from solver.lift import lifted
from solver.match import AccuracyError, Solution, evaluate_match, limit, solve_pair
from solver.storage import tree_hash
from solver.strategy import Strategy
from solver.tree import public_tree
from tests import oracle
from tests.bridge import bridge
from tests.oracle import Policy, TrucHand
from tests.test_equity import TIED, match_rules
from tests.test_oracle import MATCHES, case_rules

LE_TRUC = Path(__file__).parent.parent / "results" / "le-truc" / "match" / "equity.json"
SMALL = match_rules(3, 3, 2, (1, 2, 4), 4, "circular")


@cache
def solve(rules: Rules, accuracy: float, algorithm: str = "fpdcfr+") -> dict[Score, Solution]:
    """Every score of a match, the last ones first."""
    found: dict[Score, Solution] = {}
    for score in scores(rules):
        if score not in found:
            known = {each: solution.worth for each, solution in found.items()}
            found |= solve_pair(rules, score, known, accuracy, algorithm=algorithm)
    return found


def worths(solutions: Mapping[Score, Solution]) -> dict[Score, Worth]:
    """What the scores are worth."""
    return {score: solution.worth for score, solution in solutions.items()}


def exact_match(name: str) -> Rules:
    """The rules of an exact match."""
    return replace(case_rules(MATCHES[name]), target=MATCHES[name]["target"])


# ------------------------------------------------------------------------------------------------------ exact values


@pytest.mark.parametrize(
    ("name", "accuracy"), [("m2_c3x2_L12", 2e-7), pytest.param("m4_c3x4_L124", 5e-7, marks=pytest.mark.slow)]
)
def test_values_are_exact(name: str, accuracy: float) -> None:
    found = worths(solve(exact_match(name), accuracy))
    exact = {score: MATCHES[name]["V"][f"{score[0]},{score[1]}"] for score in found}
    assert len(exact) == len(MATCHES[name]["V"])
    for score, worth in found.items():
        assert worth.value == pytest.approx(exact[score], abs=1e-6)
        assert worth.lower - 1e-12 <= exact[score] <= worth.upper + 1e-12


def test_bounds_hold_at_any_accuracy() -> None:
    for accuracy in (1e-1, 1e-2, 1e-3):
        found = worths(solve(exact_match("m4_c3x4_L124"), accuracy))
        for (a, b), worth in found.items():
            assert worth.lower - 1e-12 <= MATCHES["m4_c3x4_L124"]["V"][f"{a},{b}"] <= worth.upper + 1e-12
        assert found[0, 0].exploitability <= accuracy


def test_every_score_keeps_its_limit() -> None:
    for score, solution in solve(SMALL, 1e-4).items():
        assert solution.worth.exploitability <= 1e-4 * limit(SMALL, score)
    assert limit(SMALL, (0, 0)) == 1


def test_an_accuracy_out_of_reach_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 300)
    with pytest.raises(AccuracyError, match="1e-15 was not reached at 3-3 in 300 iterations"):
        solve_pair(SMALL, (3, 3), {}, 1e-15)


def test_a_match_that_nobody_can_win_has_no_value() -> None:
    """With one rank all is tied; if ties are nobody's, at 0-1 nothing says whose the match is."""
    with pytest.raises(ArithmeticError, match="a spoiled hand at"):
        solve(match_rules(1, 8, 1, (1, 2), 2), 1e-3)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_certain_wins_are_probabilities(size: int) -> None:
    """Rounding must not make more than 1 of what is certain."""
    for tied in ("leader", "dealer"):
        for worth in worths(solve(match_rules(1, 8, size, (1, 2), 2, tied=tied), 1e-3)).values():
            assert all(0 <= x <= 1 for x in worth)


# --------------------------------------------------------------------------------------- the oracle on the whole tree


@cache
def whole(rules: Rules) -> TrucHand:
    """The whole hand, without payoffs: these change from score to score."""
    return TrucHand(rules)


def policy(rules: Rules, solution: Solution) -> Policy:
    """A solution in the oracle's terms, in the whole hand."""
    return bridge(whole(rules), True).policy(lifted(solution.strategy, rules).probabilities)


def hand(rules: Rules, payoffs: Payoffs) -> TrucHand:
    """The whole hand with the payoffs of a view."""
    return TrucHand(rules, {"win0": payoffs.win0, "win1": payoffs.win1, "tie": payoffs.tie})


@pytest.mark.parametrize("tied", TIED)
def test_what_a_score_is_worth_is_what_the_oracle_says(tied: str) -> None:
    """Each number is that of the whole hand, every stake included, with what follows as it is worth."""
    rules = match_rules(3, 2, 2, (1, 2, 4), 3, tied=tied)
    solutions = solve(rules, 3e-2)
    known = worths(solutions)
    for score, solution in solutions.items():
        views, play = Views.of(rules, rules.ladder, score, known), policy(rules, solution)
        assert oracle.expected_value(hand(rules, views.value), play) == pytest.approx(known[score].value, abs=1e-12)
        assert oracle.best_response(hand(rules, views.leader), play, 0) == pytest.approx(known[score].leader, abs=1e-12)
        dealer = 1 + oracle.best_response(hand(rules, views.dealer), play, 1)
        assert dealer == pytest.approx(known[score].dealer, abs=1e-12)


def test_evaluating_again_gives_the_same() -> None:
    """In the small trees to the bit, in the whole one nearly: there a spoiled hand's value is approached anew."""
    solutions = solve(SMALL, 1e-3)
    again = evaluate_match(SMALL, lambda score: solutions[score].strategy)
    whole_hands = evaluate_match(SMALL, lambda score: lifted(solutions[score].strategy, SMALL))
    for score, solution in solutions.items():
        assert again[score] == pytest.approx(solution.worth, abs=1e-14)
        assert whole_hands[score] == pytest.approx(solution.worth, abs=1e-14)
        assert solution.evaluation == solution.strategy.evaluate()


def test_the_number_of_evaluated_scores_is_told() -> None:
    told: list[int] = []
    uniform = Strategy.uniform(public_tree(SMALL))
    assert len(evaluate_match(SMALL, lambda score: uniform, done=told.append)) == told[-1] == 16
    assert told == sorted(set(told))


# -------------------------------------------------------------------------------------------------------------- theory


def chances(strategy: Strategy) -> tuple[float, float]:
    """The probabilities that the leader wins the hand and that nobody does, whatever the stake."""
    levels = len(strategy.tree.rules.ladder)
    evaluator = Evaluator(strategy.tree, Payoffs.points(strategy.tree.rules))

    def of(win: float, tie: float) -> float:
        return evaluator.value(0, EXPECT, strategy.probabilities, Payoffs((win,) * levels, (0.0,) * levels, tie))

    return of(1.0, 0.0), of(0.0, 1.0)


@pytest.mark.parametrize(("n", "copies", "size"), [(3, 3, 2), (3, 2, 3), (4, 4, 3)])
def test_the_last_hand(n: int, copies: int, size: int) -> None:
    """Both need a point: a spoiled hand gives the lead to the other, whose chance is then the leader's own."""
    (solution,) = solve_pair(match_rules(n, copies, size, (1, 2), 1, "circular"), (0, 0), {}, 1e-4).values()
    w, t = chances(solution.strategy)
    assert t > 0
    assert solution.worth.value == pytest.approx((w + t) / (1 + t), abs=1e-14)
    leader = match_rules(n, copies, size, (1, 2), 1, "circular", "leader")
    (solution,) = solve_pair(leader, (0, 0), {}, 1e-4).values()
    w, t = chances(solution.strategy)
    assert t == 0  # the leader's wins have the tied hands among them
    assert solution.worth.value == pytest.approx(w, abs=1e-14)
    # The same play in the game where ties are nobody's tells them apart.
    nobody = public_tree(replace(solution.strategy.tree.rules, all_tied="nobody"))
    assert tree_hash(nobody) == tree_hash(solution.strategy.tree)
    apart = chances(Strategy(nobody, Payoffs.points(nobody.rules), solution.strategy.probabilities))
    assert apart[1] > 0
    assert sum(apart) == pytest.approx(w, abs=1e-14)


def test_payoffs_in_points_are_the_same_game() -> None:
    """The dealer's utility is minus the leader's, added to 1; or, with payoffs less 1, minus the leader's."""
    solution = solve(SMALL, 1e-3)[1, 2]
    pay = solution.payoffs
    shifted = Payoffs(tuple(x - 1 for x in pay.win0), tuple(x - 1 for x in pay.win1), pay.tie - 1, POINTS)
    plain, other = (Strategy(solution.strategy.tree, p, solution.strategy.probabilities) for p in (pay, shifted))
    a, b = plain.evaluate(), other.evaluate()
    assert (a.total, b.total) == (1.0, 0.0)
    assert b.value == pytest.approx(a.value - 1, abs=1e-14)
    assert b.best_response == pytest.approx((a.best_response[0] - 1, a.best_response[1]), abs=1e-14)
    assert b.exploitability == pytest.approx(a.exploitability, abs=1e-14)


@pytest.mark.parametrize("rules", [SMALL, replace(preset("tiny"), target=4)], ids=["two", "three"])
def test_the_value_rises_with_the_own_points(rules: Rules) -> None:
    """With a point more a side can play as if it had it not, and wins no later: within the bounds, that is."""
    found = worths(solve(rules, 1e-3))
    for (a, b), worth in found.items():
        assert worth.value + worth.dealer >= 1 - 1e-14  # a best response of the dealer is at least his strategy
        assert worth.leader >= worth.value - 1e-14
        if (a + 1, b) in found:
            assert worth.lower <= found[a + 1, b].upper
        if (a, b + 1) in found:
            assert worth.upper >= found[a, b + 1].lower


@pytest.mark.parametrize("algorithm", ["dcfr+", "cfr+", "pdcfr+"])
def test_other_algorithms_come_to_the_same_values(algorithm: str) -> None:
    """All intervals have the game's value in common, so a value is off by the width of both at most."""
    first, second = (worths(solve(SMALL, 1e-3, name)) for name in ("fpdcfr+", algorithm))
    assert first != second
    for score, worth in first.items():
        other = second[score]
        assert max(worth.lower, other.lower) <= min(worth.upper, other.upper)
        for x, y in ((worth, other), (other, worth)):
            assert y.lower - 2 * x.exploitability <= x.value <= y.upper + 2 * x.exploitability


@pytest.mark.slow
@pytest.mark.skipif(not LE_TRUC.is_file(), reason="the match is not solved yet")
def test_le_trucs_last_points_come_out_again() -> None:
    """Solved with another algorithm, the scores from which a hand or two are left."""
    table = json.loads(LE_TRUC.read_text())
    rules, found = preset("le-truc"), dict[Score, Worth]()
    assert table["rules_hash"] == rules.hash
    for score in scores(rules):
        if min(score) < 10 or score in found:
            continue
        found |= worths(solve_pair(rules, score, found, 1e-3, threads=2, algorithm="dcfr+"))
    for (a, b), worth in found.items():
        lower, value, upper = (table[key][f"{a}-{b}"] for key in ("lower", "value", "upper"))
        assert lower <= value <= upper
        assert max(lower, worth.lower) <= min(upper, worth.upper)
        assert worth.lower - (upper - lower) <= value <= worth.upper + (upper - lower)


# --------------------------------------------------------------------------------------------------- simulated matches


def responder(game: TrucHand, policy: Policy, player: int) -> Policy:
    """A best response to a policy, by recursion over lines with all deals at once."""
    found: Policy = {}
    deals = [(h[0], h[1]) for h, _ in game.roots()]

    def values(line: tuple[str, ...], weight: np.ndarray) -> np.ndarray:
        """Of each deal, weighted by chance and the opponent."""
        some = [(*deal, line) for deal in deals]
        who = game.player(some[0])
        if who == oracle.OVER:
            sign = 1 if player == 0 else -1
            return weight * sign * game.utility(some[0])
        total = np.zeros(len(deals))
        states = [game.info_state(h) for h in some]
        legal = [game.actions(h) if w > 0 else () for h, w in zip(some, weight, strict=True)]
        gains: dict[Any, dict[str, float]] = {}
        below: dict[str, np.ndarray] = {}
        for action in sorted({action for each in legal for action in each}):
            can = np.array([action in each for each in legal])
            if who == player:
                share = can.astype(float)
            else:
                given = [policy[s][e.index(action)] if action in e else 0.0 for s, e in zip(states, legal, strict=True)]
                share = np.array(given)
            below[action] = values((*line, action), weight * share) if (weight * share > 0).any() else 0 * total
            for state, yes, value in zip(states, can, below[action], strict=True):
                if yes:
                    gains.setdefault(state, {}).setdefault(action, 0.0)
                    gains[state][action] += value
        if who != player:
            return sum(below.values(), total)
        for n, (state, each) in enumerate(zip(states, legal, strict=True)):
            if each:
                best = max(each, key=gains[state].__getitem__)
                found[state] = np.array([float(action == best) for action in each])
                total[n] = below[best][n]
        return total

    values((), np.array([p for _, p in game.roots()]))
    return found


class Table:
    """Hands dealt and played by the referee, many at a time: how many of them go each way is drawn at every turn, so
    the numbers are distributed as those of single hands."""

    def __init__(self, rules: Rules, seed: int) -> None:
        self.rules, self.rng = rules, np.random.default_rng(seed)
        self.roots = TrucHand(rules).roots()
        self.start = {deal: State.deal(rules, *deal) for deal in ((h[0], h[1]) for h, _ in self.roots)}
        self.apply = cache(State.apply)

    def ends(self, count: int, policies: tuple[Policy, Policy]) -> Counter[State]:
        """How hands end whose leader and dealer play these policies."""
        found = Counter[State]()
        chance = np.array([p for _, p in self.roots])
        for n, state in zip(self.rng.multinomial(count, chance / chance.sum()), self.start.values(), strict=True):
            self._play(int(n), state, policies, found)
        return found

    def _play(self, count: int, state: State, policies: tuple[Policy, Policy], found: Counter[State]) -> None:
        if count == 0:
            return
        if state.is_over:
            found[state] += count
            return
        seat = state.to_play
        play = policies[seat][seat, state.dealt[seat], state.line]
        ways = self.rng.multinomial(count, play / play.sum())
        for n, action in zip(ways, state.legal_actions(), strict=True):
            self._play(int(n), self.apply(state, action), policies, found)

    def won(self, count: int, dealer: int, policies: Callable[[Match], tuple[Policy, Policy]]) -> int:
        """Of so many matches, those that person 0 wins."""
        running, won = Counter({Match(self.rules, dealer): count}), 0
        while running:
            after = Counter[Match]()
            for match, n in running.items():
                for end, times in self.ends(n, policies(match)).items():
                    after[match.after_hand(end)] += times
            won += sum(n for match, n in after.items() if match.winner == 0)
            running = Counter({match: n for match, n in after.items() if not match.is_over})
        return won


MATCHES_PLAYED = 100_000


def assert_share(won: int, p: float) -> None:
    """So many of `MATCHES_PLAYED` agree with a probability within four standard errors."""
    assert abs(won - MATCHES_PLAYED * p) < 4 * math.sqrt(MATCHES_PLAYED * p * (1 - p))


PLAYED = match_rules(3, 2, 2, (1, 2, 3), 4)
Plays = dict[str, dict[Score, Policy]]


@cache
def players(uniform: float) -> tuple[dict[Score, Worth], Plays]:
    """Who plays, as policies of each score: a solved match's strategies, mixed with so much of uniform play, and the
    responders to them."""
    even, found = Strategy.uniform(public_tree(PLAYED)), Plays(strategy={}, leader={}, dealer={})

    def mixed(solution: Solution) -> Strategy:
        both = zip(lifted(solution.strategy, PLAYED).probabilities, even.probabilities, strict=True)
        first, second = ((1 - uniform) * a + uniform * b for a, b in both)
        return Strategy(even.tree, even.payoffs, (first, second))

    strategies = {score: mixed(solution) for score, solution in solve(PLAYED, 5e-2).items()}
    known = evaluate_match(PLAYED, strategies.__getitem__)
    for score, strategy in strategies.items():
        play = bridge(whole(PLAYED), True).policy(strategy.probabilities)
        views = Views.of(PLAYED, PLAYED.ladder, score, known)
        found["strategy"][score] = play
        found["leader"][score] = responder(hand(PLAYED, views.leader), play, 0)
        found["dealer"][score] = responder(hand(PLAYED, views.dealer), play, 1)
    return known, found


@pytest.mark.parametrize(
    ("uniform", "dealer"),
    [(0.0, 0), *(pytest.param(*more, marks=pytest.mark.slow) for more in ((0.0, 1), (0.5, 0), (0.5, 1)))],
)
def test_simulated_matches_are_won_as_often_as_computed(uniform: float, dealer: int) -> None:
    known, plays = players(uniform)
    start, table = known[0, 0], Table(PLAYED, 11 + dealer)
    assert start.exploitability > (0.05 if uniform else 0.005)

    def themselves(match: Match) -> tuple[Policy, Policy]:
        return plays["strategy"][match.score], plays["strategy"][match.score]

    def responds(match: Match) -> tuple[Policy, Policy]:
        """Person 0 responds to the strategies."""
        sides = ("leader", "strategy") if match.leader == 0 else ("strategy", "dealer")
        return plays[sides[0]][match.score], plays[sides[1]][match.score]

    assert_share(table.won(MATCHES_PLAYED, dealer, themselves), start.value if dealer == 1 else 1 - start.value)
    assert_share(table.won(MATCHES_PLAYED, dealer, responds), start.leader if dealer == 1 else start.dealer)
