"""The exported functions of wotd.wasm, and its memory.

The module has memory for one game. An argument of an exported function whose name is a key of MEMORY or TUPLES is
in this memory. All other arguments are integers, which the caller passes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core import batch, engine, stream
from wotd_env.core.actions import MOST_ACTIONS, Action
from wotd_env.core.compilation import kernel
from wotd_env.core.config import CONFIG, DRAGONS, LOSER, Configs
from wotd_env.core.dice import KEEPS, NUM_KEEPS, NUM_ROLLS
from wotd_env.core.lanes import trailing_zeros
from wotd_env.core.observation import ENCODINGS, ONE_HOT, encode_integers, encode_one_hot, parts
from wotd_env.core.rules import DICE, MAX_PLAYERS, MAX_SPACES, Phase, Rules
from wotd_env.core.state import STATE, Records
from wotd_env.core.stream import below
from wotd_env.planning import ends, learned, planner, plans, turn, values
from wotd_env.planning.learned import HIDDEN, Features, Layers, Weights
from wotd_env.planning.plans import Afterstates, Outcomes, TurnPlan
from wotd_env.planning.vectors import ABREAST

WIDTH = 64  # units in the first layer of every bundled network

LARGEST = Rules(players=MAX_PLAYERS, spaces=MAX_SPACES, powers="any", immunity=True)
MOST_OBSERVED = max(
    sum(len(part.highest) for part in parts(LARGEST, encoding).values()) for encoding in ENCODINGS
)


def small(table: ends.Ends) -> ends.Ends:
    """Return a table with numbers of 16 bits, which make the module smaller."""
    columns = {name: getattr(table, name).astype(np.int16) for name in ("action", "dice", "roll", "by_roll")}
    return table._replace(**columns)


TABLES = tuple(
    small(ends.ends_of(players, powers)) for players in range(2, MAX_PLAYERS + 1) for powers in (False, True)
)
CHOICES = max(MOST_ACTIONS, *(table.action.size for table in TABLES))
AFTERSTATES = CHOICES * plans.MOST_AFTERSTATES


class Work(NamedTuple):
    """Memory of `plan`. The first axis of an array of afterstates is 1 for the ends of turns that use the tiger."""

    rolls: NDArray[np.int64]
    tiger: NDArray[np.bool_]
    game: NDArray[np.int64]
    value: NDArray[np.float32]
    scratch: NDArray[np.void]
    afterstates: NDArray[np.void]
    state: NDArray[np.int64]
    choice: NDArray[np.int64]
    values: NDArray[np.float32]
    choice_values: NDArray[np.float32]
    best: NDArray[np.int64]
    rows: NDArray[np.float32]
    expected: NDArray[np.float32]
    active: NDArray[np.int64]
    x: NDArray[np.float32]
    y: NDArray[np.float32]


_SHAPES = learned.shapes(LARGEST, WIDTH)
NETWORK = np.dtype(
    [
        ("features", np.int64, (len(Features._fields),)),
        *((name, np.float32, _SHAPES[name]) for name in (*Weights._fields[1:], "rows")),
    ]
)
"""Memory for a network. The rows are last, because most networks have fewer rows than there is memory for."""

Field = tuple[Any, tuple[int, ...]]  # dtype and shape of an array

WORK: dict[str, Field] = {
    "work.rolls": (np.int64, (1,)),
    "work.tiger": (np.bool_, (1,)),
    "work.game": (np.int64, (1,)),
    "work.value": (np.float32, (1,)),
    "work.scratch": (STATE, (2,)),
    "work.afterstates": (STATE, (2, AFTERSTATES)),
    "work.state": (np.int64, (2, AFTERSTATES)),
    "work.choice": (np.int64, (2, AFTERSTATES)),
    "work.values": (np.float32, (2, AFTERSTATES, MAX_PLAYERS)),
    "work.choice_values": (np.float32, (2, CHOICES, 1)),
    "work.best": (np.int64, (2, CHOICES, 1)),
    "work.rows": (np.float32, (turn.STOPS + NUM_ROLLS + CHOICES, turn.LANES)),
    "work.expected": (np.float32, (1, NUM_KEEPS, turn.LANES)),
    "work.active": (np.int64, (Features.of(LARGEST).active,)),
    "work.x": (np.float32, (ABREAST, WIDTH)),
    "work.y": (np.float32, (ABREAST, HIDDEN)),
}

MEMORY: dict[str, Field] = {
    "config": (CONFIG, (1,)),
    "states": (STATE, (1,)),
    "mask": (np.int8, (1, MOST_ACTIONS)),
    "observation": (np.int8, (1, MOST_OBSERVED)),
    "scores": (np.int32, (1, MAX_PLAYERS)),
    "rewards": (np.float32, (1, MAX_PLAYERS)),
    "action_values": (np.float32, (1, MOST_ACTIONS)),
    "roll_off": (np.int8, (MAX_PLAYERS, DICE)),
    "network": (NETWORK, (1,)),
}

TUPLES: dict[str, tuple[type, dict[str, Field]]] = {"work": (Work, WORK)}
"""Arguments that are named tuples of arrays."""


# ---------------------------------------------------------------------------------------------------------------- game


@kernel
def new_game(states: Records, config: Configs, seed: Any, starter: Any) -> None:
    """Start the game of a seed, and stop before the first roll.

    `starter` is a seat, or -1 if the rules determine the starting player.
    """
    s, rules = states[0], config[0]
    s.rng = stream.mix(np.uint64(seed) + stream.STEP)
    if starter < 0:
        starter = DRAGONS if rules.start == LOSER else rules.start  # as in Game.reset
    engine.new_game(s, rules, starter)


@kernel
def next_game(states: Records, config: Configs) -> None:
    """Start another game after the current one, and stop before the first roll."""
    engine.new_game(states[0], config[0], config[0].start)


@kernel
def roll_off_round(states: Records, roll_off: Any, seats: Any) -> Any:
    """Play one round of the roll-off of some seats, given as bits. Return those with the most dragons, as bits.

    Write the dice of these seats to `roll_off`.
    """
    s = states[0]
    stream = s.rng
    for seat in range(MAX_PLAYERS):
        if seats >> seat & 1:
            roll = engine.throw(s, engine.NOTHING_KEPT)
            for die in range(DICE):
                roll_off[seat, die] = KEEPS[roll, die]
    s.rng = stream
    return engine.roll_off_round(s, seats)


@kernel
def apply_roll(states: Records, config: Configs) -> None:
    """Continue as after a roll of the dice in the record."""
    s, rules = states[0], config[0]
    roll = engine.dice_index(s)
    engine.set_roll(s, rules, roll)
    engine.run(s, rules, roll, False)


@kernel
def decide(states: Records, config: Configs, action: Any) -> Any:
    """Take an action, and stop before the next roll. Return whether the action was legal; if not, nothing changes."""
    s, rules = states[0], config[0]
    if not batch.is_legal(s, rules, action):
        return 0
    if s.phase != Phase.OVER:
        engine.run(s, rules, engine.decide(s, rules, engine.dice_index(s), action), False)
    return 1


@kernel
def observe(states: Records, config: Configs, observation: Any, seat: Any) -> None:
    """Write the observation of a seat."""
    s, rules = states[0], config[0]
    if rules.encoding == ONE_HOT:
        encode_one_hot(s, rules, seat, engine.dice_index(s), observation[0])
    else:
        encode_integers(s, rules, seat, engine.dice_index(s), observation[0])


@kernel
def playout(states: Records, config: Configs) -> Any:
    """Play random legal actions to the end of the game. Return the number of decisions."""
    s, rules = states[0], config[0]
    actions, swaps, keep = engine.run(s, rules, engine.dice_index(s), True)
    decisions = 0
    while s.phase != Phase.OVER:
        others = count_bits(actions)
        number = np.int64(below(s, others + count_bits(swaps)))
        first, bits = np.int64(0), actions
        if number >= others:
            number, first, bits = number - others, np.int64(Action.FIRST_SWAP), swaps
        for _ in range(number):
            bits &= bits - engine.BIT
        action = first + np.int64(trailing_zeros(bits))
        actions, swaps, keep = engine.run(s, rules, engine.decide(s, rules, keep, action), True)
        decisions += 1
    return decisions


@kernel
def count_bits(bits: Any) -> Any:
    """Return the number of set bits."""
    count = np.int64(0)
    while bits:
        bits &= bits - engine.BIT
        count += 1
    return count


# ---------------------------------------------------------------------------------------------------------------- plan


@kernel
def plan(
    states: Records, config: Configs, action_values: Any, network: Any, work: Work, by_network: Any
) -> Any:
    """Write the value of every action for the seat to act, -inf for illegal ones. Return the value of the state.

    This is `planning.planner.plan` for one game, without memory allocation. The value function is the network in
    memory if `by_network` is not 0, else the hand-made one.
    """
    s, rules = states[0], config[0]
    given = network[0]
    features = Features(
        given.features[0], given.features[1], given.features[2], given.features[3], given.features[4]
    )
    arrays = Weights(given.rows, given.hidden, given.hidden_bias, given.output, given.output_bias)
    values_of = features, arrays, by_network != 0
    action_values[:] = -np.inf
    plans.write_groups(states, config, work.rolls, work.tiger)
    rolls, tiger = work.rolls[0], work.tiger[0]
    if rolls == plans.ENDED:
        engine.rewards(s, rules, work.values[0, 0])
        return work.values[0, 0, s.player]
    if rolls == plans.LAST:
        written = afterstates_in(work, 0)
        count = plans.write_actions(states, config, work.scratch, written)
        outcomes = value_outcomes(states, config, values_of, work, 0, count)
        best = np.float32(-np.inf)
        for action in range(MOST_ACTIONS):
            action_values[0, action] = outcomes.choice_values[action, 0]
            best = max(best, action_values[0, action])
        return best
    table = TABLES[2 * (rules.players - 2) + (rules.powers != engine.NO_POWERS)]
    count = plans.write_ends(states, config, work.scratch, afterstates_in(work, 0), table, False)
    outcomes = after_tiger = value_outcomes(states, config, values_of, work, 0, count)
    if tiger:
        count = plans.write_ends(states, config, work.scratch, afterstates_in(work, 1), table, True)
        after_tiger = value_outcomes(states, config, values_of, work, 1, count)
    rows = work.rows[: plans.stride_of(table)]
    turns = TurnPlan(table, outcomes, after_tiger, rolls, tiger, rows, work.expected[:0])
    planner.write_plan(turns, states, work.game, action_values, work.value)
    return work.value[0]


@kernel
def afterstates_in(work: Work, which: Any) -> Afterstates:
    """Return the memory for afterstates."""
    return Afterstates(work.afterstates[which], work.state[which], work.choice[which])


@kernel
def value_outcomes(
    states: Records, config: Configs, values_of: Any, work: Work, which: Any, count: Any
) -> Outcomes:
    """Return the values of `count` afterstates in `work`, and the best afterstate of each choice."""
    features, network, learns = values_of
    written = afterstates_in(work, which)
    afterstates = written.states[:count]
    given = work.values[which, :count, : config[0].players]
    if learns:
        layers = Layers(work.active[: features.active], work.x, work.y)
        learned.write_values_in(layers, afterstates, config, features, network, given)
    else:
        values.write_values(afterstates, config, given)
    work.choice_values[which] = -np.inf
    outcomes = Outcomes(afterstates, given, work.choice_values[which], work.best[which])
    plans.find_best(states, config, written, outcomes)
    return outcomes


class Export(NamedTuple):
    """An exported function."""

    kernel: Any
    arguments: str  # their names
    words: str  # the description in docs/how-to/wasm.md


_ONE = "states config"
EXPORTS: dict[str, Export] = {
    "new_game": Export(
        new_game,
        f"{_ONE} seed starter",
        "start a game before its first roll; `starter` is a seat, -1 for any",
    ),
    "next_game": Export(next_game, _ONE, "start the next game, in which the loser may begin"),
    "roll": Export(batch.roll, _ONE, "roll if a roll is due, and play to the next decision"),
    "apply_roll": Export(apply_roll, _ONE, "continue after the host has written a roll to the field `dice`"),
    "step": Export(
        batch.step_one,
        f"{_ONE} action",
        "take an action, and roll; the next seat, the players at the end, or -1",
    ),
    "decide": Export(
        decide, f"{_ONE} action", "take an action, and stop before the roll; 0 if it is illegal"
    ),
    "legal_actions": Export(batch.legal_actions, f"{_ONE} mask", "write `mask`"),
    "observe": Export(observe, f"{_ONE} observation seat", "write `observation` for a seat"),
    "write_scores": Export(batch.scores, f"{_ONE} scores", "write `scores`"),
    "write_rewards": Export(batch.rewards, f"{_ONE} rewards", "write `rewards`"),
    "playout": Export(playout, _ONE, "play random actions to the end; the number of decisions"),
    "roll_off_round": Export(
        roll_off_round,
        "states roll_off seats",
        "write `roll_off`: a round of the roll-off of `seats`; the best seats",
    ),
    "plan": Export(
        plan,
        f"{_ONE} action_values network work by_network",
        "write `action_values`; the value of the state, by `network` if `by_network` is 1",
    ),
}
