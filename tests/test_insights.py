"""What the equilibrium teaches: the walk against the kernels, the referee and the advice; the script; what it wrote."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import os
import random
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from games.cards import deal_weights, hands
from games.rules import ACCEPT, RAISE, REFUSE, Rules, preset
from games.state import State
from solver.cfr import ALGORITHMS, DEFAULT_ALGORITHM, Payoffs, Solver, Sweeper
from solver.explain import Facts
from solver.kernels import BEST, EXPECT, LANES, LAST_TRICK
from solver.last_trick import LastTrick
from solver.paths import shipped_strategy
from solver.storage import load_strategy, save_strategy
from solver.strategy import Position, Strategy, normalised
from solver.subgame import Beliefs, Subgame, situation
from solver.tree import Tree

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "scripts" / "insights.py"
RESULTS = ROOT / "results" / "le-truc"
SMALL = Rules("small", ("A", "2", "3"), "circular", 3, 3, (1, 2, 4), "nobody")
LOW = Rules("low", ("A", "2", "3", "4"), "circular", 2, 3, (1, 2), "nobody")

sys.path.append(str(ROOT / "scripts"))  # where the scripts find each other

from insights_tally import STRONG, SURE, Tally, raises, strengths  # noqa: E402
from insights_walk import Record, Walk  # noqa: E402


def solved(rules: Rules, iterations: int, mixed: float = 0.0) -> Strategy:
    """A solver's strategy, mixed with playing every action equally often."""
    solver = Solver(Tree(rules))
    solver.step(iterations)
    strategy = Strategy.of(solver)
    uniform = Strategy.uniform(solver.tree).probabilities
    for p in range(2):
        strategy.probabilities[p][:] = (1 - mixed) * strategy.probabilities[p] + mixed * uniform[p]
    return strategy


@pytest.fixture(scope="module")
def mini() -> Strategy:
    return solved(preset("mini"), 200)


def shipped() -> Strategy:
    file = shipped_strategy("le-truc")
    assert file is not None
    return load_strategy(file)[0]


@pytest.mark.parametrize("name", ["mini", pytest.param("le-truc", marks=pytest.mark.slow), "two-card", "one-card"])
def test_walk_is_the_kernels(name: str, mini: Strategy) -> None:
    """Ends add up to one, and the values are those of the exact evaluation."""
    one_card = Rules("one-card", ("A", "2", "3", "4"), "circular", 2, 1, (1, 2, 4), "dealer")
    strategy = mini if name == "mini" else shipped() if name == "le-truc" else solved(
        one_card if name == "one-card" else preset(name), 50, 0.1
    )  # fmt: skip
    walk, result = Walk(strategy, lambda record: None), strategy.evaluate()
    assert sum(walk.ends.values()) == pytest.approx(1, abs=1e-12)
    ladder = strategy.tree.rules.ladder
    points = sum(chance * ladder[a] * (1, -1, 0)[winner] for (a, _, winner), chance in walk.ends.items())
    assert points == pytest.approx(result.value, abs=1e-9)
    np.testing.assert_allclose(walk.value[:, 0], [points, -points], atol=1e-9)
    assert walk.value[:, 1] == pytest.approx(result.best_response, abs=1e-9)
    sweeper = Sweeper(strategy.tree, strategy.payoffs, np.float64)
    for p in range(2):
        for mode, of_kernels in enumerate((EXPECT, BEST)):
            wanted = sweeper.values(p, of_kernels, strategy.probabilities)
            np.testing.assert_allclose(walk.hands[p][mode], wanted, atol=1e-9)


