"""Who may talk to the explorer, and what its addresses may say, whoever wrote them."""

from __future__ import annotations

import asyncio
import random
import re
from typing import Any

import pytest

from games.history import HistoryError
from games.notation import format_hand
from games.rules import preset, preset_names
from solver.i18n import strings
from solver.web import html
from solver.web.guard import MAX_BODY, Guard
from solver.web.place import Place, checked_hand, checked_line, read_url

MINI = preset("mini")
KNOWN = {name: preset(name) for name in preset_names()}
START = Place("strategy", preset("le-truc"))
EN, FR = strings("en"), strings("fr")


# ------------------------------------------------------------------------------------------------------------ the guard


def scope(kind: str = "http", method: str = "GET", **headers: str) -> dict[str, Any]:
    """A request to the port 8712."""
    given = {"host": "127.0.0.1:8712", **{key.replace("_", "-"): value for key, value in headers.items()}}
    return {
        "type": kind,
        "method": method,
        "path": "/",
        "headers": [(k.encode(), v.encode()) for k, v in given.items()],
    }


async def nothing(*_: Any) -> None:
    """An application that must not be reached."""
    raise AssertionError("reached")


GUARD = Guard(nothing, 8712)
OWN = "http://127.0.0.1:8712"


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        (scope(), None),
        (scope(host="localhost:8712"), None),
        (scope(host="LOCALHOST:8712", origin="http://localhost:8712"), None),
        (scope(origin=OWN, method="POST"), None),
        (scope(sec_fetch_site="same-origin"), None),
        (scope(sec_fetch_site="cross-site", sec_fetch_mode="navigate"), None),  # a link
        (scope("websocket", origin=OWN), None),
        (scope(host="truc.example:8712"), 421),  # DNS rebinding
        (scope(host="127.0.0.1"), 421),
        (scope(host="127.0.0.1:8713"), 421),
        (scope(host="127.0.0.1:8712.truc.example"), 421),
        (scope(host=""), 421),
        (scope(origin="https://truc.example"), 403),
        (scope(origin="null"), 403),
        (scope(origin="http://127.0.0.1:8713"), 403),
        (scope(origin="http://localhost:8712"), 403),  # not the name it was asked by
        (scope(sec_fetch_site="cross-site", sec_fetch_mode="no-cors"), 403),
        (scope(sec_fetch_site="same-site", sec_fetch_mode="cors"), 403),  # another port of this machine
        (scope(method="POST", sec_fetch_site="cross-site", sec_fetch_mode="navigate"), 403),
        (scope("websocket"), 403),
        (scope("websocket", origin="https://truc.example"), 403),
        (scope("websocket", origin=OWN, host="truc.example"), 421),
        (scope(method="POST", content_length=str(MAX_BODY)), None),
        (scope(method="POST", content_length=str(MAX_BODY + 1)), 413),
        (scope(method="POST", content_length="9" * 5000), 413),
        (scope(method="POST", content_length="-1"), 413),
    ],
)
def test_guard_refuses(asked: dict[str, Any], status: int | None) -> None:
    """Who may talk to the page."""
    refusal = GUARD.refusal(asked)
    assert (None if refusal is None else refusal[0]) == status


def test_guard_refuses_two_hosts() -> None:
    """A second Host could be read by another layer."""
    asked = scope()
    asked["headers"].append((b"Host", b"truc.example"))
    assert GUARD.refusal(asked) is not None


