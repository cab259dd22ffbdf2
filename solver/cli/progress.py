"""Progress of a run on stderr: a line that changes on a terminal, else a plain line now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType

import click
from rich.console import Console

from solver.solve import Progress


class Reporter:
    """A context in which `solve` reports to this object."""

    def __init__(self, title: str, accuracy: float | None) -> None:
        self._title = title
        self._target = "" if accuracy is None else f", target {accuracy:g}"
        console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._status = console.status("") if console.is_terminal else None

    def __enter__(self) -> Reporter:
        if self._status is not None:
            self._status.update(f"{self._title}: starting (compiling, the first time on a machine)")
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            with suppress(OSError):  # the terminal may be gone
                self._status.stop()

    def __call__(self, progress: Progress) -> None:
        """Show how far the run is."""
        latest = progress.latest
        text = f"{self._title}: {progress.iterations:,} iterations, {progress.seconds:.1f} s"
        if latest is not None:
            text += f", exploitability {latest.exploitability:.2e} at {latest.iterations:,}{self._target}"
        if self._status is not None:
            self._status.update(text)
        elif progress.new:
            with suppress(OSError):  # nobody reads it any more: no reason to lose the run
                click.echo(text, err=True)


@contextmanager
def telling(every: float = 5.0) -> Iterator[Callable[[str], None]]:
    """A function that shows how far something is; where lines stay, at most one in `every` seconds."""
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    if console.is_terminal:
        with console.status("") as status:
            yield status.update
        return
    shown = -every

    def tell(text: str) -> None:
        nonlocal shown
        if time.monotonic() - shown >= every:
            shown = time.monotonic()
            with suppress(OSError):
                click.echo(text, err=True)

    yield tell
