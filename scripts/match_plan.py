"""How far solving a match can be spread over a cluster: what one machine measures, planned for a thousand cores.

    python scripts/match_plan.py [DIR]                       every pair of scores solved again, and timed, on one core
    python scripts/match_plan.py [DIR] --times times.json    the same, kept pair by pair; what is there is not repeated

Writes plan.json and plan.md.  A pair of scores is a task (`solver.match_run`), which can start when all scores that can
follow it are known.  The times are core-seconds of this machine; the schedules are simulated.
"""

from __future__ import annotations

import heapq
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
from match_page import wrapped

from games.notation import format_score
from games.rules import Rules, preset
from solver.cfr import Solver
from solver.equity import Score, hand_rules, hand_tree, pair_of, scores, successors
from solver.files import write_atomically
from solver.match import solve_pair
from solver.match_run import Store, open_store
from solver.scores import match_folder
from solver.storage import StorageError

ROOT = Path(__file__).resolve().parent.parent
VARIANT = "le-truc"
CORES = (1, 2, 4, 8, 16, 100, 1000)
NEAR = 1.01  # of the critical path: a schedule that is so short is as good as any

Graph = Mapping[Score, set[Score]]  # task -> those that it waits for


class Schedule(NamedTuple):
    """cores: there are; seconds: until all is done; speedup: against one core; efficiency: of the cores' time, how
    much is needed on one core; peak: tasks at once."""

    cores: int
    threads: int
    seconds: float
    speedup: float
    efficiency: float
    peak: int


def graph(rules: Rules) -> dict[Score, set[Score]]:
    """The pairs of scores, each by its smaller one, in the order in which `solve_match` prefers them."""
    found: dict[Score, set[Score]] = {}
    for score in scores(rules):
        pair = pair_of(score)
        after = {pair_of(each)[0] for one in pair for each in successors(hand_rules(rules, one), one)}
        found.setdefault(pair[0], after)
    return found


def critical_path(seconds: Mapping[Score, float], waits: Graph) -> list[Score]:
    """The chain of tasks, each waiting for the one before, that takes longest: no number of cores is faster."""
    longest: dict[Score, float] = {}
    before: dict[Score, Score | None] = {}

    def ends(task: Score) -> float:
        if task not in longest:
            last = max(sorted(waits[task]), key=ends, default=None)
            before[task] = last
            longest[task] = seconds[task] + (0.0 if last is None else ends(last))
        return longest[task]

    at: Score | None = max(sorted(waits), key=ends)
    chain: list[Score] = []
    while at is not None:
        chain.append(at)
        at = before[at]
    return chain[::-1]


def simulate(seconds: Mapping[Score, float], waits: Graph, slots: int) -> tuple[float, int]:
    """Seconds until all is done, and tasks at once at most, if a free slot always takes the first task that is ready;
    the order is that of `waits`."""
    order = {task: i for i, task in enumerate(waits)}
    open_ = {task: len(waits[task]) for task in waits}
    unblocks: dict[Score, list[Score]] = {task: [] for task in waits}
    for task, after in waits.items():
        for each in after:
            unblocks[each].append(task)
    ready = [order[task] for task, count in open_.items() if count == 0]
    heapq.heapify(ready)
    tasks, now, peak = list(waits), 0.0, 0
    running: list[tuple[float, int]] = []  # by the time when they end
    while ready or running:
        while ready and len(running) < slots:
            i = heapq.heappop(ready)
            heapq.heappush(running, (now + seconds[tasks[i]], i))
        peak = max(peak, len(running))
        now, i = heapq.heappop(running)
        for each in unblocks[tasks[i]]:
            open_[each] -= 1
            if open_[each] == 0:
                heapq.heappush(ready, order[each])
    return now, peak


