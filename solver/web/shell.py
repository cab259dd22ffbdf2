"""The page: its head, its tabs, and the way from what a reader does to the tab that does it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any, TypeVar, cast

from nicegui import Client, run, ui

from solver.i18n import LANGUAGES, Strings, strings
from solver.web import html
from solver.web.library import UNAVAILABLE, Source
from solver.web.place import TABS, Place, read_url

if TYPE_CHECKING:
    from solver.web.server import Explorer

PATIENCE = 0.12  # seconds after which a click that has to wait says so
LOG = logging.getLogger(__name__)  # to stderr: what goes wrong is not for the page alone
FIRST = 0.4  # seconds that a page waits for what it is to show
TICK = 0.15  # between two looks at what is being solved
MAX_ARGUMENT = 250_000  # characters of what the page says; a longer history is uploaded
T = TypeVar("T")


class Tab:
    """One tab of one reader's page.  Overrides `show`, and the actions it knows: methods called `on_NAME`."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.turn = 0  # counts what the tab was asked to show, so that a late answer is not drawn

    @property
    def say(self) -> Strings:
        """The reader's language."""
        return self.session.say

    @property
    def place(self) -> Place:
        """Where the reader is."""
        return self.session.place

    async def show(self) -> None:
        """Draw what the place says."""
        raise NotImplementedError

    def waiting(self, text: str, share: float | None = None) -> str:
        """A sentence that something is on its way, with how far it is."""
        bar = "" if share is None else f' value="{share:.3f}"'
        return html.tag(
            "div", f'<progress max="1"{bar}></progress>', html.tag("span", escape(text)), class_="wait", role="status"
        )

    async def aside(self, work: Callable[[], T], late: Callable[[], object] = lambda: None) -> T:
        """The result of work that is done in a thread; `late` is called once if it does not come at once."""
        task = asyncio.ensure_future(run.io_bound(work))
        done, _ = await asyncio.wait({task}, timeout=PATIENCE)
        if not done:
            late()
        return cast(T, await task)

    async def source(self, draw: Callable[[str], object], turn: int) -> Source | None:
        """The strategy of the place; draws how far it is while it is solved.  None if something else is asked for
        meanwhile; raises what looking it up does."""
        place = self.place
        job = self.session.explorer.library.job(place.rules, place.score)
        waited = 0.0
        while not job.future.done():
            if waited >= PATIENCE:
                draw(self.waiting(self.progress_text(job.progress), job.share))
            await asyncio.sleep(TICK if waited else PATIENCE)
            waited += TICK
            if self.turn != turn:
                return None
        return job.future.result()

    def progress_text(self, progress: Any) -> str:
        """How far a solve is, in words."""
        if progress is None:
            return self.say("web.loading")
        latest = progress.latest
        accuracy = "…" if latest is None else f"{latest.exploitability:.2g}"
        return self.say("web.solving", iterations=f"{progress.iterations:,}", accuracy=accuracy)


