"""The OpenSpiel game: OpenSpiel's own checks, the exact cases, information states, and play against the referee.

Games are small or played at random: OpenSpiel walks a Python game at some 10,000 states a second.
"""

import ast
import importlib
import pickle
import sys
from collections import defaultdict
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from games.cards import counts, deal_weights, hands
from games.rules import Rules, RulesError, preset, preset_names
from games.state import State
from tests.oracle import OVER, TrucHand
from tests.test_oracle import CASES, case_rules

pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is not installed: pip install -e '.[openspiel]'")

from absl import flags  # noqa: E402
from open_spiel.python import policy as os_policy  # noqa: E402
from open_spiel.python.algorithms import expected_game_score, exploitability, generate_playthrough  # noqa: E402
from open_spiel.python.observation import INFO_STATE_OBS_TYPE, make_observation  # noqa: E402
from open_spiel.python.tests import games_sim_test  # noqa: E402

from games.openspiel import ACCEPT, FIRST_RANK, RAISE, REFUSE, load  # noqa: E402

ROOT = Path(__file__).parent.parent
PLAYTHROUGH = ROOT / "tests" / "data" / "python_truc.playthrough"
MINI = preset("mini")

STRINGS = (
    *(f"python_truc(variant={name})" for name in preset_names()),
    "python_truc",
    "python_truc(ranks=7 8 A K Q J 10 9,order=linear,all_tied=leader,hand_size=2)",
    "python_truc(ranks=1 2 3 4 5 6,order=linear,copies=1,ladder=[5])",
    "python_truc(variant=mini,win0=0.6 0.7 1,win1=0.4 0.25 0,tie=0.45)",
)
PLAIN = ("c3x2_L12",)
"""The exact case that takes a second; the others take up to a minute each."""


def rule_set(n: int, copies: int, size: int, ladder: tuple[int, ...], order="circular", tied="nobody") -> Rules:
    return Rules("test", tuple("A23456789"[:n]), order, copies, size, ladder, tied)


def case_game(name: str):
    return load(case_rules(CASES[name]), **(CASES[name]["payoffs"] or {}))


# OpenSpiel's own checks


@pytest.mark.parametrize("string", STRINGS)
def test_random_simulation(string):
    # Legal actions and their masks, unique strings, clones, histories, observers, returns, serialisation.
    pyspiel.random_sim_test(pyspiel.load_game(string), num_sims=10, serialize=True, verbose=False)


@pytest.mark.parametrize("string", STRINGS)
def test_simulation_in_python(string):
    np.random.seed(1)
    test = games_sim_test.GamesSimTest()
    for _ in range(3):
        test.sim_game(pyspiel.load_game(string))


def test_playthrough():
    if not flags.FLAGS.is_parsed():
        flags.FLAGS(["pytest"])
    committed, regenerated = generate_playthrough.replay(PLAYTHROUGH)
    assert regenerated == committed


def test_game_type():
    kind = pyspiel.load_game("python_truc").get_type()
    assert kind.dynamics == pyspiel.GameType.Dynamics.SEQUENTIAL
    assert kind.chance_mode == pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC
    assert kind.information == pyspiel.GameType.Information.IMPERFECT_INFORMATION
    assert kind.utility == pyspiel.GameType.Utility.ZERO_SUM
    assert kind.default_loadable
    assert kind.parameter_specification["variant"] == "le-truc"
    assert "python_truc" in pyspiel.registered_names()


# Parameters


def test_le_truc_is_the_default():
    game = pyspiel.load_game("python_truc")
    assert game.rules == preset("le-truc")
    assert (game.max_game_length(), game.max_chance_nodes_in_history()) == (18, 2)
    assert (game.num_distinct_actions(), game.max_chance_outcomes()) == (11, 120)
    assert (game.min_utility(), game.max_utility(), game.utility_sum()) == (-12.0, 12.0, 0.0)


@pytest.mark.parametrize("string", STRINGS)
def test_game_strings_round_trip(string):
    game = pyspiel.load_game(string)
    for copy in (pyspiel.load_game(str(game)), pickle.loads(pickle.dumps(game))):
        assert str(copy) == str(game)
        assert copy.rules == game.rules
        assert (copy.win0, copy.win1, copy.tie) == (game.win0, game.win1, game.tie)


