"""The game in OpenSpiel (extra `openspiel`). Importing this module registers `way_of_the_dragon` with pyspiel.

    import pyspiel
    import wotd_env.adapters.openspiel
    game = pyspiel.load_game("way_of_the_dragon(players=3,powers=own)")

The parameters of the game are `position`, `encoding` and the fields of `Rules`; docs/how-to/openspiel.md describes
them. Every random event is a chance node. Before the first turn, chance nodes draw the random parts of the setup:
the colors of the seats, the dead pieces of each path, the starting player.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np

from wotd_env.core import batch, dice, engine
from wotd_env.core import position as notation
from wotd_env.core.actions import Action
from wotd_env.core.checks import IllegalActionError
from wotd_env.core.game import Game, final_rewards
from wotd_env.core.observation import ENCODINGS, deadline
from wotd_env.core.rules import DICE, ELEMENTS, MAX_PLAYERS, PATHS, Phase, Rules
from wotd_env.core.state import STATE, States
from wotd_env.core.words import describe_action, show_dice
from wotd_env.extras import needed_for

with needed_for("the game in OpenSpiel", "openspiel"):
    import pyspiel
    from open_spiel.python.observation import IIGObserverForPublicInfoGame

__all__ = ["NAME", "WayOfTheDragonGame", "WayOfTheDragonState", "position"]

NAME = "way_of_the_dragon"
ROLLED_OFF = -1  # value of the parameter `start` if a roll-off decides the starting player (R1)
COLORS, START = "colors", "start"
"""Names of two chance events before the first turn."""
TO_PARAMETER = str.maketrans("=,", ":-")
FROM_PARAMETER = str.maketrans(":-", "=,")
"""OpenSpiel splits parameters at `=` and commas, so a position in a parameter uses `:` and `-` instead."""

_FIELDS: Any = STATE.fields
PHASE_AT, PLAYER_AT = (_FIELDS[name][1] for name in ("phase", "player"))
DICE_AT = slice(_FIELDS["dice"][1], _FIELDS["dice"][1] + DICE)
"""Byte offsets in a record. Reading a byte is faster than reading a field."""

CHANCE, TERMINAL = int(pyspiel.PlayerId.CHANCE), int(pyspiel.PlayerId.TERMINAL)
NOBODY = {int(Phase.CHANCE): CHANCE, int(Phase.OVER): TERMINAL}

DEFAULTS = {field.name: field.default for field in fields(Rules)}
PARAMETERS = {**DEFAULTS, "colors": "", "start": ROLLED_OFF, "position": "", "encoding": ENCODINGS[0]}
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
    parameter_specification=PARAMETERS,
)


class Outcomes(NamedTuple):
    """The outcomes of a chance node."""

    listed: list[tuple[int, float]]  # ascending (outcome, probability) pairs; never change this cached list
    numbers: frozenset[int]


class WayOfTheDragonGame(pyspiel.Game):  # type: ignore[misc]  # pyspiel is untyped
    """The game for OpenSpiel, created from parameters by `pyspiel.load_game`. An invalid parameter raises ValueError.

    Attributes:
        game: the rules as a `wotd_env.Game`.
        draws: names of the chance events before the first turn, in order.
    """

    def __init__(self, params: dict[str, Any] | None = None) -> None:
        params = dict(params or {})
        self.draws: tuple[str, ...] = ()
        rules = _rules(params)
        if params.get("position"):
            params["position"] = params["position"].translate(TO_PARAMETER)
            given = rules
            rules, start = notation.parse_position(params["position"].translate(FROM_PARAMETER))
            for name, default in DEFAULTS.items():  # an omitted parameter has its default here
                own, got = getattr(rules, name), getattr(given, name)
                if got not in (default, own):
                    cure = "as in the position, or be omitted"
                    raise ValueError(f"{name} must be {own!r}, {cure}, got {got!r}")
        else:
            if rules.colors == "random":
                self.draws += (COLORS,)
            if rules.dead_pieces:
                self.draws += ELEMENTS
            if rules.start == "dragons":
                self.draws += (START,)
            bare = replace(rules, colors=None if rules.colors == "random" else rules.colors, dead_pieces=0)
            start = Game(bare).new(1, roll=False)
            if rules.start == "dragons":
                start["player"] = 0
        self.game = Game(rules, encoding=params.get("encoding", ENCODINGS[0]))
        start["rng"] = 0  # unused; 0, so that equal positions have equal bytes
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

    def new_initial_state(self, saved: Mapping[str, Any] | str | None = None) -> WayOfTheDragonState:
        """Return the first state of a game: the first chance node, or the position in the parameter `position`.

        If `saved` is given, return the saved state instead. `saved` is a result of `WayOfTheDragonState.to_dict` or
        `to_json`. Raise ValueError if `saved` is malformed or belongs to other rules.
        """
        state = WayOfTheDragonState(self)
        if saved is not None:
            state.restore(json.loads(saved) if isinstance(saved, str) else saved)
        return state

    def max_chance_nodes_in_history(self) -> int:
        """Return an upper bound for the number of chance nodes in a game."""
        # `max_decisions` also limits the number of rolls: no turn has more rolls than the longest turn has decisions.
        return len(self.draws) + self.game.spec.max_decisions

    def make_py_observer(
        self, iig_obs_type: Any = None, params: dict[str, Any] | None = None
    ) -> _Observer | IIGObserverForPublicInfoGame:
        """Return an observer."""
        if iig_obs_type is None or iig_obs_type.public_info:
            return _Observer(self.game, params)
        return IIGObserverForPublicInfoGame(iig_obs_type, params)


class WayOfTheDragonState(pyspiel.State):  # type: ignore[misc]  # pyspiel is untyped
    """A state of a game, made by `WayOfTheDragonGame.new_initial_state`.

    The outcomes of a chance node are integers. Their meaning depends on the random event:

    - roll: index of the five dice after the roll, kept dice included (see `wotd_env.core.dice`);
    - colors: index of the tuple of the seats' colors in the lexicographic order of all such tuples, e.g. (0, 2) -> 1;
    - dead pieces of a path: bit t - 1 is 1 if space t has a dead piece;
    - starting player: its seat.
    """

    # OpenSpiel copies, pickles and restores each attribute separately, so the attributes are few and small.

    def __init__(self, game: WayOfTheDragonGame) -> None:
        super().__init__(game)
        self._bytes = game._start.copy()
        self._draws = game.draws
        self._player = self._to_act()

    @property
    def game(self) -> Game:
        """The rules as a `wotd_env.Game`."""
        rules: Game = self.get_game().game
        return rules

    @property
    def record(self) -> States:
        """The position, STATE (1,), as a view of this state's memory. The field `rng` has no meaning."""
        return np.frombuffer(self._bytes, STATE)  # faster than `self._bytes.view(STATE)`

    def current_player(self) -> int:
        """Return the seat to act, or OpenSpiel's number for a chance node or a finished game."""
        return self._player

    def is_terminal(self) -> bool:
        """Return whether the game has ended (R9, R16)."""
        return self._player == TERMINAL

    def returns(self) -> list[float]:
        """Return the rewards of all seats (R10), 0 before the end of the game."""
        return final_rewards(self.game, self.record)[0].tolist()  # type: ignore[no-any-return]

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """Return the (outcome, probability) pairs. Raise ValueError if this state is not a chance node."""
        return self._outcomes().listed.copy()

    def _legal_actions(self, player: int) -> list[int]:
        return _numbers(*batch.legal_one(self.record, self.game.config)).copy()

    def _apply_action(self, action: int) -> None:
        record, game = self.record, self.game
        if self._player == CHANCE:
            if action not in self._outcomes().numbers:
                raise ValueError(f"{action} is not an outcome of this chance node:\n{self}")
            if self._draws:
                self._draw(action)
            else:
                batch.roll_given(record, game.config, np.array([action], np.uint64))
        elif self._player == TERMINAL:
            raise ValueError(f"the game is over, so action {action} is illegal")
        elif batch.step(record, game.config, np.array([action]), True, False) >= 0:
            game.check(record, [action])  # raises IllegalActionError with the reason
        self._player = self._to_act()

    def _action_to_string(self, player: int, action: int) -> str:
        game = self.game
        if player == CHANCE:
            return _describe_draw(game.rules, self._draws[0] if self._draws else "", action)
        try:
            return game.describe_action(self.record, action)
        except IllegalActionError:
            return describe_action(action, game.rules)

    def to_dict(self) -> dict[str, Any]:
        """Return the state as a dict for JSON with the keys `current_player`, `position` (in the notation) and `draws`.

        `draws` are the names of the remaining chance events before the first turn. To load the dict, pass it to
        `new_initial_state` of a game with the same parameters.
        """
        position = self._position(self.record)
        return {"current_player": self._player, "position": position, "draws": list(self._draws)}

    def to_json(self) -> str:
        """Return the dict of `to_dict` as JSON text."""
        return json.dumps(self.to_dict())

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Load a result of `to_dict` into this state. Raise ValueError if `saved` is malformed or has other rules."""
        try:
            line, draws = saved["position"], tuple(saved["draws"])
            rules, record = notation.parse_position(line)
        except (KeyError, TypeError) as error:
            raise ValueError(f"a state must be a dict from to_dict, got {saved!r}") from error
        every = self.get_game().draws
        if draws != every[len(every) - len(draws) :]:
            raise ValueError(f"draws must be the last ones of {every}, got {draws}")
        own = self.game.rules
        placed = own.dead_pieces if draws else rules.dead_pieces
        same_colors = COLORS in every or (record["color"] == self.record["color"]).all()
        if not same_colors or replace(rules, dead_pieces=placed, colors=own.colors, start=own.start) != own:
            raise ValueError(f"position must have the rules of the game, {own}, got {line!r}")
        record["rng"] = 0
        self._bytes[:] = record.view(np.uint8)
        self._draws = draws
        self._player = self._to_act()

    def __str__(self) -> str:
        """Return the position in the notation. States that players cannot distinguish have the same text."""
        record = self.record.copy()
        if not deadline(record[0], self.game.config[0]):
            record["turn"] = 0  # observations hide the turn number until the turn limit (R16) is near
        line = self._position(record)
        return f"{line}\nbefore the first turn: {self._draws[0]}" if self._draws else line

    def _position(self, record: States) -> str:
        rules = self.game.rules
        if self._draws:
            rules = replace(rules, dead_pieces=notation.count_dead(record[0]))
        return notation.position(rules, record)

    def _to_act(self) -> int:
        return NOBODY.get(self._bytes[PHASE_AT], int(self._bytes[PLAYER_AT]))

    def _outcomes(self) -> Outcomes:
        if self._player != CHANCE:
            raise ValueError(f"the state is not a chance node:\n{self}")
        if not self._draws:
            return _rolls(self._bytes[DICE_AT].tobytes())
        draw, rules = self._draws[0], self.game.rules
        if draw in ELEMENTS:
            assert isinstance(rules.dead_pieces, int)  # only a number of dead pieces is placed at random
            left = rules.dead_pieces - notation.count_dead(self.record[0])
            return _dead_pieces(rules.spaces, ELEMENTS.index(draw), left)
        outcomes = rules.players if draw == START else len(_colorings(rules.players))
        return _listed(dict.fromkeys(range(outcomes), 1))

    def _draw(self, outcome: int) -> None:
        draw, record = self._draws[0], self.record[0]
        if draw == START:
            record["player"] = outcome
        elif draw == COLORS:
            record["color"] = _colorings(self.game.rules.players)[outcome]
        else:
            record["dead"][ELEMENTS.index(draw)] = outcome << 1
        self._draws = self._draws[1:]


class _Observer:
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
    """Convert a record, STATE (1,), to a value of the parameter `position`."""
    return notation.position(rules, state).translate(TO_PARAMETER)


def _rules(params: Mapping[str, Any]) -> Rules:
    values = {**PARAMETERS, **params}
    del values["position"], values["encoding"]
    if values["start"] == ROLLED_OFF:
        values["start"] = "dragons"
    if values["colors"] != "random":
        values["colors"] = values["colors"].split("-") if values["colors"] else None
    return Rules(**values)


@functools.cache
def _rolls(faces: bytes) -> Outcomes:
    """Return the outcomes of rolling the unrolled dice of a record."""
    keep = dice.keep_index(np.frombuffer(faces, np.int8).tolist())
    rolls, throws = np.unique(dice.rolls_after(keep), return_counts=True)
    return _listed(dict(zip(rolls.tolist(), throws.tolist(), strict=True)))


@functools.cache
def _dead_pieces(spaces: int, path: int, left: int) -> Outcomes:
    """Return the layouts of dead pieces on a path, with their probabilities.

    `left` is the number of dead pieces for this path and all later paths. All layouts of the board are equally probable
    (R15).
    """
    layouts = [bits for bits in range(1 << spaces) if not engine.impassable(np.uint16(bits << 1))]
    sizes = np.bincount([bits.bit_count() for bits in layouts])
    beyond = np.ones(1, np.int64)  # beyond[n]: number of ways to place n pieces on the later paths
    for _ in range(path + 1, PATHS):
        beyond = np.convolve(beyond, sizes)
    rest = {bits: left - bits.bit_count() for bits in layouts}
    return _listed({bits: int(beyond[n]) for bits, n in rest.items() if 0 <= n < len(beyond)})


def _listed(ways: dict[int, int]) -> Outcomes:
    """Return outcomes. `ways` maps each outcome to a number that is proportional to its probability."""
    every = sum(ways.values())
    return Outcomes([(outcome, number / every) for outcome, number in ways.items()], frozenset(ways))


@functools.lru_cache(1 << 14)
def _numbers(actions: int, swaps: int) -> list[int]:
    """Convert the bits of the legal actions to an ascending list of actions. Never change this cached list."""
    every = int(actions) | int(swaps) << Action.FIRST_SWAP
    return [number for number in range(every.bit_length()) if every >> number & 1]


@functools.cache
def _colorings(players: int) -> list[tuple[int, ...]]:
    """Return all assignments of colors as tuples: the color of each seat, then the unused colors in ascending order."""
    return [
        chosen + tuple(color for color in range(MAX_PLAYERS) if color not in chosen)
        for chosen in itertools.permutations(range(MAX_PLAYERS), players)
    ]


def _describe_draw(rules: Rules, draw: str, outcome: int) -> str:
    if not draw:
        return f"roll {show_dice(dice.KEEP_DICE[outcome])}"
    if draw == START:
        return f"player {outcome} starts"
    if draw == COLORS:
        colors = _colorings(rules.players)[outcome][: rules.players]
        return f"colors {', '.join(ELEMENTS[color] for color in colors)}"
    spaces = ", ".join(str(bit + 1) for bit in range(outcome.bit_length()) if outcome >> bit & 1)
    return f"dead pieces on {draw}: {spaces or 'none'}"


pyspiel.register_game(TYPE, WayOfTheDragonGame)
