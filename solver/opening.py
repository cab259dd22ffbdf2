"""The leader's first decision with every hand: raise or not, and which card."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from games.cards import combinations
from games.notation import format_hand
from games.rules import ACCEPT, RAISE
from solver.strategy import Decision, Strategy


@dataclass(frozen=True, slots=True)
class Opening:
    """One hand's first decision.

    cards: rank indices, ascending; weight: in how many card combinations; probabilities: of the first decision's
    actions; after_raise: of the cards once a raise has been accepted, None in a game without raises.
    """

    cards: tuple[int, ...]
    hand: str
    weight: int
    probabilities: dict[str, float]
    after_raise: dict[str, float] | None

    @property
    def raises(self) -> float:
        """Probability of a raise."""
        return self.probabilities.get(RAISE, 0.0)

    def json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "hand": self.hand,
            "weight": self.weight,
            "probabilities": self.probabilities,
            "after_raise": self.after_raise,
        }


def openings(strategy: Strategy) -> list[Opening]:
    """Every hand's opening, in the order of `games.cards.hands`."""
    rules = strategy.tree.rules
    raising = len(rules.ladder) > 1
    first = strategy.at(())
    after = strategy.at((RAISE, ACCEPT)) if raising else None
    return [
        Opening(
            tuple(map(int, first.holdings[h])),
            format_hand(rules, map(int, first.holdings[h])),
            int(weight),
            _probabilities(first, h),
            None if after is None else _probabilities(after, h),
        )
        for h, weight in enumerate(combinations(rules))
    ]


def _probabilities(decision: Decision, h: int) -> dict[str, float]:
    """A holding's probabilities of its legal actions."""
    pairs = zip(decision.actions, decision.legal[h], decision.probabilities[h].tolist(), strict=True)
    return {action: share for action, legal, share in pairs if legal}


def raise_share(found: list[Opening]) -> float:
    """How often the leader raises first, over all deals."""
    return sum(each.weight * each.raises for each in found) / sum(each.weight for each in found)
