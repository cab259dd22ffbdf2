"""Interruptions before a run has its own way to end; imports nothing, for it is there before anything else."""

from __future__ import annotations

TYPE_CHECKING = False  # importing it from typing would take longer than all else here
if TYPE_CHECKING:
    from types import FrameType

interrupted: list[int] = []
"""Signals received so far.  The KeyboardInterrupt that each raises can get lost, in a callback of an import for
example: whoever begins something long looks here."""


def interrupt(number: int, frame: FrameType | None) -> None:
    """A signal handler."""
    interrupted.append(number)
    raise KeyboardInterrupt
