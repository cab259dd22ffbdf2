"""The oracle against what is known without it: Kuhn poker, plain definitions, and exact values of small decks."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from games.rules import Rules
from tests import oracle
from tests.oracle import Game, InfoState, Kuhn, Policy, TrucHand
from tests.oracle_variants import VariantHand

EXACT = json.loads((Path(__file__).parent / "data" / "exact_cases.json").read_text(encoding="utf-8"))
CASES = {case["name"]: case for case in EXACT["cases"]}
MATCHES = {match["name"]: match for match in EXACT["matches"]}
QUICK = ("c3x2_L12", "c3x4_L12_leader", "c8x4_hs2_L12")
LE_TRUC = Rules(
    name="full",
    ranks=tuple("A2345678"),
    order="circular",
    copies=4,
    hand_size=3,
    ladder=(1, 2, 4, 6, 8, 10, 12),
    all_tied="nobody",
)


def case_rules(case: dict[str, Any]) -> Rules:
    """The rule set of an exact case, with ranks A, 2, 3, ..."""
    given = {key: tuple(value) if isinstance(value, list) else value for key, value in case["rules"].items()}
    return Rules(name=case["name"], ranks=tuple("A2345678"[: given.pop("n")]), **given)


@cache
def case_game(name: str) -> TrucHand:
    """The hand of an exact case, one object per name."""
    return TrucHand(case_rules(CASES[name]), CASES[name]["payoffs"])


class Matrix:
    """Both choose at once: player 0 a row, player 1 a column of A. A history is the pair of choices so far."""

    A = ((3.0, -1.0, 0.5), (-2.0, 1.0, 0.25))

    def roots(self) -> list[tuple[Any, float]]:
        return [((), 1.0)]

    def player(self, h: Any) -> int:
        return len(h) if len(h) < 2 else oracle.OVER

    def actions(self, h: Any) -> tuple[str, ...]:
        return ("0", "1") if len(h) == 0 else ("0", "1", "2")

    def child(self, h: Any, a: str) -> Any:
        return (*h, int(a))

    def info_state(self, h: Any) -> InfoState:
        return (len(h),)

    def utility(self, h: Any) -> float:
        return self.A[h[0]][h[1]]


# --------------------------------------------------------------------------- plain definitions, without the flat lists


def value_below(game: Game, policy: Policy, h: Any) -> float:
    """Player 0's expected utility from `h` on, by recursion over histories."""
    if game.player(h) == oracle.OVER:
        return game.utility(h)
    if game.player(h) == oracle.CHANCE:
        return sum(p * value_below(game, policy, c) for c, p in game.outcomes(h))
    probabilities = policy[game.info_state(h)]
    return sum(
        float(p) * value_below(game, policy, game.child(h, a))
        for p, a in zip(probabilities, game.actions(h), strict=True)
    )


def regrets_by_definition(game: Game, policy: Policy, player: int) -> dict[InfoState, np.ndarray]:
    """v(I, a) - v(I) by recursion over histories; h comes with chance's and the other player's reach."""
    regrets: dict[InfoState, np.ndarray] = {}

    def walk(h: Any, reach: float) -> None:
        who = game.player(h)
        if who == oracle.CHANCE:
            for c, p in game.outcomes(h):
                walk(c, reach * p)
        if who < 0:
            return
        children = [game.child(h, a) for a in game.actions(h)]
        probabilities = policy[game.info_state(h)]
        if who == player:
            sign = 1 if player == 0 else -1
            values = sign * np.array([value_below(game, policy, c) for c in children])
            regret = reach * (values - probabilities @ values)
            regrets[game.info_state(h)] = regrets.get(game.info_state(h), 0.0) + regret
        for p, c in zip(probabilities, children, strict=True):
            walk(c, reach if who == player else reach * p)

    for h, p in game.roots():
        walk(h, p)
    return regrets


REDEAL = VariantHand(Rules("redeal", ("2", "3"), "linear", 2, 1, (1, 2), "nobody", redeal=True))  # chance in mid-game


@pytest.mark.parametrize(
    "game", [Kuhn(), case_game("c3x2_L12"), Matrix(), REDEAL], ids=["kuhn", "truc", "matrix", "redeal"]
)
def test_sweeps_agree_with_the_plain_definitions(game: Game) -> None:
    policy = oracle.random_policy(game, np.random.default_rng(5))
    value = sum(p * value_below(game, policy, h) for h, p in game.roots())
    assert oracle.expected_value(game, policy) == pytest.approx(value, abs=1e-13)
    for player in (0, 1):
        expected = regrets_by_definition(game, policy, player)
        got = oracle.counterfactual_regrets(game, policy, player)
        assert got.keys() == expected.keys()
        for key in got:
            np.testing.assert_allclose(got[key], expected[key], atol=1e-13)


