"""`wotd arena`: tournaments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from wotd_env.cli.common import (
    FORFEITS,
    PICTURES,
    check_writable,
    cores,
    explained,
    progress_bar,
    ready_policies,
    replacing,
)
from wotd_env.cli.options import Quiet, Seed, Trust, rules_options
from wotd_env.core.rules import Rules

if TYPE_CHECKING:
    from wotd_env.arena import Forfeit


@rules_options()
def command(
    policies: Annotated[list[str], typer.Argument(help="Two or more to compare; one alone plays itself.")],
    games: Annotated[
        int, typer.Option(help="Games of each matchup: for two players, of each pair of policies.")
    ] = 10_000,
    seed: Seed = 0,
    until: Annotated[
        float | None,
        typer.Option(
            help="Stop a matchup once all its win shares are known to plus or minus this, such as 0.005."
        ),
    ] = None,
    luck: Annotated[
        str | None,
        typer.Option(
            help="Take the luck of the dice out, as measured by a policy that knows equities: planner."
        ),
    ] = None,
    file: Annotated[
        Path, typer.Option(help="Where games are kept; the same command goes on from there.")
    ] = Path("arena.sqlite"),
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Play everything anew; the games that are kept are replaced.")
    ] = False,
    trust: Trust = False,
    workers: Annotated[
        int | None, typer.Option(help="Processes that play.", show_default="one for each core")
    ] = None,
    ray: Annotated[
        str | None, typer.Option(help="Play on a Ray cluster instead: its address, or auto.")
    ] = None,
    time_limit: Annotated[
        float,
        typer.Option(
            help="Seconds for one batch of decisions; a policy that takes longer forfeits its games."
        ),
    ] = 60.0,
    out: Annotated[
        list[Path] | None,
        typer.Option(help="Write the results too: .json, .csv or .parquet; can be repeated."),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw ratings and pairings: .png, .svg or .pdf.")] = None,
    quiet: Quiet = False,
    *,
    rules: dict[str, Any],
) -> None:
    """Let policies play a tournament.

    With at least as many policies as seats every choice of them is a matchup; with fewer they share the seats in every
    way. Every game is played from all seats with the same dice, and intervals take that into account. The same
    seed gives the same results, on any number of workers.

    A policy is a name (see `wotd policies`), a file (onnx:FILE), or MODULE:OBJECT of your own.
    """
    goes_on = "the same command without --fresh goes on" if fresh else "the same command goes on"
    with explained(f"What is done is kept in {file}: {goes_on}."):
        from wotd_env.arena import Tournament, run, show

        tournament = Tournament(tuple(policies), Rules(**rules), games, seed, until, luck)
        ready_policies(policies, trust, tournament.rules)
        for target in out or []:
            check_writable(target, *show.FORMATS)
        if plot:
            check_writable(plot, *PICTURES)
        if file.resolve() in {target.resolve() for target in (*(out or []), plot) if target}:
            raise ValueError(f"{file} is where games are kept: results must be written to another file")

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
            with replacing(target) as part:
                show.write(results, part)
        if plot:
            with replacing(plot) as part:
                show.draw(results, part)
        if results.forfeits:
            typer.echo(_forfeits(tournament.rules, results.forfeits), err=True)
            raise typer.Exit(FORFEITS)


def _forfeits(rules: Rules, forfeits: list[Forfeit], most: int = 5) -> str:
    """Say which games were forfeited, how to see the first of them again, and where the first policy raised."""
    from wotd_env.arena import replay
    from wotd_env.notation import position

    lines = [f"{len(forfeits)} games were forfeited:", *(f"  {forfeit}" for forfeit in forfeits[:most])]
    if len(forfeits) > most:
        lines.append(f"  ... and {len(forfeits) - most} more, all of them in a JSON file (--out)")
    first = forfeits[0]
    where = position(rules, replay(rules, first.game_seed, first.moves))
    lines.append(f'The first, to be read by wotd_env.notation.parse_position: "{where}"')
    lines += [forfeit.traceback for forfeit in forfeits if forfeit.traceback][:1]
    return "\n".join(lines)
