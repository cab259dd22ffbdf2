"""Hundreds of malformed inputs: each one is refused with the right exit code, in one sentence, without a traceback."""

import itertools
import random
from pathlib import Path

import pytest
from click.testing import CliRunner

from games.notation import NotationError, parse_hand, parse_line, parse_score
from games.rules import preset
from solver.cli import main

RULES = preset("mini")
GOOD = RULES.to_toml()
JUNK = [
    "", " ", "\n", "x", "-1", "0", "1.5", "1e999", "-inf", "nan", "None", "[]", "{}", "'", '"', "\\", "\x00",
    "\x1b[31m", "9" * 5000, "x" * 5000, "--", "%s%n", "../../etc/passwd", "$(id)", "é", "\u202e", "\udcff", "🂡",
    "A A A A", "true",
]  # fmt: skip


def refused(args: list[str], codes: tuple[int, ...]) -> None:
    result = CliRunner().invoke(main, args, prog_name="truc")
    assert result.exit_code in codes, (args, result.output[:500])
    assert result.stdout == ""
    message = result.stderr
    assert message.startswith("Error: ")
    assert message.count("\n") == 1
    assert message.endswith(".\n")
    assert len(message) < 1000
    assert "Traceback" not in message
    assert message[:-1].isprintable()


def malformed_rules(seed: int) -> bytes:
    """A rule file with one thing wrong."""
    rng = random.Random(seed)
    lines = GOOD.splitlines()
    i = rng.randrange(7)  # the required keys
    key = lines[i].split(" = ")[0]
    kind = rng.randrange(7)
    if kind == 0:
        del lines[i]
    elif kind == 1:
        lines[i] = f"{key} = {rng.choice(['true', '-1', '0', '1e9', '[]', '[[1]]', '{}', '[-1, 1]', '1979-05-27'])}"
    elif kind == 2:
        lines.append(f"{rng.choice(['colour', 'Name', 'ranks2', 'x' * 300])} = 1")
    elif kind == 3:
        lines.append(lines[i])  # twice
    elif kind == 4:
        lines[i] = lines[i][: rng.randrange(1, len(lines[i]) - 1)]
    elif kind == 5:
        lines[i] = f"{key} = {rng.choice(['inf', 'nan', '9' * 5000, '[' * 3000, chr(0), '2 ** 3'])}"
    else:
        return bytes(rng.randrange(256) for _ in range(rng.randrange(1, 300)))
    return "\n".join(lines).encode()


