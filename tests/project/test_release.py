"""What is published says the same everywhere, and holds what it must."""

from __future__ import annotations

import re

import pytest

import wotd_env
from tests.helpers import ROOT
from tools import release

FORGE = sorted((ROOT / ".github").rglob("*.yml"))


def test_citation_has_the_version_of_the_package():
    text = (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.*)$", text, re.MULTILINE) == [wotd_env.__version__]


@pytest.mark.parametrize("file", [*FORGE, ROOT / "CITATION.cff"], ids=lambda file: file.name)
def test_files_for_the_host_can_be_read(file):
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    assert yaml.safe_load(file.read_text())


@pytest.mark.parametrize(
    "file", [file for file in FORGE if file.parent.name == "workflows"], ids=lambda f: f.name
)
def test_workflows_run_known_code_with_few_rights(file):
    text = file.read_text()
    actions = re.findall(r"uses: (\S+)", text)
    assert actions
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", action) for action in actions)
    assert "permissions:\n  contents: read\n" in text
    commands = re.findall(r"run: make ([\w-]+)", text)
    assert commands
    for target in commands:
        assert re.search(rf"^{target}:.* ## ", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_packages_hold_exactly_what_they_should():
    release.compare("a wheel", {"wotd_env/__init__.py"}, {"wotd_env/__init__.py"})
    for inside, wanted in (({"a"}, {"a", "b"}), ({"a", "b"}, {"a"})):
        with pytest.raises(SystemExit, match="'b'"):
            release.compare("a wheel", inside, wanted)


def test_what_is_tried_is_an_extra_of_the_project():
    extras = release.extras()
    assert set(release.SMOKE) <= {*extras, "bare"}
    assert not release.NOT_FOR_USERS - set(extras)
