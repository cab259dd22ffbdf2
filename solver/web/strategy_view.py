"""What the tab Strategy looks like: functions from data to HTML."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from games.notation import format_hand
from games.rules import AGREE
from games.state import State
from solver.advise import Advice
from solver.cfr import PROBABILITY
from solver.i18n import Strings
from solver.web import drawing, html
from solver.web.grid import Cell, Grid
from solver.web.library import table_of
from solver.web.place import Place, checked_hand, first_line
from solver.web.words import action_button, amount, face, seat_name, the_seat, trick_text

MOST_IN_RANGE = 12
NONE = "-"  # in place of a number that nobody knows


def controls(say: Strings, place: Place, known: Iterable[str]) -> str:
    """Variant, points or score."""
    rules, score = place.rules, place.score
    parts = [html.choice(say("web.variant"), "variant", [(name, name) for name in known], rules.name)]
    modes = [("points", say("web.in_points")), ("match", say("web.in_match"))]
    if table_of(rules) is None:
        modes = modes[:1]
    parts.append(html.choice(say("web.worth"), "mode", modes, "points" if score is None else "match"))
    if score is not None:
        numbers = [(str(n), str(n)) for n in range(rules.target)]
        parts.append(html.choice(say("web.leader_has"), "leader", numbers, str(score[0])))
        parts.append(html.choice(say("web.dealer_has"), "dealer", numbers, str(score[1])))
    return "".join(parts)


def tiles(say: Strings, place: Place, forward: bool) -> str:
    """The line as a row of tiles, and the actions that go on."""
    rules, first = place.rules, len(first_line(place))
    state = State.begin(rules, place.score).follow(place.line[:first])
    parts = [
        html.button(
            "←", "back", off=len(place.line) <= first, kind="step", aria_label=say("web.back"), data_key="Backspace"
        ),
        html.button("→", "forward", off=not forward, kind="step", aria_label=say("web.forward")),
    ]
    for n, action in enumerate(place.line[first:], start=first):
        seat = state.to_play
        after = state.follow((action,))
        tricks = after.results[len(state.results) :]
        took = html.tag("small", escape(trick_text(say, tricks[0])), class_="took") if tricks else ""
        parts.append(
            html.tag(
                "button", html.tag("small", escape(seat_name(say, seat))),
                html.tag("span", face(say, rules, action), class_="face"), took,
                type="button", class_=f"tile seat{seat}", data_do="goto", data_arg=n,
                aria_label=say("web.tile", seat=seat_name(say, seat), action=say.action(action)),
            )
        )  # fmt: skip
        state = after
    stake = say("web.stake", stake=state.stake)
    if state.offer is not None:
        stake = say("web.offer", stake=state.stake, offer=state.offer)
    actions = ""
    for action in state.legal_actions():
        ends = state.follow((action,)).is_over
        kind, title = ("next ends", say("web.ends")) if ends else ("next", None)
        actions += action_button(say, rules, action, "act", kind=kind, title=title)
    to_act = html.tag("small", escape(say("web.to_act", seat=seat_name(say, state.to_play), stake=stake)))
    parts.append(
        html.tag("div", to_act, html.tag("span", actions, class_="face"), class_=f"tile now seat{state.to_play}")
    )
    return "".join(parts)


def detail(say: Strings, place: Place, advice: Advice) -> str:
    """One hand: what to do, what each action is worth, why."""
    rules = place.rules
    held = checked_hand(place, advice.held) if advice.held else ()
    rows = []
    for each in sorted(advice.choices, key=lambda each: -each.probability):
        name = html.chip(rules, each.action) + " " + escape(say.action(each.action))
        share = html.tag(
            "span",
            class_="bar",
            style=f"width:{100 * each.probability:.1f}%;background:{html.colour(rules, each.action)}",
        )
        rows.append(
            [
                name,
                html.tag("span", share, html.exact(each.probability, html.percent(each.probability)), class_="share"),
                NONE
                if each.ev is None
                else html.exact(each.ev, amount(advice.unit, each.ev, "+" if advice.unit != PROBABILITY else "")),
                NONE if each.loss is None else html.exact(each.loss, amount(advice.unit, each.loss)),
                "" if each.win is None else html.exact(each.win, html.percent(each.win, 0)),
            ]
        )
    head = [say("web.action"), say("web.how_often"), say("web.ev"), say("web.loss"), say("web.wins")]
    facts = [html.tag("p", escape(explained(say, advice)), class_="why")]
    if advice.refusal is not None:
        facts.append(
            html.tag("p", escape(say("web.refused")), " ", html.exact(advice.refusal, html.percent(advice.refusal, 0)))
        )
    case = say(say.key("case", advice.case))
    accuracy = html.exact(advice.accuracy, f"{advice.accuracy:.2g}")
    unit = say("web.unit_match") if advice.unit == PROBABILITY else say("web.unit_points")
    facts.append(
        html.tag(
            "p", escape(case), ". ", escape(say("web.accuracy")), " ", accuracy, f" ({escape(unit)})", class_="quiet"
        )
    )
    title = html.tag("h2", html.cards(rules, held) if held else escape(say("web.no_card")))
    return html.tag("div", title, html.table(head, rows), *facts, class_="advice", data_hand=advice.held)


def explained(say: Strings, advice: Advice) -> str:
    """Why, in the reader's language."""
    return advice.explained(say)


