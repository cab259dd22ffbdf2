"""`truc table`: all hands at one decision."""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from games.notation import describe_score, format_hand, format_line, parse_hand
from games.rules import ALIASES, Rules
from solver.cli.common import json_option
from solver.cli.decision import (
    NEVER,
    NOTHING,
    PLAYERS,
    RARE,
    Question,
    Range,
    accuracy_in_words,
    amount,
    ask,
    case_in_words,
    decision_options,
    document,
    missing,
    number,
    opponents,
    range_document,
    range_rows,
    shares,
    stakes,
    story,
    usage,
)
from solver.words import percent

if TYPE_CHECKING:
    from solver.advise import Answer

ACROSS = 4  # hands of the opponent side by side
Lines = list[list[str]]


@dataclass(frozen=True, slots=True)
class Row:
    """A holding: what `Answer` has of it, its probabilities as `Adviser.row` advises."""

    h: int
    cards: tuple[int, ...]
    hand: str
    weight: float
    probabilities: list[float]
    accuracy: float
    answer: Answer  # the one that the row is from


@dataclass(frozen=True, slots=True)
class Totals:
    """Over the rows shown, weighted: None where they have no weight.

    weight: their part of the range; actions: how often each action is played; hands: how many play it; opponent: what
    the other player holds against them.
    """

    weight: float
    actions: list[float] | None
    hands: list[int]
    opponent: Range | None


@click.command(name="table")
@click.option("--action", metavar="ACTION", help="Only hands that play it with a probability of 0.001 or more.")
@click.option("--holding", metavar="CARDS", help='Only hands with these cards in them, such as "8" or "8 8".')
@decision_options
@click.option("--csv", "as_csv", is_flag=True, help="Print the hands as CSV.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print Markdown.")
@json_option
def command(
    action: str | None,
    holding: str | None,
    text: str,
    discards: str,
    score: str | None,
    strategy: Path | None,
    variant: str | None,
    rules: Path | None,
    as_csv: bool,
    as_markdown: bool,
    as_json: bool,
) -> None:
    """Say what to do with every hand at one decision.

    Each row is what the player to act still holds.  Its weight is its part of his range: how likely he holds it, given
    how he has played, by combinations of cards.  Totals and the opponent's range are weighted the same way, over the
    hands that are shown.

    As CSV there is a line for each hand: hand (the cards held), weight, case, and for each action A of the decision
    A_probability, A_ev and A_loss, which are empty where the hand does not have that action.  Probabilities and
    weights are between 0 and 1; ev and loss are points per hand, or at a score probabilities to win the match.
    """
    if as_csv + as_markdown + as_json > 1:
        raise click.UsageError("--csv, --markdown and --json exclude each other, give one of them")
    asked = ask(text, discards, score, strategy, variant, rules)
    adviser, line, game = asked.adviser, asked.line, asked.adviser.rules
    with usage():
        answer = adviser.at(line, asked.discards)
        rows = _filtered(asked, answer, action, holding)
    if as_csv:
        _csv(answer, rows)
        return
    totals = _totals(game, answer, rows, asked.discards)

    from solver.cli.output import print_facts, print_json, print_table

    if as_json:
        print_json({**document(asked, answer), **_details(answer, rows, totals)})
        return
    filters = [f"playing {_word(game, action)}"] if action else []
    filters += [f"with {holding}"] if holding else []
    of = f" of {len(_possible(answer))}: those {' '.join(filters)}" if filters else ""
    one = len({row.answer.cases[row.h] for row in rows}) == 1
    facts = [
        *([("score", describe_score(game, adviser.score))] if adviser.score else []),
        ("line", story(game, line, adviser.score)),
        *([("set aside", format_hand(game, asked.discards))] if asked.discards else []),
        ("stake", stakes(game, line, answer.stake, adviser.score)),
        *([("case", case_in_words(rows[0].answer.cases[rows[0].h]))] if one else []),
        ("accuracy", accuracy_in_words(answer.unit, max(row.accuracy for row in rows))),
        *missing(asked),
    ]
    title = f"{game.name}: the {PLAYERS[answer.player]} to act, {len(rows)} hand{'s' * (len(rows) > 1)}{of}"
    columns, sections, right = _hands(answer, rows, one)
    tables = [("Hands", columns, sections, right), *_total_tables(answer, totals)]
    if as_markdown:
        click.echo(f"# {title}\n")
        for name, fact in facts:
            click.echo(f"- {name}: {fact}")
        for heading, columns, sections, right in tables:
            click.echo(f"\n## {heading}\n")
            _markdown(columns, [row for section in sections for row in section], right)
        return
    click.echo(title)
    print_facts(facts)
    for heading, columns, sections, right in tables:
        click.echo("" if heading == "Hands" else f"\n{heading}\n")
        print_table(columns, sections, right)


