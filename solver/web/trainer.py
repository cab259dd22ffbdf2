"""The tab Trainer: drills of one kind of spot, scored by what they lose."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from html import escape

from nicegui import ui

from games.notation import NotationError, format_hand, parse_score
from games.rules import Rules
from games.state import State
from solver.advise import Advice, Adviser
from solver.equity import Score
from solver.grading import Decision, graded
from solver.i18n import Strings
from solver.web import html
from solver.web.drills import KINDS, Drill, draw, draw_score
from solver.web.library import UNAVAILABLE, Source, table_of
from solver.web.place import Place
from solver.web.progress import Tally
from solver.web.shell import Session, Tab
from solver.web.strategy_view import detail
from solver.web.words import action_button, face, said, seat_name, the_seat, trick_text

POINTS, SCORE, ALL = "points", "score", "all"


@dataclass(slots=True)
class Spot:
    """A drill that is being done.  adviser: of the game that the strategy plays; decision: what was answered."""

    drill: Drill
    rules: Rules
    advice: Advice
    adviser: Adviser
    decision: Decision | None = None


class TrainerTab(Tab):
    """See the module."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.controls = ui.html("", sanitize=False).classes("controls")
        with ui.element("div").classes("columns"):
            with ui.element("div").classes("main"):
                self.spot_box = ui.html("", sanitize=False)
            with ui.element("aside").classes("side"):
                self.answer = ui.html("", sanitize=False).classes("detail")
                self.tally = ui.html("", sanitize=False).classes("totals")
        self.kind, self.over = KINDS[0], POINTS
        self.spot: Spot | None = None
        self.random = random.Random()

    async def show(self) -> None:
        """Draw the drill; deal one if there is none."""
        place = self.place
        if place.score is not None and self.over == POINTS:
            self.over = SCORE
        self.controls.set_content(controls(self.say, place, self.session.explorer.library.known, self.kind, self.over))
        if self.spot is None or self.spot.drill.kind != self.kind or self.spot.rules.name != place.rules.name:
            await self.deal()
        else:
            self.draw()

    async def deal(self) -> None:
        """Another drill."""
        self.turn += 1
        turn, kind, say = self.turn, self.kind, self.say
        self.spot = None
        self.answer.set_content("")
        self.draw_tally(None)

        def wait(text: str) -> None:
            self.spot_box.set_content(text)

        try:
            score = await self._score(wait, turn)
            if self.turn != turn:
                return
            self.session.place = replace(self.place, score=score)
            source = await self.source(wait, turn)
            if source is None:
                return

            def make(_: Adviser) -> Spot | None:
                strategy = source.adviser.strategy
                drill = draw(strategy, kind, score, self.random, lambda: self.turn == turn)
                if drill is None:
                    return None
                rules, adviser = strategy.tree.rules, Adviser(strategy, source.adviser.threads, score=score)
                return Spot(drill, rules, adviser.advise(format_hand(rules, drill.hand), drill.line), adviser)

            spot = await self.aside(lambda: source.ask(make), lambda: wait(self.waiting(say("web.trainer_draw"))))
        except (*UNAVAILABLE, NotationError) as error:
            if self.turn == turn:
                wait(html.message(str(error)))
            return
        if self.turn != turn:
            return
        if spot is None:
            wait(html.message(say("web.trainer_none"), "fine"))
            return
        self.spot = spot
        self.draw()

    async def _score(self, wait: object, turn: int) -> Score | None:
        """The score to train at."""
        place = self.place
        if self.over == POINTS or table_of(place.rules) is None:
            return None
        if self.over == SCORE:
            return place.score or (0, 0)
        self.session.place = replace(place, score=None)
        source: Source | None = await self.source(self.spot_box.set_content, turn)
        if source is None:
            return None
        return await self.aside(
            lambda: source.ask(lambda adviser: draw_score(adviser.strategy, place.rules, self.random)),
            lambda: self.spot_box.set_content(self.waiting(self.say("web.trainer_draw"))),
        )

    def draw(self) -> None:
        """Draw the drill, and the answer if it was given."""
        spot, say = self.spot, self.say
        if spot is None:
            return
        self.spot_box.set_content(view(say, spot))
        if spot.decision is not None:
            place = Place("strategy", spot.rules, spot.drill.score, spot.drill.line)
            self.answer.set_content(verdict(say, spot.decision) + detail(say, place, spot.advice))
        self.draw_tally(spot)

    def draw_tally(self, spot: Spot | None, trouble: str = "") -> None:
        """Draw what has been trained so far."""
        if spot is None:
            return
        store = self.session.explorer.store
        unit = spot.advice.unit
        tallies = [(kind, store.tally(self.place.rules.name, kind, unit)) for kind in KINDS]
        where = "" if store.file is None else str(store.file)
        self.tally.set_content(tally_view(self.say, tallies, unit, where, trouble))

    # -- what the reader does -----------------------------------------------------------------------------------------

    async def on_answer(self, arg: str) -> None:
        """What to do in the spot."""
        spot = self.spot
        if spot is None or spot.decision is not None or arg not in [c.action for c in spot.advice.choices]:
            return
        decision = graded(spot.adviser, spot.advice, arg)
        if decision is None:
            await self.deal()
            return
        spot.decision = decision
        trouble = ""
        store = self.session.explorer.store
        try:
            store.add(self.place.rules.name, spot.drill.kind, decision.unit, decision.cost, not decision.mark)
        except OSError as error:
            trouble = error.strerror or str(error)
        self.draw()
        self.draw_tally(spot, trouble)

    async def on_next(self, _: str) -> None:
        """Another drill."""
        await self.deal()

    async def on_kind(self, arg: str) -> None:
        """Another kind of spot."""
        if arg in KINDS:
            self.kind = arg
            self.spot = None
            await self.show()

    async def on_over(self, arg: str) -> None:
        """At a score, over all of them, or in points."""
        if arg in (POINTS, SCORE, ALL):
            self.over = arg
            self.spot = None
            self.session.place = replace(self.place, score=(0, 0) if arg == SCORE else None)
            await self.show()

    async def on_leader(self, arg: str) -> None:
        """The leader's points."""
        await self._at(f"{arg}-{(self.place.score or (0, 0))[1]}")

    async def on_dealer(self, arg: str) -> None:
        """The dealer's points."""
        await self._at(f"{(self.place.score or (0, 0))[0]}-{arg}")

    async def _at(self, text: str) -> None:
        try:
            score = parse_score(self.place.rules, text)
        except NotationError as error:
            self.session.complain(str(error))
            return
        self.spot = None
        self.session.place = replace(self.place, score=score)
        await self.show()

    async def on_variant(self, arg: str) -> None:
        """Another rule set."""
        rules = self.session.explorer.library.known.get(arg)
        if rules is not None:
            self.spot, self.over = None, POINTS
            await self.session.go(Place("trainer", rules))

    async def on_forget(self, _: str) -> None:
        """Begin from nothing."""
        trouble = ""
        try:
            self.session.explorer.store.clear()
        except OSError as error:
            trouble = error.strerror or str(error)
        self.draw_tally(self.spot, trouble)


