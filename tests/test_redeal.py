"""The redeal of small decks, solved with it: exact cases, the oracle, and what playing on without memory gives away."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from games.rules import Rules, preset
from solver import redeal
from solver.cfr import ALGORITHMS, PROBABILITY, Payoffs
from solver.nodes import TreeTooLargeError, UnsupportedRulesError
from solver.redeal import DenseSolver, Game, Play, redeal_game, redeal_loss, without_memory
from tests import oracle
from tests.oracle_variants import VariantHand
from tests.test_oracle import case_rules
from tests.test_oracle_variants import AFTER, CASES, Forced, slow

REDEALS = [name for name, case in CASES.items() if case["rules"]["redeal"]]


def deck(n: int, copies: int, size: int, ladder: tuple[int, ...], **fields: Any) -> Rules:
    """A small rule set with a redeal."""
    given: dict[str, Any] = {"order": "linear", "all_tied": "nobody", "redeal": True} | fields
    return Rules("deck", tuple("A2345678"[:n]), copies=copies, hand_size=size, ladder=ladder, **given)


SMALL = {
    "one card": deck(3, 2, 1, (1, 2, 3), order="circular"),
    "fold": deck(3, 3, 2, (1, 2), fold=True, all_tied="dealer"),
    "after": deck(2, 4, 2, (1, 3), raise_when=AFTER, all_tied="leader"),
    "three": deck(2, 6, 3, (1, 2), fold=True),
}


def translated(game: Game, policy: oracle.Policy) -> Play:
    """The oracle's policy in a game's arrays, uniform where no deal leads."""
    play = game.uniform()
    found = 0
    for stage, array in zip(game.stages, play, strict=True):
        for i, line in enumerate(stage.lines):
            for t, (aside, held) in enumerate(zip(stage.types.aside, stage.types.held, strict=True)):
                hands = tuple(tuple(np.repeat(range(len(x)), x).tolist()) for x in (aside, held) if x.any())
                key = (int(stage.player[i]), hands, line)
                if key in policy:
                    array[i, stage.legal[i, :, t], t] = policy[key]
                    found += 1
    assert found == len(policy)
    return play


def numbers(game: Game, play: Play) -> tuple[float, float, float]:
    """Value and both best responses."""
    found = game.evaluate(play)
    return (found.value, *found.best_response)


def of_oracle(game: oracle.Game, policy: oracle.Policy, total: float = 0.0) -> tuple[float, float, float]:
    """The same by the oracle."""
    best = [oracle.best_response(game, policy, p) for p in (0, 1)]
    return oracle.expected_value(game, policy), best[0], best[1] + total


# ------------------------------------------------------------------------------------------------------ exact cases


@cache
def case_game(name: str) -> Game:
    """The game of an exact case."""
    return redeal_game(case_rules(CASES[name]))


@pytest.mark.parametrize("name", REDEALS)
def test_information_states_and_uniform_play(name: str) -> None:
    case, game = CASES[name], case_game(name)
    for p in (0, 1):
        assert game.information_states(p) == case[f"infosets_all_p{p}"]
        assert game.information_states(p, 2) == case[f"infosets_ge2_p{p}"]
    expected = case["ev_uniform"], case["br0_vs_uniform"], case["br1_vs_uniform"]
    assert numbers(game, game.uniform()) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "accuracy"), [(name, 1e-4) for name in REDEALS] + [slow(name, 1e-6) for name in REDEALS]
)
def test_values(name: str, accuracy: float) -> None:
    case = CASES[name]
    for game, value in (
        (case_game(name), case["value"]),
        (redeal_game(case_rules(case), forced=True), case["value_forced_redeal"]),
    ):
        _, found = DenseSolver(game).run(accuracy)
        assert found.exploitability <= accuracy
        assert found.interval[0] <= value <= found.interval[1]
        assert found.value == pytest.approx(value, abs=accuracy)


# ------------------------------------------------------------------------------------------------------- the oracle


@pytest.mark.parametrize("name", SMALL)
def test_random_strategies_have_the_oracles_values(name: str) -> None:
    hand, game = VariantHand(SMALL[name]), redeal_game(SMALL[name])
    policy = oracle.random_policy(hand, np.random.default_rng(5))
    assert numbers(game, translated(game, policy)) == pytest.approx(of_oracle(hand, policy), abs=1e-12)
    for p in (0, 1):
        assert game.information_states(p) == sum(key[0] == p for key in policy)
        assert game.information_states(p, 2) == sum(key[0] == p and len(x) > 1 for key, x in policy.items())


def test_a_redeal_in_a_match() -> None:
    rules = replace(SMALL["fold"], remainder=True, remainder_refused="match", target=4)
    pay = {"win0": [0.6, 0.8], "win1": [0.3, 0.1], "tie": 0.45, "match0": 1.0, "match1": 0.0}
    hand = VariantHand(rules, pay | {"one0": 0.5, "one1": 0.5})
    game = redeal_game(rules, payoffs=Payoffs((0.6, 0.8, 1.0), (0.3, 0.1, 0.0), 0.45, PROBABILITY), score=(0, 1))
    policy = oracle.random_policy(hand, np.random.default_rng(6))
    assert numbers(game, translated(game, policy)) == pytest.approx(of_oracle(hand, policy, 1.0), abs=1e-12)


def test_forced_redeals() -> None:
    hand, game = Forced(SMALL["fold"]), redeal_game(SMALL["fold"], forced=True)
    policy = oracle.random_policy(hand, np.random.default_rng(7))
    after = {key: x for key, x in policy.items() if key[2][:2] == ("propose", "agree")}
    play = translated(game, after)
    assert numbers(game, play) == pytest.approx(of_oracle(hand, policy), abs=1e-12)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("name", ["one card", "after"])
def test_iterations_agree_with_the_oracles(name: str, algorithm: str) -> None:
    hand, game = VariantHand(SMALL[name]), redeal_game(SMALL[name])
    solver = DenseSolver(game, algorithm, zero=1e-12)
    solver.step(3)
    solver.step(17)
    expected = translated(game, oracle.cfr(hand, algorithm, 20).average)
    reached = [stage.legal.any(axis=1, keepdims=True) for stage in game.stages]
    for stage, play, other, where in zip(game.stages, solver.average, expected, reached, strict=True):
        met = where & _met(stage)
        assert np.abs(play - other)[np.broadcast_to(met, play.shape)].max() < 1e-8
        assert play.sum(axis=1)[where[:, 0]] == pytest.approx(1)


def _met(stage: redeal.Stage) -> np.ndarray:
    """Shape (D, 1, T): the types of the player to act that some deal leads to."""
    other = stage.consistent[1 - stage.player, range(len(stage.player))]
    joint = np.where((stage.player == 0)[:, None, None], stage.types.joint, stage.types.joint.T)
    return ((joint @ other[:, :, None].astype(float)) > 0).transpose(0, 2, 1)


def test_types_after_a_redeal_have_the_weights_of_dealt_cards() -> None:
    """All draws of four from six cards: the leader's, his new one, the dealer's, his new one."""
    rules = deck(2, 3, 1, (1,))
    found = Counter[tuple[int, ...]]()
    cards = (0, 0, 0, 1, 1, 1)
    for a in range(6):
        for b in set(range(6)) - {a}:
            for c in set(range(6)) - {a, b}:
                for d in set(range(6)) - {a, b, c}:
                    found[cards[a], cards[b], cards[c], cards[d]] += 1
    types = redeal.redealt_types(rules)
    names = [(int(aside.argmax()), int(held.argmax())) for aside, held in zip(types.aside, types.held, strict=True)]
    for i, first in enumerate(names):
        for j, second in enumerate(names):
            assert types.joint[i, j] == pytest.approx(found[(*first, *second)] / 360, abs=1e-15)


# ------------------------------------------------------------------------------------------------- without memory


@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize(("ranks", "low", "high"), [(3, 0.02, 0.07), slow(5, 0.01, 0.04)])
def test_what_playing_without_memory_gives_away(ranks: int, low: float, high: float, corrected: bool) -> None:
    """Hands of two from twelve cards: 0.03 to 0.06 points per agreed redeal; from twenty cards about half of that."""
    loss = redeal_loss(deck(ranks, 4, 2, (1, 2)), corrected, 1e-4)
    assert loss.error <= 2e-4
    assert low < min(loss.loss) <= max(loss.loss) < high
    if ranks == 3:
        exact = CASES["fr_l3x4_hs2_L12_redeal"]["value_forced_redeal"]
        assert loss.value == pytest.approx(exact, abs=loss.error)


@pytest.mark.parametrize("corrected", [False, True])
def test_playing_without_memory_by_the_oracle(corrected: bool) -> None:
    rules = SMALL["one card"]
    game, hand = redeal_game(rules, forced=True), Forced(rules)
    play = without_memory(rules, corrected, 1e-4)
    policy = oracle.uniform(hand)
    (stage,), (array,) = game.stages, play
    of = {(int(a.argmax()), int(h.argmax())): t for t, (a, h) in enumerate(zip(*stage.types[1::-1], strict=True))}
    for player, hands, line in policy:
        if line[:2] == ("propose", "agree"):
            i, t = stage.lines.index(line), of[hands[0][0], hands[1][0]]
            policy[player, hands, line] = array[i, stage.legal[i, :, t], t]
    assert numbers(game, play) == pytest.approx(of_oracle(hand, policy), abs=1e-12)
    same = [np.ptp(array[:, :, stage.types.held[:, rank] == 1], axis=2).max() for rank in range(3)]
    assert max(same) < 1e-15 or corrected  # the cards set aside make no difference


# -------------------------------------------------------------------------------------------------------- refusals


def test_what_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TreeTooLargeError, match="pairs of a hand set aside and a new one, more than the 4,096"):
        redeal_game(preset("french"))
    with pytest.raises(UnsupportedRulesError, match="redeal = false"):
        redeal_game(preset("le-truc"))
    monkeypatch.setattr(redeal, "MAX_ENTRIES", 2000)
    with pytest.raises(TreeTooLargeError, match="public decisions with 36 types"):
        redeal_game(deck(3, 4, 2, (1, 2)))


def test_an_accuracy_out_of_reach_is_an_error() -> None:
    with pytest.raises(ArithmeticError, match="not reached in 60 iterations"):
        DenseSolver(redeal_game(SMALL["one card"])).run(1e-12, most=60)
