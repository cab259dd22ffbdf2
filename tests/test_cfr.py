"""CFR: against the oracle's, against exact values, and against what must not matter."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from games.rules import Rules, preset
from solver.best_response import evaluate
from solver.cfr import ALGORITHMS, Pair, Payoffs, Solver
from solver.kernels import LANES
from solver.strategy import Strategy
from solver.tree import Tree
from tests import oracle
from tests.bridge import Bridge, assert_close, bridge, case_payoffs, make_rules, random_strategy
from tests.oracle import TrucHand
from tests.test_oracle import CASES, case_game, case_rules

ZERO = 1e-12
ODD_GAMES = {
    name: TrucHand(rules)
    for name, rules in {
        "one card": make_rules(3, 2, 1, (1, 2, 4)),
        "one card, ties to the dealer": make_rules(5, 4, 1, (1, 3), tied="dealer"),
        "one rank": make_rules(1, 6, 3, (1, 2, 3), order="linear"),
        "no raise": make_rules(3, 2, 3, (1,), order="linear"),
        "no pairs": make_rules(6, 1, 3, (1, 2)),
        "two cards, seventeen lanes and more": make_rules(7, 1, 2, (1, 2)),
        "three cards, ties to the dealer": make_rules(3, 2, 3, (1, 2, 4), tied="dealer"),
        "linear, ties to the leader": make_rules(2, 4, 3, (1, 2, 3), order="linear", tied="leader"),
        "sixteen ranks": make_rules(16, 2, 1, (1, 2, 3)),
    }.items()
}
GAMES = {name: case_game(name) for name in ("c3x2_L12", "c3x4_L12_leader", "c8x4_hs2_L12", "c3x4_L124_payoffs")}
EXACT = tuple(GAMES)
GAMES |= ODD_GAMES


def payoffs_of(name: str) -> Payoffs:
    """The payoffs of a game of GAMES."""
    return case_payoffs(name) if name in CASES else Payoffs.points(GAMES[name].rules)


def started(both: Bridge, payoffs: Payoffs, algorithm: str, zero: float = ZERO) -> Solver:
    """A solver that can be compared with the oracle's."""
    return Solver(both.tree, payoffs, algorithm, dtype=np.float64, zero=zero)


def current(both: Bridge, solver: Solver) -> np.ndarray:
    """The current strategy by the oracle's slots."""
    weights = both.vector(solver.play)
    return both.normalised(np.where(weights > solver.zero, weights, 0.0))


def same_bits(a: Pair, b: Pair) -> bool:
    """Whether both players' arrays are equal, bit by bit."""
    return all(x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True))


# ------------------------------------------------------------------------------------------- against the oracle's CFR


