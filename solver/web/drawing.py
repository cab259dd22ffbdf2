"""Drawings as SVG text: triangles of hands, strips of them, a heat map of scores, a curve.

Colours of actions are written into the drawings; everything else takes its colour from the page's style sheet, by
class, so that it follows light and dark.  Cells are buttons: `data-do` says what a click does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape

from games.rules import Rules
from solver.web.grid import UNREACHED, Cell
from solver.web.html import colour, ink, letter, percent

CELL, GAP = 38, 3  # of triangles, pixels
BAND = 12  # of a cell, for the name of its hand
LEAST_LETTER, NAMED = 9, 24  # width of a segment that has a letter, of a cell that has its name
STRIP_WIDTH, STRIP_HEIGHT = 10, 46
SEEN = 0.02  # of a cell's height: what is reached at all is seen


def triangles(
    rules: Rules, cells: Sequence[Cell], actions: Sequence[str], chosen: str | None, say: Callable[..., str],
    size: int = CELL, do: str = "hand",
) -> str:  # fmt: skip
    """Holdings as a triangle for each top rank, the strongest rank first; one row where one card is held.

    cells with `shares` are bars of the actions, the others one colour.  do: what a click says, with the holding.
    """
    held = len(cells[0].holding) if cells else 0
    if do:  # the fewer cells, the larger
        size = max(size, {0: 90, 1: 90, 2: 64}.get(held, min(300 // rules.n_ranks, 60)))
    if held <= 1:
        columns = sorted(cells, key=lambda cell: cell.holding, reverse=True)
        placed = {cell.name: (x, 0) for x, cell in enumerate(columns)}
        return _drawing(rules, columns, placed, actions, chosen, say, size, do, "")
    if held == 2:
        # Rows by the stronger card, columns by the weaker one.
        placed = {cell.name: (cell.holding[0], rules.n_ranks - 1 - cell.holding[1]) for cell in cells}
        return _drawing(rules, cells, placed, actions, chosen, say, size, do, "")
    drawings = []
    for top in reversed(range(rules.n_ranks)):
        under = [cell for cell in cells if cell.holding[-1] == top]
        if under:
            placed = {cell.name: (cell.holding[0], top - cell.holding[1]) for cell in under}
            drawings.append(_drawing(rules, under, placed, actions, chosen, say, size, do, rules.ranks[top]))
    return "".join(drawings)


def _drawing(
    rules: Rules, cells: Sequence[Cell], placed: Mapping[str, tuple[int, int]], actions: Sequence[str],
    chosen: str | None, say: Callable[..., str], size: int, do: str, top: str,
) -> str:  # fmt: skip
    step = size + GAP
    width = (1 + max(x for x, _ in placed.values())) * step
    height = (1 + max(y for _, y in placed.values())) * step
    body = "".join(
        _cell(rules, cell, actions, placed[cell.name], (size, size), step, chosen, say, do) for cell in cells
    )
    label = say("web.hands_with", rank=top) if top else say("web.hands")
    title = f'<figcaption aria-hidden="true"><span class="card small">{escape(top)}</span></figcaption>' if top else ""
    return (
        f'<figure class="triangle">{title}<svg class="grid" role="group" aria-label="{escape(label)}" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}">{body}</svg></figure>'
    )


def strips(
    rules: Rules, cells: Sequence[Cell], actions: Sequence[str], chosen: str | None, say: Callable[..., str],
    do: str = "hand",
) -> str:  # fmt: skip
    """The same for narrow screens: one row for each top rank, its holdings side by side."""
    held = len(cells[0].holding) if cells else 0
    rows: list[tuple[str, list[Cell]]] = []
    if held <= 1:
        rows = [("", sorted(cells, key=lambda cell: cell.holding, reverse=True))]
    else:
        for top in reversed(range(rules.n_ranks)):
            inside = sorted((c for c in cells if c.holding[-1] == top), key=lambda c: c.holding[::-1], reverse=True)
            if inside:
                rows.append((rules.ranks[top], inside))
    most = max((len(under) for _, under in rows), default=1)
    unit = max(STRIP_WIDTH, min(STRIP_HEIGHT, 360 // most))
    drawn = []
    for name, under in rows:
        placed = {cell.name: (n, 0) for n, cell in enumerate(under)}
        width = len(under) * unit
        body = "".join(
            _cell(rules, cell, actions, placed[cell.name], (unit - 1, STRIP_HEIGHT), unit, chosen, say, do)
            for cell in under
        )
        label = say("web.hands_with", rank=name) if name else say("web.hands")
        drawn.append(
            f'<div class="strip"><span class="card small" aria-hidden="true">{escape(name)}</span><svg class="grid" '
            f'role="group" aria-label="{escape(label)}" style="width:{100 * len(under) / most:.4g}%" '
            f'viewBox="0 0 {width} {STRIP_HEIGHT}" preserveAspectRatio="none" height="{STRIP_HEIGHT}">{body}</svg>'
            "</div>"
        )
    return "".join(drawn)


def _cell(
    rules: Rules, cell: Cell, actions: Sequence[str], at: tuple[int, int], size: tuple[int, int], step: int,
    chosen: str | None, say: Callable[..., str], do: str,
) -> str:  # fmt: skip
    """One holding: its name, under it the mix from left to right, as high as it is reached."""
    width, whole = size
    x, y = at[0] * step + 1, at[1] * (whole + GAP) + 1
    band = BAND if width >= NAMED else 0
    low, height = y + whole, whole - band
    reached = cell.possible and cell.share > 0 and cell.reach >= UNREACHED
    parts = [f'<rect class="back" x="{x}" y="{y}" width="{width}" height="{whole}" rx="2"/>']
    bar = height * max(cell.reach, SEEN) if reached else (height if cell.shares and cell.possible else 0)
    words = []
    if cell.shares:
        left = float(x)
        fade = "" if reached else ' opacity="0.3"'
        for share, action in sorted(
            ((share, action) for share, action in zip(cell.shares, actions, strict=True) if share > 5e-4), reverse=True
        ):
            part, back = width * share, colour(rules, action)
            words.append(f"{say_action(say, action)} {percent(share, 0)}")
            parts.append(
                f'<rect x="{left:.1f}" y="{low - bar:.1f}" width="{part:.1f}" height="{bar:.1f}" fill="{back}"{fade}/>'
            )
            if part >= LEAST_LETTER:
                inside = reached and bar >= 13
                paint = f'style="fill:{ink(back)}"' if inside else ""
                up = low - bar / 2 + 4 if inside else low - (bar if reached else bar / 2 - 7) - 3
                parts.append(
                    f'<text class="letter" x="{left + part / 2:.1f}" y="{up:.1f}" {paint}>'
                    f"{escape(letter(action))}</text>"
                )
            left += part
    elif reached:
        parts.append(f'<rect class="reach" x="{x}" y="{low - bar:.1f}" width="{width}" height="{bar:.1f}"/>')
        words.append(percent(cell.share, 2))
    if not reached:
        parts.append(
            f'<path class="{"hatch" if cell.possible else "gone"}" d="{_hatch(x, low - height, width, height)}"/>'
        )
    if band:
        kind = "name long" if len(cell.name) > 6 else "name"
        text = escape(cell.name.replace(" ", "\u2009"))
        parts.append(f'<text class="{kind}" x="{x + width / 2:.1f}" y="{y + 9.5}">{text}</text>')
    picked = cell.name == chosen
    if picked:
        parts.append(f'<rect class="chosen" x="{x}" y="{y}" width="{width}" height="{whole}" rx="2"/>')
    label = f"{cell.name or '-'}: {', '.join(words)}" if cell.possible else f"{cell.name}: {say('web.impossible')}"
    if cell.possible and not reached:
        label += f", {say('web.unreached')}"
    name = escape(cell.name)
    act = f' data-do="{do}" data-arg="{name}" data-hover="{name}"' if cell.possible and do else ""
    return (
        f'<g role="{"button" if act else "img"}" class="cell" data-x="{at[0]}" data-y="{at[1]}"{act} '
        f'tabindex="{0 if picked else -1}" aria-pressed="{str(picked).lower()}" aria-label="{escape(label)}">'
        f'{"".join(parts)}</g>'
    )  # fmt: skip


def _hatch(x: float, y: float, width: float, height: float) -> str:
    """A path of slanted lines over a rectangle."""
    return "".join(
        f"M{x + max(d - height, 0):.1f} {y + min(d, height):.1f}L{x + min(d, width):.1f} {y + max(d - width, 0):.1f}"
        for d in range(6, int(width + height), 8)
    )


def say_action(say: Callable[..., str], action: str) -> str:
    """An action in the reader's language."""
    spoken = getattr(say, "action", None)
    return str(spoken(action)) if spoken is not None else action


