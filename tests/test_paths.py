"""Where compiled code and shipped strategies lie."""

import os
import tempfile
from pathlib import Path

import pytest

from solver import paths
from solver.paths import cache_folder, shipped_strategy


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder and a folder for temporary files of this test's own."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(paths, "_usual_folder", lambda: tmp_path / "home" / "cache" / "le-truc")
    return folder


def test_the_users_cache_folder(tmp_path: Path) -> None:
    assert cache_folder() == tmp_path / "home" / "cache" / "le-truc"
    assert cache_folder() == tmp_path / "home" / "cache" / "le-truc"
    assert cache_folder().stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("usual", [None, Path("relative"), Path("/dev/null/le-truc")])
def test_else_one_among_the_temporary_files(
    usual: Path | None, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "_usual_folder", lambda: usual)
    folder = cache_folder()
    assert folder == temporary / f"le-truc-{os.getuid()}"
    assert folder.is_dir()


def test_somebody_elses_folder_is_not_used(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "_usual_folder", lambda: None)
    folder = temporary / f"le-truc-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    assert cache_folder() is None
    folder.rmdir()
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir()
    folder.symlink_to(elsewhere)
    assert cache_folder() is None


def test_a_file_in_the_way(temporary: Path, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    assert cache_folder() == temporary / f"le-truc-{os.getuid()}"


def test_the_usual_folder_is_the_platforms(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert "le-truc" in str(paths._usual_folder())


def test_shipped_strategies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "solver"
    monkeypatch.setattr(paths, "__file__", str(package / "paths.py"))
    assert shipped_strategy("mini") is None
    installed = package / "shipped" / "mini" / "points" / "strategy.safetensors"
    checkout = tmp_path / "results" / "mini" / "points" / "strategy.safetensors"
    for file in (installed, checkout):
        file.parent.mkdir(parents=True)
        file.write_bytes(b"")
        assert shipped_strategy("mini") == file
