"""The text of insights.md: what `scripts/variant_insights.py` has computed, in words for card players."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from match_page import TITLES, options, percent, table, wrapped
from variant_study import Called, Calls, Declining, SmallRedeal, Unravelled, names

from games.notation import format_score
from games.rules import Rules
from solver.best_response import Evaluation
from solver.equity import Score, Worth
from solver.match_run import Store
from solver.takepoint import Interval, play_point

SIDES = ("leader", "dealer")
BY_TURN = 3  # scores whose calls are shown turn by turn
RARE = 5e-4  # per hand: what is called less often is left out of a table by turn


@dataclass(frozen=True, slots=True)
class Deal:
    """What dealing is worth in one game: in points per hand, and the first dealer's chance to win the match, both with
    its betting and without."""

    variant: str
    points: Interval
    points_plain: Interval
    match: Interval
    match_plain: Interval


@dataclass(frozen=True, slots=True)
class Found:
    """All that is reported; what a rule set does not have is empty or None.

    called: by score; without: the match without the remainder, or without the decision; declining: by score; card: the
    strategy in points against best responses without and with raises after the card.
    """

    store: Store
    points: Evaluation
    deals: Sequence[Deal]
    called: Mapping[Score, Called]
    without: Store | None
    declining: Mapping[Score, Declining]
    redeal: Unravelled | None
    small: Sequence[SmallRedeal]
    card: tuple[Evaluation, Evaluation] | None

    @property
    def rules(self) -> Rules:
        """The rule set."""
        return self.store.rules

    def gain(self, score: Score) -> float:
        """What the leader gains at a score by what `without` lacks."""
        assert self.without is not None
        return self.store.known[score].value - self.without.known[score].value

    @property
    def doubt(self) -> float:
        """A bound on how far any `gain` is off."""
        assert self.without is not None
        with_, less = self.store.known, self.without.known

        def width(worth: Worth) -> float:
            return max(worth.upper - worth.value, worth.value - worth.lower)

        return max(width(with_[score]) + width(less[score]) for score in with_)


def command(variant: str) -> str:
    """What makes the page again."""
    return f"python scripts/variant_insights.py{options(variant)}"


def page(found: Found, folder: str) -> str:
    """insights.md; folder: where the tables are, from there."""
    sections = [introduction(found), in_short(found), of_the_deal(found, folder)]
    if found.called:
        sections.append(of_the_remainder(found, folder))
    if found.declining:
        sections.append(of_declining(found, folder))
    if found.redeal is not None:
        sections.append(of_the_redeal(found, found.redeal, folder))
    if found.card is not None:
        sections.append(of_the_card(found.card))
    sections.append(of_accuracy(found, folder))
    return wrapped("\n\n".join(sections)) + "\n"


def title(rules: Rules | str) -> str:
    """A game's name."""
    name = rules if isinstance(rules, str) else rules.name
    return TITLES.get(name, name)


def introduction(found: Found) -> str:
    """What it is about."""
    rules, start = found.rules, found.store.known[0, 0]
    return f"""# What is different in {title(rules)}

What two players who cannot be outwitted do with the rules that {title(rules)} has and others have not. All numbers are
computed by `{command(rules.name)}`, without sampling, from the solved match to {rules.target} (exploitability
{start.exploitability:.1g} of a match) and from the hand solved for points ({found.points.exploitability:.1g} points).

The *leader* is the non-dealer, who leads the first trick. A score is the leader's points, then the dealer's. The match
itself, score by score, is in [match/match.md](match/match.md)."""


