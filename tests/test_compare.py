"""`truc compare`: OpenSpiel and we agree, and the command says so, or that we do not."""

from __future__ import annotations

import hashlib
import json
import math
import random
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from games.rules import Rules, preset, preset_names
from games.state import State
from solver.cfr import Payoffs
from solver.cli import main
from solver.essential import essential
from solver.paths import shipped_strategy
from solver.storage import load_strategy
from solver.strategy import Strategy
from solver.tree import Tree

pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is not installed: pip install -e '.[openspiel]'")

from open_spiel.python import policy as policies  # noqa: E402

from games.openspiel import TrucState  # noqa: E402
from solver import compare  # noqa: E402
from solver.openspiel import OpenSpielPolicy, load_game  # noqa: E402
from solver.openspiel_algorithms import Remembered  # noqa: E402

ROOT = Path(__file__).parent.parent
SHORT = ("compare", "--quick", "--hands", "200", "--seconds", "0.5")


def silent(text: str) -> None:
    """Tell nobody."""


def shipped() -> Strategy:
    """The strategy that comes with the program."""
    path = shipped_strategy("le-truc")
    assert path is not None
    return load_strategy(path)[0]


# ---------------------------------------------------------------------------------------------------------------- CFR


def decks(quick: bool, *names: str) -> list:
    """The small decks of presets, as parameters of a test."""
    found = [(name, deck) for name in names for deck in compare.small_decks(preset(name), quick)]
    return [pytest.param(deck, id=f"{name}-{deck.rules.name}") for name, deck in found]


@pytest.mark.parametrize("small", decks(True, "le-truc"))
@pytest.mark.parametrize("algorithm", ["cfr", "cfr+"])
def test_cfr_comes_to_the_same_policies(small: compare.Small, algorithm: str) -> None:
    game = load_game(small.rules, small.payoffs)
    template, root = policies.TabularPolicy(game), Remembered(game.new_initial_state())
    assert compare.cfr_difference(Tree(small.rules), small.payoffs, root, template, algorithm, silent) <= 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("small", decks(True, "french", "catalan", "mini") + decks(False, "le-truc")[3:])
def test_decks(small: compare.Small) -> None:
    deck = compare.compare_deck(small, True, silent)
    assert deck.agrees
    assert deck.information_states[0] == deck.information_states[1]
    assert max(deck.cfr.values()) <= 1e-9


def test_what_small_decks_have() -> None:
    """Every action that the tree has, in points and at each kind of score."""
    french, catalan = (compare.small_decks(preset(name), True) for name in ("french", "catalan"))
    assert [deck.rules.name for deck in french] == ["small", "small-match"]
    assert [(deck.rules.fold, deck.rules.remainder) for deck in french] == [(True, False), (True, True)]
    assert [(deck.rules.name, deck.decider) for deck in catalan[2:]] == [
        ("small-leader-decides", 0),
        ("small-dealer-decides", 1),
    ]
    assert all(deck.rules.raise_when == ("before", "after") for deck in catalan)
    assert len(compare.small_decks(preset("catalan"), False)) == 8


@pytest.mark.parametrize(
    ("ranks", "copies", "hand_size"), [(16, 1, 3), (2, 12, 3), (1, 12, 1), (1, 12, 3), (3, 2, 3), (9, 4, 2)]
)
def test_any_rules_have_small_decks(ranks: int, copies: int, hand_size: int) -> None:
    labels = tuple("23456789ABCDEFGH"[:ranks])
    rules = Rules("odd", labels, "linear", copies, hand_size, (3,), "nobody", target=1, decision_before_target=True)
    for deck in compare.small_decks(rules, True):
        assert deck.rules.n_cards >= 2 * hand_size
        assert deck.rules.n_cards <= 12
        assert len(deck.payoffs.win0) == Tree(deck.rules, decider=deck.decider).levels


@pytest.mark.parametrize("change", ["states", "hands"])
def test_a_deck_agrees_in_everything(found: compare.Comparison, change: str) -> None:
    (deck,) = found.decks
    assert deck.agrees
    more = {"information_states": (1110, 1111)} if change == "states" else {"played": replace(deck.played, mean=9.0)}
    assert not replace(deck, **more).agrees


