"""The error for a missing optional dependency."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import walk_tb

from gymnasium.error import DependencyNotInstalled


class MissingExtraError(ModuleNotFoundError, DependencyNotInstalled):
    """Error for a missing package of an extra. Gymnasium's tools expect the base class DependencyNotInstalled."""


@contextmanager
def needed_for(what: str, extra: str) -> Iterator[None]:
    """Raise MissingExtraError if a package that the `with` block imports is not installed.

    The error of an installed package that fails to import is left as it is, since it names the cause.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package, _, part = (error.name or "").partition(".")
        if not package or (part and sys.modules.get(package)) or _is_imported_by_a_library(error):
            raise
        # `pip install` works without a release on PyPI: pip reads the extras of an installed package from its metadata.
        raise MissingExtraError(
            f"{what} needs {package}, part of the extra {extra}: pip install 'wotd-env[{extra}]', "
            f"or '.[{extra}]' in a checkout",
            name=package,
        ) from error


def _is_imported_by_a_library(error: ModuleNotFoundError) -> bool:
    """Return whether code of another package imports the missing module."""
    # The first two frames are those of `needed_for` and of the `with` block.
    _, _, *deeper = (frame for frame, _ in walk_tb(error.__traceback__))
    importers = (frame for frame in deeper if frame.f_code.co_name == "<module>")
    return any(not frame.f_globals.get("__name__", "").startswith("wotd_env") for frame in importers)