@pytest.mark.parametrize(
    ("rules", "payoffs"),
    [
        (preset("two-card"), {}),
        (rule_set(1, 6, 3, (7,), "linear", "dealer"), {}),
        (replace(MINI, name="other", ranks=("7", "10", "K♠", "True")), {"win0": (1, 2, 3), "tie": 1 / 3}),
        (rule_set(3, 4, 2, (3,)), {"win0": (1 / 3,), "win1": (-1e-7,), "tie": -1e-7}),
    ],
)
def test_load_and_its_string(rules, payoffs):
    game = load(rules, **payoffs)
    for same in (game, pyspiel.load_game(str(game)), pyspiel.load_game("python_truc", game.get_parameters())):
        assert replace(same.rules, name=rules.name) == rules
        assert same.win0 == list(payoffs.get("win0", rules.ladder))
        assert same.win1 == list(payoffs.get("win1", [-stake for stake in rules.ladder]))
        assert same.tie == pytest.approx(payoffs.get("tie", 0.0), abs=1e-15)
        assert same.tie == game.tie
    assert game.max_utility() == -game.min_utility() == max(map(abs, (*game.win0, *game.win1, game.tie)))


@pytest.mark.parametrize(
    ("parameters", "error", "contained"),
    [
        ("variant=nine", RulesError, "no rule set 'nine', known are "),
        ("ladder=1 x", RulesError, "ladder = '1 x' must be whole numbers"),
        ("ladder=2 1", RulesError, r"ladder = \[2, 1\] must rise"),
        ("copies=99", RulesError, "copies = 99 must be"),
        ("ranks=A 2 a", RulesError, "ranks has 'a' twice"),
        ("ranks=A [2 3", RulesError, r"ranks has '\[2', but"),
        ("order=round", RulesError, "order = 'round' must be"),
        ("win0=1 2", RulesError, "win0 = '1 2' must have 7 numbers"),
        ("variant=tiny,win1=1 nan", RulesError, "win1 = '1 nan' must be finite"),
        ("win0=1 two", RulesError, "win0 = '1 two' must be numbers"),
        ("ladder=1", pyspiel.SpielError, "Wrong type for parameter ladder"),
        ("tie=0", pyspiel.SpielError, "Wrong type for parameter tie"),
        ("players=2", pyspiel.SpielError, "Unknown parameter 'players'"),
    ],
)
def test_bad_parameters(parameters, error, contained):
    with pytest.raises(error, match=contained) as caught:
        pyspiel.load_game(f"python_truc({parameters})")
    assert "\n" not in str(caught.value)


def test_rule_sets_it_cannot_play():
    with pytest.raises(RulesError, match="'a=b', but"):
        load(replace(MINI, name="odd", ranks=("A", "a=b", "3")))
    with pytest.raises(RulesError, match="tie = inf"):
        load(MINI, tie=float("inf"))


def test_without_openspiel_the_import_says_so(monkeypatch):
    monkeypatch.delitem(sys.modules, "games.openspiel")
    monkeypatch.setitem(sys.modules, "pyspiel", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'le-truc\[openspiel\]'"):
        importlib.import_module("games.openspiel")


def test_it_stands_alone():
    def imports(path):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)

    own = {f"openspiel{part}.py" for part in ("", "_actions", "_observer", "_parameters")}
    allowed = {f"games.rules.{name}" for name in ("Rules", "RulesError", "preset", "preset_names", "shown")}
    for path in sorted((ROOT / "games").glob("*.py")):
        inside = {name for name in imports(path) if name.startswith(("games", "solver"))}
        if path.name in own:
            assert {name for name in inside if not name.startswith("games.openspiel")} <= allowed
            assert "trick_winner" not in path.read_text(encoding="utf-8")
        else:
            assert not any(name.startswith("games.openspiel") for name in inside), path.name


# The deal


