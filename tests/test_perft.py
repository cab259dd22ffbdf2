"""Every public line of the full game, walked by the referee: the counts of le-truc, exactly."""

from collections import Counter
from functools import cache
from itertools import combinations_with_replacement

import pytest

from games.rules import preset
from games.state import State

pytestmark = pytest.mark.slow  # half a minute; the tree's counts of the same are in tests/test_tree.py

RULES = preset("le-truc")
LAST_TURN = 2 * RULES.hand_size


@cache
def holdings(unseen: tuple[int, ...], size: int) -> tuple[int, int]:
    """How many hands of `size` cards there are among `unseen` (copies by rank), and how many of more than one rank."""
    possible = [
        hand
        for hand in combinations_with_replacement(range(len(unseen)), size)
        if all(hand.count(rank) <= unseen[rank] for rank in hand)
    ]
    return len(possible), sum(len(set(hand)) > 1 for hand in possible)


@pytest.fixture(scope="module")
def perft() -> Counter:
    """Public nodes by (phase, turn), ends by ("card" or "refuse", turn), information states by (phase) and (seat)."""
    count: Counter = Counter()
    states = [State.public(RULES)]
    while states:
        state = states.pop()
        seat, phase, turn = state.to_play, state.phase, state.turn
        legal = state.legal_actions()
        count[phase, turn] += 1
        count["may raise", turn] += "raise" in legal

        # An information state is a possible holding of the player who acts, at this public history.
        played = sum(owner == seat for owner, _ in state.played)
        all_hands, mixed_hands = holdings(state.unseen(seat), RULES.hand_size - played)
        count["infosets", phase] += all_hands
        always_a_choice = phase == "answer" or "raise" in legal
        count["choices", seat] += all_hands if always_a_choice else mixed_hands

        if turn == LAST_TURN and phase != "answer":
            # Each of the last cards ends the hand: three million times the same, so only some of them are played.
            assert count[phase, turn] % 64 > 0 or all(
                state.apply(card).is_over for card in legal if card in RULES.ranks
            )
            count["played out", turn] += len(legal) - ("raise" in legal)
            legal = tuple(action for action in legal if action == "raise")
        for action in legal:
            after = state.apply(action)
            if after.is_over:
                count["refused" if action == "refuse" else "played out", turn] += 1
            else:
                states.append(after)
    return count


def by_turn(perft: Counter, key: str) -> list[int]:
    return [perft[key, turn] for turn in range(1, LAST_TURN + 1)]


def test_decisions(perft):
    assert by_turn(perft, "turn") == [1, 16, 256, 3360, 18800, 217056]


def test_raises(perft):
    raises = [1, 16, 164, 2560, 8352, 163352]
    assert by_turn(perft, "may raise") == by_turn(perft, "answer") == by_turn(perft, "card") == raises


def test_ends(perft):
    assert by_turn(perft, "played out") == [0, 0, 0, 28560, 0, 3041416]
    assert sum(by_turn(perft, "played out")) == 3069976
    assert sum(by_turn(perft, "refused")) == 174445


def test_information_states(perft):
    assert perft["infosets", "turn"] == 2017792
    assert perft["infosets", "answer"] == 257184
    assert perft["infosets", "card"] == 1472904


def test_information_states_with_a_choice(perft):
    assert [perft["choices", seat] for seat in (0, 1)] == [901072, 932168]
