"""`truc explore`: the explorer, a page in the browser."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import click

from games.rules import Rules, preset, preset_names
from solver.cli.common import chosen_language, game_options, json_option, lang_option, rules_of
from solver.cli.errors import Failure
from solver.paths import usable_threads

MISSING = "the explorer needs NiceGUI, which `pip install 'le-truc[web]'` installs"


@click.command(name="explore")
@click.option("--port", type=click.IntRange(0, 65535), metavar="N", help="Port of 127.0.0.1; 0: any.  [default: 8712]")
@click.option("--no-open", is_flag=True, help="Do not open it in the browser.")
@lang_option
@game_options
@json_option
def command(
    port: int | None, no_open: bool, lang: str | None, variant: str | None, rules: Path | None, as_json: bool
) -> None:
    """Open the explorer: a page to walk the solved game, play it, train, review hands, and solve.

    It is served to this computer only, and needs no network.  Ctrl-C ends it.  --json prints its address as one JSON
    document.
    """
    code = chosen_language(lang).code
    chosen = rules_of(variant, rules)
    known: dict[str, Rules] = {name: preset(name) for name in preset_names()}
    known[chosen.name] = chosen
    if find_spec("nicegui") is None:
        raise Failure(MISSING)
    from solver.web.server import PortError, run

    def announce(address: str) -> None:
        from solver.cli.output import print_json

        if as_json:
            print_json({"address": address})
        else:
            click.echo(address)
        sys.stdout.flush()

    try:
        run(known, chosen, code, usable_threads(), port, not no_open, announce)
    except PortError as error:
        raise Failure(str(error)) from error
