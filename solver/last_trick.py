"""The last trick once a card lies on the table: a subgame so small that it needs no kernel.

The answerer knows who will win.  A hand that wins, or that nobody wins, raises in any case: raising is at least as good
whatever the leader answers.  One that loses bluffs so often that the leader is indifferent between accepting and
refusing, and the leader refuses so often that the bluff is worth no more than playing: with payoffs in points
the bluffs' share of all raises from s to s' is (1 - s/s')/2 and the share of refusals (s' - s)/(s' + s).  That is a
closed form; where the answerer can call the remainder as well, the little game is solved by CFR (Farina et al. 2021).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from games.rules import RAISE
from solver.cfr import Pair, Payoffs
from solver.strategy import Decision, actions, after_raise_at, outcomes, rows_at
from solver.subgame import Array, Beliefs, Situation, Values
from solver.tree import Tree

MOST = 20_000  # iterations, if there are two raises


@dataclass(slots=True)
class Play:
    """raises: shape (ranks, O), the answerer's chance to make each of the O raises by his card; accepts: shape (O,),
    the leader's to accept each."""

    raises: Array
    accepts: Array


class LastTrick:
    """The last trick from one of its decisions on (`Position.stage`), with the same questions as `subgame.Subgame`.

    With the answerer's payoffs (he wins, the leader, nobody) at the stake and at those that he can raise to: `now`:
    shape (ranks,), by his card; `called`: shape (ranks, O), if a raise is accepted; `refused`: shape (O,).
    """

    bytes = 10_000  # of memory, about

    def __init__(self, tree: Tree, payoffs: Payoffs, at: Situation, beliefs: Beliefs) -> None:
        self.tree, self.at, self.beliefs = tree, at, beliefs
        node, position = tree.nodes[at.position.node], at.position
        self.answerer, self.stage, self.offer = node.player, position.stage, position.offer
        table, words = payoffs.table(self.answerer, np.float64), node.words
        order = [self.answerer, 1 - self.answerer, 2]
        self.outcome = outcomes(tree, position)  # by rank: 0 the answerer wins, 1 the leader, 2 nobody
        self.now = table[node.spot.level, order][self.outcome]
        to = [after_raise_at(tree, position, word) for word in words]
        called = [table[each.accepted, order][self.outcome] for each in to]
        self.called = np.array(called).reshape(len(words), len(self.now)).T
        self.refused = np.array([table[each.refused, self.answerer] for each in to])
        self.share = beliefs.share[self.answerer]

    def stored(self, strategy: Pair) -> Play:
        """What a strategy does."""
        at, offers = self.at.position, len(self.refused)
        answerer = rows_at(self.tree, at._replace(stage=0), strategy).probabilities[:, :offers]
        leader = [rows_at(self.tree, at._replace(stage=1 + 2 * o), strategy) for o in range(offers)]
        return Play(answerer.copy(), np.array([each.probabilities[0, 0] for each in leader]))

    def table(self, play: Play) -> Decision:
        """What is done at the root."""
        player, words, _ = actions(self.tree, self.at.position)
        if self.stage % 2:
            accept = play.accepts[self.offer]
            table = np.array([[accept, 1 - accept]])
            return Decision(player, words, np.zeros((1, 0), np.int8), np.ones((1, 2), bool), table)
        n, m = len(self.now), len(words)
        legal = np.concatenate([np.ones((n, m), bool), np.eye(n, dtype=bool)], axis=1)
        table = legal.astype(np.float64)
        if words:
            table[:, m:] *= 1 - play.raises.sum(axis=1, keepdims=True)
            table[:, :m] = play.raises
        names = (*words, *self.tree.rules.ranks)
        return Decision(player, names, np.arange(n, dtype=np.int8)[:, None], legal, table)

    def put(self, play: Play, table: Array) -> None:
        """Change what is done at the root."""
        if self.stage % 2:
            play.accepts[self.offer] = table[0, 0]
        elif self.stage == 0:
            play.raises = table[:, : len(self.refused)].copy()

    def _worth(self, accepts: Array) -> Array:
        """Shape (ranks, O): what each raise is worth."""
        worth: Array = self.called * accepts + self.refused * (1 - accepts)
        return worth

    def values(self, play: Play) -> Values:
        """Evaluate by exact best responses."""
        if self.stage % 2:
            accept = play.accepts[self.offer]
            ev = np.array([[-(self.share @ self.called[:, self.offer]), -self.refused[self.offer]]])
            mixed = ev[0] @ (accept, 1 - accept)
            return Values(ev, float(ev.max() - mixed))
        diagonal = np.eye(len(self.now)) > 0
        if self.stage:
            return Values(np.where(diagonal, self.called[:, self.offer, None], np.nan), 0.0)
        worth = self._worth(play.accepts)
        ev = np.column_stack([worth, np.where(diagonal, self.now[:, None], np.nan)])
        raising = self.share[:, None] * play.raises
        accepted, refused = (raising * self.called).sum(axis=0), raising.sum(axis=0) * self.refused
        leader = accepted * play.accepts + refused * (1 - play.accepts) - np.minimum(accepted, refused)
        mixed = (worth * play.raises).sum(axis=1) + self.now * (1 - play.raises.sum(axis=1))
        best = np.maximum(worth.max(axis=1, initial=-np.inf), self.now)
        return Values(ev, float(leader.sum() + self.share @ (best - mixed)))

    def dominated(self) -> npt.NDArray[np.bool_]:
        """Shape (H, A): what is never better than another action, whatever the opponent holds and does."""
        if self.stage % 2:
            called, refused = self.called[self.share > 0, self.offer], self.refused[self.offer]
            accepting, refusing = bool((called >= refused).all()), bool((called <= refused).all())
            return np.array([[accepting, refusing and not accepting]])
        if self.stage or not len(self.refused):
            return np.zeros((1, 1), bool)
        now = self.now[:, None]
        better = ((self.called >= now) & (self.refused >= now)).any(axis=1)
        return np.column_stack([np.zeros(self.called.shape, bool), np.diag(better)])

    def refusals(self, play: Play) -> Array:
        """Shape (H,): how often the leader refuses a raise made now, nan where none is legal."""
        legal = RAISE in actions(self.tree, self.at.position)[1]
        return np.full(1 if self.stage % 2 else len(self.now), 1 - play.accepts[0] if legal else np.nan)

    def wins(self, play: Play) -> Array:
        """Shape (H, A): the chance to win the hand after each action if nobody refuses."""
        if self.stage % 2:
            return np.array([[self.share @ (self.outcome == 1), np.nan]])
        won = (self.outcome == 0).astype(np.float64)
        offers = 0 if self.stage else len(self.refused)
        return np.column_stack([*[won] * offers, np.where(np.eye(len(won)) > 0, won[:, None], np.nan)])

    def solve(self, accuracy: float) -> Play:
        """The equilibrium, given what is held: exact, or with two raises of that accuracy."""
        n, offers = self.called.shape
        if self.stage % 2:
            accepts = np.ones(offers)
            accepts[self.offer] = self.share @ self.called[:, self.offer] <= self.refused[self.offer]
            return Play(np.zeros((n, offers)), accepts)
        if offers > 1 and not self.stage:
            return self._iterated(accuracy)
        return Play(*self._closed(0)) if offers == 1 else Play(np.zeros((n, offers)), np.ones(offers))

    def _closed(self, offer: int) -> tuple[Array, Array]:
        """The equilibrium if this is the only raise."""
        called, refused = self.called[:, offer], float(self.refused[offer])
        losing = self.outcome == 1
        strong, bluffs = self.share * ~losing, float(self.share[losing].sum())
        value = float(strong @ (called - refused))  # what accepting costs the leader against the strong
        lost, risk = (float(x[losing][0]) if losing.any() else 0.0 for x in (self.now, called))
        raises = np.where(losing, 0.0, 1.0)
        if value + bluffs * (risk - refused) >= 0:  # all may bluff, and refusing is right still
            return np.ones((len(losing), 1)), np.zeros(1)
        if value <= 0 or risk >= lost:  # accepting is right in any case; a bluff costs nothing if the stake counts not
            return np.where(losing, float(risk >= lost), raises)[:, None], np.ones(1)
        raises[losing] = value / (bluffs * (refused - risk))
        return raises[:, None], np.array([(refused - lost) / (refused - risk)])

    def _iterated(self, accuracy: float) -> Play:
        """PCFR+ with quadratic averages."""
        n, offers = self.called.shape
        regrets, last = np.zeros((n, offers + 1)), np.zeros((n, offers + 1))
        answers, last_answers = np.zeros((offers, 2)), np.zeros((offers, 2))
        total, total_answers = np.zeros((n, offers + 1)), np.zeros((offers, 2))
        accepts = np.full(offers, 0.5)
        play = Play(np.zeros((n, offers)), accepts)
        for t in range(1, MOST + 1):
            ev = np.column_stack([self._worth(accepts), self.now])
            shares = _matched(regrets + last)
            last = ev - (ev * shares).sum(axis=1, keepdims=True)
            regrets = np.maximum(regrets + last, 0.0)
            shares = _matched(regrets + last)
            raising = self.share[:, None] * shares[:, :offers]
            costs = -np.column_stack([(raising * self.called).sum(axis=0), raising.sum(axis=0) * self.refused])
            mine = _matched(answers + last_answers)
            last_answers = costs - (costs * mine).sum(axis=1, keepdims=True)
            answers = np.maximum(answers + last_answers, 0.0)
            accepts = _matched(answers + last_answers)[:, 0]
            total += t * t * shares
            total_answers += t * t * mine
            if t % 50 == 0:
                average = total / total.sum(axis=1, keepdims=True)
                play = Play(average[:, :offers], (total_answers / total_answers.sum(axis=1, keepdims=True))[:, 0])
                if self.values(play).accuracy <= accuracy:
                    break
        return play


def _matched(regrets: Array) -> Array:
    """Regret matching, row by row."""
    positive = np.maximum(regrets, 0.0)
    total = positive.sum(axis=1, keepdims=True)
    even = np.full_like(positive, 1 / positive.shape[1])
    shares: Array = np.divide(positive, total, out=even, where=total > 0)
    return shares
