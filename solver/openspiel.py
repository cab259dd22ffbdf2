"""Strategies to OpenSpiel and back (extra `openspiel`).

OpenSpiel names an information state of `games.openspiel` by a text, `leader [3 8] raise accept A`: the player, the
cards still held, the line.  The tree has it at the line's position, by the cards still held, with the actions in
another order.  So each way is a look-up, but for the answerer's last card, where one state of the tree stands for all
holdings with the same outcome (`solver.kernels`, "The last trick").  Out of the tree each of them gets what the state
has; into it goes their mean, weighted by how likely the answerer holds each of them there: his own way to the line
times the deal.  By then every other card is on the table, so nobody's expectation or best response changes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from typing import cast

import numpy as np
from open_spiel.python import policy as policies

from games.cards import counts, hands
from games.openspiel import PLAYERS, TrucGame, TrucState, load
from games.openspiel_actions import Actions
from games.rules import Rules, shown
from solver.cfr import Floats, Payoffs
from solver.kernels import LANES, LAST_TRICK
from solver.strategy import Decision, LineError, Position, Strategy, actions, child, root, rows_at
from solver.tree import Tree

Line = tuple[str, ...]
Table = Mapping[str, Sequence[tuple[int, float]]]
"""For each information state the actions' weights, as OpenSpiel's tables of policies have them."""

CACHED_LINES = 2**16


class ExchangeError(ValueError):
    """A policy of another game, or none at all; the message is one sentence."""


def load_game(rules: Rules, payoffs: Payoffs | None = None, decider: int | None = None) -> TrucGame:
    """The OpenSpiel game of a rule set, by default in points.

    payoffs: of the ladder's stakes, then of the match if there is a remainder, then of a hand declined if somebody
    decides about that; decider: who does, as for `solver.tree.Tree`.  Raises `games.rules.RulesError`.
    """
    standing = "none" if decider is None else PLAYERS[decider]
    if payoffs is None or (payoffs == Payoffs.points(rules) and decider is None):
        return load(rules, before_target=standing)
    n = len(rules.ladder)
    win0, win1 = payoffs.win0, payoffs.win1
    match = (win0[n], win1[n]) if rules.remainder else None
    declined = None if decider is None else win0[-1]
    return load(rules, win0[:n], win1[:n], payoffs.tie, match, declined, standing)


class _Names:
    """One rule set's words and OpenSpiel's numbers for them, and the order of holdings in the tree."""

    def __init__(self, rules: Rules, words: Sequence[str]) -> None:
        """words: of all actions, by OpenSpiel's numbers."""
        self.rules = rules
        self.word = dict(enumerate(words))
        self.action = {word: number for number, word in self.word.items()}
        self.rank = {rank: i for i, rank in enumerate(rules.ranks)}
        self.holding = [  # by number of cards: how many cards of each rank, as bytes -> place
            {
                row.tobytes(): i
                for i, row in enumerate(counts(hands(len(rules.ranks), k, rules.copies), len(rules.ranks)))
            }
            for k in range(rules.hand_size + 1)
        ]

    def held(self, text: str) -> bytes:
        """Cards as text, as the number of each rank.  Raises KeyError."""
        numbers = bytearray(len(self.rank))
        for rank in text.split():
            numbers[self.rank[rank]] += 1
        return bytes(numbers)


class OpenSpielPolicy(policies.Policy):  # type: ignore[misc]  # OpenSpiel is untyped
    """A strategy as a policy of OpenSpiel, which asks it at one state after another."""

    def __init__(self, strategy: Strategy, game: TrucGame) -> None:
        """Raises ExchangeError if the strategy is for another rule set."""
        super().__init__(game, list(range(len(PLAYERS))))
        if not same_hand(game, strategy.tree):
            raise ExchangeError(f"the strategy is for {strategy.tree.rules.name!r}, the game has other rules")
        self.strategy = strategy
        self.names = _Names(strategy.tree.rules, game.actions.words)
        self.position = lru_cache(maxsize=CACHED_LINES)(self._position)

    def _position(self, line: bytes) -> Position:
        """The tree's decision after OpenSpiel's actions.  Raises LineError."""
        tree = self.strategy.tree
        if not line:
            return root(tree)
        after = child(tree, self.position(line[:-1]), self.names.word[line[-1]])
        if after is None:
            raise LineError(f"the hand is over after {' '.join(map(self.names.word.__getitem__, line))!r}")
        return after

    def decision(self, state: TrucState) -> tuple[Decision, int]:
        """The tree's decision at a state where a player acts, and the row of the cards held there."""
        found = rows_at(self.strategy.tree, self.position(state.line), self.strategy.probabilities)
        held = state.hand(found.player)
        return found, self.names.holding[sum(held)][held]

    def action_probabilities(self, state: TrucState, player_id: int | None = None) -> dict[int, float]:
        """The acting player's legal actions, by the tree's rules, and their probabilities."""
        return self.shares(*self.decision(state))

    def shares(self, decision: Decision, row: int) -> dict[int, float]:
        """The same from a decision and a row of it."""
        shares = zip(decision.actions, decision.legal[row], decision.probabilities[row].tolist(), strict=True)
        return {self.names.action[action]: share for action, legal, share in shares if legal}