def in_short(found: Found) -> str:
    """What a player would remember."""
    own = found.deals[0]
    lines = [
        f"To deal is worth {own.points.value:.3f} points per hand, and the first dealer wins "
        f"{percent(own.match.value, 2)} of matches; without betting it would be "
        f"{own.points_plain.value:.3f} points and "
        f"{percent(own.match_plain.value, 2)}."
    ]
    if found.called:
        far = max(found.called, key=lambda score: (abs(score[0] - score[1]), score))
        near = (0, 0)
        totals = {score: [found.called[score].total(p, True).made for p in range(2)] for score in (near, far)}
        lines.append(
            f"The match is called for in {percent(sum(totals[near]))} of hands at {format_score(near)} and in "
            f"{percent(sum(totals[far]))} at {format_score(far)}; {profit(found)}"
        )
    if found.declining:
        chances = {score: each.declines for score, each in found.declining.items()}
        low, high = min(chances, key=chances.__getitem__), max(chances, key=chances.__getitem__)
        lines.append(
            f"The side with {found.rules.target - 1} points declines from {percent(chances[low])} of hands "
            f"(at {format_score(low)}) to {percent(chances[high])} (at {format_score(high)}); {profit(found)}"
        )
    if found.redeal is not None:
        lines.append(
            "Nobody should ever agree to a redeal: what one gains by new cards the other loses, and who proposes has a "
            f"hand worth less than new cards. A dealer who agrees with every hand below the average loses "
            f"{max(each.agrees for each in found.small):.2f} points per hand on a small deck."
        )
    if found.card is not None:
        lines.append("Raising after one's card instead of before gains nothing.")
    return "## In short\n\n" + "\n".join(f"- {line}" for line in lines)


def profit(found: Found) -> str:
    """Who gains by what the comparison is without."""
    ahead = [
        found.gain(score) * (1 if score[0] > score[1] else -1) for score in found.store.known if score[0] != score[1]
    ]
    mean = sum(ahead) / len(ahead)
    side = "ahead" if mean > 0 else "behind"
    return (
        f"that rule helps the side that is {side}, by {percent(abs(mean), 2)} of a match on average over all scores "
        "that are not level."
    )


def of_the_deal(found: Found, folder: str) -> str:
    """The deal in each game."""
    rows = [
        [title(each.variant), f"{each.points.value:.4f}", f"{each.points_plain.value:.4f}",
         percent(each.match.value, 2), percent(each.match_plain.value, 2)]
        for each in found.deals
    ]  # fmt: skip
    columns = ["game", "points per hand", "without betting", "first dealer wins", "without betting"]
    own = found.deals[0]
    low, high = own.points.lower, own.points.upper
    return f"""## What the deal is worth

The dealer sees the lead before he plays a card, and in most games that is worth more than to lead:

{table(columns, rows)}

Points per hand to the dealer, the hand played for points; here proved to lie between {low:.5f} and {high:.5f}. *First
dealer wins*: of matches, the deal alternating. *Without betting*: the same deck, each hand one point. All,
with bounds: [deal.csv]({folder}/deal.csv)."""


def of_the_remainder(found: Found, folder: str) -> str:
    """When it is called."""

    def row(score: Score, called: Called) -> list[str]:
        cells = [format_score(score)]
        for side in range(2):
            match, less = called.total(side, True), called.total(side, False)
            cells += [percent(match.made), share(match.bluffs, match), share(match.conceded, match), percent(less.made)]
        return [*cells, percent(called.ends)]

    columns = [f"{side} {what}" for side in SIDES for what in ("calls", "bluffs", "conceded", "raises less")]
    rows = [row(score, called) for score, called in found.called.items()]
    turns = []
    for score in list(found.called)[:BY_TURN]:
        for (turn, side), each in sorted(found.called[score].for_match.items()):
            if each.made >= RARE:
                shares = each.made / each.chances, each.bluffs / each.made, each.conceded / each.made
                turns.append([format_score(score), str(turn), SIDES[side], percent(each.made), *map(percent, shares)])
    target = found.rules.target
    gains = [[f"**{a}**", *(f"{100 * found.gain((a, b)) + 0.0:+.1f}" for b in range(target))] for a in range(target)]
    level = [found.gain((a, a)) for a in range(target)]
    best = max(found.store.known, key=lambda score: (round(abs(found.gain(score)), 9), score))
    winner = "the leader" if found.gain(best) > 0 else "the dealer"
    return f"""## The remainder: who profits, and when it is called

How much better the leader stands, in percent of a match, than if there were no remainder (all else equal); his points
down, the dealer's across:

{table(["", *(f"**{b}**" for b in range(target))], gains)}

Every difference is within {percent(found.doubt, 2)} of the true one. {profit(found).capitalize()} Most is at stake at
{format_score(best)}, {percent(abs(found.gain(best)))} to {winner}; at level scores it changes at most
{percent(max(map(abs, level)))}. All: [equity.csv]({folder}/equity.csv).

Who calls for the match, in how many hands, at any turn:

{table(["score", *columns, "match is played for"], rows)}

*Calls*: "my remainder", or a raise to a stake that wins the match for either side, which is the same. *Bluffs*: of
these
calls, those that would be worth less, once accepted, than the best card without a call. *Conceded*: of these calls.
*Raises less*: raises to a lower stake, of which there is none against a side that wins the match with the stake as it
is: calling for the match would be as good. *Match is played for*: hands in which such a call is accepted. By turn (1
the leader's first card, 2 the dealer's answer, and so on):

{table(["score", "turn", "who", "calls per hand", "calls when he may", "bluffs", "conceded"], turns)}

All scores that were counted, with all turns: [calls.csv]({folder}/calls.csv)."""