def pick(say: Strings, place: Place) -> str:
    """A form to name a hand."""
    held = "" if place.hand is None else format_hand(place.rules, place.hand)
    box = html.field(say("web.pick"), "hand", held, maxlength=60, placeholder=" ".join(place.rules.ranks[-1:] * 2))
    submit = html.tag("button", escape(say("web.show")), type="submit", class_="button")
    return html.tag("form", box, submit, data_do="hand", class_="row")


def discards_form(say: Strings, place: Place) -> str:
    """A form to say what was set aside, where that is needed."""
    if AGREE not in place.line:
        return ""
    box = html.field(say("web.discards"), "discards", format_hand(place.rules, place.discards), maxlength=60)
    submit = html.tag("button", escape(say("web.show")), type="submit", class_="button")
    return html.tag("form", box, submit, data_do="discards", class_="row")


def totals(say: Strings, found: Grid) -> str:
    """All hands together."""
    rows = found.totals()
    if not rows:
        return html.tag("p", escape(say("web.never_here")), class_="quiet")
    bar = "".join(
        html.tag(
            "span", escape(html.letter(action)) if share > 0.05 else "", class_="part",
            style=f"width:{100 * share:.2f}%;{html.paint(found.rules, action)}",
        )
        for action, share, _ in rows
    )  # fmt: skip
    cells = [
        [
            html.chip(found.rules, action) + " " + escape(say.action(action)),
            html.exact(share, html.percent(share)),
            str(hands),
        ]
        for action, share, hands in rows
    ]
    title = html.tag("h2", escape(say("web.all_hands")))
    note = "" if found.refined else html.tag("p", escape(say("web.refining")), class_="quiet")
    return (
        title
        + html.tag("div", bar, class_="stack", aria_hidden="true")
        + html.table([say("web.action"), say("web.how_often"), say("web.hands_count")], cells)
        + note
    )


def range_view(say: Strings, place: Place, cells: list[Cell], name: str | None, player: int) -> str:
    """What the opponent can hold."""
    other = the_seat(say, 1 - player)
    text = say("web.range", seat=other) if name is None else say("web.range_against", seat=other, hand=name)
    held = sorted((c for c in cells if c.possible and c.share > 0), key=lambda c: -c.share)[:MOST_IN_RANGE]
    small = drawing.triangles(place.rules, cells, (), None, say, size=13, do="")
    rows = [
        [
            html.cards(place.rules, c.holding, "small") if c.holding else NONE,
            html.exact(c.share, html.percent(c.share, 2)),
        ]
        for c in held
    ]
    return (
        html.tag("h2", escape(text))
        + html.tag("div", small, class_="wide minis")
        + html.table([say("web.holds"), say("web.how_often")], rows, kind="columns2")
    )