# ----------------------------------------------------------------------------------------------------------- heat map

# Blue to white to orange: both ends dark, distinguishable by all eyes; each text is black or white as can be read.
COLD, MIDDLE, WARM = (0, 84, 147), (247, 244, 236), (196, 92, 0)
SQUARE = 46


def blend(value: float) -> str:
    """A colour for 0 to 1, the middle nearly white."""
    end, far = (COLD, 1 - 2 * value) if value < 0.5 else (WARM, 2 * value - 1)
    far = min(max(far, 0.0), 1.0) ** 0.8
    red, green, blue = (round(m + (e - m) * far) for m, e in zip(MIDDLE, end, strict=True))
    return f"#{red:02x}{green:02x}{blue:02x}"


def heat_map(
    target: int, values: Mapping[tuple[int, int], float | None], scale: tuple[float, float],
    labels: tuple[str, str, str],
    chosen: tuple[int, int] | None, describe: Callable[[tuple[int, int], float], str], digits: int = 0,
) -> str:  # fmt: skip
    """A square for each score: columns the dealer's points, rows the leader's.  values: probabilities, shown in
    percent, None where nothing is known; labels: of the map, the rows and the columns."""
    side, edge = SQUARE, 40
    size = edge + target * side
    low, high = scale
    parts = []
    for points in range(target):
        middle = edge + points * side + side / 2
        parts.append(f'<text class="axis" x="{middle}" y="{edge - 8}">{points}</text>')
        parts.append(f'<text class="axis" x="{edge - 14}" y="{middle + 5}">{points}</text>')
    parts.append(f'<text class="axis name" x="{edge + target * side / 2}" y="13">{escape(labels[2])}</text>')
    down = edge + target * side / 2
    parts.append(
        f'<text class="axis name" x="11" y="{down}" transform="rotate(-90 11 {down})">{escape(labels[1])}</text>'
    )
    for (a, b), value in values.items():
        x, y = edge + b * side, edge + a * side
        if value is None:
            parts.append(f'<rect class="back" x="{x + 1}" y="{y + 1}" width="{side - 2}" height="{side - 2}" rx="3"/>')
            continue
        back = blend((value - low) / (high - low))
        ring = ' class="chosen"' if (a, b) == chosen else ""
        parts.append(
            f'<g role="button" class="cell" tabindex="{0 if (a, b) == (chosen or (0, 0)) else -1}" data-x="{b}" '
            f'data-y="{a}" '
            f'data-do="score" data-arg="{a}-{b}" data-hover="{a}-{b}" aria-label="{escape(describe((a, b), value))}">'
            f'<rect{ring} x="{x + 1}" y="{y + 1}" width="{side - 2}" height="{side - 2}" rx="3" style="fill:{back}"/>'
            f'<text class="value" x="{x + side / 2}" y="{y + side / 2 + 5}" style="fill:{ink(back)}" '
            f'data-value="{value!r}">{100 * value:.{digits}f}</text></g>'
        )
    return (
        f'<svg class="grid map" role="group" aria-label="{escape(labels[0])}" viewBox="0 0 {size} {size}">'
        f"{''.join(parts)}</svg>"
    )


