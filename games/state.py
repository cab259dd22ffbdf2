"""The referee: one hand of Le Truc as an immutable `State`, from the deal to the points.

This file is the rules. It is slow and plain on purpose; whatever computes builds its own tables and is checked
against it. Each branch names the rule it is.

A *seat* plays, a *side* scores. Seat 0 is the leader, the non-dealer, who leads trick 1; seat 1 is the dealer. With
two players each seat is its own side, but the two words are kept apart.

Actions are words: "raise", "accept", "refuse", or the label of the rank that is played. A hand need not be known: a
state without one or both hands walks the lines that some deal allows, which is what the public sees.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from games.rules import ACCEPT, DEALER, LEADER, NOBODY, RAISE, REFUSE, Rules, hand_winner, shown

Hand = tuple[int, ...]
"""Rank indices in ascending order."""

Phase = Literal["turn", "answer", "card", "over"]
"""At a turn the player may raise or play a card; at an answer the opponent accepts or refuses a raise; after an
accepted raise only the raiser's card is left ("card"); then the hand is over."""

SIDE_OF_SEAT = (LEADER, DEALER)


class DealError(ValueError):
    """Hands that cannot be dealt; the message is one sentence."""


class IllegalActionError(ValueError):
    """An action that is not legal; the message is one sentence that says what is."""


