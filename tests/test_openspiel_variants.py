"""The OpenSpiel game with the rules of the French and the Catalan game: folds, remainders, raises after the card, ...

Whole trees of small decks, and random play against the referee; test_openspiel_exact.py has the exact cases.
"""

import pickle
from collections import defaultdict
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from games.cards import deal_weights, hands
from games.rules import Rules, RulesError, preset
from games.state import State

pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is not installed: pip install -e '.[openspiel]'")

from absl import flags  # noqa: E402
from open_spiel.python.algorithms import generate_playthrough  # noqa: E402
from open_spiel.python.observation import INFO_STATE_OBS_TYPE, make_observation  # noqa: E402

from games.openspiel import load  # noqa: E402

DATA = Path(__file__).parent / "data"

SCORES = {"none": (0, 0), "leader": (11, 0), "dealer": (0, 11), "both": (11, 11)}


def small(n: int, copies: int, size: int, ladder: tuple[int, ...] = (1, 2), tied="nobody", **more) -> Rules:
    return Rules("small", tuple("A2345678"[:n]), "linear", copies, size, ladder, tied, **more)


AFTER = {"raise_when": ("before", "after")}
MATCH = {"match": (40.0, -50.0)}
OFF = {"redeal": False, "fold": False, "remainder": False}
TREES = {
    "after": (small(2, 3, 2, (1, 2, 4), **AFTER), {}),
    "after 3": (small(2, 3, 3, (1, 2), "leader", **AFTER), {}),
    "after 6x1": (small(6, 1, 3, (1, 2), **AFTER), {}),
    "fold": (small(2, 4, 2, (1, 2, 3), fold=True), {}),
    "fold after": (small(2, 3, 2, (1, 2, 3), fold=True, **AFTER), {}),
    "remainder": (small(2, 3, 2, (1, 2, 4), remainder=True), MATCH),
    "remainder match": (small(2, 3, 2, (1, 2, 4), remainder=True, remainder_refused="match", fold=True), MATCH),
    "remainder after": (small(2, 2, 2, (1, 2, 4), remainder=True, **AFTER), MATCH),
    "remainder in points": (small(2, 2, 2, (1, 2), remainder=True), {}),
    "remainder, one stake": (small(2, 2, 2, (3,), remainder=True, **AFTER), MATCH),
    "redeal": (small(2, 4, 2, (1, 2), redeal=True), {}),
    "redeal 3": (small(2, 6, 3, (1,), "leader", redeal=True), {}),
    "redeal 4x1": (small(4, 1, 1, (1, 2), redeal=True, fold=True), {}),
    "one card": (small(2, 3, 2, (1, 2), "dealer", one_card=True), {}),
    "one card after": (small(3, 2, 2, (1, 2), one_card=True, fold=True, **AFTER), {}),
    "one card, never": (small(2, 3, 2, (1, 2), one_card=True), {"before_target": "dealer"}),
    "decision of the leader": (small(3, 2, 3, (1, 2), decision_before_target=True), {"before_target": "leader"}),
    "decision of the dealer": (
        small(2, 3, 2, (2, 3), decision_before_target=True, one_card=True, fold=True),
        {"before_target": "dealer", "declined": 7.0},
    ),
    "no decision": (small(2, 3, 2, decision_before_target=True, **AFTER), {"before_target": "both"}),
    "catalan": (small(2, 3, 2, (1, 2, 3), "leader", decision_before_target=True, one_card=True, **AFTER), {}),
    "all": (
        small(2, 2, 1, (1, 2, 3), fold=True, remainder=True, redeal=True, **AFTER),
        {"win0": (1, 2, 4), "win1": (-1, -3, -5), "tie": 6.0, **MATCH},
    ),
}
"""By what they are there for: rule sets and payoffs whose whole tree is small."""

STRINGS = (
    "python_truc(variant=french,match=12 -12)",
    "python_truc(variant=french,redeal=off,fold=off,remainder_refused=match,match=1 0,tie=0.5)",
    "python_truc(variant=catalan,before_target=leader)",
    "python_truc(variant=catalan,before_target=dealer,win0=0.1 0.2 0.3,win1=0 0 0,declined=[0.25])",
    "python_truc(variant=catalan,before_target=both)",
    "python_truc(variant=mini,raise_when=before after,fold=on,one_card=on,copies=2)",
)


# Whole trees


