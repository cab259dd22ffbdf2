"""Le Truc as a game of OpenSpiel: `import games.openspiel` registers it as `python_truc`.

It is written from the rules and shares no game logic with the referee (`games.state`) or with the solver: from
`games.rules` it takes the fields of a rule set and nothing else. So an agreement with either of them means something.

    game = pyspiel.load_game("python_truc(variant=mini)")              # a preset
    game = pyspiel.load_game("python_truc(ranks=A 2 3,ladder=1 2)")    # the default one with other fields
    game = load(rules, win0=(0.6, 1.0), win1=(0.4, 0.0), tie=0.5)      # a rule set, and other payoffs than points

Parameters, none of them needed:
    variant             a preset, by default le-truc
    ranks, order, copies, hand_size, ladder, all_tied, raise_when, remainder, remainder_refused, fold, redeal,
    decision_before_target, one_card
                        fields of a rule file, each in place of the variant's ("" and 0: not given); on and off for
                        true and false
    win0, win1, tie     the leader's payoff when the leader scores, when the dealer does (one number for each stake of
                        the ladder) and when nobody does; the dealer's is minus that. Each by default in points.
    match               the leader's payoff when he wins the match and when the dealer does. Only with it can the
                        remainder be called, for a hand in points has none.
    before_target       which sides are one point before the target: none (the default), leader, dealer or both
    declined            the leader's payoff when the one side that is there declines, by default one point to the other
The last three mean nothing to rule sets without such rules. A list is separated by spaces and may stand in brackets. In
a game string a single number needs them, `ladder=[1]`, because OpenSpiel refuses an integer for a string, just as it
refuses tie=0 for 0.0. What is wrong raises an exception of one sentence: `RulesError`, or `pyspiel.SpielError` for an
unknown name or type, which OpenSpiel finds itself.

Players   0 is the leader (the non-dealer), 1 the dealer.
Actions   0 raise, 1 accept, 2 refuse, 3 + r a card of rank r (0 the weakest), then those of the other rules that there
          are, in this order: remainder; fold; pass (raises after the card); propose, keep, agree, decline (redeal);
          play, decline (before the target); cut, tap, three, one (one card). As strings these words and the ranks'
          labels. There is a decision node for each choice, even if only one action is legal.
Chance    two nodes: the leader's hand, then the dealer's given the leader's, and after a redeal two more. Outcome i is
          the i-th multiset of ranks that the deck holds ("deal [A 3 8]"), in the order of
          `itertools.combinations_with_replacement`. Its probability counts the cards that are left; impossible ones
          are not listed.

Information state, as a string: the player, the cards still held, those set aside in a redeal, and every action since
the beginning, `leader [3 8] raise accept A`, `dealer [2 2 7] aside [A 3 3] propose agree`. As a tensor of zeros and
ones, with n ranks and k = min(copies, hand_size):
    player (2)                     whose it is
    hand (n, k)                    [r, i]: more than i cards of rank r are held
    aside (n, k)                   likewise those set aside (redeal)
    line (max_game_length, actions)  the actions since the beginning, in order
Observation: instead of the line what lies open now,
    actor (2), phase (phases)      who has to act and what: a turn, an answer, the card after an accepted raise; then
                                   those of after (the card), propose, agree, target, cut, three that there are
    stake (stakes), raiser (2)     the accepted stake, the match after the ladder's if there is a remainder; who made
                                   the last raise, if any
    led (n), played (2, n, k)      the card that waits for its answer, if any; each player's cards on the table
    tricks (hand_size, 3)          who took each complete trick: leader, dealer, nobody
    asked                          what waits for its answer is a remainder; comes after the card (those that there are)
    opening (opening actions)      which of the actions from propose to one there have been, in the order above
A public observer has neither player nor hand nor cards set aside, a private one has nothing else.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from games.openspiel_actions import (
    ACCEPT,
    AFTER,
    AGREE,
    ANSWER,
    CARD,
    CUT,
    DEAL,
    FIRST_RANK,
    OVER,
    PLAYERS,
    PROPOSE,
    RAISE,
    REFUSE,
    TARGET,
    THREE,
    TURN,
    WORDS,
    Actions,
)
from games.openspiel_observer import TrucObserver, cells
from games.openspiel_parameters import DEFAULTS, given_parameters, read_payoffs, read_rules, write_parameters
from games.rules import Rules, shown

try:
    import pyspiel
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("games.openspiel needs OpenSpiel: pip install 'le-truc[openspiel]'.") from error

__all__ = ["ACCEPT", "FIRST_RANK", "NAME", "PLAYERS", "RAISE", "REFUSE", "WORDS", "TrucGame", "TrucState", "load"]

NAME = "python_truc"
NOBODY = 2

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
    rules: Rules,
    win0: Sequence[float] | None = None,
    win1: Sequence[float] | None = None,
    tie: float = 0.0,
    match: Sequence[float] | None = None,
    declined: float | None = None,
    before_target: str = "none",
) -> TrucGame:
    """The game of a rule set, in points or with the leader's payoffs, and where in a match. Raises `RulesError`."""
    alone = None if declined is None else [declined]
    parameters = write_parameters(rules, tie, before_target, win0=win0, win1=win1, match=match, declined=alone)
    return cast(TrucGame, pyspiel.load_game(NAME, parameters))


