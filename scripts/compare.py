"""Compare with OpenSpiel in full, and write results/openspiel.

    python scripts/compare.py            100,000 hands, MCCFR scored after 60 and 300 seconds: a quarter of an hour
    python scripts/compare.py --quick    less of everything, to try it

What `truc compare --json` prints becomes comparison.json; README.md has it as tables.  Needs the extra `openspiel`.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from solver.cli.common import stored_strategy
from solver.cli.compare import HANDS, QUICK_HANDS, QUICK_SECONDS, SECONDS
from solver.cli.progress import telling
from solver.compare import AGREE, CFR_ITERATIONS, compare
from solver.files import write_atomically

ROOT = Path(__file__).resolve().parent.parent


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, all columns but the first to the right."""
    lines = [columns, ["---", *["---:"] * (len(columns) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page(document: dict[str, Any]) -> str:
    """README.md."""
    decks = [
        [
            deck["deck"],
            f"{deck['information_states']:,}",
            str(len(deck["policies"])),
            f"{max(policy['difference'] for policy in deck['policies']):.1e}",
            *(f"{each['difference']:.1e}" for each in deck["cfr"]),
        ]
        for deck in document["small_decks"]
    ]
    times = [
        [
            f"{each['ours']['seconds']:.0f} s",
            f"{each['openspiel']['exploitability']:.4f}",
            f"{each['openspiel']['iterations']:,}",
            f"{each['openspiel']['states']:,}",
            f"{each['ours']['exploitability']:.2e}",
            f"{each['ours']['iterations']:,}",
        ]
        for each in document["mccfr"]["seconds"]
    ]
    hands, level, last = document["hands"], document["mccfr"]["level"], document["mccfr"]["seconds"][-1]["openspiel"]
    return f"""# Compared with OpenSpiel {document["packages"]["open_spiel"]}

Written by `scripts/compare.py`; [comparison.json](comparison.json) has every number. OpenSpiel plays
[games/openspiel.py](../../games/openspiel.py), which shares no game logic with the rest of this project.

## Small decks

Uniform, solved and random policies: the largest difference in value or nash_conv. CFR and CFR+: the largest difference
of two probabilities in the average policies after {CFR_ITERATIONS} iterations. Agreement is {AGREE:g}.

{table(["deck", "information states", "policies", "values", "CFR", "CFR+"], decks)}

## Hands of {document["variant"]} played through OpenSpiel

{hands["hands"]:,} hands of the stored strategy, {hands["decisions"]:,} decisions. Compared were who acts, which actions
are legal, when the hand is over and what it pays: {len(hands["disagreements"])} disagreements. The leader's mean is
{hands["mean"]:+.4f} ± {hands["standard_error"]:.4f} {document["unit"]}; exact is {hands["value"]:+.6f},
{abs(hands["sigmas"]):.1f} standard errors away.

## External-sampling MCCFR

Exploitability in {document["unit"]}, one thread each, both scored by the exact best response of this project. Others
used the machine as well, so times mean something within a row only.

{table(["after", "OpenSpiel", "iterations", "states met", "ours", "iterations"], times)}

Ours first was as good as OpenSpiel's last after {level["seconds"]:.3g} s, in iteration {level["iterations"]:,}. For
scale: playing every action equally often is exploitable by {document["mccfr"]["uniform_exploitability"]:.4f}.

What this does not show is how good MCCFR could be. OpenSpiel's solver is C++, but it asks a game whose rules are
Python, which allows it about {last["iterations"] / last["seconds"]:.0f} iterations a second, and an iteration samples
a single hand for each player. In a game with millions of information states that is hardly a beginning: a best
response finds the many states where an average of a few samples is little but noise.
"""


def digest(content: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(content).hexdigest()


def machine() -> str:
    """Architecture, kind of processor, and how many cores this process may use."""
    from llvmlite import binding

    return f"{platform.machine()} {binding.get_host_cpu_name()}, {len(os.sched_getaffinity(0))} cores"


@click.command()
@click.option("--quick", is_flag=True, help="Less of everything.")
@click.option("--seconds", type=float, multiple=True, help="When to look at both solvers, ascending.")
@click.option("--hands", type=int, help="Hands to play.")
@click.option("--out", default=ROOT / "results" / "openspiel", type=click.Path(path_type=Path), help="Folder.")
def main(quick: bool, seconds: tuple[float, ...], hands: int | None, out: Path) -> None:
    """Compare with OpenSpiel, and write what came out."""
    start = time.perf_counter()
    strategy, header = stored_strategy(None, None, None)
    with telling() as tell:
        result = compare(
            strategy,
            quick=quick,
            hands=hands or (QUICK_HANDS if quick else HANDS),
            seconds=seconds or (QUICK_SECONDS if quick else SECONDS),
            tell=tell,
        )
    document = result.json()
    files = {
        "comparison.json": (json.dumps(document, indent=1) + "\n").encode(),
        "README.md": page(document).encode(),
    }
    manifest = {
        "command": " ".join(["python scripts/compare.py", *sys.argv[1:]]),
        "variant": document["variant"],
        "strategy": header.checksum,
        "unit": document["unit"],
        "agrees": document["agrees"],
        "accuracy": {"values_and_policies": AGREE, "largest_difference": largest(document)},
        "seconds": round(time.perf_counter() - start, 1),
        "packages": document["packages"],
        "machine": machine(),
        "made": time.strftime("%Y-%m-%d", time.gmtime()),
        "sha256": {name: digest(content) for name, content in files.items()},
    }
    files["manifest.json"] = (json.dumps(manifest, indent=1) + "\n").encode()
    out.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_atomically(out / name, content)
    click.echo(f"{out}: {'OpenSpiel and we agree' if result.agrees else 'OpenSpiel and we DISAGREE'}")
    sys.exit(0 if result.agrees else 1)


def largest(document: dict[str, Any]) -> float:
    """The largest difference on any small deck."""
    return max(
        float(each["difference"]) for deck in document["small_decks"] for each in (*deck["policies"], *deck["cfr"])
    )


if __name__ == "__main__":
    main()
