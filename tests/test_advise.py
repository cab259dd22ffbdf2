"""Advice: the numbers of an answer by enumeration, what happens off the path, what must not matter."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np
import pytest

from games.cards import hands
from games.notation import NotationError
from games.rules import FOLD, RAISE, Rules, preset
from games.state import State
from solver import answers
from solver.advise import Adviser, resolve
from solver.answers import BOTH_LEFT, I_LEFT, ON_PATH, OPPONENT_LEFT, SOLVED, Answer
from solver.cfr import POINTS, PROBABILITY, Payoffs, Solver
from solver.kernels import LAST_TRICK
from solver.strategy import LineError, Strategy, find
from solver.tree import Tree
from tests.bridge import assert_close, make_rules, random_strategy
from tests.naive import Naive, of_game, some_lines, stored
from tests.test_subgame import DECKS, FEW_OR_MANY, match_like, strategies

MINI = preset("mini")


def trained(rules: Rules, iterations: int, payoffs: Payoffs | None = None) -> Strategy:
    """A strategy of so many iterations."""
    solver = Solver(Tree(rules), payoffs)
    solver.step(iterations)
    return Strategy.of(solver)


def change(strategy: Strategy, line: tuple[str, ...], action: str, holdings: list[tuple[int, ...]] | None) -> None:
    """At a line let only these holdings take an action (None: all of them), and these always."""
    decision = strategy.at(line)
    table, column = decision.probabilities.copy(), decision.actions.index(action)
    for h, cards in enumerate(map(tuple, decision.holdings.tolist())):
        if holdings is None or cards in holdings:
            table[h] = np.eye(len(decision.actions))[column]
        else:
            table[h, column] = 0.0
            rest = decision.legal[h].copy()
            rest[column] = False
            table[h] = table[h] / table[h].sum() if table[h].sum() > 0 else rest / rest.sum()
    put(strategy, line, table)


def put(strategy: Strategy, line: tuple[str, ...], table: np.ndarray) -> None:
    """Change what a strategy does at a line."""
    decision, position = strategy.at(line), find(strategy.tree, line)
    in_rows = decision.legal & (decision.legal.sum(axis=1) > 1)[:, None]
    row = int(strategy.tree.bases[position.block, decision.player]) + strategy.tree.nodes[position.node].row
    strategy.probabilities[decision.player][row : row + in_rows.sum(), position.lane] = table[in_rows]
    assert_close(strategy.at(line).probabilities, table, 1e-15)


def assert_same(a: Answer, b: Answer) -> None:
    """Two answers have the same bits."""
    for field in fields(Answer):
        x, y = getattr(a, field.name), getattr(b, field.name)
        assert (
            np.array_equal(x, y, equal_nan=True) if isinstance(x, np.ndarray) and x.dtype == float else np.all(x == y)
        )


def assert_agrees(answer: Answer, rows: np.ndarray, now: Naive) -> None:
    """The numbers of some rows are those of the plain recursion."""
    assert answer.actions == now.names
    assert (~np.isnan(now.ev()[rows]) == answer.legal[rows]).all()
    assert_close(answer.ev[rows], now.ev()[rows], 1e-9)
    over = np.array([action == FOLD for action in answer.actions])  # there is no more hand to win
    assert_close(answer.win[rows], np.where(over, np.nan, now.win())[rows], 1e-9)
    assert_close(answer.opponent[rows], now.opponent()[rows], 1e-9)
    assert_close(answer.share[rows], now.mine.sum(axis=1)[rows], 1e-9)
    if RAISE in answer.actions:
        assert_close(answer.refusal[rows], now.refusal()[rows], 1e-9)
    else:
        assert np.isnan(answer.refusal).all()
    loss = answer.loss[rows]
    assert (np.nanmin(loss, axis=1) == 0).all()
    assert_close(loss, np.nanmax(answer.ev[rows], axis=1, keepdims=True) - answer.ev[rows], 1e-15)


LONG = {"three cards", "three cards, ties to the leader", "remainder"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in DECKS]
)
@pytest.mark.parametrize("number", FEW_OR_MANY)
def test_stored_answers_by_enumeration(name: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "TOLERANCE", 1e6)  # whatever is stored is good enough
    rules, tree, seen = DECKS[name], Tree(DECKS[name]), 0
    for payoffs, strategy in strategies(rules):
        adviser = Adviser(Strategy(tree, payoffs, strategy))
        for line in some_lines(rules, number, 11):
            answer = adviser.at(line)
            rows = np.array([case == ON_PATH for case in answer.cases]) & (answer.share > 0)
            node = adviser._node(line)
            if node.left or not rows.any():
                continue
            now = Naive.at(tree, payoffs, stored(tree, strategy), line)
            # All is as stored, but for what is dominated in the last trick.
            last = tree.nodes[node.at.position.node].kind == LAST_TRICK
            now = replace(now, policy=of_game(node.game, node.strategy)) if last else now
            assert_agrees(answer, rows, now)
            assert answer.accuracy == pytest.approx(now.accuracy(), abs=1e-9) or node.alone.any()
            assert_close(answer.probabilities[rows], now.policy(now.position)[rows], 1e-15)
            assert (answer.player, answer.stake) == (now.state.to_play, now.state.stake)
            seen += 1
    assert seen > number / 2


@pytest.mark.parametrize("name", ["three cards", "two cards", "one card, ties to the dealer"])
@pytest.mark.parametrize("number", FEW_OR_MANY)
def test_solved_answers_by_enumeration(name: str, number: int) -> None:
    rules, tree = DECKS[name], Tree(DECKS[name])
    payoffs, strategy = strategies(rules)[0]  # random: as stored it is not good enough
    adviser, solved = Adviser(Strategy(tree, payoffs, strategy)), 0
    for line in some_lines(rules, number, 3):
        answer, node = adviser.at(line), adviser._node(line)
        now = Naive.at(tree, payoffs, stored(tree, strategy), line, node.left)
        now = replace(now, policy=of_game(node.game, node.strategy))
        rows = ~node.alone & (now.mine.sum(axis=1) > 0)
        assert_agrees(answer, rows, now)
        assert node.values.accuracy == pytest.approx(now.accuracy(), abs=1e-9)
        assert now.accuracy() <= 1e-3 * answer.stake
        solved += answer.cases.count(SOLVED)
    assert solved


def weights(rules: Rules, mine: tuple[int, ...]) -> np.ndarray:
    """The chance of each hand of the opponent before a card is played, if I know no more than my own."""
    left = [rules.copies - mine.count(rank) for rank in range(rules.n_ranks)]
    ways = [
        math.prod(math.comb(left[rank], cards.count(rank)) for rank in range(rules.n_ranks))
        for cards in hands(rules.n_ranks, rules.hand_size, rules.copies).tolist()
    ]
    return np.array(ways) / sum(ways)


def assert_anything(answer: Answer, rules: Rules, rows: np.ndarray) -> None:
    """The opponent may have anything, by weight."""
    for h in np.flatnonzero(rows):
        mine = tuple(answer.holdings[h].tolist())
        assert_close(answer.opponent[h], weights(rules, mine), 1e-12)


def test_who_left_the_path() -> None:
    strategy = trained(MINI, 400)
    change(strategy, (), RAISE, [])  # the leader never raises first
    answer = Adviser(strategy).at((RAISE,))
    assert set(answer.cases) == {OPPONENT_LEFT}
    assert_anything(answer, MINI, np.ones(len(answer.cases), bool))
    after = Adviser(strategy).at((RAISE, "accept"))
    assert set(after.cases) == {I_LEFT}
    change(strategy, (RAISE,), "refuse", None)  # and the dealer would never accept
    both = Adviser(strategy).at((RAISE, "accept"))
    assert set(both.cases) == {BOTH_LEFT}
    assert_anything(both, MINI, np.ones(len(both.cases), bool))
    share = both.share[[tuple(cards) in ((0, 0, 0), (1, 2, 3)) for cards in both.holdings.tolist()]]
    assert share[1] / share[0] == pytest.approx(4**3 / 4)  # combinations of A 2 3 and of A A A
    for each in (answer, after, both):
        assert each.accuracy <= 1e-3 * each.stake
        assert np.isfinite(each.ev[each.legal]).all()
    assert set(Adviser(strategy).at(()).cases) <= {ON_PATH, SOLVED}


def test_a_hand_that_itself_left() -> None:
    strategy = trained(MINI, 400)
    raising = [(0, 1, 2), (1, 2, 3), (2, 3, 3), (3, 3, 3)]
    change(strategy, (), RAISE, raising)
    change(strategy, (RAISE,), "accept", None)
    answer = Adviser(strategy).at((RAISE, "accept"))
    for cards, case in zip(answer.holdings.tolist(), answer.cases, strict=True):
        assert (case == I_LEFT) == (tuple(cards) not in raising)
    assert (answer.share > 0).sum() == len(raising)
    assert np.isfinite(answer.ev[answer.legal]).all()  # known for the others too
    advice = Adviser(strategy).advise("A A A", "raise accept")
    assert advice.case == I_LEFT


def test_a_hand_that_excludes_all_the_opponent_could_have() -> None:
    strategy = trained(MINI, 400)
    change(strategy, (), RAISE, [(3, 3, 3)])
    adviser = Adviser(strategy)
    answer = adviser.at((RAISE,))
    excluding = (answer.holdings == 3).sum(axis=1) >= 2  # of four
    assert {case for case, row in zip(answer.cases, excluding, strict=True) if row} == {OPPONENT_LEFT}
    assert OPPONENT_LEFT not in {case for case, row in zip(answer.cases, excluding, strict=True) if not row}
    assert_anything(answer, MINI, excluding)
    only = (answer.opponent_holdings == 3).all(axis=1)
    assert (answer.opponent[~excluding] == only).all()
    assert np.isfinite(answer.ev).all()
    assert adviser.advise("A 4 4", "raise").case == OPPONENT_LEFT
    ace = answer.ev[answer.index((0, 0, 0))]  # beats a 4
    assert ace[0] > 2
    assert_close(answer.ev[:, 1], np.full(len(excluding), -1.0), 1e-12)


def test_holdings_that_the_cards_played_exclude() -> None:
    rules = make_rules(3, 2, 3, (1, 2))
    adviser = Adviser(trained(rules, 200))
    answer = adviser.at(("2", "2"))
    gone = (answer.holdings == 0).any(axis=1)
    assert gone.any()
    assert not answer.legal[gone].any()
    assert np.isnan(answer.ev[gone]).all()
    assert (answer.probabilities[gone] == 0).all()
    assert (answer.share[gone] == 0).all()
    with pytest.raises(LineError, match="more cards of rank 2"):
        adviser.at(("2", "2", "2"))
    with pytest.raises(NotationError):
        adviser.advise("2 2 3", "2 2")


@pytest.mark.parametrize("unit", ["points", "probabilities"])
def test_what_is_advised_is_as_accurate_as_stated(unit: str) -> None:
    payoffs = Payoffs.points(MINI) if unit == "points" else match_like(MINI)
    tree = Tree(MINI)
    adviser = Adviser(Strategy(tree, payoffs, random_strategy(tree, np.random.default_rng(2))))
    for line in some_lines(MINI, 8, 4)[1:]:
        legal = adviser.at(line).legal.any(axis=1)
        h = int(np.flatnonzero(legal)[-1])
        answer, table, accuracy = adviser.row(line, h)
        level = MINI.ladder.index(answer.stake)
        assert accuracy <= 1e-3 * (payoffs.win0[level] - payoffs.win1[level]) / 2
        assert table.sum() == pytest.approx(1, abs=1e-12)
        assert (table[~answer.legal[h]] == 0).all()
        assert (answer.loss[h][table > 1e-3] <= accuracy + 2e-3 * answer.stake).all()


def test_advice_is_the_row_of_the_answer() -> None:
    adviser = Adviser(trained(MINI, 400))
    for hand, line in (
        ("2 4 A", ""),
        ("2 4 A", "3"),
        ("2 3 4", "3 r"),
        ("4 A", "3 2"),
        ("4 A", "2, 3"),
        ("2", "3 4 A r"),
    ):
        advice = adviser.advise(hand, line)
        h = adviser.at(advice.line).index(resolve(MINI, hand, advice.line)[1])
        answer, table, accuracy = adviser.row(advice.line, h)
        legal = np.flatnonzero(answer.legal[h])
        assert [choice.action for choice in advice.choices] == [answer.actions[a] for a in legal]
        assert [choice.probability for choice in advice.choices] == table[legal].tolist()
        assert [choice.ev for choice in advice.choices] == answer.ev[h][legal].tolist()
        assert [choice.loss for choice in advice.choices] == pytest.approx(answer.loss[h][legal], abs=1e-15)
        assert [choice.win for choice in advice.choices] == [None if np.isnan(x) else x for x in answer.win[h][legal]]
        assert (advice.player, advice.stake, advice.unit) == (answer.player, answer.stake, POINTS)
        assert (advice.case, advice.accuracy) == (answer.cases[h], accuracy)
        assert advice.refusal == (answer.refusal[h] if RAISE in answer.actions else None)
        assert adviser.advise(hand, advice.line) == advice


def test_probabilities_are_points_moved() -> None:
    chances = match_like(MINI)
    strategy = trained(MINI, 800, chances)
    plain = Strategy(strategy.tree, replace(chances, unit=POINTS), strategy.probabilities)
    some = some_lines(MINI, 10, 8)
    for line in some:
        a, b = Adviser(strategy).at(line), Adviser(plain).at(line)
        assert_close(a.ev, b.ev + a.player, 1e-12)
        assert (a.cases, a.accuracy) == (b.cases, b.accuracy)
        assert (a.probabilities == b.probabilities).all()
        known = a.ev[~np.isnan(a.ev)]
        assert ((known >= 0) & (known <= 1)).all()


def test_the_dealers_chance_is_what_the_leaders_leaves() -> None:
    rules = preset("tiny")  # all cards are dealt: both know everything
    chances = Payoffs((0.6, 0.9), (0.4, 0.2), 0.5, PROBABILITY)
    adviser = Adviser(trained(rules, 3000, chances))
    tree, table = adviser.strategy.tree, stored(adviser.strategy.tree, adviser.strategy.probabilities)
    now, answer = Naive.at(tree, chances, table, ()), adviser.at(())
    for h, v in zip(*np.nonzero(answer.opponent), strict=True):
        dealer = now.value(1, True)[v] / now.mine[:, v].sum()
        assert np.nanmax(answer.ev[h]) == pytest.approx(1 - dealer, abs=2e-3)
    dealer_refuses, leader_refuses = adviser.at((RAISE,)), adviser.at(("3", RAISE))
    assert dealer_refuses.ev[0, 1] == pytest.approx(1 - chances.win0[0], abs=1e-12)
    assert leader_refuses.ev[0, 1] == pytest.approx(chances.win1[0], abs=1e-12)


# ---------------------------------------------------------------------------------------------- what must not matter


@pytest.mark.parametrize("limit", [1, 2**20])
def test_what_is_forgotten_comes_out_the_same(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree(MINI)
    strategy = Strategy(tree, Payoffs.points(MINI), random_strategy(tree, np.random.default_rng(5)))
    some = [("2", "3"), ("2", "3", RAISE), ("4",), ("2", "3", RAISE, "accept"), ("A", "4"), ("2", "3")]
    before = Adviser(strategy)
    expected = [(before.at(line), before.row(line, 0)) for line in some]
    monkeypatch.setattr(answers, "MOST_BYTES", limit)
    monkeypatch.setattr(answers, "MOST_ANSWERS", 1)
    few = Adviser(strategy)
    for line, (answer, (_, table, accuracy)) in [*zip(some, expected, strict=True)][::-1]:  # in another order, too
        row = few.row(line, 0)
        assert (row[1] == table).all()
        assert row[2] == accuracy
        assert_same(few.at(line), answer)
        assert len(few._nodes) == 1 or sum(node.game.bytes for nodes in few._nodes.values() for node in nodes) <= limit
        assert len(few._answers) == 1
    assert len(few._nodes) < len(before._nodes)


def test_better_solutions_are_forgotten_together() -> None:
    tree = Tree(MINI)
    strategy = Strategy(tree, Payoffs.points(MINI), random_strategy(tree, np.random.default_rng(2)))
    adviser, line = Adviser(strategy), ("2", "3")
    (_, table, accuracy), deeper = adviser.row(line, 7), adviser.row(line, 5)
    assert max(map(len, adviser._nodes.values())) > 1
    adviser._nodes.clear()
    again = adviser.row(line, 7)
    assert (again[1] == table).all()
    assert again[2] == accuracy
    assert (adviser.row(line, 5)[1] == deeper[1]).all()


def test_threads_do_not_matter() -> None:
    tree = Tree(MINI)
    strategy = Strategy(tree, Payoffs.points(MINI), random_strategy(tree, np.random.default_rng(6)))
    one, two = Adviser(strategy), Adviser(strategy, threads=2)
    for line in ((RAISE,), ("2",), ("2", "3"), ("2", RAISE)):
        assert_same(one.at(line), two.at(line))
        assert (one.row(line, 3)[1] == two.row(line, 3)[1]).all()


def test_asking_for_a_row_leaves_the_answer_as_it_was() -> None:
    tree = Tree(MINI)
    strategy = Strategy(tree, Payoffs.points(MINI), random_strategy(tree, np.random.default_rng(7)))
    adviser, line = Adviser(strategy), ("3",)
    rows = [adviser.row(line, h) for h in range(20)]
    again = [adviser.row(line, h) for h in range(20)]
    fresh = [Adviser(strategy).row(line, h) for h in range(0, 20, 7)]
    for a, b in [*zip(rows, again, strict=True), *zip(rows[::7], fresh, strict=True)]:
        assert (a[1] == b[1]).all()
        assert a[2] == b[2]


# ---------------------------------------------------------------------------------------------------- dealt and held

LE_TRUC = preset("le-truc")


@pytest.mark.parametrize(
    ("hand", "line", "dealt", "held"),
    [
        ("8 A 3", "", "A 3 8", "A 3 8"),
        ("8 a,3", "5", "A 3 8", "A 3 8"),
        ("8 A 3", "8 3", "A 3 8", "A 3"),  # who led won, and is to lead again
        ("A 3", "8 3", "A 3 8", "A 3"),
        ("A 3", "3 8", "A 3 8", "A 3"),  # who answered won
        ("A 3", "3 8 raise", "3 A 3", "A 3"),  # the leader is to answer
        ("3", "8 3 A 5", "5 3 3", "3"),
        ("5 3 3", "8 3 A 5", "5 3 3", "3"),
        ("", "8 3 A 5 3 raise", "3 5 3", ""),  # nothing is left: only what was dealt says it
    ],
)
def test_dealt_or_held(hand: str, line: str, dealt: str, held: str) -> None:
    expected = tuple(tuple(sorted(map(LE_TRUC.ranks.index, cards.split()))) for cards in (dealt, held))
    assert resolve(LE_TRUC, hand, tuple(line.split())) == expected


def test_dealt_and_held_agree_at_random() -> None:
    rng = np.random.default_rng(0)
    deck = np.repeat(np.arange(8), 4)
    for _ in range(300):
        cards = rng.permutation(deck)[:6].tolist()
        state = State.deal(LE_TRUC, cards[:3], cards[3:])
        for _ in range(rng.integers(9)):
            actions = state.legal_actions()
            after = state.apply(actions[rng.integers(len(actions))])
            state = state if after.is_over else after
        for player in (0, 1):
            dealt, held = state.dealt[player], state.held[player]
            assert dealt is not None
            assert held is not None
            for text in (dealt, held):
                words = " ".join(LE_TRUC.ranks[rank] for rank in text)
                assert resolve(LE_TRUC, words, state.line, player) == (dealt, held)


@pytest.mark.parametrize(
    ("hand", "line", "player", "message"),
    [
        ("8 8 8", "5 3", 0, "dealt without 5, which the line shows played"),
        ("8 8 8", "8 8", 1, None),  # four of them, one of each side on the table
        ("8 8", "8 8", 0, None),
        ("8 8 8", "8 8 8 8", 0, "with the line has 5 cards of rank 8, but the deck has 4"),
        ("8", "8 8 8 8", 0, "with the line has 5 cards of rank 8"),
        ("5 8 8", "5 5 5", 0, "dealt without 5 5"),
        ("8 8 7 6", "", None, "has 4 cards, it must have 3"),
        ("7", "5 3", None, "has 1 cards, it must have 2"),
        ("", "", None, "must have 3"),
        ("9 8 7", "", None, "'9' in the hand is no card"),
        ("9 8", "5 3", None, "'9' in the hand is no card"),
    ],
)
def test_contradictions(hand: str, line: str, player: int | None, message: str | None) -> None:
    words = tuple(line.split())
    if message is None:
        resolve(LE_TRUC, hand, words, player)
        return
    with pytest.raises(NotationError, match=message):
        resolve(LE_TRUC, hand, words, player)
