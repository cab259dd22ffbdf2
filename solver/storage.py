"""Strategy files and checkpoints: safetensors with one JSON header, written atomically, read with suspicion.

A strategy file has a tensor ``player0`` and ``player1`` each: for every information state, in the order of the tree
(blocks, lanes, states), the probabilities of all actions but the last, which has what is missing to 1.  Stored as
uint16 (steps of 1/65535), as uint8 (20 bits each, two in five bytes, steps of 1/1048575) or as float32: the smallest
that costs at most 5 % of exploitability.  The metadata has one entry, ``header``: the JSON text of `Header`'s fields.
Nothing in a file depends on when or where it was made: the same run writes the same bytes.

A checkpoint has the solver's arrays themselves (``regret0`` ...), from which a run goes on bit by bit.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from games.rules import Rules, shown
from solver import __version__
from solver.best_response import Evaluation
from solver.cfr import UNITS, Algorithm, Pair, Payoffs, Solver, lanes_array
from solver.files import write_atomically
from solver.strategy import Strategy
from solver.tree import Tree, public_tree

STRATEGY, CHECKPOINT = "le-truc strategy", "le-truc checkpoint"
VERSION = "1.0"  # readers refuse another major number
BITS = (16, 20, 32)  # of a stored probability
STORING_LOSS = 1.05  # what rounding may make of the exploitability
MAX_ITERATIONS = 10**12  # that a file may state; more would take years
AT_A_SCORE = ("decider", "match_from")  # fields of a header that only the hand at a score has
NONSENSE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
"""What comes of taking anything for what it is not."""


class StorageError(ValueError):
    """A file that is not a usable strategy or checkpoint; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Header:
    """What a strategy file says of itself; values as read back from its own probabilities, in `unit`."""

    format: str
    version: str
    rules: str  # TOML
    rules_hash: str
    tree_hash: str
    payoffs: dict[str, Any]
    score: str | None  # "L-D", or null for a hand valued in points
    algorithm: dict[str, Any]
    iterations: int
    value: float
    best_response: list[float]
    nash_conv: float
    unit: str
    packages: dict[str, str]
    decider: int | None = None  # as for `solver.tree.Tree`; AT_A_SCORE are only there if they are not None
    match_from: list[int] | None = None
    checksum: str = ""  # SHA-256 of the tensors and of this header without it


def packages() -> dict[str, str]:
    """The versions that a rerun needs for the same bits."""
    python = platform.python_version()
    return {"le-truc": __version__, "numba": numba.__version__, "numpy": np.__version__, "python": python}


def tree_hash(tree: Tree) -> str:
    """SHA-256 of the order in which a tree keeps its information states."""
    digest = hashlib.sha256(json.dumps([block.histories for block in tree.blocks]).encode())
    for _, sizes in tree.states:
        digest.update(sizes.astype("<i8").tobytes())
    return digest.hexdigest()


def _stored(tree: Tree, player: int) -> tuple[npt.NDArray[np.bool_], list[tuple[int, int, int]]]:
    """Which of a player's rows are stored (all but each state's last), and for each block first row, end and lanes."""
    starts, sizes = tree.states[player]
    kept = np.ones(tree.rows[player], bool)
    kept[starts + sizes - 1] = False
    ends = np.append(tree.bases[1:, player], tree.rows[player])
    spans = zip(tree.bases[:, player], ends, tree.blocks, strict=True)
    return kept, [(int(first), int(end), len(block.histories)) for first, end, block in spans]


def quantised(tree: Tree, player: int, probabilities: npt.NDArray[Any], bits: int) -> npt.NDArray[Any]:
    """The tensor of a player's probabilities (shape (rows, LANES)), in 16, 20 or 32 bits each.

    In 16 and 20 bits the shares of one information state are rounded so that they add up exactly (largest remainders).
    """
    kept, spans = _stored(tree, player)
    if bits == 32:
        table = probabilities.astype(np.float32)
    else:
        starts, sizes = tree.states[player]
        steps = 2**bits - 1
        table = np.floor(probabilities * steps)
        rest = probabilities * steps - table
        for size in np.unique(sizes):
            rows = (starts[sizes == size][:, None] + np.arange(size)).ravel()
            shape = (-1, int(size), probabilities.shape[1])
            whole, part = table[rows].reshape(shape), rest[rows].reshape(shape)
            missing = steps - whole.sum(axis=1, keepdims=True)
            rank = np.argsort(np.argsort(-part, axis=1, kind="stable"), axis=1, kind="stable")
            table[rows] = (whole + (rank < missing)).reshape(-1, shape[2])
    numbers = np.concatenate([table[a:b][kept[a:b], :lanes].T.ravel() for a, b, lanes in spans])
    return numbers.astype(np.uint16) if bits == 16 else _packed(numbers) if bits == 20 else numbers