def test_policies_that_do_not_fit_are_refused() -> None:
    game = Kuhn()
    policy = oracle.uniform(game)
    with pytest.raises(ValueError, match="3 probabilities for 2 actions"):
        oracle.expected_value(game, policy | {(0, (1,), ()): np.ones(3) / 3})
    with pytest.raises(KeyError):
        oracle.expected_value(game, {})


# ------------------------------------------------------------------------------------------------------ Kuhn poker


def kuhn_equilibrium(alpha: float) -> Policy:
    """Kuhn's family of equilibria, 0 <= alpha <= 1/3 the probability that player 0 bets the lowest card."""
    bet = {
        (0, 0, ()): alpha,
        (0, 1, ()): 0.0,
        (0, 2, ()): 3 * alpha,
        (0, 0, ("pass", "bet")): 0.0,
        (0, 1, ("pass", "bet")): alpha + 1 / 3,
        (0, 2, ("pass", "bet")): 1.0,
        (1, 0, ("pass",)): 1 / 3,
        (1, 1, ("pass",)): 0.0,
        (1, 2, ("pass",)): 1.0,
        (1, 0, ("bet",)): 0.0,
        (1, 1, ("bet",)): 1 / 3,
        (1, 2, ("bet",)): 1.0,
    }
    return {(p, (card,), line): np.array([1 - b, b]) for (p, card, line), b in bet.items()}


@pytest.mark.parametrize("alpha", [0.0, 0.1, 1 / 3])
def test_kuhn_equilibria_have_no_gain(alpha: float) -> None:
    game = Kuhn()
    policy = kuhn_equilibrium(alpha)
    assert oracle.expected_value(game, policy) == pytest.approx(-1 / 18, abs=1e-14)
    assert oracle.best_response(game, policy, 0) == pytest.approx(-1 / 18, abs=1e-14)
    assert oracle.best_response(game, policy, 1) == pytest.approx(1 / 18, abs=1e-14)


def test_kuhn_best_responses_to_uniform() -> None:
    game = Kuhn()
    policy = oracle.uniform(game)
    assert len(policy) == 12
    assert oracle.expected_value(game, policy) == pytest.approx(1 / 8)
    assert oracle.best_response(game, policy, 0) == pytest.approx(1 / 2)
    assert oracle.best_response(game, policy, 1) == pytest.approx(5 / 12)
    assert oracle.nash_conv(game, policy) == pytest.approx(11 / 12)


@pytest.mark.parametrize("player", [0, 1])
def test_kuhn_best_response_is_the_best_of_all_pure_strategies(player: int) -> None:
    game = Kuhn()
    policy = oracle.random_policy(game, np.random.default_rng(player))
    own = [key for key in policy if key[0] == player]
    sign = 1 if player == 0 else -1
    best = max(
        sign * oracle.expected_value(game, policy | dict(zip(own, pure, strict=True)))
        for pure in product(np.eye(2), repeat=len(own))
    )
    assert oracle.best_response(game, policy, player) == pytest.approx(best, abs=1e-13)


@pytest.mark.parametrize(
    ("algorithm", "accuracy"),
    [
        ("cfr", 4e-3),
        ("cfr+", 4e-4),
        ("dcfr", 6e-4),
        ("dcfr+", 4e-4),
        ("pcfr+", 1e-6),
        ("pdcfr+", 1e-9),
        ("fpdcfr+", 1e-4),
    ],
)
def test_every_algorithm_comes_to_kuhns_value(algorithm: str, accuracy: float) -> None:
    game = Kuhn()
    average = oracle.cfr(game, algorithm, 1000).average
    low, high = -oracle.best_response(game, average, 1), oracle.best_response(game, average, 0)
    assert low - 1e-12 <= -1 / 18 <= high + 1e-12
    assert high - low == pytest.approx(oracle.nash_conv(game, average), abs=1e-15)
    assert high - low < accuracy


# -------------------------------------------------------------------------------------------------- the algorithms


