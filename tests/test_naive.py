"""The naive recursion on games with every action of a tree: it values random play as the kernels do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from games.rules import Rules
from solver.cfr import Payoffs
from solver.strategy import Strategy
from solver.tree import Tree
from tests.bridge import random_strategy
from tests.naive import Naive, lines, stored

SMALL = Rules("small", ("A", "2", "3"), "linear", 2, 2, (1, 2, 3), "nobody", target=4)
GAMES: dict[str, tuple[Rules, int | None]] = {
    "everything": (replace(SMALL, raise_when=("before", "after"), remainder=True, fold=True), None),
    "refused": (replace(SMALL, fold=True, remainder=True, remainder_refused="match"), None),
    "merged": (replace(SMALL, remainder=True, order="circular"), None),
    "leader decides": (replace(SMALL, decision_before_target=True, ladder=(3,)), 0),
    "dealer decides": (replace(SMALL, decision_before_target=True, ladder=(3,), fold=True), 1),
}


@pytest.mark.parametrize("name", GAMES)
def test_values(name: str) -> None:
    rules, decider = GAMES[name]
    tree, rng = Tree(rules, decider=decider), np.random.default_rng(1)
    win0, win1 = rng.uniform(0.5, 1, tree.levels), rng.uniform(0, 0.5, tree.levels)
    if decider is not None:
        win1[-1] = win0[-1]
    payoffs = Payoffs(tuple(win0), tuple(win1), 0.5, "match-winning probability")
    play = random_strategy(tree, rng)
    found = Strategy(tree, payoffs, play).evaluate()
    naive = Naive.at(tree, payoffs, stored(tree, play), ())
    assert naive.value(0, False).sum() == pytest.approx(found.value, abs=1e-12)
    assert [naive.value(p, True).sum() for p in (0, 1)] == pytest.approx(found.best_response, abs=1e-12)


def test_lines_begin_with_the_decision() -> None:
    rules, decider = GAMES["dealer decides"]
    found = list(lines(rules, decider))
    assert found[0] == ()
    assert all(line[0] == "play" for line in found[1:])
