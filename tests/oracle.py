"""A naive oracle: CFR and exact best response on plain histories, written from the rules and from nothing else.

It is slow and obvious on purpose, and shares no game logic with the referee or the solver, so that an agreement with
either means something. A game is a set of chance outcomes and a walk of actions behind each (`Game`); `Kuhn` and
`TrucHand` are two of them. `flatten` lists every history of a game once, parents before children, and all that follows
is a sweep over these lists: forwards for reaches, backwards for values.

A policy is a dict from information state to an array of probabilities, in the order of `Game.actions`. All values are
in the game's utility (points per hand for `TrucHand` without payoffs). Everything is float64.

Sources: Zinkevich, Johanson, Bowling & Piccione 2007 (CFR); Tammelin 2014 (CFR+); Brown & Sandholm 2019 (DCFR);
Farina, Kroer & Sandholm 2021 (PCFR+); Xu et al. 2024 (DCFR+, PDCFR+).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from functools import lru_cache
from itertools import combinations_with_replacement, permutations, product
from typing import Any, NamedTuple, Protocol

import numpy as np

from games.rules import Rules

InfoState = tuple[Any, ...]
Policy = dict[InfoState, np.ndarray]
OVER, CHANCE = -1, -2


class Game(Protocol):
    """A two-player zero-sum game as histories: a chance move at the root, then actions. Players are 0 and 1.

    A game in which chance moves later too has `outcomes(h)`, a list of (child, probability) like that of `roots`.
    """

    def __hash__(self) -> int:
        """Games are told apart by identity, the default: `flatten` remembers them."""

    def roots(self) -> list[tuple[Any, float]]:
        """Every chance outcome as a history, with its probability."""

    def player(self, h: Any) -> int:
        """Who acts at `h`, or OVER or CHANCE."""

    def actions(self, h: Any) -> tuple[str, ...]:
        """The legal actions at a player's history, in the order policies use."""

    def child(self, h: Any, a: str) -> Any:
        """The history after action `a`."""

    def info_state(self, h: Any) -> InfoState:
        """What the acting player knows at `h`."""

    def utility(self, h: Any) -> float:
        """Player 0's payoff at a history that is over; player 1's is minus that."""


# ------------------------------------------------------------------------------------------------------------ games


class Kuhn:
    """Kuhn poker (Kuhn 1950): cards 0 < 1 < 2, ante 1, one bet of 1. A history is (card 0, card 1, line)."""

    def roots(self) -> list[tuple[Any, float]]:
        """The six deals."""
        return [((a, b, ()), 1 / 6) for a, b in permutations(range(3), 2)]

    def player(self, h: Any) -> int:
        """Players alternate until pass pass, a called bet or a fold."""
        line = h[2]
        over = line == ("pass", "pass") or "bet" in line[:-1]  # nobody bets, or the bet is answered
        return OVER if over else len(line) % 2

    def actions(self, h: Any) -> tuple[str, ...]:
        """`pass` checks or folds, `bet` bets or calls."""
        return ("pass", "bet")

    def child(self, h: Any, a: str) -> Any:
        """One more word on the line."""
        return (h[0], h[1], (*h[2], a))

    def info_state(self, h: Any) -> InfoState:
        """(player, own card, line)."""
        p = self.player(h)
        return (p, (h[p],), h[2])

    def utility(self, h: Any) -> float:
        """1 for an unbet pot or a fold, 2 for a called bet."""
        line = h[2]
        if line[-2:] == ("bet", "pass"):  # the last to act folded
            return 1.0 if len(line) % 2 == 0 else -1.0
        return (2.0 if "bet" in line else 1.0) * (1.0 if h[0] > h[1] else -1.0)


