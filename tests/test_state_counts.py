"""The referee and the match walked through every deal of small decks, by every rule set's rules.

`data/exact_cases_variants.json`, which no program of this project has written, says how many information states and
ends there are, and what uniformly random play is worth in points and in a match.
"""

import json
from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations_with_replacement, product
from math import comb, prod
from pathlib import Path
from typing import Any

import pytest

from games.match import Match
from games.rules import Rules
from games.state import Hand, State

EXACT = json.loads((Path(__file__).parent / "data" / "exact_cases_variants.json").read_text())
Score = tuple[int, int]
Left = tuple[int, ...]  # cards left of each rank


def rules_of(case: dict) -> Rules:
    fields = dict(case["rules"])
    ranks = tuple("A23456789"[: fields.pop("n")])
    lists = {key: tuple(fields.pop(key)) for key in ("ladder", "raise_when")}
    return Rules(name="small", ranks=ranks, **fields, **lists, target=case.get("target", 12))


def less(left: Left, hand: Hand) -> Left:
    return tuple(copies - hand.count(rank) for rank, copies in enumerate(left))


@cache
def hands(left: Left, size: int) -> list[tuple[Hand, float]]:
    """Every hand there is among the cards left, with its probability."""
    found = []
    for hand in combinations_with_replacement(range(len(left)), size):
        ways = prod(comb(copies, hand.count(rank)) for rank, copies in enumerate(left))
        if ways:
            found.append((hand, ways / comb(sum(left), size)))
    return found


def deals(state: State) -> list[tuple[State, float]]:
    """The state after every deal that it may be waiting for."""
    left = (state.rules.copies,) * state.rules.n_ranks
    for hand in state.set_aside:
        left = less(left, hand)
    return [
        (state.give(leader, dealer), p * q)
        for leader, p in hands(left, state.hand_size)
        for dealer, q in hands(less(left, leader), state.hand_size)
    ]


@dataclass
class Walk:
    """Everything below the beginning of a hand: nothing merged, public histories apart."""

    count: dict[str, int]
    ends: list[State] = field(default_factory=list)
    """One state for each (winner, stake) with which the hand may end."""
    chances: list[float] = field(default_factory=list)
    """Their probabilities in uniformly random play."""


def walk(start: State) -> Walk:
    infosets: tuple[dict, dict] = (defaultdict(set), defaultdict(set))
    ends: dict[tuple, State] = {}
    chances: dict[tuple, float] = defaultdict(float)
    first_deals = terminals = 0
    states = [(start, 1.0)]
    while states:
        state, p = states.pop()
        if state.is_over:
            terminals += 1
            ends.setdefault((state.winner, state.stake), state)
            chances[state.winner, state.stake] += p
        elif state.phase == "deal":
            found = deals(state)
            first_deals += len(found) if state.set_aside == ((), ()) else 0
            states += [(dealt, p * q) for dealt, q in found]
        else:
            seat, legal = state.to_play, state.legal_actions()
            infosets[seat][state.dealt[seat], state.set_aside[seat], state.line].add(legal)
            states += [(state.apply(action), p / len(legal)) for action in legal]
    count = {"deals": first_deals, "terminals": terminals}
    for seat, seen in enumerate(infosets):
        # What is legal depends on nothing but the information state.
        assert all(len(legal) == 1 for legal in seen.values())
        count[f"infosets_all_p{seat}"] = len(seen)
        count[f"infosets_ge2_p{seat}"] = sum(len(next(iter(legal))) > 1 for legal in seen.values())
    assert sum(chances.values()) == pytest.approx(1, abs=1e-12)
    return Walk(count, list(ends.values()), [chances[key] for key in ends])


LONG = ("cat_l3x3_one", "cat_l4x2", "mcat3_l3x3_dec", "mfr4_l3x3_L124_match")  # seconds each


def cases(kind: str) -> list[Any]:
    """The exact cases or matches, long ones as slow tests."""
    return [
        pytest.param(case, id=case["name"], marks=[pytest.mark.slow] if case["name"] in LONG else [])
        for case in EXACT[kind]
    ]


@pytest.mark.parametrize("case", cases("cases"))
def test_hands_valued_in_points(case):
    found = walk(State.begin(rules_of(case)))
    assert found.count == {key: case[key] for key in found.count}
    value = sum(p * end.returns[0] for end, p in zip(found.ends, found.chances, strict=True))
    assert value == pytest.approx(case["ev_uniform"], abs=1e-12)


def near(rules: Rules, score: Score) -> str:
    """The name of a kind of score: who is one point before the target, as far as that matters."""
    if not rules.decision_before_target:
        return "00"
    return "".join(str(int(points == rules.target - 1)) for points in score)


@pytest.mark.parametrize("case", cases("matches"))
def test_matches(case):
    rules = rules_of(case)
    scores = list(product(range(rules.target), repeat=2))
    kinds: dict[str, Walk] = {}
    for score in scores:
        if near(rules, score) not in kinds:
            kinds[near(rules, score)] = walk(State.begin(rules, score))
    assert {kind: found.count for kind, found in kinds.items()} == case["hand"]

    def leader_wins(score: Score, known: dict[Score, float]) -> float:
        """Whoever leads at this score wins the match, given the same of the scores that may follow."""
        value, found = 0.0, kinds[near(rules, score)]
        match = Match(rules, dealer=1, points=score)
        for end, p in zip(found.ends, found.chances, strict=True):
            then = match.after_hand(replace(end, score=score))
            value += p * (1 - known[then.score] if not then.is_over else then.winner == match.leader)
        return value

    known = dict.fromkeys(scores, 0.5)
    for _ in range(40):  # only a hand that nobody wins leads back, so it is found soon
        known = {score: leader_wins(score, known) for score in scores}
    assert known == pytest.approx({tuple(map(int, text.split(","))): u for text, u in case["U"].items()}, abs=1e-12)
