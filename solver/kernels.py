"""Every compiled function of the solver, and nothing else.

numba's on-disk cache does not notice an edit to a compiled function that is called from another file, so all of
them live here.  How they work, on one page:

**A lane is a public history.**  First-trick histories (c0, c1) that have the same raises and the same result share
all later control flow: who plays, who may raise, when the hand ends.  They are taken ``LANES`` at a time, and every
quantity below turn 2 (a reach, a value, a regret) is a vector with one element per history.  So there is no branch,
no gather and no shuffle per history: the control flow runs once for sixteen of them.  The vector is a type of its
own (``Lanes``, the first part of this file): it compiles to plain SIMD instructions in less than half the time that
auto-vectorised loops need.

**A block is a program.**  A block (up to ``LANES`` histories) is swept depth first by a list of operations,
``2 * node`` (come down to it) and ``2 * node + 1`` (leave it).  Reaches go down and values come up in one sweep;
they live in a small scratch array, at rows that the tree assigned beforehand (`solver.tree`), so that only regrets
and averages, read in visiting order, come from memory.  Turns 1 and 2 are blocks too: one history, then one lane
per first card; `sweep` carries reaches and values between a block and its parent.

**Private information** at a node is the multiset of cards still in hand.  A joint deal has the weight
prod_r copies! / (a_r! b_r! (copies - a_r - b_r)!).  Here 1/a! and 1/b! are in the starting reaches.  What remains is,
for the player whose values are computed, a product of falling factorials of `left_r - own_r` over the opponent's
cards (`left`: copies not played yet): one factor for each card the opponent plays (`_leave_other`), the rest at the
end (`_terminal`).  Factors that only depend on the own hand are dropped: regret matching is scale free.  A holding
that the public cards exclude gets the factor 0 where it becomes impossible, so whatever is computed for it beyond
that point counts nothing.

**The last trick.**  The answerer's last card only matters by the hand's outcome, so the holdings that lead to the
same outcome share one information state (a class): regrets of the merged ones are proportional, and the average of
the merged state is the average of their reach-weighted plays; so nothing is lost.  Two classes, unless nobody wins a
hand whose tricks are all tied.  The leader has no card left there: his answer to a raise has no private information.

A sweep has an *updating* player, `player`, whose values are computed.  With regrets and averages it is an update of
CFR.  Without (None: numba then compiles nothing of it) it evaluates, in one of two modes: BEST (the updating player
best-responds) or EXPECT (both play as given).  `play[p]` holds what p's strategy is matched to: regrets, predicted
regrets, or the average.
"""

import operator
import os
from collections import namedtuple

import numpy as np
from llvmlite import ir
from numba import config, njit, types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

from solver.paths import cache_folder

LANES = 16

_FOLDER = config.CACHE_DIR or cache_folder()  # NUMBA_CACHE_DIR, if set, is obeyed
if _FOLDER is not None:
    config.CACHE_DIR = str(_FOLDER)

# No function here allocates, so none needs numba's reference counting (atomic operations at every call).
_COMPILED = {"nogil": True, "error_model": "numpy", "_nrt": False}

DECISION, TERMINAL, LAST_TRICK = 0, 1, 2  # kinds of node
NO_CARDS, CARDS, LAST_CARDS, SPLIT = 0, 1, 2, 3  # what a decision's card actions lead to
BEST, EXPECT = 0, 1  # modes of a sweep
DOWN, UP, BOTH, WAIT = 0, 1, 2, 3  # phases of a task
SPINS = 2000  # looks at the gate before a waiting thread offers its core

# One node of a block's program.  Rows are rows of the scratch array, but for `row` and `row_other`, which are rows of
# the acting (last trick: the answerer's) and of the other player's regrets, from the block's base.
NODE = np.dtype(
    [
        (name, np.int32)
        for name in (
            *("kind", "player", "held", "other_held", "offers", "cards", "level", "raised", "match", "lost"),
            *("row", "row_other", "reach", "other_reach", "child_reach", "sigma", "slots", "out", "left", "left_from"),
            *("card", "winner", "ties", "work"),
        )
    ]
)

