"""Hand histories: what is printed is read back, and whatever is wrong is one sentence with its line."""

import inspect
import random
import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from games import history as history_module
from games.history import (
    MAX_BYTES,
    Deal,
    HandRecord,
    History,
    HistoryError,
    format_history,
    is_name,
    load_history,
    parse_history,
    record,
    result,
)
from games.rules import Rules, preset, preset_names
from games.state import State

LE_TRUC = preset("le-truc")
EXAMPLE = """truc-history 1
rules: le-truc 00a094818b73
players: you, bot
# what the bot held was never shown

hand 1: 0-0, bot leads
you: A 3 8
bot: 7 ? ?
line: 7 raise accept 8 A 3
"""


def played(rules: Rules, rng: random.Random, score: tuple[int, int] | None) -> HandRecord:
    """A hand of random actions, perhaps not finished, with some cards never shown."""
    deck = [rank for rank in range(rules.n_ranks) for _ in range(rules.copies)]
    rng.shuffle(deck)
    state, deals = State.begin(rules, score), []
    while True:
        if state.phase == "deal":
            hands = [tuple(sorted(deck.pop() for _ in range(state.hand_size))) for _ in range(2)]
            deals.append(hands)
            state = state.give(*hands)
        if state.is_over or rng.random() < 0.05:
            break
        state = state.apply(rng.choice(state.legal_actions()))
    leader = rng.randrange(2)
    cards: tuple[list[Deal], list[Deal]] = ([], [])
    for hands in deals:
        for seat in (0, 1):
            shown = [rank if rng.random() < 0.8 else None for rank in hands[seat]]
            cards[leader if seat == 0 else 1 - leader].append(tuple(shown))
    # Of the hand that was played on the table shows some cards; they are counted among the unknown ones.
    return record(rules, score, leader, state.line, cards)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(preset_names()))
def test_what_is_printed_is_read_back(seed: int, name: str) -> None:
    rng, rules = random.Random(seed), preset(name)
    scores = [None, (0, 0), (rules.target - 1, 3), (rules.target - 1, rules.target - 1)]
    hands = tuple(played(rules, rng, rng.choice(scores)) for _ in range(rng.randrange(4)))
    history = History(rules, ("you", "bot-2"), hands)
    assert parse_history(format_history(history)) == history
    assert parse_history(format_history(history), rules) == history


def test_example() -> None:
    (hand,) = parse_history(EXAMPLE).hands
    assert hand == record(LE_TRUC, (0, 0), 1, ["7", "raise", "accept", "8", "A", "3"], ([(0, 2, 7)], []))
    assert hand.cards == (((0, 2, 7),), ((2, 6, None),))  # the bot's 3 was seen
    assert hand.known(0) == (0, 2, 7)
    assert hand.known(1) is None
    assert (hand.seat(0), hand.seat(1)) == (1, 0)
    # 8 beats 7, and the dealer (you) leads A, which 3 beats: one trick each.
    assert not hand.state(LE_TRUC).is_over
    assert result(parse_history(EXAMPLE), hand) is None


@pytest.mark.parametrize(
    ("line", "leader", "expected"),
    [
        ("8 7 8 7", 0, "you 1"),
        ("8 7 8 7", 1, "bot 1"),
        ("raise refuse", 1, "bot 1"),
        ("raise accept 7 8 raise refuse", 0, "bot 2"),
        ("raise accept 8 7 A 8", 1, "bot 2"),  # the ace beats the 8
        ("8 8 7 7 6 6", 0, "nobody 0"),
        ("8 8 7 7 6", 0, None),
    ],
)
def test_results_are_those_of_the_rules(line: str, leader: int, expected: str | None) -> None:
    hand = record(LE_TRUC, None, leader, line.split())
    assert result(History(LE_TRUC, ("you", "bot"), (hand,)), hand) == expected


def test_a_redeal_has_two_deals() -> None:
    rules = preset("french")
    hand = record(
        rules, (3, 5), 0, ["propose", "agree", "8", "7"], ([(0, 1, 2), (5, 6, 7)], [(3, 3, 3), (7, None, None)])
    )
    history = History(rules, ("a", "b"), (hand,))
    text = format_history(history)
    assert "a: 9 10 J / A 8 7\nb: Q Q Q / 7 ? ?" in text
    assert parse_history(text) == history