def same_hand(game: TrucGame, tree: Tree) -> bool:
    """Whether a game, where it stands in its match, has the hand of a tree: its actions and stakes."""
    rules, decider = game.rules, game.decider
    if not game.actions.remainder:  # of a hand in points
        rules = replace(rules, remainder=False)
    if rules.decision_before_target and game.payoffs.before_target != "none":
        rules = replace(rules, ladder=rules.ladder[-1:], one_card=False)  # and there are no raises
    return decider == tree.decider and tree.match_from is None and _hand(rules) == _hand(tree.rules)


def _hand(rules: Rules) -> dict[str, object]:
    """What makes a hand of a rule set; who decides before the target is told apart."""
    refused = rules.remainder_refused if rules.remainder else "stake"
    fields = asdict(replace(rules, remainder_refused=refused, decision_before_target=False))
    return {key: value for key, value in fields.items() if key not in ("name", "target")}


def tabular(
    strategy: Strategy, game: TrucGame, template: policies.TabularPolicy | None = None
) -> policies.TabularPolicy:
    """A strategy as a table of all information states, for small decks; a `template` of the game saves listing them."""
    policy = OpenSpielPolicy(strategy, game)
    table = (template or policies.TabularPolicy(game)).__copy__()
    table.action_probability_array[:] = 0
    for row, state in zip(table.action_probability_array, table.states, strict=True):
        shares = policy.action_probabilities(state)
        row[list(shares)] = list(shares.values())
    return table


def imported(tree: Tree, policy: policies.Policy | Table, payoffs: Payoffs | None = None) -> Strategy:
    """A policy of OpenSpiel as a strategy.

    policy: a table by information state (weights in any measure; a state that is missing, or has none, plays
    uniformly), a `TabularPolicy`, or any other policy of a deck small enough to list its states.  payoffs: those of the
    strategy, by default points.  Raises ExchangeError.
    """
    game = getattr(policy, "game", None)
    if isinstance(game, TrucGame) and not same_hand(game, tree):
        raise ExchangeError(f"the tree is of {tree.rules.name!r}, the policy's game has other rules")
    words = game.actions.words if isinstance(game, TrucGame) else Actions(tree.rules, tree.rules.remainder).words
    lines: dict[str, list[tuple[str, Sequence[tuple[int, float]]]]] = {}
    for text, weights in _table(policy).items():
        holder, _, line = text.partition("]")
        lines.setdefault(line, []).append((holder, weights))
    reader = _Reader(tree, Strategy.uniform(tree, payoffs), words)
    for text in sorted(lines, key=str.split):  # whatever leads to a line comes before it
        try:
            reader.read(tuple(text.split()), lines[text])
        except (LineError, KeyError) as error:
            raise ExchangeError(f"the game has no decision {shown(lines[text][0][0] + ']' + text)}") from error
    return reader.strategy


def _table(policy: policies.Policy | Table) -> Table:
    if isinstance(policy, Mapping):
        return policy
    if not isinstance(policy, policies.TabularPolicy):
        policy = policy.to_tabular()
    return cast(Table, policy.to_dict())


