"""Advice for full rules: every line has an answer, translation loses nothing, values by recursion and by the oracle."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from games.cards import hands
from games.notation import NotationError, format_hand
from games.rules import Rules
from games.state import State
from solver import answers, full_game
from solver.advise import Adviser
from solver.cfr import Solver
from solver.equity import hand_tree, payoffs
from solver.essential import essential
from solver.lines import read_line, translate
from solver.strategy import LineError, Strategy
from solver.tree import public_tree
from tests.bridge import assert_close
from tests.naive import Naive, stored
from tests.oracle import Policy, best_response, expected_value
from tests.oracle_lp import equilibrium
from tests.oracle_variants import VariantHand

CATALAN = Rules(
    "catalan-like", ("4", "5", "6"), "linear", 3, 2, (1, 2, 3), "leader",
    raise_when=("before", "after"), decision_before_target=True, one_card=True,
)  # fmt: skip
THREE_CARDS = Rules(
    "three-cards", ("4", "5"), "linear", 4, 3, (1, 2), "leader", raise_when=("before", "after"), one_card=True
)  # fmt: skip
FRENCH = Rules(
    "french-like", ("9", "8", "7"), "linear", 3, 2, (1, 2, 4), "nobody", remainder=True, fold=True, redeal=True
)  # fmt: skip
FOLDING = Rules("folding", ("9", "8", "7"), "linear", 2, 2, (1, 2, 4), "nobody", fold=True)
GAMES = {rules.name: rules for rules in (CATALAN, THREE_CARDS, FRENCH, FOLDING)}


@cache
def trained(rules: Rules, iterations: int) -> Strategy:
    """A strategy of the essential game in points."""
    solver = Solver(public_tree(essential(rules)))
    solver.step(iterations)
    return Strategy.of(solver)


def lines(rules: Rules, score: tuple[int, int] | None = None) -> list[tuple[str, ...]]:
    """Every public history with a decision after it; the second hand only at its first two turns."""
    waiting, found = [State.public(rules, score)], []
    while waiting:
        state = waiting.pop()
        if not state.is_over and not ("agree" in state.line and state.turn > 2):
            found.append(state.line)
            waiting += [state.follow((action,)) for action in state.legal_actions()]
    return found


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name == "catalan-like" else name for name in GAMES]
)
def test_every_line_has_an_answer(name: str) -> None:
    rules = GAMES[name]
    adviser, seen = Adviser(trained(rules, 300), rules=rules), set()
    for line in lines(rules):
        state = State.public(rules).follow(line)
        discards = (0, 1) if "agree" in line else ()
        answer = adviser.at(line, discards)
        assert (answer.line, answer.player, answer.stake) == (line, state.to_play, state.stake)
        possible = answer.legal.any(axis=1)
        assert possible.any()
        assert np.allclose(answer.probabilities.sum(axis=1), possible, atol=1e-9)
        assert (answer.probabilities[~answer.legal] == 0).all()
        legal = {action for a, action in enumerate(answer.actions) if answer.legal[:, a].any()}
        assert legal == set(state.legal_actions()) or (discards and legal < set(state.legal_actions()))
        for h in np.flatnonzero(possible)[::11]:
            row, table, accuracy = adviser.row(line, h, discards)
            assert row.actions == answer.actions
            assert table.sum() == pytest.approx(1)
            assert (table[~row.legal[h]] == 0).all()
            assert np.isfinite(accuracy)
        seen.add(state.phase)
    phases = {"cut", "number"} if rules.one_card else set()
    phases |= {"proposal", "agreement"} if rules.redeal else set()
    assert seen == phases | {"turn", "answer", "card"} | ({"after"} if "after" in rules.raise_when else set())


# ------------------------------------------------------------------------------------------- what translating costs


def advised(rules: Rules, adviser: Adviser, game: VariantHand) -> Policy:
    """What an adviser plays with every information state of the full game, from `Adviser.at`."""
    policy: Policy = {}
    for info, actions in states(game).items():
        _, hands, line = info
        state = State.public(rules).follow(line)
        answer = adviser.at(line, hands[0] if len(hands) == 2 else ())
        held = list(hands[-1]) if state.phase not in ("cut", "number") else []
        for seat, rank in state.played:
            if seat == state.to_play:
                held.remove(rank)
        h = answer.index(tuple(held))
        assert {a for a, legal in zip(answer.actions, answer.legal[h], strict=True) if legal} == set(actions)
        policy[info] = np.array([answer.probabilities[h, answer.actions.index(action)] for action in actions])
        assert policy[info].sum() == pytest.approx(1)
    return policy


def states(game: VariantHand) -> dict[tuple, tuple[str, ...]]:
    """The information states of a game and their actions."""
    found: dict[tuple, tuple[str, ...]] = {}
    waiting = [h for h, _ in game.roots()]
    while waiting:
        h = waiting.pop()
        player = game.player(h)
        if player == -2:
            waiting += [child for child, _ in game.outcomes(h)]
        elif player >= 0:
            found[game.info_state(h)] = game.actions(h)
            waiting += [game.child(h, a) for a in game.actions(h)]
    return found


TINY_FRENCH = Rules("tiny-french", ("9", "8", "7"), "linear", 2, 1, (1, 2, 4), "nobody", fold=True, redeal=True)
SMALL = {rules.name: rules for rules in (
    Rules("after", ("4", "5", "6"), "linear", 2, 2, (1, 2, 3), "leader", raise_when=("before", "after")),
    Rules("tap", ("4", "5"), "linear", 3, 2, (1, 2, 3), "leader", raise_when=("before", "after"), one_card=True),
    Rules("after-fold", ("4", "5"), "linear", 3, 2, (1, 2), "nobody", raise_when=("before", "after"), fold=True),
    FOLDING, TINY_FRENCH,
)}  # fmt: skip


@pytest.mark.parametrize("name", SMALL)
def test_translating_costs_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Best responses in the full game, by the oracle, get no more than those in the essential game."""
    monkeypatch.setattr(answers, "TOLERANCE", 1e6)  # the strategy answers as it is
    rules = SMALL[name]
    strategy = trained(rules, 20)  # not a good one: so there is something to gain
    game = VariantHand(rules)
    policy = advised(rules, Adviser(strategy, rules=rules), game)
    stored = strategy.evaluate()
    assert stored.exploitability > 1e-3
    for player in (0, 1):
        assert best_response(game, policy, player) <= stored.best_response[player] + 1e-9
    assert expected_value(game, policy) == pytest.approx(stored.value, abs=0.02)


