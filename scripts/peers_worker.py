"""One solver at work on a small deck, in a process of its own: what `scripts/peers.py` starts.

    python scripts/peers_worker.py SOLVER RULES EFG

RULES and EFG are files: the deck as a rule file, and as a game of Gambit's format.
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
import time
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote

from games.openspiel_actions import Actions
from games.rules import Rules
from games.state import State

# Nothing of the solver is imported up here: numba's 100 MiB would count as the other solvers' memory.

MIB = 2**20 if sys.platform == "darwin" else 2**10  # in the units of ru_maxrss
MODULES = {"openspiel": ("pyspiel",), "liteefg": ("LiteEFG", "games.openspiel")}

Policy = list[tuple[str, list[tuple[int, float]]]]
"""For each information state of `games.openspiel` the actions there and their weights."""


class Player(Protocol):
    """A solver at work on one deck."""

    def run(self, iterations: int) -> None:
        """Iterate."""

    def result(self) -> dict[str, Any]:
        """Its average strategy as {"policy": Policy}, or the {"exploitability": number} of that."""


class OpenSpiel:
    """`pyspiel.CFRPlusSolver` on `pyspiel.load_efg_game`, so that it walks C++ states and never calls Python."""

    def __init__(self, rules: Rules, efg: Path) -> None:
        import pyspiel

        text = efg.read_text()
        self.solver = pyspiel.CFRPlusSolver(pyspiel.load_efg_game(text))
        # It numbers the players' actions as they come up in the file.
        lists = re.findall(r"^p .*{(.*)}", text, re.M)
        words = dict.fromkeys(word for actions in lists for word in re.findall('"(.*?)"', actions))
        self.numbers = list(map(Actions(rules, remainder=False).words.index, words))

    def run(self, iterations: int) -> None:
        """Iterate."""
        for _ in range(iterations):
            self.solver.evaluate_and_update_policy()

    def result(self) -> dict[str, Any]:
        """The policy; `efg_game` puts three numbers before the name of an information state."""
        table = self.solver.tabular_average_policy().policy_table().items()
        return {
            "policy": [(key.split("-", 3)[3], [(self.numbers[a], weight) for a, weight in row]) for key, row in table]
        }


class LiteEFG:
    """LiteEFG's own CFR+ on its `OpenSpielEnv` of the Python game, which it converts once."""

    def __init__(self, rules: Rules, efg: Path) -> None:
        import LiteEFG as lite  # noqa: N813
        from LiteEFG.baselines import CFRplus

        from games.openspiel import load

        os.environ["HOME"] = str(efg.parent)  # it keeps converted games in the home folder
        lite.set_threads(1)
        self.rules, self.lite = rules, lite
        self.env = lite.OpenSpielEnv(load(rules), regenerate=True)
        self.graph = CFRplus.graph()
        self.env.set_graph(self.graph)

    def run(self, iterations: int) -> None:
        """Iterate."""
        for _ in range(iterations):
            self.graph.update_graph(self.env)
            self.env.update_strategy(self.graph.current_strategy())

    def result(self) -> dict[str, Any]:
        """The policy, without making a table of OpenSpiel's, which takes seconds."""
        strategy, found = self.graph.current_strategy(), []
        for player in (1, 2):
            for name, row in self.lite.FileEnv.get_strategy(self.env, player, strategy, "linear-avg-iterate"):
                text = unquote(name.split("__", 1)[1])
                found.append((text, list(zip(legal_actions(self.rules, text), row, strict=True))))
        return {"policy": found}


def legal_actions(rules: Rules, text: str) -> list[int]:
    """The actions of an information state of `games.openspiel`, a hand in points, by number in ascending order."""
    holder, _, line = text.partition("]")
    held = holder.partition("[")[2].split()
    legal = State.public(rules).follow(line.split()).legal_actions()
    words = Actions(rules, remainder=False).words
    return sorted(words.index(action) for action in legal if action not in rules.ranks or action in held)


class Ours:
    """This solver."""

    def __init__(self, rules: Rules, algorithm: str, dtype: str) -> None:
        from solver.best_response import Evaluator
        from solver.cfr import Solver
        from solver.tree import Tree

        self.solver = Solver(Tree(rules), algorithm=algorithm, dtype=dtype)
        self.evaluator = Evaluator(self.solver.tree, self.solver.payoffs)
        self.run = self.solver.step

    def result(self) -> dict[str, Any]:
        """The exploitability."""
        return {"exploitability": self.evaluator(self.solver.average).exploitability}


def player(name: str, rules: Rules, efg: Path) -> Player:
    """A solver by its key in SOLVERS.  Raises ImportError."""
    if name == "openspiel":
        return OpenSpiel(rules, efg)
    if name == "liteefg":
        return LiteEFG(rules, efg)
    from solver.cfr import DEFAULT_ALGORITHM

    return Ours(rules, *(("cfr+", "float64") if name == "ours-cfr+" else (DEFAULT_ALGORITHM, "float32")))


def peak() -> float:
    """The most memory this program has had, in MiB."""
    try:  # what getrusage tells includes the process that started this one
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 2**10
    except (OSError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MIB


def work(name: str, rules: Rules, efg: Path) -> None:
    """A process's work: for each number read from stdin that many iterations, for 0 the result; answers are JSON."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the solvers print

    def answer(**values: Any) -> None:
        answers.write(json.dumps(values) + "\n")
        answers.flush()

    try:
        for module in MODULES.get(name, ("solver.best_response",)):
            __import__(module)
    except ImportError as error:
        answer(missing=f"{type(error).__name__}: {error}")
        return
    before, start = peak(), time.perf_counter()
    it = player(name, rules, efg)
    made = time.perf_counter() - start
    it.run(1)
    answer(making_seconds=made, import_mib=before, peak_mib=peak())
    for line in sys.stdin:
        start = time.perf_counter()
        if iterations := int(line):
            it.run(iterations)
            answer(seconds=time.perf_counter() - start)
        else:
            answer(**it.result())


if __name__ == "__main__":
    work(sys.argv[1], Rules.from_toml(Path(sys.argv[2]).read_text(), sys.argv[2]), Path(sys.argv[3]))
