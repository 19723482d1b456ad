"""The tracks of the benchmark and the entries, as docs/reference/tracks.md and each `entry.toml` describe them."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple, get_type_hints

from wotd_env import Rules
from wotd_env.benchmark import measuring
from wotd_env.benchmark.generalization import BOARDS

FOLDER = Path(__file__).parent
WEIGHTS = FOLDER.parent / "runs" / "entries"  # folder for weights that are too large for the repository


class Track(NamedTuple):
    """The protocol of a track (docs/reference/tracks.md)."""

    unit: str
    budgets: tuple[int, ...]
    players: tuple[int, ...] = (2,)  # numbers of players for which win shares are measured
    games: int = measuring.GAMES
    size: int | None = None  # number of graded positions of each kind and stage; None means all
    rules: Rules = Rules()


TRACKS = {
    "samples": Track("decisions", (100_000, 1_000_000, 10_000_000)),
    "time": Track("minutes", (1, 5, 60)),
    "players": Track("minutes", (1, 5, 60), players=(3, 4, 5)),
    "offline": Track("games", (12_000,)),
    "planning": Track("simulations", (1, 3, 16, 50, 200), games=100, size=100),
    "generalization": Track("decisions", (1_000_000, 10_000_000), rules=BOARDS[2]),
    "generalization-time": Track("minutes", (5,), rules=BOARDS[2]),
}


class Entry(NamedTuple):
    """The content of `entry.toml`.

    Each annotation ends with two strings: a regular expression for the value as JSON, and a description for errors.
    """

    title: Annotated[str, '".+"', "text"]
    authors: Annotated[list[str], r'\[".+"\]', 'names, such as ["Ada Lovelace"]']
    track: Annotated[str, f'"({"|".join(TRACKS)})"', f"one of {', '.join(TRACKS)}"]
    budgets: Annotated[list[int], r"\[\d+(, \d+)*\]", "integers, such as [100000]"]
    seeds: Annotated[list[int], r"\[\d+(, \d+)*\]", "integers, such as [0, 1, 2, 3, 4]"]
    hardware: Annotated[str, '".+"', "text"]
    commit: Annotated[str, '"[0-9a-f]{7,40}"', "what `git rev-parse HEAD` prints"]
    claim: Annotated[str, '".+"', "text"]
    planner: Annotated[bool, "true|false|null", "true or false"] = False


def read(name: str) -> Entry:
    """Read the `entry.toml` of an entry. Raise OSError if the file is unreadable, and ValueError for a wrong field."""
    file = FOLDER / name / "entry.toml"
    values = tomllib.loads(file.read_text())
    if unknown := values.keys() - set(Entry._fields):
        raise ValueError(f"{file}: {min(unknown)} is unknown; the fields are {', '.join(Entry._fields)}")
    for field, hint in get_type_hints(Entry, include_extras=True).items():
        pattern, words = hint.__metadata__
        if not re.fullmatch(pattern, json.dumps(values.get(field), default=str)):
            raise ValueError(f"{file}: {field} must be {words}, got {values.get(field)!r}")
    track = TRACKS[values["track"]]
    if wrong := set(values["budgets"]) - set(track.budgets):
        known = f"{track.budgets} {track.unit}"
        raise ValueError(f"{file}: budgets of {values['track']} are {known}, got {min(wrong)}")
    return Entry(**values)


def results(name: str, entry: Entry) -> Iterator[tuple[int, int, Path]]:
    """Yield the budget, the seed and the file of each result."""
    for budget in entry.budgets:
        for seed in entry.seeds:
            yield budget, seed, FOLDER / name / "results" / f"{budget}-{seed}.json"


def names() -> list[str]:
    """Return the names of all entries."""
    return sorted(file.parent.name for file in FOLDER.glob("*/entry.toml"))
