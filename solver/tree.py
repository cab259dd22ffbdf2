"""The public tree of a hand as flat arrays, built once from the rules.

The tree is stored by shared control flow (see `solver.kernels`): a *program* is a tree of public nodes that many
histories have in common, a *block* is a program with up to LANES histories in its lanes, and a public decision of the
game is a (block, lane, node).  Turn 1 is one program, each public way to its card another one for turn 2 (a lane per
first card), and each way to the second card and each result of trick 1 one for the rest of the hand (a lane per first
trick).  With one card each there is nothing to share: one program, one lane.

Python builds it: there are only a few thousand nodes.  Rows, reaches and slots are numbered here; the kernels only add.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from games.rules import ACCEPT, DECLINE, FOLD, PASS, PLAY, RAISE, REFUSE, REMAINDER, Rules, hand_winner
from solver.holdings import holdings
from solver.kernels import (
    CARDS,
    DECISION,
    LANES,
    LAST_CARDS,
    LAST_TRICK,
    NO_CARDS,
    NODE,
    SPLIT,
    TERMINAL,
)
from solver.nodes import (
    BLOCK,
    MAX_ROWS,
    NOBODY,
    Block,
    Growing,
    Ints,
    Node,
    Plan,
    Program,
    Spot,
    TreeTooLargeError,
    UnsupportedRulesError,
    after_raise,
)


class Tree:
    """The public tree of one hand.

    rules: the rule set; reduced: merge the answerer's last cards by outcome (off only to test that it loses nothing);
    decider: who first decides whether the hand is played, if its score asks somebody (`solver.equity.decider`).
    match_from: by side, the first level at which winning the hand wins the match; if it is given, raises and remainders
    that change no value are left out (`solver.equity.match_from`).
    `rows[p]` is the number of player p's regrets, in units of LANES.
    `levels`: the stakes, then if there is a remainder the match, then if there is a decider what declining brings.
    Raises TreeTooLargeError, UnsupportedRulesError.
    """

    def __init__(
        self,
        rules: Rules,
        reduced: bool = True,
        decider: int | None = None,
        match_from: tuple[int, int] | None = None,
    ) -> None:
        for name in ("redeal", "one_card"):
            if getattr(rules, name):
                raise UnsupportedRulesError(f"the rules {rules.name!r} have {name} = true, for which there is no tree")
        self.rules = rules
        self.decider = decider
        self.match_from = match_from
        # Merging is for a last trick in which the answerer may raise before his card, and nothing else.
        self.reduced = reduced and not (rules.fold or "after" in rules.raise_when)
        self.levels = len(rules.ladder) + rules.remainder + (decider is not None)
        self._folding = (FOLD,) if rules.fold else ()
        self.holdings = holdings(rules.n_ranks, rules.copies, rules.hand_size)
        self._sizes: list[int] = self.holdings.size.tolist()
        self._distinct: list[list[int]] = [
            row[:size] for row, size in zip(self.holdings.distinct.tolist(), self._sizes, strict=True)
        ]
        self.nodes: list[Node] = []
        self.programs: list[Program] = []
        self.blocks: list[Block] = []
        self.entry: dict[tuple[int, int, int], tuple[int, int]] = {}  # (SPLIT node, lane, card) -> (block, lane)
        self._build()
        starts = np.array([(0, 0)] + [self.programs[b.program].rows for b in self.blocks], np.int64).cumsum(axis=0)
        self.bases = starts[:-1]  # (blocks, 2): first row of each player
        self.rows = (int(starts[-1, 0]), int(starts[-1, 1]))
        if sum(self.rows) > MAX_ROWS:
            raise TreeTooLargeError(
                f"the tree of {rules.name!r} has {sum(self.rows) * LANES:,} regrets, "
                f"more than the {MAX_ROWS * LANES:,} this solver takes: use fewer ranks or fewer stakes"
            )
        self.states = self._all_states(0), self._all_states(1)
        self.ops = np.array([op for program in self.programs for op in program.ops], np.int64)
        full = self.size(rules.hand_size)
        # Rows of `top`, lane 0: zeros for idle lanes, the players' starting reaches, the values of the dealt hands.
        self.idle, self.priors, self.result = 0, (full, 2 * full), 3 * full
        self.plan = self._plan()

    @property
    def game(self) -> tuple[object, ...]:
        """What it is the tree of: rules, decider, match_from."""
        return self.rules, self.decider, self.match_from

    def size(self, k: int) -> int:
        """Number of holdings of k cards."""
        return self._sizes[k]

    def _all_states(self, player: int) -> tuple[Ints, Ints]:
        """A player's information states in order: their first rows, and their numbers of actions."""
        parts = [np.array(self.programs[block.program].states[player], np.int64) for block in self.blocks]
        sizes = np.concatenate(parts)
        return sizes.cumsum() - sizes, sizes

    # -- structure ----------------------------------------------------------------------------------------------------

    def _build(self) -> None:
        rules = self.rules
        start = Spot(held=(rules.hand_size, rules.hand_size), decider=-1 if self.decider is None else self.decider)
        if rules.hand_size == 1:
            self._add(start, [()], None, split=False)
            return
        every = range(rules.n_ranks)
        (first,) = self._add(start, [()], None, split=True)
        for turn_2, spot in self._splits(first):
            for second in self._add(spot, [(c,) for c in every], (first, turn_2), split=True):
                for turn_3, after in self._splits(second):
                    for result in (1, -1, 0):
                        tricks: list[tuple[int, ...]] = [
                            (c, d) for c in every for d in every if rules.trick_winner(c, d) == result
                        ]
                        if tricks:
                            settled = after._replace(led=-1, results=(result,), player=1 if result < 0 else 0)
                            self._add(settled, tricks, (second, turn_3), split=False)

    def _splits(self, block: int) -> list[tuple[int, Spot]]:
        """The SPLIT nodes of a block's program, each with the spot after its card."""
        program = self.programs[self.blocks[block].program]
        found = []
        for i in range(program.start, program.stop):
            node = self.nodes[i]
            if node.cards == SPLIT:
                found.append((i, self._after_card(node.spot, -2)))
        return found

    def _add(
        self, spot: Spot, histories: list[tuple[int, ...]], origin: tuple[int, int] | None, split: bool
    ) -> list[int]:
        """A program from `spot`, and its blocks; returns their numbers."""
        start = len(self.nodes)
        new = Growing()
        self._grow(spot, Node(-1, spot, -1, -1, -1), split, new)
        if split:  # first all the way down, then the blocks of the cards, then up
            new.ops.sort(key=lambda op: op % 2)
        rows = new.rows[0], new.rows[1]
        self.programs.append(Program(start, len(self.nodes), rows, new.states, new.ops, shared=not split))
        added = []
        for at in range(0, len(histories), LANES):
            added.append(len(self.blocks))
            lanes = histories[at : at + LANES]
            if origin is not None:
                for lane, history in enumerate(lanes):
                    origin_lane = history[0] if len(history) == 2 else 0
                    self.entry[origin[1], origin_lane, history[-1]] = (len(self.blocks), lane)
            self.blocks.append(Block(len(self.programs) - 1, lanes, origin))
        return added

    def _after_card(self, spot: Spot, card: int) -> Spot:
        held, me = list(spot.held), spot.player
        held[me] -= 1
        by = me if "after" in self.rules.raise_when and self._offers(spot, me) else -1
        return spot._replace(held=(held[0], held[1]), player=1 - me, led=card, by=by)

    def _offers(self, spot: Spot, me: int) -> tuple[str, ...]:
        """The raises that a player may make."""
        level = spot.level
        if level + 1 >= len(self.rules.ladder) or spot.raiser == me:
            return ()
        if not self.rules.remainder:
            return (RAISE,)
        if self.match_from is not None:
            mine, theirs = self.match_from[me], self.match_from[1 - me]
            if level >= mine and spot.raiser != -1:
                return ()
            if level + 1 >= max(mine, theirs):
                return (RAISE,)
            if level >= theirs:
                return (REMAINDER,)
        return (RAISE, REMAINDER)

    def _grow(self, spot: Spot, above: Node, split: bool, new: Growing) -> int:
        """Add the node where somebody is to move, or the end if the hand is over, and all below it."""
        winner = hand_winner(self.rules, spot.results)
        if winner is not None:
            side = winner if winner >= 0 else NOBODY
            return self._put(Node(TERMINAL, spot, -1, above.parent, above.edge, above.card, winner=side), new)
        if spot.decider >= 0:
            return self._whether_to_play(spot, above, split, new)
        if spot.by >= 0:
            return self._raise_after_card(spot, above, split, new)
        me = spot.player
        offers = self._offers(spot, me)
        turn = self._decide(spot, me, above, (*offers, *self._folding), True, split, new)
        for edge, word in enumerate(offers):

            def play(raised: Spot, above: Node) -> None:
                node = self._decide(raised, me, above, self._folding, True, split, new)
                self._fold(node, split, new)
                new.ops.append(2 * node + 1)

            self._offer(turn, edge, word, spot, me, play, new)
        self._fold(turn, split, new)
        new.ops.append(2 * turn + 1)
        return turn

    def _whether_to_play(self, spot: Spot, above: Node, split: bool, new: Growing) -> int:
        me = spot.decider
        node = self._decide(spot, me, above, (PLAY, DECLINE), False, split, new)
        self._grow(spot._replace(decider=-1), Node(-1, spot, -1, node, 0), split, new)
        self._put(Node(TERMINAL, spot._replace(level=self.levels - 1), -1, node, 1, winner=1 - me), new)
        new.ops.append(2 * node + 1)
        return node

    def _fold(self, turn: int, split: bool, new: Growing) -> None:
        """What follows a fold, if the rules have it, and the cards of a turn."""
        node = self.nodes[turn]
        if self._folding:
            edge = len(node.words) - 1
            self._put(Node(TERMINAL, node.spot, -1, turn, edge, winner=1 - node.player), new)
        self._cards(turn, split, new)

    def _raise_after_card(self, spot: Spot, above: Node, split: bool, new: Growing) -> int:
        me, goes_on = spot.by, spot._replace(by=-1)
        offers = self._offers(spot, me)
        node = self._decide(spot, me, above, (*offers, PASS), False, split, new)
        for edge, word in enumerate(offers):

            def accepted(raised: Spot, above: Node) -> None:
                self._grow(raised._replace(by=-1), above, split, new)

            self._offer(node, edge, word, spot, me, accepted, new)
        self._grow(goes_on, Node(-1, spot, -1, node, len(offers)), split, new)
        new.ops.append(2 * node + 1)
        return node

    def _offer(
        self, parent: int, edge: int, word: str, spot: Spot, me: int, accepted: Callable[[Spot, Node], None],
        new: Growing,
    ) -> None:  # fmt: skip
        """The answer to a raise, what follows if it is accepted, and the end if not."""
        to = after_raise(self.rules, spot.level, word)
        answer = self._decide(spot, 1 - me, Node(-1, spot, -1, parent, edge), (ACCEPT, REFUSE), False, False, new)
        accepted(spot._replace(level=to.accepted, raiser=me), Node(-1, spot, -1, answer, 0))
        self._put(Node(TERMINAL, spot._replace(level=to.refused), -1, answer, 1, winner=me), new)
        new.ops.append(2 * answer + 1)

    def _put(self, node: Node, new: Growing) -> int:
        self.nodes.append(node)
        number = len(self.nodes) - 1
        if node.parent >= 0:
            self.nodes[node.parent].children[node.edge] = number
        new.ops.append(2 * number)
        return number

    def _decide(
        self, spot: Spot, player: int, above: Node, words: tuple[str, ...], plays: bool, split: bool,
        new: Growing,
    ) -> int:  # fmt: skip
        node = Node(DECISION, spot, player, above.parent, above.edge, above.card, words, row=new.rows[player])
        k = spot.held[player]
        if plays:
            last = self.reduced and spot.held == (1, 1) and spot.led == -1
            node.cards = SPLIT if split else LAST_CARDS if last else CARDS
        new.add(player, self._states(node, k))
        return self._put(node, new)

    def _states(self, node: Node, k: int) -> list[int]:
        """Actions of each holding at a decision, which has a row for each; without a choice there is none."""
        plays = self._distinct[k] if node.cards != NO_CARDS else [0] * self.size(k)
        return [len(node.words) + cards for cards in plays if len(node.words) + cards > 1]

    def _cards(self, parent: int, split: bool, new: Growing) -> None:
        """All that follows when `parent` plays a card."""
        node = self.nodes[parent]
        spot, edge = node.spot, len(node.words)
        if node.cards == SPLIT:
            return
        if node.cards == LAST_CARDS:
            answerer = 1 - spot.player
            words = self._offers(spot, answerer)
            tied = hand_winner(self.rules, (*spot.results, 0))
            ties = 2 if tied == -1 else (0 if tied == answerer else 1)
            last = Node(LAST_TRICK, spot, answerer, parent, edge, words=words, ties=ties)
            last.row, last.row_other = new.rows[answerer], new.rows[spot.player]
            if words:
                new.add(answerer, [len(words) + 1] * (last.classes * self.rules.n_ranks))
                new.add(spot.player, [2] * len(words) * self.rules.n_ranks)
            self._put(last, new)
            return
        for c in range(self.rules.n_ranks):
            after = self._after_card(spot, c)
            if spot.led != -1:
                lead = self.rules.trick_winner(spot.led, c)  # 1: the led card wins; the leader is `after.player`
                result = lead if after.player == 0 else -lead
                winner = after.player if lead >= 0 else spot.player
                after = after._replace(led=-1, results=(*spot.results, result), player=winner)
            self._grow(after, Node(-1, spot, -1, parent, edge + c, c), split, new)

    # -- where things are ---------------------------------------------------------------------------------------------

    def _plan(self) -> Plan:
        """Number the scratch rows for the sweeps that update either player."""
        nodes = np.zeros((2, len(self.nodes)), NODE)
        blocks = np.zeros((2, len(self.blocks)), BLOCK)
        sources = np.zeros((2, len(self.blocks), 2, LANES, 2), np.int64)
        sources[..., 0] = self.idle
        targets = np.zeros((2, len(self.blocks), LANES, 2), np.int64)
        scratch_rows = 0
        top = self.result + self.size(self.rules.hand_size)  # each player has his own rows: idle lanes stay 0
        ops_at = np.cumsum([0] + [len(program.ops) for program in self.programs])
        for player in range(2):
            placed: dict[int, np.ndarray] = {}  # program -> its root's BLOCK record
            for b, block in enumerate(self.blocks):
                program = self.programs[block.program]
                if block.program not in placed:
                    root = np.zeros((), BLOCK)
                    used = self._place(program, player, nodes[player], root, 0 if program.shared else top)
                    if program.shared:
                        scratch_rows = max(scratch_rows, used)
                    else:
                        top = used
                    first, stop = ops_at[block.program], ops_at[block.program + 1]
                    # A program with SPLIT nodes goes down, then its children are swept, then it goes up.
                    down = len(program.ops) if program.shared else sum(1 for op in program.ops if op % 2 == 0)
                    root["ops"] = (first, first + down, stop)
                    placed[block.program] = root
                blocks[player, b] = placed[block.program]
                blocks[player, b]["base"], blocks[player, b]["lanes"] = self.bases[b], len(block.histories)
                self._wire(block, player, nodes[player], sources[player, b], targets[player, b])
        return Plan(nodes.ravel(), blocks, sources, targets, top, scratch_rows)

    def _wire(self, block: Block, player: int, nodes: np.ndarray, sources: Ints, targets: Ints) -> None:
        """Where each lane's reaches come from, and where its values go."""
        for lane, history in enumerate(block.histories):
            if block.origin is None:
                sources[:, lane], targets[lane] = [(self.priors[0], 0), (self.priors[1], 0)], (self.result, 0)
                continue
            i = block.origin[1]
            split, record = self.nodes[i], nodes[i]
            origin_lane = history[0] if len(history) == 2 else 0
            k, me = split.spot.held[split.player], split.player
            offers, c = len(split.words), history[-1]
            reach = int(record["child_reach"]) + offers * self.size(k) + c * self.size(k - 1)
            sources[me, lane] = (reach, origin_lane)
            sources[1 - me, lane] = (record["other_reach"], origin_lane)
            if me == player:
                slot = int(record["slots"]) + offers * self.size(k) + c * self.size(k - 1)
            else:
                slot = int(record["slots"]) + (offers + c) * self.size(split.spot.held[1 - me])
            targets[lane] = (slot, origin_lane)

    def _place(self, program: Program, player: int, nodes: np.ndarray, root: np.ndarray, cursor: int) -> int:
        """Give a program's nodes their scratch rows from `cursor` on; returns the first row never used.

        Siblings of a shared program use the same rows; the others keep theirs, since their children are other blocks.
        """
        n = self.rules.n_ranks
        placed: dict[int, dict[str, int]] = {}  # node -> its NODE record
        reach: dict[int, list[int]] = {}
        top: dict[int, int] = {}
        peak = cursor

        def take(rows: int) -> int:
            nonlocal cursor
            cursor += rows
            return cursor - rows

        for i in range(program.start, program.stop):
            node = self.nodes[i]
            held, me = node.spot.held, node.player
            level = node.spot.level
            match, lost = after_raise(self.rules, level, REMAINDER)
            raised, _ = after_raise(self.rules, level, REMAINDER if node.words[:1] == (REMAINDER,) else RAISE)
            record = placed[i] = dict.fromkeys(NODE.names or (), 0)
            if node.parent < 0:
                mine = [take(self.size(held[0])), take(self.size(held[1]))]
                left, out = take(n), take(self.size(held[player]))
                root["held"], root["reach"], root["left_at"], root["out"] = held, mine, left, out
            else:
                if program.shared:
                    cursor = top[node.parent]
                above, parent = self.nodes[node.parent], placed[node.parent]
                k, offers = above.spot.held[above.player], len(above.words)
                rest = self.size(max(k - 1, 0))
                if node.edge < offers:
                    down = node.edge * self.size(k)
                else:
                    down = offers * self.size(k) + (node.edge - offers) * rest
                mine = list(reach[node.parent])
                mine[above.player] = parent["child_reach"] + down
                if above.player != player:
                    down = node.edge * self.size(above.spot.held[1 - above.player])
                out = parent["slots"] + down
                left = record["left_from"] = parent["left"]
                if node.card >= 0:
                    left = take(n)
            reach[i] = mine
            side = player if node.kind == TERMINAL else me
            record |= {
                **{"kind": node.kind, "player": me, "card": node.card, "offers": len(node.words), "cards": node.cards},
                **{"level": level, "raised": raised, "match": match, "lost": lost},
                **{"winner": node.winner, "ties": node.ties},
                **{"row": node.row, "row_other": node.row_other, "left": left, "out": out},
                **{"reach": mine[side], "other_reach": mine[1 - side]},
                **{"held": held[side], "other_held": held[1 - side]},
            }
            if node.kind == TERMINAL:
                record["work"] = take(sum(self.size(k) for k in range(held[1 - player] + 1)))
            elif node.kind == LAST_TRICK:
                record["work"] = take(4 * n)
            else:
                k, offers = held[me], len(node.words)
                rest = self.size(max(k - 1, 0))
                plays = n if node.cards != NO_CARDS else 0
                record["child_reach"] = take(offers * self.size(k) + plays * rest)
                if me == player:
                    record["sigma"] = take(sum(self._states(node, k)))
                    record["slots"] = take(offers * self.size(k) + plays * rest)
                else:
                    cards = {NO_CARDS: 0, LAST_CARDS: 1}.get(node.cards, n)
                    record["slots"] = take((offers + cards) * self.size(held[1 - me]))
            placed[i] = record
            top[i] = cursor
            peak = max(peak, cursor)
        nodes[program.start : program.stop] = [tuple(record.values()) for record in placed.values()]
        return peak


def public_tree(rules: Rules, decider: int | None = None, match_from: tuple[int, int] | None = None) -> Tree:
    """A tree, built once.  Raises TreeTooLargeError, UnsupportedRulesError."""
    return _built(rules, decider, match_from)


@lru_cache(maxsize=16)
def _built(rules: Rules, decider: int | None, match_from: tuple[int, int] | None) -> Tree:
    return Tree(rules, decider=decider, match_from=match_from)
