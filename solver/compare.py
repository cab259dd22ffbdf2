"""The comparison with OpenSpiel (extra `openspiel`): the same numbers by programs that share nothing.

Small decks, with every action that the tree has: the number of information states, the value and nash_conv of the same
policies, the policies that CFR and CFR+ come to, and random hands.  The whole game, as it is solved in points (see
`solver.essential`): hands played through OpenSpiel's states, where legal actions, who acts and payoffs must be the
tree's.  And what OpenSpiel's external-sampling MCCFR and our solver come to in the same time on one thread, both scored
by our exact best response.  Every function tells a sentence now and then how far it is.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
import pyspiel
from open_spiel.python import policy as policies

from games.openspiel import TrucGame, TrucState
from games.rules import Rules, preset
from solver.best_response import Evaluator
from solver.census import census
from solver.cfr import DEFAULT_ALGORITHM, PROBABILITY, Payoffs, Solver
from solver.equity import decider, score_rules
from solver.essential import left_out
from solver.openspiel import OpenSpielPolicy, imported, load_game, tabular
from solver.openspiel_algorithms import CFR, Remembered, sampled_table, worth
from solver.solve import warm_up
from solver.storage import packages
from solver.strategy import LineError, Strategy, child, ending, normalised
from solver.tree import Tree

Tell = Callable[[str], None]

AGREE = 1e-9  # for values, nash_conv and probabilities
SIGMAS = 4.0  # for the mean of played hands
ZERO = 1e-12  # positive regrets up to this count as none in CFR on both sides
CFR_ITERATIONS, SOLVED_ITERATIONS = 20, 500
RANDOMS, RANDOMS_QUICK = 20, 3  # random policies of each small deck
DECK_HANDS, DECK_HANDS_QUICK = 1000, 200  # random hands of each
STORED, HERE = "the stored strategy", "a strategy solved for this"
CHUNK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Worth:
    """The same policy's numbers by OpenSpiel and by us."""

    policy: str
    value: tuple[float, float]
    nash_conv: tuple[float, float]

    @property
    def difference(self) -> float:
        """The larger of both differences."""
        return max(abs(a - b) for a, b in (self.value, self.nash_conv))


class Small(NamedTuple):
    """A small deck to be compared; decider: as for `solver.tree.Tree`."""

    rules: Rules
    payoffs: Payoffs
    decider: int | None = None


@dataclass(frozen=True, slots=True)
class Deck:
    """A small deck: information states by OpenSpiel and as counted in the tree, the policies' worth, by algorithm the
    largest difference of two probabilities, and hands of uniform play."""

    name: str
    information_states: tuple[int, int]
    worths: list[Worth]
    cfr: dict[str, float]
    played: Played

    @property
    def agrees(self) -> bool:
        """Whether there are as many states, nothing differs by more than AGREE, and the hands agree."""
        theirs, ours = self.information_states
        difference = max([*(each.difference for each in self.worths), *self.cfr.values()])
        return theirs == ours and difference <= AGREE and self.played.agrees

    def json(self) -> dict[str, Any]:
        """As a JSON object: see `Comparison.json`."""
        return {
            "deck": self.name,
            "information_states": self.information_states[0],
            "information_states_ours": self.information_states[1],
            "agrees": self.agrees,
            "policies": [
                {
                    "policy": each.policy,
                    "value": _both(each.value),
                    "nash_conv": _both(each.nash_conv),
                    "difference": each.difference,
                }
                for each in self.worths
            ],
            "cfr": [
                {"algorithm": name, "iterations": CFR_ITERATIONS, "difference": difference}
                for name, difference in self.cfr.items()
            ],
            "hands": self.played.json(),
        }


def _both(numbers: tuple[float, float]) -> dict[str, float]:
    return dict(zip(("openspiel", "ours"), numbers, strict=True))


