"""What the end-to-end tests of the explorer stand on: a real server, headless Chromium, and a reader."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

pytest.importorskip("nicegui", reason="the explorer's extra [web] is not installed")
sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
if not Path(CHROMIUM).exists():
    pytest.skip("Chromium is not installed", allow_module_level=True)

ROOT = Path(__file__).resolve().parent.parent
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-quic", "--no-first-run",
]  # fmt: skip
PATIENCE = 20_000  # milliseconds, on a busy machine

DUEL = """# A match of a few hands, solved in a moment.
name = "duel"
ranks = ["A", "2", "3"]
order = "circular"
copies = 3
hand_size = 3
ladder = [1, 2]
all_tied = "nobody"
target = 3
"""


@dataclass
class Site:
    """A server that runs, and what a process needs to know the same strategies."""

    address: str
    environment: dict[str, str]
    rules: Path

    def advise(self, *arguments: str) -> Any:
        """What `truc advise --json` says."""
        command = [sys.executable, "-m", "solver", "advise", *arguments, "--json"]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=True, cwd=ROOT)
        return json.loads(done.stdout)


@dataclass
class Reader:
    """A browser's page, and everything that it has asked for and complained of."""

    page: Any
    site: Site
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    frames: list[str] = field(default_factory=list)

    def open(self, where: str) -> None:
        """Go to an address of the site."""
        self.page.goto(self.site.address + where.lstrip("/"))

    def press(self, selector: str) -> None:
        """Click what is there now, and not covered by what is drawn next."""
        self.page.wait_for_selector(selector, timeout=PATIENCE)
        self.page.locator(selector).first.click(timeout=PATIENCE)

    def act(self, action: str) -> None:
        """Go one action further in the tab Strategy, and wait for it."""
        before = self.page.locator("#panel-strategy .tile[data-do=goto]").count()
        self.press(f'#panel-strategy [data-do=act][data-arg="{action}"]')
        self.wait(lambda: self.page.locator("#panel-strategy .tile[data-do=goto]").count() == before + 1)

    def wait(self, true: Callable[[], bool]) -> None:
        """Wait until something is so."""
        end = time.monotonic() + PATIENCE / 1000
        while not true():
            assert time.monotonic() < end, "waited in vain"
            self.page.wait_for_timeout(20)

    def seen(self, selector: str) -> bool:
        """Whether something is on the page, visibly."""
        found = self.page.locator(selector)
        return any(found.nth(n).is_visible() for n in range(min(found.count(), 3)))


def served(folder: Path) -> Iterator[Site]:
    """A server of its own, with folders of its own."""
    from numba import config

    import solver.kernels  # noqa: F401  # it says where compiled code is kept: that is used, not made again

    rules = folder / "duel.toml"
    rules.write_text(DUEL)
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(config.CACHE_DIR),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "XDG_DATA_HOME": str(folder / "data"),
        "LANG": "C",
        "PYTHONPATH": str(ROOT),
    }
    for name in ("LC_ALL", "LC_MESSAGES"):
        environment.pop(name, None)
    truc = [sys.executable, "-m", "solver"]
    solved = [*truc, "match", "solve", "--rules", str(rules), "--accuracy", "1e-3"]
    subprocess.run(solved, env=environment, check=True, capture_output=True, cwd=folder)
    command = [*truc, "explore", "--port", "0", "--no-open", "--json", "--rules", str(rules)]
    with (folder / "messages").open("w") as messages:
        server = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=messages, text=True, cwd=folder
        )
    try:
        assert server.stdout is not None
        text = ""
        while not text.rstrip().endswith("}"):
            line = server.stdout.readline()
            assert line, (folder / "messages").read_text()
            text += line
        address = json.loads(text)["address"]
        end = time.monotonic() + 30
        while True:
            try:
                urlopen(address, timeout=10).close()
                break
            except OSError:
                assert time.monotonic() < end
                time.sleep(0.1)
        yield Site(address, environment, rules)
        assert not list(folder.glob(".nicegui")), "it wrote where it was started"
    finally:
        server.terminate()
        server.wait(timeout=20)
        assert not server.stdout or not server.stdout.close()
    assert "Traceback" not in (folder / "messages").read_text()


def chromium() -> Iterator[Any]:
    """Chromium."""
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield found
        found.close()


def reading(site: Site, browser: Any) -> Iterator[Reader]:
    """A page that must ask nobody else for anything and have nothing to complain of."""
    context = browser.new_context(viewport={"width": 1400, "height": 900}, locale="en-GB")
    page = context.new_page()
    found = Reader(page, site)
    page.on("request", lambda request: found.requests.append(request.url))
    page.on("console", lambda said: found.errors.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: found.errors.append(str(error)))

    def listen(socket: Any) -> None:
        found.requests.append(socket.url)
        socket.on("framereceived", lambda payload: found.frames.append(str(payload)))

    page.on("websocket", listen)
    yield found
    context.close()
    assert not found.errors
    own = urlsplit(site.address).netloc
    foreign = [
        url for url in found.requests if urlsplit(url).scheme not in ("data", "blob") and urlsplit(url).netloc != own
    ]
    assert found.requests
    assert not foreign
