"""The rest of a hand by plain recursion over public states, with a matrix of both players' holdings at each.

Independent of the kernels: the referee (`games.state`) says what is legal and who wins, cards are counted by whole
deals, and nothing is factored.  Only what a strategy plays is looked up in the tree's rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from games.cards import deal_weights, hands
from games.rules import ACCEPT, DECLINE, RAISE, REFUSE, Rules
from games.state import State
from solver.cfr import Pair, Payoffs
from solver.last_trick import LastTrick, Play
from solver.strategy import Position, actions, child, root, rows_at
from solver.subgame import Subgame
from solver.tree import Tree

Array = np.ndarray
Policy = Callable[[Position], Array]  # shape (H, A): words, then all ranks


def stored(tree: Tree, strategy: Pair) -> Policy:
    """What a strategy of the whole tree plays."""
    return lambda position: rows_at(tree, position, strategy).probabilities


def of_game(game: Subgame | LastTrick, strategy: Any) -> Policy:
    """What a strategy of a subgame plays."""
    if isinstance(game, Subgame):
        return lambda position: rows_at(game.tree, position, strategy, game.part).probabilities
    return lambda position: _play(game, strategy, position)


def _play(game: LastTrick, play: Play, position: Position) -> Array:
    if position.stage % 2:
        accept = play.accepts[position.offer]
        return np.array([[accept, 1 - accept]])
    cards = np.eye(len(play.raises))
    if position.stage or not actions(game.tree, position)[1]:
        return cards
    return np.column_stack([play.raises, cards * (1 - play.raises.sum(axis=1, keepdims=True))])


@lru_cache(maxsize=1024)
def kept(ranks: int, copies: int, k: int, card: int) -> tuple[Array, Array, int]:
    """Of the holdings of k cards those with `card`, what is left of each, and how many holdings that can be."""
    before = [tuple(map(int, row)) for row in hands(ranks, k, copies)]
    after = {tuple(map(int, row)): i for i, row in enumerate(hands(ranks, k - 1, copies))}
    found = []
    for i, row in enumerate(before):
        if card in row:
            j = row.index(card)
            found.append((i, after[row[:j] + row[j + 1 :]]))
    return np.array([i for i, _ in found], int), np.array([j for _, j in found], int), len(after)


@dataclass(frozen=True)
class Naive:
    """A moment of a hand that follows a policy.

    joint: shape (H0, H1), the probability of both holdings; free: the players who play the line with all they have.
    """

    tree: Tree
    payoffs: Payoffs
    policy: Policy
    state: State
    position: Position
    joint: Array

    @classmethod
    def at(
        cls, tree: Tree, payoffs: Payoffs, policy: Policy, line: tuple[str, ...], free: tuple[int, ...] = (),
        deals: Array | None = None,
    ) -> Naive:  # fmt: skip
        """After a line, by Bayes' rule from the deal on; deals: shape (H0, H1), weights that are not the deck's."""
        deals = deal_weights(tree.rules) if deals is None else deals
        now = cls(tree, payoffs, policy, start(tree.rules, tree.decider), root(tree), deals / deals.sum())
        for action in line:
            names, player = now.names, now.state.to_play
            table = policy(now.position)[:, names.index(action)]
            if player in free:
                table = np.ones_like(table)
            weighted = now.joint * (table[:, None] if player == 0 else table[None, :])
            after = now.state.apply(action)
            position = child(tree, now.position, action)
            assert position is not None
            now = replace(now, state=after, position=position, joint=now.shrunk(weighted, action))
        return replace(now, joint=now.joint / now.joint.sum()) if now.joint.sum() > 0 else now

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of a policy's table."""
        words = tuple(word for word in self.state.legal_actions() if word not in self.tree.rules.ranks)
        return words if self.state.phase in ("answer", "after", "decision") else (*words, *self.tree.rules.ranks)

    def shrunk(self, joint: Array, action: str) -> Array:
        """A matrix of holdings after the player to act has done an action."""
        rules, player = self.tree.rules, self.state.to_play
        if action not in rules.ranks:
            return joint
        k = rules.hand_size - sum(seat == player for seat, _ in self.state.played)
        rows, to, size = kept(rules.n_ranks, rules.copies, k, rules.ranks.index(action))
        result = np.zeros((size, joint.shape[1]) if player == 0 else (joint.shape[0], size))
        if player == 0:
            result[to] = joint[rows]
        else:
            result[:, to] = joint[:, rows]
        return result

    def by_action(self, me: int, best: bool, pay: Callable[[State], float] | None = None) -> Array:
        """Shape (H, A): `me`'s value of each action of the player to act times the probability of my holding, nan
        where I may not; later I play as well as I can, or else by the policy.  With the policy of both up to now."""
        player, columns, rules = self.state.to_play, [], self.tree.rules
        names, legal, size = self.names, self.state.legal_actions(), self.joint.shape[me]
        table = None if player == me else self._table()
        for a, action in enumerate(names):
            if action not in legal:
                columns.append(np.full(size, np.nan if me == player else 0.0))
                continue
            joint = self.joint
            if table is not None:
                joint = joint * (table[:, a, None] if player == 0 else table[None, :, a])
            joint, after = self.shrunk(joint, action), self.state.apply(action)
            if after.is_over:
                value = joint.sum(axis=1 - me) * (self._payoff(after, me) if pay is None else pay(after))
            elif not joint.any():
                value = np.zeros(joint.shape[me])
            else:
                position = child(self.tree, self.position, action)
                assert position is not None
                below = Naive(self.tree, self.payoffs, self.policy, after, position, joint)
                value = below.value(me, best, pay)
            if player == me and action in rules.ranks:
                k = rules.hand_size - sum(seat == me for seat, _ in self.state.played)
                rows, to, _ = kept(rules.n_ranks, rules.copies, k, rules.ranks.index(action))
                column = np.full(size, np.nan)
                column[rows] = value[to]
                value = column
            columns.append(value)
        return np.column_stack(columns)

    def value(self, me: int, best: bool, pay: Callable[[State], float] | None = None) -> Array:
        """Shape (H,): `me`'s value times the probability of each of my holdings."""
        found = self.by_action(me, best, pay)
        if self.state.to_play != me:
            return found.sum(axis=1)
        if best:
            largest = np.where(np.isnan(found), -np.inf, found).max(axis=1)
            return np.where(np.isneginf(largest), 0.0, largest)  # a holding that the cards played exclude
        return np.nansum(found * self._table(), axis=1)

    def _table(self) -> Array:
        return self.policy(self.position)

    def _payoff(self, over: State, me: int) -> float:
        leader = {0: self.payoffs.win0, 1: self.payoffs.win1}
        level = self.tree.levels - 1 if over.line[-1] == DECLINE else over.level
        amount = self.payoffs.tie if over.winner == -1 else leader[over.winner or 0][level]
        return amount if me == 0 else self.payoffs.total - amount

    # -- what an answer states ----------------------------------------------------------------------------------------

    @property
    def mine(self) -> Array:
        """The joint matrix, the acting player's holdings first."""
        return self.joint if self.state.to_play == 0 else self.joint.T

    def ev(self) -> Array:
        """Shape (H, A): of the acting player, given his holding."""
        return _given(self.by_action(self.state.to_play, True), self.mine.sum(axis=1))

    def accuracy(self) -> float:
        """What both gain by best responding."""
        return sum(float(self.value(p, True).sum()) for p in (0, 1)) - self.payoffs.total

    def opponent(self) -> Array:
        """Shape (H, V): what the opponent holds, given my holding."""
        mass = self.mine.sum(axis=1, keepdims=True)
        return np.divide(self.mine, mass, out=np.zeros_like(self.mine), where=mass > 0)

    def refusal(self) -> Array:
        """Shape (H,): how often a raise is refused."""
        after = child(self.tree, self.position, RAISE)
        assert after is not None
        return self.opponent() @ self.policy(after)[:, 1]

    def win(self) -> Array:
        """Shape (H, A): my chance to win after each action if every answer accepts."""
        me, policy = self.state.to_play, self.policy

        def accepting(position: Position) -> Array:
            table = policy(position)
            yes = actions(self.tree, position)[1] == (ACCEPT, REFUSE)
            return np.tile([1.0, 0.0], (len(table), 1)) if yes else table

        now = replace(self, policy=accepting)
        found = now.by_action(me, False, lambda over: float(over.winner == me))
        if self.state.phase == "answer":
            found[:, 1] = np.nan
        return _given(found, self.mine.sum(axis=1))