def schedule(seconds: Mapping[Score, float], waits: Graph, cores: int, threads: int, faster: float) -> Schedule:
    """A simulated run; `faster`: how much faster a task is on its threads than on one."""
    spent, peak = simulate({task: each / faster for task, each in seconds.items()}, waits, max(1, cores // threads))
    total = sum(seconds.values())
    return Schedule(cores, threads, spent, total / spent, total / spent / cores, peak)


def measure(store: Store, seconds: dict[Score, float], keep: Callable[[], None] = lambda: None) -> tuple[int, int]:
    """Solve the pairs that have no time yet, in order, each on one core; returns how many there were, and how many
    gave the same numbers as the store has."""
    known, same, done = store.known, 0, 0
    todo = [task for task in graph(store.rules) if task not in seconds]
    if todo:
        Solver(hand_tree(store.rules, todo[0]), algorithm=store.algorithm).step()  # compiles
    for task in todo:
        for each in pair_of(task):
            hand_tree(store.rules, each)  # is built once per worker
        start = time.process_time()
        found = solve_pair(store.rules, task, known, store.accuracy, 1, store.algorithm)
        seconds[task] = time.process_time() - start
        done += 1
        same += all(solution.worth == known[each] for each, solution in found.items())
        keep()
        click.echo(f"\r{done} of {len(todo)} pairs, {format_score(task)}  {seconds[task]:.1f} s ", nl=False, err=True)
    click.echo(err=True)
    return done, same


def read_times(file: Path, rules: Rules) -> dict[Score, float]:
    """Seconds by pair, a JSON object of its own or the `seconds` of plan.json.  Raises ClickException."""
    try:
        stated = json.loads(file.read_bytes())
        found = {}
        for text, number in stated.get("seconds", stated).items():
            leader, dealer = map(int, text.split("-"))
            found[leader, dealer] = float(number)
        if not found.keys() <= graph(rules).keys() or not all(0 < each < 1e9 for each in found.values()):
            raise ValueError("seconds that are none, or scores that this match does not have")
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise click.ClickException(f"{file}: no times of this match's pairs ({error}).") from error
    return found


def as_json(seconds: Mapping[Score, float]) -> dict[str, float]:
    """By score, rounded to milliseconds."""
    return {format_score(task): round(each, 3) for task, each in seconds.items()}


def plan(store: Store, seconds: Mapping[Score, float], two_threads: float) -> dict[str, Any]:
    """Everything that is reported, as a JSON object."""
    waits = graph(store.rules)
    chain = critical_path(seconds, waits)
    longest = sum(seconds[task] for task in chain)
    _, width = simulate(seconds, waits, len(waits))
    enough = next(n for n in range(1, len(waits) + 1) if simulate(seconds, waits, n)[0] <= NEAR * longest)
    files = [store.file(score).stat().st_size for score in sorted(store.entries)]
    return {
        "variant": store.rules.name,
        "rules_hash": store.rules.hash,
        "accuracy": store.accuracy,
        "tasks": len(waits),
        "core_seconds": round(sum(seconds.values()), 3),
        "longest_task": round(max(seconds.values()), 3),
        "critical_path_seconds": round(longest, 3),
        "critical_path": [format_score(task) for task in chain],
        "average_parallelism": sum(seconds.values()) / longest,
        "peak_tasks": width,
        "enough_cores": enough,
        "two_threads_are_faster_by": two_threads,
        "bytes_per_score": round(sum(files) / len(files)),
        "schedules": [
            schedule(seconds, waits, cores, threads, faster)._asdict()
            for threads, faster in ((1, 1.0), (2, two_threads))
            for cores in CORES
            if cores >= threads
        ],
        "seconds": as_json(seconds),
    }


def duration(seconds: float) -> str:
    """In the unit that suits."""
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


def page(found: Mapping[str, Any]) -> str:
    """plan.md."""
    schedules: Sequence[Mapping[str, Any]] = found["schedules"]
    rows = []
    for cores in CORES:
        cells = []
        for threads in (1, 2):
            fitting = [each for each in schedules if each["cores"] == cores and each["threads"] == threads]
            cells += (
                [f"{duration(each['seconds'])} | {each['speedup']:.2f} | {each['efficiency']:.1%}" for each in fitting]
                or ["- | - | -"]
            )  # fmt: skip
        rows.append(f"| {cores:,} | {' | '.join(cells)} |")
    best = {threads: min(e["seconds"] for e in schedules if e["threads"] == threads) for threads in (1, 2)}
    path, share = found["critical_path"], found["critical_path_seconds"] / found["core_seconds"]
    table = "\n".join(rows)
    text = f"""# Solving the match on many machines: a plan

Made by `python scripts/match_plan.py` from measured times: each of the {found["tasks"]} pairs of scores solved on one
core of one machine to accuracy {found["accuracy"]:g}, in core-seconds. The schedules below are simulated, not run: a
free core takes the first pair, in the program's order, whose successors are all known.

| | |
| --- | ---: |
| all pairs, on one core | {duration(found["core_seconds"])} |
| the longest pair | {duration(found["longest_task"])} |
| the critical path, {len(path)} pairs | {duration(found["critical_path_seconds"])}, {share:.1%} of all |
| the fastest speedup, with a core for each pair | {found["average_parallelism"]:.2f} |
| pairs at once at the peak | {found["peak_tasks"]} |
| cores that come within {NEAR - 1:.0%} of that speedup | {found["enough_cores"]} |

| cores | one thread per pair: time | speedup | efficiency | two threads: time | speedup | efficiency |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: |
{table}

*Efficiency*: of the time of all cores, how much one core alone would need. *Two threads* is an assumption, not a
measurement: a pair takes two cores and is {found["two_threads_are_faster_by"]:g} times as fast.

## What limits it

The order of the scores. A score needs all that can follow it, so the longest chain must be solved one after the other:

{" ".join(path)}

That takes {duration(found["critical_path_seconds"])}, however many cores there are; {found["enough_cores"]} reach it,
with a core for each pair. With two threads the best is {duration(best[2])} instead of {duration(best[1])}. So a match
cannot use 1,000 cores: they are of use for {1000 // found["enough_cores"]} matches at once (other rules, other
accuracies), which wait for nothing of each other, or if a pair is not solved on one core: the
blocks of a hand's tree are independent within an iteration (the program uses up to four threads for that), and a pair
could start from drafts of what follows it.

What travels is small: a task is told what the scores after it are worth, three numbers each, and sends back
{found["bytes_per_score"] / 1e6:.2g} MB per score. Workers share no files. A pair that is lost is solved again; the
result is the same to the last bit, on one core or on many."""
    return wrapped(text) + "\n"


@click.command()
@click.argument("match", required=False, type=click.Path(file_okay=False, path_type=Path))
@click.option("--times", type=click.Path(dir_okay=False, path_type=Path), help="Seconds by pair; is completed.")
@click.option("--two-threads", type=click.FloatRange(1, 2), default=1.8, show_default=True, help="Assumed speedup.")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="Default: results/VARIANT/match.")
def main(match: Path | None, times: Path | None, two_threads: float, folder: Path | None) -> None:
    """Plan how the MATCH would be solved on a cluster."""
    chosen = match_folder(preset(VARIANT)) if match is None else match
    if chosen is None:
        raise click.ClickException("there is no cache folder: give the folder of a match.")
    try:
        store = open_store(chosen)
        if not store.complete:
            raise click.ClickException(f"{chosen}: the match is not complete.")
        if folder is None and store.rules.hash != preset(VARIANT).hash:
            raise click.UsageError("another match needs --folder, lest the published results be overwritten.")
        where = ROOT / "results" / VARIANT / "match" if folder is None else folder
        where.mkdir(parents=True, exist_ok=True)
        seconds = read_times(times, store.rules) if times is not None and times.is_file() else {}

        def keep() -> None:
            if times is not None:
                write_atomically(times, (json.dumps({"seconds": as_json(seconds)}, indent=1) + "\n").encode())

        done, same = measure(store, seconds, keep)
        found = plan(store, {task: seconds[task] for task in graph(store.rules)}, two_threads)
        write_atomically(where / "plan.json", (json.dumps(found, indent=1) + "\n").encode())
        write_atomically(where / "plan.md", page(found).encode())
    except (StorageError, OSError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(
        f"{where / 'plan.md'}: {duration(found['core_seconds'])} on one core, at least "
        f"{duration(found['critical_path_seconds'])} on many; {same} of {done} pairs came out as stored"
    )


if __name__ == "__main__":
    main()