def _word(rules: Rules, text: str) -> str:
    """An action as the game calls it."""
    key = ALIASES.get(text.strip().casefold(), text.strip().casefold())
    return next((rank for rank in rules.ranks if rank.casefold() == key), key)


def _possible(answer: Answer) -> list[int]:
    """The holdings that the cards played allow."""
    return [h for h, legal in enumerate(answer.legal.tolist()) if any(legal)]


def _filtered(asked: Question, answer: Answer, action: str | None, holding: str | None) -> list[Row]:
    """The holdings that are possible and wanted.  Raises NotationError, click.UsageError."""
    from solver.advise import PLAYED

    adviser, rules = asked.adviser, asked.adviser.rules
    word = None if action is None else _word(rules, action)
    if word is not None and word not in answer.actions:
        raise click.UsageError(f"{action!r} is no action here, those are {', '.join(answer.actions)}")
    size = len((holding or "").replace(",", " ").split())
    wanted = Counter(parse_hand(rules, holding or "", size))
    rows = []
    for h in _possible(answer):
        cards = tuple(answer.holdings[h].tolist())
        if wanted - Counter(cards):
            continue
        own, table, accuracy = adviser.row(answer.line, h, asked.discards)
        if word is None or table[answer.actions.index(word)] >= PLAYED:
            weight = float(answer.share[h])
            rows.append(Row(h, cards, format_hand(rules, cards), weight, table.tolist(), accuracy, own))
    if not rows:
        what = [f"contains {holding}"] if holding else []
        what += [f"plays {word}"] if word else []
        where = f"after the line {format_line(answer.line)!r}" if answer.line else "at the start of the hand"
        raise click.UsageError(f"no hand {' and '.join(what)} {where}")
    return rows


def _totals(rules: Rules, answer: Answer, rows: Sequence[Row], discards: tuple[int, ...] = ()) -> Totals:
    from solver.advise import PLAYED

    weight = sum(row.weight for row in rows)
    hands = [sum(row.probabilities[a] >= PLAYED for row in rows) for a in range(len(answer.actions))]
    if weight <= 0:
        return Totals(weight, None, hands, None)
    actions = [sum(row.weight * row.probabilities[a] for row in rows) / weight for a in range(len(answer.actions))]
    against = sum(row.weight * row.answer.opponent[row.h] for row in rows) / weight
    return Totals(weight, actions, hands, opponents(rules, answer, discards, against.tolist()))


def _details(answer: Answer, rows: Sequence[Row], totals: Totals) -> dict[str, Any]:
    """What JSON has about hands and totals."""

    def hand(row: Row) -> dict[str, Any]:
        return {
            "hand": row.hand,
            "weight": row.weight,
            "case": row.answer.cases[row.h],
            "accuracy": row.accuracy,
            "refusal": number(row.answer.refusal[row.h]),
            "actions": [
                {
                    "action": action,
                    "probability": row.probabilities[a],
                    "ev": number(row.answer.ev[row.h, a]),
                    "loss": number(row.answer.loss[row.h, a]),
                    "win": number(row.answer.win[row.h, a]),
                }
                for a, action in enumerate(answer.actions)
                if answer.legal[row.h, a]
            ],
        }

    together: Sequence[float | None] = totals.actions or [None] * len(answer.actions)
    return {
        "accuracy": max(row.accuracy for row in rows),
        "hands": [hand(row) for row in rows],
        "totals": {
            "weight": totals.weight,
            "actions": [
                {"action": action, "probability": share, "hands": count}
                for action, share, count in zip(answer.actions, together, totals.hands, strict=True)
            ],
            "opponent": None if totals.opponent is None else range_document(totals.opponent),
        },
    }


