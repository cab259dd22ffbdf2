"""The command line: `truc`.

stdout is data, everything else goes to stderr.  Exit codes: 0 fine, 1 failure, 2 usage, 3 accuracy not reached, 4 bad
strategy file, 130 interrupted.  Whatever goes wrong is one sentence.

Nothing here or at the top of a command's module may import numpy, numba or rich: help has to come at once.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import click

from solver import __version__
from solver.cli.errors import DEBUG, FAILURE, INTERRUPTED, USAGE, Failure, one_sentence

COMMANDS = {
    "variants": "The rule sets, what is exact and what is left out",
    "solve": "Solve a game and write its strategy",
    "advise": "What to do with a hand, what it is worth, and why",
    "table": "The same for all hands at one decision",
    "range": "What the opponent can hold",
    "match": "The whole match: solve it, its equity table, take points",
    "play": "Play a match against the bot",
    "review": "What was played well and what was not, in hands that were kept",
    "explore": "The same in the browser: see it, play it, learn it",
    "bot": "The bot for other programs: a line protocol on stdin and stdout",
    "evaluate": "Exact value and best responses of a strategy",
    "verify": "Check everything that a strategy file states",
    "compare": "Compare with OpenSpiel, an independent implementation",
}
"""Names, which are the names of the modules, and what `truc --help` says without importing them."""


class Group(click.Group):
    """Commands that are imported when they are needed, and errors in one sentence."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order a newcomer meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of the module of that name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"solver.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def main(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> int:
        """Run, and exit with the right code; without `standalone_mode` return it."""
        args = list(sys.argv[1:] if args is None else args) or ["--help"]
        code = _guarded(lambda: click.Group.main(self, args, prog_name, complete_var, standalone_mode=False, **extra))
        if standalone_mode:
            sys.exit(code)
        return code


def _guarded(run: Callable[[], Any]) -> int:
    """The exit code of a run, whose exceptions become a sentence on stderr."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller, who wants nothing
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  # as long as the process
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a rank may be called what the terminal's encoding does not have
            stream.reconfigure(errors="backslashreplace")
    try:
        code = run()
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.UsageError as error:
        hint = f" (see `{error.ctx.command_path} --help`)" if error.ctx else ""
        return _report(one_sentence(error.format_message(), hint), USAGE)
    except Failure as error:
        return _report(one_sentence(str(error)), error.code)
    except click.ClickException as error:
        return _report(one_sentence(error.format_message()), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return _report("Interrupted.", INTERRUPTED)
    except BrokenPipeError:  # whoever read the output has enough of it, `head` for example
        _silence(sys.stdout)
        return FAILURE
    except OSError as error:
        if error.filename is None:  # stdout is full, perhaps
            _silence(sys.stdout)
        where = f"{click.format_filename(error.filename)}: " if error.filename else ""
        return _unexpected(error, f"{where}{error.strerror or error}")
    except MemoryError as error:
        return _unexpected(error, "there is not enough memory for this")
    except Exception as error:
        return _unexpected(error, f"unexpected {type(error).__name__}: {error} ({DEBUG}=1 shows where)")


def _unexpected(error: BaseException, message: str) -> int:
    if os.environ.get(DEBUG):
        raise error
    return _report(one_sentence(message), FAILURE)


def _report(sentence: str, code: int) -> int:
    _say(f"Error: {sentence}" if code != INTERRUPTED else sentence)
    return code


def _say(text: str) -> None:
    """A line on stderr; that nobody can read it is no other error."""
    try:
        click.echo(text, err=True)
    except OSError:
        _silence(sys.stderr)


def _silence(stream: Any) -> None:
    """Have what is left of a stream go nowhere, or Python would complain about it when it ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "--version", prog_name="truc", message="%(prog)s %(version)s")
def main() -> None:
    """Solve the card game Le Truc, and prove how well it is solved.

    \b
    truc variants                      the rule sets that can be played
    truc solve --variant mini          solve a small one: a second
    truc solve --accuracy 1e-4         solve Le Truc: how to play every hand
    truc advise "8 8 7" --line "5"     what to do with a hand after the leader has played a 5
    truc verify le-truc.safetensors    check a strategy file in every way

    Every command takes --help.  Exit codes: 0 fine, 1 failure, 2 usage, 3 accuracy not reached, 4 bad strategy file,
    130 interrupted: by Ctrl-C, SIGTERM or SIGHUP; solve then says how to go on.
    """
