"""What `advise`, `table` and `range` share: the options that name a decision, and how they speak of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from games.notation import NotationError, format_hand, format_line, parse_line
from games.rules import ACCEPT, RAISE, REFUSE, Rules
from games.state import State
from solver.cli.common import game_options, score_option, stored_strategy
from solver.paths import usable_threads

if TYPE_CHECKING:
    from solver.advise import Advice, Adviser, Answer
    from solver.storage import Header

Range = list[tuple[str, float]]  # cards held and how likely, the likeliest first

PLAYERS = ("leader", "dealer")
NEVER = 0.005  # shown as never done
RARE = 0.0005  # in a range: summed up as "others"
NOTHING = "(no card)"  # instead of no text
DOES = {RAISE: "raises", ACCEPT: "accepts", REFUSE: "refuses"}


def decision_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--line, --score, --strategy, --variant and --rules, which go to `ask`."""
    words = 'Public history of the hand, such as "raise accept 8" or "r y 8".  [default: its start]'
    line = click.option("--line", "text", metavar="LINE", default="", help=words)
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    strategy = click.option(
        "--strategy", type=file, metavar="FILE", help="Strategy file.  [default: the one that comes with the program]"
    )
    return line(score_option(strategy(game_options(command))))


@contextmanager
def usage() -> Iterator[None]:
    """Turn what is wrong with a hand or a line into click.UsageError."""
    from solver.strategy import LineError

    try:
        yield
    except (NotationError, LineError) as error:
        raise click.UsageError(str(error)) from error


def ask(
    text: str, score: str | None, strategy: Path | None, variant: str | None, rules: Path | None
) -> tuple[Adviser, Header, tuple[str, ...]]:
    """An adviser, the header of its strategy file, and the line that leads to a decision.

    Raises Failure, click.UsageError.
    """
    loaded, header = stored_strategy(strategy, variant, rules, "--strategy FILE", score)

    from solver.advise import Adviser

    with usage():
        line = parse_line(loaded.tree.rules, text)
    if not _states(loaded.tree.rules, line)[-1].legal_actions():
        raise click.UsageError(f"the line {format_line(line)!r} ends the hand: nobody has a decision after it")
    return Adviser(loaded, usable_threads()), header, line


def document(adviser: Adviser, header: Header, answer: Answer | Advice) -> dict[str, Any]:
    """The keys that every JSON document about a decision begins with."""
    return {
        "variant": adviser.rules.name,
        "score": header.score,
        "unit": answer.unit,
        "iterations": header.iterations,
        "line": format_line(answer.line),
        "player": PLAYERS[answer.player],
        "stake": answer.stake,
    }


def number(value: float) -> float | None:
    """A number for JSON, which has no nan."""
    return None if value != value else float(value)


def story(rules: Rules, line: tuple[str, ...]) -> str:
    """A line in words: who did what."""
    states = _states(rules, line)
    seats = (PLAYERS[state.to_play] for state in states[:-1])
    told = [f"the {seat} {DOES.get(action, f'plays {action}')}" for seat, action in zip(seats, line, strict=True)]
    return ", ".join(told) or "the start of the hand"


def stakes(rules: Rules, line: tuple[str, ...], stake: int) -> str:
    """The stake in words, with a raise that waits for an answer."""
    waiting = line[-1:] == (RAISE,)
    return f"{stake}, to be raised to {rules.ladder[rules.ladder.index(stake) + 1]}" if waiting else str(stake)


def case_in_words(case: str) -> str:
    """What one of `solver.advise.CASES` says about an answer."""
    return {
        "on the path": "on the path: both may well be here; the strategy as it is stored",
        "solved here": "solved here: the stored strategy is rough here, so the rest of the hand was solved anew",
        "I left": "I left: by the strategy you would not be here with this hand; from here on, what is best",
        "the opponent left": "the opponent left: by the strategy he would not be here; he may hold anything",
        "both left": "both left: by the strategy neither of you would be here; he may hold anything",
    }[case]


def amount(unit: str, value: float, sign: str = "") -> str:
    """A number of points, or a probability in percent."""
    from solver.cfr import PROBABILITY

    return f"{100 * value:.2f} %" if unit == PROBABILITY else f"{value:{sign}.3f}"


def accuracy_in_words(unit: str, accuracy: float) -> str:
    """How good an answer is."""
    return f"{accuracy:.2g} {unit}: all that both could gain from here on by best responses"


def shares(probability: float) -> str:
    """A probability for people, in hundredths of a percent."""
    return f"{100 * probability:.2f} %"


def opponents(rules: Rules, answer: Answer, mine: Sequence[int], probabilities: Sequence[float]) -> Range:
    """The opponent's holdings that the cards played and `mine` allow; probabilities: shape (V,)."""
    seen = [*mine, *answer.played[0], *answer.played[1]]
    free = [rules.copies - seen.count(rank) for rank in range(rules.n_ranks)]
    possible = [
        (format_hand(rules, holding), float(share))
        for holding, share in zip(answer.opponent_holdings.tolist(), probabilities, strict=True)
        if share > 0 or all(holding.count(rank) <= free[rank] for rank in holding)
    ]
    return sorted(possible, key=lambda pair: -pair[1])


def range_document(found: Range) -> list[dict[str, Any]]:
    """A range for JSON: all of it."""
    return [{"hand": hand, "probability": probability} for hand, probability in found]


def range_rows(found: Range) -> list[list[str]]:
    """A range for people: hands and probabilities, the rare ones in a row of their own."""
    rows = [[hand or NOTHING, shares(share)] for hand, share in found if share >= RARE]
    rare = [share for _, share in found if share < RARE]
    return [*rows, [f"others ({len(rare)})", shares(sum(rare))]] if rare else rows


def _states(rules: Rules, line: tuple[str, ...]) -> list[State]:
    """What the public sees before each action of a legal line, and after it."""
    states = [State.public(rules)]
    for action in line:
        states.append(states[-1].apply(action))
    return states
