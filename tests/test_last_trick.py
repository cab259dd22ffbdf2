"""The last trick's closed solution: an equilibrium by brute force, theory's shares, and nothing dominated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from games.cards import hands
from games.rules import ACCEPT, RAISE, REFUSE, Rules
from games.state import State
from solver.advise import Adviser
from solver.cfr import PROBABILITY, Payoffs, Solver
from solver.kernels import LAST_TRICK
from solver.last_trick import LastTrick
from solver.paths import shipped_strategy
from solver.storage import load_strategy
from solver.strategy import LineError, Strategy, find
from solver.tree import Tree
from tests.bridge import make_rules, random_strategy
from tests.naive import Naive, lines, of_game, stored
from tests.test_subgame import compare, game_at

DECKS = {
    "nobody": make_rules(3, 2, 3, (1, 2)),
    "nobody, two cards": make_rules(4, 3, 2, (1, 2, 4)),
    "leader": make_rules(3, 3, 2, (1, 2, 5), tied="leader"),
    "dealer, linear": make_rules(4, 1, 2, (1, 2, 4), order="linear", tied="dealer"),
    "leader, one card": make_rules(5, 2, 1, (1, 3, 4), tied="leader"),
    "dealer, one card": make_rules(5, 1, 1, (1, 2), order="linear", tied="dealer"),
    "remainder": replace(make_rules(3, 2, 3, (1, 2)), remainder=True),
    "remainder, one card": replace(make_rules(5, 2, 1, (1, 2, 4), tied="leader"), remainder=True),
    "remainder, two cards": replace(make_rules(3, 3, 2, (1, 2, 4)), remainder=True, remainder_refused="match"),
}


def payoffs(rules: Rules) -> dict[str, Payoffs]:
    """Points, and hands of matches in which a raised stake is worth as much to one side, to the other, or to both."""
    n = len(rules.ladder) + rules.remainder
    more, less = tuple(0.6 + 0.1 * i for i in range(n)), tuple(0.4 - 0.1 * i for i in range(n))
    return {
        **({} if rules.remainder else {"points": Payoffs.points(rules)}),
        "the leader's surplus": Payoffs((1.0,) * n, less, 0.5, PROBABILITY),
        "the dealer's surplus": Payoffs(more, (0.0,) * n, 0.45, PROBABILITY),
        "both: one hand decides": Payoffs((1.0,) * n, (0.0,) * n, 0.5, PROBABILITY),
        "from the second stake on": Payoffs((0.7, *[1.0] * (n - 1)), (0.3, *[0.0] * (n - 1)), 0.5, PROBABILITY),
        "a spoiled hand is as good as a lost one": Payoffs(more, less, 0.4, PROBABILITY),
    }


def last_decisions(rules: Rules) -> Iterator[tuple[str, ...]]:
    """All lines that end in the last trick, with a card on the table."""
    tree = Tree(rules)
    for line in lines(rules):
        if tree.nodes[find(tree, line).node].kind == LAST_TRICK:
            yield line


@pytest.mark.parametrize("name", DECKS)
def test_the_solution_is_an_equilibrium(name: str) -> None:
    rules = DECKS[name]
    tree = Tree(rules)
    strategy = random_strategy(tree, np.random.default_rng(4))
    every = list(last_decisions(rules))
    some = np.random.default_rng(1).permutation(len(every))[:40]
    for values in payoffs(rules).values():
        for line in [every[i] for i in some]:
            now = Naive.at(tree, values, stored(tree, strategy), line)
            if now.joint.sum() == 0:
                continue
            game = game_at(tree, values, strategy, line)
            error = 1e-6 if rules.remainder else 1e-12  # with two raises it is solved by CFR
            play = game.solve(error if rules.remainder else 0.0)
            now = replace(now, policy=of_game(game, play))
            compare(game, play, now, 1e-12)
            assert now.accuracy() == pytest.approx(0, abs=error)


@pytest.mark.parametrize("tied", ["dealer", "nobody"])
@pytest.mark.parametrize("level", [0, 1])
def test_shares_of_theory(level: int, tied: str) -> None:
    rules = make_rules(6, 3, 1, (1, 3, 7), order="linear", tied=tied)
    tree = Tree(rules)
    line = ("6",) if level == 0 else ("raise", "accept", "6")  # four ranks lose to it, more than can bluff
    s, more = rules.ladder[level], rules.ladder[level + 1]
    game = game_at(tree, Payoffs.points(rules), Strategy.uniform(tree).probabilities, line, (0, 1))
    assert isinstance(game, LastTrick)
    play = game.solve(0.0)
    raises = play.raises[:, 0]
    bluffs, ties, wins = np.split(game.share * raises, [4, 5])
    assert raises[4:] == pytest.approx(1)
    assert (raises[:4] < 1).all()
    assert 1 - play.accepts[0] == pytest.approx((more - s) / (more + s), abs=1e-12)
    if tied == "dealer":  # the answerer
        assert bluffs.sum() / (bluffs.sum() + ties[0] + wins[0]) == pytest.approx((1 - s / more) / 2, abs=1e-12)
    else:  # against a tie accepting brings 0 instead of -s
        assert bluffs.sum() * (more + s) + ties[0] * s == pytest.approx(wins[0] * (more - s), abs=1e-12)


def outcomes(rules: Rules, values: Payoffs, line: tuple[str, ...], held: tuple[int, ...]) -> dict[str, list[float]]:
    """What each action brings against everything that the opponent may hold and answer, by the referee."""
    public = State.public(rules)
    for action in line:
        public = public.apply(action)
    me = public.to_play
    mine = [rank for seat, rank in public.played if seat == me]
    his = [rank for seat, rank in public.played if seat != me]
    left = rules.hand_size - len(his)
    found: dict[str, list[float]] = {}
    for theirs in hands(rules.n_ranks, left, rules.copies).tolist():
        cards = [*mine, *held, *his, *theirs]
        if any(cards.count(rank) > rules.copies for rank in cards):
            continue
        both = [*mine, *held], [*his, *theirs]
        state = State.deal(rules, *(both if me == 0 else both[::-1]))
        for action in line:
            state = state.apply(action)
        for answer in (ACCEPT, REFUSE):
            for action in state.legal_actions():
                after = state.apply(action)
                if action == RAISE:
                    after = after.apply(answer)
                while not after.is_over:  # one card is left
                    (card,) = after.legal_actions()
                    after = after.apply(card)
                win = values.tie if after.winner == -1 else (values.win0, values.win1)[after.winner or 0][after.level]
                found.setdefault(action, []).append(win if me == 0 else values.total - win)
    return found


def assert_nothing_dominated(adviser: Adviser, line: tuple[str, ...], h: int) -> None:
    """No action that is never better and sometimes worse than another is played."""
    answer = adviser.at(line)
    held = tuple(map(int, answer.holdings[h]))
    found = outcomes(adviser.rules, adviser.strategy.payoffs, line, held)
    _, advised, _ = adviser.row(line, h)
    assert [a for a, legal in zip(answer.actions, answer.legal[h], strict=True) if legal] == list(found)
    for a, values in found.items():
        for b, others in found.items():
            pairs = list(zip(values, others, strict=True))
            if all(x <= y for x, y in pairs) and any(x < y for x, y in pairs):
                column = answer.actions.index(a)
                assert max(answer.probabilities[h, column], advised[column]) <= 1e-4, (line, held, a, b)


@pytest.mark.parametrize("name", ["nobody", "leader", "dealer, linear", "dealer, one card"])
@pytest.mark.parametrize("iterations", [pytest.param(0, marks=pytest.mark.slow), 100])
def test_nothing_dominated_is_advised_exhaustive(name: str, iterations: int) -> None:
    rules = DECKS[name]
    tree = Tree(rules)
    for values in (Payoffs.points(rules), payoffs(rules)["from the second stake on"]):
        solver = Solver(tree, values)
        solver.step(iterations)
        random = random_strategy(tree, np.random.default_rng(9))
        adviser = Adviser(Strategy.of(solver) if iterations else Strategy(tree, values, random))
        for line in last_decisions(rules):
            for h in np.flatnonzero(adviser.at(line).legal.any(axis=1)):
                assert_nothing_dominated(adviser, line, int(h))


@cache
def le_truc() -> Adviser:
    """Advice from the strategy that comes with the program."""
    strategy, _ = load_strategy(shipped_strategy("le-truc") or "")
    return Adviser(strategy)


def random_last_line(rng: np.random.Generator) -> tuple[str, ...]:
    """A random line to the last trick of le-truc."""
    adviser, state = le_truc(), State.public(le_truc().rules)
    while True:
        actions = [action for action in state.legal_actions() if action != REFUSE]
        after = state.apply(actions[rng.integers(len(actions))])
        if after.is_over:
            after = State.public(adviser.rules)
        if len(after.played) == 5 and rng.random() < 0.5:
            return after.line
        state = after


@pytest.mark.parametrize("number", [150, pytest.param(5000, marks=pytest.mark.slow)])
def test_nothing_dominated_is_advised_on_le_truc(number: int) -> None:
    rng = np.random.default_rng(number)
    adviser = le_truc()
    for _ in range(number):
        line = random_last_line(rng)
        for h in np.flatnonzero(adviser.at(line).legal.any(axis=1)):
            assert_nothing_dominated(adviser, line, int(h))


def test_lines_beyond_the_last_trick() -> None:
    adviser = Adviser(Strategy.uniform(Tree(DECKS["leader, one card"])))
    with pytest.raises(LineError, match="over"):
        adviser.at(("2", "3"))
