"""The first trick of a match in one small file: what both do at the first decisions of the hand, at every score.

The lines are those of `lines`: the leader's first decision, the dealer's answer to a raise there, the dealer's first
decision after each lead, and the leader's answer to a raise there.  The file is read like a strategy file (see
`solver.storage`), and has two tensors whose first axis are the scores, leader's points * target + dealer's points:

numbers, uint16: for each line, holding (in the order of `games.cards.hands`) and legal action but the last, its
probability in steps of 1/65535; the last action has what is missing to 1.  Holdings with one legal action have none.

presence, float32, shape (scores, lines, 2): how often the leader and the dealer, with all that they could hold, play
their part of the line.  Where the opponent's is 0 the line never comes up, and what the book says there is what the
strategy happened to hold: `solver.advise` solves such decisions instead.
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
from games.rules import ACCEPT, RAISE, REFUSE, Rules
from solver.equity import Score
from solver.storage import NONSENSE, VERSION, StorageError, read_tensors, real, write_tensors
from solver.strategy import Decision, LineError, Strategy
from solver.subgame import situation

BOOK = "le-truc book"
STEPS = 2**16 - 1
Line = tuple[str, ...]


class Page(NamedTuple):
    """What the book has of one score: its rows of both tensors, and by how much its probabilities are rounded."""

    numbers: npt.NDArray[np.uint16]
    presence: npt.NDArray[np.float32]
    rounding: float


@dataclass(frozen=True, slots=True)
class Header:
    """What a book says of itself; accuracy: of the match that it comes from; rounding: the largest of all
    probabilities, measured; match: what identifies that match."""

    format: str
    version: str
    rules: str  # TOML
    rules_hash: str
    lines: list[str]
    accuracy: float
    rounding: float
    match: str
    checksum: str = ""


def plain(rules: Rules) -> bool:
    """Whether the first turns are a raise or a card, and the answer to a raise."""
    return rules.raise_when == ("before",) and not (rules.fold or rules.remainder or rules.one_card or rules.redeal)


def lines(rules: Rules) -> list[Line]:
    """The lines whose decisions are in the book of a rule set.  Raises ValueError if it has none."""
    if not plain(rules):
        raise ValueError(f"there are books only of hands with raises before a card, not of {rules.name!r}")
    leads: list[Line] = [(rank,) for rank in rules.ranks]
    if len(rules.ladder) < 2:
        return [(), *leads]
    return [(), (RAISE,), *leads, *((*lead, RAISE) for lead in leads)]


def blank(rules: Rules, line: Line) -> Decision:
    """The decision after one of the lines, with 0 for all probabilities."""
    led = bool(line) and line[0] != RAISE
    answer = line[-1:] == (RAISE,)
    player = int(led != answer)
    held = hands(rules.n_ranks, rules.hand_size - (led and answer), rules.copies)
    words: tuple[str, ...] = (ACCEPT, REFUSE) if answer else (RAISE,) if len(rules.ladder) > 1 else ()
    legal = np.zeros((len(held), len(words) + (0 if answer else rules.n_ranks)), bool)
    legal[:, : len(words)] = True
    if not answer:
        np.put_along_axis(legal, len(words) + held.astype(np.int64), True, axis=1)
    names = words if answer else (*words, *rules.ranks)
    return Decision(player, names, held, legal, np.zeros(legal.shape))


def _stored(legal: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Shape (H, A): which probabilities are in the file."""
    last = legal.shape[1] - 1 - np.argmax(legal[:, ::-1], axis=1)
    kept = legal.copy()
    kept[np.arange(len(legal)), last] = False
    return kept


def page(strategy: Strategy) -> Page:
    """One score's, from its strategy in the whole hand's tree."""
    rules, numbers, presence, rounding = strategy.tree.rules, [], [], 0.0
    for line in lines(rules):
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