def _packed(numbers: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Whole numbers of 20 bits, two in five bytes, least significant first; an odd one out is followed by 0."""
    pairs = np.append(numbers, [0] * (len(numbers) % 2)).astype("<u8").reshape(-1, 2)
    packed: npt.NDArray[np.uint8] = (pairs[:, :1] | pairs[:, 1:] << 20).view(np.uint8)[:, :5].ravel()
    return packed


def _unpacked(packed: npt.NDArray[np.uint8], count: int) -> npt.NDArray[np.uint64]:
    pairs = np.zeros((len(packed) // 5, 8), np.uint8)
    pairs[:, :5] = packed.reshape(-1, 5)
    both = pairs.view("<u8")
    return np.concatenate([both & 0xFFFFF, both >> 20], axis=1).ravel()[:count]


def restored(tree: Tree, player: int, tensor: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """The inverse of `quantised`: shape (rows, LANES).  Raises StorageError for what cannot be probabilities."""
    kept, spans = _stored(tree, player)
    wanted = sum(int(kept[a:b].sum()) * lanes for a, b, lanes in spans)
    shapes = {"uint16": (wanted,), "uint8": ((wanted + 1) // 2 * 5,), "float32": (wanted,)}
    if shapes.get(str(tensor.dtype)) != tensor.shape:
        possible = " or ".join(f"{dtype} {shape}" for dtype, shape in shapes.items())
        raise StorageError(f"tensor player{player} is {tensor.dtype} {tensor.shape}, but this game's is {possible}")
    numbers = (_unpacked(tensor, wanted) if tensor.dtype == np.uint8 else tensor).astype(np.float64)
    numbers /= {"uint16": 2.0**16 - 1, "uint8": 2.0**20 - 1, "float32": 1.0}[str(tensor.dtype)]
    if not np.all((numbers >= 0) & (numbers <= 1)):
        raise StorageError(f"tensor player{player} has numbers that are no probabilities")
    table = lanes_array(tree.rows[player], np.float64)
    at = 0
    for a, b, lanes in spans:
        rows = a + np.flatnonzero(kept[a:b])
        table[rows, :lanes] = numbers[at : at + len(rows) * lanes].reshape(lanes, len(rows)).T
        at += len(rows) * lanes
    starts, sizes = tree.states[player]
    if len(starts):
        given = np.add.reduceat(table, starts, axis=0)
        if given.max() > 1 + 1e-6:
            raise StorageError(f"tensor player{player} has probabilities that add up to {given.max():.6g}, more than 1")
        table[starts + sizes - 1] = np.maximum(1 - given, 0)
    return table


def as_stored(strategy: Strategy, bits: int) -> tuple[Strategy, dict[str, npt.NDArray[Any]]]:
    """A strategy as it is read back from its tensors, and these, in 16, 20 or 32 bits."""
    tree = strategy.tree
    tensors = {f"player{p}": quantised(tree, p, strategy.probabilities[p], bits) for p in range(2)}
    stored = (restored(tree, 0, tensors["player0"]), restored(tree, 1, tensors["player1"]))
    return Strategy(tree, strategy.payoffs, stored), tensors


def save_strategy(
    path: Path, strategy: Strategy, algorithm: Algorithm, iterations: int, score: str | None = None, threads: int = 1
) -> Evaluation:
    """Write a strategy file, in the fewest bits that cost at most 5 % of exploitability; returns the evaluation of the
    strategy as stored.  Raises OSError."""
    limit = strategy.evaluate(threads).exploitability * STORING_LOSS
    for bits in BITS:
        stored, tensors = as_stored(strategy, bits)
        result = stored.evaluate(threads)
        if result.exploitability <= limit:
            break
    write_strategy(path, stored.tree, stored.payoffs, tensors, result, algorithm, iterations, score)
    return result


def write_strategy(
    path: Path,
    tree: Tree,
    payoffs: Payoffs,
    tensors: dict[str, npt.NDArray[Any]],
    result: Evaluation,
    algorithm: Algorithm,
    iterations: int,
    score: str | None,
) -> str:
    """Write the tensors that `as_stored` made, with their evaluation; returns the checksum.  Raises OSError."""
    header = Header(
        format=STRATEGY,
        version=VERSION,
        rules=tree.rules.to_toml(),
        rules_hash=tree.rules.hash,
        tree_hash=tree_hash(tree),
        payoffs=asdict(payoffs),
        score=score,
        algorithm=asdict(algorithm),
        iterations=iterations,
        value=result.value,
        best_response=list(result.best_response),
        nash_conv=result.nash_conv,
        unit=payoffs.unit,
        packages=packages(),
    )
    always = {name: value for name, value in asdict(header).items() if name not in AT_A_SCORE}
    return write_tensors(path, tensors, always | _at_its_score(tree))


def load_strategy(path: Path) -> tuple[Strategy, Header]:
    """Read a strategy file.  Raises StorageError."""
    tensors, stated = read_tensors(path, STRATEGY)
    try:
        header = Header(**stated)
        for number in (header.value, *header.best_response, header.nash_conv):
            real(number, -1e6, 1e6)
        if len(header.best_response) != 2:
            raise ValueError("best responses that are not two numbers")
        whole(header.iterations)
        if header.score is not None and not isinstance(header.score, str):
            raise ValueError("a score that is not a text")
        _algorithm(header.algorithm)
        if any(not isinstance(text, str) for text in dict(header.packages).values()):
            raise ValueError("packages whose versions are not texts")
    except NONSENSE as error:
        raise StorageError(f"{path}: the header does not have the fields of version {VERSION} ({error})") from error
    tree, payoffs = _game(path, stated)
    if header.unit != payoffs.unit:
        raise StorageError(f"{path}: its values are in {shown(header.unit)}, but its payoffs in {payoffs.unit!r}")
    try:
        probabilities = (restored(tree, 0, tensors["player0"]), restored(tree, 1, tensors["player1"]))
    except KeyError as error:
        raise StorageError(f"{path}: the tensor {error} is missing") from error
    except StorageError as error:
        raise StorageError(f"{path}: {error}") from error
    if len(tensors) > 2:
        raise StorageError(f"{path}: it has other tensors besides player0 and player1: {shown(sorted(tensors))}")
    return Strategy(tree, payoffs, probabilities), header


def save_checkpoint(path: Path, solver: Solver, extra: dict[str, Any]) -> None:
    """Write a solver's whole state; `extra` is kept with it.  Raises OSError."""
    tensors = {f"{name}{p}": array for name, pair in _state(solver).items() for p, array in enumerate(pair)}
    fields = {
        "format": CHECKPOINT,
        "version": VERSION,
        "rules": solver.tree.rules.to_toml(),
        "rules_hash": solver.tree.rules.hash,
        "tree_hash": tree_hash(solver.tree),
        "payoffs": asdict(solver.payoffs),
        "algorithm": asdict(solver.algorithm),
        "zero": solver.zero,
        "iterations": solver.iterations,
        "extra": extra,
    }
    write_tensors(path, tensors, fields | _at_its_score(solver.tree))


def load_checkpoint(path: Path, threads: int = 1) -> tuple[Solver, dict[str, Any]]:
    """A solver as it was, and what was kept with it.  Raises StorageError."""
    tensors, stated = read_tensors(path, CHECKPOINT)
    tree, payoffs = _game(path, stated)
    try:
        algorithm = _algorithm(stated["algorithm"])
        dtype = tensors["regret0"].dtype
        if dtype not in (np.float32, np.float64):
            raise ValueError(f"regrets of type {dtype}")
        solver = Solver(tree, payoffs, algorithm, threads, dtype, real(stated["zero"], 0.0, 1.0))
        solver.iterations = whole(stated["iterations"])
        state = {f"{name}{p}": array for name, pair in _state(solver).items() for p, array in enumerate(pair)}
        if state.keys() != tensors.keys():
            raise ValueError(f"tensors {shown(sorted(tensors))} instead of {sorted(state)}")
        for name, array in state.items():
            tensor = tensors[name]
            if (tensor.dtype, tensor.shape) != (dtype, array.shape):
                raise ValueError(f"tensor {name} is {tensor.dtype} {tensor.shape}, not {dtype} {array.shape}")
            least = 0.0 if name.startswith("average") or algorithm.plus else -np.inf
            if not np.isfinite(tensor).all() or tensor.min(initial=0.0) < least:
                raise ValueError(f"tensor {name} has numbers that cannot be")
            array[:] = tensor
        extra = stated["extra"]
        if not isinstance(extra, dict):
            raise ValueError(f"extra is {shown(extra)}")
    except NONSENSE as error:
        raise StorageError(f"{path}: not a complete checkpoint ({error})") from error
    return solver, extra


def read_header(path: Path, kind: str) -> dict[str, Any]:
    """What a file of this kind says of itself, if it is whole.  Raises StorageError."""
    return read_tensors(path, kind)[1]


def check_game(path: Path, kind: str, rules: Rules, payoffs: Payoffs | None = None) -> dict[str, Any]:
    """The header of a file of this kind, of this game with these payoffs, by default points.  Raises StorageError for
    any other file."""
    stated = read_header(path, kind)
    try:
        wanted = Payoffs.points(rules) if payoffs is None else payoffs
        if stated["rules_hash"] == rules.hash and _payoffs(rules, stated["payoffs"], len(wanted.win0)) == wanted:
            return stated
    except NONSENSE:
        pass
    raise StorageError(f"{path}: a {kind} of another game")


def whole(number: object) -> int:
    """A whole number from a file, such as one of iterations.  Raises ValueError."""
    if type(number) is not int or not 0 <= number <= MAX_ITERATIONS:
        raise ValueError(f"{shown(number)} is no whole number from 0 to {MAX_ITERATIONS:.0e}")
    return number


def real(number: object, least: float, most: float) -> float:
    """A number from a file.  Raises ValueError."""
    if type(number) not in (int, float) or not least <= number <= most:  # type: ignore[operator]
        raise ValueError(f"{shown(number)} is no number from {least:g} to {most:g}")
    return float(number)  # type: ignore[arg-type]


def _algorithm(stated: dict[str, Any]) -> Algorithm:
    """Raises KeyError, TypeError and ValueError for what is no algorithm."""
    algorithm = Algorithm(**stated)
    if type(algorithm.plus) is not bool:
        raise ValueError(f"plus is {shown(algorithm.plus)}")
    for name, number in asdict(algorithm).items():
        if name != "plus" and (number is not None or name in ("gamma", "prediction")):
            real(number, 0.0, 20.0)
    return algorithm


def _state(solver: Solver) -> dict[str, Pair]:
    state = {"regret": solver.regret, "average": solver.average}
    return state | {"play": solver.play} if solver.algorithm.predictive else state


def _game(path: Path, fields: dict[str, Any]) -> tuple[Tree, Payoffs]:
    """The tree and payoffs that a header names, if they are what it was made for."""
    try:
        rules = Rules.from_toml(fields["rules"], "its rules")
        if rules.hash != fields["rules_hash"]:
            stated = shown(fields["rules_hash"])
            raise StorageError(f"{path}: its rules have the hash {rules.hash!r}, but it states {stated}")
        decider = _whose(rules, fields.get("decider"))
        payoffs = _payoffs(rules, fields["payoffs"], len(rules.ladder) + rules.remainder + (decider is not None))
        tree = public_tree(rules, decider, _match_from(rules, fields.get("match_from")))
        if tree_hash(tree) != fields["tree_hash"]:
            raise StorageError(f"{path}: made for another order of the information states than this version's")
    except StorageError:
        raise
    except NONSENSE as error:  # RulesError and TreeTooLargeError among them
        raise StorageError(f"{path}: the header describes no game ({error})") from error
    return tree, payoffs


def _at_its_score(tree: Tree) -> dict[str, Any]:
    """What the score says of the tree, if it says anything."""
    match_from = None if tree.match_from is None else list(tree.match_from)
    stated = zip(AT_A_SCORE, (tree.decider, match_from), strict=True)
    return {name: value for name, value in stated if value is not None}


def _whose(rules: Rules, decider: object) -> int | None:
    """The decider that a header states.  Raises ValueError."""
    if decider is None or (decider in (0, 1) and rules.decision_before_target and len(rules.ladder) == 1):
        return None if decider is None else whole(decider)
    raise ValueError(f"the decider {shown(decider)}")


def _match_from(rules: Rules, stated: object) -> tuple[int, int] | None:
    """The levels that a header states.  Raises ValueError."""
    if stated is None:
        return None
    if isinstance(stated, list) and len(stated) == 2 and rules.remainder and rules.remainder_refused == "stake":
        first, second = (whole(level) for level in stated)
        if max(first, second) <= len(rules.ladder):
            return first, second
    raise ValueError(f"the levels {shown(stated)} from which the match is won")


def _payoffs(rules: Rules, stated: dict[str, Any], levels: int) -> Payoffs:
    """Raises KeyError, TypeError and ValueError for what no payoffs can be."""
    win0, win1 = (tuple(map(float, stated[side])) for side in ("win0", "win1"))
    tie, unit = float(stated["tie"]), stated["unit"]
    if not len(win0) == len(win1) == levels or not all(map(math.isfinite, (*win0, *win1, tie))):
        raise ValueError(f"payoffs must be two numbers for each of {levels} stakes and one for a tie")
    if unit not in UNITS:
        raise ValueError(f"the unit {shown(unit)} must be {' or '.join(map(repr, UNITS))}")
    payoffs = Payoffs(win0, win1, tie, unit)
    if unit == UNITS[0] and payoffs != Payoffs.points(rules):
        raise ValueError(f"in {unit} the payoffs must be the stakes")
    if unit == UNITS[1] and max(map(abs, (*win0, *win1, tie))) > 1:
        raise ValueError(f"payoffs of {unit} must be at most 1")
    return payoffs


def _checksum(tensors: dict[str, npt.NDArray[Any]], fields: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps({**fields, "checksum": ""}, sort_keys=True).encode())
    for name in sorted(tensors):
        digest.update(f"{name} {tensors[name].dtype} {tensors[name].shape}".encode())
        digest.update(np.ascontiguousarray(tensors[name]).data)
    return digest.hexdigest()


def write_tensors(path: Path, tensors: dict[str, npt.NDArray[Any]], fields: dict[str, Any]) -> str:
    """Write a file of tensors with a header, to which its checksum is added; returns that.  Raises OSError."""
    fields = {**fields, "checksum": _checksum(tensors, fields)}
    write_atomically(path, save_tensors(tensors, {"header": json.dumps(fields, sort_keys=True)}))
    return str(fields["checksum"])


def read_tensors(path: Path, kind: str) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """A file's tensors and header, if it is of this kind and every byte is as it was written.  Raises StorageError."""
    try:
        if path.exists() and not path.is_file():  # reading a device may never end
            raise StorageError(f"{path}: not a file")
        content = path.read_bytes()
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror or error}") from error
    try:
        tensors = load_tensors(content)
        size = int.from_bytes(content[:8], "little")
        metadata = json.loads(content[8 : 8 + size])["__metadata__"]
        fields = json.loads(metadata["header"])
        if fields["format"] != kind:
            raise StorageError(f"{path}: a {shown(fields['format'])} file, not a {kind}")
        if str(fields["version"]).split(".")[0] != VERSION.split(".")[0]:
            raise StorageError(f"{path}: format version {shown(fields['version'])}, this program reads {VERSION}")
        same = fields["checksum"] == _checksum(tensors, fields) and content == save_tensors(tensors, metadata)
    except StorageError:
        raise
    except (SafetensorError, *NONSENSE) as error:
        raise StorageError(f"{path}: not a {kind} file, or damaged") from error
    if not same:
        raise StorageError(f"{path}: damaged, its contents do not have the checksum it states")
    return tensors, fields