class Public(NamedTuple):
    """What a line of a hand says to everybody: who acts and at what, and once it is over who scores at which level."""

    player: int  # who acts, or OVER
    phase: str  # "turn", "answer", "play" (the turn after an accepted raise) or "over"
    level: int  # index of the stake in the ladder
    may_raise: bool
    played: tuple[tuple[int, ...], tuple[int, ...]]  # ranks, by player
    side: int | None  # who scores when over; None: nobody


class TrucHand:
    """One hand of Le Truc with the core rules: raises before a card only, no fold, remainder, redeal and the like.

    A history is (player 0's hand, player 1's hand, line): hands are sorted tuples of rank numbers (0 the weakest), the
    line a tuple of words, each "raise", "accept", "refuse" or a rank's label. Player 0 leads trick 1.

    `payoffs`: dict of win0 and win1 (player 0's payoff by ladder level when side 0 / side 1 scores) and tie (nobody
    scores); the default is points.
    """

    def __init__(self, rules: Rules, payoffs: Mapping[str, Any] | None = None) -> None:
        for field in fields(rules):
            if field.default is not MISSING and field.name != "target" and getattr(rules, field.name) != field.default:
                raise ValueError(f"the oracle knows no {field.name} = {getattr(rules, field.name)!r}")
        self.rules = rules
        points: dict[str, Any] = {"win0": list(rules.ladder), "win1": [-s for s in rules.ladder], "tie": 0.0}
        self.payoffs = points if payoffs is None else payoffs
        self.public = lru_cache(maxsize=None)(self._replay)  # a function of the line alone, asked for at every deal

    def roots(self) -> list[tuple[Any, float]]:
        """Every deal of two rank hands, its probability counted in cards."""
        n, size, copies = len(self.rules.ranks), self.rules.hand_size, self.rules.copies
        hands = list(combinations_with_replacement(range(n), size))
        ways = math.comb(n * copies, size) * math.comb(n * copies - size, size)
        deals = []
        for a, b in product(hands, hands):
            ca, cb = Counter(a), Counter(b)
            count = math.prod(math.comb(copies, ca[r]) * math.comb(max(copies - ca[r], 0), cb[r]) for r in range(n))
            if count:
                deals.append(((a, b, ()), count / ways))
        return deals

    def player(self, h: Any) -> int:
        """Who acts, or OVER."""
        return self.public(h[2]).player

    def actions(self, h: Any) -> tuple[str, ...]:
        """(accept, refuse) at an answer; else raise if legal, then one action per distinct rank held, weakest first."""
        now = self.public(h[2])
        if now.phase == "answer":
            return ("accept", "refuse")
        held = Counter(h[now.player]) - Counter(now.played[now.player])
        return (("raise",) if now.may_raise else ()) + tuple(self.rules.ranks[r] for r in sorted(held))

    def child(self, h: Any, a: str) -> Any:
        """One more word on the line."""
        return (h[0], h[1], (*h[2], a))

    def info_state(self, h: Any) -> InfoState:
        """(player, own dealt hand, line)."""
        p = self.player(h)
        return (p, h[p], h[2])

    def utility(self, h: Any) -> float:
        """Player 0's payoff."""
        now = self.public(h[2])
        if now.side is None:
            return float(self.payoffs["tie"])
        return float(self.payoffs["win0" if now.side == 0 else "win1"][now.level])

    def _beats(self, a: int, b: int) -> bool:
        """Whether rank `a` beats rank `b`; circular: the first beats the last and loses to all the others."""
        if self.rules.order == "circular" and {a, b} == {0, len(self.rules.ranks) - 1}:
            return a == 0
        return a > b

    def _hand_winner(self, results: Sequence[int | None]) -> int | None:
        """Who wins a hand with all tricks played: more tricks, else the first trick not tied, else `all_tied`."""
        difference = results.count(0) - results.count(1)
        if difference:
            return 0 if difference > 0 else 1
        for winner in results:
            if winner is not None:
                return winner
        return {"nobody": None, "leader": 0, "dealer": 1}[self.rules.all_tied]

    def _completions(self, results: Sequence[int | None]) -> set[int | None]:
        """The winners of the hand that trick results still allow; a single one means that the hand is decided."""
        rest = product((0, 1, None), repeat=self.rules.hand_size - len(results))
        return {self._hand_winner([*results, *more]) for more in rest}

    def _replay(self, line: tuple[str, ...]) -> Public:
        level, last_raiser, phase = 0, None, "turn"
        leader, turn = 0, 0  # who leads this trick, whose turn to play a card it is
        led: int | None = None  # the rank on the table
        results: list[int | None] = []  # who won each complete trick; None: tied
        played: tuple[list[int], list[int]] = ([], [])
        side: int | None = None
        for word in line:
            assert phase != "over"
            if word == "raise":
                last_raiser, phase = turn, "answer"
            elif word == "accept":
                level, phase = level + 1, "play"
            elif word == "refuse":
                side, phase = turn, "over"  # the raiser scores the stake before the raise
            else:
                rank, phase = self.rules.ranks.index(word), "turn"
                played[turn].append(rank)
                if led is None:
                    led, turn = rank, 1 - leader
                    continue
                winner = None if rank == led else leader if self._beats(led, rank) else 1 - leader
                results.append(winner)
                leader = leader if winner is None else winner
                led, turn = None, leader
                if len(winners := self._completions(results)) == 1:
                    side, phase = winners.pop(), "over"
        may_raise = phase == "turn" and last_raiser != turn and level + 1 < len(self.rules.ladder)
        player = {"over": OVER, "answer": 1 - turn}.get(phase, turn)
        return Public(player, phase, level, may_raise, (tuple(played[0]), tuple(played[1])), side)


