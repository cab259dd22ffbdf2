"""Solve small decks with OpenSpiel's C++ CFR+, with LiteEFG and with this solver, and compare speed and memory.

    python scripts/peers.py [--quick] [--folder results/openspiel]

Needs the extra `peers`; whatever is not installed is missing from the table.  Every solver runs on one thread in a
process of its own, so that its memory is its own.  They take turns after a few iterations, and the rounds, each with
new processes, begin with another one.  The first round finds after how many iterations an average strategy is good
enough: all of them are read into the tree and get our exact best responses.  That does not depend on the time, so later
rounds only repeat the iterations.  The first iteration, evaluations and the making of the game are not in the times.
Writes `peers.json`, and `peers.md` for people.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import click
from bench import processor

from games.rules import Rules
from solver.cfr import Payoffs
from solver.files import write_atomically
from solver.gambit import write_efg
from solver.storage import packages
from solver.tree import Tree

ROOT = Path(__file__).resolve().parent.parent
ACCURACIES = (1e-3, 1e-4)
ROUNDS, LIMIT = 3, 200.0  # by default
SOLVERS = {
    "openspiel": "OpenSpiel C++, CFR+",
    "liteefg": "LiteEFG, CFR+",
    "ours-cfr+": "ours, CFR+, float64",
    "ours": "ours, default (fpdcfr+, float32)",
}
PACKAGES = ("open_spiel", "liteefg")
DECKS: dict[str, tuple[str, tuple[int, ...]]] = {  # ranks and ladder; copies of each rank are in the name
    "c3x2_L12": ("A 2 3", (1, 2)),
    "c3x4_L124": ("A 2 3", (1, 2, 4)),
    "c4x4_L12": ("A 2 3 4", (1, 2)),
    "c4x4_L124": ("A 2 3 4", (1, 2, 4)),
}


def deck(name: str) -> Rules:
    """A small deck, three cards each in circular order."""
    ranks, ladder = DECKS[name]
    return Rules(name, tuple(ranks.split()), "circular", int(name[3]), 3, ladder, "nobody")


class Worker:
    """A process at work on one deck, and what it has done."""

    def __init__(self, name: str, rules: Path, efg: Path) -> None:
        command = [sys.executable, str(ROOT / "scripts" / "peers_worker.py"), name, str(rules), str(efg)]
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  # as long as the process
        self.process = subprocess.Popen(
            command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors
        )
        self.name, self.iterations, self.seconds = name, 1, 0.0
        self.start = self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        if line := self.process.stdout.readline():
            answer: dict[str, Any] = json.loads(line)
            return answer
        self.errors.seek(0)
        raise click.ClickException(f"{self.name} stopped: {self.errors.read()[-2000:]}")

    def ask(self, iterations: int) -> dict[str, Any]:
        """Send a number, see `work`."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{iterations}\n")
        self.process.stdin.flush()
        return self._answer()

    def run_to(self, iterations: int) -> None:
        """Iterate until there have been so many."""
        self.seconds += self.ask(iterations - self.iterations)["seconds"]
        self.iterations = iterations

    def close(self) -> None:
        """End the process."""
        self.process.communicate()
        self.errors.close()


@dataclass
class Record:
    """What was found for one solver and deck; a list has an item for each round."""

    missing: str | None = None
    iterations: dict[str, int] = field(default_factory=dict)  # needed for an accuracy
    last: tuple[int, float] = (1, float("inf"))  # iterations and exploitability at the end
    seconds_to: dict[str, list[float]] = field(default_factory=dict)
    rates: list[float] = field(default_factory=list)  # iterations per second
    starts: list[dict[str, float]] = field(default_factory=list)