def start(rules: Rules, decider: int | None = None) -> State:
    """The first decision, at a score if the rules ask for one; decider: who stands one point before the target."""
    points = [rules.target - 1 if side == decider else 0 for side in (0, 1)]
    return State.public(rules, (points[0], points[1]) if rules.needs_score else None)


def _given(values: Array, mass: Array) -> Array:
    return np.divide(values, mass[:, None], out=np.full_like(values, np.nan), where=mass[:, None] > 0)


def lines(rules: Rules, decider: int | None = None) -> Iterator[tuple[str, ...]]:
    """Every public history with a decision after it."""
    waiting = [start(rules, decider)]
    while waiting:
        state = waiting.pop()
        if not state.is_over:
            yield state.line
            waiting += [state.apply(action) for action in state.legal_actions()]


def some_lines(rules: Rules, number: int, seed: int) -> list[tuple[str, ...]]:
    """The first decision and others, as many of short lines as of long ones."""
    rng, by_turn = np.random.default_rng(seed), dict[int, list[tuple[str, ...]]]()
    for line in lines(rules):
        by_turn.setdefault(sum(action in rules.ranks for action in line), []).append(line)
    found = [()]
    while len(found) < number:
        turn = by_turn[int(rng.choice(list(by_turn)))]
        found.append(turn[rng.integers(len(turn))])
    return found
