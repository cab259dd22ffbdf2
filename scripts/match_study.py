"""What the first decisions of a hand look like at one score of a solved match, for `scripts/match_results.py`.

Every score is a task of its own; what comes out depends on the store alone.
"""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from games.rules import ACCEPT, PLAY, RAISE, REFUSE, REMAINDER
from solver.advise import Adviser, Answer
from solver.book import Line, Page, page
from solver.equity import Score, decider, hand_rules, scores, whole_rules
from solver.explain import EVEN
from solver.lift import lifted
from solver.match_run import open_store
from solver.nodes import after_raise
from solver.strategy import Strategy, child, rows_at
from solver.subgame import Subgame
from solver.takepoint import threshold

Array = npt.NDArray[np.float64]
EQUAL = 1e-9  # values that differ by less are the same
RARE = 1e-3  # per hand: of raises that are made less often nothing is said
COMES = 0.01  # per hand: nor of turns that come up less often
FINE = 1e-5  # accuracy of a match whose strategies answer everywhere as advice asks for


class Taking(NamedTuple):
    """When the first raise, or remainder, is taken: see `solver.takepoint.threshold`.

    line: ends with the call; answerer: 0 the leader, 1 the dealer; made: how often the raise is made, per hand; case:
    the most frequent one of the answer (`solver.advise.CASES`).
    """

    line: Line
    answerer: int
    made: float
    accepted: float
    threshold: float | None
    misplaced: float
    case: str

    @property
    def word(self) -> str:
        """What is called."""
        return self.line[-1]


class Rates(NamedTuple):
    """Of a side's first raises, or remainders: made: when it is its turn and nobody has called anything, None if that
    is in less than COMES of hands; bluffs: of them, those that would be worth less, once accepted, than the best card
    without a call; accepted: of them.  The last two are None if calls are made in less than RARE of hands."""

    made: float | None
    bluffs: float | None
    accepted: float | None


NEVER, IMPOSSIBLE = Rates(0.0, None, None), Rates(None, None, None)


class Deciding(NamedTuple):
    """Whether a hand is played, where that is decided first: by which side, how often it is, and as in `Taking`."""

    side: int
    plays: float
    threshold: float | None
    misplaced: float


@dataclass(frozen=True, slots=True)
class Studied:
    """One score: the book's page, the takings by line, the rates of leader and dealer by what is called, how often the
    leader leads each rank first, without a call, and the decision whether to play, if there is one."""

    page: Page
    takings: tuple[Taking, ...]
    calls: Mapping[str, tuple[Rates, Rates]]
    leads: tuple[float, ...]
    decision: Deciding | None

    @property
    def rates(self) -> tuple[Rates, Rates]:
        """Of raises."""
        return self.calls[RAISE]


class Reader(Adviser):
    """Answers by the strategies of a match as they are, as long as that is as good as the match: where they are off by
    more than advice may be, in proportion to the match's accuracy, and off the path, subgames are solved."""

    def __init__(self, strategy: Strategy, accuracy: float) -> None:
        super().__init__(strategy)
        self._scale = max(1.0, accuracy / FINE)

    def tolerance(self, level: int) -> float:
        """As `Answers.tolerance`."""
        return self._scale * super().tolerance(level)


def study(folder: Path, score: Score) -> Studied:
    """Everything about a score of a complete store.  Raises StorageError."""
    store = open_store(folder)
    rules = store.rules
    adviser = Reader(lifted(store.strategy(score), whole_rules(rules, score)), store.accuracy)
    side = decider(rules, score)
    decision = None if side is None else _deciding(adviser.at(()), side)
    begin: Line = () if side is None else (PLAY,)
    matters = len(hand_rules(rules, score).ladder) > 1  # else the first raise changes nothing, and is never made
    first = adviser.at(begin)
    leads = tuple(float(first.share @ first.probabilities[:, first.actions.index(rank)]) for rank in rules.ranks)
    takings: list[Taking] = []
    none = NEVER if len(adviser.rules.ladder) > 1 else IMPOSSIBLE
    rates = {word: (none, none) for word in (RAISE, REMAINDER) if word == RAISE or rules.remainder}
    for word in rates if matters else ():
        made = _called(first, word)
        opening = _taking(adviser, (*begin, word), float(made.sum()))
        spots: list[tuple[float, Answer, Taking]] = []
        for rank, led in zip(rules.ranks, leads, strict=True):
            answer = adviser.at((*begin, rank))
            spots.append(
                (led, answer, _taking(adviser, (*begin, rank, word), led * float(_called(answer, word).sum())))
            )
        takings += [opening, *(taking for _, _, taking in spots)]
        rates[word] = _rates(adviser, word, [(1.0, first, opening)]), _rates(adviser, word, spots)
    return Studied(page(adviser.strategy), tuple(takings), rates, leads, decision)


def _called(answer: Answer, word: str) -> Array:
    """Shape (H,): how often each holding is there and calls a raise or a remainder."""
    found: Array = answer.share * answer.probabilities[:, answer.actions.index(word)]
    return found


def conceded(adviser: Adviser, answer: Answer, word: str) -> Array:
    """Shape (H,): how often a raise, or a remainder, called there would be refused."""
    if word == RAISE:
        return answer.refusal
    node = adviser.node(answer.line)
    assert isinstance(node.game, Subgame)  # the first trick
    after = child(adviser.strategy.tree, node.at.position, word)
    assert after is not None
    reply = rows_at(adviser.strategy.tree, after, node.strategy, node.game.part)
    found: Array = answer.opponent @ reply.probabilities[:, reply.actions.index(REFUSE)]
    return found


def bluffs(adviser: Adviser, answer: Answer, word: str = RAISE) -> npt.NDArray[np.bool_]:
    """Shape (H,): whether a raise, or a remainder, would be a bluff, as in `solver.explain.Facts`."""
    won = adviser.strategy.payoffs.to(
        answer.player, answer.player, after_raise(adviser.rules, answer.level, word).refused
    )
    call = answer.actions.index(word)
    cards = answer.actions.index(adviser.rules.ranks[0])  # words come first
    calling, refusal = answer.ev[:, call], conceded(adviser, answer, word)
    card = np.max(answer.ev[:, cards:], axis=1, initial=-np.inf, where=~np.isnan(answer.ev[:, cards:]))
    called = refusal <= 1 - EQUAL
    gain = np.divide(calling - refusal * won, 1 - refusal, out=np.zeros_like(calling), where=called)
    return np.where(called, gain < card - EQUAL, answer.win[:, call] < EVEN)


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


def _deciding(answer: Answer, side: int) -> Deciding:
    play = answer.actions.index(PLAY)
    found = threshold(answer.win[:, play], answer.probabilities[:, play], answer.share)
    return Deciding(side, found.accepted, found.win, found.misplaced)


def _rates(adviser: Adviser, word: str, spots: list[tuple[float, Answer, Taking]]) -> Rates:
    """Of one side; spots: where it may call first: how often it comes there, its decision, and the answer."""
    there, made = sum(often for often, _, _ in spots), sum(taking.made for _, _, taking in spots)
    share = made / there if there >= COMES else None
    if made < RARE:
        return Rates(share, None, None)
    bluffing = sum(often * float(_called(answer, word) @ bluffs(adviser, answer, word)) for often, answer, _ in spots)
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
