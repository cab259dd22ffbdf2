"""The hand with every rule of the other rule sets, as a game for the naive oracle; written from the rules alone.

`VariantHand` is the hand with folding, the remainder, raises after the card, the redeal, the decision before the target
and the one-card hand, each by its field in `games.rules.Rules`. It shares nothing with `tests.oracle.TrucHand`, so that
on the core rules the two check each other.

A history is (player 0's hands, player 1's hands, line). Hands are a tuple of hands in the order they were dealt, the
last one being played and the one before it set aside; a hand is a sorted tuple of rank numbers. The line has every
action since the hand began, those before the deal included; the deals themselves leave no word in it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from itertools import combinations_with_replacement, product
from typing import Any, NamedTuple

from games.rules import Rules
from tests.oracle import CHANCE, OVER, InfoState

Hand = tuple[int, ...]
Stake = int | str  # an index in the ladder; "match": the match; "one": the point that declining to play costs

CHOICES = {
    "cut": ("cut", "tap"),
    "one": ("three", "one"),
    "propose": ("propose", "keep"),
    "agree": ("agree", "decline"),
    "target": ("play", "decline"),
    "answer": ("accept", "refuse"),
}
"""The actions of the phases that are one question with two answers."""


class Public(NamedTuple):
    """What a line says to everybody."""

    phase: str
    """A key of CHOICES; "turn", "card" (a turn after an accepted raise), "after" (his card) or "over"."""
    player: int
    """Who acts, or OVER."""
    size: int
    """Cards in a hand."""
    deals: int = 0
    """How many times hands have been dealt."""
    stake: Stake = 0
    raises: bool = True
    """Whether the hand has raises at all."""
    call: str = ""
    """The last raise: "raise" or "remainder"."""
    raiser: int | None = None
    """Whose that was."""
    called_after: bool = False
    """Whether it was made after his card."""
    leader: int = 0
    """Who leads this trick."""
    next: int = 0
    """Who plays the next card."""
    led: int | None = None
    """The rank on the table."""
    results: tuple[int | None, ...] = ()
    """Who won each complete trick; None: tied."""
    played: tuple[Hand, Hand] = ((), ())
    side: int | None = None
    """Who scores the stake when over; None: nobody."""


class VariantHand:
    """One hand by any rule set, in points or for a match.

    In points (`payoffs` None) there is no remainder and no decision before the target. In a match `payoffs` has player
    0's payoffs: win0 and win1 (by ladder level, when side 0 / side 1 scores that stake), tie (nobody scores), match0
    and match1 (the side wins the match), one0 and one1 (the side scores one point); `before_target` says which of the
    two sides, the leader's and the dealer's, is one point before the target.
    """

    def __init__(
        self, rules: Rules, payoffs: Mapping[str, Any] | None = None, before_target: tuple[bool, bool] = (False, False)
    ) -> None:
        points: dict[str, Any] = {"win0": list(rules.ladder), "win1": [-s for s in rules.ladder], "tie": 0.0}
        self.rules, self.match, self.before_target = rules, payoffs is not None, before_target
        self.payoffs = points if payoffs is None else payoffs
        self.public = lru_cache(maxsize=None)(self._replay)  # a function of the line alone, asked for at every deal
        self.deals = lru_cache(maxsize=None)(self._deals)

    # ------------------------------------------------------------------------------------------- the oracle's protocol

    def roots(self) -> list[tuple[Any, float]]:
        """The deals; or, with the one-card hand to be had, the single history before them."""
        start = ((), (), ())
        return self.outcomes(start) if self.player(start) == CHANCE else [(start, 1.0)]

    def outcomes(self, h: Any) -> list[tuple[Any, float]]:
        """Every deal of two rank hands from the cards not dealt yet."""
        dealt = Counter(card for hands in h[:2] for hand in hands for card in hand)
        left = tuple(self.rules.copies - dealt[r] for r in range(len(self.rules.ranks)))
        return [(((*h[0], a), (*h[1], b), h[2]), p) for a, b, p in self.deals(left, self.public(h[2]).size)]

    def player(self, h: Any) -> int:
        """Who acts, OVER, or CHANCE if cards are to be dealt first."""
        now = self.public(h[2])
        return CHANCE if len(h[0]) < now.deals else now.player

    def actions(self, h: Any) -> tuple[str, ...]:
        """The two answers to a question; else raises, fold, pass and one action per distinct rank held."""
        now, p = self.public(h[2]), self.player(h)
        if now.phase in CHOICES:
            return CHOICES[now.phase]
        raises = ("raise", "remainder") if self.rules.remainder and self.match else ("raise",)
        some = raises if now.phase != "card" and self._may_raise(now, p) else ()
        if now.phase == "after":
            return (*some, "pass")
        fold = ("fold",) if self.rules.fold else ()
        hand, played = h[p][-1], now.played[p]
        return (*some, *fold, *(self.rules.ranks[r] for r in sorted(set(hand)) if hand.count(r) > played.count(r)))

    def child(self, h: Any, a: str) -> Any:
        """One more word on the line."""
        return (h[0], h[1], (*h[2], a))

    def info_state(self, h: Any) -> InfoState:
        """(player, own hands, line)."""
        p = self.player(h)
        return (p, h[p], h[2])

    def utility(self, h: Any) -> float:
        """Player 0's payoff."""
        now = self.public(h[2])
        if now.side is None:
            return float(self.payoffs["tie"])
        if isinstance(now.stake, str):
            return float(self.payoffs[f"{now.stake}{now.side}"])
        return float(self.payoffs[f"win{now.side}"][now.stake])

    # ------------------------------------------------------------------------------------------------- cards and tricks

    def _deals(self, left: tuple[int, ...], size: int) -> list[tuple[Hand, Hand, float]]:
        """Every pair of rank hands from a deck with `left` cards of each rank, with its probability by cards."""
        hands = list(combinations_with_replacement(range(len(left)), size))
        total = math.comb(sum(left), size) * math.comb(sum(left) - size, size)
        deals = []
        for a, b in product(hands, hands):
            rest = [n - a.count(r) for r, n in enumerate(left)]
            if min(n - b.count(r) for r, n in enumerate(rest)) < 0:
                continue
            ways_a = math.prod(math.comb(n, a.count(r)) for r, n in enumerate(left))
            ways_b = math.prod(math.comb(n, b.count(r)) for r, n in enumerate(rest))
            deals.append((a, b, ways_a * ways_b / total))
        return deals

    def _beats(self, a: int, b: int) -> bool:
        """Whether rank `a` beats another rank `b`; circular: the first beats the last and loses to all the others."""
        last = len(self.rules.ranks) - 1
        if self.rules.order == "circular" and sorted((a, b)) == [0, last]:
            return a == 0
        return a > b

    def _winner_of_all(self, results: tuple[int | None, ...]) -> int | None:
        """Who wins a hand with all tricks played: more tricks, else the first trick not tied, else `all_tied`."""
        won = [winner for winner in results if winner is not None]
        if not won:
            return {"nobody": None, "leader": 0, "dealer": 1}[self.rules.all_tied]
        return won[0] if 2 * won.count(won[0]) >= len(won) else 1 - won[0]

    def _winners(self, results: tuple[int | None, ...], size: int) -> set[int | None]:
        """Who may still win the hand, by the trick results alone."""
        return {self._winner_of_all((*results, *more)) for more in product((0, 1, None), repeat=size - len(results))}

    # -------------------------------------------------------------------------------------------------- the public line

    def _replay(self, line: tuple[str, ...]) -> Public:
        if not line:
            return self._start()
        before, word = self.public(line[:-1]), line[-1]
        if before.phase in ("turn", "card", "after"):
            return self._act(before, word)
        assert word in CHOICES[before.phase], line
        return self._answer(before, word)

    def _start(self) -> Public:
        size = self.rules.hand_size
        if self.rules.one_card and not any(self.before_target):
            return Public("cut", 0, size)
        if self.match and self.rules.decision_before_target:
            if self.before_target[0] != self.before_target[1]:
                return Public("target", self.before_target.index(True), size, deals=1)
            return Public("turn", 0, size, deals=1, raises=not all(self.before_target))
        return Public("propose" if self.rules.redeal else "turn", 0, size, deals=1)

    def _answer(self, now: Public, word: str) -> Public:
        """The line after one more answer to a question of CHOICES."""
        match now.phase, word:
            case ("cut", "tap"):
                return now._replace(phase="one", player=1)
            case ("cut", "cut") | ("one", _):
                return now._replace(phase="turn", player=0, deals=1, size=1 if word == "one" else now.size)
            case ("propose", "propose"):
                return now._replace(phase="agree", player=1)
            case ("propose", "keep") | ("agree", _):
                return now._replace(phase="turn", player=0, deals=2 if word == "agree" else 1)
            case ("target", "play"):
                return now._replace(phase="turn", player=0, raises=False, stake=len(self.rules.ladder) - 1)
            case ("target", "decline"):
                return now._replace(phase="over", player=OVER, side=1 - now.player, stake="one")
            case ("answer", "accept"):
                assert isinstance(now.stake, int)
                stake = "match" if now.call == "remainder" else now.stake + 1
                return now._replace(phase="turn" if now.called_after else "card", player=now.next, stake=stake)
        refused = now.call == "remainder" and self.rules.remainder_refused == "match"
        return now._replace(phase="over", player=OVER, side=now.raiser, stake="match" if refused else now.stake)

    def _act(self, now: Public, word: str) -> Public:
        """The line after one more action of a player at his turn or after his card."""
        p = now.player
        if word in ("raise", "remainder"):
            after = now.phase == "after"
            return now._replace(phase="answer", player=1 - p, call=word, raiser=p, called_after=after)
        if word == "fold":
            return now._replace(phase="over", player=OVER, side=1 - p)
        if word == "pass":
            return now._replace(phase="turn", player=now.next)
        rank = self.rules.ranks.index(word)
        played = (*now.played[p], rank)
        now = now._replace(played=(played, now.played[1]) if p == 0 else (now.played[0], played))
        if now.led is None:
            now = now._replace(led=rank, next=1 - p)
        else:
            winner = None if rank == now.led else p if self._beats(rank, now.led) else 1 - p
            leads = now.leader if winner is None else winner
            now = now._replace(led=None, results=(*now.results, winner), leader=leads, next=leads)
            if len(winners := self._winners(now.results, now.size)) == 1:
                return now._replace(phase="over", player=OVER, side=winners.pop())
        if "after" in self.rules.raise_when and self._may_raise(now, p):
            return now._replace(phase="after")
        return now._replace(phase="turn", player=now.next)

    def _may_raise(self, now: Public, p: int) -> bool:
        """Whether the player may raise when it is his turn: he did not raise last, and there is a stake above."""
        above = isinstance(now.stake, int) and now.stake + 1 < len(self.rules.ladder)
        return now.raises and above and now.raiser != p
