"""Players: one who plays a stored strategy at any score, and weaker ones who err as people do.

A `Bot` is told what a player knows, and nothing else: the own cards, the public line, the score.  Where its strategies
come from is the business of `Advisers`, which solves the scores that a hand can lead to while the hand is played.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from games.notation import format_hand
from games.rules import TAP, Rules
from games.state import State
from solver.advise import Advice, Adviser, Choice
from solver.answers import Cards
from solver.cfr import Payoffs, Solver
from solver.equity import Score, hand_tree, successors, whole_rules
from solver.essential import essential
from solver.lift import lifted
from solver.losses import tempered
from solver.paths import shipped_for
from solver.scores import NoTableError, equity, hand_payoffs, strategy_at
from solver.storage import StorageError, load_strategy
from solver.strategy import Strategy
from solver.subgame import Array
from solver.tree import public_tree

PATIENCE = 0.5  # seconds that the strategy of a score may take before a quick solution plays
MOST = 8  # strategies in memory that were only prepared, about 20 MB each; more of them wait in the cache folder
QUICK_SECONDS = 0.8  # that a quick solution may take
BEFORE = "before the deal"  # kind of an advice where there are no cards yet
QUICK_POINTS, QUICK_PROBABILITY = 1e-3, 1e-4  # exploitability at which it is as good as any


@dataclass(frozen=True, slots=True)
class Level:
    """A strength.  temperature: in points, of `solver.losses.tempered`: errors that cost as much are played 1/e times
    as often as if they cost nothing; 0: the strategy itself."""

    name: str
    temperature: float


LEVELS = {
    level.name: level
    for level in (
        Level("beginner", 2.0),
        Level("casual", 0.7),
        Level("club", 0.25),
        Level("expert", 0.08),
        Level("perfect", 0.0),
    )
}
"""From the weakest to the strongest; results/le-truc/opponents.json has what they are worth."""


class LevelError(ValueError):
    """A level that there is not; the message is one sentence."""


def level_of(name: str) -> Level:
    """A level by its name.  Raises LevelError."""
    if name not in LEVELS:
        raise LevelError(f"there is no level {name[:40]!r}, known are {', '.join(LEVELS)}.")
    return LEVELS[name]


@dataclass(frozen=True, slots=True)
class Source:
    """What answers at a score (None: a hand in points).

    quick: whether it is a quick solution that plays until the real one is ready; exploitability: of the hand, as it is
    stored or was solved, in the strategy's unit.
    """

    score: Score | None
    adviser: Adviser
    quick: bool
    exploitability: float


class Advisers:
    """The adviser of each score, made when it is asked for, or before: see `prepare`.

    known: strategies to use in place of stored ones, by score.  Solving goes on in a thread in the background, until
    `close`.  Everything may be called from any thread.
    """

    def __init__(
        self, rules: Rules, threads: int = 1, patience: float = PATIENCE,
        known: Mapping[Score | None, Strategy] | None = None,
    ) -> None:  # fmt: skip
        self.rules, self.threads, self.patience = rules, threads, patience
        self._sources: dict[Score | None, Source] = {}
        self._quick: dict[Score | None, Source] = {}
        self._failed: set[Score | None] = set()
        self._waiting: list[Score | None] = []
        self._condition = threading.Condition()
        self._quick_lock = threading.Lock()
        self._worker: threading.Thread | None = None
        self._closed = False
        self._asked: Score | None = None
        self._given = frozenset(known or {})
        for score, strategy in (known or {}).items():
            self._sources[score] = self._source(score, strategy, strategy.evaluate(threads).exploitability)

    @property
    def has_match(self) -> bool:
        """Whether what the scores of a match are worth is known; else hands can be played in points only."""
        try:
            equity(self.rules)
        except (NoTableError, StorageError):
            return any(score is not None for score in self._sources)
        return True

    def ready(self, score: Score | None) -> bool:
        """Whether `get` answers at once, and not with a quick solution."""
        with self._condition:
            return score in self._sources

    def prepare(self, score: Score | None) -> None:
        """Begin to solve a score, and then those that its hand can lead to, the smallest stakes first.

        All other scores are forgotten here; they are still in the cache folder.
        """
        wanted: list[Score | None] = [score]
        if score is not None:
            a, b = score
            following: list[Score] = sorted({(b, a), *successors(self.rules, score)}, key=sum)
            wanted += following
        with self._condition:
            for kept in (self._sources, self._quick):
                for other in [each for each in kept if each not in wanted and each not in self._given]:
                    del kept[other]
            self._waiting.clear()
        self._ask(wanted)

    def get(self, score: Score | None) -> Source:
        """The adviser of a score: the real one within `patience` seconds, or else a quick one.

        Raises NoTableError, StorageError where neither can be had.
        """
        with self._condition:
            self._asked = score
        self._ask([score], first=True)
        with self._condition:
            if score not in self._quick:
                self._condition.wait_for(lambda: score in self._sources or score in self._failed, self.patience)
            if score in self._sources:
                return self._sources[score]
        with self._quick_lock:
            quick = self._quick.get(score) or self._solved_quickly(score, QUICK_SECONDS)
        with self._condition:
            self._quick[score] = quick
            return self._sources.get(score, quick)

    def close(self) -> None:
        """Stop what is being solved."""
        with self._condition:
            self._closed = True
            self._waiting.clear()
            self._condition.notify_all()
        if self._worker is not None:
            self._worker.join(timeout=5)

    def _ask(self, scores: list[Score | None], first: bool = False) -> None:
        with self._condition:
            if self._closed:
                return
            new = [s for s in scores if s not in self._sources and s not in self._failed]
            rest = [s for s in self._waiting if s not in new] if first else self._waiting
            self._waiting = [*new, *rest] if first else [*rest, *(s for s in new if s not in rest)]
            if self._waiting and self._worker is None:
                self._worker = threading.Thread(target=self._work, name="solver", daemon=True)
                self._worker.start()
            self._condition.notify_all()

    def _work(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._waiting or self._closed)
                if self._closed:
                    return
                score = self._waiting.pop(0)
                if score in self._sources:
                    continue
            try:
                found = self._real(score)
            except (NoTableError, StorageError, OSError, MemoryError):  # the quick solution is what there is
                found = None
            with self._condition:
                if found is None:
                    self._failed.add(score)
                elif len(self._sources) < MOST or score == self._asked:
                    self._sources[score] = found
                self._condition.notify_all()

    def _real(self, score: Score | None) -> Source | None:
        if score is None:
            file = shipped_for(self.rules)
            if file is None:
                return self._solved(None, lambda _, value: self._closed or value <= QUICK_POINTS)
            strategy, header = load_strategy(file)
            return self._source(None, strategy, header.nash_conv / 2)
        found = strategy_at(self.rules, score, stop=lambda: self._closed)
        return None if found is None else self._source(score, found[0], found[1].nash_conv / 2)

    def _solved_quickly(self, score: Score | None, seconds: float) -> Source:
        end = time.monotonic() + seconds
        enough = QUICK_POINTS if score is None else QUICK_PROBABILITY
        return self._solved(score, lambda now, value: value <= enough or now >= end, quick=True)

    def _solved(self, score: Score | None, done: Callable[[float, float], bool], quick: bool = False) -> Source:
        """Solved in memory until `done(time, exploitability)`."""
        if score is None:
            solver = Solver(public_tree(essential(self.rules)), threads=self.threads)
        else:
            pay = hand_payoffs(self.rules, score, equity(self.rules))
            solver = Solver(hand_tree(self.rules, score), pay, threads=self.threads)
        while True:
            solver.step(max(25, solver.iterations // 3))
            strategy = Strategy.of(solver)
            value = strategy.evaluate(self.threads).exploitability
            if done(time.monotonic(), value):
                break
        if score is not None:
            strategy = lifted(strategy, whole_rules(self.rules, score))
        return self._source(score, strategy, value, quick)

    def _source(self, score: Score | None, strategy: Strategy, exploitability: float, quick: bool = False) -> Source:
        return Source(score, adviser_of(strategy, self.rules, score, self.threads), quick, exploitability)


def adviser_of(strategy: Strategy, rules: Rules, score: Score | None = None, threads: int = 1) -> Adviser:
    """An adviser for lines of a rule set's whole game, from a strategy of what matters of it."""
    same = strategy.tree.rules.hash == rules.hash
    return Adviser(strategy, threads) if same else Adviser(strategy, threads, rules, score)


