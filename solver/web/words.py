"""How the explorer speaks of seats, actions and amounts."""

from __future__ import annotations

from html import escape

from games.rules import NOBODY, Rules
from games.state import State
from solver.cfr import PROBABILITY
from solver.i18n import Strings
from solver.web import html


def seat_name(say: Strings, seat: int) -> str:
    """A seat, alone."""
    return say("web.leader") if seat == 0 else say("web.dealer")


def the_seat(say: Strings, seat: int) -> str:
    """A seat, in a sentence."""
    return say("web.the_leader") if seat == 0 else say("web.the_dealer")


def trick_text(say: Strings, result: int) -> str:
    """Who took a trick: 1 the leader, -1 the dealer."""
    return {1: say("web.took_leader"), -1: say("web.took_dealer"), 0: say("web.took_nobody")}[result]


def ending(say: Strings, state: State) -> str:
    """How a hand is over."""
    if state.winner == NOBODY:
        return say("web.over_nobody")
    return say("web.over", seat=the_seat(say, int(state.winner or 0)), stake=state.stake)


def amount(unit: str, value: float, sign: str = "") -> str:
    """An EV or a loss: points, or percent of the match (as `truc advise` shows it)."""
    return f"{100 * value:{sign}.2f} %" if unit == PROBABILITY else f"{value:{sign}.3f}"


def said(say: Strings, action: str) -> str:
    """An action, to be spoken of."""
    return say.action(action) if say.has(f"action.{action}") else say("action.card", card=action)


def this_action(say: Strings, action: str) -> str:
    """An action that somebody is about to do, at the beginning of a sentence."""
    if action == "raise":
        text = say("action.this_raise")
    elif say.has(f"action.{action}"):
        text = say("action.this_action", action=say.action(action))
    else:
        text = say("action.this_card", card=action)
    return text[:1].upper() + text[1:]


def face(say: Strings, rules: Rules, action: str) -> str:
    """What an action looks like on a tile or a button: a card, or its letter and its word."""
    if action in rules.ranks:
        return html.card(action)
    return html.chip(rules, action) + html.tag("b", escape(say.action(action)))


def action_button(
    say: Strings, rules: Rules, action: str, do: str, *, off: bool = False, kind: str = "next", title: str | None = None
) -> str:
    """A button to take an action, which its letter presses too."""
    key = html.letter(action).lower()
    return html.tag(
        "button", face(say, rules, action), type="button", class_=kind, data_do=do, data_arg=action,
        data_key=key if len(key) == 1 else None, disabled="" if off else None, title=title,
        aria_label=said(say, action),
    )  # fmt: skip
