"""`wotd watch`: a game, move by move, in words."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from wotd_env.cli.common import HOUR, check_range, check_writable, explained, ready_policies
from wotd_env.cli.options import Seed, Trust, rules_options
from wotd_env.core.rules import Phase, Rules

if TYPE_CHECKING:
    from wotd_env.core.policy import Policy


@explained()
@rules_options(players="one for each policy, at least 2")
def command(
    policies: Annotated[list[str], typer.Argument(help="One for each seat, or one for all.")],
    seed: Seed = 0,
    delay: Annotated[float, typer.Option(help="Seconds to wait after every turn.")] = 0.0,
    record: Annotated[Path | None, typer.Option(help="Record the game, .json, for `wotd analyze`.")] = None,
    trust: Trust = False,
    *,
    rules: dict[str, Any],
) -> None:
    """Watch policies play a game, move by move, in words."""
    from wotd_env.core.game import check_seed

    seats = rules.setdefault("players", max(2, len(policies)))
    if len(policies) not in (1, seats):
        raise ValueError(
            f"policies must be one for each of the {seats} seats, or one for all, got {len(policies)}"
        )
    game_rules = Rules(**rules)
    check_seed(seed)
    check_range("delay", delay, 0, HOUR)
    made = ready_policies(policies, trust, game_rules)
    if record:
        check_writable(record, ".json")
    actions: list[int] = []
    for turn in _narrate(game_rules, policies * (seats // len(policies)), made, seed, actions):
        typer.echo(turn)
        time.sleep(delay)
    if record:
        from wotd_env.analysis import write_game

        write_game(record, game_rules, seed, actions)


def _narrate(
    rules: Rules, names: list[str], players: dict[str, Policy], seed: int, actions: list[int]
) -> Iterator[str]:
    """Play a game and tell it, turn by turn; all actions but forced moves are added to `actions`."""
    from wotd_env.core.game import Game, show_dice
    from wotd_env.core.policy import ask, play_out
    from wotd_env.rendering import render_text

    game = Game(rules, skip_forced=False)
    state = game.reset(1, seed=seed)
    rng = np.random.default_rng(seed)

    def choose(seat: int, _: NDArray[np.int64]) -> NDArray[np.int64]:
        return ask(players[names[seat]], game, state, rng)

    lines: list[str] = []
    turn = -1
    for chosen in play_out(game, state, np.arange(rules.players)[None], choose):
        action = int(chosen[0])
        if state["turn"][0] != turn:
            if lines:
                yield "\n".join([*lines, ""])
            turn, lines = int(state["turn"][0]), [render_text(game, state), ""]
        name, dice = names[int(state["player"][0])], show_dice(state["dice"][0])
        lines.append(f"{name}, {dice}: {game.describe_action(state, action)}")
        if state["phase"][0] != Phase.MOVE or game.legal_actions(state).sum() > 1:
            actions.append(action)
    yield "\n".join([*lines, ""])
    yield render_text(game, state)
