"""How strong the bot's levels are: their chances to win a match against the equilibrium, computed exactly.

    python scripts/opponents.py [MATCH] [--folder FOLDER]

MATCH is a folder of `truc match solve`, by default where that leaves it.  At every score the level's play is written
down as a strategy (`solver.losses.erring`), and backward induction over the scores gives its chance to win the match
against the stored strategies, one exact sweep for each.  FOLDER gets opponents.json, by default results/VARIANT.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from games.notation import format_score
from games.rules import Rules
from solver.best_response import Evaluator
from solver.bot import LEVELS, Level
from solver.cfr import Payoffs
from solver.equity import Score, payoffs, scores
from solver.files import write_atomically
from solver.kernels import BEST, EXPECT
from solver.losses import ANCHOR, erring, losses
from solver.match_run import open_store
from solver.scores import match_folder
from solver.storage import packages
from solver.strategy import Strategy

ROOT = Path(__file__).resolve().parent.parent


@dataclass(slots=True)
class Chances:
    """A level's chance to win the match from every score, by (leader's, dealer's) points, if it leads and if it deals;
    and what a hand costs it there against the best it could do, in winning probability."""

    leading: dict[Score, float]
    dealing: dict[Score, float]
    lost: dict[Score, tuple[float, float]]


def strengths(
    rules: Rules,
    strategy: Callable[[Score], Strategy],
    levels: list[Level],
    done: Callable[[int], None] = lambda _: None,
) -> list[Chances]:
    """The chances of each level against a strategy for every score, in any of its hands' trees.

    Levels may err in a hand, but judge it by what the match is worth if both play the strategies from then on.
    """
    found = [Chances({}, {}, {}) for _ in levels]
    parts: dict[Score, list[tuple[tuple[float, float], tuple[float, float]]]] = {}
    for n, score in enumerate(scores(rules), start=1):
        equilibrium = strategy(score)
        lost = losses(equilibrium)
        evaluator = Evaluator(equilibrium.tree, equilibrium.payoffs)
        parts[score] = []
        for level, chances in zip(levels, found, strict=True):
            weak = erring(equilibrium, lost, level.temperature)
            plays = (
                (weak.probabilities[0], equilibrium.probabilities[1]),
                (
                    equilibrium.probabilities[0],
                    weak.probabilities[1],
                ),
            )
            pay = equilibrium.payoffs
            best = [evaluator.value(p, BEST, equilibrium.probabilities, pay) for p in range(2)]
            got = [evaluator.value(0, EXPECT, plays[0], pay), 1 - evaluator.value(0, EXPECT, plays[1], pay)]
            chances.lost[score] = best[0] - got[0], best[1] - got[1]
            ladder = equilibrium.tree.rules.ladder
            # To the leader: the level leads and deals next; or the equilibrium leads, and the level leads next.
            worth = (
                payoffs(rules, ladder, score, lambda s, c=chances: c.dealing.get(s, 0.0)),  # type: ignore[misc]
                payoffs(rules, ladder, score, lambda s, c=chances: 1 - c.leading.get(s, 1.0)),  # type: ignore[misc]
            )
            parts[score].append((_linear(evaluator, plays[0], worth[0]), _linear(evaluator, plays[1], worth[1])))
        other = score[1], score[0]
        if other in parts:
            for i, chances in enumerate(found):
                for one, two in ((score, other), (other, score)):
                    # It leads at `one`; if nobody wins the hand it deals at `two`, and then leads at `one` again.
                    (a, x), (b, y) = parts[one][i][0], parts[two][i][1]
                    # leading = a + x dealing; dealing = 1 - (b + y (1 - leading))
                    leading = (a + x * (1 - b - y)) / (1 - x * y)
                    chances.leading[one], chances.dealing[two] = leading, 1 - b - y * (1 - leading)
        done(n)
    return found


def _linear(evaluator: Evaluator, play: Any, pay: Payoffs) -> tuple[float, float]:
    """A hand's value to the leader is a + x * (what it is worth to him that nobody wins the hand): a and x."""
    zero, one = (evaluator.value(0, EXPECT, play, replace(pay, tie=tie)) for tie in (0.0, 1.0))
    return zero, one - zero


def document(rules: Rules, levels: list[Level], found: list[Chances], about: dict[str, Any]) -> dict[str, Any]:
    """What is written."""
    start = (0, 0)
    return {
        **about,
        "variant": rules.name,
        "rules_hash": rules.hash,
        "unit": "match-winning probability",
        "opponent": "the equilibrium: the stored strategies",
        "anchor": ANCHOR,
        "levels": {
            level.name: {
                "temperature": level.temperature,
                "wins": (each.leading[start] + each.dealing[start]) / 2,
                "wins_leading": each.leading[start],
                "wins_dealing": each.dealing[start],
                "loss_per_hand_leading": each.lost[start][0],
                "loss_per_hand_dealing": each.lost[start][1],
            }
            for level, each in zip(levels, found, strict=True)
        },
        "packages": packages(),
    }


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("match", nargs="?", type=Path, help="folder of `truc match solve`")
    parser.add_argument("--variant", default="le-truc", help="whose match, without a folder")
    parser.add_argument("--folder", type=Path, help="where opponents.json goes")
    options = parser.parse_args()
    from games.rules import preset

    folder = options.match or match_folder(preset(options.variant))
    if folder is None:
        parser.error("there is no cache folder, give the match's")
    store = open_store(folder)
    if not store.complete:
        parser.error(f"{folder} is not complete, `truc match solve` goes on with it")

    def done(n: int) -> None:
        print(f"\r{n} of {store.rules.target**2} scores", end="", file=sys.stderr, flush=True)

    levels = list(LEVELS.values())
    found = strengths(store.rules, store.strategy, levels, done)
    print(file=sys.stderr)
    about = {
        "command": "python scripts/opponents.py",
        "match_accuracy": store.accuracy,
        "strategies": {format_score(s): store.entries[s]["checksum"] for s in sorted(store.entries)},
    }
    result = document(store.rules, levels, found, about)
    target = (options.folder or ROOT / "results" / store.rules.name) / "opponents.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, (json.dumps(result, indent=1) + "\n").encode())
    for name, each in result["levels"].items():
        print(f"{name:<10} T = {each['temperature']:<5} wins {100 * each['wins']:.2f} % of matches")


if __name__ == "__main__":
    main()
