"""Answers of a strategy: what it does at any decision of its game, what that is worth, and how sure that is.

Everything is exact against the strategy that answers: float64 sweeps of the subgame below the line.  Where that
strategy is good there (on the path of equilibrium play it is), it answers as stored; elsewhere the subgame is solved.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from games.cards import hands
from games.rules import DECLINE, FOLD
from solver.kernels import LAST_TRICK
from solver.last_trick import LastTrick
from solver.strategy import Strategy, level
from solver.subgame import Array, Beliefs, Situation, Subgame, Values, anything, situation

Cards = tuple[int, ...]
Players = tuple[int, ...]
TOLERANCE = 1e-3  # of the stake: what an answer may be off
LEFT = 2e-5  # a side that plays its part of the line less often has left the path: storing rounds by as much
PLAYED = 1e-3  # an action less probable than that is not what the answer plays
MOST_BYTES, MOST_ANSWERS = 2**29, 1024  # that are remembered of subgames, and how many answers (at most 0.2 MB each)
LEVELS = 5  # attempts to solve a subgame, each to a quarter of the error

ON_PATH, SOLVED, I_LEFT, OPPONENT_LEFT, BOTH_LEFT, AS_BEFORE, NEW_CARDS, BEFORE_CARDS = CASES = (
    "on the path", "solved here", "I left", "the opponent left", "both left", "as before the card", "after a redeal",
    "before the cards",
)  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """A public decision for all H holdings of the player to act, with A actions; V holdings of the opponent.

    line: the public history; player: 0 the leader, 1 the dealer; stake: accepted so far; level: of the stake in the
    payoffs; unit: of ev, loss and accuracy.  holdings: (H, k) and opponent_holdings: (V, l), rank indices of cards in
    hand; played: by each, in order.  legal, probabilities: (H, A).  ev: (H, A), the acting player's if he plays on as
    well as he can against the strategy, nan where not legal or not known; loss: (H, A), against the best action.
    refusal: (H,), how often a raise would be refused, nan where there is none.  win: (H, A), the chance to win the
    hand if nobody refuses any more, nan where the action ends the hand.  share: (H,), of each holding in the acting
    player's range; opponent: (H, V), the opponent's range given each holding.  cases: (H,), one of CASES.  accuracy:
    what both sides' exact best responses gain in the subgame, added.
    """

    line: tuple[str, ...]
    player: int
    stake: int
    level: int
    unit: str
    actions: tuple[str, ...]
    holdings: npt.NDArray[np.int8]
    opponent_holdings: npt.NDArray[np.int8]
    played: tuple[tuple[int, ...], tuple[int, ...]]
    legal: npt.NDArray[np.bool_]
    probabilities: Array
    ev: Array
    refusal: Array
    win: Array
    share: Array
    opponent: Array
    cases: tuple[str, ...]
    accuracy: float

    @property
    def loss(self) -> Array:
        """Shape (H, A): what each action loses against the best, nan where it is not legal or not known."""
        best: Array = np.max(self.ev, axis=1, keepdims=True, initial=-np.inf, where=~np.isnan(self.ev))
        return np.where(self.legal, best - self.ev, np.nan)

    def index(self, holding: tuple[int, ...]) -> int:
        """The row of a holding, ascending rank indices."""
        (found,) = np.flatnonzero((self.holdings == np.array(holding, np.int8)).all(axis=1))
        return int(found)


@dataclass(slots=True)
class Node:
    """A public decision, a strategy for what follows, and what it is worth."""

    at: Situation
    free: tuple[Array, Array]  # the reaches of players of whom nothing is known
    left: tuple[int, ...]  # the players who left the path
    game: Subgame | LastTrick
    strategy: Any  # of `game`
    solved: bool
    table: Array
    values: Values
    level: int  # of the payoffs

    @property
    def beliefs(self) -> Beliefs:
        """What both hold, by their strategies or, in `left`, by the cards alone."""
        return self.game.beliefs

    @property
    def alone(self) -> npt.NDArray[np.bool_]:
        """`alone_with` of who acts."""
        return self.alone_with(self.at.player)

    def alone_with(self, me: int) -> npt.NDArray[np.bool_]:
        """Shape (H,): a player's holdings against which the opponent, going by the strategy, can have nothing."""
        other = 1 - me
        if other in self.left:
            return np.zeros(len(self.free[me]), bool)
        ways = self.beliefs.ways[me]
        reached = ways @ self.at.reach[other] >= LEFT * (ways @ self.free[other])
        alone: npt.NDArray[np.bool_] = (self.beliefs.possible[me] > 0) & ~reached
        return alone


