"""Numbers as people read them."""

from __future__ import annotations


def percent(share: float) -> str:
    """A probability for people, in whole percent: only what never happens is 0, only what always happens 100."""
    if 0 < share < 0.005:
        return "under 1 %"
    return f"{min(round(100 * share), 99) if share < 1 else 100} %"
