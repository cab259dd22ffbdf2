"""The tab Solve: a run with its exploitability curve, to be paused and resumed."""

from __future__ import annotations

import json
import math
from html import escape

from nicegui import ui

from games.notation import NotationError, format_score, parse_score
from games.rules import Rules
from solver.equity import Score
from solver.i18n import Strings
from solver.storage import StorageError
from solver.web import drawing, html
from solver.web.library import UNAVAILABLE, table_of
from solver.web.place import Place
from solver.web.runs import Run
from solver.web.shell import Session, Tab

LEAST, MOST = 1e-7, 1.0
REDRAW = 0.3  # seconds


class SolveTab(Tab):
    """See the module."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.form = ui.html("", sanitize=False)
        self.box = ui.html("", sanitize=False)
        self.run: Run | None = None
        self.drawn = ""
        self.timer = ui.timer(REDRAW, self.tick)

    async def show(self) -> None:
        """Draw the run of the place, or the one that computes."""
        runs, place = self.session.explorer.runs, self.place
        self.form.set_content(form(self.say, place.rules, place.score, self.session.explorer.library.known))
        self.run = await self.aside(lambda: runs.find(place.rules, place.score))
        self.drawn = ""
        self.draw()

    def tick(self) -> None:
        """Draw what has changed."""
        if self.place.tab == "solve":
            self.draw()

    def draw(self) -> None:
        """Draw the run."""
        text = view(self.say, self.run)
        if text != self.drawn:
            self.drawn = text
            self.box.set_content(text)

    async def on_variant(self, arg: str) -> None:
        """Another rule set."""
        rules = self.session.explorer.library.known.get(arg)
        if rules is not None:
            await self.session.go(Place("solve", rules))

    async def on_worth(self, arg: str) -> None:
        """In points, or at a score "L-D"."""
        try:
            score = parse_score(self.place.rules, arg) if arg else None
        except NotationError as error:
            self.session.complain(str(error))
            return
        await self.session.go(Place("solve", self.place.rules, score))

    async def on_start(self, arg: str) -> None:
        """Begin, or go on."""
        try:
            fields = json.loads(arg)
            text, worth = str(fields["accuracy"]), str(fields.get("worth", ""))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return
        try:
            accuracy = float(text) if len(text) < 40 else math.nan
        except ValueError:
            accuracy = math.nan
        if not LEAST <= accuracy <= MOST:
            self.session.complain(self.say("web.solve_bad_accuracy", text=repr(text[:40])))
            return
        rules = self.place.rules
        try:
            score = parse_score(rules, worth) if worth else None
        except NotationError as error:
            self.session.complain(str(error))
            return
        if score != self.place.score:
            await self.session.go(Place("solve", rules, score))
        await self._start(accuracy)

    async def on_resume(self, _: str) -> None:
        """Go on with a paused run."""
        if self.run is not None:
            await self._start(self.run.accuracy)

    async def _start(self, accuracy: float) -> None:
        explorer, place = self.session.explorer, self.place
        busy = explorer.runs.active
        if busy is not None:
            if busy is not self.run:
                score = "" if busy.score is None else format_score(busy.score)
                self.session.complain(self.say("web.solve_other", variant=busy.rules.name, score=score))
            return
        try:
            threads = explorer.library.threads
            self.run = await self.aside(lambda: explorer.runs.start(place.rules, place.score, accuracy, threads))
        except (StorageError, RuntimeError) as error:
            self.session.complain(str(error))
        self.draw()

    async def on_pause(self, _: str) -> None:
        """Pause."""
        if self.run is not None:
            self.session.explorer.runs.pause(self.run)
            self.draw()

    async def on_discard(self, _: str) -> None:
        """Forget a paused run."""
        if self.run is not None and not self.run.active:
            try:
                self.session.explorer.runs.discard(self.run)
            except UNAVAILABLE as error:
                self.session.complain(str(error))
            self.run = None
            self.draw()


def form(say: Strings, rules: Rules, score: Score | None, known: dict[str, Rules]) -> str:
    """What to solve, and how well."""
    fields = html.choice(say("web.variant"), "variant", [(name, name) for name in known], rules.name, name="variant")
    if table_of(rules) is not None:
        text = "" if score is None else format_score(score)
        fields += html.field(say("web.table_score"), "worth", text, maxlength=7, placeholder=say("web.in_points"))
    fields += html.field(
        say("web.solve_accuracy"), "accuracy", "1e-3" if score is None else "1e-4", maxlength=12, inputmode="decimal"
    )
    submit = html.tag("button", escape(say("web.solve_start")), type="submit", class_="button main")
    return html.tag("h1", escape(say("web.solve_title"))) + html.tag(
        "form", fields, submit, data_do="start", class_="row"
    )


def view(say: Strings, run: Run | None) -> str:
    """A run: how far it is, its curve, what can be done with it."""
    if run is None:
        return html.tag("p", escape(say("web.solve_none")), class_="quiet")
    status = say("web.solve_failed", why=run.error) if run.status == "failed" else say(f"web.solve_{run.status}")
    score = say("web.in_points") if run.score is None else format_score(run.score)
    parts = [
        html.tag("h2", escape(f"{run.rules.name}, {score}")),
        html.tag("p", html.tag("b", escape(status)), role="status", class_="state", data_status=run.status),
    ]
    parts.append(
        html.tag("p", escape(say("web.solve_facts", iterations=f"{run.iterations:,}", seconds=f"{run.seconds:.1f}")))
    )
    if run.history:
        latest = run.history[-1]
        parts.append(
            html.tag(
                "p",
                escape(
                    say(
                        "web.solve_latest",
                        value=f"{latest.exploitability:.3g}",
                        iterations=f"{latest.iterations:,}",
                        accuracy=f"{run.accuracy:.3g}",
                    )
                ),
            )
        )
    if run.status == "done" and run.reached is not None:
        parts.append(
            html.tag(
                "p",
                escape(
                    say(
                        "web.solve_reached",
                        file=str(run.file),
                        value=f"{run.reached.exploitability:.3g}",
                        worth=f"{run.reached.value:.5f}",
                    )
                ),
            )
        )
    labels = say("web.solve_curve"), say("web.solve_iterations"), say("web.solve_exploitability")
    parts.append(drawing.curve([(p.iterations, p.exploitability) for p in run.history], labels, run.accuracy))
    buttons = ""
    if run.active:
        buttons = html.button(say("web.solve_pause"), "pause", kind="main", off=run.status != "running")
    elif run.status == "paused":
        buttons = html.button(say("web.solve_resume"), "resume", kind="main") + html.button(
            say("web.solve_discard"), "discard"
        )
    return html.tag("div", *parts, html.tag("div", buttons, class_="actions"), class_="sheet")
