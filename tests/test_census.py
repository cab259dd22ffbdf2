"""The census of games with folds, remainders, raises after the card and a decision before the target.

Against `data/exact_cases_variants.json`, which no program of this project has written, and the referee's public walk.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from games.cards import hands
from games.rules import FOLD, REFUSE, Rules
from games.state import State
from solver.census import Census, census
from solver.equity import Score, decider, score_rules
from solver.tree import Tree
from tests.test_tree_variants import CASES, MATCHES, rules_of

HAS_TREE = [name for name, case in CASES.items() if not (case["rules"]["redeal"] or case["rules"]["one_card"])]
SCORES = [
    (name, kind)
    for name, match in MATCHES.items()
    for kind in match["hand"]
    if kind != "00" or not match["rules"]["one_card"]  # which is never played a point before the target
]


def at_score(rules: Rules, score: Score, reduced: bool = False) -> Tree:
    """The tree with all actions of a hand at a score."""
    return Tree(score_rules(rules, score), reduced, decider(rules, score))


@pytest.mark.parametrize("name", HAS_TREE)
def test_hands_in_points(name: str) -> None:
    case = CASES[name]
    found = census(Tree(rules_of(case), reduced=False))
    assert found.states_of == (case["infosets_all_p0"], case["infosets_all_p1"])
    assert found.choices == (case["infosets_ge2_p0"], case["infosets_ge2_p1"])
    assert found.rank_deals == case["deals"]


@pytest.mark.parametrize(("name", "kind"), SCORES)
def test_hands_of_a_match(name: str, kind: str) -> None:
    """At each kind of score: "10" is the leader one point before the target."""
    match = MATCHES[name]
    rules = rules_of(match)
    score = (int(kind[0]) * (rules.target - 1), int(kind[1]) * (rules.target - 1))
    found, known = census(at_score(rules, score)), match["hand"][kind]
    assert found.states_of == (known["infosets_all_p0"], known["infosets_all_p1"])
    assert found.choices == (known["infosets_ge2_p0"], known["infosets_ge2_p1"])
    assert found.rank_deals == known["deals"]


# --------------------------------------------------------------------------------------------------------- the referee

DECK = Rules("deck", ("A", "2", "3"), "linear", 2, 3, (1, 2, 4), "nobody", target=3)
WALKED: dict[str, tuple[Rules, Score]] = {
    "fold": (replace(DECK, fold=True), (0, 0)),
    "remainder": (replace(DECK, remainder=True), (0, 0)),
    "after": (replace(DECK, raise_when=("before", "after")), (0, 0)),
    "all": (replace(DECK, fold=True, remainder=True, raise_when=("before", "after"), ladder=(1, 2)), (0, 0)),
    "two cards": (replace(DECK, hand_size=2, fold=True, remainder=True, raise_when=("before", "after")), (0, 0)),
    "one card": (replace(DECK, hand_size=1, fold=True, remainder=True, raise_when=("before", "after")), (0, 0)),
    "leader decides": (replace(DECK, decision_before_target=True), (2, 1)),
    "dealer decides": (replace(DECK, decision_before_target=True, fold=True), (0, 2)),
    "both there": (replace(DECK, decision_before_target=True, raise_when=("before", "after")), (2, 2)),
}


@cache
def walked(name: str) -> dict[str, object]:
    """A census by the referee at the full rules' score: every public line, and every hand at each of its decisions."""
    rules, score = WALKED[name]
    turns, raises, ends, after, after_raises = ([0] * (2 * rules.hand_size) for _ in range(5))
    states = {phase: [0, 0] for phase in ("turn", "answer", "card", "after", "decision")}
    choices, folded, refused, opening, decisions = [0, 0], 0, 0, 0, 0
    stack = [State.public(rules, score)]
    while stack:
        state = stack.pop()
        if state.is_over:
            last = state.line[-1]
            folded += last == FOLD
            refused += last == REFUSE
            ends[state.turn - 2] += last in rules.ranks
            continue
        seat, legal, turn = state.to_play, state.legal_actions(), state.turn - 1
        unseen, words = state.unseen(seat), [word for word in legal if word not in rules.ranks]
        size = rules.hand_size - sum(owner == seat for owner, _ in state.played)
        possible = [
            hand
            for hand in hands(rules.n_ranks, size, rules.copies).tolist()
            if all(hand.count(rank) <= unseen[rank] for rank in range(rules.n_ranks))
        ]
        # After an accepted raise that came after the card it is a turn like any other.
        states[state.phase][seat] += len(possible)
        plays = len(words) < len(legal)
        choices[seat] += sum(len(words) + (len(set(hand)) if plays else 0) > 1 for hand in possible)
        offered = sum(word in ("raise", "remainder") for word in words)
        if state.phase == "turn":
            turns[turn] += 1
            raises[turn] += offered
        elif state.phase == "after":
            after[turn - 1] += 1
            after_raises[turn - 1] += offered
        opening += state.phase == "decision"
        decisions += 1
        stack.extend(state.apply(action) for action in legal)
    return {
        **{"turns": tuple(turns), "raises": tuple(raises), "ends": tuple(ends)},
        **{"after": tuple(after), "after_raises": tuple(after_raises), "folded": folded, "refused": refused},
        **{"decisions": decisions, "opening": opening, "choices": tuple(choices), "played_out": sum(ends)},
        **{"turn_states": tuple(states["turn"]), "answer_states": tuple(states["answer"])},
        **{"raised_states": tuple(states["card"]), "after_states": tuple(states["after"])},
        **{
            "opening_states": tuple(states["decision"]),
            "states_of": tuple(map(sum, zip(*states.values(), strict=True))),
        },
        "information_states": sum(map(sum, states.values())),
    }


@pytest.mark.parametrize(
    ("name", "reduced"),
    [
        (name, merged)
        for name in WALKED
        for merged in (True, False)
        if not merged or at_score(*WALKED[name], True).reduced
    ],
)
def test_the_census_is_the_referees(name: str, reduced: bool) -> None:
    found = census(at_score(*WALKED[name], reduced))
    for key, number in walked(name).items():
        assert getattr(found, key) == number, key


def test_merging_changes_only_what_is_stored() -> None:
    rules, score = WALKED["remainder"]
    reduced, full = (census(at_score(rules, score, merged)) for merged in (True, False))
    for key in Census.__slots__:
        same = getattr(reduced, key) == getattr(full, key)
        assert same or key.startswith("stored"), key
    assert sum(reduced.stored_regrets) < sum(full.stored_regrets)
