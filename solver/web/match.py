"""The tab Match: what every score is worth, and how it is opened."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from html import escape

from nicegui import ui

from games.notation import NotationError, format_score, parse_score
from games.rules import Rules
from solver.equity import Score, Worth
from solver.i18n import Strings
from solver.paths import shipped_openings
from solver.web import drawing, html
from solver.web.library import table_of
from solver.web.place import Place, first_line
from solver.web.shell import Session, Tab

RATES = ("leader_raises", "leader_accepted", "dealer_raises", "dealer_accepted")
SEATS = ("leader", "dealer")

Rates = Mapping[str, Mapping[Score, float]]


@dataclass(frozen=True, slots=True)
class Chart:
    """One heat map: values by score, bounds where they are proved."""

    values: dict[Score, float | None]
    bounds: dict[Score, tuple[float, float]]
    scale: tuple[float, float]


class MatchTab(Tab):
    """See the module."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.controls = ui.html("", sanitize=False).classes("controls")
        self.hint = ui.html("", sanitize=False)
        self.box = ui.html("", sanitize=False)
        self.seat, self.rate = SEATS[0], RATES[2]
        self.known: dict[Score, Worth] = {}
        self.rates: Rates = {}

    async def show(self) -> None:
        """Draw the maps that are chosen."""
        say, rules, turn = self.say, self.place.rules, self.turn
        self.controls.set_content(controls(say, rules, self.session.explorer.library.known, self.seat, self.rate))
        known, rates = await self.aside(
            lambda: (table_of(rules), rates_of(rules)), lambda: self.box.set_content(self.waiting(say("web.loading")))
        )
        if self.turn != turn:
            return
        self.known, self.rates = known or {}, rates
        if not self.known:
            self.hint.set_content("")
            self.box.set_content(html.message(say("web.match_none", variant=rules.name), "fine"))
            return
        await self.on_hover("")
        drawn = [view(say, rules, chart(self.seat, self.known, self.rates), self.seat, self.place.score)]
        if self.rates:
            drawn.append(view(say, rules, chart(self.rate, self.known, self.rates), self.rate, self.place.score))
        else:
            drawn.append(html.message(say("web.map_no_rates"), "fine"))
        self.box.set_content(html.tag("div", *drawn, class_="maps"))

    async def on_hover(self, arg: str) -> None:
        """Say what a score's squares say, with bounds where they are proved."""
        text = self.say("web.map_hint")
        if arg and self.known:
            try:
                score = parse_score(self.place.rules, arg)
            except NotationError:
                return
            names = [self.seat, self.rate] if self.rates else [self.seat]
            text = " ".join(told(self.say, chart(name, self.known, self.rates), name, score) for name in names)
        self.hint.set_content(html.tag("p", escape(text), role="status", class_="told"))

    async def on_seat(self, arg: str) -> None:
        """Whose chance to win."""
        if arg in SEATS:
            self.seat = arg
            await self.session.show()

    async def on_rate(self, arg: str) -> None:
        """How often what is done."""
        if arg in RATES:
            self.rate = arg
            await self.session.show()

    async def on_variant(self, arg: str) -> None:
        """Another rule set."""
        rules = self.session.explorer.library.known.get(arg)
        if rules is not None:
            await self.session.go(Place("match", rules))

    async def on_score(self, arg: str) -> None:
        """Open a score's first decision."""
        try:
            score = parse_score(self.place.rules, arg)
        except NotationError as error:
            self.session.complain(str(error))
            return
        place = Place("strategy", self.place.rules, score)
        await self.session.go(replace(place, line=first_line(place)))


def chart(name: str, known: Mapping[Score, Worth], rates: Rates) -> Chart:
    """The map of a name of SEATS or RATES."""
    if name in RATES:
        found = rates.get(name, {})
        values = {score: found.get(score) for score in sorted(known)}
        return Chart(values, {}, (0.0, max(found.values(), default=1.0) or 1.0))
    if name == "leader":
        bounds = {score: (worth.lower, worth.upper) for score, worth in known.items()}
        return Chart({score: known[score].value for score in sorted(known)}, bounds, (0.0, 1.0))
    bounds = {score: (1 - worth.upper, 1 - worth.lower) for score, worth in known.items()}
    return Chart({score: 1 - known[score].value for score in sorted(known)}, bounds, (0.0, 1.0))


def told(say: Strings, found: Chart, name: str, score: Score) -> str:
    """A square in words."""
    what, value = say(f"web.map_{name}"), found.values.get(score)
    if value is None:
        return ""
    text = format_score(score)
    if score not in found.bounds:
        return say("web.map_value", score=text, what=what, value=html.percent(value, 2))
    lower, upper = (html.percent(bound, 3) for bound in found.bounds[score])
    return say("web.map_bounds", score=text, what=what, value=html.percent(value, 3), lower=lower, upper=upper)


def controls(say: Strings, rules: Rules, known: Mapping[str, Rules], seat: str, rate: str) -> str:
    """The rule set, and which maps."""
    parts = html.choice(say("web.variant"), "variant", [(name, name) for name in known], rules.name)
    parts += html.choice(say("web.map_equity"), "seat", [(name, say(f"web.map_{name}")) for name in SEATS], seat)
    return parts + html.choice(say("web.map_rate"), "rate", [(name, say(f"web.map_{name}")) for name in RATES], rate)


def view(say: Strings, rules: Rules, found: Chart, name: str, chosen: Score | None) -> str:
    """A map."""
    what = say(f"web.map_{name}")

    def describe(score: Score, value: float) -> str:
        leader, dealer = score
        return say("web.map_describe", leader=leader, dealer=dealer, what=what, value=html.percent(value))

    labels = (what, say("web.map_rows"), say("web.map_columns"))
    drawn = drawing.heat_map(rules.target, found.values, found.scale, labels, chosen, describe)
    title = html.tag("h2", escape(say("web.map_percent", what=what)))
    return html.tag("div", title, drawn, class_="map-box sheet")


# --------------------------------------------------------------------------------------------------------------- rates


@lru_cache(maxsize=8)
def rates_of(rules: Rules) -> Rates:
    """How often who raises first and is accepted, by score: as it comes with the program, {} if nothing does.

    Never raised is no rate of acceptance.
    """
    file = shipped_openings(rules.name)
    if file is None or not _same(rules):
        return {}
    found: dict[str, dict[Score, float]] = {name: {} for name in RATES}
    try:
        with file.open(encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream):
                score = int(row["leader"]), int(row["dealer"])
                for name in RATES:
                    if row[name]:
                        found[name][score] = float(row[name])
    except (OSError, ValueError, KeyError):
        return {}
    return found


def _same(rules: Rules) -> bool:
    """Whether the rules are those of their name that come with the program."""
    from games.rules import preset, preset_names

    return rules.name in preset_names() and preset(rules.name).hash == rules.hash
