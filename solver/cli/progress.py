"""Progress of a run on stderr: a line that changes on a terminal, else a plain line for each evaluation."""

from __future__ import annotations

from types import TracebackType

import click
from rich.console import Console

from solver.solve import Progress


class Reporter:
    """A context in which `solve` reports to this object."""

    def __init__(self, title: str, accuracy: float | None) -> None:
        self._title = title
        self._target = "" if accuracy is None else f", target {accuracy:g}"
        console = Console(stderr=True, highlight=False)
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
            click.echo(text, err=True)