# Tables of holdings, by number of cards k: see `solver.tree.holdings`.
Holdings = namedtuple("Holdings", "size distinct card rest number positions pairs more factorial")
# One step of CFR: `weight` of this iterate in the average; old regrets times `gain` if positive, `loss` if negative;
# `ahead`: the same for a prediction, which is `prediction` times the latest regret; regrets are cut off below `floor`;
# positive ones up to `zero` count as none.
Step = namedtuple("Step", "weight gain loss ahead floor zero prediction")


# ---------------------------------------------------------------------------------------------------------------------
# The vector type.  Its arithmetic is plain IEEE, lane by lane, without fused multiply-adds: these would be faster by a
# few per cent, but where the compiler forms them depends on what else it has compiled, and the bits depend on that.


class Lanes(types.Type):  # type: ignore[misc]
    """numba type: LANES floating-point numbers in one vector."""

    def __init__(self, element: types.Type) -> None:
        self.element = element
        super().__init__(name=f"lanes[{element}]")


def _vector(element):
    return ir.VectorType(ir.FloatType() if element == types.float32 else ir.DoubleType(), LANES)


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager, fe_type):
        super().__init__(manager, fe_type, _vector(fe_type.element))


def _register(op, instruction):
    @infer_global(op)
    class Template(AbstractTemplate):  # type: ignore[misc]
        def generic(self, args, kws):
            if len(args) == 2 and isinstance(args[0], Lanes) and args[0] == args[1]:
                return signature(args[0], *args)
            return None

    @lower_builtin(op, Lanes, Lanes)
    def lower(context, builder, sig, args):
        return getattr(builder, instruction)(*args)


for _op, _instruction in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _register(_op, _instruction)


def _address(context, builder, array_type, array, row):
    data = context.make_array(array_type)(context, builder, array).data
    offset = builder.mul(row, ir.Constant(row.type, LANES))
    return builder.bitcast(builder.gep(data, [offset]), _vector(array_type.dtype).as_pointer())


@intrinsic
def load(typingctx, array, row):
    """The lanes at `row` of an array of shape (rows, LANES)."""

    def generate(context, builder, sig, args):
        value = builder.load(_address(context, builder, sig.args[0], args[0], args[1]))
        value.align = sig.args[0].dtype.bitwidth // 8
        return value

    return Lanes(array.dtype)(array, types.intp), generate


@intrinsic
def store(typingctx, array, row, value):
    """Write lanes to `row` of an array of shape (rows, LANES)."""

    def generate(context, builder, sig, args):
        instruction = builder.store(args[2], _address(context, builder, sig.args[0], args[0], args[1]))
        instruction.align = sig.args[0].dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(array, types.intp, value), generate


def _splat(builder, vector, scalar):
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), zeros)


@intrinsic
def splat(typingctx, array, number):
    """`number` in all lanes, in the element type of `array`."""
    result = Lanes(array.dtype)

    def generate(context, builder, sig, args):
        scalar = context.cast(builder, args[1], sig.args[1], result.element)
        return _splat(builder, _vector(result.element), scalar)

    return result(array, number), generate


@intrinsic
def larger(typingctx, x, y):
    """Lane by lane, the larger of two."""

    def generate(context, builder, sig, args):
        return builder.select(builder.fcmp_ordered(">", *args), *args)

    return x(x, y), generate


@intrinsic
def where_above(typingctx, x, bound, yes, no):
    """Lane by lane, `yes` where x > bound, else `no`."""

    def generate(context, builder, sig, args):
        return builder.select(builder.fcmp_ordered(">", args[0], args[1]), args[2], args[3])

    return yes(x, bound, yes, no), generate


