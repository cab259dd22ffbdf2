"""How well hands were played: what each decision cost, marks, error rates, and luck apart from skill.

The *loss* of an action is how much less it is worth than the best one, for a player who then plays on as well as he
can against the strategy (`solver.advise`).  What a decision *costs* is its loss; but nothing if the advice plays that
action as well, for then it is a side of a mix, and losses there are only as large as the strategy is inexact.

A hand's result splits up, in the unit of the strategy and for one player, into

    result = average + luck + skill + rest

average: what the hand is worth before the deal; luck: what the cards dealt are worth against that, both hands' if they
are known, else one's own; skill: minus what the own decisions cost; rest: what the opponent's decisions and the draws
from mixes brought.  Both players' averages, lucks and results add up to what both get together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from games.cards import combinations
from games.cards import hands as all_hands
from games.history import HandRecord, History, result, whole
from games.notation import format_line, format_score
from games.rules import NOBODY, Rules
from games.state import Hand, State
from solver.advise import PLAYED, Advice, Adviser
from solver.answers import TOLERANCE, Cards
from solver.bot import Advisers, Source, opinion
from solver.cfr import POINTS, PROBABILITY, Payoffs, Sweeper
from solver.equity import Score
from solver.kernels import EXPECT
from solver.scores import NoTableError, equity
from solver.storage import StorageError
from solver.strategy import Strategy

Array = npt.NDArray[np.float64]

MARKS = ("", "?!", "?", "??")
MARKS_FROM = {
    POINTS: (0.1, 0.25, 0.5),
    PROBABILITY: (0.005, 0.0125, 0.025),
}
"""By unit: what a decision must cost to be inaccurate (?!), a mistake (?), a blunder (??).  At 0-0 a point is worth
about 0.04 to 0.05 of winning the match, so the two rows say nearly the same there."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision and what it cost.

    line: before it; player: the seat, 0 leads; hand, held: as dealt, and what was left; action: what was done;
    best: the action worth most; choices: every legal action with its probability, EV and loss (None where nobody
    knows); probability, ev, loss: of what was done; cost, mark: see the module; unit: of ev, loss and cost; kind,
    case: see `solver.advise`.
    """

    line: tuple[str, ...]
    player: int
    hand: str
    held: str
    action: str
    best: str
    choices: tuple[tuple[str, float, float | None, float | None], ...]
    probability: float
    ev: float
    loss: float
    cost: float
    mark: str
    unit: str
    kind: str
    case: str


def mark_of(unit: str, cost: float) -> str:
    """One of MARKS: "" for what costs little or nothing."""
    return MARKS[sum(cost >= least for least in MARKS_FROM[unit])]


def grade(
    adviser: Adviser, hand: Cards, line: tuple[str, ...], action: str, discards: Cards = ()
) -> Decision | None:  # fmt: skip
    """Grade an action with a hand after a line; None where nothing else was legal, or nobody knows what it is worth.

    Raises NotationError, LineError, ValueError for an action that is not legal.
    """
    return graded(adviser, opinion(adviser, hand, line, discards), action)


def graded(adviser: Adviser, advice: Advice, action: str) -> Decision | None:
    """Grade an action by an advice that is there already: see `grade`."""
    chosen = next((choice for choice in advice.choices if choice.action == action), None)
    if chosen is None:
        legal = " or ".join(choice.action for choice in advice.choices)
        raise ValueError(f"the action {action!r} cannot be graded, legal is {legal}.")
    if len(advice.choices) == 1 or chosen.ev is None or chosen.loss is None:
        return None
    # What a mix may lose, being inexact, is measured by what a point is worth at the stake.
    tolerance = TOLERANCE * adviser.strategy.payoffs.half() * advice.stake / adviser.rules.ladder[0]
    cost = 0.0 if chosen.probability > PLAYED and chosen.loss <= 2 * tolerance else chosen.loss
    return Decision(
        line=advice.line,
        player=advice.player,
        hand=advice.hand,
        held=advice.held,
        action=action,
        best=max((c for c in advice.choices if c.ev is not None), key=lambda c: c.ev or 0.0).action,
        choices=tuple((c.action, c.probability, c.ev, c.loss) for c in advice.choices),
        probability=chosen.probability,
        ev=chosen.ev,
        loss=chosen.loss,
        cost=cost,
        mark=mark_of(advice.unit, cost),
        unit=advice.unit,
        kind=advice.kind,
        case=advice.case,
    )


# ----------------------------------------------------------------------------------------------------------------- luck


class Deals:
    """What deals are worth if both play by a strategy; all values in its unit, of the acting seat."""

    def __init__(self, strategy: Strategy, threads: int = 1) -> None:
        tree = strategy.tree
        self.strategy = strategy
        self._sweeper = Sweeper(tree, strategy.payoffs, np.float64, threads)
        rows = all_hands(tree.rules.n_ranks, tree.rules.hand_size, tree.rules.copies)
        self._index = {tuple(map(int, row)): h for h, row in enumerate(rows)}
        self._priors = [self._sweeper.top[row : row + len(rows), 0].copy() for row in tree.priors]
        one = (1.0,) * len(strategy.payoffs.win0)
        self._ones = Payoffs(one, one, 1.0)
        self._own = [self._values(seat, strategy.payoffs, None) for seat in range(2)]
        weight = combinations(tree.rules) / combinations(tree.rules).sum()
        self.average = tuple(float(weight @ own) for own in self._own)

    def own(self, seat: int, hand: Hand) -> float:
        """What a seat's hand is worth to it, whatever the other holds."""
        return float(self._own[seat][self._index[hand]])

    def both(self, seat: int, mine: Hand, theirs: Hand) -> float:
        """What a deal is worth to a seat."""
        h, other = self._index[mine], self._index[theirs]
        pay = self.strategy.payoffs
        value = self._values(seat, pay, other, total=False)[h] / self._values(seat, self._ones, other, total=False)[h]
        # The sweep for seat 1 has the payoffs' signs turned, in the ones too.
        return float((value if seat == 0 else -value) + seat * pay.total)

    def _values(self, seat: int, payoffs: Payoffs, other: int | None, total: bool = True) -> Array:
        """Shape (H,): of a seat's hands, against all of the other's hands or one of them."""
        tree, sweeper = self.strategy.tree, self._sweeper
        row, prior = tree.priors[1 - seat], self._priors[1 - seat]
        mask = np.ones(len(prior)) if other is None else np.eye(len(prior))[other]
        sweeper.top[row : row + len(prior), 0] = prior * mask
        sweeper.pay[seat] = payoffs.table(seat, np.float64)
        found: Array = sweeper.values(seat, EXPECT, self.strategy.probabilities)
        sweeper.top[row : row + len(prior), 0] = prior
        return found + seat * payoffs.total if total else found


