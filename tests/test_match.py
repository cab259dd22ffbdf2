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


# Rules that are about the match


def hand(name: str, line: str, score: tuple[int, int], **fields) -> State:
    return State.public(dataclasses.replace(preset(name), **fields), score).follow(line.split())


def test_a_hand_for_the_match_ends_it_from_any_score():
    french = preset("french")
    for points in [(0, 0), (3, 5), (11, 11), (0, 11)]:
        match = Match(french, dealer=1, points=points)
        won = match.after_hand(hand("french", "keep remainder accept 7 8 7 8", match.score))
        assert (won.winner, won.points) == (0, (12, points[1]))
        lost = match.after_hand(hand("french", "keep remainder accept fold", match.score))
        assert (lost.winner, lost.points) == (1, (points[0], 12))
        tied = match.after_hand(hand("french", "keep remainder accept 7 7 8 8 9 9", match.score))
        assert (tied.winner, tied.points, tied.dealer) == (None, points, 0)


@pytest.mark.parametrize(("refused", "leader", "dealer"), [("stake", (6, 3), (5, 5)), ("match", (12, 3), (5, 12))])
def test_a_refused_remainder_in_a_match(refused, leader, dealer):
    rules = dataclasses.replace(preset("french"), remainder_refused=refused)
    match = Match(rules, dealer=1, points=(5, 3))
    for line, points in [("remainder refuse", leader), ("raise accept 7 remainder refuse", dealer)]:
        over = hand("french", f"keep {line}", (5, 3), remainder_refused=refused)
        assert match.after_hand(over).points == points


def test_the_decision_before_the_target():
    match = Match(preset("catalan"), dealer=1, points=(11, 5))
    declined = match.after_hand(hand("catalan", "decline", (11, 5)))
    assert (declined.points, declined.dealer, declined.score) == ((11, 6), 0, (6, 11))
    assert match.after_hand(hand("catalan", "play 3 4 3 4", (11, 5))).winner == 0
    assert match.after_hand(hand("catalan", "play 4 3 3 4", (11, 5))).points == (11, 8)
    both = Match(preset("catalan"), dealer=1, points=(11, 11)).after_hand(hand("catalan", "4 3 3 4", (11, 11)))
    assert (both.winner, both.points) == (1, (11, 12))


def test_the_deal_passes_after_a_redeal_and_a_one_card_hand_too():
    match = Match(preset("french"), dealer=1).after_hand(hand("french", "propose agree 7 8 7 8", (0, 0)))
    assert (match.points, match.dealer) == ((1, 0), 0)
    match = Match(preset("catalan"), dealer=1).after_hand(hand("catalan", "tap one 3 raise accept 3", (0, 0)))
    assert (match.points, match.dealer) == ((2, 0), 0)


@pytest.mark.parametrize("score", [(5, 4), (4, 5), None])
def test_a_hand_is_of_the_score_at_which_it_is_played(score):
    for name in ("french", "catalan"):
        start = State.public(preset(name), score)
        over = start.follow(("keep" if name == "french" else "cut", "raise", "refuse"))
        with pytest.raises(MatchError, match=r"but the match is at \(5, 3\)"):
            Match(preset(name), dealer=1, points=(5, 3)).after_hand(over)
    over = State.public(LE_TRUC, score).follow(("raise", "refuse"))
    if score is None:  # of no concern to its rules
        assert Match(LE_TRUC, dealer=1, points=(5, 3)).after_hand(over).points == (6, 3)
    else:
        with pytest.raises(MatchError, match="but the match is at"):
            Match(LE_TRUC, dealer=1, points=(5, 3)).after_hand(over)


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
