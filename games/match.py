"""The score of a match: who has how many points, who deals, who has won.

Points belong to *persons* 0 and 1, who take turns to deal; a hand's sides (0 the leader's, 1 the dealer's) therefore
change persons every hand. Person 0 deals first if the lot says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from games.rules import LEADER, NOBODY, Rules
from games.state import State


class MatchError(ValueError):
    """Something a match cannot do; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Match:
    """The score before a hand, or at the match's end. Begin with `Match(rules, dealer)`, go on with `after_hand`."""

    rules: Rules
    dealer: int
    """The person who deals this hand."""
    points: tuple[int, int] = (0, 0)
    """Each person's points, at most the target."""
    hands_played: int = 0

    def __post_init__(self) -> None:
        """Refuse a dealer or points that no match has."""
        if self.dealer not in (0, 1):
            raise MatchError(f"dealer = {self.dealer!r} must be 0 or 1.")
        target = self.rules.target
        if not all(0 <= points <= target for points in self.points) or min(self.points) == target:
            raise MatchError(f"points = {self.points!r} must be from 0 to {target}, and only one can have reached it.")

    @property
    def leader(self) -> int:
        """The person who leads this hand: the one who does not deal."""
        return 1 - self.dealer

    @property
    def score(self) -> tuple[int, int]:
        """The score as it is always written, in points: (leader's, dealer's) of this hand."""
        return self.points[self.leader], self.points[self.dealer]

    @property
    def winner(self) -> int | None:
        """The person who reached the target, None while the match goes on."""
        return next((person for person in (0, 1) if self.points[person] >= self.rules.target), None)

    @property
    def is_over(self) -> bool:
        """Whether somebody has reached the target."""
        return self.winner is not None

    def after_hand(self, hand: State) -> Match:
        """The score after a hand that is over: its winner has scored its stake, and the other person deals.

        A hand that decided the match, or was declined before the target, says so by its stake. Raises `MatchError` when
        the match is over, or the hand is not, or is one of another game or of another score. A hand without a score
        will do where the rules do not ask for one.
        """
        if self.is_over:
            raise MatchError("no hand can be played after the match is over.")
        if hand.winner is None:
            raise MatchError("a hand has no points before it is over.")
        if hand.rules.hash != self.rules.hash:
            raise MatchError("the hand was played by other rules than the match's.")
        if hand.score != self.score and (hand.score is not None or self.rules.needs_score):
            raise MatchError(f"the hand was played at the score {hand.score!r}, but the match is at {self.score!r}.")
        # The deal alternates after every hand, a spoiled one included.
        after = replace(self, dealer=self.leader, hands_played=self.hands_played + 1)
        if hand.winner == NOBODY:
            return after
        person = self.leader if hand.winner == LEADER else self.dealer
        points = list(self.points)
        # First to the target wins; the surplus counts nothing.
        points[person] = min(points[person] + hand.stake, self.rules.target)
        return replace(after, points=(points[0], points[1]))
