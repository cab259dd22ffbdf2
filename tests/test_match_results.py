"""The results of a match: take points, the deal, best of three, the book, the scripts on a small match, the plan."""

from __future__ import annotations

import csv
import hashlib
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from games.rules import RAISE, Rules, preset
from solver.book import Book, blank, hand_lines, page
from solver.cfr import DEFAULT_ALGORITHM, Solver
from solver.equity import Score, Worth, hand_rules, scores
from solver.lift import lifted
from solver.match import evaluate_match
from solver.match_run import Store, open_store, solve_match, task
from solver.scores import read_table, table_document
from solver.storage import StorageError
from solver.strategy import LineError, Strategy
from solver.takepoint import best_of, best_of_matches, deal_worth, equity_rounding, take_point, threshold
from solver.tree import Tree

ROOT = Path(__file__).resolve().parent.parent
PUBLISHED = ROOT / "results" / "le-truc" / "match"
RULES = Rules("small-match", ("A", "2", "3"), "circular", 4, 3, (1, 2, 4), "nobody", target=4)
ACCURACY = 1e-3

sys.path.append(str(ROOT / "scripts"))  # where the scripts find each other

from match_plan import CORES, critical_path, graph, schedule, simulate  # noqa: E402
from match_study import RARE, Reader, study  # noqa: E402


class Here:
    """Workers that are this process (see `solver.match_run.Workers`)."""

    count = 1

    def __init__(self) -> None:
        self.done: list[Any] = []

    def start(self, arguments: tuple[Any, ...]) -> int:
        self.done.append(task(*arguments))
        return len(self.done) - 1

    def finished(self, handles: Iterable[int]) -> list[tuple[int, Any]]:
        return [(handle, self.done[handle]) for handle in handles]

    def close(self) -> None:
        pass


def run(script: str, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"}
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / script), *options],
        env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("match")
    assert solve_match(Store(folder, RULES, ACCURACY, DEFAULT_ALGORITHM, {}), Here())
    return open_store(folder)