def next_stop(iterations: int) -> int:
    """Where the strategies are looked at: every 10 iterations, later at steps of a tenth."""
    return max(iterations // 10 * 10 + 10, iterations * 11 // 100 * 10)


def one_round(
    workers: list[Worker], records: dict[str, Record], first: bool, limit: float, score: Callable[[Any], float]
) -> None:
    """All workers in turn from stop to stop, until each has the last accuracy or `limit` seconds."""
    left = list(workers)
    while left:
        for worker in list(left):
            record = records[worker.name]
            worker.run_to(next_stop(worker.iterations))
            if first:
                record.last = worker.iterations, score(worker.ask(0))
                for accuracy in ACCURACIES:
                    if record.last[1] <= accuracy:
                        record.iterations.setdefault(f"{accuracy:g}", worker.iterations)
            for key, needed in record.iterations.items():
                if needed == worker.iterations:
                    record.seconds_to.setdefault(key, []).append(worker.seconds)
            done = len(record.iterations) == len(ACCURACIES) or worker.seconds >= limit
            if done if first else worker.iterations >= record.last[0]:
                record.rates.append((worker.iterations - 1) / worker.seconds)
                left.remove(worker)


def measure(rules: Rules, rounds: int, limit: float, chosen: Sequence[str]) -> dict[str, Any]:
    """Everything about one deck, as a JSON object."""
    tree, payoffs = Tree(rules), Payoffs.points(rules)

    def score(result: dict[str, Any]) -> float:
        """The exploitability of a worker's result."""
        if "exploitability" in result:
            return float(result["exploitability"])
        from solver.openspiel import imported

        return imported(tree, dict(result["policy"])).evaluate().exploitability

    records = {solver: Record() for solver in chosen}
    with tempfile.TemporaryDirectory() as folder:
        toml, efg = Path(folder) / "rules.toml", Path(folder) / "game.efg"
        toml.write_text(rules.to_toml())
        with efg.open("w") as file:
            nodes = write_efg(rules, payoffs, file)
        states = len({line.split('"')[3] for line in efg.read_text().splitlines() if line.startswith("p ")})
        for solver in [solver for solver in chosen if solver.startswith("ours")]:
            compiling = Worker(solver, toml, efg)  # the compiler's memory is nobody's
            compiling.ask(0)
            compiling.close()
        for i in range(rounds):
            order = [*chosen[i % len(chosen) :], *chosen[: i % len(chosen)]]
            workers = [Worker(solver, toml, efg) for solver in order if records[solver].missing is None]
            for worker in workers:
                records[worker.name].missing = worker.start.get("missing")
                records[worker.name].starts.append(worker.start)
            one_round([w for w in workers if "missing" not in w.start], records, i == 0, limit, score)
            for worker in workers:
                worker.close()
            click.echo(f"{rules.name}: round {i + 1} of {rounds}", err=True)
    solvers = {name: summary(record, states) for name, record in records.items()}
    return {"deck": rules.name, "states": states, "nodes": nodes, "solvers": solvers}


def summary(record: Record, states: int) -> dict[str, Any]:
    """The medians over the rounds, and the rounds themselves."""
    if record.missing is not None:
        return {"missing": record.missing}
    rate = statistics.median(record.rates)
    return {
        "states_per_second": states * rate,
        "milliseconds_per_iteration": 1e3 / rate,
        "iterations_to": record.iterations,
        "seconds_to": {key: statistics.median(seconds) for key, seconds in record.seconds_to.items()},
        "last": {"iterations": record.last[0], "exploitability": record.last[1]},
        **{key: statistics.median(start[key] for start in record.starts) for key in record.starts[0]},
        "rounds": {"iterations_per_second": record.rates, "seconds_to": record.seconds_to},
    }


def machine() -> dict[str, Any]:
    """Where it ran, with which versions."""
    versions = packages()
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return {"processor": processor(), "cores": os.cpu_count(), "system": platform.system(), "packages": versions}


READING = """\
Each solver on one thread in a process of its own, all in turn; medians of the rounds. `scripts/peers.py` says how.
A deck's name: circular order, ranks x copies of each, the ladder.

- states/s: information states of the full game (all holdings, also those with one action) times iterations per second.
  Ours has fewer rows: it keeps none for a single action, and one for all last cards with the same outcome. That is part
  of its speed; the column says how fast the same game is iterated, not how many numbers are changed.
- s to 1e-3, s to 1e-4: seconds of iterating, and iterations in brackets, until the exploitability (half of NashConv) of
  the average strategy is at most that many points per hand. Looked at every 10 iterations, later at steps of a tenth,
  by our exact best response to every solver's strategy. The first iteration and the looking are not in it.
- making: seconds to make the solver. OpenSpiel's reads a file that was written before; LiteEFG's converts the Python
  game itself, most of it Python's time; ours builds the tree. Ours had its kernels compiled before.
- MiB: peak of the process up to the first iteration, and in brackets what it had after its imports. LiteEFG's includes
  its conversion; ours is compiled code, and on these decks hardly anything else.

What it shows: the same algorithm, CFR+ with alternating updates and linear averaging, in three programs. They average
in slightly different ways, so the iterations they need may differ. Our default is another algorithm and counts in
float32, the others in float64: compare its seconds, not its iterations.

What it does not show:

- The full deck. The others keep every history of a game, deal by deal, and that is far too many; ours does not.
- Threads. All have one here; ours and LiteEFG can have more.
- What ours is built for. Its arrays for these decks fit into the processor's caches and fill few of its vector lanes,
  so neither saving memory traffic nor vectors count for much.
- Generality. The others solve any game given to them, ours this one only, and its lead rests on that: it walks
  the public tree with all hands at once. OpenSpiel's solver walks general state objects and looks information
  states up by text; it is meant to be clear. On the Python game itself it would be many times slower still.
- The machine. It was shared, so absolute times mean little; the ratios of one run mean more.
"""


def report(result: dict[str, Any]) -> str:
    """The table and its reading, as Markdown."""
    there, ends = result["machine"], [f"{accuracy:g}" for accuracy in ACCURACIES]
    lines = ["# Small decks: OpenSpiel, LiteEFG and this solver", "", f"Made by `{result['command']}`.", ""]
    versions = ", ".join(f"{name} {version}" for name, version in there["packages"].items())
    lines += [
        f"{there['processor']}, {there['cores']} cores, {there['system']}; {versions}. Rounds: {result['rounds']}."
    ]
    for deck in result["decks"]:
        lines += ["", f"## {deck['deck']}: {deck['states']:,} information states, {deck['nodes']:,} histories", ""]
        lines += ["| solver | states/s | ms/iteration | s to 1e-3 | s to 1e-4 | making, s | MiB |"]
        lines += ["|---|--:|--:|--:|--:|--:|--:|"]
        for name, solver in deck["solvers"].items():
            cells = ["missing", *[""] * 5]
            if "missing" not in solver:
                last = f"not in {solver['last']['iterations']} iterations ({solver['last']['exploitability']:.1e})"
                times, counts = solver["seconds_to"], solver["iterations_to"]
                cells = [f"{solver['states_per_second']:,.0f}", f"{solver['milliseconds_per_iteration']:.3g}"]
                cells += [f"{times[end]:.3g} ({counts[end]})" if end in times else last for end in ends]
                cells += [f"{solver['making_seconds']:.2g}", f"{solver['peak_mib']:.0f} ({solver['import_mib']:.0f})"]
            lines.append(f"| {' | '.join([SOLVERS[name], *cells])} |")
        missing = {name: solver["missing"] for name, solver in deck["solvers"].items() if "missing" in solver}
        lines += [f"\n{SOLVERS[name]}: {why}." for name, why in missing.items()]
    return "\n".join([*lines, "", "## Reading", "", READING])


@click.command()
@click.option("--deck", "decks", multiple=True, type=click.Choice([*DECKS]), help="Only this one; may be repeated.")
@click.option(
    "--solver", "chosen", multiple=True, type=click.Choice([*SOLVERS]), help="Only this one; may be repeated."
)
@click.option("--rounds", default=ROUNDS, show_default=True, help="Times everything is run.")
@click.option("--limit", default=LIMIT, show_default=True, help="Seconds for a solver on a deck in a round.")
@click.option("--quick", is_flag=True, help="One round of a second on the smallest deck, as a test.")
@click.option(
    "--folder", default=ROOT / "results" / "openspiel", type=click.Path(path_type=Path), help="For the files."
)
def main(decks: tuple[str, ...], chosen: tuple[str, ...], rounds: int, limit: float, quick: bool, folder: Path) -> None:
    """Compare with other solvers; writes peers.json and peers.md."""
    solvers = chosen or tuple(SOLVERS)
    every = decks or (tuple(DECKS)[:1] if quick else tuple(DECKS)[:-1])
    if quick:
        rounds, limit = 1, 1.0
    given = ["--quick"] if quick else [f"--rounds {rounds}"] if rounds != ROUNDS else []
    given += [f"--limit {limit:g}"] if limit != LIMIT and not quick else []
    given += [*(f"--deck {name}" for name in decks), *(f"--solver {name}" for name in chosen)]
    command = " ".join(["python scripts/peers.py", *given])
    found: list[dict[str, Any]] = []
    result = {"command": command, "rounds": rounds, "limit": limit, "machine": machine(), "decks": found}
    folder.mkdir(parents=True, exist_ok=True)
    for name in every:  # what there is is written after each
        found.append(measure(deck(name), rounds, limit, solvers))
        write_atomically(folder / "peers.json", (json.dumps(result, indent=1) + "\n").encode())
        write_atomically(folder / "peers.md", report(result).encode())
    click.echo(report(result))


if __name__ == "__main__":
    main()