class Walk:
    """Every history of a game, and on the way what must hold at each."""

    def __init__(self, game):
        self.game, self.longest, self.most, self.words, self.chance = game, 0, 0.0, set(), 0
        self.decision = {}  # information state: who acts, the legal actions and his own past
        self.known = {}  # (player, own cards dealt, public line, hands dealt): all that the player can tell
        self.private = {}  # information state's string and tensor: that key
        self.public = {}  # public line: all that everybody can tell
        self.observed = defaultdict(set)  # (player, public line): (cards held and set aside, observation)
        self.asked = defaultdict(set)  # public observation: what can happen next to the public
        self.observer = make_observer(game)
        self.visit(game.new_initial_state(), (), ((), ()), ((), ()), 0)

    def visit(self, state, line, dealt, past, chance):
        actor = state.current_player()
        self.chance = max(self.chance, chance)
        # Whether and by whom a decision is due is public, and so is the public observation.
        everybody = (actor, state.phase, self.observer.string_from(state, 0))
        self.observer.set_from(state, 0)
        everybody += (tuple(self.observer.tensor), state.level)
        hands = tuple(map(len, dealt))  # how many there have been is public
        assert self.public.setdefault((line, hands), everybody) == everybody
        self.asked[everybody[2]].add(everybody[:2] + everybody[3:])
        for player in (0, 1):
            key = (player, dealt[player], line, hands)
            string, tensor = state.information_state_string(player), tuple(state.information_state_tensor(player))
            legal = tuple(state.legal_actions()) if actor == player else ()
            told = (string, tensor, state.observation_string(player), tuple(state.observation_tensor(player)), legal)
            assert self.known.setdefault(key, told) == told
            if actor >= 0:
                assert self.private.setdefault(string, key) == self.private.setdefault(tensor, key) == key
                holding = (state.hand(player), state.set_aside(player))
                self.observed[player, line].add((holding, *told[2:4]))
        if state.is_terminal():
            returns = state.returns()
            assert sum(returns) == 0
            self.most, self.longest = max(self.most, abs(returns[0])), max(self.longest, len(line))
            assert state.legal_actions() == []
            return
        if actor < 0:
            assert sum(p for _, p in state.chance_outcomes()) == pytest.approx(1, abs=1e-14)
            who = 0 if len(dealt[0]) == len(dealt[1]) else 1
            for outcome, p in state.chance_outcomes():
                assert p > 0
                now = (*dealt[who], state.action_to_string(outcome))
                self.visit(
                    state.child(outcome), line, (now, dealt[1]) if who == 0 else (dealt[0], now), past, chance + 1
                )
            return
        string, legal = state.information_state_string(), tuple(state.legal_actions())
        assert list(legal) == sorted(set(legal))
        assert self.decision.setdefault(string, (actor, legal, past[actor])) == (actor, legal, past[actor])
        for action in legal:
            word = state.action_to_string(action)
            self.words.add(word)
            mine = (*past[actor], (string, action))
            then = (mine, past[1]) if actor == 0 else (past[0], mine)
            self.visit(state.child(action), (*line, word), dealt, then, chance)


def make_observer(game):
    kind = pyspiel.IIGObservationType(perfect_recall=False, private_info=pyspiel.PrivateInfoType.NONE)
    return make_observation(game, kind)


SLOW_TREES = ("after 6x1",)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW_TREES else name for name in TREES]
)
def test_whole_tree(name):
    """Information states are the same where the own cards and the public line are, and recall what they have seen."""
    rules, payoffs = TREES[name]
    game = load(rules, **payoffs)
    walk = Walk(game)
    # Strings and tensors tell the same, and so do observations apart what a player holds.
    for seen in walk.observed.values():
        for kind in (1, 2):
            assert len({each[kind] for each in seen}) == len(seen)
    assert all(len(each) == 1 for each in walk.asked.values())
    # The game's own bounds are those of the tree.
    assert game.max_game_length() == walk.longest
    assert game.max_utility() == -game.min_utility() == walk.most
    assert game.max_chance_nodes_in_history() == walk.chance
    there = set(game.actions.words)
    never = {"one card, never": {"cut", "tap", "three", "one"}, "remainder in points": {"remainder"}}
    never |= {"no decision": {"play", "decline", "raise", "accept", "refuse", "pass"}}
    never |= {"decision of the dealer": {"cut", "tap", "three", "one"}, "catalan": {"play", "decline"}}
    unraised = {"raise", "accept", "refuse", "pass", "remainder"}
    if name.startswith("decision") or rules.ladder in ((1,), (3,)):
        never[name] = never.get(name, set()) | unraised
    assert walk.words == there - never.get(name, set())


