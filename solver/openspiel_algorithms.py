"""OpenSpiel's algorithms as the comparison needs them (extra `openspiel`): nash_conv, CFR and sampling."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyspiel
from open_spiel.python import policy as policies
from open_spiel.python.algorithms import cfr, expected_game_score, exploitability

from games.openspiel import TrucGame, TrucState

Row = list[tuple[int, float]]
TABLE, MARK = "[SolverValuesTable]\n", "<~>"  # in a pickled solver, what comes before its numbers, and between them


class Remembered:
    """A small game that is walked once, in place of the game and as its initial state where OpenSpiel's Python
    algorithms want them.

    What they ask a state is asked here once: at each visit the state itself would be copied for every child.
    """

    def __init__(self, state: TrucState) -> None:
        self._history: str = state.history_str()
        self._player: int = state.current_player()
        self._payoffs = np.asarray(state.returns())
        self._key: str = state.information_state_string(self._player) if self._player >= 0 else ""
        self._outcomes: Row = state.chance_outcomes() if state.is_chance_node() else []
        self._children = {action: Remembered(state.child(action)) for action in state.legal_actions()}

    def new_initial_state(self) -> Remembered:
        return self

    def num_players(self) -> int:
        return len(self._payoffs)

    def history_str(self) -> str:
        return self._history

    def is_terminal(self) -> bool:
        return not self._children

    def is_chance_node(self) -> bool:
        return bool(self._outcomes)

    def is_simultaneous_node(self) -> bool:
        return False

    def chance_outcomes(self) -> Row:
        return self._outcomes

    def current_player(self) -> int:
        return self._player

    def information_state_string(self, player: int | None = None) -> str:
        return self._key

    def legal_actions(self, player: int | None = None) -> list[int]:
        return list(self._children)

    def child(self, action: int) -> Remembered:
        return self._children[action]

    def returns(self) -> npt.NDArray[np.float64]:
        return self._payoffs

    def player_return(self, player: int) -> float:
        return float(self._payoffs[player])


def worth(game: Remembered, table: policies.TabularPolicy) -> tuple[float, float]:
    """OpenSpiel's value of a policy to the leader, and its nash_conv."""
    value = expected_game_score.policy_value(game, [table, table])[0]
    return float(value), float(exploitability.nash_conv(game, table))


class CFR(cfr._CFRSolver):  # type: ignore[misc]
    """OpenSpiel's CFR or CFR+, in which positive regrets up to `zero` count as none.

    Many regrets are zero but for rounding, so without that two correct programs part ways.
    """

    def __init__(self, game: TrucGame, root: Remembered, plus: bool, zero: float) -> None:
        super().__init__(game, alternating_updates=True, linear_averaging=plus, regret_matching_plus=plus)
        self._root_node = root
        self._zero = zero

    def evaluate_and_update_policy(self) -> None:
        """One iteration: OpenSpiel's, but for what regrets are matched."""
        self._iteration += 1
        for player in range(2):
            self._compute_counterfactual_regret_for_player(self._root_node, None, np.ones(3), player)
            if self._regret_matching_plus:
                cfr._apply_regret_matching_plus_reset(self._info_state_nodes)
            for key, node in self._info_state_nodes.items():
                counted = {a: regret if regret > self._zero else 0.0 for a, regret in node.cumulative_regret.items()}
                if counted:
                    for action, share in cfr._regret_matching(counted, node.legal_actions).items():
                        self._current_policy.policy_for_key(key)[action] = share


def sampled_table(solver: pyspiel.ExternalSamplingMCCFRSolver) -> tuple[dict[str, Row], int]:
    """A solver's average policy as sums of policies by information state, and how many states it has met.

    Left out are states with equal sums: they play as a state does that was never met.  The policy object that OpenSpiel
    hands out only answers for states one asks about, so the sums are read from the text that it pickles:
    `key<~>actions;regrets;sums of policies;current policy<~>key<~>...`, numbers in hexadecimal.
    """
    text: str = solver.__getstate__()
    table: dict[str, Row] = {}
    met, at = 0, text.index(TABLE) + len(TABLE)
    while at < len(text):
        middle = text.index(MARK, at)
        stop = text.find(MARK, middle + len(MARK))
        stop = len(text) if stop < 0 else stop
        actions, _, sums, _ = text[middle + len(MARK) : stop].split(";")
        numbers = sums.split(",")
        if len(set(numbers)) > 1:
            weights = map(float.fromhex, numbers)
            table[text[at:middle]] = list(zip(map(int, actions.split(",")), weights, strict=True))
        met, at = met + 1, stop + len(MARK)
    return table, met
