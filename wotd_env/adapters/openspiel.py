"""The game in OpenSpiel (extra `openspiel`): importing this module registers `way_of_the_dragon` with pyspiel.

    import pyspiel
    import wotd_env.adapters.openspiel
    game = pyspiel.load_game("way_of_the_dragon(players=3,powers=own)")

The fields of `Rules` are the parameters; docs/openspiel.md says how they are written, and what `position` and
`encoding` do. Everything that chance decides is a chance node: before the first turn, as far as the rules leave it
open, the colours of the seats, the dead pieces of each path, and who starts; then every roll.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np

from wotd_env.core import batch, dice, engine
from wotd_env.core import position as notation
from wotd_env.core.actions import Action
from wotd_env.core.game import Game, IllegalActionError
from wotd_env.core.observation import DEADLINE, ENCODINGS
from wotd_env.core.rules import DICE, ELEMENTS, MAX_PLAYERS, PATHS, Phase, Rules
from wotd_env.core.state import STATE, States
from wotd_env.core.words import describe_action, show_dice
from wotd_env.envs.common import final_rewards
from wotd_env.extras import needed_for

with needed_for("the game in OpenSpiel", "openspiel"):
    import pyspiel
    from open_spiel.python.observation import IIGObserverForPublicInfoGame

__all__ = ["NAME", "WayOfTheDragonGame", "WayOfTheDragonState", "position"]

NAME = "way_of_the_dragon"
"""What pyspiel knows the game by."""
ROLLED_OFF = -1
"""The parameter `start` of games that begin with the roll-off of R1."""
COLORS, START = "colors", "start"
"""What chance decides before the first turn; the name of an element stands for the dead pieces on its path."""
TO_PARAMETER = str.maketrans("=,", ":-")
FROM_PARAMETER = str.maketrans(":-", "=,")
"""A line of notation as a parameter has no `=` and no comma, at which OpenSpiel would split it."""

_FIELDS: Any = STATE.fields
PHASE_AT, PLAYER_AT = (_FIELDS[name][1] for name in ("phase", "player"))
DICE_AT = slice(_FIELDS["dice"][1], _FIELDS["dice"][1] + DICE)
"""Where in a record these fields are: they are read at every node, and so quickest."""

CHANCE, TERMINAL = int(pyspiel.PlayerId.CHANCE), int(pyspiel.PlayerId.TERMINAL)
NOBODY = {int(Phase.CHANCE): CHANCE, int(Phase.OVER): TERMINAL}
"""Who is to act in the phases in which no player is."""

DEFAULTS = {field.name: field.default for field in fields(Rules)}
TYPE = pyspiel.GameType(
    short_name=NAME,
    long_name="Way of the Dragon",
    dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
    chance_mode=pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
    information=pyspiel.GameType.Information.PERFECT_INFORMATION,
    utility=pyspiel.GameType.Utility.ZERO_SUM,
    reward_model=pyspiel.GameType.RewardModel.TERMINAL,
    max_num_players=MAX_PLAYERS,
    min_num_players=2,
    provides_information_state_string=True,
    provides_information_state_tensor=True,
    provides_observation_string=True,
    provides_observation_tensor=True,
    parameter_specification={
        **DEFAULTS,
        "colors": "",
        "start": ROLLED_OFF,
        "position": "",
        "encoding": ENCODINGS[0],
    },
)


class Outcomes(NamedTuple):
    """What may come of a chance node."""

    listed: list[tuple[int, float]]
    """the outcomes, ascending, and their probabilities; not to be changed"""
    numbers: frozenset[int]
    """the outcomes"""


class WayOfTheDragonGame(pyspiel.Game):  # type: ignore[misc]  # pyspiel is untyped
    """The rules of one kind of game, as `pyspiel.load_game` makes it.

    Args:
        params: the parameters that are not to have their defaults.

    Attributes:
        game: the same rules as a `wotd_env.Game`.

    Raises:
        ValueError: for a parameter that no game can have.
    """

    def __init__(self, params: dict[str, Any] | None = None) -> None:
        params = dict(params or {})
        encoding = params.get("encoding", ENCODINGS[0])
        self._draws: tuple[str, ...] = ()
        if params.get("position"):
            params["position"] = params["position"].translate(TO_PARAMETER)
            rules, start = _parse_position(params)
        else:
            rules = _rules(params)
            if rules.colors == "random":
                self._draws += (COLORS,)
            if rules.dead_pieces:
                self._draws += ELEMENTS
            if rules.start == "dragons":
                self._draws += (START,)
            # What chance has yet to decide is not on the board.
            bare = replace(rules, colors=None if rules.colors == "random" else rules.colors, dead_pieces=0)
            start = Game(bare).new(1, roll=False)
            if rules.start == "dragons":
                start["player"] = 0  # until chance has decided
        self.game = Game(rules, encoding=encoding)
        start["rng"] = 0  # nothing is drawn from it: equal positions are equal bytes
        self._start = start.view(np.uint8)
        spec = self.game.spec
        info = pyspiel.GameInfo(
            num_distinct_actions=self.game.num_actions,
            max_chance_outcomes=max(dice.NUM_ROLLS, 1 << rules.spaces if rules.dead_pieces else 0),
            num_players=rules.players,
            min_utility=spec.min_reward,
            max_utility=spec.max_reward,
            utility_sum=0.0,
            max_game_length=spec.max_decisions,
        )
        super().__init__(TYPE, info, params)

    def new_initial_state(self) -> WayOfTheDragonState:
        """Return a new game, before chance has decided anything, or the game of the parameter `position`."""
        return WayOfTheDragonState(self)

    def max_chance_nodes_in_history(self) -> int:
        """Return a bound of the chance nodes of a game: in each turn there are fewer rolls than decisions can be."""
        return len(self._draws) + self.game.spec.max_decisions

    def make_py_observer(
        self, iig_obs_type: Any = None, params: dict[str, Any] | None = None
    ) -> _Observer | IIGObserverForPublicInfoGame:
        """Return what sees the position; there is nothing private to be seen."""
        if iig_obs_type is None or iig_obs_type.public_info:
            return _Observer(self.game, params)
        return IIGObserverForPublicInfoGame(iig_obs_type, params)


class WayOfTheDragonState(pyspiel.State):  # type: ignore[misc]  # pyspiel is untyped
    """A game between two decisions; `new_initial_state` makes the first.

    An outcome of a roll is the number of the roll that all five dice show after it (`wotd_env.core.dice`), so it means
    the same everywhere. An outcome for colours is a place among their permutations, one for the dead pieces of a path a
    set of bits (bit t - 1: on space t), one for the start a seat.
    """

    # OpenSpiel copies, pickles and restores the attributes one by one, so there are few, and quick ones.

    def __init__(self, game: WayOfTheDragonGame) -> None:
        super().__init__(game)
        self._bytes = game._start.copy()
        self._draws = game._draws  # what chance has yet to decide before the first turn
        self._player = self._to_act()

    @property
    def game(self) -> Game:
        """The rules, for what takes a `wotd_env.Game`."""
        rules: Game = self.get_game().game
        return rules

    @property
    def record(self) -> States:
        """The position, STATE (1,), for what takes one; it is the state's own memory. Its stream is worth nothing."""
        return np.frombuffer(self._bytes, STATE)  # faster than a view

    def current_player(self) -> int:
        """Return the seat to act, or the number that OpenSpiel has for chance or for the end."""
        return self._player

    def is_terminal(self) -> bool:
        """Return whether the game has ended (R9) or was truncated (R16)."""
        return self._player == TERMINAL

    def returns(self) -> list[float]:
        """Return every seat's reward: 0 until the end, then R10."""
        return final_rewards(self.game, self.record)

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """Return what chance can do here, and how probable it is.

        Raises:
            ValueError: if it is a player's turn, or nobody's.
        """
        return self._outcomes().listed.copy()

    def _legal_actions(self, player: int) -> list[int]:
        return _numbers(*batch.legal_one(self.record, self.game.config)).copy()

    def _apply_action(self, action: int) -> None:
        record, game = self.record, self.game
        if self._player == CHANCE:
            if action not in self._outcomes().numbers:
                raise ValueError(f"{action} is no outcome of the chance node\n{self}")
            if self._draws:
                self._decide_draw(self._draws[0], action)
            else:
                batch.roll_one(record, game.config, action)
        elif not batch.decide_one(record, game.config, action):
            if self._player == TERMINAL:
                raise ValueError(f"the game is over, there is no action {action}")
            game.check(record, [action])  # says what is wrong
        self._player = self._to_act()

    def _action_to_string(self, player: int, action: int) -> str:
        game = self.game
        if player == CHANCE:
            return _describe_draw(game.rules, self._draws[0] if self._draws else "", action)
        try:
            return game.describe_action(self.record, action)
        except IllegalActionError:
            return describe_action(action, game.rules)

    def __str__(self) -> str:
        """Return the position in the notation: the same for all that looks the same to the players."""
        record, rules = self.record.copy(), self.game.rules
        if rules.max_turns - record["turn"][0] >= DEADLINE:
            record["turn"] = 0  # players do not see it either
        if not self._draws:
            return notation.position(rules, record)
        placed = sum(bits.bit_count() for bits in record["dead"][0].tolist())
        line = notation.position(replace(rules, dead_pieces=placed), record)
        return f"{line}\nbefore the first turn: {self._draws[0]}"

    def _to_act(self) -> int:
        return NOBODY.get(self._bytes[PHASE_AT], int(self._bytes[PLAYER_AT]))

    def _outcomes(self) -> Outcomes:
        if self._player != CHANCE:
            raise ValueError(f"this is no chance node:\n{self}")
        if not self._draws:
            return _rolls(self._bytes[DICE_AT].tobytes())
        draw, rules = self._draws[0], self.game.rules
        if draw in ELEMENTS:
            placed = sum(bits.bit_count() for bits in self.record["dead"][0].tolist())
            return _dead_pieces(rules.spaces, ELEMENTS.index(draw), rules.dead_pieces - placed)
        return _equally_likely(rules.players if draw == START else len(_colorings(rules.players)))

    def _decide_draw(self, draw: str, outcome: int) -> None:
        record = self.record[0]
        if draw == START:
            record["player"] = outcome
        elif draw == COLORS:
            record["color"] = _colorings(self.game.rules.players)[outcome]
        else:
            record["dead"][ELEMENTS.index(draw)] = outcome << 1
        self._draws = self._draws[1:]