# -------------------------------------------------------------------------------------------------------------- hands


def check(played: compare.Played) -> None:
    """No disagreement, and the mean is where it should be."""
    assert played.disagreements == []
    assert abs(played.mean - played.value) <= 4 * played.error
    assert played.agrees


def test_hands_played_through_openspiel() -> None:
    check(compare.play(shipped(), 3000, 1, silent))


@pytest.mark.slow
def test_a_hundred_thousand_hands() -> None:
    played = compare.play(shipped(), 100_000, 2, silent)
    check(played)
    assert played.error < 0.01


def test_the_referee_sees_the_same_hands() -> None:
    """Actions, player and points at every state of hands that the strategy plays through OpenSpiel."""
    strategy, rng = shipped(), random.Random(1)
    rules = strategy.tree.rules
    policy = OpenSpielPolicy(strategy, load_game(rules))
    for _ in range(500):
        state = policy.game.new_initial_state()
        dealt = []
        while state.is_chance_node():
            action = rng.choice(state.legal_actions())
            dealt.append([rank for rank, count in enumerate(policy.game.hands[action]) for _ in range(count)])
            state.apply_action(action)
        referee = State.deal(rules, *dealt)
        while not referee.is_over:
            shares = policy.action_probabilities(state)
            assert state.current_player() == referee.to_play
            assert [policy.names.word[action] for action in shares] == list(referee.legal_actions())
            (action,) = rng.choices(list(shares), [0.1 + share for share in shares.values()])
            referee = referee.apply(policy.names.word[action])
            state.apply_action(action)
        assert state.is_terminal()
        assert tuple(state.returns()) == referee.returns


@pytest.mark.parametrize(
    ("method", "wrong", "sentence"),
    [
        ("returns", lambda state: [9.0, -9.0], "the payoffs: "),
        ("_legal_actions", lambda state, player: [0], "legal actions: "),
        ("current_player", lambda state: 1, "the player: "),
    ],
)
def test_disagreements_are_found(method, wrong, sentence, monkeypatch) -> None:
    strategy = Strategy.uniform(Tree(preset("tiny")))
    policy = OpenSpielPolicy(strategy, load_game(preset("tiny")))
    state = policy.game.new_initial_state()
    while state.is_chance_node():
        state.apply_action(state.legal_actions()[0])
    monkeypatch.setattr(TrucState, method, wrong)
    with pytest.raises(compare.Disagreement, match=sentence):
        compare._play_out(policy, state, random.Random(1))


def test_a_disagreement_does_not_stop_the_rest(monkeypatch) -> None:
    monkeypatch.setattr(TrucState, "returns", lambda state: [9.0, -9.0])
    played = compare.play(Strategy.uniform(Tree(preset("tiny"))), 5, 1, silent)
    assert len(played.disagreements) == 5
    assert all("the payoffs: [9.0, -9.0] in OpenSpiel" in sentence for sentence in played.disagreements)
    assert not played.agrees


@pytest.mark.parametrize("name", [name for name in preset_names() if essential(preset(name)) != preset(name)])
def test_hands_of_the_other_presets(name: str) -> None:
    """As the full deck is solved in points."""
    check(compare.play(Strategy.uniform(Tree(essential(preset(name)))), 300, 1, silent))


@pytest.mark.parametrize("small", decks(False, "french", "catalan"))
def test_random_hands_with_every_action(small: compare.Small) -> None:
    tree = Tree(small.rules, decider=small.decider)
    check(compare.play(Strategy.uniform(tree, small.payoffs), 400, 1, silent))


def test_hands_of_a_match() -> None:
    rules = preset("mini")
    payoffs = Payoffs((0.55, 0.7, 1.0), (0.4, 0.3, 0.0), 0.5, "match-winning probability")
    check(compare.play(Strategy.uniform(Tree(rules), payoffs), 1000, 1, silent))


# --------------------------------------------------------------------------------------------------------------- race


