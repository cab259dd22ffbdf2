"""The first trick of a match in one small file: what both do at the first decisions of the hand, at every score.

The lines of a score are those of `lines`: the leader's first decision, the dealer's answers to a raise or a remainder
there, the dealer's first decision after each lead, and the leader's answers to a raise or a remainder there; where a
side first decides whether the hand is played, that decision as well.  They depend on the score, for so may the hand.
The file is read like a strategy file (see `solver.storage`), and has two tensors in which the scores follow each other,
leader's points first, and in each its lines:

numbers, uint16, shape (N,): for each line, holding (in the order of `games.cards.hands`) and legal action but the
last, its probability in steps of 1/65535; the last action has what is missing to 1.  Holdings with one legal action
have none.

presence, float32, shape (L, 2): how often the leader and the dealer, with all that they could hold, play their part of
the line.  Where the opponent's is 0 the line never comes up, and what the book says there is what the strategy happened
to hold: `solver.advise` solves such decisions instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from games.cards import hands
from games.notation import format_score
from games.rules import ACCEPT, DECLINE, FOLD, PLAY, RAISE, REFUSE, REMAINDER, Rules
from solver.equity import Score, decider, whole_rules
from solver.storage import NONSENSE, VERSION, StorageError, read_tensors, real, write_tensors
from solver.strategy import Decision, LineError, Strategy
from solver.subgame import situation

BOOK = "le-truc book"
STEPS = 2**16 - 1
Line = tuple[str, ...]


class Page(NamedTuple):
    """What the book has of one score: its part of both tensors, and by how much its probabilities are rounded."""

    numbers: npt.NDArray[np.uint16]
    presence: npt.NDArray[np.float32]
    rounding: float


@dataclass(frozen=True, slots=True)
class Header:
    """What a book says of itself; lines: all that are in it at some score; accuracy: of the match that it comes from;
    rounding: the largest of all probabilities, measured; match: what identifies that match."""

    format: str
    version: str
    rules: str  # TOML
    rules_hash: str
    lines: list[str]
    accuracy: float
    rounding: float
    match: str
    checksum: str = ""


def offers(game: Rules) -> Line:
    """What may be called before the first card, by the rules of a hand."""
    if len(game.ladder) < 2:
        return ()
    return (RAISE, REMAINDER) if game.remainder else (RAISE,)


def hand_lines(game: Rules, side: int | None = None) -> list[Line]:
    """The lines whose decisions are in the book, by the rules of a hand; side: who decides whether it is played."""
    begin: Line = () if side is None else (PLAY,)
    decisions: list[Line] = [()] if side is None else [(), begin]
    leads: list[Line] = [(*begin, rank) for rank in game.ranks]
    calls = offers(game)
    return [
        *decisions, *((*begin, call) for call in calls), *leads, *((*lead, call) for lead in leads for call in calls),
    ]  # fmt: skip


def lines(rules: Rules, score: Score) -> list[Line]:
    """The lines whose decisions are in the book at a score."""
    return hand_lines(whole_rules(rules, score), decider(rules, score))


def blank(game: Rules, line: Line, side: int | None = None) -> Decision:
    """The decision after one of `hand_lines`, with 0 for all probabilities."""
    words: Line
    if side is not None and not line:
        player, fewer, words, plays = side, 0, (PLAY, DECLINE), False
    else:
        rest, calls = line[side is not None :], offers(game)
        led, answer = rest[:1] != () and rest[0] not in calls, rest[-1:] != () and rest[-1] in calls
        player, fewer, plays = int(led != answer), int(led and answer), not answer
        words = (ACCEPT, REFUSE) if answer else (*calls, FOLD) if game.fold else calls
    held = hands(game.n_ranks, game.hand_size - fewer, game.copies)
    legal = np.zeros((len(held), len(words) + (game.n_ranks if plays else 0)), bool)
    legal[:, : len(words)] = True
    if plays:
        np.put_along_axis(legal, len(words) + held.astype(np.int64), True, axis=1)
    names = (*words, *game.ranks) if plays else words
    return Decision(player, names, held, legal, np.zeros(legal.shape))


def _stored(legal: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Shape (H, A): which probabilities are in the file."""
    last = legal.shape[1] - 1 - np.argmax(legal[:, ::-1], axis=1)
    kept = legal.copy()
    kept[np.arange(len(legal)), last] = False
    return kept


def page(strategy: Strategy) -> Page:
    """One score's, from its strategy in the tree of `whole_rules`."""
    numbers, presence, rounding = [], [], 0.0
    for line in hand_lines(strategy.tree.rules, strategy.tree.decider):
        decision = strategy.at(line)
        exact = decision.probabilities / decision.probabilities.sum(axis=1, keepdims=True)
        whole = np.floor(exact * STEPS)
        missing = STEPS - whole.sum(axis=1, keepdims=True)  # largest remainders: they add up exactly
        rest = np.where(decision.legal, exact * STEPS - whole, -1.0)
        rank = np.argsort(np.argsort(-rest, axis=1, kind="stable"), axis=1, kind="stable")
        whole += rank < missing
        rounding = max(rounding, float(np.abs(whole / STEPS - decision.probabilities).max()))
        numbers.append(whole[_stored(decision.legal)])
        presence.append(situation(strategy.tree, strategy.probabilities, line).presence)
    return Page(np.concatenate(numbers).astype(np.uint16), np.array(presence, np.float32), rounding)


