"""The public tree: its size, its way through any play, and the floor plan of the code around it."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from games.cards import hands
from games.rules import NOBODY, RAISE, REFUSE, Rules, preset
from games.state import State
from solver import tree as tree_module
from solver.census import Census, census
from solver.kernels import LAST_CARDS, LAST_TRICK, SPLIT, TERMINAL
from solver.nodes import TreeTooLargeError
from solver.strategy import LineError, Position, Strategy, actions, child, find, root
from solver.tree import Tree
from tests.bridge import make_rules
from tests.test_oracle import CASES, EXACT, MATCHES, case_rules

WALKED = {
    "le-truc": preset("le-truc"),
    "mini": preset("mini"),
    "tiny": preset("tiny"),
    "two-card": preset("two-card"),
    "leader": make_rules(3, 4, 3, (1, 2, 3), tied="leader"),
    "dealer": make_rules(3, 2, 3, (1, 2, 4, 6), tied="dealer"),
    "linear": make_rules(4, 3, 3, (1, 2), order="linear"),
    "two cards": make_rules(6, 2, 2, (1, 2, 4, 6), order="linear", tied="dealer"),
    "two cards to the leader": make_rules(3, 4, 2, (2, 5), tied="leader"),
    "one card": make_rules(3, 2, 1, (1, 2, 4)),
    "one card to the dealer": make_rules(5, 1, 1, (1, 2), order="linear", tied="dealer"),
    "one rank": make_rules(1, 6, 3, (1, 2, 4), order="linear"),
    "no raise": make_rules(3, 3, 3, (1,)),
    "seven lanes by seven": make_rules(7, 1, 3, (1, 2)),
    "sixteen ranks": make_rules(16, 1, 2, (1, 2)),
}


@cache
def tree_of(name: str, reduced: bool) -> Tree:
    """The tree of one of WALKED."""
    return Tree(WALKED[name], reduced)


# ------------------------------------------------------------------------------------------------------------ counts


def test_le_truc_has_the_known_size() -> None:
    found = census(tree_of("le-truc", True))
    assert found.turns == (1, 16, 256, 3360, 18800, 217056)
    assert found.raises == (1, 16, 164, 2560, 8352, 163352)
    assert found.ends == (0, 0, 0, 28560, 0, 3041416)
    assert found.played_out == 3_069_976
    assert found.refused == 174_445
    assert found.decisions == 588_379
    assert (found.hands, found.rank_deals, found.card_deals) == (120, 14_280, 18_123_840)
    assert sum(found.turn_states) == 2_017_792
    assert sum(found.answer_states) == 257_184
    assert sum(found.raised_states) == 1_472_904
    assert found.information_states == 3_747_880
    assert found.choices == (901_072, 932_168)
    assert sum(found.choices) == 1_833_240


def known_counts() -> Iterator[tuple[str, Rules, dict[str, int]]]:
    """Each exact case's rules and counts."""
    for name, case in CASES.items():
        yield name, case_rules(case), case
    for name, match in MATCHES.items():
        yield name, case_rules(match), match["hand"]


@pytest.mark.parametrize("reduced", [True, False])
@pytest.mark.parametrize(("rules", "known"), [x[1:] for x in known_counts()], ids=[x[0] for x in known_counts()])
def test_information_states_of_the_exact_cases(rules: Rules, known: dict[str, int], reduced: bool) -> None:
    found = census(Tree(rules, reduced))
    states = [sum(kind) for kind in zip(found.turn_states, found.answer_states, found.raised_states, strict=True)]
    assert states == [known["infosets_all_p0"], known["infosets_all_p1"]]
    assert found.choices == (known["infosets_ge2_p0"], known["infosets_ge2_p1"])
    assert (found.hands, found.rank_deals) == (known["hands"], known["deals"])


def test_the_exact_file_agrees_on_the_full_size() -> None:
    found = census(tree_of("le-truc", True))
    full = EXACT["full_size"]
    assert (found.hands, found.rank_deals, found.card_deals) == (
        full["hands"],
        full["rank_level_deals"],
        full["card_level_deals"],
    )


def counted_by_walking(rules: Rules) -> dict[str, object]:
    """A census by the referee: every public line, and every hand at each of its decisions."""
    turns, raises, ends = ([0] * (2 * rules.hand_size) for _ in range(3))
    states = {"turn": [0, 0], "answer": [0, 0], "card": [0, 0]}
    choices = [0, 0]
    refused, stack = 0, [State.public(rules)]
    while stack:
        state = stack.pop()
        if state.is_over:
            if state.line[-1] == REFUSE:
                refused += 1
            else:
                ends[state.turn - 2] += 1
            continue
        seat, legal = state.to_play, state.legal_actions()
        unseen = state.unseen(seat)
        size = rules.hand_size - sum(owner == seat for owner, _ in state.played)
        possible = [
            hand
            for hand in hands(rules.n_ranks, size, rules.copies).tolist()
            if all(hand.count(rank) <= unseen[rank] for rank in range(rules.n_ranks))
        ]
        states[state.phase][seat] += len(possible)
        two = state.phase == "answer" or RAISE in legal
        choices[seat] += sum(two or len(set(hand)) > 1 for hand in possible)
        if state.phase == "turn":
            turns[state.turn - 1] += 1
            raises[state.turn - 1] += RAISE in legal
        stack.extend(state.apply(action) for action in legal)
    return {
        "turns": tuple(turns),
        "raises": tuple(raises),
        "ends": tuple(ends),
        "refused": refused,
        "turn_states": tuple(states["turn"]),
        "answer_states": tuple(states["answer"]),
        "raised_states": tuple(states["card"]),
        "choices": tuple(choices),
    }


