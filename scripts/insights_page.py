"""The text of insights.md: what `scripts/insights.py` has computed, in words for card players."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from insights_tally import FIELDS, INTERIOR, SURE, Tally, strengths
from insights_walk import EXPECT

from games.cards import combinations, hands
from games.notation import format_hand
from games.rules import Rules
from solver.best_response import Evaluation
from solver.explain import STRONG
from solver.strategy import Strategy

TITLES = {"le-truc": "Le Truc"}
SHOWN = 1e-3  # per hand: decisions that come up less often are in the CSV files only
TRAINED = 1e-6  # per hand: where less is at stake than that, the strategy need not be good to be accurate
DIGITS = 9  # decimals in the CSV files: the rounding of the walk is beyond them, so they come out the same
EXTREMES = 10  # best and worst hands
FREE = 1e-3  # points per hand: what costs less than that costs nothing
ALWAYS, USUALLY = 0.95, 0.6  # how often a saying must be followed to be called so


class Hand(NamedTuple):
    """A hand, how often it is dealt, and what it is worth to the leader and to the dealer."""

    name: str
    dealt: float
    worth: tuple[float, float]


class LastCard(NamedTuple):
    """Raises from one stake to another at the last card: see `insights_tally.Theory`.  share: of all raises there, of
    those in these lines; the rest: bluffs' share of raises and refusals, measured and by formula."""

    stake: int
    raised: int
    lines: int
    share: float
    bluffs: float
    bluffs_formula: float
    refused: float
    refused_formula: float


class Measured(NamedTuple):
    """A saying: asked: in how many decisions per hand it forbids something; followed: how often it is; costs: to the
    leader and to the dealer, None to whom it is never said."""

    text: str
    asked: float
    followed: float
    costs: tuple[float | None, float | None]
    verdict: str


@dataclass(frozen=True, slots=True)
class Insights:
    """All that is reported."""

    strategy: Strategy
    evaluation: Evaluation
    tally: Tally

    @property
    def rules(self) -> Rules:
        """The rules of the strategy."""
        return self.strategy.tree.rules

    @property
    def turns(self) -> dict[int, dict[str, float]]:
        """By turn, all stakes together: see `insights_tally.FIELDS`."""
        found: dict[int, dict[str, float]] = {}
        for (turn, _), counts in sorted(self.tally.raising.items()):
            sums = found.setdefault(turn, dict.fromkeys(FIELDS, 0.0))
            for field in FIELDS:
                sums[field] += counts[field]
        return found

    def ends(self, level: int | None = None, refused: bool | None = None, winner: int | None = None) -> float:
        """The probability of ends with all the properties given."""
        return sum(
            chance
            for (a, b, c), chance in sorted(self.tally.walk.ends.items())
            if level in (None, a) and refused in (None, b) and winner in (None, c)
        )

    def hands(self) -> list[Hand]:
        """Every hand."""
        rules, each = self.rules, combinations(self.rules)
        names = [format_hand(rules, map(int, hand)) for hand in hands(rules.n_ranks, rules.hand_size, rules.copies)]
        leader, dealer = (self.tally.walk.hands[p][EXPECT].tolist() for p in range(2))
        dealt = (each / each.sum()).tolist()
        return [Hand(*row) for row in zip(names, dealt, zip(leader, dealer, strict=True), strict=True)]

    def last_card(self) -> list[LastCard]:
        """The stakes at which the last card is raised often enough."""
        ladder, rows = self.rules.ladder, []
        for level, each in sorted(self.tally.theory.items()):
            if each.raises >= TRAINED:
                s, t = ladder[level], ladder[level + 1]
                bluffs, refused = each.bluffs / each.raises, each.refused / each.raises
                formula = (1 - s / t) / 2, (t - s) / (t + s)
                share = each.raises / each.every
                rows.append(LastCard(s, t, each.lines, share, bluffs, formula[0], refused, formula[1]))
        return rows

    def sayings(self) -> list[Measured]:
        """Every saying."""
        tally, rows = self.tally, []
        for i, saying in enumerate(tally.sayings):
            asked = float(tally.spoken[i].sum())
            followed = float(tally.followed[i].sum()) / asked if asked > 0 else 0.0
            # Costs are differences of values, so rounding may leave them a little below 0.
            leader, dealer = (max(0.0, tally.cost(i, p)) if tally.spoken[i, p] > 0 else None for p in range(2))
            judged = verdict(followed, max(leader or 0.0, dealer or 0.0)) if asked > 0 else "never asked"
            rows.append(Measured(saying.text, asked, followed, (leader, dealer), judged))
        return rows