# -------------------------------------------------------------------------------------------------------------- curve


def curve(points: Sequence[tuple[float, float]], labels: tuple[str, str, str], target: float | None = None) -> str:
    """Exploitability by iterations, both on logarithmic scales.  labels: of the drawing, across and up."""
    width, height, left, low = 640, 300, 64, 40
    kept = [(x, y) for x, y in points if x > 0 and y > 0]
    if not kept:
        return ""
    x0, x1 = math.floor(math.log10(min(x for x, _ in kept))), math.ceil(math.log10(max(x for x, _ in kept)) + 1e-9)
    ys = [y for _, y in kept] + ([target] if target else [])
    y0, y1 = math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)) + 1e-9)
    x1, y1 = max(x1, x0 + 1), max(y1, y0 + 1)

    def at(x: float, y: float) -> tuple[float, float]:
        across = left + (math.log10(x) - x0) / (x1 - x0) * (width - left - 16)
        return across, 12 + (y1 - math.log10(y)) / (y1 - y0) * (height - low - 12)

    parts = []
    for power in range(x0, x1 + 1):
        x, _ = at(10.0**power, 10.0**y0)
        parts.append(f'<line class="rule" x1="{x:.1f}" x2="{x:.1f}" y1="12" y2="{height - low}"/>')
        parts.append(f'<text class="axis" x="{x:.1f}" y="{height - low + 16}">{10**power:g}</text>')
    for power in range(y0, y1 + 1):
        _, y = at(10.0**x0, 10.0**power)
        parts.append(f'<line class="rule" x1="{left}" x2="{width - 16}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="axis end" x="{left - 8}" y="{y + 4:.1f}">1e{power}</text>')
    if target:
        _, y = at(10.0**x0, target)
        parts.append(f'<line class="goal" x1="{left}" x2="{width - 16}" y1="{y:.1f}" y2="{y:.1f}"/>')
    way = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*point) for point in kept))
    parts.append(f'<polyline class="curve" points="{way}"/>')
    parts += [f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in (at(*point) for point in kept)]
    parts.append(f'<text class="axis" x="{(width + left) / 2}" y="{height - 6}">{escape(labels[1])}</text>')
    parts.append(
        f'<text class="axis" x="14" y="{height / 2}" transform="rotate(-90 14 {height / 2})">{escape(labels[2])}</text>'
    )
    return (
        f'<svg class="plot" role="img" aria-label="{escape(labels[0])}" viewBox="0 0 {width} {height}">'
        f"{''.join(parts)}</svg>"
    )