class Brute:
    """Everything counted by the referee, deal by deal and action by action."""

    def __init__(self, strategy: Strategy) -> None:
        self.strategy, rules = strategy, strategy.tree.rules
        self.decisions: dict[tuple[str, ...], Any] = {}
        self.counts: defaultdict[tuple[int, int], defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
        self.ends: defaultdict[tuple[int, bool, int], float] = defaultdict(float)
        self.value = 0.0
        # By line and holding: own reach, what is played, probability of the opponent's, and with it each action's wins.
        self.infosets: dict[Any, list[Any]] = {}
        weights = deal_weights(rules)
        dealt = [tuple(map(int, hand)) for hand in hands(rules.n_ranks, rules.hand_size, rules.copies)]
        for u, leader in enumerate(dealt):
            for v, dealer in enumerate(dealt):
                if weights[u, v]:
                    self.walk(State.deal(rules, leader, dealer), weights[u, v] / weights.sum(), [1.0, 1.0])
        for state, reach, shares, against, wins in self.infosets.values():
            chances = {action: wins[action] / against for action in wins}
            strong = sum(shares[action] * chance for action, chance in chances.items()) >= STRONG
            sure = max(chance for action, chance in chances.items() if action != RAISE) >= SURE
            for field, yes in (("strong", strong), ("sure", sure)):
                counts = self.counts[state.turn, state.level]
                counts[field] += yes * reach * against
                counts[{"strong": "slow", "sure": "waiting"}[field]] += yes * reach * against * (1 - shares[RAISE])

    def shares(self, state: State) -> dict[str, float]:
        if state.line not in self.decisions:
            self.decisions[state.line] = self.strategy.at(state.line)
        decision, held = self.decisions[state.line], state.held[state.to_play]
        (row,) = np.flatnonzero((decision.holdings == np.array(held, np.int8)).all(axis=1))
        return {a: float(decision.probabilities[row, decision.actions.index(a)]) for a in state.legal_actions()}

    def walk(self, state: State, weight: float, reach: list[float]) -> tuple[float, float]:
        """Count a state and all after it; returns each player's chance to win if nobody refuses any more."""
        chance = weight * reach[0] * reach[1]
        if state.is_over:
            self.ends[state.level, state.line[-1] == REFUSE, state.winner if state.winner in (0, 1) else 2] += chance
            self.value += chance * state.returns[0]
            return float(state.winner == 0), float(state.winner == 1)
        me, shares = state.to_play, self.shares(state)
        after = {}
        for action, share in shares.items():
            part = list(reach)
            part[me] *= share
            after[action] = self.walk(state.apply(action), weight, part)
        counts = self.counts[state.turn, state.level]
        if RAISE in shares:
            counts["chances"] += chance
            counts["raises"] += chance * shares[RAISE]
            key = state.line, state.held[me]
            found = self.infosets.setdefault(key, [state, reach[me], shares, 0.0, dict.fromkeys(shares, 0.0)])
            found[3] += weight * reach[1 - me]
            for action in shares:
                found[4][action] += weight * reach[1 - me] * after[action][me]
        if REFUSE in shares:
            counts["refused"] += chance * shares[REFUSE]
            return after[ACCEPT]
        return tuple(sum(shares[a] * after[a][p] for a in shares) for p in range(2))  # type: ignore[return-value]


@pytest.fixture(scope="module")
def small() -> Tally:
    return Tally(solved(SMALL, 100, 0.05))


@pytest.fixture(scope="module")
def careless() -> Tally:
    """Of a random strategy, against which every saying costs something."""
    tree, numbers = Tree(LOW), np.random.default_rng(1)
    weights = numbers.random((tree.rows[0], LANES)) ** 6, numbers.random((tree.rows[1], LANES)) ** 6
    return Tally(Strategy(tree, Payoffs.points(LOW), normalised(tree, weights, weights)))


def test_tally_is_the_referees(small: Tally) -> None:
    tally, strategy = small, small.walk.strategy
    brute = Brute(strategy)
    assert brute.value == pytest.approx(strategy.evaluate().value, abs=1e-9)
    assert tally.walk.ends == pytest.approx(dict(brute.ends), abs=1e-12)
    seen = {key: counts for key, counts in brute.counts.items() if counts["chances"]}
    assert tally.raising.keys() == seen.keys()
    for key, counts in seen.items():
        for field in ("chances", "raises", "refused", "strong", "slow", "sure", "waiting"):
            assert tally.raising[key][field] == pytest.approx(counts[field], abs=1e-12), (key, field)
        assert tally.raising[key]["value"] + tally.raising[key]["bluffs"] == pytest.approx(counts["raises"], abs=1e-12)
    refused = sum(chance for (_, by_refusal, _), chance in tally.walk.ends.items() if by_refusal)
    assert sum(each["refused"] for each in tally.raising.values()) == pytest.approx(refused, abs=1e-12)


def public_lines(rules: Rules, count: int) -> list[tuple[str, ...]]:
    """Lines to decisions, at random."""
    chance, lines = random.Random(7), {()}
    while len(lines) < count:
        state = State.public(rules)
        while not state.is_over:
            lines.add(state.line)
            state = state.apply(chance.choice(state.legal_actions()))
    return sorted(lines)[:: max(1, len(lines) // count)]


def lane_of(tree: Tree, position: Position) -> int:
    """Where a position's history is in the lanes of a record."""
    block = tree.blocks[position.block]
    together = [b for b, each in enumerate(tree.blocks) if (each.program, each.origin) == (block.program, block.origin)]
    lanes = [len(tree.blocks[b].histories) for b in together]
    lane = sum(lanes[: together.index(position.block)]) + position.lane
    return position.led * sum(lanes) + lane if tree.nodes[position.node].kind == LAST_TRICK else lane


def test_records_are_the_advice() -> None:
    """EVs, refusals, chances to win, and what is a bluff, as sweeps of subgames and `explain` have them."""
    strategy = solved(preset("mini"), 100, 0.1)
    tree, compared, bluffs = strategy.tree, 0, 0
    records: dict[tuple[int, int], Record] = {}
    Walk(strategy, lambda record: records.update({(record.node, record.stage): record}))
    for line in public_lines(tree.rules, 150):
        at = situation(tree, strategy.probabilities, line)
        last = tree.nodes[at.position.node].kind == LAST_TRICK
        stage = at.position.stage if last else -1
        if stage == 2:
            continue
        record, lane = records[at.position.node, stage], lane_of(tree, at.position)
        beliefs = Beliefs(tree, at, at.reach)
        there = beliefs.joint.sum(axis=1 - at.player) > 0
        game: Any = LastTrick(tree, strategy.payoffs, at, beliefs) if last else Subgame(
            tree, strategy.payoffs, at, beliefs
        )  # fmt: skip
        stored = game.stored(strategy.probabilities)
        ev, win, refusal = game.values(stored).ev, game.wins(stored), game.refusals(stored)
        against = record.against[there, lane]
        legal = record.legal[there]
        assert (record.turn, record.player) == (7 - sum(at.held), at.player)
        mass = record.mass[there, lane]
        np.testing.assert_allclose(mass / mass.sum(), beliefs.share[at.player][there], atol=1e-12)
        found = record.ev[there][:, :, lane] / against[:, None]
        np.testing.assert_allclose(found[legal], ev[there][legal], atol=1e-9)
        found = record.win[there][:, :, lane] / against[:, None]
        wanted = np.nan_to_num(win[there])  # the advice has no chance to win for refusing, the record has 0
        np.testing.assert_allclose(found[legal], wanted[legal], atol=1e-9)
        compared += len(against)
        if record.refused is None:
            assert np.isnan(refusal).all()
            continue
        np.testing.assert_allclose(record.refused[there, lane] / against, refusal[there], atol=1e-9)
        stake = float(tree.rules.ladder[record.level])
        may = raises(record, stake)
        assert may is not None
        for h in np.flatnonzero(there):
            names = [name for name, yes in zip(record.actions, record.legal[h], strict=True) if yes]
            table = [dict(zip(names, array[h][record.legal[h]].tolist(), strict=True)) for array in (ev, win)]
            shares = dict(zip(names, record.sigma[h, record.legal[h], lane].tolist(), strict=True))
            facts = Facts(shares, table[0], table[1], float(refusal[h]), stake, "points per hand")
            if facts.called is None or abs(facts.called - facts.best_card) > 1e-8:
                assert may.bluff[h, lane] == (facts.raise_kind == "bluff")
                bluffs += bool(may.bluff[h, lane])
            assert may.win[h, lane] == pytest.approx(facts.win_chance, abs=1e-9)
        if stage == 0 and record.ties != 2:  # each has won a trick: the answerer knows who wins
            assert sorted(record.results) == [-1, 1]
            assert np.isin(record.win[there][:, 0, lane] / against, (0.0, 1.0)).all()
    assert compared > 500
    assert bluffs > 50


def test_cost_of_a_saying(mini: Strategy) -> None:
    """A leader who never raises first has the best of his cards, by the sweep of the whole hand as a subgame."""
    tally, tree = Tally(mini), mini.tree
    (i,) = (i for i, saying in enumerate(tally.sayings) if saying.text.startswith("Never raise first"))
    at = situation(tree, mini.probabilities, ())
    game = Subgame(tree, mini.payoffs, at, Beliefs(tree, at, at.reach))
    ev = game.values(game.stored(mini.probabilities)).ev
    share = game.beliefs.share[0]
    best = share @ np.nanmax(ev, axis=1)
    assert tally.cost(i, 0) == pytest.approx(best - share @ np.nanmax(ev[:, 1:], axis=1), abs=1e-9)
    decision = mini.at(())
    assert tally.followed[i, 0] == pytest.approx(1 - share @ decision.probabilities[:, 0], abs=1e-9)
    for j in range(len(tally.sayings)):
        assert min(tally.cost(j, 0), tally.cost(j, 1)) > -1e-12
        assert (tally.followed[j] <= tally.spoken[j] + 1e-12).all()


def obeys(text: str, state: State, action: str) -> bool:
    """Whether an action is what a saying asks for, written a second time for the referee's states."""
    rules = state.rules
    score = dict(zip(rules.ranks, strengths(rules).tolist(), strict=True))
    held = [rules.ranks[rank] for rank in state.held[state.to_play] or ()]
    if text.startswith("Never refuse"):
        return action != REFUSE
    if action not in rules.ranks:
        return not (text.startswith("Never raise first") and state.turn == 1 and action == RAISE)
    if text.startswith("Lead your strongest"):
        return state.turn > 1 or score[action] == max(score[card] for card in held)
    if text.startswith("After a tied first trick"):
        return state.turn != 3 or state.results != (0,) or score[action] == max(score[card] for card in held)
    if state.turn != 2 or not text.startswith(("Answer the first lead", "If you cannot win")):
        return True
    lead = state.played[0][1]
    wins = [card for card in held if rules.trick_winner(lead, rules.ranks.index(card)) == -1]
    if text.startswith("Answer the first lead"):
        return not wins or (action in wins and score[action] == min(score[card] for card in wins))
    return bool(wins) or rules.ranks[lead] not in held or action == rules.ranks[lead]


CHECKED = (
    ("Never refuse", 0),
    ("Never refuse", 1),
    ("Never raise first", 0),
    ("Lead your strongest", 0),
    ("After a tied first trick", 0),
    ("Answer the first lead", 1),
    ("If you cannot win", 1),
)


@pytest.mark.parametrize(("text", "player"), CHECKED)
def test_cost_is_the_referees(text: str, player: int, careless: Tally) -> None:
    """A best response that obeys a saying, hand by hand over the referee's states."""
    strategy = careless.walk.strategy
    brute, weights = Brute.__new__(Brute), deal_weights(LOW)
    brute.strategy, brute.decisions = strategy, {}
    dealt = [tuple(map(int, hand)) for hand in hands(LOW.n_ranks, 3, LOW.copies)]

    def best(states: list[tuple[State, float]]) -> float:
        """What the player gets with one hand from here on; states: by the other's hand, with its probability."""
        state = states[0][0]
        if state.is_over:
            return sum(chance * each.returns[player] for each, chance in states)
        if state.to_play == player:
            return max(
                best([(each.apply(action), chance) for each, chance in states])
                for action in state.legal_actions()
                if obeys(text, state, action)
            )
        after: defaultdict[str, list[tuple[State, float]]] = defaultdict(list)
        for each, chance in states:
            for action, share in brute.shares(each).items():
                after[action].append((each.apply(action), chance * share))
        return sum(best(group) for group in after.values())

    total = 0.0
    for u, mine in enumerate(dealt):
        pairs = [(mine, theirs) if player == 0 else (theirs, mine) for theirs in dealt]
        chances = (weights[u] if player == 0 else weights[:, u]) / weights.sum()
        states = [(State.deal(LOW, *pair), chance) for pair, chance in zip(pairs, chances, strict=True) if chance]
        total += best(states)
    (i,) = (i for i, saying in enumerate(careless.sayings) if saying.text.startswith(text))
    assert careless.walk.value[player, 2 + i] == pytest.approx(total, abs=1e-9)
    assert careless.cost(i, player) > 1e-6


def test_strengths() -> None:
    """The Ace beats the 8 and loses to all others."""
    assert strengths(preset("le-truc")).tolist() == [-5, -5, -3, -1, 1, 3, 5, 5]


def run(*options: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"}
    return subprocess.run(
        [sys.executable, str(SCRIPT), *options], env=environment, capture_output=True, text=True, timeout=300
    )


@pytest.mark.slow
def test_script(tmp_path: Path) -> None:
    """It runs on any strategy for three cards, comes out the same, and writes what it computed."""
    solver = Solver(Tree(preset("mini")))
    solver.step(200)
    file = tmp_path / "mini.safetensors"
    save_strategy(file, Strategy.of(solver), ALGORITHMS[DEFAULT_ALGORITHM], 200)
    strategy, _ = load_strategy(file)
    for name in ("one", "two"):
        done = run("--strategy", str(file), "--folder", str(tmp_path / name))
        assert done.returncode == 0, done.stderr
    written = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*.*"))
    for path in written:
        assert (tmp_path / "one" / path).read_bytes() == (tmp_path / "two" / path).read_bytes(), path
    page = (tmp_path / "one" / "insights.md").read_text()
    value = strategy.evaluate().value
    assert f"**The deal is worth {-value:.4f} points" in page
    assert str(tmp_path) not in page
    with (tmp_path / "one" / "insights" / "ends.csv").open(newline="") as table:
        assert math.fsum(float(row["probability"]) for row in csv.DictReader(table)) == pytest.approx(1, abs=1e-5)


def test_script_refuses(tmp_path: Path) -> None:
    (tmp_path / "nonsense").write_bytes(b"nonsense")
    done = run("--strategy", str(tmp_path / "nonsense"), "--folder", str(tmp_path))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert run("--strategy", str(tmp_path / "nonsense")).returncode == 2


def test_formulas_hold_at_the_last_card() -> None:
    with (RESULTS / "insights" / "last-card.csv").open(newline="") as table:
        rows = list(csv.DictReader(table))
    assert len(rows) >= 2
    for row in rows:
        s, t = int(row["stake"]), int(row["raised"])
        assert float(row["bluffs"]) == pytest.approx((1 - s / t) / 2, abs=1e-3)
        assert float(row["refused"]) == pytest.approx((t - s) / (t + s), abs=1e-3)


def test_published_files_are_those_of_the_manifest() -> None:
    manifest = json.loads((RESULTS / "insights" / "manifest.json").read_text())
    assert manifest["command"] == "python scripts/insights.py"
    for name, wanted in manifest["sha256"].items():
        assert hashlib.sha256((RESULTS / "insights" / name).read_bytes()).hexdigest() == wanted, name
    strategy = RESULTS / "points" / "strategy.safetensors"
    assert manifest["strategy"] == hashlib.sha256(strategy.read_bytes()).hexdigest()
    assert sum(path.stat().st_size for path in (RESULTS / "insights").iterdir()) < 1_000_000
    for line in (RESULTS / "insights.md").read_text().splitlines():
        if line.startswith("!["):
            assert (RESULTS / line.split("(")[1].rstrip(")")).is_file()
