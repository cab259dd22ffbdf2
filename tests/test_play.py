"""`truc play` and the game underneath: whole matches, hints, the tutor, undo, and that nothing hidden is ever shown."""

import io
import random
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from games.history import History, format_history, load_history, parse_history
from games.rules import NOBODY, Rules, preset
from games.state import Hand, IllegalActionError, State
from solver.bot import Advisers, Move
from solver.cfr import Solver
from solver.cli import main
from solver.cli.play import Table
from solver.game import BOT, PERSON, Game, GameError
from solver.grading import review
from solver.i18n import LANGUAGES, strings
from solver.strategy import Strategy
from solver.tree import Tree
from tests.test_cli import start

MINI = preset("mini")
SHORT = Rules.from_toml(MINI.to_toml().replace("target = 12", "target = 4"), "short")


def solved(rules: Rules, iterations: int = 1500) -> Strategy:
    solver = Solver(Tree(rules))
    solver.step(iterations)
    return Strategy.of(solver)


@pytest.fixture(scope="module")
def strategy() -> Strategy:
    return solved(MINI)


@pytest.fixture(scope="module")
def advisers(strategy: Strategy) -> Advisers:
    return Advisers(MINI, known={None: strategy})


@pytest.fixture(scope="module")
def match_advisers() -> Advisers:
    """Of a short match; its strategies are for points, which is good enough to play."""
    strategy = solved(SHORT)
    return Advisers(SHORT, known={(a, b): strategy for a in range(4) for b in range(4)})


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A strategy file of the mini game."""
    path = tmp_path_factory.mktemp("play") / "mini.safetensors"
    assert (
        CliRunner().invoke(main, ["solve", "--variant", "mini", "--accuracy", "1e-5", "-o", str(path)]).exit_code == 0
    )
    return str(path)


def finish(game: Game, rng: random.Random) -> None:
    """Play the hand to its end, the person at random."""
    while not game.is_over:
        while game.reply() is not None:
            pass
        legal = game.view().legal
        if legal:
            game.act(rng.choice(legal))


# ---------------------------------------------------------------------------------------------------------------- game


@pytest.mark.parametrize("seed", range(6))
def test_whole_matches(match_advisers: Advisers, seed: int) -> None:
    game, rng = Game(match_advisers, "casual", seed, (1, 2)), random.Random(seed)
    points, leader = game.view().points, game.view().leader
    assert sorted(points or ()) == [1, 2]
    assert (points or ())[leader] == 1  # the score is the leader's first
    while True:
        finish(game, rng)
        view = game.view()
        assert view.outcome is not None
        assert view.leader == leader
        after = list(view.points or ())
        if view.outcome.winner != NOBODY:
            after[view.outcome.winner] = min(after[view.outcome.winner] + view.outcome.points, 4)
        if game.match_is_over:
            break
        game.next_hand()
        assert game.view().points == tuple(after)
        leader = 1 - leader  # the deal alternates, also after a spoiled hand
    assert view.outcome.match_winner == after.index(4)
    with pytest.raises(GameError, match="the match is over"):
        game.next_hand()
    history = game.history()
    assert parse_history(format_history(history), SHORT) == history
    assert all(None not in deal for hand in history.hands for deals in hand.cards for deal in deals)


def test_a_seed_and_the_actions_give_the_match_again(advisers: Advisers) -> None:
    def play(seed: int, dither: bool) -> History:
        game, rng = Game(advisers, "beginner", seed, None), random.Random(9)
        for _ in range(4):
            while not game.is_over:
                while game.reply() is not None:
                    pass
                if not (legal := game.view().legal):
                    break
                action = rng.choice(legal)
                if dither:  # something else first, taken back
                    game.act(legal[-1])
                    game.reply()
                    assert game.undo()
                game.act(action)
            game.next_hand()
        return game.history()

    assert play(5, False) == play(5, False) == play(5, True)
    assert play(5, False) != play(6, False)


def test_undo(advisers: Advisers) -> None:
    game = Game(advisers, "perfect", 1, None, person_leads=True)
    assert not game.undo()
    before = game.view()
    for action in before.legal:
        game.act(action)
        while game.reply() is not None:
            pass
        assert game.undo()
        assert game.view().line == ()
        assert game.view().legal == before.legal
        assert game.view().hand == before.hand
    strict = Game(advisers, "perfect", 1, None, person_leads=True, practice=False)
    strict.act(before.legal[0])
    with pytest.raises(GameError, match="practice"):
        strict.undo()


def test_a_hand_may_be_taken_back_after_its_end(advisers: Advisers) -> None:
    game, rng = Game(advisers, "perfect", 2, None), random.Random(1)
    finish(game, rng)
    ended = any(event.player == PERSON for event in game.view().events)
    assert game.undo() == ended
    assert game.is_over != ended


def test_what_cannot_be_done_is_refused(advisers: Advisers) -> None:
    game = Game(advisers, "perfect", 1, None, person_leads=True)
    with pytest.raises(IllegalActionError):
        game.act("accept")
    with pytest.raises(GameError, match="not over"):
        game.next_hand()
    game.act("raise")
    assert game.to_play == BOT
    with pytest.raises(GameError, match="not your turn"):
        game.act("3")
    with pytest.raises(GameError, match="not your turn"):
        game.hint()
    assert game.read("nonsense") is None


def test_hints_and_warnings_are_the_advice(advisers: Advisers) -> None:
    game = Game(advisers, "perfect", 3, None, person_leads=True)
    view, adviser = game.view(), advisers.get(None).adviser
    assert view.hand is not None
    advice = game.hint()
    assert advice == adviser.advise(" ".join(MINI.ranks[rank] for rank in view.hand), ())
    for choice in advice.choices:
        warning = game.warn(choice.action, 0.1)
        assert (warning is not None) == (choice.loss is not None and choice.loss > 0.1 and choice.probability < 0.001)


# -------------------------------------------------------------------------------------------------------- hidden cards


class Fixed(Game):
    """A game whose cards are given, and whose bot plays what it is told if that is given as well."""

    hands: tuple[Hand, Hand] = ((), ())
    told: tuple[str, ...] | None = None

    def _dealt(self, state: State) -> State:
        if state.phase != "deal":
            return state
        self._deals = [self.hands]
        return state.give(*(self.hands if self._leader == PERSON else self.hands[::-1]))

    def reply(self) -> Move | None:
        if self.told is None or self.to_play != BOT:
            return super().reply()
        action = self.told[len(self._state.line)]
        self._apply(action)
        return Move(action, (action,), (1.0,), False, 0.0)


def fixed(
    advisers: Advisers, person: Hand, bot: Hand, leads: bool, told: tuple[str, ...] | None = None, level: str = "casual"
) -> Fixed:
    kind = type("Dealt", (Fixed,), {"hands": (person, bot), "told": told})
    game: Fixed = kind(advisers, level, 4, None, leads)
    return game


def other_cards(rng: random.Random, mine: Hand, hand: Hand, kept: list[int]) -> Hand:
    """A hand with the cards of another one that were played, and otherwise different ones."""
    while True:
        deck = [rank for rank in range(MINI.n_ranks) for _ in range(MINI.copies)]
        for rank in (*mine, *kept):
            deck.remove(rank)
        found = tuple(sorted([*kept, *rng.sample(deck, 3 - len(kept))]))
        if found != hand:
            return found


def moments(number: int, seed: int) -> list[tuple[Hand, Hand, bool, State]]:
    """Random hands of person and bot, whether the person leads, and a state before the end at which it is his turn."""
    rng, found = random.Random(seed), []
    while len(found) < number:
        deck = [rank for rank in range(MINI.n_ranks) for _ in range(MINI.copies)]
        rng.shuffle(deck)
        person, bot, leads = tuple(sorted(deck[:3])), tuple(sorted(deck[3:6])), rng.random() < 0.5
        state = State.deal(MINI, person, bot) if leads else State.deal(MINI, bot, person)
        turns = []
        while not state.is_over:
            turns.append(state)
            state = state.apply(rng.choice(state.legal_actions()))
        state = rng.choice(turns)
        if sum(action in MINI.ranks for action in state.line) < 5:  # some card of the bot is still hidden
            found.append((person, bot, leads, state))
    return found


@pytest.mark.parametrize("code", LANGUAGES)
def test_what_is_shown_does_not_depend_on_hidden_cards(
    advisers: Advisers, code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything that is printed and written, hints and warnings included, is the same to the byte."""
    rng = random.Random(7)
    compared = 0
    for person, bot, leads, state in moments(12, 5):
        seat = 0 if leads else 1
        if state.to_play != seat:
            continue
        kept = [rank for who, rank in state.played if who != seat]
        typed = typing(fixed(advisers, person, bot, leads, state.line), state)
        shown = []
        for hand in (bot, other_cards(rng, person, bot, kept)):
            game, output = fixed(advisers, person, hand, leads, state.line), tmp_path / "hands"
            monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
            Table(game, strings(code), "casual", 0.01, True, output).play()
            assert not game.is_over
            written = output.read_bytes() if output.exists() else b""
            shown.append((capsys.readouterr().out, written, game.view(), format_history(game.history())))
            output.unlink(missing_ok=True)
        assert shown[0] == shown[1]
        assert len(shown[0][0]) > 200
        compared += 1
    assert compared >= 4


