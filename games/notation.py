"""Cards, hands, lines and scores as text: everything that prints here can be read back.

Words are separated by spaces or commas and their case is ignored. A *line* is the public history of a hand: the ranks
played and the other actions, "raise", "accept", "refuse" and those that some rule sets add to them (`ACTIONS`). Aliases
are r, *truc* and *retruc* for a raise, and y and n for yes and no wherever the choice is that. Whatever is read may
come from anybody; a `NotationError` shows at most a few words of it, and those escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from games.rules import ACCEPT, AGREE, ALIASES, DECLINE, PLAY, REFUSE, Rules, shown
from games.state import Hand, State

MAX_TEXT = 1000
"""Longest text that is read, in characters; the longest line there is takes a fifth of it."""


YES_OR_NO = {"y": (ACCEPT, AGREE, PLAY), "n": (REFUSE, DECLINE)}
"""What y and n say; at most one of each is ever legal."""


class NotationError(ValueError):
    """Text that is no hand, line or score; the message is one sentence: the offending value and what would be right."""


def parse_hand(rules: Rules, text: str, size: int | None = None) -> Hand:
    """Read a hand such as "8 A 3": its rank indices in ascending order, shape (size,).

    `size` is the number of cards there must be, by default a full hand; 1 for a hand of one card. A hand set aside in a
    redeal is read by this too. Raises `NotationError`.
    """
    wanted = rules.hand_size if size is None else size
    labels = {label.casefold(): rank for rank, label in enumerate(rules.ranks)}
    words = _words(text)
    for word in words:
        if word.casefold() not in labels:
            raise NotationError(f"{shown(word)} in the hand is no card, the ranks are {' '.join(rules.ranks)}.")
    hand = tuple(sorted(labels[word.casefold()] for word in words))
    if len(hand) != wanted:
        raise NotationError(f"the hand {shown(text)} has {len(hand)} cards, it must have {wanted}.")
    for rank in hand:
        if hand.count(rank) > rules.copies:
            raise NotationError(
                f"the hand {shown(text)} has {hand.count(rank)} cards of rank {rules.ranks[rank]}, "
                f"but the deck has {rules.copies}."
            )
    return hand


def format_hand(rules: Rules, hand: Iterable[int]) -> str:
    """A hand of rank indices as text, weakest label first: "A 3 8"."""
    return " ".join(rules.ranks[rank] for rank in sorted(hand))


def parse_line(
    rules: Rules, text: str, start: State | None = None, deals: Iterable[tuple[Hand | None, Hand | None]] = ()
) -> tuple[str, ...]:
    """Read a line such as "r y 8, A" as the actions ("raise", "accept", "8", "A"); empty text is the hand's start.

    Each word must be legal where it stands: in some deal of a hand valued in points, or, if `start` is given, from that
    state on; `State.public(rules, score)` is the start at a score. Whenever cards are dealt on the way, they are the
    next of `deals`, unseen once these have run out (see `State.follow`). Raises `NotationError` that names the first
    word that is not legal, its position and what was, and `DealError` if the deals are none.
    """
    rest = iter(deals)
    state = (State.begin(rules) if start is None else start).follow((), rest)
    actions: list[str] = []
    for position, word in enumerate(_words(text), start=1):
        legal = state.legal_actions()
        action = _meant(word.casefold(), legal)
        if action is None:
            allowed = f"legal is {' or '.join(legal)}" if legal else "the hand is over before it"
            raise NotationError(f"word {position} of the line, {shown(word)}, is not legal: {allowed}.")
        actions.append(action)
        state = state.follow((action,), rest)
    return tuple(actions)


def _meant(word: str, legal: Iterable[str]) -> str | None:
    """The legal action that a word in lower case says, by its own name or an alias; None if there is none."""
    names = {word, ALIASES.get(word, word), *YES_OR_NO.get(word, ())}
    return next((action for action in legal if action.casefold() in names), None)


def format_line(line: Iterable[str]) -> str:
    """A line of actions as text: "raise accept 8 A", the start of a hand as ""."""
    return " ".join(line)


def parse_score(rules: Rules, text: str) -> tuple[int, int]:
    """Read a score "L-D": the points of the leader (the non-dealer) and of the dealer, each from 0 to target - 1.

    Raises `NotationError`, also for a score at which the match is over.
    """
    match = re.fullmatch(r"\s*([0-9]{1,3})-([0-9]{1,3})\s*", text)
    if match is None or max(int(match[1]), int(match[2])) >= rules.target:
        raise NotationError(
            f"the score {shown(text)} must be LEADER-DEALER, the non-dealer's points first, each from 0 to "
            f"{rules.target - 1}, such as 0-0."
        )
    return int(match[1]), int(match[2])


def format_score(score: tuple[int, int]) -> str:
    """A score (leader's points, dealer's points) as "L-D"."""
    leader, dealer = score
    return f"{leader}-{dealer}"


def describe_score(rules: Rules, score: tuple[int, int]) -> str:
    """A score (leader's points, dealer's points) in words, so that nobody takes one for the other."""
    leader, dealer = score
    return f"leader (non-dealer) {leader}, dealer {dealer}, to {rules.target}"


def _words(text: str) -> list[str]:
    if len(text) > MAX_TEXT:
        raise NotationError(f"the text {shown(text)} is too long, at most {MAX_TEXT} characters are read.")
    return text.replace(",", " ").split()
