"""Which solved match the scripts about matches are asked for."""

from __future__ import annotations

from pathlib import Path

import click

from games.rules import Rules, RulesError, preset
from solver.match_run import Store, open_store
from solver.scores import match_folder


def asked_match(variant: str, folder: Path | None) -> tuple[Rules, Path]:
    """The rule set of a name, and the folder of its match, by default where `truc match solve` keeps it.

    Raises click.UsageError, click.ClickException.
    """
    try:
        rules = preset(variant)
    except RulesError as error:
        raise click.UsageError(str(error)) from error
    chosen = match_folder(rules) if folder is None else folder
    if chosen is None:
        raise click.ClickException("there is no cache folder: give the folder of a match.")
    return rules, chosen


def complete_match(folder: Path, rules: Rules, results: Path | None) -> Store:
    """The match in a folder; by other rules than wanted only if the folder for its results is given.

    Raises click.ClickException, click.UsageError, StorageError, OSError.
    """
    store = open_store(folder)
    store.check()
    if not store.complete:
        have, all_ = len(store.entries), store.rules.target**2
        raise click.ClickException(f"{folder}: the match is not complete, {have} of {all_} scores are there.")
    if results is None and store.rules.hash != rules.hash:
        raise click.UsageError("another match needs --folder, lest the published results be overwritten.")
    return store
