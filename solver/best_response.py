"""Exact evaluation: values, best responses, exploitability, all in float64."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from games.cards import combinations
from solver.cfr import Floats, Payoffs, Sweeper
from solver.kernels import BEST, EXPECT
from solver.tree import Tree


@dataclass(frozen=True, slots=True)
class Evaluation:
    """value: the strategies against each other, to the leader; best_response: what each player gets by best
    responding to the other's; both in `unit`."""

    value: float
    best_response: tuple[float, float]
    unit: str

    @property
    def nash_conv(self) -> float:
        return self.best_response[0] + self.best_response[1]

    @property
    def exploitability(self) -> float:
        return self.nash_conv / 2


def evaluate(tree: Tree, payoffs: Payoffs, strategy: tuple[Floats, Floats], threads: int = 1) -> Evaluation:
    sweeper = Sweeper(tree, payoffs, np.float64, threads)
    play = (strategy[0].astype(np.float64), strategy[1].astype(np.float64))
    dealt = combinations(tree.rules)
    dealt /= dealt.sum()
    value = float(dealt @ sweeper.values(0, EXPECT, play))
    best = [float(dealt @ sweeper.values(p, BEST, play)) for p in range(2)]
    return Evaluation(value, (best[0], best[1]), payoffs.unit)
