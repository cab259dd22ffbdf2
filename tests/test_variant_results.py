"""Results of games with a remainder or a decision before the target: take points, the book, the scripts, the redeal."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from click.testing import CliRunner

from games.cards import deal_weights
from games.rules import ACCEPT, PLAY, RAISE, REMAINDER, Rules, preset
from games.state import State
from solver.advise import ON_PATH, Adviser
from solver.book import Book, blank, lines, page, write_book
from solver.cfr import DEFAULT_ALGORITHM, Solver
from solver.cli import main as truc
from solver.equity import Score, Worth, decider, hand_tree, payoffs, scores, whole_rules
from solver.essential import essential
from solver.lift import lifted
from solver.match_run import Store, open_store, solve_match
from solver.scores import hand_payoffs, read_table
from solver.strategy import Strategy
from solver.takepoint import calls, play_point, take_point
from solver.tree import Tree
from tests.test_match_results import Here, rows, value

ROOT = Path(__file__).resolve().parent.parent
FRENCH = Rules(
    "small-french", ("A", "8", "7"), "linear", 4, 2, (1, 2, 4), "nobody", target=4, remainder=True, fold=True,
    redeal=True,
)  # fmt: skip
CATALAN = Rules(
    "small-catalan", ("1", "2", "3"), "linear", 4, 2, (1, 2, 3), "leader", target=4, raise_when=("before", "after"),
    decision_before_target=True, one_card=True,
)  # fmt: skip
GAMES = {"french": FRENCH, "catalan": CATALAN}
ACCURACY = 1e-3

mpl.use("agg")
sys.path.append(str(ROOT / "scripts"))  # where the scripts find each other

import match_results  # noqa: E402
from match_study import Reader, conceded  # noqa: E402


def solved_match(name: str, folder: Path) -> Store:
    """The match of a small game."""
    assert solve_match(Store(folder, GAMES[name], ACCURACY, DEFAULT_ALGORITHM, {}), Here())
    return open_store(folder)


@pytest.fixture(scope="module", params=GAMES)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Store:
    return solved_match(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def results(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, patch = tmp_path_factory.mktemp("results"), pytest.MonkeyPatch()
    patch.setattr(match_results, "heat_maps", lambda path, *_: path.write_bytes(b""))  # they take most of the time
    match_results.publish(store, folder, 1, "python scripts/match_results.py small")
    patch.undo()
    return folder


# ------------------------------------------------------------------------------------------------------- the rules


def test_lines() -> None:
    """A remainder beside every raise; where a side decides, that comes first and nothing is called."""
    assert lines(FRENCH, (0, 0))[:3] == [(), (RAISE,), (REMAINDER,)]
    assert len(lines(FRENCH, (0, 0))) == 3 + 3 * 3
    assert lines(CATALAN, (0, 2))[:2] == [(), (RAISE,)]
    assert lines(CATALAN, (3, 0)) == [(), (PLAY,), *((PLAY, rank) for rank in CATALAN.ranks)]
    assert lines(CATALAN, (3, 3)) == [(), *((rank,) for rank in CATALAN.ranks)]
    assert lines(preset("le-truc"), (3, 11)) == lines(preset("le-truc"), (0, 0))


@pytest.mark.parametrize("rules", [*GAMES.values(), preset("french"), preset("catalan")], ids=lambda rules: rules.name)
def test_blank_decisions_are_the_referees(rules: Rules) -> None:
    """Who acts after each line of the book, and what he may do, by the referee of the whole rules."""
    t = rules.target
    for score in ((0, 0), (t - 1, 0), (0, t - 1), (t - 2, t - 1), (t - 1, t - 1)):
        game = whole_rules(rules, score)
        for line in lines(rules, score):
            found = blank(game, line, decider(rules, score))
            state = State.public(essential(rules, in_match=True), score).follow(line)
            assert found.player == state.to_play
            assert set(found.actions) == set(state.legal_actions())
            assert found.holdings.shape[1] == game.hand_size - sum(seat == found.player for seat, _ in state.played)
            assert (found.legal.sum(axis=1) >= 1).all()


def test_take_points_of_a_remainder(store: Store) -> None:
    """With persons' points and the table: refused the stake before, accepted the match."""
    rules, known = store.rules, store.known
    for score in scores(rules):
        found = list(calls(rules, score))
        for call in found:
            for me in range(2):
                a, b = score
                gains = {"refuse": (call.stake, 1 - me), "lose": (call.raised, 1 - me), "win": (call.raised, me)}
                values = {}
                for name, (stake, winner) in gains.items():
                    more = rules.target if stake is None else stake
                    values[name] = value(known, me, (a + more, b) if winner == 0 else (a, b + more), 0)
                wanted = (values["refuse"] - values["lose"]) / (values["win"] - values["lose"])
                assert take_point(rules, score, me, call.level, known, call.word) == pytest.approx(wanted, abs=1e-12)
        if rules.remainder:
            assert [call.to for call in found] == ["2", "match", "4", "match"]
            assert play_point(rules, score, known) is None
        elif 3 in score:
            assert found == []
            assert take_point(rules, score, 0, 0, known) is None
        else:
            assert [call.to for call in found] == ["2", "3"]


