"""The explorer, end to end: a real server, headless Chromium, a reader who walks, plays, reviews and trains."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlsplit
from urllib.request import Request, urlopen

import pytest

from games.notation import format_line
from games.rules import load_rules
from tests.explorer import PATIENCE, ROOT, Reader, Site, chromium, reading, served


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server of its own, with folders of its own."""
    yield from served(tmp_path_factory.mktemp("explore"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium."""
    yield from chromium()


@pytest.fixture
def reader(site: Site, browser: Any) -> Iterator[Reader]:
    """A page that must ask nobody else for anything and have nothing to complain of."""
    yield from reading(site, browser)


def test_walk_a_line_and_back(reader: Reader, site: Site) -> None:
    """Six actions and back by the tiles, the arrows and the browser; the line is in the URL."""
    reader.open("/?variant=le-truc")
    reader.page.wait_for_selector("#panel-strategy svg.grid .cell", timeout=PATIENCE)
    assert reader.page.locator(".grids .wide svg.grid").count() == 8
    assert reader.page.locator(".grids .wide .cell").count() == 120
    line = ["7", "raise", "accept", "7", "raise", "accept"]
    for action in line:
        reader.act(action)
    reader.wait(lambda: parse_qs(urlsplit(reader.page.url).query).get("line") == [" ".join(line)])
    assert "Leader" in reader.page.locator(".tile.now").inner_text()
    for left in reversed(range(6)):
        reader.press("#panel-strategy [data-do=back]")
        reader.wait(lambda left=left: reader.page.locator(".tile[data-do=goto]").count() == left)  # type: ignore[misc]
    reader.press("#panel-strategy [data-do=forward]")
    reader.wait(lambda: reader.page.url.endswith("line=7"))  # the address follows the drawing
    reader.page.go_back()
    reader.wait(lambda: reader.page.locator(".tile[data-do=goto]").count() == 0)
    # A deep link shows the same, and a tile leads back to the decision before it.
    reader.open("/strategy?variant=le-truc&line=7+raise+accept")
    reader.wait(lambda: reader.page.locator(".tile[data-do=goto]").count() == 3)
    reader.page.wait_for_selector("#panel-strategy svg.grid .cell", timeout=PATIENCE)
    reader.press('.tile[data-do=goto][data-arg="1"]')
    reader.wait(lambda: reader.page.locator(".tile[data-do=goto]").count() == 1)


def shown(reader: Reader, hand: str) -> dict[str, list[float]]:
    """The exact numbers that the page shows for a hand: by action probability, EV, loss and chance to win."""
    reader.page.wait_for_selector(f'#panel-strategy .advice[data-hand="{hand}"]', timeout=PATIENCE)
    rows = reader.page.evaluate(
        """() => [...document.querySelectorAll('#panel-strategy .advice tbody tr')].map(row =>
            [row.cells[0].innerText.trim().split(/\\s+/).pop(), ...[...row.querySelectorAll('[data-value]')].map(
                cell => [cell.dataset.value, cell.innerText])])"""
    )
    numbers = {}
    for name, *cells in rows:
        numbers[name] = [float(exact) for exact, _ in cells]
        assert float(re.sub(r"[^0-9.]", "", cells[0][1])) == pytest.approx(100 * numbers[name][0], abs=0.1)
    return numbers


@pytest.mark.parametrize(
    ("variant", "score", "line", "hand"),
    [
        ("le-truc", "", "", "8 7 A"),
        ("le-truc", "", "7 raise accept", "8 3 2"),
        ("le-truc", "11-11", "5", "8 8 7"),
        ("duel", "1-2", "A raise", "3 2"),
    ],
)
def test_numbers_are_those_of_advise(
    reader: Reader, site: Site, variant: str, score: str, line: str, hand: str
) -> None:
    """Every number shown for a hand is, to the last bit, the one that `truc advise --json` gives."""
    reader.open(f"/strategy?variant={variant}&score={score}&line={line.replace(' ', '+')}")
    reader.page.wait_for_selector("#panel-strategy form[data-do=hand] input", timeout=PATIENCE)
    reader.page.fill("#panel-strategy form[data-do=hand] input", hand)
    reader.page.press("#panel-strategy form[data-do=hand] input", "Enter")
    rules = ["--rules", str(site.rules)] if variant == "duel" else ["--variant", variant]
    stated = site.advise(hand, "--line", line, *rules, *(["--score", score] if score else []))
    found = shown(reader, stated["held"])
    assert found.keys() == {each["action"] for each in stated["actions"]}
    for each in stated["actions"]:
        exact = [each["probability"], each["ev"], each["loss"], each["win"]]
        assert found[each["action"]] == [number for number in exact if number is not None], each["action"]


def test_change_the_score(reader: Reader) -> None:
    """From points to a score, by the lists; the URL says so."""
    reader.open("/strategy?variant=duel&line=A")
    reader.page.wait_for_selector("#panel-strategy svg.grid .cell", timeout=PATIENCE)
    reader.page.select_option("#panel-strategy select[data-change=mode]", "match")
    reader.page.wait_for_selector("#panel-strategy select[data-change=leader]", timeout=PATIENCE)
    reader.page.select_option("#panel-strategy select[data-change=leader]", "2")
    reader.wait(lambda: "score=2-0" in reader.page.url)
    reader.page.wait_for_selector("#panel-strategy svg.grid .cell", timeout=PATIENCE)
    assert parse_qs(urlsplit(reader.page.url).query)["line"] == ["A"]  # it stays
    # The map leads to the first decision at a score.
    reader.press("nav [data-arg=match]")
    reader.press('#panel-match .cell[data-arg="1-2"]')
    reader.wait(lambda: "score=1-2" in reader.page.url and "/strategy" in reader.page.url)


def play_on(reader: Reader) -> None:
    """The first action that can be done: a word, or else a card."""
    reader.page.evaluate(
        "() => { const e = document.querySelector('#panel-table [data-do=play]:not([disabled])'); if (e) e.click() }"
    )


def test_play_a_match_review_it_and_train(reader: Reader, site: Site) -> None:
    """One whole match against the bot with a hint, its review, five drills."""
    reader.open("/table?variant=duel")
    reader.page.wait_for_selector("#panel-table form select[name=level]", timeout=PATIENCE)
    reader.page.fill("#panel-table form input[name=seed]", "7")
    reader.press("#panel-table form [type=submit]")
    hinted, end = False, time.monotonic() + 60
    while True:
        assert time.monotonic() < end, "the match does not end"
        reader.page.wait_for_timeout(40)
        if reader.seen("#panel-table .ended"):
            bot = reader.page.locator("#panel-table .felt .seat").first
            assert bot.locator(".card:not(.down)").count() == 3  # both hands are shown
            if not reader.seen("#panel-table [data-do=next]"):
                break
            reader.press("#panel-table [data-do=next]")
            reader.wait(lambda: not reader.seen("#panel-table .ended") or reader.seen("#panel-table [data-do=next]"))
        elif reader.seen("#panel-table [data-do=hint]:not([disabled])") and not hinted:
            reader.press("#panel-table [data-do=hint]")
            reader.page.wait_for_selector("#panel-table .advice", timeout=PATIENCE)
            hinted = True
        else:
            play_on(reader)
    assert hinted
    assert "7" in reader.page.locator("#panel-table .ended").inner_text()  # the seed
    reader.press("#panel-table [data-do=to_review]")
    reader.page.wait_for_selector("#panel-review .review-totals", timeout=PATIENCE)
    text = reader.page.locator("#panel-review textarea").input_value()
    assert text.startswith("truc-history 1")
    # The same as `truc review` finds.
    history = Path(site.rules).with_name("match.txt")
    history.write_text(text)
    command = [sys.executable, "-m", "solver", "review", str(history), "--rules", str(site.rules), "--json"]
    done = subprocess.run(command, env=site.environment, capture_output=True, text=True, check=True, cwd=ROOT)
    stated = json.loads(done.stdout)["totals"][0]
    row = reader.page.locator("#panel-review .review-totals tbody tr").first
    exact = [float(value) for value in row.locator("[data-value]").evaluate_all("all => all.map(e => e.dataset.value)")]
    assert exact == [stated[key] for key in ("rate", "cost", "luck", "skill", "rest")]
    # Pasted, it gives the same.
    reader.open("/review")
    reader.page.fill("#panel-review textarea", text)
    reader.press("#panel-review form [type=submit]")
    reader.page.wait_for_selector("#panel-review .review-totals", timeout=PATIENCE)

    reader.open("/trainer?variant=duel")
    for number in range(1, 6):
        reader.press("#panel-trainer [data-do=answer]:not([disabled])")
        reader.page.wait_for_selector("#panel-trainer [data-cost]", timeout=PATIENCE)
        cell = reader.page.locator("#panel-trainer .totals tbody tr").first.locator("td").nth(1)
        reader.wait(lambda number=number, cell=cell: cell.inner_text() == str(number))  # type: ignore[misc]
        reader.press("#panel-trainer [data-do=next]")
        reader.page.wait_for_selector("#panel-trainer [data-do=answer]:not([disabled])", timeout=PATIENCE)
    kept = json.loads((site.rules.parent / "data" / "le-truc" / "trainer.json").read_text())
    assert kept["tallies"]["duel/answer/points per hand"]["drills"] == 5


def test_upload_and_hostile_input(reader: Reader) -> None:
    """A file is reviewed; what makes no sense gets a sentence, and the page goes on."""
    reader.open("/review")
    reader.page.wait_for_selector("#panel-review input[type=file]", state="attached", timeout=PATIENCE)
    text = (
        "truc-history 1\nrules: mini\nplayers: ann, bob\nhand 1: points, ann leads\nann: A 2 3\nbob: 4 4 3\nline: r n\n"
    )

    def upload(data: bytes) -> None:
        file = {"name": "hands.txt", "mimeType": "text/plain", "buffer": data}
        reader.page.set_input_files("#panel-review input[type=file]", files=[file])

    upload(text.encode())
    reader.page.wait_for_selector("#panel-review .review-totals", timeout=PATIENCE)
    for data in (b"\xff\xfe\x00", b"truc-history 9", b"a" * 1_000_001):
        reader.page.evaluate("document.querySelector('.note').innerHTML = ''")
        upload(data)
        reader.page.wait_for_selector(".note .message", timeout=PATIENCE)
    for where in (
        "/strategy?line=%3Cscript%3Ealert(1)%3C/script%3E",
        "/strategy?score=99-99&variant=nobody",
        "/table?hand=&line=%00",
    ):
        reader.open(where)
        reader.page.wait_for_selector(".note .message", timeout=PATIENCE)
        assert reader.page.locator(".note script").count() == 0
    reader.open("/strategy?variant=duel")
    reader.page.wait_for_selector("#panel-strategy form[data-do=hand] input", timeout=PATIENCE)
    reader.page.fill("#panel-strategy form[data-do=hand] input", "<b>8 8</b>")
    reader.page.press("#panel-strategy form[data-do=hand] input", "Enter")
    reader.page.wait_for_selector(".note .message", timeout=PATIENCE)


def test_strange_events(reader: Reader) -> None:
    """What a page could send if it were not ours: nothing comes of it, and the page goes on."""
    reader.open("/strategy?variant=duel")
    reader.page.wait_for_selector("#panel-strategy svg.grid .cell", timeout=PATIENCE)
    strange = [None, 7, [], {}, "x", ["act"], ["act", 7], ["__init__", ""], ["show", ""], ["a" * 100, ""]]
    strange += [
        [do, arg] for do in EVENTS for arg in ("", "<b>", "9" * 60, "{", '{"hand": 7}', "\x00", "-1", "1-1-1", "[[[[")
    ]
    for tab in ("strategy", "match", "table", "trainer", "review", "solve"):
        reader.page.evaluate("all => all.forEach(each => window.emitEvent('truc', each))", [["tab", tab], *strange])
        reader.page.wait_for_timeout(200)
        reader.press(f"nav [data-arg={tab}]")
    reader.open("/strategy?variant=duel")
    reader.page.wait_for_selector("#panel-strategy svg.grid .cell", timeout=PATIENCE)


EVENTS = (
    *(
        "act",
        "goto",
        "hand",
        "hover",
        "variant",
        "mode",
        "leader",
        "dealer",
        "discards",
        "seat",
        "rate",
        "score",
        "start",
    ),
    *(
        "play",
        "anyway",
        "rethink",
        "hint",
        "undo",
        "next",
        "answer",
        "kind",
        "over",
        "text",
        "open",
        "worth",
        "location",
    ),
)


def test_solve_pause_resume(reader: Reader) -> None:
    """A run draws its curve, is paused, survives a new page, and goes on to its end."""
    reader.open("/solve?variant=mini")
    reader.page.fill("#panel-solve form input[name=accuracy]", "1e-7")
    reader.press("#panel-solve form [type=submit]")
    reader.page.wait_for_selector("#panel-solve [data-status=running]", timeout=PATIENCE)
    reader.page.wait_for_selector("#panel-solve svg.plot .curve", timeout=PATIENCE)
    reader.press("#panel-solve [data-do=pause]:not([disabled])")
    reader.page.wait_for_selector("#panel-solve [data-status=paused]", timeout=PATIENCE)
    reader.open("/solve?variant=mini")
    reader.page.wait_for_selector("#panel-solve [data-status=paused]", timeout=PATIENCE)
    reader.press("#panel-solve [data-do=resume]")
    reader.page.wait_for_selector("#panel-solve [data-status=running]", timeout=PATIENCE)
    reader.press("#panel-solve [data-do=pause]:not([disabled])")
    reader.press("#panel-solve [data-do=discard]")
    reader.page.wait_for_selector("#panel-solve .quiet", timeout=PATIENCE)


def test_narrow_dark_french(site: Site, browser: Any) -> None:
    """Nothing sticks out at 400 pixels; strips instead of triangles; the other language."""
    context = browser.new_context(viewport={"width": 400, "height": 800}, color_scheme="dark")
    page = context.new_page()
    for tab in ("strategy", "match", "table", "trainer", "review", "solve"):
        page.goto(f"{site.address}{tab}?variant=duel&lang=fr")
        page.wait_for_selector(f"#panel-{tab}", timeout=PATIENCE)
        page.wait_for_timeout(300)
        assert page.evaluate("document.documentElement.scrollWidth") <= 400, tab
    page.goto(f"{site.address}strategy?variant=duel&lang=fr")
    page.wait_for_selector(".grids .narrow .strip", timeout=PATIENCE)
    assert page.locator(".grids .wide").is_hidden()
    assert "Stratégie" in page.locator("nav").first.inner_text()
    context.close()


LATE = 'disabled|class="(felt thinking|wait)"'


def contents(frames: list[str]) -> set[str]:
    """What the server has drawn, each drawing once, apart from the numbers of elements and messages; drawings of
    waiting, which depend on how busy the machine is, left out."""
    found: set[str] = set()

    def walk(part: Any) -> None:
        if isinstance(part, dict):
            for value in part.values():
                walk(value)
        elif isinstance(part, list):
            for value in part:
                walk(value)
        elif isinstance(part, str) and "<" in part and not re.search(LATE, part):
            found.add(part)

    for frame in frames:
        packet = re.match(r"42\d*(?=\[)", frame)  # an event of Socket.IO
        if packet is not None:
            walk(json.loads(frame[packet.end() :]))
    return found


def test_hidden_cards_never_reach_the_page(reader: Reader, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two deals that differ only in what the bot has not played: page and traffic are the same until the hand ends."""
    from solver.bot import Advisers
    from solver.game import BOT, PERSON, Game

    monkeypatch.setenv("XDG_CACHE_HOME", site.environment["XDG_CACHE_HOME"])
    rules = load_rules(site.rules)
    advisers = Advisers(rules, patience=10)
    seen: dict[Any, tuple[int, Any, int]] = {}
    pair = None
    for seed in range(10_000, 14_000):
        game = Game(advisers, seed=seed)
        actions = 0
        lines = []
        while not game.is_over:
            while game.to_play == BOT:
                game.reply()
            if game.to_play == PERSON:
                lines.append(game.view().line)
                game.act(first(game.view().legal, rules.ranks))
                actions += 1
        outcome = game.view().outcome
        assert outcome is not None
        played = {rank for player, rank in game.view().table if player == BOT}
        key = game.view().leader, outcome.hands[PERSON], format_line(lines[-1])
        other = seen.setdefault(key, (seed, outcome.hands[BOT], actions))
        if other[1] != outcome.hands[BOT] and actions >= 2 and len(played) < 3:
            pair = other[0], seed, actions
            break
    advisers.close()
    assert pair is not None, "no two such deals"

    drawn, sources = [], []
    reader.open("/table?variant=duel")
    for seed in pair[:2]:
        reader.page.evaluate("sessionStorage.clear()")  # another window, which knows nothing of the match before
        reader.open("/table?variant=duel")
        reader.frames.clear()
        reader.page.wait_for_selector("#panel-table form select[name=level]", timeout=PATIENCE)
        reader.page.fill("#panel-table form input[name=seed]", str(seed))
        reader.press("#panel-table form [type=submit]")
        for _ in range(pair[2] - 1):
            reader.page.wait_for_selector("#panel-table [data-do=play]:not([disabled])", timeout=PATIENCE)
            reader.press("#panel-table [data-do=hint]:not([disabled])")
            reader.page.wait_for_selector("#panel-table .advice", timeout=PATIENCE)
            before = reader.page.locator("#panel-table .log li").count()
            play_on(reader)
            reader.wait(lambda before=before: reader.page.locator("#panel-table .log li").count() > before)  # type: ignore[misc]
        reader.page.wait_for_selector("#panel-table [data-do=hint]:not([disabled])", timeout=PATIENCE)
        reader.page.wait_for_timeout(300)
        assert not reader.seen("#panel-table .ended")
        drawn.append({text.replace(f'value="{seed}"', "") for text in contents(reader.frames)})
        sources.append(reader.page.locator("#panel-table").inner_html().replace(f'value="{seed}"', ""))
    assert drawn[0] == drawn[1]
    assert len(drawn[0]) >= 3
    assert sources[0] == sources[1]


def first(legal: tuple[str, ...], ranks: tuple[str, ...]) -> str:
    """What `play_on` does: cards lie above the words on the page."""
    cards = [action for action in legal if action in ranks]
    return cards[0] if cards else legal[0]


def status(request: Request) -> int:
    """An answer's status."""
    try:
        with urlopen(request, timeout=10) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code


def test_guard_is_in_front(site: Site) -> None:
    """Names, origins and sizes that are not the page's own are refused; it listens on 127.0.0.1 only."""
    assert status(Request(site.address)) == 200
    assert status(Request(site.address, headers={"Host": "truc.example:80"})) == 421
    assert status(Request(site.address, headers={"Origin": "https://truc.example"})) == 403
    port = urlsplit(site.address).port
    with socket.create_connection(("127.0.0.1", port or 0), timeout=10) as line:
        # The size alone is refused: nothing is read of the body, so a client that sends it may find the line closed.
        lines = ["POST /_nicegui/x HTTP/1.1", f"Host: 127.0.0.1:{port}", "Content-Length: 1100000", "", ""]
        line.sendall("\r\n".join(lines).encode())
        assert line.recv(100).split()[1] == b"413"
    for origin, answer in ((site.address.rstrip("/"), b"101"), ("https://truc.example", b"403")):
        with socket.create_connection(("127.0.0.1", port or 0), timeout=10) as line:
            lines = ["GET /_nicegui_ws/socket.io/?EIO=4&transport=websocket HTTP/1.1", f"Host: 127.0.0.1:{port}"]
            lines += ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", f"Origin: {origin}"]
            lines += ["Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "", ""]
            line.sendall("\r\n".join(lines).encode())
            assert line.recv(100).split()[1] == answer
    assert f"127.0.0.1:{port}" in site.address
    listening = Path("/proc/net/tcp")
    if listening.exists():
        rows = [line.split() for line in listening.read_text().splitlines()[1:]]
        assert {row[1] for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "0A"} == {
            f"0100007F:{port:04X}"
        }
