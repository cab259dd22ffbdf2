"""The referee by the rules that only some rule sets have, one after the other."""

from dataclasses import replace

import pytest

from games.notation import parse_hand
from games.rules import NOBODY, Rules, preset
from games.state import DealError, IllegalActionError, State

FRENCH = replace(preset("french"), redeal=False)
CATALAN = replace(preset("catalan"), one_card=False, decision_before_target=False)
BEFORE_TARGET = replace(preset("catalan"), one_card=False)
TAPPING = preset("catalan")
REDEAL = preset("french")


def after(
    rules: Rules, leader: str, dealer: str, line: str = "", score: tuple[int, int] | None = None, size: int = 3
) -> State:
    """The state after a line in which these hands are dealt."""
    hands = parse_hand(rules, leader, size), parse_hand(rules, dealer, size)
    return State.begin(rules, score).follow(line.split(), [hands])


# Raising after the card


def test_a_player_can_bet_before_or_after_playing_the_card():
    assert after(CATALAN, "3 4 5", "2 6 7").legal_actions() == ("raise", "4", "5", "3")
    state = after(CATALAN, "3 4 5", "2 6 7", "4")
    assert (state.phase, state.to_play, state.legal_actions()) == ("after", 0, ("raise", "pass"))
    state = state.apply("pass")
    assert (state.phase, state.to_play, state.legal_actions()) == ("turn", 1, ("raise", "6", "7", "2"))
    state = state.apply("2")
    assert (state.phase, state.to_play, state.legal_actions()) == ("after", 1, ("raise", "pass"))


def test_a_bet_after_the_card_is_answered_before_anything_else():
    state = after(CATALAN, "3 4 5", "2 6 7", "4 raise")
    assert (state.phase, state.to_play, state.legal_actions()) == ("answer", 1, ("accept", "refuse"))
    assert (state.stake, state.offer) == (1, 2)
    state = after(CATALAN, "3 4 5", "2 6 7", "4 pass 2 raise")
    assert (state.phase, state.to_play, state.stake, state.offer) == ("answer", 0, 1, 2)


@pytest.mark.parametrize(
    ("line", "returns"),
    [
        ("raise refuse", (1, -1)),  # truc refused: one point
        ("4 raise refuse", (1, -1)),
        ("4 pass raise refuse", (-1, 1)),
        ("4 pass 6 raise refuse", (-1, 1)),
        ("raise accept 4 raise refuse", (-2, 2)),  # retruc refused: two points
        ("raise accept 4 6 raise refuse", (-2, 2)),
        ("4 raise accept 6 raise refuse", (-2, 2)),
    ],
)
def test_a_refused_bet_gives_the_score_before_it(line, returns):
    state = after(CATALAN, "3 4 5", "2 6 7", line)
    assert (state.is_over, state.returns) == (True, returns)


def test_an_accepted_bet_after_the_card_lets_the_play_go_on():
    # After the led card the opponent answers the trick; the bet cost nobody a card.
    state = after(CATALAN, "3 4 5", "2 6 7", "4 raise accept")
    assert (state.phase, state.to_play, state.stake) == ("turn", 1, 2)
    # After the answering card the winner of the trick leads, whoever has bet.
    state = after(CATALAN, "3 4 5", "2 6 7", "4 pass 2 raise accept")
    assert (state.phase, state.to_play, state.turn, state.stake) == ("turn", 1, 3, 2)
    state = after(CATALAN, "3 4 5", "2 6 7", "3 pass 2 raise accept")
    assert (state.phase, state.to_play, state.turn, state.stake) == ("turn", 0, 3, 2)
    assert state.legal_actions() == ("raise", "4", "5")


def test_who_raised_before_the_card_may_not_raise_after_it():
    state = after(CATALAN, "3 4 5", "2 6 7", "raise accept 4")
    assert (state.phase, state.to_play, state.legal_actions()) == ("turn", 1, ("raise", "6", "7", "2"))


def test_only_the_side_that_accepted_truc_may_call_retruc():
    # Not the raiser, at none of his later turns, neither before nor after the card.
    state = after(CATALAN, "3 4 5", "2 6 7", "3 raise accept 6 pass")
    assert (state.phase, state.to_play, state.legal_actions()) == ("turn", 0, ("4", "5"))
    state = state.apply("4")
    # The other side: at its next turn or at a later one, before the card or after it.
    assert (state.phase, state.to_play, state.legal_actions()) == ("turn", 1, ("raise", "7", "2"))
    assert state.apply("7").legal_actions() == ("raise", "pass")
    state = after(CATALAN, "3 4 5", "2 6 7", "4 pass 2 raise accept")
    assert state.legal_actions() == ("6", "7")
    state = state.apply("6")
    assert (state.to_play, state.legal_actions()) == (0, ("raise", "5", "3"))
    assert state.apply("3").legal_actions() == ("raise", "pass")


