"""The strength of the bot's levels: against a direct computation, a simulation, and as published."""

import json
from pathlib import Path

import numpy as np
import pytest

from games.rules import Rules, preset
from scripts.opponents import strengths
from solver.bot import LEVELS, Level
from solver.equity import Score, scores
from solver.losses import ANCHOR, erring, losses
from solver.match import solve_pair
from solver.strategy import Strategy
from tests.selfplay import SelfPlay

ROOT = Path(__file__).resolve().parent.parent
RULES = Rules.from_toml(preset("tiny").to_toml().replace("target = 12", "target = 3"), "tiny to 3")


@pytest.fixture(scope="module")
def match() -> dict[Score, Strategy]:
    known, found = {}, {}
    for score in scores(RULES):
        if score not in known:
            solved = solve_pair(RULES, score, known, 1e-4)
            known |= {each: solution.worth for each, solution in solved.items()}
            found |= {each: solution.strategy for each, solution in solved.items()}
    return found


def test_the_equilibrium_against_itself(match: dict[Score, Strategy]) -> None:
    (perfect,) = strengths(RULES, match.__getitem__, [Level("perfect", 0.0)])
    for a, b in scores(RULES):
        assert perfect.leading[a, b] + perfect.dealing[a, b] == pytest.approx(1, abs=1e-12)
    assert (perfect.leading[0, 0] + perfect.dealing[0, 0]) / 2 == pytest.approx(0.5, abs=1e-12)
    assert all(-1e-12 <= lost < 1e-3 for both in perfect.lost.values() for lost in both)


@pytest.mark.slow
def test_chances_are_those_of_played_matches(match: dict[Score, Strategy]) -> None:
    """5,000 matches to 3 of a weak player against the equilibrium, within four standard errors."""
    level = Level("weak", 3.0)
    (weak,) = strengths(RULES, match.__getitem__, [level])
    rng = np.random.default_rng(1)
    tables = {score: losses(strategy) for score, strategy in match.items()}
    plays = {
        (score, leads): SelfPlay(
            (erring(strategy, tables[score], 3.0), strategy)
            if leads
            else (strategy, erring(strategy, tables[score], 3.0)),
            tables[score],
            rng,
        )
        for score, strategy in match.items()
        for leads in (True, False)
    }
    for first in (True, False):
        won = 0
        for _ in range(2500):
            leads, score = first, (0, 0)
            while True:
                state = plays[score, leads].hand()
                points = [score[side] + max(state.returns[side], 0) for side in (0, 1)]
                if max(points) >= RULES.target:
                    won += (points[0] >= RULES.target) == leads
                    break
                leads, score = not leads, (points[1], points[0])
        chance = (weak.leading if first else weak.dealing)[0, 0]
        assert abs(won / 2500 - chance) < 4 * (chance * (1 - chance) / 2500) ** 0.5


def test_weaker_levels_win_less(match: dict[Score, Strategy]) -> None:
    found = strengths(RULES, match.__getitem__, list(LEVELS.values()))
    wins = [each.leading[0, 0] + each.dealing[0, 0] for each in found]
    assert wins == sorted(wins)
    assert wins[0] < wins[-1] - 0.01


def test_what_is_published() -> None:
    stated = json.loads((ROOT / "results" / "le-truc" / "opponents.json").read_text())
    match = json.loads((ROOT / "results" / "le-truc" / "match" / "manifest.json").read_text())
    assert stated["rules_hash"] == preset("le-truc").hash == match["rules_hash"]
    assert stated["strategies"] == match["strategies"]
    assert stated["anchor"] == ANCHOR
    assert {name: each["temperature"] for name, each in stated["levels"].items()} == {
        name: level.temperature for name, level in LEVELS.items()
    }
    assert stated["levels"]["perfect"]["wins_leading"] == pytest.approx(match["value"], abs=1e-12)
    wins = [each["wins"] for each in stated["levels"].values()]
    assert wins == sorted(wins)
    readme = (ROOT / "README.md").read_text()
    for name, each in stated["levels"].items():
        assert f"| {name} | {each['temperature']:g} | {100 * each['wins']:.1f} % |" in readme
