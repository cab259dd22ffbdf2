"""The last trick once a card lies on the table: the one subgame that is solved in closed form.

The answerer knows who will win.  A hand that wins, or that nobody wins, raises in any case: raising is at least as good
whatever the leader answers.  One that loses bluffs so often that the leader is indifferent between accepting and
refusing, and the leader refuses so often that the bluff is worth no more than playing: with payoffs in points
the bluffs' share of all raises from s to s' is (1 - s/s')/2 and the share of refusals (s' - s)/(s' + s).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from games.rules import RAISE
from solver.cfr import Pair, Payoffs
from solver.strategy import Decision, actions, outcomes, rows_at
from solver.subgame import Array, Beliefs, Situation, Values
from solver.tree import Tree


@dataclass(slots=True)
class Play:
    """raises: shape (ranks,), the answerer's chance to raise by his card; accepts: the leader's to accept it."""

    raises: Array
    accepts: float


class LastTrick:
    """The last trick from one of its decisions on (`Position.stage`), with the same questions as `subgame.Subgame`.

    With the answerer's payoffs (he wins, the leader, nobody) at the stake and at the next one.
    """

    bytes = 10_000  # of memory, about

    def __init__(self, tree: Tree, payoffs: Payoffs, at: Situation, beliefs: Beliefs) -> None:
        self.tree, self.at, self.beliefs = tree, at, beliefs
        node = tree.nodes[at.position.node]
        self.answerer, self.stage, self.legal = node.player, at.position.stage, node.raise_legal
        table, level = payoffs.table(self.answerer, np.float64), node.spot.level
        order = [self.answerer, 1 - self.answerer, 2]
        self.outcome = outcomes(tree, at.position)  # by rank: 0 the answerer wins, 1 the leader, 2 nobody
        self.now = table[level, order][self.outcome]
        self.raised = table[level + 1, order][self.outcome] if self.legal else self.now
        self.refused = float(table[level, self.answerer])
        self.share = beliefs.share[self.answerer]

    def stored(self, strategy: Pair) -> Play:
        """What a strategy does."""
        if not self.legal:
            return Play(np.zeros(len(self.now)), 1.0)
        at = self.at.position
        answerer, leader = (rows_at(self.tree, at._replace(stage=stage), strategy) for stage in (0, 1))
        return Play(answerer.probabilities[:, 0].copy(), float(leader.probabilities[0, 0]))

    def table(self, play: Play) -> Decision:
        """What is done at the root."""
        player, words, _ = actions(self.tree, self.at.position)
        if self.stage == 1:
            table = np.array([[play.accepts, 1 - play.accepts]])
            return Decision(player, words, np.zeros((1, 0), np.int8), np.ones((1, 2), bool), table)
        n = len(self.now)
        legal = np.concatenate([np.ones((n, len(words)), bool), np.eye(n, dtype=bool)], axis=1)
        table = legal.astype(np.float64)
        if words:
            table[:, 1:] *= 1 - play.raises[:, None]
            table[:, 0] = play.raises
        names = (*words, *self.tree.rules.ranks)
        return Decision(player, names, np.arange(n, dtype=np.int8)[:, None], legal, table)

    def put(self, play: Play, table: Array) -> None:
        """Change what is done at the root."""
        if self.stage == 1:
            play.accepts = float(table[0, 0])
        elif self.stage == 0 and self.legal:
            play.raises = table[:, 0].copy()

    def values(self, play: Play) -> Values:
        """Evaluate by exact best responses."""
        if self.stage == 1:
            ev = np.array([[-(self.share @ self.raised), -self.refused]])
            mixed = ev[0] @ (play.accepts, 1 - play.accepts)
            return Values(ev, float(ev.max() - mixed))
        if self.stage == 2 or not self.legal:
            own = self.raised if self.stage == 2 else self.now
            return Values(np.where(np.eye(len(own)) > 0, own[:, None], np.nan), 0.0)
        called = self.raised * play.accepts + self.refused * (1 - play.accepts)
        ev = np.column_stack([called, np.where(np.eye(len(called)) > 0, self.now[:, None], np.nan)])
        raising = self.share * play.raises
        accepted, refused = float(raising @ self.raised), float(raising.sum()) * self.refused
        leader = accepted * play.accepts + refused * (1 - play.accepts) - min(accepted, refused)
        mixed = called * play.raises + self.now * (1 - play.raises)
        return Values(ev, leader + float(self.share @ (np.maximum(called, self.now) - mixed)))

    def dominated(self) -> npt.NDArray[np.bool_]:
        """Shape (H, A): what is never better than another action, whatever the opponent holds and does."""
        if self.stage == 1:
            possible = self.raised[self.share > 0]
            accepting, refusing = bool((possible >= self.refused).all()), bool((possible <= self.refused).all())
            return np.array([[accepting, refusing and not accepting]])
        if self.stage == 2 or not self.legal:
            return np.zeros((1, 1), bool)
        better = (self.raised >= self.now) & (self.refused >= self.now)
        return np.column_stack([np.zeros(len(better), bool), np.diag(better)])

    def refusals(self, play: Play) -> Array:
        """Shape (H,): how often the leader refuses a raise made now, nan where none is legal."""
        legal = RAISE in actions(self.tree, self.at.position)[1]
        return np.full(1 if self.stage == 1 else len(self.now), 1 - play.accepts if legal else np.nan)

    def wins(self, play: Play) -> Array:
        """Shape (H, A): the chance to win the hand after each action if nobody refuses."""
        if self.stage == 1:
            return np.array([[self.share @ (self.outcome == 1), np.nan]])
        won = (self.outcome == 0).astype(np.float64)
        table = np.where(np.eye(len(won)) > 0, won[:, None], np.nan)
        return np.column_stack([won, table]) if self.stage == 0 and self.legal else table

    def solve(self, accuracy: float) -> Play:
        """The equilibrium, given what is held: exact, whatever the accuracy."""
        n = len(self.now)
        if self.stage == 1:
            return Play(np.ones(n), float(self.share @ self.raised <= self.refused))
        losing = self.outcome == 1
        strong, bluffs = self.share * ~losing, float(self.share[losing].sum())
        value = float(strong @ (self.raised - self.refused))  # what accepting costs the leader against the strong
        lost, risk = (float(x[losing][0]) if losing.any() else 0.0 for x in (self.now, self.raised))
        raises = np.where(losing, 0.0, 1.0)
        if value + bluffs * (risk - self.refused) >= 0:  # all may bluff, and refusing is right still
            return Play(np.ones(n), 0.0)
        if value <= 0 or risk >= lost:  # accepting is right in any case; a bluff costs nothing if the stake counts not
            return Play(np.where(losing, float(risk >= lost), raises), 1.0)
        raises[losing] = value / (bluffs * (self.refused - risk))
        return Play(raises, (self.refused - lost) / (self.refused - risk))