def test_a_trick_winner_who_passed_may_raise_at_his_very_next_turn():
    state = after(CATALAN, "3 4 5", "2 6 7", "4 pass 2 pass")
    assert (state.phase, state.to_play, state.legal_actions()) == ("turn", 1, ("raise", "6", "7"))


def test_no_bet_after_the_card_at_the_top_of_the_ladder():
    state = after(CATALAN, "3 4 5", "2 6 7", "4 raise accept raise accept 6")
    assert (state.phase, state.to_play, state.stake, state.legal_actions()) == ("turn", 1, 3, ("7", "2"))
    assert after(CATALAN, "3 4 5", "2 6 7", "4 raise accept raise accept 6 7").phase == "turn"


def test_no_bet_once_the_hand_is_decided():
    assert after(CATALAN, "3 2 4", "5 6 7", "3 pass 5 pass 2 pass 6").returns == (1, -1)
    # Not decided: the loser of a trick may still bet.
    state = after(CATALAN, "3 4 5", "2 6 7", "3 pass 6")
    assert (state.phase, state.to_play) == ("after", 1)


def test_three_draws_are_the_leaders():
    line = "3 pass 3 pass 4 pass 4 pass 5 pass 5"
    assert after(CATALAN, "3 4 5", "3 4 5", line).returns == (1, -1)
    assert after(CATALAN, "3 4 5", "3 4 5", line.replace("4 pass 4 pass", "4 pass 4 raise accept")).returns == (2, -2)


def test_nothing_is_asked_after_the_card_where_raises_come_before_it():
    assert after(FRENCH, "7 8 9", "A K Q", "7").phase == "turn"
    with pytest.raises(IllegalActionError):
        after(FRENCH, "7 8 9", "A K Q", "7 pass")


# The remainder


def test_the_remainder_may_be_called_wherever_a_raise_is_legal():
    state = after(FRENCH, "7 8 9", "A K Q", score=(5, 3))
    assert state.legal_actions() == ("raise", "remainder", "fold", "9", "8", "7")
    # Not by who raised last, nor at the top of the ladder.
    assert after(FRENCH, "7 8 9", "A K Q", "raise accept", (5, 3)).legal_actions() == ("fold", "9", "8", "7")
    assert after(FRENCH, "7 8 9", "A K Q", "raise accept 7", (5, 3)).legal_actions()[:2] == ("raise", "remainder")
    assert after(FRENCH, "7 8 9", "A K Q", "raise accept 7 Q", (5, 3)).legal_actions() == ("fold", "9", "8")
    top = replace(FRENCH, ladder=(1,))
    assert after(top, "7 8 9", "A K Q", score=(5, 3)).legal_actions() == ("fold", "9", "8", "7")
    # The ladder ignores the score, and the remainder is on it.
    assert "remainder" in after(FRENCH, "7 8 9", "A K Q", score=(11, 11)).legal_actions()


def test_a_hand_valued_in_points_has_no_remainder():
    assert after(FRENCH, "7 8 9", "A K Q").legal_actions() == ("raise", "fold", "9", "8", "7")


def test_a_called_remainder_is_answered_like_a_raise():
    state = after(FRENCH, "7 8 9", "A K Q", "raise accept 7 remainder", (5, 3))
    assert (state.phase, state.to_play, state.legal_actions()) == ("answer", 0, ("accept", "refuse"))
    assert (state.stake, state.offer, state.is_for_match) == (2, 12, False)


@pytest.mark.parametrize(("refused", "returns"), [("stake", (-2, 2)), ("match", (-12, 12))])
def test_a_refused_remainder(refused, returns):
    """The caller scores the stake before the call, or by the other reading wins the match."""
    rules = replace(FRENCH, remainder_refused=refused)
    state = after(rules, "7 8 9", "A K Q", "raise accept 7 remainder refuse", (5, 3))
    assert (state.is_over, state.returns, state.is_for_match) == (True, returns, refused == "match")
    # It is about the remainder alone.
    assert after(rules, "7 8 9", "A K Q", "raise accept 7 raise refuse", (5, 3)).returns == (-2, 2)


