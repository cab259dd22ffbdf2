"""`truc verify`: does a strategy file hold what it says?"""

from __future__ import annotations

from pathlib import Path

import click

from solver.cli.common import json_option, open_strategy
from solver.cli.errors import BAD_FILE, Failure
from solver.paths import usable_threads

TOLERANCE = 1e-9  # another processor or compiler may round otherwise


@click.command(name="verify")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@json_option
def command(file: Path, as_json: bool) -> None:
    """Check a strategy file: hashes, probabilities, and its numbers by computing them again.

    FILE is a strategy file as `truc solve` writes it.  Exit code 4 if anything is wrong with it.
    """
    strategy, header = open_strategy(file)
    rules = strategy.tree.rules
    states = sum(len(starts) for starts, _ in strategy.tree.states)
    checks = [
        ("checksum", True, f"all bytes are as they were written ({header.checksum[:12]})"),
        ("rules", True, f"{rules.name}, hash {rules.hash[:12]}"),
        ("tree", True, f"the order of its information states is this version's ({header.tree_hash[:12]})"),
        ("probabilities", True, f"between 0 and 1 and adding up to 1 in all {states:,} stored information states"),
    ]
    result = strategy.evaluate(usable_threads())
    leader, dealer = result.best_response
    for name, stated, computed in (
        ("value", header.value, result.value),
        ("best response of the leader", header.best_response[0], leader),
        ("best response of the dealer", header.best_response[1], dealer),
        ("nash_conv", header.nash_conv, result.nash_conv),
    ):
        checks.append((name, *_compare(stated, computed)))
    good = all(ok for _, ok, _ in checks)

    from solver.cli.output import print_facts, print_json, worth

    if as_json:
        items = [{"check": name, "ok": ok, "detail": text} for name, ok, text in checks]
        print_json({"file": str(file), "variant": rules.name, "ok": good, "checks": items})
    else:
        print_facts([(f"{'ok ' if ok else 'BAD'}  {name}", text) for name, ok, text in checks])
        if good:
            click.echo(f"\n{click.format_filename(file)} holds what it says: {header.iterations:,} iterations")
            print_facts(worth(result))
    if not good:
        wrong = ", ".join(name for name, ok, _ in checks if not ok)
        raise Failure(f"{file}: computed again, other numbers come out than it states ({wrong})", BAD_FILE)


def _compare(stated: float, computed: float) -> tuple[bool, str]:
    if stated == computed:
        return True, f"{stated:+.9f}, computed again: equal to the last bit"
    if abs(stated - computed) <= TOLERANCE:
        return True, f"{stated:+.9f}, computed again: within {TOLERANCE:g}, as on another kind of machine"
    return False, f"{stated:+.9f} is stated, {computed:+.9f} is right"
