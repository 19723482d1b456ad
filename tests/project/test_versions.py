"""Versions of the dependencies: minimums, locks and hashes."""

import importlib.metadata
import json
import re
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.helpers import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
DECLARED = [
    Requirement(line)
    for lines in (PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"].values())
    for line in lines
    if not line.startswith("wotd-env")
]
MAKEFILE = (ROOT / "Makefile").read_text()
OLDEST = Path(sys.prefix).resolve() == ROOT / ".venv" / "oldest"
LOCKS = ("constraints.txt", "constraints/hashes.txt", "constraints/build.txt")


def minimum(requirement: Requirement) -> Version | None:
    """Return the lower bound of a requirement."""
    bounds = [Version(each.version) for each in requirement.specifier if each.operator in (">=", "==")]
    return bounds[0] if bounds else None


def locked(file: str) -> dict[str, tuple[str, int]]:
    """Return the versions in a lock file, and the number of hashes for each, by name of the package."""
    found: dict[str, tuple[str, int]] = {}
    for entry in re.sub(r"\\\n", " ", (ROOT / file).read_text()).splitlines():
        if not entry.startswith("#"):
            name, _, rest = entry.partition("==")
            found[str(canonicalize_name(name))] = rest.split()[0], entry.count("--hash=sha256:")
    return found


@pytest.mark.parametrize("requirement", DECLARED, ids=str)
def test_every_dependency_has_one_minimum(requirement):
    bounds = {minimum(other) for other in DECLARED if other.name == requirement.name}
    assert None not in bounds
    assert len(bounds) == 1


@pytest.mark.skipif(not OLDEST, reason="needs the environment of make test-oldest")
@pytest.mark.parametrize("requirement", DECLARED, ids=str)
def test_the_minimum_is_installed(requirement):
    assert Version(importlib.metadata.version(requirement.name)) == minimum(requirement)


def test_minimums_are_tested_on_the_oldest_python():
    assert PROJECT["project"]["requires-python"] == ">=3.11"
    assert "uv venv --clear --python 3.11 .venv/oldest" in MAKEFILE
    assert "run: make test-oldest" in (ROOT / ".github" / "workflows" / "ci.yml").read_text()


@pytest.mark.parametrize("requirement", DECLARED, ids=str)
def test_constraints_satisfy_every_requirement(requirement):
    name = canonicalize_name(requirement.name)
    if name != "jupyterlab":  # no target of the Makefile installs it
        versions = locked("constraints/clients.txt") | locked("constraints.txt")
        assert requirement.specifier.contains(versions[name][0])


def test_locks_agree_and_have_hashes():
    versions = {name: version for name, (version, _) in locked("constraints.txt").items()}
    for file in LOCKS[1:]:
        for name, (version, hashes) in locked(file).items():
            assert hashes, name
            assert versions[name] == version
    unchecked = {"torch", "sympy", "networkx"}  # torch has files per accelerator, see the Makefile
    others = {"jupyterlab", "pgx", "envpool", "moviepy"}  # of the extras notebooks, bench and video
    named = {canonicalize_name(each.name) for each in DECLARED}
    assert named - locked("constraints/hashes.txt").keys() <= unchecked | others


def test_the_build_backend_is_pinned_and_has_a_hash():
    build = locked("constraints/build.txt")
    for line in PROJECT["build-system"]["requires"]:
        requirement = Requirement(line)
        assert str(requirement.specifier) == f"=={build[requirement.name][0]}"


def test_the_lock_of_npm_holds_the_versions_of_package_json():
    wanted = json.loads((ROOT / "package.json").read_text())["devDependencies"]
    packages = json.loads((ROOT / "package-lock.json").read_text())["packages"]
    assert packages.pop("")["devDependencies"] == wanted
    assert all(packages[f"node_modules/{name}"]["version"] == version for name, version in wanted.items())
    assert all(package["integrity"].startswith("sha512-") for package in packages.values())
    assert "npm ci" in MAKEFILE


@pytest.mark.parametrize("file", [*LOCKS, "package-lock.json", ".npmrc"])
def test_locks_name_no_registry(file):
    text = (ROOT / file).read_text().removeprefix("omit-lockfile-registry-resolved=true")
    assert not re.search(r"resolved|registry|--index-url|--find-links|file:| @ ", text)


def test_a_library_whose_internals_are_used_has_an_upper_bound():
    uses = [file for file in ROOT.glob("wotd_env/**/*.py") if "from uvicorn.protocols" in file.read_text()]
    (bounds,) = (each.specifier for each in DECLARED if each.name == "uvicorn")
    assert not uses or any(each.operator == "<" and each.version.startswith("0.") for each in bounds)
