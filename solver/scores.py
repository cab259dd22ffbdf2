"""Where what is known of a match is kept, and a hand's strategy at a score: looked up, or solved on the spot.

A match that `truc match solve` has solved lies in the user's cache folder unless told otherwise; the equity tables of
some rule sets come with the program.  With either, the hand at a single score can be solved by itself in a second.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from games.notation import format_score
from games.rules import Rules, shown
from solver.cfr import Payoffs, Solver
from solver.equity import Score, Worth, hand_rules, hand_tree, payoffs, scores, whole_rules
from solver.essential import essential
from solver.lift import lifted
from solver.match_run import TABLE, Store, open_store
from solver.paths import cache_folder, shipped_table
from solver.solve import Progress, solve
from solver.storage import NONSENSE, Header, StorageError, load_strategy, real
from solver.strategy import Strategy
from solver.tree import Tree, public_tree

QUICK = 2e-5  # exploitability of what is solved on the spot: about 0.0005 points per hand at 0-0
QUICK_POINTS = 5e-4  # the same for a hand in points


class NoTableError(LookupError):
    """Nothing is known of a match by these rules; the message is one sentence."""


def match_folder(rules: Rules) -> Path | None:
    """Where a match is stored by default, None if there is no cache folder."""
    cache = cache_folder()
    return None if cache is None else cache / "matches" / f"{rules.name}-{rules.hash[:12]}"


def stored_match(rules: Rules) -> Store | None:
    """The complete match in the default folder, None if there is none.  Raises StorageError."""
    folder = match_folder(rules)
    if folder is None or not (folder / TABLE).is_file():
        return None
    store = open_store(folder)
    return store if store.complete and store.rules.hash == rules.hash else None


def table_document(rules: Rules, known: Mapping[Score, Worth], rounding: float = 0.0) -> dict[str, Any]:
    """An equity table as a JSON object; the values are the leader's winning probabilities."""
    start = known[0, 0]
    text = {format_score(score): known[score] for score in sorted(known)}
    return {
        "variant": rules.name,
        "rules_hash": rules.hash,
        "unit": "match-winning probability",
        "target": rules.target,
        "value": {score: worth.value for score, worth in text.items()},
        "lower": {score: max(worth.lower - rounding, 0.0) for score, worth in text.items()},
        "upper": {score: min(worth.upper + rounding, 1.0) for score, worth in text.items()},
        "best_response": [start.leader, start.dealer],
        "gains": [start.leader - start.value, start.dealer - (1 - start.value)],
        "exploitability": start.exploitability,
    }


def read_table(file: Path, rules: Rules) -> dict[Score, Worth]:
    """A table that `table_document` made.  Raises StorageError."""
    try:
        stated = json.loads(file.read_bytes())
        if stated["rules_hash"] != rules.hash:
            raise StorageError(f"{file}: the table of other rules than {rules.name!r}")
        every = {format_score(score): score for score in scores(rules)}
        if stated["value"].keys() != every.keys():
            raise StorageError(f"{file}: not a winning probability for each of {rules.target**2} scores")
        found = {}
        for text, score in every.items():
            value, lower, upper = (real(stated[table][text], 0.0, 1.0) for table in ("value", "lower", "upper"))
            found[score] = Worth(value, upper, 1 - lower)
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(f"{file}: {error.strerror or error}") from error
    except NONSENSE as error:
        raise StorageError(f"{file}: not an equity table, or damaged ({shown(str(error))})") from error
    return found


def equity(rules: Rules) -> dict[Score, Worth]:
    """What all scores are worth: of the stored match, else as it comes with the program.

    Raises NoTableError, StorageError.
    """
    store = stored_match(rules)
    if store is not None:
        return store.known
    file = shipped_table(rules.name)
    if file is not None:
        try:
            return read_table(file, rules)
        except StorageError:
            pass  # of other rules by the same name
    raise NoTableError(f"no match by the rules {rules.name!r} is solved yet, `truc match solve` does it")


def hand_payoffs(rules: Rules, score: Score, known: Mapping[Score, Worth]) -> Payoffs:
    """The payoffs of the hand at a score, on the ladder of `hand_rules`."""
    return payoffs(rules, hand_rules(rules, score).ladder, score, lambda after: 1.0 - known[after].value)


def strategy_at(
    rules: Rules,
    score: Score,
    threads: int = 1,
    progress: Callable[[Progress], None] = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[Strategy, Header] | None:
    """A strategy of the hand at a score, in the whole hand's tree, and its file's header.

    Of the stored match, of an earlier call, or solved now and kept in the user's cache folder; None if `stop` said so.
    Raises NoTableError, StorageError, OSError.
    """
    store = stored_match(rules)
    if store is not None:
        return _lifted(store.load(score), rules, score)
    tree, pay = hand_tree(rules, score), hand_payoffs(rules, score, equity(rules))
    name = format_score(score)
    found = _kept_or_solved("scores", rules, name, tree, pay, QUICK, name, threads, progress, stop)
    return None if found is None else _lifted(found, rules, score)


def strategy_in_points(
    rules: Rules,
    threads: int = 1,
    progress: Callable[[Progress], None] = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[Strategy, Header] | None:
    """A strategy of a hand valued in points, without what changes no value, and its file's header.

    Of an earlier call, or solved now and kept in the user's cache folder; None if `stop` said so.  Raises
    StorageError, OSError, TreeTooLargeError.
    """
    tree = public_tree(essential(rules))
    return _kept_or_solved(
        "points", rules, "points", tree, Payoffs.points(tree.rules), QUICK_POINTS, None, threads, progress, stop
    )


def _kept_or_solved(
    folder: str, rules: Rules, name: str, tree: Tree, pay: Payoffs, accuracy: float, score: str | None, threads: int,
    progress: Callable[[Progress], None], stop: Callable[[], bool],
) -> tuple[Strategy, Header] | None:  # fmt: skip
    """A strategy from the user's cache folder, where it is put if it is not there."""
    cache = cache_folder()
    file = None if cache is None else cache / folder / f"{rules.name}-{rules.hash[:12]}" / f"{name}.safetensors"
    if file is not None and file.is_file():
        try:
            kept = load_strategy(file)
            if kept[0].tree.game == tree.game and kept[0].payoffs == pay:
                return kept
        except StorageError:
            pass  # it is solved again
    if file is None:
        raise StorageError("there is no cache folder to keep a strategy in")
    file.parent.mkdir(parents=True, exist_ok=True)
    solver = Solver(tree, pay, threads=threads)
    outcome = solve(solver, file, accuracy=accuracy, threads=threads, stop=stop, progress=progress, score=score)
    return None if outcome.evaluation is None else load_strategy(file)


def _lifted(loaded: tuple[Strategy, Header], rules: Rules, score: Score) -> tuple[Strategy, Header]:
    return lifted(loaded[0], whole_rules(rules, score)), loaded[1]
