"""Le Truc as a game of OpenSpiel: `import games.openspiel` registers it as `python_truc`.

It is written from the rules and shares no game logic with the referee (`games.state`) or with the solver: from
`games.rules` it takes the fields of a rule set and nothing else. So an agreement with either of them means something.

    game = pyspiel.load_game("python_truc(variant=mini)")              # a preset
    game = pyspiel.load_game("python_truc(ranks=A 2 3,ladder=1 2)")    # the default one with other fields
    game = load(rules, win0=(0.6, 1.0), win1=(0.4, 0.0), tie=0.5)      # a rule set, and other payoffs than points

Parameters, none of them needed:
    variant             a preset, by default le-truc
    ranks, order, copies, hand_size, ladder, all_tied
                        fields of a rule file, each in place of the variant's ("" and 0: not given)
    win0, win1, tie     the leader's payoff when the leader scores, when the dealer does (one number for each stake of
                        the ladder) and when nobody does; the dealer's is minus that. Each by default in points.
A list is separated by spaces and may stand in brackets. In a game string a single number needs them, `ladder=[1]`,
because OpenSpiel refuses an integer for a string, just as it refuses tie=0 for 0.0. What is wrong raises an exception
of one sentence: `RulesError`, or `pyspiel.SpielError` for an unknown name or type, which OpenSpiel finds itself.

Players   0 is the leader (the non-dealer), 1 the dealer.
Actions   0 raise, 1 accept, 2 refuse, 3 + r a card of rank r (0 the weakest); as strings these words and the ranks'
          labels. There is a decision node for each choice, even if only one action is legal.
Chance    two nodes: the leader's hand, then the dealer's given the leader's. Outcome i is the i-th multiset of ranks
          that the deck holds ("deal [A 3 8]"), in the order of `itertools.combinations_with_replacement`. Its
          probability counts the cards that are left; impossible ones are not listed.

Information state, as a string: the player, the cards still held and every action since the deal, `leader [3 8] raise
accept A`. As a tensor of zeros and ones, with n ranks and k = min(copies, hand_size):
    player (2)                     whose it is
    hand (n, k)                    [r, i]: more than i cards of rank r are held
    line (max_game_length, 3 + n)  the actions since the deal, in order
Observation: instead of the line what lies open now,
    actor (2), phase (3)           who has to act and what: a turn, an answer, the card after an accepted raise
    stake (stakes), raiser (2)     the accepted stake; who made the last raise, if any
    led (n), played (2, n, k)      the card that waits for its answer, if any; each player's cards on the table
    tricks (hand_size, 3)          who took each complete trick: leader, dealer, nobody
A public observer has neither player nor hand, a private one has nothing else.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np

from games.openspiel_parameters import DEFAULTS, given_parameters, read_payoffs, read_rules, write_parameters
from games.rules import Rules, shown

try:
    import pyspiel
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("games.openspiel needs OpenSpiel: pip install 'le-truc[openspiel]'.") from error

NAME = "python_truc"
RAISE, ACCEPT, REFUSE, FIRST_RANK = range(4)
WORDS = ("raise", "accept", "refuse")
PLAYERS = ("leader", "dealer")
NOBODY = 2
TURN, ANSWER, CARD, DEAL, OVER = range(5)
"""Phases: raise or play a card; accept or refuse; only play, after an accepted raise; chance deals; the end."""

_GAME_TYPE = pyspiel.GameType(
    short_name=NAME,
    long_name="Le Truc (Python)",
    dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
    chance_mode=pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
    information=pyspiel.GameType.Information.IMPERFECT_INFORMATION,
    utility=pyspiel.GameType.Utility.ZERO_SUM,
    reward_model=pyspiel.GameType.RewardModel.TERMINAL,
    max_num_players=2,
    min_num_players=2,
    provides_information_state_string=True,
    provides_information_state_tensor=True,
    provides_observation_string=True,
    provides_observation_tensor=True,
    provides_factored_observation_string=True,
    parameter_specification=DEFAULTS,
)


def load(
    rules: Rules, win0: Sequence[float] | None = None, win1: Sequence[float] | None = None, tie: float = 0.0
) -> TrucGame:
    """The game of a rule set, in points or with the leader's payoffs. Raises `RulesError`."""
    return cast(TrucGame, pyspiel.load_game(NAME, write_parameters(rules, win0, win1, tie)))