@pytest.mark.parametrize("rules", [preset("le-truc"), preset("two-card"), preset("tiny"), rule_set(6, 1, 3, (1, 2))])
def test_chance_is_the_exact_deal(rules):
    game, table = load(rules), hands(rules.n_ranks, rules.hand_size, rules.copies)
    assert np.array_equal([list(hand) for hand in game.hands], counts(table, rules.n_ranks))
    weights = deal_weights(rules)
    probabilities = np.zeros_like(weights)
    root = game.new_initial_state()
    assert root.is_chance_node()
    assert sum(p for _, p in root.chance_outcomes()) == pytest.approx(1, abs=1e-14)
    for i, p in root.chance_outcomes():
        dealer = root.child(i)
        assert dealer.is_chance_node()
        assert sum(q for _, q in dealer.chance_outcomes()) == pytest.approx(1, abs=1e-14)
        for j, q in dealer.chance_outcomes():
            probabilities[i, j] = p * q
    assert np.array_equal(probabilities > 0, weights > 0)
    np.testing.assert_allclose(probabilities, weights / weights.sum(), rtol=1e-14, atol=0)


# The exact cases


@pytest.mark.parametrize(
    "name", [name if name in PLAIN else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def test_exact_case(name):
    case, game = CASES[name], case_game(name)
    uniform = os_policy.UniformRandomPolicy(game)
    best = []
    for player in (0, 1):
        result = exploitability.best_response(game, uniform, player)
        best.append(result["best_response_value"])
        assert best[player] == pytest.approx(case[f"br{player}_vs_uniform"], abs=1e-9)
        assert result["on_policy_values"] == pytest.approx([case["ev_uniform"], -case["ev_uniform"]], abs=1e-9)
        choices = [len(states[0][0].legal_actions()) for states in result["info_sets"].values()]
        assert len(choices) == case[f"infosets_all_p{player}"]
        assert sum(number >= 2 for number in choices) == case[f"infosets_ge2_p{player}"]
    assert sum(best) / 2 == pytest.approx(case["exploitability_uniform"], abs=1e-9)


@pytest.mark.parametrize(
    "name", ["c3x2_L12", *(pytest.param(name, marks=pytest.mark.slow) for name in list(CASES)[1:])]
)
def test_exploitability_and_expected_score(name):
    case, game = CASES[name], case_game(name)
    uniform = os_policy.UniformRandomPolicy(game)
    found = exploitability.exploitability(game, uniform)
    assert found == pytest.approx(case["exploitability_uniform"], abs=1e-9)
    score = expected_game_score.policy_value(game.new_initial_state(), [uniform, uniform])
    assert score == pytest.approx([case["ev_uniform"], -case["ev_uniform"]], abs=1e-9)


# Information states


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param(rule_set(3, 4, 3, (1, 2), tied="leader"), id="3x4", marks=pytest.mark.slow),
        pytest.param(rule_set(4, 3, 2, (1, 2, 4, 6), "linear"), id="4x3"),
    ],
)
def test_information_states_of_the_whole_tree(rules):
    """Strings and tensors are those of the oracle's information states, one to one, and recall what they have seen."""
    game, other = load(rules), TrucHand(rules)
    decision = {}  # string: who acts, the legal actions and the own past
    string_of, tensor_of = {}, {}  # by (player, own hand, public line), for both players wherever they are
    seen = defaultdict(dict)  # (player, line): own cards held: string and tensor of the observation

    def visit(state, h, past):
        line = h[2]
        for player in (0, 1):
            key = (player, h[player], line)
            string, tensor = state.information_state_string(player), tuple(state.information_state_tensor(player))
            assert string_of.setdefault(key, string) == string
            assert tensor_of.setdefault(key, tensor) == tensor
            observation = (state.observation_string(player), tuple(state.observation_tensor(player)))
            assert seen[player, line].setdefault(state.hand(player), observation) == observation
        player = other.player(h)
        if player == OVER:
            assert state.is_terminal()
            assert state.returns() == [other.utility(h), -other.utility(h)]
            return
        assert state.current_player() == player
        legal = tuple(state.action_to_string(action) for action in state.legal_actions())
        assert legal == other.actions(h)
        string = state.information_state_string()
        assert decision.setdefault(string, (player, legal, past[player])) == (player, legal, past[player])
        for action, word in zip(state.legal_actions(), legal, strict=True):
            mine = (*past[player], (string, word))
            visit(state.child(action), other.child(h, word), (mine, past[1]) if player == 0 else (past[0], mine))

    table = [tuple(map(int, hand)) for hand in hands(rules.n_ranks, rules.hand_size, rules.copies)]
    root = game.new_initial_state()
    for i, _ in root.chance_outcomes():
        leader = root.child(i)
        for j, _ in leader.chance_outcomes():
            visit(leader.child(j), (table[i], table[j], ()), ((), ()))
    for names in (string_of, tensor_of):
        assert len(set(names.values())) == len(names)
    for by_hand in seen.values():
        for kind in (0, 1):
            assert len({observation[kind] for observation in by_hand.values()}) == len(by_hand)


