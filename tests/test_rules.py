"""Rule sets: what is accepted, what is refused and in which words, the hash, the rule file, the order of the cards."""

import dataclasses
import itertools
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from games.rules import (
    MAX_FILE_BYTES,
    NOBODY,
    RESERVED_WORDS,
    Rules,
    RulesError,
    hand_winner,
    load_rules,
    preset,
    preset_names,
    shown,
)

MINI = preset("mini")

MINI_TOML = """
name = "mini"
ranks = ["A", "2", "3", "4"]
order = "circular"
copies = 4
hand_size = 3
ladder = [1, 2, 4]
all_tied = "nobody"
"""


def changed(**fields) -> Rules:
    return dataclasses.replace(MINI, **fields)


def is_one_sentence(message: str) -> bool:
    return message.endswith(".") and "\n" not in message and message.isprintable()


REFUSED = [
    # field, value, what the message must contain besides the field
    ("name", "", "''"),
    ("name", "two words", "'two words'"),
    ("name", "../up", "'../up'"),
    ("name", "-dash", "begins with a letter or digit"),
    ("name", "é", "'é'"),
    ("name", "a\n", r"'a\n'"),
    ("name", "x" * 41, "at most 40"),
    ("name", 3, "3"),
    ("ranks", "A23", "list of strings"),
    ("ranks", ("A", "2", 3), "list of strings"),
    ("ranks", ["A", "2", "3"], "list of strings"),
    ("ranks", ("A", "2"), "a circular order has 3 to 16"),
    ("ranks", (), "0 ranks"),
    ("ranks", tuple(map(str, range(17))), "17 ranks"),
    ("ranks", ("A", "2", "a"), "'a' twice"),
    ("ranks", ("A", "2", "2"), "'2' twice"),
    ("ranks", ("A", "2", "1 0"), "without spaces"),
    ("ranks", ("A", "2", "1,0"), "commas"),
    ("ranks", ("A", "2", "\t"), r"'\t'"),
    ("ranks", ("A", "2", "\u00a0"), r"'\xa0'"),
    ("ranks", ("A", "2", ""), "''"),
    ("ranks", ("A", "2", "x" * 9), "1 to 8 printable characters"),
    ("ranks", ("A", "2", "Raise"), "'Raise'"),
    ("ranks", ("A", "2", "Y"), "the word of an action"),
    ("order", "cyclic", "'cyclic' must be linear or circular"),
    ("order", None, "None"),
    ("order", ["linear"], "['linear']"),
    ("copies", 0, "0 must be a whole number from 1 to 12"),
    ("copies", 13, "13"),
    ("copies", 4.0, "4.0"),
    ("copies", True, "True"),
    ("hand_size", 0, "from 1 to 3"),
    ("hand_size", 4, "from 1 to 3"),
    ("hand_size", "3", "'3'"),
    ("hand_size", True, "True"),
    ("ladder", (), "list of whole numbers"),
    ("ladder", 1, "list of whole numbers"),
    ("ladder", (1, 2.0), "[1, 2.0]"),
    ("ladder", (True, 2), "[True, 2]"),
    ("ladder", (0, 1), "from 1 or more"),
    ("ladder", (-1, 1), "[-1, 1]"),
    ("ladder", (1, 1), "rise strictly"),
    ("ladder", (2, 1), "rise strictly"),
    ("ladder", (1, 1001), "at most 1000"),
    ("ladder", tuple(range(1, 18)), "17 stakes"),
    ("all_tied", "draw", "'draw' must be nobody, leader or dealer"),
    ("all_tied", 0, "0 must be"),
    ("target", 0, "from 1 to 100"),
    ("target", 101, "from 1 to 100"),
    ("target", True, "True"),
    ("raise_when", (), "must contain"),
    ("raise_when", "before", "must be"),
    ("raise_when", ("after",), 'must contain "before"'),
    ("raise_when", ["before"], "must be"),
    ("raise_when", ("after", "before"), "in this order"),
    ("raise_when", ("before", "before"), "must be"),
    ("raise_when", ("before", "never"), "'never'"),
    ("raise_when", ("before", 1), "must be"),
    ("remainder", 0, "0 must be true or false"),
    ("remainder_refused", "all", "'all' must be stake or match"),
    ("remainder_refused", None, "None must be"),
    ("fold", "no", "'no' must be true or false"),
    ("redeal", None, "None must be true or false"),
    ("decision_before_target", 1, "1 must be true or false"),
    ("one_card", 1, "1 must be true or false"),
]


