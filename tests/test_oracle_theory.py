"""What theory says of the rule sets' fields, on small decks with everything in the tree: values proved to 1e-9."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from games.rules import Rules
from tests import oracle
from tests.oracle_variants import VariantHand
from tests.test_oracle import other
from tests.test_oracle_variants import AFTER, MATCHES, Hands, match_hands, slow, value

ALL = {"fold": True, "raise_when": AFTER}


def deck(n: int, copies: int, size: int, ladder: tuple[int, ...], order: Any, all_tied: Any) -> Rules:
    """A small rule set without any of the fields."""
    return Rules("deck", tuple("A2345678"[:n]), order, copies, size, ladder, all_tied)


SMALL = {
    "l4x4_1": deck(4, 4, 1, (1, 2, 3), "linear", "dealer"),
    "l3x4_2": deck(3, 4, 2, (1, 2), "linear", "nobody"),
    "c3x3_2": deck(3, 3, 2, (1, 2, 4), "circular", "nobody"),
    "c4x2_2": deck(4, 2, 2, (1, 2, 3), "circular", "leader"),
    "l3x2_3": deck(3, 2, 3, (1, 2, 3), "linear", "leader"),
    "c3x3_3": deck(3, 3, 3, (1, 2), "circular", "nobody"),
}
FIELDS: dict[str, dict[str, Any]] = {
    "fold": {"fold": True},
    "after": {"raise_when": AFTER},
    "one": {"one_card": True},
    "redeal": {"redeal": True},
    "fold after": ALL,
    "fold after one": {**ALL, "one_card": True},
    "fold after redeal": {**ALL, "redeal": True},
}
LONG = ("fold after one", "fold after redeal")


@cache
def plain_value(name: str) -> float:
    """The value of a small deck without any of the fields."""
    return value(VariantHand(SMALL[name]))


def playable() -> list[Any]:
    """Every deck with every combination of fields that it has the cards for."""
    pairs = [(name, fields) for name, fields in product(SMALL, FIELDS) if "redeal" not in fields or enough(SMALL[name])]
    return [slow(*pair) if pair[0] == "c3x3_3" or pair[1] in LONG else pair for pair in pairs]


def enough(rules: Rules) -> bool:
    """Whether there are cards for a redeal."""
    return rules.n_cards >= 4 * rules.hand_size


@pytest.mark.parametrize(("name", "fields"), playable())
def test_a_field_that_changes_no_value(name: str, fields: str) -> None:
    game, plain = VariantHand(replace(SMALL[name], **FIELDS[fields])), VariantHand(SMALL[name])
    assert len(oracle.uniform(game)) > len(oracle.uniform(plain)) or fields == "fold"  # but it is there
    assert oracle.flatten(game).terminals > oracle.flatten(plain).terminals
    assert value(game) == pytest.approx(plain_value(name), abs=1e-9)


def monotone(table: dict[str, float]) -> bool:
    """Whether more points are never worse for one who has them, as leader."""
    side = 1 + max(int(score.split(",")[0]) for score in table)
    v = np.array([[table[f"{a},{b}"] for b in range(side)] for a in range(side)])
    return bool((np.diff(v, axis=0) > -1e-9).all() and (np.diff(v, axis=1) < 1e-9).all())


@pytest.mark.parametrize("name", MATCHES)
def test_match_values_are_monotone_in_the_scores(name: str) -> None:
    assert monotone(MATCHES[name]["V"])


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("mfr3_l3x2_L12_stake", {"fold": True}),
        ("mfr3_l3x2_L12_stake", {"raise_when": AFTER}),
        slow("mfr3_l3x2_L12_stake", ALL),
        slow("mfr3_l3x2_L12_stake", {**ALL, "one_card": True}),
        slow("mcat4_l3x2_dec_one", {"fold": True}),
        slow("mcat4_l3x2_dec_one", {"one_card": False}),
        slow("mcat4_l3x2_dec_one", {"raise_when": ("before",)}),
        slow("mfr4_l3x3_L12_stake_fold", {"fold": False}),
        slow("mfr4_l3x3_L124_match", {"raise_when": AFTER}),
    ],
)
def test_a_field_that_changes_no_value_of_a_match(name: str, fields: dict[str, Any]) -> None:
    match = MATCHES[name]
    hands = Hands(replace(match_hands(name).rules, **fields))
    for score, exact in match["V"].items():
        game = hands.at(*map(int, score.split(",")), other(match["V"]))
        assert value(game) == pytest.approx(exact, abs=1e-9)


def unraised(rules: Rules) -> float:
    """The value of one unraised hand for the match, spoiled hands being played again with the sides changed."""
    hands = Hands(replace(rules, ladder=(1,), target=1, remainder=False, fold=False, raise_when=("before",)))
    v, before = 0.5, 0.0
    while abs(v - before) > 1e-13:
        v, before = value(hands.at(0, 0, {"0,0": 1 - v})), v
    return v


def to_four(name: str, **fields: Any) -> Rules:
    """A small deck with a match to 4 that a refused remainder loses."""
    return replace(SMALL[name], ladder=(1, 2, 4), target=4, remainder=True, remainder_refused="match", **fields)


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("l4x4_1", {}),
        ("l4x4_1", {"raise_when": AFTER}),
        ("l4x4_1", {"redeal": True}),
        ("c3x3_2", {}),
        slow("c3x3_2", {"raise_when": AFTER, "one_card": True}),
        slow("l3x2_3", {}),
    ],
)
def test_a_remainder_whose_refusal_loses_the_match_makes_a_constant_of_the_table(
    name: str, fields: dict[str, Any]
) -> None:
    rules = to_four(name, **fields)
    constant, hands = unraised(SMALL[name]), Hands(rules)
    table = {f"{a},{b}": 1 - constant for a, b in product(range(4), repeat=2)}
    for a, b in product(range(4), repeat=2):
        assert value(hands.at(a, b, table)) == pytest.approx(constant, abs=1e-9), (a, b)


@pytest.mark.parametrize("name", ["l4x4_1", "c3x3_2"])
def test_but_a_fold_is_worth_something_there(name: str) -> None:
    # With the constant below 1/2 it is the dealer who is ahead: a leader who folds loses a point, of no value here, and
    # is the dealer. To play on and refuse everything instead would lose the match.
    constant = unraised(SMALL[name])
    hands = Hands(to_four(name, fold=True))
    table = {f"{a},{b}": 1 - constant for a, b in product(range(4), repeat=2)}
    assert constant < 0.5
    assert value(hands.at(0, 0, table)) > 1 - constant - 1e-9 > constant


def test_the_constant_of_the_exact_match() -> None:
    name = "mfr4_l3x3_L124_match"
    constant = unraised(match_hands(name).rules)
    for exact in MATCHES[name]["V"].values():
        assert exact == pytest.approx(constant, abs=1e-9)


@pytest.mark.parametrize("all_tied", ["nobody", "leader"])
@pytest.mark.parametrize("fields", [{}, {"remainder": True}, {"remainder": True, "remainder_refused": "match"}, ALL])
@pytest.mark.parametrize("name", ["l3x4_2", "c3x3_2", slow("l3x2_3")])
def test_raises_change_nothing_when_both_need_one_point(name: str, fields: dict[str, Any], all_tied: Any) -> None:
    rules = replace(SMALL[name], all_tied=all_tied, target=4, **fields)
    v = unraised(rules)
    assert value(Hands(rules).at(3, 3, {"3,3": 1 - v})) == pytest.approx(v, abs=1e-9)


def test_winning_and_tying_make_the_value_when_both_need_one_point() -> None:
    pytest.importorskip("scipy")
    from tests.oracle_lp import equilibrium

    rules = replace(SMALL["l3x4_2"], ladder=(1,), target=1)
    v, hands = unraised(rules), Hands(rules)
    policy = equilibrium(hands.at(0, 0, {"0,0": 1 - v}))
    payoffs = hands.at(0, 0, {"0,0": 0.0}).payoffs
    won = oracle.expected_value(hands.hand((True, True), payoffs), policy)
    tied = oracle.expected_value(hands.hand((True, True), payoffs | {"win0": [0.0], "tie": 1.0}), policy)
    assert 0 < tied < 1
    assert v == pytest.approx((won + tied) / (1 + tied), abs=1e-9)


@pytest.mark.parametrize("name", ["c4x2_2", "l3x2_3"])
def test_catalan_without_raises_is_the_deck_with_one_stake(name: str) -> None:
    rules = replace(SMALL[name], target=3, raise_when=AFTER, decision_before_target=True)
    without = Hands(rules).at(2, 2, {"2,2": 0.5})
    single = VariantHand(replace(rules, ladder=(1,)), without.payoffs)
    assert oracle.uniform(without).keys() == oracle.uniform(single).keys()
    points = VariantHand(replace(SMALL[name], ladder=(1,)))
    assert 2 * value(without) - 1 == pytest.approx(value(points), abs=1e-9)
    assert value(single) == pytest.approx(value(without), abs=1e-12)
