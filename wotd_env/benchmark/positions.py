"""Read and write Parquet files of positions. A position is a decision, with the equity of every legal action."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import wotd_env
from wotd_env import files
from wotd_env.analysis import KINDS
from wotd_env.core.arguments import check_choice
from wotd_env.core.rules import Rules
from wotd_env.core.state import States
from wotd_env.extras import needed_for
from wotd_env.recording import reading
from wotd_env.reporting import plain_spaces

with needed_for("a file of positions", "arena"):
    import pyarrow as pa
    from pyarrow import parquet

SPLITS = ("train", "validation", "test")  #: names of the sets; the positions of a game are all in one set
STAGES = ("opening", "middle", "endgame")  #: thirds of a game, see `stages`

FORMAT = 1
FOLDER = Path(__file__).parent
_UNREADABLE = "must be a file written by wotd positions, got: {!r}"


class Positions(NamedTuple):
    """M positions, sorted by game, with the equities of their legal actions. A is the size of the action space.

    A game has at most one position for each pair of kind and stage. The field `rng` of every state is 0, so `state`
    does not reveal future dice.
    """

    rules: Rules
    split: str
    state: States  #: STATE (M,): the seat in the field "player" decides
    mask: NDArray[np.int8]  #: (M, A): 1 for legal actions; each row has at least two legal actions
    equity: NDArray[np.float32]  #: (M, A): expected reward, nan for illegal actions
    error: NDArray[np.float32]  #: (M, A): standard error of the equity (0 with two players), nan if illegal
    kind: NDArray[np.int64]  #: (M,): index into `wotd_env.analysis.KINDS`
    stage: NDArray[np.int64]  #: (M,): index into STAGES
    game: NDArray[np.int64]  #: (M,): number of the game, which is also its seed

    def regret(self, actions: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return the regret of one legal action per position, float64 (M,).

        The regret is the equity of the best action minus the equity of the given action.
        """
        chosen = self.equity[np.arange(len(actions)), actions].astype(np.float64)
        return np.asarray(np.nanmax(self.equity, 1) - chosen)

    def take(self, rows: NDArray[np.integer]) -> Positions:
        """Return the positions at the indices `rows`, integers (N,)."""
        arrays: Any = (values[rows] for values in self[2:])
        return Positions(self.rules, self.split, *arrays)

    def first(self, size: int) -> Positions:
        """Return the first `size` positions for each pair of kind and stage, and each layout of dead pieces."""
        layout = np.unique(self.state["dead"], axis=0, return_inverse=True)[1]
        cells = (layout * len(KINDS) + self.kind) * len(STAGES) + self.stage
        rows = [np.flatnonzero(cells == cell)[:size] for cell in np.unique(cells)]
        return self.take(np.sort(np.concatenate(rows)))

    def digest(self) -> str:
        """Return the SHA-256 of the rules, the split and all values. It does not depend on the version of pyarrow."""
        digest = hashlib.sha256(json.dumps([asdict(self.rules), self.split]).encode())
        legal, state = self.mask == 1, self.state.copy()
        state["players"] = 0  # as in the bundled files, which are older than this field
        values = [state, self.mask, self.equity[legal], self.kind, self.stage, self.game]
        for each in [*values, self.error[legal]] if has_errors(self.rules) else values:
            digest.update(np.ascontiguousarray(each).tobytes())
        return digest.hexdigest()


def has_errors(rules: Rules) -> bool:
    """Return whether the equities are estimates instead of exact values."""
    return rules.players > 2


