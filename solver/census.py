"""The public numbers of a game, counted from its tree.

A line of play counts if some deal allows it: no rank is played more often than the deck has it.  An information state
counts if the cards held exist beside those on the table; the opponent's then always do, for a deck has two hands.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from games.cards import deal_weights
from games.rules import ACCEPT, REFUSE
from solver.kernels import DECISION, LAST_TRICK
from solver.tree import Ints, Tree

TURN, ANSWER, RAISED = 0, 1, 2  # kinds of decision: a turn, an answer to a raise, a turn after an accepted raise


@dataclass(frozen=True, slots=True)
class Census:
    """How large a game is.

    turns, raises, ends: by turn from 1 to 2 * hand_size: turn decisions, those where a raise is legal (each brings an
    answer, and a turn after it is accepted), and lines that end with this card.
    hands: different hands by rank; rank_deals, card_deals: pairs of hands, by rank and by card.
    turn_states, answer_states, raised_states: information states of (leader, dealer) at turns, at answers, and at
    turns after an accepted raise; choices: those with two actions or more.
    stored_states, stored_regrets: what a solver keeps for (leader, dealer): states with a choice, those of the last
    trick merged by outcome, impossible ones included, and their actions.
    """

    turns: tuple[int, ...]
    raises: tuple[int, ...]
    ends: tuple[int, ...]
    hands: int
    rank_deals: int
    card_deals: int
    turn_states: tuple[int, ...]
    answer_states: tuple[int, ...]
    raised_states: tuple[int, ...]
    choices: tuple[int, ...]
    stored_states: tuple[int, ...]
    stored_regrets: tuple[int, ...]

    @property
    def decisions(self) -> int:
        """Public decision nodes."""
        return sum(self.turns) + 2 * sum(self.raises)

    @property
    def refused(self) -> int:
        """Lines that end with a refusal: whatever may be raised may be refused."""
        return sum(self.raises)

    @property
    def played_out(self) -> int:
        """Lines that end with a card."""
        return sum(self.ends)

    @property
    def information_states(self) -> int:
        """Information states of both players."""
        return sum(self.turn_states) + sum(self.answer_states) + sum(self.raised_states)


def census(tree: Tree) -> Census:
    """Count a game; a reduced tree and a full one differ only in what is stored."""
    tally, deals = _Tally(tree), deal_weights(tree.rules)
    blocks = [(tree.programs[block.program].states, len(block.histories)) for block in tree.blocks]
    return Census(
        turns=tuple(tally.turns.tolist()),
        raises=tuple(tally.raises.tolist()),
        ends=tuple(tally.ends.tolist()),
        hands=tree.size(tree.rules.hand_size),
        rank_deals=int(np.count_nonzero(deals)),
        card_deals=int(deals.sum()),
        turn_states=tuple(tally.states[TURN].tolist()),
        answer_states=tuple(tally.states[ANSWER].tolist()),
        raised_states=tuple(tally.states[RAISED].tolist()),
        choices=tuple(tally.choices.tolist()),
        stored_states=tuple(sum(len(states[p]) * lanes for states, lanes in blocks) for p in range(2)),
        stored_regrets=tuple(sum(sum(states[p]) * lanes for states, lanes in blocks) for p in range(2)),
    )


class _Tally:
    """Counts of a tree's programs, added up."""

    def __init__(self, tree: Tree) -> None:
        self.turns, self.raises, self.ends = np.zeros((3, 2 * tree.rules.hand_size), np.int64)
        self.states = np.zeros((3, 2), np.int64)  # kind of decision, player
        self.choices = np.zeros(2, np.int64)
        for number in range(len(tree.programs)):
            self._add(tree, number)

    def _add(self, tree: Tree, number: int) -> None:
        """Count what all lanes of a program's blocks have below them."""
        rules, program = tree.rules, tree.programs[number]
        before = [history for block in tree.blocks if block.program == number for history in block.histories]
        left = rules.copies - np.array([[history.count(rank) for rank in range(rules.n_ranks)] for history in before])
        within = np.zeros((program.stop - program.start, rules.n_ranks), np.int64)  # cards played in the program
        lines: dict[tuple[bytes, bool], Ints] = {}  # copies left in each that some deal allows
        for node, cards in zip(tree.nodes[program.start : program.stop], within, strict=True):
            if node.parent >= 0:
                cards += within[node.parent - program.start]
            if node.card >= 0:
                cards[node.card] += 1
            last = node.kind == LAST_TRICK
            key = cards.tobytes(), last  # nodes differ more in raises than in cards
            if key not in lines:
                # The card led to the last trick, any that is left, is part of its node: one line each.
                led = np.eye(rules.n_ranks, dtype=np.int64) if last else np.zeros((1, rules.n_ranks), np.int64)
                after = (left[:, None] - cards - led).reshape(-1, rules.n_ranks)
                lines[key] = after[(after >= 0).all(axis=1)]
            at, player, held = lines[key], node.player, node.spot.held
            turn = 2 * rules.hand_size - sum(held)  # from 0: the turn of the next card
            answered = node.parent >= 0 and tree.nodes[node.parent].words == (ACCEPT, REFUSE)
            if last:
                self._decide(TURN, player, 1, turn + 1, at, int(node.raise_legal))
                if node.raise_legal:
                    self._decide(ANSWER, 1 - player, 0, turn + 1, at, 2)
                    self._decide(RAISED, player, 1, turn + 1, at, 0)
                self.ends[turn + 1] += (1 + node.raise_legal) * _holdings(at, 1)
            elif node.kind == DECISION:
                kind = ANSWER if node.words == (ACCEPT, REFUSE) else RAISED if answered else TURN
                self._decide(kind, player, held[player], turn, at, len(node.words))
            elif not answered:  # an end by a card
                self.ends[turn - 1] += len(at)

    def _decide(self, kind: int, player: int, held: int, turn: int, left: Ints, words: int) -> None:
        """Count a decision with `words` public actions (0 or 1 at a turn, where a card may be played; else 2)."""
        if kind == TURN:
            self.turns[turn] += len(left)
            self.raises[turn] += len(left) * words
        possible = _holdings(left, held)
        self.states[kind, player] += possible
        # Without a public action, who holds a single rank has nothing to choose.
        self.choices[player] += possible - (0 if words else np.count_nonzero(left >= held))


def _holdings(left: Ints, size: int) -> int:
    """Number of multisets of `size` cards that `left`, copies by rank of shape (lines, ranks), allows, in all lines."""
    if size < 2:
        return int(np.count_nonzero(left)) if size else len(left)
    ways = np.zeros((size + 1, len(left)), np.int64)  # by number of cards, with the ranks so far
    ways[0] = 1
    for copies in left.T:
        for k in range(size, 0, -1):
            for a in range(1, k + 1):
                ways[k] += ways[k - a] * (copies >= a)
    return int(ways[size].sum())
