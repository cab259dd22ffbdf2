"""Spots to train with, drawn as often as they come up when both play the strategy.

A hand is dealt and played out by the strategy; its decisions of the wanted kind are the spots.  One that has n of them
is kept with probability n / MOST, and then one is picked evenly: so every spot of all hands is as likely as any other.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from games.rules import ACCEPT, NOBODY, RAISE, Rules
from games.state import State
from solver.equity import Score
from solver.strategy import Strategy

KINDS = ("answer", "raise", "lead")
MOST = 8  # spots of one kind in a hand; no hand of three cards has more
TRIES = 4000  # hands after which a kind is taken not to come up


@dataclass(frozen=True, slots=True)
class Drill:
    """A spot: what the player to act was dealt, and the public line so far."""

    kind: str
    score: Score | None
    hand: tuple[int, ...]
    line: tuple[str, ...]


def is_spot(kind: str, state: State) -> bool:
    """Whether a decision is of a kind: answers to a raise; turns with a raise to make or not; cards to lead without
    one, which are decisions only for him who holds different cards."""
    legal = state.legal_actions()
    if kind == "answer":
        return ACCEPT in legal
    if kind == "raise":
        return RAISE in legal
    cards = [action for action in legal if action in state.rules.ranks]
    return len(state.played) % 2 == 0 and len(cards) >= 2


def played_out(strategy: Strategy, rng: random.Random, score: Score | None = None) -> State:
    """A hand dealt and played by a strategy, over.  score: that it is for."""
    rules = strategy.tree.rules
    deck = [rank for rank in range(rules.n_ranks) for _ in range(rules.copies)]
    rng.shuffle(deck)
    size = rules.hand_size
    state = State.deal(rules, deck[:size], deck[size : 2 * size], score)
    while not state.is_over:
        state = state.apply(chosen(strategy, state, rng))
    return state


def chosen(strategy: Strategy, state: State, rng: random.Random) -> str:
    """An action drawn from a strategy; any legal one where it has never been."""
    decision = strategy.at(state.line)
    held = np.array(state.held[state.to_play], np.int8)
    (h,) = np.flatnonzero((decision.holdings == held).all(axis=1))
    weights = np.where(decision.legal[h], decision.probabilities[h], 0.0)
    if weights.sum() <= 0:
        weights = decision.legal[h].astype(float)
    return rng.choices(decision.actions, weights.tolist())[0]


def draw(
    strategy: Strategy, kind: str, score: Score | None, rng: random.Random, wanted: Callable[[], bool] = lambda: True
) -> Drill | None:
    """A spot of a kind; None if there seems to be none, or if `wanted` says no."""
    for _ in range(TRIES):
        if not wanted():
            return None
        end = played_out(strategy, rng, score)
        spots = spots_of(end, kind)
        if len(spots) > rng.random() * MOST:
            at = rng.choice(spots)
            return Drill(kind, score, end.dealt[at.to_play] or (), at.line)
    return None


def spots_of(end: State, kind: str) -> list[State]:
    """The decisions of a kind in a hand that is over, as it was known to the referee."""
    found = []
    state = State.deal(end.rules, end.dealt[0] or (), end.dealt[1] or (), end.score)
    for action in end.line:
        if is_spot(kind, state):
            found.append(state)
        state = state.apply(action)
    return found


def draw_score(strategy: Strategy, rules: Rules, rng: random.Random) -> Score:
    """A score as it comes up before a hand of a match, every hand of all matches as likely as any other.

    Hands are played as they are for points, whatever the score: only how often a score comes up depends on it.
    """
    most = 2 * rules.target * 2
    while True:
        leader, dealer = 0, 0
        visited: list[Score] = []
        while max(leader, dealer) < rules.target and len(visited) < most:
            visited.append((leader, dealer))
            end = played_out(strategy, rng)
            if end.winner == 0:
                leader += end.stake
            elif end.winner not in (None, NOBODY):
                dealer += end.stake
            leader, dealer = dealer, leader
        if len(visited) > rng.random() * most:
            return rng.choice(visited)
