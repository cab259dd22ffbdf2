"""What theory says of the rule sets' fields, of solved small decks: the public tree's values with bounds proved by best
responses.  `tests.test_oracle_theory` has the same of the oracle's exact values, on smaller decks."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from games.rules import Rules
from solver.before_deal import after_cut, after_one, evaluation_before_deal
from solver.best_response import Evaluation, Evaluator
from solver.cfr import Payoffs, Solver
from solver.equity import Score, Worth, decider, hand_rules, payoffs, score_rules, scores
from solver.kernels import EXPECT
from solver.match import solve_pair
from solver.redeal import DenseSolver, redeal_game
from solver.strategy import Strategy
from solver.tree import Tree, public_tree
from tests.test_oracle_variants import AFTER, slow

ACCURACY = 2e-4
BOTH: dict[str, Any] = {"fold": True, "raise_when": AFTER}


def deck(n: int, copies: int, size: int, ladder: tuple[int, ...], order: str, all_tied: str, **fields: Any) -> Rules:
    """A small rule set."""
    return Rules("deck", tuple("A2345678"[:n]), order, copies, size, ladder, all_tied, **fields)  # type: ignore[arg-type]


DECKS = {
    "l4x4_1": deck(4, 4, 1, (1, 2, 3), "linear", "dealer"),
    "l4x4_2": deck(4, 4, 2, (1, 2, 3), "linear", "leader"),
    "c5x3_2": deck(5, 3, 2, (1, 2, 4), "circular", "nobody"),
    "l3x4_3": deck(3, 4, 3, (1, 2), "linear", "nobody"),
    "l4x3_3": deck(4, 3, 3, (1, 2, 3), "linear", "leader"),
    "c4x4_3": deck(4, 4, 3, (1, 3), "circular", "nobody"),
}
LARGE = ("l4x3_3", "c4x4_3")
NAMES = [slow(name) if name in LARGE else name for name in DECKS]


def solved(tree: Tree, pay: Payoffs, accuracy: float = ACCURACY) -> Strategy:
    """An equilibrium within `accuracy`."""
    solver = Solver(tree, pay, dtype=np.float64)
    while True:
        solver.step(max(100, solver.iterations // 2))
        strategy = Strategy.of(solver)
        if strategy.evaluate().exploitability <= accuracy:
            return strategy
        assert solver.iterations < 50_000


@cache
def evaluation(rules: Rules) -> Evaluation:
    """The solved hand in points."""
    return solved(public_tree(rules), Payoffs.points(rules)).evaluate()


def agree(first: Evaluation, second: Evaluation) -> bool:
    """Whether two intervals, neither of them wide, have a value in common."""
    assert max(first.exploitability, second.exploitability) <= ACCURACY
    (low, high), (other_low, other_high) = first.interval, second.interval
    return max(low, other_low) <= min(high, other_high)


# --------------------------------------------------------------------------------------- checks 2 to 4, hands in points


@pytest.mark.parametrize("fields", [{"fold": True}, {"raise_when": AFTER}, BOTH], ids=["fold", "after", "both"])
@pytest.mark.parametrize("name", NAMES)
def test_folds_and_raises_after_the_card_change_no_value(name: str, fields: dict[str, Any]) -> None:
    plain, game = DECKS[name], replace(DECKS[name], **fields)
    assert agree(evaluation(plain), evaluation(game))
    uniform = [Strategy.uniform(public_tree(rules)).evaluate() for rules in (plain, game)]
    assert abs(uniform[0].value - uniform[1].value) > 1e-4  # but they are there
    assert sum(public_tree(game).rows) > sum(public_tree(plain).rows)


@pytest.mark.parametrize("fields", [{}, BOTH], ids=["plain", "both"])
@pytest.mark.parametrize("name", NAMES)
def test_one_card_changes_no_value(name: str, fields: dict[str, Any]) -> None:
    rules = replace(DECKS[name], one_card=True, **fields)
    cut, one = evaluation(after_cut(rules)), evaluation(after_one(rules))
    assert agree(evaluation(DECKS[name]), evaluation_before_deal(None, cut, cut, one))
    # Who may only tap, or must accept the one card, has another game.
    assert cut.interval[1] < one.interval[0] or one.interval[1] < cut.interval[0] or rules.hand_size == 1


@pytest.mark.parametrize(
    ("rules", "fields"),
    [
        (DECKS["l4x4_1"], {}),
        (DECKS["l4x4_1"], BOTH),
        (deck(3, 4, 2, (1, 2), "circular", "nobody"), {}),
        slow(deck(3, 4, 2, (1, 2), "circular", "nobody"), BOTH),
        slow(deck(3, 4, 3, (1, 2), "linear", "leader"), {}),
    ],
)
def test_a_redeal_changes_no_value(rules: Rules, fields: dict[str, Any]) -> None:
    game = redeal_game(replace(rules, redeal=True, **fields))
    _, found = DenseSolver(game).run(ACCURACY)
    assert agree(evaluation(rules), found)
    # Uniform play redeals by chance, which changes nothing; its best response does not.
    uniform, plain = game.evaluate(game.uniform()), Strategy.uniform(public_tree(rules)).evaluate()
    assert all(x > y + 1e-4 for x, y in zip(uniform.best_response, plain.best_response, strict=True))


# ------------------------------------------------------------------------------------------------------- the match


def match_rules(name: str, **fields: Any) -> Rules:
    """A small deck with a match to 4."""
    small = {
        "l4x4_1": DECKS["l4x4_1"],
        "c3x3_2": deck(3, 3, 2, (1, 2, 4), "circular", "nobody"),
        "l3x3_3": deck(3, 3, 3, (1, 2), "linear", "leader"),
        "c4x4_3": DECKS["c4x4_3"],
    }
    return replace(small[name], target=4, **fields)


@cache
def match(rules: Rules, accuracy: float = ACCURACY) -> dict[Score, Worth]:
    """Every score of a solved match."""
    known: dict[Score, Worth] = {}
    for score in scores(rules):
        if score not in known:
            known |= {each: found.worth for each, found in solve_pair(rules, score, known, accuracy).items()}
    return known


FRENCH: dict[str, Any] = {"remainder": True}
CATALAN: dict[str, Any] = {"decision_before_target": True}


@pytest.mark.parametrize("fields", [FRENCH, CATALAN], ids=["french", "catalan"])
@pytest.mark.parametrize("name", ["l4x4_1", "c3x3_2", slow("l3x3_3")])
def test_the_value_rises_with_the_own_points(name: str, fields: dict[str, Any]) -> None:
    """Check 2's condition, within the bounds."""
    found = match(match_rules(name, **fields))
    for (a, b), worth in found.items():
        assert worth.exploitability <= ACCURACY
        if (a + 1, b) in found:
            assert worth.lower <= found[a + 1, b].upper
        if (a, b + 1) in found:
            assert worth.upper >= found[a, b + 1].lower
    assert found[0, 3].upper < found[0, 0].lower < found[0, 0].upper < found[3, 0].lower


