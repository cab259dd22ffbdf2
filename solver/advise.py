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

Everything is exact against the strategy that answers: float64 sweeps of the subgame below the line.  Where that
strategy is good there (on the path of equilibrium play it is), it answers as stored; elsewhere the subgame is solved.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from games.cards import hands
from games.notation import NotationError, format_hand, parse_hand, parse_line
from games.rules import RAISE, Rules
from games.state import State
from solver.explain import Facts, kind, sentence
from solver.kernels import LAST_TRICK
from solver.last_trick import LastTrick
from solver.strategy import Strategy
from solver.subgame import Array, Beliefs, Situation, Subgame, Values, anything, situation

Cards = tuple[int, ...]
TOLERANCE = 1e-3  # of the stake: what an answer may be off
LEFT = 2e-5  # a side that plays its part of the line less often has left the path: storing rounds by as much
PLAYED = 1e-3  # an action less probable than that is not what the answer plays
MOST_BYTES, MOST_ANSWERS = 2**29, 1024  # that are remembered of subgames, and how many answers (at most 0.2 MB each)
LEVELS = 5  # attempts to solve a subgame, each to a quarter of the error

ON_PATH, SOLVED, I_LEFT, OPPONENT_LEFT, BOTH_LEFT = CASES = (
    "on the path", "solved here", "I left", "the opponent left", "both left",
)  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """A public decision for all H holdings of the player to act, with A actions; V holdings of the opponent.

    line: the public history; player: 0 the leader, 1 the dealer; stake: accepted so far; unit: of ev, loss and
    accuracy.  holdings: (H, k) and opponent_holdings: (V, l), rank indices of cards in hand; played: by each, in order.
    legal, probabilities: (H, A).  ev: (H, A), the acting player's if he plays on as well as he can against the
    strategy, nan where not legal; loss: (H, A), against the best action.  refusal: (H,), how often a raise would be
    refused, nan where there is none.  win: (H, A), the chance to win the hand if nobody refuses any more, nan for
    refusing.  share: (H,), of each holding in the acting player's range; opponent: (H, V), the opponent's range given
    each holding.  cases: (H,), one of CASES.  accuracy: what both sides' exact best responses gain in the subgame,
    added.
    """

    line: tuple[str, ...]
    player: int
    stake: int
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
        """Shape (H, A): what each action loses against the best, nan where it is not legal."""
        best: Array = np.max(self.ev, axis=1, keepdims=True, initial=-np.inf, where=~np.isnan(self.ev))
        return np.where(self.legal, best - self.ev, np.nan)

    def index(self, holding: tuple[int, ...]) -> int:
        """The row of a holding, ascending rank indices."""
        (found,) = np.flatnonzero((self.holdings == np.array(holding, np.int8)).all(axis=1))
        return int(found)