def matrix_by_hand(algorithm: str, iterations: int) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
    """Regrets, next strategies and average strategies of both players on `Matrix`, by each paper's formula."""
    a = np.array(Matrix.A)
    x = [np.ones(2) / 2, np.ones(3) / 3]
    r, s = [np.zeros(2), np.zeros(3)], [np.zeros(2), np.zeros(3)]

    def positive(v: np.ndarray) -> np.ndarray:
        return np.array([max(e, 0.0) for e in v])

    for t in range(1, iterations + 1):
        before = (t - 1) ** 1.5 / ((t - 1) ** 1.5 + 1)
        before_pd, now_pd = [u**2.3 / (u**2.3 + 1) for u in (t - 1, t)]
        for p in (0, 1):
            q = a @ x[1] if p == 0 else -(x[0] @ a)
            g = q - x[p] @ q
            match algorithm:
                case "cfr":
                    weight, r[p] = 1, r[p] + g
                    basis = r[p]
                case "cfr+":
                    weight, r[p] = t, positive(r[p] + g)
                    basis = r[p]
                case "dcfr":
                    weight, r[p] = t**2, np.array([e * before if e > 0 else e / 2 for e in r[p]]) + g
                    basis = r[p]
                case "dcfr+":
                    weight, r[p] = t**2, positive(before * r[p] + g)
                    basis = r[p]
                case "pcfr+":
                    weight, r[p] = t**2, positive(r[p] + g)
                    basis = r[p] + g
                case "pdcfr+":
                    weight, r[p] = t**5, positive(before_pd * r[p] + g)
                    basis = now_pd * r[p] + g
                case "fpdcfr+":
                    weight, r[p] = t**2, positive(before * r[p] + g)
                    basis = t**1.5 / (t**1.5 + 1) * r[p] + (0.5 if t < 20 else (5 / t) ** 0.5) * g
            s[p] = s[p] + weight * x[p]
            x[p] = positive(basis) / positive(basis).sum()
    return r, x, [v / v.sum() for v in s]


@pytest.mark.parametrize("algorithm", oracle.DEFAULTS)
def test_updates_follow_the_formulas(algorithm: str) -> None:
    game = Matrix()
    for iterations in (1, 2, 3, 10, 25):
        solver = oracle.cfr(game, algorithm, iterations)
        regrets, current, average = matrix_by_hand(algorithm, iterations)
        for p in (0, 1):
            np.testing.assert_allclose(solver.regrets[(p,)], regrets[p], atol=1e-12)
            np.testing.assert_allclose(solver.current[(p,)], current[p], atol=1e-12)
            np.testing.assert_allclose(solver.average[(p,)], average[p], atol=1e-12)


def test_average_is_weighted_by_own_reach() -> None:
    game = Kuhn()
    policy = oracle.random_policy(game, np.random.default_rng(3))
    solver = oracle.CFR(game, "cfr", policy=policy)
    solver.step()
    second = solver.current
    solver.step()
    first_move, later = (0, (1,), ()), (0, (1,), ("pass", "bet"))
    reach = policy[first_move][0], second[first_move][0]
    expected = reach[0] * policy[later] + reach[1] * second[later]
    np.testing.assert_allclose(solver.average[later], expected / sum(reach), atol=1e-15)
    np.testing.assert_allclose(solver.average[first_move], (policy[first_move] + second[first_move]) / 2, atol=1e-15)


def test_first_iteration_is_alternating() -> None:
    game = case_game("c3x2_L12")
    policy = oracle.random_policy(game, np.random.default_rng(1))
    solver = oracle.cfr(game, "cfr", 1, policy=policy)
    of_0 = oracle.counterfactual_regrets(game, policy, 0)
    moved = {key: solver.current[key] if key[0] == 0 else p for key, p in policy.items()}
    of_1 = oracle.counterfactual_regrets(game, moved, 1)
    for key, regret in solver.regrets.items():
        np.testing.assert_allclose(regret, (of_0 | of_1)[key], atol=1e-15)


def test_tiny_regrets_count_as_zero_and_parameters_are_checked() -> None:
    game = Kuhn()
    current = oracle.cfr(game, "cfr", 1, zero=10.0).current
    assert all(list(p) == [0.5, 0.5] for p in current.values())
    assert oracle.cfr(game, "dcfr", 5, gamma=4.0).parameters == {"alpha": 1.5, "beta": 0.0, "gamma": 4.0}
    with pytest.raises(ValueError, match=r"cfr\+ has no alpha"):
        oracle.cfr(game, "cfr+", 1, alpha=1.5)


# ------------------------------------------------------------------------------------------------ the hand, by rules


def ranks(hand: str) -> tuple[int, ...]:
    """Rank numbers of a full-size hand."""
    return tuple(sorted(LE_TRUC.ranks.index(card) for card in hand))


