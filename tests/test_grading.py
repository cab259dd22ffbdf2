"""Losses, marks, luck and skill: against plain recursion, against the adviser, and what must hold of any strategy."""

import json
import random
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from games.cards import deal_weights, hands
from games.history import History, parse_history, record
from games.rules import Rules, preset
from solver.advise import Adviser
from solver.bot import LEVELS, Advisers, played
from solver.cfr import Pair, Payoffs, Solver
from solver.grading import MARKS_FROM, Deals, grade, mark_of, review
from solver.losses import erring, losses, losses_at, tempered
from solver.paths import shipped_strategy
from solver.storage import load_strategy
from solver.strategy import Strategy, child, find
from solver.tree import Tree
from tests.naive import Naive, lines, stored
from tests.selfplay import SelfPlay

MINI = preset("mini")
POINTS = "points per hand"


def solved(rules: Rules, iterations: int) -> Strategy:
    solver = Solver(Tree(rules))
    solver.step(iterations)
    return Strategy.of(solver)


@pytest.fixture(scope="module")
def mini() -> Strategy:
    return solved(MINI, 1500)


@pytest.fixture(scope="module")
def rough() -> Strategy:
    """A strategy with every action in it, so that everything is on its path."""
    return solved(MINI, 3)


@pytest.fixture(scope="module")
def table(mini: Strategy) -> Pair:
    return losses(mini)


# -------------------------------------------------------------------------------------------------------------- losses


@pytest.mark.parametrize(("name", "number", "cards"), [("tiny", 40, 0), ("mini", 30, 2)])
def test_losses_are_those_of_plain_recursion(name: str, number: int, cards: int) -> None:
    strategy = solved(preset(name), 3)
    tree, lost, rng = strategy.tree, losses(strategy), random.Random(2)
    every = [line for line in lines(tree.rules) if sum(action in tree.rules.ranks for action in line) >= cards]
    compared = 0
    for line in [every[0], *rng.sample(every, number)]:
        ev = Naive.at(tree, strategy.payoffs, stored(tree, strategy.probabilities), line).ev()
        expected = np.where(np.isnan(ev), -np.inf, ev).max(axis=1, keepdims=True) - ev
        found = losses_at(tree, lost, find(tree, line))
        known = ~np.isnan(expected)
        assert np.allclose(found[known], expected[known], atol=1e-9), line
        compared += int(known.sum())
    assert compared > 90


def total_loss(strategy: Strategy, lost: Pair) -> float:
    """What both players lose in a hand, on average: over every decision of the game, by plain recursion."""
    tree, policy = strategy.tree, stored(strategy.tree, strategy.probabilities)
    deals = deal_weights(tree.rules)

    def below(now: Naive) -> float:
        table, player = policy(now.position), now.state.to_play
        costs = losses_at(tree, lost, now.position)
        held = now.joint.sum(axis=1 - player)
        total = float(np.nansum(held[:, None] * table * np.where(held[:, None] > 0, costs, 0.0)))
        for a, action in enumerate(now.names):
            weighted = now.joint * (table[:, a, None] if player == 0 else table[None, :, a])
            if action not in now.state.legal_actions() or not weighted.any():
                continue
            after, position = now.state.apply(action), child(tree, now.position, action)
            if position is not None:
                total += below(replace(now, state=after, position=position, joint=now.shrunk(weighted, action)))
        return total

    at = Naive.at(tree, strategy.payoffs, policy, ())
    assert np.allclose(at.joint, deals / deals.sum())
    return below(at)


@pytest.mark.parametrize("name", ["tiny", "two-card"])
def test_losses_add_up_to_nash_conv(name: str) -> None:
    strategy = solved(preset(name), 8)
    assert total_loss(strategy, losses(strategy)) == pytest.approx(strategy.evaluate().nash_conv, abs=1e-12)


def test_losses_are_the_advisers(mini: Strategy, table: Pair) -> None:
    adviser, rng = Adviser(mini), random.Random(4)
    compared = 0
    for line in [(), ("raise",), *rng.sample(list(lines(MINI)), 20)]:
        answer = adviser.at(line)
        found = losses_at(mini.tree, table, find(mini.tree, line))
        on = np.array([case == "on the path" for case in answer.cases])[:, None] & answer.legal
        compared += int(on.sum())
        assert np.allclose(found[on], answer.loss[on], atol=1e-9), line
    assert compared > 50