def test_case_and_spaces_do_not_matter() -> None:
    text = EXAMPLE.replace("line: 7 raise accept 8 A 3", "LINE:  7, R  y 8 a 3").replace(
        "hand 1: 0-0,", "Hand  1 :0-0 ,"
    )
    assert parse_history(text.replace("\n", "\r\n")) == parse_history(EXAMPLE)


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("truc-history 1", "truc-history 2", 1, "the first line of a history"),
        ("le-truc 00a0", "le-truc 00b0", 2, "le-truc is 00a094818b73"),
        ("rules: le-truc 00a094818b73", "rules: bridge", 2, "known are"),
        ("players: you, bot", "players: you", 3, "two different names"),
        ("players: you, bot", "players: bot, bot", 3, "two different names"),
        ("players: you, bot", "players: line, bot", 3, "two different names"),
        ("hand 1", "hand 2", 6, 'expected is "hand 1: 0-0, you leads"'),
        ("bot leads", "eve leads", 6, "expected is"),
        ("0-0", "12-0", 6, "LEADER-DEALER"),
        ("A 3 8", "A 3 9", 7, "a card is A 2 3 4 5 6 7 8"),
        ("A 3 8", "A 3", 7, "that is 2 cards, a hand has 3"),
        ("A 3 8", "A 3 8 8", 7, "a hand has 3"),
        ("7 ? ?", "6 6 ?", 8, "of a player who plays 7 3"),
        ("accept 8 A 3", "accept 8 4 3", 9, "not legal: legal is A or 3"),
        ("raise accept", "accept raise", 9, "word 2 of the line, 'accept', is not legal"),
        ("line:", "lines:", 9, 'expected is "line:"'),
    ],
)
def test_errors_name_the_line(old: str, new: str, line: int, message: str) -> None:
    text = EXAMPLE.replace(old, new, 1)
    assert text != EXAMPLE
    with pytest.raises(HistoryError) as error:
        parse_history(text)
    sentence = str(error.value)
    assert sentence.startswith(f"line {line}: ")
    assert message in sentence
    assert "\n" not in sentence


def test_results_are_checked() -> None:
    text = "truc-history 1\nrules: le-truc\nplayers: a, b\nhand 1: points, a leads\nline: 8 7 8 7\nresult: a 1\n"
    assert parse_history(text).hands[0].state(LE_TRUC).winner == 0
    for wrong in ("b 1", "a 2", "nobody 0", "", "a"):
        with pytest.raises(HistoryError, match=r'line 6: .*by the line it is "a 1"'):
            parse_history(text.replace("a 1\n", f"{wrong}\n"))
    with pytest.raises(HistoryError, match="the hand is not over"):
        parse_history(text.replace("line: 8 7 8 7", "line: 8 7 8"))


def test_more_cards_than_the_deck_has() -> None:
    text = EXAMPLE.replace("A 3 8", "8 8 8").replace("7 ? ?", "8 8 ?").replace("line: 7 raise accept 8 A 3", "line:")
    with pytest.raises(HistoryError, match="line 8: 5 cards of rank 8, but the deck has 4"):
        parse_history(text)


def test_own_rules_must_be_given() -> None:
    rules = Rules.from_toml(preset("mini").to_toml().replace('"mini"', '"mine"').replace("[1, 2, 4]", "[1, 2]"), "here")
    text = format_history(History(rules, ("a", "b")))
    with pytest.raises(HistoryError, match=r"line 2: .*your own rules must be given"):
        parse_history(text)
    assert parse_history(text, rules).rules == rules
    with pytest.raises(HistoryError, match="the options say mini"):
        parse_history(text, preset("mini"))


def test_names() -> None:
    assert all(map(is_name, ("you", "bot-2", "Élodie", "_")))
    assert not any(map(is_name, ("", "a b", "a,b", "x" * 21, "Line", "a:b")))


def test_files(tmp_path: Path) -> None:
    file = tmp_path / "hands.txt"
    file.write_text("\ufeff" + EXAMPLE, encoding="utf-8")
    assert load_history(file) == parse_history(EXAMPLE)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(HistoryError, match="UTF-8"):
        load_history(file)
    file.write_text("#" * (MAX_BYTES + 1))
    with pytest.raises(HistoryError, match="at most 1,000,000 bytes"):
        load_history(file)
    with pytest.raises(HistoryError, match="at most 1,000,000 bytes"):
        parse_history("é" * (MAX_BYTES // 2 + 1))


def refusal(text: str) -> str:
    """What is wrong with a text, nothing if it is a history."""
    try:
        parse_history(text)
    except HistoryError as error:
        return str(error)
    return ""


def test_random_text_is_refused_in_one_sentence() -> None:
    rng = random.Random(5)
    words = [
        *EXAMPLE.split(),
        *LE_TRUC.ranks,
        "?",
        "/",
        ":",
        "\n",
        "hand",
        "result:",
        "line:",
        "\0",
        "é",
        "\ud800",
        "9" * 30,
    ]
    for n in range(1000):
        if n % 2:
            text = "".join(rng.choice(string.printable) for _ in range(rng.randrange(80)))
        else:  # nearly right
            pieces = EXAMPLE.split(" ")
            for _ in range(rng.randrange(1, 4)):
                pieces[rng.randrange(len(pieces))] = rng.choice(words)
            text = " ".join(pieces)
        message = refusal(text)
        assert "\n" not in message
        assert len(message) < 600


def test_the_examples_of_the_documentation() -> None:
    page = (Path(__file__).resolve().parent.parent / "games" / "HISTORY.md").read_text()
    example, message = page.split("```\n")[1], page.split("```\n")[3]
    found = parse_history(example)
    assert [hand.score for hand in found.hands] == [(0, 0), (0, 2)]
    assert found.hands[0].known(1) == (2, 5, 6)
    assert [result(found, hand) for hand in found.hands] == ["bot 2", "you 1"]
    first = inspect.cleandoc(inspect.getdoc(history_module) or "").split("\n\nGrammar")[0].partition(":\n\n")[2]
    assert parse_history(first).hands[0] == found.hands[0]
    with pytest.raises(HistoryError) as error:
        parse_history(example.replace("7 raise accept", "7 accept"))
    assert f"{error.value}\n" == message
