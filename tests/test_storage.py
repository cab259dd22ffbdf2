"""Strategy files and checkpoints: what is written is read back, and anything else is refused in one sentence."""

import json
import os
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from games.rules import preset
from solver import files, storage, tree
from solver.cfr import ALGORITHMS, Payoffs, Solver
from solver.storage import (
    StorageError,
    load_checkpoint,
    load_strategy,
    quantised,
    restored,
    save_checkpoint,
    save_strategy,
)
from solver.strategy import Strategy
from solver.tree import Tree

TREE = Tree(preset("mini"))
ALGORITHM = ALGORITHMS["dcfr+"]


@pytest.fixture(scope="module")
def solver() -> Solver:
    solver = Solver(TREE)
    solver.step(300)
    return solver


@pytest.fixture
def file(solver: Solver, tmp_path: Path) -> Path:
    path = tmp_path / "mini.safetensors"
    save_strategy(path, Strategy.of(solver), ALGORITHM, solver.iterations)
    return path


def rewritten(path: Path, checksum: bool = True, tensors=lambda tensors: tensors, **changes) -> Path:
    """The file with other fields or tensors, its checksum being right all the same."""
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    fields = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["header"])
    for key, value in changes.items():
        if value is ...:
            del fields[key]
        else:
            fields[key] = value
    new = tensors(load_tensors(content))
    if checksum:
        fields["checksum"] = storage._checksum(new, fields)
    path.write_bytes(save_tensors(new, {"header": json.dumps(fields, sort_keys=True)}))
    return path


def refusal(path: Path) -> str:
    with pytest.raises(StorageError) as error:
        load_strategy(path)
    message = str(error.value)
    assert "\n" not in message
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


def test_round_trip(file: Path, solver: Solver) -> None:
    strategy, header = load_strategy(file)
    original = Strategy.of(solver)
    for p in range(2):
        used = original.probabilities[p] - strategy.probabilities[p]
        lanes = np.concatenate([used[a:b, :n].ravel() for a, b, n in storage._stored(TREE, p)[1]])
        assert np.abs(lanes).max() <= 1 / 65535
    assert (header.format, header.iterations, header.unit) == ("le-truc strategy", 300, "points per hand")
    assert header.score is None
    result = strategy.evaluate()
    assert (header.value, tuple(header.best_response)) == (result.value, result.best_response)
    assert header.nash_conv == result.nash_conv


def test_reading_and_writing_again_changes_nothing(file: Path, tmp_path: Path) -> None:
    strategy, header = load_strategy(file)
    again = tmp_path / "again"
    save_strategy(again, strategy, ALGORITHM, header.iterations)
    assert load_tensors(again.read_bytes()).keys() == load_tensors(file.read_bytes()).keys()
    for name, tensor in load_tensors(file.read_bytes()).items():
        assert np.array_equal(tensor, load_tensors(again.read_bytes())[name])


@pytest.mark.parametrize("bits", [16, 20, 32])
def test_stored_probabilities_add_up(solver: Solver, bits: int) -> None:
    strategy = Strategy.of(solver)
    for p in range(2):
        table = restored(TREE, p, quantised(TREE, p, strategy.probabilities[p], bits))
        starts, _ = TREE.states[p]
        for first, end, lanes in storage._stored(TREE, p)[1]:
            inside = starts[(starts >= first) & (starts < end)] - first
            sums = np.add.reduceat(table[first:end, :lanes], inside, axis=0)
            assert np.abs(sums - 1).max() < 1e-6
        assert table.min() >= 0


def test_as_few_bits_as_cost_at_most_5_percent(solver: Solver, tmp_path: Path) -> None:
    def stored(iterations: int, tree: Tree = TREE) -> np.dtype:
        own = Solver(tree)
        own.step(iterations)
        strategy = Strategy.of(own)
        result = save_strategy(tmp_path / "s", strategy, ALGORITHM, iterations)
        assert result == load_strategy(tmp_path / "s")[0].evaluate()
        assert result.exploitability <= 1.05 * strategy.evaluate().exploitability
        return load_tensors((tmp_path / "s").read_bytes())["player0"].dtype

    assert stored(100) == np.uint16
    assert stored(3_000, Tree(preset("two-card"))) == np.uint8
    assert stored(20_000, Tree(preset("two-card"))) == np.float32


@pytest.mark.parametrize("count", [0, 1, 2, 7, 1000])
def test_20_bits_pack_and_unpack(count: int) -> None:
    numbers = np.random.default_rng(count).integers(0, 2**20, count)
    packed = storage._packed(numbers)
    assert packed.dtype == np.uint8
    assert len(packed) == (count + 1) // 2 * 5
    assert np.array_equal(storage._unpacked(packed, count), numbers)