class TrucGame(pyspiel.Game):  # type: ignore[misc]  # pyspiel is untyped
    """One hand of Le Truc."""

    def __init__(self, params: Mapping[str, Any] | None = None) -> None:
        """Read the parameters, which the module documents. Raises `RulesError`."""
        parameters = given_parameters(params or {})
        self.rules = rules = read_rules(parameters)
        self.payoffs = payoffs = read_payoffs(parameters, rules)
        self.win0, self.win1, self.tie = payoffs.win0, payoffs.win1, payoffs.tie
        self.n_ranks = n = len(rules.ranks)
        # A hand here and in the states is the number of cards of each rank, as bytes.
        self.hands, self.single_cards = _hands(rules, rules.hand_size), _hands(rules, 1)
        # A linear order, and in a circular one the weakest rank beats the strongest instead of losing to it.
        self.beats = {(high, low) for high in range(n) for low in range(high)}
        if rules.order == "circular":
            self.beats ^= {(n - 1, 0), (0, n - 1)}
        self._outcomes: dict[tuple[bytes, int], list[tuple[int, float]]] = {}

        # Levels of the stake: those of the ladder, of which `top` is the last to raise to, and then the match.
        self.match_level = len(rules.ladder)
        self.stakes = [*map(str, rules.ladder), *(["match"] if rules.remainder else [])]
        self.level_payoffs = list(zip(payoffs.win0, payoffs.win1, strict=True))
        if rules.remainder and payoffs.match:
            self.level_payoffs.append((payoffs.match[0], payoffs.match[1]))
        self.actions = Actions(rules, len(self.level_payoffs) > self.match_level)
        # What is decided before the first card: by whom before the target, and whether one card may be dealt.
        standing = payoffs.before_target
        self.decider = {"leader": 0, "dealer": 1}.get(standing) if rules.decision_before_target else None
        self.cuts = rules.one_card and standing == "none"
        self.top = 0 if rules.decision_before_target and standing == "both" else len(rules.ladder) - 1

        self.max_line, most = self._bounds()
        info = pyspiel.GameInfo(
            num_distinct_actions=len(self.actions.words),
            max_chance_outcomes=max(len(self.hands), n),
            num_players=2,
            min_utility=-most,
            max_utility=most,
            utility_sum=0.0,
            max_game_length=self.max_line,
        )
        super().__init__(_GAME_TYPE, info, parameters)

    def _bounds(self) -> tuple[int, float]:
        """The most actions of a hand and the highest payoff.

        If the deck has equal cards, all tricks but the last can be tied. Then the players take turns from the first
        card to the last, and there can be a raise before each. If not, one or two cards are over after the first trick;
        three need one won by each side, so the loser of the first plays twice running and cannot raise both times.
        Where one may raise after the card, each card before the first raise is followed by a pass instead, so a hand is
        longest when the raises come last. The remainder takes the place of the last raise.
        """
        rules = self.rules
        if rules.copies > 1:
            cards = raises = 2 * rules.hand_size
        else:
            cards, raises = (6, 5) if rules.hand_size == 3 else (2, 2)
        first = self.top if self.decider is not None else 0  # the stake to begin with
        raises = min(raises, self.top - first)
        passes = cards - raises if raises and AFTER in self.actions.phases else 0
        opening = 2 if self.cuts or rules.redeal else int(self.decider is not None)
        ends = [payoff for pair in self.level_payoffs[first : first + raises + 1] for payoff in pair]
        if raises:  # at the end of the list is the match, if there is a remainder
            ends += itertools.chain(*self.level_payoffs[self.match_level :])
        ends += [self.payoffs.tie] if rules.all_tied == "nobody" else []
        ends += [self.payoffs.declined] if self.decider is not None else []
        return opening + cards + 2 * raises + passes, max(map(abs, ends))

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        """Pickle as the game's string: OpenSpiel's own way would lose the attributes of the Python object."""
        return pyspiel.load_game, (str(self),)

    def new_initial_state(self) -> TrucState:
        """The state before the deal."""
        return TrucState(self)

    def max_chance_nodes_in_history(self) -> int:
        """The two hands dealt, and two more in a redeal."""
        return 4 if self.rules.redeal else 2

    def make_py_observer(self, iig_obs_type: Any = None, params: Any = None) -> TrucObserver:
        """An observer of this game, by default for observations without perfect recall."""
        if params:
            raise ValueError(f"{NAME} has no observation parameters, but there is {shown(params)}.")
        return TrucObserver(self, iig_obs_type or pyspiel.IIGObservationType(perfect_recall=False))

    def dealt(self, size: int) -> list[bytes]:
        """The hands of so many cards, by outcome."""
        return self.hands if size == self.rules.hand_size else self.single_cards

    def deal_outcomes(self, seen: bytes, size: int) -> list[tuple[int, float]]:
        """Outcomes and probabilities of the next hand of so many cards when the cards `seen` are out of the deck."""
        if (seen, size) not in self._outcomes:
            left = [self.rules.copies - count for count in seen]
            total = math.comb(sum(left), size)
            ways = [math.prod(map(math.comb, left, hand)) for hand in self.dealt(size)]
            self._outcomes[seen, size] = [(i, number / total) for i, number in enumerate(ways) if number]
        return self._outcomes[seen, size]

    def hand_words(self, hand: bytes) -> str:
        """A hand as text in brackets, weakest rank first."""
        return "[" + " ".join(self.rules.ranks[rank] for rank, _ in cells(hand)) + "]"

    def action_word(self, action: int) -> str:
        """A player's action as text."""
        return self.actions.words[action]


