"""The page of rule files and its examples: every field, refusal, size and command on it, and each example solved small.

The oracle's values (`tests.oracle_variants`) are of the whole rules, so that what the solver leaves out is in them.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
from dataclasses import MISSING, fields, replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from games.rules import MAX_FILE_BYTES, MAX_STAKES, Rules, RulesError, load_rules, preset
from solver.census import census
from solver.cfr import Solver
from solver.cli import main
from solver.essential import essential
from solver.kernels import LANES
from solver.strategy import Strategy
from solver.tree import MAX_ROWS, Tree
from tests import oracle
from tests.oracle_variants import VariantHand

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "games" / "RULE_FILES.md").read_text()
FOLDER = ROOT / "games" / "examples"
EXAMPLES = {path.stem: path for path in sorted(FOLDER.glob("*.toml"))}


def rows(first: str) -> list[list[str]]:
    """The cells of the page's table whose first column is called so."""
    table = PAGE[PAGE.index(f"| {first} |") :].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split(" |")] for line in table.splitlines()[2:]]


def blocks(language: str) -> list[str]:
    """The page's code in a language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.S)


# ------------------------------------------------------------------------------------------------------------ the page


def test_every_field_and_its_default() -> None:
    documented = {cells[0].strip("`"): cells[1].strip("`") for cells in rows("field")}
    expected = {
        field.name: "required"
        if field.default is MISSING
        else json.dumps(list(field.default) if isinstance(field.default, tuple) else field.default)
        for field in fields(Rules)
    }
    assert documented == expected


def test_the_file_on_the_page() -> None:
    (text,) = blocks("toml")
    assert Rules.from_toml(text, "page") == preset("mini")


@pytest.mark.parametrize(("changes", "sentence"), rows("in the file"), ids=[row[0] for row in rows("in the file")])
def test_refusals(changes: str, sentence: str, tmp_path: Path) -> None:
    (text,) = blocks("toml")
    for change in re.findall("`(.*?)`", changes):
        key = change.split(" = ")[0]
        text = (
            "".join(line for line in text.splitlines(keepends=True) if not line.startswith(f"{key} =")) + f"{change}\n"
        )
    file = tmp_path / "own.toml"
    file.write_text(text)
    with pytest.raises(RulesError) as error:
        load_rules(file)
    assert str(error.value).endswith(f": {sentence}")


def test_limits_on_the_page() -> None:
    assert f"{MAX_ROWS * LANES:,} regrets" in PAGE
    assert f"at most {MAX_FILE_BYTES // 1024} KiB" in PAGE
    assert f"At most {MAX_STAKES} stakes" in PAGE


def test_links() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE):
        assert (ROOT / "games" / target).exists(), target


def test_python_on_the_page(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (code,) = blocks("python")
    exec(compile(code, "page", "exec"), {})
    first, *text = capsys.readouterr().out.splitlines(keepends=True)
    assert first == "False\n"
    assert Rules.from_toml("".join(text), "printed") == load_rules(EXAMPLES["linear"])


@pytest.mark.slow
def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them, in order, as they stand there; but the match is solved less accurately, the comparison shorter."""
    monkeypatch.setattr("solver.scores.cache_folder", lambda: tmp_path / "cache")  # matches are kept there
    (tmp_path / "games").symlink_to(ROOT / "games")
    monkeypatch.chdir(tmp_path)
    lines = [line.split(" #")[0].strip() for block in blocks("sh") for line in block.splitlines()]
    assert len(lines) == 8
    for line in lines:
        program, *arguments = shlex.split(line)
        assert program == "truc"
        if arguments[0] == "compare":
            if importlib.util.find_spec("pyspiel") is None:
                continue
            arguments += ["--seconds", "0.5", "--hands", "50"]
        if arguments[:2] == ["match", "solve"]:
            arguments += ["--accuracy", "1e-3"]
        done = CliRunner().invoke(main, arguments, prog_name=program)
        assert done.exit_code == 0, f"{line}: {done.stderr}"
        assert done.stdout
    assert (tmp_path / "cache" / "matches").is_dir()


# -------------------------------------------------------------------------------------------------------- the examples


