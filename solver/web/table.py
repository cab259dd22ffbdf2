"""The tab Table: a match against the bot, with hints and a tutor.

Everything that is drawn comes from `solver.game.View`, which does not have the bot's unplayed cards before the hand is
over.  A seed tells all cards to who computes them: one that was drawn by lot is shown only when the match is over.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nicegui import ui

from games.history import format_history
from games.state import DealError, IllegalActionError
from solver.advise import Advice
from solver.bot import Advisers
from solver.equity import Score
from solver.game import BOT, Game, GameError
from solver.grading import Decision
from solver.web.library import table_of
from solver.web.place import Place
from solver.web.shell import Session, Tab
from solver.web.strategy_view import detail
from solver.web.table_view import BadSeedError, Settings, actions, felt, form, log, nothing, settings_of, warning

PACE = 0.25  # seconds between two actions of the bot, so that they can be seen


@dataclass(slots=True)
class Seat:
    """A window's match: it stays when the page is loaded again."""

    game: Game
    settings: Settings
    lock: asyncio.Lock


class TableTab(Tab):
    """See the module."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        with ui.element("div").classes("columns"):
            with ui.element("div").classes("main"):
                self.felt = ui.html("", sanitize=False)
                self.actions = ui.html("", sanitize=False)
            with ui.element("aside").classes("side"):
                self.advice = ui.html("", sanitize=False).classes("detail")
                self.log = ui.html("", sanitize=False).classes("totals")
                self.form = ui.html("", sanitize=False).classes("range")
        self.seat: Seat | None = None
        self.settings = Settings()
        self.warning: Decision | None = None

    async def show(self) -> None:
        """Draw the match, if there is one."""
        turn = self.turn
        self.draw()
        if self.seat is None:
            await self.session.client.connected(timeout=60)
            kept = self.session.explorer.games.get(self.session.client.tab_id or "")
            if self.turn == turn and self.seat is None and isinstance(kept, Seat):
                self.seat, self.settings = kept, kept.settings
                self.draw()

    def draw(self, busy: str = "") -> None:
        """Draw what the person may know."""
        say, explorer = self.say, self.session.explorer
        self.form.set_content(form(say, self.place.rules, explorer.library.known, self.settings))
        if self.seat is None:
            self.felt.set_content(nothing(say))
            self.actions.set_content("")
            return
        game = self.seat.game
        seen = game.view()
        self.felt.set_content(felt(say, game.rules, seen, busy != ""))
        over = game.match_is_over
        self.actions.set_content(
            warning(say, self.warning)
            if self.warning
            else actions(say, game.rules, seen, game.practice, over, game.seed, busy)
        )
        self.log.set_content(log(say, seen.events))

    # -- what the reader does -----------------------------------------------------------------------------------------

    async def on_variant(self, arg: str) -> None:
        """Another rule set, for the next match."""
        rules = self.session.explorer.library.known.get(arg)
        if rules is not None:
            await self.session.go(Place("table", rules))

    async def on_start(self, arg: str) -> None:
        """A new match."""
        rules, say = self.place.rules, self.say
        try:
            settings = settings_of(json.loads(arg))
        except BadSeedError as error:
            self.session.complain(say("web.table_bad_seed", seed=str(error)))
            return
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return
        score: Score | None = (0, 0) if settings.match and table_of(rules) is not None else None
        self.felt.set_content(self.waiting(say("web.table_shuffle")))

        def begin(advisers: Advisers) -> Game:
            return Game(
                advisers, settings.level, settings.seed, score, practice=settings.practice,
                names=("you", "bot"),
            )  # fmt: skip

        game = await self.aside(lambda: self.session.explorer.library.play(rules, begin))
        self.seat, self.settings, self.warning = Seat(game, settings, asyncio.Lock()), settings, None
        self.session.explorer.keep(self.session.client.tab_id or "", self.seat)
        self.advice.set_content("")
        await self.locked(self.replies)

    async def on_play(self, arg: str) -> None:
        """An action of the person, which the tutor may stop."""
        await self.locked(lambda: self.play(arg, warned=False))

    async def on_anyway(self, _: str) -> None:
        """The action that the tutor stopped."""
        decision = self.warning
        if decision is not None:
            await self.locked(lambda: self.play(decision.action, warned=True))

    async def on_rethink(self, _: str) -> None:
        """Not that action."""
        self.warning = None
        self.draw()

    async def on_hint(self, _: str) -> None:
        """What to do."""
        await self.locked(self.hint)

    async def on_undo(self, _: str) -> None:
        """Take the latest action back."""

        async def undo() -> None:
            assert self.seat is not None
            self.warning = None
            if not self.seat.game.undo():
                self.session.complain(self.say("web.table_no_undo"))
            self.advice.set_content("")
            await self.replies()

        await self.locked(undo)

    async def on_next(self, _: str) -> None:
        """The next hand."""

        async def next_hand() -> None:
            assert self.seat is not None
            game = self.seat.game
            await self.engine(lambda _: game.next_hand())
            self.advice.set_content("")
            await self.replies()

        await self.locked(next_hand)

    async def on_to_review(self, _: str) -> None:
        """Review what has been played."""
        if self.seat is not None:
            game = self.seat.game
            self.session.to_review = format_history(game.history())
            await self.session.go(Place("review", game.rules))

    # -- playing ------------------------------------------------------------------------------------------------------

    async def locked(self, work: Callable[[], Any]) -> None:
        """Do something with the match, unless something is being done."""
        seat = self.seat
        if seat is None:
            return
        if seat.lock.locked():
            self.session.complain(self.say("web.table_busy"))
            return
        async with seat.lock:
            try:
                await work()
            except (GameError, IllegalActionError, DealError) as error:
                self.session.complain(str(error))
                self.draw()

    async def engine(self, work: Callable[[Advisers], Any]) -> Any:
        """Work in a thread with the ones who play."""
        assert self.seat is not None
        rules = self.seat.game.rules
        return await self.aside(lambda: self.session.explorer.library.play(rules, work), lambda: self.draw("…"))

    async def play(self, action: str, warned: bool) -> None:
        """Do an action, and have the bot answer."""
        assert self.seat is not None
        game, warn = self.seat.game, self.seat.settings.warn
        if action not in game.view().legal:
            return
        self.warning = None
        if warn is not None and not warned:
            least = warn
            self.warning = await self.engine(lambda _: game.warn(action, least))
            if self.warning is not None:
                self.draw()
                return
        game.act(action)
        self.advice.set_content("")
        await self.replies()

    async def replies(self) -> None:
        """Have the bot act until it is the person's turn."""
        assert self.seat is not None
        game, first = self.seat.game, True
        self.draw()
        while game.to_play == BOT:
            if not first:
                await asyncio.sleep(PACE)
            first = False
            await self.engine(lambda _: game.reply())
            self.draw()

    async def hint(self) -> None:
        """Show the advice for the person's hand."""
        assert self.seat is not None
        game = self.seat.game
        advice: Advice = await self.engine(lambda _: game.hint())
        place = Place("strategy", game.rules, game.score, advice.line)
        self.advice.set_content(detail(self.say, place, advice))
        self.draw()
