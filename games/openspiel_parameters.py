"""The parameters of `games.openspiel`, which documents them, to and from a rule set and payoffs.

OpenSpiel's parameters are strings, integers and floats, and it guesses which from the text in a game string. So a list
is a string of its parts separated by spaces, in brackets where it might be taken for something else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, replace
from typing import Any

from games.rules import Rules, RulesError, preset, preset_names, shown

DEFAULTS: dict[str, Any] = {
    "variant": "le-truc",
    **{"ranks": "", "order": "", "copies": 0, "hand_size": 0, "ladder": "", "all_tied": ""},
    **{"win0": "", "win1": "", "tie": 0.0},
}
"""Every parameter and what it is when not given."""

LISTS = ("ranks", "ladder", "win0", "win1")
MARKS = "()[]="
"""Characters that mean something in a game string or in a list; a comma does too, but is in no rank."""


def given_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Those that are not at their default, lists so written that a game string with them can be loaded."""
    given = {key: value for key, value in parameters.items() if value != DEFAULTS[key]}
    return given | {key: _joined(_parts(given[key])) for key in LISTS if key in given}


def read_rules(given: Mapping[str, Any]) -> Rules:
    """The rule set that the parameters describe. Raises `RulesError`."""
    own = {key: given[key] for key in ("order", "copies", "hand_size", "all_tied") if key in given}
    if "ranks" in given:
        own["ranks"] = tuple(_parts(given["ranks"]))
    if "ladder" in given:
        own["ladder"] = tuple(_numbers("ladder", given["ladder"], int))
    rules = preset(given.get("variant", DEFAULTS["variant"]))
    rules = replace(rules, name="custom", **own) if own else rules
    _check_playable(rules)
    return rules


def read_payoffs(given: Mapping[str, Any], rules: Rules) -> tuple[list[float], list[float], float]:
    """The leader's payoffs: win0 and win1 by level of the ladder, and tie. Raises `RulesError`."""
    tie = given.get("tie", DEFAULTS["tie"])
    payoffs = {"win0": [float(stake) for stake in rules.ladder], "win1": [-float(stake) for stake in rules.ladder]}
    payoffs |= {key: _numbers(key, given[key], float) for key in payoffs if key in given}
    for key, numbers in {**payoffs, "tie": [tie]}.items():
        if not all(map(math.isfinite, numbers)):
            raise RulesError(f"{key} = {shown(given[key])} must be finite.")
        if key in payoffs and len(numbers) != len(rules.ladder):
            raise RulesError(f"{key} = {shown(given[key])} must have {len(rules.ladder)} numbers, one for each stake.")
    # OpenSpiel writes `tie` with 15 decimals: the game must be the same when that is read back.
    return payoffs["win0"], payoffs["win1"], float(f"{tie:.15f}")


def write_parameters(
    rules: Rules, win0: Sequence[float] | None, win1: Sequence[float] | None, tie: float
) -> dict[str, Any]:
    """The parameters for a rule set and payoffs, None being points. Raises `RulesError`."""
    _check_playable(rules)
    if rules.name in preset_names() and preset(rules.name) == rules:
        parameters: dict[str, Any] = {"variant": rules.name}
    else:
        parameters = {key: getattr(rules, key) for key in ("order", "copies", "hand_size", "all_tied")}
        parameters |= {"ranks": _joined(rules.ranks), "ladder": _joined(rules.ladder)}
    for key, payoffs in (("win0", win0), ("win1", win1)):
        if payoffs is not None:
            parameters[key] = _joined([float(payoff) for payoff in payoffs])
    return parameters | {"tie": float(tie)}


def _check_playable(rules: Rules) -> None:
    """Refuse rule sets with more than le-truc's rules, and ranks that would break a game string."""
    for field in fields(rules):
        value = getattr(rules, field.name)
        if field.default is not MISSING and field.name != "target" and value != field.default:
            raise RulesError(f"the OpenSpiel game has no {field.name} = {shown(value)}, only {shown(field.default)}.")
    for rank in rules.ranks:
        if set(rank) & set(MARKS):
            raise RulesError(f"ranks has {shown(rank)}, but {' '.join(MARKS)} would break OpenSpiel's game strings.")


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
