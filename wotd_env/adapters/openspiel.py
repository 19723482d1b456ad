"""The game in OpenSpiel (extra `openspiel`): importing this module registers `way_of_the_dragon` with pyspiel.

    import pyspiel
    import wotd_env.adapters.openspiel
    game = pyspiel.load_game("way_of_the_dragon(players=3,powers=own)")

The fields of `Rules` are the parameters; docs/openspiel.md says how they are written. Everything that chance decides is
a chance node: before the first turn, as far as the rules leave it open, the colours of the seats, the dead pieces of
each path, and who starts; then every roll.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import fields, replace
from typing import Any

import numpy as np

from wotd_env.core import batch, dice, engine
from wotd_env.core.actions import describe_action
from wotd_env.core.game import Game, IllegalActionError, show_dice
from wotd_env.core.observation import DEADLINE
from wotd_env.core.rules import DICE, ELEMENTS, MAX_PLAYERS, PATHS, Phase, Rules
from wotd_env.core.state import STATE, States
from wotd_env.envs.common import final_rewards

try:
    import pyspiel
    from open_spiel.python.observation import IIGObserverForPublicInfoGame
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        "OpenSpiel is needed to play the game in it: pip install 'wotd-env[openspiel]'"
    ) from missing

__all__ = ["NAME", "WayOfTheDragonGame", "WayOfTheDragonState", "position"]

NAME = "way_of_the_dragon"
"""What pyspiel knows the game by."""
ROLLED_OFF = -1
"""The parameter `start` of games that begin with the roll-off of R1."""
COLORS, START = "colors", "start"
"""What chance decides before the first turn; the name of an element stands for the dead pieces on its path."""
HEX = "0x"
"""What the parameter `position` begins with, so that OpenSpiel never takes it for a number."""

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
    parameter_specification={**DEFAULTS, "colors": "", "start": ROLLED_OFF, "position": ""},
)

Outcomes = dict[int, float]
"""The outcomes of a chance node, ascending, and their probabilities."""


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
        params = params or {}
        rules = _rules(params)
        self.game = Game(rules)
        self._draws: tuple[str, ...] = ()
        if params.get("position"):
            start = _parse_position(self.game, params["position"])
        else:
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
        self._drawn = 0  # draws before the first turn that chance has made
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
        return list(self._outcomes().items())

    def _legal_actions(self, player: int) -> list[int]:
        mask = self.game.legal_actions(self.record, validate=False)
        return mask[0].nonzero()[0].tolist()  # type: ignore[no-any-return]

    def _apply_action(self, action: int) -> None:
        game = self.game
        if self._player == TERMINAL:
            raise ValueError(f"the game is over, there is no action {action}")
        if self._player != CHANCE:
            game.decide(self.record, [action])
        elif action not in self._outcomes():
            raise ValueError(f"{action} is no outcome of the chance node\n{self}")
        elif draw := self._draw():
            self._decide_draw(draw, action)
        else:
            game.apply(batch.roll_given, self.record, np.array([action], np.uint64), validate=False)
        self._player = self._to_act()

    def _action_to_string(self, player: int, action: int) -> str:
        game = self.game
        if player == CHANCE:
            return _describe_draw(game.rules, self._draw(), action)
        try:
            return game.describe_action(self.record, action)
        except IllegalActionError:
            return describe_action(action, game.rules)

    def __str__(self) -> str:
        """Return the position: the same for all that looks the same to the players."""
        return "\n".join(_describe(self.game, self.record, self._draw()))

    def _to_act(self) -> int:
        return NOBODY.get(self._bytes[PHASE_AT], int(self._bytes[PLAYER_AT]))

    def _draw(self) -> str:
        """Return what chance decides next before the first turn, nothing if that has begun."""
        draws = self.get_game()._draws
        return draws[self._drawn] if self._drawn < len(draws) else ""

    def _outcomes(self) -> Outcomes:
        if self._player != CHANCE:
            raise ValueError(f"this is no chance node:\n{self}")
        draw = self._draw()
        if not draw:
            return _rolls(self._bytes[DICE_AT].tobytes())
        rules, record = self.game.rules, self.record[0]
        if draw in ELEMENTS:
            placed = sum(bits.bit_count() for bits in record["dead"].tolist())
            return _dead_pieces(rules.spaces, ELEMENTS.index(draw), rules.dead_pieces - placed)
        outcomes = rules.players if draw == START else len(_colorings(rules.players))
        return dict.fromkeys(range(outcomes), 1 / outcomes)

    def _decide_draw(self, draw: str, outcome: int) -> None:
        record = self.record[0]
        if draw == START:
            record["player"] = outcome
        elif draw == COLORS:
            record["color"] = _colorings(self.game.rules.players)[outcome]
        else:
            record["dead"][ELEMENTS.index(draw)] = outcome << 1
        self._drawn += 1


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


def position(state: States) -> str:
    """Return a game, STATE (1,), as the parameter `position` takes it.

    Raises:
        ValueError: for more than one game.
    """
    if len(state) != 1:
        raise ValueError(f"state must be one game, STATE (1,), got {len(state)}")
    return HEX + state.tobytes().hex()


def _parse_position(game: Game, text: str) -> States:
    try:
        start = np.frombuffer(bytes.fromhex(text.removeprefix(HEX)), STATE).copy()
    except ValueError:
        start = np.zeros(0, STATE)
    if len(start) != 1 or not text.startswith(HEX):
        raise ValueError(
            f"position must be what wotd_env.adapters.openspiel.position returns, got {text[:200]!r}"
        )
    game.check(start)
    return start


def _rules(params: dict[str, Any]) -> Rules:
    """Return the rules that parameters name."""
    values = {**DEFAULTS, "start": ROLLED_OFF, **params}
    values.pop("position", None)
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
    return dict(zip(rolls.tolist(), (throws / size).tolist(), strict=True))


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
    return {bits: number / every for bits, number in ways.items()}


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


def _describe(game: Game, state: States, draw: str) -> list[str]:
    """Return the lines that say everything that players see of a position, and nothing else."""
    record, rules = state[0], game.rules
    seats = range(rules.players)
    phase = Phase(record["phase"]).name
    lines = [
        f"{phase} player {record['player']} rolls left {record['rolls_left']} dice {show_dice(record['dice'])}"
    ]
    if draw:
        lines.append(f"before the first turn: {draw}")
    for path, element in enumerate(ELEMENTS):
        places = record["pieces"][: rules.players, path].tolist()
        beyond = rules.spaces
        lines.append(f"{element}: {' '.join(f'+{at - beyond}' if at > beyond else str(at) for at in places)}")
        if record["dead"][path]:
            lines[-1] += f"; dead {_spaces(int(record['dead'][path]))}"
    lines.append(f"colours: {' '.join(ELEMENTS[color] for color in record['color'][: rules.players])}")
    if rules.powers != "none":
        lines.append(f"powers used: {' '.join(str(int(record['used']) >> seat & 1) for seat in seats)}")
    if record["perfection"]:
        lines.append("perfection")
    left = rules.max_turns - int(record["turn"])
    if left < DEADLINE:
        lines.append(f"turns left: {left}")
    return lines


pyspiel.register_game(TYPE, WayOfTheDragonGame)