def played(hand0: str, hand1: str, line: str, **fields: Any) -> tuple[TrucHand, Any]:
    """The full-size game and the history at the end of a line, every action of which must be legal."""
    given = {f: getattr(LE_TRUC, f) for f in ("name", "ranks", "order", "copies", "hand_size", "ladder", "all_tied")}
    game = TrucHand(Rules(**given | fields))
    h: Any = (ranks(hand0), ranks(hand1), ())
    for word in line.split():
        assert word in game.actions(h), (word, h)
        h = game.child(h, word)
    return game, h


@pytest.mark.parametrize(
    ("hand0", "hand1", "line", "points"),
    [
        ("872", "654", "8 6 7 5", 1),  # won, won
        ("A23", "864", "A 8 2 4 6 3", -1),  # the Ace beats the 8; won, lost, lost
        ("A23", "764", "A 7 4 2", -1),  # the Ace loses to the 7; lost, lost
        ("A85", "A87", "A A 5 7", -1),  # tied, lost
        ("A85", "A83", "5 3 A A", 1),  # won, tied
        ("345", "348", "5 8 4 4", -1),  # lost, tied
        ("87A", "8A4", "8 8 A A 7 4", 1),  # tied, tied, won
        ("87A", "87A", "8 8 A A 7 7", 0),  # all tied
        ("72A", "648", "7 6 2 4 8 A", 1),  # won, lost, won: the winner of a trick leads
        ("723", "683", "7 6 2 8 3 3", 1),  # won, lost, tied: who won first
        ("872", "654", "raise refuse", 1),
        ("872", "654", "raise accept 8 raise refuse", -2),
        ("872", "654", "raise accept 8 raise accept 6 raise accept 7 raise refuse", -6),
        ("87A", "8A4", "raise accept 8 raise accept 8 raise accept A raise accept A raise accept 7 raise accept 4", 12),
    ],
)
def test_a_hand_ends_with_these_points(hand0: str, hand1: str, line: str, points: int) -> None:
    game, h = played(hand0, hand1, line)
    assert game.player(h) == oracle.OVER
    assert game.utility(h) == points


@pytest.mark.parametrize(("all_tied", "points"), [("nobody", 0), ("leader", 2), ("dealer", -2)])
def test_all_tied(all_tied: str, points: int) -> None:
    game, h = played("87A", "87A", "raise accept 8 8 A A 7 7", all_tied=all_tied)
    assert game.utility(h) == points


@pytest.mark.parametrize(
    ("hand0", "hand1", "line", "player", "actions"),
    [
        ("872", "644", "", 0, ("raise", "2", "7", "8")),
        ("872", "644", "raise", 1, ("accept", "refuse")),
        ("872", "644", "raise accept", 0, ("2", "7", "8")),
        ("872", "644", "raise accept 8", 1, ("raise", "4", "6")),
        ("872", "644", "raise accept 8 4", 0, ("2", "7")),  # he raised last
        ("872", "644", "raise accept 8 4 2", 1, ("raise", "4", "6")),
        ("872", "644", "raise accept 8 4 2 raise accept", 1, ("4", "6")),
        ("872", "644", "8 raise accept 4", 0, ("raise", "2", "7")),
        ("84A", "84A", "4 4 8 8 raise accept A", 1, ("raise", "A")),  # also who knows the result
        ("842", "635", "8 6 2 3 5", 0, ("raise", "4")),  # the winner of trick 2 has led
    ],
)
def test_actions_after_a_line(hand0: str, hand1: str, line: str, player: int, actions: tuple[str, ...]) -> None:
    game, h = played(hand0, hand1, line)
    assert (game.player(h), game.actions(h)) == (player, actions)
    assert game.info_state(h) == (player, ranks((hand0, hand1)[player]), tuple(line.split()))


def test_no_raise_at_the_top_of_the_ladder() -> None:
    game, h = played("872", "644", "raise accept 8", ladder=(1, 2))
    assert game.actions(h) == ("4", "6")


def test_deals_of_the_full_deck() -> None:
    roots = TrucHand(LE_TRUC).roots()
    full = EXACT["full_size"]
    ways = [Fraction(p).limit_denominator(10**9) * full["card_level_deals"] for _, p in roots]
    assert (len({h[0] for h, _ in roots}), len(roots)) == (full["hands"], full["rank_level_deals"])
    assert sum(ways) == full["card_level_deals"]
    assert all(w.denominator == 1 for w in ways)
    assert sum(p * np.mean([a == b for a, b in product(h[0], h[1])]) for h, p in roots) == pytest.approx(3 / 31)


