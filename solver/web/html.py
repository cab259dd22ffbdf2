"""Pieces of HTML that the tabs share; every text that is put in is escaped here."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from games.notation import format_hand
from games.rules import ACCEPT, RAISE, REFUSE, Rules

LETTERS = {
    RAISE: "R", ACCEPT: "Y", REFUSE: "N", "remainder": "M", "fold": "F", "pass": "P", "propose": "D", "keep": "K",
    "agree": "Y", "decline": "N", "cut": "C", "tap": "T", "three": "3", "one": "1", "play": "Y",
}  # fmt: skip
"""One letter for each action, where notation has one, that one; a card's is its rank."""

RAMP = ("#16325c", "#33466b", "#535c6f", "#6e7074", "#898677", "#a69d75", "#c4b56c", "#e2cd5c", "#f6e04a")
"""Cividis, from weak to strong: the same order of lightness to every eye."""

ACTION_COLOURS = {
    RAISE: "#d55e00", "remainder": "#cc79a7", ACCEPT: "#e69f00", REFUSE: "#0072b2", "fold": "#56b4e9",
    "pass": "#8c8c8c",
    "agree": "#e69f00", "decline": "#0072b2", "play": "#e69f00", "propose": "#d55e00", "keep": "#8c8c8c",
    "cut": "#8c8c8c", "tap": "#d55e00", "three": "#8c8c8c", "one": "#d55e00",
}  # fmt: skip
"""Of Okabe and Ito's palette, which colour-blind eyes can tell apart."""


def tag(name: str, /, *content: str, **attributes: object) -> str:
    """An element around HTML; attributes are escaped, None is left out, `data_do` is written data-do."""
    text = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{text}>{''.join(content)}</{name}>"


def button(label: str, do: str, arg: str = "", *, kind: str = "", off: bool = False, **attributes: object) -> str:
    """A button that says to the server what to do; the label is a text."""
    disabled = "" if off else None
    return tag(
        "button", escape(label), type="button", class_=f"button {kind}".strip(), data_do=do, data_arg=arg,
        disabled=disabled, **attributes,
    )  # fmt: skip


def choice(label: str, do: str, options: Iterable[tuple[str, str]], chosen: str, **attributes: object) -> str:
    """A list to choose from, with its label: pairs of value and text."""
    items = "".join(
        tag("option", escape(text), value=value, selected="" if value == chosen else None) for value, text in options
    )
    return tag("label", tag("span", escape(label)), tag("select", items, data_change=do, **attributes), class_="field")


def field(label: str, name: str, value: str, **attributes: object) -> str:
    """An input in a form, with its label."""
    box = tag("input", name=name, value=value, autocomplete="off", **attributes).removesuffix("</input>")
    return tag("label", tag("span", escape(label)), box, class_="field")


def colour(rules: Rules, action: str) -> str:
    """An action's colour."""
    if action in rules.ranks:
        place = rules.ranks.index(action) / max(rules.n_ranks - 1, 1)
        return RAMP[round(place * (len(RAMP) - 1))]
    return ACTION_COLOURS.get(action, "#8c8c8c")


def ink(background: str) -> str:
    """Black or white, whichever can be read on a colour."""
    red, green, blue = (int(background[i : i + 2], 16) / 255 for i in (1, 3, 5))

    def linear(part: float) -> float:
        return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4

    light = 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
    return "#000" if light > 0.179 else "#fff"


def letter(action: str) -> str:
    """What stands for an action in a small space."""
    return LETTERS.get(action, action)


def paint(rules: Rules, action: str) -> str:
    """An action's colour and what can be read on it, as a style."""
    back = colour(rules, action)
    return f"background:{back};color:{ink(back)}"


def chip(rules: Rules, action: str) -> str:
    """An action's letter on its colour."""
    return tag("span", escape(letter(action)), class_="chip", style=paint(rules, action), aria_hidden="true")


def card(label: str, kind: str = "") -> str:
    """A card that lies open; the label is its rank."""
    return tag("span", escape(label), class_=f"card {kind}".strip())


def cards(rules: Rules, hand: Iterable[int], kind: str = "") -> str:
    """Cards in a row."""
    hand = tuple(hand)
    row = "".join(card(rules.ranks[rank], kind) for rank in hand)
    return tag("span", row, class_="cards", role="img", aria_label=format_hand(rules, hand))


def exact(value: float, text: str) -> str:
    """A number as people read it, with all its digits for who wants them."""
    return tag("span", escape(text), class_="number", data_value=repr(float(value)))


def percent(share: float, digits: int = 1) -> str:
    """A probability: only what never happens is 0, only what always happens 100."""
    least = 10.0**-digits
    value = 100 * share
    if 0 < value < least:
        return f"<{least:g} %"
    if 100 - least < value < 100:
        value = 100 - least
    return f"{value:.{digits}f} %"


def message(text: str, kind: str = "wrong") -> str:
    """A sentence in a box, which screen readers read at once."""
    return tag("p", escape(text), class_=f"message {kind}", role="alert" if kind == "wrong" else "status")


def table(head: Iterable[str], rows: Iterable[Iterable[str]], caption: str = "", kind: str = "") -> str:
    """A table of HTML cells under texts."""
    top = tag("caption", escape(caption)) if caption else ""
    top += tag("thead", tag("tr", *(tag("th", escape(text), scope="col") for text in head)))
    body = "".join(tag("tr", *(tag("td", cell) for cell in row)) for row in rows)
    return tag("div", tag("table", top, tag("tbody", body)), class_=f"scroll {kind}".strip())
