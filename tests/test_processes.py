"""The command line among other processes: two runs on one file, full disks, closed streams, early signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from games.rules import preset
from solver.cli.progress import Reporter
from solver.solve import Progress
from solver.storage import load_checkpoint, load_strategy
from tests.test_cli import start, truc

LONG = ("solve", "--variant", "mini", "--accuracy", "1e-12", "--threads", "1")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names() -> list[str]:
    return sorted(path.name for path in Path().iterdir())


# ------------------------------------------------------------------------------------------------------ files


def test_two_runs_on_one_file() -> None:
    pytest.importorskip("fcntl")
    first = start(*LONG)
    try:
        assert "50 iterations" in first.stderr.readline()
        half = Path(".mini.safetensors.abcd1234.tmp")
        half.write_bytes(b"what the first one is writing")
        for output in ("mini.safetensors", "mini"):  # the same checkpoint, that is
            message = truc("solve", "--variant", "mini", "-o", output, code=2).stderr
            assert "another run is writing" in message
        truc("solve", "--variant", "mini", "--iterations", "5", "-o", "other")
        assert half.exists()
    finally:
        first.kill()  # which leaves its lock files
        first.communicate()
    assert ".mini.checkpoint.lock" in names()
    truc("solve", "--variant", "mini", "--iterations", "5")
    assert names() == ["mini.safetensors", "other"]


def test_what_is_of_something_else_is_not_replaced() -> None:
    truc("solve", "--variant", "tiny", "--iterations", "9", "-o", "s")
    truc("solve", "--variant", "tiny", "--accuracy", "1e-12", "--iterations", "9", "-o", "t", code=3)
    Path("t").unlink()
    Path("u").write_text("le-truc strategy: a poem")
    before = {name: Path(name).read_bytes() for name in names()}
    for name in ("s", "u"):
        assert f"Error: {name}: " in truc("solve", "--variant", "mini", "-o", name, code=2).stderr
    message = truc("solve", "--variant", "mini", "-o", "t", "--fresh", code=2).stderr
    assert "t.checkpoint: a le-truc checkpoint of another game; it is not replaced" in message
    assert {name: Path(name).read_bytes() for name in names()} == before


def test_a_better_strategy_is_replaced_with_a_note() -> None:
    truc("solve", "--variant", "tiny", "--iterations", "200")
    assert "Note: tiny.safetensors held a better" in truc("solve", "--variant", "tiny", "--iterations", "9").stderr
    assert "Note" not in truc("solve", "--variant", "tiny", "--iterations", "200").stderr


def test_a_file_that_is_read_only_is_kept() -> None:
    truc("solve", "--variant", "tiny", "--iterations", "9")
    file = Path("tiny.safetensors")
    file.chmod(0o444)
    before = file.read_bytes()
    message = truc("solve", "--variant", "tiny", code=1).stderr
    assert message == "Error: tiny.safetensors cannot be written: it is read-only.\n"
    assert file.read_bytes() == before
    assert names() == ["tiny.safetensors"]


def test_a_link_is_written_through() -> None:
    Path("link").symlink_to("real")
    truc("solve", "--variant", "tiny", "--iterations", "9", "-o", "link")
    assert names() == ["link", "real"]
    assert Path("link").is_symlink()
    Path("loop").symlink_to("loop")
    assert "symbolic links" in truc("solve", "--variant", "tiny", "-o", "loop", code=2).stderr


def test_no_room_for_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, *args: object) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("solver.solve.save_checkpoint", full)
    monkeypatch.setattr("solver.solve.solve.__kwdefaults__", {**SOLVE_DEFAULTS, "checkpoint_seconds": 0.0})
    warning = "Warning: mini.checkpoint cannot be written: No space left on device; the run goes on.\n"
    errors = truc("solve", "--variant", "mini", "--iterations", "300").stderr
    assert errors.count(warning) == errors.count("Warning") == 1
    assert load_strategy(Path("mini.safetensors"))[1].iterations == 300
    errors = truc("solve", "--variant", "mini", "--accuracy", "1e-12", "--iterations", "60", code=3).stderr
    assert "is kept" not in errors


def _defaults() -> dict[str, object]:
    from solver.solve import solve

    return dict(solve.__kwdefaults__)


SOLVE_DEFAULTS = _defaults()


def test_resuming_keeps_the_accuracy() -> None:
    process = start("solve", "--variant", "mini", "--accuracy", "1e-6", "--threads", "1")
    assert "50 iterations" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    truc("solve", "--variant", "mini", "--resume")
    assert load_strategy(Path("mini.safetensors"))[1].nash_conv <= 2e-6
    assert names() == ["mini.safetensors"]


# ---------------------------------------------------------------------------------------------------- streams


def shell(command: str) -> subprocess.CompletedProcess[str]:
    """`truc` in a shell, which redirects."""
    root = str(Path(__file__).parent.parent)
    environment = {**os.environ, "PYTHONPATH": root, "TRUC": f"{sys.executable} -m solver"}
    return subprocess.run(["sh", "-c", command], env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.skipif(os.name == "nt", reason="needs a shell")
@pytest.mark.parametrize(
    "command", ["$TRUC variants", "$TRUC --help", "$TRUC evaluate --uniform --variant tiny --json"]
)
def test_closed_streams(command: str) -> None:
    done = shell(f"{command} >&-")
    assert (done.returncode, done.stderr) == (0, "")
    done = shell(f"{command} >&- 2>&- <&-")
    assert done.returncode == 0
    assert shell("$TRUC solve --nothing >&- 2>&-").returncode == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_streams() -> None:
    assert shell("$TRUC solve --nothing 2>/dev/full").returncode == 2
    assert shell("$TRUC verify nothing 2>/dev/full").returncode == 2
    assert shell("$TRUC solve --variant tiny --iterations 60 2>/dev/full").returncode == 0
    done = shell("$TRUC variants >/dev/full")
    assert (done.returncode, done.stderr) == (1, "Error: No space left on device.\n")


def test_progress_that_nobody_can_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*args: object, **options: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("click.echo", gone)
    reporter = Reporter("mini", 1e-3)
    with reporter:
        reporter(Progress(50, 0.1, None, new=True))
        reporter._status = SimpleNamespace(stop=gone)  # type: ignore[assignment]


# ---------------------------------------------------------------------------------------------------- signals


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="needs SIGHUP")
def test_a_terminal_that_is_closed() -> None:
    process = start(*LONG)
    assert "50 iterations" in process.stderr.readline()
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert load_checkpoint(Path("mini.checkpoint"))[0].iterations >= 50
    assert names() == ["mini.checkpoint"]


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_before_anything(number: signal.Signals) -> None:
    """From the first import on; what Python does before is its own."""
    for delay in (0.0, 0.05, 0.1, 0.2, 0.4, 0.8):
        code = "import sys; from solver.__main__ import run; sys.stdout.write('.'); sys.stdout.flush(); run()"
        process = subprocess.Popen(
            [sys.executable, "-c", code, "solve", "--accuracy", "1e-12"], text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
        )  # fmt: skip
        assert process.stdout.read(1) == "."
        time.sleep(delay + 0.02)
        process.send_signal(number)
        try:
            output, errors = process.communicate(timeout=60)
        finally:
            process.kill()
        assert (process.returncode, output) == (130, ""), errors
        last = errors.splitlines()[-1]
        written = Path("le-truc.checkpoint").exists()
        assert last.startswith("Interrupted at" if written else "Interrupted"), errors
        assert written == ("go on with" in last)
        assert "Traceback" not in errors
        Path("le-truc.checkpoint").unlink(missing_ok=True)
        assert names() == []


def test_an_interruption_before_the_first_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("solver.cli.solve.tree_of", interrupted)
    errors = truc("solve", "--variant", "mini", code=130).stderr
    assert errors == "Interrupted before the first iteration; nothing was written.\n"
    assert names() == []


# ------------------------------------------------------------------------------------------------------- text


def test_rules_of_another_name_are_the_same_game() -> None:
    rules = preset("le-truc").to_toml().replace('"le-truc"', '"mine"')
    Path("mine.toml").write_text(rules)
    assert truc("evaluate", "--rules", "mine.toml").stdout == truc("evaluate").stdout


def test_labels_are_no_emoji(monkeypatch: pytest.MonkeyPatch) -> None:
    text = preset("tiny").to_toml().replace('"A"', '":cat:"').replace('"2"', '"[red]"')
    Path("own.toml").write_text(text)
    output = truc("solve", "--rules", "own.toml", "--iterations", "9").stdout
    assert ":cat: [red] 3" in output


def test_an_accuracy_beyond_reach() -> None:
    text = truc("solve", "--variant", "tiny", "--dry-run", "--accuracy", "1e-320").stdout
    assert "about 1e+18 iterations" in text
    assert max(map(len, text.splitlines())) < 130


def test_variants_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solver.cli.output.page_width", lambda: 40)
    assert "A 2 3 4 5 6 7 8 (32)" in truc("variants").stdout


def test_results_without_matplotlib() -> None:
    """The pictures of `scripts/reproduce.py` need it, which is said before the work is done."""
    code = "import sys; sys.modules['matplotlib'] = None; from scripts.reproduce import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "--results", "r", "--variant", "tiny"], text=True, capture_output=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "Error: the pictures need matplotlib: pip install -e '.[dev]'.\n")
