"""Advice on the whole game: thousands of random decisions, each recomputed otherwise, and hands played to the end."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from games.state import State
from solver.advise import Adviser
from solver.answers import Node
from solver.cfr import Pair, Payoffs, Sweeper
from solver.explain import KINDS
from solver.kernels import BEST, EXPECT
from solver.paths import shipped_strategy
from solver.storage import load_strategy
from solver.strategy import Decision, Strategy, find
from solver.subgame import Subgame
from tests.bridge import assert_close
from tests.naive import Naive, of_game, stored
from tests.test_advise import change, put


class Recording(Adviser):
    """Remembers which node an answer came from."""

    last: Node

    def _node(self, *args: object, **kwargs: object) -> Node:
        self.last = super()._node(*args, **kwargs)  # type: ignore[arg-type]
        return self.last


@cache
def adviser() -> Recording:
    """Advice from the strategy that comes with the program."""
    strategy, _ = load_strategy(shipped_strategy("le-truc") or "")
    return Recording(strategy)


class Player:
    """Draws actions from a strategy."""

    def __init__(self, strategy: Strategy, game: Subgame | None = None, own: Pair | None = None) -> None:
        self.strategy, self.game, self.own = strategy, game, own
        self.known: dict[tuple[str, ...], tuple[Decision, dict[tuple[int, ...], int], np.ndarray]] = {}

    def action(self, state: State, random: float) -> str:
        """What the player to act does with the hand that he holds."""
        if state.line not in self.known:
            decision = self.strategy.at(state.line)
            table = decision.probabilities
            if self.game is not None and self.own is not None:
                table = of_game(self.game, self.own)(find(self.strategy.tree, state.line))
            rows = {tuple(cards): h for h, cards in enumerate(decision.holdings.tolist())}
            self.known[state.line] = decision, rows, table.cumsum(axis=1)
        decision, rows, sums = self.known[state.line]
        held = state.held[state.to_play]
        assert held is not None
        row = sums[rows[held]]
        return decision.actions[int(np.searchsorted(row, random * row[-1], side="right"))]

    def payoff(self, state: State, rng: np.random.Generator) -> float:
        """The leader's points if it is played to the end."""
        while not state.is_over:
            state = state.apply(self.action(state, rng.random()))
        return state.returns[0]


def decision(rng: np.random.Generator, player: Player) -> State:
    """A random decision with random hands: half of the lines by random actions, half by the strategy."""
    cards = rng.permutation(np.repeat(np.arange(8), 4))[:6].tolist()
    state, like_strategy = State.deal(adviser().rules, cards[:3], cards[3:]), rng.random() < 0.5
    for _ in range(rng.integers(14)):
        legal = state.legal_actions()
        action = player.action(state, rng.random()) if like_strategy else legal[rng.integers(len(legal))]
        after = state.apply(action)
        if after.is_over:
            break
        state = after
    return state


@cache
def sweepers() -> tuple[Sweeper, tuple[Sweeper, Sweeper]]:
    """Of the whole tree: with points, and for each player with 1 for him at every end."""
    strategy = adviser().strategy
    ones = (1.0,) * len(strategy.tree.rules.ladder)
    minus = tuple(-x for x in ones)
    leader, dealer = Payoffs(ones, ones, 1.0), Payoffs(minus, minus, -1.0)
    points, *masses = (Sweeper(strategy.tree, pay, np.float64) for pay in (strategy.payoffs, leader, dealer))
    return points, (masses[0], masses[1])


def accuracy_in_the_tree(node: Node, line: tuple[str, ...]) -> float:
    """Of a subgame's strategy in turn 1 or 2: put into the whole tree, and best responses swept there."""
    strategy, part = adviser().strategy, node.game.part  # type: ignore[union-attr]
    tree, at = strategy.tree, node.at.position
    full = Strategy(tree, strategy.payoffs, (strategy.probabilities[0].copy(), strategy.probabilities[1].copy()))
    for b in part.members:
        for p, size in enumerate(tree.programs[tree.blocks[b].program].rows):
            here, there = part.bases[b, p], tree.bases[b, p]
            full.probabilities[p][there : there + size] = node.strategy[p][here : here + size]
    for n, action in enumerate(line):  # a solution has nothing there
        before = strategy.at(line[:n])
        put(full, line[:n], before.probabilities)
        if before.player in node.left:
            able = before.legal[:, before.actions.index(action)]
            change(full, line[:n], action, [tuple(cards) for cards in before.holdings[able].tolist()])
    joint = Naive.at(tree, strategy.payoffs, stored(tree, full.probabilities), line).joint
    points, masses = sweepers()
    total = 0.0
    for p in range(2):
        out = int(tree.plan.nodes[p * len(tree.nodes) + at.node]["out"])
        rows = slice(out, out + tree.size(node.at.held[p]))
        points.values(p, BEST, full.probabilities)
        masses[p].values(p, EXPECT, full.probabilities)
        raw, mass = points.top[rows, at.lane], masses[p].top[rows, at.lane]
        total += joint.sum(axis=1 - p) @ np.divide(raw, mass, out=np.zeros_like(raw), where=mass > 0)
    return float(total)