# -------------------------------------------------------------------------------------------------------- histories


class Tree:
    """Every history of a game as lists, level by level; use `flatten`, which keeps the last few.

    Histories are numbered level by level from the deals on, so level k is `levels[k] = (first, end)`. Each of N
    histories has chance's own probability `chance`, its `parent`, the `mover` who came from there (CHANCE for a deal)
    and the `slot` of that move (-1 for chance's), of which `drawn` is chance's probability (1 for a player's);
    `utility` is player 0's, 0 unless over. A slot is an action of an information state: those of information state i,
    `infos[i]`, are `first[i] : first[i] + width[i]`, and `owner` and `info_of` tell the player and the information
    state of each slot.
    """

    def __init__(self, game: Game) -> None:
        self.infos: list[InfoState] = []
        index: dict[InfoState, int] = {}
        first, width, owner, parent, mover, slot = [list[int]() for _ in range(6)]
        chance, utility = list[float](), list[float]()
        self.levels: list[tuple[int, int]] = []
        self.info_level: list[int] = []
        before: list[tuple[int, ...]] = []  # each information state's own previous slots, to check perfect recall
        level: list[tuple[Any, ...]] = [(h, p, -1, CHANCE, -1, ((), ())) for h, p in game.roots()]
        while level:
            depth = len(self.levels)
            self.levels.append((len(parent), len(parent) + len(level)))
            below: list[tuple[Any, ...]] = []
            for h, probability, up, who, move, own in level:
                node = len(parent)
                chance.append(probability)
                parent.append(up)
                mover.append(who)
                slot.append(move)
                player = game.player(h)
                utility.append(game.utility(h) if player == OVER else 0.0)
                if player == CHANCE:
                    below += [(c, probability * p, node, CHANCE, -1, own) for c, p in game.outcomes(h)]
                if player < 0:
                    continue
                actions, key = game.actions(h), game.info_state(h)
                if key not in index:
                    index[key] = len(self.infos)
                    self.infos.append(key)
                    first.append(len(owner))
                    width.append(len(actions))
                    owner += [player] * len(actions)
                    self.info_level.append(depth)
                    before.append(own[player])
                i = index[key]
                assert (width[i], self.info_level[i], before[i]) == (len(actions), depth, own[player]), key
                for k, a in enumerate(actions):
                    mine = (*own[player], first[i] + k)
                    after = (mine, own[1]) if player == 0 else (own[0], mine)
                    below.append((game.child(h, a), probability, node, player, first[i] + k, after))
            level = below
        self.chance, self.utility = np.array(chance), np.array(utility)
        self.parent, self.mover, self.slot = np.array(parent), np.array(mover), np.array(slot)
        self.first, self.width, self.owner = np.array(first), np.array(width), np.array(owner)
        self.info_of = np.repeat(np.arange(len(first)), width)
        self.drawn = np.where(self.mover == CHANCE, self.chance / self.chance[self.parent], 1.0)
        self.terminals = int(len(parent) - len(np.unique(self.parent[self.parent >= 0])))

    def vector(self, policy: Policy) -> np.ndarray:
        """A policy as one probability per slot."""
        for key, width in zip(self.infos, self.width, strict=True):
            if len(policy[key]) != width:
                raise ValueError(f"{key}: {len(policy[key])} probabilities for {width} actions")
        return np.concatenate([np.asarray(policy[key], dtype=float) for key in self.infos])

    def table(self, vector: np.ndarray) -> Policy:
        """One number per slot as a dict from information state to array."""
        return {key: vector[f : f + w].copy() for key, f, w in zip(self.infos, self.first, self.width, strict=True)}

    def reach(self, sigma: np.ndarray) -> np.ndarray:
        """Each player's own contribution to the probability of each history, shape (2, N)."""
        reach = np.ones((2, len(self.parent)))
        for a, b in self.levels[1:]:
            own = np.where(self.mover[a:b] == [[0], [1]], sigma[self.slot[a:b]], 1.0)
            reach[:, a:b] = reach[:, self.parent[a:b]] * own
        return reach

    def values(self, sigma: np.ndarray) -> np.ndarray:
        """Player 0's expected utility from each history on, shape (N,)."""
        value, share = self.utility.copy(), np.where(self.mover == CHANCE, self.drawn, sigma[self.slot])
        for a, b in reversed(self.levels[1:]):
            np.add.at(value, self.parent[a:b], share[a:b] * value[a:b])
        return value

    def regrets(self, sigma: np.ndarray, player: int) -> np.ndarray:
        """Instantaneous counterfactual regrets of one player by slot, 0 at the other's: v(I, a) - v(I)."""
        sign = 1.0 if player == 0 else -1.0
        weight = self.chance * self.reach(sigma)[1 - player] * sign * self.values(sigma)
        moves = self.mover == player  # histories that this player has just moved to
        q = np.zeros(len(self.owner))
        np.add.at(q, self.slot[moves], weight[moves])
        v = np.add.reduceat(sigma * q, self.first)
        return np.where(self.owner == player, q - v[self.info_of], 0.0)

    def own_reach(self, sigma: np.ndarray, player: int) -> np.ndarray:
        """The player's own probability of coming to the information state of each of his slots; 0 at the other's."""
        reach, own = self.reach(sigma)[player], np.zeros(len(self.owner))
        moves = self.mover == player
        own[self.slot[moves]] = reach[self.parent[moves]]  # perfect recall: the same for all histories of a slot
        return own


