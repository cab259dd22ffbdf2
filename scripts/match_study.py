"""What the first decisions of a hand look like at one score of a solved match, for `scripts/match_results.py`.

Every score is a task of its own; what comes out depends on the store alone.
"""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from games.rules import ACCEPT, RAISE
from solver.advise import Adviser, Answer
from solver.book import Line, Page, page
from solver.equity import Score, hand_rules, scores
from solver.explain import EVEN
from solver.lift import lifted
from solver.match_run import open_store
from solver.takepoint import threshold

Array = npt.NDArray[np.float64]
EQUAL = 1e-9  # values that differ by less are the same
RARE = 1e-3  # per hand: of raises that are made less often nothing is said
COMES = 0.01  # per hand: nor of turns that come up less often


class Taking(NamedTuple):
    """When the first raise is taken: see `solver.takepoint.threshold`.

    line: ends with the raise; answerer: 0 the leader, 1 the dealer; made: how often the raise is made, per hand; case:
    the most frequent one of the answer (`solver.advise.CASES`).
    """

    line: Line
    answerer: int
    made: float
    accepted: float
    threshold: float | None
    misplaced: float
    case: str


class Rates(NamedTuple):
    """Of a side's first raises: made: when it is its turn and nobody has raised, None if that is in less than COMES of
    hands; bluffs: of them, those that would be worth less, once accepted, than the best card without a raise; accepted:
    of them.  The last two are None if raises are made in less than RARE of hands."""

    made: float | None
    bluffs: float | None
    accepted: float | None


@dataclass(frozen=True, slots=True)
class Studied:
    """One score: the book's page, the takings by line, the rates of leader and dealer, and how often the leader leads
    each rank first, without a raise."""

    page: Page
    takings: tuple[Taking, ...]
    rates: tuple[Rates, Rates]
    leads: tuple[float, ...]


def study(folder: Path, score: Score) -> Studied:
    """Everything about a score of a complete store.  Raises StorageError."""
    store = open_store(folder)
    rules = store.rules
    adviser = Adviser(lifted(store.strategy(score), rules))
    matters = len(hand_rules(rules, score).ladder) > 1  # else the first raise changes nothing, and is never made
    first = adviser.at(())
    leads = tuple(float(first.share @ first.probabilities[:, first.actions.index(rank)]) for rank in rules.ranks)
    takings: list[Taking] = []
    rates = [Rates(0.0, None, None), Rates(0.0, None, None)]
    if matters:
        made = _raised(first)
        takings.append(_taking(adviser, (RAISE,), float(made.sum())))
        rates[0] = _rates(adviser, [(1.0, first, takings[0])])
        spots: list[tuple[float, Answer, Taking]] = []
        for rank, led in zip(rules.ranks, leads, strict=True):
            answer = adviser.at((rank,))
            takings.append(_taking(adviser, (rank, RAISE), led * float(_raised(answer).sum())))
            spots.append((led, answer, takings[-1]))
        rates[1] = _rates(adviser, spots)
    return Studied(page(adviser.strategy), tuple(takings), (rates[0], rates[1]), leads)


def _raised(answer: Answer) -> Array:
    """Shape (H,): how often each holding is there and raises."""
    found: Array = answer.share * answer.probabilities[:, answer.actions.index(RAISE)]
    return found


def bluffs(adviser: Adviser, answer: Answer) -> npt.NDArray[np.bool_]:
    """Shape (H,): whether a raise would be a bluff, as in `solver.explain.Facts`."""
    payoffs, level = adviser.strategy.payoffs, adviser.rules.ladder.index(answer.stake)
    won = payoffs.win0[level] if answer.player == 0 else payoffs.total - payoffs.win1[level]
    raising, refusal = answer.ev[:, 0], answer.refusal
    card = np.max(answer.ev[:, 1:], axis=1, initial=-np.inf, where=~np.isnan(answer.ev[:, 1:]))
    called = refusal <= 1 - EQUAL
    gain = np.divide(raising - refusal * won, 1 - refusal, out=np.zeros_like(raising), where=called)
    return np.where(called, gain < card - EQUAL, answer.win[:, 0] < EVEN)


def _taking(adviser: Adviser, line: Line, made: float) -> Taking:
    answer = adviser.at(line)
    accept = answer.actions.index(ACCEPT)
    found = threshold(np.nan_to_num(answer.win[:, accept]), answer.probabilities[:, accept], answer.share)
    weights: Counter[str] = Counter()
    for case, share in zip(answer.cases, answer.share.tolist(), strict=True):
        weights[case] += share
    return Taking(
        line, answer.player, made, found.accepted, found.win, found.misplaced, max(weights, key=weights.__getitem__)
    )


def _rates(adviser: Adviser, spots: list[tuple[float, Answer, Taking]]) -> Rates:
    """Of one side; spots: where it may raise first: how often it comes there, its decision, and the answer."""
    there, made = sum(often for often, _, _ in spots), sum(taking.made for _, _, taking in spots)
    share = made / there if there >= COMES else None
    if made < RARE:
        return Rates(share, None, None)
    bluffing = sum(often * float(_raised(answer) @ bluffs(adviser, answer)) for often, answer, _ in spots)
    accepted = sum(taking.made * taking.accepted for _, _, taking in spots)
    return Rates(share, bluffing / made, accepted / made)


def studies(folder: Path, workers: int) -> Iterator[tuple[Score, Studied]]:
    """Every score of a complete store, in the order of their points.  Raises StorageError."""
    every = sorted(scores(open_store(folder).rules))
    if workers < 2:
        yield from ((score, study(folder, score)) for score in every)
        return
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        yield from zip(every, pool.map(study, [folder] * len(every), every), strict=True)