class TrucGame(pyspiel.Game):  # type: ignore[misc]  # pyspiel is untyped
    """One hand of Le Truc."""

    def __init__(self, params: Mapping[str, Any] | None = None) -> None:
        """Read the parameters, which the module documents. Raises `RulesError`."""
        parameters = given_parameters(params or {})
        self.rules = rules = read_rules(parameters)
        self.win0, self.win1, self.tie = read_payoffs(parameters, rules)
        self.n_ranks = n = len(rules.ranks)
        # A hand here and in the states is the number of cards of each rank, as bytes.
        hands = itertools.combinations_with_replacement(range(n), rules.hand_size)
        counts = (bytes(map(hand.count, range(n))) for hand in hands)
        self.hands = [count for count in counts if max(count) <= rules.copies]
        # A linear order, and in a circular one the weakest rank beats the strongest instead of losing to it.
        self.beats = {(high, low) for high in range(n) for low in range(high)}
        if rules.order == "circular":
            self.beats ^= {(n - 1, 0), (0, n - 1)}
        self._outcomes: dict[bytes, list[tuple[int, float]]] = {}

        cards, raises = _longest(rules)
        self.max_line = cards + 2 * raises
        payoffs = [*self.win0[: raises + 1], *self.win1[: raises + 1]]
        most = max(map(abs, [*payoffs, self.tie] if rules.all_tied == "nobody" else payoffs))
        info = pyspiel.GameInfo(
            num_distinct_actions=FIRST_RANK + n,
            max_chance_outcomes=len(self.hands),
            num_players=2,
            min_utility=-most,
            max_utility=most,
            utility_sum=0.0,
            max_game_length=self.max_line,
        )
        super().__init__(_GAME_TYPE, info, parameters)

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        """Pickle as the game's string: OpenSpiel's own way would lose the attributes of the Python object."""
        return pyspiel.load_game, (str(self),)

    def new_initial_state(self) -> TrucState:
        """The state before the deal."""
        return TrucState(self)

    def max_chance_nodes_in_history(self) -> int:
        """The two hands dealt."""
        return 2

    def make_py_observer(self, iig_obs_type: Any = None, params: Any = None) -> TrucObserver:
        """An observer of this game, by default for observations without perfect recall."""
        if params:
            raise ValueError(f"{NAME} has no observation parameters, but there is {shown(params)}.")
        return TrucObserver(self, iig_obs_type or pyspiel.IIGObservationType(perfect_recall=False))

    def deal_outcomes(self, seen: bytes) -> list[tuple[int, float]]:
        """Outcomes and probabilities of the next hand when the cards `seen` are out of the deck."""
        if seen not in self._outcomes:
            left = [self.rules.copies - count for count in seen]
            total = math.comb(sum(left), self.rules.hand_size)
            ways = [math.prod(map(math.comb, left, hand)) for hand in self.hands]
            self._outcomes[seen] = [(i, number / total) for i, number in enumerate(ways) if number]
        return self._outcomes[seen]

    def hand_words(self, hand: bytes) -> str:
        """A hand as text in brackets, weakest rank first."""
        return "[" + " ".join(self.rules.ranks[rank] for rank, _ in _cells(hand)) + "]"

    def action_word(self, action: int) -> str:
        """A player's action as text."""
        return WORDS[action] if action < FIRST_RANK else self.rules.ranks[action - FIRST_RANK]


