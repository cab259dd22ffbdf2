"""The tab Review: played hands, what each decision cost, luck apart from skill."""

from __future__ import annotations

import json
from dataclasses import replace
from html import escape
from typing import Any

from nicegui import ui

from games.history import MAX_BYTES, History, HistoryError, parse_history
from games.notation import format_score
from games.rules import Rules
from solver.grading import Decision, HandReview, Review
from solver.i18n import Strings
from solver.web import html
from solver.web.library import UNAVAILABLE
from solver.web.place import BAD, Place, checked_hand
from solver.web.shell import Session, Tab
from solver.web.words import said

MOST_ROWS = 200


class ReviewTab(Tab):
    """See the module."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.form = ui.html("", sanitize=False)
        self.upload = ui.upload(
            on_upload=self.uploaded, on_rejected=self.rejected, max_file_size=MAX_BYTES, auto_upload=True,
            label=self.say("web.review_upload"),
        ).props('accept=".txt,.truc,text/plain" flat bordered').classes("upload")  # fmt: skip
        self.box = ui.html("", sanitize=False)
        self.text = ""
        self.run_number = 0
        self.result: Review | None = None

    async def show(self) -> None:
        """Draw the form, and review what another tab has left."""
        if self.session.to_review:
            self.text, self.session.to_review = self.session.to_review, ""
            self.draw_form()
            await self.review(self.text)
        else:
            self.draw_form()

    def draw_form(self) -> None:
        """The text to review."""
        say = self.say
        area = html.tag(
            "textarea",
            escape(self.text),
            name="text",
            rows=10,
            maxlength=200_000,
            spellcheck="false",
            aria_label=say("web.review_paste"),
        )
        submit = html.tag("button", escape(say("web.review_go")), type="submit", class_="button main")
        label = html.tag("p", escape(say("web.review_paste")), class_="quiet")
        self.form.set_content(
            html.tag("h1", escape(say("web.review_title")))
            + html.tag("form", label, area, html.tag("div", submit, class_="row"), data_do="text")
        )

    async def on_text(self, arg: str) -> None:
        """Review what was pasted."""
        try:
            text = json.loads(arg)["text"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return
        if isinstance(text, str):
            self.text = text
            await self.review(text)

    async def uploaded(self, event: Any) -> None:
        """Review a file."""

        async def read() -> None:
            data = await event.file.read()
            self.upload.reset()
            if len(data) > MAX_BYTES:
                self.session.complain(self.say("web.review_too_large"))
                return
            try:
                text = data.decode("utf-8-sig")
            except UnicodeDecodeError:
                self.session.complain(self.say("web.review_not_text"))
                return
            self.session.note.set_content("")
            if len(text) <= 200_000:
                self.text = text
                self.draw_form()
            await self.review(text)

        await self.session.guarded(read)

    async def rejected(self, _: Any) -> None:
        """Say that a file is too large."""
        self.session.complain(self.say("web.review_too_large"))

    async def review(self, text: str) -> None:
        """Grade a history and draw what came of it."""
        say, library = self.say, self.session.explorer.library
        self.run_number += 1
        number = self.run_number
        self.box.set_content("")

        try:
            history: History = await self.aside(lambda: read(text, library.known))
        except HistoryError as error:
            self.session.complain(str(error))
            return
        if not history.hands:
            self.session.complain(say("web.review_empty"))
            return
        done = 0

        def note(hands: int) -> None:
            nonlocal done
            done = hands

        def draw_progress() -> None:
            text = say("web.review_working", number=done + 1, all=len(history.hands))
            self.box.set_content(self.waiting(text, done / len(history.hands)))

        timer = ui.timer(0.3, draw_progress)
        try:
            found: Review = await self.aside(lambda: library.review(history, note))
        except (*UNAVAILABLE, *BAD) as error:
            if self.run_number == number:
                self.box.set_content(html.message(str(error)))
            return
        finally:
            timer.cancel()
        if self.run_number == number:
            self.result = found
            self.box.set_content(view(say, found))

    async def on_open(self, arg: str) -> None:
        """Look a decision up in the tab Strategy."""
        if self.result is None:
            return
        hand, _, at = arg.partition(":")
        if not (hand.isdecimal() and at.isdecimal() and len(arg) < 12):
            return
        for each in self.result.hands:
            if each.number == int(hand) and int(at) < len(each.decisions):
                await self.session.go(place_of(self.result.history.rules, each, each.decisions[int(at)]))
                return


def read(text: str, known: dict[str, Rules]) -> History:
    """A history, of a rule set that comes with the program or of the one that the explorer was started with.

    Raises HistoryError.
    """
    try:
        return parse_history(text)
    except HistoryError:
        for rules in known.values():
            try:
                return parse_history(text, rules)
            except HistoryError:
                continue
        raise


def place_of(rules: Rules, hand: HandReview, decision: Decision) -> Place:
    """Where a decision is found."""
    place = Place("strategy", rules, hand.score, decision.line)
    try:
        return replace(place, hand=checked_hand(place, decision.held or decision.hand))
    except BAD:
        return place


# --------------------------------------------------------------------------------------------------- what it looks like


def view(say: Strings, found: Review) -> str:
    """All of a review."""
    return totals(say, found) + costly(say, found) + hands(say, found)


def player_name(say: Strings, name: str) -> str:
    """A player's name; those that the program gives are translated."""
    return say("web.table_you") if name == "you" else say("web.table_bot") if name == "bot" else name


