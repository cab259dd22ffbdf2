"""The bot: it plays what the advice says, at any level, and knows nothing but its own cards."""

import inspect
import json
import random
import time
from dataclasses import replace

import numpy as np
import pytest

from games.notation import NotationError, format_hand
from games.rules import Rules, preset
from solver import bot as bot_module
from solver.advise import Adviser
from solver.bot import LEVELS, Advisers, Bot, Level, LevelError, adviser_of, level_of, opinion, played
from solver.cfr import Solver
from solver.cli.advise import details
from solver.essential import essential
from solver.grading import graded
from solver.scores import NoTableError
from solver.strategy import LineError, Strategy
from solver.tree import Tree

MINI = preset("mini")


def solved(rules: Rules, iterations: int = 1500) -> Strategy:
    solver = Solver(Tree(rules))
    solver.step(iterations)
    return Strategy.of(solver)


@pytest.fixture(scope="module")
def advisers() -> Advisers:
    return Advisers(MINI, known={None: solved(MINI)})


def test_it_plays_what_the_advice_says(advisers: Advisers) -> None:
    bot, adviser = Bot(advisers), advisers.get(None).adviser
    for hand, line in [((0, 1, 2), ()), ((0, 1, 3), ("raise",)), ((2, 3, 3), ("4",)), ((0, 2, 3), ("4", "3"))]:
        advice = adviser.advise(format_hand(MINI, hand), line)
        move = bot.choose(hand, line, None)
        assert move.actions == tuple(choice.action for choice in advice.choices)
        assert move.probabilities == pytest.approx([choice.probability for choice in advice.choices])
        assert move.probabilities[move.actions.index(move.action)] > 0
        assert not move.quick


def test_rolls_pick_in_proportion(advisers: Advisers) -> None:
    bot = Bot(advisers, Level("odd", 0.3))
    rolls = (np.arange(200) + 0.5) / 200
    moves = [bot.choose((0, 1, 3), ("3",), None, roll) for roll in rolls]
    found = [sum(move.action == action for move in moves) / 200 for action in moves[0].actions]
    assert found == pytest.approx(moves[0].probabilities, abs=5.1e-3)
    assert bot.choose((0, 1, 3), ("3",), None, 1.0).action in moves[0].actions


def test_seeds(advisers: Advisers) -> None:
    def play(seed: int) -> list[str]:
        bot = Bot(advisers, "beginner", seed)
        return [bot.choose((0, 1, 3), ("3",), None).action for _ in range(30)]

    assert play(1) == play(1)
    assert play(1) != play(2)


def test_weaker_levels_err_more(advisers: Advisers) -> None:
    advice = opinion(advisers.get(None).adviser, (0, 1, 3), ("3",))
    payoffs = advisers.get(None).adviser.strategy.payoffs
    losses = [
        sum(
            share * (choice.loss or 0.0)
            for share, choice in zip(played(advice, level, payoffs), advice.choices, strict=True)
        )
        for level in LEVELS.values()
    ]
    assert losses == sorted(losses, reverse=True)
    assert losses[0] > 10 * losses[-2] >= losses[-1]
    temperatures = [level.temperature for level in LEVELS.values()]
    assert temperatures == sorted(temperatures, reverse=True)
    assert temperatures[-1] == 0


def test_levels_have_names() -> None:
    assert [level_of(name).name for name in LEVELS] == list(LEVELS)
    with pytest.raises(LevelError, match="known are beginner, casual, club, expert, perfect"):
        level_of("god")


def test_it_is_never_told_what_the_other_holds() -> None:
    """Nothing that could carry the opponent's cards goes in: the hand, the line, the score, a number, own discards."""
    assert list(inspect.signature(Bot.choose).parameters) == ["self", "hand", "line", "score", "roll", "discards"]


def test_hands_and_lines_that_do_not_go_together(advisers: Advisers) -> None:
    bot = Bot(advisers)
    with pytest.raises(NotationError):
        bot.choose((0, 1), (), None)
    with pytest.raises(NotationError):
        bot.choose((0, 0, 0), ("3", "4", "2"), None)
    with pytest.raises((LineError, NotationError)):
        bot.choose((0, 0, 0), ("accept",), None)


def test_advisers_of_rules_that_have_no_match() -> None:
    advisers = Advisers(MINI, patience=0.0)
    try:
        assert not advisers.has_match
        with pytest.raises(NoTableError):
            advisers.get((0, 0))
        first = advisers.get(None)  # in points: quick, or solved meanwhile
        assert first.exploitability < 0.1
        deadline = time.monotonic() + 20
        while not advisers.ready(None) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert advisers.ready(None)
        assert not advisers.get(None).quick
        assert advisers.get(None).exploitability <= bot_module.QUICK_POINTS
    finally:
        advisers.close()


