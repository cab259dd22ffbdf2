"""A rule set as data: the frozen `Rules`, its validation, its hash and its TOML form.

A rule set says which deck is played, how cards beat each other, which stakes can be raised to and who wins a hand
whose tricks are all tied. Everything else of the game is in the referee (`games.state`), which reads these fields.

Sides: 0 is the leader's (the non-dealer's), 1 the dealer's, `NOBODY` neither.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import tomllib
from dataclasses import MISSING, asdict, dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

LEADER, DEALER, NOBODY = 0, 1, -1

RAISE, ACCEPT, REFUSE = "raise", "accept", "refuse"
REMAINDER, FOLD, PASS = "remainder", "fold", "pass"
PROPOSE, KEEP, AGREE, DECLINE = "propose", "keep", "agree", "decline"
CUT, TAP, THREE, ONE, PLAY = "cut", "tap", "three", "one", "play"

ACTIONS = (RAISE, ACCEPT, REFUSE, REMAINDER, FOLD, PASS, PROPOSE, KEEP, AGREE, DECLINE, CUT, TAP, THREE, ONE, PLAY)
"""The words of all actions but the cards; which of them a game has depends on its rule set."""

ALIASES = {"r": RAISE, "truc": RAISE, "retruc": RAISE, "y": ACCEPT, "n": REFUSE}
"""Other words for an action, in lower case, understood wherever a line is read."""

RESERVED_WORDS = frozenset({*ACTIONS, *ALIASES})
"""Words that no rank may be called (case ignored), since a line could not tell them apart."""

MAX_RANKS, MAX_COPIES, MAX_LABEL = 16, 12, 8
MAX_STAKES, MAX_STAKE, MAX_TARGET = 16, 1000, 100
MAX_FILE_BYTES = 64 * 1024


class RulesError(ValueError):
    """A rule set that cannot be played; the message names the bad field, its value and what would be right."""


@dataclass(frozen=True, slots=True)
class Rules:
    """One rule set. Raises `RulesError` when a field, or the whole, makes no game.

    Two rule sets that differ only in `name` are the same game and have the same `hash`.
    """

    name: str
    """A simple word, usable as a file name."""
    ranks: tuple[str, ...]
    """Labels, weakest first; elsewhere a rank is its index in here."""
    order: Literal["linear", "circular"]
    """circular: as linear, but the first rank beats the last (and loses to all others)."""
    copies: int
    """Cards of each rank in the deck."""
    hand_size: int
    """Cards in a hand, which is the number of tricks."""
    ladder: tuple[int, ...]
    """Stakes in points, the first one without any raise; it need not end at the target."""
    all_tied: Literal["nobody", "leader", "dealer"]
    """Who wins a hand whose tricks are all tied."""
    target: int = 12
    """Points that win the match."""
    raise_when: tuple[str, ...] = ("before",)
    """Whether a player may raise before playing his card only, or ("before", "after") also right after it."""
    remainder: bool = False
    """Whether, at a score, a player who may raise may call the remainder instead: the hand then decides the match."""
    remainder_refused: Literal["stake", "match"] = "stake"
    """What a refused remainder gives its caller: the stake before it, or the match."""
    fold: bool = False
    """Whether a player may give the hand up at his turn; the opponent scores the stake."""
    redeal: bool = False
    """Whether the leader may propose new cards for both, once, before anything else."""
    decision_before_target: bool = False
    """Whether, at a score, a side one point before the target decides to play for the top stake or to decline."""
    one_card: bool = False
    """Whether the leader may tap instead of cut, so that the dealer may deal one card each."""

    def __post_init__(self) -> None:
        """Refuse whatever is no game, the first fault found."""
        _check_name(self.name)
        _check_order(self.order, self.ranks)
        _check_number("copies", self.copies, 1, MAX_COPIES)
        _check_number("hand_size", self.hand_size, 1, 3)
        _check_ladder(self.ladder)
        _check_word("all_tied", self.all_tied, ("nobody", "leader", "dealer"))
        _check_number("target", self.target, 1, MAX_TARGET)
        _check_raise_when(self.raise_when)
        _check_word("remainder_refused", self.remainder_refused, ("stake", "match"))
        for field in ("remainder", "fold", "redeal", "decision_before_target", "one_card"):
            _check_flag(field, getattr(self, field))
        _check_redeal(self)
        _check_deck(self)

    @property
    def n_ranks(self) -> int:
        """Number of ranks."""
        return len(self.ranks)

    @property
    def n_cards(self) -> int:
        """Number of cards in the deck."""
        return self.n_ranks * self.copies

    @property
    def needs_score(self) -> bool:
        """Whether what is legal in a hand depends on the score of the match."""
        return self.remainder or self.decision_before_target or self.one_card

    @property
    def hash(self) -> str:
        """What game this is: 64 hex digits that depend on every field but `name`.

        SHA-256 of the UTF-8 JSON object of all other fields by their names, keys sorted, tuples as arrays, no
        spaces, nothing escaped that need not be. Rank labels belong to the game, for lines are written in them.
        """
        game = asdict(self)
        del game["name"]
        text = json.dumps(game, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def trick_winner(self, lead_rank: int, answer_rank: int) -> Literal[1, -1, 0]:
        """Who takes a trick, by the ranks' indices: 1 the led card, -1 the answer, 0 a spoiled (tied) trick."""
        if lead_rank == answer_rank:
            return 0
        first, last = 0, self.n_ranks - 1
        lead_is_higher = lead_rank > answer_rank
        # Circular order: between the first rank and the last it is the first that wins.
        turned = self.order == "circular" and {lead_rank, answer_rank} == {first, last}
        return 1 if lead_is_higher != turned else -1

    def to_toml(self) -> str:
        """The rule set as a rule file's text, every field spelled out; `from_toml` reads back an equal one."""
        # A JSON string, number, array or boolean of these fields is also TOML's.
        return "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in asdict(self).items())

    @classmethod
    def from_toml(cls, text: str, source: str) -> Rules:
        """Read a rule file's text; `source` (a file name) begins every message.

        Raises `RulesError` for a syntax error, an unknown or a missing key, and whatever `Rules` itself refuses.
        """
        try:
            table: dict[str, Any] = tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # besides syntax: numbers too long, arrays too deep
            raise RulesError(f"{source}: not valid TOML: {_one_line(error)}.") from error
        required = [field.name for field in fields(cls) if field.default is MISSING]
        known = [field.name for field in fields(cls)]
        for key in table:
            if key not in known:
                raise RulesError(f"{source}: unknown key {shown(key)}, known are {', '.join(known)}.")
        for key in required:
            if key not in table:
                raise RulesError(f"{source}: the key {key!r} is missing, required are {', '.join(required)}.")
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in table.items()
        }
        try:
            return cls(**values)
        except RulesError as error:
            raise RulesError(f"{source}: {error}") from error