# --------------------------------------------------------------------------------------------------------------- review


@dataclass(frozen=True, slots=True)
class Share:
    """One player's part of a hand's result, see the module; None where it cannot be known.

    unfinished hands have no result, hands of unknown cards no luck.
    """

    average: float
    luck: float | None
    skill: float | None
    rest: float | None
    result: float | None


@dataclass(frozen=True, slots=True)
class HandReview:
    """A hand of a history: its decisions in order (those of players whose cards are known), and how its result splits
    up for each player.  quick: whether it was graded by a quick solution, exploitability: how good the strategy is."""

    number: int
    score: Score | None
    leader: int
    line: tuple[str, ...]
    cards: tuple[str, str]
    result: str | None
    decisions: tuple[Decision, ...]
    unknown: tuple[int, int]
    shares: tuple[Share, Share]
    unit: str
    quick: bool
    exploitability: float

    def player(self, decision: Decision) -> int:
        """Whose decision it was."""
        return decision.player if self.leader == 0 else 1 - decision.player


@dataclass(frozen=True, slots=True)
class Totals:
    """A player over a history, in one unit.

    decisions: how many were graded, those without a choice left out; unknown: how many could not be, since the own
    cards are not known; errors: by mark; cost: what all decisions cost, added; rate: cost for each decision; luck,
    skill, rest: added over the hands where they are known; hands: how many these are.
    """

    name: str
    unit: str
    decisions: int
    unknown: int
    errors: dict[str, int]
    cost: float
    rate: float
    hands: int
    luck: float
    skill: float
    rest: float


