"""Where a reader of the explorer is, as a URL: the tab, the variant, the score, the line, the hand.

Whatever is in a URL may come from anybody: what makes no sense is left out, and a sentence says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

from games.notation import NotationError, format_hand, format_line, format_score, parse_hand, parse_score
from games.rules import AGREE, Rules, shown
from games.state import DealError, IllegalActionError, State
from solver.advise import resolve
from solver.lines import read_line
from solver.strategy import LineError

TABS = ("strategy", "match", "table", "trainer", "review", "solve")
BAD = (NotationError, LineError, DealError, IllegalActionError)
MAX_URL = 4000
MAX_FIELDS = 20
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Place:
    """What the page shows.

    score: None for a hand in points; line: legal actions, of the full rules; hand: what the player to act holds after
    it, or None; discards: what he has set aside in a redeal.
    """

    tab: str
    rules: Rules
    score: tuple[int, int] | None = None
    line: tuple[str, ...] = ()
    hand: tuple[int, ...] | None = None
    discards: tuple[int, ...] = ()

    @property
    def state(self) -> State:
        """What the public sees."""
        return State.begin(self.rules, self.score).follow(self.line)

    @property
    def url(self) -> str:
        """Where it is found again."""
        rules = self.rules
        fields = {"variant": rules.name}
        if self.score is not None:
            fields["score"] = format_score(self.score)
        if self.line:
            fields["line"] = format_line(self.line)
        if self.discards:
            fields["discards"] = format_hand(rules, self.discards)
        if self.hand is not None:
            fields["hand"] = format_hand(rules, self.hand)
        return f"/{self.tab}?{urlencode(fields)}"

    def go(self, line: tuple[str, ...]) -> Place:
        """Another line of the same hand; the cards looked at are kept where they are still all there."""
        return replace(self, line=line, hand=None)


def read_url(url: str, known: Mapping[str, Rules], start: Place) -> tuple[Place, list[str]]:
    """The place that a URL means, and what was wrong with it.  Starts from `start` where the URL says nothing."""
    if len(url) > MAX_URL:
        return start, [f"the address has more than {MAX_URL} characters."]
    try:
        parts = urlsplit(url)
        fields = dict(parse_qsl(parts.query, keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="replace"))
    except ValueError:
        return start, [f"the address {shown(url)} cannot be read."]
    tab = parts.path.strip("/") or TABS[0]
    wrong = []
    if tab not in TABS:
        wrong.append(f"there is no page {shown(tab)}, known are {', '.join(TABS)}.")
        tab = start.tab
    rules = start.rules
    if "variant" in fields:
        rules = known.get(fields["variant"], rules)
        if fields["variant"] not in known:
            wrong.append(f"there is no variant {shown(fields['variant'])}, known are {', '.join(known)}.")
    place = Place(tab, rules)

    def attempt(make: Callable[[], T], otherwise: T) -> T:
        try:
            return make()
        except BAD as error:
            wrong.append(str(error))
            return otherwise

    if fields.get("score"):
        place = replace(place, score=attempt(lambda: parse_score(rules, fields["score"]), None))
    line = fields.get("line", "")
    place = replace(place, line=attempt(lambda: checked_line(rules, line, place.score), first_line(place)))
    if AGREE in place.line:
        gone = fields.get("discards", "")
        place = replace(place, discards=attempt(lambda: parse_hand(rules, gone) if gone else (), ()))
    if fields.get("hand"):
        place = replace(place, hand=attempt(lambda: checked_hand(place, fields["hand"]), None))
    return place, wrong


def first_line(place: Place) -> tuple[str, ...]:
    """The hand's start, with the choice before it that need not be said."""
    return read_line(place.rules, "", place.score)


def checked_line(rules: Rules, text: str, score: tuple[int, int] | None) -> tuple[str, ...]:
    """A line that leads to a decision.  Raises NotationError, LineError."""
    line = read_line(rules, text, score)
    if not State.begin(rules, score).follow(line).legal_actions():
        raise LineError(f"the line {format_line(line)!r} ends the hand: nobody has a decision after it.")
    return line


def checked_hand(place: Place, text: str) -> tuple[int, ...]:
    """What the player to act holds, from that or from what he was dealt.  Raises NotationError."""
    return resolve(place.rules, text, place.line, score=place.score, discards=place.discards)[1]