# ----------------------------------------------------------------------------------------------------- at a score


def at_score(rules: Rules, score: tuple[int, int]) -> Adviser:
    """Of a hand at a score, if what follows is worth the share of the points that are missing."""

    def dealing(after: tuple[int, int]) -> float:
        led, dealt = (rules.target - points for points in after)
        return led / (led + dealt)

    tree = hand_tree(rules, score)
    solver = Solver(tree, payoffs(rules, tree.rules.ladder, score, dealing))
    solver.step(300)
    return Adviser(Strategy.of(solver), rules=rules, score=score)


@pytest.mark.parametrize(
    ("rules", "score", "phases"),
    [
        (FRENCH, (0, 0), {"proposal", "agreement", "turn", "answer", "card"}),
        (CATALAN, (11, 5), {"decision", "turn"}),
        (CATALAN, (5, 11), {"decision", "turn"}),
        (CATALAN, (11, 11), {"turn"}),
        (CATALAN, (8, 8), {"cut", "number", "turn", "answer", "card", "after"}),
        (replace(FRENCH, raise_when=("before", "after")), (3, 2), {
            "proposal", "agreement", "turn", "answer", "card", "after",
        }),
        (replace(FRENCH, remainder_refused="match"), (3, 2), {"proposal", "agreement", "turn", "answer", "card"}),
    ],
)  # fmt: skip
def test_every_line_at_a_score(rules: Rules, score: tuple[int, int], phases: set[str]) -> None:
    adviser, seen = at_score(rules, score), set()
    every = lines(rules, score)
    chosen = [every[i] for i in np.random.default_rng(1).permutation(len(every))[:300]]
    short = [line for line in every if len(line) <= 3]
    for line in dict.fromkeys((*short, *chosen)):
        state = State.public(rules, score).follow(line)
        answer = adviser.at(line, (0, 1) if "agree" in line else ())
        assert (answer.player, answer.stake) == (state.to_play, state.stake)
        possible = answer.legal.any(axis=1)
        assert np.allclose(answer.probabilities.sum(axis=1), possible, atol=1e-9)
        assert (answer.probabilities[~answer.legal] == 0).all()
        assert {action for a, action in enumerate(answer.actions) if answer.legal[:, a].any()} <= set(
            state.legal_actions()
        )
        assert np.nanmin(answer.ev) >= -1e-9
        assert np.nanmax(answer.ev) <= 1 + 1e-9
        seen.add(state.phase)
    assert seen == phases


