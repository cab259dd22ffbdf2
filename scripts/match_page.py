"""The text of match.md: what `scripts/match_results.py` has computed, in words for card players."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from match_study import COMES, RARE, Deciding, Studied

from games.notation import format_score
from games.rules import PLAY, RAISE, REMAINDER, Rules
from solver.book import Book
from solver.equity import Score, Worth, decider, hand_rules
from solver.match_run import Store
from solver.takepoint import (
    Call,
    Interval,
    best_of_matches,
    calls,
    deal_worth,
    equity_rounding,
    play_point,
    take_point,
)

DEFAULT = "le-truc"
TITLES = {DEFAULT: "Le Truc", "french": "the French game", "catalan": "the Catalan game"}
SHOWN = 0.01  # a raise made less often than that, per hand, is left out of the page
OFTEN = 3  # the ranks led most that are named
ANSWERED = 2  # the leads that are raised most, of each score
EXACT = 1e-12  # rounding that is none
WIDTH = 120
MATCHES = 3


@dataclass
class Found:
    """All that is reported."""

    store: Store
    studied: Mapping[Score, Studied]
    book: Book

    @property
    def rules(self) -> Rules:
        """The rules of the match."""
        return self.store.rules

    @cached_property
    def known(self) -> dict[Score, Worth]:
        """What the scores are worth."""
        return self.store.known

    @cached_property
    def rounding(self) -> float:
        """A bound on the rounding error of any of these numbers."""
        return equity_rounding(self.rules)

    def deal(self, points: int, others: int) -> Interval:
        """What it is worth to deal instead of leading."""
        return deal_worth(self.known, points, others, self.rounding)

    @cached_property
    def best_of_three(self) -> Interval:
        """The first dealer's chance to win two of three matches."""
        return best_of_matches(MATCHES, self.known[0, 0], self.rounding)

    def take_point(self, score: Score, answerer: int, level: int, word: str = RAISE) -> float | None:
        """By the equity table."""
        return take_point(self.rules, score, answerer, level, self.known, word)

    def play_point(self, score: Score) -> float | None:
        """By the equity table."""
        return play_point(self.rules, score, self.known)

    def calls(self, score: Score) -> list[Call]:
        """The raises and remainders of the hand at a score."""
        return list(calls(self.rules, score))

    def decisions(self) -> list[tuple[Score, Deciding]]:
        """The scores where a side first decides whether the hand is played."""
        return [(score, each.decision) for score, each in sorted(self.studied.items()) if each.decision is not None]

    def typical(self) -> list[Score]:
        """The scores that the page has in its tables."""
        t = self.rules.target
        wanted = [(0, 0), (t // 2, t // 2), (t - 3, t - 3), (t - 2, t - 2), (t - 1, t - 1), (t - 1, t - 2),
                  (t - 2, t - 1), (t - 1, t - 3), (t - 3, t - 1), (t - 2, t - 4), (t - 4, t - 2), (t - 1, t // 2),
                  (t // 2, t - 1), (t - 1, 0), (0, t - 1)]  # fmt: skip
        return [score for score in dict.fromkeys(wanted) if min(score) >= 0]


def options(variant: str) -> str:
    """What commands need to be about a rule set that comes with the program."""
    return "" if variant == DEFAULT or variant not in TITLES else f" --variant {variant}"


def script_command(variant: str) -> str:
    """The command that makes all this again, of a match where `truc match solve` keeps it."""
    return f"python scripts/match_results.py{options(variant)}"


def bounds(low: float, high: float, digits: int) -> tuple[str, str]:
    """Two bounds in percent, rounded outwards."""
    unit = 10.0**digits
    ends = math.floor(100 * low * unit) / unit, math.ceil(100 * high * unit) / unit
    return f"{ends[0]:.{digits}f} %", f"{ends[1]:.{digits}f} %"


def wrapped(text: str) -> str:
    """A page with its paragraphs and lists filled up; headings, tables, pictures and code as they are."""
    blocks = text.split("\n\n")
    for i, block in enumerate(blocks):
        if block.startswith("- "):
            items = block.removeprefix("- ").split("\n- ")
            blocks[i] = "\n".join(_filled(f"- {item}", "  ") for item in items)
        elif not block.startswith(("#", "|", "!", "```")):
            blocks[i] = _filled(block, "")
    return "\n\n".join(blocks)


def _filled(paragraph: str, indent: str) -> str:
    whole = paragraph.replace(" %", "\0%")  # no line begins with a percent sign
    lines = textwrap.wrap(whole, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace("\0", " ")


def percent(share: float | None, digits: int = 1) -> str:
    """A share, or a dash where there is none."""
    return "-" if share is None else f"{100 * share + 0.0:.{digits}f} %"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, all columns but the first to the right."""
    lines = [columns, ["---", *["---:"] * (len(columns) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page(found: Found) -> str:
    """match.md."""
    sections = [
        introduction(found),
        in_short(found),
        of_scores(found),
        of_the_deal(found),
        of_take_points(found),
        of_first_raises(found),
        of_openings(found),
        *([of_remainders(found)] if found.rules.remainder else []),
        *([of_decisions(found)] if found.rules.decision_before_target else []),
        of_three_matches(found),
        of_accuracy(found),
    ]
    return wrapped("\n\n".join(sections)) + "\n"


def introduction(found: Found) -> str:
    """Who is who, and what the match is worth."""
    rules, start = found.rules, found.known[0, 0]
    low, high = bounds(start.lower - found.rounding, start.upper + found.rounding, 4)
    title = TITLES.get(rules.name, rules.name)
    return f"""# The match to {rules.target}

How two players who cannot be outwitted play a match of {title} to {rules.target} points. All numbers here are computed
from one solved match, a strategy for every score, by `{script_command(rules.name)}`, without sampling.

The *leader* is the non-dealer, who leads the first trick; the deal passes after every hand. A score is always the
leader's points, then the dealer's: at {rules.target - 1}-{max(rules.target - 3, 0)} the leader needs one point. Shares
and chances to win are of the whole match unless it says otherwise.

**Who deals first wins {percent(1 - start.value, 2)} of matches**: the leader's chance at 0-0 is proved to lie between
{low} and {high}."""


def in_short(found: Found) -> str:
    """What a player would remember."""
    rules, scores = found.rules, sorted(found.known)

    def often(side: int, sign: int) -> str:
        made = {
            score: rate
            for score in scores
            # A score where a raise can change nothing teaches nothing.
            if len(hand_rules(rules, score).ladder) > 1 and (rate := found.studied[score].rates[side].made) is not None
        }
        best = max(made, key=lambda score: round(sign * made[score], 6))  # the first of equals
        return f"at {format_score(best)}, {percent(made[best])} of hands"

    lines = []
    deals = {score: found.deal(*score).value for score in scores}
    best, worst = max(deals, key=lambda s: round(deals[s], 9)), min(deals, key=lambda s: round(deals[s], 9))
    lines.append(
        f"To deal is worth most at {format_score(best)}, {percent(deals[best])} of a match, and least at "
        f"{format_score(worst)}, {percent(deals[worst])}; it is a disadvantage at "
        f"{sum(deal < 0 for deal in deals.values())} of {len(deals)} scores."
    )
    if len(rules.ladder) > 1:
        with_raises = [score for score in scores if found.calls(score)]
        never = sum((found.studied[score].rates[0].made or 0.0) < SHOWN for score in with_raises)
        lines.append(
            f"The leader raises before his first card in less than {percent(SHOWN, 0)} of hands at {never} of "
            f"{len(with_raises)} scores{'' if with_raises == scores else ' with raises'}, and most often {often(0, 1)}."
        )
        lines.append(f"The dealer raises before he answers the first lead most often {often(1, 1)}, and least often "
                     f"{often(1, -1)}.")  # fmt: skip
        s, t = rules.ladder[:2]
        points = [found.take_point(score, p, 0) for score in scores for p in range(2)]
        known = [point for point in points if point is not None]
        lines.append(
            f"The first raise, from {s} to {t}, is to be taken with a chance of {percent((t - s) / (2 * t))} to win "
            f"a hand played for points; in the match that goes from {percent(min(known))} to {percent(max(known))}."
        )
    lines.append(
        f"Who deals first in the first of three matches wins two with {percent(found.best_of_three.value, 2)}."
    )
    return "## In short\n\n" + "\n".join(f"- {line}" for line in lines)


def of_scores(found: Found) -> str:
    """The equity table."""
    target = found.rules.target
    rows = [[f"**{a}**", *(f"{100 * found.known[a, b].value:.1f}" for b in range(target))] for a in range(target)]
    return f"""## Every score

The leader's chance to win the match, in percent; his points down, the dealer's across:

{table(["", *(f"**{b}**" for b in range(target))], rows)}

![The leader's chance to win the match at every score](equity.png)

With the proved bounds: [equity.csv](equity.csv), [equity.json](equity.json)."""


def of_the_deal(found: Found) -> str:
    """What dealing is worth."""
    target = found.rules.target
    rows = [
        [f"**{a}**", *(f"{100 * found.deal(a, b).value + 0.0:.1f}" if b <= a else "" for b in range(target))]
        for a in range(target)
    ]
    return f"""## What the deal is worth

How much better it is to deal the next hand than to lead it, in percent of a match. With p points against q it is
(1 - V(q, p)) - V(p, q), where V is the table above: the same for both players.

{table(["", *(f"**{b}**" for b in range(target))], rows)}

![What dealing is worth at every score](deal.png)

With bounds: [deal.csv](deal.csv)."""


def of_take_points(found: Found) -> str:
    """By formula."""
    ladder = found.rules.ladder
    if len(ladder) < 2:
        return "## When to take a raise\n\nThere are no raises."
    levels = range(min(len(ladder) - 1, 3))
    asked = [(n, RAISE, f"{ladder[n]} to {ladder[n + 1]}") for n in levels]
    if found.rules.remainder:
        asked.append((0, REMAINDER, f"remainder at {ladder[0]}"))
    columns = ["score", *(f"{what}, {side}" for _, _, what in asked for side in ("dealer", "leader"))]
    rows = [
        [format_score(score), *(percent(found.take_point(score, p, n, word)) for n, word, _ in asked for p in (1, 0))]
        for score in found.typical()
    ]
    impossible = "" if all(map(found.calls, found.typical())) else "; a dash, that there are no raises at that score"
    formula = ", ".join(f"{percent((t - s) / (2 * t))} from {s} to {t}" for s, t in pairwise(ladder[: len(levels) + 1]))
    return f"""## When to take a raise

If nobody raises any more, take a raise when your chance to win the hand is at least

(V(refuse) - V(lose)) / (V(win) - V(lose)),

with your chances to win the match after each: refusing gives the other the stake before the raise, losing and winning
are at the raised stake. In a hand played for points that would be {formula}. In the match, by who answers:

{table(columns, rows)}

0.0 % means that refusing loses the match or is as bad as losing the hand{impossible}. That later raises may come is
left out; so are spoiled hands. All scores and stakes: [takepoints.csv](takepoints.csv),
[takepoints.json](takepoints.json)."""


def of_first_raises(found: Found) -> str:
    """In the strategies."""
    rows = []
    for score in found.typical():
        made = [taking for taking in found.studied[score].takings if taking.made >= SHOWN]
        answers = sorted((t for t in made if t.answerer == 0), key=lambda t: -round(t.made, 9))[:ANSWERED]
        for taking in (*(t for t in made if t.answerer == 1), *answers):
            rows.append([
                format_score(score), " ".join(taking.line), percent(taking.made), percent(taking.accepted),
                percent(taking.threshold), percent(found.take_point(score, taking.answerer, 0, taking.word)),
                percent(taking.misplaced),
            ])  # fmt: skip
    columns = ["score", "line", "made", "accepted", "from", "formula", "otherwise"]
    remainder = " or remainder" if found.rules.remainder else ""
    return f"""## And when the strategies take it

The first raise{remainder} of the hand, before the first card or in answer to a lead, at the same scores:

{table(columns, rows)}

*Line*: "{RAISE}" is a raise before the first card, which the dealer answers; "{found.rules.ranks[-1]} {RAISE}" one in
answer to the lead of that card, which the leader answers; of these, the {ANSWERED} that are made most. *Made*: in how
many hands, at least {percent(SHOWN, 0)}. *From*: the chance to win the hand, if nobody refuses any more, that divides
best what accepts from what refuses; a dash where no division is better than to accept always, or never. *Formula*: the
take point above. *Otherwise*: how much of the range does not do what that division says, because it mixes, or because
the raises still to come count as well. All: [takepoints-first.csv](takepoints-first.csv)."""


def of_openings(found: Found) -> str:
    """The first decisions."""
    rows, ranks = [], found.rules.ranks
    played = ", if the hand is played" if found.rules.decision_before_target else ""
    for score in found.typical():
        each = found.studied[score]
        leads = sum(each.leads)
        order = sorted(range(len(ranks)), key=lambda rank: -round(each.leads[rank], 9))[:OFTEN]
        most = [f"{ranks[rank]} {percent(each.leads[rank] / leads, 0)}" for rank in order if leads >= COMES]
        rates = [percent(number) for rate in each.rates for number in rate]
        rows.append([format_score(score), *rates, ", ".join(most) or "-"])
    rounding = found.book.rounding
    impossible = "" if all(map(found.calls, found.typical())) else ", or there are no raises"
    exact = "the strategies' own" if rounding < EXACT else f"within {rounding:.1g} of the strategies'"
    columns = [
        "score",
        *(f"{side} {what}" for side in ("leader", "dealer") for what in ("raises", "bluffs", "accepted")),
    ]
    return f"""## How the score changes the opening

{table([*columns, "leads without a raise"], rows)}

![How often the first raise is made](raises.png)

![How much of it are bluffs](bluffs.png)

![How often it is accepted](accepted.png)

*Raises*: of hands, at the first turn: the leader's before his first card{played}, the dealer's before he answers it (if
the leader has not raised). *Bluffs*: of these raises, those that would be worth less, once accepted, than the best card
without a raise. *Accepted*: by the other. A dash: the turn comes in less than {percent(COMES, 0)} of hands, or the
raise in less than {percent(RARE)}{impossible}. All scores, and all leads: [openings.csv](openings.csv).

What every hand does at these decisions, at every score, is in [book.safetensors](book.safetensors): read it by
`solver.book.Book.load`; its probabilities are {exact}."""


def of_remainders(found: Found) -> str:
    """The first remainders."""
    rows = []
    for score in found.typical():
        rates = [percent(number) for rate in found.studied[score].calls[REMAINDER] for number in rate]
        rows.append([format_score(score), *rates])
    columns = [f"{side} {what}" for side in ("leader", "dealer") for what in ("calls", "bluffs", "accepted")]
    if found.rules.remainder_refused == "match":
        refused, same = "the match", "the strategies take one or the other"
    else:
        refused, same = "the stake before the call", "the strategies raise"
    return f"""## When the remainder is called at once

{table(["score", *columns], rows)}

![How often the remainder is called at the first turn](remainders.png)

As the table above it, for "my remainder" at the first turn instead of a raise: whoever then wins the hand wins the
match, and whoever concedes gives {refused}. Where the next stake wins the match for either side a raise is the same as
the remainder, and {same}."""


def of_decisions(found: Found) -> str:
    """Whether a hand is played."""
    last = found.rules.target - 1
    stake = found.rules.ladder[-1]
    decided = dict(found.decisions())
    rows = []
    for other in range(last):
        row = [str(other)]
        for score in ((last, other), (other, last)):
            decision, side = decided[score], decider(found.rules, score)
            assert side is not None
            value = found.known[score].value
            row += [percent(1 - decision.plays), percent(found.play_point(score)), percent(decision.threshold),
                    percent(value if side == 0 else 1 - value)]  # fmt: skip
        rows.append(row)
    columns = [f"{side} {what}" for side in ("leader", "dealer") for what in ("declines", "formula", "from", "wins")]
    return f"""## Play or decline at {last}

A side with {last} points, the other with fewer, has seen its cards and may decline: the other then has one point more.
If it plays, the hand is for {stake} points without raises, and to win it wins the match.

{table(["the other's points", *columns], rows)}

*Leader*: the side with {last} points leads, *dealer*: it deals. *Declines*: of hands. *Formula*: the chance to win the
hand from which to play it, (V(decline) - V(lose)) / (V(win) - V(lose)). *From*: the chance to win the hand that divides
best what plays from what declines, by the strategies; a dash: no such division is better than always to play, or never.
*Wins*: its chance to win the match. All: [decisions.csv](decisions.csv); what every hand does is in the book, where the
lines of these scores begin with this decision and go on after "{PLAY}"."""


def of_three_matches(found: Found) -> str:
    """Best of three."""
    low, high = bounds(found.best_of_three.lower, found.best_of_three.upper, 3)
    value, d = found.best_of_three.value, 1 - found.known[0, 0].value
    return f"""## The best of three matches

The lot decides who deals first in the first match; after that the first deal alternates. Who deals first in the first
match wins the best of three with {percent(value, 2)} (between {low} and {high}, guaranteed),
the other with {percent(1 - value, 2)}; before the lot it is 50 % for both. With d = {percent(d, 2)}, the first dealer's
chance in one match, it is d(1 - d) + d^3 + d(1 - d)^2: won, won; won, lost, won; lost, won, won.
As JSON: [best-of-three.json](best-of-three.json)."""


def of_accuracy(found: Found) -> str:
    """How sure all that is, and how to make it again."""
    start, store = found.known[0, 0], found.store
    worst = max(found.known, key=lambda score: found.known[score].exploitability)
    return f"""## How accurate this is

At 0-0 the strategies' exploitability is {start.exploitability:.2g} of a match: half of what both players together could
gain by best responses to the whole match, computed exactly, hand for hand, with all that follows. The largest of any
score's is {found.known[worst].exploitability:.2g}, at {format_score(worst)}. Float64 rounding adds
{found.rounding:.1g} at most, which is in the bounds. Where several ways are equally good the strategies show one of
them, and what hardly ever comes up need not be played well.

```sh
truc match solve{options(found.rules.name)} --accuracy {store.accuracy:g}
{script_command(found.rules.name)}
```

[manifest.json](manifest.json) has the versions, the checksums of all strategies and those of the files here."""
