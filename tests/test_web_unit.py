"""The explorer without a browser: drawings, what the tabs show, and what is kept."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from games.notation import format_hand
from games.rules import Rules, preset, preset_names
from games.state import State
from solver.advise import Adviser
from solver.bot import Advisers
from solver.cfr import Solver
from solver.i18n import strings
from solver.storage import StorageError
from solver.strategy import Strategy
from solver.tree import Tree
from solver.web import drawing, html, match
from solver.web.drills import KINDS, Drill, draw, draw_score, is_spot, played_out, spots_of
from solver.web.grid import grid, refine
from solver.web.place import Place
from solver.web.progress import RECENT, Store
from solver.web.runs import Runs

MINI = preset("mini")
KNOWN = {name: preset(name) for name in preset_names()}
START = Place("strategy", preset("le-truc"))
EN, FR = strings("en"), strings("fr")


@pytest.fixture(scope="module")
def adviser() -> Adviser:
    """Of a small deck, solved roughly."""
    solver = Solver(Tree(MINI))
    solver.step(150)
    return Adviser(Strategy.of(solver))


def parsed(text: str) -> ElementTree.Element:
    """HTML of the page as XML: well-formed, and nothing in it that was not meant to be there."""
    return ElementTree.fromstring(f"<all>{text.replace('&nbsp;', ' ')}</all>")


# ------------------------------------------------------------------------------------------------------------- drawings


@pytest.mark.parametrize("line", [(), ("4",), ("4", "3"), ("raise",), ("4", "4", "3", "3")])
def test_cells_are_what_the_strategy_does(adviser: Adviser, line: tuple[str, ...]) -> None:
    """Every holding has a cell; its bars are as wide as the shares, as high as the reach, and all in their places."""
    found = grid(adviser, line)
    assert refine(lambda question: question(adviser), found) in (True, False)
    assert found.refined
    answer = adviser.at(line)
    assert len(found.cells) == len(answer.holdings)
    for cell in found.cells:
        if cell.possible:
            advice = adviser.advise(cell.name, line)
            shares = dict(zip(answer.actions, cell.shares, strict=True))
            for choice in advice.choices:
                assert shares[choice.action] == choice.probability
    assert max(cell.reach for cell in found.cells) == pytest.approx(1.0)
    for draw_it in (drawing.triangles, drawing.strips):
        picture = parsed(draw_it(MINI, found.cells, answer.actions, found.cells[0].name, EN))
        cells = picture.findall(".//g[@class='cell']")
        assert len(cells) == len(found.cells)
        at = [(id(svg), c.get("data-x"), c.get("data-y")) for svg in picture.iter("svg") for c in svg.iter("g")]
        assert len(set(at)) == len(found.cells)
        by_name = {cell.name: cell for cell in found.cells}
        for group in cells:
            cell = by_name[group.get("aria-label", "").split(":")[0]]
            bars = [rect for rect in group.iter("rect") if rect.get("fill")]
            width = float(group.find("rect").get("width"))  # type: ignore[union-attr,arg-type]
            if cell.possible:
                assert sum(float(bar.get("width", 0)) for bar in bars) == pytest.approx(width, abs=0.3)
            hatched = group.find("path") is not None
            assert hatched == (not cell.possible or cell.share <= 0 or cell.reach < 2e-5)


def test_reach_of_the_first_decision_is_even(adviser: Adviser) -> None:
    """Nobody has done anything yet: all hands come here as often as they are dealt."""
    found = grid(adviser, ())
    assert [cell.reach for cell in found.cells] == pytest.approx([1.0] * 20)
    assert sum(cell.share for cell in found.cells) == pytest.approx(1.0)
    assert sum(cell.share for cell in found.opponent) == pytest.approx(1.0)
    assert sum(share for _, share, _ in found.totals()) == pytest.approx(1.0)


def test_reach_of_a_lead(adviser: Adviser) -> None:
    """After a lead, the reach of the leader's hands is how often each leads that card, by the strategy."""
    line = ("4", "raise")
    found, first = grid(adviser, line), adviser.strategy.at(())
    rates = {}
    for h, holding in enumerate(first.holdings.tolist()):
        if 3 in holding:
            rest = list(holding)
            rest.remove(3)
            rates[tuple(rest)] = first.probabilities[h][first.actions.index("4")]
    most = max(rates.values())
    for cell in found.cells:
        assert cell.reach == pytest.approx(rates[cell.holding] / most, abs=1e-9)


