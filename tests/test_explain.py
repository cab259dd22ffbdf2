"""Explanations: each kind from facts that are made up, from real hands, and the words of each sentence."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from solver.advise import Adviser
from solver.cfr import POINTS, PROBABILITY
from solver.explain import KINDS, Facts, kind, sentence
from solver.i18n import strings
from solver.paths import shipped_strategy
from solver.storage import load_strategy


def facts(
    probabilities: dict[str, float],
    ev: dict[str, float],
    win: dict[str, float],
    refusal: float | None = None,
    refused: float = 1.0,
    unit: str = POINTS,
    late: bool = False,
) -> Facts:
    """Facts by name."""
    return Facts(probabilities, ev, win, refusal, refused, unit, late)


EVEN = {"accept": 0.5, "refuse": 0.5}
MADE_UP = {
    "as before the card": (
        facts({"accept": 0.25, "refuse": 0.75}, {"accept": -1.5, "refuse": -1.0}, {"accept": 0.3}, late=True),
        "Answered as the same raise before the card (accept 25 % and refuse 75 %): so raising late gains nothing.",
    ),
    "forced": (facts({"3": 1.0}, {"3": 0.2}, {"3": 0.6}), "Only 3 is possible."),
    "mix": (
        facts(EVEN, {"accept": -1.0, "refuse": -1.02}, {"accept": 0.25}),
        "An indifferent choice between accept and refuse, both within 0.02 points of each other: mixing is the point.",
    ),
    # accepted it is worth (0.9 - 0.5 * 1) / 0.5 = 0.8, which is more than 0.5
    "value raise": (
        facts({"raise": 1.0, "5": 0.0}, {"raise": 0.9, "5": 0.5}, {"raise": 0.8, "5": 0.8}, 0.5),
        "A value raise: it gains even if it is accepted, and the hand wins 80 % of the time.",
    ),
    # accepted it is worth (0.4 - 0.7 * 1) / 0.3 = -1
    "bluff": (
        facts({"raise": 0.97, "5": 0.03}, {"raise": 0.4, "5": 0.1}, {"raise": 0.2, "5": 0.2}, 0.7),
        "A bluff: it lives on the 70 % of the time that the opponent refuses.",
    ),
    "remainder": (
        facts({"remainder": 1.0, "5": 0.0}, {"remainder": 0.9, "5": 0.5}, {"remainder": 0.8, "5": 0.7}),
        "The remainder, a raise for the match: it is best by 0.40 points, and the hand wins 80 % of the time.",
    ),
    "value call": (
        facts({"accept": 1.0, "refuse": 0.0}, {"accept": 0.5, "refuse": -1.0}, {"accept": 0.5}),
        "A call for value: the hand wins 50 % of the time, more often than not.",
    ),
    "bluff catcher": (
        facts({"accept": 1.0, "refuse": 0.0}, {"accept": -0.7, "refuse": -1.0}, {"accept": 0.3}),
        "A bluff catcher: it wins only 30 % of the time, but refusing would cost 0.30 points more.",
    ),
    "refusal": (
        facts({"accept": 0.0, "refuse": 1.0}, {"accept": -1.5, "refuse": -1.0}, {"accept": 0.1}),
        "A refusal: accepting wins too seldom (10 %) and would cost 0.50 points more.",
    ),
    "pass": (
        facts({"raise": 0.0, "pass": 1.0}, {"raise": 0.1, "pass": 0.5}, {"raise": 0.9, "pass": 0.9}, 0.3),
        "No raise after the card: nothing is gained by it, for it could have come before.",
    ),
    "no new cards": (
        facts({"agree": 0.0, "decline": 1.0}, {"decline": 0.5}, {"decline": 0.9}),
        "No new cards: the other side can have the game without them, so they can gain nothing.",
    ),
    "plays for the top stake": (
        facts({"play": 1.0, "decline": 0.0}, {"play": 0.5, "decline": -1.0}, {"play": 0.6}),
        "Playing is better than giving a point by 1.50 points: the hand wins 60 % of the time.",
    ),
    "gives a point": (
        facts({"play": 0.0, "decline": 1.0}, {"play": -2.0, "decline": -1.0}, {"play": 0.2}),
        "A point to the other side is the lesser evil: playing would cost 1.00 points more.",
    ),
    "trap": (
        facts({"raise": 0.0, "5": 1.0}, {"raise": 0.9, "5": 1.5}, {"raise": 0.9, "5": 0.9}, 0.8),
        "A trap: the hand wins 90 % of the time and is worth more if the opponent does the raising.",
    ),
    "card": (
        facts({"raise": 0.0, "5": 1.0, "2": 0.0}, {"raise": -1.0, "5": -0.1, "2": -0.105}, {"5": 0.4, "2": 0.4}, 0.1),
        "A card without a raise: 5 is best by 0.005 points.",
    ),
}


def test_every_kind_is_here() -> None:
    assert list(KINDS) == list(MADE_UP)


@pytest.mark.parametrize("name", MADE_UP)
def test_made_up(name: str) -> None:
    given, expected = MADE_UP[name]
    assert kind(given) == name
    assert sentence(given) == expected


def test_in_french() -> None:
    french = strings("fr")
    for given, _ in MADE_UP.values():
        assert sentence(given, french)
    call, _ = MADE_UP["value call"]
    assert sentence(call, french).startswith("Tenu pour la valeur : la main gagne")
    card, _ = MADE_UP["card"]
    assert sentence(card, french) == "Une carte sans truquer : 5 est le meilleur choix, de 0,005 points."


def test_the_raise_of_a_mix_is_named() -> None:
    shares = {"raise": 0.3, "5": 0.7}
    weak = facts(shares, {"raise": 0.1, "5": 0.1}, {"raise": 0.2, "5": 0.2}, 0.7)
    assert sentence(weak).endswith(
        "between 5 and raise, both within 0 points of each other: mixing is the point; the raise is a bluff."
    )
    strong = facts({**shares, "6": 0.1}, {"raise": 1.5, "5": 1.0, "6": 1.2}, {"raise": 0.9, "5": 0.9, "6": 0.9}, 0.5)
    assert "5 and raise and 6, all within 0.50 points" in sentence(strong)
    assert sentence(strong).endswith("the raise is a value raise.")


@pytest.mark.parametrize(("win", "name"), [(0.5, "value raise"), (0.49, "bluff")])
def test_a_raise_that_is_always_refused(win: float, name: str) -> None:
    given = facts({"raise": 1.0, "5": 0.0}, {"raise": 1.0, "5": 0.0}, {"raise": win, "5": win}, 1.0)
    assert given.called is None
    assert kind(given) == name


@pytest.mark.parametrize(("share", "name"), [(0.05, "mix"), (0.049, "refusal")])
def test_where_a_mix_begins(share: float, name: str) -> None:
    given = facts({"accept": share, "refuse": 1 - share}, {"accept": -1.0, "refuse": -1.0}, {"accept": 0.2})
    assert kind(given) == name


@pytest.mark.parametrize(("win", "refusal", "name"), [(0.7, 0.2, "trap"), (0.69, 0.2, "card"), (0.9, None, "card")])
def test_a_trap_needs_a_strong_hand_and_a_raise_to_forgo(win: float, refusal: float | None, name: str) -> None:
    actions = ("5", "6") if refusal is None else ("raise", "5")
    given = facts({actions[0]: 0.0, actions[1]: 1.0}, dict.fromkeys(actions, 0.3), dict.fromkeys(actions, win), refusal)
    assert kind(given) == name


def test_probabilities_of_matches() -> None:
    call = facts({"accept": 1.0, "refuse": 0.0}, {"accept": 0.47, "refuse": 0.4321}, {"accept": 0.3}, unit=PROBABILITY)
    assert sentence(call).endswith("refusing would cost 3.8 % of the match more.")
    mix = facts(EVEN, {"accept": 0.5, "refuse": 0.49988}, {"accept": 0.3}, unit=PROBABILITY)
    assert "both within 0.012 % of the match of each other" in sentence(mix)


@cache
def on_le_truc() -> Adviser:
    """An adviser of the strategy that comes with the program."""
    strategy, _ = load_strategy(shipped_strategy("le-truc") or "")
    return Adviser(strategy)


@cache
def found_on_le_truc() -> dict[str, tuple[str, str]]:
    """For each kind the first hand and line of le-truc that has it, in a fixed random order."""
    adviser, rng = on_le_truc(), np.random.default_rng(1)
    found: dict[str, tuple[str, str]] = {}
    ranks = adviser.rules.ranks
    for line in ("", "raise", "5", "raise accept", "6 raise", "7", "5 6", "8 7", "6 6 raise"):
        answer = adviser.at(tuple(line.split()))
        for h in rng.permutation(len(answer.holdings))[:60]:
            if answer.legal[h].any():
                cards = [*answer.holdings[h].tolist(), *answer.played[answer.player]]
                hand = " ".join(ranks[rank] for rank in cards)
                found.setdefault(adviser.advise(hand, line).kind, (hand, line))
    return found


def test_keeping_is_no_new_cards_too() -> None:
    assert kind(facts({"propose": 0.0, "keep": 1.0}, {"propose": 0.5, "keep": 0.5}, {"keep": 0.9})) == "no new cards"


OTHER_RULES = {"as before the card", "remainder", "pass", "no new cards", "plays for the top stake", "gives a point"}


@pytest.mark.parametrize("name", [name for name in KINDS if name not in OTHER_RULES])
def test_real_hands(name: str) -> None:
    assert name in found_on_le_truc()
    advice = on_le_truc().advise(*found_on_le_truc()[name])
    assert advice.kind == name
    played = {choice.action: choice for choice in advice.choices if choice.probability >= 0.05}
    if name == "mix":
        assert len(played) > 1
        assert max(choice.loss for choice in played.values()) <= 1e-3 * advice.stake
    else:
        (top,) = played
        raising = next((choice.ev for choice in advice.choices if choice.action == "raise"), None)
        card = max((choice.ev for choice in advice.choices if choice.action != "raise"), default=0.0)
        conditions = {
            "forced": len(advice.choices) == 1,
            "value raise": top == "raise" and raising is not None and raising >= card,
            "bluff": top == "raise" and advice.refusal is not None and advice.refusal > 0,
            "value call": top == "accept" and advice.win >= 0.5,
            "bluff catcher": top == "accept" and advice.win < 0.5,
            "refusal": top == "refuse",
            "trap": top not in ("raise", "accept", "refuse") and raising is not None and advice.win >= 0.7,
            "card": top not in ("raise", "accept", "refuse"),
        }
        assert conditions[name]
    assert advice.explanation.endswith(".")
