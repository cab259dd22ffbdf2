"""Why: what kind of choice an advice is, and one sentence about it.

`KINDS` has the conditions, which are tried in its order.  What they look at: the action that the answer plays most;
its probability and those of the others; `win`, the chance to win the hand if nobody refuses any more; and, for a raise,
what it is worth if it is accepted, (EV - refusal * what a refusal brings) / (1 - refusal).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from games.rules import ACCEPT, AGREE, DECLINE, KEEP, PASS, PLAY, RAISE, REFUSE, REMAINDER
from solver.cfr import PROBABILITY
from solver.i18n import DEFAULT, Strings, strings

MIXED = 0.05  # an action that is played at least so often belongs to a mix
STRONG = 0.7  # chance to win from which a hand is strong
EVEN = 0.5

KINDS = {
    "as before the card": "answers a raise that came after the card, as it would have answered it before the card",
    "forced": "there is only one legal action",
    "mix": f"at least two actions are played with probability {MIXED} or more",
    "value raise": "raises, and is worth at least as much when accepted as the best card without a raise",
    "bluff": "raises, and is worth less when accepted than the best card without a raise",
    "remainder": "calls the remainder: a raise for the match",
    "value call": f"accepts, and wins with a chance of {EVEN} or more",
    "bluff catcher": f"accepts, and wins with a chance under {EVEN}: it beats mostly bluffs",
    "refusal": "refuses",
    "pass": "has played its card and does not raise after it",
    "no new cards": "keeps its cards: proposes no new ones, or declines them",
    "plays for the top stake": "one point before the target: plays rather than give the other side a point",
    "gives a point": "one point before the target: gives the other side a point rather than play",
    "trap": f"could raise but plays a card, and wins with a chance of {STRONG} or more",
    "card": "plays a card",
}


@dataclass(frozen=True, slots=True)
class Facts:
    """What an explanation is made of; probabilities, ev and win by action, legal ones only; win without refusing.

    refusal: how often a raise would be refused, None where there is none; refused: what a refusal brings; unit: of the
    EVs; late: whether it answers a raise after the card; win_chance: of what is played.
    """

    probabilities: Mapping[str, float]
    ev: Mapping[str, float]
    win: Mapping[str, float]
    refusal: float | None
    refused: float
    unit: str
    late: bool = False

    @property
    def top(self) -> str:
        """The action that is played most."""
        return max(self.probabilities, key=lambda action: (self.probabilities[action], self.ev.get(action, -math.inf)))

    @property
    def mixed(self) -> list[str]:
        """The actions of a mix, the most frequent first."""
        often = [action for action, share in self.probabilities.items() if share >= MIXED]
        return sorted(often, key=lambda action: -self.probabilities[action])

    @property
    def win_chance(self) -> float | None:
        """The chance to win with what is played, if nobody refuses any more; None if nothing goes on."""
        if not self.win:
            return None
        shares = {action: self.probabilities[action] for action in self.win}
        total = sum(shares.values())
        if total <= 0:
            return max(self.win.values())
        return sum(share * self.win[action] for action, share in shares.items()) / total

    @property
    def called(self) -> float | None:
        """What a raise is worth if it is accepted, None if it never is or is not possible."""
        if self.refusal is None or self.refusal > 1 - 1e-9:
            return None
        return (self.ev[RAISE] - self.refusal * self.refused) / (1 - self.refusal)

    @property
    def best_card(self) -> float:
        """What the best action without a raise is worth."""
        return max(value for action, value in self.ev.items() if action not in (RAISE, REMAINDER))

    @property
    def raise_kind(self) -> str:
        """Whether a raise is for value or a bluff; if it is never accepted, by who would win."""
        if self.called is None:
            return "value raise" if self.win[RAISE] >= EVEN else "bluff"
        return "value raise" if self.called >= self.best_card - 1e-12 else "bluff"


def kind(facts: Facts) -> str:
    """One of `KINDS`."""
    if facts.late:
        return "as before the card"
    if len(facts.probabilities) == 1:
        return "forced"
    if len(facts.mixed) > 1:
        return "mix"
    if facts.top == RAISE:
        return facts.raise_kind
    if facts.top == ACCEPT:
        return "value call" if facts.win[ACCEPT] >= EVEN else "bluff catcher"
    if facts.top == DECLINE and AGREE not in facts.probabilities:
        return "gives a point"
    named = {REMAINDER: "remainder", REFUSE: "refusal", PASS: "pass", KEEP: "no new cards", DECLINE: "no new cards"}
    named[PLAY] = "plays for the top stake"
    if facts.top in named:
        return named[facts.top]
    return "trap" if facts.refusal is not None and (facts.win_chance or 0.0) >= STRONG else "card"


def sentence(facts: Facts, say: Strings | None = None) -> str:
    """One sentence in plain words, by default in English."""
    say = strings(DEFAULT) if say is None else say
    what, join = kind(facts), say("word.and")
    others = [value for action, value in facts.ev.items() if action != facts.top]
    chance = facts.win_chance
    mixed = [facts.ev[action] for action in facts.mixed]
    values: dict[str, Any] = {
        "top": say.action(facts.top),
        "actions": join.join(map(say.action, facts.mixed)),
        "apart": _amount(facts, max(mixed, default=0.0) - min(mixed, default=0.0), say),
        "win": "" if chance is None else say.share(chance),
        "refusal": "" if facts.refusal is None else say.share(facts.refusal),
        "gain": _amount(facts, facts.ev[facts.top] - max(others, default=0.0), say),
        "shares": join.join(f"{say.action(each)} {say.share(share)}" for each, share in facts.probabilities.items()),
        "note": "",
    }
    if what == "mix":
        values["word"] = say("word.both" if len(facts.mixed) == 2 else "word.all")
        if RAISE in facts.mixed:
            values["note"] = say("word.note", kind=say(say.key("kind", facts.raise_kind)))
    return say(say.key("sentence", what), **values)


def _amount(facts: Facts, value: float, say: Strings) -> str:
    if facts.unit == PROBABILITY:
        return say("unit.match", value=say.decimal(f"{100 * value:.2g}"))
    return say("unit.points", value=say.decimal(f"{value:.1g}" if value < 0.01 else f"{value:.2f}"))
