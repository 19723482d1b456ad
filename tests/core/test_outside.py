"""Hostile arguments of the public functions that take records, actions, texts or recorded games.

Each call raises ValueError or TypeError with a sentence, or succeeds. The functions come from the packages'
`__all__`, so the tests cover new functions.
"""

import inspect
import types
from typing import Any

import numpy as np
import pytest

from wotd_env import Game, Rules, analysis, notation, rendering, symmetry
from wotd_env.core import position, words
from wotd_env.rendering import text

GAME = Game()
THREE = Game(players=3, powers="any")
STATE_NOW = GAME.reset(1, seed=0)
RECORDED = notation.record_game(Rules(), [], seed=0)


def record(**changes: Any) -> Any:
    state = STATE_NOW.copy()
    for field, value in changes.items():
        state[field] = value
    return state


RECORDS: list[Any] = [
    None, [1], "x", 5, np.zeros(1, int), STATE_NOW[0], STATE_NOW[:0], np.repeat(STATE_NOW, 2), STATE_NOW.reshape(1, 1),
    STATE_NOW.view("V64"), record(player=9), record(player=-1), record(player=-100), record(phase=9), record(phase=-1),
    record(dice=100), record(dice=-7), record(color=99), record(pieces=127), record(pieces=-5), record(rolls_left=100),
    record(used=255), record(dead=65535), record(turn=65535), record(phase=4), record(phase=0),
    GAME.reset(1, seed=0, roll=False), THREE.reset(1, seed=0),
]  # fmt: skip
ACTIONS: list[Any] = [
    -1, 10**6, 10**30, 1.5, float("nan"), None, True, "a", np.array([1]), np.array(0), np.float32(1), [1, 2], [[1]], {},
]  # fmt: skip
TEXTS: list[Any] = [
    None, 5, b"stop", "", "\0", "w" * 10**6, "\ud800", "\uff11", ["a"], '[Position "\0"]',
    "......|...../.......|...../.......|...../.......|...../.......|..... wf(meo) ² A keep 2 wfmmd",
]  # fmt: skip
NAMES: list[Any] = [None, (1, 2), ("a",), "ab", (None, "b")]
GAMES: list[Any] = [
    *(RECORDED._replace(states=states) for states in RECORDS),
    *(RECORDED._replace(actions=actions) for actions in ACTIONS),
    *(RECORDED._replace(players=names) for names in NAMES),
    *(RECORDED._replace(rules=rules) for rules in (Rules(players=3), Rules(spaces=2))),
]
HOSTILE = {
    **dict.fromkeys(("state", "states", "before"), RECORDS),
    **dict.fromkeys(
        ("action", "actions", "permutation", "dice", "masks", "observations", "by", "roll_off", "rounds"),
        ACTIONS,
    ),
    **dict.fromkeys(("seed", "names", "players", "width", "most"), ACTIONS),
    **dict.fromkeys(("text", "theme", "encoding"), TEXTS),
    **dict.fromkeys(("recorded",), GAMES),
}
VALID: dict[str, Any] = {
    "game": GAME, "rules": Rules(), "state": STATE_NOW, "states": STATE_NOW, "recorded": RECORDED, "action": 31,
    "actions": [31], "permutation": [0, 1, 2, 3, 4], "dice": STATE_NOW["dice"], "by": 1, "text": "stop", "rounds": None,
    "masks": np.zeros((1, GAME.num_actions)), "observations": GAME.observe(STATE_NOW),
}  # fmt: skip
OTHERS = {  # functions of numbers or tables, or of files
    "classify", "define_errors", "kinds_of", "analyze", "regret", "grade", "picture", "write_game", "read_game",
}  # fmt: skip
MODULES = (notation, rendering, symmetry, analysis)
FUNCTIONS: dict[str, Any] = {
    **{
        name: function
        for module in MODULES
        for name in module.__all__
        if isinstance(function := getattr(module, name), types.FunctionType) and name not in OTHERS
    },
    **{name: getattr(position, name) for name in ("position", "parse_position")},
    "describe_action": lambda action: words.describe_action(action),
    "describe_due": text.describe_due,
    "Game.describe_action": lambda state, action: GAME.describe_action(state, action),
    "RecordedGame.__str__": lambda recorded: str(recorded),
    "Advisor.analyze": lambda state: analysis.Advisor(GAME).analyze(state),
    "Replay": lambda states, actions: rendering.Replay(GAME, states, actions).html(),
    "Renderer.render": lambda states: rendering.Renderer(GAME, "ansi").render(states),
    "Renderer": lambda text: rendering.Renderer(GAME, text),
    "show": lambda states, most: rendering.show(GAME, states, most=most)._repr_html_(),
    "record_game": lambda state, actions, players: notation.record_game(
        Rules(), actions, state=state, players=players
    ),
}
VALID |= {"most": 1, "players": ("a", "b"), "states": STATE_NOW}


PYTHON = ("unsupported operand", "not supported between", "object is not", "has no len", "argument must be")
"""Words of Python's own errors, which do not name the argument."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_hostile_arguments_raise_one_sentence(name: str):
    function = FUNCTIONS[name]
    parameters = inspect.signature(function).parameters
    required = {key for key, parameter in parameters.items() if parameter.default is parameter.empty}
    assert required <= VALID.keys(), f"add valid and hostile values of {required - VALID.keys()} to this file"
    valid = {key: VALID[key] for key in required}
    if name == "render_rgb":
        pytest.importorskip("resvg_py")
    tried = 0
    for key in parameters.keys() & HOSTILE.keys():
        for value in HOSTILE[key]:
            tried += 1
            try:
                function(**valid | {key: value})
            except (ValueError, TypeError) as error:
                message = str(error)
            except Exception as error:
                pytest.fail(f"{name}({key}={value!r}) raises {type(error).__name__}: {error}")
            else:
                continue
            assert message, (key, value)
            assert not any(words in message for words in PYTHON), (key, value, message)
    assert tried > 5


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, function in FUNCTIONS.items()
        if "state" in inspect.signature(function).parameters and name != "describe_due"
    ],
)
def test_records_of_another_game_are_refused(name: str):
    parameters = inspect.signature(FUNCTIONS[name]).parameters
    valid = {key: VALID[key] for key, parameter in parameters.items() if parameter.default is parameter.empty}
    third = THREE.reset(1, seed=0)
    third["player"], third["pieces"][0, 2, 0] = 0, 3  # the third seat has a piece on the board
    for other in (third, record(player=9)):
        with pytest.raises(ValueError, match=r"(player|pieces) must"):
            FUNCTIONS[name](**valid | {"state": other})
