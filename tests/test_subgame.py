"""Subgames: what they say about a strategy, and their solutions, against plain recursion over all holdings."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from games.cards import hands
from games.rules import RAISE, Rules, preset
from games.state import State
from solver.best_response import evaluate
from solver.cfr import PROBABILITY, Pair, Payoffs, Solver
from solver.kernels import LAST_TRICK
from solver.last_trick import LastTrick
from solver.paths import shipped_strategy
from solver.storage import load_strategy
from solver.strategy import Strategy, find
from solver.subgame import Beliefs, Subgame, anything, situation
from solver.tree import Tree
from tests import oracle
from tests.bridge import assert_close, bridge, make_rules, random_strategy
from tests.naive import Naive, of_game, some_lines, stored
from tests.oracle import TrucHand

DECKS = {
    "three cards": make_rules(3, 3, 3, (1, 2)),
    "three cards, ties to the leader": make_rules(3, 2, 3, (1, 2, 4), tied="leader"),
    "three cards, linear, ties to the dealer": make_rules(3, 2, 3, (1, 3), order="linear", tied="dealer"),
    "three cards, two ranks, no raise": make_rules(2, 4, 3, (2,), order="linear"),
    "two cards": make_rules(4, 2, 2, (1, 2, 4, 6)),
    "two cards, ties to the leader": make_rules(5, 1, 2, (1, 2), order="linear", tied="leader"),
    "one card": make_rules(4, 2, 1, (1, 2, 3, 4)),
    "one card, ties to the dealer": make_rules(5, 1, 1, (1, 2), order="linear", tied="dealer"),
    "remainder": replace(make_rules(3, 2, 3, (1, 2, 4)), remainder=True),
    "refused remainder, fold": replace(
        make_rules(4, 2, 2, (1, 2, 4)), remainder=True, remainder_refused="match", fold=True
    ),
    "after the card": replace(make_rules(3, 2, 3, (1, 2)), raise_when=("before", "after")),
}
FEW_OR_MANY = [2, pytest.param(60, marks=pytest.mark.slow)]  # lines


def match_like(rules: Rules) -> Payoffs:
    """Probabilities of winning a match in which more than the second stake is worth no more."""
    n = len(rules.ladder) + rules.remainder
    win0 = (0.62, 0.75, *[1.0] * (n - 2))[:n]
    return Payoffs(win0, (0.4, *[0.0] * (n - 1)), 0.52, PROBABILITY)


def strategies(rules: Rules) -> list[tuple[Payoffs, Pair]]:
    """A random strategy and some steps of CFR, the one with points and the other with probabilities."""
    tree, payoffs = Tree(rules), match_like(rules)
    solver = Solver(tree, payoffs)
    solver.step(60)
    random = random_strategy(tree, np.random.default_rng(len(rules.ranks)))
    return [
        (payoffs if rules.remainder else Payoffs.points(rules), random),
        (payoffs, Strategy.of(solver).probabilities),
    ]


def game_at(
    tree: Tree, payoffs: Payoffs, strategy: Pair, line: tuple[str, ...], free: tuple[int, ...] = ()
) -> Subgame | LastTrick:
    """The subgame below a line; who is in `free` may hold anything."""
    at = situation(tree, strategy, line)
    reach = [anything(tree, at, p) if p in free else at.reach[p] for p in range(2)]
    beliefs = Beliefs(tree, at, (reach[0], reach[1]))
    last = tree.nodes[at.position.node].kind == LAST_TRICK
    return LastTrick(tree, payoffs, at, beliefs) if last else Subgame(tree, payoffs, at, beliefs)


def compare(game: Subgame | LastTrick, strategy: object, now: Naive, accuracy: float = 1e-9) -> None:
    """Everything that a subgame says of a strategy is what the recursion finds."""
    me = now.state.to_play
    values = game.values(strategy)  # type: ignore[arg-type]
    assert_close(game.beliefs.share[me], now.mine.sum(axis=1), accuracy)
    some = now.mine.sum(axis=1) > 0
    assert_close(game.beliefs.opponent(me)[some], now.opponent()[some], accuracy)
    assert_close(values.ev[some] + me * now.payoffs.total, now.ev()[some], accuracy)
    assert values.accuracy == pytest.approx(now.accuracy(), abs=accuracy)
    assert_close(game.wins(strategy)[some], now.win()[some], accuracy)  # type: ignore[arg-type]
    refusals = game.refusals(strategy)[some]  # type: ignore[arg-type]
    if RAISE in now.names:
        assert_close(refusals, now.refusal()[some], accuracy)
    else:
        assert np.isnan(refusals).all()


@pytest.mark.parametrize("name", ["three cards", "two cards, ties to the leader"])
def test_the_recursion_agrees_with_the_oracle(name: str) -> None:
    game = TrucHand(DECKS[name])
    both, payoffs = bridge(game, True), Payoffs.points(DECKS[name])
    strategy = random_strategy(both.tree, np.random.default_rng(2))
    now, policy = Naive.at(both.tree, payoffs, stored(both.tree, strategy), ()), both.policy(strategy)
    assert now.value(0, False).sum() == pytest.approx(oracle.expected_value(game, policy), abs=1e-12)
    for player in range(2):
        assert now.value(player, True).sum() == pytest.approx(oracle.best_response(game, policy, player), abs=1e-12)


@pytest.mark.parametrize("name", DECKS)
@pytest.mark.parametrize("number", FEW_OR_MANY)
def test_all_numbers_of_a_strategy(name: str, number: int) -> None:
    rules = DECKS[name]
    tree = Tree(rules)
    for payoffs, strategy in strategies(rules):
        for line in some_lines(rules, number, 5):
            now = Naive.at(tree, payoffs, stored(tree, strategy), line)
            if now.joint.sum() > 0:
                game = game_at(tree, payoffs, strategy, line)
                compare(game, game.stored(strategy), now)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if "three cards, " in name else name for name in DECKS],
)
@pytest.mark.parametrize("number", FEW_OR_MANY)
def test_solutions_are_as_accurate_as_they_say(name: str, number: int) -> None:
    rules = DECKS[name]
    tree = Tree(rules)
    for payoffs, strategy in strategies(rules):
        for n, line in enumerate(some_lines(rules, number, 6)):
            free = ((), (0,), (1,), (0, 1))[n % 4]
            now = Naive.at(tree, payoffs, stored(tree, strategy), line, free)
            if now.joint.sum() > 0:
                game = game_at(tree, payoffs, strategy, line, free)
                found = game.solve(1e-3)
                now = replace(now, policy=of_game(game, found))
                compare(game, found, now)
                assert now.accuracy() <= 1e-3


def test_presence_is_the_share_of_what_a_player_could_hold() -> None:
    rules = DECKS["three cards"]
    tree = Tree(rules)
    strategy = random_strategy(tree, np.random.default_rng(3))
    for line in some_lines(rules, 30, 1):
        found = situation(tree, strategy, line).presence
        for player in range(2):
            assert found[player] == pytest.approx(_line_share(tree, strategy, line, player), abs=1e-12)


def _line_share(tree: Tree, strategy: Pair, line: tuple[str, ...], player: int) -> float:
    """How much of the hands that a player can have played the line with, by their combinations, plays it."""
    played: tuple[list[int], list[int]] = ([], [])
    decisions = []  # the player's: what is played, and by then
    state = State.public(tree.rules)
    for n, action in enumerate(line):
        if state.to_play == player:
            decisions.append(
                (Strategy(tree, Payoffs.points(tree.rules), strategy).at(line[:n]), action, [*played[player]])
            )
        if action in tree.rules.ranks:
            played[state.to_play].append(tree.rules.ranks.index(action))
        state = state.apply(action)
    whole = part = 0.0
    for hand in hands(tree.rules.n_ranks, tree.rules.hand_size, tree.rules.copies).tolist():
        if Counter(played[player]) - Counter(hand):
            continue
        ways = 1.0
        for rank, number in Counter(hand).items():
            ways *= math.comb(tree.rules.copies - played[1 - player].count(rank), number)
        whole += ways
        for decision, action, before in decisions:
            held = sorted((Counter(hand) - Counter(before)).elements())
            (row,) = np.flatnonzero((decision.holdings == np.array(held, np.int8)).all(axis=1))
            ways *= decision.probabilities[row, decision.actions.index(action)]
        part += ways
    return part / whole


LINES = ["2 raise accept 2", "8 A 3", "5 6 raise accept 5 raise"]
LONG = ["5 6", "raise accept 8 3", "3 raise accept 7"]


@pytest.mark.parametrize("line", [*LINES, *(pytest.param(line, marks=pytest.mark.slow) for line in LONG)])
def test_le_truc_from_turn_3_on(line: str) -> None:
    strategy, _ = load_strategy(shipped_strategy("le-truc") or "")
    tree, payoffs = strategy.tree, strategy.payoffs
    actions = tuple(line.split())
    now = Naive.at(tree, payoffs, stored(tree, strategy.probabilities), actions, (0, 1))
    game = game_at(tree, payoffs, strategy.probabilities, actions, (0, 1))
    found = game.solve(1e-3)
    now = replace(now, policy=of_game(game, found))
    assert_close(game.values(found).ev, now.ev(), 1e-9)
    assert game.values(found).accuracy == pytest.approx(now.accuracy(), abs=1e-9)
    assert now.accuracy() <= 1e-3


@pytest.mark.parametrize("free", [(), (0,), (1,), (0, 1)])
def test_what_is_put_at_the_root_is_there(free: tuple[int, ...]) -> None:
    rules = preset("mini")
    tree, payoffs = Tree(rules), Payoffs.points(rules)
    strategy = random_strategy(tree, np.random.default_rng(1))
    for line in some_lines(rules, 20, 2):
        game = game_at(tree, payoffs, strategy, line, free)
        copy = game.stored(strategy)
        before = game.table(copy)  # type: ignore[arg-type]
        weights = np.where(before.legal, np.random.default_rng(0).uniform(size=before.legal.shape), 0)
        weights /= weights.sum(axis=1, keepdims=True)
        game.put(copy, weights)  # type: ignore[arg-type]
        assert_close(game.table(copy).probabilities, weights, 1e-15)  # type: ignore[arg-type]
        game.put(copy, before.probabilities)  # type: ignore[arg-type]
        assert (game.table(copy).probabilities == before.probabilities).all()  # type: ignore[arg-type]
        if isinstance(game, Subgame):  # nothing else has changed
            for a, b in zip(copy, game.stored(strategy), strict=True):
                assert (a == b).all()


def test_probabilities_add_up_to_one() -> None:
    rules = preset("mini")
    tree = Tree(rules)
    strategy = random_strategy(tree, np.random.default_rng(8))
    chances = match_like(rules)
    plain = replace(chances, unit="points")
    a, b = evaluate(tree, chances, strategy), evaluate(tree, plain, strategy)
    assert (a.total, b.total) == (1.0, 0.0)
    assert a.value == b.value
    assert a.best_response[0] == b.best_response[0]
    assert a.best_response[1] == pytest.approx(b.best_response[1] + 1, abs=1e-15)
    assert a.nash_conv == pytest.approx(a.best_response[0] + a.best_response[1] - 1, abs=1e-15)
    assert a.nash_conv == pytest.approx(b.nash_conv, abs=1e-14)
    assert a.exploitability == a.nash_conv / 2
    assert a.interval == pytest.approx(b.interval, abs=1e-14)
    low, high = a.interval
    assert 0 <= low <= a.value <= high <= 1
    solver = Solver(tree, chances)
    solver.step(500)
    better = evaluate(tree, chances, Strategy.of(solver).probabilities)
    assert low <= better.interval[0] < better.interval[1] <= high
    assert better.nash_conv < 1e-3


def test_positions_of_the_last_trick() -> None:
    tree = Tree(DECKS["one card"])
    assert tree.nodes[find(tree, ("2",)).node].kind == LAST_TRICK
    assert isinstance(game_at(tree, Payoffs.points(tree.rules), Strategy.uniform(tree).probabilities, ()), Subgame)
