"""Releases: version, workflows, and package contents."""

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
def test_files_for_the_code_host_are_valid_yaml(file):
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    assert yaml.safe_load(file.read_text())


@pytest.mark.parametrize(
    "file", [file for file in FORGE if file.parent.name == "workflows"], ids=lambda f: f.name
)
def test_workflows_pin_actions_and_limit_permissions(file):
    text = file.read_text()
    actions = re.findall(r"uses: (\S+)", text)
    assert actions
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", action) for action in actions)
    assert "permissions:\n  contents: read\n" in text
    commands = re.findall(r"run: make ([\w-]+)", text)
    assert commands
    for target in commands:
        assert re.search(rf"^{target}:.* ## ", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_compare_reports_missing_and_extra_files():
    release.compare("a wheel", {"wotd_env/__init__.py"}, {"wotd_env/__init__.py"})
    for inside, wanted in (({"a"}, {"a", "b"}), ({"a", "b"}, {"a"})):
        with pytest.raises(SystemExit, match="'b'"):
            release.compare("a wheel", inside, wanted)


def test_smoke_tested_extras_exist():
    extras = release.extras()
    assert set(release.SMOKE) <= {*extras, "bare"}
    assert not release.NOT_FOR_USERS - set(extras)