def controls(say: Strings, place: Place, known: dict[str, Rules], kind: str, over: str) -> str:
    """What to train."""
    rules = place.rules
    parts = html.choice(say("web.variant"), "variant", [(name, name) for name in known], rules.name)
    parts += html.choice(say("web.trainer_kind"), "kind", [(name, say(f"web.trainer_{name}")) for name in KINDS], kind)
    modes = [(POINTS, say("web.trainer_points"))]
    if table_of(rules) is not None:
        modes += [(SCORE, say("web.trainer_score")), (ALL, say("web.trainer_over_all"))]
    parts += html.choice(say("web.trainer_at"), "over", modes, over)
    if over == SCORE:
        numbers = [(str(n), str(n)) for n in range(rules.target)]
        score = place.score or (0, 0)
        parts += html.choice(say("web.leader_has"), "leader", numbers, str(score[0]))
        parts += html.choice(say("web.dealer_has"), "dealer", numbers, str(score[1]))
    return parts


def view(say: Strings, spot: Spot) -> str:
    """The spot: what has happened, the own cards, what can be done."""
    rules, drill = spot.rules, spot.drill
    state = State.public(rules, drill.score)
    told = []
    for action in drill.line:
        after = state.follow((action,))
        tricks = after.results[len(state.results) :]
        took = html.tag("small", escape(trick_text(say, tricks[0])), class_="took") if tricks else ""
        told.append(
            html.tag(
                "div",
                html.tag("small", escape(seat_name(say, state.to_play))),
                html.tag("span", face(say, rules, action), class_="face"),
                took,
                class_=f"tile seat{state.to_play}",
            )
        )
        state = after
    story = html.tag("div", *told, class_="tiles") if told else html.tag("p", escape(say("web.trainer_start")))
    score = ""
    if drill.score is not None:
        score = f"{say('web.leader')} {drill.score[0]} - {say('web.dealer')} {drill.score[1]}"
    stake = say("web.table_stake", stake=state.stake)
    if state.offer is not None:
        stake = say("web.table_offer", stake=state.stake, offer=state.offer)
    held = list(drill.hand)
    for seat, rank in state.played:
        if seat == state.to_play:
            held.remove(rank)
    mine = html.cards(rules, held, "big")
    done = spot.decision is not None
    buttons = "".join(action_button(say, rules, c.action, "answer", off=done) for c in spot.advice.choices)
    ask = html.tag("p", html.tag("b", escape(say("web.trainer_you_are", seat=the_seat(say, state.to_play)))))
    following = html.button(say("web.trainer_next"), "next", kind="main", data_key="n") if done else ""
    head = html.tag(
        "p",
        escape(score),
        " ",
        html.tag("span", escape(stake), class_="stake"),
        style="display:flex;align-items:center",
    )
    return html.tag("div", head, story, mine, ask, class_="felt spot") + html.tag(
        "div", buttons, following, class_="actions"
    )


