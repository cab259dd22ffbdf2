"""The actions of `games.openspiel`, which documents their numbers, and the phases in which they are chosen."""

from __future__ import annotations

from games.rules import Rules

PLAYERS = ("leader", "dealer")
RAISE, ACCEPT, REFUSE, FIRST_RANK = range(4)
WORDS = ("raise", "accept", "refuse")
TURN, ANSWER, CARD, AFTER = "turn", "answer", "card", "after"
"""Phases: raise or play a card; accept or refuse; only play, after an accepted raise; raise or not after the card."""
PROPOSE, AGREE, TARGET, CUT, THREE = "propose", "agree", "target", "cut", "three"
"""Phases of the opening, called by their first action but for the decision before the target."""
DEAL, OVER = "deal", "over"
"""Chance deals; the end."""


class Actions:
    """The actions and phases of a rule set.

    They depend on nothing else, so all scores of a match have the same numbers; `remainder` says whether it can be
    called at this one.
    """

    def __init__(self, rules: Rules, remainder: bool) -> None:
        """Give each action its number."""
        after = "after" in rules.raise_when
        others = ((rules.remainder, "remainder"), (rules.fold, "fold"), (after, "pass"))
        self.words = [*WORDS, *rules.ranks, *(word for there, word in others if there)]
        """By number."""
        self.phases = [TURN, ANSWER, CARD, *([AFTER] if after else [])]
        """Those of the players."""
        self.choices = {ANSWER: [ACCEPT, REFUSE], OVER: list[int]()}
        """By phase, where they do not depend on the cards held."""
        self.opening: list[int] = []
        """All actions that come before raises and cards."""
        for there, phase, words in (
            (rules.redeal, PROPOSE, ("propose", "keep")),
            (rules.redeal, AGREE, ("agree", "decline")),
            (rules.decision_before_target, TARGET, ("play", "decline")),
            (rules.one_card, CUT, ("cut", "tap")),
            (rules.one_card, THREE, ("three", "one")),
        ):
            if there:
                self.phases.append(phase)
                self.choices[phase] = [len(self.words), len(self.words) + 1]
                self.opening += self.choices[phase]
                self.words += words
        self.remainder = [self.words.index("remainder")] if remainder else []
        self.fold = [self.words.index("fold")] if rules.fold else []
        if after:
            self.choices[AFTER] = [RAISE, *self.remainder, self.words.index("pass")]
        self.asked = [word for there, word in ((rules.remainder, "remainder"), (after, "after")) if there]
        """What can be said of a call that waits for its answer: it is no raise; it came after the card."""