@dataclass(frozen=True, slots=True)
class Move:
    """What a bot does, and out of what: the legal actions with the probabilities that it gave them.

    quick, exploitability: see `Source`.
    """

    action: str
    actions: tuple[str, ...]
    probabilities: tuple[float, ...]
    quick: bool
    exploitability: float


class Bot:
    """A player.  level: a name of LEVELS, or a `Level`; seed: for a game that can be repeated."""

    def __init__(self, advisers: Advisers, level: str | Level = "perfect", seed: int | str | None = None) -> None:
        self.advisers = advisers
        self.level = level_of(level) if isinstance(level, str) else level
        self._random = random.Random(seed)

    def reseed(self, seed: int | str | None) -> None:
        """Begin anew with a seed."""
        self._random = random.Random(seed)

    def choose(
        self, hand: Cards, line: tuple[str, ...], score: Score | None, roll: float | None = None, discards: Cards = ()
    ) -> Move:
        """What to do with a hand, as dealt or as held, when it is one's turn after the line.

        roll: a number from 0 to 1 that picks among the actions, by default the next one of the bot's own; discards:
        what it has set aside in a redeal.
        Raises NotationError where the hand and the line do not go together, LineError, NoTableError, StorageError.
        """
        source = self.advisers.get(score)
        advice = opinion(source.adviser, hand, line, discards)
        names = tuple(choice.action for choice in advice.choices)
        shares = played(advice, self.level, source.adviser.strategy.payoffs)
        roll = self._random.random() if roll is None else roll
        at = min(int(np.searchsorted(np.cumsum(shares), roll, side="right")), len(names) - 1)
        while shares[at] <= 0:  # rounding at the end
            at -= 1
        return Move(names[at], names, tuple(shares.tolist()), source.quick, source.exploitability)