def load_rules(path: str | os.PathLike[str]) -> Rules:
    """Read a rule file. Raises `RulesError` when it cannot be read, is no UTF-8, or is refused by `from_toml`."""
    source = shown(os.fspath(path))
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError as error:
        raise RulesError(f"{source}: there is no such rule file.") from error
    except IsADirectoryError as error:
        raise RulesError(f"{source}: this is a directory, not a rule file.") from error
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        raise RulesError(f"{source}: the rule file cannot be read ({_one_line(error)}).") from error
    if len(data) > MAX_FILE_BYTES:
        raise RulesError(f"{source}: a rule file has at most {MAX_FILE_BYTES} bytes, this one has more.")
    try:
        text = data.decode("utf-8-sig")  # some editors begin a file with a byte order mark
    except UnicodeDecodeError as error:
        raise RulesError(f"{source}: a rule file is UTF-8 text, but byte {error.start} is not.") from error
    return Rules.from_toml(text.replace("\r\n", "\n"), source)


def _presets() -> dict[str, Traversable]:
    """The rule files that come with the package, by the rule sets' names."""
    from importlib.resources import files  # costs start-up time that most users of this module can do without

    folder = files("games") / "presets"
    return {file.name.removesuffix(".toml"): file for file in folder.iterdir() if file.name.endswith(".toml")}


def preset_names() -> tuple[str, ...]:
    """Names of the rule sets that come with the package, in alphabetical order."""
    return tuple(sorted(_presets()))


def preset(name: str) -> Rules:
    """A rule set that comes with the package. Raises `RulesError` for a name that is not in `preset_names`."""
    if name not in _presets():
        raise RulesError(f"there is no rule set {shown(name)}, known are {', '.join(preset_names())}.")
    return Rules.from_toml(_presets()[name].read_text(encoding="utf-8"), f"{name}.toml")


def hand_winner(rules: Rules, results: tuple[int, ...], hand_size: int | None = None) -> int | None:
    """The side that wins the hand (0 or 1), `NOBODY` (-1), or None while it is undecided.

    `results` are the complete tricks' results in order: 1 won by side 0, -1 won by side 1, 0 spoiled. The hand is
    decided when every completion by wins, losses and ties gives the same winner; cards are never counted.
    `hand_size` is the number of tricks where it is not the rule set's, as in a one-card hand.
    Raises ValueError for anything that is no sequence of results.
    """
    size = rules.hand_size if hand_size is None else hand_size
    if len(results) > size or not all(result in (1, -1, 0) for result in results):
        raise ValueError(f"results = {shown(results)} must be at most {size} of 1, -1 and 0.")
    return _decided(results, size, {"nobody": NOBODY, "leader": LEADER, "dealer": DEALER}[rules.all_tied])


@lru_cache(maxsize=1024)
def _decided(results: tuple[int, ...], hand_size: int, all_tied: int) -> int | None:
    """`hand_winner` on plain values; at most 3 * 40 of them exist, and the referee asks all the time."""
    rests = itertools.product((1, -1, 0), repeat=hand_size - len(results))
    winners = {_winner_of_all(results + rest, all_tied) for rest in rests}
    return winners.pop() if len(winners) == 1 else None