class Session:
    """One reader's page."""

    def __init__(self, explorer: Explorer, url: str, code: str) -> None:
        self.explorer, self.say, self.client = explorer, strings(code), ui.context.client
        self.place, self.wrong = read_url(url, explorer.library.known, explorer.start)
        self.head = ui.html("", sanitize=False, tag="header").classes("head")
        self.note = ui.html("", sanitize=False).classes("note")
        self.panels = {
            name: ui.element("section").classes("tab-panel").props(f"id=panel-{name} aria-labelledby=tab-{name}")
            for name in TABS
        }
        self.tabs: dict[str, Tab] = {}
        self.to_review = ""  # a history that another tab wants to be reviewed
        ui.on("truc", self.heard)

    def tab(self) -> Tab:
        """The tab of the place, made when it is first looked at."""
        from solver.web import match, review, solving, strategy, table, trainer

        name = self.place.tab
        if name not in self.tabs:
            makers: dict[str, Callable[[Session], Tab]] = {
                "strategy": strategy.StrategyTab, "match": match.MatchTab, "table": table.TableTab,
                "trainer": trainer.TrainerTab, "review": review.ReviewTab, "solve": solving.SolveTab,
            }  # fmt: skip
            with self.panels[name]:
                self.tabs[name] = makers[name](self)
        return self.tabs[name]

    async def show(self) -> None:
        """Draw the place."""
        self.head.set_content(self.head_html())
        self.note.set_content("".join(html.message(text) for text in self.wrong))
        for name, panel in self.panels.items():
            panel.props(remove="hidden") if name == self.place.tab else panel.props("hidden")
        tab = self.tab()
        tab.turn += 1
        await tab.show()

    async def go(self, place: Place, push: bool = True) -> None:
        """Go somewhere else."""
        self.place, self.wrong = place, []
        if push:
            ui.navigate.history.push(self.url(place))
        await self.show()

    def url(self, place: Place) -> str:
        """A place's address, in this reader's language."""
        more = "" if self.say.code == self.explorer.language else f"&lang={self.say.code}"
        return place.url + more

    async def heard(self, event: Any) -> None:
        """What the reader did."""
        try:
            do, arg = _said(event.args)
        except ValueError:
            return
        with self.client:
            await self.guarded(lambda: self.do(do, arg))

    async def guarded(self, work: Callable[[], Any]) -> None:
        """Do something, and show what goes wrong as a sentence."""
        try:
            await work()
        except asyncio.CancelledError:
            raise
        except UNAVAILABLE as error:
            self.complain(str(error) or type(error).__name__)
        except Exception as error:
            LOG.error("truc explore: %s: %s", type(error).__name__, error)
            self.complain(self.say("web.unexpected", what=type(error).__name__))

    def complain(self, text: str) -> None:
        """Show a sentence above the tab."""
        self.note.set_content(html.message(text))

    async def do(self, do: str, arg: str) -> None:
        """Do what the page says: something about places, or what the tab does itself."""
        if do == "tab" and arg in TABS:
            await self.go(replace(self.place, tab=arg))
        elif do == "location":
            self.place, self.wrong = read_url(arg, self.explorer.library.known, self.explorer.start)
            await self.show()
        else:
            act = getattr(self.tab(), f"on_{do}", None) if do.isidentifier() else None
            if act is not None:
                if self.wrong:
                    self.wrong = []
                self.note.set_content("")
                await act(arg)

    def head_html(self) -> str:
        """The head of the page: its name, the tabs, language and light."""
        say, place = self.say, self.place
        links = "".join(
            html.tag(
                "a", escape(say(f"web.tab_{name}")), href=self.url(replace(place, tab=name)), id=f"tab-{name}",
                data_do="tab", data_arg=name, aria_current="page" if name == place.tab else None,
            )
            for name in TABS
        )  # fmt: skip
        others = [code for code in LANGUAGES if code != say.code]
        switch = "".join(
            html.tag(
                "a",
                code.upper(),
                href=f"{place.url}&lang={code}",
                lang=code,
                class_="button quiet",
                aria_label=strings(code)("language.name"),
            )
            for code in others
        )
        light = html.tag(
            "button",
            "◐",
            type="button",
            class_="button quiet",
            data_theme_switch="",
            aria_label=say("web.theme"),
            title=say("web.theme"),
        )
        name = html.tag(
            "a",
            '<span class="card small">8</span><span class="card small">7</span><span class="card small ace">A</span>',
            html.tag("b", "Truc"),
            href="/",
            class_="name",
            aria_label="Truc",
        )
        return (
            name
            + html.tag("nav", links, aria_label=say("web.pages"))
            + html.tag("div", switch, light, class_="switches")
        )


def _said(args: Any) -> tuple[str, str]:
    """What an event of the page says.  Raises ValueError for what is none."""
    if isinstance(args, list) and len(args) == 1 and isinstance(args[0], list):
        args = args[0]
    if not (isinstance(args, list) and len(args) == 2 and all(isinstance(each, str) for each in args)):
        raise ValueError("not an event of the page")
    do, arg = args
    if len(do) > 40 or len(arg) > MAX_ARGUMENT:
        raise ValueError("too long an event")
    return do, arg


async def page(explorer: Explorer, client: Client, url: str, code: str) -> None:
    """Build a page, and go on when the browser has it."""
    session = Session(explorer, url, code)
    session.head.set_content(session.head_html())
    for name, panel in session.panels.items():
        if name != session.place.tab:
            panel.props("hidden")
    tab = session.tab()
    # A fast answer is in the page at once; a slow one follows.
    task = asyncio.ensure_future(session.guarded(session.show))
    await asyncio.wait({task}, timeout=FIRST)
    del tab, client