class Answers:
    """Answers from a strategy, about the lines of its own game; what was asked once is remembered.

    Everywhere `discards` are ranks that the player to act knows to be out of the deck: cards that he has set aside in a
    redeal.  The strategy, which knows nothing of them, answers as without; what it is worth is counted with them.
    `astray` are players who are known to have left the path of the strategy's play, besides those who have by the line.
    """

    def __init__(self, strategy: Strategy, threads: int = 1) -> None:
        self.strategy, self.threads = strategy, threads
        self._nodes: OrderedDict[tuple[tuple[str, ...], Players, Cards], list[Node]] = OrderedDict()
        self._answers: OrderedDict[tuple[tuple[str, ...], Cards, Players], Answer] = OrderedDict()

    def at(self, line: tuple[str, ...], discards: Cards = (), astray: Players = ()) -> Answer:
        """The decision after a line of actions, for all holdings.  Raises `solver.strategy.LineError`."""
        return self._remembered((line, discards, astray), lambda: self._at(line, discards, astray))

    def _remembered(self, key: tuple[tuple[str, ...], Cards, Players], make: Callable[[], Answer]) -> Answer:
        if key not in self._answers:
            self._answers[key] = make()
        _recent(self._answers, key, MOST_ANSWERS, lambda kept: 1)
        return self._answers[key]

    def _at(self, line: tuple[str, ...], discards: Cards, astray: Players) -> Answer:
        node = self.node(line, discards, astray)
        answer, alone = self._answer(line, node), node.alone
        if alone.any():
            other = self._node(line, (*node.left, 1 - node.at.player), discards=discards)
            answer = _merged(answer, self._answer(line, other), alone)
        return answer if not discards else replace(answer, cases=(NEW_CARDS,) * len(answer.cases))

    def row(
        self, line: tuple[str, ...], h: int, discards: Cards = (), astray: Players = ()
    ) -> tuple[Answer, Array, float]:
        """The answer at a line, shape (A,) what it advises with holding h, and how accurate that is.

        With a holding that is rare in its owner's range the strategy may play what loses more than the tolerance: that
        is left out, and the accuracy is that of the strategy so changed.  If it is not within the tolerance then, the
        subgame is solved more accurately, and the answer is that of the better solution.
        """
        answer, node = self.at(line, discards, astray), self.node(line, discards, astray)
        if node.alone[h]:
            node = self._node(line, (*node.left, 1 - node.at.player), discards=discards)
        tolerance = self.tolerance(node.level)
        for deeper in range(1, LEVELS + 1):
            table, ev = node.table[h].copy(), node.values.ev[h]
            ranked = np.where(np.isnan(ev), -np.inf, ev)
            loss = ranked.max() - ranked
            table[loss > tolerance] = 0.0
            if table.sum() < PLAYED:
                table = np.eye(len(ev))[ranked.argmax()]
            table /= table.sum()
            accuracy = node.values.accuracy
            if not discards and (table != node.table[h]).any():
                changed = node.table.copy()
                changed[h] = table
                node.game.put(node.strategy, changed)
                accuracy = node.game.values(node.strategy).accuracy
                node.game.put(node.strategy, node.table)
            accuracy = max(accuracy, float(loss[table > PLAYED].max()))
            if accuracy <= tolerance or deeper == LEVELS or discards:
                break
            node = self._node(line, node.left, deeper)
            answer = self._answer(line, node)
        return answer, table, accuracy

    def tolerance(self, level: int) -> float:
        """What an answer may be off at a level of the payoffs."""
        return TOLERANCE * self.strategy.payoffs.half(level)

    def node(self, line: tuple[str, ...], discards: Cards = (), astray: Players = ()) -> Node:
        """The decision as it is answered: what is known of it, a strategy for what follows and its worth."""
        if not astray:
            return self._node(line, discards=discards)
        at = situation(self.strategy.tree, self.strategy.probabilities, line, discards)
        return self._node(line, tuple({*self._left(at), *astray}), discards=discards)

    def beliefs(self, line: tuple[str, ...], discards: Cards = ()) -> tuple[Situation, tuple[int, ...], Beliefs]:
        """Where a line leads, the players who left the path, and what both hold there."""
        at = situation(self.strategy.tree, self.strategy.probabilities, line, discards)
        left = self._left(at)
        return at, left, Beliefs(self.strategy.tree, at, self._reach(at, left))

    def _left(self, at: Situation) -> tuple[int, ...]:
        """The players who left the path."""
        left = tuple(p for p in range(2) if at.presence[p] < LEFT)
        if not left and Beliefs(self.strategy.tree, at, at.reach).total <= 0:  # no holdings of both go together
            left = (0, 1)
        return left

    def _reach(self, at: Situation, left: tuple[int, ...]) -> tuple[Array, Array]:
        """What both hold, if who has left the path may hold anything."""
        tree = self.strategy.tree
        zero, one = (anything(tree, at, p) if p in left else at.reach[p] for p in range(2))
        return zero, one

    def _node(
        self, line: tuple[str, ...], left: tuple[int, ...] | None = None, deeper: int = 0, discards: Cards = ()
    ) -> Node:
        """The decision if the players in `left` may hold anything; by default, those who left the path.

        Level 0 is the strategy as stored if it is accurate enough; deeper ones are solved, ever more accurately.
        """
        if left is None:
            at = situation(self.strategy.tree, self.strategy.probabilities, line, discards)
            return self._node(line, self._left(at), discards=discards)
        key = line, tuple(sorted(left)), discards
        levels = self._nodes.setdefault(key, [])  # kept and forgotten together: each goes on from the one before
        while len(levels) <= deeper:
            levels.append(self._build(line, key[1], discards, levels))
        _recent(self._nodes, key, MOST_BYTES, lambda kept: sum(node.game.bytes for node in kept))
        return levels[deeper]

    def _build(self, line: tuple[str, ...], left: tuple[int, ...], discards: Cards, before: list[Node]) -> Node:
        tree = self.strategy.tree
        at = situation(tree, self.strategy.probabilities, line, discards)
        free = anything(tree, at, 0), anything(tree, at, 1)
        game = before[0].game if before else self._game(at, Beliefs(tree, at, self._reach(at, left)))
        stake = level(tree, at.position)
        if discards:  # as it would be played without them
            usual = self._node(line, left)
            strategy = copy.deepcopy(usual.strategy)
            table, values = _sensible(game, strategy)
            values = values._replace(accuracy=usual.values.accuracy)
            return Node(at, free, left, game, strategy, usual.solved, table, values, stake)
        tolerance = self.tolerance(stake)
        strategy, solved = game.stored(self.strategy.probabilities), False
        table, values = _sensible(game, strategy)
        if before or values.accuracy > tolerance:
            strategy, solved = game.solve(tolerance / (2 * 4 ** len(before))), True
            table, values = _sensible(game, strategy)
        return Node(at, free, left, game, strategy, solved, table, values, stake)

    def _game(self, at: Situation, beliefs: Beliefs) -> Subgame | LastTrick:
        tree, payoffs = self.strategy.tree, self.strategy.payoffs
        if tree.nodes[at.position.node].kind == LAST_TRICK:
            return LastTrick(tree, payoffs, at, beliefs)
        return Subgame(tree, payoffs, at, beliefs, self.threads)

    def _answer(self, line: tuple[str, ...], node: Node) -> Answer:
        tree, payoffs, me = self.strategy.tree, self.strategy.payoffs, node.at.player
        decision = node.game.table(node.strategy)
        possible = (node.beliefs.possible[me] > 0)[:, None]
        away = node.at.reach[me] < LEFT * node.free[me]
        ends = np.array([action in (FOLD, DECLINE) for action in decision.actions])
        return Answer(
            line=line,
            player=me,
            stake=(*tree.rules.ladder, tree.rules.target)[node.level],
            level=node.level,
            unit=payoffs.unit,
            actions=decision.actions,
            holdings=decision.holdings,
            opponent_holdings=hands(tree.rules.n_ranks, node.at.held[1 - me], tree.rules.copies),
            played=node.at.played,
            legal=decision.legal & possible,
            probabilities=np.where(possible, node.table, 0.0),
            ev=np.where(possible, node.values.ev + me * payoffs.total, np.nan),
            refusal=np.where(possible[:, 0], node.game.refusals(node.strategy), np.nan),
            win=np.where(possible & ~ends, node.game.wins(node.strategy), np.nan),
            share=node.beliefs.share[me],
            opponent=node.beliefs.opponent(me),
            cases=tuple(case_of(me in node.left or bool(gone), 1 - me in node.left, node.solved) for gone in away),
            accuracy=node.values.accuracy,
        )


