"""Small decks as extensive-form games of Gambit: text in its `.efg` format, which OpenSpiel's `efg_game` reads as well.

Format: Savani & Turocy, Gambit, "The extensive game (.efg) file format".  A node a line, depth first: `c` chance, `p` a
player, `t` an end.  Written from the referee, so it shares nothing with the tree, and has all actions that rules can
have, those before the deal and the new cards of a redeal included.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from math import comb, prod
from typing import TextIO

from games.cards import hands
from games.rules import DECLINE, Rules
from games.state import Hand, State
from solver.cfr import Payoffs

MAX_NODES = 300_000
SEATS = ("leader", "dealer")


class EfgError(ValueError):
    """A deck that is too large for this format; the message is one sentence."""


def write_efg(
    rules: Rules, payoffs: Payoffs, file: TextIO, max_nodes: int = MAX_NODES, score: tuple[int, int] | None = None
) -> int:
    """Write a deck, a line for each node, and return their number.  Raises EfgError before anything is written.

    Two chance nodes deal the leader's hand, then the dealer's, with exact probabilities.  Information sets are numbered
    for each player and called as in `games.openspiel`: `leader [3 8] raise accept A`.  payoffs: by level as for a tree,
    the stakes, then the match if there is a remainder, then what declining to play brings; score: where the match
    stands, if that matters to what is legal.
    """
    if sum(1 for _ in islice(_Writer(payoffs).nodes(rules, score), max_nodes + 1)) > max_nodes:
        raise EfgError(f"the game of {rules.name!r} has more than {max_nodes:,} nodes, too many for a Gambit file")
    file.write(f"EFG 2 R {_quoted(f'Le Truc: {rules.name}, {payoffs.unit}')} {_list(map(_quoted, SEATS))}\n")
    number = 0
    for line in _Writer(payoffs).nodes(rules, score):
        file.write(line + "\n")
        number += 1
    return number


@dataclass
class _Writer:
    """One walk of a game; numbers are given as nodes come up."""

    payoffs: Payoffs
    sets: tuple[dict[str, int], dict[str, int]] = field(default_factory=lambda: ({}, {}))
    chances: int = 0

    def nodes(self, rules: Rules, score: tuple[int, int] | None) -> Iterator[str]:
        """Every node's line, depth first."""
        yield from self._below(State.begin(rules, score))

    def _below(self, state: State) -> Iterator[str]:
        if state.is_over:
            yield self._end(state)
        elif state.phase == "deal":
            yield from self._deal(state)
        else:
            seat, actions = state.to_play, state.legal_actions()
            label = " ".join([SEATS[seat], *_seen(state, seat), *state.line])
            number = self.sets[seat].setdefault(label, len(self.sets[seat]) + 1)
            yield f'p "" {seat + 1} {number} {_quoted(label)} {_list(map(_quoted, actions))} 0'
            for action in actions:
                yield from self._below(state.apply(action))

    def _deal(self, state: State) -> Iterator[str]:
        rules, size = state.rules, state.hand_size
        left = [rules.copies] * rules.n_ranks
        for hand in state.set_aside:
            left = _without(left, hand or ())
        leaders = _ways(rules, left, size)
        yield self._chance(rules, "the leader's hand", leaders)
        for leader in leaders:
            dealers = _ways(rules, _without(left, leader), size)
            yield self._chance(rules, f"the dealer's hand against {_cards(rules, leader)}", dealers)
            for dealer in dealers:
                yield from self._below(state.give(leader, dealer))

    def _chance(self, rules: Rules, label: str, ways: dict[Hand, int]) -> str:
        """Every deal is an information set of its own."""
        self.chances += 1
        total = sum(ways.values())
        dealt = [f"{_quoted(_cards(rules, hand))} {Fraction(number, total)}" for hand, number in ways.items()]
        return f'c "" {self.chances} {_quoted(label)} {_list(dealt)} 0'

    def _end(self, state: State) -> str:
        """An end; its outcome has a number for each winner and level."""
        assert state.winner is not None
        payoffs, side = self.payoffs, (*SEATS, "nobody")[state.winner]  # nobody is -1
        level = len(payoffs.win0) - 1 if state.line[-1] == DECLINE else state.level
        value = (payoffs.win0[level], payoffs.win1[level], payoffs.tie)[state.winner]
        number = 3 * level + state.winner + 2
        label = f"{side} wins the match" if state.is_for_match else f"{side} scores {state.stake}"
        return f't "" {number} {_quoted(label)} {_list([_number(value), _number(-value)], ", ")}'


def _seen(state: State, seat: int) -> list[str]:
    """What a player sees besides the line: his cards, and those that he has set aside."""
    aside = state.set_aside[seat]
    seen = [_cards(state.rules, state.held[seat] or ())]
    return [*seen, "aside", _cards(state.rules, aside)] if aside else seen


def _without(left: list[int], hand: Hand) -> list[int]:
    return [copies - hand.count(rank) for rank, copies in enumerate(left)]


def _ways(rules: Rules, left: list[int], size: int) -> dict[Hand, int]:
    """The hands that the cards left can make, and in how many ways."""
    every = (tuple(map(int, hand)) for hand in hands(rules.n_ranks, size, rules.copies))
    ways = {hand: prod(comb(copies, hand.count(rank)) for rank, copies in enumerate(left)) for hand in every}
    return {hand: number for hand, number in ways.items() if number}


def _cards(rules: Rules, hand: tuple[int, ...]) -> str:
    return f"[{' '.join(rules.ranks[rank] for rank in hand)}]"


def _number(value: float) -> str:
    """Without an exponent, and never -0."""
    return format(Decimal(repr(value + 0.0)), "f")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _list(parts: Iterator[str] | list[str], separator: str = " ") -> str:
    return f"{{ {separator.join(parts)} }}"