@pytest.mark.parametrize(
    ("rules", "before_target"),
    [
        (small(6, 1, 3, tuple(range(1, 10)), **AFTER), "none"),
        (small(6, 1, 3, (1, 2, 3), **AFTER), "none"),
        (small(3, 2, 3, (1, 2, 4, 6, 8, 10), remainder=True, **AFTER), "none"),
        (small(2, 6, 3, (1, 2, 3), fold=True, redeal=True, **AFTER), "none"),
        (small(4, 1, 2, (1, 2), one_card=True, **AFTER), "none"),
        (small(4, 1, 2, (1, 2, 3), one_card=True, **AFTER), "leader"),
        (small(3, 2, 3, (2, 3), decision_before_target=True, **AFTER), "leader"),
        (small(3, 2, 3, (2, 3), decision_before_target=True, **AFTER), "both"),
    ],
)
def test_the_longest_hand(rules, before_target):
    """Exactly the one that the referee can reach in any deal."""

    @cache
    def reach(state: State) -> int:
        if state.is_over:
            return 0
        # A redeal leads to as long a hand as any deal; what else there was in the line makes no difference.
        ahead = [state.apply(action) for action in state.legal_actions() if action != "agree"]
        return 1 + max(reach(replace(after, line=after.line[-1:])) for after in ahead)

    table = hands(rules.n_ranks, rules.hand_size, rules.copies)
    start, opening = State.begin(rules, SCORES[before_target]), 0
    while start.phase != "deal":
        start, opening = start.apply({"cut": "tap", "number": "three"}[start.phase]), opening + 1
    found = [reach(replace(start.give(*table[[i, j]]), line=())) for i, j in np.argwhere(deal_weights(rules) > 0)]
    assert load(rules, before_target=before_target, **MATCH).max_game_length() == opening + max(found)


# Play


def random_play(game, rng, check):
    """One hand; `check` sees each state where somebody acts, and the action's word."""
    state, dealt = game.new_initial_state(), []
    while not state.is_terminal():
        if state.is_chance_node():
            outcomes, probabilities = zip(*state.chance_outcomes(), strict=True)
            action = int(rng.choice(outcomes, p=probabilities))
            dealt.append(game.dealt(state.size)[action])
        else:
            # What ends a hand is made rare: most would end before the last trick.
            legal = state.legal_actions()
            rare = [state.action_to_string(action) in ("refuse", "fold") for action in legal]
            weights = np.where(rare, 0.1, 1.0)
            action = int(rng.choice(legal, p=weights / weights.sum()))
            check(state, dealt, state.action_to_string(action))
            dealt = []
        state.apply_action(action)
    return state


