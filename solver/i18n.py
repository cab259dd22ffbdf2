"""Languages: one table of strings for each (`solver/strings`), all with the same keys and the same placeholders.

>>> say = strings("fr")
>>> say("play.lead", name="bot")
'Vous avez la main, bot est donneur.'
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from string import Formatter
from typing import Any

from solver.words import percent

LANGUAGES = ("en", "fr")
DEFAULT = "en"
VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")  # the first that is set counts, as everywhere


class LanguageError(ValueError):
    """A language that there is not; the message is one sentence."""


def language(option: str | None = None, environment: Mapping[str, str] | None = None) -> str:
    """One of LANGUAGES: that of the option, else that of the environment, else English.

    Raises LanguageError for an option that is none of them; "fr_CA.UTF-8" is fr.
    """
    if option is not None:
        code = _code(option)
        if code not in LANGUAGES:
            raise LanguageError(f"there is no language {option[:40]!r}, known are {', '.join(LANGUAGES)}.")
        return code
    environment = os.environ if environment is None else environment
    chosen = next((value for name in VARIABLES if (value := environment.get(name))), "")
    return _code(chosen) if _code(chosen) in LANGUAGES else DEFAULT


def _code(locale: str) -> str:
    return locale.replace("-", "_").split("_")[0].split(".")[0].casefold()


class Strings:
    """The strings of a language by their keys, such as "play.lead"."""

    def __init__(self, code: str, table: Mapping[str, str]) -> None:
        self.code, self.table = code, table

    def __call__(self, key: str, **values: Any) -> str:
        """A string with its placeholders filled in.  Raises KeyError for what the table, or the call, does not have."""
        return self.table[key].format(**values)

    def has(self, key: str) -> bool:
        """Whether there is such a string."""
        return key in self.table

    def number(self, value: float, digits: int = 2, sign: str = "") -> str:
        """A number in decimal notation."""
        return self.decimal(f"{value:{sign}.{digits}f}")

    def decimal(self, text: str) -> str:
        """A number as it is printed in English, with the language's decimal mark."""
        return text.replace(".", self.table["language.decimal"])

    def share(self, share: float) -> str:
        """A probability in whole percent, as `solver.words.percent` rounds it."""
        return self("word.under") if 0 < share < 0.005 else percent(share)

    def amount(self, unit: str, value: float, sign: str = "") -> str:
        """An amount of points, or of winning probability in percent of the match."""
        from solver.cfr import PROBABILITY

        if unit == PROBABILITY:
            return self("unit.match", value=self.number(100 * value, 2, sign))
        return self.points(value, 2, sign)

    def points(self, value: float, digits: int = 0, sign: str = "") -> str:
        """So many points; English has the singular for 1 alone, French below 2."""
        one = value == 1 if self.code == "en" else abs(value) < 2
        return self("unit.point" if one else "unit.points", value=self.number(value, digits, sign))

    def bare(self, unit: str, value: float, sign: str = "") -> str:
        """An amount without its unit: points, or percent."""
        from solver.cfr import PROBABILITY

        return self.number(100 * value if unit == PROBABILITY else value, 2, sign)

    def action(self, action: str) -> str:
        """An action: a word, or a card to play."""
        return self(f"action.{action}") if self.has(f"action.{action}") else action

    def key(self, section: str, name: str) -> str:
        """The key of a name with spaces, such as a kind of `solver.explain` or a case of `solver.advise`."""
        return f"{section}.{name.replace(' ', '_')}"

    def words(self, name: str) -> tuple[str, ...]:
        """What may be typed for a word."""
        return tuple(self.table[f"input.{name}"].split())


@lru_cache(maxsize=len(LANGUAGES))
def strings(code: str) -> Strings:
    """The table of a language.  Raises LanguageError."""
    from importlib.resources import files

    if code not in LANGUAGES:
        raise LanguageError(f"there is no language {code[:40]!r}, known are {', '.join(LANGUAGES)}.")
    text = (files("solver") / "strings" / f"{code}.toml").read_text(encoding="utf-8")
    sections: dict[str, dict[str, str]] = tomllib.loads(text)
    return Strings(code, {f"{section}.{key}": text for section, keys in sections.items() for key, text in keys.items()})


def placeholders(text: str) -> set[str]:
    """The names of a string's placeholders."""
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}
