"""The tables of strings: the same keys and placeholders in every language, and everything that can be said is there."""

import tomllib
from pathlib import Path

import pytest

from games.rules import ACTIONS
from solver.advise import CASES
from solver.bot import BEFORE, LEVELS
from solver.explain import KINDS
from solver.i18n import LANGUAGES, LanguageError, language, placeholders, strings

FOLDER = Path(__file__).resolve().parent.parent / "solver" / "strings"
ENGLISH = strings("en")


@pytest.mark.parametrize("code", LANGUAGES)
def test_tables_are_complete(code: str) -> None:
    say = strings(code)
    assert say.table.keys() == ENGLISH.table.keys()
    for key, text in say.table.items():
        assert placeholders(text) == placeholders(ENGLISH.table[key]), key
        assert text.strip(), key


def test_every_file_is_a_language() -> None:
    assert sorted(file.stem for file in FOLDER.iterdir()) == sorted(LANGUAGES)
    for file in FOLDER.iterdir():
        for section in tomllib.loads(file.read_text(encoding="utf-8")).values():
            assert all(isinstance(text, str) for text in section.values())


@pytest.mark.parametrize("code", LANGUAGES)
def test_whatever_the_solver_says_has_a_string(code: str) -> None:
    say = strings(code)
    for action in ACTIONS:
        assert say.action(action) == say(f"action.{action}")
        for who in ("you", "other"):
            assert say(f"event.{action}_{who}", name="bot", stake=2)
    for name in (*KINDS, BEFORE):
        assert say.has(say.key("kind", name))
        assert say.has(say.key("sentence", name))
    for name in CASES:
        assert say.has(say.key("case", name))
    for name in LEVELS:
        assert say.has(f"level.{name}")
    assert say.action("8") == "8"


@pytest.mark.parametrize(
    ("option", "environment", "expected"),
    [
        (None, {}, "en"),
        (None, {"LANG": "fr_FR.UTF-8"}, "fr"),
        (None, {"LANG": "fr_FR.UTF-8", "LC_ALL": "en_GB"}, "en"),
        (None, {"LANG": "fr_FR.UTF-8", "LC_ALL": ""}, "fr"),
        (None, {"LANG": "de_DE.UTF-8"}, "en"),
        (None, {"LANG": "C.UTF-8"}, "en"),
        ("fr", {"LANG": "en_GB"}, "fr"),
        ("FR-ca", {}, "fr"),
    ],
)
def test_language(option: str | None, environment: dict[str, str], expected: str) -> None:
    assert language(option, environment) == expected


@pytest.mark.parametrize("option", ["de", "", "french", "\0"])
def test_other_languages_are_refused(option: str) -> None:
    with pytest.raises(LanguageError, match="known are en, fr"):
        language(option, {})
    with pytest.raises(LanguageError, match="known are en, fr"):
        strings(option)


def test_numbers() -> None:
    french = strings("fr")
    assert (ENGLISH.number(1.25), french.number(1.25), french.number(-0.5, 1, "+")) == ("1.25", "1,25", "-0,5")
    assert (ENGLISH.points(1), ENGLISH.points(2), french.points(1), french.points(2)) == (
        "1 point", "2 points", "1 point", "2 points",
    )  # fmt: skip
    assert ENGLISH.amount("match-winning probability", 0.008) == "0.80 % of the match"
    assert french.amount("match-winning probability", 0.008) == "0,80 % de la partie"
    assert ENGLISH.amount("points per hand", 0.5, "+") == "+0.50 points"
    assert french.amount("points per hand", 0.5) == "0,50 point"
    assert french.bare("match-winning probability", 0.008) == "0,80"