@pytest.mark.parametrize("reduced", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("name", GAMES)
def test_iterations_agree_with_the_oracles(name: str, algorithm: str, reduced: bool) -> None:
    """Regrets up to 1e-12 are none on both sides, or rounding would break ties differently.

    A merged state's average is its members', weighted by how likely the owner comes there with each: the oracle's
    sums have his own moves in them, and the deal's probability is the rest.
    """
    game, both = GAMES[name], bridge(GAMES[name], reduced)
    accuracy = 1e-9 if algorithm in ("cfr", "cfr+") else 1e-8
    # The last begins to fade at iteration 20; in the longer run rounding adds up to more than 1e-12 as well.
    iterations, zero = (40, 1e-10) if algorithm == "fpdcfr+" else (20, ZERO)
    solver, naive = started(both, payoffs_of(name), algorithm, zero), oracle.CFR(game, algorithm, zero=zero)
    for _ in range(iterations):
        solver.step()
        naive.step()
    assert_close(current(both, solver), both.flat.vector(naive.current), accuracy)

    expected = naive._sum
    if reduced and both.merged.any():
        rows = both.index + np.where(both.flat.owner == 1, both.tree.rows[0] * LANES, 0)
        masses = np.bincount(rows[both.merged], (both.weight * expected)[both.merged], sum(both.tree.rows) * LANES)
        expected = np.where(both.merged, masses[np.maximum(rows, 0)], expected)
    assert_close(both.normalised(both.vector(solver.average)), both.normalised(expected), accuracy)

    found = evaluate(both.tree, payoffs_of(name), Strategy.of(solver).probabilities)
    assert found.value == pytest.approx(oracle.expected_value(game, naive.average), abs=1e-9)
    for p in range(2):
        assert found.best_response[p] == pytest.approx(oracle.best_response(game, naive.average, p), abs=1e-9)


@pytest.mark.parametrize("reduced", [True, False])
@pytest.mark.parametrize("name", [*GAMES, "c4x4_L12"])
def test_one_iteration_from_a_random_strategy_has_the_oracles_regrets(name: str, reduced: bool) -> None:
    """Plain CFR adds counterfactual regrets, here to probabilities: regret matching gives these back.

    The tree's regrets are the true ones by a positive factor of each state, which `Bridge._factor` derives.
    """
    game = GAMES.get(name) or case_game(name)
    both = bridge(game, reduced)
    payoffs = Payoffs.points(game.rules) if name not in CASES else case_payoffs(name)
    for seed in range(20 if name in EXACT else 3):
        solver = started(both, payoffs, "cfr")
        before = random_strategy(both.tree, np.random.default_rng(seed))
        for p in range(2):
            solver.regret[p][:] = before[p]
        sigma = both.vector(before)
        solver.step()
        change = tuple(solver.regret[p] - before[p] for p in range(2))
        has_row = both.index >= 0
        for player in range(2):
            mine = has_row & (both.flat.owner == player)
            # Player 1 already answers player 0's new strategy.
            sigma = np.where(both.flat.owner == 0, current(both, solver), sigma) if player == 1 else sigma
            expected = both.flat.regrets(sigma, player)[mine]
            found = both.vector(change)[mine]
            assert_close(found, expected / both.factor[mine], 1e-12)


# ----------------------------------------------------------------------------------------------------- exact solutions


def check_solution(name: str, algorithm: str, iterations: int, accuracy: float) -> None:
    """Solve an exact case until its interval is narrower than twice the accuracy, and compare."""
    exact = CASES[name]["value"]
    solver = Solver(Tree(case_rules(CASES[name])), case_payoffs(name), algorithm, dtype=np.float64, zero=1e-15)
    while True:
        solver.step(1000)
        found = Strategy.of(solver).evaluate()
        assert -found.best_response[1] - 1e-9 <= exact <= found.best_response[0] + 1e-9
        if found.nash_conv < 2 * accuracy:
            break
        assert solver.iterations < iterations
    assert found.value == pytest.approx(exact, abs=2 * accuracy)  # anywhere in the interval; the middle is nearer
    assert (found.best_response[0] - found.best_response[1]) / 2 == pytest.approx(exact, abs=accuracy)


@pytest.mark.parametrize("algorithm", ["dcfr+", "fpdcfr+"])
@pytest.mark.parametrize("name", CASES)
def test_the_exact_value_is_found(name: str, algorithm: str) -> None:
    check_solution(name, algorithm, 10_000, 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_exact_value_is_found_to_a_millionth(name: str) -> None:
    check_solution(name, "pcfr+", 200_000, 1e-6)


@pytest.mark.parametrize(("algorithm", "accuracy"), [("cfr", 3e-2), ("cfr+", 2e-3), ("dcfr", 3e-3)])
def test_the_older_algorithms_converge(algorithm: str, accuracy: float) -> None:
    solver = Solver(Tree(case_rules(CASES["c4x4_L12"])), None, algorithm, dtype=np.float64)
    solver.step(1000)
    found = Strategy.of(solver).evaluate()
    assert found.exploitability < accuracy
    assert -found.best_response[1] <= CASES["c4x4_L12"]["value"] <= found.best_response[0]


def test_the_full_game_converges() -> None:
    solver = Solver(Tree(preset("le-truc")))
    assert solver.regret[0].dtype == np.float32
    solver.step(100)
    found = Strategy.of(solver).evaluate()
    assert found.exploitability < 5e-3
    assert -0.335 < found.value < -0.332
    assert -found.best_response[1] < -0.3335 < found.best_response[0]


# ---------------------------------------------------------------------------------------------- what does not matter


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("algorithm", ["dcfr+", "fpdcfr+"])
@pytest.mark.parametrize("name", ["mini", "two-card", "tiny"])
def test_same_bits_with_any_number_of_threads_and_in_any_portions(name: str, algorithm: str, dtype: type) -> None:
    tree = Tree(preset(name))
    solvers = [Solver(tree, None, algorithm, threads, dtype) for threads in (1, 2, 3, 1, 1)]
    for solver in solvers[:3]:
        solver.step(10)
    for _ in range(10):
        solvers[3].step()
    for portion in (3, 7):
        solvers[4].step(portion)
    for solver in solvers[1:]:
        assert solver.iterations == 10
        assert same_bits(solver.regret, solvers[0].regret)
        assert same_bits(solver.average, solvers[0].average)
        assert same_bits(solver.play, solvers[0].play)


def test_same_bits_of_the_full_game_with_any_number_of_threads() -> None:
    tree = Tree(preset("le-truc"))
    solvers = [Solver(tree, threads=threads) for threads in (1, 2, 3)]
    for solver in solvers:
        solver.step(10)
    assert same_bits(solvers[0].regret, solvers[1].regret)
    assert same_bits(solvers[0].regret, solvers[2].regret)
    assert same_bits(solvers[0].average, solvers[1].average)
    assert same_bits(solvers[0].average, solvers[2].average)


def test_float32_follows_float64() -> None:
    tree = Tree(preset("mini"))
    small, large = Solver(tree, dtype=np.float32), Solver(tree, dtype=np.float64)
    small.step(1000)
    large.step(1000)
    a, b = Strategy.of(small).evaluate(), Strategy.of(large).evaluate()
    assert a.value == pytest.approx(b.value, abs=2e-5)
    assert a.exploitability == pytest.approx(b.exploitability, abs=2e-5)


def solved(rules: Rules, payoffs: Payoffs | None = None) -> tuple[float, float]:
    """An interval of the game's value."""
    solver = Solver(Tree(rules), payoffs, "pcfr+", dtype=np.float64)
    solver.step(1000)
    found = Strategy.of(solver).evaluate()
    return -found.best_response[1], found.best_response[0]


def test_labels_do_not_matter() -> None:
    rules = preset("mini")
    other = replace(rules, name="other", ranks=("x", "y2", "q", "z"))
    solvers = [Solver(Tree(r), dtype=np.float64) for r in (rules, other)]
    for solver in solvers:
        solver.step(20)
    assert same_bits(solvers[0].average, solvers[1].average)


def test_three_circular_ranks_are_all_alike() -> None:
    """Rock, paper, scissors: turning the ranks round changes nothing, so neither do the hands' values."""
    both = bridge(case_game("c3x4_L12_leader"), True)
    solver = started(both, Payoffs.points(both.tree.rules), "cfr+")
    solver.step(20)
    averages = both.flat.table(both.normalised(both.vector(solver.average)))
    turned = dict(zip("A23", "23A", strict=True)) | {word: word for word in ("raise", "accept", "refuse")}
    for (player, hand, line), probabilities in averages.items():
        actions = both.game.actions((hand, hand, line))
        hand = tuple(sorted((rank + 1) % 3 for rank in hand))
        line = tuple(turned[word] for word in line)
        order = [both.game.actions((hand, hand, line)).index(turned[action]) for action in actions]
        assert_close(averages[player, hand, line][order], probabilities, 1e-9)


def test_payoffs_may_be_shifted_and_scaled() -> None:
    both = bridge(case_game("c3x4_L12_leader"), True)
    plain = Payoffs.points(both.tree.rules)
    scaled = Payoffs(tuple(4 * x for x in plain.win0), tuple(4 * x for x in plain.win1))  # exact in binary
    shifted = Payoffs(tuple(x + 1 for x in plain.win0), tuple(x + 1 for x in plain.win1), 1.0)
    averages = []
    for payoffs in (plain, scaled, shifted):
        solver = started(both, payoffs, "cfr+")
        solver.step(20)
        averages.append(both.normalised(both.vector(solver.average)))
    assert_close(averages[1], averages[0], 0.0)
    assert_close(averages[2], averages[0], 1e-9)


def test_a_game_that_is_all_ties() -> None:
    """One rank: the tie decides, and who it favours takes all he can get."""
    rules = make_rules(1, 6, 3, (1, 2, 4), order="linear")
    low, high = solved(rules)
    assert low - 1e-9 <= 0 <= high + 1e-9
    assert high - low < 1e-3
    # The side that ties win raises and is refused at 1; it never raises its own raise.
    for tied, sign in (("leader", 1.0), ("dealer", -1.0)):
        low, high = solved(replace(rules, all_tied=tied))
        assert low == pytest.approx(sign, abs=1e-3)
        assert high == pytest.approx(sign, abs=1e-3)


@pytest.mark.slow
def test_more_to_win_is_worth_more() -> None:
    """The value is monotone in the payoffs, so it rises with who gets the ties: dealer, nobody, leader."""
    rules = preset("mini")
    prices = [replace(Payoffs.points(rules), tie=tie) for tie in (-20.0, 0.0, 20.0)]
    values = [solved(rules, payoffs) for payoffs in prices]
    assert values[0][1] < values[1][0] < values[1][1] < values[2][0]
    sides = [solved(replace(rules, all_tied=side)) for side in ("dealer", "nobody", "leader")]
    assert sides[0][0] <= sides[1][1]
    assert sides[1][0] <= sides[2][1]
    assert sides[1] == values[1]


def test_payoffs_need_a_number_for_every_stake() -> None:
    assert Payoffs.points(preset("le-truc")).table(1, np.float64)[6].tolist() == [-12.0, 12.0, -0.0]
    with pytest.raises(ValueError, match="zip"):
        Payoffs((1.0, 2.0), (-1.0,)).table(0, np.float64)


def test_schedules() -> None:
    """The discounts of Brown & Sandholm 2019 at small t: t^a / (t^a + 1)."""
    step = ALGORITHMS["dcfr"].step(5, 0.0)
    assert (step.gain, step.loss, step.weight) == pytest.approx((8 / 9, 0.5, 25.0))
    assert step.floor == -math.inf
    step = ALGORITHMS["dcfr+"].step(1, 0.0)
    assert (step.gain, step.floor, step.weight) == (0.0, 0.0, 1.0)
    assert ALGORITHMS["pdcfr+"].step(4, 0.0).ahead == pytest.approx(4**2.3 / (4**2.3 + 1))
    assert ALGORITHMS["pcfr+"].step(4, 0.0).ahead == 1.0
    step = ALGORITHMS["cfr+"].step(7, 1e-9)
    assert (step.weight, step.gain, step.loss, step.floor, step.zero) == (7.0, 1.0, 1.0, 0.0, 1e-9)
    assert [ALGORITHMS[name].step(80, 0.0).prediction for name in ("dcfr+", "pdcfr+", "fpdcfr+")] == [0.0, 1.0, 0.25]


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_averages_do_not_overflow(name: str) -> None:
    """After ever so many iterations; t^5 alone is too much for float32 after 51 million."""
    solver = Solver(Tree(preset("tiny")), algorithm=name)
    for done in (0, 2**21 - 9, 4 * 10**6, 10**9 - 50):
        solver.iterations = done
        solver.step(50)
        for average in solver.average:
            assert np.isfinite(average).all()
            assert average.max() < 2.0**127 / 2**10
    assert Strategy.of(solver).evaluate().exploitability < 1.0


def test_only_exponents_are_shifted(monkeypatch: pytest.MonkeyPatch) -> None:
    algorithm, before = ALGORITHMS["pdcfr+"], 2**21 - 9

    def averages() -> Pair:
        solver = Solver(Tree(preset("tiny")), algorithm=algorithm)
        solver.step(50)
        solver.iterations = before
        solver.step(30)
        assert solver.iterations == before + 30
        return solver.average

    assert (algorithm.shift(2**21 - 1), algorithm.shift(2**21)) == (0, 64)
    shifted = averages()
    monkeypatch.setattr(type(algorithm), "shift", lambda self, t: 0)
    plain = averages()
    for p in range(2):
        assert np.array_equal(np.ldexp(shifted[p], 64), plain[p])
