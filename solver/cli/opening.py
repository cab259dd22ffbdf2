"""The leader's openings as a table."""

from __future__ import annotations

from collections.abc import Iterator

from games.rules import RAISE
from solver.opening import Opening
from solver.words import percent

NEVER = 0.005  # shown as never done: what is left of it after thousands of iterations means nothing
MAX_ACROSS, MIN_DOWN, GAP = 3, 8, 3  # hands side by side, hands below each other, what is between them


def table(found: list[Opening], page: int) -> tuple[list[str], list[list[list[str]]], list[int]]:
    """Columns, sections and numeric columns for `print_table`.

    A section for each highest rank (the last of the order), the hands in it from the highest down; as many hands side
    by side as fit into `page` columns.  A column that would be blank for every hand is left out.
    """
    names = ["hand", "raise", "leads", "after raise"]
    cells = {each.cards: _cells(each) for each in found}
    used = [i for i in range(len(names)) if any(row[i] for row in cells.values())]
    names = [names[i] for i in used]
    rows = {cards: [row[i] for i in used] for cards, row in cells.items()}
    width = sum(max(len(name), *(len(row[i]) for row in rows.values())) + 2 for i, name in enumerate(names))
    across = max(1, min((page + GAP) // (width + GAP), MAX_ACROSS, len(found) // MIN_DOWN))
    sections = []
    for top in sorted({cards[-1] for cards in rows}, reverse=True):
        group = [rows[cards] for cards in sorted(rows, key=lambda cards: cards[::-1], reverse=True) if cards[-1] == top]
        sections.append(list(_side_by_side(group, across)))
    every = [*names, *(["", *names] * (across - 1))]
    return every, sections, [i for i, name in enumerate(every) if name == "raise"]


def _side_by_side(group: list[list[str]], across: int) -> Iterator[list[str]]:
    """The rows of a group in `across` columns, to be read down the first, then down the second."""
    down = -(-len(group) // across)
    for i in range(down):
        line: list[str] = []
        for row in group[i::down]:
            line += ["|", *row] if line else row
        yield line


def _cells(each: Opening) -> list[str]:
    """A hand, whether it raises, and what it leads; what it never comes to is blank."""
    plain = {card: share for card, share in each.probabilities.items() if card != RAISE}
    leads = _cards(plain) if each.raises <= 1 - NEVER else ""
    if each.after_raise is None:
        return [each.hand, "", leads, ""]
    chance = "no" if each.raises < NEVER else "always" if each.raises > 1 - NEVER else percent(each.raises)
    return [each.hand, chance, leads, _cards(each.after_raise) if each.raises >= NEVER else ""]


def _cards(weights: dict[str, float]) -> str:
    """The cards that are led, by their shares: a single one, or several with their percentages."""
    total = sum(weights.values())
    led = sorted(((weight / total, card) for card, weight in weights.items()), key=lambda pair: -pair[0])
    led = [(share, card) for share, card in led if share >= NEVER]
    if len(led) == 1:
        return led[0][1]
    return " ".join(f"{card}:{min(max(round(100 * share), 1), 99)}" for share, card in led)
