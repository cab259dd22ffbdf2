"""What `scripts/variant_insights.py` computes: calls for the match, the hands that decline, the deal, the redeal.

Nothing is sampled.  Matches by other rules, to compare with, are solved where a match is usually kept, and stay there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from insights_tally import raises
from insights_walk import Record, Walk
from match_study import Reader

from games.cards import deal_weights, hands
from games.notation import format_hand
from games.rules import AGREE, DECLINE, KEEP, PLAY, PROPOSE, RAISE, REMAINDER, Rules
from solver.best_response import Evaluation
from solver.cfr import DEFAULT_ALGORITHM, Solver, Sweeper, prior_reach
from solver.complete import completed
from solver.equity import Score, decider
from solver.essential import essential
from solver.kernels import EXPECT
from solver.match_run import TABLE, LocalWorkers, Store, open_store, solve_match
from solver.nodes import after_raise
from solver.redeal import DenseSolver, redeal_game
from solver.strategy import Strategy
from solver.tree import Tree

Array = npt.NDArray[np.float64]
ROUNDS = 6  # of thinking about what a proposal tells
LEAST = 1e-4  # of all hands: a smaller set of them is none, since storing a strategy rounds


def without_betting(rules: Rules) -> Rules:
    """The same deck with one stake."""
    return replace(
        rules, name=f"{rules.name}-no-betting", ladder=rules.ladder[:1], raise_when=("before",), remainder=False,
        remainder_refused="stake", fold=False, redeal=False, decision_before_target=False, one_card=False,
    )  # fmt: skip


def without_remainder(rules: Rules) -> Rules:
    """The same rules without the remainder."""
    name = f"{rules.name}-no-remainder"
    return replace(essential(rules, in_match=True), name=name, remainder=False, remainder_refused="stake", fold=False)


def without_decision(rules: Rules) -> Rules:
    """The same rules without the decision before the target: raises at every score."""
    return replace(essential(rules, in_match=True), name=f"{rules.name}-no-decision", decision_before_target=False)


def solved_match(rules: Rules, accuracy: float, folder: Path, workers: int) -> Store:
    """A match that is in a folder, as far as it is not solved now.  Raises StorageError, OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / TABLE).is_file():
        store = open_store(folder)
        store.check()
        if store.rules.hash == rules.hash and store.accuracy <= accuracy and store.complete:
            return store
    store = Store(folder, rules, accuracy, DEFAULT_ALGORITHM, {})
    solve_match(store, LocalWorkers(workers))
    return open_store(folder)


