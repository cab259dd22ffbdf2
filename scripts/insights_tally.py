"""What `scripts/insights.py` counts along the walk of `insights_walk`: raises, refusals, slow play, sayings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from insights_walk import Record, Rule, Walk

from games.rules import ACCEPT, RAISE, REFUSE, Rules
from solver.explain import EVEN, STRONG
from solver.strategy import Strategy
from solver.walk import Array, Mask

EQUAL = 1e-9  # points: values as near as that are equal, and the walk's rounding is far below
SURE = 1 - 1e-3  # chance to win: storing a strategy leaves traces of holdings that are never played so
INTERIOR = 1e-3  # a line's bluffs and refusals are mixed if both are more frequent than that and less than the rest
FIELDS = ("chances", "raises", "value", "bluffs", "refused", "strong", "slow", "sure", "waiting")


def strengths(rules: Rules) -> npt.NDArray[np.int64]:
    """By rank: how many ranks it beats less how many beat it."""
    ranks = range(rules.n_ranks)
    return np.array([sum(rules.trick_winner(a, b) for b in ranks) for a in ranks])


@dataclass(frozen=True, slots=True)
class Raises:
    """Where a raise is possible, all of shape (H, L): whether it would be a bluff, see `solver.explain`; the chance to
    win with what is played, and with the best card."""

    bluff: Mask
    win: Array
    best: Array


def raises(record: Record, refused_pay: float, word: str = RAISE) -> Raises | None:
    """None where no raise is possible; refused_pay: what a refusal brings the raiser; word: or a remainder."""
    refused = record.refused if word == RAISE else record.conceded
    if refused is None:
        return None
    call = record.actions.index(word)
    there = record.against > 0
    against = np.where(there, record.against, 1.0)
    cards = record.legal[:, record.offers :, None]
    best_card = np.where(cards, record.ev[:, record.offers :], -np.inf).max(axis=1) / against
    accepted = record.against - refused
    called = accepted > EQUAL * record.against
    gain = np.divide(record.ev[:, call] - refused * refused_pay, accepted, out=np.zeros_like(against), where=called)
    bluff = np.where(called, gain < best_card - EQUAL, record.win[:, call] < EVEN * against)
    best = np.where(cards, record.win[:, record.offers :], 0.0).max(axis=1) / against
    return Raises(bluff & there, (record.sigma * record.win).sum(axis=1) / against, np.where(there, best, 0.0))


@dataclass(frozen=True, slots=True)
class Saying:
    """A rule of play in words.

    left: which actions it leaves, shape (H, A, L) or broadcastable, all True for whom it has nothing to say, None where
    it never has; cards: it speaks of cards, so that a raise before is neither here nor there.
    """

    text: str
    left: Callable[[Record, Raises | None], Mask | None]
    cards: bool = False


def sayings(rules: Rules) -> tuple[Saying, ...]:
    """Those that are measured."""
    score, n, last = strengths(rules), rules.n_ranks, 2 * rules.hand_size
    beats = np.array([[rules.trick_winner(led, card) == -1 for card in range(n)] for led in range(n)])

    def of_cards(record: Record, cards: Mask) -> Mask:
        words = np.ones((len(record.legal), record.offers, cards.shape[2]), bool)
        return np.concatenate([words, cards], axis=1)

    def extreme(record: Record, sign: int) -> Mask:
        held = np.where(record.legal[:, record.offers :], sign * score, -99)
        return of_cards(record, (held == held.max(axis=1, keepdims=True))[:, :, None])

    def plays(record: Record) -> bool:
        return len(record.actions) > record.offers

    def leads(record: Record, turn: int) -> bool:
        return record.turn == turn and record.led is None and plays(record)

    def first(record: Record, _: Raises | None) -> Mask | None:
        return extreme(record, 1) if leads(record, 1) else None

    def first_weakest(record: Record, _: Raises | None) -> Mask | None:
        return extreme(record, -1) if leads(record, 1) else None

    def after_tie(record: Record, _: Raises | None) -> Mask | None:
        return extreme(record, 1) if leads(record, 3) and record.results == (0,) else None

    def answers(record: Record) -> tuple[Mask, npt.NDArray[np.int64]] | None:
        if record.turn != 2 or record.led is None or not plays(record):
            return None
        legal = record.legal[:, record.offers :, None]
        return legal & beats[record.led].T[None], record.led

    def cheapest(record: Record, _: Raises | None) -> Mask | None:
        if (found := answers(record)) is None:
            return None
        winning = found[0]
        price = np.where(winning, score[None, :, None], 99)
        cards = winning & (price == price.min(axis=1, keepdims=True))
        return of_cards(record, cards | ~winning.any(axis=1, keepdims=True))

    def tie(record: Record, _: Raises | None) -> Mask | None:
        if (found := answers(record)) is None:
            return None
        winning, led = found
        same = (np.arange(n)[:, None] == led)[None] & record.legal[:, record.offers :, None]
        possible = ~winning.any(axis=1, keepdims=True) & same.any(axis=1, keepdims=True)
        return of_cards(record, same | ~possible)

    def only(record: Record, where: Mask, action: str) -> Mask:
        """Whoever is in `where`, shape (H, L), does that and nothing else."""
        is_it = np.array([each == action for each in record.actions])[None, :, None]
        return np.asarray(~where[:, None] | is_it)

    def not_raise(record: Record, where: Mask) -> Mask:
        """Whoever is in `where`, shape (H, L), does not raise."""
        return np.asarray(~(where[:, None] & np.array([each == RAISE for each in record.actions])[None, :, None]))

    def never_first(record: Record, may: Raises | None) -> Mask | None:
        return not_raise(record, np.ones_like(may.bluff)) if may is not None and record.turn == 1 else None

    def wait(record: Record, may: Raises | None, leading: bool) -> Mask | None:
        if may is None or (record.led is None) != leading or record.turn == last:
            return None
        return not_raise(record, may.best >= SURE)

    def at_last(record: Record, may: Raises | None) -> Mask | None:
        return only(record, may.best >= SURE, RAISE) if may is not None and record.turn == last else None

    def honest(record: Record, may: Raises | None) -> Mask | None:
        return None if may is None else not_raise(record, may.bluff)

    def open_hand(record: Record, may: Raises | None) -> Mask | None:
        return None if may is None else only(record, may.win >= STRONG, RAISE)

    def proud(record: Record, _: Raises | None) -> Mask | None:
        return only(record, record.against >= 0, ACCEPT) if record.actions[0] == ACCEPT else None

    def timid(record: Record, _: Raises | None) -> Mask | None:
        if record.actions[0] != ACCEPT:
            return None
        return only(record, record.win[:, 0] < EVEN * record.against, REFUSE)

    return (
        Saying("Lead your strongest card to the first trick.", first, cards=True),
        Saying("Lead your weakest card to the first trick.", first_weakest, cards=True),
        Saying("Answer the first lead with the cheapest card that wins.", cheapest, cards=True),
        Saying("If you cannot win the first trick, tie it.", tie, cards=True),
        Saying("After a tied first trick lead your strongest card.", after_tie, cards=True),
        Saying("Never raise first: the leader does not raise before his first card.", never_first),
        Saying("With a sure win wait, when you lead to a trick.", lambda r, may: wait(r, may, True)),
        Saying("With a sure win wait, when you answer a lead before the last.", lambda r, may: wait(r, may, False)),
        Saying("With a sure win raise before the last card of all.", at_last),
        Saying(f"Raise with every strong hand (it wins {STRONG:.0%} or more).", open_hand),
        Saying("Never bluff.", honest),
        Saying("Never refuse.", proud),
        Saying("Refuse whenever you would win less than half the time.", timid),
    )


@dataclass(slots=True)
class Theory:
    """Last answers after one trick each, to raises from one stake, where bluffs and refusals are mixed.

    lines: how many; raises, bluffs, refused: probabilities; every: that of the raises of all lines, mixed or not.
    """

    lines: int = 0
    raises: float = 0.0
    bluffs: float = 0.0
    refused: float = 0.0
    every: float = 0.0


class Tally:
    """Everything that is counted; probabilities per hand.

    raising[turn, level][field]: see FIELDS; theory[level]; followed[i], spoken[i]: shape (2,), by player: how often
    saying i is followed, and how often it has something to say to one who could do otherwise; walk: the walk.
    """

    def __init__(self, strategy: Strategy) -> None:
        self.pay = [strategy.payoffs.table(p, np.float64) for p in range(2)]
        self.raising: defaultdict[tuple[int, int], dict[str, float]] = defaultdict(lambda: dict.fromkeys(FIELDS, 0.0))
        self.theory: defaultdict[int, Theory] = defaultdict(Theory)
        self.sayings = sayings(strategy.tree.rules)
        self.followed, self.spoken = np.zeros((2, len(self.sayings), 2))
        self._left: list[Mask | None] = []
        rules: list[Rule] = [lambda _, i=i: self._left[i] for i in range(len(self.sayings))]  # type: ignore[misc]
        self.walk = Walk(strategy, self.observe, rules)

    def observe(self, record: Record) -> None:
        """Count one public decision, in all its lanes."""
        may = raises(record, float(self.pay[record.player][record.level, record.player]))
        if may is not None:
            self._raises(record, may)
            if record.stage == 0 and record.ties != 2:
                self._theory(record)
        self._left = [saying.left(record, may) for saying in self.sayings]
        for i, (saying, left) in enumerate(zip(self.sayings, self._left, strict=True)):
            if left is None:
                continue
            counted = record.legal.copy()
            if saying.cards:
                counted[:, : record.offers] = False
            choice = (counted[:, :, None] & ~left).any(axis=1)  # shape (H, L) or (H, 1)
            share = record.sigma * counted[:, :, None]
            self.spoken[i, record.player] += float((record.mass * choice * share.sum(axis=1)).sum())
            self.followed[i, record.player] += float((record.mass * choice * (share * left).sum(axis=1)).sum())

    def _raises(self, record: Record, may: Raises) -> None:
        assert record.refused is not None
        mass, raised = record.mass, record.mass * record.sigma[:, 0]
        strong, sure = may.win >= STRONG, may.best >= SURE
        for field, amount in zip(
            FIELDS,
            (
                mass, raised, raised * ~may.bluff, raised * may.bluff,
                record.reach * record.sigma[:, 0] * record.refused,
                mass * strong, (mass - raised) * strong, mass * sure, (mass - raised) * sure,
            ),
            strict=True,
        ):  # fmt: skip
            self.raising[record.turn, record.level][field] += float(amount.sum())

    def _theory(self, record: Record) -> None:
        assert record.refused is not None
        losing = record.win[:, 0] == 0  # the answerer knows who wins, but for holdings that nobody can have
        mass, raised = record.mass, record.mass * record.sigma[:, 0]
        total, lost = raised.sum(axis=0), (mass * losing).sum(axis=0)
        bluffs = (raised * losing).sum(axis=0)
        refused = (record.reach * record.sigma[:, 0] * record.refused).sum(axis=0)

        def mixed(part: Array, whole: Array) -> Mask:
            return (part > INTERIOR * whole) & (part < (1 - INTERIOR) * whole)

        lines = mixed(bluffs, lost) & mixed(refused, total)
        theory = self.theory[record.level]
        theory.lines += int(lines.sum())
        theory.every += float(total.sum())
        theory.raises += float(total[lines].sum())
        theory.bluffs += float(bluffs[lines].sum())
        theory.refused += float(refused[lines].sum())

    def cost(self, i: int, player: int) -> float:
        """What a player gives away per hand who always follows saying i and otherwise plays as well as he can."""
        best: float = self.walk.value[player, 1]
        return float(best - self.walk.value[player, 2 + i])