def verdict(say: Strings, decision: Decision) -> str:
    """How good an answer was."""
    if decision.cost > 0:
        cost = say.amount(decision.unit, decision.cost)
        text = say("web.trainer_cost", action=said(say, decision.action), cost=cost, mark=decision.mark)
        return html.tag(
            "p",
            html.tag("b", escape(text[:1].upper() + text[1:])),
            class_="message",
            role="status",
            data_cost=repr(decision.cost),
        )
    mixed = decision.probability < 0.95
    text = say("web.trainer_mix" if mixed else "web.trainer_right")
    return html.tag("p", html.tag("b", escape(text)), class_="message fine", role="status", data_cost="0.0")


def tally_view(say: Strings, tallies: list[tuple[str, Tally]], unit: str, file: str, trouble: str) -> str:
    """What has been trained so far."""
    rows = [
        [
            escape(say(f"web.trainer_{kind}")), str(tally.drills),
            html.percent(tally.good / tally.drills, 0) if tally.drills else "-",
            escape(say.amount(unit, tally.mean)) if tally.drills else "-",
            escape(say.amount(unit, tally.lately)) if tally.drills else "-",
        ]
        for kind, tally in tallies
    ]  # fmt: skip
    head = [
        say("web.trainer_kind"),
        say("web.trainer_drills"),
        say("web.trainer_good"),
        say("web.trainer_mean"),
        say("web.trainer_lately", number=50),
    ]
    note = html.tag("p", escape(say("web.trainer_kept", file=file)), class_="quiet") if file else ""
    if trouble:
        note = html.message(say("web.trainer_not_kept", why=trouble))
    return (
        html.tag("h2", escape(say("web.trainer_so_far")))
        + html.table(head, rows)
        + note
        + html.button(say("web.trainer_forget"), "forget", kind="quiet")
    )
