"""A match as a stochastic game: what a hand's end is worth at a score, and values that are fixed points.

A score is (leader's points, dealer's points) of the hand to be played, the leader being who does not deal.  After the
hand the deal passes: who led deals, so a hand that he wins at stake s leads from (a, b) to (b, a + s), where he is the
dealer.  A hand that nobody wins leads to (b, a): the two scores of a pair depend on each other (a recursive game,
Everett 1957), and on no other score with as few points.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from games.rules import Rules
from solver.cfr import PROBABILITY, Payoffs
from solver.essential import essential
from solver.tree import Tree, public_tree

Score = tuple[int, int]


class Worth(NamedTuple):
    """The match from a score on, as winning probabilities, with one strategy for each side.

    value: the leader's, the strategies against each other; leader, dealer: what each gets by best responding to the
    other's strategy in this hand and in all that follow.
    """

    value: float
    leader: float
    dealer: float

    @property
    def lower(self) -> float:
        """What the leader's strategy guarantees him."""
        return 1.0 - self.dealer

    @property
    def upper(self) -> float:
        """What the dealer's strategy lets the leader have at most."""
        return self.leader

    @property
    def exploitability(self) -> float:
        """Half of what both could gain."""
        return (self.leader + self.dealer - 1.0) / 2


def scores(rules: Rules) -> list[Score]:
    """All scores of a match, those with the most points first."""
    every = [(a, b) for a in range(rules.target) for b in range(rules.target)]
    return sorted(every, key=lambda score: (-sum(score), score))


def pair_of(score: Score) -> tuple[Score, ...]:
    """The scores that a spoiled hand leads from one to the other, the smaller first."""
    a, b = sorted(score)
    return ((a, b),) if a == b else ((a, b), (b, a))


def decider(rules: Rules, score: Score) -> int | None:
    """The side that first decides whether the hand at a score is played: the only one a point before the target."""
    before = [side for side in range(2) if score[side] == rules.target - 1]
    return before[0] if rules.decision_before_target and len(before) == 1 else None


def score_rules(rules: Rules, score: Score) -> Rules:
    """The rules of the hand at a score: with a decision before the target, no raises where a side is there."""
    if not rules.decision_before_target or rules.target - 1 not in score:
        return replace(rules, decision_before_target=False)
    deciding = decider(rules, score) is not None
    return replace(rules, ladder=rules.ladder[-1:], decision_before_target=deciding, one_card=False)


def whole_rules(rules: Rules, score: Score) -> Rules:
    """The rules of a hand at a score, without what changes no value but with all stakes."""
    return score_rules(essential(rules, in_match=True), score)


def hand_rules(rules: Rules, score: Score) -> Rules:
    """The rules of a hand at a score, without what changes no value (see `solver.essential`), stakes among them.

    From the first stake on that wins the match for either side, all are equal in payoff: a raise beyond it is to be
    accepted (refusing loses the match), and then changes nothing.  So leaving such raises out is exact.
    """
    game = whole_rules(rules, score)
    needed = rules.target - min(score)
    enough = next((n for n, stake in enumerate(game.ladder, 1) if stake >= needed), len(game.ladder))
    return replace(game, ladder=game.ladder[:enough])


def match_from(rules: Rules, score: Score) -> tuple[int, int] | None:
    """By side, the first level of `hand_rules` at which winning the hand wins the match; its length if there is none.

    With it a tree leaves out offers that change no value, as long as more points are never worse, because the answerer
    has an answer that gives no more than another action would have brought:

    - A second raise of whoever wins the match with the stake as it is.  He wins no more by it and may lose more: it is
      accepted, and the play goes on as if nothing had been said.
    - A raise that is not for the match while the other side wins the match with the stake as it is: so he answers it as
      the remainder, and whoever called it would have won more by calling that.
    - The remainder where the next stake wins the match for either side, which is the same.

    None without a remainder, and where refusing one loses the match: then nothing is left out.
    """
    if not rules.remainder or rules.remainder_refused == "match":
        return None
    ladder = hand_rules(rules, score).ladder
    first = [next((n for n, s in enumerate(ladder) if have + s >= rules.target), len(ladder)) for have in score]
    return first[0], first[1]