def solved_hand(rules: Rules, accuracy: float) -> Strategy:
    """A hand in points, solved here.  Raises ArithmeticError."""
    solver = Solver(Tree(essential(rules)))
    while solver.iterations < 100_000:
        solver.step(max(100, solver.iterations // 2))
        strategy = Strategy.of(solver)
        if strategy.evaluate().exploitability <= accuracy:
            return strategy
    raise ArithmeticError(f"{accuracy!r} was not reached")


# ---------------------------------------------------------------------------------------------------------- the match


@dataclass(slots=True)
class Calls:
    """Probabilities per hand: of a turn where something can be called, of a call, of a bluff, of a call conceded."""

    chances: float = 0.0
    made: float = 0.0
    bluffs: float = 0.0
    conceded: float = 0.0

    def add(self, other: Calls) -> None:
        """Count these too."""
        self.chances += other.chances
        self.made += other.made
        self.bluffs += other.bluffs
        self.conceded += other.conceded


class Called:
    """What is called at one score: by turn and side, for the match (a remainder, or a raise to a stake that wins the
    match for either side) and for less; ends: how often the match is played for."""

    def __init__(self, strategy: Strategy, score: Score, target: int) -> None:
        self.for_match: defaultdict[tuple[int, int], Calls] = defaultdict(Calls)
        self.for_less: defaultdict[tuple[int, int], Calls] = defaultdict(Calls)
        rules = strategy.tree.rules
        self._ladder, self._needed = rules.ladder, target - min(score)
        self._rules = rules
        self._pay = [strategy.payoffs.table(p, np.float64) for p in range(2)]
        walk = Walk(strategy, self._observe)
        whole = [level for level, stake in enumerate(rules.ladder) if stake >= self._needed]
        if rules.remainder:
            whole.append(len(rules.ladder))
        self.ends = sum(chance for (level, by, _), chance in walk.ends.items() if level in whole and not by)

    def _observe(self, record: Record) -> None:
        offers = [word for word in (RAISE, REMAINDER) if word in record.actions]
        if offers:
            chances = float(record.mass.sum())
            self.for_match[record.turn, record.player].chances += chances
            self.for_less[record.turn, record.player].chances += chances
        for word in offers:
            whole = word == REMAINDER or self._ladder[record.level + 1] >= self._needed
            left = after_raise(self._rules, record.level, word).refused
            may = raises(record, float(self._pay[record.player][left, record.player]), word)
            refused = record.refused if word == RAISE else record.conceded
            assert may is not None
            assert refused is not None
            call = record.sigma[:, record.actions.index(word)]
            made = record.mass * call
            found = (self.for_match if whole else self.for_less)[record.turn, record.player]
            found.add(
                Calls(
                    0.0,
                    float(made.sum()),
                    float((made * may.bluff).sum()),
                    float((record.reach * call * refused).sum()),
                )
            )

    def total(self, side: int, whole: bool) -> Calls:
        """Over all turns."""
        found = Calls()
        for (_, player), each in (self.for_match if whole else self.for_less).items():
            if player == side:
                found.add(each)
        return found


class Declining(NamedTuple):
    """The decision whether to play at one score: of each hand how often it is dealt, how often it plays, and its chance
    to win if played, all of shape (H,)."""

    side: int
    share: Array
    plays: Array
    win: Array

    @property
    def declines(self) -> float:
        """In how many hands."""
        return float(self.share @ (1 - self.plays))

    def edge(self, plays: bool) -> int | None:
        """The hand with the lowest chance to win of those that mostly play, or the highest of those that do not."""
        those = np.flatnonzero((self.plays >= 0.5) == plays)
        if not len(those):
            return None
        return int(those[np.argmin(self.win[those]) if plays else np.argmax(self.win[those])])


def declining(store: Store) -> Iterator[tuple[Score, Declining]]:
    """Every score where a side decides whether the hand is played."""
    for score in sorted(store.entries):
        side = decider(store.rules, score)
        if side is not None:
            answer = Reader(store.strategy(score), store.accuracy).at(())
            play = answer.actions.index(PLAY)
            assert answer.actions[1 - play] == DECLINE
            yield score, Declining(side, answer.share, answer.probabilities[:, play], answer.win[:, play])


def names(rules: Rules) -> list[str]:
    """All hands, in the order of `games.cards.hands`."""
    return [format_hand(rules, map(int, hand)) for hand in hands(rules.n_ranks, rules.hand_size, rules.copies)]


# --------------------------------------------------------------------------------------------------------- the redeal


class Round(NamedTuple):
    """Who proposes and who agrees, as shares of all hands, and what an agreed redeal brings the leader, in points."""

    proposes: float
    agrees: float
    agreed: float
    gain: float | None


@dataclass(frozen=True, slots=True)
class Unravelled:
    """What a proposal tells, on the full deck, if the hand is played as by the strategy: see `unravel`.

    value: of a new deal to the leader; worth: shape (2, H), of each hand to its owner; below: how many hands are worth
    less to leader and dealer than new cards; unaware: dealers who gain if every leader proposes, and what they gain per
    hand; rounds: each side in turn does what is best against the other's.
    """

    value: float
    worth: Array
    below: tuple[float, float]
    unaware: tuple[float, float]
    rounds: tuple[Round, ...]


def deal_by_deal(strategy: Strategy) -> tuple[Array, Array]:
    """Shape (H, H) both: the probability of each deal, and that times what it is worth to the leader."""
    tree = strategy.tree
    joint = deal_weights(tree.rules).astype(np.float64)
    joint /= joint.sum()
    sweeper, start = Sweeper(tree, strategy.payoffs, np.float64), prior_reach(tree)
    column, mine = tree.priors[1], joint.sum(axis=1)
    worth = np.zeros_like(joint)
    for v in range(len(start)):
        sweeper.top[column : column + len(start), 0] = np.where(np.arange(len(start)) == v, start, 0.0)
        worth[:, v] = mine * sweeper.values(0, EXPECT, strategy.probabilities)
    return joint, worth


def unravel(strategy: Strategy) -> Unravelled:
    """Proposing and agreeing to a redeal, if new cards are worth what they are before anything is known of them."""
    joint, worth = deal_by_deal(strategy)
    value, mine, theirs = float(worth.sum()), joint.sum(axis=1), joint.sum(axis=0)
    each = np.stack([worth.sum(axis=1) / mine, -worth.sum(axis=0) / theirs])
    below = each[0] < value, each[1] < -value
    everybody = np.ones(len(mine), bool)
    surplus = worth - value * joint  # what keeping the cards is worth more to the leader than new ones
    unaware = surplus.sum(axis=0) > 0
    proposes, rounds = below[0], []
    for _ in range(ROUNDS):
        agrees = surplus[proposes].sum(axis=0) > 0
        agreed = float(joint[np.ix_(proposes, agrees)].sum())
        gain = -float(surplus[np.ix_(proposes, agrees)].sum()) / agreed if agreed > LEAST else None
        rounds.append(Round(float(mine[proposes].sum()), float(theirs[agrees].sum()), agreed, gain))
        if gain is None:
            break
        better = surplus[:, agrees].sum(axis=1) < 0
        if (better == proposes).all():
            break
        proposes = better
    return Unravelled(
        value, each, (float(mine[below[0]].sum()), float(theirs[below[1]].sum())),
        (float(theirs[unaware].sum()), float(surplus[np.ix_(everybody, unaware)].sum())), tuple(rounds),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class SmallRedeal:
    """A small deck with the redeal in the game, solved: its value with and without; redeals: how often there is one;
    agrees: what a dealer loses per hand who agrees with every hand that is worth less than the average, proposes: what
    a leader loses who proposes likewise, against a best response; error: of all of these."""

    rules: Rules
    value: float
    without: float
    redeals: float
    agrees: float
    proposes: float
    error: float


def small_redeal(rules: Rules, accuracy: float) -> SmallRedeal:
    """Solve a small deck with its redeal.  Raises TreeTooLargeError, ArithmeticError."""
    game = redeal_game(rules)
    play, found = DenseSolver(game).run(accuracy)
    without = solved_hand(rules, accuracy).evaluate()
    stage = game.stages[0]
    assert stage.redealt is not None
    node = len(stage.player) + stage.redealt
    reach = [game.reach(p, play)[0][node] for p in range(2)]
    redeals = float(reach[0] @ stage.types.joint @ reach[1])
    losses = []
    for player, line, word, other in ((1, (PROPOSE,), AGREE, DECLINE), (0, (), PROPOSE, KEEP)):
        i = stage.lines.index(line)
        joint = stage.types.joint if player == 0 else stage.types.joint.T
        worth = game.values(player, play)[0][0] / joint.sum(axis=1)
        mean = found.value if player == 0 else -found.value
        poor = worth < mean
        changed = [array.copy() for array in play]
        for action, those in ((word, poor), (other, ~poor)):
            changed[0][i, stage.actions[i].index(action)] = those
        best = game.evaluate(changed).best_response[1 - player]
        losses.append(best - (-found.value if player == 0 else found.value))
    return SmallRedeal(
        rules, found.value, without.value, redeals, losses[0], losses[1], found.nash_conv + without.exploitability
    )


def after_the_card(strategy: Strategy, rules: Rules) -> tuple[Evaluation, Evaluation]:
    """A strategy of the hand without raises after the card against best responses, without such raises and with them.

    Raises TreeTooLargeError.
    """
    return strategy.evaluate(), completed(strategy, rules).evaluate()