@pytest.mark.parametrize("before_target", SCORES)
@pytest.mark.parametrize(
    ("rules", "number"),
    [
        (preset("french"), 150),
        (preset("catalan"), 150),
        (replace(preset("catalan"), name="folds", fold=True, all_tied="nobody", remainder=True), 100),
        (small(3, 4, 2, (2, 3), fold=True, remainder=True, remainder_refused="match", redeal=True, **AFTER), 150),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_random_play_against_the_referee(rules, number, before_target):
    levels = [float(level) for level in range(1, len(rules.ladder) + 1)]
    game = load(rules, levels, [-10 - level for level in levels], 0.5, (50.0, -60.0), 77.0, before_target)
    ends, rng = {"nobody": 0.5, "declined": 77.0}, np.random.default_rng(7)

    def check(state, dealt, word):
        nonlocal referee
        if dealt:
            referee = referee.give(*([rank for rank, n in enumerate(hand) for _ in range(n)] for hand in dealt))
        assert state.current_player() == referee.to_play
        legal = [state.action_to_string(action) for action in state.legal_actions()]
        assert sorted(legal) == sorted(referee.legal_actions())
        referee = referee.apply(word)

    for _ in range(number):
        referee = State.begin(rules, SCORES[before_target])
        state = random_play(game, rng, check)
        assert referee.is_over
        if referee.line == ("decline",):
            expected = ends["declined"]
        elif referee.winner < 0:
            expected = ends["nobody"]
        else:
            # With both before the target the referee says that the hand is the match's: any stake is enough there.
            both = rules.decision_before_target and before_target == "both"
            level = 0 if both else referee.level
            expected = game.level_payoffs[level][referee.winner]
        assert state.returns() == [expected, -expected]


@pytest.mark.parametrize("string", STRINGS)
def test_random_simulation(string):
    # Legal actions and their masks, unique strings, clones, histories, observers, returns, serialisation.
    pyspiel.random_sim_test(pyspiel.load_game(string), num_sims=10, serialize=True, verbose=False)


@pytest.mark.parametrize("string", STRINGS)
def test_copies(string):
    game, rng = pyspiel.load_game(string), np.random.default_rng(3)

    def check(state, dealt, word):
        again = game.new_initial_state()
        for action in state.history():
            again.apply_action(action)
        copies = (again, state.clone(), pickle.loads(pickle.dumps(state)), game.deserialize_state(state.serialize()))
        for copy in copies:
            assert vars(copy) == vars(state)
            assert copy.legal_actions() == state.legal_actions()

    for _ in range(3):
        random_play(game, rng, check)


@pytest.mark.parametrize("name", ["french", "catalan"])
def test_playthrough(name):
    if not flags.FLAGS.is_parsed():
        flags.FLAGS(["pytest"])
    committed, regenerated = generate_playthrough.replay(DATA / f"python_truc_{name}.playthrough")
    assert regenerated == committed


# Strings and tensors


def played(game, *words):
    state = game.new_initial_state()
    for word in words:
        state.apply_action(state.string_to_action(word))
    return state


def test_a_redeal_is_remembered():
    game = pyspiel.load_game("python_truc(variant=french,match=1 -1)")
    first = ("deal [9 A 7]", "deal [9 10 10]", "propose", "agree")
    state = played(game, *first, "deal [J J 8]", "deal [9 Q 7]", "remainder")
    assert state.information_state_string(0) == "leader [J J 8] aside [9 A 7] propose agree remainder"
    assert state.information_state_string(1) == "dealer [9 Q 7] aside [9 10 10] propose agree remainder"
    assert state.observation_string(1) == (
        "dealer [9 Q 7] aside [9 10 10] dealer answer remainder stake 1 raised by leader played [] [] tricks [] "
        "opening [propose agree]"
    )
    assert str(state) == "leader [J J 8] dealer [9 Q 7] aside [9 A 7] aside [9 10 10] propose agree remainder"
    assert list(map(state.action_to_string, state.legal_actions())) == ["accept", "refuse"]
    info = make_observation(game, INFO_STATE_OBS_TYPE)
    info.set_from(state, 1)
    found = {key: np.argwhere(piece).tolist() for key, piece in info.dict.items()}
    # raise, accept, refuse, eight ranks, then remainder (11), fold, propose (13), keep, agree (15), decline
    assert found == {
        "player": [[1]],
        "hand": [[0, 0], [3, 0], [7, 0]],
        "aside": [[0, 0], [1, 0], [1, 1]],
        "line": [[0, 13], [1, 15], [2, 11]],
    }
    assert info.tensor.tolist() == state.information_state_tensor(1)
    state.apply_action(state.string_to_action("accept"))
    assert state.observation_string(0).startswith("leader [J J 8] aside [9 A 7] leader card stake match raised by")
    assert list(map(state.action_to_string, state.legal_actions())) == ["J", "8", "fold"]
    # The cards set aside are not dealt again: of the nines one is left, when the leader's new hand is dealt, two.
    state = played(game, *first)
    new = [state.action_to_string(outcome) for outcome, _ in state.chance_outcomes()]
    assert "deal [9 9 10]" in new
    assert "deal [9 9 9]" not in new
    state.apply_action(state.string_to_action("deal [9 10 J]"))
    assert not any("[9 9" in state.action_to_string(outcome) for outcome, _ in state.chance_outcomes())


def test_a_raise_after_the_card():
    game = pyspiel.load_game("python_truc(variant=catalan)")
    state = played(game, "tap", "three", "deal [4 5 3]", "deal [6 6 2]", "5", "raise")
    assert state.information_state_string(1) == "dealer [6 6 2] tap three 5 raise"
    assert state.observation_string(1) == (
        "dealer [6 6 2] dealer answer after stake 1 raised by leader led 5 played [5] [] tricks [] opening [tap three]"
    )
    table = make_observation(game)
    table.set_from(state, 1)
    found = {key: np.argwhere(piece).tolist() for key, piece in table.dict.items()}
    assert found == {
        "player": [[1]],
        "hand": [[2, 0], [2, 1], [8, 0]],
        "actor": [[1]],
        "phase": [[1]],
        "stake": [[0]],
        "raiser": [[0]],
        "led": [[1]],
        "played": [[0, 1, 0]],
        "tricks": [],
        "asked": [[0]],
        "opening": [[3], [4]],  # play, decline, cut, tap, three, one
    }
    state.apply_action(state.string_to_action("accept"))
    # The dealer's turn, with a raise of his own; who raised last has none after his next card.
    assert list(map(state.action_to_string, state.legal_actions())) == ["raise", "6", "2"]
    state.apply_action(state.string_to_action("2"))
    assert state.observation_string(0).startswith("leader [4 3] dealer after stake 2 raised by leader played [5] [2]")
    assert list(map(state.action_to_string, state.legal_actions())) == ["raise", "pass"]
    for word in ("pass", "6", "pass", "3"):
        state.apply_action(state.string_to_action(word))
    assert (state.current_player(), state.phase) == (0, "turn")
    assert list(map(state.action_to_string, state.legal_actions())) == ["4"]


def test_before_the_target():
    state = played(
        pyspiel.load_game("python_truc(variant=catalan,before_target=dealer)"), "deal [4 5 6]", "deal [1 2 3]"
    )
    assert state.current_player() == 1
    assert state.information_state_string(1) == "dealer [1 2 3]"
    assert state.child(state.string_to_action("decline")).returns() == [1.0, -1.0]
    state.apply_action(state.string_to_action("play"))
    assert state.current_player() == 0
    assert list(map(state.action_to_string, state.legal_actions())) == ["4", "5", "6"]
    for word in ("4", "1", "2", "5"):
        assert not {"raise", "pass"} & set(map(state.action_to_string, state.legal_actions()))
        state.apply_action(state.string_to_action(word))
    assert state.returns() == [-3.0, 3.0]


def test_the_numbers_of_actions_do_not_depend_on_the_score():
    for name in ("catalan", "french"):
        games = [load(preset(name), before_target=standing) for standing in SCORES] + [load(preset(name), **MATCH)]
        assert len({tuple(game.actions.words) for game in games}) == 1
    assert load(preset("catalan")).actions.words[13:] == ["pass", "play", "decline", "cut", "tap", "three", "one"]


# Parameters


def test_rule_fields():
    game = pyspiel.load_game("python_truc(variant=mini,raise_when=before after,fold=on,remainder=on)")
    expected = replace(preset("mini"), name="custom", raise_when=("before", "after"), fold=True, remainder=True)
    assert game.rules == expected
    off = "python_truc(variant=french,redeal=off,fold=off,remainder=off)"
    assert pyspiel.load_game(off).rules == replace(preset("french"), name="custom", **OFF)
    for rules in (expected, preset("french"), replace(preset("catalan"), name="other", one_card=False)):
        game = load(rules, **MATCH, declined=0.5, before_target="both")
        same = pyspiel.load_game(str(game))
        assert replace(same.rules, name=rules.name) == rules
        assert same.payoffs == game.payoffs
        assert (same.payoffs.match, same.payoffs.declined) == ([40.0, -50.0], 0.5)


@pytest.mark.parametrize(
    ("parameters", "contained"),
    [
        ("fold=yes", "fold = 'yes' must be on or off"),
        ("raise_when=after", r"raise_when = \['after'\] must contain"),
        ("variant=catalan,redeal=on", "redeal = true cannot go together"),
        ("remainder_refused=points", "remainder_refused = 'points' must be stake or match"),
        ("before_target=dealers", "before_target = 'dealers' must be none, leader, dealer or both"),
        ("variant=french,match=1 2 3", "match = '1 2 3' must have 2 numbers, for the match won and lost"),
        ("variant=french,match=1 inf", "match = '1 inf' must be finite"),
        ("declined=1 2", "declined = '1 2' must have 1 number, for the hand declined"),
        ("variant=catalan,before_target=leader,win0=0 0 1", "needs the one for the hand declined"),
    ],
)
def test_bad_parameters(parameters, contained):
    with pytest.raises(RulesError, match=contained) as caught:
        pyspiel.load_game(f"python_truc({parameters})")
    assert "\n" not in str(caught.value)
