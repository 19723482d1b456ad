"""`wotd watch`: show a game between policies, move by move."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from wotd_env.cli.common import HOUR, check_range, check_writable, explained, narrate, ready_policies, say
from wotd_env.cli.options import Position, Seed, Trust, check_no_rules, rules_options
from wotd_env.core.rules import Rules

if TYPE_CHECKING:
    from wotd_env.core.game import Game
    from wotd_env.core.state import States
    from wotd_env.policy import Policy


@explained()
@rules_options(players="one for each policy, at least 2")
def command(
    context: typer.Context,
    policies: Annotated[list[str], typer.Argument(help="One policy for each seat, or one for all seats.")],
    seed: Seed = 0,
    position: Position = None,
    delay: Annotated[float, typer.Option(help="Pause after each turn, in seconds.")] = 0.0,
    record: Annotated[
        Path | None,
        typer.Option(help="Also write the game to this .txt file."),
    ] = None,
    trust: Trust = False,
    *,
    rules: dict[str, Any],
) -> None:
    """Show a game between policies, move by move."""
    from wotd_env import Game, notation
    from wotd_env.arena.blocks import Blamed
    from wotd_env.core.game import check_seed
    from wotd_env.rendering import roll_off_text

    check_seed(seed)
    check_range("delay", delay, 0, HOUR)
    state = None
    if position is not None:
        check_no_rules(context, rules, "--position")
        game_rules, state = notation.parse_position(position)
    else:
        rules.setdefault("players", max(2, len(policies)))
        game_rules = Rules(**rules)
    seats = game_rules.players
    if len(policies) not in (1, seats):
        raise ValueError(f"give 1 or {seats} policies for {seats} seats, got {len(policies)}")
    made: dict[str, Policy] = {
        name: Blamed(name, policy) for name, policy in ready_policies(policies, trust, game_rules).items()
    }
    if record:
        check_writable(record, ".txt")
    game = Game(game_rules, skip_forced=False)
    if state is None:
        state = game.reset(1, seed=seed)
    elif not state["rng"][0]:  # the line does not contain the random stream
        state["rng"] = game.reset(1, seed=seed)["rng"]
    game.roll(state)
    names = policies * (seats // len(policies))
    states: list[States] = []
    actions: list[int] = []
    if position is None:
        for line in roll_off_text(game.roll_off(seed)):
            say(line)
    try:
        for turn in narrate(game, names, _play(game, names, made, state, seed, states, actions)):
            say(turn)
            time.sleep(delay)
    finally:  # also record an interrupted game
        if record and states:
            decided = np.array(actions[: len(states) - 1], np.int64)
            given = None if position else seed
            played = notation.RecordedGame(game_rules, np.concatenate(states), decided, tuple(names), given)
            notation.write_game(record, played)


def _play(
    game: Game,
    names: list[str],
    players: dict[str, Policy],
    state: States,
    seed: int,
    states: list[States],
    actions: list[int],
) -> Iterator[tuple[States, int | None]]:
    """Play a game to the end; append its positions and decisions to the lists and yield them."""
    from wotd_env.policy import ask, play_out

    rng = np.random.default_rng(seed)

    def choose(seat: int, _: NDArray[np.int64]) -> NDArray[np.int64]:
        return ask(players[names[seat]], game, state, rng)

    for chosen in play_out(game, state, np.arange(game.rules.players)[None], choose):
        states.append(state.copy())
        actions.append(int(chosen[0]))
        yield states[-1], actions[-1]
    states.append(state.copy())
    yield states[-1], None