@dataclass(frozen=True, slots=True)
class Choice:
    """A legal action: how often to take it, what it is worth (`Answer.ev`), what it loses against the best, and the
    chance to win the hand after it if nobody refuses any more (None for refusing)."""

    action: str
    probability: float
    ev: float
    loss: float
    win: float | None


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do with one hand at a line.

    hand: as dealt; held: what is left of it; player: 0 the leader, 1 the dealer; win: the chance to win the hand with
    what is played, if nobody refuses any more; refusal: how often a raise would be refused, None where there is none;
    kind: one of `solver.explain.KINDS`; explanation: a sentence; case: one of CASES; accuracy: see `Adviser.row`.
    """

    hand: str
    held: str
    line: tuple[str, ...]
    player: int
    stake: int
    unit: str
    choices: tuple[Choice, ...]
    win: float
    refusal: float | None
    kind: str
    explanation: str
    case: str
    accuracy: float


@dataclass(slots=True)
class _Node:
    """A public decision, a strategy for what follows, and what it is worth."""

    at: Situation
    free: tuple[Array, Array]  # the reaches of players of whom nothing is known
    left: tuple[int, ...]  # the players who left the path
    game: Subgame | LastTrick
    strategy: Any  # of `game`
    solved: bool
    table: Array
    values: Values
    level: int  # of the ladder

    @property
    def beliefs(self) -> Beliefs:
        """What both hold, by their strategies or, in `left`, by the cards alone."""
        return self.game.beliefs

    @property
    def alone(self) -> npt.NDArray[np.bool_]:
        """Shape (H,): my holdings against which the opponent, going by the strategy, can have nothing."""
        me, other = self.at.player, 1 - self.at.player
        if other in self.left:
            return np.zeros(len(self.free[me]), bool)
        ways = self.beliefs.ways[me]
        reached = ways @ self.at.reach[other] >= LEFT * (ways @ self.free[other])
        alone: npt.NDArray[np.bool_] = (self.beliefs.possible[me] > 0) & ~reached
        return alone


class Adviser:
    """Answers from a strategy; what was asked once is remembered."""

    def __init__(self, strategy: Strategy, threads: int = 1) -> None:
        self.strategy, self.threads = strategy, threads
        self._nodes: OrderedDict[tuple[tuple[str, ...], tuple[int, ...]], list[_Node]] = OrderedDict()
        self._answers: OrderedDict[tuple[str, ...], Answer] = OrderedDict()

    @property
    def rules(self) -> Rules:
        """The rules of the strategy."""
        return self.strategy.tree.rules

    def at(self, line: tuple[str, ...]) -> Answer:
        """The decision after a line of actions, for all holdings.  Raises `solver.strategy.LineError`."""
        if line not in self._answers:
            node = self._node(line)
            answer, alone = self._answer(line, node), node.alone
            if alone.any():
                other = self._node(line, (*node.left, 1 - node.at.player))
                answer = _merged(answer, self._answer(line, other), alone)
            self._answers[line] = answer
        _recent(self._answers, line, MOST_ANSWERS, lambda kept: 1)
        return self._answers[line]

    def row(self, line: tuple[str, ...], h: int) -> tuple[Answer, Array, float]:
        """The answer at a line, shape (A,) what it advises with holding h, and how accurate that is.

        With a holding that is rare in its owner's range the strategy may play what loses more than the tolerance: that
        is left out, and the accuracy is that of the strategy so changed.  If it is not within the tolerance then, the
        subgame is solved more accurately, and the answer is that of the better solution.
        """
        answer, node = self.at(line), self._node(line)
        if node.alone[h]:
            node = self._node(line, (*node.left, 1 - node.at.player))
        tolerance = TOLERANCE * self._stake(node.level)
        for level in range(1, LEVELS + 1):
            table, ev = node.table[h].copy(), node.values.ev[h]
            ranked = np.where(np.isnan(ev), -np.inf, ev)
            loss = ranked.max() - ranked
            table[loss > tolerance] = 0.0
            if table.sum() < PLAYED:
                table = np.eye(len(ev))[ranked.argmax()]
            table /= table.sum()
            accuracy = node.values.accuracy
            if (table != node.table[h]).any():
                changed = node.table.copy()
                changed[h] = table
                node.game.put(node.strategy, changed)
                accuracy = node.game.values(node.strategy).accuracy
                node.game.put(node.strategy, node.table)
            accuracy = max(accuracy, float(loss[table > PLAYED].max()))
            if accuracy <= tolerance or level == LEVELS:
                break
            node = self._node(line, node.left, level)
            answer = self._answer(line, node)
        return answer, table, accuracy

    def advise(self, hand: str, line: str | tuple[str, ...] = "") -> Advice:
        """What to do with a hand: what was dealt, or what is still held.  Raises `NotationError`."""
        rules = self.rules
        words = parse_line(rules, line if isinstance(line, str) else " ".join(line))
        dealt, held = resolve(rules, hand, words)
        h = self.at(words).index(held)
        answer, table, accuracy = self.row(words, h)
        legal = np.flatnonzero(answer.legal[h])
        names = [answer.actions[a] for a in legal]
        ev = dict(zip(names, answer.ev[h][legal].tolist(), strict=True))
        win = {name: w for name, w in zip(names, answer.win[h][legal].tolist(), strict=True) if not np.isnan(w)}
        shares = dict(zip(names, table[legal].tolist(), strict=True))
        payoffs, level = self.strategy.payoffs, rules.ladder.index(answer.stake)
        won = payoffs.win0[level] if answer.player == 0 else payoffs.total - payoffs.win1[level]
        refusal = float(answer.refusal[h]) if RAISE in names else None
        facts = Facts(shares, ev, win, refusal, won, answer.unit)
        best = max(ev.values())
        return Advice(
            hand=format_hand(rules, dealt),
            held=format_hand(rules, held),
            line=words,
            player=answer.player,
            stake=answer.stake,
            unit=answer.unit,
            choices=tuple(Choice(name, shares[name], ev[name], best - ev[name], win.get(name)) for name in names),
            win=facts.win_chance,
            refusal=refusal,
            kind=kind(facts),
            explanation=sentence(facts),
            case=answer.cases[h],
            accuracy=accuracy,
        )

    def _stake(self, level: int) -> float:
        """What half the difference between winning and losing is worth."""
        return (self.strategy.payoffs.win0[level] - self.strategy.payoffs.win1[level]) / 2

    def _node(self, line: tuple[str, ...], left: tuple[int, ...] | None = None, level: int = 0) -> _Node:
        """The decision if the players in `left` may hold anything; by default, those who left the path.

        Level 0 is the strategy as stored if it is accurate enough; higher ones are solved, ever more accurately.
        """
        tree = self.strategy.tree
        if left is None:
            at = situation(tree, self.strategy.probabilities, line)
            left = tuple(p for p in range(2) if at.presence[p] < LEFT)
            if not left and Beliefs(tree, at, at.reach).total <= 0:  # no holdings of both go together
                left = (0, 1)
            return self._node(line, left)
        key = line, tuple(sorted(left))
        levels = self._nodes.setdefault(key, [])  # kept and forgotten together: each goes on from the one before
        while len(levels) <= level:
            levels.append(self._build(line, key[1], levels))
        _recent(self._nodes, key, MOST_BYTES, lambda kept: sum(node.game.bytes for node in kept))
        return levels[level]

    def _build(self, line: tuple[str, ...], left: tuple[int, ...], before: list[_Node]) -> _Node:
        tree = self.strategy.tree
        at = situation(tree, self.strategy.probabilities, line)
        free = anything(tree, at, 0), anything(tree, at, 1)
        reach = free[0] if 0 in left else at.reach[0], free[1] if 1 in left else at.reach[1]
        game = before[0].game if before else self._game(at, Beliefs(tree, at, reach))
        node = tree.nodes[at.position.node]
        stake = node.spot.level + (node.kind == LAST_TRICK and at.position.stage == 2)
        tolerance = TOLERANCE * self._stake(stake)
        strategy, solved = game.stored(self.strategy.probabilities), False
        table, values = _sensible(game, strategy)
        if before or values.accuracy > tolerance:
            strategy, solved = game.solve(tolerance / (2 * 4 ** len(before))), True
            table, values = _sensible(game, strategy)
        return _Node(at, free, left, game, strategy, solved, table, values, stake)

    def _game(self, at: Situation, beliefs: Beliefs) -> Subgame | LastTrick:
        tree, payoffs = self.strategy.tree, self.strategy.payoffs
        if tree.nodes[at.position.node].kind == LAST_TRICK:
            return LastTrick(tree, payoffs, at, beliefs)
        return Subgame(tree, payoffs, at, beliefs, self.threads)

    def _answer(self, line: tuple[str, ...], node: _Node) -> Answer:
        tree, payoffs, me = self.strategy.tree, self.strategy.payoffs, node.at.player
        decision = node.game.table(node.strategy)
        possible = (node.beliefs.possible[me] > 0)[:, None]
        away = node.at.reach[me] < LEFT * node.free[me]
        return Answer(
            line=line,
            player=me,
            stake=tree.rules.ladder[node.level],
            unit=payoffs.unit,
            actions=decision.actions,
            holdings=decision.holdings,
            opponent_holdings=hands(tree.rules.n_ranks, node.at.held[1 - me], tree.rules.copies),
            played=node.at.played,
            legal=decision.legal & possible,
            probabilities=np.where(possible, node.table, 0.0),
            ev=np.where(possible, node.values.ev + me * payoffs.total, np.nan),
            refusal=np.where(possible[:, 0], node.game.refusals(node.strategy), np.nan),
            win=np.where(possible, node.game.wins(node.strategy), np.nan),
            share=node.beliefs.share[me],
            opponent=node.beliefs.opponent(me),
            cases=tuple(_case(me in node.left or bool(gone), 1 - me in node.left, node.solved) for gone in away),
            accuracy=node.values.accuracy,
        )


def resolve(rules: Rules, hand: str, line: tuple[str, ...], player: int | None = None) -> tuple[Cards, Cards]:
    """A player's hand as dealt and what is left of it after a legal line, from either of the two.

    player: by default who acts.  Raises `NotationError` if it contradicts the line.
    """
    state = State.public(rules)
    for action in line:
        state = state.apply(action)
    seat = state.to_play if player is None else player
    played = [rank for who, rank in state.played if who == seat]
    names = format_hand(rules, played)
    size = rules.hand_size if len(hand.replace(",", " ").split()) == rules.hand_size else rules.hand_size - len(played)
    given = Counter(parse_hand(rules, hand, size))
    if size == rules.hand_size and Counter(played) - given:
        raise NotationError(f"the hand {hand!r} was dealt without {names}, which the line shows played.")
    dealt = given if size == rules.hand_size else given + Counter(played)
    full = tuple(sorted(dealt.elements()))
    seen = dealt + Counter(rank for who, rank in state.played if who != seat)
    for rank, copies in seen.items():
        if copies > rules.copies:
            raise NotationError(
                f"the hand {hand!r} with the line has {copies} cards of rank {rules.ranks[rank]}, "
                f"but the deck has {rules.copies}."
            )
    return full, tuple(sorted((dealt - Counter(played)).elements()))


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


def _case(mine: bool, others: bool, solved: bool) -> str:
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
