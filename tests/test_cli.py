"""The command line: help, output, JSON keys, exit codes, signals."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from games.rules import preset
from solver import cfr
from solver.cli import COMMANDS, main
from solver.cli import solve as solve_command
from solver.cli.errors import one_sentence
from solver.storage import load_checkpoint, load_strategy
from solver.strategy import Strategy
from solver.tree import Tree
from tests.test_storage import rewritten

NUMBERS = {
    "variant", "score", "unit", "iterations", "value", "value_interval", "best_response", "nash_conv", "exploitability",
    "seconds",
}  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def truc(*args: str, code: int = 0) -> Result:
    """Run a command in this process."""
    result = CliRunner().invoke(main, args, prog_name="truc")
    assert result.exit_code == code, (result.output, result.stderr)
    assert "Traceback" not in result.stderr
    if code not in (0, 130):
        last = result.stderr.splitlines()[-1]
        assert last.startswith("Error: ")
        assert last.endswith(".")
    return result


def start(*args: str, **options) -> subprocess.Popen:
    """Start a command as a process of its own."""
    root = Path(__file__).parent.parent
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONUNBUFFERED": "1", **options.pop("env", {})}
    return subprocess.Popen(
        [sys.executable, "-m", "solver", *args], env=environment, text=True,
        stdout=options.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE, **options,
    )  # fmt: skip


@pytest.fixture(scope="module")
def mini(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A strategy file of the mini game."""
    path = tmp_path_factory.mktemp("solved") / "mini.safetensors"
    truc("solve", "--variant", "mini", "-o", str(path))
    return path


# --------------------------------------------------------------------------------------------------------------- help


def test_every_command_and_option_has_help() -> None:
    context = click.Context(main)
    assert main.list_commands(context) == list(COMMANDS)
    overview = truc("--help").stdout
    for name in COMMANDS:
        command = main.get_command(context, name)
        assert command is not None
        assert command.help
        assert f"  {name} " in overview
        text = truc(name, "--help").stdout
        for param in command.params:
            if isinstance(param, click.Option):
                assert param.help, (name, param.name)
                assert param.opts[-1] in text
            else:
                assert param.name.upper() in command.help, (name, param.name)
    assert main.get_command(context, "nothing") is None


