"""Running the explorer: the server, its routes, and what all pages have in common."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import webbrowser
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# NiceGUI would keep what it stores in the folder that it is started in.
os.environ.setdefault("NICEGUI_STORAGE_PATH", str(Path(tempfile.gettempdir()) / "truc-explore"))

import uvicorn
from fastapi import FastAPI, Request
from nicegui import Client, app, ui

from games.rules import Rules
from solver import __version__
from solver.i18n import LANGUAGES
from solver.web import shell
from solver.web.guard import MAX_BODY, Guard
from solver.web.library import Library
from solver.web.place import TABS, Place
from solver.web.progress import Store
from solver.web.runs import Runs

STATIC = Path(__file__).resolve().parent / "static"
FIRST_PORT, PORTS = 8712, 20
GAMES = 8  # that are remembered, of as many windows


@dataclass
class Explorer:
    """What all pages have in common.  start: what is shown first; language: if the address says nothing else; games:
    by window, so that a page that is loaded again goes on with its match."""

    library: Library
    start: Place
    language: str
    runs: Runs
    store: Store
    games: OrderedDict[str, Any] = field(default_factory=OrderedDict)

    def keep(self, window: str, game: Any) -> None:
        """Remember a window's game."""
        self.games[window] = game
        self.games.move_to_end(window)
        while len(self.games) > GAMES:
            self.games.popitem(last=False)


class PortError(OSError):
    """A port that cannot be listened on; the message is one sentence."""


def listen(port: int | None) -> socket.socket:
    """A socket on 127.0.0.1: of a port, of any free one (0), or by default of the first free one from FIRST_PORT.

    Raises PortError.
    """
    wanted = range(FIRST_PORT, FIRST_PORT + PORTS) if port is None else (port,)
    reason = ""
    for number in wanted:
        found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            if os.name != "nt":  # there it would share the port with whoever has it
                found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(("127.0.0.1", number))
            found.listen(128)
        except OSError as error:
            found.close()
            reason = error.strerror or str(error)
            continue
        return found
    names = f"port {port}" if port is not None else f"any of the ports {FIRST_PORT} to {FIRST_PORT + PORTS - 1}"
    raise PortError(f"cannot listen on {names} of 127.0.0.1 ({reason}), choose another by --port")


def application(explorer: Explorer, port: int) -> Guard:
    """The whole application, behind its guard.  Once in a process: NiceGUI has one application only."""
    outer = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.add_static_files("/explorer", STATIC)
    ui.add_head_html(
        f'<link rel="stylesheet" href="/explorer/explorer.css?v={__version__}">'
        f'<script src="/explorer/explorer.js?v={__version__}" defer></script>',
        shared=True,
    )

    async def build(request: Request, client: Client) -> None:
        code = request.query_params.get("lang", explorer.language)
        code = code if code in LANGUAGES else explorer.language
        query = request.url.query
        await shell.page(explorer, client, request.url.path + (f"?{query}" if query else ""), code)

    for path in ("/", *(f"/{name}" for name in TABS)):
        ui.page(path, title="Truc")(_named(build, path))
    ui.run_with(
        outer, title="Truc", dark=None, favicon="🂡", tailwind=False, show_welcome_message=False, storage_secret=None,
        reconnect_timeout=30.0, binding_refresh_interval=None,
    )  # fmt: skip
    return Guard(outer, port)


def _named(build: Callable[[Request, Client], Any], path: str) -> Callable[[Request, Client], Any]:
    """NiceGUI tells pages apart by their functions."""

    async def page(request: Request, client: Client) -> None:
        await build(request, client)

    page.__name__ = f"page_{path.strip('/') or 'start'}"
    return page


def run(
    known: Mapping[str, Rules], start: Rules, language: str, threads: int, port: int | None, opened: bool,
    announce: Callable[[str], None],
) -> None:  # fmt: skip
    """Serve until interrupted.  announce: is told the address; opened: whether to open it in a browser.

    Raises PortError.
    """
    with listen(port) as listener:
        number = listener.getsockname()[1]
        library = Library(known, threads)
        explorer = Explorer(library, Place(TABS[0], start), language, Runs(), Store.usual())
        guard = application(explorer, number)
        library.job(start, None)  # the first page will ask for it
        address = f"http://127.0.0.1:{number}/"
        config = uvicorn.Config(
            guard, log_level="error", access_log=False, server_header=False, ws_max_size=MAX_BODY, lifespan="on",
            timeout_graceful_shutdown=2,
        )  # fmt: skip
        announce(address)
        if opened:
            threading.Timer(0.5, webbrowser.open, (address,)).start()
        try:
            uvicorn.Server(config).run(sockets=[listener])
        finally:
            explorer.runs.close()
            library.close()
