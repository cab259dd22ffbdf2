"""Answers for all lines of a rule set whose solved game, the essential one, has fewer actions.

What `solver.essential` leaves out changes no value, and whoever plays an equilibrium of the essential game has one of
the full game if he does this:

- He never folds, never proposes a redeal or taps, declines a redeal, and deals three cards: each of these choices leads
  to what he has anyway.
- He does not raise after his card.  Raised after the card, he answers as he would have answered the same raise before
  it: then the opponent gets from "card, raise" what he gets from "raise, accepted or refused, card", to the last bit,
  and nothing else of the opponent's is new.

So a line is translated by dropping the choices that lead to the same play, and by moving a raise to before its card.
After an agreed redeal the hand begins anew: an equilibrium of it would have to reckon with what each has set aside,
which the other does not know.  Answers there are those of the hand without a redeal, and what they are worth is counted
with the player's own discards: an approximation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from games.cards import hands
from games.notation import NotationError
from games.rules import (
    ACCEPT,
    AGREE,
    DECLINE,
    KEEP,
    REFUSE,
    Rules,
)
from solver.answers import (
    AS_BEFORE,
    BEFORE_CARDS,
    BOTH_LEFT,
    I_LEFT,
    LEFT,
    NEW_CARDS,
    ON_PATH,
    OPPONENT_LEFT,
    PLAYED,
    SOLVED,
    Answer,
    Answers,
    Cards,
    Node,
    Players,
)
from solver.cfr import Solver
from solver.lines import Place, translate
from solver.strategy import Strategy, child, ending
from solver.subgame import Array, Beliefs, Situation, Subgame, anything, situation
from solver.tree import public_tree

WORSE = 1e-3  # of the stake: what the answer to a late raise may lose before a better one is sought
MOST_TRIES = 32  # sweeps of a subgame to find it
MOST_KNOWN = 256  # late raises that are remembered
ROUNDING = 1e-9
ONE_CARD = 1e-4  # exploitability of the one-card hand's strategy, of the stake


@dataclass(frozen=True, slots=True)
class Late:
    """A raise after a card.  Of the raiser's holdings before the card, shape (H,): ev, win, refusal (see `Answer`) of
    raising.  Of the answerer's, shape (V,): accepts, how often; changed, whether the answer is not the one before the
    card; possible; values, shape (V, 2), of accepting and refusing; chance, to win if nobody refuses; share; opponent,
    shape (V, H'), what the raiser holds after the card.  at: after "raise, accept, card"."""

    ev: Array
    win: Array
    refusal: Array
    accepts: Array
    changed: npt.NDArray[np.bool_]
    possible: npt.NDArray[np.bool_]
    values: Array
    chance: Array
    share: Array
    opponent: Array
    at: Situation


class FullGame:
    """Answers for lines of full rules from answers of a strategy of the essential game.

    hand: of the strategy; one: makes those of a hand of one card each; rules, score: see `State.public`.
    """

    def __init__(
        self, hand: Answers, one: Callable[[], Answers], rules: Rules, score: tuple[int, int] | None = None
    ) -> None:
        self.hand, self.rules, self.score = hand, rules, score
        self._make_one = one
        self._known: dict[tuple[bool, tuple[str, ...], str, str, Cards, Players], Late] = {}

    @cached_property
    def one(self) -> Answers:
        """Answers of the hand of one card each."""
        return self._make_one()

    @cached_property
    def values(self) -> tuple[float, float]:
        """To the leader: of the hand, and of the hand of one card each."""
        of = self.hand.strategy, self.one.strategy
        whole, one = (strategy.evaluate(self.hand.threads).value for strategy in of)
        return whole, one

    def place(self, line: tuple[str, ...], discards: Cards) -> Place:
        """Where a line lies.  Raises `LineError`, and `NotationError` for discards that are missing or none."""
        place = translate(self.rules, line, self.score)
        if place.redealt and not discards:
            raise NotationError("after a redeal the cards that you set aside count: give them as discards.")
        if discards and not place.redealt:
            raise NotationError("nobody has set cards aside in this line, so there are no discards.")
        return place

    def at(self, line: tuple[str, ...], discards: Cards = ()) -> Answer:
        """The answer at a decision.  Raises as `place`."""
        place = self.place(line, discards)
        special = self._special(place, discards)
        return special or self._completed(place, self._answers(place).at(place.line, discards, place.astray))

    def row(self, line: tuple[str, ...], h: int, discards: Cards = ()) -> tuple[Answer, Array, float]:
        """As `Answers.row`."""
        place = self.place(line, discards)
        special = self._special(place, discards)
        if special is not None:
            table = special.probabilities[h]
            table = np.where(table < PLAYED, 0.0, table)
            return special, table / table.sum(), special.accuracy
        answer, table, accuracy = self._answers(place).row(place.line, h, discards, place.astray)
        full = self._completed(place, answer)
        return full, self._spread(place, answer, table[None], 0.0)[0], accuracy

    def _special(self, place: Place, discards: Cards) -> Answer | None:
        """The answer at a decision that the essential game does not have, None at others."""
        match place.state.phase:
            case "cut" | "number":
                return self._number_of_cards(place)
            case "proposal" | "agreement":
                return self._redeal(place)
            case "after":
                assert place.card is not None
                return self._after_card(place, place.card, discards)
            case "answer" if place.card is not None:
                return self._raised_after_card(place, place.card, discards)
        return None

    def _answers(self, place: Place) -> Answers:
        """Those of a hand of as many cards."""
        return self.hand if place.state.hand_size == self.rules.hand_size else self.one

    # -- choices that the essential game has --------------------------------------------------------------------------

    def _names(self, place: Place, answer: Answer) -> tuple[str, ...]:
        """The actions of the full game: those that are legal, and all ranks where a card is played."""
        ranks = tuple(word for word in answer.actions if word in self.rules.ranks)
        return (*(word for word in place.state.legal_actions() if word not in self.rules.ranks), *ranks)

    def _spread(
        self, place: Place, answer: Answer, table: npt.NDArray[Any], other: float | npt.NDArray[Any]
    ) -> npt.NDArray[Any]:
        """The columns of a table for the full game's actions; `other`, of shape (H,), for those that it adds."""
        columns = dict(zip(answer.actions, table.T, strict=True))
        rest = np.broadcast_to(other, len(table))
        return np.column_stack([columns.get(name, rest) for name in self._names(place, answer)])

    def _completed(self, place: Place, answer: Answer) -> Answer:
        """With folding, which is never better than playing on and refusing every raise."""
        possible: npt.NDArray[np.bool_] = np.asarray(answer.legal.any(axis=1))
        me = answer.player
        lost = np.where(possible, self._answers(place).strategy.payoffs.to(me, 1 - me, answer.level), np.nan)
        return replace(
            answer,
            line=place.state.line,
            stake=place.state.stake,
            actions=self._names(place, answer),
            legal=self._spread(place, answer, answer.legal, possible).astype(bool),
            probabilities=self._spread(place, answer, answer.probabilities, 0.0),
            ev=self._spread(place, answer, answer.ev, lost),
            win=self._spread(place, answer, answer.win, np.nan),
        )

    # -- raises after the card ----------------------------------------------------------------------------------------

    def _after_card(self, place: Place, card: str, discards: Cards) -> Answer:
        """Who has played a card passes, unless he should have raised before it."""
        answers, words = self._answers(place), place.state.legal_actions()
        tree, before = answers.strategy.tree, answers.at(place.line, discards, place.astray)
        me = before.player
        at, left, beliefs = answers.beliefs((*place.line, card), discards)
        rest = tree.size(at.held[me])
        h = tree.holdings.more[at.held[me], :rest, tree.rules.ranks.index(card)]
        possible = (beliefs.possible[me] > 0) & (h >= 0)
        late = [self._late(answers, place, place.line, word, discards) for word in words[:-1]]
        played = before.actions.index(card)
        ev = np.column_stack([*(each.ev for each in late), before.ev[:, played]])
        win = np.column_stack([*(each.win for each in late), before.win[:, played]])
        ev, win = (np.where(possible[:, None], table[h], np.nan) for table in (ev, win))
        # Where the card was a good one, no raise is worth more: "raise, accept or refuse, card" was to be had before.
        # Who has played another card may well gain by a raise that he should have made.
        best = np.where(np.isnan(ev), -np.inf, ev).argmax(axis=1)
        gain = np.take_along_axis(ev, best[:, None], axis=1)[:, 0] - ev[:, -1]
        best[~(gain > answers.tolerance(before.level))] = len(words) - 1
        away = at.reach[me] < LEFT * anything(tree, at, me)
        return replace(
            before,
            line=place.state.line,
            stake=place.state.stake,
            actions=words,
            holdings=hands(tree.rules.n_ranks, at.held[me], tree.rules.copies),
            played=at.played,
            legal=np.repeat(possible[:, None], len(words), axis=1),
            probabilities=np.where(possible[:, None], np.eye(len(words))[best], 0.0),
            ev=ev,
            refusal=np.where(possible, late[0].refusal[h], np.nan),
            win=win,
            share=beliefs.share[me],
            opponent=np.where(possible[:, None], before.opponent[h], 0.0),
            cases=tuple(
                (_me_too(before.cases[i]) if me in left or gone else before.cases[i])
                for i, gone in zip(h.tolist(), away, strict=True)
            ),
        )

    def _raised_after_card(self, place: Place, card: str, discards: Cards) -> Answer:
        """The answer to a raise after the card."""
        answers, line, word = self._answers(place), place.line[:-1], place.line[-1]
        answer, late = answers.at(place.line, discards, place.astray), self._late(answers, place, line, word, discards)
        rows, nothing = late.possible[:, None], np.full(len(late.possible), np.nan)
        accepts = np.column_stack([late.accepts, 1 - late.accepts])
        return replace(
            answer,
            line=place.state.line,
            stake=place.state.stake,
            opponent_holdings=hands(
                answers.strategy.tree.rules.n_ranks, late.at.held[1 - answer.player], self.rules.copies
            ),
            played=late.at.played,
            legal=np.repeat(rows, 2, axis=1),
            probabilities=np.where(rows, accepts, 0.0),
            ev=np.where(rows, late.values, np.nan),
            win=np.where(rows, np.column_stack([late.chance, nothing]), np.nan),
            share=late.share,
            opponent=np.where(rows, late.opponent, 0.0),
            cases=tuple(OPPONENT_LEFT if changed else AS_BEFORE for changed in late.changed),
        )

    def _late(self, answers: Answers, place: Place, line: tuple[str, ...], word: str, discards: Cards) -> Late:
        """All about a raise (or remainder) after a place's card; `line` leads to the decision before the card.

        It is answered as the same raise before the card.  But now the card is known, so where that answer loses, the
        better one is taken instead, as long as no raiser gains by raising late: then best responses get no more.
        """
        assert place.card is not None
        card, astray = place.card, place.astray
        key = answers is self.hand, line, word, card, discards, astray
        if key in self._known:
            return self._known[key]
        before, answer = answers.at(line, discards, astray), answers.at((*line, word), discards, astray)
        node, usual = answers.node(line, discards, astray), answers.node((*line, word), discards, astray)
        tree, me = answers.strategy.tree, answer.player
        # What accepting is worth if the raiser may hold anything, for he never raises late by the strategy.
        after = answers.node((*line, word, ACCEPT, card), discards, (*astray, 1 - me))
        reach = [usual.beliefs.reach[me], usual.beliefs.reach[me]]
        reach[1 - me] = anything(tree, after.at, 1 - me)
        beliefs = Beliefs(tree, after.at, (reach[0], reach[1]))
        possible, opponent = beliefs.possible[me] > 0, beliefs.opponent(me)
        worth, chance = _of_holdings(after, me)
        winner, level = ending(tree, usual.at.position, REFUSE)
        refused = np.full(len(worth), answers.strategy.payoffs.to(me, winner, level))
        values = np.column_stack([worth + me * answers.strategy.payoffs.total, refused])
        accepts = answer.probabilities[:, 0].copy()
        lost = values.max(axis=1) - (accepts * values[:, 0] + (1 - accepts) * refused)
        best, rank = (values[:, 0] > refused).astype(float), tree.rules.ranks.index(card)
        raisers = (before.holdings == rank).any(axis=1) & before.legal.any(axis=1)
        most = np.nanmax(before.ev[raisers], axis=1) + ROUNDING
        changed = np.zeros(len(accepts), bool)
        wrong = possible & (lost > WORSE * answers.strategy.payoffs.half(before.level))
        waiting = [np.flatnonzero(wrong & (best == 1)), np.flatnonzero(wrong & (best == 0))]
        for _ in range(MOST_TRIES):
            if not waiting:
                break
            some = waiting.pop(0)
            trial = accepts.copy()
            trial[some] = best[some]
            if (self._raise_and_card(answers, node, line, word, card, trial, discards)[0][raisers] <= most).all():
                accepts, changed[some] = trial, True
            elif len(some) > 1:
                waiting += [some[: len(some) // 2], some[len(some) // 2 :]]
        ev, win, refusal = self._raise_and_card(answers, node, line, word, card, accepts, discards)
        if node.alone.any():
            other = answers.node(line, discards, (*astray, me))
            free = self._raise_and_card(answers, other, line, word, card, accepts, discards)
            ev, win, refusal = (np.where(node.alone, b, a) for a, b in zip((ev, win, refusal), free, strict=True))
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        share = beliefs.share[me]
        found = Late(ev, win, refusal, accepts, changed, possible, values, chance, share, opponent, after.at)
        self._known[key] = found
        return found

    def _raise_and_card(
        self, answers: Answers, node: Node, line: tuple[str, ...], word: str, card: str, accepts: Array, discards: Cards
    ) -> tuple[Array, Array, Array]:
        """Shape (H,), for the holdings at a decision: what raising and playing a card is worth if the opponent accepts
        with chances of shape (V,), the chance to win the hand if nobody refuses any more, and that of a refusal."""
        tree, payoffs, me = answers.strategy.tree, answers.strategy.payoffs, node.at.player
        assert isinstance(node.game, Subgame)
        there = child(tree, node.at.position, word)
        assert there is not None
        refusal = node.beliefs.opponent(me) @ (1 - accepts)
        winner, level = ending(tree, there, REFUSE)
        ev, win = np.full(len(refusal), answers.strategy.payoffs.to(me, winner, level)), np.full(len(refusal), np.nan)
        accepting, mine = node.beliefs.reach[1 - me] * accepts, node.beliefs.reach[me]
        if (accepting * node.beliefs.possible[1 - me]).any():
            at = situation(tree, answers.strategy.probabilities, (*line, word, ACCEPT), discards)
            beliefs = Beliefs(tree, at, (mine, accepting) if me == 0 else (accepting, mine))
            game = Subgame(tree, payoffs, at, beliefs, answers.threads)
            strategy = game.stored(node.strategy, node.game.part)
            column = game.table(strategy).actions.index(card)
            accepted = game.values(strategy).ev[:, column] + me * payoffs.total
            ev = np.where(np.isnan(accepted), ev, refusal * ev + (1 - refusal) * accepted)
            win = game.wins(strategy)[:, column]
        return ev, win, refusal

    # -- before the first card ----------------------------------------------------------------------------------------

    def _redeal(self, place: Place) -> Answer:
        """New cards are not proposed, and declined: the hand goes on as it would anyway."""
        node, me = self.hand.node(()), place.state.to_play
        tree, words = self.hand.strategy.tree, place.state.legal_actions()
        keep = words.index(KEEP if place.state.phase == "proposal" else DECLINE)
        worth, win = _of_holdings(node, me)
        worth = worth + me * self.hand.strategy.payoffs.total
        # A proposal is declined.  What agreed new cards would be worth nobody has solved.
        known = np.array([True, True] if place.state.phase == "proposal" else [word != AGREE for word in words])
        size = hands(tree.rules.n_ranks, tree.rules.hand_size, tree.rules.copies)
        return replace(
            self.hand.at(()),
            line=place.state.line,
            player=me,
            stake=place.state.stake,
            actions=words,
            holdings=size,
            opponent_holdings=size,
            legal=np.ones((len(size), 2), bool),
            probabilities=np.eye(2)[np.full(len(size), keep)],
            ev=np.where(known, worth[:, None], np.nan),
            refusal=np.full(len(size), np.nan),
            win=np.where(known, win[:, None], np.nan),
            share=node.beliefs.share[me],
            opponent=node.beliefs.opponent(me),
            cases=(OPPONENT_LEFT if me == 1 else SOLVED if node.solved else ON_PATH,) * len(size),
        )

    def _number_of_cards(self, place: Place) -> Answer:
        """Three cards each or one: the leader cuts; the dealer, if he is asked, deals what is worth more to him."""
        whole, one = self.values
        total, tolerance = self.hand.strategy.payoffs.total, self.hand.tolerance(0)
        deals_one = one < whole - tolerance
        if place.state.phase == "cut":  # cut, tap
            ev, choice = np.array([whole, one if deals_one else whole]), 0
        else:  # three, one
            ev, choice = np.array([total - whole, total - one]), int(deals_one)
        nothing = np.zeros((1, 0), np.int8)
        return replace(
            self.hand.at(()),
            line=place.state.line,
            player=place.state.to_play,
            stake=place.state.stake,
            actions=place.state.legal_actions(),
            holdings=nothing,
            opponent_holdings=nothing,
            legal=np.ones((1, 2), bool),
            probabilities=np.eye(2)[[choice]],
            ev=ev[None],
            refusal=np.full(1, np.nan),
            win=np.full((1, 2), np.nan),
            share=np.ones(1),
            opponent=np.ones((1, 1)),
            cases=(BEFORE_CARDS,),
        )


def _of_holdings(node: Node, player: int) -> tuple[Array, Array]:
    """Shape (H,), each: what a player's holdings are worth if he plays as well as he can against the strategy of a
    decision, for the dealer less the payoffs' total; and his chance to win the hand if nobody refuses any more."""
    if isinstance(node.game, Subgame):
        return node.game.worth(player, node.strategy), node.game.winning(player, node.strategy)
    assert player == node.at.player  # in the last trick who led to it has no cards left
    return np.nanmax(node.values.ev, axis=1), np.nanmax(node.game.wins(node.strategy), axis=1)


def _me_too(case: str) -> str:
    """A case if the player to act has left the path besides."""
    if case == NEW_CARDS:
        return case
    return BOTH_LEFT if case in (OPPONENT_LEFT, BOTH_LEFT) else I_LEFT


def one_card_strategy(strategy: Strategy, threads: int = 1) -> Strategy:
    """A strategy for the hand of one card each that is played for what the given one's hand is played for.

    It is so small that it is solved on the spot.
    """
    solver = Solver(public_tree(replace(strategy.tree.rules, hand_size=1)), strategy.payoffs, threads=threads)
    while True:
        solver.step(1000)
        found = Strategy.of(solver)
        if found.evaluate(threads).exploitability <= ONE_CARD * strategy.payoffs.half() or solver.iterations >= 20_000:
            return found
