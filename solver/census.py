"""The public numbers of a game, counted from its tree.

A line of play counts if some deal allows it: no rank is played more often than the deck has it.  An information state
counts if the cards held exist beside those on the table; the opponent's then always do, for a deck has two hands.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from games.cards import deal_weights
from games.rules import ACCEPT, DECLINE, FOLD, PASS, REFUSE
from solver.kernels import DECISION, LAST_TRICK
from solver.nodes import Ints, Node
from solver.tree import Tree

TURN, ANSWER, RAISED, AFTER, OPENING = range(5)
"""Kinds of decision: a turn, an answer to a raise, a turn after an accepted raise, a raise after the card or none, and
whether the hand is played at all."""


@dataclass(frozen=True, slots=True)
class Census:
    """How large a game is.

    A remainder is a raise here.
    turns, raises, ends: by turn from 1 to 2 * hand_size: turn decisions, raises that are legal at them (each brings an
    answer, and a turn after it is accepted), and lines that end with this card.
    after, after_raises: likewise decisions after this card, and raises that are legal at them (each brings an answer).
    folded: lines that end with a fold; opening: decisions before the first turn (each ends a line if declined).
    hands: different hands by rank; rank_deals, card_deals: pairs of hands, by rank and by card.
    turn_states, answer_states, raised_states, after_states, opening_states: information states of (leader, dealer) at
    turns, at answers, at turns after an accepted raise, after a card, and before the first turn; choices: those with
    two actions or more.
    stored_states, stored_regrets: what a solver keeps for (leader, dealer): states with a choice, those of the last
    trick merged by outcome, impossible ones included, and their actions.
    """

    turns: tuple[int, ...]
    raises: tuple[int, ...]
    ends: tuple[int, ...]
    after: tuple[int, ...]
    after_raises: tuple[int, ...]
    folded: int
    opening: int
    hands: int
    rank_deals: int
    card_deals: int
    turn_states: tuple[int, ...]
    answer_states: tuple[int, ...]
    raised_states: tuple[int, ...]
    after_states: tuple[int, ...]
    opening_states: tuple[int, ...]
    choices: tuple[int, ...]
    stored_states: tuple[int, ...]
    stored_regrets: tuple[int, ...]

    @property
    def decisions(self) -> int:
        """Public decision nodes."""
        return self.opening + sum(self.turns) + 2 * sum(self.raises) + sum(self.after) + sum(self.after_raises)

    @property
    def refused(self) -> int:
        """Lines that end with a refusal: whatever may be raised may be refused."""
        return sum(self.raises) + sum(self.after_raises)

    @property
    def played_out(self) -> int:
        """Lines that end with a card."""
        return sum(self.ends)

    @property
    def information_states(self) -> int:
        """Information states of both players."""
        return sum(self.states_of)

    @property
    def states_of(self) -> tuple[int, int]:
        """Information states of (leader, dealer)."""
        kinds = self.turn_states, self.answer_states, self.raised_states, self.after_states, self.opening_states
        return sum(kind[0] for kind in kinds), sum(kind[1] for kind in kinds)


def census(tree: Tree) -> Census:
    """Count a game; a reduced tree and a full one differ only in what is stored."""
    tally, deals = _Tally(tree), deal_weights(tree.rules)
    blocks = [(tree.programs[block.program].states, len(block.histories)) for block in tree.blocks]
    return Census(
        turns=tuple(tally.turns.tolist()),
        raises=tuple(tally.raises.tolist()),
        ends=tuple(tally.ends.tolist()),
        after=tuple(tally.after.tolist()),
        after_raises=tuple(tally.after_raises.tolist()),
        folded=tally.folded,
        opening=tally.opening,
        hands=tree.size(tree.rules.hand_size),
        rank_deals=int(np.count_nonzero(deals)),
        card_deals=int(deals.sum()),
        turn_states=tuple(tally.states[TURN].tolist()),
        answer_states=tuple(tally.states[ANSWER].tolist()),
        raised_states=tuple(tally.states[RAISED].tolist()),
        after_states=tuple(tally.states[AFTER].tolist()),
        opening_states=tuple(tally.states[OPENING].tolist()),
        choices=tuple(tally.choices.tolist()),
        stored_states=tuple(sum(len(states[p]) * lanes for states, lanes in blocks) for p in range(2)),
        stored_regrets=tuple(sum(sum(states[p]) * lanes for states, lanes in blocks) for p in range(2)),
    )


class _Tally:
    """Counts of a tree's programs, added up."""

    def __init__(self, tree: Tree) -> None:
        self.turns, self.raises, self.ends, self.after, self.after_raises = np.zeros(
            (5, 2 * tree.rules.hand_size), np.int64
        )
        self.folded = self.opening = 0
        self.states = np.zeros((5, 2), np.int64)  # kind of decision, player
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
            if last:
                offers = len(node.words)
                self._decide(TURN, player, 1, turn + 1, at, offers)
                for _ in range(offers):
                    self._decide(ANSWER, 1 - player, 0, turn + 1, at, 2)
                    self._decide(RAISED, player, 1, turn + 1, at, 0)
                self.ends[turn + 1] += (1 + offers) * _holdings(at, 1)
            elif node.kind == DECISION:
                raises = len(node.words) - (FOLD in node.words) - (PASS in node.words)
                self._decide(_kind(tree, node), player, held[player], turn, at, len(node.words), raises)
            else:
                # A hand that the first card of a program's histories has decided has no parent in the program.
                words = tree.nodes[node.parent].words if node.parent >= 0 else ()
                if node.parent < 0 or node.edge >= len(words):
                    self.ends[turn - 1] += len(at)
                elif words[node.edge] == FOLD:
                    self.folded += len(at)

    def _decide(
        self, kind: int, player: int, held: int, turn: int, left: Ints, words: int, raises: int | None = None
    ) -> None:
        """Count a decision before or after the card of a turn (from 0), with so many public actions, raises (by default
        all of them) among them."""
        if kind in (TURN, AFTER):
            decisions, legal = (self.turns, self.raises) if kind == TURN else (self.after, self.after_raises)
            at = turn if kind == TURN else turn - 1
            decisions[at] += len(left)
            legal[at] += len(left) * (words if raises is None else raises)
        self.opening += len(left) if kind == OPENING else 0
        possible = _holdings(left, held)
        self.states[kind, player] += possible
        # Without a public action, who holds a single rank has nothing to choose.
        self.choices[player] += possible - (0 if words else np.count_nonzero(left >= held))


def _kind(tree: Tree, node: Node) -> int:
    """What a decision is about."""
    if node.words == (ACCEPT, REFUSE):
        return ANSWER
    if PASS in node.words:
        return AFTER
    if DECLINE in node.words:
        return OPENING
    above = tree.nodes[node.parent] if node.parent >= 0 else node
    # After a card an accepted raise leads to the next turn.
    raised = above.words == (ACCEPT, REFUSE) and PASS not in tree.nodes[above.parent].words
    return RAISED if raised else TURN


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