def test_le_truc_has_eight_triangles() -> None:
    """120 hands: 36 under the 8, one under the A; a row of strips as well."""
    rules = preset("le-truc")
    from games.cards import hands
    from solver.web.grid import Cell

    cells = [Cell(tuple(h), format_hand(rules, h), True, 1 / 120, 1.0, [1.0]) for h in hands(8, 3, 4).tolist()]
    picture = parsed(drawing.triangles(rules, cells, ("raise",), None, EN))
    assert [len(svg.findall("g")) for svg in picture.iter("svg")] == [36, 28, 21, 15, 10, 6, 3, 1]
    assert len(parsed(drawing.strips(rules, cells, ("raise",), None, EN)).findall("div")) == 8


def contrast(one: str, other: str) -> float:
    """The contrast of two colours by WCAG 2."""

    def light(colour: str) -> float:
        colour = {"#000": "#000000", "#fff": "#ffffff"}.get(colour, colour)
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", preset_names())
def test_letters_can_be_read(name: str) -> None:
    """Actions that are chosen between have letters of their own, readable on their colours."""
    rules = preset(name)
    for actions in (("raise", "remainder", "fold", *rules.ranks), ("accept", "refuse"), ("raise", "remainder", "pass")):
        letters = [html.letter(action) for action in actions]
        assert len(set(letters)) == len(letters)
        for action in actions:
            assert contrast(html.colour(rules, action), html.ink(html.colour(rules, action))) >= 4.5
    for value in np.linspace(0, 1, 21):
        assert contrast(drawing.blend(value), html.ink(drawing.blend(value))) >= 4.5


def test_ramp_is_ordered_for_every_eye() -> None:
    """The cards' colours differ in lightness, always in the same direction."""
    contrasts = [contrast(colour, "#000000") for colour in html.RAMP]
    assert contrasts == sorted(contrasts)


def test_heat_map_and_curve() -> None:
    """A square for each score with its value; a curve that falls from left to right."""
    values = {(a, b): (a - b + 12) / 24 for a in range(12) for b in range(12)}
    drawn = drawing.heat_map(
        12, values, (0, 1), ("map", "rows", "columns"), (3, 4), lambda score, value: f"{score}{value}"
    )
    picture = parsed(drawn)
    squares = picture.findall(".//g[@data-do='score']")
    assert len(squares) == 144
    for square in squares:
        a, b = map(int, square.get("data-arg", "").split("-"))
        text = square.find("text")
        assert text is not None
        assert float(text.get("data-value", "nan")) == values[a, b]
    assert drawing.curve([], ("", "", "")) == ""
    points = [(50, 0.1), (100, 0.01), (1000, 0.001)]
    line = parsed(drawing.curve(points, ("", "", ""), 1e-3)).find(".//polyline")
    assert line is not None
    drawn_points = [tuple(map(float, pair.split(","))) for pair in line.get("points", "").split()]
    assert [x for x, _ in drawn_points] == sorted(x for x, _ in drawn_points)
    assert [y for _, y in drawn_points] == sorted(y for _, y in drawn_points)


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0.0 %"), (1.0, "100.0 %"), (1e-6, "<0.1 %"), (1 - 1e-9, "99.9 %"), (0.12345, "12.3 %"), (0.5, "50.0 %")],
)
def test_percent(share: float, text: str) -> None:
    """Only what never happens is 0."""
    assert html.percent(share) == text


# ------------------------------------------------------------------------------------------------------------- the tabs


def test_match_charts_have_the_table() -> None:
    """The seats' maps add to 1, with proved bounds; the rates are those of results/le-truc/match."""
    from solver.paths import shipped_table
    from solver.scores import read_table

    rules = preset("le-truc")
    file = shipped_table("le-truc")
    assert file is not None
    known = read_table(file, rules)
    rates = match.rates_of(rules)
    leader, dealer = (match.chart(name, known, rates) for name in match.SEATS)
    for score, value in leader.values.items():
        other = dealer.values[score]
        assert value is not None and other is not None  # noqa: PT018
        assert value + other == pytest.approx(1)
        low, high = leader.bounds[score]
        assert low <= value <= high
    rows = (Path(file).parent / "openings.csv").read_text().splitlines()
    first = dict(zip(rows[0].split(","), rows[1].split(","), strict=True))
    assert match.chart("dealer_raises", known, rates).values[0, 0] == float(first["dealer_raises"])
    assert match.chart("leader_accepted", known, rates).values[0, 0] is None  # never raised
    parsed(match.view(EN, rules, leader, "leader", (0, 0)))
    assert match.rates_of(replace(rules, ladder=(1, 2))) == {}


