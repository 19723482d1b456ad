"""`wotd watch`: show a game between policies, move by move."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from wotd_env.cli.common import HOUR, check_range, check_writable, explained, ready_policies, say
from wotd_env.cli.options import Delay, Policies, Position, Seed, Trust, option, rules_options, start_of

if TYPE_CHECKING:
    from wotd_env.core.game import Game
    from wotd_env.core.state import States
    from wotd_env.policy import Policy


@explained()
@rules_options(players="one for each policy, at least 2")
def command(
    context: typer.Context,
    policies: Policies,
    seed: Seed = 0,
    position: Position = None,
    delay: Delay = 0.0,
    record: Annotated[Path | None, option("Also write the game to this .txt file.")] = None,
    trust: Trust = False,
    *,
    rules: dict[str, Any],
) -> None:
    """Show a game between policies, move by move."""
    from wotd_env import Game, notation
    from wotd_env.arena.asking import Blamed
    from wotd_env.core.game import check_seed

    check_seed(seed)
    check_range("delay", delay, 0, HOUR)
    game_rules, state = start_of(context, rules, position, policies, seed)
    seats = game_rules.players
    if len(policies) not in (1, seats):
        raise ValueError(f"give 1 or {seats} policies for {seats} seats, got {len(policies)}")
    ready = ready_policies(policies, trust, game_rules)
    made = {name: Blamed(name, policy) for name, policy in ready.items()}
    if record:
        check_writable(record, ".txt")
    game = Game(game_rules, skip_forced=False)
    if state is None:
        state = game.reset(1, seed=seed)
    game.roll(state)
    names = policies * (seats // len(policies))
    steps: list[Step] = []
    given = None if position else seed
    try:
        show_game(game, names, given, _play(game, [made[name] for name in names], state, seed, steps), delay)
    finally:  # an interrupted game is recorded too
        if record and steps:
            states, actions = zip(*steps, strict=True)
            decided = np.array(actions[:-1], np.int64)
            played = notation.RecordedGame(game_rules, np.concatenate(states), decided, tuple(names), given)
            notation.write_game(record, played)


Step = tuple["States", int | None]
"""A position, STATE (1,), and the action chosen in this position. The action of the last position is None."""


def _play(
    game: Game, players: Sequence[Policy], state: States, seed: int, steps: list[Step]
) -> Iterator[Step]:
    """Play a game to the end and change `state` in place. Append each step to `steps`, then yield the step."""
    from wotd_env.policy import play_policies

    rng, seats = np.random.default_rng(seed), np.arange(game.rules.players)[None]
    for chosen in play_policies(game, state, seats, players, rng):
        steps.append((state.copy(), int(chosen[0])))
        yield steps[-1]
    steps.append((state.copy(), None))
    yield steps[-1]


def show_game(
    game: Game, names: Sequence[str], seed: int | None, steps: Iterable[Step], delay: float
) -> None:
    """Print the roll-off if the seed is known, then the game in words, with a pause after each turn."""
    from wotd_env.rendering import roll_off_text

    for line in [] if seed is None else roll_off_text(game.roll_off(seed)):
        say(line)
    for turn in narrate(game, names, steps):
        say(turn)
        time.sleep(delay)


def narrate(game: Game, names: Sequence[str], steps: Iterable[Step]) -> Iterator[str]:
    """Yield the text of each turn of a game. `steps` include forced decisions; `names` has one name per seat."""
    from wotd_env.core.position import SEATS
    from wotd_env.core.words import show_dice
    from wotd_env.notation import position
    from wotd_env.rendering.text import render_text, seat_names

    names = seat_names(names, game.rules.players)
    lines: list[str] = []
    turn = -1
    for state, action in steps:
        if state["turn"][0] != turn or action is None:
            if lines:
                yield "\n".join([*lines, ""])
            turn = int(state["turn"][0])
            lines = [render_text(game, state, names=names), position(game.rules, state), ""]
        if action is not None:
            seat, dice = int(state["player"][0]), show_dice(state["dice"][0])
            lines.append(f"{names[seat]} ({SEATS[seat]}), {dice}: {game.describe_action(state, action)}")
    yield "\n".join(lines).rstrip()