def stages(rules: Rules, state: States) -> NDArray[np.int64]:
    """Return the stage of each state as an index into STAGES, int64 (N,).

    The progress of a seat is the sum of the space numbers of its pieces. A piece beyond the first numbered space counts
    as if it were on this space. The game ends when a seat reaches the maximal progress. The stage depends on the
    largest progress of a seat: opening below 1/3 of the maximal progress, middle below 2/3, endgame from 2/3 on.
    """
    progress = np.minimum(state["pieces"], rules.spaces + 1).sum(2, dtype=np.int64).max(1)
    whole = state["pieces"].shape[2] * (rules.spaces + 1)
    stage: NDArray[np.int64] = np.minimum(progress * len(STAGES) // whole, len(STAGES) - 1)
    return stage


def bundled() -> tuple[Rules, ...]:
    """Return the rules of the bundled positions, sorted by dead pieces, players, powers and plain spaces."""
    found = [read_about(file)[0] for file in FOLDER.glob("*.parquet")]
    names = ("dead_pieces", "players", "powers", "spaces")
    return tuple(sorted(found, key=lambda rules: [getattr(rules, name) for name in names]))


def bundled_file(rules: Rules, split: str) -> Path:
    """Return the path of bundled positions; the file may be missing, or have other rules."""
    dead = "-dead" if rules.dead_pieces else ""
    return FOLDER / f"{rules.players}-{rules.powers}-{rules.spaces}{dead}-{split}.parquet"


def describe_board(rules: Rules) -> str:
    """Describe rules in words, such as "3 players, 7 plain spaces with any powers"."""
    players = "" if rules.players == 2 else f"{rules.players} players, "
    powers = "" if rules.powers == "none" else f" with {rules.powers} powers"
    colors = " and random colors" if powers and rules.colors == "random" else ""
    dead = f" and dead_pieces={rules.dead_pieces}" if rules.dead_pieces else ""
    return f"{players}{plain_spaces(rules.spaces)}{powers}{colors}{dead}"


def load(split: str = "test", rules: Rules | None = None, *, file: str | Path | None = None) -> Positions:
    """Read positions into arrays.

    Args:
        split: `"train"`, `"validation"` or `"test"`.
        rules: the rules of the positions; by default the rules of `file`. If `file` is not given either, the default
            is `Rules()`, the basic game of two players.
        file: a file written by `wotd positions`; by default the bundled file for `rules`. Only test positions are
            bundled.

    Raises:
        FileNotFoundError: if `file` does not exist.
        ValueError: if no such positions are bundled, the file is damaged, or the file has another split or other rules.
    """
    check_choice("split", split, SPLITS)
    wanted = Rules() if rules is None else rules
    if file is None:
        file = bundled_file(wanted, split)
        if not file.exists() or read_about(file)[0] != wanted:
            boards = "; ".join(map(describe_board, bundled()))
            options = f"--players {wanted.players} --spaces {wanted.spaces} --powers {wanted.powers}"
            if wanted.dead_pieces:
                options += f" --dead-pieces '{wanted.dead_pieces}'"
            raise ValueError(
                f"no {split} positions for {describe_board(wanted)} are bundled; there are test positions for "
                f"{boards}. `wotd positions {options} --split {split} --out FILE` draws others, to be read with "
                "wotd_env.benchmark.load(file=FILE)"
            )
    found, found_split, digest = read_about(Path(file))
    if (found_split, rules or found) != (split, found):
        what = f"{found_split} positions for {found}, not {split} positions for {wanted}"
        raise ValueError(f"{file} has {what}")
    with reading.errors_name(file, _UNREADABLE):
        column = reading.as_arrays(parquet.read_table(file, partitioning=None))
        state, mask, game = column["state"], column["mask"], column["game"].to_numpy().copy()
        equity = reading.as_values(column["equity"], mask, np.nan)
        exact = np.where(mask == 1, np.float32(0), np.float32(np.nan))
        error = reading.as_values(column["error"], mask, np.nan) if has_errors(found) else exact
        kind, stage = (
            reading.as_indices(column[name], of) for name, of in (("kind", KINDS), ("stage", STAGES))
        )
        positions = Positions(found, split, state, mask, equity, error, kind, stage, game)
        if positions.digest() != digest:
            raise ValueError("its values do not match its digest")
    return positions


def write(positions: Positions, file: Path, drawn: dict[str, Any]) -> None:
    """Write positions to a file, with `drawn` as additional metadata. Raise OSError if the file cannot be written."""
    rules, mask = positions.rules, positions.mask
    about = {"format": FORMAT, "version": wotd_env.__version__, "rules": asdict(rules)}
    about |= {"split": positions.split, "digest": positions.digest(), **drawn}
    content = {
        "game": positions.game,
        "kind": pa.DictionaryArray.from_arrays(positions.kind.astype(np.int8), KINDS),
        "stage": pa.DictionaryArray.from_arrays(positions.stage.astype(np.int8), STAGES),
        **reading.state_columns(positions.state, mask),
        "equity": reading.legal_values(positions.equity, mask),
    }
    if has_errors(rules):
        content["error"] = reading.legal_values(positions.error, mask)
    metadata = {reading.KEY: json.dumps(about).encode()}
    table = pa.Table.from_pydict(content, schema=schema(rules).with_metadata(metadata))
    with files.replacing(file) as part:
        parquet.write_table(table, part, compression="zstd", compression_level=19)


def schema(rules: Rules) -> pa.Schema:
    """Return the Arrow schema of a file of positions, without metadata."""
    name = pa.dictionary(pa.int8(), pa.string())
    shared = {each: reading.schema(rules).field(each).type for each in ("state", "mask", "equity")}
    types = {"game": pa.int64(), "kind": name, "stage": name, **shared}
    if has_errors(rules):
        types["error"] = types["equity"]
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in types.items()])