def percent(share: float) -> str:
    """A share with more digits the smaller it is; what is not trained is next to nothing."""
    if 0 < share < TRAINED:
        return "< 0.0001 %"
    return f"{100 * share:.1f} %" if share >= 0.01 or share == 0 else f"{100 * share:.2g} %"


def ratio(part: float, whole: float) -> str:
    """A share of something that may be next to never."""
    return percent(part / whole) if whole >= TRAINED else "-"


def points(cost: float | None) -> str:
    """What something costs."""
    if cost is None:
        return "-"
    return f"{cost:.4f}" if cost >= 5e-5 or cost < 5e-9 else "< 0.0001"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, all columns but the first to the right."""
    lines = [columns, ["---", *["---:"] * (len(columns) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def verdict(share: float, cost: float) -> str:
    """In words, from how often a saying is followed and what it costs always to follow it."""
    if share >= ALWAYS:
        return "holds" if cost < FREE else "holds but for exceptions that matter"
    if cost < FREE:
        return "one good way among others"
    return "a tendency, not a rule" if share >= USUALLY else "does not hold"


def page(found: Insights, folder: str) -> str:
    """insights.md; folder: where the plots are, from there."""
    sections = [
        introduction(found),
        in_short(found),
        of_raises(found, folder),
        of_ends(found),
        of_hands(found, folder),
        of_slow_play(found),
        of_theory(found, folder),
        of_sayings(found),
    ]
    return "\n\n".join(sections) + "\n"


def introduction(found: Insights) -> str:
    """Who is who, what is what, and how accurate it is."""
    result, rules = found.evaluation, found.rules
    low, high = result.interval
    title = TITLES.get(rules.name, rules.name)
    return f"""# What the equilibrium teaches

How two players who cannot be outwitted play {title}: all numbers here are computed from one solved strategy by
`python scripts/insights.py`, over all deals and all lines of play, without sampling. The strategy is within
{result.exploitability:.1g} points per hand of unbeatable (its exploitability). Where several ways are equally good it
shows one of them, and what hardly ever comes up need not be played well.

The *leader* is the non-dealer, who leads the first trick. *Turn* counts the cards: turn 1 is the leader's first card,
turn 2 the dealer's answer, turn {2 * rules.hand_size} the last card of all. A raise comes before the card of its turn.
The *stake* is what has been accepted so far.

**The deal is worth {-result.value:.4f} points per hand to the dealer**, and as much is lost by the leader: the value is
proved to lie between {-high:.6f} and {-low:.6f}."""


def in_short(found: Insights) -> str:
    """What a player would remember."""
    turns, ladder = found.turns, found.rules.ladder
    first, second, last = turns[1], turns[2], turns[2 * found.rules.hand_size]
    best = [max(found.hands(), key=lambda hand: round(hand.worth[seat], DIGITS)) for seat in range(2)]
    high = sum(found.ends(level) for level in range(2, len(ladder)))
    judged = found.sayings()

    def listed(wanted: str) -> str:
        texts = [each.text for each in judged if each.verdict.startswith(wanted)]
        return "".join(f"\n  - {text}" for text in texts or ["(none)"])

    return f"""## In short