class _Observer:
    """Sees positions as OpenSpiel's observers do: what a seat sees as a tensor, and the words of `str(state)`."""

    def __init__(self, game: Game, params: dict[str, Any] | None) -> None:
        if params:
            raise ValueError(f"observers of {NAME} have no parameters, got {params}")
        self._game = game
        self._seats = [np.array([seat]) for seat in range(game.rules.players)]
        self._row = np.empty((1, game.observation_size), np.int8)
        self.tensor = np.zeros(game.observation_size, np.float32)
        parts = game.observation_layout.items()
        self.dict = {name: self.tensor[part] for name, part in parts if part.stop > part.start}

    def set_from(self, state: WayOfTheDragonState, player: int) -> None:
        self._game.apply(batch.observe, state.record, self._seats[player], self._row, validate=False)
        self.tensor[:] = self._row[0]

    def string_from(self, state: WayOfTheDragonState, player: int) -> str:
        return str(state)


def position(rules: Rules, state: States) -> str:
    """Return a game, STATE (1,), as the parameter `position` takes it: the notation, with `:` for `=`, `-` for `,`.

    Raises:
        ValueError: for a record that is no game of these rules, or more than one.
    """
    return notation.position(rules, state).translate(TO_PARAMETER)


def _parse_position(params: Mapping[str, Any]) -> tuple[Rules, States]:
    """Return the rules and the game of the parameter `position`, which has the rules in it."""
    rules, start = notation.parse_position(params["position"].translate(FROM_PARAMETER))
    given = _rules(params)
    for name, default in DEFAULTS.items():  # OpenSpiel adds those that are left out
        if getattr(given, name) not in (default, getattr(rules, name)):
            raise ValueError(
                f"{name} must be {getattr(rules, name)!r}, as the position has it, or be left out, got {params[name]!r}"
            )
    return rules, start


