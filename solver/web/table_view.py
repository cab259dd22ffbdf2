"""What the tab Table looks like: functions from `solver.game.View` to HTML."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from games.rules import NOBODY, Rules
from solver.bot import LEVELS
from solver.cfr import PROBABILITY
from solver.game import BOT, PERSON, Event, View
from solver.grading import Decision
from solver.i18n import Strings
from solver.web import html
from solver.web.library import table_of
from solver.web.words import action_button, said, this_action

THRESHOLDS = {PROBABILITY: (0.002, 0.005, 0.01, 0.025), "points per hand": (0.05, 0.1, 0.25, 0.5)}
MOST_SEED = 2**32 - 1


@dataclass(slots=True)
class Settings:
    """What a match is played with.  match: or hands in points; seed: None for one by lot; warn: from which loss the
    tutor speaks, None for never."""

    level: str = "perfect"
    match: bool = True
    seed: int | None = None
    practice: bool = True
    warn: float | None = None


class BadSeedError(ValueError):
    """What is no seed."""


def settings_of(form: Any) -> Settings:
    """What a form says.  Raises BadSeedError; ValueError, KeyError, TypeError, AttributeError for what is none."""
    seed, level = form["seed"].strip()[:40], form["level"]
    if level not in LEVELS:
        raise ValueError("no level")
    if seed and not (seed.isascii() and seed.isdecimal() and int(seed) <= MOST_SEED):
        raise BadSeedError(seed)
    match = form.get("mode") != "points"
    unit = PROBABILITY if match else "points per hand"
    warn = form.get("tutor", "")
    threshold = THRESHOLDS[unit][int(warn)] if warn in ("0", "1", "2", "3") else None
    return Settings(level, match, int(seed) if seed else None, "practice" in form, threshold)


def form(say: Strings, rules: Rules, known: Iterable[str], settings: Settings) -> str:
    """What to play."""
    has_match = table_of(rules) is not None
    modes = [("match", say("web.in_match"))] * has_match + [("points", say("web.table_points"))]
    match = settings.match and has_match
    unit = PROBABILITY if match else "points per hand"
    tutor = [("", say("web.table_off"))]
    tutor += [
        (str(n), say("web.table_warn_points", value=say.amount(unit, value)))
        for n, value in enumerate(THRESHOLDS[unit])
    ]
    warn = str(THRESHOLDS[unit].index(settings.warn)) if settings.warn in THRESHOLDS[unit] else ""
    box = html.tag(
        "input", type="checkbox", name="practice", value="1", checked="" if settings.practice else None
    ).removesuffix("</input>")
    fields = (
        html.choice(say("web.variant"), "variant", [(name, name) for name in known], rules.name, name="variant")
        + html.choice(say("web.worth"), "", modes, "match" if match else "points", name="mode")
        + html.choice(
            say("web.table_opponent"),
            "",
            [(name, say(f"level.{name}")) for name in reversed(LEVELS)],
            settings.level,
            name="level",
        )
        + html.choice(say("web.table_tutor"), "", tutor, warn, name="tutor")
        + html.field(
            say("web.table_seed"),
            "seed",
            "" if settings.seed is None else str(settings.seed),
            inputmode="numeric",
            maxlength=10,
        )
        + html.tag("label", box, escape(say("web.table_practice")), class_="field check")
    )
    submit = html.tag("button", escape(say("web.table_new")), type="submit", class_="button main")
    return html.tag("h2", escape(say("web.table_new"))) + html.tag(
        "form", fields, submit, data_do="start", class_="row"
    )


def nothing(say: Strings) -> str:
    """The table before a match: one click begins with what is chosen by default."""
    backs = html.tag("span", *(html.card("?", "big down") for _ in range(3)), class_="cards", aria_hidden="true")
    usual = json.dumps({"seed": "", "level": "perfect", "mode": "match", "practice": "1"})
    text = html.tag("p", escape(say("web.table_nothing_yet")))
    return html.tag(
        "div", backs, text, html.button(say("web.table_deal"), "start", usual, kind="main"), class_="felt empty"
    )


def felt(say: Strings, rules: Rules, seen: View, thinking: bool) -> str:
    """The table: the bot's side, the tricks, the own side."""
    names = say("web.table_you"), say("web.table_bot")
    played = [rank for player, rank in seen.table if player == BOT]
    if seen.outcome is not None and seen.outcome.hands[BOT]:
        theirs = html.cards(rules, seen.outcome.hands[BOT][-1])
    else:
        left = (len(seen.hand) if seen.hand is not None else 0) - len(played)
        theirs = html.tag(
            "span", *(html.card("?", "down") for _ in range(left)), class_="cards", role="img", aria_label=f"{left}"
        )
    status = (
        html.tag("span", escape(say("web.table_thinks")), class_="quiet") if thinking and seen.to_play == BOT else ""
    )
    points = seen.points
    scores = [
        html.tag("span", str(points[p]), class_="score", aria_label=f"{names[p]}: {points[p]}") if points else ""
        for p in (PERSON, BOT)
    ]
    bot = html.tag("div", html.tag("h2", escape(names[BOT])), theirs, status, scores[BOT], class_="seat")
    mine = ""
    if seen.hand is not None:
        held = list(seen.held or ())
        for rank in seen.hand:
            label = rules.ranks[rank]
            if rank in held:
                held.remove(rank)
                if label in seen.legal and not thinking:
                    mine += html.tag(
                        "button", escape(label), type="button", class_="card big play", data_do="play", data_arg=label,
                        data_key=label.lower() if len(label) == 1 else None, aria_label=say("action.card", card=label),
                    )  # fmt: skip
                else:
                    mine += html.card(label, "big")
            else:
                mine += html.card(label, "big gone")
    you = html.tag(
        "div",
        html.tag("h2", escape(names[PERSON])),
        html.tag("span", mine, class_="cards", role="group", aria_label=say("web.table_your_cards")),
        scores[PERSON],
        class_="seat",
    )
    stake = say("web.table_stake", stake=seen.stake)
    if seen.offer is not None:
        stake = say("web.table_offer", stake=seen.stake, offer=seen.offer)
    head = (
        say("web.table_hand", number=seen.number)
        + " · "
        + say("web.table_you_lead" if seen.leader == PERSON else "web.table_bot_leads")
    )
    middle = html.tag(
        "div", tricks(say, rules, seen, names), html.tag("span", escape(stake), class_="stake"), class_="tricks"
    )
    kind = "felt thinking" if thinking else "felt"
    return html.tag("div", html.tag("p", escape(head), class_="quiet"), bot, middle, you, class_=kind)