class Book:
    """The first decisions of the hand at every score, as `Book.load` reads them."""

    def __init__(
        self, rules: Rules, numbers: npt.NDArray[np.uint16], presence: npt.NDArray[np.float32], header: Header
    ) -> None:
        self.rules, self.header = rules, header
        self._numbers, self._presence = numbers, presence
        self._blank = {line: blank(rules, line) for line in lines(rules)}
        self._first, at = {}, 0
        for line, decision in self._blank.items():
            self._first[line] = at
            at += int(_stored(decision.legal).sum())
        scores = rules.target**2
        if numbers.dtype != np.uint16 or numbers.shape != (scores, at):
            raise StorageError(f"its numbers are {numbers.dtype} {numbers.shape}, not uint16 {(scores, at)}")
        if presence.dtype != np.float32 or presence.shape != (scores, len(self._first), 2):
            raise StorageError(f"its presence is {presence.dtype} {presence.shape}, not one for each score and line")
        if not ((presence >= 0) & (presence <= 1 + 1e-6)).all():
            raise StorageError("its presence has numbers that are no probabilities")

    @property
    def rounding(self) -> float:
        """By how much a probability is off at most, as measured when the book was made."""
        return self.header.rounding

    @property
    def lines(self) -> tuple[Line, ...]:
        """The lines whose decisions are in the book."""
        return tuple(self._blank)

    def decision(self, score: Score, line: Line) -> Decision:
        """What `Strategy.at` says at a score, but for the rounding.  Raises `LineError` for any other line."""
        empty = self._at(score, line)
        kept = _stored(empty.legal)
        first = self._first[line]
        table = np.zeros(kept.shape, np.int64)
        table[kept] = self._numbers[self._row(score), first : first + int(kept.sum())]
        table[empty.legal & ~kept] = STEPS - table.sum(axis=1)
        if table.min() < 0:
            raise StorageError(f"the book has probabilities at {format_score(score)} that add up to more than 1")
        return Decision(empty.player, empty.actions, empty.holdings, empty.legal, table / STEPS)

    def presence(self, score: Score, line: Line) -> tuple[float, float]:
        """How often the leader and the dealer play their part of a line.  Raises `LineError` likewise."""
        self._at(score, line)
        leader, dealer = self._presence[self._row(score), self.lines.index(line)].tolist()
        return leader, dealer

    def _at(self, score: Score, line: Line) -> Decision:
        if line not in self._blank:
            raise LineError(f"the book ends with the first answers: {' '.join(line)!r} is not in it")
        if not all(0 <= points < self.rules.target for points in score):
            raise LineError(f"no hand is played at {score[0]}-{score[1]}")
        return self._blank[line]

    def _row(self, score: Score) -> int:
        return score[0] * self.rules.target + score[1]

    @staticmethod
    def load(path: Path) -> Book:
        """Read a book.  Raises StorageError."""
        tensors, stated = read_tensors(path, BOOK)
        try:
            header = Header(**stated)
            rules = Rules.from_toml(header.rules, "its rules")
            if rules.hash != header.rules_hash or header.lines != [" ".join(line) for line in lines(rules)]:
                raise StorageError("its rules or its lines are not what it states")
            real(header.rounding, 0.0, 1.0)
            real(header.accuracy, 0.0, 1.0)
            return Book(rules, tensors["numbers"], tensors["presence"], header)
        except StorageError as error:
            raise StorageError(f"{path}: {error}") from error
        except NONSENSE as error:
            raise StorageError(f"{path}: not a {BOOK}, or damaged ({error})") from error


def write_book(path: Path, rules: Rules, pages: Callable[[Score], Page], accuracy: float, match: str) -> str:
    """Write the pages of all scores as a book; returns its checksum.  Raises OSError."""
    every = [pages((a, b)) for a in range(rules.target) for b in range(rules.target)]
    header = Header(
        format=BOOK,
        version=VERSION,
        rules=rules.to_toml(),
        rules_hash=rules.hash,
        lines=[" ".join(line) for line in lines(rules)],
        accuracy=accuracy,
        rounding=max(each.rounding for each in every),
        match=match,
    )
    tensors: dict[str, npt.NDArray[Any]] = {
        "numbers": np.stack([each.numbers for each in every]),
        "presence": np.stack([each.presence for each in every]),
    }
    return write_tensors(path, tensors, asdict(header))
