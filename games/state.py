"""The referee: one hand of Le Truc as an immutable `State`, from what precedes the deal to the points.

This file is the rules. It is slow and plain on purpose; whatever computes builds its own tables and is checked
against it. Each branch names the rule it is.

A *seat* plays, a *side* scores. Seat 0 is the leader, the non-dealer, who leads trick 1; seat 1 is the dealer. With
two players each seat is its own side, but the two words are kept apart.

Actions are words: those of `games.rules.ACTIONS`, or the label of the rank that is played. Whenever cards are dealt the
state waits in the phase "deal" for `give`. A hand need not be known: a state without one or both hands walks the lines
that some deal allows, which is what the public sees.

A state may have a score. Without one the hand is valued in points: then there is no remainder and no decision before
the target, whatever the rule set says, for both are about the match.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from games.rules import (
    ACCEPT,
    AGREE,
    CUT,
    DEALER,
    DECLINE,
    FOLD,
    KEEP,
    LEADER,
    NOBODY,
    ONE,
    PASS,
    PLAY,
    PROPOSE,
    RAISE,
    REFUSE,
    REMAINDER,
    TAP,
    THREE,
    Rules,
    hand_winner,
    shown,
)

Hand = tuple[int, ...]
"""Rank indices in ascending order."""

Hands = tuple[Hand | None, Hand | None]
"""Each seat's cards, None where they are unseen."""

Phase = Literal["cut", "number", "deal", "proposal", "agreement", "decision", "turn", "answer", "card", "after", "over"]
"""What the state waits for. At a *turn* the player may raise or play a card; at an *answer* the opponent accepts or
refuses a raise; following an accepted raise the raiser has only a *card* to play; *after* his card a player may raise,
if the rule set lets him; then the hand is *over*.

Before the first turn, where the rule set has it: the leader's *cut* or tap, the dealer's *number* of cards, the *deal*
itself (again after an agreed redeal), the leader's *proposal* to redeal and the dealer's *agreement*, the *decision* of
a side one point before the target."""

SEATS = (0, 1)
SIDE_OF_SEAT = (LEADER, DEALER)

CHOICES: dict[Phase, tuple[str, ...]] = {
    "cut": (CUT, TAP),
    "number": (THREE, ONE),
    "proposal": (PROPOSE, KEEP),
    "agreement": (AGREE, DECLINE),
    "decision": (PLAY, DECLINE),
    # The opponent accepts or refuses, nothing else: no counter-raise as an answer, no folding either.
    "answer": (ACCEPT, REFUSE),
    "deal": (),
    "over": (),
}
"""The legal actions of the phases in which they are always the same."""


class DealError(ValueError):
    """Hands that cannot be dealt, or a score at which none can; the message is one sentence."""


class IllegalActionError(ValueError):
    """An action that is not legal; the message is one sentence that says what is."""