def test_every_example_is_on_the_page() -> None:
    assert [row[0] for row in rows("file")] == [f"[{name}](examples/{name}.toml)" for name in map(named, rows("file"))]
    assert {named(row) for row in rows("file")} == EXAMPLES.keys()
    assert all(f"**{name}" in PAGE for name in EXAMPLES)


def named(row: list[str]) -> str:
    """The example of a row of the page's table."""
    return row[0][1 : row[0].index("]")]


@pytest.mark.parametrize("row", rows("file"), ids=named)
def test_sizes(row: list[str]) -> None:
    """What `truc solve --dry-run` prints is the census of the tree that is solved."""
    found = census(Tree(essential(load_rules(EXAMPLES[named(row)]))))
    numbers = [int(cell.replace(",", "")) for cell in row[2:]]
    assert numbers == [found.decisions, found.information_states, sum(found.stored_regrets)]


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_hash_is_of_the_game(name: str) -> None:
    """Comments, empty lines, the order of the keys and the name are not the game; every other line is."""
    text = EXAMPLES[name].read_text()
    rules = load_rules(EXAMPLES[name])
    assert rules.name == name
    keys = [line.split("#")[0].rstrip() for line in text.splitlines() if line.split("#")[0].strip()]
    bare = "\n".join(reversed(keys)).replace(f'name = "{name}"', 'name = "other"')
    commented = "# a comment\n\n" + text.replace("\n", "  # another\n") + "# the last"
    for same in (bare, commented, text.replace("\n", "\r\n"), rules.to_toml()):
        assert Rules.from_toml(same, "same").hash == rules.hash
    assert Rules.from_toml(text.replace("copies = 4", "copies = 5"), "other").hash != rules.hash


def test_the_examples_differ_from_the_presets_as_told() -> None:
    rules = {name: load_rules(path) for name, path in EXAMPLES.items()}
    le_truc, french, catalan = (preset(name) for name in ("le-truc", "french", "catalan"))
    assert rules["french-36"] == replace(french, name="french-36", ranks=("6", *french.ranks))
    assert [rank for rank in rules["catalan-48"].ranks if rank not in ("8", "9")] == list(catalan.ranks)
    assert replace(rules["catalan-48"], name="catalan", ranks=catalan.ranks) == catalan
    assert rules["doubling"] == replace(le_truc, name="doubling", ladder=(1, 2, 4, 8))
    assert rules["by-three"] == replace(le_truc, name="by-three", ladder=(1, 3, 6, 9, 12))
    assert rules["to-24"] == replace(le_truc, name="to-24", target=24)
    assert replace(rules["linear"], name="le-truc", ranks=le_truc.ranks, order="circular") == le_truc
    assert essential(rules["to-24"]).ladder == le_truc.ladder


def smaller(name: str, stakes: int) -> Rules:
    """An example with three ranks (four, if two cards are dealt), three copies and fewer stakes.  Nine cards are too
    few for a redeal."""
    rules = load_rules(EXAMPLES[name])
    ranks = 3 if rules.hand_size == 3 else 4
    return replace(rules, ranks=rules.ranks[:ranks], copies=3, ladder=rules.ladder[:stakes], redeal=False)


def oracle_value(rules: Rules) -> float:
    """The value of a hand in points by linear programming over the whole rules, proved by best responses to 1e-9."""
    pytest.importorskip("scipy")
    from tests.oracle_lp import equilibrium

    game = VariantHand(rules)
    policy = equilibrium(game)
    upper, lower = oracle.best_response(game, policy, 0), -oracle.best_response(game, policy, 1)
    assert upper - lower < 1e-9
    return (upper + lower) / 2


SOLVED = [
    *(pytest.param(name, 2, id=f"{name}, two stakes") for name in EXAMPLES),
    *(pytest.param(name, 3, id=f"{name}, three stakes", marks=pytest.mark.slow) for name in EXAMPLES),
]


@pytest.mark.parametrize(("name", "stakes"), SOLVED)
def test_solved_small(name: str, stakes: int) -> None:
    rules = smaller(name, stakes)
    solver = Solver(Tree(essential(rules)))
    solver.step(300)
    found = Strategy.of(solver).evaluate()
    assert found.exploitability <= 1e-3
    assert found.interval[0] <= oracle_value(rules) <= found.interval[1]
