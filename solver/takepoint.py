"""What an equity table says by itself: when to take a raise, what the deal is worth, the best of several matches.

Pure functions of the rules and of what the scores are worth; no strategy is looked at, except by `threshold`, which
finds out when a strategy takes a raise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from games.cards import deal_weights
from games.rules import RAISE, REMAINDER, Rules
from solver.best_response import rounding_bound
from solver.cfr import PROBABILITY, Payoffs
from solver.equity import Score, Worth, decider, payoffs, whole_rules
from solver.nodes import after_raise
from solver.tree import public_tree

Array = npt.NDArray[np.float64]
SAME = 1e-12  # winning probabilities that differ by less are the same
RARE = 1e-9  # of a range: a holding that makes up less is not there
ALL = 1e-3  # of a range: what more than all but that does, all do


class Interval(NamedTuple):
    """A number, and what it is proved to lie between."""

    value: float
    lower: float
    upper: float


class Threshold(NamedTuple):
    """When a range takes a raise.

    win: the chance to win from which hands accept, None if all accept or all refuse; accepted: how much of the range
    accepts; misplaced: how much of it does not do what the best cut says.
    """

    win: float | None
    accepted: float
    misplaced: float


def equity_rounding(rules: Rules) -> float:
    """A bound on the rounding error of any number of an equity table.

    A hand's value is off by at most e, that of `rounding_bound` and a little for sums of two numbers, if what follows
    is exact.  A hand is spoiled only if both hold the same ranks, with a chance of at most q whatever they play; so
    what a pair of scores is worth is off by at most x = e + (1 - q) y + q x, where y is the error of what follows it,
    hence x <= e / (1 - q) + y.  The last change of the fixed point's iteration, 1e-15, adds as much again at most.  A
    match goes through 2 target - 1 scores at most.
    """
    tree, one = public_tree(whole_rules(rules, (0, 0))), (1.0,) * len(rules.ladder)
    hand = rounding_bound(tree, Payoffs(one, one, 1.0, PROBABILITY)) + 3e-15
    weights = deal_weights(rules)
    spoiled = float(np.trace(weights) / weights.sum()) if rules.all_tied == "nobody" else 0.0
    return (2 * rules.target - 1) * hand / (1 - spoiled)


class Call(NamedTuple):
    """A raise or a remainder from one stake on; raised: the stake if it is accepted, None for the match."""

    word: str
    level: int
    stake: int
    raised: int | None

    @property
    def to(self) -> str:
        """What it is for, in a word."""
        return "match" if self.raised is None else str(self.raised)


def calls(rules: Rules, score: Score) -> Iterator[Call]:
    """What can be called in the hand at a score, by stakes."""
    game = whole_rules(rules, score)
    for level, (stake, raised) in enumerate(pairwise(game.ladder)):
        yield Call(RAISE, level, stake, raised)
        if game.remainder:
            yield Call(REMAINDER, level, stake, None)


def take_point(
    rules: Rules, score: Score, answerer: int, level: int, known: Mapping[Score, Worth], word: str = RAISE
) -> float | None:
    """The chance to win the hand from which to accept a raise from ladder[level] to the next, if nobody raises after.

    (V(refuse) - V(lose)) / (V(win) - V(lose)), the answerer's winning probabilities of the match: refusing gives the
    raiser ladder[level], the rest is at ladder[level + 1].  0 where refusing is as bad as losing, None where nothing
    depends on the hand, or where there is no such raise.  Spoiled hands are left out.

    word: or the remainder; then the rest is the match, and refusing gives what the rules say.
    """
    game = whole_rules(rules, score)
    if level + 1 >= len(game.ladder):
        return None
    to, left = after_raise(game, level, word)
    pay = payoffs(rules, game.ladder, score, lambda after: 1.0 - known[after].value)
    mine, others = (pay.win0, pay.win1) if answerer == 0 else (pay.win1, pay.win0)
    values = others[left], others[to], mine[to]
    refuse, lose, win = values if answerer == 0 else [1.0 - value for value in values]
    return None if abs(win - lose) <= SAME else (refuse - lose) / (win - lose)


def play_point(rules: Rules, score: Score, known: Mapping[Score, Worth]) -> float | None:
    """The chance to win the hand from which to play it, for the side that may decline it at a score: as `take_point`.

    Declining gives the other side a point, playing is for the only stake.  None where nobody decides.
    """
    side = decider(rules, score)
    if side is None:
        return None
    pay = payoffs(rules, whole_rules(rules, score).ladder, score, lambda after: 1.0 - known[after].value)
    values = pay.win0[-1], pay.win0[0], pay.win1[0]
    decline, first, second = values if side == 0 else [1.0 - value for value in values]
    win, lose = (first, second) if side == 0 else (second, first)
    return None if abs(win - lose) <= SAME else (decline - lose) / (win - lose)


def deal_worth(known: Mapping[Score, Worth], points: int, others: int, rounding: float = 0.0) -> Interval:
    """What it is worth to deal the next hand instead of leading it, with `points` against the other's.

    (1 - V(others, points)) - V(points, others): a winning probability, and the same for both.
    """
    dealing, leading = known[others, points], known[points, others]
    return Interval(
        1.0 - dealing.value - leading.value,
        1.0 - dealing.upper - leading.upper - 2 * rounding,
        1.0 - dealing.lower - leading.lower + 2 * rounding,
    )


def best_of(matches: int, dealing: float, leading: float) -> float:
    """The chance to win most of an odd number of matches for him who deals first in the first, third, ... of them.

    dealing, leading: the chance to win a match in which one deals first, in which the other does.
    """
    needed = matches // 2 + 1
    chances = np.zeros(matches + 1)  # by matches won; all of them are played, which changes nothing
    chances[0] = 1.0
    for match in range(matches):
        chance = leading if match % 2 else dealing
        chances[1:] = chances[1:] * (1 - chance) + chances[:-1] * chance
        chances[0] *= 1 - chance
    return float(chances[needed:].sum())


def best_of_matches(matches: int, start: Worth, rounding: float = 0.0) -> Interval:
    """`best_of` from a match at 0-0; the bounds are what the strategies guarantee."""
    return Interval(
        best_of(matches, 1 - start.value, start.value),
        best_of(matches, 1 - start.upper - rounding, start.lower - rounding),
        best_of(matches, 1 - start.lower + rounding, start.upper + rounding),
    )


def threshold(win: Array, accept: Array, share: Array) -> Threshold:
    """Where a range begins to take a raise.

    win, accept, share: shape (H,), each holding's chance to win if nobody refuses any more, how often it accepts, and
    how much of the range it is.  Of all cuts between two neighbouring chances to win the one is chosen with which
    "accept from there on, else refuse" puts least of the range on the wrong side: below the cut what accepts, above it
    what refuses.  So above it most of the range accepts, below it most refuses.  The threshold is halfway between the
    two neighbours; there is none if less than ALL of the range is on one side.
    """
    there = np.flatnonzero(share > RARE * share.sum())
    order = there[np.argsort(win[there], kind="stable")]
    chances, weight = win[order], share[order] / share[order].sum()
    accepts = weight * accept[order]
    below = np.concatenate([[0.0], np.cumsum(accepts)])
    above = np.concatenate([np.cumsum((weight - accepts)[::-1])[::-1], [0.0]])
    allowed = np.concatenate([[True], np.diff(chances) > SAME, [True]])
    wrong = np.where(allowed, below + above, np.inf)
    cut = int(np.flatnonzero(wrong <= wrong.min() + SAME)[0])
    inside = bool(ALL < weight[:cut].sum() < 1 - ALL)
    return Threshold(
        float(chances[cut - 1] + chances[cut]) / 2 if inside else None, float(accepts.sum()), float(wrong[cut])
    )