class TrucState(pyspiel.State):  # type: ignore[misc]
    """A moment of the hand.

    OpenSpiel clones and pickles it attribute by attribute, with `copy.deepcopy` again and again in tree algorithms. So
    all are plain values, and sequences are bytes, which are copied at once.
    """

    def __init__(self, game: TrucGame) -> None:
        """Only `TrucGame.new_initial_state` calls this."""
        super().__init__(game)
        self.held = b""  # the hands dealt, one after the other, as far as they are still held
        self.played = bytes(2 * game.n_ranks)  # the cards on the table, likewise
        self.line = b""  # the actions since the deal
        self.tricks = b""  # who took each complete trick: a player, or NOBODY
        self.phase = DEAL
        self.turn = 0  # the player whose card is due
        self.led = -1  # the rank that waits for its answer, or -1
        self.level = 0  # of the accepted stake
        self.raiser = -1  # who made the last raise, or -1
        self.payoff = 0.0  # the leader's

    def current_player(self) -> int:
        """A player, or OpenSpiel's number for chance or for the end."""
        if self.phase >= DEAL:
            return int(pyspiel.PlayerId.CHANCE if self.phase == DEAL else pyspiel.PlayerId.TERMINAL)
        return 1 - self.turn if self.phase == ANSWER else self.turn

    def is_terminal(self) -> bool:
        """Whether the hand is over."""
        return self.phase == OVER

    def returns(self) -> list[float]:
        """Both payoffs, 0 before the end."""
        return [self.payoff, 0.0 - self.payoff]

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """The hands that can be dealt now, with their probabilities."""
        game: TrucGame = self.get_game()
        return game.deal_outcomes(self.held or bytes(game.n_ranks))

    def hand(self, player: int) -> bytes:
        """The cards that a player holds, as the number of each rank; empty before they are dealt."""
        n = len(self.played) // 2
        return self.held[player * n : (player + 1) * n]

    def _legal_actions(self, player: int) -> list[int]:
        if self.phase == ANSWER:
            return [ACCEPT, REFUSE]
        cards = [FIRST_RANK + rank for rank, count in enumerate(self.hand(player)) if count]
        higher = self.level + 1 < len(self.get_game().rules.ladder)
        return [RAISE, *cards] if higher and self.raiser != player else cards

    def _apply_action(self, action: int) -> None:
        game: TrucGame = self.get_game()
        player = self.current_player()
        legal = self._legal_actions(player) if player >= 0 else self.legal_actions()  # OpenSpiel's is slower
        if action not in legal:
            raise ValueError(f"the action {action} is not legal here, legal are {legal}.")
        if player < 0:
            self.phase = TURN if self.held else DEAL
            self.held += game.hands[action]
            return
        self.line += bytes([action])
        if action == RAISE:
            self.raiser, self.phase = player, ANSWER
        elif action == ACCEPT:
            self.level, self.phase = self.level + 1, CARD
        elif action == REFUSE:
            self._end(game, self.raiser)  # who scores the stake before the raise
        else:
            self._play(game, action - FIRST_RANK)

    def _play(self, game: TrucGame, rank: int) -> None:
        """The card of the player whose turn it is; as an answer it completes the trick."""
        player, self.phase = self.turn, TURN
        place = player * game.n_ranks + rank
        self.held, self.played = _changed(self.held, place, -1), _changed(self.played, place, +1)
        self.turn = 1 - player
        if self.led < 0:
            self.led = rank
            return
        # The winner leads, and after a tie whoever led: in both cases the other player, unless this card wins.
        if (rank, self.led) in game.beats:
            self.turn = player
        self.tricks += bytes([NOBODY if rank == self.led else self.turn])
        self.led = -1
        self._stop_if_decided(game)

    def _stop_if_decided(self, game: TrucGame) -> None:
        """Who is ahead has won if the other cannot overtake, nor draw level and have won the first trick."""
        ahead, rest = self.tricks.count(0) - self.tricks.count(1), game.rules.hand_size - len(self.tricks)
        first = self.tricks.replace(bytes([NOBODY]), b"")[:1]  # the winner of the first trick not tied
        front = first if ahead == 0 else bytes([0 if ahead > 0 else 1])
        if rest == 0 and not first:
            self._end(game, {"nobody": NOBODY, "leader": 0, "dealer": 1}[game.rules.all_tied])
        elif rest == 0 or abs(ahead) > rest or (abs(ahead) == rest and front == first):
            self._end(game, front[0])

    def _end(self, game: TrucGame, scorer: int) -> None:
        self.phase = OVER
        self.payoff = game.tie if scorer == NOBODY else (game.win0, game.win1)[scorer][self.level]

    def _action_to_string(self, player: int, action: int) -> str:
        game: TrucGame = self.get_game()
        return f"deal {game.hand_words(game.hands[action])}" if player < 0 else game.action_word(action)

    def __str__(self) -> str:
        """Both hands and the line."""
        game: TrucGame = self.get_game()
        hands = [f"{who} {game.hand_words(self.hand(player))}" for player, who in enumerate(PLAYERS)]
        return " ".join([*hands, *map(game.action_word, self.line)])


