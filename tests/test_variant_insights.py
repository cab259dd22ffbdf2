"""Insights of games with a remainder, a decision before the target or a redeal: counted again, and as published."""

from __future__ import annotations

import hashlib
import json
import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from games.cards import deal_weights, hands
from games.notation import format_hand
from games.rules import ACCEPT, DECLINE, PLAY, RAISE, REFUSE, REMAINDER, Rules, preset
from games.state import State
from solver.cfr import Solver
from solver.equity import hand_rules, hand_tree, payoffs
from solver.essential import essential
from solver.match_run import Store
from solver.scores import read_table
from solver.solve import solve
from solver.storage import load_strategy
from solver.strategy import Strategy
from solver.tree import Tree
from tests.test_match_results import Here, rows
from tests.test_variant_results import ACCURACY, GAMES, solved_match

ROOT = Path(__file__).resolve().parent.parent
PUBLISHED = ("french", "catalan")

sys.path.append(str(ROOT / "scripts"))  # where the scripts find each other

import variant_insights  # noqa: E402
from insights_walk import Walk  # noqa: E402
from variant_study import Called, deal_by_deal, unravel  # noqa: E402


@pytest.fixture(scope="module", params=GAMES)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Store:
    return solved_match(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def points(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A strategy of the hand in points."""
    file = tmp_path_factory.mktemp("points") / "strategy.safetensors"
    solve(Solver(Tree(essential(store.rules))), file, accuracy=1e-3)
    return file


@pytest.fixture(scope="module")
def insights(store: Store, points: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    folder = tmp_path_factory.mktemp("insights")
    matches = variant_insights.Matches(tmp_path_factory.mktemp("matches"), 1)
    patch = pytest.MonkeyPatch()
    patch.setattr(variant_insights, "DECKS", ((3, 3, 1), (2, 4, 2)))
    patch.setattr(variant_insights, "SMALL", 1e-3)
    patch.setattr("variant_study.LocalWorkers", lambda workers: Here())
    found = variant_insights.publish(store, points, folder, matches, "python scripts/variant_insights.py")
    patch.undo()
    return folder, found


@pytest.mark.parametrize("game", GAMES.values(), ids=lambda rules: rules.name)
def test_walk_is_the_kernels(game: Rules) -> None:
    """With remainders, decisions and three cards, at every kind of score."""
    rules = replace(game, hand_size=3)
    for score in ((0, 0), (3, 1), (1, 3), (2, 2)):
        hand = hand_rules(rules, score)
        pay = payoffs(rules, hand.ladder, score, lambda after: 0.5 + 0.1 * (after[1] - after[0]))
        solver = Solver(hand_tree(rules, score), pay)
        solver.step(20)
        strategy = Strategy.of(solver)
        walk, result = Walk(strategy, lambda record: None), strategy.evaluate()
        assert sum(walk.ends.values()) == pytest.approx(1, abs=1e-12)
        np.testing.assert_allclose(walk.value[:, 0], [result.value, -result.value], atol=1e-9)
        best = result.best_response[0], result.best_response[1] - result.total
        assert walk.value[:, 1] == pytest.approx(best, abs=1e-9)


def test_calls_are_the_referees(store: Store) -> None:
    """Counted deal by deal and action by action."""
    rules, score = store.rules, (1, 0)
    strategy = store.strategy(score)
    game = strategy.tree.rules
    found = Called(strategy, score, rules.target)
    counted: defaultdict[tuple[bool, int, int], list[float]] = defaultdict(lambda: [0.0, 0.0])
    ends = 0.0
    decisions: dict[tuple[str, ...], Any] = {}
    needed = rules.target - min(score)

    def walk(state: State, chance: float, whole_match: bool, answered: tuple[bool, int, int] | None) -> float:
        if state.is_over or chance == 0:
            return chance if whole_match and state.line[-1] != REFUSE else 0.0
        if state.line not in decisions:
            decisions[state.line] = strategy.at(state.line)
        decision, held = decisions[state.line], state.held[state.to_play]
        (row,) = np.flatnonzero((decision.holdings == np.array(held, np.int8)).all(axis=1))
        played = 0.0
        for action in state.legal_actions():
            if action not in decision.actions:  # it changes no value
                assert action in (RAISE, REMAINDER)
                continue
            part = chance * float(decision.probabilities[row, decision.actions.index(action)])
            key, match = None, whole_match
            if action in (RAISE, REMAINDER):
                match_call = action == REMAINDER or game.ladder[state.level + 1] >= needed
                key = match_call, state.turn, state.to_play
                counted[key][0] += part
            elif action == REFUSE:
                assert answered is not None
                counted[answered][1] += part
            elif action == ACCEPT:
                assert answered is not None
                match = whole_match or answered[0]
            played += walk(state.apply(action), part, match, key)
        return played

    weights = deal_weights(game)
    dealt = [tuple(map(int, hand)) for hand in hands(game.n_ranks, game.hand_size, game.copies)]
    for u, leader in enumerate(dealt):
        for v, dealer in enumerate(dealt):
            if weights[u, v]:
                ends += walk(State.deal(game, leader, dealer, score), weights[u, v] / weights.sum(), False, None)
    assert found.ends == pytest.approx(ends, abs=1e-9)
    assert (ends > 0.01) == rules.remainder
    for (match, turn, player), (made, refused) in counted.items():
        each = (found.for_match if match else found.for_less)[turn, player]
        assert (each.made, each.conceded) == pytest.approx((made, refused), abs=1e-9)
        assert each.bluffs <= each.made + 1e-12 <= each.chances + 2e-12
    everything = sum(each.made for table in (found.for_match, found.for_less) for each in table.values())
    assert everything == pytest.approx(sum(made for made, _ in counted.values()), abs=1e-9)


def test_deals_one_by_one() -> None:
    """What each deal is worth if both play a strategy, by the referee."""
    rules = Rules("deals", ("1", "2", "3"), "linear", 2, 2, (1, 2), "nobody")
    solver = Solver(Tree(rules))
    solver.step(30)
    strategy = Strategy.of(solver)
    joint, worth = deal_by_deal(strategy)
    assert worth.sum() == pytest.approx(strategy.evaluate().value, abs=1e-12)

    def play(state: State) -> float:
        if state.is_over:
            return state.returns[0]
        decision, held = strategy.at(state.line), state.held[state.to_play]
        (row,) = np.flatnonzero((decision.holdings == np.array(held, np.int8)).all(axis=1))
        shares = {a: float(decision.probabilities[row, decision.actions.index(a)]) for a in state.legal_actions()}
        return sum(share * play(state.apply(action)) for action, share in shares.items())

    dealt = [tuple(map(int, hand)) for hand in hands(3, 2, 2)]
    for u, leader in enumerate(dealt):
        for v, dealer in enumerate(dealt):
            if joint[u, v]:
                assert worth[u, v] / joint[u, v] == pytest.approx(play(State.deal(rules, leader, dealer)), abs=1e-12)
    assert joint.sum() == pytest.approx(1)


def test_unravelling() -> None:
    """The first rounds by plain loops, and that no redeal is good for both."""
    solver = Solver(Tree(preset("mini")))
    solver.step(200)
    strategy = Strategy.of(solver)
    joint, worth = deal_by_deal(strategy)
    found, every = unravel(strategy), range(len(joint))
    assert found.value == pytest.approx(strategy.evaluate().value, abs=1e-12)
    poor = [u for u in every if worth[u].sum() < found.value * joint[u].sum()]
    assert found.below[0] == pytest.approx(sum(joint[u].sum() for u in poor))
    assert found.rounds[0].proposes == pytest.approx(found.below[0])
    agrees = [v for v in every if sum(worth[u, v] - found.value * joint[u, v] for u in poor) > 0]
    assert found.rounds[0].agrees == pytest.approx(sum(joint[:, v].sum() for v in agrees))
    both = sum(joint[u, v] for u in poor for v in agrees)
    assert found.rounds[0].agreed == pytest.approx(both)
    gain = sum(found.value * joint[u, v] - worth[u, v] for u in poor for v in agrees) / both
    assert found.rounds[0].gain == pytest.approx(gain)
    assert all(each.gain is None or each.gain < 0 for each in found.rounds)
    assert found.rounds[-1].agreed < found.rounds[0].agreed


def test_insights(store: Store, insights: tuple[Path, Any], points: Path) -> None:
    folder, found = insights
    manifest = json.loads((folder / "insights" / "manifest.json").read_text())
    for name, wanted in manifest["sha256"].items():
        assert hashlib.sha256((folder / "insights" / name).read_bytes()).hexdigest() == wanted
    assert {path.name for path in (folder / "insights").iterdir()} - {"manifest.json"} == (
        manifest["sha256"].keys() - {"../insights.md"}
    )
    assert manifest["strategy"] == hashlib.sha256(points.read_bytes()).hexdigest()
    text = (folder / "insights.md").read_text()
    for word in ("nan", "None"):
        assert word not in text
    deal = rows(folder / "insights" / "deal.csv")
    assert [row["betting"] for row in deal] == ["yes", "no", "yes", "no"]
    for row in deal:
        assert float(row["lower"]) <= float(row["value"]) <= float(row["upper"])
    start = store.known[0, 0]
    assert float(deal[2]["value"]) == pytest.approx(1 - start.value)
    strategy = load_strategy(points)[0].evaluate()
    assert float(deal[0]["value"]) == pytest.approx(-strategy.value)
    assert f"| {found.rules.name} | {-strategy.value:.4f} |" in text
    equity = rows(folder / "insights" / "equity.csv")
    assert len(equity) == 16
    for row in equity:
        score = int(row["leader"]), int(row["dealer"])
        assert float(row["with_value"]) == pytest.approx(store.known[score].value, abs=1e-9)
        assert found.gain(score) == pytest.approx(float(row["with_value"]) - float(row["without_value"]), abs=1e-9)
    assert 0 < found.doubt < 3 * ACCURACY


def test_insights_of_the_remainder(store: Store, insights: tuple[Path, Any]) -> None:
    folder, found = insights
    if not store.rules.remainder:
        assert not found.called
        return
    assert not found.without.rules.remainder
    text = (folder / "insights.md").read_text()
    calls_ = rows(folder / "insights" / "calls.csv")
    for score, each in found.called.items():
        row = next(line for line in text.splitlines() if line.startswith(f"| {score[0]}-{score[1]} |"))
        assert row.split(" | ")[1] == f"{100 * each.total(0, True).made:.1f} %"
        total = sum(
            float(row["made"]) for row in calls_
            if (int(row["leader"]), int(row["dealer"])) == score and row["for"] == "match" and row["who"] == "dealer"
        )  # fmt: skip
        assert total == pytest.approx(each.total(1, True).made, abs=1e-7)
    # A level score is worth the same to whoever leads, with or without: so is the difference in sign and size small.
    assert abs(found.gain((0, 0))) < max(abs(found.gain((0, 3))), abs(found.gain((3, 0))))


def test_insights_of_the_redeal(store: Store, insights: tuple[Path, Any]) -> None:
    folder, found = insights
    if not store.rules.redeal:
        assert found.redeal is None
        return
    assert len(found.small) == 2
    for each in found.small:
        assert abs(each.value - each.without) <= each.error
        assert each.agrees > -each.error
        assert each.proposes > -each.error
        assert each.redeals < 0.05
    assert max(each.agrees for each in found.small) > 0.05
    hands_ = rows(folder / "insights" / "hands.csv")
    weights = deal_weights(store.rules).sum(axis=1)
    mean = sum(float(row["leader"]) * weight for row, weight in zip(hands_, weights, strict=True)) / weights.sum()
    assert mean == pytest.approx(found.points.value, abs=1e-6)


def test_insights_of_declining(store: Store, insights: tuple[Path, Any]) -> None:
    folder, found = insights
    if not store.rules.decision_before_target:
        assert not found.declining
        assert found.card is None
        return
    less, more = found.card
    assert more.best_response == pytest.approx(less.best_response, abs=1e-12)
    table = rows(folder / "insights" / "declining.csv")
    assert len(table) == len(found.declining[3, 0].plays)
    for score, each in found.declining.items():
        decision = store.strategy(score).at(())
        for h, row in enumerate(table):
            assert row["hand"] == format_hand(store.rules, map(int, decision.holdings[h]))
            wanted = decision.probabilities[h, decision.actions.index(PLAY)]
            assert float(row[f"{score[0]}-{score[1]} plays"]) == pytest.approx(wanted, abs=6e-5)
        assert decision.player == each.side
        declines = sum(float(row["dealt"]) * (1 - p) for row, p in zip(table, each.plays, strict=True))
        assert each.declines == pytest.approx(declines, abs=1e-6)
        assert decision.actions.index(DECLINE) == 1
        weakest = each.edge(True)
        assert weakest is not None
        assert each.win[weakest] == min(w for w, p in zip(each.win, each.plays, strict=True) if p >= 0.5)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_insights(name: str) -> None:
    folder = ROOT / "results" / name / "insights"
    manifest = json.loads((folder / "manifest.json").read_text())
    for file, wanted in manifest["sha256"].items():
        assert hashlib.sha256((folder / file).read_bytes()).hexdigest() == wanted, file
    assert manifest["rules_hash"] == preset(name).hash
    points, match = ROOT / "results" / name / "points", ROOT / "results" / name / "match"
    assert manifest["strategy"] == hashlib.sha256((points / "strategy.safetensors").read_bytes()).hexdigest()
    assert manifest["match"] == json.loads((match / "manifest.json").read_text())["match"]
    deal = rows(folder / "deal.csv")
    assert {row["variant"] for row in deal} == {"le-truc", "french", "catalan"}
    for variant in ("le-truc", "french", "catalan"):
        stated = json.loads((ROOT / "results" / variant / "points" / "manifest.json").read_text())
        own = [row for row in deal if row["variant"] == variant]
        assert float(own[0]["value"]) == pytest.approx(-stated["value"], abs=1e-8)
        table = read_table(ROOT / "results" / variant / "match" / "equity.json", preset(variant))
        assert float(own[2]["value"]) == pytest.approx(1 - table[0, 0].value, abs=1e-8)
    text = (folder.parent / "insights.md").read_text()
    assert f"{-json.loads((points / 'manifest.json').read_text())['value']:.4f}" in text


def test_published_calls_are_those_of_the_page() -> None:
    """The table of who calls for the match, from the one by turn."""
    folder = ROOT / "results" / "french"
    text, table = (folder / "insights.md").read_text(), rows(folder / "insights" / "calls.csv")
    sums: defaultdict[tuple[str, str], float] = defaultdict(float)
    for row in table:
        if row["for"] == "match":
            sums[f"{row['leader']}-{row['dealer']}", row["who"]] += float(row["made"])
    lines = [line.split(" | ") for line in text.splitlines() if line.startswith("| ") and line.count("|") == 11]
    shown = {cells[0].strip("| "): cells for cells in lines if "-" in cells[0] and cells[0] != "| ---"}
    scores_ = {score for score, _ in sums}
    assert scores_ <= shown.keys()
    for (score, who), made in sums.items():
        assert shown[score][1 if who == "leader" else 5] == f"{100 * made:.1f} %"


def test_published_declining_is_that_of_the_page() -> None:
    """The table by the other's points, from that of all hands and from the match's."""
    folder = ROOT / "results" / "catalan"
    text, table = (folder / "insights.md").read_text(), rows(folder / "insights" / "declining.csv")
    part = text[text.index("## Play or decline") : text.index("*Weakest")]
    shown = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")][2:]
    decided = {(r["leader"], r["dealer"]): r for r in rows(folder / "match" / "decisions.csv")}
    assert [cells[0] for cells in shown] == [str(points) for points in range(11)]
    for cells in shown:
        for score, at in ((("11", cells[0]), 1), ((cells[0], "11"), 5)):
            declines = sum(float(r["dealt"]) * (1 - float(r[f"{'-'.join(score)} plays"])) for r in table)
            assert float(cells[at].split()[0]) == pytest.approx(100 * declines, abs=0.06)
            assert 1 - declines == pytest.approx(float(decided[score]["plays"]), abs=1e-4)
            weakest = cells[at + 1].split(" (")[0]
            (row,) = (r for r in table if r["hand"] == weakest)
            assert float(row[f"{'-'.join(score)} plays"]) >= 0.5


@pytest.mark.parametrize("name", PUBLISHED)
def test_no_betting_by_plain_arithmetic(name: str) -> None:
    """The match without betting: where a hand always has a winner, his chance is the same at every score."""
    deal = {
        (row["variant"], row["unit"], row["betting"]): row
        for row in rows(ROOT / "results" / name / "insights" / "deal.csv")
    }
    points = float(deal["catalan", "points per hand", "no"]["value"])
    p = (1 - points) / 2  # the leader's chance to win a hand that is never spoiled

    row = deal["catalan", "match-winning probability", "no"]
    assert float(row["lower"]) - 1e-4 <= chances(p) <= float(row["upper"]) + 1e-4


def chances(p: float, target: int = 12) -> float:
    """The first dealer's chance to win the match if the leader wins each hand with p, hands one point each."""
    table: dict[tuple[int, int, bool], float] = {}
    for mine in range(target, -1, -1):
        for others in range(target, -1, -1):
            for dealing in (True, False):
                if mine == target or others == target:
                    table[mine, others, dealing] = float(mine == target)
                    continue
                win = 1 - p if dealing else p
                table[mine, others, dealing] = (
                    win * table[mine + 1, others, not dealing] + (1 - win) * table[mine, others + 1, not dealing]
                )
    return table[0, 0, True]