def share(part: float, whole: Calls) -> str:
    """A part of some calls; a dash if there are next to none."""
    return percent(part / whole.made) if whole.made >= RARE else "-"


def of_declining(found: Found, folder: str) -> str:
    """How often, and with which hands."""
    rules, last, every = found.rules, found.rules.target - 1, names(found.rules)
    rows = []
    for other in range(last):
        row = [str(other)]
        for score in ((last, other), (other, last)):
            each = found.declining[score]
            weakest, strongest = each.edge(True), each.edge(False)
            row += [
                percent(each.declines),
                "-" if weakest is None else f"{every[weakest]} ({percent(float(each.win[weakest]), 0)})",
                "-" if strongest is None else f"{every[strongest]} ({percent(float(each.win[strongest]), 0)})",
                percent(play_point(rules, score, found.store.known)),
            ]
        rows.append(row)
    columns = [f"{side} {what}" for side in SIDES for what in ("declines", "weakest that plays",
               "strongest that declines", "formula")]  # fmt: skip
    gains = []
    if found.without is not None:
        for score in found.declining:
            gains.append(found.gain(score) * (1 if score[0] == last else -1))
    helps = (
        f"""Compared with raises at these scores as at all others, the rule costs the side with {last} points
{percent(-sum(gains) / len(gains), 2)} of a match on average over these scores (from
{percent(round(-max(gains), 4), 2)} to {percent(round(-min(gains), 4), 2)}); each difference is within
{percent(found.doubt, 2)} of the true one."""
        if gains
        else ""
    )
    return f"""## Play or decline: the side with {last} points

A side with {last} points, the other with fewer, sees its cards and then declines, which gives the other one point, or
plays for {rules.ladder[-1]} without raises. By the other's points:

{table(["the other's points", *columns], rows)}

*Leader*, *dealer*: which the side with {last} points is. *Declines*: in how many hands. *Weakest that plays*,
*strongest
that declines*: by the chance to win the hand if it is played (in brackets), of those that do so at least half of the
time. *Formula*: the chance from which playing is better if that were all; but who wins against the hands that stay in
depends on what the play tells, and a hand that mixes does one or the other. {helps} All hands:
[declining.csv]({folder}/declining.csv)."""