# Windows waits by spinning alone.
_yield = types.ExternalFunction("sched_yield" if os.name == "posix" else "_getpid", types.int32())


@intrinsic
def _arrive(typingctx, gate):
    """Atomically add 1 to gate[0]."""

    def generate(context, builder, sig, args):
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        builder.atomic_rmw("add", data, ir.Constant(ir.IntType(64), 1), "seq_cst")
        return context.get_dummy_value()

    return types.void(gate), generate


@intrinsic
def _arrived(typingctx, gate):
    """Atomically read gate[0]."""

    def generate(context, builder, sig, args):
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        return builder.load_atomic(data, "seq_cst", 8)

    return types.int64(gate), generate


# ---------------------------------------------------------------------------------------------------------------------
# Decisions.


@njit(**_COMPILED, forceinline=True)
def _shares(total, actions, scratch):
    """Regret matching (Zinkevich et al. 2007, eq. 8): the strategy is `regret+ * scale + base`."""
    none = splat(scratch, 0.0)
    one = splat(scratch, 1.0)
    scale = where_above(total, none, one / where_above(total, none, total, one), none)
    base = where_above(total, none, none, splat(scratch, 1.0 / actions))
    return scale, base


@njit(**_COMPILED, forceinline=True)
def _update(regret, play, row, difference, scratch, step):
    """Add an iteration's counterfactual regret to the discounted sum; with prediction, also to what is played next."""
    old = load(regret, row)
    floor = splat(scratch, step.floor)
    new = larger(larger(old * splat(scratch, step.gain), old * splat(scratch, step.loss)) + difference, floor)
    store(regret, row, new)
    if step.prediction > 0.0:
        expected = new * splat(scratch, step.ahead) + difference * splat(scratch, step.prediction)
        store(play, row, larger(expected, floor))


@njit(**_COMPILED)
def _enter(nodes, i, player, hands, play, average, base, scratch, step, mode):
    """Come down to a decision: the acting player's reach of every child; in the own sweep keep the strategy as well
    and, if there is one, add it to the average (weighted by the own reach)."""
    node = nodes[i]
    k = node.held
    size = hands.size[k]
    rest_size = hands.size[max(k - 1, 0)]
    own = node.player == player
    none = splat(scratch, 0.0)
    zero = splat(scratch, step.zero)
    weight = splat(scratch, step.weight)
    row = base + node.row
    sigma = node.sigma
    first_card = node.child_reach + node.offers * size
    for h in range(size):
        reach = load(scratch, node.reach + h)
        actions = node.offers + (hands.distinct[k, h] if node.cards != NO_CARDS else 0)
        if actions == 1:
            store(scratch, first_card + hands.card[k, h, 0] * rest_size + hands.rest[k, h, 0], reach)
            continue
        total = none
        for a in range(actions):
            regret = load(play, row + a)
            total = total + where_above(regret, zero, regret, none)
        scale, uniform = _shares(total, actions, scratch)
        for a in range(actions):
            regret = load(play, row + a)
            share = where_above(regret, zero, regret, none) * scale + uniform
            part = reach * share
            if a < node.offers:
                store(scratch, node.child_reach + a * size + h, part)
            else:
                j = a - node.offers
                store(scratch, first_card + hands.card[k, h, j] * rest_size + hands.rest[k, h, j], part)
            if own:
                store(scratch, sigma + a, share)
                if average is not None:
                    store(average, row + a, load(average, row + a) + part * weight)
        row += actions
        sigma += actions


