"""All hands at one decision, as they are drawn: shares of actions, reach, what the opponent holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from games.notation import format_hand
from games.rules import Rules
from games.state import State
from solver.advise import PLAYED, Adviser, Answer
from solver.answers import LEFT
from solver.lines import translate
from solver.subgame import anything, situation

Array = npt.NDArray[np.float64]
UNREACHED = LEFT  # a hand that is played to here less often is hatched


@dataclass(slots=True)
class Cell:
    """One holding.  holding: rank indices, ascending; possible: whether the cards played allow it; share: of the
    range; reach: how often it comes here, against the hand that does so most, 0 to 1; shares: of the actions."""

    holding: tuple[int, ...]
    name: str
    possible: bool
    share: float
    reach: float
    shares: list[float]
    case: str = ""


@dataclass(slots=True)
class Grid:
    """A decision.  cells: the player's holdings; opponent: the other player's, `shares` empty; reached: shape (V,),
    their reach; refined: whether the cells have been gone through by `refine`."""

    rules: Rules
    answer: Answer
    cells: list[Cell]
    opponent: list[Cell]
    reached: Array
    refined: bool = False
    against: dict[str, list[Cell]] = field(default_factory=dict)

    @property
    def actions(self) -> tuple[str, ...]:
        """Those that some possible holding has."""
        legal: list[bool] = np.asarray(self.answer.legal.any(axis=0)).tolist()
        return tuple(action for action, there in zip(self.answer.actions, legal, strict=True) if there)

    def totals(self) -> list[tuple[str, float, int]]:
        """Each action: how often all hands together play it, and how many hands do (see `truc table`)."""
        possible = [cell for cell in self.cells if cell.possible]
        weight = sum(cell.share for cell in possible)
        if weight <= 0:
            return []
        names = self.answer.actions
        return [
            (
                action,
                sum(cell.share * cell.shares[names.index(action)] for cell in possible) / weight,
                sum(cell.shares[names.index(action)] >= PLAYED for cell in possible),
            )
            for action in self.actions
        ]

    def cell(self, holding: Sequence[int]) -> Cell | None:
        """The cell of a holding, None if there is none."""
        return next((cell for cell in self.cells if cell.holding == tuple(holding)), None)

    def facing(self, holding: Sequence[int]) -> list[Cell]:
        """What the opponent can hold against one of the holdings."""
        h = self.answer.index(tuple(holding))
        name = self.cells[h].name
        if name not in self.against:
            seen = (*holding, *self.answer.played[0], *self.answer.played[1])
            self.against[name] = _opponent(self.rules, self.answer, self.answer.opponent[h], self.reached, seen)
        return self.against[name]


def grid(adviser: Adviser, line: tuple[str, ...], discards: tuple[int, ...] = ()) -> Grid:
    """The grid of a decision, the strategy's rows as they are.  Raises as `Adviser.at`."""
    answer, rules = adviser.at(line, discards), adviser.rules
    state = State.begin(rules, adviser.score).follow(line)
    seen = [rank for _, rank in state.played] + list(discards)
    me = answer.player
    reaches = reach(adviser, line, discards, (len(answer.holdings), len(answer.opponent_holdings)), me)
    possible: list[bool] = np.asarray(answer.legal.any(axis=1)).tolist()
    cells = [
        Cell(
            tuple(holding), format_hand(rules, holding), possible[h], float(answer.share[h]),
            float(reaches[0][h]), answer.probabilities[h].tolist(), answer.cases[h],
        )
        for h, holding in enumerate(answer.holdings.tolist())
    ]  # fmt: skip
    opponent = _opponent(rules, answer, answer.share @ answer.opponent, reaches[1], seen)
    return Grid(rules, answer, cells, opponent, reaches[1])


def refine(
    ask: Callable[[Callable[[Adviser], Array]], Array], found: Grid, discards: tuple[int, ...] = (),
    wanted: Callable[[], bool] = lambda: True,
) -> bool:  # fmt: skip
    """Give every cell the shares that `Adviser.advise` says; whether any changed visibly.

    The two differ only for hands that are rare where they are, but those may take a while: so the adviser is asked
    for one hand at a time.  wanted: whether to go on.
    """
    line = found.answer.line
    changed = False
    for h, cell in enumerate(found.cells):
        if not cell.possible:
            continue
        if not wanted():
            return changed
        shares = ask(lambda adviser, h=h: adviser.row(line, h, discards)[1]).tolist()  # type: ignore[misc]
        changed |= any(abs(a - b) > 5e-4 for a, b in zip(shares, cell.shares, strict=True))
        cell.shares = shares
    found.refined = True
    return changed


def reach(
    adviser: Adviser, line: tuple[str, ...], discards: tuple[int, ...], sizes: tuple[int, int], me: int
) -> tuple[Array, Array]:
    """Shapes (H,) and (V,): how often each holding of the player to act, and of his opponent, plays its part of the
    line, against the one that does so most.

    1 for a side that has left the path, for it may hold anything; and for hands of another size than the strategy's.
    """
    tree = adviser.strategy.tree
    at = situation(tree, adviser.strategy.probabilities, translate(adviser.rules, line, adviser.score).line, discards)
    found = []
    for player, size in zip((me, 1 - me), sizes, strict=True):
        free = anything(tree, at, player)
        rate = np.divide(at.reach[player], free, out=np.zeros_like(free), where=free > 0)
        most = rate.max(initial=0.0)
        known = len(rate) == size and at.presence[player] >= LEFT and most > 0
        found.append(rate / most if known else np.ones(size))
    return found[0], found[1]


def _opponent(rules: Rules, answer: Answer, shares: Array, reached: Array, seen: Sequence[int]) -> list[Cell]:
    free = [rules.copies - list(seen).count(rank) for rank in range(rules.n_ranks)]
    return [
        Cell(
            tuple(holding), format_hand(rules, holding),
            all(holding.count(rank) <= free[rank] for rank in holding), float(shares[v]), float(reached[v]), [],
        )
        for v, holding in enumerate(answer.opponent_holdings.tolist())
    ]  # fmt: skip
