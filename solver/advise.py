"""Advice: what to do at any point of a hand, what each action is worth, and how sure that is.

    >>> from solver.advise import Adviser
    >>> from solver.strategy import Strategy
    >>> from solver.cfr import Solver
    >>> from solver.tree import Tree
    >>> from games.rules import preset
    >>> solver = Solver(Tree(preset("mini")))
    >>> solver.step(300)
    >>> adviser = Adviser(Strategy.of(solver))
    >>> answer = adviser.at(("raise",))  # the dealer's answer, for all his hands at once
    >>> answer.actions, answer.probabilities.shape, answer.ev.shape
    (('accept', 'refuse'), (20, 2), (20, 2))
    >>> advice = adviser.advise("A 2 3", "raise")
    >>> [choice.action for choice in advice.choices]
    ['accept', 'refuse']

Lines and actions are those of the full rules, also of what changes no value and is left out of the solved game: see
`solver.answers` for the answers of a strategy, `solver.full_game` for the rest.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from games.notation import NotationError, format_hand, parse_hand
from games.rules import RAISE, Rules
from games.state import State
from solver.answers import AS_BEFORE, CASES, ON_PATH, PLAYED, SOLVED, Answer, Answers, Cards, Players
from solver.explain import Facts, kind, sentence
from solver.full_game import FullGame, one_card_strategy
from solver.i18n import Strings
from solver.lines import read_line
from solver.strategy import Strategy
from solver.subgame import Array

__all__ = ["CASES", "ON_PATH", "PLAYED", "SOLVED", "Advice", "Adviser", "Answer", "Choice", "resolve"]


@dataclass(frozen=True, slots=True)
class Choice:
    """A legal action: how often to take it, what it is worth (`Answer.ev`), what it loses against the best, and the
    chance to win the hand after it if nobody refuses any more (None if it ends the hand); ev and loss are None if
    nothing is known."""

    action: str
    probability: float
    ev: float | None
    loss: float | None
    win: float | None


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do with one hand at a line.

    hand: as dealt; held: what is left of it; player: 0 the leader, 1 the dealer; win: the chance to win the hand with
    what is played, if nobody refuses any more, None if the hand ends; refusal: how often a raise would be refused, None
    where there is none; kind: one of `solver.explain.KINDS`; facts: that the explanation is made of, None before the
    deal; case: one of CASES; accuracy: see `Answers.row`.
    """

    hand: str
    held: str
    line: tuple[str, ...]
    player: int
    stake: int
    unit: str
    choices: tuple[Choice, ...]
    win: float | None
    refusal: float | None
    kind: str
    facts: Facts | None
    case: str
    accuracy: float

    @property
    def explanation(self) -> str:
        """Why, in a sentence."""
        return self.explained()

    def explained(self, say: Strings | None = None) -> str:
        """Why, in a sentence of any language, by default in English."""
        return "" if self.facts is None else sentence(self.facts, say)