@njit(**_COMPILED)
def _leave_own(nodes, i, hands, regret, play, base, scratch, step, mode):
    """Leave a decision of the updating player: its value for each holding, and the regrets."""
    node = nodes[i]
    k = node.held
    size = hands.size[k]
    rest_size = hands.size[max(k - 1, 0)]
    row = base + node.row
    sigma = node.sigma
    first_card = node.slots + node.offers * size
    for h in range(size):
        actions = node.offers + (hands.distinct[k, h] if node.cards != NO_CARDS else 0)
        if actions == 1:
            value = load(scratch, first_card + hands.card[k, h, 0] * rest_size + hands.rest[k, h, 0])
            store(scratch, node.out + h, value)
            continue
        value = splat(scratch, 0.0)
        for a in range(actions):
            slot = node.slots + a * size + h
            if a >= node.offers:
                j = a - node.offers
                slot = first_card + hands.card[k, h, j] * rest_size + hands.rest[k, h, j]
            part = load(scratch, slot)
            if mode == BEST:
                value = part if a == 0 else larger(value, part)
            else:
                value = value + load(scratch, sigma + a) * part
        store(scratch, node.out + h, value)
        if regret is not None:
            for a in range(actions):
                slot = node.slots + a * size + h
                if a >= node.offers:
                    j = a - node.offers
                    slot = first_card + hands.card[k, h, j] * rest_size + hands.rest[k, h, j]
                _update(regret, play, row + a, load(scratch, slot) - value, scratch, step)
        row += actions
        sigma += actions


@njit(**_COMPILED)
def _leave_other(nodes, i, hands, scratch):
    """Leave a decision of the other player: his strategy is in the reaches already, so values add up.  A card that he
    plays is one of the `left - own` that the updating player has not seen."""
    node = nodes[i]
    k = node.other_held
    size = hands.size[k]
    ranks = hands.number.shape[2]
    first_card = node.slots + node.offers * size
    for h in range(size):
        value = splat(scratch, 0.0)
        for a in range(node.offers):
            value = value + load(scratch, node.slots + a * size + h)
        if node.cards == LAST_CARDS:  # the last trick has added its cards already
            value = value + load(scratch, first_card + h)
        elif node.cards != NO_CARDS:
            for c in range(ranks):
                factor = load(scratch, node.left + c) - splat(scratch, hands.number[k, h, c])
                value = value + factor * load(scratch, first_card + c * size + h)
        store(scratch, node.out + h, value)


# ---------------------------------------------------------------------------------------------------------------------
# Cards and ends.


@njit(**_COMPILED)
def _play_card(nodes, i, ranks, scratch):
    """The copies left of each rank after the card that leads to this node; never below 0, for idle and impossible
    lanes."""
    node = nodes[i]
    for r in range(ranks):
        left = load(scratch, node.left_from + r)
        if r == node.card:
            left = larger(left - splat(scratch, 1.0), splat(scratch, 0.0))
        store(scratch, node.left + r, left)