def test_rules_beyond_the_core_are_refused() -> None:
    rules = case_rules(CASES["c3x2_L12"])
    object.__setattr__(rules, "fold", True)
    with pytest.raises(ValueError, match="fold = True"):
        TrucHand(rules)


# ------------------------------------------------------------------------------------------------------ exact cases


@pytest.mark.parametrize("name", CASES)
def test_sizes_and_uniform_values(name: str) -> None:
    case, game = CASES[name], case_game(name)
    tree, policy = oracle.flatten(game), oracle.uniform(game)
    for p in (0, 1):
        widths = [len(probabilities) for key, probabilities in policy.items() if key[0] == p]
        assert len(widths) == case[f"infosets_all_p{p}"]
        assert sum(w >= 2 for w in widths) == case[f"infosets_ge2_p{p}"]
    assert tree.terminals == case["terminals"]  # pairs of a deal and a line played to its end
    assert len(game.roots()) == case["deals"]
    assert len({h[0] for h, _ in game.roots()}) == case["hands"]
    assert sum(p for _, p in game.roots()) == pytest.approx(1, abs=1e-12)
    assert oracle.expected_value(game, policy) == pytest.approx(case["ev_uniform"], abs=1e-9)
    assert oracle.best_response(game, policy, 0) == pytest.approx(case["br0_vs_uniform"], abs=1e-9)
    assert oracle.best_response(game, policy, 1) == pytest.approx(case["br1_vs_uniform"], abs=1e-9)
    assert oracle.nash_conv(game, policy) / 2 == pytest.approx(case["exploitability_uniform"], abs=1e-9)


def interval_holds(game: Game, value: float, iterations: int, accuracy: float) -> None:
    """DCFR+ must bracket the value by best responses, closely."""
    average = oracle.cfr(game, "dcfr+", iterations).average
    low, high = -oracle.best_response(game, average, 1), oracle.best_response(game, average, 0)
    assert low - 1e-9 <= value <= high + 1e-9
    assert high - low < accuracy
    assert oracle.expected_value(game, average) == pytest.approx(value, abs=accuracy)


@pytest.mark.parametrize("name", QUICK)
def test_dcfr_plus_brackets_the_exact_value(name: str) -> None:
    interval_holds(case_game(name), CASES[name]["value"], 300, 1.5e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if name not in QUICK])
def test_dcfr_plus_brackets_the_exact_value_of_larger_cases(name: str) -> None:
    interval_holds(case_game(name), CASES[name]["value"], 1000, 2e-3)


# ------------------------------------------------------------------------------------------------------------ matches


def match_payoffs(match: dict[str, Any], deal: dict[str, float], a: int, b: int) -> dict[str, Any]:
    """Winning probability of one who leads at a-b and deals the next hand; `deal` is his as the dealer, by score."""
    ladder, target = match["rules"]["ladder"], match["target"]
    return {
        "win0": [1.0 if a + s >= target else deal[f"{b},{a + s}"] for s in ladder],
        "win1": [0.0 if b + s >= target else deal[f"{b + s},{a}"] for s in ladder],
        "tie": deal[f"{b},{a}"],
    }


def other(table: dict[str, float]) -> dict[str, float]:
    """The other side's probabilities."""
    return {score: 1 - p for score, p in table.items()}


@pytest.mark.parametrize("name", ["m2_c3x2_L12", pytest.param("m4_c3x4_L124", marks=pytest.mark.slow)])
def test_match_tables_are_fixed_points(name: str) -> None:
    match = MATCHES[name]
    rules, tables = case_rules(match), {key: match[key] for key in ("V", "U", "BL", "BD")}
    for score in tables["V"]:
        a, b = map(int, score.split(","))

        def hand(deal: dict[str, float], a: int = a, b: int = b) -> TrucHand:
            return TrucHand(rules, match_payoffs(match, deal, a, b))

        game = hand(other(tables["U"]))
        assert oracle.expected_value(game, oracle.uniform(game)) == pytest.approx(tables["U"][score], abs=1e-9)
        game = hand(tables["BD"])  # the leader responds, next hand as the dealer
        assert oracle.best_response(game, oracle.uniform(game), 0) == pytest.approx(tables["BL"][score], abs=1e-9)
        game = hand(other(tables["BL"]))  # the dealer responds, next hand as the leader
        assert 1 + oracle.best_response(game, oracle.uniform(game), 1) == pytest.approx(tables["BD"][score], abs=1e-9)
        interval_holds(hand(other(tables["V"])), tables["V"][score], 200, 2e-3)