@pytest.mark.parametrize("name", [name for name in WALKED if name not in ("le-truc", "seven lanes by seven")])
def test_the_census_is_the_referees(name: str) -> None:
    walked = counted_by_walking(WALKED[name])
    reduced, full = (census(tree_of(name, reduced)) for reduced in (True, False))
    for key, number in walked.items():
        assert getattr(reduced, key) == number, key
    for key in Census.__slots__:
        if not key.startswith("stored"):
            assert getattr(reduced, key) == getattr(full, key), key


@pytest.mark.parametrize("name", WALKED)
def test_what_is_stored(name: str) -> None:
    for reduced in (True, False) if name != "le-truc" else (True,):
        tree = tree_of(name, reduced)
        found = census(tree)
        for p in range(2):
            starts, sizes = tree.states[p]
            assert (sizes >= 2).all()
            assert np.array_equal(starts, np.cumsum(sizes) - sizes)
            assert sizes.sum() == tree.rows[p]
            assert found.stored_states[p] <= found.stored_regrets[p] / 2
            assert found.stored_regrets[p] <= tree.rows[p] * 16
            if not reduced:  # every state with a choice has a place
                assert found.stored_states[p] >= found.choices[p]
    if name == "le-truc":
        assert found.stored_regrets == (858_656, 943_408)


def test_every_first_trick_has_one_lane() -> None:
    tree = tree_of("le-truc", True)
    for split in {key[0] for key in tree.entry}:
        places = [place for key, place in tree.entry.items() if key[0] == split]
        assert len(set(places)) == len(places) in (8, 64)
    for (split, lane, card), (block, at) in tree.entry.items():
        history = tree.blocks[block].histories[at]
        assert history[-1] == card
        assert history[:-1] == ((lane,) if len(history) == 2 else ())
        assert tree.blocks[block].origin is not None
        assert tree.blocks[block].origin[1] == split


def test_too_large_trees_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = sum(tree_of("mini", True).rows)
    monkeypatch.setattr(tree_module, "MAX_ROWS", rows)
    Tree(preset("mini"))
    monkeypatch.setattr(tree_module, "MAX_ROWS", rows - 1)
    with pytest.raises(
        TreeTooLargeError, match=rf"'mini' has {rows * 16:,} regrets, more than the {rows * 16 - 16:,} "
    ):
        Tree(preset("mini"))


# ------------------------------------------------------------------------------------------------------------- walks


def ending(tree: Tree, position: Position, action: str) -> tuple[int, int]:
    """Winner and level of the end that an action leads to."""
    node, rules = tree.nodes[position.node], tree.rules
    if node.kind == LAST_TRICK:
        if action == REFUSE:
            return node.player, node.spot.level
        outcome = rules.trick_winner(position.led, rules.ranks.index(action))
        winner = {1: 1 - node.player, -1: node.player, 0: (node.player, 1 - node.player, 2)[node.ties]}[outcome]
        return winner, node.spot.level + (position.stage == 2)
    assert node.cards != LAST_CARDS
    if node.cards == SPLIT and action in rules.ranks:
        block, _ = tree.entry[position.node, position.lane, rules.ranks.index(action)]
        end = tree.nodes[tree.programs[tree.blocks[block].program].start]
    else:
        edge = node.words.index(action) if action in node.words else len(node.words) + rules.ranks.index(action)
        end = tree.nodes[node.children[edge]]
    assert end.kind == TERMINAL
    return end.winner, end.spot.level


