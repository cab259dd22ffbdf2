"""One exact walk over a whole public tree with both players' strategies, for `scripts/insights.py` and
`scripts/variant_insights.py`.

It is one of `solver.walk`, where W is over the number of deals, so that probabilities come out.  Reaches go down, the
values of both come up, so at each public decision everything is known at once: how probable it is with each holding,
what is played, what each action is worth, how often a raise is refused, and the chance to win.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from games.cards import hands
from games.rules import ACCEPT, DECLINE, FOLD, PLAY, RAISE, REFUSE, REMAINDER
from solver import walk
from solver.kernels import NO_CARDS, TERMINAL
from solver.nodes import Node, after_raise
from solver.strategy import Strategy
from solver.walk import Array, Histories, Mask

EXPECT, BEST = 0, 1  # modes, then one for each rule of `walk`


@dataclass(frozen=True, slots=True)
class Record:
    """A public decision in all its L lanes, with H holdings and A actions of the player to act.

    node: of the tree; stage: see `solver.strategy.Position`, -1 before the last answer; turn: number of the card to be
    played next, from 1; level: of the stake accepted so far; results: of the tricks so far; led: shape (L,), the card
    that is to be answered, None if none is; actions: words, then the ranks if a card may be played; offers: how many
    words; ties: who wins by a tie of the last trick (`Node.ties`).

    holdings: (H, k); legal: (H, A); reach, against: (H, L), their product is the probability of line and holding;
    sigma: (H, A, L), what is played.  As sums over the opponent's holdings, so to be divided by `against`: ev:
    (H, A, L), if the player goes on as well as he can; win: (H, A, L), chance to win if nobody refuses any more, 0 for
    refusing; refused, conceded: (H, L), how often a raise and a remainder are refused, None where there is none.
    """

    node: int
    stage: int
    turn: int
    player: int
    level: int
    results: tuple[int, ...]
    led: npt.NDArray[np.int64] | None
    actions: tuple[str, ...]
    offers: int
    ties: int
    holdings: npt.NDArray[np.int8]
    legal: Mask
    reach: Array
    against: Array
    sigma: Array
    ev: Array
    win: Array
    refused: Array | None
    conceded: Array | None

    @property
    def mass(self) -> Array:
        """Shape (H, L): the probability of the line with each holding."""
        return self.reach * self.against


class Below(NamedTuple):
    """What comes up: value[p]: shape (modes, H_p, L), sums over the opponent's holdings; won: shape (2, H0, H1, L),
    each player's chance to win if nobody refuses."""

    value: tuple[Array, Array]
    won: Array


Rule = Callable[[Record], Mask | None]
"""Which actions a rule of play leaves, shape (H, A, L) or broadcastable; None where it has nothing to say."""


class Walk(walk.Walk):
    """The walk, done when made.

    ends: the probability of each (level, whether by refusal, winner); hands[p]: shape (modes, H), values of the dealt
    hands given that they are dealt; value: shape (2, modes), each player's value in every mode: EXPECT, BEST (he plays
    as well as he can against the other's strategy), and as well as each rule of play allows him.
    """

    def __init__(self, strategy: Strategy, observe: Callable[[Record], None], rules: Sequence[Rule] = ()) -> None:
        game = strategy.tree.rules
        k, rest = game.hand_size, game.n_cards - game.hand_size
        super().__init__(strategy, 1.0 / (math.comb(game.n_cards, k) * math.comb(rest, k)))
        self.rules, self.observe = rules, observe
        self.ends: defaultdict[tuple[int, bool, int], float] = defaultdict(float)
        first, start = _Program(self, [0]), self.start
        up = first.visit(first.root, (start, start), ())
        against = self._against(self.weights(((),), (k, k), ()), (start, start))
        self.hands = [up.value[p][..., 0] / against[p][:, 0] for p in range(2)]
        self.value = np.array([(up.value[p] * start).sum(axis=(1, 2)) for p in range(2)])

    @property
    def modes(self) -> int:
        """How many values are computed for each player."""
        return 2 + len(self.rules)

    @staticmethod
    def _against(weights: Array, reach: tuple[Array, Array]) -> tuple[Array, Array]:
        return np.einsum("uvl,vl->ul", weights, reach[1]), np.einsum("uvl,ul->vl", weights, reach[0])

    def end(self, level: int, refused: bool, winner: int, weights: Array, reach: tuple[Array, Array]) -> Below:
        """An end of the hand."""
        against = self._against(weights, reach)
        self.ends[level, refused, winner] += float((reach[0] * against[0]).sum())
        values = [
            np.broadcast_to(self.pay[p][level, winner] * against[p], (self.modes, *against[p].shape)) for p in range(2)
        ]
        won = np.array([winner == 0, winner == 1], np.float64)[:, None, None, None]
        return Below((values[0], values[1]), np.broadcast_to(won, (2, *weights.shape)))

    def choose(self, record: Record, q: Array) -> Array:
        """Shape (modes, H, L): the value of a decision to the acting player from q, shape (modes, H, A, L)."""
        self.observe(record)
        value = np.empty((self.modes, *record.reach.shape))
        value[EXPECT] = (record.sigma * q[EXPECT]).sum(axis=1)
        legal = record.legal[:, :, None]
        value[BEST] = np.where(legal, q[BEST], -np.inf).max(axis=1)
        for mode, rule in enumerate(self.rules, 2):
            allowed = rule(record)
            value[mode] = np.where(legal if allowed is None else legal & allowed, q[mode], -np.inf).max(axis=1)
        return value


