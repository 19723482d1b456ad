"""The engine as a WebAssembly module: `python -m tools.wasm` builds it, docs/how-to/wasm.md describes it."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tools.pages import ROOT
from wotd_env import sources

MODULE = ROOT / "wotd_env" / "web" / "wasm" / "wotd.wasm"
BUILT = Path(__file__).with_name("built.json")
"""What the module was built from; `stamp` returns the text."""


def stamp() -> str:
    """Return digests of the module and of its sources, and the versions of the compilers, as JSON."""
    about = {"sources": source_digest(), "module": digest(MODULE.read_bytes()), "versions": versions()}
    return json.dumps(about, indent=2) + "\n"


def source_digest() -> str:
    """Return a digest of the Python sources that the module is compiled from."""
    files = sources.reached("tools.wasm.build")
    texts = {file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8") for file in files}
    return digest(repr(sorted(texts.items())).encode())


def digest(content: bytes) -> str:
    """Return the SHA-256 digest of bytes."""
    return hashlib.sha256(content).hexdigest()


def versions() -> dict[str, Any]:
    """Return the versions that determine the bytes of the module; None for the linker if it is missing."""
    python = ".".join(platform.python_version_tuple()[:2])
    linker = shutil.which("wasm-ld")
    linked_by = subprocess.check_output([linker, "--version"], text=True).strip() if linker else None
    libraries = {name: version(name) for name in ("numpy", "numba", "llvmlite")}
    return {"python": python, **libraries, "wasm-ld": linked_by}