def test_table_shows_nothing_of_the_bots_cards() -> None:
    """Every byte that the table draws is the same when only the bot's unplayed cards differ."""
    from solver.bot import adviser_of
    from solver.game import BOT, PERSON, Game
    from solver.web import strategy_view, table_view

    solver = Solver(Tree(MINI))
    solver.step(60)
    known = Strategy.of(solver)
    advisers = Advisers(MINI, known={None: known})

    def drawn(game: Game) -> str:
        seen = game.view()
        text = table_view.felt(EN, MINI, seen, False) + table_view.log(EN, seen.events)
        text += table_view.actions(EN, MINI, seen, True, False, game.seed, "")
        if game.to_play == PERSON:
            place = Place("strategy", MINI, None, seen.line)
            text += strategy_view.detail(EN, place, game.hint())
        return text

    groups: dict[Any, dict[Any, list[str]]] = {}
    for seed in range(120):
        game = Game(advisers, seed=seed, score=None, person_leads=False)
        pictures = []
        while not game.is_over and len(game.view().line) < 4:
            if game.to_play == BOT:
                game.reply()
            else:
                game.act(game.view().legal[-1])
            if not game.is_over:
                pictures.append(drawn(game))
        own, line = game.view().hand, game.view().line
        game_hands = tuple(game._deals[-1])
        groups.setdefault((own, line), {})[game_hands] = pictures
    several = [list(each.values()) for each in groups.values() if len(each) > 1]
    assert len(several) >= 3
    for pictures_of in several:
        assert all(pictures == pictures_of[0] for pictures in pictures_of)
    assert adviser_of(known, MINI).rules == MINI
    advisers.close()


def test_settings_of_the_table() -> None:
    """What a form may say."""
    from solver.web.table_view import BadSeedError, settings_of

    fine = settings_of({"seed": " 17 ", "level": "club", "mode": "match", "tutor": "1", "practice": "1"})
    assert (fine.seed, fine.level, fine.match, fine.warn, fine.practice) == (17, "club", True, 0.005, True)
    for seed in ("-1", "1.5", "4294967296", "²", "x" * 1000):
        with pytest.raises(BadSeedError):
            settings_of({"seed": seed, "level": "club"})
    with pytest.raises(ValueError, match="no level"):
        settings_of({"seed": "", "level": "god"})


def test_drills_are_spots_of_their_kind(adviser: Adviser) -> None:
    """What is drawn is a decision of that kind, by a hand that can hold it."""
    rng = random.Random(3)
    for kind in KINDS:
        for _ in range(8):
            drill = draw(adviser.strategy, kind, None, rng)
            assert isinstance(drill, Drill)
            state = State.public(MINI).follow(drill.line)
            assert adviser.advise(format_hand(MINI, drill.hand), drill.line).player == state.to_play
            seen = State.seen_by(MINI, state.to_play, drill.hand).follow(drill.line)
            assert is_spot(kind, seen)
            assert len(seen.legal_actions()) > 1
    assert draw(adviser.strategy, "answer", None, rng, lambda: False) is None


def test_drills_come_up_as_often_as_spots(adviser: Adviser) -> None:
    """The share of each line among drills is that among all spots of many hands, within four standard errors."""
    rng = random.Random(5)
    counts: dict[tuple[str, ...], int] = {}
    for _ in range(600):
        for spot in spots_of(played_out(adviser.strategy, rng), "answer"):
            counts[spot.line] = counts.get(spot.line, 0) + 1
    total = sum(counts.values())
    drills = [draw(adviser.strategy, "answer", None, rng) for _ in range(200)]
    for line in sorted(counts, key=lambda line: -counts[line])[:3]:
        expected = counts[line] / total
        found = sum(drill is not None and drill.line == line for drill in drills) / len(drills)
        error = (expected * (1 - expected) * (1 / len(drills) + 1 / total)) ** 0.5
        assert abs(found - expected) < 4 * error + 1e-9


def test_scores_to_train_at(adviser: Adviser) -> None:
    """Every score of a match may come up, 0-0 most of all."""
    rng = random.Random(8)
    rules = replace(MINI, target=3)
    scores = [draw_score(adviser.strategy, rules, rng) for _ in range(60)]
    assert all(0 <= a < 3 and 0 <= b < 3 for a, b in scores)
    assert max(set(scores), key=scores.count) == (0, 0)


