"""What every action of every information state loses against a strategy, by one sweep over the whole public tree.

The loss of an action is what `solver.advise` calls so: how much less it is worth than the best one if the player plays
on as well as he can against the strategy.  Everything that needs the losses of many decisions (grading thousands of
hands, opponents who err) looks them up here; a single decision is the business of `Adviser`.

Added up over a hand they say how exploitable a strategy is: a player who follows it loses on average exactly what a
best response would gain, so both players' losses per hand add up to its nash_conv.

The sweep is one of `solver.walk`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from solver.cfr import Floats, Pair, lanes_array
from solver.kernels import NO_CARDS, TERMINAL
from solver.nodes import Node, after_raise
from solver.strategy import Position, Strategy, rows_at
from solver.tree import Tree
from solver.walk import Array, Histories, Lanes, Reach, Walk

ANCHOR = 0.1  # how much of the strategy is in what one who errs strays from


def losses(strategy: Strategy) -> Pair:
    """Shapes (tree.rows[p], LANES): the loss of each action, in the strategy's unit; nan where the opponent, going by
    the strategy, can have nothing, and in idle lanes.  Read them with `losses_at`."""
    return _Sweep(strategy).lost


def losses_at(tree: Tree, lost: Pair, position: Position) -> Array:
    """Shape (H, A): the losses at a decision, nan where an action is not legal; 0 where there is no choice."""
    found = rows_at(tree, position, lost)
    single = found.legal.sum(axis=1, keepdims=True) == 1
    return np.where(found.legal, np.where(single, 0.0, found.probabilities), np.nan)


def tempered(probabilities: Floats, loss: Floats, temperature: float, actions: Any) -> Floats:
    """What one who errs plays, not normalised: anchor * exp(-loss / temperature).

    The anchor is for a tenth the strategy, for the rest all actions alike.  It is the play that is worth most if
    straying from the anchor costs `temperature` times the Kullback-Leibler divergence: a logit response, as in quantal
    response equilibria (McKelvey & Palfrey 1995), with an anchor as in piKL (Jacob et al. 2022).  loss: in the unit of
    the temperature; where it is nan, and with temperature 0, the strategy itself.
    """
    if temperature <= 0:
        return probabilities
    anchor = ANCHOR * probabilities + (1 - ANCHOR) / actions
    return np.where(np.isnan(loss), probabilities, anchor * np.exp(-np.maximum(loss, 0.0) / temperature))


def erring(strategy: Strategy, lost: Pair, temperature: float) -> Strategy:
    """The strategy as one plays it who errs with a temperature in points (`Payoffs.half`, see `tempered`)."""
    tree, pay = strategy.tree, strategy.payoffs
    played = []
    for p in range(2):
        first, sizes = tree.states[p]
        table = lanes_array(tree.rows[p], np.float64)
        if len(sizes):
            many = np.repeat(sizes, sizes)[:, None]
            table[:] = tempered(strategy.probabilities[p], lost[p], temperature * pay.half(), many)
            total = np.repeat(np.add.reduceat(table, first, axis=0), sizes, axis=0)
            np.divide(table, total, out=table, where=total > 0)
        played.append(table)
    return Strategy(tree, pay, (played[0], played[1]))


class _Sweep(Walk):
    """The sweep, done when made.

    Values are sums over the opponent's holdings, divided by the same sum without payoffs where a loss is written down.
    """

    def __init__(self, strategy: Strategy) -> None:
        super().__init__(strategy)
        self.lost: tuple[Array, Array] = (
            lanes_array(self.tree.rows[0], np.float64), lanes_array(self.tree.rows[1], np.float64),
        )  # fmt: skip
        for table in self.lost:
            table[:] = np.nan
        first = _Lanes(self, [0])
        first.visit(first.root, (self.start, self.start), ())


class _Lanes(Lanes[Reach]):
    """Both players' values of their holdings come up, shape (H_p, L)."""

    walk: _Sweep

    def arrays(self, up: Reach) -> list[Array]:
        """See `Lanes`."""
        return list(up)

    def made(self, arrays: list[Array]) -> Reach:
        """See `Lanes`."""
        first, second = arrays
        return first, second

    def _note(self, player: int, row: int, table: Array) -> None:
        """Write losses down: shape (rows, L), from row `row` of the program on."""
        lane = 0
        for b in self.blocks:
            first, size = int(self.tree.bases[b, player]) + row, len(self.tree.blocks[b].histories)
            self.walk.lost[player][first : first + len(table), :size] = table[:, lane : lane + size]
            lane += size

    def visit(self, i: int, reach: Reach, cards: tuple[int, ...]) -> Reach:
        """See `Lanes`."""
        node = self.tree.nodes[i]
        weights = self.walk.weights(self.histories, node.spot.held, cards)
        if node.kind == TERMINAL:
            pay = [self.walk.pay[p][node.spot.level, node.winner] for p in range(2)]
            return (
                pay[0] * _sums(weights, reach[1]),
                pay[1] * _sums(weights.swapaxes(0, 1), reach[0]),
            )
        return self._decision(i, node, weights, reach, cards)

    def _decision(self, i: int, node: Node, weights: Array, reach: Reach, cards: tuple[int, ...]) -> Reach:
        tree, me, offers = self.tree, node.player, len(node.words)
        n, k, plays = tree.rules.n_ranks, node.spot.held[me], node.cards != NO_CARDS
        _, legal, in_rows, sigma = self.sigma(node)
        mine, theirs = reach[me], reach[1 - me]
        q = np.full((len(legal), offers + n * plays, mine.shape[1]), -np.inf)
        other: Any = 0.0
        for a in range(offers):
            part = mine * sigma[:, a]
            below = self.visit(node.children[a], (part, theirs) if me == 0 else (theirs, part), cards)
            q[:, a] = below[me]
            other = other + below[1 - me]
        if plays:
            for c, below in enumerate(self.after_cards(i, node, reach, sigma[:, offers:], cards)):
                other = other + below[1 - me]
                h, j = np.nonzero(tree.holdings.card[k, : tree.size(k)] == c)
                q[h, offers + c] = below[me][tree.holdings.rest[k, h, j]]
        best = q.max(axis=1)
        against = _sums(weights if me == 0 else weights.swapaxes(0, 1), theirs)
        with np.errstate(invalid="ignore"):  # of what is not legal, and has no row
            lost = _per(best[:, None] - q, np.broadcast_to(against[:, None], q.shape))
        self._note(me, node.row, lost[in_rows])
        return (best, other) if me == 0 else (other, best)

    def last_trick(self, node: Node, parts: Array, theirs: Array, cards: tuple[int, ...]) -> list[Reach]:
        """See `Lanes`: a lane for each card led and history.

        The answerer's values by outcome k (0 he wins the hand, 1 the leader, 2 nobody), not by card: so are the rows.
        """
        tree, me, offers = self.tree, node.player, len(node.words)
        n, lanes, pay = len(parts), theirs.shape[1], self.walk.pay[node.player]
        leads: Histories = tuple((*history, c) for c in range(n) for history in self.histories)
        led, lane = np.repeat(np.arange(n), lanes), np.tile(np.arange(lanes), n)
        weights = self.walk.weights(leads, (0, 1) if me == 1 else (1, 0), cards)
        ours = weights[0] if me == 1 else weights[:, 0]  # (answerer's card, lane)
        leader, mine = parts[:, 0].reshape(1, -1), np.tile(theirs, (1, n))
        outcome = np.array(
            [[{1: 1, -1: 0, 0: node.ties}[tree.rules.trick_winner(c, v)] for c in led.tolist()] for v in range(n)]
        )
        classes, winner, joint = node.classes, np.array([me, 1 - me, 2]), ours * mine
        now = np.repeat(pay[node.spot.level, winner][:classes, None], n * lanes, axis=1)
        q, answered = [], 0.0  # q: of each raise, then of playing the card, shape (classes, lanes)
        answers = np.full((2 * offers * n, lanes), np.nan)
        for a, word in enumerate(node.words):
            to = after_raise(tree.rules, node.spot.level, word)
            later, refused = pay[to.accepted, winner][:classes, None], pay[to.refused, me]
            row = 2 * (offers * led + a)
            accepts = self.rows[1 - me][node.row_other + row, lane]
            q.append(accepts * later + (1 - accepts) * refused)
            raised = joint * self._share(node, a, led, outcome, lane)
            worth = np.stack([(raised * -later[outcome, 0]).sum(axis=0), -refused * raised.sum(axis=0)])
            mass = raised.sum(axis=0)
            answers[row, lane], answers[row + 1, lane] = _per(worth.max(axis=0) - worth, mass)
            answered = answered + worth.max(axis=0)
        q.append(now)
        values = np.stack(q)
        best = values.max(axis=0)
        if offers:
            table = np.full(((offers + 1) * classes * n, lanes), np.nan)
            for a, value in enumerate(values):
                for k in range(classes):
                    # Where the leader cannot have the card led there is nothing to lose against.
                    table[(offers + 1) * (classes * led + k) + a, lane] = np.where(
                        leader > 0, best[k] - value[k], np.nan
                    )
            self._note(me, node.row, table)
            self._note(1 - me, node.row_other, answers)
        at = np.arange(n * lanes)
        plays = self._share(node, offers, led, outcome, lane) if offers else 1.0
        mine_value = best[outcome, at] * ours * leader
        leader_value = ((joint * plays * -now[outcome, at]).sum(axis=0) + answered)[None]
        found = []
        for c in range(n):
            here = slice(c * lanes, (c + 1) * lanes)
            both = leader_value[:, here], mine_value[:, here]
            found.append(both if me == 1 else (both[1], both[0]))
        return found

    def _share(self, node: Node, action: int, led: Any, outcome: Any, lane: Any) -> Array:
        """Shape (cards, lanes): how often the answerer does an action in the last trick, where he has a choice."""
        row = node.row + (len(node.words) + 1) * (node.classes * led + outcome) + action
        share: Array = self.rows[node.player][row, lane]
        return share


def _per(worth: Array, mass: Array) -> Array:
    """Quotients, nan where there is nothing to divide by."""
    return np.divide(worth, mass, out=np.full_like(worth, np.nan), where=mass > 0)


def _sums(weights: Array, reach: Array) -> Array:
    """Shape (H, L): weights (H, V, L) summed over the other's holdings, reach (V, L)."""
    found: Array = np.matmul(weights.transpose(2, 0, 1), reach.T[:, :, None])[:, :, 0].T
    return found