def hand_tree(rules: Rules, score: Score) -> Tree:
    """The tree of `hand_rules`, and of `match_from`.  Raises TreeTooLargeError."""
    return public_tree(hand_rules(rules, score), decider(rules, score), match_from(rules, score))


def successors(rules: Rules, score: Score) -> set[Score]:
    """The scores with more points that a hand at a score can lead to."""
    a, b = score
    stakes = rules.ladder if decider(rules, score) is None else (1, *rules.ladder)
    after = {(b, a + s) for s in stakes} | {(b + s, a) for s in stakes}
    return {each for each in after if max(each) < rules.target}


def payoffs(rules: Rules, ladder: tuple[int, ...], score: Score, dealing: Callable[[Score], float]) -> Payoffs:
    """A hand's payoffs to the leader; `dealing` is the winning probability of him who deals at a score: the leader
    deals the next hand."""
    a, b = score

    def levels(stakes: tuple[int, ...]) -> tuple[list[float], list[float]]:
        return (
            [1.0 if a + s >= rules.target else dealing((b, a + s)) for s in stakes],
            [0.0 if b + s >= rules.target else dealing((b + s, a)) for s in stakes],
        )

    win0, win1 = levels(ladder)
    if rules.remainder:  # one more level, the match
        win0.append(1.0)
        win1.append(0.0)
    if (side := decider(rules, score)) is not None:  # and one more, a point for the other side
        worth = levels((1,))[1 - side]
        win0 += worth
        win1 += worth
    return Payoffs(tuple(win0), tuple(win1), dealing((b, a)), PROBABILITY)


@dataclass(frozen=True, slots=True)
class Views:
    """The payoffs of a hand for the strategies against each other, for the leader's and for the dealer's best
    response: a responder goes on best responding in all hands that follow."""

    value: Payoffs
    leader: Payoffs
    dealer: Payoffs

    @staticmethod
    def of(rules: Rules, ladder: tuple[int, ...], score: Score, known: Mapping[Score, Worth]) -> Views:
        """From what the scores that can follow are worth, the other one of the pair included."""
        return Views(
            payoffs(rules, ladder, score, lambda after: 1.0 - known[after].value),
            payoffs(rules, ladder, score, lambda after: known[after].dealer),
            payoffs(rules, ladder, score, lambda after: 1.0 - known[after].leader),
        )


Evaluate = Callable[[Score, Views], Worth]


def fixed_point(
    rules: Rules, pair: tuple[Score, ...], known: Mapping[Score, Worth], evaluate: Evaluate,
    ladders: Mapping[Score, tuple[int, ...]], guess: Mapping[Score, Worth] | None = None, accuracy: float = 1e-15,
) -> dict[Score, Worth]:  # fmt: skip
    """What the scores of a pair are worth, given the scores that follow (`known`) and an exact evaluation of one hand.

    Everything is monotone and a contraction in what a spoiled hand leads to (by the chance of one), so iterating from
    anywhere converges; it stops when nothing changes by more than `accuracy`.  Raises ArithmeticError if it does not.
    """
    found = {score: Worth(0.5, 0.5, 0.5) for score in pair} | dict(guess or {})
    for _ in range(10_000):
        change = 0.0
        for score in pair:
            worth = evaluate(score, Views.of(rules, ladders[score], score, {**known, **found}))
            change = max(change, *(abs(x - y) for x, y in zip(worth, found[score], strict=True)))
            found[score] = worth
        if change <= accuracy:
            return found
    raise ArithmeticError(f"the value of a spoiled hand at {pair[0]} does not settle")