def test_a_quick_solution_plays_until_the_real_one_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, stop: object = None) -> None:
        while not stop():  # type: ignore[operator]
            time.sleep(0.01)

    monkeypatch.setattr(bot_module, "strategy_at", never)
    advisers = Advisers(preset("le-truc"), patience=0.05)
    try:
        advisers.get((9, 10)) if advisers.has_match else None
        start = time.monotonic()
        source = advisers.get((10, 9))
        assert source.quick
        assert 0 < source.exploitability < 0.02
        assert not advisers.ready((10, 9))
        again = time.monotonic()
        assert advisers.get((10, 9)) is source
        assert time.monotonic() - again < 0.1
        assert again - start < 10  # about two seconds when nothing else runs
        move = Bot(advisers).choose((0, 3, 7), ("raise",), (10, 9))
        assert move.quick
        assert move.action in ("accept", "refuse")
    finally:
        advisers.close()
    assert advisers._worker is not None
    assert not advisers._worker.is_alive()


def test_scores_are_solved_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def note(rules: Rules, score: tuple[int, int], *_: object, **__: object) -> None:
        asked.append(score)

    monkeypatch.setattr(bot_module, "strategy_at", note)
    advisers = Advisers(preset("le-truc"))
    try:
        advisers.prepare((8, 10))
        deadline = time.monotonic() + 10
        while len(asked) < 5 and time.monotonic() < deadline:
            time.sleep(0.02)
    finally:
        advisers.close()
    # The dealer leads next: by 1 or 2 points of either side, or after a spoiled hand.
    assert asked[0] == (8, 10)
    assert set(asked) == {(8, 10), (10, 8), (11, 8), (10, 9), (10, 10)}


def test_an_adviser_of_rules_with_more_actions() -> None:
    rules = preset("mini")
    strategy = solved(rules, 50)
    assert adviser_of(strategy, rules).rules == rules
    more = Rules.from_toml(rules.to_toml().replace("fold = false", "fold = true"), "folding")
    adviser = adviser_of(strategy, more)
    assert isinstance(adviser, Adviser)
    move = Bot(Advisers(more, known={None: strategy}), "beginner").choose((0, 1, 2), (), None)
    assert "fold" in move.actions


def test_before_the_deal_there_is_nothing_to_look_at() -> None:
    rules = Rules.from_toml(MINI.to_toml().replace("one_card = false", "one_card = true"), "tapping")
    advisers = Advisers(rules, known={None: solved(MINI, 100)})
    bot = Bot(advisers)
    assert bot.choose((), (), None).actions == ("cut", "tap")
    assert bot.choose((), ("tap",), None).actions == ("three", "one")
    assert bot.choose((3,), ("tap", "one"), None).actions == ("raise", "4")


def test_it_plays_the_same_whatever_the_other_holds() -> None:
    """Over whole hands: the bot's moves are a function of its cards and of the line, so swapping unplayed cards of the
    other side changes none; see tests/test_play.py for what a person is shown."""
    advisers = Advisers(MINI, known={None: solved(MINI, 100)})
    rng = random.Random(3)
    for _ in range(20):
        hand = tuple(sorted(rng.sample([r for r in range(4) for _ in range(4)], 3)))
        roll = rng.random()
        first = Bot(advisers, "club", 1).choose(hand, (), None, roll)
        assert first == Bot(advisers, "club", 2).choose(hand, (), None, roll)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the scores that were prepared only some stay in memory, and none when the match has gone on; given ones do."""
    strategy, rules = solved(MINI, 20), preset("le-truc")
    asked = []

    def found(_: Rules, score: tuple[int, int], **__: object) -> tuple[Strategy, object]:
        asked.append(score)
        return strategy, type("Header", (), {"nash_conv": 0.0})

    monkeypatch.setattr(bot_module, "strategy_at", found)
    monkeypatch.setattr(bot_module, "adviser_of", lambda *_: None)
    advisers = Advisers(rules, known={None: strategy})
    try:
        advisers.prepare((0, 0))
        deadline = time.monotonic() + 20
        while len(asked) < 13 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(asked) == len(set(asked)) == 1 + 2 * len(rules.ladder) - 2  # stakes of 12 end the match
        assert advisers.ready((0, 0))
        assert sum(map(advisers.ready, [None, *asked])) == bot_module.MOST
        assert advisers.get((0, 10)).score == (0, 10)  # whoever asks gets it
        advisers.prepare((10, 9))
        assert not advisers.ready((0, 0))
        assert advisers.ready(None)
    finally:
        advisers.close()


def test_what_nobody_knows_the_worth_of() -> None:
    """Agreeing to a redeal: it has no EV, nobody plays it, it is not graded, and JSON can say so."""
    rules = replace(preset("mini"), redeal=True)
    solver = Solver(Tree(essential(rules)))
    solver.step(50)
    adviser = Adviser(Strategy.of(solver), rules=rules)
    advice = adviser.advise("A 2 3", ("propose",))
    unknown = next(choice for choice in advice.choices if choice.action == "agree")
    assert (unknown.ev, unknown.loss) == (None, None)
    assert json.loads(json.dumps(details(advice), allow_nan=False))["actions"][0]["ev"] is None
    assert graded(adviser, advice, "agree") is None
    for level in LEVELS.values():
        shares = played(advice, level, adviser.strategy.payoffs)
        assert shares.tolist() == [0.0, 1.0]