def test_after_my_remainder_whoever_wins_the_hand_wins_the_match():
    state = after(FRENCH, "7 8 9", "A K Q", "remainder accept", (5, 3))
    assert (state.phase, state.to_play, state.stake, state.is_for_match) == ("card", 0, 12, True)
    assert after(FRENCH, "7 8 9", "A K Q", "remainder accept 7 A 8 K", (5, 3)).returns == (12, -12)
    assert after(FRENCH, "7 8 9", "A K Q", "7 remainder accept A 9 K Q 8", (0, 11)).returns == (12, -12)
    assert after(FRENCH, "8 9 9", "A 7 7", "remainder accept 9 7 7 9", (5, 3)).returns == (-12, 12)


def test_nothing_can_follow_the_remainder():
    state = after(FRENCH, "7 8 9", "A K Q", "remainder accept 7", (5, 3))
    assert (state.to_play, state.legal_actions()) == (1, ("fold", "Q", "K", "A"))
    state = state.follow(("Q",))
    assert (state.to_play, state.legal_actions()) == (0, ("fold", "9", "8"))


@pytest.mark.parametrize(("all_tied", "returns"), [("nobody", (0, 0)), ("leader", (12, -12)), ("dealer", (-12, 12))])
def test_all_tied_for_the_match(all_tied, returns):
    rules = replace(FRENCH, all_tied=all_tied)
    assert after(rules, "7 8 9", "7 8 9", "7 remainder accept 7 8 8 9 9", (11, 11)).returns == returns


def test_the_remainder_after_the_card():
    rules = replace(CATALAN, remainder=True)
    state = after(rules, "3 4 5", "2 6 7", "4", (5, 3))
    assert state.legal_actions() == ("raise", "remainder", "pass")
    state = after(rules, "3 4 5", "2 6 7", "4 remainder accept", (5, 3))
    assert (state.phase, state.to_play, state.stake, state.legal_actions()) == ("turn", 1, 12, ("6", "7", "2"))
    assert state.apply("2").phase == "turn"
    assert after(rules, "3 4 5", "2 6 7", "4 remainder refuse", (5, 3)).returns == (1, -1)


# Folding


@pytest.mark.parametrize(
    ("line", "returns"),
    [
        ("fold", (-1, 1)),
        ("7 fold", (1, -1)),
        ("raise accept fold", (-2, 2)),  # also the raiser, once he has been accepted
        ("raise accept 7 fold", (2, -2)),
        ("7 raise accept A fold", (-2, 2)),
        ("remainder accept fold", (-12, 12)),  # the stake is the match
        ("remainder accept 7 fold", (12, -12)),
    ],
)
def test_folding_at_an_own_turn_gives_the_opponent_the_accepted_stake(line, returns):
    state = after(FRENCH, "7 8 9", "A K Q", line, (5, 3))
    assert (state.is_over, state.returns) == (True, returns)


def test_no_folding_at_an_answer_nor_after_the_card():
    assert after(FRENCH, "7 8 9", "A K Q", "raise").legal_actions() == ("accept", "refuse")
    rules = replace(CATALAN, fold=True)
    assert after(rules, "3 4 5", "2 6 7").legal_actions() == ("raise", "fold", "4", "5", "3")
    assert after(rules, "3 4 5", "2 6 7", "3").legal_actions() == ("raise", "pass")


# The redeal


def test_the_leader_may_propose_a_redeal_before_anything_else():
    state = after(REDEAL, "7 8 9", "A K Q", score=(5, 3))
    assert (state.phase, state.to_play, state.legal_actions()) == ("proposal", 0, ("propose", "keep"))
    state = state.apply("propose")
    assert (state.phase, state.to_play, state.legal_actions()) == ("agreement", 1, ("agree", "decline"))


@pytest.mark.parametrize("line", ["keep", "propose decline"])
def test_without_agreement_the_hand_is_played_as_dealt(line):
    state = after(REDEAL, "7 8 9", "A K Q", line)
    assert (state.phase, state.to_play, state.set_aside) == ("turn", 0, ((), ()))
    assert state.legal_actions() == ("raise", "fold", "9", "8", "7")
    assert state.line == tuple(line.split())


