"""Played hands as text: what `truc play` writes and `truc review` reads.

A file, one item a line; blank lines and lines that begin with "#" are left out:

    truc-history 1
    rules: le-truc 00a094818b73
    players: you, bot

    hand 1: 0-0, bot leads
    you: A 3 8
    bot: 7 ? ?
    line: 7 raise accept 8 A 3 6 3
    result: bot 2

Grammar, words separated by spaces, their case ignored but for the players' names:

    file    = "truc-history 1" rules players { hand }
    rules   = "rules:" NAME [ HASH ]            HASH: 8 to 64 first hex digits of `Rules.hash`
    players = "players:" NAME "," NAME          letters, digits, "_" and "-", at most 20; not one of the words in quotes
    hand    = "hand" NUMBER ":" (SCORE | "points") "," NAME "leads" [ cards ] [ cards ] "line:" LINE [ result ]
    cards   = NAME ":" DEAL { "/" DEAL }        the player's cards, once more for the new ones of a redeal
    DEAL    = CARD { CARD }                     ranks as dealt, "?" for a card that was never shown
    result  = "result:" (NAME | "nobody") POINTS

SCORE is LEADER-DEALER, the points before the hand of him who leads first; "points" is a hand outside a match.  LINE is
the whole public history in the notation of `games.notation`.  Cards that are left out were never shown; those that the
line shows are filled in.  A hand without a result was not finished.  Numbers count the hands from 1.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from games.notation import NotationError, format_line, format_score, parse_line, parse_score
from games.rules import NOBODY, Rules, RulesError, preset, preset_names, shown
from games.state import DealError, Hand, IllegalActionError, State

MAX_BYTES = 1_000_000
HEADER = "truc-history 1"
UNKNOWN = "?"
HASH_DIGITS = 12  # that are written
WORDS = ("truc-history", "rules", "players", "hand", "line", "result", "nobody", "points", "leads")

Deal = tuple[int | None, ...]
"""A player's cards: known ranks in ascending order, then None for each card that was never shown."""


class HistoryError(ValueError):
    """A history that is none; the message is one sentence with the line, what is there, and what would be right.

    player: whose cards are wrong, if `record` says so.
    """

    def __init__(self, message: str, player: int | None = None) -> None:
        super().__init__(message)
        self.player = player


@dataclass(frozen=True, slots=True)
class HandRecord:
    """One hand as far as it was played.  Make it by `record`, which checks it and fills in what the line shows.

    score: (leader's, dealer's) points before it, None outside a match; leader: the index of the player who leads
    first; line: every action; cards: by player, a `Deal` for each time that cards were dealt.
    """

    score: tuple[int, int] | None
    leader: int
    line: tuple[str, ...]
    cards: tuple[tuple[Deal, ...], tuple[Deal, ...]]

    def seat(self, player: int) -> int:
        """0 if a player leads first, 1 if he deals."""
        return player if self.leader == 0 else 1 - player

    def deals(self) -> list[tuple[Hand | None, Hand | None]]:
        """For `State.follow`: (leader's, dealer's) hands of each deal, None for those not wholly known."""
        both = zip(self.cards[self.leader], self.cards[1 - self.leader], strict=True)
        return [(whole(mine), whole(theirs)) for mine, theirs in both]

    def start(self, rules: Rules) -> State:
        """Before anything; `.follow(line, deals())` goes on from there."""
        return State.begin(rules, self.score)

    def state(self, rules: Rules) -> State:
        """How far the hand came."""
        return self.start(rules).follow(self.line, self.deals())

    def known(self, player: int) -> Hand | None:
        """A player's cards of the last deal, None if one of them was never shown."""
        return whole(self.cards[player][-1]) if self.cards[player] else None


@dataclass(frozen=True, slots=True)
class History:
    """Hands that two players have played, by one rule set."""

    rules: Rules
    players: tuple[str, str]
    hands: tuple[HandRecord, ...] = ()


