"""What of a rule set matters to a solver: choices that provably change no value may be left out.

- `fold`: playing on and refusing every raise is at least as good, as long as more points are never worse.  (Not if
  refusing a remainder loses the match: then points are worth next to nothing, and folding wins the next lead.)
- `redeal`, `one_card`: one side proposes, the other can decline, and either can have the game without them.
- raising after the card: the opponent can answer "card, then raise" as he answers "raise, accepted, card".

A hand valued in points has no remainder and no decision before the target besides: both need a score.
"""

from __future__ import annotations

from dataclasses import replace

from games.rules import Rules

SAME_VALUE = "it changes no value"
NEEDS_SCORE = "it needs a score"


def essential(rules: Rules, in_match: bool = False) -> Rules:
    """The rules of a hand without what is left out; itself if that is nothing."""
    remainder = rules.remainder and in_match
    return replace(
        rules,
        raise_when=("before",),
        fold=_fold_matters(rules, in_match),
        redeal=False,
        one_card=False,
        remainder=remainder,
        remainder_refused=rules.remainder_refused if remainder else "stake",
        decision_before_target=rules.decision_before_target and in_match,
    )


def _fold_matters(rules: Rules, in_match: bool) -> bool:
    return rules.fold and in_match and rules.remainder and rules.remainder_refused == "match"


def left_out(rules: Rules, in_match: bool = False) -> dict[str, str]:
    """What `essential` leaves out of a rule set, and why that is right."""
    found = {}
    if "after" in rules.raise_when:
        found["raising after the card"] = SAME_VALUE
    for field, name in (("fold", "fold"), ("redeal", "redeal"), ("one_card", "the one-card hand")):
        if getattr(rules, field):
            found[name] = SAME_VALUE
    if not in_match:
        for field, name in (
            ("remainder", "the remainder"),
            ("decision_before_target", "the decision before the target"),
        ):
            if getattr(rules, field):
                found[name] = NEEDS_SCORE
    return found
