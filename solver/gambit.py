"""Small decks as extensive-form games of Gambit: text in its `.efg` format, which OpenSpiel's `efg_game` reads as well.

Format: Savani & Turocy, Gambit, "The extensive game (.efg) file format".  A node a line, depth first: `c` chance, `p` a
player, `t` an end.  Written from the referee, so it shares nothing with the tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import TextIO

from games.cards import deal_weights, hands
from games.rules import Rules
from games.state import State
from solver.cfr import Payoffs

MAX_NODES = 300_000
SEATS = ("leader", "dealer")


class EfgError(ValueError):
    """A deck that is too large for this format; the message is one sentence."""


def write_efg(rules: Rules, payoffs: Payoffs, file: TextIO, max_nodes: int = MAX_NODES) -> int:
    """Write a deck, a line for each node, and return their number.  Raises EfgError before anything is written.

    Two chance nodes deal the leader's hand, then the dealer's, with exact probabilities.  Information sets are numbered
    for each player and called as in `games.openspiel`: `leader [3 8] raise accept A`.
    """
    if sum(1 for _ in islice(_nodes(rules, payoffs), max_nodes + 1)) > max_nodes:
        raise EfgError(f"the game of {rules.name!r} has more than {max_nodes:,} nodes, too many for a Gambit file")
    file.write(f"EFG 2 R {_quoted(f'Le Truc: {rules.name}, {payoffs.unit}')} {_list(map(_quoted, SEATS))}\n")
    number = 0
    for line in _nodes(rules, payoffs):
        file.write(line + "\n")
        number += 1
    return number


def _nodes(rules: Rules, payoffs: Payoffs) -> Iterator[str]:
    """Every node's line, depth first."""
    every = [tuple(map(int, hand)) for hand in hands(rules.n_ranks, rules.hand_size, rules.copies)]
    weights = [list(map(int, row)) for row in deal_weights(rules)]
    sets: tuple[dict[str, int], dict[str, int]] = ({}, {})
    yield _chance(rules, 1, "the leader's hand", every, [sum(row) for row in weights])
    for first, (leader, row) in enumerate(zip(every, weights, strict=True)):
        yield _chance(rules, first + 2, f"the dealer's hand against {_cards(rules, leader)}", every, row)
        for dealer, weight in zip(every, row, strict=True):
            if weight:
                yield from _below(State.deal(rules, leader, dealer), payoffs, sets)


def _below(state: State, payoffs: Payoffs, sets: tuple[dict[str, int], dict[str, int]]) -> Iterator[str]:
    if state.is_over:
        yield _end(state, payoffs)
        return
    seat, actions = state.to_play, state.legal_actions()
    held = state.held[seat]
    assert held is not None
    label = " ".join([f"{SEATS[seat]} {_cards(state.rules, held)}", *state.line])
    number = sets[seat].setdefault(label, len(sets[seat]) + 1)
    yield f'p "" {seat + 1} {number} {_quoted(label)} {_list(map(_quoted, actions))} 0'
    for action in actions:
        yield from _below(state.apply(action), payoffs, sets)


def _end(state: State, payoffs: Payoffs) -> str:
    """An end; its outcome has a number for each winner and stake."""
    assert state.winner is not None
    value = (payoffs.win0[state.level], payoffs.win1[state.level], payoffs.tie)[state.winner]  # nobody is -1
    number = 3 * state.level + state.winner + 2
    label = f"{(*SEATS, 'nobody')[state.winner]} scores {state.stake}"
    return f't "" {number} {_quoted(label)} {_list([_number(value), _number(-value)], ", ")}'


def _chance(rules: Rules, number: int, label: str, every: list[tuple[int, ...]], weights: list[int]) -> str:
    total = sum(weights)
    dealt = [
        f"{_quoted(_cards(rules, hand))} {Fraction(weight, total)}"
        for hand, weight in zip(every, weights, strict=True)
        if weight
    ]
    return f'c "" {number} {_quoted(label)} {_list(dealt)} 0'


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
