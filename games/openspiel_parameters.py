"""The parameters of `games.openspiel`, which documents them, to and from a rule set and payoffs.

OpenSpiel's parameters are strings, integers and floats, and it guesses which from the text in a game string. So a list
is a string of its parts separated by spaces, in brackets where it might be taken for something else, and a rule that a
rule file has or has not is `on` or `off`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any

from games.rules import Rules, RulesError, preset, preset_names, shown

DEFAULTS: dict[str, Any] = {
    "variant": "le-truc",
    **{"ranks": "", "order": "", "copies": 0, "hand_size": 0, "ladder": "", "all_tied": ""},
    **{"raise_when": "", "remainder": "", "remainder_refused": "", "fold": "", "redeal": ""},
    **{"decision_before_target": "", "one_card": ""},
    **{"win0": "", "win1": "", "tie": 0.0, "match": "", "declined": "", "before_target": "none"},
}
"""Every parameter and what it is when not given."""

LISTS = ("ranks", "ladder", "raise_when", "win0", "win1", "match", "declined")
FLAGS = ("remainder", "fold", "redeal", "decision_before_target", "one_card")
SWITCH = {"on": True, "off": False}
STANDINGS = ("none", "leader", "dealer", "both")
MARKS = "()[]="
"""Characters that mean something in a game string or in a list; a comma does too, but is in no rank."""


@dataclass(frozen=True)
class Payoffs:
    """What a hand's ends are worth to the leader, and where in a match it is played."""

    win0: list[float]
    """When he scores, by level of the ladder."""
    win1: list[float]
    """When the dealer does."""
    tie: float
    match: list[float] | None
    """When he wins the match, and when the dealer does; None: nobody can call the remainder."""
    declined: float
    """When the side one point before the target declines."""
    before_target: str
    """Which sides are there: one of `STANDINGS`."""


def given_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Those that are not at their default, lists so written that a game string with them can be loaded."""
    given = {key: value for key, value in parameters.items() if value != DEFAULTS[key]}
    return given | {key: _joined(_parts(given[key])) for key in LISTS if key in given}


def read_rules(given: Mapping[str, Any]) -> Rules:
    """The rule set that the parameters describe. Raises `RulesError`."""
    plain = ("order", "copies", "hand_size", "all_tied", "remainder_refused")
    own = {key: given[key] for key in plain if key in given}
    own |= {key: tuple(_parts(given[key])) for key in ("ranks", "raise_when") if key in given}
    if "ladder" in given:
        own["ladder"] = tuple(_numbers("ladder", given["ladder"], int))
    for key in FLAGS:
        if key in given:
            _check_word(key, given[key], tuple(SWITCH))
            own[key] = SWITCH[given[key]]
    rules = preset(given.get("variant", DEFAULTS["variant"]))
    rules = replace(rules, name="custom", **own) if own else rules
    _check_ranks(rules)
    return rules


def read_payoffs(given: Mapping[str, Any], rules: Rules) -> Payoffs:
    """The payoffs, points where they are not given, and where the match stands. Raises `RulesError`."""
    tie, before_target = (given.get(key, DEFAULTS[key]) for key in ("tie", "before_target"))
    _check_word("before_target", before_target, STANDINGS)
    points = [float(stake) for stake in rules.ladder]
    payoffs = {"win0": points, "win1": [-stake for stake in points], "match": [0.0, 0.0]}
    payoffs["declined"] = [1.0 if before_target == "dealer" else -1.0]  # in points the other side scores one
    meaning = {"match": "for the match won and lost", "declined": "for the hand declined"}
    lengths = {key: len(numbers) for key, numbers in payoffs.items()}
    payoffs |= {key: _numbers(key, given[key], float) for key in payoffs if key in given}
    for key, numbers in {**payoffs, "tie": [tie]}.items():
        if not all(map(math.isfinite, numbers)):
            raise RulesError(f"{key} = {shown(given[key])} must be finite.")
        if key in payoffs and len(numbers) != lengths[key]:
            many, what = f"{lengths[key]} number{'s' * (lengths[key] > 1)}", meaning.get(key, "one for each stake")
            raise RulesError(f"{key} = {shown(given[key])} must have {many}, {what}.")
    decided = rules.decision_before_target and before_target in ("leader", "dealer")
    if decided and "declined" not in given and {"win0", "win1", "tie"} & given.keys():
        raise RulesError(f"before_target = {shown(before_target)} with payoffs needs the one for the hand declined.")
    return Payoffs(
        payoffs["win0"],
        payoffs["win1"],
        float(f"{tie:.15f}"),  # OpenSpiel writes `tie` with 15 decimals, and the game must be that of its string
        payoffs["match"] if "match" in given else None,
        payoffs["declined"][0],
        before_target,
    )


def write_parameters(rules: Rules, tie: float, before_target: str, **lists: Sequence[float] | None) -> dict[str, Any]:
    """The parameters for a rule set and payoffs, None being not given. Raises `RulesError`."""
    _check_ranks(rules)
    if rules.name in preset_names() and preset(rules.name) == rules:
        parameters: dict[str, Any] = {"variant": rules.name}
    else:
        parameters = {field.name: getattr(rules, field.name) for field in fields(rules) if _written(rules, field)}
        for key, value in parameters.items():
            if isinstance(value, tuple):
                parameters[key] = _joined(value)
            elif isinstance(value, bool):
                parameters[key] = "on" if value else "off"
    for key, payoffs in lists.items():
        if payoffs is not None:
            parameters[key] = _joined([float(payoff) for payoff in payoffs])
    return parameters | {"tie": float(tie), "before_target": before_target}


def _written(rules: Rules, field: Any) -> bool:
    """Whether a rule set's parameters need a field: le-truc has the default of whatever has one."""
    if field.name in ("name", "target"):
        return False
    return field.default is MISSING or getattr(rules, field.name) != field.default


def _check_ranks(rules: Rules) -> None:
    """Refuse ranks that would break a game string."""
    for rank in rules.ranks:
        if set(rank) & set(MARKS):
            raise RulesError(f"ranks has {shown(rank)}, but {' '.join(MARKS)} would break OpenSpiel's game strings.")


def _check_word(key: str, word: str, words: Sequence[str]) -> None:
    if word not in words:
        raise RulesError(f"{key} = {shown(word)} must be {', '.join(words[:-1])} or {words[-1]}.")


def _numbers(key: str, text: str, kind: type[int] | type[float]) -> list[Any]:
    """A list parameter's numbers."""
    try:
        return [kind(part) for part in _parts(text)]
    except ValueError as error:
        what = "whole numbers" if kind is int else "numbers"
        raise RulesError(f"{key} = {shown(text)} must be {what} with spaces between them.") from error


def _parts(text: str) -> list[str]:
    """A list parameter's parts."""
    return text.strip().removeprefix("[").removesuffix("]").split()


def _joined(parts: Sequence[object]) -> str:
    """Parts as a list parameter; a single one needs the brackets."""
    text = " ".join(map(str, parts))
    return text if len(parts) > 1 else f"[{text}]"