def of_the_redeal(found: Found, redeal: Unravelled, folder: str) -> str:
    """Why nobody should agree."""
    value, (leaders, dealers), (unaware, gained) = redeal.value, redeal.below, redeal.unaware
    rows = [
        [str(i), percent(each.proposes), percent(each.agrees), percent(each.agreed),
         "-" if each.gain is None else f"{each.gain:+.3f}"]
        for i, each in enumerate(redeal.rounds, 1)
    ]  # fmt: skip
    small = [
        [f"{len(each.rules.ranks)} ranks of {each.rules.copies}, {each.rules.hand_size} cards", f"{each.value:+.4f}",
         f"{each.without:+.4f}", f"{each.redeals:.1g}", f"{each.agrees:.3f}", f"{each.proposes:.3f}",
         f"{each.error:.1g}"]
        for each in found.small
    ]  # fmt: skip
    columns = ["deck", "value", "without redeal", "redeals", "agreeing loses", "proposing loses", "error"]
    return f"""## Never agree to a redeal

New cards, before anything is known of them, are worth {value:+.4f} points to the leader and {-value:+.4f} to the
dealer: together nothing, as with the old ones. So new cards cannot be better for both. Take all deals in which the
leader
proposes and the dealer agrees: if there the leader's old cards were worth less to him than new ones, the dealer's old
cards, against just these hands of the leader's, were worth more to him than new ones.

{percent(leaders)} of the leader's hands are worth less than new cards, and {percent(dealers)} of the dealer's. If every
leader proposed, whatever he has, {percent(unaware)} of the dealer's hands would do well to agree, and gain
{gained:.3f} points per hand by it. But the leader proposes with bad hands, and against bad hands the dealer's are worth
more. The hands of both, each round the best reply to the one before:

{table(["round", "leader proposes", "dealer agrees", "redeals", "leader gains by one"], rows)}

In the first round the leader proposes with every hand that is worth less than new cards, and the dealer agrees with
those
that lose against just these hands; the leader, who knows that, then keeps most of his, and so on, until nobody agrees.
(Both play on as if nothing had been said, and what the discards tell of the new cards is left out.)

On small decks the redeal is in the game and everything is exact:

{table(columns, small)}

*Value*: of the hand to the leader in points, with the redeal and without: the same. *Redeals*: how often there is
one in
equilibrium. *Agreeing loses*: points per hand, to a dealer who agrees with every hand that is worth less than the
average, against a leader who knows it. *Proposing loses*: likewise for a leader who proposes with all such hands. All
hands: [hands.csv]({folder}/hands.csv)."""


def of_the_card(card: tuple[Evaluation, Evaluation]) -> str:
    """Nothing comes of it."""
    less, more = card
    return f"""## Raising after the card

It changes nothing. Whoever is raised after a card answers as he would have answered the same raise before it: then
"card, raise" brings exactly what "raise, accepted or refused, card" brings, and nobody can gain by the other order. The
strategy of the hand in points is solved without raises after the card and answers them in this way
(`solver.complete`). Exact best responses to it get {less.best_response[0]:+.9f} (the leader) and
{less.best_response[1]:+.9f} points (the dealer) without such raises, and {more.best_response[0]:+.9f} and
{more.best_response[1]:+.9f} if they may raise after the card as well."""


def of_accuracy(found: Found, folder: str) -> str:
    """How sure it is, and how to make it again."""
    rules = found.rules
    compared = ""
    if found.without is not None:
        compared = f""" The match to compare with, `{found.without.rules.name}`, is solved to
{found.without.accuracy:g}."""
    return f"""## How accurate this is

The match: {found.store.accuracy:g} of a match at most, by exact best responses to the whole match; the hand in points:
{found.points.exploitability:.2g} points.{compared} Where several ways are equally good the strategies show one of them,
and what hardly ever comes up need not be played well.

```sh
truc match solve{options(rules.name)} --accuracy {found.store.accuracy:g}
python scripts/reproduce.py{options(rules.name)}
{command(rules.name)}
```

[manifest.json]({folder}/manifest.json) has the versions, what all this was computed from, and the checksums of the
files."""


def interval(evaluation: Evaluation) -> Interval:
    """What the deal is worth by a hand in points."""
    low, high = evaluation.interval
    return Interval(-evaluation.value, -high, -low)


def first_dealer(start: Worth, rounding: float = 0.0) -> Interval:
    """The first dealer's chance to win the match."""
    return Interval(1 - start.value, 1 - start.upper - rounding, 1 - start.lower + rounding)


def scores(target: int) -> list[Score]:
    """Where calls are counted: level scores, then a side ahead or behind."""
    half, t = target // 2, target
    wanted = [(0, 0), (0, t - 1), (t - 1, 0), (half, half), (t - 3, t - 3), (t - 2, t - 2), (half, 0), (0, half),
              (t - 2, t - 4), (t - 4, t - 2), (t - 1, t - 2), (t - 2, t - 1), (t - 1, t - 3), (t - 3, t - 1),
              (t - 1, half), (half, t - 1)]  # fmt: skip
    return [score for score in dict.fromkeys(wanted) if min(score) >= 0]


def rounded(numbers: Sequence[float]) -> list[float]:
    """To nine decimals, without -0."""
    return [float(x) for x in np.round(numbers, 9) + 0.0]