def test_deal_does_not_tell_the_other_hand():
    state = pyspiel.load_game("python_truc(variant=mini)").new_initial_state()
    state.apply_action(3)
    before = state.information_state_string(0), state.information_state_tensor(0), state.observation_tensor(0)[:14]
    assert state.information_state_string(1) == "dealer []"
    state.apply_action(7)
    after = state.information_state_string(0), state.information_state_tensor(0), state.observation_tensor(0)[:14]
    assert after == before


def test_strings_and_tensors_of_a_hand():
    game = pyspiel.load_game("python_truc")
    state = game.new_initial_state()
    for word in ("deal [A 3 8]", "deal [7 7 8]", "raise", "accept", "8", "7", "A"):
        state.apply_action(state.string_to_action(word))
    assert state.information_state_string(0) == "leader [3] raise accept 8 7 A"
    assert state.information_state_string(1) == "dealer [7 8] raise accept 8 7 A"
    assert state.observation_string(1) == (
        "dealer [7 8] dealer turn stake 2 raised by leader led A played [A 8] [7] tricks [leader]"
    )
    assert str(state) == "leader [3] dealer [7 8] raise accept 8 7 A"
    info = make_observation(game, INFO_STATE_OBS_TYPE)
    info.set_from(state, 1)
    assert np.argwhere(info.dict["hand"]).tolist() == [[6, 0], [7, 0]]
    line = [RAISE, ACCEPT, FIRST_RANK + 7, FIRST_RANK + 6, FIRST_RANK]
    assert np.argwhere(info.dict["line"]).tolist() == [[i, action] for i, action in enumerate(line)]
    assert info.tensor.tolist() == state.information_state_tensor(1)
    table = make_observation(game)
    table.set_from(state, 1)
    found = {key: np.argwhere(piece).tolist() for key, piece in table.dict.items()}
    assert found == {
        "player": [[1]],
        "hand": [[6, 0], [7, 0]],
        "actor": [[1]],
        "phase": [[0]],
        "stake": [[1]],
        "raiser": [[0]],
        "led": [[0]],
        "played": [[0, 0, 0], [0, 7, 0], [1, 6, 0]],
        "tricks": [[0, 0]],
    }
    public = make_observation(
        game, pyspiel.IIGObservationType(perfect_recall=False, private_info=pyspiel.PrivateInfoType.NONE)
    )
    assert public.string_from(state, 0) == public.string_from(state, 1)
    assert "hand" not in public.dict
    both = pyspiel.IIGObservationType(perfect_recall=False, private_info=pyspiel.PrivateInfoType.ALL_PLAYERS)
    with pytest.raises(ValueError, match="both players"):
        make_observation(game, both)


# Play


def test_illegal_actions_are_refused():
    state = pyspiel.load_game("python_truc(variant=tiny)").new_initial_state()
    with pytest.raises(ValueError, match="the action 99 is not legal here"):
        state.apply_action(99)
    state.apply_action(0)
    state.apply_action(state.legal_actions()[0])
    with pytest.raises(ValueError, match="the action 1 is not legal here"):
        state.apply_action(ACCEPT)
    state.apply_action(RAISE)
    state.apply_action(REFUSE)
    assert state.returns() == [1.0, -1.0]
    with pytest.raises(ValueError, match=r"legal are \[\]"):
        state.apply_action(RAISE)


