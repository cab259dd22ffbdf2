"""Notation: what prints reads back, and whatever else is typed gets one clear sentence."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from games.notation import (
    NotationError,
    describe_score,
    format_hand,
    format_line,
    format_score,
    parse_hand,
    parse_line,
    parse_score,
)
from games.rules import Rules, preset, preset_names
from games.state import DealError, State

LE_TRUC = preset("le-truc")
FRENCH, CATALAN = preset("french"), preset("catalan")
EVERYTHING = dataclasses.replace(CATALAN, remainder=True, fold=True, name="everything")
RULE_SETS = [*(preset(name) for name in preset_names()), EVERYTHING]
HOSTILE = [
    "x" * 10**6,
    "8 " * 10**6,
    "\x1b[2J",
    "8\x00",
    "\u202e8",
    "\ud800",
    "\uff18 \uff18 \uff18",
    "٣-٣",
    "é",
    "💥",
    "-1--1",
    "%s{0}",
]


def is_clear(message: str) -> bool:
    return message.endswith(".") and message.isprintable() and len(message) < 300


# Hands


@pytest.mark.parametrize(
    ("text", "hand"),
    [
        ("A 3 8", (0, 2, 7)),
        ("8 A 3", (0, 2, 7)),
        ("8,a,3", (0, 2, 7)),
        (" 8 ,\t7\n,, 8 ", (6, 7, 7)),
    ],
)
def test_parse_hand(text, hand):
    assert parse_hand(LE_TRUC, text) == hand


def test_parse_hand_of_other_sizes_and_labels():
    assert parse_hand(LE_TRUC, "5 A", size=2) == (0, 4)
    assert parse_hand(LE_TRUC, "", size=0) == ()
    assert parse_hand(FRENCH, "q 10 J") == (1, 2, 3)
    assert format_hand(FRENCH, (7, 5, 1)) == "10 A 7"
    assert parse_hand(CATALAN, "10 1 12") == (4, 6, 7)
    assert parse_hand(CATALAN, "3", size=1) == (9,)
    assert parse_hand(preset("two-card"), "8 7") == (6, 7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A 3", "the hand 'A 3' has 2 cards, it must have 3."),
        ("", "the hand '' has 0 cards, it must have 3."),
        ("A38", "'A38' in the hand is no card, the ranks are A 2 3 4 5 6 7 8."),
        ("A 9 8", "'9' in the hand is no card, the ranks are A 2 3 4 5 6 7 8."),
        ("8 7 raise", "'raise' in the hand is no card, the ranks are A 2 3 4 5 6 7 8."),
    ],
)
def test_bad_hands(text, message):
    with pytest.raises(NotationError) as error:
        parse_hand(LE_TRUC, text)
    assert str(error.value) == message


def test_hand_with_more_cards_than_the_deck():
    with pytest.raises(NotationError) as error:
        parse_hand(preset("tiny"), "2 2 2")
    assert str(error.value) == "the hand '2 2 2' has 3 cards of rank 2, but the deck has 2."


@given(st.data())
def test_hand_round_trip(data):
    rules = data.draw(st.sampled_from(RULE_SETS))
    deck = [rank for rank in range(rules.n_ranks) for _ in range(rules.copies)]
    size = data.draw(st.integers(0, rules.hand_size))
    hand = data.draw(st.permutations(deck))[:size]
    text = format_hand(rules, hand)
    assert parse_hand(rules, text, size) == tuple(sorted(hand))
    assert parse_hand(rules, text.lower().replace(" ", ","), size) == tuple(sorted(hand))


# Lines


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ()),
        ("  ", ()),
        ("raise accept 8", ("raise", "accept", "8")),
        ("r y 8, TRUC n", ("raise", "accept", "8", "raise", "refuse")),
        ("8 a", ("8", "A")),
        ("Truc Accept 8 Retruc", ("raise", "accept", "8", "raise")),
        ("8 8 7 7 3 2", ("8", "8", "7", "7", "3", "2")),
    ],
)
def test_parse_line(text, line):
    assert parse_line(LE_TRUC, text) == line


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bet", "word 1 of the line, 'bet', is not legal: legal is raise or A or 2 or 3 or 4 or 5 or 6 or 7 or 8."),
        ("r y r", "word 3 of the line, 'r', is not legal: legal is A or 2 or 3 or 4 or 5 or 6 or 7 or 8."),
        ("r 8", "word 2 of the line, '8', is not legal: legal is accept or refuse."),
        ("r n 8", "word 3 of the line, '8', is not legal: the hand is over before it."),
        ("8 7 8 7 8", "word 5 of the line, '8', is not legal: the hand is over before it."),
        ("A A A A 8 A", "word 6 of the line, 'A', is not legal: legal is raise or 2 or 3 or 4 or 5 or 6 or 7 or 8."),
        (
            "accept",
            "word 1 of the line, 'accept', is not legal: legal is raise or A or 2 or 3 or 4 or 5 or 6 or 7 or 8.",
        ),
    ],
)
def test_bad_lines(text, message):
    with pytest.raises(NotationError) as error:
        parse_line(LE_TRUC, text)
    assert str(error.value) == message


def test_line_that_an_own_hand_does_not_allow():
    start = State.seen_by(LE_TRUC, 0, parse_hand(LE_TRUC, "A 3 8"))
    assert parse_line(LE_TRUC, "8 5 3", start) == ("8", "5", "3")
    with pytest.raises(NotationError, match="word 3 of the line, '8', is not legal: legal is raise or A or 3"):
        parse_line(LE_TRUC, "8 5 8", start)


@pytest.mark.parametrize(
    ("rules", "score", "text", "line"),
    [
        (FRENCH, None, "y 7", None),  # yes to what?
        (FRENCH, None, "propose y Fold", ("propose", "agree", "fold")),
        (FRENCH, None, "propose n 7", ("propose", "decline", "7")),
        (FRENCH, None, "KEEP r y 10 q", ("keep", "raise", "accept", "10", "Q")),
        (FRENCH, (5, 3), "keep remainder y 7 fold", ("keep", "remainder", "accept", "7", "fold")),
        (FRENCH, (5, 3), "keep remainder n", ("keep", "remainder", "refuse")),
        (FRENCH, None, "keep remainder", None),  # a hand valued in points
        (CATALAN, (5, 3), "cut truc y 12 retruc n", ("cut", "raise", "accept", "12", "raise", "refuse")),
        (CATALAN, (5, 3), "cut 12 truc y 3 pass", ("cut", "12", "raise", "accept", "3", "pass")),
        (CATALAN, None, "tap three 12 pass 3 r", ("tap", "three", "12", "pass", "3", "raise")),
        (CATALAN, None, "tap one 12 pass 3", ("tap", "one", "12", "pass", "3")),
        (CATALAN, None, "tap one 12 pass 3 3", None),
        (CATALAN, (11, 3), "y 3", ("play", "3")),
        (CATALAN, (3, 11), "n", ("decline",)),
        (CATALAN, (11, 11), "3 12", ("3", "12")),
        (CATALAN, (11, 11), "cut", None),
    ],
)
def test_lines_of_other_rule_sets(rules, score, text, line):
    start = State.public(rules, score)
    if line is not None:
        assert parse_line(rules, text, start) == line
        assert parse_line(rules, format_line(line), start) == line
    else:
        with pytest.raises(NotationError, match="is not legal"):
            parse_line(rules, text, start)


def test_line_with_own_hands():
    """Of a redeal, the hand set aside and the new one."""
    hands = parse_hand(FRENCH, "7 8 9"), parse_hand(FRENCH, "A K Q")
    deals = [(hand, None) for hand in hands]
    start = State.begin(FRENCH, (5, 3))
    assert parse_line(FRENCH, "propose agree A 7 K", start, deals) == ("propose", "agree", "A", "7", "K")
    with pytest.raises(NotationError, match=r"word 3 of the line, '7', is not legal: .* or Q or K or A"):
        parse_line(FRENCH, "propose agree 7", start, deals)
    with pytest.raises(NotationError, match=r"word 2 of the line, 'A', is not legal: .* or 9 or 8 or 7"):
        parse_line(FRENCH, "keep A", start, deals)
    with pytest.raises(DealError, match="has 3 cards, but 1 are dealt"):
        parse_line(CATALAN, "tap one", deals=[((0, 1, 2), None)])


@st.composite
def lines(draw) -> tuple[Rules, tuple[int, int] | None, tuple[str, ...]]:
    rules = draw(st.sampled_from(RULE_SETS))
    points = st.sampled_from([0, rules.target - 1])
    score = draw(st.none() | st.tuples(points, points))
    state = State.public(rules, score)
    while not state.is_over and draw(st.integers(0, 9)) < 9:
        state = state.follow([draw(st.sampled_from(state.legal_actions()))])
    return rules, score, state.line


@given(lines(), st.randoms(use_true_random=False))
def test_line_round_trip(case, random):
    rules, score, line = case
    start = State.public(rules, score)
    assert parse_line(rules, format_line(line), start) == line
    short = {
        "raise": ["r", "truc", "retruc", "RAISE"],
        **{action: ["y", "Y", action] for action in ("accept", "agree", "play")},
        **{action: ["n", action.title()] for action in ("refuse", "decline")},
    }
    words = [random.choice(short.get(action, [action, action.lower()])) for action in line]
    assert parse_line(rules, random.choice([" ", ",", " , ", "\n"]).join(words), start) == line


# Scores


def test_scores():
    assert parse_score(LE_TRUC, "3-5") == (3, 5)
    assert parse_score(LE_TRUC, " 11-0 ") == (11, 0)
    assert format_score((3, 5)) == "3-5"
    assert describe_score(LE_TRUC, (3, 5)) == "leader (non-dealer) 3, dealer 5, to 12"


@given(st.integers(0, 11), st.integers(0, 11))
def test_score_round_trip(leader, dealer):
    assert parse_score(LE_TRUC, format_score((leader, dealer))) == (leader, dealer)


@pytest.mark.parametrize(
    "text", ["", "3", "3:5", "3-12", "12-3", "-1-3", "3-5-1", "3 - 5", "a-b", "³-5", "1e1-0", "9" * 99]
)
def test_bad_scores(text):
    with pytest.raises(NotationError, match=r"must be LEADER-DEALER, .* each from 0 to 11, such as 0-0") as error:
        parse_score(LE_TRUC, text)
    assert is_clear(str(error.value))


# Hostile text


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("parse", [parse_hand, parse_line, parse_score])
def test_hostile_text(parse, text):
    with pytest.raises(NotationError) as error:
        parse(LE_TRUC, text)
    assert is_clear(str(error.value))


@given(st.text() | st.lists(st.sampled_from(["r", "y", "n", "8", "A", "\x7f", "\u2028"])).map(" ".join))
def test_any_text(text):
    for parse in (parse_hand, parse_line, parse_score):
        try:
            parse(LE_TRUC, text)
        except NotationError as error:
            message = str(error)
        else:
            message = "."
        assert is_clear(message)