@pytest.mark.parametrize("seed", range(100))
def test_rule_files(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(malformed_rules(seed))
    command = [["solve"], ["solve", "--dry-run"], ["evaluate", "--uniform"]][seed % 3]
    refused([*command, "--rules", str(path)], (2,))


OPTIONAL = ["raise_when", "remainder", "remainder_refused", "fold", "redeal", "decision_before_target", "one_card"]


@pytest.mark.parametrize("key", OPTIONAL)
@pytest.mark.parametrize("value", ["1", '"true"', "[]", "[true]", "{}", "nan", "1979-05-27", '["after"]'], ids=repr)
def test_optional_keys(tmp_path: Path, key: str, value: str) -> None:
    lines = [f"{key} = {value}" if line.startswith(f"{key} = ") else line for line in GOOD.splitlines()]
    path = tmp_path / "bad.toml"
    path.write_text("\n".join(lines))
    refused(["solve", "--dry-run", "--rules", str(path)], (2,))


@pytest.mark.parametrize("key", ["decision_before_target", "one_card"])
def test_keys_that_exclude_each_other(tmp_path: Path, key: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(GOOD.replace("redeal = false", "redeal = true").replace(f"{key} = false", f"{key} = true"))
    refused(["solve", "--dry-run", "--rules", str(path)], (2,))


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a strategy file."""
    path = tmp_path_factory.mktemp("good") / "s"
    assert CliRunner().invoke(main, ["solve", "--variant", "tiny", "-o", str(path)]).exit_code == 0
    return path.read_bytes()


@pytest.mark.parametrize("seed", range(100))
def test_strategy_files(tmp_path: Path, seed: int, good: bytes) -> None:
    rng = random.Random(seed)
    content = bytearray(good)
    kind = seed % 5
    if kind == 0:
        del content[rng.randrange(len(content)) :]
    elif kind == 1:
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    elif kind == 2:
        at = rng.randrange(len(content) - 20)
        content[at : at + 20] = rng.randbytes(20)
    elif kind == 3:
        content += rng.randbytes(rng.randrange(1, 50))
    else:
        content[:8] = rng.choice([0, 1, len(good), 2**31, 2**63, 2**64 - 1]).to_bytes(8, "little")
    assert content != good
    path = tmp_path / "s"
    path.write_bytes(content)
    refused([["evaluate"], ["verify"], ["evaluate", "--json"], ["verify", "--json"]][seed % 4] + [str(path)], (4,))


OPTIONS = ["--accuracy", "--iterations", "--seconds", "--threads", "--algorithm", "--variant", "--rules"]


GOOD_AFTER_ALL = {("--accuracy", "1.5"), ("--seconds", "1.5")}
NEVER_AN_ARGUMENT = {("--rules", "\x00")}  # nor a file name


@pytest.mark.parametrize(
    ("option", "junk"),
    [pair for pair in itertools.product(OPTIONS, JUNK) if pair not in GOOD_AFTER_ALL | NEVER_AN_ARGUMENT],
    ids=itertools.count(),
)
def test_options(option: str, junk: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused(["solve", option, junk], (2,))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "args", [["solve", "--frob"], ["solve", "a"], ["verify", "a", "b"], ["x\ny"], ["evaluate", "\x1b"]]
)
def test_arguments(args: list[str]) -> None:
    refused(args, (2,))


def sentence(error: pytest.ExceptionInfo[NotationError]) -> None:
    message = str(error.value)
    assert message.endswith(".")
    assert message.isprintable()
    assert len(message) < 1000


@pytest.mark.parametrize("junk", [*JUNK, "A", "A A", "A 2 9", "A 2 3 4", "A,2,raise", "AA2"], ids=repr)
def test_hands(junk: str) -> None:
    with pytest.raises(NotationError) as error:
        parse_hand(RULES, junk)
    sentence(error)


@pytest.mark.parametrize(
    "junk",
    [
        *(junk for junk in JUNK[3:] if junk != "A A A A"),
        "accept",
        "raise raise",
        "raise accept raise",
        "A 2 3 4 A 2 3",
        "r n A",
    ],
    ids=repr,
)
def test_lines(junk: str) -> None:
    with pytest.raises(NotationError) as error:
        parse_line(RULES, junk)
    sentence(error)


@pytest.mark.parametrize("variant", ["french", "catalan"])
@pytest.mark.parametrize(
    "junk",
    [
        *(junk for junk in JUNK[3:]),
        *("raise", "7", "y", "keep keep", "propose propose", "propose agree propose", "propose agree agree"),
        *("keep remainder", "keep pass", "keep 7 pass", "keep raise fold", "keep play", "keep fold fold"),
        *("cut cut", "cut tap", "tap tap", "tap 3", "tap one 3 3", "tap two", "cut pass", "cut fold", "cut 3 3"),
        *("cut raise pass", "cut raise accept 3 pass", "cut 3 pass pass", "cut 3 raise raise", "cut decline"),
    ],
    ids=repr,
)
def test_lines_of_other_rule_sets(variant: str, junk: str) -> None:
    with pytest.raises(NotationError) as error:
        parse_line(preset(variant), junk)
    sentence(error)


@pytest.mark.parametrize(
    "junk", [*JUNK, "12-0", "0-12", "0", "-", "1-", "1--1", "1-2-3", "٣-٤", "1:2", "00000-0"], ids=repr
)
def test_scores(junk: str) -> None:
    with pytest.raises(NotationError) as error:
        parse_score(RULES, junk)
    sentence(error)