def record(
    rules: Rules,
    score: tuple[int, int] | None,
    leader: int,
    line: Iterable[str],
    cards: tuple[Sequence[Deal], Sequence[Deal]] = ((), ()),
) -> HandRecord:
    """A hand, its cards in order and completed by those that the line shows; deals left out are unknown.

    Raises HistoryError where the line is not legal, or the cards cannot be those of the line.
    """
    line = tuple(line)
    given = [[list(deal) for deal in player] for player in cards]
    full: list[list[list[int | None]]] = [[], []]
    try:
        state = State.begin(rules, score)
        for n in range(len(line) + 1):
            if state.phase == "deal":
                at = len(full[0])
                for player in (0, 1):
                    known: list[int | None] = (
                        given[player][at] if at < len(given[player]) else [None for _ in range(state.hand_size)]
                    )
                    if len(known) != state.hand_size:
                        raise HistoryError(f"{_count(len(known))}, but {state.hand_size} are dealt", player)
                    full[player].append(known)
                # An unknown hand may hold what is legal; whether it is that of the cards is checked below.
                hands = [whole(tuple(full[player][-1])) for player in (leader, 1 - leader)]
                state = state.give(hands[0], hands[1])
            if n < len(line):
                state = state.apply(line[n])
    except (DealError, IllegalActionError) as error:
        raise HistoryError(str(error).rstrip(".")) from error
    for player in (0, 1):
        if len(given[player]) > len(full[player]):
            raise HistoryError(f"cards of {len(given[player])} deals, but there were {len(full[player])}", player)
        if full[player]:
            played = [rank for seat, rank in state.played if (seat == 0) == (player == leader)]
            full[player][-1] = _completed(rules, full[player][-1], played, player)
    every = Counter(rank for player in full for deal in player for rank in deal if rank is not None)
    for rank, copies in every.items():
        if copies > rules.copies:
            raise HistoryError(f"{copies} cards of rank {rules.ranks[rank]}, but the deck has {rules.copies}")
    return HandRecord(score, leader, line, (_sorted(full[0]), _sorted(full[1])))


def _completed(rules: Rules, deal: list[int | None], played: Sequence[int], player: int) -> list[int | None]:
    """A deal with the cards that were played in place of unknown ones."""
    known = Counter(rank for rank in deal if rank is not None)
    missing = list((Counter(played) - known).elements())
    unknown = deal.count(None)
    if len(missing) > unknown:
        names = " ".join(rules.ranks[rank] for rank in played)
        raise HistoryError(f"the cards {_deal_text(rules, deal)} of a player who plays {names}", player)
    return [*known.elements(), *missing, *[None] * (unknown - len(missing))]


def _sorted(deals: list[list[int | None]]) -> tuple[Deal, ...]:
    return tuple((*sorted(r for r in deal if r is not None), *(r for r in deal if r is None)) for deal in deals)


def whole(deal: Deal) -> Hand | None:
    """A deal as a hand, None if one of its cards is not known."""
    known = tuple(sorted(rank for rank in deal if rank is not None))
    return known if len(known) == len(deal) else None


# ------------------------------------------------------------------------------------------------------------- printing


def format_history(history: History) -> str:
    """The text of a history; `parse_history` reads back an equal one."""
    rules = history.rules
    lines = [HEADER, f"rules: {rules.name} {rules.hash[:HASH_DIGITS]}", f"players: {', '.join(history.players)}"]
    for number, hand in enumerate(history.hands, start=1):
        score = "points" if hand.score is None else format_score(hand.score)
        lines += ["", f"hand {number}: {score}, {history.players[hand.leader]} leads"]
        for player, deals in zip(history.players, hand.cards, strict=True):
            if deals:
                lines.append(f"{player}: {' / '.join(_deal_text(rules, deal) for deal in deals)}")
        lines.append(f"line: {format_line(hand.line)}".rstrip())
        over = result(history, hand)
        if over is not None:
            lines.append(f"result: {over}")
    return "\n".join(lines) + "\n"


def result(history: History, hand: HandRecord) -> str | None:
    """A hand's result as it is written: who scored how much; None if it was not finished."""
    state = hand.state(history.rules)
    if state.winner is None:
        return None
    if state.winner == NOBODY:
        return "nobody 0"
    player = hand.leader if state.winner == 0 else 1 - hand.leader
    return f"{history.players[player]} {state.stake}"


