"""Actions, seeds, sizes and flags are checked where they enter. The error names the argument and its value."""

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest

from wotd_env import Game, Rules, notation, way_of_the_dragon_v0
from wotd_env.core.arguments import as_integer
from wotd_env.core.state import STATE
from wotd_env.policies.function import FunctionPolicy
from wotd_env.policy import ask

torch = pytest.importorskip("torch")

ID = "wotd_env:wotd_env/WayOfTheDragon-v0"
GAMES = 4
STOP = 31

NO_INTEGERS: list[tuple[Any, str]] = [
    ([0.0] * GAMES, r"\[0.0, 0.0, 0.0, 0.0\]"),
    (np.zeros(GAMES), r"float64 \(4,\)"),
    (torch.zeros(GAMES), r"torch.float32 \(4,\)"),
    (torch.zeros(GAMES, requires_grad=True), r"torch.float32 \(4,\): .*detach"),
    (np.full(GAMES, STOP + 0j), r"complex128 \(4,\)"),
    (np.ones(GAMES, bool), r"bool \(4,\)"),
    (torch.ones(GAMES, dtype=torch.bool), r"torch.bool \(4,\)"),
    ([True] * GAMES, r"\[True, True, True, True\]"),
    ([True, 1, 2, 3], r"\[True, 1, 2, 3\]"),
    ([torch.tensor(True)] * GAMES, r"\[tensor\(True\)"),
    ([None] * GAMES, r"\[None, None, None, None\]"),
    ([float("nan")] * GAMES, r"\[nan, nan, nan, nan\]"),
    (np.array([object()] * GAMES), r"object \(4,\)"),
    (["31"] * GAMES, r"\['31'"),
    ("0000", "'0000'"),
    ([[1], [1, 2], 3, 4], r"\[\[1\], \[1, 2\], 3, 4\]"),
    (STOP, "31"),
    (np.array(STOP), r"array\(31\)"),
    (torch.tensor(STOP), r"tensor\(31\)"),
    ([STOP] * 3, r"\[31, 31, 31\]"),
    (np.full((2, 2), STOP), r"int64 \(2, 2\)"),
    (np.full((1, GAMES), STOP), r"int64 \(1, 4\)"),
    (torch.full((3,), STOP), r"torch.int64 \(3,\)"),
]
INTEGERS: list[Any] = [
    [STOP] * GAMES,
    (STOP,) * GAMES,
    np.full(GAMES, STOP, np.int8),
    np.full(GAMES, STOP, np.uint64),
    np.array([STOP] * GAMES, object),
    [np.int16(STOP)] * GAMES,
    np.full((GAMES, 1), STOP),
    torch.full((GAMES,), STOP),
    torch.full((GAMES, 1), STOP),
    [torch.tensor(STOP)] * GAMES,
]


def vector(**options: Any) -> Any:
    env: Any = gymnasium.make_vec(ID, num_envs=GAMES, vectorization_mode="vector_entry_point", **options)
    env.reset(seed=0)
    return env


@pytest.mark.parametrize("method", ["step", "decide", "step_autoreset", "check"])
@pytest.mark.parametrize(("actions", "got"), NO_INTEGERS)
def test_a_batch_refuses_anything_but_one_integer_per_game(method, actions, got):
    game = Game()
    state = game.reset(GAMES, seed=0)
    before = state.copy()
    with pytest.raises(ValueError, match=rf"^actions must be an integer array \(4,\), got {got}"):
        getattr(game, method)(state, actions)
    assert state.tobytes() == before.tobytes()


@pytest.mark.parametrize(("actions", "got"), NO_INTEGERS)
def test_a_vector_environment_and_a_policy_refuse_the_same(actions, got):
    env = vector()
    before = env.record
    with pytest.raises(ValueError, match=rf"^actions must be an integer array \(4,\), got {got}"):
        env.step(actions)
    assert env.record.tobytes() == before.tobytes()
    game, rng = Game(), np.random.default_rng(0)
    state = game.reset(GAMES, seed=0)
    policy = FunctionPolicy(lambda observation, mask: actions, batched=True)
    for choose in (lambda: policy.act(game, state, rng), lambda: ask(policy, game, state, rng)):
        with pytest.raises(
            ValueError, match=rf"^act must return integers \(4,\), got {got.partition(':')[0]}"
        ):
            choose()


@pytest.mark.parametrize("actions", INTEGERS)
def test_integers_of_all_libraries_are_actions(actions):
    game = Game()
    state, expected = game.reset(GAMES, seed=0), game.reset(GAMES, seed=0)
    game.step(expected, [STOP] * GAMES)
    game.step(state, actions)
    assert state.tobytes() == expected.tobytes()
    env, plain = vector(opponents="random"), vector(opponents="random")
    env.step(actions)
    plain.step(np.full(GAMES, STOP))
    assert env.record.tobytes() == plain.record.tobytes()
    policy = FunctionPolicy(lambda observation, mask: actions, batched=True)
    assert policy.act(game, game.reset(GAMES), np.random.default_rng(0)).tolist() == [STOP] * GAMES


@pytest.mark.parametrize(
    "answer",
    [0.5, True, np.True_, torch.tensor(True), None, float("nan"), [1, 2], "1", np.zeros(1)],
    ids=repr,
)
def test_a_function_for_one_game_must_return_an_integer(answer):
    game = Game()
    policy = FunctionPolicy(lambda observation, mask: answer)
    with pytest.raises(ValueError, match=r"act must return integers \(3,\), got .* from the function"):
        policy.act(game, game.new(3), np.random.default_rng(0))