def test_an_agreed_redeal_gives_new_cards_from_the_rest():
    dealing = after(REDEAL, "7 8 9", "A K Q").apply("propose").apply("agree")
    assert (dealing.phase, dealing.to_play, dealing.legal_actions(), dealing.is_over) == ("deal", NOBODY, (), False)
    with pytest.raises(IllegalActionError, match="first cards are dealt"):
        dealing.apply("7")
    state = dealing.give(parse_hand(REDEAL, "7 7 7"), parse_hand(REDEAL, "9 9 10"))
    # The same player leads, nothing else has happened, and nobody can propose again.
    assert (state.phase, state.to_play, state.stake) == ("turn", 0, 1)
    assert state.legal_actions() == ("raise", "fold", "7")
    assert state.dealt == state.held == ((7, 7, 7), (0, 0, 1))
    assert state.set_aside == ((0, 6, 7), (3, 4, 5))
    assert state.follow(["7", "10", "7", "9"]).returns == (1, -1)


def test_cards_that_were_set_aside_are_not_dealt_again():
    dealing = after(REDEAL, "7 7 8", "7 K Q", "propose").apply("agree")
    with pytest.raises(DealError, match="5 cards of rank 7, but the deck has 4"):
        dealing.give(parse_hand(REDEAL, "7 7 9"), parse_hand(REDEAL, "9 9 9"))
    assert dealing.give(parse_hand(REDEAL, "7 9 9"), None).unseen(1) == (2, 4, 4, 3, 3, 4, 3, 0)


def test_each_player_remembers_what_he_discarded():
    seen = State.seen_by(REDEAL, 0, parse_hand(REDEAL, "7 7 8")).apply("propose").apply("agree")
    seen = seen.give(parse_hand(REDEAL, "7 9 9"), None)
    assert (seen.set_aside, seen.dealt) == (((6, 7, 7), None), ((0, 0, 7), None))
    # 26 cards without the own three, of which the opponent has set three aside and holds three.
    assert (seen.unseen(1), sum(seen.unseen(1))) == ((2, 4, 4, 4, 4, 4, 3, 1), 26)
    public = State.public(REDEAL).follow(("propose", "agree"))
    assert (public.phase, public.dealt, public.set_aside) == ("turn", (None, None), (None, None))
    assert public.unseen(0) == (4,) * 8


# The one-card hand


def test_the_leader_may_tap_instead_of_cutting():
    state = State.begin(TAPPING, (5, 3))
    assert (state.phase, state.to_play, state.legal_actions()) == ("cut", 0, ("cut", "tap"))
    assert state.apply("cut").phase == "deal"
    state = state.apply("tap")
    assert (state.phase, state.to_play, state.legal_actions()) == ("number", 1, ("three", "one"))
    assert (state.apply("three").phase, state.apply("three").hand_size) == ("deal", 3)
    assert (state.apply("one").phase, state.apply("one").hand_size) == ("deal", 1)


@pytest.mark.parametrize("line", ["", "tap"])
def test_neither_has_seen_a_card_then(line):
    state = State.begin(TAPPING).follow(line.split())
    with pytest.raises(DealError, match="no cards can be dealt now"):
        state.give((0, 1, 2), (3, 4, 5))


@pytest.mark.parametrize("line", ["cut", "tap three"])
def test_three_cards_after_a_cut_or_if_the_dealer_likes(line):
    assert after(TAPPING, "3 4 5", "2 6 7", f"{line} 3 pass 6 pass").phase == "turn"
    with pytest.raises(DealError, match="has 1 cards, but 3 are dealt"):
        after(TAPPING, "3", "2", line, size=1)


def test_a_hand_of_one_card_has_one_trick():
    assert after(TAPPING, "3", "2", "tap one 3 pass 2", size=1).returns == (1, -1)
    assert after(TAPPING, "2", "3", "tap one 2 pass 3", size=1).returns == (-1, 1)
    with pytest.raises(DealError, match="has 3 cards, but 1 are dealt"):
        after(TAPPING, "3 4 5", "2 6 7", "tap one")


@pytest.mark.parametrize(("all_tied", "returns"), [("nobody", (0, 0)), ("leader", (1, -1)), ("dealer", (-1, 1))])
def test_the_tie_of_a_one_card_hand(all_tied, returns):
    assert after(replace(TAPPING, all_tied=all_tied), "3", "3", "tap one 3 pass 3", size=1).returns == returns


def test_a_hand_of_one_card_is_bet_on_as_usual():
    assert after(TAPPING, "3", "2", "tap one", size=1).legal_actions() == ("raise", "3")
    state = after(TAPPING, "3", "2", "tap one 3 raise accept", size=1)
    assert (state.to_play, state.legal_actions()) == (1, ("raise", "2"))
    assert state.follow(["raise", "accept", "2"]).returns == (3, -3)