def opinion(adviser: Adviser, hand: Cards, line: tuple[str, ...], discards: Cards = ()) -> Advice:
    """`Adviser.advise`, also where no cards are dealt yet: the hand is not looked at there.  Raises as `Bot.choose`."""
    rules = adviser.rules
    if rules.one_card and line in ((), (TAP,)) and State.begin(rules, adviser.score).phase == "cut":
        answer, table, accuracy = adviser.row(line, 0)
        ev, loss = answer.ev[0].tolist(), answer.loss[0].tolist()
        choices = tuple(map(Choice, answer.actions, table.tolist(), ev, loss, [None] * len(ev)))
        return Advice(
            hand="", held="", line=line, player=answer.player, stake=answer.stake, unit=answer.unit, choices=choices,
            win=None, refusal=None, kind=BEFORE, facts=None, case=answer.cases[0], accuracy=accuracy,
        )  # fmt: skip
    return adviser.advise(format_hand(rules, hand), line, format_hand(rules, discards))


def played(advice: Advice, level: Level, payoffs: Payoffs) -> Array:
    """Shape (actions,): how often a level does each of an advice's actions; never what nobody knows the worth of."""
    probabilities = np.array([choice.probability for choice in advice.choices])
    loss = np.array([np.inf if choice.loss is None else choice.loss for choice in advice.choices])
    shares = tempered(probabilities, loss, level.temperature * payoffs.half(), len(loss))
    return np.asarray(shares / shares.sum(), np.float64)
