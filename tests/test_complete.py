"""Strategies of essential games in the game with every action that a tree has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

from games.rules import ACCEPT, FOLD, PASS, RAISE, REMAINDER, Rules, preset
from games.state import State
from solver.census import census
from solver.cfr import PROBABILITY, Payoffs, Solver
from solver.complete import completed, every_action
from solver.equity import decider, score_rules
from solver.essential import essential
from solver.kernels import LANES
from solver.strategy import Decision, Strategy, find
from solver.tree import Tree, public_tree
from tests.bridge import assert_adds_up, make_rules, random_strategy
from tests.test_oracle_variants import AFTER, slow

ACTIONS = {
    "fold": {"fold": True},
    "after": {"raise_when": AFTER},
    "both": {"fold": True, "raise_when": AFTER},
}


@dataclass(frozen=True)
class Case:
    """Rules with everything, and the score of the hand if it needs one."""

    rules: Rules
    score: tuple[int, int] | None = None

    @property
    def hand(self) -> Rules:
        """The essential hand's rules."""
        game = essential(self.rules, in_match=self.score is not None)
        return game if self.score is None else score_rules(game, self.score)

    @property
    def decider(self) -> int | None:
        """Who decides whether the hand is played."""
        return None if self.score is None else decider(self.rules, self.score)

    def strategy(self, solved: bool = False, reduced: bool = True) -> Strategy:
        """Of the essential hand, with payoffs for which more is better and that are otherwise random."""
        rng, tree = np.random.default_rng(1), Tree(self.hand, reduced, self.decider)
        n, last = len(tree.rules.ladder), [1.0] * tree.rules.remainder
        decline = [] if self.decider is None else [float(rng.uniform(0.3, 0.7))]
        win0, win1 = np.sort(rng.uniform(0.5, 1, n)), np.sort(rng.uniform(0, 0.5, n))[::-1]
        pay = Payoffs(
            (*win0.tolist(), *last, *decline),
            (*win1.tolist(), *(1 - x for x in last), *decline),
            float(rng.uniform(win1[0], win0[0])),
            PROBABILITY,
        )
        if not solved:
            return Strategy(tree, pay, random_strategy(tree, rng))
        solver = Solver(tree, pay)
        solver.step(100)
        return Strategy.of(solver)


def cases() -> Iterator[tuple[str, Case]]:
    """Small decks with what the solved games leave out."""
    for n, copies, size in ((3, 3, 1), (3, 3, 2), (4, 2, 1), (4, 2, 2), (3, 3, 3)):
        for tied in ("nobody", "leader")[n - 3 :]:
            for name, actions in ACTIONS.items():
                rules = replace(make_rules(n, copies, size, (1, 2, 3), "linear", tied), **actions)
                if size < 3 or (tied == "leader") == (name == "after"):
                    yield f"l{n}x{copies}-{size}-{tied}-{name}", Case(rules)
    yield "l4x2-3", Case(replace(make_rules(4, 2, 3, (1, 2), "linear", "leader"), **ACTIONS["after"]))
    for size in (1, 2, 3):
        rules = replace(make_rules(3, 3, size, (1, 2, 4)), remainder=True, target=9)
        for name, actions in ACTIONS.items():
            if size < 3 or name != "after":  # "both" has that too
                yield f"remainder-{size}-{name}", Case(replace(rules, **actions), (0, 0))
        if size == 3:
            yield "remainder-3", Case(replace(rules, ladder=(1, 2), **ACTIONS["both"]), (0, 0))
        # Folding matters: it is in the essential game too.
        lost = replace(rules, remainder_refused="match", ladder=(1, 2), **ACTIONS["both"])
        yield f"remainder-lost-{size}", Case(lost, (0, 0))
        decided = replace(make_rules(3, 3, size, (1, 2), "linear", "leader"), target=4, decision_before_target=True)
        for score in ((3, 1), (1, 3), (3, 3)):
            yield f"decided-{size}-{score[0]}-{score[1]}", Case(replace(decided, **ACTIONS["both"]), score)


CASES = dict(cases())


LONG = ("remainder-3-fold", "remainder-3-both")


@pytest.fixture(scope="module", params=[slow(name) if name in LONG else name for name in CASES])
def case(request: pytest.FixtureRequest) -> Case:
    """Of the module, so that all tests of a case follow each other, and find its tree built."""
    return CASES[request.param]


@pytest.mark.parametrize("solved", [False, True], ids=["random", "solved"])
def test_new_actions_gain_nothing(case: Case, solved: bool) -> None:
    small = case.strategy(solved)
    full = completed(small, case.rules)
    assert full.tree.rules == every_action(case.hand, case.rules)
    assert (full.tree.rules.fold, full.tree.rules.raise_when) == (case.rules.fold, case.rules.raise_when)
    assert full.tree.decider == case.decider
    found, expected = full.evaluate(), small.evaluate()
    assert found.value == pytest.approx(expected.value, abs=1e-12)
    assert found.best_response == pytest.approx(expected.best_response, abs=1e-12)
    assert found.exploitability == pytest.approx(expected.exploitability, abs=1e-12)


@pytest.mark.parametrize("name", ["l3x3-3-leader-after", "l4x2-2-leader-both", "remainder-2-both", "decided-2-3-1"])
def test_the_small_tree_need_not_be_merged(name: str) -> None:
    case = CASES[name]
    small = case.strategy(reduced=False)
    found, expected = completed(small, case.rules).evaluate(), small.evaluate()
    assert found.value == pytest.approx(expected.value, abs=1e-12)
    assert found.best_response == pytest.approx(expected.best_response, abs=1e-12)