class _Reader:
    """Reads information states into a strategy, line by line, in an order that has prefixes first."""

    def __init__(self, tree: Tree, strategy: Strategy, words: Sequence[str]) -> None:
        self.tree = tree
        self.strategy = strategy
        self.names = _Names(tree.rules, words)
        # Read in place of probabilities, these tell in which row of the tree's arrays each probability is.
        numbers = [np.broadcast_to(np.arange(float(rows))[:, None], (rows, LANES)) for rows in tree.rows]
        self.rows = numbers[0], numbers[1]
        self.position = lru_cache(maxsize=CACHED_LINES)(self._position)
        self.reach = lru_cache(maxsize=CACHED_LINES)(self._reach)

    def _position(self, line: Line) -> Position:
        if not line:
            return root(self.tree)
        after = child(self.tree, self.position(line[:-1]), line[-1])
        if after is None:
            raise LineError("the hand is over")
        return after

    def read(self, line: Line, states: list[tuple[str, Sequence[tuple[int, float]]]]) -> None:
        """The states after a line, each as the player with the cards (`leader [3 8`), and its weights.

        Raises LineError, KeyError, ExchangeError.
        """
        position = self.position(line)
        rows = rows_at(self.tree, position, self.rows)
        numbers = [self.names.action[action] for action in rows.actions]
        offers = self.tree.nodes[position.node].words
        merging = self.tree.nodes[position.node].kind == LAST_TRICK and position.stage == 0 and len(offers) > 0
        mixed = np.full((len(rows.holdings), len(offers) + 1), 1 / (len(offers) + 1))
        column = self.strategy.probabilities[rows.player][:, position.lane]
        for holder, weights in states:
            player, _, cards = holder.partition(" [")
            held = self.names.held(cards)
            row = self.names.holding[sum(held)].get(held, -1) if sum(held) == rows.holdings.shape[1] else -1
            if player != PLAYERS[rows.player] or row < 0:
                raise ExchangeError(f"{shown(holder + ']')} is not who acts after {shown(' '.join(line))}")
            given = {action: weight for action, weight in weights if weight}
            legal = [number for number, possible in zip(numbers, rows.legal[row], strict=True) if possible]
            if not given.keys() <= set(legal) or not all(0 < weight < math.inf for weight in given.values()):
                raise ExchangeError(f"the weights {shown(given)} are none of the actions {legal} of {shown(holder)}]")
            if len(legal) == 1 or not given:
                continue
            shares = np.array([given.get(action, 0.0) for action in legal])
            shares /= shares.sum()
            if merging:
                mixed[row] = shares
            else:
                column[rows.probabilities[row][rows.legal[row]].astype(np.int64)] = shares
        if merging:
            self._merge(line, rows, mixed, column)

    def _merge(self, line: Line, rows: Decision, mixed: Floats, column: Floats) -> None:
        """The answerer's plays with each last card, (raises, play), as those of the cards with the same outcome."""
        deal = self._deal(line, rows.player)
        likely = deal * self.reach(line, rows.player)
        first = rows.probabilities[:, 0].astype(np.int64)
        for row in np.unique(first):
            alike = first == row
            weight = (likely if likely[alike].any() else deal)[alike]
            if weight.any():
                column[row : row + mixed.shape[1]] = weight @ mixed[alike] / weight.sum()

    def _reach(self, line: Line, player: int) -> Floats:
        """How likely a player's own actions lead to a line, by his holding there."""
        tree = self.tree
        if not line:
            return np.ones(tree.size(tree.rules.hand_size))
        before = self.reach(line[:-1], player)
        decision = rows_at(tree, self.position(line[:-1]), self.strategy.probabilities)
        if decision.player != player:
            return before
        action = decision.actions.index(line[-1])
        after: Floats = before * decision.probabilities[:, action]
        if line[-1] not in self.names.rank:
            return after
        k = decision.holdings.shape[1] - 1
        more = tree.holdings.more[k, : tree.size(k), self.names.rank[line[-1]]]
        return np.where(more >= 0, after[more], 0.0)

    def _deal(self, line: Line, player: int) -> Floats:
        """How many ways there are to deal each last card to a player, given all others, but for a common factor.

        A hand with b cards of a rank, of which the opponent has left x, is one of C(x, b); C(x, b+1) / C(x, b) is
        (x - b) / (b + 1).
        """
        rules = self.tree.rules
        left, own = np.full(rules.n_ranks, float(rules.copies)), np.zeros(rules.n_ranks)
        for i, action in enumerate(line):
            if action in self.names.rank:
                mine = actions(self.tree, self.position(line[:i]))[0] == player
                own[self.names.rank[action]] += mine
                left[self.names.rank[action]] -= not mine
        return np.maximum(left - own, 0) / (own + 1)