def test_tempered() -> None:
    p, loss = np.array([0.8, 0.2, 0.0]), np.array([0.0, 0.0, 0.1])
    assert (tempered(p, loss, 0.0, 3) == p).all()
    expected = (0.1 * p + 0.3) * np.exp([0.0, 0.0, -2.0])
    assert tempered(p, loss, 0.05, 3) == pytest.approx(expected)
    assert (tempered(p, np.full(3, np.nan), 1.0, 3) == p).all()
    assert Payoffs((0.6, 0.7), (0.4, 0.2), 0.5, "match-winning probability").half() == pytest.approx(0.1)


def test_who_errs_more_loses_more(mini: Strategy, table: Pair) -> None:
    value = mini.evaluate().value
    before = 0.0
    for temperature in (0.0, 0.02, 0.1, 0.5, 2.0):
        weak = erring(mini, table, temperature)
        for p in range(2):  # probabilities still
            first, _ = mini.tree.states[p]
            live = ~np.isnan(table[p])
            sums = np.add.reduceat(weak.probabilities[p], first, axis=0)
            assert np.allclose(sums[live[first]], 1.0)
        both = Strategy(mini.tree, mini.payoffs, (weak.probabilities[0], mini.probabilities[1]))
        lost = value - both.evaluate().value
        assert lost > before if temperature else lost == 0
        before = lost


# ------------------------------------------------------------------------------------------------------------- grading


def test_marks() -> None:
    for unit, (low, middle, high) in MARKS_FROM.items():
        assert 0 < low < middle < high
        costs = (0.0, low / 2, low, middle, high, 2 * high)
        assert [mark_of(unit, cost) for cost in costs] == ["", "", "?!", "?", "??", "??"]


def test_a_decision_is_graded_by_the_advice(mini: Strategy) -> None:
    adviser = Adviser(mini)
    graded = 0
    for hand, line in product([(0, 1, 3), (2, 3, 3), (0, 0, 2)], [(), ("raise",), ("3",), ("4", "4")]):
        try:
            advice = adviser.advise(" ".join(MINI.ranks[r] for r in hand), line)
        except ValueError:
            continue
        for choice in advice.choices:
            decision = grade(adviser, hand, line, choice.action)
            assert decision is not None
            assert (decision.loss, decision.ev, decision.probability) == (choice.loss, choice.ev, choice.probability)
            assert decision.cost in (0.0, choice.loss)
            if choice.probability > 0.05:  # a side of the mix costs nothing
                assert decision.cost == 0
                assert decision.mark == ""
            if choice.probability == 0:
                assert decision.cost == choice.loss
            graded += 1
        with pytest.raises(ValueError, match="cannot be graded"):
            grade(adviser, hand, line, "pass")
    assert graded > 20


def test_the_only_card_is_no_decision(mini: Strategy) -> None:
    adviser = Adviser(mini)
    assert grade(adviser, (0, 0, 0), ("raise", "accept"), "A") is None
    assert grade(adviser, (0, 0, 1), ("raise", "accept"), "A") is not None


def test_deals_average_to_what_hands_are_worth(rough: Strategy) -> None:
    deals, weights = Deals(rough), deal_weights(MINI)
    every = [tuple(map(int, row)) for row in hands(MINI.n_ranks, MINI.hand_size, MINI.copies)]
    assert deals.average[0] == pytest.approx(rough.evaluate().value, abs=1e-12)
    assert sum(deals.average) == pytest.approx(0, abs=1e-12)
    for u in (0, 7, 19):
        both = [deals.both(0, every[u], every[v]) if weights[u, v] else 0.0 for v in range(len(every))]
        assert weights[u] @ both / weights[u].sum() == pytest.approx(deals.own(0, every[u]), abs=1e-12)
        v = int(np.flatnonzero(weights[u])[0])
        assert deals.both(1, every[v], every[u]) == pytest.approx(-deals.both(0, every[u], every[v]), abs=1e-12)


HISTORY = """truc-history 1
rules: mini
players: you, bot
hand 1: points, you leads
you: A 3 4
bot: 2 2 3
line: 4 2 3 2
result: you 1
hand 2: points, bot leads
you: A A 2
line: raise refuse
result: bot 1
hand 3: points, you leads
line: 4 2
"""