def _winner_of_all(results: tuple[int, ...], all_tied: int) -> int:
    """The winner when every trick has been played."""
    won, lost = results.count(1), results.count(-1)
    if won != lost:  # More tricks wins.
        return LEADER if won > lost else DEALER
    for result in results:  # Equal: the winner of the first trick that was not tied.
        if result != 0:
            return LEADER if result == 1 else DEALER
    return all_tied


def shown(value: object, limit: int = 40) -> str:
    """A value for an error message: printable, on one line, at most about `limit` characters."""
    try:
        text = repr(list(value) if isinstance(value, tuple) else value)
    except (ValueError, RecursionError):  # a number of thousands of digits, lists in lists in lists
        return "(too long to show)"
    return text if len(text) <= limit else f"{text[: limit - 4]}... ({len(text)} characters)"


def _one_line(error: Exception) -> str:
    """Another library's message as part of a sentence."""
    return " ".join(str(error).split()).rstrip(".")


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not re.fullmatch("[A-Za-z0-9][A-Za-z0-9_-]{0,39}", name):
        raise RulesError(
            f"name = {shown(name)} must be a word of at most 40 letters, digits, hyphens and underscores that begins "
            "with a letter or digit."
        )


def _check_order(order: object, ranks: object) -> None:
    _check_word("order", order, ("linear", "circular"))
    if not isinstance(ranks, tuple) or not all(isinstance(rank, str) for rank in ranks):
        raise RulesError(f'ranks = {shown(ranks)} must be a list of strings, weakest first, such as ["A", "2", "3"].')
    least = 3 if order == "circular" else 1  # With two ranks each would have to beat the other.
    if not least <= len(ranks) <= MAX_RANKS:
        raise RulesError(
            f"ranks = {shown(ranks)} has {len(ranks)} ranks, but a {order} order has {least} to {MAX_RANKS}."
        )
    seen: set[str] = set()
    for rank in ranks:
        if rank.casefold() in RESERVED_WORDS:
            raise RulesError(f"ranks has {shown(rank)}, which is the word of an action and so cannot name a rank.")
        if not 1 <= len(rank) <= MAX_LABEL or not rank.isprintable() or " " in rank or "," in rank:
            raise RulesError(
                f"ranks has {shown(rank)}, but a rank is 1 to {MAX_LABEL} printable characters without spaces and "
                "commas."
            )
        if rank.casefold() in seen:
            raise RulesError(f"ranks has {shown(rank)} twice, but ranks must differ in more than case.")
        seen.add(rank.casefold())


def _check_ladder(ladder: object) -> None:
    if not isinstance(ladder, tuple) or not ladder or not all(type(stake) is int for stake in ladder):
        raise RulesError(f"ladder = {shown(ladder)} must be a list of whole numbers, such as [1, 2, 4].")
    if len(ladder) > MAX_STAKES:
        raise RulesError(f"ladder = {shown(ladder)} has {len(ladder)} stakes, but at most {MAX_STAKES} are possible.")
    rising = all(low < high for low, high in itertools.pairwise(ladder))
    if not rising or ladder[0] < 1 or ladder[-1] > MAX_STAKE:
        raise RulesError(
            f"ladder = {shown(ladder)} must rise strictly from 1 or more to at most {MAX_STAKE}, such as [1, 2, 4]."
        )


def _check_number(field: str, value: object, least: int, most: int) -> None:
    if type(value) is not int or not least <= value <= most:  # a bool is an int to isinstance, but no number here
        raise RulesError(f"{field} = {shown(value)} must be a whole number from {least} to {most}.")


def _check_word(field: str, value: object, words: tuple[str, ...]) -> None:
    if value not in words:
        raise RulesError(f"{field} = {shown(value)} must be {', '.join(words[:-1])} or {words[-1]}.")


def _check_flag(field: str, value: object) -> None:
    if type(value) is not bool:
        raise RulesError(f"{field} = {shown(value)} must be true or false.")


def _check_raise_when(when: object) -> None:
    if not isinstance(when, tuple) or not set(map(str, when)) <= {"before", "after"} or len(set(when)) < len(when):
        raise RulesError(f'raise_when = {shown(when)} must be ["before"] or ["before", "after"].')
    if "before" not in when:
        raise RulesError(f'raise_when = {shown(when)} must contain "before", for it is where every game lets raise.')
    if when == ("after", "before"):  # the same game must not have two hashes
        raise RulesError(f'raise_when = {shown(when)} must be in this order: ["before", "after"].')


def _check_redeal(rules: Rules) -> None:
    """What precedes the first card cannot be both a new deal and a decision about this one."""
    for field in ("decision_before_target", "one_card"):
        if rules.redeal and getattr(rules, field):
            raise RulesError(f"redeal = true cannot go together with {field} = true.")


def _check_deck(rules: Rules) -> None:
    """The cards set aside in a redeal are not dealt again, so it needs four hands."""
    hands, why = (4, "hands and, because redeal = true, two more") if rules.redeal else (2, "hands")
    if rules.n_cards < hands * rules.hand_size:
        raise RulesError(
            f"hand_size = {rules.hand_size} needs a deck of at least {hands * rules.hand_size} cards for two {why}, "
            f"but {rules.n_ranks} ranks with copies = {rules.copies} make {rules.n_cards}."
        )
