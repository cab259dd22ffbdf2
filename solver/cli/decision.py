"""What `advise`, `table` and `range` share: the options that name a decision, and how they speak of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from games.notation import NotationError, format_hand, format_line, parse_hand, parse_score
from games.rules import (
    ACCEPT,
    AGREE,
    CUT,
    DECLINE,
    FOLD,
    KEEP,
    ONE,
    PASS,
    PLAY,
    PROPOSE,
    RAISE,
    REFUSE,
    REMAINDER,
    TAP,
    THREE,
    Rules,
)
from games.state import State
from solver.cli.common import game_options, left_out_in_words, score_option, strategy_to_ask
from solver.essential import left_out
from solver.paths import usable_threads

if TYPE_CHECKING:
    from solver.advise import Advice, Adviser, Answer
    from solver.storage import Header

Range = list[tuple[str, float]]  # cards held and how likely, the likeliest first

PLAYERS = ("leader", "dealer")
NEVER = 0.005  # shown as never done
RARE = 0.0005  # in a range: summed up as "others"
NOTHING = "(no card)"  # instead of no text
DOES = {
    **{RAISE: "raises", ACCEPT: "accepts", REFUSE: "refuses", REMAINDER: "calls the remainder", FOLD: "folds"},
    **{PASS: "passes", PROPOSE: "proposes new cards", KEEP: "keeps the cards", AGREE: "agrees"},
    **{CUT: "cuts", TAP: "taps", THREE: "deals the whole hand", ONE: "deals one card each"},
    **{DECLINE: "declines", PLAY: "plays for the top stake"},
}


class Question(NamedTuple):
    """What is asked: of whom, from which file, the line, and ranks of what the player to act has set aside."""

    adviser: Adviser
    header: Header
    line: tuple[str, ...]
    discards: tuple[int, ...]


def decision_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--line, --discards, --score, --strategy, --variant and --rules, which go to `ask`."""
    words = (
        'Public history of the hand, such as "raise accept 8" or "r y 8"; cut or keep need not be said, "start" is '
        "before them.  [default: the hand's start]"
    )
    line = click.option("--line", "text", metavar="LINE", default="", help=words)
    gone = 'What the player to act set aside in an agreed redeal, such as "8 8 7".'
    discards = click.option("--discards", metavar="HAND", default="", help=gone)
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    strategy = click.option(
        "--strategy", type=file, metavar="FILE", help="Strategy file.  [default: the program's, or solved now]"
    )
    return line(discards(score_option(strategy(game_options(command)))))


@contextmanager
def usage() -> Iterator[None]:
    """Turn what is wrong with a hand or a line into click.UsageError."""
    from solver.strategy import LineError

    try:
        yield
    except (NotationError, LineError) as error:
        raise click.UsageError(str(error)) from error


def ask(
    text: str, discards: str, score: str | None, strategy: Path | None, variant: str | None, rules: Path | None
) -> Question:
    """An adviser, the header of its strategy file, and the decision that is meant.

    Raises Failure, click.UsageError.
    """
    loaded, header, game = strategy_to_ask(strategy, variant, rules, score)

    from solver.advise import Adviser
    from solver.lines import read_line

    with usage():
        at = None if header.score is None else parse_score(game, header.score)
        line = read_line(game, text, at)
        gone = parse_hand(game, discards) if discards else ()
        if AGREE in line and not gone:
            raise click.UsageError("after a redeal the cards that you set aside count, give them as --discards")
        if gone and AGREE not in line:
            raise click.UsageError(f"--discards {discards!r}, but nobody has set cards aside in this line")
    if not State.public(game, at).follow(line).legal_actions():
        raise click.UsageError(f"the line {format_line(line)!r} ends the hand: nobody has a decision after it")
    return Question(Adviser(loaded, usable_threads(), game, at), header, line, gone)


def document(asked: Question, answer: Answer | Advice) -> dict[str, Any]:
    """The keys that every JSON document about a decision begins with."""
    adviser, header = asked.adviser, asked.header
    return {
        "variant": adviser.rules.name,
        "score": header.score,
        "unit": answer.unit,
        "iterations": header.iterations,
        "left_out": left_out(adviser.rules, header.score is not None),
        "line": format_line(answer.line),
        "discards": format_hand(adviser.rules, asked.discards) or None,
        "player": PLAYERS[answer.player],
        "stake": answer.stake,
    }


def number(value: float) -> float | None:
    """A number for JSON, which has no nan."""
    return None if value != value else float(value)


def story(rules: Rules, line: tuple[str, ...], score: tuple[int, int] | None = None) -> str:
    """A line in words: who did what."""
    seats = (PLAYERS[state.to_play] for state in _states(rules, line, score)[:-1])
    told = [f"the {seat} {DOES.get(action, f'plays {action}')}" for seat, action in zip(seats, line, strict=True)]
    return ", ".join(told) or "the start of the hand"


def stakes(rules: Rules, line: tuple[str, ...], stake: int, score: tuple[int, int] | None = None) -> str:
    """The stake in words, with a raise that waits for an answer."""
    state = _states(rules, line, score)[-1]
    now = "the match" if state.is_for_match else str(stake)
    if state.offer is None:
        return now
    return f"{now}, to be raised to {'the match' if line[-1] == REMAINDER else state.offer}"


def missing(asked: Question) -> list[tuple[str, str]]:
    """What the solved game leaves out, as a fact; nothing if that is nothing."""
    found = left_out_in_words(asked.adviser.rules, asked.header.score is not None)
    return [("left out", found)] if found else []


def case_in_words(case: str) -> str:
    """What one of `solver.advise.CASES` says about an answer."""
    return {
        "on the path": "on the path: both may well be here; the strategy as it is stored",
        "solved here": "solved here: the stored strategy is rough here, so the rest of the hand was solved anew",
        "I left": "I left: by the strategy you would not be here with this hand; from here on, what is best",
        "the opponent left": "the opponent left: by the strategy he would not be here; he may hold anything",
        "as before the card": "as before the card: as the same raise before it is answered; raising late gains nothing",
        "after a redeal": "after a redeal: an approximation; of what was set aside only your own cards are counted",
        "before the cards": "before the cards: nobody has seen any",
        "both left": "both left: by the strategy neither of you would be here; he may hold anything",
    }[case]


def amount(unit: str, value: float | None, sign: str = "") -> str:
    """A number of points, or a probability in percent; nothing for what is not known, None or nan."""
    from solver.cfr import PROBABILITY

    if value is None or value != value:
        return ""
    return f"{100 * value:.2f} %" if unit == PROBABILITY else f"{value:{sign}.3f}"


def accuracy_in_words(unit: str, accuracy: float) -> str:
    """How good an answer is."""
    return f"{accuracy:.2g} {unit}: all that both could gain from here on by best responses"


def shares(probability: float) -> str:
    """A probability for people, in hundredths of a percent."""
    return f"{100 * probability:.2f} %"


def opponents(rules: Rules, answer: Answer, mine: Sequence[int], probabilities: Sequence[float]) -> Range:
    """The opponent's holdings that the cards played and `mine`, held or set aside, allow; probabilities: shape (V,)."""
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


def _states(rules: Rules, line: tuple[str, ...], score: tuple[int, int] | None) -> list[State]:
    """What the public sees before each action of a legal line, and after it."""
    states = [State.public(rules, score)]
    for action in line:
        states.append(states[-1].follow((action,)))
    return states
