"""Missing and broken optional packages, for every use of `needed_for`."""

import ast
import importlib
import importlib.util
import sys
import tomllib
from typing import Any, NamedTuple

import pytest

from tests.helpers import ROOT
from wotd_env import Rules, policies
from wotd_env.extras import MissingExtraError, needed_for

BROKEN = {
    "lacks a shared object": "raise ImportError('libcause.so.1: cannot open shared object file')",
    "lacks a package that it needs": "import cause_of_the_failure",
    "lacks a package that it needs in a function": "def load():\n    import cause_of_the_failure\nload()",
    "lacks a part of its own": "from {package} import cause_of_the_failure",
    "gives no name": "raise ModuleNotFoundError('its cause')",
}
CALLS = ("importlib.import_module", "find_spec")  # functions whose argument names a module


class Use(NamedTuple):
    """A `with needed_for(...)` block and one of the packages that it imports."""

    block: ast.With
    extra: str
    package: str


def uses() -> list[Any]:
    """Return each use of `needed_for` once per package."""
    found = []
    for file in sorted([*ROOT.glob("wotd_env/**/*.py"), *ROOT.glob("agents/*.py")]):
        for block in ast.walk(ast.parse(file.read_text())):
            if isinstance(block, ast.With) and "needed_for" in ast.unparse(block.items[0]):
                call = block.items[0].context_expr
                assert isinstance(call, ast.Call)
                name = f"{file.relative_to(ROOT)}:{block.lineno}"
                extra = ast.literal_eval(call.args[1])
                packages = {module.partition(".")[0] for module in imported(block)} - {"wotd_env"}
                found += [
                    pytest.param(Use(block, extra, package), id=f"{name}-{package}")
                    for package in sorted(packages)
                ]
    return found


def imported(block: ast.With) -> list[str]:
    """Return the modules that a block imports or asks for by name."""
    names = []
    for node in ast.walk(block):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.append(str(node.module))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in CALLS:
            names.append(ast.literal_eval(node.args[0]))
    return names


def run(block: ast.With) -> None:
    names = {"needed_for": needed_for, "importlib": importlib, "find_spec": importlib.util.find_spec}
    exec(compile(ast.Module([block], []), "block", "exec"), names | {"__name__": "wotd_env"})


def forget(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make Python import a package again."""
    for name in [name for name in sys.modules if f"{name}.".startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, name)
    importlib.invalidate_caches()


def test_all_uses_are_found():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert len({id(use.values[0].block) for use in uses()}) >= 21
    assert {use.values[0].extra for use in uses()} <= set(extras)


@pytest.mark.parametrize("use", uses())
def test_a_missing_package_names_the_extra(use, monkeypatch):
    forget(use.package, monkeypatch)
    monkeypatch.setitem(sys.modules, use.package, None)
    with pytest.raises(MissingExtraError, match=f"needs {use.package}, part of the extra {use.extra}: pip"):
        run(use.block)


@pytest.mark.parametrize("fault", BROKEN)
@pytest.mark.parametrize("use", [use for use in uses() if use.values[0].package != "choix"])
def test_a_broken_package_names_its_own_cause(use, fault, tmp_path, monkeypatch):
    (tmp_path / use.package).mkdir()
    (tmp_path / use.package / "__init__.py").write_text(BROKEN[fault].format(package=use.package))
    monkeypatch.syspath_prepend(tmp_path)
    forget(use.package, monkeypatch)
    with pytest.raises(ImportError, match="cause") as caught:
        run(use.block)
    assert not isinstance(caught.value, MissingExtraError)
    assert "extra" not in str(caught.value)


def test_a_broken_library_of_a_policy_is_not_taken_for_unsupported_rules(monkeypatch):
    def fail(name: str) -> Any:
        raise ImportError("libcause.so.1: cannot open shared object file")

    monkeypatch.setattr(policies, "make_policy", fail)
    with pytest.raises(ImportError, match="libcause"):
        policies.plays("ppo", Rules())