def test_review(mini: Strategy) -> None:
    found = review(parse_history(HISTORY), Advisers(MINI, known={None: mini}))
    first, second, third = found.hands
    (you, bot) = found.totals[POINTS]
    assert [len(hand.decisions) for hand in found.hands] == [4, 1, 0]
    assert (second.unknown, third.unknown) == ((0, 1), (1, 1))
    assert (you.unknown, bot.unknown) == (1, 2)
    assert you.decisions + bot.decisions == 5
    for hand in found.hands:
        for share in hand.shares:
            if share.rest is not None:
                assert share.result == pytest.approx(share.average + share.luck + share.skill + share.rest)
    assert [share.result for share in first.shares] == [1, -1]
    assert first.shares[0].luck == pytest.approx(-first.shares[1].luck)
    assert second.shares[0].luck is not None
    assert second.shares[1].luck is None
    assert third.shares[0].luck is None
    assert third.result is None
    costs = [each.cost for _, each in found.costly()]
    assert costs == sorted(costs, reverse=True)
    assert you.cost + bot.cost == pytest.approx(sum(costs))
    assert {found.history.players[hand.player(each)] for hand, each in found.costly(0)} <= {"you"}
    document = found.document()
    assert [hand["number"] for hand in document["hands"]] == [1, 2, 3]
    assert document["hands"][0]["decisions"][0]["player"] == "you"


def test_luck_averages_to_nothing(mini: Strategy) -> None:
    """Over all deals, and what is left besides luck and skill is nothing if both play the strategy: by simulation."""
    play, deals = SelfPlay((mini, mini), losses(mini), np.random.default_rng(3)), Deals(mini)
    rests = []
    for _ in range(300):
        state = play.hand()
        luck = deals.both(0, state.dealt[0], state.dealt[1]) - deals.average[0]
        rests.append(state.returns[0] - deals.average[0] - luck)
    assert abs(np.mean(rests)) < 4 * np.std(rests) / len(rests) ** 0.5


def test_a_hand_may_be_empty(mini: Strategy) -> None:
    history = History(MINI, ("a", "b"), (record(MINI, None, 0, ()),))
    found = review(history, Advisers(MINI, known={None: mini}))
    assert found.costly() == []
    assert found.totals[POINTS][0].rate == 0


# ----------------------------------------------------------------------------------------------------------- full size


@pytest.fixture(scope="module")
def le_truc() -> Strategy:
    file = shipped_strategy("le-truc")
    assert file is not None
    return load_strategy(file)[0]


@pytest.mark.slow
def test_the_equilibriums_own_losses(le_truc: Strategy) -> None:
    """Over 20,000 self-played hands its mean loss per decision is at most nash_conv."""
    play = SelfPlay((le_truc, le_truc), losses(le_truc), np.random.default_rng(1))
    for _ in range(20_000):
        play.hand()
    assert sum(play.decisions) > 60_000
    assert 0 <= sum(play.cost) / sum(play.decisions) <= le_truc.evaluate().nash_conv


@pytest.mark.slow
def test_the_rating_orders_the_levels_as_their_results(le_truc: Strategy) -> None:
    """Error rate per decision by the review, and chance to win the match as published, of every level."""
    file = Path(__file__).resolve().parent.parent / "results" / "le-truc" / "opponents.json"
    levels = json.loads(file.read_text())["levels"]
    assert levels.keys() == LEVELS.keys()
    assert {name: each["temperature"] for name, each in levels.items()} == {
        name: level.temperature for name, level in LEVELS.items()
    }
    lost, rates, wins = losses(le_truc), [], []
    for name, level in LEVELS.items():
        weak = erring(le_truc, lost, level.temperature)
        costs, decisions = 0.0, 0
        for seat in (0, 1):
            seats = (weak, le_truc) if seat == 0 else (le_truc, weak)
            play = SelfPlay(seats, lost, np.random.default_rng(seat))
            for _ in range(4000):
                play.hand()
            costs, decisions = costs + play.cost[seat], decisions + play.decisions[seat]
        rates.append(costs / decisions)
        wins.append(levels[name]["wins"])
    assert rates == sorted(rates, reverse=True)
    assert wins == sorted(wins)
    assert levels["perfect"]["wins"] == pytest.approx(0.5, abs=1e-3)


@pytest.mark.slow
def test_the_bot_plays_what_the_strength_was_measured_of(le_truc: Strategy) -> None:
    """On the path the bot's probabilities are those of `erring`, to what storing and the advice leave out."""
    adviser, lost = Adviser(le_truc), losses(le_truc)
    level = LEVELS["club"]
    weak = erring(le_truc, lost, level.temperature)
    for hand, line in [("A 3 8", ()), ("4 5 6", ("5",)), ("2 5 7", ("5", "raise")), ("7 8 8", ("8", "8"))]:
        advice = adviser.advise(hand, line)
        found = played(advice, level, le_truc.payoffs)
        table = weak.at(line)
        held = tuple(sorted(le_truc.tree.rules.ranks.index(card) for card in advice.held.split()))
        (h,) = np.flatnonzero((table.holdings == np.array(held)).all(axis=1))
        expected = [table.probabilities[h, table.actions.index(choice.action)] for choice in advice.choices]
        assert found == pytest.approx(expected, abs=2e-3), (hand, line)
