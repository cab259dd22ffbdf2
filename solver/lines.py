"""Lines of a full rule set: as people type them, and as lines of the essential game (see `solver.full_game`).

A line is translated by dropping the choices that lead to the same play, and by moving a raise after a card to before
it.  An agreed redeal begins the hand anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from games.notation import MAX_TEXT, parse_line
from games.rules import AGREE, CUT, DECLINE, KEEP, ONE, PASS, PROPOSE, TAP, THREE, Rules
from games.state import CHOICES, IllegalActionError, State
from solver.strategy import LineError

Players = tuple[int, ...]
START = "start"  # in place of a line: the very first choice, which otherwise need not be said
DROPPED = (CUT, TAP, THREE, ONE, PROPOSE, KEEP, PASS)  # they lead to the same play
IMPLIED = {"cut": CUT, "proposal": KEEP}  # by phase: what need not be said at the beginning of a line


@dataclass(frozen=True, slots=True)
class Place:
    """A decision of the full game: what the public sees, and the line of the essential game that answers it.

    card: the label of a card that has been played, but not in `line`: the decision is about a raise after it; astray:
    who has raised after a card before that, which the strategy never does.
    """

    state: State
    line: tuple[str, ...]
    card: str | None = None
    astray: Players = ()

    @property
    def redealt(self) -> bool:
        """Whether both play their second hand."""
        return AGREE in self.state.line


def read_line(rules: Rules, text: str, score: tuple[int, int] | None = None) -> tuple[str, ...]:
    """A line as people type it: a choice that begins the hand need not be said if nothing comes of it, nor a pass
    before the next card; "start" is before that choice.  Raises `NotationError`."""
    start = State.public(rules, score)
    if start.phase in IMPLIED:
        if text.strip().casefold() == START and START not in map(str.casefold, rules.ranks):
            return ()
        first = text.replace(",", " ").casefold().split()[:1]
        if not first or first[0] not in CHOICES[start.phase]:
            word = IMPLIED[start.phase]
            return (word, *_with_passes(rules, text, start.follow((word,))))
    return _with_passes(rules, text, State.begin(rules, score))


def _with_passes(rules: Rules, text: str, start: State) -> tuple[str, ...]:
    if "after" not in rules.raise_when or len(text) > MAX_TEXT:
        return parse_line(rules, text, start)
    ranks = {label.casefold(): label for label in rules.ranks}
    state, said = start.follow(()), list[str]()
    for word in text.replace(",", " ").split():
        if state.phase == "after" and word.casefold() in ranks:
            said.append(PASS)
        said.append(word)
        state = start.follow(parse_line(rules, " ".join(said), start))
    return parse_line(rules, " ".join(said), start)


def translate(rules: Rules, line: Sequence[str], score: tuple[int, int] | None = None) -> Place:
    """Where a line of the full game lies.  Raises `LineError`, also for a line that ends the hand."""
    state, found, card, astray = State.public(rules, score), list[str](), None, set[int]()
    for action in line:
        try:
            after = state.follow((action,))
        except IllegalActionError as error:
            raise LineError(str(error).rstrip(".")) from error
        if action == AGREE:
            found.clear()
        elif state.phase == "after" and action != PASS:
            card = found.pop()
            found.append(action)
        elif state.phase == "answer" and card is not None:
            found += [action, card]
            card = None
            astray.add(1 - state.to_play)
        elif action not in DROPPED and not (action == DECLINE and state.phase == "agreement"):
            found.append(action)
        state = after
    if state.is_over:
        raise LineError(f"the hand is over after {' '.join(line)!r}: nobody has a decision")
    if state.phase == "after":
        card = found.pop()
    return Place(state, tuple(found), card, tuple(sorted(astray)))