def read_about(file: Path) -> tuple[Rules, str, str]:
    """Return the rules, the split and the digest from the metadata of a file of positions."""
    with reading.errors_name(file, _UNREADABLE), parquet.ParquetFile(file) as opened:
        about = json.loads(opened.schema_arrow.metadata[reading.KEY])
        if about["format"] != FORMAT:
            raise ValueError(f"it has format {about['format']}, this version reads {FORMAT}")
        rules = Rules.from_dict(about["rules"])
        if not opened.schema_arrow.equals(schema(rules)):
            raise ValueError("it has other columns")
        return rules, about["split"], about["digest"]


CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    **{name: f"cr:{name}" for name in ("arrayShape", "column", "extract", "field", "fileObject", "isArray")},
    **{name: f"cr:{name}" for name in ("isLiveDataset", "recordSet", "source")},
}
COLUMNS = {
    "game": ("sc:Integer", "number and seed of the game"),
    "kind": ("sc:Text", "kind of the decision"),
    "stage": ("sc:Text", "third of the game"),
    "state": ("sc:Text", "the position, a record of 64 bytes"),
    "mask": ("sc:Integer", "1 for legal actions"),
    "equity": ("sc:Float", "expected reward of each legal action, in order; exact with two players"),
    "error": ("sc:Float", "standard error of each equity, only with more than two players"),
}


def croissant(files: Sequence[str | Path], url: str, published: str) -> dict[str, Any]:
    """Return the Croissant 1.1 metadata of files of positions, as a dict that `json.dumps` accepts.

    Args:
        files: files written by `wotd positions`, to be published in the folder of the metadata.
        url: page of the data set.
        published: date of publication, such as `"2026-11-25"`.

    Raises:
        FileNotFoundError, ValueError: if a file is missing or not a file of positions.
    """
    objects, record_sets = [], []
    for path in map(Path, files):
        file, name, (rules, split, _) = path.name, path.stem, read_about(path)
        objects.append(
            {
                "@type": "cr:FileObject",
                "@id": file,
                "name": file,
                "description": f"{split} positions of {rules}",
                "contentUrl": file,
                "contentSize": f"{path.stat().st_size} B",
                "encodingFormat": "application/x-parquet",
                "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            }
        )
        fields = [
            {
                "@type": "cr:Field",
                "@id": f"{name}/{column}",
                "name": column,
                "description": words,
                "dataType": kind,
                "source": {"fileObject": {"@id": file}, "extract": {"column": column}},
                **({"isArray": True, "arrayShape": "-1"} if column in ("mask", "equity", "error") else {}),
            }
            for column, (kind, words) in COLUMNS.items()
            if column in schema(rules).names
        ]
        record_sets.append({"@type": "cr:RecordSet", "@id": name, "name": name, "field": fields})
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": "wotd-positions",
        "description": "Decisions of the dice game Way of the Dragon, with the equity of every legal action.",
        "license": "https://spdx.org/licenses/MIT.html",
        "url": url,
        "creator": {"@type": "sc:Organization", "name": "the wotd-env authors"},
        "datePublished": published,
        "version": wotd_env.__version__,
        "isLiveDataset": False,
        "rai:dataCollection": "Simulated games of policies of many strengths; exact or rolled-out equities.",
        "rai:dataLimitations": "Kinds and stages are balanced, so frequencies differ from those of real games.",
        "rai:dataBiases": "Positions come from games of programs, not of people.",
        "rai:personalSensitiveInformation": "None.",
        "distribution": objects,
        "recordSet": record_sets,
    }