@pytest.mark.parametrize(
    "action",
    [
        *(1.0, True, np.True_, np.array(True), torch.tensor(True), torch.tensor(1.0), None, "31", [31]),
        *(np.array([1, 2]), torch.tensor([1, 2]), object()),
    ],
)
def test_environments_with_one_game_refuse_anything_but_an_integer(action):
    raw = way_of_the_dragon_v0.raw_env()
    single: Any = gymnasium.make(ID, disable_env_checker=True)
    for env in (raw, single):
        env.reset(seed=0)
        before = env.unwrapped.record
        with pytest.raises(TypeError, match="action must be an integer, got "):
            env.step(action)
        assert env.unwrapped.record.tobytes() == before.tobytes()
    game, state = Game(), Game().reset(1, seed=0)
    for method in (game.describe_action, game.explain_illegal):
        with pytest.raises(ValueError, match=r"^action must be an .*integer, got "):
            method(state, action)


@pytest.mark.parametrize(
    "one", [31, np.int8(31), np.array([[31]]), torch.tensor(31), torch.tensor([31])], ids=repr
)
def test_one_integer_of_any_library_is_an_action(one):
    assert as_integer(one) == 31
    assert type(as_integer(one)) is int


BOOLEANS = [True, np.True_, np.array(True), torch.tensor(True)]
CALLS: dict[str, Callable[[Any], object]] = {
    "seed": lambda value: Game().reset(2, seed=value),
    "starting_player": lambda value: Game().reset(2, starting_player=value),
    "state": lambda value: Game().reset(value),
    "batch_size": lambda value: Game().new(value),
    "seat": lambda value: Game().observe(Game().new(1), value),
    "spaces": lambda value: Rules(spaces=value),
    "max_turns": lambda value: Rules(max_turns=value),
}


@pytest.mark.parametrize("value", [*BOOLEANS, 2.0, None, "2", float("nan"), -1, 2**70], ids=repr)
@pytest.mark.parametrize("name", CALLS)
def test_a_number_that_is_no_integer_in_range_is_named(name, value):
    if value is None and name in ("seed", "starting_player", "seat"):
        pytest.skip("None selects the default")
    with pytest.raises(ValueError, match=f"^{name} must be "):
        CALLS[name](value)


@pytest.mark.parametrize("value", ["no", None, 2, 1.0, np.array(True)], ids=repr)
def test_a_flag_must_be_true_or_false(value):
    for name, call in {
        "skip_forced": lambda: Game(skip_forced=value),
        "roll": lambda: Game().reset(1, roll=value),
        "immunity": lambda: Rules(immunity=value),
        "batched": lambda: FunctionPolicy(lambda observation, mask: 0, batched=value),
    }.items():
        with pytest.raises(ValueError, match=f"{name} must be True or False, got "):
            call()


def test_only_illegal_actions_are_explained():
    game = Game()
    state = game.reset(1, seed=0)
    legal = set(np.flatnonzero(game.legal_actions(state)[0]).tolist())
    for action in range(game.num_actions):
        if action in legal:
            with pytest.raises(ValueError, match=f"action must be an illegal action, .*got {action}"):
                game.explain_illegal(state, action)
        else:
            assert f"action {action} " in game.explain_illegal(state, action)
    with pytest.raises(ValueError, match="state must be one game"):
        game.explain_illegal(game.new(2), 0)


# -------------------------------------------------------------------------------------- records of another game


FOREIGN: dict[str, Callable[[Game, np.ndarray], object]] = {
    "step": lambda game, state: game.step(state, np.full(len(state), STOP)),
    "roll": lambda game, state: game.roll(state),
    "observe": lambda game, state: game.observe(state),
    "scores": lambda game, state: game.scores(state),
    "is_over": lambda game, state: game.is_over(state),
    "explain_illegal": lambda game, state: game.explain_illegal(state, 50),
    "describe_action": lambda game, state: game.describe_action(state, STOP),
    "position": lambda game, state: notation.position(game.rules, state),
    "action_text": lambda game, state: notation.action_text(game, state, STOP),
    "record_game": lambda game, state: notation.record_game(game.rules, [STOP], state=state),
}


def with_option(make: Callable[..., Any]) -> Callable[[Game, np.ndarray], object]:
    return lambda game, state: make(players=game.rules.players).reset(options={"state": state})


FOREIGN |= {
    "AEC": with_option(way_of_the_dragon_v0.env),
    "single": with_option(partial(gymnasium.make, ID)),
    "vector": with_option(partial(gymnasium.make_vec, ID)),
}


@pytest.mark.parametrize(("own", "other"), [(2, 3), (3, 2), (3, 4), (5, 4)])
@pytest.mark.parametrize("call", FOREIGN)
def test_a_record_of_one_number_of_players_is_invalid_for_another(call, own, other):
    state = Game(players=own).reset(1, seed=0, starting_player=0)
    before = state.copy()
    with pytest.raises(
        ValueError, match=f"players must be {other} as in the rules, or 0 if unknown, got {own}"
    ):
        FOREIGN[call](Game(players=other), state)
    assert state.tobytes() == before.tobytes()


def test_records_without_a_number_of_players_fit_all_games_in_which_their_pieces_do():
    state = Game().reset(1, seed=0, starting_player=0)
    state["players"] = 0  # as in records made by hand and in old files
    for players in (2, 3):
        game, mine = Game(players=players), state.copy()
        game.step(mine, [STOP])
        assert mine["players"] == 0


def test_every_way_to_a_record_sets_the_number_of_players():
    game = Game(players=4)
    state = game.reset(2, seed=0)
    assert state["players"].tolist() == [4, 4]
    game.reset(state, seed=1)
    assert state["players"].tolist() == [4, 4]
    old = np.zeros(1, STATE)
    assert game.reset(old)["players"] == 4
    rules, read = notation.parse_position(notation.position(game.rules, state[:1], stream=True))
    assert rules == game.rules
    assert read.tobytes() == state[:1].tobytes()