def answered(guard: Guard, asked: dict[str, Any], parts: list[bytes]) -> list[dict[str, Any]]:
    """What is sent back to a request with a body in parts."""
    sent: list[dict[str, Any]] = []
    left = [{"type": "http.request", "body": part, "more_body": True} for part in parts]

    async def receive() -> Any:
        return left.pop(0) if left else {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(dict(message))

    asyncio.run(guard(asked, receive, send))
    return sent


def test_guard_counts_what_is_sent_without_a_length() -> None:
    """A body in chunks is cut off; an answer tells the browser to load nothing from elsewhere."""

    async def read_all(_: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": [(b"X-Frame-Options", b"ALLOWALL")]})
        await send({"type": "http.response.body", "body": b""})

    guard = Guard(read_all, 8712)
    assert answered(guard, scope(method="POST"), [b"a" * 600_000] * 2)[0]["status"] == 413
    fine = answered(guard, scope(method="POST"), [b"a" * 400_000] * 2)[0]
    assert fine["status"] == 200
    headers = dict(fine["headers"])
    assert b"default-src 'self'" in headers[b"content-security-policy"]
    assert headers[b"x-frame-options"] == b"DENY"
    assert len([1 for name, _ in fine["headers"] if name.lower() == b"x-frame-options"]) == 1
    assert answered(GUARD, scope("websocket"), [])[0]["type"] == "websocket.close"


# ------------------------------------------------------------------------------------------------------------ addresses


def test_addresses_round_trip() -> None:
    """A place's address leads to it."""
    rules = preset("le-truc")
    place = Place("strategy", rules, (3, 11), ("8", "raise", "accept", "7"), (0, 0))
    assert read_url(place.url, KNOWN, START) == (place, [])
    assert read_url("/", KNOWN, START) == (START, [])
    for name in preset_names():
        for score in (None, (0, 0), (preset(name).target - 1, 0)):
            start = read_url(Place("match", preset(name), score).url, KNOWN, START)[0]
            assert (start.rules.name, start.score, start.tab) == (name, score, "match")
            assert start.state.legal_actions()
            assert read_url(start.url, KNOWN, START) == (start, [])


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("/nowhere", "nowhere"),
        ("/strategy?variant=whist", "whist"),
        ("/strategy?score=12-0", "12-0"),
        ("/strategy?score=x", "x"),
        ("/strategy?line=raise+raise", "raise"),
        ("/strategy?line=raise+refuse", "raise refuse"),
        ("/strategy?hand=9+9+9", "9"),
        ("/strategy?line=8&hand=8", "hand"),
        ("/strategy?" + "a=1&" * 30, "cannot be read"),
        ("/strategy?line=" + "8+" * 3000, "4000"),
        ("//[", "cannot be read"),
    ],
)
def test_wrong_addresses(url: str, said: str) -> None:
    """Each has a sentence, and something is shown nevertheless."""
    place, wrong = read_url(url, KNOWN, START)
    assert len(wrong) == 1
    assert said in wrong[0]
    assert place.state.legal_actions()


def strange(rng: random.Random) -> str:
    """A text as no reader would write it."""
    pieces = [
        *(
            "raise",
            "accept",
            "8",
            "A",
            "0-0",
            "<script>",
            "'\"><img src=x onerror=alert(1)>",
            "\x00",
            "\ud800",
            "é",
            "🂡",
        ),
        *("%", "&", "{}", "{0}", "{line}", "../..", "\n", " ", ",", "-", "1e999", "9" * 50, "ª", "²"),
        *("truc-history 1\n", "rules: mini\n", "players: a, b\n", "hand 1: points, a leads\n", "line: "),
    ]
    return "".join(rng.choice(pieces) + rng.choice(["", " "]) for _ in range(rng.randrange(1, 12)))


def test_a_thousand_strange_texts() -> None:
    """As line, hand, score, address and history: sentences and nothing else, and nothing of them becomes markup."""
    from urllib.parse import quote

    from solver.web import review

    rng = random.Random(1)
    for _ in range(1000):
        text = strange(rng)
        sayings = []
        for what in ("line", "hand", "score", "variant", "discards", "lang"):
            value = quote(text, errors="replace")
            place, wrong = read_url(f"/strategy?{what}={value}", KNOWN, START)
            sayings += wrong
            assert place.state.legal_actions()
        read_url(text, KNOWN, START)
        read_url("/" + text + "?" + text, KNOWN, START)
        try:
            review.read(text, {"mini": MINI})
        except HistoryError as error:
            sayings.append(str(error))
        for saying in sayings:
            assert "\n" not in saying
            markup = html.message(saying)
            assert re.findall(r"<(\w+)", markup) == ["p"]
        assert re.findall(r"<(\w+)", html.field("a", "b", text)) == ["label", "span", "input"]


def test_lines_and_hands_of_places() -> None:
    """A hand may be given as dealt or as held; lines end before the hand does."""
    line = checked_line(MINI, "4 r y 3", None)
    place = Place("strategy", MINI, None, line)
    assert line == ("4", "raise", "accept", "3")
    seat = place.state.to_play
    played = [rank for who, rank in place.state.played if who == seat]
    held = checked_hand(place, "A 2")
    assert held == (0, 1)
    assert checked_hand(place, format_hand(MINI, [0, 1, *played])) == held