@pytest.mark.parametrize(("field", "value", "contained"), REFUSED)
def test_refused_fields(field, value, contained):
    with pytest.raises(RulesError) as error:
        changed(**{field: value})
    message = str(error.value)
    assert message.startswith(field)
    assert contained in message
    assert is_one_sentence(message)


def test_every_field_is_refused_somewhere():
    assert {field for field, _, _ in REFUSED} == {field.name for field in dataclasses.fields(Rules)}


def test_deck_must_hold_two_hands():
    assert changed(ranks=("A", "2", "3"), copies=2).n_cards == 6
    with pytest.raises(RulesError, match=r"hand_size = 3 needs a deck of at least 6 cards .* 3 ranks with copies = 1"):
        changed(ranks=("A", "2", "3"), copies=1)


def test_a_redeal_needs_four_hands():
    """The cards set aside are not dealt again."""
    assert changed(redeal=True, ranks=("A", "2", "3")).n_cards == 12
    assert changed(redeal=True, ranks=("A", "2", "3"), copies=2, hand_size=1).redeal
    with pytest.raises(RulesError, match=r"hand_size = 3 needs a deck of at least 12 cards .*redeal = true.* make 9\."):
        changed(redeal=True, ranks=("A", "2", "3"), copies=3)


@pytest.mark.parametrize("field", ["decision_before_target", "one_card"])
def test_a_redeal_excludes_other_openings(field):
    with pytest.raises(RulesError) as error:
        changed(redeal=True, **{field: True})
    assert str(error.value) == f"redeal = true cannot go together with {field} = true."


@pytest.mark.parametrize("word", sorted(RESERVED_WORDS))
def test_no_rank_is_called_like_an_action(word):
    with pytest.raises(RulesError, match="the word of an action"):
        changed(ranks=("A", "2", word.upper()))


def test_small_and_unusual_rule_sets_are_accepted():
    assert changed(order="linear", ranks=("x", "y2"), copies=3).n_ranks == 2
    assert changed(ladder=(3,)).ladder == (3,)
    assert changed(ladder=(5, 50), target=12).target == 12
    assert changed(ranks=("♠", "é", "10"), hand_size=1).ranks == ("♠", "é", "10")


def test_rules_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        MINI.copies = 3  # type: ignore[misc]


# Presets


def test_le_truc_preset():
    assert preset("le-truc") == Rules(
        name="le-truc",
        ranks=("A", "2", "3", "4", "5", "6", "7", "8"),
        order="circular",
        copies=4,
        hand_size=3,
        ladder=(1, 2, 4, 6, 8, 10, 12),
        all_tied="nobody",
        target=12,
    )
    assert preset("le-truc").n_cards == 32


def test_french_presets():
    """7, 8, A, K, Q, J, 10, 9 from best to worst; nobody or the leader scores when all are tied."""
    french = preset("french")
    assert french == Rules(
        name="french",
        ranks=("9", "10", "J", "Q", "K", "A", "8", "7"),
        order="linear",
        copies=4,
        hand_size=3,
        ladder=(1, 2, 4, 6, 8, 10, 12),
        all_tied="nobody",
        target=12,
        remainder=True,
        remainder_refused="stake",
        fold=True,
        redeal=True,
    )
    assert french.n_cards == 32
    assert preset("french-leader-ties") == dataclasses.replace(french, name="french-leader-ties", all_tied="leader")


