"""`wotd watch`: show a game between policies, move by move."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from wotd_env.cli.common import check_seconds, check_writable, explained, ready_policies, say
from wotd_env.cli.options import DELAY, POLICIES, POSITION, SEED, TRUST, option, rules_options, start_of
from wotd_env.core.state import States

if TYPE_CHECKING:
    from wotd_env.core.game import Game

Frame = tuple[States, int | None]
"""A position, STATE (1,), and the action chosen in the position, or None in the last position."""


@explained()
@rules_options(players="one for each policy, at least 2")
def command(
    context: typer.Context,
    rules: dict[str, Any],
    policies: list[str] = POLICIES,
    seed: int = SEED,
    position: str | None = POSITION,
    delay: float = DELAY,
    record: Path | None = option(None, "Write the whole game to this .txt file before it is shown."),
    trust: bool = TRUST,
) -> None:
    """Show a game between policies, move by move."""
    from wotd_env.core.arguments import check_seed
    from wotd_env.core.game import Game
    from wotd_env.notation import RecordedGame, write_game
    from wotd_env.policies.blamed import Blamed
    from wotd_env.policy import play_policies

    check_seed(seed)
    check_seconds("delay", delay)
    game_rules, given = start_of(context, rules, position, policies, seed)
    seats = game_rules.players
    if len(policies) not in (1, seats):
        raise ValueError(f"give 1 or {seats} policies for {seats} seats, got {len(policies)}")
    ready = ready_policies(policies, trust, game_rules)
    names = policies * (seats // len(policies))
    players = [Blamed(name, ready[name]) for name in names]
    check_writable(record, ".txt")
    game = Game(game_rules, skip_forced=False)
    state = game.reset(1, seed=seed) if given is None else given
    game.roll(state)
    steps: list[Frame] = []

    def played() -> Iterator[Frame]:
        rng, seating = np.random.default_rng(seed), np.arange(seats)[None]
        for chosen in play_policies(game, state, seating, players, rng):
            steps.append((state.copy(), int(chosen[0])))
            yield steps[-1]
        steps.append((state.copy(), None))
        yield steps[-1]

    known = seed if given is None else None
    shown: Iterable[Frame] = played()
    if record:
        try:
            shown = list(shown)
        finally:  # an interrupted game is also recorded
            if steps:
                states, actions = zip(*steps, strict=True)
                decided = np.array(actions[:-1], np.int64)
                recorded = RecordedGame(game_rules, np.concatenate(states), decided, tuple(names), known)
                write_game(record, recorded)
    show_game(game, names, known, shown, delay)


def show_game(
    game: Game, names: Sequence[str], seed: int | None, steps: Iterable[Frame], delay: float
) -> None:
    """Print the roll-off if the seed is known. Then print the game in words, and pause after each turn.

    `steps` include forced decisions; `names` has one name per seat.
    """
    from wotd_env.core.position import SEATS
    from wotd_env.core.starting import roll_off_of
    from wotd_env.core.words import show_dice
    from wotd_env.notation import position
    from wotd_env.rendering.text import render_text, roll_off_text, seat_names

    for line in [] if seed is None else roll_off_text(roll_off_of(game, seed)):
        say(line)
    names = seat_names(names, game.rules.players)
    lines: list[str] = []
    turn = -1
    for state, action in steps:
        if state["turn"][0] != turn or action is None:
            if lines:
                say("\n".join([*lines, ""]))
                time.sleep(delay)
            turn = int(state["turn"][0])
            lines = [render_text(game, state, names=names), position(game.rules, state), ""]
        if action is not None:
            seat, dice = int(state["player"][0]), show_dice(state["dice"][0])
            lines.append(f"{names[seat]} ({SEATS[seat]}), {dice}: {game.describe_action(state, action)}")
    say("\n".join(lines).rstrip())
