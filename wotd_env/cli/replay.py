"""`wotd replay`: show or verify recorded games."""

from __future__ import annotations

from pathlib import Path

import typer

from wotd_env.cli.common import check_seconds, check_writable, explained, progress_bar
from wotd_env.cli.options import DELAY, QUIET, option
from wotd_env.cli.watch import show_game


@explained()
def command(
    file: Path = typer.Argument(help="A recorded game (.txt) or a file of games (.parquet)."),
    game: int | None = option(None, "Number of the game in a .parquet file, from 0.", shown="all"),
    delay: float = DELAY,
    out: Path | None = option(None, "Write the game instead of showing it: .txt, .html, .gif or .mp4."),
    quiet: bool = QUIET,
) -> None:
    """Show a recorded game move by move, or verify all games of a file.

    Verification plays every game again and compares all states bit by bit.
    """
    from wotd_env import Game, notation
    from wotd_env.rendering import replay_game
    from wotd_env.rendering.replay import FORMATS

    check_seconds("delay", delay)
    check_writable(out, ".txt", *FORMATS)
    if file.suffix == ".parquet":
        from wotd_env import recording

        if game is None:
            if out:
                raise ValueError(f"--out writes one game: choose a game of {file} with --game")
            with progress_bar("decisions", quiet) as progress:
                games, decisions = recording.verify(file, progress)
            typer.echo(f"{file}: {games:,} games, {decisions:,} decisions, all verified")
            return
        recorded = recording.game_of(file, game)
    elif file.suffix == ".txt":
        if game is not None:
            raise ValueError(f"--game needs a .parquet file, got {file}, which contains one game")
        recorded = notation.read_game(file)
    else:
        raise ValueError(f"the file of a recorded game must end in .txt or .parquet, got {file}")
    if out and out.suffix == ".txt":
        notation.write_game(out, recorded)
    elif out:
        replay_game(recorded).save(out)
    else:
        states = [recorded.states[i : i + 1] for i in range(len(recorded.states))]
        steps = zip(states, [*recorded.actions.tolist(), None], strict=True)
        game_rules = Game(recorded.rules, skip_forced=False)
        show_game(game_rules, recorded.players, recorded.seed, steps, delay)
