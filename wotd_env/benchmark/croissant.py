"""Croissant metadata (MLCommons, JSON-LD) for files of positions."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import wotd_env
from wotd_env.benchmark.positions import read_about, schema

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
    """Return the Croissant 1.1 metadata of files of positions, for `json.dumps`.

    Args:
        files: files that `draw` wrote and that are published beside the metadata.
        url: page of the data set.
        published: date of publication, such as `"2026-11-25"`.

    Raises:
        FileNotFoundError, ValueError: if a file is missing or not a file of positions.
    """
    paths = [Path(file) for file in files]
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
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": path.name,
                "name": path.name,
                "description": f"{split} positions of {rules}",
                "contentUrl": path.name,
                "contentSize": f"{path.stat().st_size} B",
                "encodingFormat": "application/x-parquet",
                "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            }
            for path in paths
            for rules, split, _ in [read_about(path)]
        ],
        "recordSet": [_record_set(path) for path in paths],
    }


def _record_set(path: Path) -> dict[str, Any]:
    """Return the Croissant record set of a file, which describes its columns."""
    file, name = path.name, path.stem
    columns = schema(read_about(path)[0]).names
    arrays = {"isArray": True, "arrayShape": "-1"}
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{name}/{column}",
                "name": column,
                "description": words,
                "dataType": kind,
                "source": {"fileObject": {"@id": file}, "extract": {"column": column}},
                **(arrays if column in ("mask", "equity", "error") else {}),
            }
            for column, (kind, words) in COLUMNS.items()
            if column in columns
        ],
    }
