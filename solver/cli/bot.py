"""`truc bot`: the bot for other programs, over a line protocol on stdin and stdout, in the manner of UCI.

Every line that is read is answered by exactly one line, so that a program may write and then read; blank lines are left
out.  Whatever cannot be done is answered by "error" and a sentence, and changes nothing.

    isready                  readyok
    rules NAME               ok        a rule set that comes with the program; begins anew: no score, no hand, no line
    score L-D | points       ok        of the match, the leader's (non-dealer's) points first; or a hand in points
    hand CARDS               ok        the own cards, as dealt or as still held
    line [ACTIONS]           ok        the public line so far, in the notation of `truc advise`
    discards [CARDS]         ok        what was set aside in a redeal
    level NAME               ok        beginner, casual, club, expert, perfect
    seed N                   ok        the same seed and the same questions give the same answers
    go                       play ACTION
    advise                   one line of JSON, with the keys of `truc advise --json`
    quit                     bye       and the program ends, as it does at the end of its input

"go" and "advise" are about the player to act after the line.  As in `truc advise`, what opens a line without coming to
anything (cut, keep) need not be said; "line start" is before that.  At a score that is not solved yet a quick solution
answers after at most two seconds, while the score is solved in the background; "quick" in the JSON says so.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from games.notation import NotationError, format_line, format_score, parse_hand, parse_score
from games.rules import Rules, preset
from solver.cli.common import game_options
from solver.cli.errors import one_sentence
from solver.cli.play import level_option, opponents, spare_threads, strategy_option

if TYPE_CHECKING:
    from solver.bot import Advisers, Bot

MAX_LINE = 4000  # bytes
COMMANDS = ("isready", "rules", "score", "hand", "line", "discards", "level", "seed", "go", "advise", "quit")


@click.command(name="bot")
@level_option
@click.option("--seed", type=click.IntRange(0, 2**63), metavar="N", help="The same seed plays the same.")
@strategy_option
@game_options
def command(level: str, seed: int | None, strategy: Path | None, variant: str | None, rules: Path | None) -> None:
    """Answer another program: one line on stdout for each on stdin.

    \b
    isready             -> readyok
    rules NAME          -> ok          a rule set; begins anew
    score L-D | points  -> ok          leader's (non-dealer's) points first
    hand 8 8 7          -> ok          the own cards
    line raise accept 5 -> ok          the public line
    discards A 2 3      -> ok          set aside in a redeal
    level NAME, seed N  -> ok
    go                  -> play ACTION
    advise              -> one line of JSON
    quit                -> bye
    anything else       -> error ...

    solver/cli/bot.py has the details.
    """
    from solver.bot import Bot, LevelError

    game_rules, advisers, _ = opponents(strategy, variant, rules, points=True)
    try:
        bot = Bot(advisers, level, seed)
    except LevelError as error:
        raise click.UsageError(f"--level: {error}") from error
    session = Session(game_rules, advisers, bot)
    try:
        serve(session, sys.stdin.buffer)
    finally:
        session.advisers.close()


def serve(session: Session, stream: BinaryIO) -> None:
    """Answer until "quit" or the end of the input."""
    while raw := stream.readline(MAX_LINE):
        whole = raw.endswith(b"\n")
        while not whole and len(raw) == MAX_LINE and (rest := stream.readline(MAX_LINE)):
            whole = rest.endswith(b"\n")
            if whole:
                raw = b"\0"  # too long, and now behind us
        text = raw.decode("utf-8", "replace").strip()
        if not text:
            continue
        answer = session.answer(text)
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()
        if answer == "bye":
            return


class Session:
    """What a program has said so far."""

    def __init__(self, rules: Rules, advisers: Advisers, bot: Bot) -> None:
        self.advisers, self.bot = advisers, bot
        self._anew(rules)

    def _anew(self, rules: Rules) -> None:
        self.rules = rules
        self.score: tuple[int, int] | None = None
        self.hand: str | None = None
        self.line: tuple[str, ...] = ()
        self.discards = ""

    def answer(self, text: str) -> str:
        """The one line that answers a line."""
        name, _, rest = text.partition(" ")
        if name not in COMMANDS:
            return _error(f"{name[:40]!r} is no command, known are {', '.join(COMMANDS)}")
        try:
            return str(getattr(self, f"_{name}")(rest.strip()))
        except Exception as error:  # whatever it is, the other program is to get a line
            return _error(str(error) or type(error).__name__)

    def _isready(self, _: str) -> str:
        return "readyok"

    def _quit(self, _: str) -> str:
        return "bye"

    def _rules(self, name: str) -> str:
        from solver.bot import Advisers

        rules = preset(name)
        if rules.hash != self.rules.hash:
            self.advisers.close()
            self.advisers = self.bot.advisers = Advisers(rules, spare_threads())
        self._anew(rules)
        return "ok"

    def _score(self, text: str) -> str:
        score = None if text.casefold() == "points" else parse_score(self.rules, text)
        if score is not None and not self.advisers.has_match:
            raise NotationError(f"no match by the rules {self.rules.name!r} is solved yet, `truc match solve` does it.")
        self.score, self.hand, self.line, self.discards = score, None, (), ""
        if score is not None:
            self.advisers.prepare(score)
        return "ok"

    def _hand(self, text: str) -> str:
        size = len(text.replace(",", " ").split())
        parse_hand(self.rules, text, min(max(size, 1), self.rules.hand_size))
        self.hand = text
        return "ok"

    def _line(self, text: str) -> str:
        from solver.lines import read_line

        self.line = read_line(self.rules, text, self.score)
        return "ok"

    def _discards(self, text: str) -> str:
        if text:
            parse_hand(self.rules, text)
        self.discards = text
        return "ok"

    def _level(self, name: str) -> str:
        from solver.bot import level_of

        self.bot.level = level_of(name)
        return "ok"

    def _seed(self, text: str) -> str:
        if not text.isascii() or not text.isdigit() or len(text) > 19:
            raise NotationError(f"the seed {text[:40]!r} must be a whole number from 0 on.")
        self.bot.reseed(int(text))
        return "ok"

    def _go(self, _: str) -> str:
        hand, discards = self._cards()
        return f"play {self.bot.choose(hand, self.line, self.score, discards=discards).action}"

    def _advise(self, _: str) -> str:
        from solver.bot import opinion
        from solver.cli.advise import details
        from solver.cli.decision import PLAYERS

        hand, discards = self._cards()
        source = self.advisers.get(self.score)
        advice = opinion(source.adviser, hand, self.line, discards)
        document: dict[str, Any] = {
            "variant": self.rules.name,
            "score": None if self.score is None else format_score(self.score),
            "unit": advice.unit,
            "line": format_line(advice.line),
            "player": PLAYERS[advice.player],
            "stake": advice.stake,
            **details(advice),
            "quick": source.quick,
            "exploitability": source.exploitability,
        }
        return json.dumps(document, allow_nan=False)

    def _cards(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        from games.state import State

        if State.public(self.rules, self.score).follow(self.line).phase in ("cut", "number"):
            return (), ()
        if self.hand is None:
            raise NotationError("there is no hand yet, say for example: hand A 2 3.")
        size = len(self.hand.replace(",", " ").split())
        hand = parse_hand(self.rules, self.hand, size)
        return hand, parse_hand(self.rules, self.discards) if self.discards else ()


def _error(message: str) -> str:
    return f"error {one_sentence(message)}"