@pytest.mark.parametrize(
    ("name", "fields", "more"),
    [
        ("l4x4_1", FRENCH, {"fold": True}),
        ("c3x3_2", FRENCH, {"raise_when": AFTER}),
        ("c3x3_2", CATALAN, BOTH),
        slow("l3x3_3", FRENCH, BOTH),
        slow("l3x3_3", CATALAN, {"raise_when": AFTER}),
    ],
)
def test_a_field_that_changes_no_value_of_a_match(name: str, fields: dict[str, Any], more: dict[str, Any]) -> None:
    """Each score's hand with more to do, with all its stakes, in the match without: it is worth the same."""
    rules = match_rules(name, **fields)
    known = match(rules)
    for score, worth in known.items():
        game = replace(score_rules(rules, score), **more)
        pay = payoffs(rules, game.ladder, score, lambda after: 1.0 - known[after].value)
        found = solved(public_tree(game, decider(rules, score)), pay).evaluate()
        spread = max(max(each.upper - each.value, each.value - each.lower) for each in known.values())
        assert found.interval[0] <= worth.upper + spread, score
        assert found.interval[1] >= worth.lower - spread, score


# ------------------------------------------------------------------------------------------------------------ check 5


@cache
def unraised(rules: Rules) -> Worth:
    """One unraised hand for the match, spoiled hands being played again with the sides changed."""
    plain = {"remainder": False, "fold": False, "raise_when": ("before",), "decision_before_target": False}
    single = replace(rules, ladder=(1,), target=1, **plain)
    return match(single, 1e-5)[0, 0]


@pytest.mark.parametrize("name", ["l4x4_1", "c3x3_2", slow("l3x3_3")])
def test_a_remainder_whose_refusal_loses_the_match_makes_a_constant_of_the_table(name: str) -> None:
    rules = match_rules(name, remainder=True, remainder_refused="match", ladder=(1, 2, 4))
    constant = unraised(rules)
    for score, worth in match(rules).items():
        assert worth.lower <= constant.upper, score
        assert worth.upper >= constant.lower, score
        assert worth.value == pytest.approx(constant.value, abs=4 * ACCURACY)


@pytest.mark.parametrize("name", ["l4x4_1", "c3x3_2"])
def test_but_a_fold_is_worth_something_there(name: str) -> None:
    """Check 2's exception: points are worth nothing, so who is better off as the dealer gives one for that."""
    rules = match_rules(name, remainder=True, remainder_refused="match", ladder=(1, 2, 4), fold=True)
    assert hand_rules(rules, (0, 0)).fold
    assert unraised(rules).upper < 0.5
    assert match(rules)[0, 0].lower > unraised(rules).upper + 0.01


