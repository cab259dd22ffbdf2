"""What the trainer remembers of its drills: a small JSON file in the user's data folder, and nowhere else."""

from __future__ import annotations

import json
import threading
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from solver.files import write_atomically
from solver.paths import APPLICATION

RECENT = 50
MOST = 1_000_000_000


@dataclass(slots=True)
class Tally:
    """Drills of one kind in one unit.  drills: how many; good: without a mark; cost: all they cost; recent: what the
    latest ones cost, the newest last."""

    drills: int = 0
    good: int = 0
    cost: float = 0.0
    recent: list[float] = field(default_factory=list)

    def add(self, cost: float, good: bool) -> None:
        """One more."""
        self.drills += 1
        self.good += good
        self.cost += cost
        self.recent = [*self.recent, cost][-RECENT:]

    @property
    def mean(self) -> float:
        """Cost for each drill."""
        return self.cost / self.drills if self.drills else 0.0

    @property
    def lately(self) -> float:
        """The same of the latest ones."""
        return sum(self.recent) / len(self.recent) if self.recent else 0.0


class Store:
    """Tallies by variant, kind and unit, kept in a file (None: only as long as the program runs)."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self._lock = threading.Lock()
        self._tallies: dict[str, Tally] = {}
        if file is not None:
            self._tallies = _read(file)

    @classmethod
    def usual(cls) -> Store:
        """That of the user."""
        import platformdirs

        try:
            folder = Path(platformdirs.user_data_dir(APPLICATION, appauthor=False))
        except (OSError, RuntimeError):  # no home folder
            return cls(None)
        return cls(folder / "trainer.json" if folder.is_absolute() else None)

    def tally(self, variant: str, kind: str, unit: str) -> Tally:
        """So far."""
        return self._tallies.get(f"{variant}/{kind}/{unit}", Tally())

    def add(self, variant: str, kind: str, unit: str, cost: float, good: bool) -> None:
        """Note a drill.  Raises OSError if the file cannot be written; it counts nevertheless."""
        with self._lock:
            self._tallies.setdefault(f"{variant}/{kind}/{unit}", Tally()).add(cost, good)
            self._write()

    def clear(self) -> None:
        """Forget everything.  Raises OSError."""
        with self._lock:
            self._tallies.clear()
            self._write()

    def _write(self) -> None:
        if self.file is not None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            document = {"version": 1, "tallies": {key: asdict(tally) for key, tally in sorted(self._tallies.items())}}
            write_atomically(self.file, (json.dumps(document, indent=1) + "\n").encode())


def _read(file: Path) -> dict[str, Tally]:
    """What a file has; nothing if it is not there or makes no sense, so that training goes on."""
    try:
        tallies: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))["tallies"]
        return {str(key): _tally(value) for key, value in tallies.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _tally(stated: dict[str, Any]) -> Tally:
    """Raises ValueError, KeyError, TypeError."""
    drills, good = stated["drills"], stated["good"]
    recent = [float(cost) for cost in stated["recent"]][-RECENT:]
    cost = float(stated["cost"])
    whole = type(drills) is int and type(good) is int and 0 <= good <= drills <= MOST
    if not whole or not all(0 <= number <= MOST for number in (cost, *recent)):
        raise ValueError("no tally")
    return Tally(drills, good, cost, recent)