def test_remainder_that_costs_the_match() -> None:
    """If conceding a remainder loses the match, nobody ever has to think."""
    rules = replace(FRENCH, remainder_refused="match")
    known = dict.fromkeys(scores(rules), Worth(0.5, 0.5, 0.5))
    assert take_point(rules, (0, 0), 0, 0, known, REMAINDER) == 0
    assert take_point(FRENCH, (0, 0), 0, 0, known, REMAINDER) == 0.5


def test_play_point() -> None:
    """Declining gives a point; to win wins the match; by hand for both seats."""
    known = {}
    for a, b in scores(CATALAN):
        share = 0.5 + 0.1 * (a - b) + 0.01 * a
        known[a, b] = Worth(share, share, 1 - share)
    # At 3-0 the leader decides: declined 3 against 1, he deals; lost the other one has 3 as well.
    declined, lost = 1 - known[1, 3].value, 1 - known[3, 3].value
    assert play_point(CATALAN, (3, 0), known) == pytest.approx((declined - lost) / (1 - lost))
    # At 0-3 the dealer decides, and leads the next hand.
    declined, lost = known[3, 1].value, known[3, 3].value
    assert play_point(CATALAN, (0, 3), known) == pytest.approx((declined - lost) / (1 - lost))
    assert play_point(CATALAN, (3, 3), known) is None
    assert play_point(CATALAN, (2, 2), known) is None


# --------------------------------------------------------------------------------------------------- match results


def whole(store: Store, score: Score) -> Strategy:
    """A score's strategy in the whole hand's tree."""
    return lifted(store.strategy(score), whole_rules(store.rules, score))


def test_book_is_the_strategies(store: Store, results: Path) -> None:
    book, rules = Book.load(results / "book.safetensors"), store.rules
    assert book.rules == rules
    assert book.rounding <= 1 / 65535
    for score in scores(rules):
        strategy = whole(store, score)
        for line in book.lines(score):
            found, wanted = book.decision(score, line), strategy.at(line)
            assert (found.player, found.actions) == (wanted.player, wanted.actions)
            np.testing.assert_array_equal(found.holdings, wanted.holdings)
            np.testing.assert_array_equal(found.legal, wanted.legal)
            np.testing.assert_allclose(found.probabilities, wanted.probabilities, atol=book.rounding + 1e-15, rtol=0)
            assert all(0 <= share <= 1 for share in book.presence(score, line))
        assert book.presence(score, ()) == (1, 1)
        if decider(rules, score) is not None:
            first = book.decision(score, ())
            adviser = Adviser(strategy)
            plays = adviser.at(()).share @ first.probabilities[:, first.actions.index(PLAY)]
            assert book.presence(score, (PLAY,))[first.player] == pytest.approx(plays, abs=1e-5)


def test_book_rounds() -> None:
    """Of strategies that are not in its steps, in both kinds of trees."""
    for rules, score in ((FRENCH, (0, 0)), (CATALAN, (3, 1)), (CATALAN, (1, 3)), (CATALAN, (0, 0))):
        game = whole_rules(rules, score)
        tree = Tree(game, decider=decider(rules, score))
        pay = payoffs(rules, game.ladder, score, lambda after: 0.5 + 0.1 * (after[1] - after[0]))
        solver = Solver(tree, pay)
        solver.step(5)
        assert 0 < page(Strategy.of(solver)).rounding <= 1 / 65535


def test_book_of_another_length(store: Store, results: Path, tmp_path: Path) -> None:
    book = Book.load(results / "book.safetensors")
    short = write_book(
        tmp_path / "book", store.rules, lambda score: page(whole(store, score)), ACCURACY, "the same"
    )  # fmt: skip
    again = Book.load(tmp_path / "book")
    assert again.header.match == "the same"
    assert short == again.header.checksum
    assert again.header.lines == book.header.lines