def recomputed(node: Node, line: tuple[str, ...], h: int, table: np.ndarray) -> float:
    """The accuracy of a node's strategy with another row at the root, by other means than the subgame's."""
    changed = node.table.copy()
    changed[h] = table
    node.game.put(node.strategy, changed)
    strategy = adviser().strategy
    if len(node.at.played[0]) + len(node.at.played[1]) < 2:
        found = accuracy_in_the_tree(node, line)
    else:
        now = Naive.at(strategy.tree, strategy.payoffs, stored(strategy.tree, strategy.probabilities), line, node.left)
        found = replace(now, policy=of_game(node.game, node.strategy)).accuracy()
    node.game.put(node.strategy, node.table)
    return found


def check(state: State, full: bool) -> tuple[str, str]:
    """One decision; returns its case and kind.  `full`: also recompute where that takes a second or more."""
    advise, line = adviser(), state.line
    held = state.held[state.to_play]
    assert held is not None
    answer, table, accuracy = advise.row(line, h := advise.at(line).index(held))
    node = advise.last
    assert answer.legal[h].sum() == len(state.legal_actions())
    assert abs(table.sum() - 1) <= 1e-12
    assert abs(answer.probabilities[h].sum() - 1) <= 1e-12
    assert (table[~answer.legal[h]] == 0).all()
    assert 0 <= accuracy <= 1e-3 * state.stake
    assert (answer.loss[h][table > 1e-3] <= accuracy + 1e-12).all(), (line, held, answer.loss[h], table, accuracy)
    if full or len(state.played) not in (2, 3):
        assert recomputed(node, line, h, table) <= accuracy + 1e-9, (line, held)
    advice = advise.advise(" ".join(advise.rules.ranks[rank] for rank in state.dealt[state.to_play] or ()), line)
    assert advice.accuracy == accuracy
    assert advice.kind in KINDS
    assert advice.explanation.endswith(".")
    assert "nan" not in advice.explanation
    return advice.case, advice.kind


@pytest.mark.parametrize(
    ("number", "step"), [(12, 100), pytest.param(2000, 4, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_random_decisions(number: int, step: int) -> None:
    rng, player = np.random.default_rng(number), Player(adviser().strategy)
    cases, kinds = Counter[str](), Counter[str]()
    for n in range(number):
        case, kind_ = check(decision(rng, player), n % step == step - 1)
        cases[case] += 1
        kinds[kind_] += 1
    print(cases, kinds)
    if number >= 1000:
        assert len(cases) >= 4
        assert set(kinds) == set(KINDS)


def assert_mean(payoffs: np.ndarray, expected: float, apart: float = 0.0) -> None:
    """Within four standard errors."""
    error = payoffs.std(ddof=1) / np.sqrt(len(payoffs))
    assert abs(payoffs.mean() - expected) <= 4 * error + apart, (payoffs.mean(), expected, error)


@pytest.mark.slow
def test_whole_hands_bring_the_value() -> None:
    rng, strategy = np.random.default_rng(1), adviser().strategy
    player, deck = Player(strategy), np.repeat(np.arange(8), 4)
    payoffs = []
    for _ in range(200_000):
        cards = rng.choice(deck, 6, replace=False).tolist()
        payoffs.append(player.payoff(State.deal(strategy.tree.rules, cards[:3], cards[3:]), rng))
    assert_mean(np.array(payoffs), strategy.evaluate().value)


@pytest.mark.slow
@pytest.mark.parametrize("line", ["5 6", "6 6 raise", "2 raise accept 2"])
def test_hands_from_a_decision_bring_its_value(line: str) -> None:
    """Both hands by the ranges; then one hand and its best action against the opponent's range."""
    rng, strategy, actions = np.random.default_rng(2), adviser().strategy, tuple(line.split())
    rules = strategy.tree.rules
    answer, node = adviser().at(actions), adviser()._node(actions)
    assert isinstance(node.game, Subgame)
    now = Naive.at(strategy.tree, strategy.payoffs, stored(strategy.tree, strategy.probabilities), actions, node.left)
    now = replace(now, policy=of_game(node.game, node.strategy))
    player = Player(strategy, node.game, node.strategy)
    h = int(answer.share.argmax())
    a = int(np.nanargmax(answer.ev[h]))
    whole, one = [], []
    me = answer.player
    both = (answer.holdings, answer.opponent_holdings)[:: 1 if me == 0 else -1]
    for n in range(200_000):
        if n % 2:
            pair = divmod(int(np.searchsorted(now.joint.cumsum(), rng.random())), now.joint.shape[1])
        else:
            v = int(rng.choice(len(answer.opponent[h]), p=answer.opponent[h]))
            pair = (h, v) if me == 0 else (v, h)
        dealt = [[*node.at.played[p], *both[p][pair[p]].tolist()] for p in range(2)]
        state = State.deal(rules, dealt[0], dealt[1])
        for action in actions:
            state = state.apply(action)
        if n % 2:
            whole.append(player.payoff(state, rng))
        else:
            state = state.apply(answer.actions[a])
            one.append(player.payoff(state, rng) * (1 if me == 0 else -1))
    assert_mean(np.array(whole), float(now.value(0, False).sum()))
    # An answer's EV is of playing on as well as one can; its strategy does not quite.
    mass = now.mine[h].sum()
    assert_mean(np.array(one), answer.ev[h, a], node.values.accuracy / mass)
    assert_close(now.by_action(me, True)[h] / mass, answer.ev[h], 1e-9)