def test_same_run_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        own = Solver(TREE)
        own.step(40)
        save_strategy(tmp_path / name, Strategy.of(own), ALGORITHM, 40)
        save_checkpoint(tmp_path / f"{name}.c", own, {"x": [1]})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a.c").read_bytes() == (tmp_path / "b.c").read_bytes()


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_a_checkpoint_goes_on_bit_by_bit(tmp_path: Path, algorithm: str) -> None:
    whole = Solver(TREE, algorithm=algorithm)
    whole.step(30)
    half = Solver(TREE, algorithm=algorithm)
    half.step(13)
    save_checkpoint(tmp_path / "c", half, {"next": 7})
    resumed, extra = load_checkpoint(tmp_path / "c")
    assert (extra, resumed.iterations, resumed.algorithm) == ({"next": 7}, 13, ALGORITHMS[algorithm])
    resumed.step(17)
    for p in range(2):
        assert np.array_equal(whole.regret[p], resumed.regret[p])
        assert np.array_equal(whole.average[p], resumed.average[p])


def test_a_write_that_fails_leaves_the_old_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = file.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        files.write_atomically(file, b"new")
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_leftovers_of_killed_runs_are_removed(tmp_path: Path) -> None:
    path = tmp_path / "[a]*.safetensors"
    others = [tmp_path / f".{name}.tmp" for name in ("b.safetensors.abcd1234", f"{path.name}.x.abcd1234", "x")]
    for each in (tmp_path / f".{path.name}.abcd1234.tmp", *others):
        each.write_bytes(b"")
    files.remove_leftovers(path)
    assert sorted(tmp_path.iterdir()) == sorted(others)
    files.check_writable(path)
    assert sorted(tmp_path.iterdir()) == sorted(others)
    with pytest.raises(OSError, match="No such file"):
        files.check_writable(tmp_path / "none" / "s")


def test_truncated_files_are_refused(file: Path) -> None:
    content = file.read_bytes()
    for length in [*range(0, 40), *np.linspace(40, len(content) - 1, 40, dtype=int)]:
        file.write_bytes(content[:length])
        assert "not a le-truc strategy file, or damaged" in refusal(file)


def test_every_flipped_bit_is_noticed(file: Path) -> None:
    content = file.read_bytes()
    rng = np.random.default_rng(5)
    header = 8 + int.from_bytes(content[:8], "little")
    places = [*range(0, 24), *rng.integers(8, header, 60), *rng.integers(header, len(content), 40), len(content) - 1]
    for place in places:
        changed = bytearray(content)
        changed[place] ^= 1 << int(rng.integers(8))
        file.write_bytes(changed)
        refusal(file)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00",
        b"\x7fELF" + bytes(200),
        b"PK\x03\x04" + bytes(200),
        b"name = 'mini'\n" * 30,
        struct.pack("<Q", 2**63) + b"{}",
        struct.pack("<Q", 99_000_000) + b"{" * 1000,
        struct.pack("<Q", 2) + b"{}",
        struct.pack("<Q", 5000) + b"[" * 5000,
        save_tensors({"player0": np.zeros(3, np.uint16)}),
        save_tensors({"player0": np.zeros(3, np.uint16)}, {"header": "[1]"}),
        save_tensors({"player0": np.zeros(3, np.uint16)}, {"header": "[" * 100_000}),
        save_tensors({"player0": np.zeros(3, np.uint16)}, {"header": '{"format": "le-truc strategy"}'}),
        save_tensors({"weight": np.zeros((3, 3), np.float32)}, {"format": "pt"}),
    ],
)
def test_foreign_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "s"
    path.write_bytes(content)
    assert "or damaged" in refusal(path)


def test_a_replaced_file_keeps_its_place_and_permissions(tmp_path: Path) -> None:
    new, old, link = tmp_path / "new", tmp_path / "old", tmp_path / "link"
    before = os.umask(0o027)
    try:
        files.write_atomically(new, b"1")
        assert new.stat().st_mode & 0o777 == 0o640
        old.write_bytes(b"1")
        old.chmod(0o604)
        link.symlink_to(old)
        files.write_atomically(link, b"2")
    finally:
        os.umask(before)
    assert link.is_symlink()
    assert (old.read_bytes(), old.stat().st_mode & 0o777) == (b"2", 0o604)
    old.chmod(0o444)
    for path in (old, link):
        with pytest.raises(PermissionError):
            files.check_writable(path)
        with pytest.raises(PermissionError) as error:
            files.write_atomically(path, b"3")
        assert error.value.filename == str(path)
    assert old.read_bytes() == b"2"
    link.unlink()
    link.symlink_to(tmp_path / "later")
    files.write_atomically(link, b"4")
    assert (tmp_path / "later").read_bytes() == b"4"
    assert {path.name for path in tmp_path.iterdir()} == {"new", "old", "later", "link"}