@dataclass(frozen=True, slots=True)
class State:
    """One moment of a hand. Begin with `deal`, `public`, `seen_by` or `begin`, go on with `apply` and `give`."""

    rules: Rules
    dealt: Hands
    """Each seat's full hand, None where it is unseen; after a redeal the new one."""
    held: Hands
    """Each seat's cards still in hand, None where they are unseen."""
    played: tuple[tuple[int, int], ...] = ()
    """(seat, rank) of every card on the table, in order."""
    results: tuple[int, ...] = ()
    """The complete tricks: 1 won by side 0, -1 won by side 1, 0 spoiled."""
    trick_leader: int = 0
    """The seat that leads the current trick."""
    level: int = 0
    """The accepted stake's index in the ladder; the ladder's length when the hand is for the match."""
    last_raiser: int | None = None
    """The seat that made the last raise, answered or not; calling the remainder is one."""
    phase: Phase = "turn"
    winner: int | None = None
    """The side that won the hand, `NOBODY` (-1) if all tricks were tied, None until the hand is over."""
    line: tuple[str, ...] = ()
    """Every action so far: the public history."""
    score: tuple[int, int] | None = None
    """Points of side 0 and side 1 before this hand; None for a hand valued in points, outside a match."""
    set_aside: Hands = ((), ())
    """The hand that each seat has set aside in a redeal, None where it is unseen, empty without a redeal."""
    raised_after_card: bool = False
    """Whether the last raise came after the raiser's card, so that no card of his is due once it is accepted."""

    @classmethod
    def begin(cls, rules: Rules, score: tuple[int, int] | None = None) -> State:
        """The hand before anything: the phase is "deal", or with `one_card` "cut". Raises `DealError` for a bad score.

        `score`: points of the leader's and the dealer's side, or None for a hand valued in points, which has no
        remainder and no decision before the target.
        """
        if score is not None:
            if len(score) != 2 or not all(points in range(rules.target) for points in score):
                raise DealError(f"the score {shown(score)} must be two numbers of points, each under {rules.target}.")
            score = (operator.index(score[0]), operator.index(score[1]))
        start = cls(rules, dealt=(None, None), held=(None, None), phase="deal", score=score)
        if rules.one_card and not start._sides_before_target():
            # The one-card hand: never when a side is one point before the target.
            return replace(start, phase="cut")
        return start

    @classmethod
    def deal(
        cls,
        rules: Rules,
        leader_hand: Iterable[int],
        dealer_hand: Iterable[int],
        score: tuple[int, int] | None = None,
    ) -> State:
        """The hand's start with both hands known, as rank indices in any order. Raises `DealError`.

        For `score` see `begin`. Where the leader cuts or taps before the deal, use `begin`, `apply` and `give`.
        """
        return cls.begin(rules, score).give(leader_hand, dealer_hand)

    @classmethod
    def public(cls, rules: Rules, score: tuple[int, int] | None = None) -> State:
        """The hand's start as the public sees it: no hand is known. For `score` see `begin`."""
        return cls.begin(rules, score).follow(())

    @classmethod
    def seen_by(cls, rules: Rules, seat: int, hand: Iterable[int], score: tuple[int, int] | None = None) -> State:
        """The hand's start as `seat` (0 or 1) sees it, who knows only the own hand. Raises `DealError` as `deal`."""
        if seat not in SEATS:
            raise DealError(f"seat = {shown(seat)} must be 0 (the leader) or 1 (the dealer).")
        start = cls.begin(rules, score)
        return start.give(hand, None) if seat == 0 else start.give(None, hand)

    def give(self, leader_hand: Iterable[int] | None, dealer_hand: Iterable[int] | None) -> State:
        """The state after the deal that it waits for: rank indices in any order, None for a hand that is unseen.

        Raises `DealError` when no deal is due, or the cards are not there to be dealt.
        """
        if self.phase != "deal":
            raise DealError(f"no cards can be dealt now, the hand waits for its {self.phase!r}.")
        hands = (_hand(leader_hand), _hand(dealer_hand))
        for hand in hands:
            self._check_hand(hand)
        # After a redeal the new cards come from the rest of the deck.
        cards = [rank for hand in (*hands, *self.set_aside) for rank in hand or ()]
        for rank in cards:
            if cards.count(rank) > self.rules.copies:
                raise DealError(
                    f"the deal has {cards.count(rank)} cards of rank {self.rules.ranks[rank]}, but the deck has "
                    f"{self.rules.copies}."
                )
        return replace(self, dealt=hands, held=hands)._opened()

    def _check_hand(self, hand: Hand | None) -> None:
        if hand is None:
            return
        if len(hand) != self.hand_size:
            raise DealError(f"the hand {shown(hand)} has {len(hand)} cards, but {self.hand_size} are dealt.")
        for rank in hand:
            if rank not in range(self.rules.n_ranks):
                raise DealError(f"the hand {shown(hand)} has {shown(rank)}, ranks are 0 to {self.rules.n_ranks - 1}.")

    def _opened(self) -> State:
        """What comes first once both have seen their cards."""
        if self.rules.redeal and not self.line:
            # Before anything else the leader may propose a redeal, once per hand.
            return replace(self, phase="proposal")
        if self.rules.decision_before_target:
            sides = self._sides_before_target()
            if len(sides) == 2:
                # Both one point before the target: no raises, and the hand decides the match.
                return replace(self, phase="turn", level=self._match_level)
            if len(sides) == 1:
                # That side decides whether to play, seeing its cards, before the lead.
                return replace(self, phase="decision")
        return replace(self, phase="turn")

    def _sides_before_target(self) -> tuple[int, ...]:
        """The sides that are one point before the target; none of a hand valued in points."""
        if self.score is None:
            return ()
        return tuple(side for side in (LEADER, DEALER) if self.score[side] == self.rules.target - 1)

    @property
    def _match_level(self) -> int:
        """The level of a hand that decides the match: above the ladder, so nothing can follow."""
        return len(self.rules.ladder)

    @property
    def hand_size(self) -> int:
        """Cards dealt to each in this hand."""
        return 1 if self.line[:2] == (TAP, ONE) else self.rules.hand_size

    @property
    def to_play(self) -> int:
        """The seat that acts now, `NOBODY` (-1) while cards are dealt and when the hand is over."""
        match self.phase:
            case "over" | "deal":
                return NOBODY
            case "cut" | "proposal":
                return 0
            case "number" | "agreement":
                return 1
            case "decision":
                return SIDE_OF_SEAT.index(self._sides_before_target()[0])
            case "answer":
                assert self.last_raiser is not None
                return 1 - self.last_raiser
            case "after":
                return self.played[-1][0]
        trick_is_empty = len(self.played) % 2 == 0
        return self.trick_leader if trick_is_empty else 1 - self.trick_leader

    @property
    def turn(self) -> int:
        """The number of the card to be played next, from 1; after the end, one more than were played."""
        return len(self.played) + 1

    @property
    def is_over(self) -> bool:
        """Whether the hand has ended."""
        return self.phase == "over"

    @property
    def stake(self) -> int:
        """What the hand is worth now, in points: the highest accepted stake.

        A hand that decides the match is worth the target, which is enough from any score; the surplus counts nothing.
        """
        if self.phase == "over" and self.line[-1:] == (DECLINE,):
            # Not played before the target: exactly one point, whatever the ladder begins with.
            return 1
        return self._stake_of(self.level)

    @property
    def offer(self) -> int | None:
        """The stake that a raise waiting for its answer would make it, in points; None when there is none."""
        return self._stake_of(self._offered_level()) if self.phase == "answer" else None

    def _stake_of(self, level: int) -> int:
        return self.rules.target if level == self._match_level else self.rules.ladder[level]

    def _offered_level(self) -> int:
        """The level that accepting makes it: the next one, or for the remainder the match."""
        return self._match_level if self.line[-1] == REMAINDER else self.level + 1

    @property
    def is_for_match(self) -> bool:
        """Whether whoever wins this hand wins the match, whatever the score: nothing can follow."""
        return self.level == self._match_level

    @property
    def returns(self) -> tuple[int, int]:
        """Points of side 0 and side 1, the loser's as a negative number; ValueError before the hand is over.

        They are the stake's, so the target's when the hand decided the match.
        """
        if self.winner is None:
            raise ValueError("a hand has no points before it is over.")
        # All three tied: nobody scores (or whom the rule set names, which `winner` has seen to).
        points = {LEADER: self.stake, DEALER: -self.stake, NOBODY: 0}[self.winner]
        return points, -points

    def unseen(self, seat: int) -> tuple[int, ...]:
        """For each rank, how many copies `seat` could be holding as far as everybody else's known cards tell.

        These are the deck's copies less the cards on the table, less those set aside if known, and less the
        opponent's cards in hand if known. Any multiset of them of the right size is possible: the deck has two hands,
        with a redeal four, so the other unseen cards never run out.
        """
        left = [self.rules.copies] * self.rules.n_ranks
        for _, rank in self.played:
            left[rank] -= 1
        for hand in (self.held[1 - seat], *self.set_aside):
            for rank in hand or ():
                left[rank] -= 1
        return tuple(left)

    def legal_actions(self) -> tuple[str, ...]:
        """What the player to play may do, none while cards are dealt and after the end.

        At a turn: the raises that are legal, then fold if the rule set has it, then ranks, weakest label first.
        """
        if self.phase in CHOICES:
            return CHOICES[self.phase]
        if self.phase == "after":
            return (*self._raises(self.to_play), PASS)
        # Folding at any own turn, also once a raise has been accepted.
        fold = (FOLD,) if self.rules.fold else ()
        cards = (self.rules.ranks[rank] for rank in self._playable_ranks())
        return (*self._raises(self.to_play), *fold, *cards)

    def _playable_ranks(self) -> Iterable[int]:
        """Any card may lead and any card may answer: there is no following and no need to win."""
        held = self.held[self.to_play]
        if held is not None:
            return sorted(set(held))
        unseen = self.unseen(self.to_play)
        return [rank for rank, copies in enumerate(unseen) if copies > 0]

    def _raises(self, seat: int) -> tuple[str, ...]:
        """To the next stake, or where the rule set has it to the match, unless that player made the last raise.

        The score has no say in it, nor has whether the player already knows who wins. A raiser who has been accepted
        made the last raise, so only the card is left.
        """
        if self.level + 1 >= len(self.rules.ladder) or self.last_raiser == seat:
            return ()
        # The remainder may be called exactly where a raise is legal; it is about the match, so it needs a score.
        return (RAISE, REMAINDER) if self.rules.remainder and self.score is not None else (RAISE,)

    def apply(self, action: str) -> State:
        """The state after the player to play has done `action`. Raises `IllegalActionError`."""
        legal = self.legal_actions()
        if action not in legal:
            nothing = "the hand is over" if self.is_over else "first cards are dealt"
            allowed = f"legal is {' or '.join(legal)}" if legal else nothing
            raise IllegalActionError(f"the action {shown(action)} is not legal here, {allowed}.")
        seat, opponent = self.to_play, 1 - self.to_play
        after = partial(replace, self, line=(*self.line, action))
        if action in self.rules.ranks:
            return self._with_card(self.rules.ranks.index(action), after)
        match action:
            case "cut" | "three" | "one":
                return after(phase="deal")
            case "tap":
                # Instead of cutting: now the dealer has the option to deal just one card to each.
                return after(phase="number")
            case "propose":
                return after(phase="agreement")
            case "agree":
                # Both hands are set aside, and new cards come from the rest; the dealer is the same.
                return after(phase="deal", set_aside=self.dealt, dealt=(None, None), held=(None, None))
            case "decline" if self.phase == "decision":
                # Not to play before the target: the other side scores (one point), and the deal passes.
                return after(phase="over", winner=SIDE_OF_SEAT[opponent])
            case "play":
                # To play before the target: the hand is worth the top of the ladder, so there are no raises.
                return after(phase="turn", level=len(self.rules.ladder) - 1)
            case "raise" | "remainder":
                # The stake stays what it was until the opponent has answered.
                return after(phase="answer", last_raiser=seat, raised_after_card=self.phase == "after")
            case "accept":
                # The stake is the new one. Before his card the raiser now plays it, after his card the play goes on.
                return after(phase="turn" if self.raised_after_card else "card", level=self._offered_level())
            case "refuse":
                # The raiser scores the stake before the raise and the hand ends; a remainder may win him the match.
                match_lost = self.line[-1] == REMAINDER and self.rules.remainder_refused == "match"
                level = self._match_level if match_lost else self.level
                return after(phase="over", winner=SIDE_OF_SEAT[opponent], level=level)
            case "fold":
                # The opponent scores the accepted stake.
                return after(phase="over", winner=SIDE_OF_SEAT[opponent])
        # Keep, a redeal declined, or a pass after the card: the hand goes on as it was.
        return after(phase="turn")

    def follow(
        self, line: Iterable[str], deals: Iterable[tuple[Iterable[int] | None, Iterable[int] | None]] = ()
    ) -> State:
        """The state after the actions of a line; whenever cards are dealt, the next of `deals` (see `give`) are.

        Cards are unseen once `deals` has run out. Raises `IllegalActionError` and `DealError`.
        """
        state, rest = self, iter(deals)
        if state.phase == "deal":
            state = state.give(*next(rest, (None, None)))
        for action in line:
            state = state.apply(action)
            if state.phase == "deal":
                state = state.give(*next(rest, (None, None)))
        return state

    def _with_card(self, rank: int, after: Callable[..., State]) -> State:
        """The player to play puts down a card; a second one completes the trick."""
        seat = self.to_play
        held, played = _without(self.held, seat, rank), (*self.played, (seat, rank))
        # Who has just played a card, in a hand not yet decided, may raise before anything else happens.
        may_raise = "after" in self.rules.raise_when and self._raises(seat)
        phase: Phase = "after" if may_raise else "turn"
        if len(played) % 2 == 1:
            # The opponent answers the lead; the hand never stops in mid-trick.
            return after(held=held, played=played, phase=phase)
        (lead_seat, lead_rank), (answer_seat, answer_rank) = played[-2:]
        outcome = self.rules.trick_winner(lead_rank, answer_rank)
        if outcome == 0:
            # After a tie the same player leads again.
            result, next_leader = 0, lead_seat
        else:
            # The winner of a trick leads the next one.
            next_leader = lead_seat if outcome == 1 else answer_seat
            result = 1 if SIDE_OF_SEAT[next_leader] == LEADER else -1
        # The hand stops as soon as the results alone decide it.
        results = (*self.results, result)
        winner = hand_winner(self.rules, results, self.hand_size)
        if winner is not None:
            phase = "over"
        return after(held=held, played=played, results=results, trick_leader=next_leader, winner=winner, phase=phase)


def _hand(cards: Iterable[int] | None) -> Hand | None:
    """Rank indices of any integer type and in any order as a hand; an unseen one stays unseen."""
    return None if cards is None else tuple(sorted(map(operator.index, cards)))


def _without(held: Hands, seat: int, rank: int) -> Hands:
    """Both seats' cards after `seat` has played one of `rank`; an unseen hand stays unseen."""
    hand = held[seat]
    if hand is None:
        return held
    at = hand.index(rank)
    rest = hand[:at] + hand[at + 1 :]
    return (rest, held[1]) if seat == 0 else (held[0], rest)