- Before the first card the leader raises with {percent(first["raises"])} of hands, and the dealer, before answering it,
  with {percent(second["raises"])}; {ratio(second["bluffs"], second["raises"])} of the dealer's raises are bluffs, and
  {ratio(second["refused"], second["raises"])} are refused.
- Who plays the last card of three tricks raises {ratio(last["raises"], last["chances"])} of the time if he may.
- {percent(found.ends(refused=True))} of hands end by a refusal; {percent(high)} count more than {ladder[1]} points.
- The best hand is {best[0].name} for the leader ({best[0].worth[0]:+.2f} points) and {best[1].name} for the dealer
  ({best[1].worth[1]:+.2f}).
- Sayings that hold:{listed("holds")}
- Sayings that do not:{listed("does not hold")}"""


def of_raises(found: Insights, folder: str) -> str:
    """How often players raise, bluff and refuse."""
    ladder = found.rules.ladder
    rows = [
        [
            f"{turn}, stake {ladder[level]}",
            percent(each["chances"]),
            ratio(each["raises"], each["chances"]),
            ratio(each["bluffs"], each["raises"]),
            ratio(each["refused"], each["raises"]),
        ]
        for (turn, level), each in sorted(found.tally.raising.items())
        if each["chances"] >= SHOWN
    ]
    per_turn = [
        [
            str(turn),
            percent(each["chances"]),
            percent(each["raises"]),
            ratio(each["raises"], each["chances"]),
            ratio(each["bluffs"], each["raises"]),
            ratio(each["refused"], each["raises"]),
        ]
        for turn, each in found.turns.items()
    ]
    return f"""## Raises

{table(["turn", "may raise", "raises per hand", "raises when he may", "bluffs among raises", "refused"], per_turn)}

By turn and stake (those that at least {percent(SHOWN)} of hands come to):

{table(["turn", "hands that come there", "raise", "bluffs among raises", "refused"], rows)}

![How often players raise, by turn and stake]({folder}/raises.png)

*May raise*: the chance that the hand comes to a turn whose player may raise. A raise is a *bluff* if it would be worth
less, once accepted, than the best card without a raise; else it is a raise *for value*. All stakes: `raises.csv`."""


def of_ends(found: Insights) -> str:
    """Final stakes, and how hands end."""
    rules = found.rules
    rows = []
    for level, stake in enumerate(rules.ladder):
        refused, played = found.ends(level, True), found.ends(level, False)
        if refused + played >= TRAINED:
            rows.append([str(stake), percent(refused + played), percent(refused), percent(played)])
    won = sum(stake * (found.ends(level) - found.ends(level, winner=2)) for level, stake in enumerate(rules.ladder))
    refused = found.ends(refused=True)
    return f"""## How hands end

{table(["points", "hands", "ended by a refusal", "played out"], rows)}

{percent(refused)} of hands end by a refusal: the dealer refuses in {percent(found.ends(refused=True, winner=0))} of all
hands, the leader in {percent(found.ends(refused=True, winner=1))}. The leader wins {percent(found.ends(winner=0))} of
hands, the dealer {percent(found.ends(winner=1))}; the winner gets {won:.3f} points per hand on average.

*Points*: the stake that counted, so after a refusal the one before the raise. The probabilities of all ends add up to
one, and their points to the value above."""


def of_hands(found: Insights, folder: str) -> str:
    """Best and worst hands."""
    every = found.hands()

    def extremes(seat: int) -> str:
        ranked = sorted(every, key=lambda hand: -round(hand.worth[seat], DIGITS))
        count = min(EXTREMES, len(ranked) // 2)
        rows = [
            [f"{i + 1}", best.name, f"{best.worth[seat]:+.3f}", worst.name, f"{worst.worth[seat]:+.3f}"]
            for i, (best, worst) in enumerate(zip(ranked[:count], ranked[::-1][:count], strict=True))
        ]
        return table(["", "best", "points", "worst", "points"], rows)

    good = [sum(hand.dealt for hand in every if hand.worth[seat] > 0) for seat in range(2)]
    return f"""## Best and worst hands