def test_catalan_preset():
    """3, 2, 1, 12, 11, 10, 7, 6, 5, 4 from best to worst; one, two or three points; the non-dealer wins three draws."""
    assert preset("catalan") == Rules(
        name="catalan",
        ranks=("4", "5", "6", "7", "10", "11", "12", "1", "2", "3"),
        order="linear",
        copies=4,
        hand_size=3,
        ladder=(1, 2, 3),
        all_tied="leader",
        target=12,
        raise_when=("before", "after"),
        decision_before_target=True,
        one_card=True,
    )
    assert preset("catalan").n_cards == 40


def test_which_rules_need_a_score():
    needs = {name for name in preset_names() if preset(name).needs_score}
    assert needs == {"catalan", "french", "french-leader-ties"}


def test_presets_load_under_their_file_names():
    names = {"catalan", "french", "french-leader-ties", "le-truc", "mini", "tiny", "two-card"}
    assert names == set(preset_names())
    for name in preset_names():
        assert preset(name).name == name
    assert len({preset(name).hash for name in preset_names()}) == len(preset_names())


@pytest.mark.parametrize("name", ["", "Mini", "../presets/mini", "mini.toml", "x" * 5000])
def test_unknown_preset(name):
    with pytest.raises(RulesError, match=r"there is no rule set .* known are catalan, .*le-truc, mini") as error:
        preset(name)
    assert len(str(error.value)) < 300


# The rule file


def test_toml_example_and_defaults():
    assert Rules.from_toml(MINI_TOML, "mini.toml") == MINI


@pytest.mark.parametrize("name", preset_names())
def test_toml_round_trip(name):
    assert Rules.from_toml(preset(name).to_toml(), "again") == preset(name)


LABELS = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters=","), min_size=1, max_size=8).filter(
    lambda label: label.isprintable() and label.casefold() not in RESERVED_WORDS
)


@given(
    ranks=st.lists(LABELS, min_size=3, max_size=16, unique_by=str.casefold),
    copies=st.integers(2, 12),
    ladder=st.lists(st.integers(1, 1000), min_size=1, max_size=16, unique=True).map(sorted),
    order=st.sampled_from(["linear", "circular"]),
    others=st.fixed_dictionaries(
        {
            "raise_when": st.sampled_from([("before",), ("before", "after")]),
            "remainder": st.booleans(),
            "remainder_refused": st.sampled_from(["stake", "match"]),
            "fold": st.booleans(),
            "one_card": st.booleans(),
            "decision_before_target": st.booleans(),
        }
    ),
)
def test_toml_round_trip_of_any_rules(ranks, copies, ladder, order, others):
    rules = changed(ranks=tuple(ranks), copies=copies, ladder=tuple(ladder), order=order, **others)
    again = Rules.from_toml(rules.to_toml(), "again")
    assert again == rules
    assert again.hash == rules.hash


@pytest.mark.parametrize(
    ("text", "contained"),
    [
        ("name = ", "not valid TOML"),
        ("x = 1\nx = 2", "not valid TOML"),
        ("a = " + "[" * 5000, "not valid TOML"),
        ("a = " + "9" * 5000, "not valid TOML"),
        (MINI_TOML + "colour = 3", "unknown key 'colour'"),
        (MINI_TOML + "[ladders]", "unknown key 'ladders'"),
        (MINI_TOML.replace("copies = 4", ""), "the key 'copies' is missing"),
        (MINI_TOML.replace("copies = 4", "copies = true"), "copies = True must be a whole number"),
        (MINI_TOML.replace("copies = 4", "copies = 0x" + "f" * 5000), "copies = (too long to show)"),
        (MINI_TOML.replace("copies = 4", "copies = 1979-05-27"), "copies = datetime.date(1979, 5, 27)"),
        (MINI_TOML.replace("[1, 2, 4]", "[[1], [2]]"), "ladder = [[1], [2]]"),
        (MINI_TOML.replace("[1, 2, 4]", "{a = 1}"), "ladder = {'a': 1}"),
        ("", "the key 'name' is missing"),
    ],
)
def test_bad_rule_files(tmp_path, text, contained):
    path = tmp_path / "bad.toml"
    path.write_text(text, encoding="utf-8")
    for read in (lambda: load_rules(path), lambda: Rules.from_toml(text, "bad.toml")):
        with pytest.raises(RulesError) as error:
            read()
        message = str(error.value)
        assert "bad.toml" in message or "..." in message
        assert contained in message
        assert is_one_sentence(message)
        assert len(message) < 350