@lru_cache(maxsize=4)
def flatten(game: Game) -> Tree:
    """The histories of a game; the last few games are kept."""
    return Tree(game)


# --------------------------------------------------------------------------------------------------------- policies


def uniform(game: Game) -> Policy:
    """Equal weight on every action of each information state."""
    tree = flatten(game)
    return tree.table(1.0 / tree.width[tree.info_of])


def random_policy(game: Game, rng: np.random.Generator) -> Policy:
    """Random probabilities, none of them tiny."""
    tree = flatten(game)
    weight = rng.uniform(0.1, 1.0, len(tree.owner))
    return tree.table(weight / np.add.reduceat(weight, tree.first)[tree.info_of])


def expected_value(game: Game, policy: Policy) -> float:
    """Player 0's expected utility when both follow the policy."""
    tree = flatten(game)
    a, b = tree.levels[0]
    return float(tree.chance[a:b] @ tree.values(tree.vector(policy))[a:b])


def best_response(game: Game, policy: Policy, player: int) -> float:
    """What `player` gets by best responding to the other's part of the policy (his own expected utility)."""
    tree = flatten(game)
    sign = 1.0 if player == 0 else -1.0
    # utilities weighted by chance and the other player: from here on the other's moves are plain sums
    total = tree.chance * tree.reach(tree.vector(policy))[1 - player] * sign * tree.utility
    infos_at: list[list[int]] = [[] for _ in tree.levels]
    for i, depth in enumerate(tree.info_level):
        infos_at[depth].append(i)
    for depth in range(len(tree.levels) - 1, 0, -1):
        nodes = np.arange(*tree.levels[depth])
        mine = tree.mover[nodes] == player
        q = np.zeros(len(tree.owner))
        np.add.at(q, tree.slot[nodes[mine]], total[nodes[mine]])
        best = np.zeros(len(tree.owner), dtype=bool)
        for i in infos_at[depth - 1]:
            f, w = tree.first[i], tree.width[i]
            best[f + np.argmax(q[f : f + w])] = True
        kept = nodes[~mine | best[tree.slot[nodes]]]
        np.add.at(total, tree.parent[kept], total[kept])
    return float(total[slice(*tree.levels[0])].sum())