def _csv(answer: Answer, rows: Sequence[Row]) -> None:
    """A line for each hand on stdout."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    names = [f"{action}_{name}" for action in answer.actions for name in ("probability", "ev", "loss")]
    writer.writerow(["hand", "weight", "case", *names])
    for row in rows:
        cells: list[float | str | None] = [row.hand, row.weight, row.answer.cases[row.h]]
        for a in range(len(answer.actions)):
            here = (row.probabilities[a], number(row.answer.ev[row.h, a]), number(row.answer.loss[row.h, a]))
            cells += here if answer.legal[row.h, a] else ("", "", "")
        writer.writerow(cells)


def _hands(answer: Answer, rows: Sequence[Row], one_case: bool) -> tuple[list[str], list[Lines], list[int]]:
    """Columns, sections and numeric columns: a section for each highest card, the highest first."""
    raises = any(row.answer.refusal[row.h] >= 0 for row in rows)  # not nan
    wins = [w for row in rows for w in row.answer.win[row.h].tolist() if w >= 0]  # not nan
    columns = [
        "hand",
        "weight",
        "plays",
        "EV",
        *(["wins"] * bool(wins)),
        *(["refused"] * raises),
        *(["case"] * (not one_case)),
    ]

    def cells(row: Row) -> list[str]:
        legal = answer.legal[row.h].nonzero()[0].tolist()
        known = [row.answer.ev[row.h, a] for a in legal if row.answer.ev[row.h, a] == row.answer.ev[row.h, a]]
        result = [row.hand or NOTHING, shares(row.weight), _mix(answer.actions, row.probabilities)]
        result += [amount(answer.unit, max(known), "+"), *([_wins(row, legal)] if wins else [])]
        if raises:
            result.append(percent(row.answer.refusal[row.h]) if row.answer.refusal[row.h] >= 0 else "")
        return result if one_case else [*result, row.answer.cases[row.h]]

    ordered = sorted(rows, key=lambda row: row.cards[::-1], reverse=True)
    tops = dict.fromkeys(row.cards[1:][-1:] for row in ordered)  # of one card each there are no sections
    sections = [[cells(row) for row in ordered if row.cards[1:][-1:] == top] for top in tops]
    return columns, sections, [i for i, name in enumerate(columns) if name in ("weight", "EV", "wins", "refused")]


def _wins(row: Row, legal: Sequence[int]) -> str:
    """The chance to win with what is played, if nobody refuses any more."""
    wins = [(row.probabilities[a], row.answer.win[row.h, a]) for a in legal if row.answer.win[row.h, a] >= 0]
    played = sum(share for share, _ in wins)
    return percent(sum(share * win for share, win in wins) / played if played > 0 else max(win for _, win in wins))


def _mix(actions: Sequence[str], probabilities: Sequence[float]) -> str:
    """What is played: one action, or several with their percentages."""
    played = sorted(((share, a) for a, share in enumerate(probabilities) if share >= NEVER), key=lambda p: -p[0])
    if len(played) == 1:
        return actions[played[0][1]]
    return " ".join(f"{actions[a]}:{min(max(round(100 * share), 1), 99)}" for share, a in played)


def _total_tables(answer: Answer, totals: Totals) -> list[tuple[str, list[str], list[Lines], list[int]]]:
    """Headings, columns, sections and numeric columns: the mix of all hands, what the opponent holds."""
    if totals.actions is None or totals.opponent is None:
        return []
    mix = [
        [action, percent(share), str(count)]
        for action, share, count in zip(answer.actions, totals.actions, totals.hands, strict=True)
    ]
    heading = f"Together, {shares(totals.weight)} of the range"
    found = range_rows(totals.opponent)
    down = -(-len(found) // ACROSS)
    side_by_side = [[cell for row in found[i::down] for cell in row] for i in range(down)]
    other = f"What the {PLAYERS[1 - answer.player]} holds against them (others: under {shares(RARE)} each)"
    width = max(map(len, side_by_side))
    return [
        (heading, ["action", "probability", "hands"], [mix], [1, 2]),
        (other, ["hand", "prob."] * (width // 2), [[r + [""] * (width - len(r)) for r in side_by_side]],
         list(range(1, width, 2))),
    ]  # fmt: skip


def _markdown(columns: Sequence[str], rows: Lines, right: Sequence[int]) -> None:
    def line(cells: Sequence[str]) -> None:
        click.echo("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")

    line(columns)
    line(["---:" if i in right else "---" for i in range(len(columns))])
    for row in rows:
        line(row)