def test_progress_is_kept(tmp_path: Path) -> None:
    """Tallies are read back; a file that makes no sense is no reason to stop."""
    file = tmp_path / "deep" / "trainer.json"
    store = Store(file)
    for n in range(RECENT + 5):
        store.add("mini", "lead", "points per hand", 0.1 * (n % 2), n % 2 == 0)
    again = Store(file).tally("mini", "lead", "points per hand")
    assert again == store.tally("mini", "lead", "points per hand")
    assert (again.drills, again.good, len(again.recent)) == (RECENT + 5, 28, RECENT)
    assert again.mean == pytest.approx(0.1 * 27 / 55)
    bad = '{"drills": -1, "good": 0, "cost": 0, "recent": []}'
    for text in (
        "",
        "{",
        "[]",
        '{"tallies": 3}',
        '{"tallies": {"a": {}}}',
        f'{{"tallies": {{"a": {bad}}}}}',
        "[" * 5000,
    ):
        file.write_text(text)
        assert Store(file).tally("mini", "lead", "points per hand").drills == 0
    store.clear()
    assert json.loads(file.read_text())["tallies"] == {}


def test_a_run_is_paused_and_resumed(tmp_path: Path) -> None:
    """A paused run is a checkpoint; another program's run goes on from it to the same strategy."""
    runs = Runs(lambda: tmp_path)
    rules = preset("tiny")
    assert runs.find(rules, None) is None
    run = runs.start(rules, None, 1e-6, 1)
    with pytest.raises(RuntimeError, match="another run"):
        runs.start(MINI, None, 1e-3, 1)
    runs.pause(run)
    assert run._thread is not None
    run._thread.join(30)
    assert run.status in ("paused", "done")
    other = Runs(lambda: tmp_path)
    if run.status == "paused":
        found = other.find(rules, None)
        assert found is not None
        assert (found.status, found.accuracy) == ("paused", 1e-6)
        assert found.iterations == run.iterations
    again = other.start(rules, None, 1e-2, 1)
    assert again._thread is not None
    again._thread.join(60)
    assert again.status == "done", again.error
    assert again.reached is not None
    assert again.reached.exploitability <= 1e-2
    assert again.history == sorted(again.history, key=lambda point: point.iterations)
    other.discard(again)
    assert other.find(rules, None) is None
    other._runs.clear()
    again.checkpoint.write_bytes(b"not a checkpoint")
    with pytest.raises(StorageError, match="damaged"):
        other.find(rules, None)


# --------------------------------------------------------------------------------------------------------- the command


def test_help_does_not_import_nicegui() -> None:
    """Help has to come at once."""
    code = (
        "import sys; from solver.cli import main; main(['explore', '--help'], standalone_mode=False); "
        "assert not {'nicegui', 'numba', 'numpy'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--no-open" in done.stdout


def test_without_the_extra_one_sentence() -> None:
    """What to install, where NiceGUI is not."""
    code = (
        "import importlib.util as util; import solver.cli.explore as explore; "
        "explore.find_spec = lambda name: None; from solver.cli import main; main(['explore'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "pip install 'le-truc[web]'" in done.stderr


def test_wrong_use() -> None:
    """A port that is taken, a language and a port that there are not: one sentence each."""
    pytest.importorskip("nicegui")
    from solver.web.server import PortError, listen

    with listen(0) as taken:
        port = taken.getsockname()[1]
        assert taken.getsockname()[0] == "127.0.0.1"
        with pytest.raises(PortError, match=f"port {port} of 127.0.0.1"):
            listen(port)
    for arguments, value in (
        (["--lang", "xx"], "xx"),
        (["--port", "70000"], "70000"),
        (["--variant", "whist"], "whist"),
    ):
        command = [sys.executable, "-m", "solver", "explore", "--no-open", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert value in done.stderr
        assert done.stderr.count("\n") == 1


def test_both_languages_say_everything() -> None:
    """Every string that the explorer asks for is in both tables."""
    folder = Path(html.__file__).parent
    source = "".join(file.read_text() for file in folder.glob("*.py"))
    asked = set(re.findall(r'"(web\.[a-z0-9_]+)"', source))
    assert len(asked) > 80
    for key in asked:
        assert EN.has(key), key
        assert FR.has(key), key
    assert isinstance(KNOWN["mini"], Rules)