@dataclass(frozen=True, slots=True)
class Review:
    """A history reviewed.  totals: for each unit that its hands have (a match, hands in points), both players'."""

    history: History
    hands: tuple[HandReview, ...]
    totals: dict[str, tuple[Totals, Totals]]

    def costly(self, player: int | None = None) -> list[tuple[HandReview, Decision]]:
        """The decisions that cost something, the most expensive first; of both players or of one."""
        found = [
            (hand, decision)
            for hand in self.hands
            for decision in hand.decisions
            if decision.cost > 0 and player in (None, hand.player(decision))
        ]
        # What costs a given share of its unit's blunder is as bad in the other unit.
        return sorted(found, key=lambda pair: -pair[1].cost / MARKS_FROM[pair[1].unit][-1])

    def document(self) -> dict[str, Any]:
        """All of it for JSON."""
        names = self.history.players
        return {
            "variant": self.history.rules.name,
            "rules_hash": self.history.rules.hash,
            "players": list(names),
            "marks": {unit: dict(zip(MARKS[1:], least, strict=True)) for unit, least in MARKS_FROM.items()},
            "totals": [asdict(each) for both in self.totals.values() for each in both],
            "hands": [self._hand(hand) for hand in self.hands],
        }

    def _hand(self, hand: HandReview) -> dict[str, Any]:
        names = self.history.players
        return {
            "number": hand.number,
            "score": None if hand.score is None else format_score(hand.score),
            "leader": names[hand.leader],
            "line": format_line(hand.line),
            "cards": dict(zip(names, hand.cards, strict=True)),
            "result": hand.result,
            "unit": hand.unit,
            "quick": hand.quick,
            "exploitability": hand.exploitability,
            "shares": {name: asdict(share) for name, share in zip(names, hand.shares, strict=True)},
            "decisions": [
                {
                    "player": names[hand.player(each)],
                    "seat": ("leader", "dealer")[each.player],
                    "line": format_line(each.line),
                    "hand": each.hand,
                    "held": each.held,
                    "action": each.action,
                    "best": each.best,
                    "actions": [
                        {"action": action, "probability": probability, "ev": ev, "loss": loss}
                        for action, probability, ev, loss in each.choices
                    ],
                    **{
                        key: getattr(each, key) for key in ("probability", "ev", "loss", "cost", "mark", "kind", "case")
                    },
                }
                for each in hand.decisions
            ],
        }


def review(history: History, advisers: Advisers, progress: Callable[[int], None] = lambda _: None) -> Review:
    """Grade all decisions of a history.

    progress: is told how many hands are done.  Raises NoTableError, StorageError where a strategy cannot be had.
    """
    found, deals = [], dict[int, Deals]()
    for number, hand in enumerate(history.hands, start=1):
        source = advisers.get(hand.score)
        known = deals.setdefault(id(source), Deals(source.adviser.strategy, advisers.threads))
        found.append(review_hand(history, number, hand, source, known))
        progress(number)
    units = dict.fromkeys(hand.unit for hand in found)
    return Review(history, tuple(found), {unit: _totals(history, found, unit) for unit in units})


def review_hand(history: History, number: int, hand: HandRecord, source: Source, deals: Deals) -> HandReview:
    """One hand of a history."""
    rules = history.rules
    decisions, unknown = [], [0, 0]
    for state, player, own, discards in decisions_of(rules, hand):
        if own is None or discards is None:
            unknown[player] += 1
            continue
        action = hand.line[len(state.line)]
        decision = grade(source.adviser, own, state.line, action, discards)
        if decision is not None:
            decisions.append(decision)
    end = hand.state(rules)
    shares = [_share(rules, hand, player, end, decisions, unknown, source, deals) for player in (0, 1)]
    return HandReview(
        number=number,
        score=hand.score,
        leader=hand.leader,
        line=hand.line,
        cards=(_cards(rules, hand, 0), _cards(rules, hand, 1)),
        result=result(history, hand),
        decisions=tuple(decisions),
        unknown=(unknown[0], unknown[1]),
        shares=(shares[0], shares[1]),
        unit=source.adviser.strategy.payoffs.unit,
        quick=source.quick,
        exploitability=source.exploitability,
    )