def test_rule_file_from_disk(tmp_path):
    path = tmp_path / "mini.toml"
    for encoded in (MINI_TOML.encode(), MINI_TOML.replace("\n", "\r\n").encode(), MINI_TOML.encode("utf-8-sig")):
        path.write_bytes(encoded)
        assert load_rules(path) == MINI
        assert load_rules(str(path)) == MINI


def test_unreadable_rule_files(tmp_path):
    (tmp_path / "latin.toml").write_bytes('name = "é"'.encode("latin-1"))
    (tmp_path / "long.toml").write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    for path, contained in [
        (tmp_path / "none.toml", "no such rule file"),
        (tmp_path, "directory"),
        (tmp_path / "latin.toml", "UTF-8 text, but byte 8 is not"),
        (tmp_path / "long.toml", "at most 65536 bytes"),
        ("a\0b", "cannot be read"),
        (tmp_path / "latin.toml" / "below", "cannot be read"),
        ("x" * 5000, "cannot be read"),
    ]:
        with pytest.raises(RulesError) as error:
            load_rules(path)
        assert contained in str(error.value)
        assert is_one_sentence(str(error.value))


# The hash


@pytest.mark.parametrize(
    ("name", "fixed"),
    [
        ("le-truc", "00a094818b73b9b40e5f31715269d76096ae89aab8c819a89692849706b85156"),
        ("mini", "716b37ef2360050e20257f726b9f6720f32850b3d120c69cdc723d66e4b7ace9"),
        ("tiny", "edfc63870712bb5d90a42e517a6f5c050c97dad6ec80ac85d8c1c3d9b2bbe164"),
        ("two-card", "0f29d02f7c56437c2a21f33727a572bc24795ad18c40dab2c8e7457c8bef7cf4"),
        ("french", "20c837953d68cafba6df0264f93d7a3404168945366a80ecb98024e889fe9959"),
        ("french-leader-ties", "6ebfaf6aedec296a9aea68dccd1e6a10c318f83735a027dc5bb71acf6c333f83"),
        ("catalan", "158797abdb0442a2bc4ab460257f5c77fec8c30f73ab3968f9a27428e3398f0a"),
    ],
)
def test_hash_is_fixed(name, fixed):
    """Strategy files are tied to it: whoever changes these numbers makes all of them unreadable."""
    assert preset(name).hash == fixed


def test_hash_depends_on_all_but_the_name():
    assert changed(name="other").hash == MINI.hash
    others = [
        changed(ranks=("A", "2", "3", "5")),
        changed(order="linear"),
        changed(copies=3),
        changed(hand_size=2),
        changed(ladder=(1, 2)),
        changed(all_tied="leader"),
        changed(target=11),
        changed(raise_when=("before", "after")),
        changed(remainder=True),
        changed(remainder_refused="match"),
        changed(fold=True),
        changed(redeal=True),
        changed(decision_before_target=True),
        changed(one_card=True),
    ]
    assert len({MINI.hash, *(rules.hash for rules in others)}) == len(others) + 1


# The cards' order


def labels_beaten(rules: Rules, label: str) -> str:
    rank = rules.ranks.index(label)
    return "".join(other for i, other in enumerate(rules.ranks) if rules.trick_winner(rank, i) == 1)


def test_circular_order():
    """A > 8 > 7 > ... > 2 > A: the Ace beats only the 8 and loses to 2..7."""
    rules = preset("le-truc")
    beaten = {"A": "8", "2": "A", "3": "A2", "4": "A23", "5": "A234", "6": "A2345", "7": "A23456", "8": "234567"}
    assert {label: labels_beaten(rules, label) for label in rules.ranks} == beaten


