"""How results look: JSON, tables, numbers.  Imports rich, so commands import it when they have something to print."""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from solver.best_response import Evaluation

PLAIN_WIDTH = 100  # of a pipe


def page_width() -> int:
    """Columns of stdout."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else PLAIN_WIDTH


def print_json(document: dict[str, Any]) -> None:
    """One JSON document on stdout."""
    click.echo(json.dumps(document, indent=2, allow_nan=False))


def print_table(columns: Sequence[str], sections: Sequence[Sequence[Sequence[str]]], right: Sequence[int] = ()) -> None:
    """A table on stdout, with a gap between sections; columns whose index is in `right` are numbers.

    On a terminal with colours and rules, in a pipe plain text without trailing spaces.
    """
    terminal = sys.stdout.isatty()
    table = Table(box=SIMPLE_HEAD if terminal else None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i in right else "left", overflow="fold")
    for n, section in enumerate(sections):
        if n and not terminal:
            table.add_row()
        for row in section:
            table.add_row(*row)
        if terminal:
            table.add_section()
    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False, width=page_width())
    if terminal:
        console.print(table)
        return
    with console.capture() as capture:
        console.print(table)
    for line in capture.get().splitlines():
        click.echo(line.rstrip())


def print_facts(facts: Sequence[tuple[str, str]]) -> None:
    """Names and what they are, one a line."""
    width = max(len(name) for name, _ in facts)
    for name, text in facts:
        click.echo(f"  {name:<{width}}  {text}")


def outward(interval: tuple[float, float]) -> str:
    """An interval rounded to what its width warrants, so that it still contains what it contained."""
    lower, upper = interval
    digits = min(max(2 - math.floor(math.log10(max(upper - lower, 1e-12))), 1), 12) - 1
    scale = 10**digits
    return f"{math.floor(lower * scale) / scale:+.{digits}f} to {math.ceil(upper * scale) / scale:+.{digits}f}"


def worth(result: Evaluation) -> list[tuple[str, str]]:
    """The facts about a strategy's worth, in words that say whose points they are."""
    leader, dealer = result.best_response
    return [
        ("value of the game", f"{outward(result.interval)} {result.unit} to the leader (the non-dealer), proved"),
        ("this strategy", f"{result.value:+.6f} against itself"),
        ("best response", f"the leader could get {leader:+.6f}, the dealer {dealer:+.6f}"),
        ("exploitability", f"{result.exploitability:.3g} {result.unit} (half of what both could gain)"),
    ]