def _rules(params: Mapping[str, Any]) -> Rules:
    """Return the rules that parameters name."""
    values = {**DEFAULTS, "start": ROLLED_OFF, **params}
    values.pop("position", None)
    values.pop("encoding", None)
    if values["start"] == ROLLED_OFF:
        values["start"] = "dragons"
    if values["colors"] != "random":
        values["colors"] = values["colors"].split("-") if values["colors"] else None
    return Rules(**values)


@functools.cache
def _rolls(faces: bytes) -> Outcomes:
    """Return the rolls that may come of the dice of a record, by number."""
    keep = dice.keep_number(np.frombuffer(faces, np.int8).tolist())
    first = int(dice.THROW_START[keep])
    size = int(dice.THROW_SIZE[keep])
    rolls, throws = np.unique(dice.THROW_ROLL[first : first + size], return_counts=True)
    return _listed(dict(zip(rolls.tolist(), (throws / size).tolist(), strict=True)))


@functools.cache
def _dead_pieces(spaces: int, path: int, left: int) -> Outcomes:
    """Return the dead pieces that a path may get if `left` pieces are left for it and the paths after it (R15).

    All layouts of all paths are equally probable, so those of one path are as probable as there are layouts beyond.
    """
    layouts = [bits for bits in range(1 << spaces) if not engine.impassable(np.uint16(bits << 1))]
    sizes = np.bincount([bits.bit_count() for bits in layouts])
    beyond = np.ones(1, np.int64)  # [pieces] -> layouts of the paths after this one
    for _ in range(path + 1, PATHS):
        beyond = np.convolve(beyond, sizes)
    ways = {
        bits: int(beyond[left - bits.bit_count()])
        for bits in layouts
        if 0 <= left - bits.bit_count() < len(beyond)
    }
    every = sum(ways.values())
    return _listed({bits: number / every for bits, number in ways.items()})