def _deal_text(rules: Rules, deal: Iterable[int | None]) -> str:
    return " ".join(UNKNOWN if rank is None else rules.ranks[rank] for rank in deal)


# -------------------------------------------------------------------------------------------------------------- reading


def load_history(path: str | os.PathLike[str], rules: Rules | None = None) -> History:
    """Read a file.  Raises HistoryError, whose message begins with the file's name; OSError."""
    source = shown(os.fspath(path), 200)
    with open(path, "rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise HistoryError(f"{source}: a history has at most {MAX_BYTES:,} bytes, this file has more.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise HistoryError(f"{source}: a history is UTF-8 text, but byte {error.start} is not.") from error
    try:
        return parse_history(text, rules)
    except HistoryError as error:
        raise HistoryError(f"{source}: {error}") from error


def parse_history(text: str, rules: Rules | None = None) -> History:
    """Read a text.  rules: the rule set where it is not one that comes with the program; it must be the one named.

    Raises HistoryError.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise HistoryError(f"a history has at most {MAX_BYTES:,} bytes, this text has more.")
    return _Reader(text, rules).history()


class _Reader:
    """The lines that count, one after the other, with their numbers."""

    def __init__(self, text: str, rules: Rules | None) -> None:
        # Not `splitlines`: only line feeds end a line, so that numbers are those of an editor.
        numbered = enumerate((line.strip() for line in text.split("\n")), start=1)
        self.lines = [(number, line) for number, line in numbered if line and not line.startswith("#")]
        self.end = text.count("\n") + 1
        self.at = 0
        self.given = rules

    def history(self) -> History:
        number, line = self.next(f'"{HEADER}"')
        if line.casefold().split() != HEADER.split():
            raise _wrong(number, line, f'the first line of a history is "{HEADER}"')
        rules = self.rules()
        players = self.players()
        hands: list[HandRecord] = []
        while self.at < len(self.lines):
            hands.append(self.hand(rules, players, len(hands) + 1))
        return History(rules, players, tuple(hands))

    def next(self, wanted: str) -> tuple[int, str]:
        """The next line.  Raises HistoryError if there is none."""
        if self.at == len(self.lines):
            raise HistoryError(f"line {self.end}: the text ends where there should be {wanted}.")
        self.at += 1
        return self.lines[self.at - 1]

    def value(self, key: str, example: str) -> tuple[int, str]:
        """What follows a key that must be next."""
        wanted = f'"{key}:", such as "{key}: {example}"'
        number, line = self.next(wanted)
        name, colon, value = line.partition(":")
        if not colon or name.strip().casefold() != key:
            raise _wrong(number, line, f"expected is {wanted}")
        return number, value.strip()

    def rules(self) -> Rules:
        number, text = self.value("rules", "le-truc")
        words = text.split()
        if not 1 <= len(words) <= 2 or (len(words) == 2 and not re.fullmatch("[0-9a-fA-F]{8,64}", words[1])):
            raise _wrong(number, text, "a rule set is its name and perhaps 8 to 64 hex digits of its hash")
        name, digits = words[0], words[-1].casefold() if len(words) == 2 else ""
        if self.given is not None:
            rules = self.given
            if (not digits and name != rules.name) or not rules.hash.startswith(digits):
                raise _wrong(number, text, f"the options say {rules.name} {rules.hash[:HASH_DIGITS]}")
            return rules
        try:
            rules = preset(name)
        except RulesError as error:
            known = ", ".join(preset_names())
            raise _wrong(number, text, f"known are {known}; your own rules must be given as well") from error
        if not rules.hash.startswith(digits):
            raise _wrong(number, text, f"{name} is {rules.hash[:HASH_DIGITS]}; your own rules must be given as well")
        return rules

    def players(self) -> tuple[str, str]:
        number, text = self.value("players", "you, bot")
        names = [name.strip() for name in text.split(",")]
        if len(names) != 2 or not all(map(is_name, names)) or names[0] == names[1]:
            raise _wrong(
                number, text, 'players are two different names of 1 to 20 letters, digits, "_" and "-": "you, bot"'
            )
        return names[0], names[1]

    def hand(self, rules: Rules, players: tuple[str, str], count: int) -> HandRecord:
        number, line = self.next("a hand")
        right = f'expected is "hand {count}: 0-0, {players[0]} leads"'
        match = re.fullmatch(r"hand\s+([0-9]{1,9})\s*:\s*([^,\s]+)\s*,\s*(\S+)\s+leads", line, re.IGNORECASE)
        if match is None or int(match[1]) != count or match[3] not in players:
            raise _wrong(number, line, right)
        leader = players.index(match[3])
        score = None
        if match[2].casefold() != "points":
            try:
                score = parse_score(rules, match[2])
            except NotationError as error:
                raise HistoryError(f"line {number}: {error}") from error
        cards: list[tuple[Deal, ...]] = [(), ()]
        where: dict[int, int] = {}
        while self.at < len(self.lines) and self.lines[self.at][1].partition(":")[0].strip() in players:
            at, line = self.next("")
            name, _, text = line.partition(":")
            player = players.index(name.strip())
            if player in where:
                raise _wrong(at, line, "each player's cards are given once")
            where[player] = at
            cards[player] = tuple(_read_deal(rules, at, part) for part in text.split("/"))
        line_at, text = self.value("line", "raise accept 8")
        try:
            start = State.begin(rules, score)
            hands = zip(*(_padded(cards[player], max(map(len, cards))) for player in (leader, 1 - leader)), strict=True)
            words = parse_line(rules, text, start, [(whole(a), whole(b)) for a, b in hands])
        except DealError as error:
            raise HistoryError(f"line {max(where.values(), default=number)}: {error}") from error
        except NotationError as error:
            raise HistoryError(f"line {line_at}: {error}") from error
        try:
            found = record(rules, score, leader, words, (cards[0], cards[1]))
        except HistoryError as error:
            at = max(where.values(), default=line_at) if error.player is None else where.get(error.player, line_at)
            raise HistoryError(f"line {at}: {error}, which does not go with the line {shown(text)}.") from error
        self._result(History(rules, players), found)
        return found

    def _result(self, history: History, hand: HandRecord) -> None:
        """Check the result, if there is one."""
        if self.at == len(self.lines) or self.lines[self.at][1].partition(":")[0].strip().casefold() != "result":
            return
        number, text = self.value("result", "nobody 0")
        right = result(history, hand)
        if right is None:
            raise _wrong(number, text, "the hand is not over, so it has no result")
        if text.split() != right.split():
            raise _wrong(number, text, f'by the line it is "{right}"')


def is_name(name: str) -> bool:
    """Whether a player may be called so."""
    return re.fullmatch(r"[\w-]{1,20}", name) is not None and name.casefold() not in WORDS


def _padded(deals: tuple[Deal, ...], size: int) -> list[Deal]:
    """Deals, and as many unknown ones as are missing."""
    return [*deals, *[(None,)] * (size - len(deals))]


def _read_deal(rules: Rules, number: int, text: str) -> Deal:
    labels = {label.casefold(): rank for rank, label in enumerate(rules.ranks)}
    found: list[int | None] = []
    for word in text.replace(",", " ").split():
        if word == UNKNOWN:
            found.append(None)
        elif word.casefold() in labels:
            found.append(labels[word.casefold()])
        else:
            raise _wrong(number, word, f'a card is {" ".join(rules.ranks)} or "?"')
    if len(found) != rules.hand_size and not (rules.one_card and len(found) == 1):
        raise _wrong(number, text.strip(), f"that is {_count(len(found))}, a hand has {rules.hand_size}")
    return tuple(found)


def _count(cards: int) -> str:
    return "1 card" if cards == 1 else f"{cards} cards"


def _wrong(number: int, text: str, right: str) -> HistoryError:
    return HistoryError(f"line {number}: {shown(text)} is wrong here: {right}.")
