"""`wotd play`: play against policies in the terminal."""

from __future__ import annotations

import contextlib
import json
import secrets
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from wotd_env.cli.common import PERSON, check_writable, explained, is_person, ready_policies
from wotd_env.cli.options import POSITION, TRUST, option, refuse, rules_options, start_of
from wotd_env.process import shell_command

if TYPE_CHECKING:
    from wotd_env.notation import RecordedGame


@rules_options(players="one for each seat, at least 2")
def command(
    context: typer.Context,
    rules: dict[str, Any],
    seats: list[str] | None = typer.Argument(
        None,
        help="The player of each seat: me, me:NAME, or a policy. If only a policy is given, you have the first seat.",
        show_default="me planner",
    ),
    resume: Path | None = option(None, "Continue the game in this .txt file."),
    file: Path | None = option(
        None, "The .txt file to save the game to.", shown="game.txt, or game-2.txt and so on if it exists"
    ),
    seed: int | None = option(None, "Seed of all dice and of all random policies.", shown="random"),
    position: str | None = POSITION,
    trust: bool = TRUST,
) -> None:
    """Play against policies, or with other people at one keyboard.

    In the game, enter help to list the possible input. Every decision is saved immediately. A review follows the game.
    """
    from wotd_env.cli.match import Match
    from wotd_env.core.arguments import check_seed
    from wotd_env.notation import record_game

    with explained():
        if resume:
            names = [*rules, "file", "seed", "position"]
            refuse(context, names, "cannot be combined with --resume, which continues a game")
            recorded = _resumed(resume, seats, trust)
        else:
            drawn = secrets.randbits(63) if seed is None else int(check_seed(seed))
            game_rules, state = start_of(context, rules, position, seats or (), drawn)
            start = {"seed": drawn} if state is None else {"state": state}
            recorded = record_game(game_rules, [], **start, players=_seated(seats, game_rules.players))
        if not any(map(is_person, recorded.players)):
            raise ValueError("one seat must be me; use wotd watch for games between policies")
        names = [name for name in recorded.players if not is_person(name)]
        players = ready_policies(names, trust, recorded.rules)
        match = Match(recorded, resume or _free(file), players)
    with explained(match.kept):
        match.play()


def _resumed(file: Path, seats: list[str] | None, trust: bool) -> RecordedGame:
    """Return the game in a file.

    Without `trust`, each player named in the file must be a person or a policy that runs no other code.
    """
    from wotd_env import notation
    from wotd_env.core.position import SEATS
    from wotd_env.policies import runs_code

    check_writable(file, ".txt")
    recorded = notation.read_game(file)
    if seats:
        return recorded._replace(players=_seated(seats, recorded.rules.players))
    for seat, name in enumerate(recorded.players):
        code = not is_person(name) and runs_code(name)
        if name == "?" or (code and not trust):
            consent = "needs --trust to run code, because it " if code else ""
            example = shell_command("wotd", "play", *_seated(None, recorded.rules.players), "--resume", file)
            raise ValueError(
                f"{file} {consent}names {name!r} for seat {SEATS[seat]}: name the players on the command line, such "
                f"as: {example}"
            )
    return recorded


def _seated(seats: list[str] | None, players: int) -> tuple[str, ...]:
    """Return the player of each seat. A single name is expanded: `td` to `me td`, and `me` to `me planner`."""
    names = seats or [PERSON]
    if len(names) == 1:
        person, policy = (names[0], "planner") if is_person(names[0]) else (PERSON, names[0])
        names = [person, *[policy] * (players - 1)]
    for name in names:
        if (length := len(json.dumps(name))) > 500:  # the notation limits the length of a line
            got = f"{name[:20]}... of {length}"
            raise ValueError(f"a seat name must have at most 500 characters, got {got}")
    if len(names) != players:
        got = f"{len(names)}: {', '.join(names)}"
        raise ValueError(f"give a player for each of the {players} seats, got {got}")
    return tuple(names)


def _free(file: Path | None) -> Path:
    """Create an empty file for a new game and return its name; raise FileExistsError if `file` exists."""
    names = (Path("game.txt" if number == 1 else f"game-{number}.txt") for number in count(1))
    for name in names if file is None else [file]:
        check_writable(name, ".txt")
        with contextlib.suppress(FileExistsError):
            name.touch(exist_ok=False)
            return name
    raise FileExistsError(f"{file} already exists: continue it with --resume, or choose another file")
