"""Hands played by strategies against each other, and what each decision loses by a table of losses."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from games.state import Hand, State
from solver.cfr import Pair
from solver.losses import losses_at
from solver.strategy import Position, Strategy, child, root, rows_at


@dataclass
class SelfPlay:
    """seats[p] plays seat p; lost: losses against the strategies that decisions are judged by."""

    seats: tuple[Strategy, Strategy]
    lost: Pair
    rng: np.random.Generator
    cost: list[float] = field(default_factory=lambda: [0.0, 0.0])
    decisions: list[int] = field(default_factory=lambda: [0, 0])
    _seen: dict[Position, tuple[tuple[str, ...], dict[Hand, int], np.ndarray, np.ndarray]] = field(default_factory=dict)

    def _at(self, position: Position, seat: int) -> tuple[tuple[str, ...], dict[Hand, int], np.ndarray, np.ndarray]:
        if position not in self._seen:
            strategy = self.seats[seat]
            found = rows_at(strategy.tree, position, strategy.probabilities)
            index = {tuple(map(int, row)): h for h, row in enumerate(found.holdings)}
            table = losses_at(strategy.tree, self.lost, position)
            self._seen[position] = found.actions, index, found.probabilities.cumsum(axis=1), table
        return self._seen[position]

    def hand(self) -> State:
        """One hand; the referee says whose turn it is and when it is over."""
        tree = self.seats[0].tree
        rules = tree.rules
        deck = self.rng.permutation(np.repeat(np.arange(rules.n_ranks), rules.copies))[: 2 * rules.hand_size]
        state = State.deal(rules, deck[: rules.hand_size].tolist(), deck[rules.hand_size :].tolist())
        position: Position | None = root(tree)
        while not state.is_over:
            assert position is not None
            seat = state.to_play
            held = state.held[seat]
            assert held is not None
            names, index, cumulated, table = self._at(position, seat)
            h = index[held]
            a = int(np.searchsorted(cumulated[h], self.rng.random() * cumulated[h, -1], side="right"))
            if len(state.legal_actions()) > 1:
                self.decisions[seat] += 1
                self.cost[seat] += float(table[h, a])
            position, state = child(tree, position, names[a]), state.apply(names[a])
        return state
