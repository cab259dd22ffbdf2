"""Exact evaluation on the public tree: values, best responses, exploitability, in float64 with a rounding bound.

Best responses as in Johanson et al. 2011: one sweep per player passes the other's reaches down and the largest
values up, so it costs about as much as an iteration.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import comb

import numpy as np
import numpy.typing as npt

from games.cards import combinations
from solver.cfr import Pair, Payoffs, Sweeper
from solver.kernels import BEST, EXPECT
from solver.tree import Tree


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a pair of strategies is worth; all numbers in `unit`.

    value: the strategies against each other, to the leader; best_response: what the leader and the dealer each get by
    best responding to the other's strategy; rounding: a bound on the error of each of the three; total: what both get
    together, 0 in points and 1 in match-winning probability.
    """

    value: float
    best_response: tuple[float, float]
    rounding: float
    unit: str
    total: float = 0.0

    @property
    def nash_conv(self) -> float:
        """What both players together gain by best responding."""
        return self.best_response[0] + self.best_response[1] - self.total

    @property
    def exploitability(self) -> float:
        """Half of `nash_conv`."""
        return self.nash_conv / 2

    @property
    def interval(self) -> tuple[float, float]:
        """Contains the value of the game to the leader: each strategy guarantees its owner one end."""
        return self.total - self.best_response[1] - self.rounding, self.best_response[0] + self.rounding


class Evaluator:
    """Evaluates strategies on one tree with one set of payoffs."""

    def __init__(self, tree: Tree, payoffs: Payoffs, threads: int = 1) -> None:
        self._sweeper = Sweeper(tree, payoffs, np.float64, threads)
        self._dealt = combinations(tree.rules) / comb(tree.rules.n_cards, tree.rules.hand_size)
        self._rounding = rounding_bound(tree, payoffs)
        self._payoffs = payoffs

    def __call__(self, weights: Pair) -> Evaluation:
        """Evaluate strategies given as weights, shape (tree.rows[p], LANES): probabilities or unnormalised averages;
        an information state without any weight plays uniformly."""
        play = (weights[0].astype(np.float64, copy=False), weights[1].astype(np.float64, copy=False))
        value = self.value(0, EXPECT, play, self._payoffs)
        best = self.value(0, BEST, play, self._payoffs), self.value(1, BEST, play, self._payoffs)
        return Evaluation(value, best, self._rounding, self._payoffs.unit, self._payoffs.total)

    def value(self, player: int, mode: int, play: Pair, payoffs: Payoffs) -> float:
        """A player's value with payoffs of their own, for mode BEST or EXPECT; play: float64."""
        self._sweeper.pay[player] = payoffs.table(player, np.float64)
        return self._mean(self._sweeper.values(player, mode, play)) + player * payoffs.total

    def _mean(self, values: npt.NDArray[np.float64]) -> float:
        """Over the dealt hands; exactly rounded, since the order of numpy's sums depends on where arrays lie."""
        return math.fsum(self._dealt * values)


def rounding_bound(tree: Tree, payoffs: Payoffs) -> float:
    """A bound on the rounding error of a value computed by one float64 sweep.

    A value at the root is a sum of products, one for every end and every pair of holdings, each of which has gone
    through at most R roundings; so its error is at most gamma_R * S, gamma_R = R u / (1 - R u), u = 2^-53, with S the
    sum of the products' magnitudes (Higham, Accuracy and Stability of Numerical Algorithms, 3.1).

    R: a line has at most D = 6 * hand_size decisions.  Going down, a decision costs the opponent's reach at most 8
    roundings (the sum of at most 5 weights, reciprocal, two products).  Going up it costs at most n + 8: a sum over n
    ranks and the public actions, each a product.  An end costs 3 (n + 3) + 9 (three levels of G, then 8 terms and the
    payoff), the last trick 3 n + 20 (running sums over ranks, classes and actions), the mean over the hands 3.
    Copies left, numbers of cards and their differences are exact, and so is taking a maximum.

    S: payoffs are at most P in magnitude.  Leave the removal of the own cards out (every factor left - own grows to
    left): against a fixed own plan the opponent's hands b weigh at most prod_r copies!/((copies - b_r)! b_r!) over
    C(N - k, k), in all C(N, k)/C(N - k, k).  The removal at an end is a sum over the sub-multisets w of the own cards
    with |G(w)| <= G(0), since a possible holding v <= left makes v!/(v-w)! <= left!/(left-w)!: at most 2^k times that.
    Holdings that the public cards exclude are multiplied by exact zeros.
    """
    rules = tree.rules
    n, k, cards = rules.n_ranks, rules.hand_size, rules.n_cards
    roundings = 6 * k * (n + 16) + 3 * (n + 3) + 9 + 3 * n + 20 + 3
    gamma = roundings * 2.0**-53 / (1 - roundings * 2.0**-53)
    magnitude = max(abs(x) for x in (*payoffs.win0, *payoffs.win1, payoffs.tie))
    return gamma * 2.0**k * comb(cards, k) / comb(cards - k, k) * magnitude


def evaluate(tree: Tree, payoffs: Payoffs, weights: Pair, threads: int = 1) -> Evaluation:
    """Evaluate one pair of strategies: see `Evaluator`."""
    return Evaluator(tree, payoffs, threads)(weights)