class _Place(NamedTuple):
    """Where a score has a line: its decision without probabilities, its first number, and its row of presence."""

    empty: Decision
    first: int
    row: int


class Book:
    """The first decisions of the hand at every score, as `Book.load` reads them."""

    def __init__(
        self, rules: Rules, numbers: npt.NDArray[np.uint16], presence: npt.NDArray[np.float32], header: Header
    ) -> None:
        self.rules, self.header = rules, header
        self._numbers, self._presence = numbers, presence
        self._places: dict[Score, dict[Line, _Place]] = {}
        known: dict[tuple[Rules, int | None], dict[Line, Decision]] = {}
        at = row = 0
        for score in _scores(rules):
            game, side = whole_rules(rules, score), decider(rules, score)
            if (game, side) not in known:
                known[game, side] = {line: blank(game, line, side) for line in hand_lines(game, side)}
            self._places[score] = {}
            for line, empty in known[game, side].items():
                self._places[score][line] = _Place(empty, at, row)
                at += int(_stored(empty.legal).sum())
                row += 1
        if numbers.dtype != np.uint16 or numbers.shape != (at,):
            raise StorageError(f"its numbers are {numbers.dtype} {numbers.shape}, not uint16 {(at,)}")
        if presence.dtype != np.float32 or presence.shape != (row, 2):
            raise StorageError(f"its presence is {presence.dtype} {presence.shape}, not float32 {(row, 2)}")
        if not ((presence >= 0) & (presence <= 1 + 1e-6)).all():
            raise StorageError("its presence has numbers that are no probabilities")

    @property
    def rounding(self) -> float:
        """By how much a probability is off at most, as measured when the book was made."""
        return self.header.rounding

    def lines(self, score: Score) -> tuple[Line, ...]:
        """The lines whose decisions are in the book at a score."""
        return tuple(self._places[score])

    def decision(self, score: Score, line: Line) -> Decision:
        """What `Strategy.at` says at a score, but for the rounding.  Raises `LineError` for any other line."""
        empty, first, _ = self._at(score, line)
        kept = _stored(empty.legal)
        table = np.zeros(kept.shape, np.int64)
        table[kept] = self._numbers[first : first + int(kept.sum())]
        table[empty.legal & ~kept] = STEPS - table.sum(axis=1)
        if table.min() < 0:
            raise StorageError(f"the book has probabilities at {format_score(score)} that add up to more than 1")
        return Decision(empty.player, empty.actions, empty.holdings, empty.legal, table / STEPS)

    def presence(self, score: Score, line: Line) -> tuple[float, float]:
        """How often the leader and the dealer play their part of a line.  Raises `LineError` likewise."""
        leader, dealer = self._presence[self._at(score, line).row].tolist()
        return leader, dealer

    def _at(self, score: Score, line: Line) -> _Place:
        if score not in self._places:
            raise LineError(f"no hand is played at {score[0]}-{score[1]}")
        if line not in self._places[score]:
            raise LineError(
                f"the book has the first decisions and answers of a hand: {' '.join(line)!r} is not in it at "
                f"{format_score(score)}"
            )
        return self._places[score][line]

    @staticmethod
    def load(path: Path) -> Book:
        """Read a book.  Raises StorageError."""
        tensors, stated = read_tensors(path, BOOK)
        try:
            header = Header(**stated)
            rules = Rules.from_toml(header.rules, "its rules")
            if rules.hash != header.rules_hash or header.lines != _every_line(rules):
                raise StorageError("its rules or its lines are not what it states")
            real(header.rounding, 0.0, 1.0)
            real(header.accuracy, 0.0, 1.0)
            return Book(rules, tensors["numbers"], tensors["presence"], header)
        except StorageError as error:
            raise StorageError(f"{path}: {error}") from error
        except NONSENSE as error:
            raise StorageError(f"{path}: not a {BOOK}, or damaged ({error})") from error


def _scores(rules: Rules) -> list[Score]:
    """All scores, in the order of the file."""
    return [(a, b) for a in range(rules.target) for b in range(rules.target)]


def _every_line(rules: Rules) -> list[str]:
    """The lines that some score has, as text."""
    return list(dict.fromkeys(" ".join(line) for score in _scores(rules) for line in lines(rules, score)))


def write_book(path: Path, rules: Rules, pages: Callable[[Score], Page], accuracy: float, match: str) -> str:
    """Write the pages of all scores as a book; returns its checksum.  Raises OSError."""
    every = [pages(score) for score in _scores(rules)]
    header = Header(
        format=BOOK,
        version=VERSION,
        rules=rules.to_toml(),
        rules_hash=rules.hash,
        lines=_every_line(rules),
        accuracy=accuracy,
        rounding=max(each.rounding for each in every),
        match=match,
    )
    tensors: dict[str, npt.NDArray[Any]] = {
        "numbers": np.concatenate([each.numbers for each in every]),
        "presence": np.concatenate([each.presence for each in every]),
    }
    return write_tensors(path, tensors, asdict(header))
