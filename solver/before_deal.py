"""What is chosen before the deal: the leader cuts or taps, and after a tap the dealer deals three cards each or one.

Nobody has seen a card by then, so the whole is made from its parts exactly: the hand after cutting, the same hand after
a tap, which is another public history and may be played otherwise, and the one-card hand.

A cautious player takes what guarantees him most.  That is backward induction with the parts' guarantees in place of
their values, so the whole is no more exploitable than its parts; and it shows why the option changes no value: the
dealer can always answer a tap with the hand that the leader could have had by cutting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from games.rules import Rules
from solver.best_response import Evaluation
from solver.equity import Score, Views, Worth, fixed_point, pair_of, scores
from solver.match import Hand
from solver.strategy import Strategy


class Choices(NamedTuple):
    """Probabilities: that the leader taps, and that the dealer deals one card after a tap."""

    tap: float
    one: float


UNIFORM = Choices(0.5, 0.5)


class Parts(NamedTuple):
    """Strategies of the hand after cutting, of the same hand after a tap, and of the one-card hand.

    choices: None for the cautious ones.
    """

    cut: Strategy
    three: Strategy
    one: Strategy
    choices: Choices | None


def after_cut(rules: Rules) -> Rules:
    """The rules of the hand once the leader has cut, or the dealer deals all cards."""
    return replace(rules, one_card=False)


def after_one(rules: Rules) -> Rules:
    """The rules of the one-card hand."""
    return replace(rules, one_card=False, hand_size=1)


def may_tap(rules: Rules, score: Score | None) -> bool:
    """Whether there is a choice before the deal: never when a side is one point before the target."""
    return rules.one_card and (score is None or rules.target - 1 not in score)


def cautious(cut: Worth, three: Worth, one: Worth) -> Choices:
    """Each side takes what the other's best response gets least from; the same play rather than another."""
    deal_one = one.leader < three.leader
    tap = max(three.dealer, one.dealer) < cut.dealer
    return Choices(float(tap), float(deal_one))


def worth_before_deal(choices: Choices | None, cut: Worth, three: Worth, one: Worth) -> Worth:
    """What the match is worth before the deal, from what it is worth after each choice; for None see `cautious`."""
    tap, deal_one = cautious(cut, three, one) if choices is None else choices
    tapped = (1 - deal_one) * three.value + deal_one * one.value
    answered = (1 - deal_one) * three.leader + deal_one * one.leader
    return Worth(
        (1 - tap) * cut.value + tap * tapped,
        max(cut.leader, answered),
        (1 - tap) * cut.dealer + tap * max(three.dealer, one.dealer),
    )


def evaluation_before_deal(choices: Choices | None, cut: Evaluation, three: Evaluation, one: Evaluation) -> Evaluation:
    """The same for one hand, in points or any other unit.  Raises ValueError if the parts' units differ."""
    parts = cut, three, one
    if len({(part.unit, part.total) for part in parts}) > 1:
        raise ValueError(f"the parts are counted in {', '.join(part.unit for part in parts)}, but must be in one unit")
    whole = worth_before_deal(choices, *(Worth(part.value, *part.best_response) for part in parts))
    largest = max(abs(x) for part in parts for x in (part.value, *part.best_response))
    rounding = max(part.rounding for part in parts) + 8 * 2.0**-53 * largest  # two sums of two products
    return Evaluation(whole.value, (whole.leader, whole.dealer), rounding, cut.unit, cut.total)


def evaluate_match(
    rules: Rules, hand: Callable[[Score], Strategy], tapped: Callable[[Score], Parts], threads: int = 1
) -> dict[Score, Worth]:
    """Exact values and best responses of a whole match with choices before the deal, from strategies of its hands.

    hand: at the scores where nobody may tap; tapped: at the others, in trees with one ladder.
    """
    known: dict[Score, Worth] = {}
    for score in scores(rules):
        if score not in known:
            games = {
                each: _Tapped(tapped(each), threads) if may_tap(rules, each) else _Single(hand(each), threads)
                for each in pair_of(score)
            }
            known |= _pair_worth(rules, games, known)
    return known


class _Single:
    """One strategy of one hand."""

    def __init__(self, strategy: Strategy, threads: int) -> None:
        self._play = strategy.probabilities
        self._hand = Hand(strategy.tree, threads)
        self.ladder = self._hand.ladder

    def worth(self, views: Views) -> Worth:
        return self._hand.worth(self._play, views)


class _Tapped:
    """The hands that can follow the choices before the deal."""

    def __init__(self, parts: Parts, threads: int) -> None:
        self._choices = parts.choices
        self._parts = [_Single(each, threads) for each in (parts.cut, parts.three, parts.one)]
        self.ladder = self._parts[0].ladder

    def worth(self, views: Views) -> Worth:
        return worth_before_deal(self._choices, *(part.worth(views) for part in self._parts))


def _pair_worth(
    rules: Rules, games: Mapping[Score, _Single | _Tapped], known: Mapping[Score, Worth]
) -> dict[Score, Worth]:
    return fixed_point(
        rules,
        tuple(games),
        known,
        lambda score, views: games[score].worth(views),
        {score: game.ladder for score, game in games.items()},
    )