def typing(game: Fixed, state: State) -> str:
    """What the person types to come to a state: his actions, asking for a hint each time, and "y" where he is warned;
    then the last action is taken back and done again."""
    typed, last = "", ""
    while game._state.line != state.line:
        if game.reply() is None:
            action = state.line[len(game._state.line)]
            last = f"{action}\ny\n" if game.warn(action, 0.01) else f"{action}\n"
            typed += f"hint\n{last}"
            game.act(action)
    return typed + ("hint\nundo\n" + last if last else "hint\n")


def test_the_bot_does_not_look_at_the_persons_cards(advisers: Advisers) -> None:
    rng, compared = random.Random(8), 0
    for person, bot, leads, state in moments(40, 6):
        seat = 0 if leads else 1
        if state.to_play == seat:
            continue
        kept = [rank for who, rank in state.played if who == seat]
        moves = []
        for hand in (person, other_cards(rng, bot, person, kept)):
            game = fixed(advisers, hand, bot, leads, level="beginner")
            for action in state.line:
                game._apply(action)
            moves.append(game.reply())
        assert moves[0] is not None
        assert moves[0] == moves[1]
        compared += 1
    assert compared >= 10


def test_both_hands_are_shown_at_the_end(advisers: Advisers) -> None:
    game = fixed(advisers, (0, 1, 2), (3, 3, 3), True, ("raise", "refuse"))
    assert game.view().outcome is None
    assert game.history().hands[0].cards[BOT] == ((None, None, None),)
    game.act("raise")
    game.reply()
    outcome = game.view().outcome
    assert outcome is not None
    assert outcome.hands == (((0, 1, 2),), ((3, 3, 3),))
    assert game.history().hands[0].cards[BOT] == ((3, 3, 3),)