def walk(tree: Tree, state: State, strategy: Strategy | None, rng: random.Random, raises: float) -> None:
    """Play a hand at random, and hold the tree's way through it against the referee's."""
    rules, position = tree.rules, root(tree)
    while True:
        seat, legal = state.to_play, state.legal_actions()
        player, words, cards = actions(tree, position)
        held = state.held[seat]
        assert held is not None
        assert player == seat
        assert (*words, *(rules.ranks[r] for r in sorted(set(held)) if cards)) == legal
        assert find(tree, state.line) == position
        if strategy is not None:
            decision = strategy.at(state.line)
            (row,) = (i for i, hand in enumerate(decision.holdings.tolist()) if hand == list(held) or not hand)
            names = [a for a, yes in zip(decision.actions, decision.legal[row], strict=True) if yes]
            assert (decision.player, tuple(names)) == (seat, legal)
            assert decision.probabilities[row].sum() == pytest.approx(1)
            assert decision.probabilities[row][decision.legal[row]] == pytest.approx(1 / len(legal))
        action = rng.choice(legal)
        if RAISE in legal and rng.random() < raises:
            action = RAISE
        if action == REFUSE and rng.random() < raises:
            action = "accept"
        after = child(tree, position, action)
        if state.phase == "answer" or RAISE in legal:
            with pytest.raises(LineError, match="possible are"):
                child(tree, position, "accept" if state.phase != "answer" else RAISE)
        state = state.apply(action)
        assert (after is None) == state.is_over
        if after is None:
            winner, level = ending(tree, position, action)
            assert (winner if winner < 2 else NOBODY, level) == (state.winner, state.level)
            with pytest.raises(LineError, match="the hand is over"):
                find(tree, state.line)
            return
        position = after


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(sorted(WALKED)), st.randoms(use_true_random=False), st.sampled_from([0.0, 0.5, 1.0]))
def test_any_play_has_its_way_through_the_tree(name: str, rng: random.Random, raises: float) -> None:
    rules = WALKED[name]
    deck = [rank for rank in range(rules.n_ranks) for _ in range(rules.copies)]
    dealt = rng.sample(deck, 2 * rules.hand_size)
    state = State.deal(rules, dealt[: rules.hand_size], dealt[rules.hand_size :])
    for reduced in (True, False) if name != "le-truc" else (True,):
        tree = tree_of(name, reduced)
        walk(tree, state, None if name == "le-truc" else uniform_of(name, reduced), rng, raises)


@cache
def uniform_of(name: str, reduced: bool) -> Strategy:
    """The uniform strategy of one of WALKED."""
    return Strategy.uniform(tree_of(name, reduced))


@pytest.mark.slow
def test_the_full_tree_of_le_truc() -> None:
    full, reduced = (census(tree_of("le-truc", reduced)) for reduced in (False, True))
    for key in Census.__slots__:
        if not key.startswith("stored"):
            assert getattr(full, key) == getattr(reduced, key), key
    rng = random.Random(1)
    for _ in range(500):
        dealt = rng.sample([rank for rank in range(8) for _ in range(4)], 6)
        walk(tree_of("le-truc", False), State.deal(preset("le-truc"), dealt[:3], dealt[3:]), None, rng, 0.5)


# -------------------------------------------------------------------------------------------------------- floor plan

ROOT = Path(__file__).parents[1]
LAYERS = (
    *(
        "paths",
        "words",
        "kernels",
        "holdings",
        "nodes",
        "tree",
        "parts",
        "cfr",
        "best_response",
        "redeal",
        "strategy",
        "walk",
        "files",
        "storage",
        "solve",
    ),
    *(
        "essential",
        "subgame",
        "last_trick",
        "i18n",
        "explain",
        "answers",
        "lines",
        "full_game",
        "advise",
        "equity",
        "lift",
        "complete",
        "match",
        "before_deal",
        "match_run",
        "book",
        "scores",
    ),
)  # each may import those before it


def imported(path: Path) -> set[str]:
    """Every module that a file names in an import, also inside functions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            found.add(node.module or "")
            if node.module in ("games", "solver", "tests"):
                found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def below(modules: set[str], package: str) -> set[str]:
    """Those of some modules that lie in a package, the package itself included."""
    return {module for module in modules if module.split(".")[0] == package}


def test_games_knows_nothing_of_the_solver() -> None:
    for path in (ROOT / "games").rglob("*.py"):
        assert not below(imported(path), "solver") | below(imported(path), "tests"), path
        assert not below(imported(path), "numba"), path


def test_imports_point_one_way() -> None:
    for number, name in enumerate(LAYERS):
        allowed = {"solver", "solver.__version__"} | {f"solver.{below}" for below in LAYERS[:number]}
        assert below(imported(ROOT / "solver" / f"{name}.py"), "solver") <= allowed, name
    for path in (ROOT / "solver").rglob("*.py"):
        assert not below(imported(path), "tests"), path
        inside = path.relative_to(ROOT / "solver")
        if inside.parts[0] not in ("__main__.py", "cli", "web"):
            seen = {module for module in imported(path) if module.startswith(("solver.cli", "solver.web"))}
            assert not seen, path


def test_every_compiled_function_is_in_kernels() -> None:
    paths = [*(ROOT / "games").rglob("*.py"), *(ROOT / "solver").rglob("*.py"), *(ROOT / "scripts").rglob("*.py")]
    compiling = {path.relative_to(ROOT).as_posix() for path in paths if below(imported(path), "numba")}
    assert "solver/kernels.py" in compiling
    for path in compiling - {"solver/kernels.py"}:  # to ask for its version, or to set its threads
        names = {
            node.id if isinstance(node, ast.Name) else node.attr
            for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8")))
            if isinstance(node, ast.Name | ast.Attribute)
        }
        assert not names & {"njit", "jit", "vectorize", "guvectorize", "intrinsic", "overload", "cfunc"}, path


def test_the_oracle_shares_nothing_with_what_it_checks() -> None:
    modules = imported(ROOT / "tests" / "oracle.py")
    assert below(modules, "games") <= {"games.rules", "games.cards"}
    assert not below(modules, "solver") | below(modules, "tests")