def test_race() -> None:
    tree, payoffs = Tree(preset("tiny")), Payoffs.points(preset("tiny"))
    race = compare.race(tree, payoffs, [0.1, 0.4], 1, silent)
    for seconds, theirs, ours in zip((0.1, 0.4), race.openspiel, race.ours, strict=True):
        assert seconds <= theirs.seconds
        assert seconds <= ours.seconds
        assert 0 < ours.exploitability < theirs.exploitability
        assert theirs.iterations % 10 == 0
        assert theirs.states is not None
        assert theirs.states <= 1110
    assert race.level.exploitability <= race.openspiel[-1].exploitability
    assert race.level.seconds < race.openspiel[-1].seconds
    assert race.uniform == pytest.approx(1.2625)


# ------------------------------------------------------------------------------------------------------------ command


def truc(*args: str):
    """Run a command in this process."""
    return CliRunner().invoke(main, args, prog_name="truc")


@pytest.mark.slow
def test_json() -> None:
    result = truc(*SHORT, "--json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    keys = ["variant", "unit", "seed", "agrees", "packages", "strategy", "left_out", "small_decks", "hands"]
    assert list(document) == [*keys, "random_hands", "mccfr"]
    assert (document["strategy"], document["left_out"]) == ("the stored strategy", {"hands": {}, "small_decks": {}})
    assert (document["variant"], document["unit"], document["agrees"]) == ("le-truc", "points per hand", True)
    assert [deck["deck"] for deck in document["small_decks"]] == ["tiny", "linear", "tiny-match"]
    for deck in document["small_decks"]:
        states = {"information_states", "information_states_ours"}
        assert deck.keys() == {"deck", "agrees", "policies", "cfr", "hands"} | states
        assert deck["information_states"] == deck["information_states_ours"] == 1110
        assert (deck["hands"]["hands"], deck["hands"]["agrees"]) == (200, True)
        assert [each["policy"] for each in deck["policies"]] == [
            "uniform",
            "solved",
            "random 1",
            "random 2",
            "random 3",
        ]
        for each in deck["policies"]:
            assert abs(each["value"]["openspiel"] - each["value"]["ours"]) <= each["difference"] <= 1e-9
            assert abs(each["nash_conv"]["openspiel"] - each["nash_conv"]["ours"]) <= each["difference"]
        assert [(each["algorithm"], each["iterations"]) for each in deck["cfr"]] == [("cfr", 20), ("cfr+", 20)]
    hands = document["hands"]
    assert (hands["hands"], hands["disagreements"], hands["agrees"]) == (200, [], True)
    assert hands["sigmas"] == pytest.approx((hands["mean"] - hands["value"]) / hands["standard_error"])
    assert (document["random_hands"]["hands"], document["random_hands"]["disagreements"]) == (20, [])
    (point,) = document["mccfr"]["seconds"]
    assert point["openspiel"].keys() == {"seconds", "iterations", "exploitability", "states"}
    assert point["ours"].keys() == document["mccfr"]["level"].keys() == {"seconds", "iterations", "exploitability"}
    assert point["ours"]["exploitability"] < point["openspiel"]["exploitability"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["french", "catalan"])
def test_other_presets_from_the_shell(name: str) -> None:
    """Without a strategy of theirs one is solved; what is left out is told."""
    result = truc(*SHORT, "--variant", name, "--json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert (document["variant"], document["agrees"]) == (name, True)
    assert len(document["small_decks"]) == {"french": 2, "catalan": 4}[name]
    gone = {"french": "redeal", "catalan": "the one-card hand"}[name]
    assert document["left_out"]["small_decks"].keys() == {gone}
    assert document["left_out"]["hands"].keys() > {gone}


def test_rules_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(replace(preset("tiny"), name="own", hand_size=2, fold=True, remainder=True).to_toml())
    result = truc(*SHORT, "--rules", str(file))
    assert result.exit_code == 0, result.stderr
    assert "own: a strategy solved for this played through OpenSpiel" in result.stdout
    assert "Left out of the whole game: the remainder, since it needs a score." in result.stdout
    assert "Left out of the small decks" not in result.stdout


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> compare.Comparison:
    """A comparison that takes no time, which the command then shows."""
    worth = compare.Worth("uniform", (0.5, 0.5 + 1e-15), (1.0, 1.0))
    played = compare.Played(100, 560, [], -0.3, 0.05, -0.33)
    deck = compare.Deck("tiny", (1110, 1110), [worth], {"cfr": 1e-14, "cfr+": 0.0}, played)
    point = compare.Reached(10.0, 100, 1.5, 5000)
    race = compare.Race([point], [replace(point, exploitability=1e-5, states=None)], replace(point, seconds=0.01), 1.5)
    result = compare.Comparison(
        preset("le-truc"), "points per hand", compare.STORED, 1, [deck], played, replace(played, hands=10), race
    )
    monkeypatch.setattr(compare, "compare", lambda *_, **__: result)
    return result


def test_text(found: compare.Comparison) -> None:
    result = truc("compare")
    assert result.exit_code == 0, result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 100
    for part in ("tiny", "1,110", "disagreements  none", "0.6 standard errors", "10 s", "1.00e-05", "0.01 s"):
        assert part in result.stdout


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"cfr": {"cfr": 1e-8}}, "disagree about tiny."),
        ({"worths": [compare.Worth("uniform", (0.5, 0.6), (1.0, 1.0))]}, "disagree about tiny."),
        ({"mean": -0.1}, "disagree about the hands played."),
        ({"disagreements": ["the payoffs: 1 in OpenSpiel, 2 in the tree"]}, "disagree about the hands played."),
        ({"random": compare.Played(9, 50, [], 9.0, 0.1, 0.0)}, "disagree about the hands played."),
        ({"information_states": (1110, 1111)}, "disagree about tiny."),
    ],
)
def test_disagreement_is_exit_code_1(found, change, sentence, monkeypatch) -> None:
    if change.keys() & {"cfr", "worths", "information_states"}:
        result = replace(found, decks=[replace(found.decks[0], **change)])
    elif "random" in change:
        result = replace(found, **change)
    else:
        result = replace(found, played=replace(found.played, **change))
    monkeypatch.setattr(compare, "compare", lambda *_, **__: result)
    done = truc("compare")
    assert done.exit_code == 1
    assert done.stderr.splitlines()[-1] == f"Error: OpenSpiel and this program {sentence}"
    assert json.loads(truc("compare", "--json").stdout)["agrees"] is False