def nash_conv(game: Game, policy: Policy) -> float:
    """What both could gain by best responding, added; the value lies in [-best_response 1, best_response 0]."""
    return best_response(game, policy, 0) + best_response(game, policy, 1)


def counterfactual_regrets(game: Game, policy: Policy, player: int) -> dict[InfoState, np.ndarray]:
    """Instantaneous counterfactual regrets of `player` by information state of his (Zinkevich et al. 2007, eq. 7)."""
    tree = flatten(game)
    table = tree.table(tree.regrets(tree.vector(policy), player))
    return {key: table[key] for key, f in zip(tree.infos, tree.first, strict=True) if tree.owner[f] == player}


# -------------------------------------------------------------------------------------------------------------- CFR

# the average strategy weighs iteration t by t ** gamma
DEFAULTS: dict[str, dict[str, float]] = {
    "cfr": {"gamma": 0.0},
    "cfr+": {"gamma": 1.0},
    "dcfr": {"alpha": 1.5, "beta": 0.0, "gamma": 2.0},
    "dcfr+": {"alpha": 1.5, "gamma": 2.0},
    "pcfr+": {"gamma": 2.0},
    "pdcfr+": {"alpha": 2.3, "gamma": 5.0},
    "fpdcfr+": {"alpha": 1.5, "gamma": 2.0},
}


def discount(t: int, x: float) -> float:
    """t^x / (t^x + 1) (Brown & Sandholm 2019); 0 before the first iteration, when there is nothing to discount."""
    return 0.0 if t == 0 else t**x / (t**x + 1)


