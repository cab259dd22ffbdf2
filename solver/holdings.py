"""Tables of what can be held: see `solver.kernels.Holdings`."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from games.cards import counts, hands
from solver.kernels import Holdings


@lru_cache(maxsize=16)
def holdings(n_ranks: int, copies: int, hand_size: int) -> Holdings:
    """Tables of all multisets of k cards, k = 0..hand_size; index [k, h], -1 where there is none.

    distinct: ranks in the holding; card, rest [k, h, j]: j-th distinct rank, and the holding of k - 1 cards without
    it; number [k, h, r]: copies of r; positions, pairs [k, h, j]: its cards, and its pairs of cards as holdings of
    two; more [k, h, r]: the holding of k + 1 cards with one more r; factorial: prod_r number!.
    """
    every = [[tuple(map(int, row)) for row in hands(n_ranks, k, copies)] for k in range(hand_size + 1)]
    index = [{hand: h for h, hand in enumerate(level)} for level in every]
    size = np.array([len(level) for level in every], np.int64)
    shape = (hand_size + 1, int(size.max()))
    distinct = np.zeros(shape, np.int64)
    number = np.zeros((*shape, n_ranks), np.int64)
    more = np.full((*shape, n_ranks), -1, np.int64)
    card, rest, positions, pairs = (np.full((*shape, 3), -1, np.int64) for _ in range(4))
    factorial = np.ones(shape, np.int64)
    for k, level in enumerate(every):
        number[k, : len(level)] = counts(np.array(level, np.int8).reshape(len(level), k), n_ranks)
        for h, hand in enumerate(level):
            ranks = sorted(set(hand))
            distinct[k, h] = len(ranks)
            positions[k, h, :k] = hand
            factorial[k, h] = math.prod(math.factorial(hand.count(r)) for r in ranks)
            for j, r in enumerate(ranks):
                without = list(hand)
                without.remove(r)
                card[k, h, j], rest[k, h, j] = r, index[k - 1][tuple(without)]
            both = [(a, b) for a in range(k) for b in range(a + 1, k)]
            for j, (a, b) in enumerate(both):
                pairs[k, h, j] = index[2][hand[a], hand[b]]
            if k < hand_size:
                for r in range(n_ranks):
                    more[k, h, r] = index[k + 1].get(tuple(sorted((*hand, r))), -1)
    return Holdings(size, distinct, card, rest, number, positions, pairs, more, factorial)