def test_limits_go_to_the_comparison(found, monkeypatch) -> None:
    asked = []
    monkeypatch.setattr(compare, "compare", lambda _, **options: asked.append(options) or found)
    for arguments in ([], ["--quick"], ["--quick", "--hands", "5", "--seconds", "3", "--seconds", "1"]):
        assert truc("compare", *arguments).exit_code == 0
    assert [(each["quick"], each["hands"], each["seconds"]) for each in asked] == [
        (False, 100_000, (60.0, 300.0)),
        (True, 2_000, (10.0,)),
        (True, 5, (1.0, 3.0)),
    ]


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (("--seconds", "0"), 2, "must be a number above 0"),
        (("--hands", "1"), 2, "--hands"),
        (("--variant", "nothing"), 2, "no rule set 'nothing'"),
        (("--strategy", str(ROOT / "README.md")), 4, "not a le-truc strategy file"),
    ],
)
def test_wrong_usage(args: tuple[str, ...], code: int, sentence: str) -> None:
    done = truc("compare", *args)
    assert done.exit_code == code
    assert sentence in done.stderr


def test_without_openspiel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspiel", None)
    done = truc("compare")
    assert done.exit_code == 1
    assert done.stderr == "Error: truc compare needs OpenSpiel: pip install 'le-truc[openspiel]'.\n"


def test_the_published_comparison() -> None:
    """What lies in results/openspiel is complete, and belongs together."""
    folder = ROOT / "results" / "openspiel"
    document = json.loads((folder / "comparison.json").read_text())
    assert document["agrees"] is True
    assert (document["hands"]["hands"], document["hands"]["disagreements"]) == (100_000, [])
    assert [math.floor(point["ours"]["seconds"]) for point in document["mccfr"]["seconds"]] == [60, 300]
    assert all(len(deck["policies"]) == 22 for deck in document["small_decks"])
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["command"] == "python scripts/compare.py"
    found = {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in ("comparison.json", "README.md")
    }
    assert manifest["sha256"] == found
