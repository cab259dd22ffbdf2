"""A strategy of the essential game as one of the game with every action a public tree has: see `solver.essential`.

Its owner never raises after his card and never folds (unless the essential game has folds).  An opponent who plays a
card and then raises is answered as if he had raised first, and after "card, raise, accept" the play goes on as after
"raise, accept, card".  So the opponent gets from his new actions what he had without them, as long as more points are
never worse (else folding gains): an exact best response in the whole tree proves that.

As in `solver.lift` rows are matched program by program, for all lanes at once.  But one program's rows come from
several essential programs: what is to be done after "c, raise, accept" is found below another way to the card than
what is to be done after "c, pass".
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import numpy as np

from games.rules import PASS, Rules
from solver.cfr import lanes_array
from solver.kernels import LANES, LAST_CARDS, LAST_TRICK, NO_CARDS, SPLIT, TERMINAL
from solver.nodes import Ints, Node
from solver.strategy import Strategy
from solver.tree import Tree

NOTHING = -1  # no card has been played since the matched node


def every_action(hand: Rules, rules: Rules) -> Rules:
    """The rules of a hand with what `solver.essential` has left out of `rules` and a tree has: raises after the card,
    and folds."""
    return replace(hand, raise_when=rules.raise_when, fold=hand.fold or rules.fold)


def completed(strategy: Strategy, rules: Rules) -> Strategy:
    """A strategy of an essential hand of `rules`, with as many of its stakes as there are, in the tree of
    `every_action`; the strategy itself if nothing was left out.

    Raises TreeTooLargeError.
    """
    small = strategy.tree
    full = every_action(small.rules, rules)
    if full == small.rules:
        return strategy
    return _completion(small.rules, small.reduced, small.decider, small.match_from, full).strategy(strategy)


@lru_cache(maxsize=8)  # a match has a tree for each number of stakes, the largest of them several hundred megabytes
def _completion(
    essential: Rules, reduced: bool, decider: int | None, match_from: tuple[int, int] | None, full: Rules
) -> _Completion:
    small = Tree(essential, reduced, decider, match_from)
    return _Completion(small, Tree(full, decider=decider, match_from=match_from))


@dataclass(frozen=True, slots=True, eq=False)
class _Pattern:
    """Rows of one decision, from its first one on: `to` are copied from the rows `of`, and `ones` are 1; all others
    are 0."""

    to: Ints
    of: Ints
    ones: Ints

    @staticmethod
    def made(to: list[int], of: list[int], ones: list[int]) -> _Pattern:
        """From lists."""
        return _Pattern(*(np.array(rows, np.int64) for rows in (to, of, ones)))


@cache
def _turn(cards: tuple[int, ...], words: int, more: int) -> _Pattern:
    """A decision of holdings with so many cards to choose from: the small tree's words, `more` never said, cards."""
    to, of, ones = list[int](), list[int](), list[int]()
    here = there = 0
    for distinct in cards:
        actions = words + distinct
        rows = [here + a + (more if a >= words else 0) for a in range(actions)]
        if actions > 1:
            to += rows
            of += range(there, there + actions)
            there += actions
        elif more:  # the only action had no row
            ones += rows
        here += actions + more if actions + more > 1 else 0
    return _Pattern.made(to, of, ones)


@cache
def _pass(holdings: int, offers: int) -> _Pattern:
    """A decision of so many holdings after a card: no offer is made."""
    return _Pattern.made([], [], list(range(offers, holdings * (offers + 1), offers + 1)))


@cache
def _last_turn(classes: tuple[int, ...], words: int, more: int) -> _Pattern:
    """The answerer's turn in the last trick; classes: by the card that he holds, where the small tree has it."""
    to, of, ones = list[int](), list[int](), list[int]()
    count = words + more + 1
    for h, where in enumerate(classes):
        rows = [h * count + a for a in (*range(words), words + more)]
        if words:
            to += rows
            of += range(where * (words + 1), (where + 1) * (words + 1))
        elif more:
            ones += rows
    return _Pattern.made(to, of, ones)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Of a player and a program, from a block's base on: copied rows by the program they come from, and rows of 1."""

    copied: list[tuple[int, Ints, Ints]]  # program, to, of
    ones: Ints