class CFR:
    """Alternating CFR: in iteration t = 1, 2, ... player 0 updates, then player 1 against his new strategy.

    For the updating player, with the current strategies of both and the instantaneous regrets g, the average takes
    t^gamma * own reach * own strategy, then the cumulative regrets R change and regret matching on a basis gives his
    next strategy, with d = `discount`:

    - cfr (Zinkevich et al. 2007): R + g; basis R
    - cfr+ (Tammelin 2014): max(R + g, 0); basis R
    - dcfr (Brown & Sandholm 2019): R times d(t-1, alpha) where positive, d(t-1, beta) where negative, plus g; basis R
    - dcfr+ (Xu et al. 2024): max(R d(t-1, alpha) + g, 0); basis R
    - pcfr+ (Farina et al. 2021): max(R + g, 0); basis max(R + g, 0) with the new R: g is its own prediction
    - pdcfr+ (Xu et al. 2024): max(R d(t-1, alpha) + g, 0); basis max(R d(t, alpha) + g, 0) with the new R
    - fpdcfr+: the same, but the prediction fades: min(1/2, sqrt(5 / t)) g in the basis

    Regret matching takes positive parts below `zero` as zero. `policy` is the strategy before the first iteration,
    uniform if None.
    """

    def __init__(
        self, game: Game, algorithm: str, *, zero: float = 1e-12, policy: Policy | None = None, **parameters: float
    ) -> None:
        if unknown := parameters.keys() - DEFAULTS[algorithm].keys():
            raise ValueError(f"{algorithm} has no {', '.join(sorted(unknown))}")
        self.tree, self.algorithm, self.zero, self.iterations = flatten(game), algorithm, zero, 0
        self.parameters = DEFAULTS[algorithm] | parameters
        self._sigma = self.tree.vector(uniform(game) if policy is None else policy)
        self._regret, self._sum = np.zeros_like(self._sigma), np.zeros_like(self._sigma)

    def step(self) -> None:
        """One iteration: both players' updates."""
        self.iterations += 1
        for player in (0, 1):
            mine = self.tree.owner == player
            g = self.tree.regrets(self._sigma, player)
            own = self.tree.own_reach(self._sigma, player)
            self._sum += float(self.iterations) ** self.parameters["gamma"] * own * self._sigma
            regret, basis = self._update(self._regret, g, self.iterations)
            self._regret = np.where(mine, regret, self._regret)
            self._sigma = np.where(mine, self._normalise(np.where(basis >= self.zero, basis, 0.0)), self._sigma)

    def _update(self, r: np.ndarray, g: np.ndarray, t: int) -> tuple[np.ndarray, np.ndarray]:
        alpha, beta = self.parameters.get("alpha", 0.0), self.parameters.get("beta", 0.0)
        if self.algorithm == "cfr":
            r = r + g
        elif self.algorithm in ("cfr+", "pcfr+"):
            r = np.maximum(r + g, 0.0)
        elif self.algorithm == "dcfr":
            r = r * np.where(r > 0, discount(t - 1, alpha), discount(t - 1, beta)) + g
        else:  # dcfr+, pdcfr+, fpdcfr+
            r = np.maximum(r * discount(t - 1, alpha) + g, 0.0)
        if self.algorithm == "pcfr+":
            return r, np.maximum(r + g, 0.0)
        if self.algorithm == "pdcfr+":
            return r, np.maximum(r * discount(t, alpha) + g, 0.0)
        if self.algorithm == "fpdcfr+":
            return r, np.maximum(r * discount(t, alpha) + min(0.5, (5 / t) ** 0.5) * g, 0.0)
        return r, r

    def _normalise(self, weight: np.ndarray) -> np.ndarray:
        """Weights to probabilities by information state, uniform where there is no weight."""
        total = np.add.reduceat(weight, self.tree.first)[self.tree.info_of]
        some = total > 0
        return np.where(some, weight / np.where(some, total, 1.0), 1.0 / self.tree.width[self.tree.info_of])

    @property
    def regrets(self) -> dict[InfoState, np.ndarray]:
        """Cumulative regrets."""
        return self.tree.table(self._regret)

    @property
    def current(self) -> Policy:
        """The strategy that the next iteration starts from."""
        return self.tree.table(self._sigma)

    @property
    def average(self) -> Policy:
        """The average strategy, the one that converges; uniform where its owner never came."""
        return self.tree.table(self._normalise(self._sum))


def cfr(game: Game, algorithm: str, iterations: int, **options: Any) -> CFR:
    """Run `iterations` of an algorithm of DEFAULTS; the options are those of `CFR`."""
    solver = CFR(game, algorithm, **options)
    for _ in range(iterations):
        solver.step()
    return solver