def test_each_state_adds_up_to_one(case: Case) -> None:
    """In the lanes that there are; nobody reads the others."""
    assert_adds_up(completed(case.strategy(), case.rules))


def every_line(state: State) -> Iterator[State]:
    """All decisions."""
    if not state.is_over:
        yield state
        for action in state.legal_actions():
            yield from every_line(state.apply(action))


def some_lines(start: State, count: int, rng: np.random.Generator) -> Iterator[State]:
    """The decisions of some ways through the game, with many raises."""
    for _ in range(count):
        state = start
        while not state.is_over:
            yield state
            legal = state.legal_actions()
            likely = [word for word in (RAISE, REMAINDER, ACCEPT) if word in legal]
            state = state.apply(str(rng.choice(likely if likely and rng.random() < 0.4 else legal)))


def in_essential_game(start: State, line: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """The line with raises after a card moved to before it and passes left out; and what is to be decided after it:
    "as there", "after" (a raise after the card), or "answer" (to such a raise)."""
    state, found, card = start, list[str](), ""
    for word in line:
        if PASS in state.legal_actions():
            if word != PASS:
                card = found.pop()
                found.append(word)
        elif card:
            assert word == ACCEPT
            found += [ACCEPT, card]
            card = ""
        else:
            found.append(word)
        state = state.apply(word)
    if PASS in state.legal_actions():
        return tuple(found[:-1]), "after"
    return tuple(found), "answer" if card else "as there"


def check(found: Decision, expected: Decision | None) -> None:
    """The same is done, and no new action; without an expectation the play passes."""
    if expected is None:
        assert found.actions[-1] == PASS
        assert (found.probabilities[:, -1] == 1).all()
        assert (found.probabilities[:, :-1] == 0).all()
        return
    assert found.player == expected.player
    np.testing.assert_array_equal(found.holdings, expected.holdings)
    assert set(found.actions) - set(expected.actions) <= {FOLD}
    for column, action in enumerate(found.actions):
        as_there = expected.probabilities[:, expected.actions.index(action)] if action in expected.actions else 0.0
        np.testing.assert_array_equal(found.probabilities[:, column], as_there)


def compare(case: Case, states: Callable[[State], Iterable[State]]) -> dict[str, int]:
    """Compare decisions of the whole game with the essential ones; how many of each kind there were."""
    small = case.strategy()
    full = completed(small, case.rules)
    kinds = dict.fromkeys(("as there", "after", "answer"), 0)
    for state in states(State.public(full.tree.rules, case.score)):
        short, kind = in_essential_game(State.public(full.tree.rules, case.score), state.line)
        check(full.at(state.line), None if kind == "after" else small.at(short))
        kinds[kind] += 1
    raises = len(case.hand.ladder) > 1 and "after" in case.rules.raise_when
    assert (kinds["after"] > 0) == (kinds["answer"] > 0) == raises
    return kinds


def test_decisions_are_those_of_the_essential_game(case: Case) -> None:
    rng = np.random.default_rng(3)
    compare(case, every_line if case.rules.hand_size < 3 else lambda start: some_lines(start, 40, rng))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.rules.hand_size == 3])
def test_every_decision_is_that_of_the_essential_game(name: str) -> None:
    case = CASES[name]
    tree = completed(case.strategy(), case.rules).tree
    assert sum(compare(case, every_line).values()) == census(tree).decisions


def test_nothing_left_out() -> None:
    rules = make_rules(3, 3, 2, (1, 2))
    strategy = Case(rules).strategy()
    assert completed(strategy, rules) is strategy


def test_a_wrong_answer_is_found() -> None:
    """The best responses do look at raises after the card: refuse them all, and the leader profits."""
    case = CASES["l3x3-2-leader-after"]
    small = case.strategy(solved=True)
    full = completed(small, case.rules)
    position = find(full.tree, ("3", RAISE))
    row = full.tree.bases[position.block, 1] + full.tree.nodes[position.node].row
    size = full.tree.size(2)
    answers = full.probabilities[1][row : row + 2 * size].reshape(size, 2, LANES)
    answers[:, 0], answers[:, 1] = 0.0, 1.0
    assert full.evaluate().best_response[0] > small.evaluate().best_response[0] + 1e-3


def test_folds_are_looked_at() -> None:
    """Were a spoiled hand worse than a lost one, more points would not be better, and folding would gain."""
    case = CASES["l3x3-2-nobody-fold"]
    small = case.strategy()
    small.payoffs = replace(small.payoffs, tie=small.payoffs.win1[-1])
    found, expected = completed(small, case.rules).evaluate(), small.evaluate()
    assert found.best_response[0] > expected.best_response[0] + 1e-4
    assert found.best_response[1] == pytest.approx(expected.best_response[1], abs=1e-12)


@pytest.mark.slow
def test_catalan() -> None:
    """The whole deck, 23 million information states instead of 8 million."""
    rules = preset("catalan")
    tree = public_tree(essential(rules))
    solver = Solver(tree)
    while (small := Strategy.of(solver)).evaluate().exploitability > 1e-3:
        solver.step(100)
    full = completed(small, rules)
    found, expected = full.evaluate(), small.evaluate()
    assert found.value == pytest.approx(expected.value, abs=1e-9)
    assert found.best_response == pytest.approx(expected.best_response, abs=1e-9)
    assert found.exploitability <= 1e-3
    states = [census(each).information_states for each in (full.tree, tree)]
    assert [round(count / 1e6) for count in states] == [23, 8]