def tricks(say: Strings, rules: Rules, seen: View, names: tuple[str, str]) -> str:
    """The cards on the table, two and two."""
    found = ""
    takers = [event.trick for event in seen.events if event.trick is not None]
    for n in range(0, len(seen.table), 2):
        pair = "".join(
            html.tag("span", html.card(rules.ranks[rank]), html.tag("div", escape(names[player]), class_="who"))
            for player, rank in seen.table[n : n + 2]
        )
        took = ""
        if n // 2 < len(takers):
            who = takers[n // 2]
            key = "tied" if who == NOBODY else "you" if who == PERSON else "other"
            took = html.tag("figcaption", escape(say(f"event.trick_{key}", name=names[BOT])))
        found += html.tag("figure", html.tag("div", pair, class_="pair"), took, class_="trick", style="margin:0")
    return found


def actions(
    say: Strings, rules: Rules, seen: View, practice: bool, match_over: bool, seed: int, busy: str
) -> str:  # fmt: skip
    """What the person can do, or how the hand ended."""
    if seen.outcome is not None:
        return ended(say, rules, seen, match_over, seed, practice)
    off = bool(busy) or seen.to_play != PERSON
    words = "".join(
        action_button(say, rules, action, "play", off=off) for action in seen.legal if action not in rules.ranks
    )
    words += html.button(say("web.table_hint"), "hint", off=off, data_key="h")
    if practice:
        words += html.button(say("web.table_undo"), "undo", off=off, data_key="u")
    note = ""
    if seen.quick and seen.exploitability is not None:
        note = html.tag(
            "p",
            escape(say("web.table_quick", accuracy=f"{seen.exploitability:.2g}")),
            class_="quiet quick",
            role="status",
        )
    return html.tag("div", words, class_="actions") + note


def ended(say: Strings, rules: Rules, seen: View, match_over: bool, seed: int, practice: bool) -> str:
    """How the hand ended, both hands, and what comes next."""
    outcome = seen.outcome
    assert outcome is not None
    key = "nobody" if outcome.winner == NOBODY else "won" if outcome.winner == PERSON else "lost"
    text = say(f"web.table_{key}", points=outcome.points)
    if outcome.match_winner is not None:
        text += " " + say("web.table_match_won" if outcome.match_winner == PERSON else "web.table_match_lost")
    hands = "".join(
        html.tag(
            "p",
            escape(say(name)) + ": " + " / ".join(html.cards(rules, hand, "small") for hand in outcome.hands[player]),
        )
        for player, name in ((PERSON, "web.table_your_cards"), (BOT, "web.table_bot_cards"))
    )
    buttons = "" if match_over else html.button(say("web.table_next"), "next", kind="main", data_key="n")
    buttons += html.button(say("web.table_review"), "to_review", kind="main" if match_over else "")
    if practice:
        buttons += html.button(say("web.table_undo"), "undo", data_key="u")
    more = html.tag("p", escape(say("web.table_seed_was", seed=seed)), class_="quiet") if match_over else ""
    return html.tag(
        "div",
        html.tag("p", html.tag("b", escape(text)), role="status"),
        hands,
        more,
        html.tag("div", buttons, class_="actions"),
        class_="sheet ended",
    )


def log(say: Strings, happened: Sequence[Event]) -> str:
    """What has happened, in words."""
    if not happened:
        return ""
    name = say("web.table_bot")
    items = []
    for event in happened:
        who = "you" if event.player == PERSON else "other"
        word = event.action if say.has(f"event.{event.action}_{who}") else "card"
        text = say(f"event.{word}_{who}", name=name, stake=event.stake, card=event.action)
        if event.trick is not None:
            trick = "tied" if event.trick == NOBODY else "you" if event.trick == PERSON else "other"
            text += " " + say(f"event.trick_{trick}", name=name)
        items.append(html.tag("li", escape(text[:1].upper() + text[1:])))
    return html.tag("h2", escape(say("web.table_events"))) + html.tag("ol", *items, class_="log", aria_live="polite")


def warning(say: Strings, decision: Decision) -> str:
    """What the tutor says of an action that the person is about to take."""
    text = say(
        "web.table_warning", action=this_action(say, decision.action), cost=say.amount(decision.unit, decision.cost),
        best=said(say, decision.best)[:1].upper() + said(say, decision.best)[1:],
    )  # fmt: skip
    buttons = html.button(say("web.table_anyway"), "anyway")
    buttons += html.button(say("web.table_rethink"), "rethink", kind="main")
    words = html.tag("p", escape(text), class_="message")
    return html.tag(
        "div", words, html.tag("div", buttons, class_="actions"), role="alertdialog", aria_label=say("web.table_tutor")
    )
