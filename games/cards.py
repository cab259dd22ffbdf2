"""Hands and deals counted by rank: suits never matter, so a hand is a multiset of ranks.

A rank is its index in `Rules.ranks`. H is the number of different hands.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import comb

import numpy as np
from numpy.typing import NDArray

from games.rules import Rules


def hands(n_ranks: int, size: int, copies: int) -> NDArray[np.int8]:
    """All hands of `size` cards: shape (H, size), one per row.

    Rows ascend within themselves, come in the order of `itertools.combinations_with_replacement`, and hold no rank
    more than `copies` times. Size 0 gives the one empty hand, shape (1, 0).
    """
    rows = [
        row
        for row in combinations_with_replacement(range(n_ranks), size)
        if all(row.count(rank) <= copies for rank in row)
    ]
    return np.array(rows, dtype=np.int8).reshape(len(rows), size)


def counts(hands: NDArray[np.int8], n_ranks: int) -> NDArray[np.int8]:
    """How many cards of each rank every hand has: shape (H, n_ranks) for hands of shape (H, size)."""
    by_rank: NDArray[np.int8] = (hands[:, :, None] == np.arange(n_ranks)).sum(axis=1, dtype=np.int8)
    return by_rank


def combinations(rules: Rules) -> NDArray[np.float64]:
    """Number of card combinations that are each full hand: shape (H,), exact whole numbers.

    A hand with a cards of a rank of c copies can be had in C(c, a) ways, ranks independently.
    """
    ways = np.array([comb(rules.copies, a) for a in range(rules.hand_size + 1)], dtype=np.float64)
    number: NDArray[np.float64] = ways[counts(_full_hands(rules), rules.n_ranks)].prod(axis=1)
    return number


def deal_weights(rules: Rules) -> NDArray[np.float64]:
    """Number of card deals for each (leader's hand, dealer's hand): shape (H, H), exact, 0 where impossible.

    With a and b cards of a rank of c copies it is c! / (a! b! (c - a - b)!), a product over ranks. Card removal is
    in these numbers: their sum is the number of all deals, and divided by it they are probabilities.
    """
    size, copies = rules.hand_size, rules.copies
    ways = np.array(
        # math.comb is 0 where the second hand asks for more cards than the first has left.
        [[comb(copies, a) * comb(max(copies - a, 0), b) for b in range(size + 1)] for a in range(size + 1)],
        dtype=np.float64,
    )
    by_rank = counts(_full_hands(rules), rules.n_ranks)
    weights = np.ones((len(by_rank), len(by_rank)))
    for held in by_rank.T:
        weights *= ways[held[:, None], held[None, :]]
    return weights


def _full_hands(rules: Rules) -> NDArray[np.int8]:
    return hands(rules.n_ranks, rules.hand_size, rules.copies)