def test_openings(store: Store, results: Path) -> None:
    """Rates of the first calls, hand by hand."""
    rules = store.rules
    table = {(int(row["leader"]), int(row["dealer"])): row for row in rows(results / "openings.csv")}
    assert len(table) == 16
    compared = agreed = 0
    for score in scores(rules):
        adviser = Reader(whole(store, score), ACCURACY)
        begin = () if decider(rules, score) is None else (PLAY,)
        first = adviser.at(begin)
        for r, rank in enumerate(rules.ranks):
            lead = first.share @ first.probabilities[:, first.actions.index(rank)]
            assert float(table[score][f"lead {rules.ranks[r]}"]) == pytest.approx(lead, rel=1e-5, abs=1e-12)
        if not list(calls(rules, score)):
            assert table[score]["leader_raises"] == ""
            continue
        for word, name in ((RAISE, "raise"), (REMAINDER, "remainder")):
            if word == REMAINDER and not rules.remainder:
                continue
            call = first.actions.index(word)
            made = float(first.share @ first.probabilities[:, call])
            assert float(table[score][f"leader_{name}s"]) == pytest.approx(made, rel=1e-5, abs=1e-12)
            reply = adviser.at((*begin, word))
            accepted = float(reply.share @ reply.probabilities[:, reply.actions.index(ACCEPT)])
            if made >= 1e-3:
                column = "leader_accepted" if word == RAISE else "leader_remainder_accepted"
                assert float(table[score][column]) == pytest.approx(accepted, rel=1e-4, abs=1e-9)
                compared += 1
            if {*first.cases, *reply.cases} != {ON_PATH}:
                continue  # two solutions that differ
            # What is conceded, by the hands that call and by the hands that answer.
            refused = first.share * first.probabilities[:, call] @ conceded(adviser, first, word)
            assert refused == pytest.approx(made * (1 - accepted), abs=1e-9)
            agreed += 1
    if rules.remainder:
        assert compared > 1
        assert agreed > 1


def test_decisions(store: Store, results: Path) -> None:
    if not store.rules.decision_before_target:
        assert not (results / "decisions.csv").exists()
        return
    table = rows(results / "decisions.csv")
    assert [(row["leader"], row["dealer"]) for row in table] == [
        ("0", "3"), ("1", "3"), ("2", "3"), ("3", "0"), ("3", "1"), ("3", "2"),
    ]  # fmt: skip
    weights = deal_weights(store.rules).sum(axis=1)
    for row in table:
        score = int(row["leader"]), int(row["dealer"])
        decision = whole(store, score).at(())
        assert row["decides"] == ("leader", "dealer")[decision.player] == ("leader" if score[0] == 3 else "dealer")
        plays = weights @ decision.probabilities[:, decision.actions.index(PLAY)] / weights.sum()
        assert float(row["plays"]) == pytest.approx(plays, rel=1e-5)
        assert 0 < plays < 1
        assert float(row["play_point"]) == pytest.approx(play_point(store.rules, score, store.known), rel=1e-5)


def test_match_page(store: Store, results: Path) -> None:
    manifest = json.loads((results / "manifest.json").read_text())
    written = {path.name for path in results.iterdir()} - {"manifest.json"}
    assert manifest["sha256"].keys() == written
    for name, wanted in manifest["sha256"].items():
        assert hashlib.sha256((results / name).read_bytes()).hexdigest() == wanted
    low, high = manifest["value_interval"]
    assert low < manifest["value"] < high < low + 3 * ACCURACY
    text = (results / "match.md").read_text()
    assert ("When the remainder is called" in text) == store.rules.remainder
    assert ("## Play or decline at 3" in text) == store.rules.decision_before_target
    for line in text.splitlines():
        if line.startswith("!["):
            assert (results / line.split("(")[1].rstrip(")")).is_file()
        assert "nan" not in line
        assert "None" not in line


# ------------------------------------------------------------------------------------------------------- published