def _recent(kept: OrderedDict[Any, Any], key: Any, most: int, size: Callable[[Any], int]) -> None:
    """Note that a remembered value is asked for; what was not for longest is forgotten while all are beyond `most`."""
    kept.move_to_end(key)
    total = sum(map(size, kept.values()))
    while total > most and len(kept) > 1:
        total -= size(kept.popitem(last=False)[1])


def _sensible(game: Any, strategy: Any) -> tuple[Array, Values]:
    """What a strategy does at the root, without dominated actions (which are taken out of it), and what it is worth."""
    table, dominated = game.table(strategy).probabilities.copy(), game.dominated()
    if (table * dominated).any():
        table = np.where(dominated, 0.0, table)
        empty = table.sum(axis=1) == 0
        table[empty] = (game.table(strategy).legal & ~dominated)[empty]
        table /= table.sum(axis=1, keepdims=True)
        game.put(strategy, table)
    return table, game.values(strategy)


def case_of(mine: bool, others: bool, solved: bool) -> str:
    """One of CASES, by who left the path."""
    if mine or others:
        return BOTH_LEFT if mine and others else I_LEFT if mine else OPPONENT_LEFT
    return SOLVED if solved else ON_PATH


def _merged(answer: Answer, other: Answer, rows: npt.NDArray[np.bool_]) -> Answer:
    """An answer with some rows of another one."""

    def choose(name: str) -> Any:
        mine, theirs = getattr(answer, name), getattr(other, name)
        return np.where(rows.reshape(-1, *[1] * (mine.ndim - 1)), theirs, mine)

    names = ("probabilities", "ev", "refusal", "win", "opponent")
    cases = tuple(b if row else a for a, b, row in zip(answer.cases, other.cases, rows, strict=True))
    accuracy = max(answer.accuracy, other.accuracy)
    return replace(answer, cases=cases, accuracy=accuracy, **{name: choose(name) for name in names})