class TrucObserver:
    """What a player, or the public, knows, as `tensor`, as `dict` of its named pieces, or as a string.

    The module documents the layout. `tensor` has the dtype float32; the pieces of `dict` are views of it.
    """

    def __init__(self, game: TrucGame, kind: Any) -> None:
        """An observer for the kind of observation, a `pyspiel.IIGObservationType`."""
        private = pyspiel.PrivateInfoType
        if kind.private_info not in (private.NONE, private.SINGLE_PLAYER):
            raise ValueError(f"{NAME} has no observations of both players' hands.")
        self._game, rules = game, game.rules
        self._private = kind.private_info == private.SINGLE_PLAYER
        self._line = kind.public_info and kind.perfect_recall
        self._table = kind.public_info and not kind.perfect_recall
        n, k = len(rules.ranks), min(rules.copies, rules.hand_size)
        shapes: dict[str, tuple[int, ...]] = {}
        if self._private:
            shapes |= {"player": (2,), "hand": (n, k)}
        if self._line:
            shapes |= {"line": (game.max_line, FIRST_RANK + n)}
        if self._table:
            shapes |= {"actor": (2,), "phase": (3,), "stake": (len(rules.ladder),), "raiser": (2,)}
            shapes |= {"led": (n,), "played": (2, n, k), "tricks": (rules.hand_size, 3)}
        ends = list(itertools.accumulate(map(math.prod, shapes.values()), initial=0))
        self.tensor = np.zeros(ends[-1], np.float32)
        parts = np.split(self.tensor, ends[1:-1])
        self.dict = {key: part.reshape(shape) for (key, shape), part in zip(shapes.items(), parts, strict=False)}

    def set_from(self, state: TrucState, player: int) -> None:
        """Make `tensor` and `dict` what `player` knows in `state`."""
        self.tensor.fill(0)
        for piece, index in self._ones(state, player):
            self.dict[piece][index] = 1

    def _ones(self, state: TrucState, player: int) -> Iterator[tuple[str, int | tuple[int, ...]]]:
        """Where the tensor is 1: a piece's name and an index into it."""
        if self._private:
            yield "player", player
            yield from (("hand", cell) for cell in _cells(state.hand(player)))
        if self._line:
            yield from (("line", cell) for cell in enumerate(state.line))
        if self._table:
            actor = state.current_player()
            yield from [("actor", actor), ("phase", state.phase)] if actor >= 0 else []
            yield "stake", state.level
            yield from [("raiser", state.raiser)] if state.raiser >= 0 else []
            yield from [("led", state.led)] if state.led >= 0 else []
            table = enumerate(_halves(state.played))
            yield from (("played", (seat, *cell)) for seat, cards in table for cell in _cells(cards))
            yield from (("tricks", cell) for cell in enumerate(state.tricks))

    def string_from(self, state: TrucState, player: int) -> str:
        """The same as text."""
        game, words = self._game, []
        if self._private:
            words.append(f"{PLAYERS[player]} {game.hand_words(state.hand(player))}")
        if self._line:
            words += map(game.action_word, state.line)
        if self._table:
            actor, doing = state.current_player(), ("turn", "answer", "card", "deal", "over")[state.phase]
            words.append(f"{PLAYERS[actor]} {doing}" if actor >= 0 else doing)
            words.append(f"stake {game.rules.ladder[state.level]}")
            words += [f"raised by {PLAYERS[state.raiser]}"] if state.raiser >= 0 else []
            words += [f"led {game.rules.ranks[state.led]}"] if state.led >= 0 else []
            words += ["played", *map(game.hand_words, _halves(state.played))]
            words.append("tricks [" + " ".join((*PLAYERS, "nobody")[trick] for trick in state.tricks) + "]")
        return " ".join(words)


def _cells(hand: bytes) -> list[tuple[int, int]]:
    """For each card its rank, and how many of that rank come before it."""
    return [(rank, i) for rank, count in enumerate(hand) for i in range(count)]


def _halves(cards: bytes) -> tuple[bytes, bytes]:
    """Cards of both players, one after the other, by player."""
    return cards[: len(cards) // 2], cards[len(cards) // 2 :]


def _changed(cards: bytes, place: int, by: int) -> bytes:
    """Cards with one number changed."""
    return cards[:place] + bytes([cards[place] + by]) + cards[place + 1 :]


def _longest(rules: Rules) -> tuple[int, int]:
    """The most cards and the most raises of a hand.

    If the deck has equal cards, all tricks but the last can be tied. Then the players take turns from the first card to
    the last, and there can be a raise before each. If not, one or two cards are over after the first trick; three need
    one won by each side, so the loser of the first plays twice running and cannot raise both times.
    """
    if rules.copies > 1:
        turns = raises = 2 * rules.hand_size
    else:
        turns, raises = (6, 5) if rules.hand_size == 3 else (2, 2)
    return turns, min(raises, len(rules.ladder) - 1)


pyspiel.register_game(_GAME_TYPE, TrucGame)