PUBLISHED = ("french", "catalan")


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_match(name: str) -> None:
    folder, rules = ROOT / "results" / name / "match", preset(name)
    manifest = json.loads((folder / "manifest.json").read_text())
    for file, wanted in manifest["sha256"].items():
        assert hashlib.sha256((folder / file).read_bytes()).hexdigest() == wanted, file
    assert {path.name for path in folder.iterdir()} - {"manifest.json"} == manifest["sha256"].keys()
    assert manifest["rules_hash"] == rules.hash
    assert manifest["exploitability"] <= manifest["accuracy"] <= 1e-4
    low, high = manifest["value_interval"]
    assert low < manifest["value"] < high
    known = read_table(folder / "equity.json", rules)
    assert len(known) == 144
    assert known[0, 0].value == manifest["value"]
    for (a, b), worth in known.items():  # theory check: more points are never worse, within the bounds
        for after in ((a + 1, b),) if a < 11 else ():
            assert known[after].upper >= worth.lower
    book = Book.load(folder / "book.safetensors")
    assert book.rules == rules
    assert book.rounding <= 1 / 65535
    assert (folder / "book.safetensors").stat().st_size < 5_000_000
    # The page's numbers are the table's.
    text = (folder / "match.md").read_text()
    assert f"**Who deals first wins {100 - 100 * manifest['value']:.2f} % of matches**" in text


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_openings_are_the_books(name: str) -> None:
    """The CSV against the book: how often the leader raises, calls the remainder or plays, and what he leads."""
    folder, rules = ROOT / "results" / name / "match", preset(name)
    book = Book.load(folder / "book.safetensors")
    weights = deal_weights(rules).sum(axis=1) / deal_weights(rules).sum()
    decided = (
        {(int(r["leader"]), int(r["dealer"])): r for r in rows(folder / "decisions.csv")} if name == "catalan" else {}
    )
    for row in rows(folder / "openings.csv"):
        score = int(row["leader"]), int(row["dealer"])
        first = book.decision(score, ())
        if score in decided:
            plays = float(weights @ first.probabilities[:, first.actions.index(PLAY)])
            assert float(decided[score]["plays"]) == pytest.approx(plays, abs=2e-5)
            continue
        for column, action in (("leader_raises", RAISE), ("leader_remainders", REMAINDER)):
            if row.get(column):
                made = float(weights @ first.probabilities[:, first.actions.index(action)])
                assert float(row[column]) == pytest.approx(made, abs=2e-5)


@pytest.mark.parametrize(
    ("name", "score"), [("french", (11, 10)), ("french", (9, 11)), ("catalan", (11, 9)), ("catalan", (11, 11))]
)
def test_published_scores_again(name: str, score: Score) -> None:
    """A hand solved anew from the table, without the match's strategies."""
    rules = preset(name)
    known = read_table(ROOT / "results" / name / "match" / "equity.json", rules)
    solver = Solver(hand_tree(rules, score), hand_payoffs(rules, score, known))
    solver.step(400)
    found = Strategy.of(solver).evaluate()
    (low, high), worth = found.interval, known[score]
    assert max(low, worth.lower) <= min(high, worth.upper)
    assert found.value == pytest.approx(worth.value, abs=2e-4)


@pytest.mark.parametrize("name", PUBLISHED)
def test_take_points_in_the_terminal(name: str) -> None:
    """At 11-0: every raise and remainder for both sides; none in the Catalan game."""
    done = CliRunner().invoke(truc, ["match", "takepoint", "--variant", name, "--score", "11-0", "--json"])
    assert done.exit_code == 0
    found = json.loads(done.stdout)["take_points"]
    rules = preset(name)
    assert len(found) == 2 * len(list(calls(rules, (11, 0))))
    known = read_table(ROOT / "results" / name / "match" / "equity.json", rules)
    for each in found:
        word = REMAINDER if each["raised"] == "match" else RAISE
        answerer = ("leader", "dealer").index(each["answerer"])
        level = rules.ladder.index(each["stake"])
        assert each["chance"] == pytest.approx(take_point(rules, (11, 0), answerer, level, known, word), abs=1e-3)
    assert any(each["raised"] == "match" for each in found) == rules.remainder
    plain = CliRunner().invoke(truc, ["match", "takepoint", "--variant", name, "--score", "11-0"])
    assert ("match" in plain.stdout.split("no more raises come")[1]) == rules.remainder


@pytest.mark.parametrize("name", ["le-truc", "french", "catalan"])
def test_a_point_more_is_never_worse(name: str) -> None:
    """As far as the bounds tell, and by the values themselves; `fold` may be left out because of it."""
    table = json.loads((ROOT / "results" / name / "match" / "equity.json").read_text())
    target = table["target"]
    for a in range(target):
        for b in range(target - 1):
            less, more = f"{a}-{b + 1}", f"{a}-{b}"  # the dealer's point
            assert table["value"][less] < table["value"][more]
            assert table["lower"][less] <= table["upper"][more]
            less, more = f"{b}-{a}", f"{b + 1}-{a}"  # the leader's
            assert table["value"][less] < table["value"][more]
            assert table["lower"][less] <= table["upper"][more]


def test_published_match_with_every_action() -> None:
    """Best responders who may raise after their cards gain nothing: the same bounds, to rounding."""
    folder = ROOT / "results" / "catalan"
    plain, found = (json.loads((folder / name).read_text()) for name in ("match/equity.json", "every-action.json"))
    assert found["every_action"] is True
    assert found["best_response"] == pytest.approx(plain["best_response"], abs=1e-12)
    for bound in ("lower", "value", "upper"):
        assert found[bound] == pytest.approx(plain[bound], abs=1e-9)