# ------------------------------------------------------------------------------------------------------------ terminal


def play(*args: str, typed: str = "", code: int = 0) -> str:
    result = CliRunner().invoke(main, ["play", *args], input=typed, prog_name="truc")
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result.output


def test_a_match_in_the_terminal(
    match_advisers: Advisers, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    game = Game(match_advisers, "club", 11)
    words = [*(word for _ in range(200) for word in ("A", "2", "3", "4", "y"))]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(words)))
    Table(game, strings("en"), "club", None, True, tmp_path / "hands").play()
    out = capsys.readouterr().out
    assert game.match_is_over
    assert "wins the match, 4 to" in out or "You win the match, 4 to" in out
    assert out.rstrip().endswith(f"The hands are in {tmp_path / 'hands'}.")
    kept = load_history(tmp_path / "hands", SHORT)
    assert kept == game.history()
    assert out.count("You had") == len(kept.hands) == out.count("Bot had")
    scores = [hand.score for hand in kept.hands]
    assert scores[0] == (0, 0)


def test_hint_undo_help_and_nonsense(file: str) -> None:
    typed = "help\nfoo bar\nhint\nundo\n\n" + "A\n2\n3\n4\nundo\nquit\n"
    out = play("--strategy", file, "--seed", "1", "--lead", typed=typed)
    for text in (
        "Raise (r), accept (y)",
        '"foo bar" is not possible',
        "loses 0.00 points",
        "nothing to take back",
        "Goodbye",
    ):
        assert text in out
    out = play("--strategy", file, "--seed", "1", "--lead", "--no-undo", "--no-hints", typed="hint\nA\n2\n3\n4\nundo\n")
    assert '"hint" is not possible' in out
    assert "Nothing is taken back" in out


def test_the_tutor_asks_again(file: str) -> None:
    options, asked = ("--strategy", file, "--seed", "1", "--lead"), 0
    for action in ("A", "3", "r"):  # the hand is A 3 3
        out = play(*options, "--tutor", "0.05", typed=action)
        if "play it anyway? (y/n)" in out:
            asked += 1
            assert f"Playing {action} costs" in out or "This raise costs" in out
            assert "You play" not in out
            assert "You raise" not in out
            assert "You " not in play(*options, "--tutor", "0.05", typed=f"{action}\nn").partition("anyway")[2]
            out = play(*options, "--tutor", "0.05", typed=f"{action}\ny")
        assert f"You play {action}." in out or "You raise to 2." in out
    assert 1 <= asked <= 2
    assert "anyway" not in play(*options, "--tutor", "99", typed="A")