def test_a_lock_keeps_others_away_and_leaves_nothing(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    path, link = tmp_path / "s", tmp_path / "link"
    link.symlink_to(path)
    for _ in range(2):
        with files.locked(path), files.locked(tmp_path / "t"):
            for same in (path, link):
                with pytest.raises(BlockingIOError), files.locked(same):
                    pass
    (tmp_path / ".s.lock").write_bytes(b"")  # of a process that was killed
    with files.locked(path):
        pass
    assert [each.name for each in tmp_path.iterdir()] == ["link"]


def test_without_locks_nobody_is_kept_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with files.locked(tmp_path / "s"), files.locked(tmp_path / "s"):
        assert list(tmp_path.iterdir()) == []


def test_no_file_no_strategy(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none") == "No such file or directory"
    assert refusal(tmp_path) == "not a file"
    assert refusal(Path(os.devnull)) == "not a file"


def test_a_checkpoint_is_no_strategy(solver: Solver, file: Path, tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "c", solver, {})
    assert "a 'le-truc checkpoint' file, not a le-truc strategy" in refusal(tmp_path / "c")
    with pytest.raises(StorageError, match="a 'le-truc strategy' file, not a le-truc checkpoint"):
        load_checkpoint(file)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": "2.0"}, "format version '2.0', this program reads 1.0"),
        ({"version": None}, "format version None"),
        ({"rules": "ladder = []"}, "describes no game"),
        ({"rules": 7}, "describes no game"),
        ({"rules_hash": "00" * 32}, "but it states"),
        ({"rules_hash": 5}, "but it states 5"),
        ({"tree_hash": "00" * 32}, "another order of the information states"),
        ({"payoffs": {}}, "describes no game"),
        (
            {"payoffs": {"win0": [1.0], "win1": [1.0], "tie": 0.0, "unit": "points per hand"}},
            "two numbers for each of 3",
        ),
        ({"payoffs": {"win0": "abc", "win1": "abc", "tie": 0.0, "unit": "points per hand"}}, "describes no game"),
        ({"payoffs": {"win0": [1.0] * 3, "win1": [1.0] * 3, "tie": 0.0, "unit": "beans"}}, "the unit 'beans' must be"),
        ({"payoffs": {"win0": [1.0] * 3, "win1": [1e999] * 3, "tie": 0.0, "unit": "points per hand"}}, "two numbers"),
        ({"iterations": -1}, "does not have the fields"),
        ({"iterations": "many"}, "does not have the fields"),
        ({"best_response": [1.0]}, "does not have the fields"),
        ({"value": "x"}, "does not have the fields"),
        ({"score": 3}, "does not have the fields"),
        ({"value": ...}, "does not have the fields"),
        ({"extra": 1}, "does not have the fields"),
    ],
)
def test_headers_that_cannot_be_right(file: Path, changes: dict, message: str) -> None:
    assert message in refusal(rewritten(file, **changes))


def test_a_game_too_large_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solver.tree.MAX_ROWS", 10)
    tree._built.cache_clear()  # it has the tree already
    assert "describes no game (the tree of 'mini' has" in refusal(file)


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        (lambda t: {"player0": t["player0"]}, "the tensor 'player1' is missing"),
        (lambda t: {**t, "player0": t["player0"][:-1]}, "but this game's is uint16"),
        (lambda t: {**t, "player0": t["player0"].astype(np.int32)}, "but this game's is uint16"),
        (lambda t: {**t, "player0": np.full(t["player0"].shape, np.nan, np.float32)}, "no probabilities"),
        (lambda t: {**t, "player0": np.full(t["player0"].shape, -0.1, np.float32)}, "no probabilities"),
        (lambda t: {**t, "player0": np.full(t["player0"].shape, 65535, np.uint16)}, "more than 1"),
    ],
)
def test_tensors_that_cannot_be_right(file: Path, tensors, message: str) -> None:
    assert message in refusal(rewritten(file, tensors=tensors))


def test_a_wrong_checksum_is_noticed(file: Path) -> None:
    message = refusal(rewritten(file, checksum=False, iterations=301))
    assert message == "damaged, its contents do not have the checksum it states"


def test_checkpoints_that_cannot_be_right(solver: Solver, tmp_path: Path) -> None:
    path = tmp_path / "c"
    for change in ({"iterations": "x"}, {"algorithm": {}}, {"extra": ...}, {"zero": ...}):
        save_checkpoint(path, solver, {})
        with pytest.raises(StorageError, match="not a complete checkpoint"):
            load_checkpoint(rewritten(path, **change))
    for tensors in (lambda t: {}, lambda t: {**t, "regret1": t["regret1"][:-1]}):
        save_checkpoint(path, solver, {})
        with pytest.raises(StorageError, match="not a complete checkpoint"):
            load_checkpoint(rewritten(path, tensors=tensors))


def test_other_payoffs_are_kept(tmp_path: Path) -> None:
    payoffs = Payoffs((0.6, 0.7, 0.9), (0.4, 0.3, 0.2), 0.5, "match-winning probability")
    save_strategy(tmp_path / "s", Strategy.uniform(TREE, payoffs), ALGORITHM, 0, score="3-4")
    strategy, header = load_strategy(tmp_path / "s")
    assert (strategy.payoffs, header.score, header.unit) == (payoffs, "3-4", payoffs.unit)
