"""The referee, one rule after the other, then in random play."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from games.cards import deal_weights, hands
from games.notation import parse_hand
from games.rules import NOBODY, Rules, preset, preset_names
from games.state import DealError, IllegalActionError, State

LE_TRUC = preset("le-truc")
EXACT = json.loads((Path(__file__).parent / "data" / "exact_cases.json").read_text())


def dealt(leader: str, dealer: str, rules: Rules = LE_TRUC) -> State:
    return State.deal(rules, parse_hand(rules, leader), parse_hand(rules, dealer))


def after(state: State, line: str) -> State:
    for action in line.split():
        state = state.apply(action)
    return state


# The deal


def test_start():
    state = dealt("8 A 3", "7 7 2")
    assert state.dealt == state.held == ((0, 2, 7), (1, 6, 6))
    assert (state.to_play, state.phase, state.turn, state.stake, state.offer) == (0, "turn", 1, 1, None)
    assert (state.played, state.results, state.line, state.winner, state.is_over) == ((), (), (), None, False)


def test_hands_of_numpy_integers():
    rows = hands(8, 3, 4)
    assert State.deal(LE_TRUC, rows[5], rows[100]) == State.deal(LE_TRUC, rows[5].tolist(), rows[100].tolist())
    assert all(type(rank) is int for rank in State.seen_by(LE_TRUC, 1, rows[5]).dealt[1])


@pytest.mark.parametrize(
    ("leader", "dealer", "contained"),
    [
        ((0, 1), (2, 3, 4), "has 2 cards, but 3 are dealt"),
        ((0, 1, 2), (), "has 0 cards"),
        ((0, 1, 8), (2, 3, 4), "has 8, ranks are 0 to 7"),
        ((0, 1, -1), (2, 3, 4), "has -1"),
        ((0, 0, 0), (0, 0, 1), "5 cards of rank A, but the deck has 4"),
    ],
)
def test_impossible_deals(leader, dealer, contained):
    with pytest.raises(DealError, match=contained):
        State.deal(LE_TRUC, leader, dealer)


def test_impossible_views():
    with pytest.raises(DealError, match="seat = 2 must be 0"):
        State.seen_by(LE_TRUC, 2, (0, 1, 2))
    with pytest.raises(DealError, match="3 cards of rank A, but the deck has 2"):
        State.seen_by(preset("tiny"), 1, (0, 0, 0))


# Who plays


def test_the_leader_leads_trick_1_and_the_dealer_answers():
    state = dealt("8 5 3", "7 7 2")
    assert state.to_play == 0
    assert after(state, "5").to_play == 1


def test_any_card_may_answer():
    assert after(dealt("8 5 3", "7 A 2"), "8").legal_actions() == ("raise", "A", "2", "7")


def test_the_winner_leads_the_next_trick():
    assert after(dealt("8 5 3", "7 7 2"), "8 7").to_play == 0
    assert after(dealt("8 5 3", "7 7 2"), "5 7").to_play == 1
    assert after(dealt("8 5 3", "7 7 2"), "5 7 2").to_play == 0


def test_after_a_tie_the_same_player_leads_again():
    assert after(dealt("8 5 3", "8 7 5"), "8 8").to_play == 0
    assert after(dealt("8 5 3", "7 7 5"), "3 7 5 5").is_over  # LT is decided
    # Two ties: the leader still leads.
    assert after(dealt("8 5 3", "8 5 4"), "8 8 5 5").to_play == 0
    # With equal aces too.
    assert after(dealt("A 5 3", "A 5 4"), "A A").results == (0,)


def test_the_ace_beats_only_the_eight():
    assert after(dealt("A 5 3", "8 7 2"), "A 8").results == (1,)
    assert after(dealt("8 5 3", "A 7 2"), "8 A").results == (-1,)
    for low in "234567":
        assert after(dealt("A A A", f"{low} {low} {low}"), f"A {low}").results == (-1,)


# Who wins, and when the hand stops


@pytest.mark.parametrize(
    ("leader", "dealer", "line", "results", "winner"),
    [
        # WW, LL, WT, LT, TW, TL stop after two.
        ("8 7 2", "5 4 3", "8 5 7 4", (1, 1), 0),
        ("5 4 3", "8 7 2", "5 8 7 4", (-1, -1), 1),
        ("8 7 2", "5 7 3", "8 5 7 7", (1, 0), 0),
        ("5 7 3", "8 7 2", "5 8 7 7", (-1, 0), 1),
        ("8 7 2", "8 6 3", "8 8 7 6", (0, 1), 0),
        ("8 6 3", "8 7 2", "8 8 6 7", (0, -1), 1),
        # WL, LW and TT need the third.
        ("8 7 2", "5 4 3", "8 5 2 3", (1, -1), None),
        ("5 4 3", "8 7 2", "3 7 2 4", (-1, 1), None),
        ("8 7 2", "8 7 3", "8 8 7 7", (0, 0), None),
        # More tricks wins.
        ("8 7 2", "5 4 3", "8 5 2 3 4 7", (1, -1, 1), 0),
        ("5 4 3", "8 7 2", "3 7 2 4 5 8", (-1, 1, -1), 1),
        # Equal: the winner of the first trick that was not tied.
        ("8 6 2", "7 6 3", "8 7 2 3 6 6", (1, -1, 0), 0),
        ("7 6 3", "8 6 2", "7 8 2 3 6 6", (-1, 1, 0), 1),
        ("8 7 3", "8 7 2", "8 8 7 7 3 2", (0, 0, 1), 0),
        ("8 7 2", "8 7 3", "8 8 7 7 2 3", (0, 0, -1), 1),
        # All three tied: nobody scores.
        ("8 7 2", "8 7 2", "8 8 7 7 2 2", (0, 0, 0), NOBODY),
    ],
)
def test_results(leader, dealer, line, results, winner):
    state = after(dealt(leader, dealer), line)
    assert state.results == results
    assert state.winner == winner
    assert state.is_over == (winner is not None)
    if state.is_over:
        assert state.returns == {0: (1, -1), 1: (-1, 1), NOBODY: (0, 0)}[winner]
        assert state.to_play == NOBODY
        assert state.legal_actions() == ()


def test_never_in_mid_trick_and_never_by_counting_cards():
    # One trick each, the dealer has led the Ace and the leader's last card beats it: it has to be played all the same.
    state = after(dealt("8 7 2", "5 A 3"), "8 5 2 3 A")
    assert not state.is_over
    assert state.legal_actions() == ("raise", "7")
    assert state.apply("7").winner == 0


@pytest.mark.parametrize(("all_tied", "returns"), [("nobody", (0, 0)), ("leader", (1, -1)), ("dealer", (-1, 1))])
def test_all_tied_by_rule_set(all_tied, returns):
    rules = dataclasses.replace(LE_TRUC, all_tied=all_tied)
    assert after(dealt("8 7 2", "8 7 2", rules), "8 8 7 7 2 2").returns == returns


def test_linear_order():
    rules = dataclasses.replace(LE_TRUC, order="linear")
    assert after(dealt("A 5 3", "8 7 2", rules), "A 8").results == (-1,)


# Raising


def test_raise_comes_first_then_distinct_ranks_weakest_first():
    assert dealt("8 A 8", "7 7 2").legal_actions() == ("raise", "A", "8")


def test_a_raise_is_accepted_or_refused_and_nothing_else():
    state = after(dealt("8 A 3", "7 7 2"), "raise")
    assert (state.to_play, state.phase, state.stake, state.offer) == (1, "answer", 1, 2)
    assert state.legal_actions() == ("accept", "refuse")


def test_refused_the_raiser_scores_the_stake_before_the_raise():
    state = after(dealt("8 A 3", "7 7 2"), "raise refuse")
    assert (state.is_over, state.winner, state.returns) == (True, 0, (1, -1))
    state = after(dealt("8 A 3", "7 7 2"), "raise accept 3 raise refuse")
    assert (state.is_over, state.winner, state.returns) == (True, 1, (-2, 2))


def test_accepted_the_raiser_plays_a_card_at_the_new_stake():
    state = after(dealt("8 A 3", "7 7 2"), "raise accept")
    assert (state.to_play, state.phase, state.stake, state.offer) == (0, "card", 2, None)
    assert state.legal_actions() == ("A", "3", "8")
    assert after(dealt("8 7 3", "7 6 2"), "raise accept 8 2 7 6").returns == (2, -2)


def test_the_next_right_to_raise_is_the_opponents():
    state = after(dealt("8 7 3", "7 6 2"), "raise accept 8")
    assert state.legal_actions()[0] == "raise"
    state = after(state, "7")
    assert (state.to_play, "raise" in state.legal_actions()) == (0, False)  # the leader raised last
    # At any later turn of his own: also after one he let pass.
    state = after(state, "3")
    assert (state.to_play, "raise" in state.legal_actions()) == (1, True)
    # Leading counts like answering.
    state = after(dealt("8 5 3", "8 7 2"), "raise accept 5 7")
    assert (state.to_play, state.legal_actions()) == (1, ("raise", "2", "8"))
    # Without any raise yet it is anybody's.
    assert "raise" in after(dealt("8 7 3", "7 6 2"), "8").legal_actions()


def test_raising_on_the_last_card_by_a_player_who_knows_the_result():
    state = after(dealt("8 7 2", "5 4 3"), "8 5 2 3 4")
    assert (state.turn, state.to_play, state.legal_actions()) == (6, 0, ("raise", "7"))
    assert after(state, "raise accept 7").returns == (2, -2)


def test_the_ladder_ends_and_ignores_the_score():
    line = "raise accept 8 raise accept 8 raise accept 7 raise accept 7 raise accept 2 raise accept 3"
    state = after(dealt("8 7 2", "8 7 3"), line)
    assert (state.stake, state.returns) == (12, (-12, 12))
    assert len(state.line) == 18
    rules = dataclasses.replace(LE_TRUC, target=2)
    assert after(dealt("8 7 2", "8 7 3", rules), line).returns == (-12, 12)
    mini = preset("mini")
    assert "raise" not in after(dealt("A 2 3", "A 2 3", mini), "raise accept 3 raise accept 2").legal_actions()
    assert "raise" not in dealt("A 2 3", "A 2 3", dataclasses.replace(mini, ladder=(1,))).legal_actions()


def test_all_six_raises_only_after_two_tied_tricks():
    def raised_lines(state: State):
        """Every line with a raise before every card, cards freely chosen."""
        if state.is_over or state.turn == 6:
            yield state
            return
        if "raise" in state.legal_actions():
            for action in state.apply("raise").apply("accept").legal_actions():
                yield from raised_lines(state.apply("raise").apply("accept").apply(action))

    ready = [state for state in raised_lines(State.public(LE_TRUC)) if "raise" in state.legal_actions()]
    assert ready
    assert all(state.results == (0, 0) and state.stake == 10 for state in ready)


# Smaller hands


def test_two_cards():
    rules = preset("two-card")
    assert after(dealt("8 7", "5 4", rules), "8 5").returns == (1, -1)
    assert after(dealt("5 4", "8 7", rules), "5 8").returns == (-1, 1)
    state = after(dealt("8 4", "8 7", rules), "8 raise accept 8")
    assert (state.is_over, state.to_play) == (False, 0)
    assert after(state, "4 7").returns == (-2, 2)
    assert after(dealt("8 7", "8 7", rules), "8 8 7 7").returns == (0, 0)


def test_one_card():
    rules = dataclasses.replace(LE_TRUC, hand_size=1)
    assert after(dealt("8", "7", rules), "8 7").returns == (1, -1)
    assert after(dealt("8", "8", rules), "8 8").returns == (0, 0)
    assert after(dealt("8", "A", rules), "raise accept 8 raise accept A").returns == (-4, 4)


# Illegal actions


@pytest.mark.parametrize(
    ("line", "action", "contained"),
    [
        ("", "accept", "'accept' is not legal here, legal is raise or A or 3 or 8."),
        ("", "4", "'4' is not legal here"),
        ("", "r", "'r' is not legal here"),
        ("raise", "raise", "legal is accept or refuse."),
        ("raise accept", "raise", "legal is A or 3 or 8."),
        ("8", "8", "legal is raise or 2 or 7."),
        ("raise refuse", "8", "the hand is over."),
        ("", "x" * 10**6, "legal is"),
    ],
)
def test_illegal_actions(line, action, contained):
    with pytest.raises(IllegalActionError) as error:
        after(dealt("8 A 3", "7 7 2"), line).apply(action)
    assert contained in str(error.value)
    assert len(str(error.value)) < 150


def test_no_points_before_the_end():
    with pytest.raises(ValueError, match="before it is over"):
        _ = dealt("8 A 3", "7 7 2").returns


# Unseen hands


def test_the_public_lets_play_what_some_deal_allows():
    state = after(State.public(LE_TRUC), "A A A A")
    assert state.held == (None, None)
    assert state.legal_actions() == ("raise", "2", "3", "4", "5", "6", "7", "8")
    assert state.unseen(0) == state.unseen(1) == (0, 4, 4, 4, 4, 4, 4, 4)


def test_a_player_sees_the_own_hand():
    state = State.seen_by(preset("tiny"), 1, (0, 0, 1))
    assert state.legal_actions() == ("raise", "2", "3")  # the dealer has both aces, so the leader has none
    assert state.unseen(0) == (0, 1, 2)
    state = after(state, "3")
    assert state.legal_actions() == ("raise", "A", "2")
    assert state.apply("A").held == (None, (0, 1))


# Small decks, every deal from the first action to the last


def infosets_and_ends(rules: Rules) -> tuple[dict[tuple[object, ...], int], int]:
    """Legal actions of every information state (seat, own hand, public history), and the ends of all deals."""
    infosets: dict[tuple[object, ...], int] = {}
    ends = 0
    rows = hands(rules.n_ranks, rules.hand_size, rules.copies)
    for i, j in zip(*np.nonzero(deal_weights(rules)), strict=True):
        states = [State.deal(rules, rows[i], rows[j])]
        while states:
            state = states.pop()
            if state.is_over:
                ends += 1
                continue
            legal = state.legal_actions()
            infosets[state.to_play, state.dealt[state.to_play], state.line] = len(legal)
            states += [state.apply(action) for action in legal]
    return infosets, ends


@pytest.mark.parametrize("name", ["c3x2_L12", "c3x3_full", "c3x4_L12_leader", "c3x4_L124_payoffs", "c8x4_hs2_L12"])
def test_counts_of_small_decks(name):
    case = next(case for case in EXACT["cases"] if case["name"] == name)
    fields = dict(case["rules"])
    ranks = tuple("A2345678"[: fields.pop("n")])
    rules = Rules(name="small", ranks=ranks, **{**fields, "ladder": tuple(fields["ladder"])})
    infosets, ends = infosets_and_ends(rules)
    assert ends == case["terminals"]
    for seat in (0, 1):
        own = [n_actions for (owner, _, _), n_actions in infosets.items() if owner == seat]
        assert len(own) == case[f"infosets_all_p{seat}"]
        assert sum(n_actions > 1 for n_actions in own) == case[f"infosets_ge2_p{seat}"]


# Random play


@st.composite
def any_rules(draw) -> Rules:
    """A preset with some of the rules of others, whatever goes together."""
    flags = ("remainder", "fold", "redeal", "decision_before_target", "one_card")
    base = preset(draw(st.sampled_from(preset_names())))
    fields = {
        "order": draw(st.sampled_from(["linear", "circular"])),
        "all_tied": draw(st.sampled_from(["nobody", "leader", "dealer"])),
        "raise_when": draw(st.sampled_from([("before",), ("before", "after")])),
        "remainder_refused": draw(st.sampled_from(["stake", "match"])),
        **{flag: draw(st.booleans()) for flag in flags},
    }
    if base.n_cards < 4 * base.hand_size or fields["decision_before_target"] or fields["one_card"]:
        fields["redeal"] = False
    return draw(st.sampled_from([base, dataclasses.replace(base, **fields)]))


@st.composite
def random_hands(draw) -> tuple[State, list[tuple], list[str]]:
    """The beginning of a hand of some rule set, the hands to be dealt, and a line of it that may stop anywhere."""
    rules = draw(any_rules())
    points = st.sampled_from([0, rules.target - 2, rules.target - 1])
    start = state = State.begin(rules, draw(st.none() | st.tuples(points, points)))
    deck = draw(st.permutations([rank for rank in range(rules.n_ranks) for _ in range(rules.copies)]))
    deals: list[tuple] = []
    line: list[str] = []
    while not state.is_over and draw(st.integers(0, 9)) < 9:
        if state.phase == "deal":
            size = state.hand_size
            deals.append((tuple(sorted(deck[:size])), tuple(sorted(deck[size : 2 * size]))))
            deck = deck[2 * size :]
            state = state.give(*deals[-1])
        legal = state.legal_actions()
        # These end most hands at once, so they are drawn less often.
        longer = [action for action in legal if action not in ("refuse", "fold", "decline")]
        line.append(draw(st.sampled_from([*legal, *longer, *longer])))
        state = state.apply(line[-1])
    return start, deals, line


PUBLIC = {field.name for field in dataclasses.fields(State)} - {"dealt", "held", "set_aside"}


@given(random_hands())
def test_random_play(hand):
    start, deals, line = hand
    rules, dealing = start.rules, iter(deals)
    state, views = start, [start, start, start]  # all cards; seen by the public, by seat 0 and by seat 1

    def dealt() -> tuple[State, list[State]]:
        leader, dealer = next(dealing)
        seen = [(None, None), (leader, None), (None, dealer)]
        return state.give(leader, dealer), [view.give(*hands) for view, hands in zip(views, seen, strict=True)]

    for action in line:
        if state.phase == "deal":
            state, views = dealt()
        actor, legal = state.to_play, state.legal_actions()
        assert actor in (0, 1)
        assert len(set(legal)) == len(legal) >= 1
        before = state
        state = state.apply(action)
        assert state.level >= before.level
        assert state.stake >= before.stake or action == "decline"
        # The card order, who plays and what a hand allows do not depend on what is seen of the hands.
        for view in views:
            assert set(legal) <= set(view.legal_actions())
        assert views[1 + actor].legal_actions() == legal
        views = [view.apply(action) for view in views]
        for view in views:
            assert all(getattr(view, field) == getattr(state, field) for field in PUBLIC)
            assert (view.to_play, view.offer, view.stake) == (state.to_play, state.offer, state.stake)
        for seat in (0, 1):
            if state.held[seat] is None:
                continue
            on_table = [rank for owner, rank in state.played if owner == seat]
            assert sorted([*state.held[seat], *on_table]) == list(state.dealt[seat])
            assert all(views[2 - seat].unseen(seat)[rank] > 0 for rank in state.held[seat])
            assert all(view.unseen(seat)[rank] > 0 for view in (state, views[0]) for rank in state.held[seat])
            assert views[1 + seat].set_aside[seat] == state.set_aside[seat]
    assert state.line == tuple(line)
    assert state.is_over == (state.winner is not None)
    assert (state.legal_actions() == ()) == (state.is_over or state.phase == "deal") == (state.to_play == NOBODY)
    if state.is_over:
        assert state.returns[0] + state.returns[1] == 0
        assert abs(state.returns[0]) in (0, state.stake)
        assert state.is_for_match or state.stake in (*rules.ladder, 1)
    if state.phase != "deal":  # a line is followed with its deals at once
        assert start.follow(line, deals) == state
    assert dataclasses.replace(start) == start  # nothing above has changed the state it began with


@given(random_hands())
def test_what_a_rule_set_allows(hand):
    """Every action there is belongs to a field of the rule set that has it, at a score if it is about the match."""
    start, deals, line = hand
    rules, at_score = start.rules, start.score is not None
    state, rest = start.follow((), iter(deals)), iter(deals[1:] if start.phase == "deal" else deals)
    raisers: list[int] = []
    for action in line:
        legal, seat = state.legal_actions(), state.to_play
        assert not {"fold"} & set(legal) or rules.fold
        assert ("remainder" in legal) == ("raise" in legal and rules.remainder and at_score)
        assert "pass" not in legal or "after" in rules.raise_when
        assert not {"propose", "agree"} & set(legal) or rules.redeal
        assert not {"cut", "one"} & set(legal) or (rules.one_card and rules.target - 1 not in (start.score or ()))
        assert "play" not in legal or (rules.decision_before_target and at_score)
        # Nobody raises twice running, and nothing follows the match.
        assert "raise" not in legal or raisers[-1:] != [seat]
        assert not ("raise" in legal and state.is_for_match)
        raisers += [seat] if action in ("raise", "remainder") else []
        state = state.follow([action], rest)
    if not any(getattr(rules, field) for field in ("redeal", "decision_before_target", "one_card", "remainder")):
        assert len([action for action in line if action != "pass"]) <= 18
    assert line.count("propose") <= 1