class TrucState(pyspiel.State):  # type: ignore[misc]
    """A moment of the hand.

    OpenSpiel clones and pickles it attribute by attribute, with `copy.deepcopy` again and again in tree algorithms. So
    all are plain values, and sequences are bytes, which are copied at once.
    """

    def __init__(self, game: TrucGame) -> None:
        """Only `TrucGame.new_initial_state` calls this."""
        super().__init__(game)
        self.size = game.rules.hand_size  # cards dealt to each, as many as tricks
        self.held = b""  # the hands dealt, one after the other, as far as they are still held
        self.aside = b""  # the hands set aside in a redeal, likewise
        self.played = bytes(2 * game.n_ranks)  # the cards on the table, likewise
        self.line = b""  # the actions since the beginning
        self.tricks = b""  # who took each complete trick: a player, or NOBODY
        self.phase = CUT if game.cuts else DEAL
        self.actor = 0  # who has to act, unless it is chance
        self.turn = 0  # the player whose card is due
        self.led = -1  # the rank that waits for its answer, or -1
        self.level = 0  # of the accepted stake
        self.asked = 0  # the level that the last raise asked for
        self.late = False  # whether that came after the card
        self.raiser = -1  # who made the last raise, or -1
        self.payoff = 0.0  # the leader's

    def current_player(self) -> int:
        """A player, or OpenSpiel's number for chance or for the end."""
        if self.phase in (DEAL, OVER):
            return int(pyspiel.PlayerId.CHANCE if self.phase == DEAL else pyspiel.PlayerId.TERMINAL)
        return self.actor

    def is_terminal(self) -> bool:
        """Whether the hand is over."""
        return self.phase == OVER

    def returns(self) -> list[float]:
        """Both payoffs, 0 before the end."""
        return [self.payoff, 0.0 - self.payoff]

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """The hands that can be dealt now, with their probabilities."""
        game: TrucGame = self.get_game()
        out, n = self.aside + self.held, game.n_ranks
        return game.deal_outcomes(bytes(sum(out[rank::n]) for rank in range(n)), self.size)

    def hand(self, player: int) -> bytes:
        """The cards that a player holds, as the number of each rank; empty before they are dealt."""
        return self._of(self.held, player)

    def set_aside(self, player: int) -> bytes:
        """The cards that a player set aside in a redeal; empty if there was none."""
        return self._of(self.aside, player)

    def _of(self, cards: bytes, player: int) -> bytes:
        n = len(self.played) // 2
        return cards[player * n : (player + 1) * n]

    def opening(self) -> list[int]:
        """The actions that came before raises and cards."""
        first = self.get_game().actions.opening
        return [action for action in self.line if action in first]

    def asking(self) -> list[str]:
        """What there is to say of a call that waits for its answer: a remainder; after the card."""
        if self.phase != ANSWER:
            return []
        said = {"remainder": self.asked == self.get_game().match_level, "after": self.late}
        return [word for word, so in said.items() if so]

    def _may_raise(self, game: TrucGame, player: int) -> bool:
        return self.level < game.top and self.raiser != player

    def _legal_actions(self, player: int) -> list[int]:
        game: TrucGame = self.get_game()
        actions = game.actions
        if self.phase not in (TURN, CARD):
            return list(actions.choices[self.phase])
        cards = [FIRST_RANK + rank for rank, count in enumerate(self.hand(player)) if count]
        if self.phase == TURN and self._may_raise(game, player):
            return [RAISE, *cards, *actions.remainder, *actions.fold]
        return cards + actions.fold

    def _apply_action(self, action: int) -> None:
        game: TrucGame = self.get_game()
        player = self.current_player()
        legal = self._legal_actions(player) if player >= 0 else self.legal_actions()  # OpenSpiel's is slower
        if action not in legal:
            raise ValueError(f"the action {action} is not legal here, legal are {legal}.")
        if player < 0:
            self._deal(game, action)
            return
        self.line += bytes([action])
        if action in game.actions.opening:
            self._open(game, game.action_word(action))
        elif action == RAISE or action in game.actions.remainder:
            self.asked = self.level + 1 if action == RAISE else game.match_level
            self.late, self.raiser = self.phase == AFTER, player
            self.phase, self.actor = ANSWER, 1 - player
        elif action == ACCEPT:
            self.level, self.actor = self.asked, self.turn
            self.phase = TURN if self.late else CARD
        elif action == REFUSE:  # the raiser scores the stake before the raise
            if self.asked == game.match_level and game.rules.remainder_refused == "match":
                self.level = self.asked
            self._end(game, self.raiser)
        elif action in game.actions.fold:
            self._end(game, 1 - player)
        elif self.phase == AFTER:  # pass
            self.phase, self.actor = TURN, self.turn
        else:
            self._play(game, player, action - FIRST_RANK)

    def _deal(self, game: TrucGame, outcome: int) -> None:
        """A hand to the leader, or to the dealer, and then whatever comes before the first turn."""
        leader = not self.held
        self.held += game.dealt(self.size)[outcome]
        if leader:
            return
        self.phase, self.actor = TURN, 0
        if game.decider is not None:
            self.phase, self.actor = TARGET, game.decider
        elif game.rules.redeal and not self.aside:
            self.phase = PROPOSE

    def _open(self, game: TrucGame, word: str) -> None:
        """An action that comes before raises and cards."""
        if self.phase in (CUT, THREE):
            self.phase, self.actor = (THREE, 1) if word == "tap" else (DEAL, 0)
            self.size = 1 if word == "one" else self.size
        elif self.phase == TARGET and word == "decline":
            self.phase, self.payoff = OVER, game.payoffs.declined
        elif word == "agree":
            self.aside, self.held, self.phase = self.held, b"", DEAL
        elif word == "propose":
            self.phase, self.actor = AGREE, 1
        else:  # the hand is played, before the target for the highest stake
            self.phase, self.actor = TURN, 0
            self.level = game.top if word == "play" else 0

    def _play(self, game: TrucGame, player: int, rank: int) -> None:
        """A card; as an answer it completes the trick."""
        place = player * game.n_ranks + rank
        self.held, self.played = _changed(self.held, place, -1), _changed(self.played, place, +1)
        self.turn = 1 - player
        if self.led < 0:
            self.led = rank
        else:
            # The winner leads, and after a tie whoever led: in both cases the other player, unless this card wins.
            if (rank, self.led) in game.beats:
                self.turn = player
            self.tricks += bytes([NOBODY if rank == self.led else self.turn])
            self.led = -1
        self.phase, self.actor = TURN, self.turn
        if self.led < 0:
            self._stop_if_decided(game)
        if self.phase == TURN and AFTER in game.actions.choices and self._may_raise(game, player):
            self.phase, self.actor = AFTER, player

    def _stop_if_decided(self, game: TrucGame) -> None:
        """Who is ahead has won if the other cannot overtake, nor draw level and have won the first trick."""
        ahead, rest = self.tricks.count(0) - self.tricks.count(1), self.size - len(self.tricks)
        first = self.tricks.replace(bytes([NOBODY]), b"")[:1]  # the winner of the first trick not tied
        front = first if ahead == 0 else bytes([0 if ahead > 0 else 1])
        if rest == 0 and not first:
            self._end(game, {"nobody": NOBODY, "leader": 0, "dealer": 1}[game.rules.all_tied])
        elif rest == 0 or abs(ahead) > rest or (abs(ahead) == rest and front == first):
            self._end(game, front[0])

    def _end(self, game: TrucGame, scorer: int) -> None:
        self.phase = OVER
        self.payoff = game.tie if scorer == NOBODY else game.level_payoffs[self.level][scorer]

    def _action_to_string(self, player: int, action: int) -> str:
        game: TrucGame = self.get_game()
        return f"deal {game.hand_words(game.dealt(self.size)[action])}" if player < 0 else game.action_word(action)

    def __str__(self) -> str:
        """Both hands and the line."""
        game: TrucGame = self.get_game()
        hands = [f"{who} {game.hand_words(self.hand(player))}" for player, who in enumerate(PLAYERS)]
        aside = [f"aside {game.hand_words(self.set_aside(player))}" for player in (0, 1) if self.aside]
        return " ".join([*hands, *aside, *map(game.action_word, self.line)])


def _hands(rules: Rules, size: int) -> list[bytes]:
    """All hands of so many cards."""
    n = len(rules.ranks)
    counts = (bytes(map(hand.count, range(n))) for hand in itertools.combinations_with_replacement(range(n), size))
    return [count for count in counts if max(count) <= rules.copies]


def _changed(cards: bytes, place: int, by: int) -> bytes:
    """Cards with one number changed."""
    return cards[:place] + bytes([cards[place] + by]) + cards[place + 1 :]


pyspiel.register_game(_GAME_TYPE, TrucGame)
