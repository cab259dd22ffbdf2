"""Hands and deals: the numbers of the full deck and of small ones, exactly."""

import dataclasses
import json
from fractions import Fraction
from itertools import combinations as card_combinations
from math import comb, factorial
from pathlib import Path

import numpy as np
import pytest

from games.cards import combinations, counts, deal_weights, hands
from games.rules import Rules, preset

LE_TRUC = preset("le-truc")
EXACT = json.loads((Path(__file__).parent / "data" / "exact_cases.json").read_text())


def small(ranks="A23", copies=2, **fields) -> Rules:
    return dataclasses.replace(preset("tiny"), ranks=tuple(ranks), copies=copies, **fields)


def test_hands_of_the_full_deck():
    rows = hands(8, 3, 4)
    assert rows.shape == (120, 3)
    assert rows.dtype == np.int8
    assert rows[0].tolist() == [0, 0, 0]
    assert rows[1].tolist() == [0, 0, 1]
    assert rows[-1].tolist() == [7, 7, 7]
    assert (np.diff(rows, axis=1) >= 0).all()
    assert rows.tolist() == sorted(rows.tolist())  # the order of combinations_with_replacement is lexicographic


def test_sizes_of_remaining_hands():
    """A player who has played j cards holds one of 120, 36, 8, 1 multisets."""
    assert [hands(8, size, 4).shape for size in (3, 2, 1, 0)] == [(120, 3), (36, 2), (8, 1), (1, 0)]


def test_no_hand_has_more_cards_of_a_rank_than_the_deck():
    assert hands(3, 3, 1).tolist() == [[0, 1, 2]]
    assert len(hands(3, 3, 2)) == 7
    assert hands(2, 3, 1).shape == (0, 3)


def test_counts():
    assert counts(np.array([[0, 0, 2], [1, 2, 2]], dtype=np.int8), 4).tolist() == [[2, 0, 1, 0], [0, 1, 2, 0]]
    assert counts(hands(8, 3, 4), 8).dtype == np.int8
    assert counts(hands(8, 0, 4), 8).tolist() == [[0] * 8]


def test_combinations_of_the_full_deck():
    """Triple 4, pair 24, all different 64 card combinations, 4,960 in all."""
    number = combinations(LE_TRUC)
    distinct = (counts(hands(8, 3, 4), 8) > 0).sum(axis=1)
    assert {kind: set(number[distinct == kind]) for kind in (1, 2, 3)} == {1: {4.0}, 2: {24.0}, 3: {64.0}}
    assert number.sum() == comb(32, 3) == 4960


def test_deals_of_the_full_deck():
    """14,280 rank deals = 18,123,840 card deals."""
    weights = deal_weights(LE_TRUC)
    assert weights.shape == (120, 120)
    assert np.count_nonzero(weights) == EXACT["full_size"]["rank_level_deals"] == 14280
    assert weights.sum() == EXACT["full_size"]["card_level_deals"] == comb(32, 3) * comb(29, 3) == 18123840
    assert (weights == weights.T).all()
    assert (weights.sum(axis=1) == combinations(LE_TRUC) * comb(29, 3)).all()


@pytest.mark.parametrize("case", EXACT["cases"], ids=lambda case: case["name"])
def test_deals_of_small_decks(case):
    fields = case["rules"]
    rules = small("ABCDEFGH"[: fields["n"]], fields["copies"], hand_size=fields["hand_size"])
    weights = deal_weights(rules)
    assert weights.shape == (case["hands"], case["hands"])
    assert np.count_nonzero(weights) == case["deals"]


@pytest.mark.parametrize("rules", [small(), small(copies=3), small("A234", hand_size=2), small(hand_size=1)])
def test_deals_by_drawing_cards(rules):
    """Every pair of hands drawn from single cards, one after the other."""
    row_of = {tuple(row): i for i, row in enumerate(hands(rules.n_ranks, rules.hand_size, rules.copies).tolist())}
    drawn = np.zeros((len(row_of), len(row_of)))
    deck = [rank for rank in range(rules.n_ranks) for _ in range(rules.copies)]
    for first in card_combinations(range(len(deck)), rules.hand_size):
        others = [card for card in range(len(deck)) if card not in first]
        for second in card_combinations(others, rules.hand_size):
            drawn[row_of[tuple(deck[card] for card in first)], row_of[tuple(deck[card] for card in second)]] += 1
    assert (deal_weights(rules) == drawn).all()


def test_two_random_cards_tie():
    """P(tie of two cards) = 3/31."""
    weights = deal_weights(dataclasses.replace(LE_TRUC, hand_size=1))
    assert Fraction(int(np.trace(weights)), int(weights.sum())) == Fraction(3, 31)


def test_all_three_tricks_tie():
    """Every card in random order: all three tricks tie with probability 13/13485."""
    weights = deal_weights(LE_TRUC)
    all_tied = Fraction(0)
    for i, row in enumerate(counts(hands(8, 3, 4), 8).tolist()):
        # Only equal hands can, and then in the orders of one that repeat the other's ranks.
        orders = Fraction(int(np.prod([factorial(a) for a in row])), factorial(3))
        all_tied += Fraction(int(weights[i, i])) * orders
    assert all_tied / int(weights.sum()) == Fraction(13, 13485)


def test_card_removal():
    """Given that I hold 0/1/2/3 of a rank, how likely the opponent holds at least one of it."""
    weights, held = deal_weights(LE_TRUC), counts(hands(8, 3, 4), 8)[:, 0]
    chances = [weights[held == mine][:, held > 0].sum() / weights[held == mine].sum() for mine in range(4)]
    assert chances == pytest.approx([0.370553, 0.288451, 0.199507, 0.103448], abs=5e-7)