def decisions_of(rules: Rules, hand: HandRecord) -> Iterator[tuple[State, int, Hand | None, Hand | None]]:
    """Every decision of a hand: the public state before it, the index of the player, his cards as dealt and those that
    he has set aside, None where they are not known wholly; () before they are dealt, and without a redeal."""
    state, dealt = hand.start(rules), 0
    for action in (None, *hand.line):
        if action is not None:
            player = hand.leader if state.to_play == 0 else 1 - hand.leader
            own, before = (whole(hand.cards[player][n - 1]) if n > 0 else () for n in (dealt, dealt - 1))
            yield state, player, own, before
            state = state.apply(action)
        if state.phase == "deal":
            state, dealt = state.give(None, None), dealt + 1


def _cards(rules: Rules, hand: HandRecord, player: int) -> str:
    return " / ".join(
        " ".join("?" if rank is None else rules.ranks[rank] for rank in deal) for deal in hand.cards[player]
    )


def _share(
    rules: Rules, hand: HandRecord, player: int, end: State, decisions: list[Decision], unknown: list[int],
    source: Source, deals: Deals,
) -> Share:  # fmt: skip
    seat = hand.seat(player)
    average = deals.average[seat]
    skill = -sum(each.cost for each in decisions if each.player == seat) if not unknown[player] else None
    mine, theirs, luck = hand.known(player), hand.known(1 - player), None
    if mine is not None and len(mine) == rules.hand_size and len(hand.cards[player]) == 1:
        luck = (deals.own(seat, mine) if theirs is None else deals.both(seat, mine, theirs)) - average
    result = worth_of(rules, end, seat, source.adviser.strategy.payoffs)
    rest = None
    if luck is not None and skill is not None and result is not None:
        rest = result - average - luck - skill
    return Share(average, luck, skill, rest, result)


def worth_of(rules: Rules, end: State, seat: int, payoffs: Payoffs) -> float | None:
    """What a hand's end is worth to a seat, in the unit of the payoffs; None if it is not over, or not known."""
    if end.winner is None:
        return None
    if payoffs.unit != PROBABILITY or end.score is None:
        return float(end.returns[seat])
    points = list(end.score)
    if end.winner != NOBODY:
        points[end.winner] += end.stake
        if points[end.winner] >= rules.target:
            return float(end.winner == seat)
    try:
        # Who leads deals the next hand: the score is (leader's, dealer's), and the leader's chance is in the table.
        dealing = 1.0 - equity(rules)[points[1], points[0]].value
    except (NoTableError, StorageError):
        return None
    return dealing if seat == 0 else 1.0 - dealing


def _totals(history: History, hands: list[HandReview], unit: str) -> tuple[Totals, Totals]:
    found = []
    for player, name in enumerate(history.players):
        there = [hand for hand in hands if hand.unit == unit]
        mine = [each for hand in there for each in hand.decisions if hand.player(each) == player]
        cost = sum(each.cost for each in mine)
        whole = [share for hand in there if (share := hand.shares[player]).rest is not None]
        sums = {key: float(sum(getattr(share, key) for share in whole)) for key in ("luck", "skill", "rest")}
        found.append(
            Totals(
                name=name,
                unit=unit,
                decisions=len(mine),
                unknown=sum(hand.unknown[player] for hand in there),
                errors={mark: sum(each.mark == mark for each in mine) for mark in MARKS[1:]},
                cost=cost,
                rate=cost / len(mine) if mine else 0.0,
                hands=len(whole),
                **sums,
            )
        )
    return found[0], found[1]