@dataclass(frozen=True, slots=True)
class State:
    """One moment of a hand. Begin with `deal`, `public` or `seen_by`, go on with `apply`."""

    rules: Rules
    dealt: tuple[Hand | None, Hand | None]
    """Each seat's full hand, None where it is unseen."""
    held: tuple[Hand | None, Hand | None]
    """Each seat's cards still in hand, None where they are unseen."""
    played: tuple[tuple[int, int], ...] = ()
    """(seat, rank) of every card on the table, in order."""
    results: tuple[int, ...] = ()
    """The complete tricks: 1 won by side 0, -1 won by side 1, 0 spoiled."""
    trick_leader: int = 0
    """The seat that leads the current trick."""
    level: int = 0
    """The accepted stake's index in the ladder."""
    last_raiser: int | None = None
    """The seat that made the last raise, answered or not."""
    phase: Phase = "turn"
    winner: int | None = None
    """The side that won the hand, `NOBODY` (-1) if all tricks were tied, None until the hand is over."""
    line: tuple[str, ...] = ()
    """Every action so far: the public history."""

    @classmethod
    def deal(cls, rules: Rules, leader_hand: Iterable[int], dealer_hand: Iterable[int]) -> State:
        """The hand's start with both hands known, as rank indices in any order. Raises `DealError`."""
        return cls._start(rules, (_hand(leader_hand), _hand(dealer_hand)))

    @classmethod
    def public(cls, rules: Rules) -> State:
        """The hand's start as the public sees it: no hand is known."""
        return cls._start(rules, (None, None))

    @classmethod
    def seen_by(cls, rules: Rules, seat: int, hand: Iterable[int]) -> State:
        """The hand's start as `seat` (0 or 1) sees it, who knows only the own hand. Raises `DealError`."""
        if seat not in (0, 1):
            raise DealError(f"seat = {shown(seat)} must be 0 (the leader) or 1 (the dealer).")
        return cls._start(rules, (_hand(hand), None) if seat == 0 else (None, _hand(hand)))

    @classmethod
    def _start(cls, rules: Rules, hands: tuple[Hand | None, Hand | None]) -> State:
        known = [hand for hand in hands if hand is not None]
        for hand in known:
            if len(hand) != rules.hand_size:
                raise DealError(f"the hand {shown(hand)} has {len(hand)} cards, but {rules.hand_size} are dealt.")
            for rank in hand:
                if rank not in range(rules.n_ranks):
                    raise DealError(f"the hand {shown(hand)} has {shown(rank)}, ranks are 0 to {rules.n_ranks - 1}.")
        cards = sum(known, start=())
        for rank in cards:
            if cards.count(rank) > rules.copies:
                raise DealError(
                    f"the deal has {cards.count(rank)} cards of rank {rules.ranks[rank]}, but the deck has "
                    f"{rules.copies}."
                )
        return cls(rules, dealt=hands, held=hands)

    @property
    def to_play(self) -> int:
        """The seat that acts now, `NOBODY` (-1) when the hand is over."""
        if self.phase == "over":
            return NOBODY
        if self.phase == "answer":
            assert self.last_raiser is not None
            return 1 - self.last_raiser
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
        """What the hand is worth now, in points: the highest accepted stake."""
        return self.rules.ladder[self.level]

    @property
    def offer(self) -> int | None:
        """The stake that a raise waiting for its answer would make it, in points; None when there is none."""
        return self.rules.ladder[self.level + 1] if self.phase == "answer" else None

    @property
    def returns(self) -> tuple[int, int]:
        """Points of side 0 and side 1, the loser's as a negative number; ValueError before the hand is over."""
        if self.winner is None:
            raise ValueError("a hand has no points before it is over.")
        # All three tied: nobody scores (or whom the rule set names, which `winner` has seen to).
        points = {LEADER: self.stake, DEALER: -self.stake, NOBODY: 0}[self.winner]
        return points, -points

    def unseen(self, seat: int) -> tuple[int, ...]:
        """For each rank, how many copies `seat` could be holding as far as everybody else's known cards tell.

        These are the deck's copies less the cards on the table and less the opponent's cards in hand if known. Any
        multiset of them of the right size is possible: the deck has two hands, so the opponent's cards never run out.
        """
        left = [self.rules.copies] * self.rules.n_ranks
        for _, rank in self.played:
            left[rank] -= 1
        for rank in self.held[1 - seat] or ():
            left[rank] -= 1
        return tuple(left)

    def legal_actions(self) -> tuple[str, ...]:
        """What the player to play may do: "raise" first, then ranks, weakest label first; or accept and refuse."""
        if self.phase == "over":
            return ()
        if self.phase == "answer":
            # The opponent accepts or refuses, nothing else: no counter-raise as an answer, no folding unasked.
            return ACCEPT, REFUSE
        cards = tuple(self.rules.ranks[rank] for rank in self._playable_ranks())
        return (RAISE, *cards) if self._may_raise() else cards

    def _playable_ranks(self) -> Iterable[int]:
        """Any card may lead and any card may answer: there is no following and no need to win."""
        held = self.held[self.to_play]
        if held is not None:
            return sorted(set(held))
        unseen = self.unseen(self.to_play)
        return [rank for rank, copies in enumerate(unseen) if copies > 0]

    def _may_raise(self) -> bool:
        """Before playing a card, to the next stake, unless that player made the last raise.

        The score has no say in it, nor has whether the player already knows who wins. A raiser who has been accepted
        made the last raise, so only the card is left.
        """
        return self.level + 1 < len(self.rules.ladder) and self.last_raiser != self.to_play

    def apply(self, action: str) -> State:
        """The state after the player to play has done `action`. Raises `IllegalActionError`."""
        legal = self.legal_actions()
        if action not in legal:
            allowed = f"legal is {' or '.join(legal)}" if legal else "the hand is over"
            raise IllegalActionError(f"the action {shown(action)} is not legal here, {allowed}.")
        line = (*self.line, action)
        if action == RAISE:
            # The stake stays what it was until the opponent has answered.
            return replace(self, line=line, phase="answer", last_raiser=self.to_play)
        if action == ACCEPT:
            # The stake is the new one, and the raiser now plays a card.
            return replace(self, line=line, phase="card", level=self.level + 1)
        if action == REFUSE:
            # The raiser scores the stake before the raise and the hand ends.
            assert self.last_raiser is not None
            return replace(self, line=line, phase="over", winner=SIDE_OF_SEAT[self.last_raiser])
        return self._with_card(self.rules.ranks.index(action), line)

    def _with_card(self, rank: int, line: tuple[str, ...]) -> State:
        """The player to play puts down a card; a second one completes the trick."""
        seat = self.to_play
        held, played = _without(self.held, seat, rank), (*self.played, (seat, rank))
        after = replace(self, line=line, held=held, played=played, phase="turn")
        if len(played) % 2 == 1:
            # The opponent answers the lead; the hand never stops in mid-trick.
            return after
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
        winner = hand_winner(self.rules, results)
        phase: Phase = "turn" if winner is None else "over"
        return replace(after, results=results, trick_leader=next_leader, winner=winner, phase=phase)


def _hand(cards: Iterable[int]) -> Hand:
    """Rank indices of any integer type and in any order as a hand."""
    return tuple(sorted(map(operator.index, cards)))


def _without(held: tuple[Hand | None, Hand | None], seat: int, rank: int) -> tuple[Hand | None, Hand | None]:
    """Both seats' cards after `seat` has played one of `rank`; an unseen hand stays unseen."""
    hand = held[seat]
    if hand is None:
        return held
    at = hand.index(rank)
    rest = hand[:at] + hand[at + 1 :]
    return (rest, held[1]) if seat == 0 else (held[0], rest)