def totals(say: Strings, found: Review) -> str:
    """Both players, for each unit."""
    text = html.tag("h2", escape(say("web.review_totals")))
    head = [
        say(f"web.review_{key}") for key in ("player", "decisions", "errors", "rate", "total", "luck", "skill", "rest")
    ]
    notes = ""
    for unit, both in found.totals.items():
        rows = []
        for each in both:
            sums = [html.exact(value, say.amount(unit, value, "+")) for value in (each.luck, each.skill, each.rest)]
            rows.append(
                [
                    html.tag("b", escape(player_name(say, each.name))), str(each.decisions),
                    escape(" / ".join(str(each.errors[mark]) for mark in ("?!", "?", "??"))),
                    html.exact(each.rate, say.amount(unit, each.rate)),
                    html.exact(each.cost, say.amount(unit, each.cost)), *sums,
                ]
            )  # fmt: skip
            if each.unknown:
                notes += html.tag(
                    "p",
                    escape(say("web.review_unknown", count=each.unknown, name=player_name(say, each.name))),
                    class_="quiet",
                )
        text += html.table(head, rows, kind="review-totals")
    quick = sum(hand.quick for hand in found.hands)
    if quick:
        notes += html.tag("p", escape(say("web.review_quick", count=quick)), class_="quiet")
    return html.tag(
        "div", text, html.tag("p", escape(say("web.review_explain")), class_="quiet"), notes, class_="sheet"
    )


def costly(say: Strings, found: Review) -> str:
    """The decisions that cost something, the worst first."""
    rules, names = found.history.rules, found.history.players
    rows = []
    for hand, decision in found.costly()[:MOST_ROWS]:
        at = hand.decisions.index(decision)
        rows.append(
            [
                html.tag("span", escape(decision.mark), class_="mark"),
                html.exact(decision.cost, say.amount(decision.unit, decision.cost)),
                escape(player_name(say, names[hand.player(decision)])),
                str(hand.number), "" if hand.score is None else format_score(hand.score),
                escape(decision.held), escape(" ".join(decision.line)),
                html.chip(rules, decision.action) + " " + escape(said(say, decision.action)),
                html.chip(rules, decision.best) + " " + escape(said(say, decision.best)),
                html.button(say("web.review_open"), "open", f"{hand.number}:{at}"),
            ]
        )  # fmt: skip
    title = html.tag("h2", escape(say("web.review_costly")))
    if not rows:
        return html.tag("div", title, html.tag("p", escape(say("web.review_none"))), class_="sheet")
    head = [
        "",
        *(say(f"web.review_{key}") for key in ("cost", "player", "hand", "score", "cards", "line", "played", "best")),
        "",
    ]
    return html.tag("div", title, html.table(head, rows, kind="costly"), class_="sheet")


def hands(say: Strings, found: Review) -> str:
    """Each hand: how its result splits up."""
    names, rows = found.history.players, []
    for hand in found.hands:
        share = hand.shares[0]
        cells = [
            "-" if value is None else html.exact(value, say.amount(hand.unit, value, "+"))
            for value in (share.luck, share.skill, share.rest)
        ]
        cards = " | ".join(hand.cards)
        rows.append(
            [
                str(hand.number),
                "" if hand.score is None else format_score(hand.score),
                escape(cards),
                escape(" ".join(hand.line)),
                escape(hand.result or "-"),
                *cells,
            ]
        )
    head = [say(f"web.review_{key}") for key in ("hand", "score", "cards", "line", "result", "luck", "skill", "rest")]
    title = html.tag("h2", escape(f"{say('web.review_hands')} ({player_name(say, names[0])})"))
    return html.tag("div", title, html.table(head, rows), class_="sheet")