def test_french(file: str) -> None:
    out = play("--strategy", file, "--seed", "1", "--lead", "--lang", "fr", typed="conseil\ntruquer\nquitter\n")
    assert "Vous avez la main, bot est donneur." in out
    assert "Vous truquez : 2." in out
    result = CliRunner().invoke(main, ["play", "--strategy", file], input="", env={"LC_ALL": "fr_FR.UTF-8"})
    assert "Tapez une action" in result.output


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--level", "god"], "there is no level 'god', known are beginner"),
        (["--lang", "de"], "there is no language 'de', known are en, fr"),
        (["--score", "12-0"], "each from 0 to 11"),
        (["--score", "1-1", "--points"], "--points"),
        (["--variant", "mini"], "--points plays without"),
        (["--variant", "bridge"], "known are"),
        (["--tutor", "0"], "above 0"),
        (["--seed", "-1"], "--seed"),
    ],
)
def test_wrong_usage(args: list[str], message: str) -> None:
    assert message in play(*args, code=2)


def test_files_are_never_gone_on_with(file: str, tmp_path: Path) -> None:
    hands = tmp_path / "hands"
    hands.write_text("mine")
    assert "exists already" in play("--strategy", file, "-o", str(hands), code=2)
    assert hands.read_text() == "mine"


def test_the_end_of_the_input(file: str, tmp_path: Path) -> None:
    hands = tmp_path / "hands"
    out = play("--strategy", file, "--seed", "2", "--lead", "-o", str(hands), typed="A\n2\n3\n4")
    assert "Goodbye." in out
    history = load_history(hands)
    assert len(history.hands) >= 1
    assert history.hands[0].line


def test_interrupted(file: str, tmp_path: Path) -> None:
    """Ctrl-C leaves what was played in the file, and one sentence."""
    import subprocess

    hands = tmp_path / "hands"
    process = start(
        "play", "--strategy", file, "--seed", "2", "--lead", "-o", str(hands), stdin=subprocess.PIPE, cwd=tmp_path
    )
    assert process.stdin is not None
    process.stdin.write("A\n2\n3\n4\n")
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while not hands.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert err.strip() == "Interrupted."
    assert "The hands are in" in out
    assert load_history(hands).hands[0].line


def test_random_input(file: str) -> None:
    """Nothing that is typed ends in a traceback."""
    rng = random.Random(1)
    letters = "AaRrYyNn1234 ,?/\\\x00\x1béß-_'\"" + "".join(map(chr, range(0x3B0, 0x3D0)))
    lines = ["".join(rng.choice(letters) for _ in range(rng.choice([0, 1, 2, 30]))) for _ in range(1000)]
    lines[500] = "x" * 100_000
    out = play("--strategy", file, "--seed", "3", "--tutor", "0.1", typed="\n".join(lines))
    assert "Goodbye." in out


# ------------------------------------------------------------------------------------------------------ other rule sets

OTHER_RULES = {
    "redeal and fold": ("fold = false", "fold = true", "redeal = false", "redeal = true"),
    "one card, raises after it": ("one_card = false", "one_card = true", '["before"]', '["before", "after"]'),
}


@pytest.mark.parametrize("changes", OTHER_RULES.values(), ids=OTHER_RULES)
def test_other_rules_go_through_the_same_code(strategy: Strategy, changes: tuple[str, str, str, str]) -> None:
    """Whole hands with every action of the rules, hints at each decision, and the review of them."""
    text = MINI.to_toml()
    for old, new in (changes[:2], changes[2:]):
        assert old in text
        text = text.replace(old, new)
    rules = Rules.from_toml(text, "more")
    advisers, seen = Advisers(rules, known={None: strategy}), set()
    game, rng = Game(advisers, "beginner", 2, None), random.Random(4)
    for _ in range(25):
        while not game.is_over:
            while game.reply() is not None:
                pass
            if legal := game.view().legal:
                assert [choice.action for choice in game.hint().choices] == list(legal)
                game.act(rng.choice(legal))
        seen.update(game.view().line)
        game.next_hand()
    assert seen >= ({"fold", "propose"} if rules.redeal else {"tap", "pass"})
    history = game.history()
    assert parse_history(format_history(history), rules) == history
    found = review(replace(history, hands=history.hands[:6]), advisers)
    assert all(unknown == (0, 0) for unknown in (hand.unknown for hand in found.hands))
    assert sum(len(hand.decisions) for hand in found.hands) > 10