def test_history_leads_to_the_same_state():
    game = pyspiel.load_game("python_truc")
    state, rng = game.new_initial_state(), np.random.default_rng(5)
    while not state.is_terminal():
        again = game.new_initial_state()
        for action in state.history():
            again.apply_action(action)
        copies = (again, state.clone(), pickle.loads(pickle.dumps(state)), game.deserialize_state(state.serialize()))
        for copy in copies:
            assert copy.history_str() == state.history_str()
            assert vars(copy) == vars(state)
            assert copy.legal_actions() == state.legal_actions()
        state.apply_action(int(rng.choice(state.legal_actions())))


@pytest.mark.parametrize(
    ("rules", "number"),
    [
        (preset("le-truc"), 3000),
        (MINI, 500),
        (preset("two-card"), 300),
        (rule_set(2, 12, 3, tuple(range(1, 9)), "linear", "dealer"), 300),
        (rule_set(5, 2, 3, (1, 3), tied="leader"), 300),
        (rule_set(9, 1, 3, (1, 2, 3)), 300),
        (rule_set(3, 1, 1, (2, 3), tied="leader"), 100),
    ],
)
def test_random_play_against_the_referee(rules, number):
    game, rng = load(rules), np.random.default_rng(2024)
    table = hands(rules.n_ranks, rules.hand_size, rules.copies)
    for _ in range(number):
        state, dealt = game.new_initial_state(), []
        while state.is_chance_node():
            outcomes, probabilities = zip(*state.chance_outcomes(), strict=True)
            dealt.append(int(rng.choice(outcomes, p=probabilities)))
            state.apply_action(dealt[-1])
        referee = State.deal(rules, *table[dealt])
        while not referee.is_over:
            assert state.current_player() == referee.to_play
            legal = state.legal_actions()
            assert tuple(state.action_to_string(action) for action in legal) == referee.legal_actions()
            # Refusals are made rare: most hands would end with one before the last trick.
            weights = np.array([0.1 if action == REFUSE else 1.0 for action in legal])
            action = int(rng.choice(legal, p=weights / weights.sum()))
            referee = referee.apply(state.action_to_string(action))
            state.apply_action(action)
        assert state.is_terminal()
        assert tuple(state.returns()) == referee.returns


@pytest.mark.parametrize(
    "rules",
    [
        preset("tiny"),
        rule_set(3, 2, 3, (1, 2, 4, 6, 8, 10)),
        rule_set(1, 6, 3, tuple(range(1, 10)), "linear", "dealer"),
        rule_set(2, 3, 3, tuple(range(1, 10)), "linear"),
        rule_set(6, 1, 3, tuple(range(1, 10))),
        rule_set(6, 1, 3, tuple(range(1, 10)), "linear"),
        rule_set(4, 1, 2, tuple(range(1, 10))),
        rule_set(4, 2, 2, tuple(range(1, 10))),
        rule_set(2, 1, 1, tuple(range(1, 10)), "linear"),
        rule_set(3, 1, 1, (4,)),
    ],
    ids=lambda rules: f"{rules.order}-{rules.n_ranks}x{rules.copies}-{rules.hand_size}-{len(rules.ladder)}",
)
def test_the_longest_hand_and_the_highest_payoff(rules):
    """Exactly those that the referee can reach in any deal."""

    def brief(state: State) -> State:
        return replace(state, line=state.line[-1:])  # what else there was makes no difference

    @cache
    def reach(state: State) -> tuple[int, int]:
        if state.is_over:
            return 0, abs(state.returns[0])
        ahead = [reach(brief(state.apply(action))) for action in state.legal_actions()]
        return 1 + max(length for length, _ in ahead), max(most for _, most in ahead)

    table = hands(rules.n_ranks, rules.hand_size, rules.copies)
    found = [reach(State.deal(rules, *table[[i, j]])) for i, j in np.argwhere(deal_weights(rules) > 0)]
    game = load(rules)
    assert game.max_game_length() == max(length for length, _ in found)
    assert game.max_utility() == -game.min_utility() == max(most for _, most in found)
