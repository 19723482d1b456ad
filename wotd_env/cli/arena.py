"""`wotd arena`: tournaments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from wotd_env import files
from wotd_env.cli.common import FORFEITS, PICTURES, check_writable, cores, explained, ready_policies
from wotd_env.cli.options import Quiet, Seed, Trust, flag, option, rules_options
from wotd_env.cli.progress import progress_bar
from wotd_env.core.rules import Rules

if TYPE_CHECKING:
    from wotd_env.arena import Forfeit


@rules_options()
def command(
    policies: Annotated[list[str], typer.Argument(help="Two or more to compare; a single one plays itself.")],
    games: Annotated[
        int, option("Games of each matchup: for two players, of each pair of policies.")
    ] = 10_000,
    seed: Seed = 0,
    until: Annotated[
        float | None,
        option("Stop a matchup once the error of all its win shares is at most this, such as 0.005."),
    ] = None,
    luck: Annotated[
        str | None,
        option("Also show luck-adjusted shares, using the equities of this policy, such as planner."),
    ] = None,
    file: Annotated[Path, option("The file of the games; run the same command again to continue.")] = Path(
        "arena.sqlite"
    ),
    fresh: Annotated[
        bool, flag("--fresh", "Play everything again and replace the games in the file.")
    ] = False,
    trust: Trust = False,
    workers: Annotated[int | None, option("Number of processes.", "one per core")] = None,
    ray: Annotated[str | None, option("Play on a Ray cluster instead: its address, or auto.")] = None,
    time_limit: Annotated[
        float, option("Seconds for one batch of decisions; a policy that takes longer forfeits its games.")
    ] = 60.0,
    out: Annotated[
        list[Path] | None, option("Write the results too: .json, .csv or .parquet; can be repeated.")
    ] = None,
    plot: Annotated[Path | None, option("Draw ratings and pairings: .png, .svg or .pdf.")] = None,
    quiet: Quiet = False,
    *,
    rules: dict[str, Any],
) -> None:
    """Play a tournament between policies.

    With at least as many policies as seats, every choice of policies is a matchup. With fewer policies than seats,
    some take several seats: every combination with all policies is a matchup. Every game is played from all seats
    with the same dice. The same seed gives the same results, on any number of workers.

    A policy is a name (see `wotd policies`), a file (onnx:FILE), or your own MODULE:OBJECT.
    """
    again = "the same command without --fresh" if fresh else "the same command"
    with explained(f"Finished games are saved in {file}; run {again} to continue."):
        from wotd_env.arena import Tournament, run, show

        tournament = Tournament(tuple(policies), Rules(**rules), games, seed, until, luck)
        ready_policies(policies, trust, tournament.rules)
        for target in out or []:
            check_writable(target, *show.FORMATS)
        if plot:
            check_writable(plot, *PICTURES)
        if file.resolve() in {target.resolve() for target in (*(out or []), plot) if target}:
            raise ValueError(f"{file} is the file of the games: write results to another file")

        pool = None
        if ray:
            from wotd_env.adapters.ray import Cluster

            pool = Cluster(tournament, time_limit, ray, trust)
        with progress_bar("games", quiet) as progress:
            results = run(
                tournament,
                file,
                fresh=fresh,
                workers=cores() if workers is None else workers,
                time_limit=time_limit,
                trust=trust,
                pool=pool,
                progress=progress,
            )
        console = Console(markup=False)
        for table in show.tables(results):
            console.print(table)
        for target in out or []:
            with files.replacing(target) as part:
                show.write(results, part)
        if plot:
            with files.replacing(plot) as part:
                show.draw(results, part)
        if results.forfeits:
            typer.echo(_forfeits(tournament.rules, results.forfeits), err=True)
            raise typer.Exit(FORFEITS)


def _forfeits(rules: Rules, forfeits: list[Forfeit], most: int = 5) -> str:
    """Return a text: the forfeited games, the position of the first forfeit, and the first traceback of a policy."""
    from wotd_env.arena import replay
    from wotd_env.notation import position

    lines = [f"{len(forfeits)} games were forfeited:", *(f"  {forfeit}" for forfeit in forfeits[:most])]
    if len(forfeits) > most:
        lines.append(f"  ... and {len(forfeits) - most} more; --out writes all to a JSON file")
    first = forfeits[0]
    where = position(rules, replay(rules, first.game_seed, first.moves))
    lines.append(f'Position of the first, for wotd_env.notation.parse_position: "{where}"')
    lines += [forfeit.traceback for forfeit in forfeits if forfeit.traceback][:1]
    return "\n".join(lines)