@dataclass(frozen=True, slots=True)
class Played:
    """Hands played through OpenSpiel.

    decisions: states compared, the ends not among them; disagreements: a sentence for each hand that had one; mean,
    error: the leader's payoff and its standard error; value: the exact one.
    """

    hands: int
    decisions: int
    disagreements: list[str]
    mean: float
    error: float
    value: float

    @property
    def sigmas(self) -> float:
        """How many standard errors the mean is from the exact value."""
        return (self.mean - self.value) / self.error if self.error > 0 else 0.0

    @property
    def agrees(self) -> bool:
        """Whether there was no disagreement, and the mean is near enough."""
        return not self.disagreements and abs(self.sigmas) <= SIGMAS

    def json(self) -> dict[str, Any]:
        """As a JSON object: see `Comparison.json`."""
        return {
            "hands": self.hands,
            "decisions": self.decisions,
            "disagreements": self.disagreements,
            "mean": self.mean,
            "standard_error": self.error,
            "value": self.value,
            "sigmas": self.sigmas,
            "agrees": self.agrees,
        }


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a solver was after some seconds of its own work; states: information states that it had met."""

    seconds: float
    iterations: int
    exploitability: float
    states: int | None = None

    def json(self) -> dict[str, Any]:
        """As a JSON object, without what does not apply."""
        return {key: value for key, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class Race:
    """OpenSpiel's sampling and ours after the same times, and when ours first was as good as OpenSpiel's last; for
    scale, the exploitability of playing every action equally often."""

    openspiel: list[Reached]
    ours: list[Reached]
    level: Reached
    uniform: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything compared.

    rules: all of them; source: where the strategy comes from that was played; seed: of the hands played and of
    OpenSpiel's sampling; played, random: hands of the strategy, and of playing every action equally often.
    """

    rules: Rules
    unit: str
    source: str
    seed: int
    decks: list[Deck]
    played: Played
    random: Played
    race: Race

    @property
    def agrees(self) -> bool:
        """Whether OpenSpiel and we agree about everything that has one answer."""
        return self.played.agrees and self.random.agrees and all(deck.agrees for deck in self.decks)

    @property
    def left_out(self) -> dict[str, dict[str, str]]:
        """What of the rules is not compared, and why: in the hands played and the race, and on the small decks."""
        there = left_out(replace(self.rules, redeal=False, one_card=False))
        small = {name: why for name, why in left_out(self.rules).items() if name not in there}
        return {"hands": left_out(self.rules, in_match=self.unit == PROBABILITY), "small_decks": small}

    def json(self) -> dict[str, Any]:
        """As a JSON document.

        variant, unit, seed, agrees; packages: versions; strategy: which was played; left_out: {hands, small_decks},
        each from what of the rules is not compared to the reason;
        small_decks: a list of {deck, information_states, information_states_ours, agrees, policies, cfr, hands}:
        policies a list of {policy, value, nash_conv, difference}, the first two as {openspiel, ours}; cfr a list of
        {algorithm, iterations, difference}, the largest difference of two probabilities; hands as below, of uniform
        play;
        hands, random_hands: {hands, decisions, disagreements, mean, standard_error, value, sigmas, agrees}, payoffs the
        leader's;
        mccfr: {solver, ours, seconds, level, uniform_exploitability}: solver and ours name the programs; seconds a list
        of {openspiel, ours}, each {seconds, iterations, exploitability}, OpenSpiel's with states, the information
        states it had met; level the same of ours, when it first was as good as OpenSpiel's last.
        """
        played, race = self.played, self.race
        return {
            "variant": self.rules.name,
            "unit": self.unit,
            "seed": self.seed,
            "agrees": self.agrees,
            "packages": {"open_spiel": version("open_spiel"), **packages()},
            "strategy": self.source,
            "left_out": self.left_out,
            "small_decks": [deck.json() for deck in self.decks],
            "hands": played.json(),
            "random_hands": self.random.json(),
            "mccfr": {
                "solver": "pyspiel.ExternalSamplingMCCFRSolver",
                "ours": DEFAULT_ALGORITHM,
                "seconds": [
                    {"openspiel": theirs.json(), "ours": ours.json()}
                    for theirs, ours in zip(race.openspiel, race.ours, strict=True)
                ],
                "level": race.level.json(),
                "uniform_exploitability": race.uniform,
            },
        }


