"""The match: whose points, who deals, when it ends."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from games.match import Match, MatchError
from games.rules import preset
from games.state import State

LE_TRUC = preset("le-truc")


def played(line: str) -> State:
    state = State.public(LE_TRUC)
    for action in line.split():
        state = state.apply(action)
    return state


LEADER_WINS_1 = played("8 7 8 7")
DEALER_WINS_2 = played("raise accept 7 8 8 7")
SPOILED = played("8 8 7 7 2 2")
LEADER_WINS_12 = played(
    "raise accept 8 raise accept 8 raise accept 7 raise accept 7 raise accept 3 raise accept 2",
)


def test_start():
    match = Match(LE_TRUC, dealer=1)
    assert (match.leader, match.dealer, match.points, match.score) == (0, 1, (0, 0), (0, 0))
    assert (match.is_over, match.winner, match.hands_played) == (False, None, 0)


def test_points_go_to_persons_and_the_deal_alternates():
    match = Match(LE_TRUC, dealer=1).after_hand(LEADER_WINS_1)
    assert (match.points, match.dealer, match.score) == ((1, 0), 0, (0, 1))
    match = match.after_hand(LEADER_WINS_1)
    assert (match.points, match.dealer, match.score) == ((1, 1), 1, (1, 1))
    match = match.after_hand(DEALER_WINS_2)
    assert (match.points, match.dealer, match.score) == ((1, 3), 0, (3, 1))
    assert match.hands_played == 3


def test_the_deal_alternates_after_a_spoiled_hand_too():
    match = Match(LE_TRUC, dealer=1, points=(3, 5)).after_hand(SPOILED)
    assert (match.points, match.dealer, match.score, match.hands_played) == ((3, 5), 0, (5, 3), 1)


def test_a_refused_raise_scores_the_stake_before_it():
    assert Match(LE_TRUC, dealer=1).after_hand(played("raise refuse")).points == (1, 0)
    assert Match(LE_TRUC, dealer=1).after_hand(played("raise accept 8 raise refuse")).points == (0, 2)


def test_first_to_the_target_and_the_surplus_counts_nothing():
    match = Match(LE_TRUC, dealer=1, points=(11, 11)).after_hand(LEADER_WINS_12)
    assert (match.points, match.winner, match.is_over) == ((12, 11), 0, True)
    match = Match(LE_TRUC, dealer=0, points=(11, 11)).after_hand(LEADER_WINS_1)
    assert (match.points, match.winner) == ((11, 12), 1)
    with pytest.raises(MatchError, match="after the match is over"):
        match.after_hand(LEADER_WINS_1)


def test_only_whole_hands_of_the_same_game_count():
    with pytest.raises(MatchError, match="before it is over"):
        Match(LE_TRUC, dealer=0).after_hand(played("8 7"))
    with pytest.raises(MatchError, match="other rules"):
        Match(preset("mini"), dealer=0).after_hand(LEADER_WINS_1)
    assert Match(dataclasses.replace(LE_TRUC, name="mine"), dealer=0).after_hand(LEADER_WINS_1).points == (0, 1)


@pytest.mark.parametrize(
    ("fields", "contained"),
    [
        ({"dealer": 2}, "dealer = 2 must be 0 or 1"),
        ({"dealer": 0, "points": (13, 0)}, r"points = \(13, 0\) must be from 0 to 12"),
        ({"dealer": 0, "points": (-1, 0)}, "from 0 to 12"),
        ({"dealer": 0, "points": (12, 12)}, "only one can have reached it"),
    ],
)
def test_impossible_scores(fields, contained):
    with pytest.raises(MatchError, match=contained):
        Match(LE_TRUC, **fields)


@given(
    st.integers(0, 1),
    st.lists(st.sampled_from([LEADER_WINS_1, DEALER_WINS_2, SPOILED, LEADER_WINS_12]), min_size=1, max_size=40),
)
def test_any_match(first_dealer, hands):
    match = Match(LE_TRUC, dealer=first_dealer)
    won = [0, 0]
    for hand in hands:
        if match.is_over:
            break
        for side, person in enumerate((match.leader, match.dealer)):
            won[person] += max(hand.returns[side], 0)
        match = match.after_hand(hand)
        assert match.points == (min(won[0], 12), min(won[1], 12))
        assert match.dealer == (first_dealer + match.hands_played) % 2
        assert match.score == (match.points[match.leader], match.points[match.dealer])
        assert match.is_over == (max(won) >= 12)
