"""A match of a person against a bot, without any input and output: what `truc play` and the explorer's table stand on.

Player 0 is the person, player 1 the bot.  The deals and the bot's choices come from the seed, the number of the hand
and the line alone, so a seed and the person's actions give the whole match again, and taking an action back does not
change what the bot does after it.  Nothing that the person is shown before a hand ends depends on the bot's unplayed
cards.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from games.history import Deal, HandRecord, History, record
from games.match import Match
from games.notation import parse_line
from games.rules import LEADER, NOBODY
from games.state import Hand, State
from solver.advise import Advice
from solver.bot import Advisers, Bot, Level, Move, opinion
from solver.equity import Score
from solver.grading import Decision, graded

PERSON, BOT = 0, 1


class GameError(ValueError):
    """Something that cannot be done now; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Event:
    """One public action of a hand, as it is told.

    player: who did it; action: the word, or the rank's label; stake: of the hand if a raise or remainder is accepted,
    after it otherwise; trick: who took the trick that this card completed, `NOBODY` for a spoiled one, None if it did
    not complete any.
    """

    player: int
    action: str
    stake: int
    trick: int | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a hand ended.

    winner: a player, or NOBODY; points: what he scored; hands: both players' cards as dealt, of each deal;
    match_winner: who has won the match by it, None if it goes on or there is none.
    """

    winner: int
    points: int
    hands: tuple[tuple[Hand, ...], tuple[Hand, ...]]
    match_winner: int | None


@dataclass(frozen=True, slots=True)
class View:
    """What the person may know.

    number: of the hand, from 1; points: both players' before the hand, None outside a match; score: the same as
    (leader's, dealer's); leader: the player who leads trick 1; hand: the own cards as dealt, None before the deal;
    held: what is left of them; table: (player, rank) of every card played; legal: what the person may do, empty if it
    is not his turn; to_play: a player, or NOBODY; stake; offer: the stake that a raise waiting for an answer would make
    it; events: of the hand so far; outcome: once it is over; quick, exploitability: of what the bot played by last.
    """

    number: int
    points: tuple[int, int] | None
    score: Score | None
    leader: int
    hand: Hand | None
    held: Hand | None
    table: tuple[tuple[int, int], ...]
    line: tuple[str, ...]
    legal: tuple[str, ...]
    to_play: int
    stake: int
    offer: int | None
    events: tuple[Event, ...]
    outcome: Outcome | None
    quick: bool
    exploitability: float | None


class Game:
    """A match, or hands in points one after the other (score None).

    score: (leader's, dealer's) points at the beginning; person_leads: the first hand, by default by lot; practice:
    whether actions may be taken back.  Raises LevelError, DealError for a score that there is not.
    """

    def __init__(
        self, advisers: Advisers, level: str | Level = "perfect", seed: int | None = None, score: Score | None = (0, 0),
        person_leads: bool | None = None, practice: bool = True, names: tuple[str, str] = ("you", "bot"),
    ) -> None:  # fmt: skip
        self.advisers, self.rules, self.practice, self.names = advisers, advisers.rules, practice, names
        self.seed = secrets.randbelow(2**32) if seed is None else seed
        self.bot = Bot(advisers, level)
        lot = random.Random(f"{self.seed} lot").random() < 0.5 if person_leads is None else person_leads
        leader = PERSON if lot else BOT
        self.match: Match | None = None
        if score is not None:
            points = score if leader == PERSON else (score[1], score[0])
            self.match = Match(self.rules, 1 - leader, points)
        self.number, self._state = 0, State.begin(self.rules, score)
        self._leader = 1 - leader
        self._done: list[HandRecord] = []
        self._move: Move | None = None
        self._begin()

    # -- the hand -----------------------------------------------------------------------------------------------------

    @property
    def score(self) -> Score | None:
        """(leader's, dealer's) points before the hand, None outside a match."""
        return None if self.match is None else self.match.score

    @property
    def is_over(self) -> bool:
        """Whether the hand is."""
        return self._state.is_over

    @property
    def match_is_over(self) -> bool:
        """Whether the match is, by the hand that has ended."""
        return self.match is not None and self._state.is_over and self.match.after_hand(self._state).is_over

    @property
    def to_play(self) -> int:
        """The player to act, NOBODY when the hand is over."""
        seat = self._state.to_play
        return seat if seat == NOBODY else self._player(seat)

    def read(self, word: str) -> str | None:
        """The legal action that a word means in the notation of lines, None if it means none."""
        try:
            (action,) = parse_line(self.rules, word, self._state)
        except ValueError:  # no legal word, or not one
            return None
        return action

    def act(self, action: str) -> None:
        """The person does something.  Raises GameError when it is not his turn, IllegalActionError."""
        if self.to_play != PERSON:
            raise GameError("it is not your turn.")
        self._apply(action)

    def reply(self) -> Move | None:
        """The bot acts once, if it is its turn; None if not.  Raises NoTableError, StorageError."""
        if self.to_play != BOT:
            return None
        roll = random.Random(f"{self.seed} bot {self.number} {' '.join(self._state.line)}").random()
        hand, discards = self._own(BOT)
        self._move = self.bot.choose(hand, self._state.line, self.score, roll, discards)
        self._apply(self._move.action)
        return self._move

    def hint(self) -> Advice:
        """What the person should do.  Raises GameError when it is not his turn, NoTableError, StorageError."""
        if self.to_play != PERSON:
            raise GameError("it is not your turn.")
        hand, discards = self._own(PERSON)
        return opinion(self.advisers.get(self.score).adviser, hand, self._state.line, discards)

    def grade(self, action: str) -> Decision | None:
        """What an action would cost the person, see `solver.grading.grade`.  Raises as `hint`, ValueError."""
        advice = self.hint()
        return graded(self.advisers.get(self.score).adviser, advice, action)

    def warn(self, action: str, threshold: float) -> Decision | None:
        """The grade of an action that costs the person more than the threshold (in the unit), None for others."""
        decision = self.grade(action)
        return decision if decision is not None and decision.cost > threshold else None

    def undo(self) -> bool:
        """Take back the person's latest action of this hand and what followed; False if there is none.

        Raises GameError outside practice.
        """
        if not self.practice:
            raise GameError("nothing is taken back but in practice.")
        state, last = self._start(), None
        for n, action in enumerate(self._state.line):
            if self._player(state.to_play) == PERSON:
                last = n
            state = self._dealt(state.apply(action))
        if last is None:
            return False
        line, self._state = self._state.line[:last], self._start()
        for action in line:
            self._apply(action)
        return True

    def next_hand(self) -> None:
        """Go on when the hand is over.  Raises GameError if it is not, or if the match is."""
        if not self._state.is_over:
            raise GameError("the hand is not over.")
        if self.match_is_over:
            raise GameError("the match is over.")
        self._done.append(self._record())
        if self.match is not None:
            self.match = self.match.after_hand(self._state)
        self._begin()

    # -- what it looks like -------------------------------------------------------------------------------------------

    def view(self) -> View:
        """What the person may know now."""
        state, seat = self._state, self._seat(PERSON)
        return View(
            number=self.number,
            points=None if self.match is None else self.match.points,
            score=self.score,
            leader=self._leader,
            hand=state.dealt[seat],
            held=state.held[seat],
            table=tuple((self._player(who), rank) for who, rank in state.played),
            line=state.line,
            legal=state.legal_actions() if self.to_play == PERSON else (),
            to_play=self.to_play,
            stake=state.stake,
            offer=state.offer,
            events=events(self._record(), History(self.rules, self.names)),
            outcome=self._outcome(),
            quick=self._move is not None and self._move.quick,
            exploitability=None if self._move is None else self._move.exploitability,
        )

    def history(self) -> History:
        """Everything that the person has seen: the bot's unplayed cards only of hands that are over."""
        return History(self.rules, self.names, (*self._done, self._record()))

    def _outcome(self) -> Outcome | None:
        state = self._state
        if state.winner is None:
            return None
        after = None if self.match is None else self.match.after_hand(state)
        hands = [tuple(deal[self._seat(player)] for deal in self._deals) for player in (PERSON, BOT)]
        winner = NOBODY if state.winner == NOBODY else self._player(state.winner)
        points = 0 if winner == NOBODY else state.stake
        return Outcome(winner, points, (hands[0], hands[1]), None if after is None else after.winner)

    def _record(self) -> HandRecord:
        own, other = ([deal[self._seat(player)] for deal in self._deals] for player in (PERSON, BOT))
        shown: Sequence[Deal] = other if self._state.is_over else [(None,) * len(hand) for hand in other]
        return record(self.rules, self.score, self._leader, self._state.line, (own, shown))

    # -- dealing ------------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self.number += 1
        self._leader = 1 - self._leader
        self._deals: list[tuple[Hand, Hand]] = []
        self._move = None
        self._state = self._start()
        self.advisers.prepare(self.score)

    def _start(self) -> State:
        return self._dealt(State.begin(self.rules, self.score))

    def _dealt(self, state: State) -> State:
        """The state with the cards that it waits for, which are always the same in a hand."""
        if state.phase != "deal":
            return state
        size, before = state.hand_size, sum(action == "agree" for action in state.line)
        deck = [rank for rank in range(self.rules.n_ranks) for _ in range(self.rules.copies)]
        random.Random(f"{self.seed} deal {self.number}").shuffle(deck)
        first = before * 2 * size
        hands = tuple(sorted(deck[first : first + size])), tuple(sorted(deck[first + size : first + 2 * size]))
        # By players, not by seats: who leads does not change what a seed deals.
        self._deals = [*self._deals[:before], hands if self._leader == PERSON else (hands[1], hands[0])]
        return state.give(*self._deals[before])

    def _apply(self, action: str) -> None:
        self._state = self._dealt(self._state.apply(action))

    def _own(self, player: int) -> tuple[Hand, Hand]:
        """A player's cards as dealt, and what he has set aside."""
        seat = self._seat(player)
        return self._state.dealt[seat] or (), self._state.set_aside[seat] or ()

    def _seat(self, player: int) -> int:
        return 0 if player == self._leader else 1

    def _player(self, seat: int) -> int:
        return self._leader if seat == LEADER else 1 - self._leader


def events(hand: HandRecord, history: History) -> tuple[Event, ...]:
    """What happened in a hand, in order."""
    found = []
    state = hand.start(history.rules).follow((), deals := iter(hand.deals()))
    for action in hand.line:
        player = hand.leader if state.to_play == 0 else 1 - hand.leader
        after = state.follow((action,), deals)
        trick = None
        if len(after.results) > len(state.results):
            result = after.results[-1]
            trick = NOBODY if result == 0 else hand.leader if result == 1 else 1 - hand.leader
        stake = after.offer if after.offer is not None else after.stake
        found.append(Event(player, action, stake, trick))
        state = after
    return tuple(found)