class _Completion:
    """Which rows of the whole tree are copied from which of the small one."""

    def __init__(self, small: Tree, tree: Tree) -> None:
        self.small, self.tree = small, tree
        self._program = [n for n, program in enumerate(small.programs) for _ in range(program.start, program.stop)]
        # Where the small tree has a program's histories: block and lane.
        self._places: list[dict[tuple[int, ...], tuple[int, int]]] = [{} for _ in small.programs]
        for b, block in enumerate(small.blocks):
            self._places[block.program] |= {history: (b, lane) for lane, history in enumerate(block.histories)}
        distinct = tree.holdings.distinct
        self._cards = [tuple(distinct[k, : tree.size(k)].tolist()) for k in range(tree.rules.hand_size + 1)]
        self._same: dict[int, int] = {}  # SPLIT node -> the small tree's turn where the same is to be done
        # While a program is matched: (player, small program, pattern) -> first rows of decisions, there and here.
        self._found: dict[tuple[int, int, _Pattern], tuple[list[int], list[int]]]
        self._lane = 0  # in the small tree, of the program's first history before its last card
        self.rows: list[tuple[_Rows, _Rows]] = []  # by program
        for block in tree.blocks:
            if block.program == len(self.rows):  # its first one
                self.rows.append(self._match(block.histories[0], block.origin))

    def strategy(self, strategy: Strategy) -> Strategy:
        """The whole tree's strategy."""
        tree, small = self.tree, self.small
        result = lanes_array(tree.rows[0], np.float64), lanes_array(tree.rows[1], np.float64)
        for b, block in enumerate(tree.blocks):
            for p, rows in enumerate(self.rows[block.program]):
                base = tree.bases[b, p]
                for program, to, of in rows.copied:
                    other, lanes = self._lanes(program, block.histories)
                    part = strategy.probabilities[p][small.bases[other, p] + of]
                    result[p][base + to] = part if lanes is None else part[:, lanes]
                result[p][base + rows.ones] = 1.0
        return Strategy(tree, strategy.payoffs, result)

    def _lanes(self, program: int, histories: list[tuple[int, ...]]) -> tuple[int, Ints | None]:
        """The small tree's block with the first cards of some histories, and their lanes if they are not the same.

        There is one: histories of two cards are cut into lanes as here, and of one card there are no more than LANES.
        """
        places = self._places[program]
        depth = len(next(iter(places)))
        found = [places[history[:depth]] for history in histories]
        lanes = [lane for _, lane in found]
        if lanes == list(range(len(lanes))):
            return found[0][0], None
        return found[0][0], np.array(lanes + lanes[:1] * (LANES - len(lanes)), np.int64)

    # -- matching -----------------------------------------------------------------------------------------------------

    def _match(self, history: tuple[int, ...], origin: tuple[int, int] | None) -> tuple[_Rows, _Rows]:
        """The rows of the next program, one of whose histories is given."""
        start = self.tree.programs[len(self.rows)].start
        self._found = defaultdict(lambda: ([], []))
        if origin is None:
            self._follow(start, self.small.programs[0].start, NOTHING)
        else:
            self._lane = history[0] if len(history) == 2 else 0
            self._follow(start, self._same[origin[1]], history[-1])
        return self._collected(0), self._collected(1)

    def _collected(self, player: int) -> _Rows:
        to, of = defaultdict[int, list[Ints]](list), defaultdict[int, list[Ints]](list)
        ones = [np.zeros(0, np.int64)]
        for (owner, program, pattern), (here, there) in self._found.items():
            if owner == player:
                rows = np.array(here, np.int64)[:, None]
                to[program].append((rows + pattern.to).ravel())
                of[program].append((np.array(there, np.int64)[:, None] + pattern.of).ravel())
                ones.append((rows + pattern.ones).ravel())
        copied = [(program, np.concatenate(to[program]), np.concatenate(of[program])) for program in to]
        return _Rows([each for each in copied if len(each[1])], np.concatenate(ones))

    def _follow(self, i: int, j: int, card: int) -> None:
        """Match node i and all below: the play is at the small tree's node j, or where its turn has played `card`."""
        node = self.tree.nodes[i]
        if node.kind == TERMINAL:
            return
        if PASS in node.words:
            self._after_card(node, j, card)
            return
        if card != NOTHING:
            j = self._after(j, card)
        other = self.small.nodes[j]
        if other.kind == LAST_TRICK:
            self._last_trick(node, j, card)
            return
        n = len(other.words)
        self._copy(node, j, other.row, n)
        for edge in range(n):
            self._follow(node.children[edge], other.children[edge], NOTHING)
        if node.cards == SPLIT:
            self._same[i] = j
        elif node.cards != NO_CARDS:
            for c in range(self.tree.rules.n_ranks):
                self._follow(node.children[len(node.words) + c], j, c)

    def _after(self, j: int, card: int) -> int:
        """The small tree's node after a turn has played a card."""
        turn = self.small.nodes[j]
        if turn.cards == SPLIT:
            block, _ = self.small.entry[j, self._lane, card]
            return self.small.programs[self.small.blocks[block].program].start
        return turn.children[len(turn.words) + (0 if turn.cards == LAST_CARDS else card)]

    def _after_card(self, node: Node, j: int, card: int) -> None:
        """Who has played `card` at the turn j passes; if he raises nevertheless, it is as if he had at that turn."""
        turn, k, offers = self.small.nodes[j], node.spot.held[node.player], len(node.words) - 1
        self._add(node.player, j, _pass(self.tree.size(k), offers), node.row, 0)
        for edge in range(offers):
            answer, as_before = self.tree.nodes[node.children[edge]], turn.children[edge]
            self._copy(answer, as_before, self.small.nodes[as_before].row, len(answer.words))
            self._follow(answer.children[0], self.small.nodes[as_before].children[0], card)
        self._follow(node.children[offers], j, card)

    def _last_trick(self, node: Node, j: int, led: int) -> None:
        """The answerer's turn in the last trick, which the small tree has merged by outcome; node j."""
        last = self.small.nodes[j]
        n = len(last.words)
        outcomes = {1: 1, -1: 0, 0: last.ties}  # by who takes the trick: classes as in `solver.kernels`
        rules = self.tree.rules
        where = tuple(last.classes * led + outcomes[rules.trick_winner(led, c)] for c in range(rules.n_ranks))
        self._add(node.player, j, _last_turn(where, n, len(node.words) - n), node.row, last.row)
        for edge in range(n):
            answer = self.tree.nodes[node.children[edge]]
            self._copy(answer, j, last.row_other + 2 * (n * led + edge), len(answer.words))
            self._copy(self.tree.nodes[answer.children[0]], j, 0, 0)

    # -- rows ---------------------------------------------------------------------------------------------------------

    def _copy(self, node: Node, j: int, row: int, n: int) -> None:
        """A decision whose first `n` words and cards are played as at the small tree's node j, in its rows from `row`
        on."""
        k = node.spot.held[node.player]
        cards = self._cards[k] if node.cards != NO_CARDS else (0,) * self.tree.size(k)
        self._add(node.player, j, _turn(cards, n, len(node.words) - n), node.row, row)

    def _add(self, player: int, j: int, pattern: _Pattern, here: int, there: int) -> None:
        rows = self._found[player, self._program[j], pattern]
        rows[0].append(here)
        rows[1].append(there)
