"""What the players of `games.openspiel`, which documents the layout, know at a moment: as strings and as tensors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from games.openspiel_actions import PLAYERS

if TYPE_CHECKING:
    from games.openspiel import TrucGame, TrucState


class TrucObserver:
    """What a player, or the public, knows, as `tensor`, as `dict` of its named pieces, or as a string.

    `tensor` has the dtype float32; the pieces of `dict` are views of it.
    """

    def __init__(self, game: TrucGame, kind: Any) -> None:
        """An observer for the kind of observation, a `pyspiel.IIGObservationType`."""
        if kind.private_info.name not in ("NONE", "SINGLE_PLAYER"):
            raise ValueError("python_truc has no observations of both players' hands.")
        self._game, rules, actions = game, game.rules, game.actions
        self._private = kind.private_info.name == "SINGLE_PLAYER"
        self._line = kind.public_info and kind.perfect_recall
        self._table = kind.public_info and not kind.perfect_recall
        n, k = len(rules.ranks), min(rules.copies, rules.hand_size)
        shapes: dict[str, tuple[int, ...]] = {}
        if self._private:
            shapes |= {"player": (2,), "hand": (n, k)}
            shapes |= {"aside": (n, k)} if rules.redeal else {}
        if self._line:
            shapes |= {"line": (game.max_line, len(actions.words))}
        if self._table:
            shapes |= {"actor": (2,), "phase": (len(actions.phases),), "stake": (len(game.stakes),), "raiser": (2,)}
            shapes |= {"led": (n,), "played": (2, n, k), "tricks": (rules.hand_size, 3)}
            shapes |= {"asked": (len(actions.asked),)} if actions.asked else {}
            shapes |= {"opening": (len(actions.opening),)} if actions.opening else {}
        ends = list(itertools.accumulate(map(math.prod, shapes.values()), initial=0))
        self.tensor = np.zeros(ends[-1], np.float32)
        parts = np.split(self.tensor, ends[1:-1])
        self.dict = {key: part.reshape(shape) for (key, shape), part in zip(shapes.items(), parts, strict=False)}

    def set_from(self, state: TrucState, player: int) -> None:
        """Make `tensor` and `dict` what `player` knows in `state`."""
        self.tensor.fill(0)
        for piece, index in self._ones(state, player):
            self.dict[piece][index] = 1

    def _ones(self, state: TrucState, player: int) -> Iterator[tuple[str, int | tuple[int, ...]]]:
        """Where the tensor is 1: a piece's name and an index into it."""
        actions = self._game.actions
        if self._private:
            yield "player", player
            yield from (("hand", cell) for cell in cells(state.hand(player)))
            yield from (("aside", cell) for cell in cells(state.set_aside(player)))
        if self._line:
            yield from (("line", cell) for cell in enumerate(state.line))
        if self._table:
            actor = state.current_player()
            yield from [("actor", actor), ("phase", actions.phases.index(state.phase))] if actor >= 0 else []
            yield "stake", state.level
            yield from [("raiser", state.raiser)] if state.raiser >= 0 else []
            yield from [("led", state.led)] if state.led >= 0 else []
            table = enumerate(halves(state.played))
            yield from (("played", (seat, *cell)) for seat, cards in table for cell in cells(cards))
            yield from (("tricks", cell) for cell in enumerate(state.tricks))
            yield from (("asked", actions.asked.index(word)) for word in state.asking())
            yield from (("opening", actions.opening.index(action)) for action in state.opening())

    def string_from(self, state: TrucState, player: int) -> str:
        """The same as text."""
        game, words = self._game, []
        if self._private:
            words.append(f"{PLAYERS[player]} {game.hand_words(state.hand(player))}")
            words += [f"aside {game.hand_words(aside)}"] if (aside := state.set_aside(player)) else []
        if self._line:
            words += map(game.action_word, state.line)
        if self._table:
            actor = state.current_player()
            words.append(f"{PLAYERS[actor]} {state.phase}" if actor >= 0 else state.phase)
            words += state.asking()
            words.append(f"stake {game.stakes[state.level]}")
            words += [f"raised by {PLAYERS[state.raiser]}"] if state.raiser >= 0 else []
            words += [f"led {game.rules.ranks[state.led]}"] if state.led >= 0 else []
            words += ["played", *map(game.hand_words, halves(state.played))]
            words.append("tricks [" + " ".join((*PLAYERS, "nobody")[trick] for trick in state.tricks) + "]")
            if opening := state.opening():
                words.append("opening [" + " ".join(map(game.action_word, opening)) + "]")
        return " ".join(words)


def cells(hand: bytes) -> list[tuple[int, int]]:
    """For each card its rank, and how many of that rank come before it."""
    return [(rank, i) for rank, count in enumerate(hand) for i in range(count)]


def halves(cards: bytes) -> tuple[bytes, bytes]:
    """Cards of both players, one after the other, by player."""
    return cards[: len(cards) // 2], cards[len(cards) // 2 :]