@pytest.mark.parametrize("args", [["--help"], ["--version"], *[[name, "--help"] for name in COMMANDS]])
def test_help_imports_nothing_heavy(args: list[str]) -> None:
    code = f"""
import sys
from solver.cli import main
assert main({args!r}, prog_name="truc", standalone_mode=False) == 0
heavy = {{"numpy", "numba", "rich", "safetensors", "platformdirs"}} & set(sys.modules)
assert not heavy, heavy
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent.parent, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_algorithms_are_the_solvers() -> None:
    """Help may not import the solver, so their names are written twice."""
    assert set(solve_command.ALGORITHMS) == set(cfr.ALGORITHMS)
    assert solve_command.ALGORITHMS[0] == cfr.DEFAULT_ALGORITHM


def test_plain_truc_prints_its_help() -> None:
    assert truc().stdout == truc("--help").stdout


def test_version_and_module() -> None:
    process = start("--version")
    assert process.communicate()[0].startswith("truc 0.")
    assert process.returncode == 0


# ------------------------------------------------------------------------------------------------------------- output


def test_variants() -> None:
    text = truc("variants").stdout
    document = json.loads(truc("variants", "--json").stdout)
    assert document["variants"][0]["name"] == "le-truc"
    for each in document["variants"]:
        assert each["name"] in text
    by_name = {each["name"]: each for each in document["variants"]}
    assert by_name["le-truc"]["differs_in"] == []
    assert by_name["mini"]["differs_in"] == ["ranks", "ladder"]
    assert document["exact"] in text
    assert document["left_out"] in text


def test_solve_prints_value_and_openings(mini: Path) -> None:
    result = truc("solve", "--variant", "mini")
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 100
    assert all(line == line.rstrip() and "\x1b" not in line for line in lines)
    header = load_strategy(Path("mini.safetensors"))[1]
    value = next(line for line in lines if "value of the game" in line)
    lower, upper = float(value.split()[4]), float(value.split()[6])
    assert lower <= -header.best_response[1] <= header.value <= header.best_response[0] <= upper
    assert upper - lower < 2e-3 * 1.2
    for hand in ("A A A", "A 2 4", "4 4 4"):
        assert sum(hand in line for line in lines) == 1
    assert "mini: 50 iterations" in result.stderr
    assert Path("mini.safetensors").read_bytes() == mini.read_bytes()
    assert not Path("mini.checkpoint").exists()


def test_solve_json() -> None:
    document = json.loads(truc("solve", "--variant", "tiny", "--accuracy", "1e-3", "--json").stdout)
    assert document.keys() == NUMBERS | {"algorithm", "file", "accuracy", "reached", "history", "opening"}
    assert (document["variant"], document["score"], document["unit"]) == ("tiny", None, "points per hand")
    assert document["reached"] is True
    assert document["exploitability"] == document["nash_conv"] / 2 == sum(document["best_response"]) / 2
    assert document["value_interval"][0] <= document["value"] <= document["value_interval"][1]
    assert sum(each["weight"] for each in document["opening"]) == 20
    for each in document["opening"]:
        assert sum(each["probabilities"].values()) == pytest.approx(1)
        assert sum(each["after_raise"].values()) == pytest.approx(1)
        assert set(each["probabilities"]) == {"raise", *each["hand"].split()}
    assert json.loads(truc("solve", "--variant", "tiny", "--iterations", "5", "--json").stdout)["reached"] is None


def test_own_rules_with_long_names_and_without_raises() -> None:
    Path("own.toml").write_text(
        'name = "own"\nranks = ["ace", "deuce", "trey", "knave", "żubr"]\norder = "linear"\ncopies = 2\n'
        'hand_size = 2\nladder = [3]\nall_tied = "leader"\n',
        encoding="utf-8",
    )
    text = truc("solve", "--rules", "own.toml", "--iterations", "20").stdout
    assert "knave żubr" in text
    assert "raise" not in text
    assert json.loads(truc("evaluate", "own.safetensors", "--json").stdout)["variant"] == "own"
    process = start("solve", "--rules", "own.toml", "--iterations", "20", env={"PYTHONIOENCODING": "latin-1"})
    assert r"knave \u017cubr" in process.communicate(timeout=60)[0]
    assert process.returncode == 0


def test_one_card_hands() -> None:
    Path("one.toml").write_text(
        'name = "one"\nranks = ["A", "2", "3"]\norder = "linear"\ncopies = 1\nhand_size = 1\nladder = [1, 2]\n'
        'all_tied = "nobody"\n'
    )
    opening = json.loads(truc("solve", "--rules", "one.toml", "--json").stdout)["opening"]
    assert [each["hand"] for each in opening] == ["A", "2", "3"]
    assert "\n1     " not in truc("solve", "--rules", "one.toml").stdout


def test_dry_run_writes_nothing(folder: Path) -> None:
    text = truc("solve", "--variant", "mini", "--dry-run").stdout
    document = json.loads(truc("solve", "--variant", "mini", "--dry-run", "--iterations", "77", "--json").stdout)
    assert document["estimated_iterations"] == 77
    assert f"{document['decision_nodes']:,}" in text
    assert f"{document['information_states']:,}" in text
    assert "estimate" in text
    assert list(folder.iterdir()) == []


def test_evaluate(mini: Path) -> None:
    document = json.loads(truc("evaluate", str(mini), "--json").stdout)
    header = load_strategy(mini)[1]
    assert document.keys() == NUMBERS
    assert document["iterations"] == header.iterations
    assert (document["value"], document["best_response"]) == (header.value, header.best_response)
    assert "value of the game" in truc("evaluate", str(mini)).stdout
    assert truc("evaluate", str(mini), "--variant", "mini").exit_code == 0


def test_evaluate_uniform() -> None:
    document = json.loads(truc("evaluate", "--uniform", "--variant", "tiny", "--json").stdout)
    assert document["iterations"] is None
    assert document["value"] == Strategy.uniform(Tree(preset("tiny"))).evaluate().value
    assert document["exploitability"] > 0.5
    assert "every legal action equally often" in truc("evaluate", "--uniform", "--variant", "tiny").stdout


def test_verify(mini: Path) -> None:
    text = truc("verify", str(mini)).stdout
    assert text.count("  ok ") == 8
    assert text.count("equal to the last bit") == 4
    document = json.loads(truc("verify", str(mini), "--json").stdout)
    assert document["ok"] is True
    assert {each["check"] for each in document["checks"]} > {"checksum", "rules", "tree", "probabilities", "value"}


# --------------------------------------------------------------------------------------------------------- exit codes


def test_failures(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solver.cli.common.shipped_for", lambda rules: None)
    assert "no strategy for 'mini' comes with the program" in truc("evaluate", "--variant", "mini", code=1).stderr
    monkeypatch.setattr("solver.cli.evaluate.rules_of", lambda *args: 1 / 0)
    assert "unexpected ZeroDivisionError" in truc("evaluate", "--uniform", code=1).stderr
    monkeypatch.setenv("TRUC_DEBUG", "1")
    result = CliRunner().invoke(main, ["evaluate", "--uniform"])
    assert isinstance(result.exception, ZeroDivisionError)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nothing"], "No such command 'nothing'"),
        (["solve", "--nothing"], "No such option"),
        (["solve", "--variant", "nothing"], "there is no rule set 'nothing', known are"),
        (["solve", "--variant", "mini", "--rules", "own.toml"], "exclude each other"),
        (["solve", "--rules", "none.toml"], "does not exist"),
        (["solve", "--rules", "own.toml"], "the key 'name' is missing"),
        (["solve", "--accuracy", "0"], "must be a number above 0"),
        (["solve", "--accuracy", "nan"], "must be a number above 0"),
        (["solve", "--seconds", "inf"], "must be a number above 0"),
        (["solve", "--iterations", "0"], "not in the range"),
        (["solve", "--threads", "0"], "not in the range"),
        (["solve", "--algorithm", "magic"], "'magic' is not one of"),
        (["solve", "--resume"], "there is no checkpoint le-truc.checkpoint"),
        (["solve", "--resume", "--fresh"], "exclude each other"),
        (["solve", "-o", "no/such/folder"], "folder that does not exist"),
        (["solve", "-o", "own.toml"], "not a le-truc strategy file"),
        (["solve", "-o", os.devnull], "not a file"),
        (["solve", "-o", "."], "is a directory"),
        (["solve", "-o", ""], "no name"),
        (["solve", "-o", "x" * 300], "File name too long"),
        (["solve", "extra"], "unexpected extra argument"),
        (["evaluate", "none"], "does not exist"),
        (["evaluate", "own.toml", "--uniform"], "exclude each other"),
        (["verify"], "Missing argument"),
    ],
)
def test_usage(args: list[str], message: str) -> None:
    Path("own.toml").write_text('ranks = ["A"]')
    assert message in truc(*args, code=2).stderr


def test_a_file_of_other_rules(mini: Path) -> None:
    assert "for the rules 'mini', but the options say 'tiny'" in truc(
        "evaluate", str(mini), "--variant", "tiny", code=2
    ).stderr  # fmt: skip


def test_too_large_a_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solver.tree.MAX_ROWS", 10)
    assert "use fewer ranks or fewer stakes" in truc("solve", "--variant", "mini", code=2).stderr


def test_accuracy_not_reached() -> None:
    result = truc("solve", "--variant", "mini", "--accuracy", "1e-9", "--iterations", "60", "--json", code=3)
    assert json.loads(result.stdout)["reached"] is False
    assert "was not reached" in result.stderr
    assert "keeps an unfinished run" in truc("solve", "--variant", "mini", code=2).stderr
    truc("solve", "--variant", "mini", "--accuracy", "1e-3", "--resume")
    resumed = Path("mini.safetensors").read_bytes()
    assert "no checkpoint" in truc("solve", "--variant", "mini", "--resume", code=2).stderr
    assert load_strategy(Path("mini.safetensors"))[1].iterations > 60
    assert resumed


def test_fresh_starts_anew(mini: Path) -> None:
    truc("solve", "--variant", "mini", "--accuracy", "1e-9", "--iterations", "60", code=3)
    truc("solve", "--variant", "mini", "--fresh")
    assert Path("mini.safetensors").read_bytes() == mini.read_bytes()
    assert not Path("mini.checkpoint").exists()


def test_checkpoints_of_something_else() -> None:
    truc(
        "solve", "--variant", "mini", "--accuracy", "1e-9", "--iterations", "9", "--algorithm", "cfr", "-o", "x", code=3
    )
    Path("x").unlink()
    assert "belongs to the rules 'mini'" in truc("solve", "--variant", "tiny", "-o", "x", "--resume", code=2).stderr
    wrong = truc("solve", "--variant", "mini", "-o", "x", "--algorithm", "dcfr", "--resume", code=2)
    assert "another algorithm" in wrong.stderr
    document = truc("solve", "--variant", "mini", "-o", "x", "--iterations", "10", "--resume", "--json").stdout
    assert json.loads(document)["algorithm"] == "cfr"
    Path("x.checkpoint").write_bytes(b"nonsense")
    assert "or damaged" in truc("solve", "--variant", "mini", "-o", "x", "--resume", code=4).stderr


def test_bad_strategy_files(mini: Path) -> None:
    bad = Path("bad.safetensors")
    bad.write_bytes(mini.read_bytes()[:-1])
    for command in ("evaluate", "verify"):
        assert "or damaged" in truc(command, str(bad), code=4).stderr
    bad.write_bytes(mini.read_bytes())
    result = truc("verify", str(rewritten(bad, value=0.5)), code=4)
    assert "(value)" in result.stderr
    assert "BAD  value" in result.stdout
    bad.write_bytes(mini.read_bytes())
    nearly = load_strategy(mini)[1].value + 1e-12
    assert "within 1e-09" in truc("verify", str(rewritten(bad, value=nearly))).stdout


# ------------------------------------------------------------------------------------------------ processes, signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_and_resumed(number: signal.Signals, folder: Path) -> None:
    process = start("solve", "--variant", "mini", "--accuracy", "1e-12", "--threads", "2")
    assert "50 iterations" in process.stderr.readline()
    process.send_signal(number)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (130, "")
    command = "truc solve --variant mini --accuracy 1e-12 --threads 2 --resume"
    assert errors.splitlines()[-1].endswith(f"go on with: {command}")
    solver, _ = load_checkpoint(Path("mini.checkpoint"))
    until = str(solver.iterations + 37)
    assert [path.name for path in folder.iterdir()] == ["mini.checkpoint"]
    truc("solve", "--variant", "mini", "--iterations", until, "--resume")
    truc("solve", "--variant", "mini", "--iterations", until, "-o", "whole")
    assert Path("whole").read_bytes() == Path("mini.safetensors").read_bytes()


def test_killed_runs_leave_nothing_behind_for_long() -> None:
    Path(".mini.safetensors.abcd1234.tmp").write_bytes(b"half a file")
    Path(".mini.checkpoint.abcd1234.tmp").write_bytes(b"half a file")
    truc("solve", "--variant", "mini", "--iterations", "3")
    assert [path.name for path in Path().iterdir()] == ["mini.safetensors"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_stdout() -> None:
    with open("/dev/full", "w") as full:
        process = start("variants", stdout=full)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (1, "Error: No space left on device.\n")


def test_full_disk(folder: Path) -> None:
    resource = pytest.importorskip("resource")
    process = start(
        "solve", "--variant", "mini", "--iterations", "60",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
    )  # fmt: skip
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert errors.splitlines()[-1] == "Error: mini.safetensors cannot be written: File too large."
    assert list(folder.iterdir()) == []


def test_a_folder_that_may_not_be_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("solver.files.check_writable", denied)
    assert "mini.safetensors cannot be written: Permission denied" in truc("solve", "--variant", "mini", code=1).stderr


def test_a_reader_that_has_enough() -> None:
    process = start("variants", "--json")
    process.stdout.close()
    errors = process.stderr.read()
    process.wait(timeout=60)
    assert errors == ""


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("plain", [False, True])
def test_colours_only_on_a_terminal_that_wants_them(plain: bool) -> None:
    import pty

    leader, follower = pty.openpty()
    environment = {"TERM": "xterm", "COLUMNS": "80", **({"NO_COLOR": "1"} if plain else {})}
    process = start("solve", "--variant", "mini", stdout=follower, env=environment)
    process.communicate(timeout=60)
    os.close(follower)
    output = b""
    try:
        while chunk := os.read(leader, 65536):
            output += chunk
    except OSError:  # Linux says so when the other end is closed
        pass
    os.close(leader)
    assert "─".encode() in output
    assert b"\x1b[3" not in output if plain else b"\x1b[1m" in output
    assert max(len(line.decode()) for line in output.splitlines() if "─".encode() in line) <= 80


def test_help_is_quick() -> None:
    def seconds() -> float:
        began = time.perf_counter()
        start("--help").communicate()
        return time.perf_counter() - began

    assert min(seconds() for _ in range(5)) < 0.5  # 0.15 on a quiet machine


def test_one_sentence() -> None:
    assert one_sentence("a\n b\x1b[0m.") == "a b\\x1b[0m."
    assert one_sentence("no", " (hint)") == "no (hint)."
    assert len(one_sentence("x" * 5000)) < 700