@functools.cache
def _equally_likely(outcomes: int) -> Outcomes:
    return _listed(dict.fromkeys(range(outcomes), 1 / outcomes))


def _listed(probabilities: dict[int, float]) -> Outcomes:
    return Outcomes(list(probabilities.items()), frozenset(probabilities))


@functools.lru_cache(1 << 14)
def _numbers(actions: int, swaps: int) -> list[int]:
    """Return the numbers of legal actions and swaps given as bits, ascending; the list is not to be changed."""
    every = int(actions) | int(swaps) << Action.FIRST_SWAP
    return [number for number in range(every.bit_length()) if every >> number & 1]


@functools.cache
def _colorings(players: int) -> list[tuple[int, ...]]:
    """Return all ways to give the seats colours, the unused colours after them in order."""
    return [
        chosen + tuple(color for color in range(MAX_PLAYERS) if color not in chosen)
        for chosen in itertools.permutations(range(MAX_PLAYERS), players)
    ]


def _describe_draw(rules: Rules, draw: str, outcome: int) -> str:
    """Say in words what chance does."""
    if not draw:
        return f"roll {show_dice(dice.KEEP_DICE[outcome])}"
    if draw == START:
        return f"player {outcome} starts"
    if draw == COLORS:
        colors = _colorings(rules.players)[outcome][: rules.players]
        return f"colours {', '.join(ELEMENTS[color] for color in colors)}"
    return f"dead pieces on {draw}: {_spaces(outcome << 1)}"


def _spaces(dead: int) -> str:
    return ", ".join(str(space) for space in range(dead.bit_length()) if dead >> space & 1) or "none"


pyspiel.register_game(TYPE, WayOfTheDragonGame)