class _Program(walk.Lanes[Below]):
    """What both players' holdings are worth and win comes up."""

    walk: Walk

    def arrays(self, up: Below) -> list[Array]:
        """See `solver.walk.Lanes`."""
        return [*up.value, up.won]

    def made(self, arrays: list[Array]) -> Below:
        """See `solver.walk.Lanes`."""
        first, second, won = arrays
        return Below((first, second), won)

    def visit(self, i: int, reach: tuple[Array, Array], cards: tuple[int, ...]) -> Below:
        """See `solver.walk.Lanes`."""
        node = self.tree.nodes[i]
        weights = self.walk.weights(self.histories, node.spot.held, cards)
        if node.kind == TERMINAL:
            above = self.tree.nodes[node.parent]
            refused = above.words == (ACCEPT, REFUSE) and node.edge == 1
            return self.walk.end(node.spot.level, refused, node.winner, weights, reach)
        return self._decision(i, node, weights, reach, cards)

    def _decision(
        self, i: int, node: Node, weights: Array, reach: tuple[Array, Array], cards: tuple[int, ...]
    ) -> Below:
        tree, me, offers = self.tree, node.player, len(node.words)
        n, k, plays = tree.rules.n_ranks, node.spot.held[me], node.cards != NO_CARDS
        holdings, legal, _, sigma = self.sigma(node)
        mine, theirs = reach[me], reach[1 - me]
        size, lanes = mine.shape
        q = np.zeros((self.walk.modes, size, offers + n * plays, lanes))
        ours = weights if me == 0 else weights.swapaxes(0, 1)  # (mine, theirs, lane)
        joint = ours * theirs
        win = np.zeros((size, offers + n * plays, lanes))
        won = np.zeros((2, *ours.shape))
        other: Any = 0.0
        for a, word in enumerate(node.words):
            part = mine * sigma[:, a]
            below = self.visit(node.children[a], (part, theirs) if me == 0 else (theirs, part), cards)
            q[:, :, a] = below.value[me]
            other = other + below.value[1 - me]
            if word in (REFUSE, FOLD, DECLINE):
                continue
            after = below.won if me == 0 else below.won.swapaxes(1, 2)
            win[:, a] = (joint * after[me]).sum(axis=1)
            won += after * (1.0 if word in (ACCEPT, PLAY) else sigma[:, a][:, None])  # nobody refuses
        if plays:
            for c, below in enumerate(self.after_cards(i, node, reach, sigma[:, offers:], cards)):
                other = other + below.value[1 - me]
                h = np.flatnonzero(legal[:, offers + c])
                rest = np.array([_rest(tree.holdings, k, each, c) for each in h.tolist()])
                q[:, h, offers + c] = below.value[me][:, rest]
                after = (below.won if me == 0 else below.won.swapaxes(1, 2))[:, rest]
                win[h, offers + c] = (joint[h] * after[me]).sum(axis=1)
                won[:, h] += after * sigma[h, offers + c][:, None]
        refused: dict[str, Array] = {}
        for a, word in enumerate(node.words):
            if word in (RAISE, REMAINDER):
                answers = self.sigma(tree.nodes[node.children[a]]).shares
                refused[word] = np.einsum("uvl,vl->ul", joint, answers[:, 1])
        actions = (*node.words, *(tree.rules.ranks if plays else ()))
        spot = node.spot
        led = None if spot.led == -1 else np.array([spot.led if spot.led >= 0 else h[-1] for h in self.histories])
        record = Record(
            i, -1, 2 * tree.rules.hand_size + 1 - sum(spot.held), me, spot.level, spot.results, led, actions, offers,
            -1, holdings, legal, mine, joint.sum(axis=1), sigma, q[BEST], win, refused.get(RAISE),
            refused.get(REMAINDER),
        )  # fmt: skip
        value = self.walk.choose(record, q)
        if me == 1:
            return Below((other, value), won.swapaxes(1, 2))
        return Below((value, other), won)

    def last_trick(self, node: Node, parts: Array, theirs: Array, cards: tuple[int, ...]) -> list[Below]:
        """See `solver.walk.Lanes`: a lane for each card led and history; "mine" is the answerer's."""
        walk, tree, me = self.walk, self.tree, node.player
        n, lanes, level = len(parts), theirs.shape[1], node.spot.level
        leads: Histories = tuple((*history, c) for c in range(n) for history in self.histories)
        led = np.repeat(np.arange(n), lanes)
        held = (0, 1) if me == 1 else (1, 0)
        weights = walk.weights(leads, held, cards)
        ours = weights[0] if me == 1 else weights[:, 0]  # (answerer's card, lane)
        leader, mine = parts[:, 0].reshape(1, -1), np.tile(theirs, (1, n))
        against = ours * leader
        outcome = np.array(
            [[{1: 1, -1: 0, 0: node.ties}[tree.rules.trick_winner(c, v)] for c in led.tolist()] for v in range(n)]
        )
        winner = np.array([me, 1 - me, 2])[outcome]
        now, offers = walk.pay[me][level, winner], [after_raise(tree.rules, level, word) for word in node.words]
        raises, accepts = np.zeros((len(offers), n, n * lanes)), np.ones((len(offers), n * lanes))
        classes, lane = node.classes, np.tile(np.arange(lanes), n)
        for j in range(len(offers)):
            row = node.row + (len(offers) + 1) * (classes * led + outcome) + j
            raises[j] = self.rows[me][row, lane]
            accepts[j] = self.rows[1 - me][node.row_other + 2 * (len(offers) * led + j), lane]
        plays = 1 - raises.sum(axis=0)
        legal = np.concatenate([np.ones((n, len(offers)), bool), np.eye(n, dtype=bool)], axis=1)
        own = np.arange(n)
        q, sigma, win = (np.zeros((n, len(offers) + n, n * lanes)) for _ in range(3))
        q[own, len(offers) + own], sigma[own, len(offers) + own] = now * against, plays
        win[:] = (winner == me)[:, None] * against[:, None] * legal[:, :, None]
        refused: dict[str, Array] = {}
        for j, (word, offer) in enumerate(zip(node.words, offers, strict=True)):
            later, refused_pay = walk.pay[me][offer.accepted, winner], walk.pay[me][offer.refused, me]
            q[:, j] = (accepts[j] * later + (1 - accepts[j]) * refused_pay) * against
            sigma[:, j] = raises[j]
            refused[word] = (1 - accepts[j]) * against
        turn, ranks = 2 * tree.rules.hand_size, tree.rules.ranks
        number = tree.nodes[node.parent].children[node.edge]
        cards_left = hands(n, 1, tree.rules.copies)
        record = Record(
            number, 0, turn, me, level, node.spot.results, led, (*node.words, *ranks), len(offers), node.ties,
            cards_left, legal, mine, against, sigma, q, win, refused.get(RAISE), refused.get(REMAINDER),
        )  # fmt: skip
        mine_value = walk.choose(record, np.broadcast_to(q, (walk.modes, *q.shape)))
        # The leader: what is played, and his answer to each raise.
        joint, deal = ours * mine, ours * mine * leader
        leader_value = np.broadcast_to((joint * plays * -now).sum(axis=0), (walk.modes, 1, n * lanes))
        for j, offer in enumerate(offers):
            later, refused_pay = walk.pay[me][offer.accepted, winner], walk.pay[me][offer.refused, me]
            raised = joint * raises[j]
            answer = np.stack([(raised * -later).sum(axis=0), -refused_pay * raised.sum(axis=0)])[None]
            chance = np.zeros((1, 2, n * lanes))
            chance[0, 0] = (raised * (winner == 1 - me)).sum(axis=0)
            record = Record(
                number, 1 + 2 * j, turn, 1 - me, level, node.spot.results, led, (ACCEPT, REFUSE), 2, node.ties,
                hands(n, 0, tree.rules.copies), np.ones((1, 2), bool), leader, raised.sum(axis=0, keepdims=True),
                np.stack([accepts[j], 1 - accepts[j]])[None], answer, chance, None, None,
            )  # fmt: skip
            leader_value = leader_value + walk.choose(record, np.broadcast_to(answer, (walk.modes, *answer.shape)))
        for side in range(3):
            there = deal * (winner == side)
            walk.ends[level, False, side] += float((there * plays).sum())
            for j, offer in enumerate(offers):
                walk.ends[offer.accepted, False, side] += float((there * raises[j] * accepts[j]).sum())
        for j, offer in enumerate(offers):
            walk.ends[offer.refused, True, me] += float((deal * raises[j] * (1 - accepts[j])).sum())
        won = np.array([winner == 0, winner == 1], np.float64)
        found = []
        for c in range(n):
            here = slice(c * lanes, (c + 1) * lanes)
            values = leader_value[..., here], mine_value[..., here]
            chances = won[..., here][:, None] if me == 1 else won[..., here][:, :, None]
            found.append(Below(values if me == 1 else (values[1], values[0]), chances))
        return found


def _rest(holdings: Any, k: int, h: int, card: int) -> int:
    """The holding of k - 1 cards that is left of holding h without a card."""
    j = int(np.flatnonzero(holdings.card[k, h] == card)[0])
    return int(holdings.rest[k, h, j])