def test_linear_order():
    rules = changed(order="linear")
    assert {label: labels_beaten(rules, label) for label in rules.ranks} == {"A": "", "2": "A", "3": "A2", "4": "A23"}


@pytest.mark.parametrize("order", ["linear", "circular"])
@pytest.mark.parametrize("n_ranks", [3, 4, 8])
def test_equal_ranks_tie_and_the_order_is_antisymmetric(order, n_ranks):
    rules = changed(order=order, ranks=tuple("ABCDEFGH"[:n_ranks]))
    for a, b in itertools.product(range(n_ranks), repeat=2):
        assert rules.trick_winner(a, b) == -rules.trick_winner(b, a)
        assert (rules.trick_winner(a, b) == 0) == (a == b)


# When the hand is decided

W, L, T = 1, -1, 0


@pytest.mark.parametrize(
    ("results", "winner"),
    [
        ((), None),
        ((W,), None),
        ((L,), None),
        ((T,), None),
        # WW, LL, WT, LT, TW, TL stop after two; WL, LW, TT need the third.
        ((W, W), 0),
        ((L, L), 1),
        ((W, T), 0),
        ((L, T), 1),
        ((T, W), 0),
        ((T, L), 1),
        ((W, L), None),
        ((L, W), None),
        ((T, T), None),
        # More tricks wins.
        ((W, L, W), 0),
        ((L, W, L), 1),
        ((W, L, L), 1),
        ((L, W, W), 0),
        # Equal: the winner of the first trick that was not tied.
        ((W, L, T), 0),
        ((L, W, T), 1),
        ((T, T, W), 0),
        ((T, T, L), 1),
        # All three tied: nobody scores.
        ((T, T, T), NOBODY),
    ],
)
def test_hand_winner_of_three_tricks(results, winner):
    assert hand_winner(preset("le-truc"), results) == winner


@pytest.mark.parametrize(("all_tied", "winner"), [("nobody", NOBODY), ("leader", 0), ("dealer", 1)])
def test_hand_winner_when_all_are_tied(all_tied, winner):
    for hand_size in (1, 2, 3):
        rules = changed(all_tied=all_tied, hand_size=hand_size)
        assert hand_winner(rules, (T,) * hand_size) == winner
        assert hand_winner(rules, (T,) * (hand_size - 1)) is None


def test_hand_winner_with_fewer_cards():
    """With two cards W and L stop after trick 1, with one card always."""
    two, one = changed(hand_size=2), changed(hand_size=1)
    assert [hand_winner(two, (result,)) for result in (W, L, T)] == [0, 1, None]
    assert [hand_winner(two, (T, result)) for result in (W, L, T)] == [0, 1, NOBODY]
    assert [hand_winner(one, (result,)) for result in (W, L, T)] == [0, 1, NOBODY]
    assert hand_winner(one, ()) is None
    three = preset("le-truc")  # in which a single hand has one card
    assert [hand_winner(three, (result,), hand_size=1) for result in (W, L, T)] == [0, 1, NOBODY]


@pytest.mark.parametrize("results", [(W, W, W, W), (2,), ("W",)])
def test_hand_winner_refuses_nonsense(results):
    with pytest.raises(ValueError, match="must be at most 3 of 1, -1 and 0"):
        hand_winner(preset("le-truc"), results)


# Messages and imports


def test_shown_is_short_and_printable():
    for value in ["x" * 10**6, "\x1b[31m\n\u202e", tuple(range(10**5)), 10**10000, "\ud800"]:
        assert len(shown(value)) < 80
        assert shown(value).isprintable()
    assert shown((1, 2)) == "[1, 2]"


def test_rules_without_numpy():
    """The commands' --help must not wait for numpy."""
    code = "import sys, games.rules, games.state, games.notation, games.match; sys.exit('numpy' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