As leader:

{extremes(0)}

As dealer:

{extremes(1)}

![What hands are worth, by how many are worse]({folder}/hands.png)

Points per hand with that hand against all hands of the other. A hand is worth more than nothing in
{percent(good[0])} of deals to the leader, and in {percent(good[1])} to the dealer. All hands: `hands.csv`."""


def of_slow_play(found: Insights) -> str:
    """Strong hands and sure wins that wait."""
    rows = [
        [
            str(turn),
            percent(each["strong"]),
            ratio(each["slow"], each["strong"]),
            percent(each["sure"]),
            ratio(each["waiting"], each["sure"]),
        ]
        for turn, each in found.turns.items()
    ]
    return f"""## Slow play

{table(["turn", "strong and may raise", "of these do not", "sure to win and may raise", "of these do not"], rows)}

*Strong*: the hand wins at least {STRONG:.0%} of the time with what is played, if nobody refuses any more. *Sure*: with
its best card it wins at least {SURE:.1%}. First and third number: per hand."""


def of_theory(found: Insights, folder: str) -> str:
    """The two formulas of the last card."""
    rows = [
        [
            f"{each.stake} to {each.raised}",
            *(f"{100 * number:.3f} %" for number in each[4:]),
            percent(each.share),
            f"{each.lines:,}",
        ]
        for each in found.last_card()
    ]
    columns = ["raise", "bluffs", "(1 - s/s')/2", "refused", "(s' - s)/(s' + s)", "of such raises", "lines"]
    return f"""## The last card: two formulas

When each has won one of the first two tricks, a tie of the third goes to the winner of the first, so whoever answers
the last lead knows who wins. He raises with every winner, and bluffs with some losers. From stake s to s' the bluffs
must be (1 - s/s')/2 of his raises, or the other would know whether to accept; and the other must refuse
(s' - s)/(s' + s) of them, or bluffing would pay always, or never.

{table(columns, rows)}

![Bluffs and refusals at the last card, measured and by formula]({folder}/last-card.png)

Measured over the lines where both are mixed: losers bluff, and the other refuses, more than {percent(INTERIOR)} and
less than {percent(1 - INTERIOR)} of the time; elsewhere winners or losers are too rare. *Of such raises*: how many of
all raises at that point are in these lines. Stakes that come up in fewer than one of a million hands are left out."""


def of_sayings(found: Insights) -> str:
    """Sayings, measured."""
    rules = found.rules
    rows = [
        [each.text, f"**{each.verdict}**", f"{each.asked:.3f}", percent(each.followed), *map(points, each.costs)]
        for each in found.sayings()
    ]
    score = strengths(rules)
    order = sorted(range(rules.n_ranks), key=lambda rank: (score[rank], rank))
    groups = [[rules.ranks[r] for r in order if score[r] == value] for value in sorted(set(score.tolist()))]
    ranking = " < ".join(" = ".join(group) for group in groups)
    columns = ["saying", "verdict", "asked, per hand", "followed", "costs the leader", "costs the dealer"]
    return f"""## Sayings

{table(columns, rows)}

*Asked*: decisions per hand in which the saying forbids something. *Followed*: how often the equilibrium obeys there.
*Costs*: what a player gives away per hand, in points, who obeys always and otherwise plays as well as he can, against
an opponent who plays the equilibrium and does not notice; one who notices can take more.

*Holds*: followed at least {ALWAYS:.0%} of the time at a cost under {FREE:g} points. *One good way among others*: as
cheap, but players mix. *A tendency*: followed at least {USUALLY:.0%}, but always to obey costs. A card is as strong as
the number of ranks that it beats less those that beat it: {ranking}. Among equals either will do."""