def test_the_remainder_and_the_decision_are_explained() -> None:
    adviser = at_score(CATALAN, (11, 5))
    kinds = {hand: adviser.advise(hand).kind for hand in ("6 6", "5 5", "4 4", "4 6", "4 5", "5 6")}
    assert set(kinds.values()) <= {"plays for the top stake", "gives a point", "mix"}
    assert kinds["6 6"] == "plays for the top stake"
    assert adviser.advise("6 6").choices[0].win is not None
    assert adviser.advise("6 6").choices[1].win is None
    calls = at_score(FRENCH, (0, 0))
    found = [calls.advise(format_hand(FRENCH, held), ("keep",)) for held in calls.at(("keep",)).holdings]
    assert all("remainder" in [choice.action for choice in advice.choices] for advice in found)
    answer = calls.advise("7 7", ("keep", "remainder"))
    assert [choice.action for choice in answer.choices] == ["accept", "refuse"]
    assert answer.kind == "value call"


# ------------------------------------------------------------------------------------------- what things are worth


@pytest.fixture
def as_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the strategy does is good enough."""
    monkeypatch.setattr(answers, "TOLERANCE", 1e6)
    monkeypatch.setattr(full_game, "WORSE", 1e6)


@pytest.mark.usefixtures("as_stored")
@pytest.mark.parametrize(
    ("name", "before"), [("after", ()), ("after", ("4", "4")), ("after", ("5",)), ("three", ("4", "5")), ("three", ())]
)
def test_late_raises_by_recursion(name: str, before: tuple[str, ...]) -> None:
    """Of "card, raise": as a raise before the card, and if accepted a hand in which the raiser may hold anything."""
    rules = SMALL["after"] if name == "after" else replace(THREE_CARDS, one_card=False)
    strategy = trained(rules, 100)
    tree, policy = strategy.tree, stored(strategy.tree, strategy.probabilities)
    adviser, seen = Adviser(strategy, rules=rules), 0
    full = tuple(word for card in before for word in (card, "pass"))
    for card in rules.ranks:
        line, state = (*full, card), State.public(rules).follow(full)
        if card not in state.legal_actions() or state.apply(card).phase != "after":
            continue
        after, before_card = adviser.at(line), adviser.at(full)
        me = after.player
        now = Naive.at(tree, strategy.payoffs, policy, before)
        accepted = Naive.at(tree, strategy.payoffs, policy, (*before, "raise", "accept"))
        late = Naive.at(tree, strategy.payoffs, policy, (*before, "raise", "accept", card), (me,))
        refusals, column = now.refusal(), rules.ranks.index(card)
        for h, held in enumerate(map(tuple, after.holdings.tolist())):
            if not after.legal[h].any() or np.isnan(after.ev[h]).any():
                continue
            whole = before_card.index(tuple(sorted((*held, column))))
            refusal = refusals[whole]
            worth = accepted.ev()[whole, column]
            raising = refusal if refusal == 1 else refusal * 1 + (1 - refusal) * worth
            assert after.ev[h] == pytest.approx([raising, now.ev()[whole, 1 + column]], abs=1e-9)
            assert after.refusal[h] == pytest.approx(refusal)
            assert after.probabilities[h].tolist() == [0, 1]
            seen += 1
        answer = adviser.at((*line, "raise"))
        base = strategy.at((*before, "raise"))
        mass = late.joint.sum(axis=me)
        worth = np.divide(late.value(1 - me, True), mass, out=np.zeros_like(mass), where=mass > 0)
        for h in np.flatnonzero(answer.legal.any(axis=1) & (mass > 0)):
            assert answer.ev[h] == pytest.approx([worth[h], -1.0], abs=1e-9)
            assert answer.probabilities[h] == pytest.approx(base.probabilities[h])
            assert answer.cases[h] == answers.AS_BEFORE
    assert seen


@pytest.mark.usefixtures("as_stored")
@pytest.mark.parametrize("line", [(), ("raise",), ("8",), ("8", "raise", "accept"), ("8", "8")])
@pytest.mark.parametrize("discards", [(0, 0), (1, 2)])
def test_discards_by_recursion(discards: tuple[int, ...], line: tuple[str, ...]) -> None:
    """Everything as stored, but the cards are dealt from a deck without what the player to act has set aside."""
    rules = FRENCH
    strategy = trained(rules, 100)
    answer = Adviser(strategy, rules=rules).at(("propose", "agree", *line), discards)
    game = VariantHand(rules)
    held = hands(rules.n_ranks, rules.hand_size, rules.copies)
    row = {tuple(cards): h for h, cards in enumerate(held.tolist())}
    joint = np.zeros((len(row), len(row)))
    for a, b, p in game.deals(tuple(rules.copies - discards.count(r) for r in range(rules.n_ranks)), rules.hand_size):
        joint[row[a], row[b]] = p
    now = Naive.at(strategy.tree, strategy.payoffs, stored(strategy.tree, strategy.probabilities), line, deals=joint)
    mass = now.mine.sum(axis=1)
    names = [answer.actions.index(name) for name in now.names]
    assert (answer.legal.any(axis=1) == (mass > 0)).all()
    assert_close(answer.ev[:, names][mass > 0], now.ev()[mass > 0], 1e-9)
    assert_close(answer.opponent[mass > 0], now.opponent()[mass > 0], 1e-9)
    assert_close(answer.share, mass, 1e-9)
    assert set(answer.cases) == {answers.NEW_CARDS}
    if "fold" in answer.actions:
        fold = answer.ev[mass > 0, answer.actions.index("fold")]
        assert (fold == -answer.stake).all()


def test_choices_before_the_cards() -> None:
    adviser = Adviser(trained(CATALAN, 1000), rules=CATALAN)
    whole = trained(CATALAN, 1000).evaluate().value
    one = equilibrium_value(replace(essential(CATALAN), hand_size=1))
    cut, number = adviser.at(()), adviser.at(("tap",))
    assert number.ev[0] == pytest.approx([-whole, -one], abs=1e-3)
    assert cut.ev[0] == pytest.approx([whole, min(whole, one)], abs=1e-3)
    assert cut.probabilities[0].tolist() == [1, 0]
    assert number.probabilities[0].argmax() == number.ev[0].argmax()
    with pytest.raises(NotationError, match="nobody has cards yet"):
        adviser.advise("4 5", ())


def equilibrium_value(rules: Rules) -> float:
    """Of a small game, by linear programming."""
    game = VariantHand(rules)
    return expected_value(game, equilibrium(game))


# ------------------------------------------------------------------------------------------------------------- lines


def test_lines_as_people_type_them() -> None:
    assert read_line(CATALAN, "") == ("cut",)
    assert read_line(CATALAN, "start") == ()
    assert read_line(CATALAN, "tap one") == ("tap", "one")
    assert read_line(CATALAN, "4 4 truc y") == ("cut", "4", "pass", "4", "raise", "accept")
    assert read_line(CATALAN, "CUT 4 pass r") == ("cut", "4", "pass", "raise")
    assert read_line(CATALAN, "", (11, 3)) == ()
    assert read_line(FRENCH, "9, 8") == ("keep", "9", "8")
    assert read_line(FRENCH, "propose n r") == ("propose", "decline", "raise")
    assert read_line(FOLDING, "9") == ("9",)
    with pytest.raises(NotationError, match="'nine', is not legal"):
        read_line(FRENCH, "nine")


def test_translation() -> None:
    def essential_line(rules: Rules, text: str) -> str:
        place = translate(rules, read_line(rules, text))
        return " ".join(place.line) + (f" [{place.card}]" if place.card else "")

    assert essential_line(CATALAN, "4 pass 4 pass") == "4 4"
    assert essential_line(CATALAN, "4") == " [4]"
    assert essential_line(CATALAN, "4 raise") == "raise [4]"
    assert essential_line(CATALAN, "4 raise accept") == "raise accept 4"
    assert essential_line(CATALAN, "raise accept 4 raise accept 4") == "raise accept 4 raise accept 4"
    assert essential_line(FRENCH, "propose decline raise accept 9") == "raise accept 9"
    assert essential_line(FRENCH, "propose agree raise") == "raise"
    with pytest.raises(LineError, match="the hand is over"):
        translate(FRENCH, ("keep", "fold"))
    with pytest.raises(LineError, match="legal is"):
        translate(CATALAN, ("cut", "accept"))
    adviser = Adviser(trained(FRENCH, 100), rules=FRENCH)
    with pytest.raises(NotationError, match="set aside"):
        adviser.at(("propose", "agree"))
    with pytest.raises(NotationError, match="nobody has set cards aside"):
        adviser.at(("keep",), (0, 0))