@njit(**_COMPILED)
def _terminal(nodes, i, hands, pay, scratch):
    """An end of the hand: pay times the opponent's reach, weighted by the deals that the own holding u leaves him.

    The weight of his holding v is prod_r (left_r - u_r)(left_r - u_r - 1)... (v_r factors).  With
    G(w) = sum over v containing w of reach(v) v!/(v-w)! times the falling factorials of left - w over v - w,
    (x-1)_k = (x)_k - k (x-1)_(k-1) gives sum_v = sum over the sub-multisets w of u (by position) of (-1)^|w| G(w),
    and G(w) = sum_r (left_r - w_r) G(w + r) / (|v| - |w|), from G(v) = v! reach(v) upwards.
    """
    node = nodes[i]
    v = node.other_held
    u = node.held
    ranks = hands.number.shape[2]
    at = node.work
    for h in range(hands.size[v]):
        store(scratch, at + h, load(scratch, node.other_reach + h) * splat(scratch, hands.factorial[v, h]))
    above = at
    at_1 = at_2 = at_3 = at
    for k in range(v, -1, -1):
        if k < v:
            at = above + hands.size[k + 1]
            share = splat(scratch, 1.0 / (v - k))
            for h in range(hands.size[k]):
                total = splat(scratch, 0.0)
                for r in range(ranks):
                    more = hands.more[k, h, r]
                    if more >= 0:
                        factor = load(scratch, node.left + r) - splat(scratch, hands.number[k, h, r])
                        total = total + factor * load(scratch, above + more)
                store(scratch, at + h, total * share)
            above = at
        if k == 1:
            at_1 = at
        elif k == 2:
            at_2 = at
        elif k == 3:
            at_3 = at
    none = load(scratch, at)
    scale = splat(scratch, pay[node.level, node.winner])
    for h in range(hands.size[u]):
        total = none
        if v >= 1:
            for j in range(u):
                total = total - load(scratch, at_1 + hands.positions[u, h, j])
        if v >= 2:
            for j in range(u * (u - 1) // 2):
                total = total + load(scratch, at_2 + hands.pairs[u, h, j])
        if v >= 3 and u >= 3:
            total = total - load(scratch, at_3 + h)
        store(scratch, node.out + h, total * scale)


@njit(**_COMPILED, forceinline=True)
def _pair(play, row, scratch, zero):
    """Regret matching for two actions: the probability of the first, and of the second."""
    none = splat(scratch, 0.0)
    first = load(play, row)
    second = load(play, row + 1)
    first = where_above(first, zero, first, none)
    second = where_above(second, zero, second, none)
    scale, uniform = _shares(first + second, 2, scratch)
    return first * scale + uniform, second * scale + uniform


@njit(**_COMPILED, forceinline=True)
def _triple(play, row, scratch, zero):
    """Regret matching for three actions."""
    none = splat(scratch, 0.0)
    first = load(play, row)
    second = load(play, row + 1)
    third = load(play, row + 2)
    first = where_above(first, zero, first, none)
    second = where_above(second, zero, second, none)
    third = where_above(third, zero, third, none)
    scale, uniform = _shares(first + second + third, 3, scratch)
    return first * scale + uniform, second * scale + uniform, third * scale + uniform


@njit(**_COMPILED)
def _trick_reaches(reach, left, work, ranks, circular, scratch):
    """The answerer's reach, weighted by the copies left of his card, by what it does to each led card c: the sum over
    the cards that lose to it, in row work + c, and that beat it, in row work + ranks + c.

    Cards beat those before them; in the circular order the first and the last swap roles with each other.
    """
    losing = splat(scratch, 0.0)
    for c in range(ranks):
        store(scratch, work + c, losing)
        losing = losing + load(scratch, left + c) * load(scratch, reach + c)
    winning = splat(scratch, 0.0)
    for c in range(ranks - 1, -1, -1):
        store(scratch, work + ranks + c, winning)
        winning = winning + load(scratch, left + c) * load(scratch, reach + c)
    if circular:
        last = ranks - 1
        between = splat(scratch, 0.0)
        for c in range(1, last):
            between = between + load(scratch, left + c) * load(scratch, reach + c)
        store(scratch, work, load(scratch, left + last) * load(scratch, reach + last))
        store(scratch, work + ranks, between)
        store(scratch, work + last, between)
        store(scratch, work + ranks + last, load(scratch, left) * load(scratch, reach))


@njit(**_COMPILED, forceinline=True)
def _class_reach(k, ties, losing, winning, tied):
    """The answerer's reach of outcome class k: 0 he wins the hand, 1 the leader does, 2 nobody; `ties` is the class
    that a tied trick belongs to."""
    if k == 2:
        return tied
    mass = winning if k == 0 else losing
    if k == ties:
        mass = mass + tied
    return mass


@njit(**_COMPILED)
def _last_trick_answerer(
    nodes, i, ranks, circular, pay, play, play_other, regret, average, base, base_other, scratch, step, mode
):
    """The whole last trick in the answerer's sweep: values by his last card, summed over the card led.

    `row` counts his regrets: for each led card and class {raise, remainder, play}, the first two as far as they are
    legal; `row_other` the leader's {accept, refuse}, for each led card and raise.
    """
    node = nodes[i]
    me, ties, level, match, offers = node.player, node.ties, node.level, node.match, np.intp(node.offers)
    left, work, out, led = np.intp(node.left), np.intp(node.work), np.intp(node.out), np.intp(node.other_reach)
    own = np.intp(node.reach)
    row, row_other = base + node.row, base_other + node.row_other
    classes = 3 if ties == 2 else 2
    none, one = splat(scratch, 0.0), splat(scratch, 1.0)
    zero = splat(scratch, step.zero)
    weight = splat(scratch, step.weight)
    if average is not None and offers > 0:
        _trick_reaches(own, left, work, ranks, circular, scratch)
    refused = splat(scratch, pay[level, me])
    refused_match = splat(scratch, pay[node.lost, me])
    wins, losses = work + 2 * ranks, work + 3 * ranks  # rows: what a led card brings to those that beat it, lose to it
    win = lose = tie = none
    for c in range(ranks):
        reach = load(scratch, led + c)
        accept = refuse = accept_match = refuse_match = reach
        if offers > 0:
            accept, refuse = _pair(play_other, row_other, scratch, zero)
            accept = accept * reach
            refuse = refuse * reach * refused
            row_other += 2
        if offers > 1:
            accept_match, refuse_match = _pair(play_other, row_other, scratch, zero)
            accept_match = accept_match * reach
            refuse_match = refuse_match * reach * refused_match
            row_other += 2
        for k in range(classes):
            winner = 2 if k == 2 else (me if k == 0 else 1 - me)
            value = reach * splat(scratch, pay[level, winner])
            if offers > 0:
                played = value
                raised = called = accept * splat(scratch, pay[node.raised, winner]) + refuse
                p_raise = p_call = p_play = none
                if offers == 1:
                    p_raise, p_play = _pair(play, row, scratch, zero)
                    value = larger(raised, played) if mode == BEST else raised * p_raise + played * p_play
                else:
                    called = accept_match * splat(scratch, pay[match, winner]) + refuse_match
                    p_raise, p_call, p_play = _triple(play, row, scratch, zero)
                    value = (
                        larger(larger(raised, played), called)
                        if mode == BEST
                        else raised * p_raise + played * p_play + called * p_call
                    )
                if average is not None:
                    tied = larger(load(scratch, left + c) - one, none) * load(scratch, own + c)
                    mass = weight * _class_reach(
                        k, ties, load(scratch, work + c), load(scratch, work + ranks + c), tied
                    )
                    store(average, row, load(average, row) + mass * p_raise)
                    _update(regret, play, row, raised - value, scratch, step)
                    if offers > 1:
                        store(average, row + 1, load(average, row + 1) + mass * p_call)
                        _update(regret, play, row + 1, called - value, scratch, step)
                    store(average, row + offers, load(average, row + offers) + mass * p_play)
                    _update(regret, play, row + offers, played - value, scratch, step)
                row += offers + 1
            if k == 0:
                win = value
            elif k == 1:
                lose = value
            if k == ties:
                tie = value
        copies = load(scratch, left + c)
        store(scratch, out + c, (copies - one) * tie)
        store(scratch, wins + c, copies * win)
        store(scratch, losses + c, copies * lose)
    # Cards beat those before them; in the circular order the first and the last swap roles with each other.
    last = ranks - 1
    if last > 0:
        below = load(scratch, wins)
        below_last = load(scratch, losses) if circular else below
        above = load(scratch, losses + last)
        above_first = load(scratch, wins + last) if circular else above
        for x in range(1, last):
            store(scratch, out + x, load(scratch, out + x) + below)
            below = below + load(scratch, wins + x)
            below_last = below_last + load(scratch, wins + x)
        for x in range(last - 1, 0, -1):
            store(scratch, out + x, load(scratch, out + x) + above)
            above = above + load(scratch, losses + x)
            above_first = above_first + load(scratch, losses + x)
        store(scratch, out, load(scratch, out) + above_first)
        store(scratch, out + last, load(scratch, out + last) + below_last)


@njit(**_COMPILED)
def _last_trick_leader(
    nodes, i, ranks, circular, pay, play, play_other, regret, average, base, base_other, scratch, step, mode
):
    """The whole last trick in the leader's sweep: one value for each card that he may lead to it."""
    node = nodes[i]
    you, ties, level, match, offers = node.player, node.ties, node.level, node.match, np.intp(node.offers)
    left, work, out, led = np.intp(node.left), np.intp(node.work), np.intp(node.out), np.intp(node.other_reach)
    reach = np.intp(node.reach)
    row, row_other = base + node.row, base_other + node.row_other
    classes = 3 if ties == 2 else 2
    none, one = splat(scratch, 0.0), splat(scratch, 1.0)
    zero = splat(scratch, step.zero)
    weight = splat(scratch, step.weight)
    _trick_reaches(reach, left, work, ranks, circular, scratch)
    for c in range(ranks):
        tied = larger(load(scratch, left + c) - one, none) * load(scratch, reach + c)
        value = accepted = raised = accepted_match = called = none
        for k in range(classes):
            winner = 2 if k == 2 else (you if k == 0 else 1 - you)
            mass = _class_reach(k, ties, load(scratch, work + c), load(scratch, work + ranks + c), tied)
            if offers > 0:
                p_raise = p_call = p_play = none
                if offers == 1:
                    p_raise, p_play = _pair(play, row, scratch, zero)
                else:
                    p_raise, p_call, p_play = _triple(play, row, scratch, zero)
                    accepted_match = accepted_match + mass * p_call * splat(scratch, pay[match, winner])
                    called = called + mass * p_call
                row += offers + 1
                accepted = accepted + mass * p_raise * splat(scratch, pay[node.raised, winner])
                raised = raised + mass * p_raise
                mass = mass * p_play
            value = value + mass * splat(scratch, pay[level, winner])
        for offer in range(offers):
            if offer == 1:
                accepted = accepted_match
            refused = (
                called * splat(scratch, pay[node.lost, you]) if offer == 1 else raised * splat(scratch, pay[level, you])
            )
            p_accept, p_refuse = _pair(play_other, row_other, scratch, zero)
            answer = larger(accepted, refused) if mode == BEST else accepted * p_accept + refused * p_refuse
            if average is not None:
                own = load(scratch, led + c) * weight
                store(average, row_other, load(average, row_other) + own * p_accept)
                store(average, row_other + 1, load(average, row_other + 1) + own * p_refuse)
                _update(regret, play_other, row_other, accepted - answer, scratch, step)
                _update(regret, play_other, row_other + 1, refused - answer, scratch, step)
            row_other += 2
            value = value + answer
        store(scratch, out + c, value)


# ---------------------------------------------------------------------------------------------------------------------
# Sweeps.


@intrinsic
def _of_player(typingctx, pair, player):
    """A player's array of a pair; None of None, so that numba drops what is done with it."""
    if isinstance(pair, types.NoneType):
        return types.none(pair, player), lambda context, builder, sig, args: context.get_dummy_value()

    def generate(context, builder, sig, args):
        arrays = [builder.extract_value(args[0], p) for p in range(2)]
        return builder.select(builder.icmp_signed("==", args[1], ir.Constant(args[1].type, 0)), *arrays)

    return pair.dtype(pair, player), generate


@njit(**_COMPILED, cache=_FOLDER is not None)
def sweep(
    tasks, steps, gate, threads, blocks, left, sources, targets, ops, nodes, hands, circular, pay, play, regret,
    average, top, private, mode,
):  # fmt: skip
    """Run one thread's tasks in order, once for each row of `steps`.

    tasks: shape (tasks, 3): updating player, phase and block; phase DOWN goes down, UP goes up, BOTH does both, and
    WAIT waits until all `threads` have come as far; gate: shape (1,), zero at the start, counts arrivals.
    steps: shape (iterations, 2, 7), each player's Step.  By updating player p: blocks[p, b], nodes[p * half + i],
    sources[p, b, q, lane] = (row, lane) in `top` of q's reach at the block's root, targets[p, b, lane] = (row, lane)
    in `top` where the values go, pay[p].  left[b, r, lane]: copies of r not played yet at the root.  BOTH uses the
    scratch array `private`, the other phases `top`.
    """
    ranks = hands.number.shape[2]
    half = len(nodes) // 2
    arrivals = 0
    for t in range(len(steps)):
        for task in range(len(tasks)):
            player, phase, b = tasks[task, 0], tasks[task, 1], tasks[task, 2]
            if phase == WAIT:
                arrivals += threads
                _arrive(gate)
                spins = 0
                while _arrived(gate) < arrivals:
                    spins += 1
                    if spins > SPINS:  # the other thread may need this core
                        _yield()
                continue
            step = Step(
                steps[t, player, 0], steps[t, player, 1], steps[t, player, 2], steps[t, player, 3],
                steps[t, player, 4], steps[t, player, 5], steps[t, player, 6],
            )  # fmt: skip
            block = blocks[player, b]
            scratch = private if phase == BOTH else top
            mine_regret = _of_player(regret, player)
            mine_average = _of_player(average, player)
            if phase != UP:
                for q in range(2):
                    size = hands.size[block.held[q]]
                    for lane in range(LANES):
                        row = sources[player, b, q, lane, 0]
                        column = sources[player, b, q, lane, 1]
                        for h in range(size):
                            scratch[block.reach[q] + h, lane] = top[row + h, column]
                for r in range(ranks):
                    for lane in range(LANES):
                        scratch[block.left_at + r, lane] = left[b, r, lane]
            for at in range(block.ops[1 if phase == UP else 0], block.ops[1 if phase == DOWN else 2]):
                i = player * half + (ops[at] >> 1)
                node = nodes[i]
                acting = node.player
                if node.kind == TERMINAL:
                    if node.card >= 0:
                        _play_card(nodes, i, ranks, scratch)
                    _terminal(nodes, i, hands, pay[player], scratch)
                    continue
                mine, other = (play[0], play[1]) if acting == 0 else (play[1], play[0])
                base = block.base[acting]
                if node.kind == LAST_TRICK:
                    if acting == player:
                        _last_trick_answerer(
                            nodes, i, ranks, circular, pay[player], mine, other, mine_regret, mine_average, base,
                            block.base[1 - acting], scratch, step, mode,
                        )  # fmt: skip
                    else:
                        _last_trick_leader(
                            nodes, i, ranks, circular, pay[player], mine, other, mine_regret, mine_average, base,
                            block.base[1 - acting], scratch, step, mode,
                        )  # fmt: skip
                elif ops[at] & 1 == 0:
                    if node.card >= 0:
                        _play_card(nodes, i, ranks, scratch)
                    _enter(nodes, i, player, hands, mine, mine_average, base, scratch, step, mode)
                elif acting == player:
                    _leave_own(nodes, i, hands, mine_regret, mine, base, scratch, step, mode)
                else:
                    _leave_other(nodes, i, hands, scratch)
            if phase != DOWN:
                size = hands.size[block.held[player]]
                for lane in range(block.lanes):
                    row = targets[player, b, lane, 0]
                    column = targets[player, b, lane, 1]
                    for h in range(size):
                        top[row + h, column] = scratch[block.out + h, lane]


@njit(**_COMPILED, cache=_FOLDER is not None)
def scale_in_place(array, factor):
    """One streaming read and write: the floor that an iteration is measured against."""
    for i in range(array.shape[0]):
        for lane in range(LANES):
            array[i, lane] *= factor