def compare(
    strategy: Strategy, *, rules: Rules | None = None, quick: bool, hands: int, seconds: Sequence[float],
    source: str = STORED, seed: int = 1, tell: Tell = lambda _: None,
) -> Comparison:  # fmt: skip
    """Compare everything: see the module.

    strategy: of the game to be played and solved; rules: with what is left out of that game; quick: fewer and smaller
    decks; hands: to play, and a tenth as many at random; seconds: when to look at both solvers, ascending; source: of
    the strategy.  Raises `games.rules.RulesError` for rules that the OpenSpiel game does not have.
    """
    tree, payoffs = strategy.tree, strategy.payoffs
    whole = tree.rules if rules is None else rules
    played = play(strategy, hands, seed, tell)
    randomly = play(Strategy.uniform(tree, payoffs), max(hands // 10, 2), seed, tell)
    decks = [compare_deck(small, quick, tell) for small in small_decks(whole, quick)]
    raced = race(tree, payoffs, seconds, seed, tell)
    return Comparison(whole, payoffs.unit, source, seed, decks, played, randomly, raced)


def small_decks(rules: Rules, quick: bool) -> list[Small]:
    """Decks that OpenSpiel can walk, without `quick` larger ones.

    For le-truc both orders and several sizes, in points and in probabilities; for other rules the same with few cards,
    in points and at each kind of score.
    """
    if rules.hash == preset("le-truc").hash:
        return _le_truc_decks(quick)
    decks = _decks_of(_fewer(rules, copies=2, stakes=2), "small")
    return decks if quick else decks + _decks_of(_fewer(rules, copies=3, stakes=3), "larger")


def _le_truc_decks(quick: bool) -> list[Small]:
    tiny = preset("tiny")
    linear = replace(tiny, name="linear", order="linear", all_tied="dealer", ladder=(1, 3))
    equity = Payoffs((0.6, 1.0), (0.45, 0.0), 0.5, PROBABILITY)
    games = [tiny, linear]
    if not quick:
        games += [preset("two-card"), replace(preset("mini"), name="three-ranks", ranks=("A", "2", "3"))]
    decks = [Small(game, Payoffs.points(game)) for game in games]
    decks.insert(2, Small(replace(tiny, name="tiny-match"), equity))
    return decks


def _fewer(rules: Rules, copies: int, stakes: int) -> Rules:
    """The same rules with few cards and stakes, and without what has no tree."""
    needed = 2 * rules.hand_size
    copies = min(rules.copies, copies)
    ranks = rules.ranks[: max(3, -(-needed // copies))]
    copies = max(copies, -(-needed // len(ranks)))
    return replace(rules, ranks=ranks, copies=copies, ladder=rules.ladder[:stakes], redeal=False, one_card=False)


def _decks_of(rules: Rules, name: str) -> list[Small]:
    """A small deck in points, and at each kind of score that has rules of its own."""
    plain = replace(rules, name=name, remainder=False, remainder_refused="stake", decision_before_target=False)
    decks = [Small(plain, Payoffs.points(plain))]
    last = rules.target - 1
    for score, where in (((0, 0), "match"), ((last, 0), "leader-decides"), ((0, last), "dealer-decides")):
        game, who = replace(score_rules(rules, score), name=f"{name}-{where}"), decider(rules, score)
        if where == "match" or who is not None:
            decks.append(Small(game, _equity(game, who), who))
    return decks


def _equity(rules: Rules, who: int | None) -> Payoffs:
    """Winning probabilities as at some score: the more the higher the stake, not by as much on either side."""
    shares = [level / len(rules.ladder) for level in range(1, len(rules.ladder) + 1)]
    win0, win1 = [0.52 + 0.4 * share for share in shares], [0.46 - 0.41 * share for share in shares]
    if rules.remainder:
        win0, win1 = [*win0, 1.0], [*win1, 0.0]
    if who is not None:
        win0, win1 = ([*wins, 0.3 if who == 0 else 0.7] for wins in (win0, win1))
    return Payoffs(tuple(win0), tuple(win1), 0.5, PROBABILITY)


def compare_deck(small: Small, quick: bool, tell: Tell) -> Deck:
    """Sizes, uniform, random and solved policies of a small deck, CFR and CFR+ on both sides, and random hands."""
    rules, payoffs, who = small
    tree, game = Tree(rules, decider=who), load_game(rules, payoffs, who)
    tell(f"{rules.name}: walking the game")
    template, root = policies.TabularPolicy(game), Remembered(game.new_initial_state())
    randoms = RANDOMS_QUICK if quick else RANDOMS
    tables = {"uniform": template, "solved": tabular(solved(tree, payoffs), game, template)}
    tables |= {f"random {seed}": random_table(template, seed) for seed in range(1, randoms + 1)}
    worths = []
    for name, table in tables.items():
        tell(f"{rules.name}: {name} policy")
        found = imported(tree, table, payoffs).evaluate()
        value, nash_conv = worth(root, table)
        worths.append(Worth(name, (value, found.value), (nash_conv, found.nash_conv)))
    differences = {name: cfr_difference(tree, payoffs, root, template, name, tell) for name in ("cfr", "cfr+")}
    states = len(template.states), census(tree).information_states
    hands = play(Strategy.uniform(tree, payoffs), DECK_HANDS_QUICK if quick else DECK_HANDS, 1, tell)
    return Deck(rules.name, states, worths, differences, hands)


def solved(tree: Tree, payoffs: Payoffs, iterations: int = SOLVED_ITERATIONS) -> Strategy:
    """A strategy after some iterations of our solver."""
    solver = Solver(tree, payoffs)
    solver.step(iterations)
    return Strategy.of(solver)


def random_table(template: policies.TabularPolicy, seed: int) -> policies.TabularPolicy:
    """Random probabilities for every information state, a few of them tiny."""
    rng = np.random.default_rng(seed)
    table = template.__copy__()
    shape = table.legal_actions_mask.shape
    weights = table.legal_actions_mask * rng.random(shape) * np.where(rng.random(shape) < 0.2, 1e-3, 1.0)
    table.action_probability_array = weights / weights.sum(axis=1, keepdims=True)
    return table


def cfr_difference(
    tree: Tree, payoffs: Payoffs, root: Remembered, template: policies.TabularPolicy, algorithm: str, tell: Tell
) -> float:
    """The largest difference between the average policies of OpenSpiel's CFR and ours, over all information states."""
    game: TrucGame = template.game
    theirs = CFR(game, root, plus=algorithm == "cfr+", zero=ZERO)
    ours = Solver(tree, payoffs, algorithm, dtype=np.float64, zero=ZERO)
    for iteration in range(1, CFR_ITERATIONS + 1):
        tell(f"{tree.rules.name}: {algorithm}, iteration {iteration} of {CFR_ITERATIONS}")
        theirs.evaluate_and_update_policy()
        ours.step()
    nothing = np.zeros_like(ours.average[0]), np.zeros_like(ours.average[1])
    average = Strategy(tree, payoffs, normalised(tree, ours.average, nothing))
    # Through our tree and out again: it has one state for last cards with the same outcome.
    read = tabular(imported(tree, theirs.average_policy(), payoffs), game, template)
    mine = tabular(average, game, template)
    return float(abs(read.action_probability_array - mine.action_probability_array).max())


def play(strategy: Strategy, hands: int, seed: int, tell: Tell) -> Played:
    """Play hands of a strategy against itself through OpenSpiel's states, comparing all that happens."""
    tree = strategy.tree
    policy = OpenSpielPolicy(strategy, load_game(tree.rules, strategy.payoffs, tree.decider))
    rng = random.Random(seed)
    decisions, disagreements, payoffs = 0, [], []
    for hand in range(1, hands + 1):
        if hand % 1000 == 0:
            tell(f"playing {hand:,} of {hands:,} hands")
        state = policy.game.new_initial_state()
        while state.is_chance_node():
            outcomes, weights = zip(*state.chance_outcomes(), strict=True)
            state.apply_action(*rng.choices(outcomes, weights))
        try:
            decisions += _play_out(policy, state, rng)
            payoffs.append(state.returns()[0])
        except (Disagreement, LineError, KeyError) as difference:
            disagreements.append(f"{state}: {difference}")
    mean = math.fsum(payoffs) / max(len(payoffs), 1)
    variance = math.fsum((payoff - mean) ** 2 for payoff in payoffs) / max(len(payoffs) - 1, 1)
    error = math.sqrt(variance / max(len(payoffs), 1))
    return Played(hands, decisions, disagreements, mean, error, strategy.evaluate().value)


class Disagreement(Exception):  # noqa: N818 (it is an outcome)
    """A sentence that says what OpenSpiel has and what our tree has."""


def _play_out(policy: OpenSpielPolicy, state: TrucState, rng: random.Random) -> int:
    """Play a hand to its end; returns the number of decisions.  Raises Disagreement, LineError, KeyError."""
    tree, payoffs = policy.strategy.tree, policy.strategy.payoffs
    decisions = 0
    while not state.is_terminal():
        decision, row = policy.decision(state)
        shares = policy.shares(decision, row)
        _same("the player", state.current_player(), decision.player)
        _same("legal actions", state.legal_actions(), sorted(shares))
        (action,) = rng.choices(list(shares), list(shares.values()))
        line = state.line
        state.apply_action(action)
        word = policy.names.word[action]
        over = child(tree, policy.position(line), word) is None
        _same("whether the hand is over", state.is_terminal(), over)
        decisions += 1
    winner, level = ending(tree, policy.position(line), word)
    payoff = (payoffs.win0, payoffs.win1, (payoffs.tie,) * len(payoffs.win0))[winner][level]
    _same("the payoffs", state.returns(), [payoff, 0.0 - payoff])
    return decisions


def _same(what: str, openspiel: object, ours: object) -> None:
    if openspiel != ours:
        raise Disagreement(f"{what}: {openspiel} in OpenSpiel, {ours} in the tree")


def race(tree: Tree, payoffs: Payoffs, seconds: Sequence[float], seed: int, tell: Tell) -> Race:
    """OpenSpiel's external-sampling MCCFR (in C++, on the game in Python) and our solver, one after the other, on one
    thread each; evaluations take none of their time.  seconds: when to look, ascending."""
    evaluate = Evaluator(tree, payoffs)
    theirs = _sampling(tree, payoffs, evaluate, seconds, seed, tell)
    warm_up()
    solver, spent, chunk = Solver(tree, payoffs), 0.0, 1
    ours: list[Reached] = []
    level: Reached | None = None
    while level is None or len(ours) < len(seconds):
        start = time.perf_counter()
        solver.step(chunk)
        took = time.perf_counter() - start
        spent += took
        due = len(ours) < len(seconds) and spent >= seconds[len(ours)]
        if due or level is None:
            found = Reached(spent, solver.iterations, evaluate(solver.average).exploitability)
            if level is None and found.exploitability <= theirs[-1].exploitability:
                level = found
            ours += [found] * due
        tell(f"our solver: {solver.iterations:,} iterations, {spent:.1f} s")
        chunk = 1 if level is None else max(1, int(chunk * CHUNK_SECONDS / took))
    return Race(theirs, ours, level, Strategy.uniform(tree, payoffs).evaluate().exploitability)


def _sampling(
    tree: Tree, payoffs: Payoffs, evaluate: Evaluator, seconds: Sequence[float], seed: int, tell: Tell
) -> list[Reached]:
    solver = pyspiel.ExternalSamplingMCCFRSolver(load_game(tree.rules, payoffs, tree.decider), seed)
    iterations, spent = 0, 0.0
    reached = []
    for limit in seconds:
        while spent < limit:
            start = time.perf_counter()
            for _ in range(10):
                solver.run_iteration()
            spent += time.perf_counter() - start
            iterations += 10
            if iterations % 500 == 0:
                tell(f"OpenSpiel's MCCFR: {iterations:,} iterations, {spent:.1f} s")
        tell(f"OpenSpiel's MCCFR: scoring its average policy after {spent:.1f} s")
        table, states = sampled_table(solver)
        strategy = imported(tree, table, payoffs)
        reached.append(Reached(spent, iterations, evaluate(strategy.probabilities).exploitability, states))
    return reached