class Adviser(Answers):
    """Answers from a strategy, about lines of the full rules; what was asked once is remembered.

    rules: with everything that may be left out of the strategy's own game, by default those of that; score: of the
    match before the hand, leader's points first, None for a hand in points.
    """

    def __init__(
        self,
        strategy: Strategy,
        threads: int = 1,
        rules: Rules | None = None,
        score: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(strategy, threads)
        self.rules, self.score = strategy.tree.rules if rules is None else rules, score
        self._full = None
        if self.rules.hash != strategy.tree.rules.hash:
            hand = Answers(strategy, threads)
            self._full = FullGame(hand, lambda: Answers(one_card_strategy(strategy), threads), self.rules, score)

    def at(self, line: tuple[str, ...], discards: Cards = (), astray: Players = ()) -> Answer:
        """The decision after a line of actions, for all holdings.

        discards: rank indices of what the player to act has set aside in a redeal, of which there is no other way to
        know; the answer is an approximation then.  Raises `solver.strategy.LineError`, and `NotationError` if there
        was a redeal without discards, or discards without a redeal.
        """
        full = self._full
        if full is None:
            return super().at(line, discards, astray)
        return self._remembered((line, discards, astray), lambda: full.at(line, discards))

    def row(
        self, line: tuple[str, ...], h: int, discards: Cards = (), astray: Players = ()
    ) -> tuple[Answer, Array, float]:
        """As `Answers.row`."""
        return super().row(line, h, discards, astray) if self._full is None else self._full.row(line, h, discards)

    def advise(self, hand: str, line: str | tuple[str, ...] = "", discards: str = "") -> Advice:
        """What to do with a hand: what was dealt, or what is still held.

        line: as text the choice before the first card may be left out (see `solver.lines.read_line`); discards:
        what was set aside in a redeal.  Raises `NotationError`.
        """
        rules, score = self.rules, self.score
        words = line if isinstance(line, tuple) else read_line(rules, line, score)
        gone = parse_hand(rules, discards) if discards else ()
        answer = self.at(words, gone)
        dealt, held = resolve(rules, hand, words, score=score, discards=gone)
        h = answer.index(held)
        answer, table, accuracy = self.row(words, h, gone)
        legal = np.flatnonzero(answer.legal[h])
        names = [answer.actions[a] for a in legal]
        values = zip(names, answer.ev[h][legal].tolist(), strict=True)
        ev = {name: value for name, value in values if not np.isnan(value)}
        win = {name: w for name, w in zip(names, answer.win[h][legal].tolist(), strict=True) if not np.isnan(w)}
        shares = dict(zip(names, table[legal].tolist(), strict=True))
        won = self.strategy.payoffs.to(answer.player, answer.player, answer.level)
        refusal = float(answer.refusal[h]) if RAISE in names else None
        facts = Facts(
            shares,
            ev,
            win,
            refusal,
            won,
            answer.unit,
            answer.cases[h] == AS_BEFORE,
        )
        best = max(ev.values())
        return Advice(
            hand=format_hand(rules, dealt),
            held=format_hand(rules, held),
            line=words,
            player=answer.player,
            stake=answer.stake,
            unit=answer.unit,
            choices=tuple(
                Choice(name, shares[name], ev.get(name), best - ev[name] if name in ev else None, win.get(name))
                for name in names
            ),
            win=facts.win_chance,
            refusal=refusal,
            kind=kind(facts),
            facts=facts,
            case=answer.cases[h],
            accuracy=accuracy,
        )


def resolve(
    rules: Rules,
    hand: str,
    line: tuple[str, ...],
    player: int | None = None,
    score: tuple[int, int] | None = None,
    discards: Cards = (),
) -> tuple[Cards, Cards]:
    """A player's hand as dealt and what is left of it after a legal line, from either of the two.

    player: by default who acts; score: of the match before the hand; discards: what he has set aside.  Raises
    `NotationError` if it contradicts the line, or if no cards have been dealt yet.
    """
    state = State.public(rules, score).follow(line)
    if state.phase in ("cut", "number"):
        raise NotationError(f"nobody has cards yet, so there is no hand {hand!r} to give advice for.")
    size = state.hand_size
    seat = state.to_play if player is None else player
    played = [rank for who, rank in state.played if who == seat]
    names = format_hand(rules, played)
    given_size = size if len(hand.replace(",", " ").split()) == size else size - len(played)
    given = Counter(parse_hand(rules, hand, given_size))
    if given_size == size and Counter(played) - given:
        raise NotationError(f"the hand {hand!r} was dealt without {names}, which the line shows played.")
    dealt = given if given_size == size else given + Counter(played)
    seen = dealt + Counter(rank for who, rank in state.played if who != seat)
    for rank, copies in (seen + Counter(discards)).items():
        if copies > rules.copies:
            what = "the line" if not discards else "the line and what was set aside"
            raise NotationError(
                f"the hand {hand!r} with {what} has {copies} cards of rank {rules.ranks[rank]}, "
                f"but the deck has {rules.copies}."
            )
    return tuple(sorted(dealt.elements())), tuple(sorted((dealt - Counter(played)).elements()))
