"""The tab Strategy: walk the solved game, see what all hands do."""

from __future__ import annotations

import json
from dataclasses import replace
from html import escape

from nicegui import background_tasks, run, ui

from games.notation import NotationError, format_hand, parse_hand, parse_score
from games.rules import AGREE
from games.state import State
from solver.web import drawing, html
from solver.web.grid import Grid, grid, refine
from solver.web.library import UNAVAILABLE, Source
from solver.web.place import Place, checked_hand, first_line
from solver.web.shell import Session, Tab
from solver.web.strategy_view import controls, detail, discards_form, pick, range_view, tiles, totals
from solver.web.words import ending


class StrategyTab(Tab):
    """See the module."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.controls = ui.html("", sanitize=False).classes("controls")
        self.tiles = ui.html("", sanitize=False, tag="nav").classes("tiles").props("aria-label=line")
        with ui.element("div").classes("columns"):
            with ui.element("div").classes("main"):
                self.grids = ui.html("", sanitize=False).classes("grids")
            with ui.element("aside").classes("side"):
                self.detail = ui.html("", sanitize=False).classes("detail")
                self.totals = ui.html("", sanitize=False).classes("totals")
                self.range = ui.html("", sanitize=False).classes("range")
        self.future: tuple[str, ...] = ()  # the actions of the longest line walked, beyond the present one
        self.expected: tuple[str, ...] = ()  # the line that `future` goes on from
        self.grid: Grid | None = None
        self.source_now: Source | None = None
        self.pointed = 0  # counts what the reader points at

    async def show(self) -> None:
        """Draw the decision of the place."""
        turn, place = self.turn, self.place
        if place.line != self.expected:  # the reader came by an address
            self.future = ()
        self.controls.set_content(controls(self.say, place, self.session.explorer.library.known))
        self.tiles.set_content(tiles(self.say, place, bool(self.future)))
        self.grid = None

        def draw(text: str) -> None:
            self.grids.set_content(text)
            for element in (self.totals, self.range, self.detail):
                element.set_content("")

        try:
            source = await self.source(draw, turn)
            if source is None:
                return
            found = await self.aside(
                lambda: source.ask(lambda adviser: grid(adviser, place.line, place.discards)),
                lambda: draw(self.waiting(self.say("web.thinking"))),
            )
        except (*UNAVAILABLE, NotationError) as error:
            if self.turn == turn:
                draw(html.message(str(error)) + discards_form(self.say, place))
            return
        if self.turn != turn:
            return
        self.grid, self.source_now = found, source
        self.draw()
        await self.point(place.hand)
        self._refine(turn, found, source, place)

    def _refine(self, turn: int, found: Grid, source: Source, place: Place) -> None:
        """Go through the rows of rare hands, while the reader looks at what is there."""

        async def go_on() -> None:
            changed = await run.io_bound(refine, source.ask, found, place.discards, lambda: self.turn == turn)
            if self.turn == turn:
                if changed:
                    self.draw()
                else:
                    self.totals.set_content(totals(self.say, found))

        background_tasks.create(go_on(), name="refine")

    def draw(self) -> None:
        """Draw the grid that is there."""
        found, place = self.grid, self.place
        if found is None:
            return
        chosen = None if place.hand is None else format_hand(place.rules, place.hand)
        names = found.answer.actions
        wide = drawing.triangles(place.rules, found.cells, names, chosen, self.say)
        narrow = drawing.strips(place.rules, found.cells, names, chosen, self.say)
        legend = html.tag("p", escape(self.say("web.legend")), class_="quiet")
        self.grids.set_content(html.tag("div", wide, class_="wide") + html.tag("div", narrow, class_="narrow") + legend)
        self.totals.set_content(totals(self.say, found))

    async def point(self, hand: tuple[int, ...] | None) -> None:
        """Show the details of a hand, or of none."""
        found, source, place = self.grid, self.source_now, self.place
        if found is None or source is None:
            return
        self.pointed += 1
        at, turn = self.pointed, self.turn
        if hand is None or found.cell(hand) is None:
            self.detail.set_content(pick(self.say, place))
            self.range.set_content(range_view(self.say, place, found.opponent, None, found.answer.player))
            return
        name = format_hand(place.rules, hand)
        gone = format_hand(place.rules, place.discards)

        def late() -> None:
            if self.pointed == at:
                self.detail.set_content(self.waiting(self.say("web.thinking")))

        try:
            advice = await self.aside(lambda: source.ask(lambda adviser: adviser.advise(name, place.line, gone)), late)
        except NotationError as error:
            self.session.complain(str(error))
            return
        if self.turn == turn and self.pointed == at:
            self.detail.set_content(detail(self.say, place, advice) + pick(self.say, place))
            facing = found.facing(hand)
            self.range.set_content(range_view(self.say, place, facing, name, found.answer.player))

    # -- what the reader does -----------------------------------------------------------------------------------------

    async def on_hover(self, arg: str) -> None:
        """Point at a hand, or at none any more."""
        hand = self.place.hand
        if arg:
            try:
                hand = checked_hand(self.place, arg)
            except NotationError:
                return
        await self.point(hand)

    async def on_hand(self, arg: str) -> None:
        """Choose a hand: a cell, or text in the form."""
        text = arg
        if arg.startswith("{"):
            try:
                text = str(json.loads(arg)["hand"])
            except (ValueError, KeyError, TypeError, RecursionError):
                return
        if not text.strip():
            hand = None
        else:
            try:
                hand = checked_hand(self.place, text)
            except NotationError as error:
                self.session.complain(str(error))
                return
        self.session.place = replace(self.place, hand=None if hand == self.place.hand and arg == text else hand)
        ui.navigate.history.replace(self.session.url(self.place))
        await self.point(self.place.hand)
        self.draw()  # the larger part, which only marks the hand

    async def on_act(self, arg: str) -> None:
        """Go one action further."""
        place = self.place
        if arg not in place.state.legal_actions():
            return
        after = place.state.follow((arg,))
        if after.is_over:
            self.session.complain(ending(self.say, after))
            return
        self.future = self.future[1:] if self.future[:1] == (arg,) else ()
        self.expected = (*place.line, arg)
        await self.session.go(place.go(self.expected))

    async def on_goto(self, arg: str) -> None:
        """Go back to the decision before an action of the line, given by its number."""
        line, first = self.place.line, len(first_line(self.place))
        if not arg.isdecimal() or len(arg) > 3 or not first <= int(arg) < len(line):
            return
        self.future, self.expected = (*line[int(arg) :], *self.future), line[: int(arg)]
        await self.session.go(self.place.go(self.expected))

    async def on_back(self, _: str) -> None:
        """One action back."""
        await self.on_goto(str(len(self.place.line) - 1))

    async def on_forward(self, _: str) -> None:
        """One action forward on the line that was walked before."""
        if self.future:
            await self.on_act(self.future[0])

    async def on_variant(self, arg: str) -> None:
        """Another rule set."""
        rules = self.session.explorer.library.known.get(arg)
        if rules is not None:
            place = Place("strategy", rules)
            self.future = ()
            await self.session.go(replace(place, line=first_line(place)))

    async def on_mode(self, arg: str) -> None:
        """In points, or at a score."""
        await self._at_score("0-0" if arg == "match" else "")

    async def on_leader(self, arg: str) -> None:
        """The leader's points."""
        await self._at_score(f"{arg}-{(self.place.score or (0, 0))[1]}")

    async def on_dealer(self, arg: str) -> None:
        """The dealer's points."""
        await self._at_score(f"{(self.place.score or (0, 0))[0]}-{arg}")

    async def _at_score(self, text: str) -> None:
        """The same line at another score, as far as it is possible there."""
        old = self.place
        try:
            score = parse_score(old.rules, text) if text else None
        except NotationError as error:
            self.session.complain(str(error))
            return
        place = Place("strategy", old.rules, score)
        line = first_line(place)
        state = State.begin(old.rules, score).follow(line)
        for action in old.line[len(first_line(old)) :]:
            if action not in state.legal_actions() or state.follow((action,)).is_over:
                break
            state, line = state.follow((action,)), (*line, action)
        self.future = ()
        hand = old.hand if line == old.line else None
        await self.session.go(replace(place, line=line, hand=hand, discards=old.discards if AGREE in line else ()))

    async def on_discards(self, arg: str) -> None:
        """What the player to act has set aside."""
        try:
            gone = parse_hand(self.place.rules, str(json.loads(arg)["discards"]))
        except NotationError as error:
            self.session.complain(str(error))
            return
        except (ValueError, KeyError, TypeError, RecursionError):
            return
        await self.session.go(replace(self.place, discards=gone, hand=None))