@pytest.mark.parametrize("score", [(11, 0), (0, 11), (11, 11)])
def test_no_one_card_hand_once_a_side_is_one_point_before_the_target(score):
    assert State.begin(TAPPING, score).phase == "deal"
    for other in [(10, 10), (10, 0), None]:
        assert State.begin(TAPPING, other).phase == "cut"


# The decision before the target


@pytest.mark.parametrize(("score", "seat"), [((11, 5), 0), ((5, 11), 1), ((11, 10), 0)])
def test_the_side_one_point_before_the_target_decides_first_of_all(score, seat):
    state = after(BEFORE_TARGET, "3 4 5", "2 6 7", score=score)
    assert (state.phase, state.to_play, state.legal_actions()) == ("decision", seat, ("play", "decline"))
    assert state.held[seat] is not None  # it has seen its cards


@pytest.mark.parametrize("rules", [BEFORE_TARGET, replace(BEFORE_TARGET, ladder=(2, 5))])
def test_declined_the_other_side_scores_exactly_one_point(rules):
    state = after(rules, "3 4 5", "2 6 7", "decline", (11, 5))
    assert (state.is_over, state.stake, state.returns) == (True, 1, (-1, 1))
    assert after(rules, "3 4 5", "2 6 7", "decline", (5, 11)).returns == (1, -1)


@pytest.mark.parametrize("score", [(11, 5), (5, 11)])
def test_played_the_hand_is_worth_the_most_without_any_betting(score):
    state = after(BEFORE_TARGET, "3 2 4", "5 6 7", "play", score)
    assert (state.phase, state.to_play, state.stake, state.is_for_match) == ("turn", 0, 3, False)
    assert state.legal_actions() == ("4", "2", "3")
    state = state.apply("3")
    assert (state.phase, state.to_play, state.legal_actions()) == ("turn", 1, ("5", "6", "7"))
    assert state.follow(["7", "2", "6"]).returns == (3, -3)


def test_with_both_there_the_hand_decides_the_match_without_betting():
    state = after(BEFORE_TARGET, "3 2 4", "5 6 7", score=(11, 11))
    assert (state.phase, state.to_play, state.is_for_match) == ("turn", 0, True)
    assert state.legal_actions() == ("4", "2", "3")
    assert state.follow(["3", "7", "2", "6"]).returns == (12, -12)
    assert after(BEFORE_TARGET, "3 4 5", "3 4 5", "3 3 4 4 5 5", (11, 11)).winner == 0


@pytest.mark.parametrize("score", [(10, 10), (0, 0), (10, 5), None])
def test_no_decision_before(score):
    state = after(BEFORE_TARGET, "3 4 5", "2 6 7", score=score)
    assert (state.phase, state.legal_actions()[0]) == ("turn", "raise")


def test_without_the_rule_a_score_changes_nothing():
    for score in [(11, 5), (5, 11), (11, 11)]:
        state = after(CATALAN, "3 4 5", "2 6 7", score=score)
        assert (state.phase, state.stake, state.legal_actions()[0]) == ("turn", 1, "raise")


# Scores and deals that cannot be


@pytest.mark.parametrize("score", [(12, 0), (0, 12), (-1, 0), (1.5, 0), ("1", 0), (1,), (1, 2, 3)])
def test_impossible_scores(score):
    with pytest.raises(DealError, match="must be two numbers of points, each under 12"):
        State.begin(FRENCH, score)


def test_cards_are_dealt_once():
    with pytest.raises(DealError, match="the hand waits for its 'turn'"):
        after(FRENCH, "7 8 9", "A K Q").give((0, 1, 2), (3, 4, 5))


def test_following_a_line_with_its_deals():
    """Deals are used as they come; after the last the cards are unseen."""
    first, second = ((0, 1, 2), None), ((3, 4, 5), None)
    start = State.begin(REDEAL, (5, 3))
    assert start.follow(()) == State.public(REDEAL, (5, 3))
    assert start.follow((), [first]) == State.seen_by(REDEAL, 0, (0, 1, 2), (5, 3))
    state = start.follow(("propose", "agree", "raise"), [first, second])
    assert (state.dealt, state.set_aside) == (((3, 4, 5), None), ((0, 1, 2), None))
    assert start.follow(("propose", "agree"), [first]).dealt == (None, None)
    assert start.follow(("keep",), [first, second]).dealt == first
