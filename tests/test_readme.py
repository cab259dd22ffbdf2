"""The README's commands work as printed, long ones in a short form; its rule file and its Python example too."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from games.rules import Rules, preset
from solver.cli import main
from solver.explain import KINDS

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
TRUC = [sys.executable, "-m", "solver"]

# What is run in place of each command, with the exit codes that are fine.
SHORT: dict[str, tuple[list[str], tuple[int, ...]]] = {
    "truc variants": (["variants"], (0,)),
    "truc solve --accuracy 1e-4": (["solve", "--variant", "tiny", "--accuracy", "1e-4", "-o", "a.safetensors"], (0,)),
    "truc solve --dry-run": (["solve", "--dry-run"], (0,)),
    "truc solve --resume": (["solve", "--variant", "mini", "--resume", "--iterations", "60"], (0,)),
    "truc solve --variant mini --json": (["solve", "--variant", "mini", "--json", "-o", "b.safetensors"], (0,)),
    'truc advise "8 8 7" --line "5"': (["advise", "8 8 7", "--line", "5"], (0,)),
    'truc advise "8 3" --line "6 6 raise"': (["advise", "8 3", "--line", "6 6 raise"], (0,)),
    'truc range "8 8 7" --line "5 raise accept"': (["range", "8 8 7", "--line", "5 raise accept"], (0,)),
    'truc table --line "raise" --action refuse': (["table", "--line", "raise", "--action", "refuse"], (0,)),
    'truc table --line "5" --holding "8 8" --csv': (["table", "--line", "5", "--holding", "8 8", "--csv"], (0,)),
    'truc advise "7 8 9" --variant french': (["advise", "7 8 9", "--variant", "french"], (0,)),
    'truc advise "3 2 6" --variant catalan --line "6 7 raise"': (
        ["advise", "3 2 6", "--variant", "catalan", "--line", "6 7 raise"],
        (0,),
    ),
    "truc match table": (["match", "table"], (0,)),
    "truc match takepoint --score 9-7": (["match", "takepoint", "--score", "9-7"], (0,)),
    'truc advise "8 3" --line "7 raise" --score 11-9': (
        ["advise", "8 3", "--line", "7 raise", "--score", "11-9"],
        (0,),
    ),
    "truc match solve --accuracy 1e-4": (
        ["match", "solve", "--rules", "short.toml", "--accuracy", "1e-3", "-o", "match"],
        (0,),
    ),
    "truc match evaluate": (["match", "evaluate", "match"], (0,)),
    "truc match evaluate --every-action": (["match", "evaluate", "match", "--every-action"], (0,)),
    "truc play": (["play", "--seed", "1"], (0,)),
    "truc play --level expert --tutor 0.5 -o hands.txt": (
        ["play", "--level", "expert", "--tutor", "0.5", "-o", "played.txt"],
        (0,),
    ),
    "truc review hands.txt": (["review", "hands.txt"], (0,)),
    "truc explore": (["explore", "--help"], (0,)),  # tests/test_explore.py runs it
    "truc bot": (["bot"], (0,)),
    "truc evaluate": (["evaluate"], (0,)),
    "truc evaluate --uniform": (["evaluate", "--uniform"], (0,)),
    "truc verify le-truc.safetensors": (["verify", "le-truc.safetensors"], (0,)),
    "truc compare --quick": (
        [
            "compare",
            "--quick",
            "--variant",
            "mini",
            "--strategy",
            "mini.safetensors",
            "--seconds",
            "1",
            "--hands",
            "50",
        ],
        (0,),
    ),
    "truc solve --rules my-deck.toml": (["solve", "--rules", "my-deck.toml", "--iterations", "20"], (0,)),
}
OPENSPIEL = importlib.util.find_spec("pyspiel") is not None
FULL_ONLY = {
    "python scripts/compare.py"
}  # a quarter of an hour; tests/test_compare.py runs what it runs in a short form
SCRIPTS: dict[str, list[str]] = {
    "python scripts/reproduce.py": ["--variant", "tiny", "--accuracy", "1e-3", "--results", "{tmp}"],
    "python scripts/reproduce.py --check": ["--variant", "tiny", "--results", "{tmp}", "--check"],
    "python scripts/insights.py": ["--folder", "{tmp}/insights"],
    "python scripts/match_results.py": ["{tmp}/solved", "--folder", "{tmp}/match"],
    "python scripts/opponents.py": ["{tmp}/solved", "--folder", "{tmp}/opponents"],
    "python scripts/match_plan.py": ["{tmp}/solved", "--folder", "{tmp}/match"],
    "python scripts/reproduce.py --variant french": [
        *("--variant", "mini", "--accuracy", "1e-2", "--results", "{tmp}"),
    ],
    "python scripts/match_results.py --variant french": ["{tmp}/solved", "--folder", "{tmp}/match-of-another"],
    "python scripts/variant_insights.py --variant french": [
        *("{tmp}/solved", "--strategy", "{tmp}/mini/points/strategy.safetensors"),
        *("--matches", "{tmp}/others", "--folder", "{tmp}/variant"),
    ],
    "python scripts/bench.py": ["--variant", "tiny", "--accuracy", "1e-2", "--rounds", "2"],
    "python scripts/peers.py": ["--quick", "--folder", "{tmp}/openspiel"],
    "python scripts/algorithm_study.py": ["--variant", "tiny", "--iterations", "20", "--out", "{tmp}/study"],
}


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)


def commands() -> list[str]:
    """The shell commands of the README, without comments."""
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    return [line.split(" #")[0].strip() for line in lines if line.strip()]


def run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"}
    return subprocess.run(
        arguments, cwd=folder, env=environment, input="isready\n", capture_output=True, text=True, timeout=300
    )


def test_every_command_is_tested() -> None:
    setup = [command for command in commands() if command.startswith("python3 -m venv")]
    assert len(setup) == 2  # tried by a slow test
    assert set(commands()) - set(setup) == SHORT.keys() | SCRIPTS.keys() | FULL_ONLY


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the commands expect to find: a strategy, a checkpoint, a rule file."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "my-deck.toml").write_text(blocks("toml")[0].replace('"mini"', '"my-deck"'))
    short = (folder / "my-deck.toml").read_text().replace("target = 12", "target = 2")
    (folder / "short.toml").write_text(short)
    (folder / "hands.txt").write_text((ROOT / "games" / "HISTORY.md").read_text().split("```\n")[1])
    assert run([*TRUC, "solve", "--iterations", "30"], folder).returncode == 0
    unfinished = run([*TRUC, "solve", "--variant", "mini", "--iterations", "20", "--accuracy", "1e-9"], folder)
    assert unfinished.returncode == 3, unfinished.stderr
    return folder


APART = {"play", "review", "bot", "explore", "compare"}  # in processes of their own; the others here, which is faster


@pytest.mark.parametrize("command", [*SHORT])
def test_command(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "compare" in command and not OPENSPIEL:
        pytest.skip("OpenSpiel is not installed: pip install -e '.[openspiel]'")
    arguments, codes = SHORT[command]
    if arguments[0] in APART:
        done = run([*TRUC, *arguments], folder)
        code, output, errors = done.returncode, done.stdout, done.stderr
    else:
        monkeypatch.chdir(folder)
        result = CliRunner().invoke(main, arguments, prog_name="truc")
        code, output, errors = result.exit_code, result.stdout, result.stderr
    assert code in codes, errors
    assert output


LONG = {  # even in short forms
    *("python scripts/bench.py", "python scripts/peers.py", "python scripts/match_plan.py"),
    *("python scripts/insights.py", "python scripts/algorithm_study.py"),
    "python scripts/reproduce.py --variant french",
    "python scripts/match_results.py --variant french",
    "python scripts/variant_insights.py --variant french",
}


@pytest.mark.parametrize("long", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_scripts(long: bool, tmp_path: Path, folder: Path) -> None:
    solve = [*TRUC, "match", "solve", "--rules", "short.toml", "--accuracy", "1e-3", "-o", str(tmp_path / "solved")]
    assert run(solve, folder).returncode == 0
    for command, options in SCRIPTS.items():
        if (command in LONG) != long:
            continue
        script = command.split()[1]
        done = run([sys.executable, str(ROOT / script), *(o.format(tmp=tmp_path) for o in options)], ROOT)
        assert done.returncode == 0, f"{command}: {done.stderr}"
    assert long or (tmp_path / "tiny" / "points" / "manifest.json").is_file()
    assert long or (tmp_path / "tiny" / "points" / "opening.png").is_file()


def test_worth_of_the_deal() -> None:
    """The table of the three games is that of the results."""
    rows = [line.strip("| ").split(" | ") for line in README.splitlines() if line.startswith("| ")]
    (points,) = (row[1:] for row in rows if row[0].startswith("what dealing is worth"))
    (matches,) = (row[1:] for row in rows if row[0] == "the first dealer wins the match")
    for variant, point, match in zip(("le-truc", "french", "catalan"), points, matches, strict=True):
        manifests = [
            json.loads((ROOT / "results" / variant / what / "manifest.json").read_text())
            for what in ("points", "match")
        ]
        assert point == f"{-manifests[0]['value']:.4f}"
        assert match == f"{100 - 100 * manifests[1]['value']:.2f} %"


def test_rule_file() -> None:
    (text,) = blocks("toml")
    assert Rules.from_toml(text, "README").hash == preset("mini").hash


def test_python_example(capsys: pytest.CaptureFixture[str]) -> None:
    advice, code, with_openspiel = blocks("python")
    exec(compile(advice, "README", "exec"), {})
    assert "A value raise" in capsys.readouterr().out
    exec(compile(code, "README", "exec"), {})
    assert "best_response" in capsys.readouterr().out
    if OPENSPIEL:
        exec(compile(with_openspiel, "README", "exec"), {})
        assert 0 < float(capsys.readouterr().out) < 0.01


def test_kinds_of_explanations() -> None:
    for kind, condition in KINDS.items():
        assert f"| {kind} | {condition} |\n" in README


def test_links() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


@pytest.mark.slow
@pytest.mark.parametrize("command", [c for c in commands() if c.startswith("python3 -m venv")])
def test_in_an_empty_environment(command: str, tmp_path: Path) -> None:
    """A fresh copy, no home folder, an empty cache of compiled code, and packages that cannot be written."""
    copy = tmp_path / "copy"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, tracked.split("\0")):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name)
    environment = {"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path)}
    install, program = command.rsplit(" && ", 1)
    install = install.replace("python3 ", f"{sys.executable} ", 1)
    subprocess.run(install, shell=True, cwd=copy, env=os.environ | {"TMPDIR": str(tmp_path)}, check=True)
    for folder in (copy / ".venv").rglob("site-packages"):
        subprocess.run(["chmod", "-R", "a-w", str(folder)], check=True)
    done = subprocess.run(program, shell=True, cwd=copy, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "8 8 8" in done.stdout or " passed" in done.stdout