@pytest.fixture(scope="module")
def results(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    done = run("match_results.py", str(store.folder), "--folder", str(folder), "--workers", "1")
    assert done.returncode == 0, done.stderr
    return folder


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as table:
        return list(csv.DictReader(table))


def test_equity_table(store: Store, results: Path) -> None:
    """The document of `table_document`, which reads back, and the same numbers in the table, bounds outwards."""
    rounding = equity_rounding(RULES)
    assert 0 < rounding < 1e-10
    document = json.loads((results / "equity.json").read_text())
    assert document == table_document(RULES, store.known, rounding)
    for score, worth in read_table(results / "equity.json", RULES).items():
        assert worth.value == store.known[score].value
    table = rows(results / "equity.csv")
    assert len(table) == 16
    for row in table:
        worth = store.known[int(row["leader"]), int(row["dealer"])]
        assert float(row["value"]) == pytest.approx(worth.value, abs=1e-9)
        assert float(row["lower"]) <= worth.lower - rounding
        assert worth.upper + rounding <= float(row["upper"])
        assert float(row["upper"]) - float(row["lower"]) < 2.5 * ACCURACY


def test_rounding_is_more_than_there_is(store: Store) -> None:
    """The same strategies in the whole hand's tree are summed in another order: other last bits, the same numbers."""
    known = evaluate_match(RULES, lambda score: lifted(store.strategy(score), RULES))
    off = max(abs(x - y) for score in known for x, y in zip(known[score], store.known[score], strict=True))
    assert off < equity_rounding(RULES)


def test_rounding_holds_for_the_published_game() -> None:
    assert 1e-13 < equity_rounding(preset("le-truc")) < 1e-9


def value(known: dict[Score, Worth], person: int, points: tuple[int, int], dealer: int) -> float:
    """The chance of a person to win the match, points by person."""
    if max(points) >= RULES.target:
        return float(points[person] >= RULES.target)
    leads = known[points[1 - dealer], points[dealer]].value
    return leads if person != dealer else 1 - leads


def test_take_points_by_hand(store: Store, results: Path) -> None:
    """With persons' points and the table, for every score, side and raise."""
    known, table = store.known, rows(results / "takepoints.csv")
    assert len(table) == 16 * 2 * 2
    document = json.loads((results / "takepoints.json").read_text())["take_points"]
    for row in table:
        a, b, s, t = (int(row[name]) for name in ("leader", "dealer", "stake", "raised"))
        me = ("leader", "dealer").index(row["answerer"])
        # Person 0 leads this hand, so person 0 deals the next.
        gains = {"refuse": (s, 1 - me), "lose": (t, 1 - me), "win": (t, me)}
        values = {}
        for name, (stake, winner) in gains.items():
            points = (a + stake, b) if winner == 0 else (a, b + stake)
            values[name] = value(known, me, points, 0)
        wanted = (values["refuse"] - values["lose"]) / (values["win"] - values["lose"])
        assert float(row["take_point"]) == pytest.approx(wanted, rel=1e-5, abs=1e-12)
        assert document[f"{a}-{b}"][row["answerer"]][f"{s}-{t}"] == pytest.approx(wanted, abs=1e-12)
        assert 0 <= wanted <= 1


def test_take_points_of_extreme_scores(store: Store) -> None:
    for level in range(2):
        assert take_point(RULES, (3, 3), 0, level, store.known) == 0  # refusing loses the match
    nothing = dict.fromkeys(scores(RULES), Worth(0.5, 0.5, 0.5))
    assert take_point(RULES, (0, 0), 0, 0, nothing) is None  # nothing depends on the hand


def test_points_played_for_money() -> None:
    """Far from the target, with a value that is linear in the points, it is the one of a hand played for points."""
    far = Rules("far", ("A", "2", "3"), "circular", 4, 3, (1, 2, 4), "nobody", target=50)
    linear = {}
    for a, b in scores(far):
        share = 0.5 + (a - b) / 200
        linear[a, b] = Worth(share, share, 1 - share)
    for level, wanted in enumerate((1 / 4, 2 / 8)):
        for side in range(2):
            assert take_point(far, (20, 20), side, level, linear) == pytest.approx(wanted)


def test_deal(store: Store, results: Path) -> None:
    """The same person at the same points, dealing and leading; the same for both."""
    table = rows(results / "deal.csv")
    assert len(table) == 16
    for row in table:
        p, q = int(row["points"]), int(row["others"])
        dealing, leading = value(store.known, 0, (p, q), 0), value(store.known, 0, (p, q), 1)
        assert float(row["value"]) == pytest.approx(dealing - leading, abs=1e-9)
        assert float(row["lower"]) <= dealing - leading <= float(row["upper"])
        assert deal_worth(store.known, p, q) == pytest.approx(deal_worth(store.known, q, p), abs=1e-15)


def test_best_of_three(store: Store, results: Path) -> None:
    """By listing the eight ways that three matches can end."""
    for dealing, leading in ((0.6, 0.4), (0.53, 0.48), (1.0, 0.0), (0.25, 0.75)):
        total = 0.0
        for wins in itertools.product((True, False), repeat=3):
            if sum(wins) >= 2:
                chance = 1.0
                for match, won in enumerate(wins):
                    mine = dealing if match in (0, 2) else leading
                    chance *= mine if won else 1 - mine
                total += chance
        assert best_of(3, dealing, leading) == pytest.approx(total, abs=1e-15)
        assert best_of(1, dealing, leading) == dealing
    document = json.loads((results / "best-of-three.json").read_text())
    start, stated = store.known[0, 0], document["first_dealer"]
    d = 1 - start.value
    assert stated["value"] == pytest.approx(d * (1 - d) + d**3 + d * (1 - d) ** 2, abs=1e-12)
    assert stated["lower"] < stated["value"] < stated["upper"]
    assert stated["lower"] == pytest.approx(best_of(3, 1 - start.upper, start.lower), abs=1e-9)
    assert document["first_leader"]["value"] + stated["value"] == pytest.approx(1)
    exact = best_of_matches(3, Worth(0.4, 0.4, 0.6))
    assert exact.lower == exact.value == exact.upper


def test_threshold() -> None:
    win = np.array([0.1, 0.2, 0.3, 0.4, 0.9])
    share = np.array([0.2, 0.2, 0.2, 0.2, 0.2])
    found = threshold(win, np.array([0.0, 0.0, 1.0, 1.0, 1.0]), share)
    assert found == pytest.approx((0.25, 0.6, 0.0))
    found = threshold(win, np.array([0.0, 0.4, 0.0, 1.0, 1.0]), share)
    assert found == pytest.approx((0.35, 0.48, 0.08))
    assert threshold(win, np.ones(5), share).win is None
    assert threshold(win, np.zeros(5), share) == pytest.approx((None, 0.0, 0.0))
    # A holding that is not in the range counts nothing, and no cut divides equal chances.
    assert threshold(win, np.array([1.0, 0, 0, 1, 1]), np.array([0, 0.25, 0.25, 0.25, 0.25])).win == pytest.approx(0.35)
    found = threshold(np.array([0.2, 0.2, 0.6]), np.array([0.0, 1.0, 1.0]), np.array([0.4, 0.2, 0.4]))
    assert found == pytest.approx((0.4, 0.6, 0.2))


def test_book_is_the_strategies(store: Store, results: Path) -> None:
    book = Book.load(results / "book.safetensors")
    assert book.rules == RULES
    assert book.rounding <= 1 / 65535
    assert len(book.lines((0, 0))) == 2 + 2 * RULES.n_ranks
    for score in scores(RULES):
        strategy = lifted(store.strategy(score), RULES)
        for line in book.lines(score):
            found, wanted = book.decision(score, line), strategy.at(line)
            assert (found.player, found.actions) == (wanted.player, wanted.actions)
            np.testing.assert_array_equal(found.holdings, wanted.holdings)
            np.testing.assert_array_equal(found.legal, wanted.legal)
            np.testing.assert_allclose(found.probabilities, wanted.probabilities, atol=book.rounding + 1e-15, rtol=0)
            np.testing.assert_allclose(found.probabilities.sum(axis=1), 1, atol=1e-15)
            assert not found.probabilities[~found.legal].any()
            assert all(0 <= share <= 1 for share in book.presence(score, line))
        assert book.presence(score, ()) == (1, 1)
    with pytest.raises(LineError, match="is not in it"):
        book.decision((0, 0), ("A", "A"))
    with pytest.raises(LineError, match="no hand is played at 4-0"):
        book.decision((4, 0), ())


@pytest.mark.parametrize("name", ["tiny", "mini", "two-card", "le-truc", "one-card", "no-raises"])
def test_book_of_other_rules(name: str) -> None:
    """The book knows the decisions without a tree, and rounds probabilities that are not in its steps."""
    own = {
        "one-card": Rules("one-card", ("A", "2", "3", "4"), "circular", 2, 1, (1, 2, 4), "dealer"),
        "no-raises": Rules("no-raises", ("A", "2", "3", "4"), "linear", 2, 2, (1,), "leader"),
    }
    rules = own.get(name) or preset(name)
    solver = Solver(Tree(rules))
    solver.step(7)
    strategy = Strategy.of(solver)
    for line in hand_lines(rules):
        found, wanted = blank(rules, line), strategy.at(line)
        assert (found.player, found.actions) == (wanted.player, wanted.actions)
        np.testing.assert_array_equal(found.holdings, wanted.holdings)
        np.testing.assert_array_equal(found.legal, wanted.legal)
    made = page(strategy)
    assert 0 < made.rounding <= 1 / 65535


def test_damaged_books(results: Path, tmp_path: Path) -> None:
    content = (results / "book.safetensors").read_bytes()
    for i, bad in enumerate(
        (b"", b"nonsense", content[:-1], content[:-1] + b"!", content.replace(b"A raise", b"A fold!"))
    ):
        file = tmp_path / f"{i}.safetensors"
        file.write_bytes(bad)
        with pytest.raises(StorageError):
            Book.load(file)
    with pytest.raises(StorageError):
        Book.load(tmp_path / "nowhere")
    tensors = {name: tensor.copy() for name, tensor in load_tensors(content).items()}
    book = Book.load(results / "book.safetensors")
    tensors["numbers"][:] = 65535
    with pytest.raises(StorageError, match="add up to more than 1"):
        Book(book.rules, tensors["numbers"], tensors["presence"], book.header).decision((0, 0), ())
    with pytest.raises(StorageError, match="its numbers are"):
        Book(book.rules, tensors["numbers"][1:], tensors["presence"], book.header)
    with pytest.raises(StorageError, match="its presence is"):
        Book(book.rules, tensors["numbers"], tensors["presence"][1:], book.header)
    with pytest.raises(StorageError, match="no probabilities"):
        Book(book.rules, tensors["numbers"], tensors["presence"] - 2, book.header)
    assert save_tensors(tensors) != content


def test_first_decisions(store: Store, results: Path) -> None:
    """Rates and takings against the advice and the strategies, hand by hand."""
    table = {(int(row["leader"]), int(row["dealer"])): row for row in rows(results / "openings.csv")}
    first = rows(results / "takepoints-first.csv")
    assert len(table) == 16
    matter = [score for score in scores(RULES) if len(hand_rules(RULES, score).ladder) > 1]
    assert len(first) == len(matter) * (1 + RULES.n_ranks)
    assert table[3, 3]["leader_raises"] == table[3, 3]["dealer_raises"] == "0"
    assert table[1, 3]["dealer_raises"] == ""  # the leader always raises first
    compared = 0
    for score in ((0, 0), (2, 1), (1, 3), (3, 2)):
        adviser = Reader(lifted(store.strategy(score), RULES), ACCURACY)
        opening = adviser.at(())
        raised = float(opening.share @ opening.probabilities[:, 0])
        assert float(table[score]["leader_raises"]) == pytest.approx(raised, rel=1e-5, abs=1e-12)
        made = bluffs = accepted = there = 0.0
        for r, rank in enumerate(RULES.ranks):
            lead = float(opening.share @ opening.probabilities[:, 1 + r])
            assert float(table[score][f"lead {rank}"]) == pytest.approx(lead, rel=1e-5)
            answer, reply = adviser.at((rank,)), adviser.at((rank, RAISE))
            there += lead
            weight = answer.share * answer.probabilities[:, 0]
            made += lead * float(weight.sum())
            accepted += lead * float(weight.sum()) * float(reply.share @ reply.probabilities[:, 0])
            won = 1 - adviser.strategy.payoffs.win1[0]
            for h in np.flatnonzero(weight > 1e-9):
                refusal = answer.refusal[h]
                called = (answer.ev[h, 0] - refusal * won) / (1 - refusal) if refusal < 1 - 1e-9 else None
                card = np.nanmax(answer.ev[h, 1:])
                if called is None:
                    bluffs += lead * weight[h] * (answer.win[h, 0] < 0.5)
                else:
                    bluffs += lead * weight[h] * (called < card - 1e-9)
            (row,) = (
                row for row in first
                if (int(row["leader"]), int(row["dealer"])) == score and row["line"] == f"{rank} {RAISE}"
            )  # fmt: skip
            assert float(row["made"]) == pytest.approx(lead * float(weight.sum()), rel=1e-5, abs=1e-12)
            assert row["answerer"] == "leader"
            if row["threshold"]:
                compared += 1
                cut, yes = float(row["threshold"]), reply.probabilities[:, 0]
                wrong = np.where(np.nan_to_num(reply.win[:, 0]) < cut, yes, 1 - yes)
                assert float(row["misplaced"]) == pytest.approx(float(reply.share @ wrong), abs=1e-5)
        if there >= 0.01:
            assert float(table[score]["dealer_raises"]) == pytest.approx(made / there, rel=1e-5, abs=1e-12)
        assert bool(table[score]["dealer_bluffs"]) == (made >= RARE)
        if made >= RARE:
            assert float(table[score]["dealer_bluffs"]) == pytest.approx(bluffs / made, rel=1e-4)
            assert float(table[score]["dealer_accepted"]) == pytest.approx(accepted / made, rel=1e-4)
    assert compared > 0


@pytest.mark.slow
def test_same_bytes_again(store: Store, results: Path, tmp_path: Path) -> None:
    """On two processes too; and the manifest is about these files."""
    done = run("match_results.py", str(store.folder), "--folder", str(tmp_path), "--workers", "2")
    assert done.returncode == 0, done.stderr
    written = sorted(path.name for path in results.iterdir())
    assert sorted(path.name for path in tmp_path.iterdir()) == written
    for name in written:
        assert (tmp_path / name).read_bytes() == (results / name).read_bytes(), name
        if name.endswith((".md", ".json", ".csv")):
            assert str(store.folder.parent) not in (results / name).read_text()
    manifest = json.loads((results / "manifest.json").read_text())
    assert set(manifest["sha256"]) == set(written) - {"manifest.json"}
    for name, wanted in manifest["sha256"].items():
        assert hashlib.sha256((results / name).read_bytes()).hexdigest() == wanted
    assert manifest["strategies"]["0-0"] == store.entries[0, 0]["checksum"]
    text = (results / "match.md").read_text()
    assert f"**Who deals first wins {100 - 100 * store.known[0, 0].value:.2f} % of matches**" in text
    for line in text.splitlines():
        if line.startswith("!["):
            assert (results / line.split("(")[1].rstrip(")")).is_file()


def test_study_does_not_change_the_store(store: Store) -> None:
    before = {path.name: path.read_bytes() for path in store.folder.iterdir()}
    study(store.folder, (0, 0))
    assert {path.name: path.read_bytes() for path in store.folder.iterdir()} == before


def test_scripts_refuse(store: Store, tmp_path: Path) -> None:
    for script in ("match_results.py", "match_plan.py"):
        done = run(script, str(tmp_path / "nowhere"), "--folder", str(tmp_path / "out"))
        assert done.returncode == 1
        assert "Traceback" not in done.stderr
        assert run(script, str(store.folder)).returncode == 2  # would replace the published results
        part = Store(tmp_path / script, RULES, ACCURACY, DEFAULT_ALGORITHM, {})
        part.folder.mkdir()
        part.save()
        done = run(script, str(part.folder), "--folder", str(tmp_path / "out"))
        assert done.returncode == 1
        assert "not complete" in done.stderr
    assert not (tmp_path / "out").exists()


# A toy: a diamond with a tail, and one task by itself.
WAITS: dict[Score, set[Score]] = {
    (3, 3): set(), (2, 3): {(3, 3)}, (2, 2): {(3, 3)}, (1, 2): {(2, 3), (2, 2)}, (0, 1): {(1, 2)}, (0, 0): set(),
}  # fmt: skip
SECONDS = {(3, 3): 1.0, (2, 3): 5.0, (2, 2): 2.0, (1, 2): 3.0, (0, 1): 1.0, (0, 0): 4.0}


def test_schedule_of_a_toy() -> None:
    assert critical_path(SECONDS, WAITS) == [(3, 3), (2, 3), (1, 2), (0, 1)]
    assert simulate(SECONDS, WAITS, 1) == (16.0, 1)
    assert simulate(SECONDS, WAITS, 6) == (10.0, 3)
    # Two cores: 3-3 and 0-0 (to 4); 2-3 at 1 (to 6), 2-2 at 4 (to 6); then the tail.
    assert simulate(SECONDS, WAITS, 2) == (10.0, 2)
    found = schedule(SECONDS, WAITS, 4, 2, 1.6)
    assert found == pytest.approx((4, 2, 10 / 1.6, 16 / 10 * 1.6, 16 / 10 * 1.6 / 4, 2))


def test_graph_is_that_of_the_scores() -> None:
    """Every pair waits for pairs with more points, and only for those that a hand leads to."""
    waits = graph(preset("le-truc"))
    assert len(waits) == 78
    assert waits[11, 11] == set()
    assert waits[10, 11] == {(11, 11)}
    assert (0, 6) in waits[0, 0]
    assert (0, 1) in waits[0, 0]
    done: set[Score] = set()
    for task_, after in waits.items():  # the order in which they are solved is one that they allow
        assert after <= done
        done.add(task_)


def test_plan(store: Store, tmp_path: Path) -> None:
    """Measured once, read back, and the bounds that every schedule has."""
    times = tmp_path / "times.json"
    done = run("match_plan.py", str(store.folder), "--folder", str(tmp_path), "--times", str(times))
    assert done.returncode == 0, done.stderr
    assert "10 of 10 pairs came out as stored" in done.stdout
    found = json.loads((tmp_path / "plan.json").read_text())
    assert found["seconds"] == json.loads(times.read_text())["seconds"]
    assert found["tasks"] == len(found["seconds"]) == 10
    total, longest = found["core_seconds"], found["critical_path_seconds"]
    assert total == pytest.approx(sum(found["seconds"].values()), abs=0.02)
    assert longest == pytest.approx(sum(found["seconds"][score] for score in found["critical_path"]), abs=0.02)
    for each in found["schedules"]:
        faster = 1.8 if each["threads"] == 2 else 1.0
        assert max(longest, total * each["threads"] / each["cores"]) / faster <= each["seconds"] + 0.02
    single = {each["cores"]: each["seconds"] for each in found["schedules"] if each["threads"] == 1}
    assert single[1] == pytest.approx(total, abs=0.02)
    assert single[max(CORES)] == pytest.approx(longest, abs=0.02)
    first = (tmp_path / "plan.json").read_bytes(), (tmp_path / "plan.md").read_bytes()
    again = run("match_plan.py", str(store.folder), "--folder", str(tmp_path), "--times", str(tmp_path / "plan.json"))
    assert again.returncode == 0, again.stderr
    assert "0 of 0 pairs" in again.stdout
    second = (tmp_path / "plan.json").read_bytes(), (tmp_path / "plan.md").read_bytes()
    assert json.loads(second[0])["seconds"] == json.loads(first[0])["seconds"]
    times.write_text('{"seconds": {"9-9": 1}}')
    bad = run("match_plan.py", str(store.folder), "--folder", str(tmp_path), "--times", str(times))
    assert bad.returncode == 1
    assert "no times of this match" in bad.stderr


@pytest.mark.skipif(not (PUBLISHED / "manifest.json").is_file(), reason="the match is not published yet")
def test_published_files_are_those_of_the_manifest() -> None:
    manifest = json.loads((PUBLISHED / "manifest.json").read_text())
    for name, wanted in manifest["sha256"].items():
        assert hashlib.sha256((PUBLISHED / name).read_bytes()).hexdigest() == wanted, name
    rules = preset("le-truc")
    assert manifest["rules_hash"] == rules.hash
    book = Book.load(PUBLISHED / "book.safetensors")
    assert book.rules == rules
    assert (PUBLISHED / "book.safetensors").stat().st_size < 3_000_000
    assert len(read_table(PUBLISHED / "equity.json", rules)) == 144
    assert manifest["value_interval"][0] < manifest["value"] < manifest["value_interval"][1]
