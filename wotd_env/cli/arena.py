"""`wotd arena`: tournaments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from wotd_env import files
from wotd_env.cli.common import FORFEITS, PICTURES, check_writable, explained, progress_bar, ready_policies
from wotd_env.cli.options import CORES, QUIET, SEED, TRUST, option, rules_options
from wotd_env.core.rules import Rules


@rules_options()
def command(
    rules: dict[str, Any],
    policies: list[str] = typer.Argument(
        help="Two or more policies to compare; a single policy plays itself."
    ),
    games: int = option(10_000, "Games per matchup; with two players, a matchup is a pair of policies."),
    seed: int = SEED,
    until: float | None = option(
        None,
        "Stop a matchup when the 95 % interval of each win share is at most ± this number, such as 0.005.",
    ),
    luck: str | None = option(
        None, "Also show luck-adjusted win shares. This policy, such as planner, estimates the luck."
    ),
    file: Path = option(
        Path("arena.sqlite"), "File that stores the games; the same command continues the tournament."
    ),
    fresh: bool = option(False, "Play everything again and replace the games in the file.", "--fresh"),
    trust: bool = TRUST,
    workers: int = option(CORES, "Number of processes.", shown="one per core"),
    ray: str | None = option(
        None, "Play on the Ray cluster with this address; auto: the cluster on this machine."
    ),
    time_limit: float = option(60.0, "Seconds for a batch of decisions; a slower policy forfeits its games."),
    out: list[Path] | None = option(
        None, "Also write the results to this file, .json or .csv; can be repeated."
    ),
    plot: Path | None = option(None, "Draw ratings and pairings: .png, .svg or .pdf."),
    quiet: bool = QUIET,
) -> None:
    """Play a tournament between policies.

    A matchup is a choice of a policy for each seat. With at least as many policies as seats, no matchup contains a
    policy twice. With fewer policies, every matchup contains all policies, and some policies take several seats. Each
    game is repeated with the same dice, until every policy has played in every seat. The same seed gives the same
    results, on any number of workers.

    A policy is a name (see `wotd policies`), a file (onnx:FILE), or your own MODULE:OBJECT.
    """
    again = "the same command without --fresh" if fresh else "the same command"
    with explained(f"Finished games are saved in {file}; run {again} to continue."):
        from wotd_env.arena import Tournament, replay, run, show
        from wotd_env.notation import position

        tournament = Tournament(tuple(policies), Rules(**rules), games, seed, until, luck)
        ready_policies(policies, trust, tournament.rules)
        for target in out or []:
            check_writable(target, *show.FORMATS)
        check_writable(plot, *PICTURES)
        if file.resolve() in {target.resolve() for target in (*(out or []), plot) if target}:
            raise ValueError(f"{file} is the file of the games: write results to another file")

        pool = None
        if ray:
            from wotd_env.adapters.ray import Cluster

            pool = Cluster(tournament, time_limit, ray, trust)
        with progress_bar("games", quiet) as progress:
            results = run(
                tournament, file, fresh=fresh, workers=workers, time_limit=time_limit, trust=trust, pool=pool,
                progress=progress,
            )  # fmt: skip
        for target in out or []:
            with files.replacing(target) as part:
                show.write(results, part)
        if plot:
            show.draw(results, plot)
        console = Console(markup=False)
        for table in show.tables(results):
            console.print(table)
        if forfeits := results.forfeits:
            lines = [f"{len(forfeits)} games were forfeited:", *(f"  {forfeit}" for forfeit in forfeits[:5])]
            if len(forfeits) > 5:
                lines.append(f"  ... and {len(forfeits) - 5} more; --out writes all to a JSON file")
            where = position(
                tournament.rules, replay(tournament.rules, forfeits[0].game_seed, forfeits[0].moves)
            )
            lines.append(f'Position of the first, for wotd_env.notation.parse_position: "{where}"')
            lines += [forfeit.traceback for forfeit in forfeits if forfeit.traceback][:1]
            typer.echo("\n".join(lines), err=True)
            raise typer.Exit(FORFEITS)