# ------------------------------------------------------------------------------------------------------ checks 6 and 7


@pytest.mark.parametrize("all_tied", ["nobody", "leader"])
@pytest.mark.parametrize("fields", [FRENCH, CATALAN, {"remainder": True, "remainder_refused": "match"}, BOTH])
@pytest.mark.parametrize("name", ["l4x4_1", "c3x3_2", slow("c4x4_3")])
def test_when_both_need_one_point(name: str, fields: dict[str, Any], all_tied: Any) -> None:
    """Raises change nothing: with w = P(leader wins) and t = P(all tied), V = (w + t)/(1 + t), or w + t."""
    rules = match_rules(name, all_tied=all_tied, **fields)
    score = (3, 3)
    worth = solve_pair(rules, score, {}, ACCURACY)[score].worth
    assert worth.lower <= unraised(rules).upper
    assert worth.upper >= unraised(rules).lower

    nobody = replace(score_rules(rules, score), all_tied="nobody")
    wins = {tie: payoffs(rules, nobody.ladder, score, lambda after, tie=tie: tie) for tie in (0.0, 1.0)}  # type: ignore[misc]
    pay = payoffs(rules, nobody.ladder, score, lambda after: 1 - worth.value if all_tied == "nobody" else 1.0)
    play = solved(public_tree(nobody), pay)
    w, either = (
        Evaluator(play.tree, each).value(0, EXPECT, play.probabilities, each) for each in (wins[0.0], wins[1.0])
    )
    t = either - w
    assert t > 0.01
    expected = either / (1 + t) if all_tied == "nobody" else either
    assert worth.value == pytest.approx(expected, abs=4 * ACCURACY)


@pytest.mark.parametrize("fields", [FRENCH, CATALAN, BOTH], ids=["french", "catalan", "both"])
def test_both_sides_chances_add_up_to_one(fields: dict[str, Any]) -> None:
    """The dealer's, from a sweep of his own with payoffs of his own."""
    rules = match_rules("c3x3_2", **fields)
    known = match(rules)
    for score in scores(rules):
        game = score_rules(rules, score)
        tree = public_tree(game, decider(rules, score))
        pay = payoffs(rules, game.ladder, score, lambda after: 1.0 - known[after].value)
        play = solved(tree, pay, 1e-2)
        evaluator = Evaluator(tree, pay)
        leader, dealer = (evaluator.value(p, EXPECT, play.probabilities, pay) for p in (0, 1))
        assert leader + dealer == pytest.approx(1, abs=1e-14)
        assert known[score].leader + known[score].dealer >= 1  # and best responses to at least that
        assert known[score].lower <= known[score].value <= known[score].upper


# ------------------------------------------------------------------------------------------------------- invariances


@pytest.mark.parametrize("fields", [{}, BOTH, FRENCH], ids=["plain", "both", "french"])
def test_other_labels_in_a_linear_order(fields: dict[str, Any]) -> None:
    rules = replace(DECKS["l4x4_2"], **fields)
    other = replace(rules, name="other", ranks=("x", "K", "seven", "2"))
    pay = Payoffs((1.0, 2.0, 3.0, 5.0), (-1.0, -2.0, -3.0, -5.0)) if fields == FRENCH else Payoffs.points(rules)
    plays = []
    for game in (rules, other):
        solver = Solver(Tree(game), pay)
        solver.step(20)
        plays.append(Strategy.of(solver))
    for first, second in zip(plays[0].probabilities, plays[1].probabilities, strict=True):
        np.testing.assert_array_equal(first, second)
    first, second = plays[0].at(("3",)), plays[1].at(("seven",))
    assert first.actions[:-4] == second.actions[:-4]  # all but the cards
    assert first.player == second.player
    np.testing.assert_array_equal(first.probabilities, second.probabilities)


@pytest.mark.parametrize("name", ["l3x3_3", "l4x4_1"])
def test_catalan_without_its_betting_is_the_deck_with_one_stake(name: str) -> None:
    catalan = match_rules(name, all_tied="leader", raise_when=AFTER, decision_before_target=True)
    both_before = score_rules(catalan, (3, 3))
    single = replace(catalan, ladder=(1,), raise_when=("before",), decision_before_target=False)
    found = [Strategy.uniform(public_tree(rules), Payoffs.points(single)) for rules in (both_before, single)]
    assert found[0].tree.rows == found[1].tree.rows
    numbers = [(each.value, *each.best_response) for each in (play.evaluate() for play in found)]
    assert numbers[0] == pytest.approx(numbers[1], abs=1e-14)
    points = evaluation(single)
    (worth,) = (each.worth for each in solve_pair(catalan, (3, 3), {}, ACCURACY).values())
    assert 2 * worth.lower - 1 <= points.interval[1]
    assert 2 * worth.upper - 1 >= points.interval[0]
