"""`truc play`: a match against the bot in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from games.history import format_history
from games.notation import format_hand, format_score
from games.rules import NOBODY, Rules
from solver.cli.common import (
    chosen_language,
    game_options,
    lang_option,
    parsed_score,
    positive,
    rules_of,
    stored_strategy,
)
from solver.cli.errors import BAD_FILE, Failure
from solver.i18n import Strings
from solver.paths import usable_threads

if TYPE_CHECKING:
    from solver.bot import Advisers
    from solver.game import Event, Game, View

MAX_INPUT = 1000  # characters of a line that is typed
LEVEL_NAMES = ("beginner", "casual", "club", "expert", "perfect")  # of solver.bot.LEVELS, which help need not import
level_option = click.option(
    "--level", default="club", show_default=True, metavar="NAME", help=f"Of the bot: {', '.join(LEVEL_NAMES)}."
)
strategy_option = click.option(
    "--strategy",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Strategy file for hands in points.  [default: the one that comes with the program]",
)


@click.command(name="play")
@click.option("--score", metavar="L-D", help="Score to begin at, the leader's (non-dealer's) points first.  [0-0]")
@click.option("--points", is_flag=True, help="Play hands in points, outside a match.")
@click.option("--lead/--deal", "leads", default=None, help="Whether you lead the first hand or deal it.  [by lot]")
@level_option
@click.option("--seed", type=click.IntRange(0, 2**63), metavar="N", help="The same seed deals the same cards.")
@click.option(
    "--tutor", type=float, callback=positive, metavar="X",
    help="Ask again before an action that costs more than X percent of the match (in points: X points).",
)  # fmt: skip
@click.option("--no-hints", is_flag=True, help="No hints.")
@click.option("--no-undo", is_flag=True, help="Nothing is taken back.")
@click.option("-o", "output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write the hands.")
@lang_option
@strategy_option
@game_options
def command(
    score: str | None, points: bool, leads: bool | None, level: str, seed: int | None, tutor: float | None,
    no_hints: bool, no_undo: bool, output: Path | None, lang: str | None, strategy: Path | None, variant: str | None,
    rules: Path | None,
) -> None:  # fmt: skip
    """Play a match against the bot.

    Type the action or the card; "hint" says what to do and why, "undo" takes your last action back, "quit" leaves.
    Both hands are shown when a hand is over.  With -o the hands are kept as they are played, for `truc review`.
    """
    say = chosen_language(lang)
    if output is not None and output.exists():
        raise click.UsageError(f"{output} exists already, and a match is never gone on with: give another file")
    game_rules, advisers, in_points = opponents(strategy, variant, rules, points)
    if score is not None and in_points:
        raise click.UsageError(
            f"--score {score} is of a match, but --points or the strategy file is for hands in points"
        )
    start = None if in_points else parsed_score(game_rules, score or "0-0")

    from solver.bot import LevelError
    from solver.game import Game

    try:
        with failures():
            game = Game(
                advisers, level, seed, start, leads, not no_undo, (say("player.you"), say("player.bot"))
            )  # fmt: skip
            Table(game, say, level, tutor, not no_hints, output).play()
    except LevelError as error:
        raise click.UsageError(f"--level: {error}") from error
    finally:
        advisers.close()


def opponents(
    strategy: Path | None, variant: str | None, rules: Path | None, points: bool
) -> tuple[Rules, Advisers, bool]:
    """The rules, where strategies come from, and whether hands are played in points.  Raises Failure, UsageError."""
    from solver.bot import Advisers

    if strategy is None:
        game = rules_of(variant, rules)
        advisers = Advisers(game, spare_threads())
        if not points and not advisers.has_match:
            raise click.UsageError(
                f"no match by the rules {game.name!r} is solved yet: `truc match solve` does it, --points plays without"
            )
        return game, advisers, points
    loaded, header = stored_strategy(strategy, variant, rules, "--strategy FILE")
    if header.score is not None:
        raise click.UsageError(f"{strategy} is for a hand at {header.score}, give one for hands in points")
    game = loaded.tree.rules if variant is None and rules is None else rules_of(variant, rules)
    return game, Advisers(game, spare_threads(), known={None: loaded}), True


def spare_threads() -> int:
    """Threads for answers: one core is left to what is solved in the background."""
    return max(1, usable_threads() - 1)


@contextmanager
def failures() -> Iterator[None]:
    """Turn what keeps a strategy from being had into one sentence."""
    from solver.nodes import TreeTooLargeError, UnsupportedRulesError
    from solver.scores import NoTableError
    from solver.storage import StorageError

    try:
        yield
    except (NoTableError, TreeTooLargeError, UnsupportedRulesError) as error:
        raise click.UsageError(str(error)) from error
    except StorageError as error:
        raise Failure(str(error), BAD_FILE) from error


class Table:
    """A game on stdin and stdout."""

    def __init__(
        self, game: Game, say: Strings, level: str, tutor: float | None, hints: bool, output: Path | None
    ) -> None:  # fmt: skip
        self.game, self.say, self.level, self.hints, self.output = game, say, level, hints, output
        in_match = game.match is not None
        self.threshold = None if tutor is None else tutor / 100 if in_match else tutor
        self.told, self.quick_told = 0, False

    def play(self) -> None:
        """Until the match is over, or whoever plays has enough."""
        game, say = self.game, self.say
        self._say(
            "play.start" if game.match else "play.start_points",
            **({"target": game.rules.target} if game.match else {}),
            variant=game.rules.name, name=game.names[1], level=say(f"level.{self.level}"), seed=game.seed,
        )  # fmt: skip
        if game.match is None and game.rules.needs_score:
            self._say("play.points_only")
        self._say("play.how")
        try:
            while True:
                self._hand()
                if game.match_is_over:
                    break
                game.next_hand()
        except EOFError:
            view = game.view()
            click.echo()
            if view.points is None:
                self._say("play.goodbye_points")
            else:
                self._say("play.goodbye", you=view.points[0], other=view.points[1])
        except KeyboardInterrupt:
            click.echo()
            self._saved()
            raise
        self._saved()

    def _saved(self) -> None:
        if self.output is not None and self.output.exists():
            self._say("play.saved", file=self.output)

    def _hand(self) -> None:
        game, names = self.game, self.game.names
        view, self.told, self.quick_told = game.view(), 0, False
        click.echo()
        if view.points is None:
            self._say("play.hand_points", number=view.number)
        else:
            self._say("play.hand", number=view.number, you=view.points[0], name=names[1], other=view.points[1])
            assert view.score is not None
            leader, dealer = view.score
            score = format_score(view.score)
            self._say("play.score", score=score, leader=leader, dealer=dealer, target=game.rules.target)
        self._say("play.lead" if view.leader == 0 else "play.deal", name=names[1])
        while not game.is_over:
            if game.reply() is None:
                self._turn()
            self._tell()
        self._over()

    def _turn(self) -> None:
        """One action of the person's, or something else that he types."""
        game, say = self.game, self.say
        view = game.view()
        self._cards(view)
        names = ", ".join(self._label(action) for action in view.legal)
        word = self._read(say("play.prompt", actions=names)).strip()
        command = self._command(word)
        if command == "quit":
            raise EOFError
        if command == "help":
            self._say("play.help")
        elif command == "hint":
            self._hint()
        elif command == "undo":
            self._undo()
        elif (action := self._meant(word, view)) is None:
            self._say("play.unknown", word=f'"{word[:40]}"', actions=names)
        elif self._sure(action):
            game.act(action)
            self._keep()

    def _command(self, word: str) -> str | None:
        lower = word.casefold()
        names = ("hint", "undo", "help", "quit") if self.hints else ("undo", "help", "quit")
        return next((name for name in names if lower == name or lower in self.say.words(name)), None)

    def _meant(self, word: str, view: View) -> str | None:
        """The legal action that is meant, by the notation or in the words of the language."""
        lower = word.casefold()
        for action in view.legal:
            known = self.say.words(action) if self.say.has(f"input.{action}") else ()
            if lower in (self._label(action).casefold(), *known):
                return action
        return self.game.read(word)

    def _sure(self, action: str) -> bool:
        """In tutor mode: whether an action that costs much is to be played anyway."""
        if self.threshold is None:
            return True
        decision = self.game.warn(action, self.threshold)
        if decision is None:
            return True
        say = self.say
        if action == "raise":
            what = say("action.this_raise")
        elif action in self.game.rules.ranks:
            what = say("action.this_card", card=action)
        else:
            what = say("action.this_action", action=say.action(action))
        cost = say.amount(decision.unit, decision.cost)
        answer = self._read(_capital(say("play.warn", action=what, cost=cost)))
        return answer.strip().casefold() in self.say.words("yes")

    def _hint(self) -> None:
        advice, say = self.game.hint(), self.say
        if explanation := advice.explained(say):
            self._say("play.hint", explanation=explanation)
        for choice in sorted(advice.choices, key=lambda each: -each.probability):
            share = say.number(100 * choice.probability, 1)
            if choice.ev is None or choice.loss is None:
                line = say("play.hint_row_unknown", action=self._label(choice.action), probability=share)
            else:
                line = say(
                    "play.hint_row", action=self._label(choice.action), probability=share,
                    ev=say.amount(advice.unit, choice.ev, "" if self.game.match else "+"),
                    loss=say.amount(advice.unit, choice.loss),
                )  # fmt: skip
            click.echo(f"  {line}")

    def _undo(self) -> None:
        if not self.game.practice:
            self._say("play.no_undo")
        elif self.game.undo():
            self.told = len(self.game.view().line)
            self._say("play.undone")
            self._keep()
        else:
            self._say("play.nothing_to_undo")

    def _cards(self, view: View) -> None:
        if view.held is None:
            self._say("play.no_cards")
            return
        self._say("play.cards", cards=format_hand(self.game.rules, view.held), stake=view.stake)
        if view.offer is not None:
            self._say("play.offer", stake=view.stake, offer=view.offer)

    def _tell(self) -> None:
        """What has happened since the last time."""
        view = self.game.view()
        for event in view.events[self.told :]:
            click.echo(self._event(event))
        self.told = len(view.events)
        if view.quick and not self.quick_told:
            assert view.exploitability is not None
            self.quick_told = True
            unit = self.game.advisers.get(self.game.score).adviser.strategy.payoffs.unit
            self._say("play.quick", accuracy=self.say.amount(unit, view.exploitability))
        self._keep()

    def _event(self, event: Event) -> str:
        say, names = self.say, self.game.names
        who = "you" if event.player == 0 else "other"
        word = "card" if event.action in self.game.rules.ranks else event.action
        values = {"name": names[1], "stake": event.stake, "card": event.action}
        text = _capital(say(f"event.{word}_{who}", **values))
        if event.trick is not None:
            trick = "tied" if event.trick == NOBODY else "you" if event.trick == 0 else "other"
            text += " " + _capital(say(f"event.trick_{trick}", name=names[1]))
        return text

    def _over(self) -> None:
        game, say, names = self.game, self.say, self.game.names
        outcome = game.view().outcome
        assert outcome is not None
        if outcome.winner == NOBODY:
            self._say("play.nobody")
        else:
            points = say.points(outcome.points)
            self._say("play.won" if outcome.winner == 0 else "play.lost", points=points, name=names[1])
        for player in (0, 1):
            cards = " / ".join(format_hand(game.rules, hand) for hand in outcome.hands[player])
            self._say("play.shown" if player else "play.shown_you", who=names[player], cards=cards)
        if outcome.match_winner is not None:
            assert game.match is not None
            you, other = game.match.points
            gained = outcome.points
            you, other = (you + gained, other) if outcome.winner == 0 else (you, other + gained)
            target = game.rules.target
            key = "play.match_won" if outcome.match_winner == 0 else "play.match_lost"
            self._say(key, you=min(you, target), other=min(other, target), name=names[1])

    def _keep(self) -> None:
        """Write the hands as far as they are played.  Raises OSError."""
        if self.output is not None:
            from solver.files import write_atomically

            write_atomically(self.output, format_history(self.game.history()).encode())

    def _label(self, action: str) -> str:
        return self.say.action(action)

    def _say(self, key: str, **values: object) -> None:
        click.echo(_capital(self.say(key, **values)))

    def _read(self, prompt: str) -> str:
        """A line that is typed.  Raises EOFError at the end of the input."""
        click.echo(prompt, nl=False)
        sys.stdout.flush()
        line = sys.stdin.readline(MAX_INPUT)
        if not line:
            raise EOFError
        while not line.endswith("\n") and len(line) >= MAX_INPUT and (more := sys.stdin.readline(MAX_INPUT)):
            line = line[:MAX_INPUT] if not more.endswith("\n") else line[:MAX_INPUT] + "\n"
        if not sys.stdin.isatty():
            click.echo()
        return line


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
