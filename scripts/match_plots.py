"""The pictures of `scripts/match_results.py`: heat maps over all scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from reproduce import save

from solver.equity import Score

CELL = 0.62  # inches


class Map(NamedTuple):
    """A panel: a number for each score, None or nan where there is none.  Colours are told apart by colour-blind
    readers (cividis; PuOr where the middle means something), and the numbers are printed."""

    title: str
    of: Callable[[Score], float | None]
    low: float
    high: float
    colours: str = "cividis"
    digits: int = 0


def heat_maps(path: Path, target: int, maps: Sequence[Map], across: str, up: str, title: str) -> None:
    """One panel for each map, in percent; `up` is the first number of a score."""
    import matplotlib.pyplot as plt

    side = CELL * target + 1.0
    figure, panels = plt.subplots(
        1, len(maps), figsize=(max(side * len(maps), 4.5), max(side, 3.2)), layout="constrained", squeeze=False
    )
    for axes, each in zip(panels.ravel(), maps, strict=True):
        found = [[each.of((a, b)) for b in range(target)] for a in range(target)]
        values: npt.NDArray[np.float64] = np.array(found, float)  # None becomes nan
        image = axes.imshow(values, origin="lower", cmap=each.colours, vmin=each.low, vmax=each.high)
        for (a, b), value in np.ndenumerate(values):
            if not np.isnan(value):
                red, green, blue, _ = image.cmap(image.norm(value))
                dark = 0.3 * red + 0.59 * green + 0.11 * blue < 0.5
                text = f"{100 * value + 0.0:.{each.digits}f}"
                axes.text(b, a, text.replace("-0", "0") if float(text) == 0 else text, ha="center", va="center",
                          fontsize=8, color="white" if dark else "black")  # fmt: skip
        axes.set(xlabel=across, ylabel=up, title=each.title, xticks=range(target), yticks=range(target))
    figure.suptitle(title)
    save(figure, path)
