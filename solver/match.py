"""The match to the target solved: for every score a hand whose payoffs are match-winning probabilities.

A pair of scores (see `solver.equity`) is solved when all that can follow it is.  Its payoffs are what the stored
strategies that follow are worth; when to stop is decided by exact best responses to the whole match from there on, a
responder's continuation being his own best response too, so errors are not added up but measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from games.rules import Rules
from solver.best_response import Evaluation, Evaluator
from solver.cfr import DEFAULT_ALGORITHM, Pair, Payoffs, Solver
from solver.equity import Score, Views, Worth, fixed_point, hand_tree, pair_of, scores
from solver.kernels import BEST, EXPECT
from solver.storage import BITS, as_stored
from solver.strategy import Strategy
from solver.tree import Tree

FIRST = 40  # iterations before the first evaluation
MOST = 1_000_000  # iterations after which an accuracy is out of reach: rounding, not the algorithm, keeps it away
DRAFT = 0.01  # of the accuracy: how exact a spoiled hand's value is while a pair is being solved
NEAR = 0.9  # of the limit: a hand that is so good waits for the other one of its pair


class AccuracyError(ValueError):
    """An accuracy that cannot be reached."""


@dataclass(frozen=True, slots=True)
class Solution:
    """One score's strategy as it is stored, its tensors, what the match is worth from there on, and the hand's payoffs
    and evaluation by itself."""

    strategy: Strategy
    tensors: dict[str, npt.NDArray[Any]]
    iterations: int
    worth: Worth
    payoffs: Payoffs
    evaluation: Evaluation


class Hand:
    """One score's hand, evaluated exactly with the payoffs of `equity.Views`."""

    def __init__(self, tree: Tree, threads: int = 1) -> None:
        self.tree = tree
        self.ladder = tree.rules.ladder
        self.blank = Payoffs((0.0,) * tree.levels, (0.0,) * tree.levels)  # until there are views
        self._evaluator = Evaluator(tree, self.blank, threads)

    def worth(self, play: Pair, views: Views) -> Worth:
        """What strategies (float64, shape (tree.rows[p], LANES)) are worth."""
        found = (
            self._evaluator.value(0, EXPECT, play, views.value),
            self._evaluator.value(0, BEST, play, views.leader),
            self._evaluator.value(1, BEST, play, views.dealer),
        )
        return Worth(*(min(max(x, 0.0), 1.0) for x in found))  # rounding may exceed what is certain


def limit(rules: Rules, score: Score) -> float:
    """The share of a match's exploitability that a score may have (of the match from there on), 1 at 0-0.

    In proportion to the points still missing: then every hand of a match may lose about as much.  The formula decides
    about nothing but where the effort goes.
    """
    return (2 * rules.target - sum(score)) / (2 * rules.target)


def solve_pair(
    rules: Rules,
    score: Score,
    known: Mapping[Score, Worth],
    accuracy: float,
    threads: int = 1,
    algorithm: str = DEFAULT_ALGORITHM,
) -> dict[Score, Solution]:
    """Solve a score and the other one of its pair, given all scores that can follow.

    Until the exploitability of each, as stored and of the match from there on, is within its limit.
    Raises AccuracyError.
    """
    pair = pair_of(score)
    hands = {each: Hand(hand_tree(rules, each), threads) for each in pair}
    solvers = {each: Solver(hand.tree, hand.blank, algorithm, threads) for each, hand in hands.items()}
    ladders = {each: hand.ladder for each, hand in hands.items()}
    s = rules.ladder[0]  # so the guess is of a score that can follow: it is known, whatever else is solved by now
    found = {each: known.get((each[0] + s, each[1] + s), Worth(0.5, 0.5, 0.5)) for each in pair}

    def evaluated(play: Mapping[Score, Pair], precision: float) -> dict[Score, Worth]:
        return fixed_point(
            rules, pair, known, lambda each, views: hands[each].worth(play[each], views), ladders, found, precision
        )

    def excess() -> dict[Score, float]:
        return {each: found[each].exploitability / (accuracy * limit(rules, each)) for each in pair}

    averages: dict[Score, Pair] = {}
    ratios, factor = dict.fromkeys(pair, np.inf), 2.0
    while True:
        for each, solver in solvers.items():
            if ratios[each] < NEAR:
                continue
            views = Views.of(rules, ladders[each], each, {**known, **found})
            solver.payoffs = views.value
            solver.sweeper.pay[:] = [views.value.table(p, np.float32) for p in range(2)]
            solver.step(max(10, round(solver.iterations * (factor - 1))) if solver.iterations else FIRST)
            if solver.iterations > MOST:
                raise AccuracyError(f"{accuracy!r} was not reached at {each[0]}-{each[1]} in {MOST:,} iterations")
            averages[each] = solver.average[0].astype(np.float64), solver.average[1].astype(np.float64)
        found = evaluated(averages, DRAFT * accuracy)
        ratios = excess()
        if max(ratios.values()) <= 1:
            for bits in BITS:
                stored = {each: as_stored(Strategy.of(solver), bits) for each, solver in solvers.items()}
                plays = {each: strategy.probabilities for each, (strategy, _) in stored.items()}
                found = evaluated(plays, 1e-15)
                ratios = excess()
                if max(ratios.values()) <= 1:
                    return {
                        each: Solution(
                            *stored[each],
                            solvers[each].iterations,
                            found[each],
                            solvers[each].payoffs,
                            stored[each][0].evaluate(threads),
                        )
                        for each in pair
                    }
            ratios = dict.fromkeys(pair, 1.0)
        factor = min(max(max(ratios.values()) ** 0.6, 1.08), 2.0)


def evaluate_match(
    rules: Rules, strategy: Callable[[Score], Strategy], threads: int = 1, done: Callable[[int], None] = lambda _: None
) -> dict[Score, Worth]:
    """Exact values and best responses of the whole match for strategies of all scores, in any of its hands' trees.

    done: is told how many scores are evaluated.
    """
    known: dict[Score, Worth] = {}
    for score in scores(rules):
        if score in known:
            continue
        pair = pair_of(score)
        strategies = {each: strategy(each) for each in pair}
        hands = {each: Hand(strategies[each].tree, threads) for each in pair}
        known |= fixed_point(
            rules,
            pair,
            known,
            lambda each, views, hands=hands, strategies=strategies: hands[each].worth(  # type: ignore[misc]
                strategies[each].probabilities, views
            ),
            {each: hand.ladder for each, hand in hands.items()},
        )
        done(len(known))
    return known
