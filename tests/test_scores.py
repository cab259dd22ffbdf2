"""Equity tables as files, and strategies of single scores: stored, kept, or solved on the spot."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from games.rules import Rules, preset
from solver import scores as module
from solver.equity import Score, Worth, hand_rules, scores
from solver.match_run import solve_match
from solver.scores import (
    QUICK,
    NoTableError,
    equity,
    hand_payoffs,
    match_folder,
    read_table,
    stored_match,
    strategy_at,
    table_document,
)
from solver.storage import StorageError
from tests.test_forged import DEEP, NONSENSE, places, replaced
from tests.test_match_run import Inline, begin, content

TINY = replace(preset("tiny"), target=3)
MADE_UP = {
    score: Worth(0.5 + (score[0] - score[1]) / 7, 0.55 + (score[0] - score[1]) / 7, 0.6 - (score[0] - score[1]) / 7)
    for score in scores(TINY)
}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own, and no table that comes with the program."""
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setattr(module, "cache_folder", lambda: folder)
    monkeypatch.setattr(module, "shipped_table", lambda name: None)
    return folder


def written(folder: Path, rules: Rules = TINY, known: dict[Score, Worth] = MADE_UP) -> Path:
    """A table's file."""
    file = folder / "equity.json"
    file.write_text(json.dumps(table_document(rules, known)))
    return file


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table that comes with the program."""
    file = written(tmp_path)
    monkeypatch.setattr(module, "shipped_table", lambda name: file)
    return file


# -------------------------------------------------------------------------------------------------------------- tables


def test_tables_are_read_as_they_were_written(tmp_path: Path) -> None:
    found = read_table(written(tmp_path), TINY)
    assert found.keys() == MADE_UP.keys()
    for score, worth in found.items():
        assert worth.value == MADE_UP[score].value
        assert worth == pytest.approx(MADE_UP[score], abs=1e-15)


def test_a_table_says_what_the_whole_match_is_worth() -> None:
    document = table_document(TINY, MADE_UP, rounding=0.1)
    start = MADE_UP[0, 0]
    assert document["best_response"] == [start.leader, start.dealer]
    assert document["gains"] == pytest.approx([0.05, 0.1])
    assert document["exploitability"] == pytest.approx(0.075)
    assert document["lower"]["0-0"] == pytest.approx(start.lower - 0.1)
    assert document["upper"]["0-0"] == pytest.approx(start.upper + 0.1)
    assert all(
        0 <= document["lower"][s] <= document["value"][s] <= document["upper"][s] <= 1 for s in document["value"]
    )


def test_tables_that_are_none_are_refused(tmp_path: Path) -> None:
    """Every field that is read, replaced by nonsense or left out: refused, or still a probability for every score."""
    file = written(tmp_path)
    good = json.loads(file.read_text())
    for place in places(good):
        for new in (*NONSENSE, ...):
            if place == () and new is ...:
                continue
            file.write_text(json.dumps(replaced(good, place, new)))
            found = read(file)
            if found is not None:
                assert found.keys() == MADE_UP.keys()
                assert all(type(x) is float and 0 <= x <= 1 for worth in found.values() for x in worth)


def read(file: Path) -> dict[Score, Worth] | None:
    """A table, None if it is refused as it should be."""
    try:
        return read_table(file, TINY)
    except StorageError as error:
        message = str(error).replace(str(file), "")
    assert len(message) < 300
    assert message.isprintable()
    return None


def test_other_files_are_refused(tmp_path: Path) -> None:
    file = written(tmp_path)
    with pytest.raises(StorageError, match="the table of other rules than 'tiny'"):
        read_table(file, preset("tiny"))
    good = json.loads(file.read_text())
    for table in ("value", "lower", "upper"):
        moved = {("5-5" if score == "0-0" else score): x for score, x in good[table].items()}
        file.write_text(json.dumps({**good, "value": moved, "lower": moved, "upper": moved}))
        with pytest.raises(StorageError):
            read_table(file, TINY)
    for text in ("", "[]", "null", "[" * 100_000, "9" * 10_000, json.dumps({"value": DEEP}), "\x00"):
        file.write_text(text)
        with pytest.raises(StorageError):
            read_table(file, TINY)
    file.write_bytes(b"\xff")
    with pytest.raises(StorageError):
        read_table(file, TINY)
    for path in (tmp_path / "none", tmp_path, Path("\x00")):
        with pytest.raises(StorageError):
            read_table(path, TINY)


def test_without_a_table_a_sentence_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sentence = "^no match by the rules 'tiny' is solved yet, `truc match solve` does it$"
    with pytest.raises(NoTableError, match=sentence):
        equity(TINY)
    with pytest.raises(NoTableError, match=sentence):
        strategy_at(TINY, (0, 0))
    # One of other rules by the same name is none.
    file = written(tmp_path, replace(TINY, all_tied="leader"))
    monkeypatch.setattr(module, "shipped_table", lambda name: file)
    with pytest.raises(NoTableError, match=sentence):
        equity(TINY)


# ---------------------------------------------------------------------------------------------------------- strategies


@pytest.mark.parametrize("score", [(0, 0), (2, 1), (2, 2)])
def test_a_strategy_is_solved_on_the_spot_and_kept(
    score: Score, shipped: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = strategy_at(TINY, score)
    assert first is not None
    strategy, header = first
    assert strategy.tree.rules == TINY
    assert header.score == f"{score[0]}-{score[1]}"
    assert strategy.evaluate().exploitability <= QUICK
    pay, small = hand_payoffs(TINY, score, MADE_UP), hand_rules(TINY, score)
    assert strategy.payoffs.win0[: len(small.ladder)] == pay.win0
    assert strategy.payoffs.tie == pay.tie == pytest.approx(1 - MADE_UP[score[::-1]].value)
    (file,) = cache.rglob("*.safetensors")
    assert file.name == f"{score[0]}-{score[1]}.safetensors"
    kept = file.read_bytes()

    monkeypatch.setattr(module, "solve", None)  # nothing is solved the second time
    began = time.perf_counter()
    again = strategy_at(TINY, score)
    assert time.perf_counter() - began < 1
    assert again is not None
    assert again[1] == header
    assert all(np.array_equal(a, b) for a, b in zip(again[0].probabilities, strategy.probabilities, strict=True))
    assert file.read_bytes() == kept


@pytest.mark.parametrize("damage", ["bit", "empty", "other score"])
def test_a_kept_strategy_that_is_no_use_is_solved_again(damage: str, shipped: Path, cache: Path) -> None:
    first = strategy_at(TINY, (0, 1))
    strategy_at(TINY, (1, 0))
    (file,) = cache.rglob("0-1.safetensors")
    whole = file.read_bytes()
    file.write_bytes(
        {"bit": whole[:-1] + bytes([whole[-1] ^ 1]), "empty": b"",
         "other score": file.with_name("1-0.safetensors").read_bytes()}[damage]
    )  # fmt: skip
    again = strategy_at(TINY, (0, 1))
    assert first is not None
    assert again is not None
    assert again[1] == first[1]
    assert file.read_bytes() == whole


def test_another_table_is_another_strategy(tmp_path: Path, shipped: Path, cache: Path) -> None:
    first = strategy_at(TINY, (0, 0))
    written(tmp_path, known={score: Worth(worth.value + 0.01, 1.0, 1.0) for score, worth in MADE_UP.items()})
    second = strategy_at(TINY, (0, 0))
    assert first is not None
    assert second is not None
    assert first[0].payoffs != second[0].payoffs


def test_stopped_while_solving(shipped: Path, cache: Path) -> None:
    assert strategy_at(TINY, (0, 0), stop=lambda: True) is None
    assert not list(cache.rglob("*.safetensors"))


def test_no_cache_folder(shipped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "cache_folder", lambda: None)
    assert match_folder(TINY) is None
    assert stored_match(TINY) is None
    with pytest.raises(StorageError, match="no cache folder"):
        strategy_at(TINY, (0, 0))


def test_the_users_own_match_comes_first(shipped: Path, cache: Path) -> None:
    folder = match_folder(TINY)
    assert folder is not None
    folder.mkdir(parents=True)
    store = begin(folder)
    assert stored_match(TINY) is None  # nothing in it yet
    assert equity(TINY) == read_table(shipped, TINY)
    assert solve_match(store, Inline(1, 0))
    before = content(folder)
    assert equity(TINY) == store.known != MADE_UP
    for score in ((0, 0), (2, 2)):
        found = strategy_at(TINY, score)
        assert found is not None
        assert found[0].tree.rules == TINY
        assert found[0].evaluate().best_response == pytest.approx(
            store.strategy(score).evaluate().best_response, abs=1e-14
        )
    assert content(folder) == before
    assert not (cache / "scores").exists()
    store.file((0, 0)).write_bytes(b"")
    with pytest.raises(StorageError):
        strategy_at(TINY, (0, 0))
