"""What a public tree is made of (see `solver.tree`): nodes, programs and blocks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from games.rules import RAISE, Rules
from solver.kernels import NO_CARDS

Ints = npt.NDArray[np.int64]
NOBODY = 2  # "winner" of a hand that nobody wins; sides are 0 and 1
MAX_ROWS = 2**27  # 8 GiB of float32 regrets, averages the same again
BLOCK = np.dtype(
    [
        ("held", np.int64, 2),
        ("reach", np.int64, 2),
        ("base", np.int64, 2),
        ("ops", np.int64, 3),
        ("left_at", np.int64),
        ("out", np.int64),
        ("lanes", np.int64),
    ]
)


class TreeTooLargeError(ValueError):
    """The rules are valid, but their tree would not fit into memory."""


class UnsupportedRulesError(ValueError):
    """The rules are valid, but this solver has no tree for them."""


class AfterRaise(NamedTuple):
    """The levels to which a raise leads: accepted, the hand goes on at that; refused, it ends at that."""

    accepted: int
    refused: int


def after_raise(rules: Rules, level: int, word: str) -> AfterRaise:
    """Where a raise, or a remainder, leads from a level of the stakes; beyond the ladder lies the match."""
    if word == RAISE:
        return AfterRaise(level + 1, level)
    match = len(rules.ladder)
    return AfterRaise(match, match if rules.remainder_refused == "match" else level)


class Spot(NamedTuple):
    """What the public knows of a hand, cards of the first two turns excepted; seat 0 leads trick 1."""

    results: tuple[int, ...] = ()  # of the tricks so far: 1 seat 0 won, -1 seat 1 won, 0 spoiled
    held: tuple[int, int] = (0, 0)  # cards in hand
    player: int = 0  # whose turn it is
    led: int = -1  # rank led to this trick, -1 if none yet, -2 if each lane has its own
    level: int = 0  # index of the stake on the ladder; beyond it the match, then what declining to play costs
    raiser: int = -1  # who raised last
    by: int = -1  # who has just played a card and may raise now
    decider: int = -1  # who is to decide whether the hand is played


@dataclass(slots=True)
class Node:
    """A node of a program; `words` are the public actions, and `cards` tells what playing a card leads to."""

    kind: int
    spot: Spot
    player: int
    parent: int
    edge: int  # which action of the parent leads here: a public one, then one per rank
    card: int = -1  # the rank whose play led here, if one in this program did
    words: tuple[str, ...] = ()
    cards: int = NO_CARDS
    winner: int = -1
    ties: int = 0  # in the last trick, the outcome of a tie: 0 the answerer wins, 1 the leader, 2 nobody
    row: int = 0
    row_other: int = 0
    children: dict[int, int] = field(default_factory=dict)  # edge -> node

    @property
    def classes(self) -> int:
        """How many outcomes the last trick has: see `solver.kernels`."""
        return 3 if self.ties == 2 else 2

    @property
    def raise_legal(self) -> bool:
        """Whether the player may raise."""
        return RAISE in self.words


@dataclass(slots=True)
class Block:
    """Up to LANES histories with one program."""

    program: int
    histories: list[tuple[int, ...]]  # the cards played before it, in order
    origin: tuple[int, int] | None  # the parent block and its SPLIT node


@dataclass(slots=True)
class Program:
    """Nodes `start` to `stop` of the tree, in depth-first order; `rows` regrets of each player."""

    start: int
    stop: int
    rows: tuple[int, int]
    states: tuple[list[int], list[int]]  # each player's information states in order of their rows: how many actions
    ops: list[int]
    shared: bool  # one scratch area for all its blocks, used again by every sibling


@dataclass(slots=True)
class Growing:
    """A program while it is built."""

    rows: list[int] = field(default_factory=lambda: [0, 0])
    states: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))
    ops: list[int] = field(default_factory=list)

    def add(self, player: int, states: list[int]) -> None:
        """More information states of a player, by their numbers of actions."""
        self.states[player].extend(states)
        self.rows[player] += sum(states)


class Plan(NamedTuple):
    """What the kernels need, by updating player (first axis): see `solver.kernels.sweep`."""

    nodes: np.ndarray
    blocks: np.ndarray
    sources: Ints
    targets: Ints
    top_rows: int
    scratch_rows: int
