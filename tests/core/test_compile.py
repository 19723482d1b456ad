"""`kernel`: the cache and its invalidation, the messages to the user, and unwritable folders.

Each test starts new processes on a small stub package with a copy of the real decorator.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from wotd_env import files, sources
from wotd_env.core import compilation

ANNOUNCEMENT = "compiling wotd_env.core.engine.advance and other kernels, once for these sources"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Return a package whose kernels are not compiled yet."""
    return write_package(tmp_path)


def write_package(folder: Path) -> Path:
    """Write a package with the decorator, kernels, a module they import indirectly, and an unrelated module."""
    package = folder / "wotd_env"
    core = package / "core"
    core.mkdir(parents=True)
    shutil.copy(compilation.__file__, core / "compilation.py")
    for module in (files, sources):
        shutil.copy(str(module.__file__), package)
    (package / "__init__.py").touch()
    (core / "__init__.py").touch()
    (package / "tables.py").write_text("STEP = 1\n")
    (core / "rules.py").write_text("from ..tables import STEP\n")
    (core / "engine.py").write_text(
        "from wotd_env.core import rules\n"
        "from wotd_env.core.compilation import kernel\n"
        "STEP = rules.STEP\n"
        "@kernel\n"
        "def inner(x): return x + STEP\n"
        "@kernel\n"
        "def advance(x): return inner(x)\n"
    )
    (package / "unrelated.py").write_text("from wotd_env.core.engine import advance\n")
    return package


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    package = write_package(tmp_path_factory.mktemp("compiled"))
    advance(package)
    return package


@pytest.fixture
def compiled(compiled_once: Path, tmp_path: Path) -> Path:
    """Return a copy of the package and its cache; no path is part of a cache file's name."""
    return shutil.copytree(compiled_once.parent, tmp_path / "copy") / "wotd_env"


SCRIPT = "from wotd_env.core.engine import advance; print(advance(0))"


def started(package: Path, script: str, **environment: str) -> subprocess.Popen[str]:
    """Start Python on a package, with a cache folder beside the package."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    inherited["XDG_CACHE_HOME"] = str(package.parent / "cache")
    return subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=package.parent,
        env=inherited | {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def advance(package: Path, script: str = SCRIPT, **environment: str) -> tuple[int, str]:
    """Call the kernel with 0 in a new process; return its result and the stderr of the process."""
    process = started(package, script, **environment)
    try:
        stdout, stderr = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert process.returncode == 0, stderr
    return int(stdout), stderr


def test_only_changes_in_imported_sources_invalidate_the_cache(compiled: Path) -> None:
    (compiled / "unrelated.py").write_text("# not imported by the engine\n")
    assert advance(compiled) == (1, "")
    (compiled / "tables.py").write_text("STEP = 5\n")
    value, stderr = advance(compiled)
    assert value == 5
    assert len(stderr.splitlines()) == 1
    assert ANNOUNCEMENT in stderr
    assert advance(compiled) == (5, "")


def test_environments_with_equal_sources_share_the_cache(compiled: Path, tmp_path: Path) -> None:
    other = write_package(tmp_path / "other")
    shared = str(compiled.parent / "cache")
    assert advance(other, XDG_CACHE_HOME=shared) == (1, "")
    (other / "tables.py").write_text("STEP = 5\n")
    assert advance(other, XDG_CACHE_HOME=shared)[0] == 5
    assert advance(compiled) == (1, "")
    assert advance(other, XDG_CACHE_HOME=shared) == (5, "")


@pytest.mark.parametrize("library", ["numpy", "numba", "llvmlite"])
def test_another_version_of_a_library_compiles_again(compiled: Path, library: str) -> None:
    script = f"import {library}; {library}.__version__ += '.1'\n{SCRIPT}"
    value, stderr = advance(compiled, script)
    assert value == 1
    assert ANNOUNCEMENT in stderr
    assert advance(compiled) == (1, "")


@pytest.mark.parametrize("setting", ["NUMBA_OPT", "NUMBA_BOUNDSCHECK"])
def test_a_setting_that_changes_compiled_code_compiles_again(compiled: Path, setting: str) -> None:
    assert ANNOUNCEMENT in advance(compiled, **{setting: "1"})[1]


USER = {
    "mine.py": (
        "import importlib\n"
        "from pathlib import Path\n"
        "from deep import first\n"
        "from wotd_env.core.compilation import kernel\n"
        "late = importlib.import_module('late')\n"
        "WEIGHT = int(Path(__file__).with_name('weight.txt').read_text())\n"
        "PAIR = WEIGHT, first.TABLE\n"
        "@kernel\n"
        "def total(x): return first.one(x) + late.plain(x) + PAIR[0]\n"
    ),
    "deep/__init__.py": "",
    "deep/first.py": "from .second import *\nTABLE = 1\n",
    "deep/second.py": (
        "from wotd_env.core.compilation import kernel\nONE = 1\n@kernel\ndef one(x): return x + ONE\n"
    ),
    "late.py": "import numba\n@numba.njit\ndef plain(x): return x + 10\n",
    "weight.txt": "100",
}


def test_a_kernel_follows_everything_that_becomes_part_of_it(compiled: Path) -> None:
    """Test modules of the user, star imports, imports by a call, functions of numba, and values from files."""
    script = "import mine; print(mine.total(0))"
    folder = compiled.parent
    (folder / "deep").mkdir()
    for name, text in USER.items():
        (folder / name).write_text(text)
    assert advance(compiled, script)[0] == 111
    assert advance(compiled, script) == (111, "")
    changes = (
        ("deep/second.py", "ONE = 1", "ONE = 2", 112),
        ("late.py", "x + 10", "x + 20", 122),
        ("weight.txt", "100", "200", 222),
    )
    for name, old, new, expected in changes:
        text = (folder / name).read_text()
        (folder / name).write_text(text.replace(old, new))
        value, stderr = advance(compiled, script)
        assert value == expected, name
        assert "mine.total" in stderr
        assert advance(compiled, script) == (expected, "")


def test_kernels_work_without_a_writable_cache_folder(package: Path) -> None:
    value, stderr = advance(package, HOME=os.devnull, XDG_CACHE_HOME=os.devnull)
    assert value == 1
    assert stderr.count("compiling") == 1
    assert "in every process, because /dev/null" in stderr


@pytest.mark.skipif(sys.platform == "win32", reason="needs the user database of POSIX")
def test_without_a_home_folder_nothing_is_written(package: Path) -> None:
    script = (
        "import os, pwd\n"
        "def getpwuid(number): raise KeyError(number)\n"
        "pwd.getpwuid = getpwuid\n"
        "for name in ('HOME', 'XDG_CACHE_HOME'): os.environ.pop(name)\n"
    )
    before = set(package.parent.iterdir())
    value, stderr = advance(package, script + SCRIPT)
    assert value == 1
    assert "because the user has no home folder; set NUMBA_CACHE_DIR" in stderr
    assert set(package.parent.iterdir()) == before


def test_disabled_compilation_is_named(package: Path) -> None:
    process = started(package, SCRIPT, NUMBA_DISABLE_JIT="1")
    _, stderr = process.communicate(timeout=120)
    assert process.returncode
    assert "NUMBA_DISABLE_JIT is set: unset this variable" in stderr.splitlines()[-1]


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX permissions")
@pytest.mark.parametrize("target", ["wotd-env", "*.nbc"])
def test_code_that_other_users_can_change_is_not_run(compiled: Path, target: str) -> None:
    for path in compiled.parent.joinpath("cache").rglob(target):
        path.chmod(0o777)
    value, stderr = advance(compiled)
    assert value == 1
    assert "other users can write to" in stderr


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX permissions")
def test_no_umask_makes_code_writable_for_other_users(package: Path) -> None:
    advance(package, f"import os; os.umask(0)\n{SCRIPT}")
    cache = package.parent / "cache" / "numba" / "wotd-env"
    assert not [path for path in (cache, *cache.iterdir()) if path.stat().st_mode & 0o022]


def test_the_cache_removes_the_oldest_files_beyond_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compilation, "MOST_BYTES", 250)
    for age, name in enumerate(("used.nbc", "new.nbc", ".part-killed", "old.nbc")):
        (tmp_path / name).write_bytes(bytes(100))
        os.utime(tmp_path / name, (100 - age, 100 - age))
    compilation._shorten(tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {"used.nbc", "new.nbc"}


def test_use_of_a_cache_file_renews_its_time(compiled: Path) -> None:
    (file,) = compiled.parent.rglob("engine.advance-*.nbc")
    os.utime(file, (1, 1))
    advance(compiled)
    assert file.stat().st_mtime > 1


def test_every_damage_of_a_cache_file_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "kernel.nbc"
    compilation._write(file, b"compiled code")
    assert compilation._read(file) == b"compiled code"
    intact = file.read_bytes()
    flipped = (intact[:at] + bytes([intact[at] ^ 1]) + intact[at + 1 :] for at in range(len(intact)))
    for content in [*flipped, *(intact[:length] for length in range(len(intact)))]:
        file.write_bytes(content)
        with pytest.raises(ValueError, match="does not match its checksum"):
            compilation._read(file)


@pytest.mark.parametrize("kernel", ["advance", "inner"])
def test_a_damaged_cache_file_is_reported_once_and_rebuilt(compiled: Path, kernel: str) -> None:
    (file,) = compiled.parent.rglob(f"engine.{kernel}-*.nbc")
    intact = file.read_bytes()
    file.write_bytes(intact[: len(intact) // 2])
    if kernel == "inner":  # `inner` is only read if its caller is compiled
        next(compiled.parent.rglob("engine.advance-*.nbc")).unlink()
    value, stderr = advance(compiled)
    assert value == 1
    assert stderr.count("a damaged file in") == 1
    assert len(file.read_bytes()) == pytest.approx(len(intact), abs=100)
    assert advance(compiled) == (1, "")


def test_a_full_disk_only_disables_the_cache(package: Path) -> None:
    script = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "from wotd_env.core.engine import advance; print(advance(0))"
    )
    value, stderr = advance(package, script)
    assert value == 1
    assert stderr.count("cannot write to") == 1
    assert not list(package.parent.rglob("*.nbc*"))
    assert advance(package)[0] == 1
    assert advance(package) == (1, "")


def test_concurrent_processes_keep_each_others_cache_files(package: Path) -> None:
    """Each process compiles for a different type; numba's own index would keep only the last one."""
    script = "import numpy; from wotd_env.core.engine import advance; print(int({}))"
    calls = [f"advance(numpy.{kind}(0))" for kind in ("int8", "uint16", "float32")]
    processes = [started(package, script.format(call)) for call in calls]
    for process in processes:
        _, stderr = process.communicate()
        assert process.returncode == 0, stderr
    assert advance(package, script.format(" + ".join(calls))) == (len(calls), "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_process_forked_during_compilation_can_compile(package: Path) -> None:
    script = """
import os, threading
from wotd_env.core.engine import advance, inner
for i in range(6):
    kind = "int8 int16 int32 uint8 uint16 uint32".split()[i]
    import numpy
    thread = threading.Thread(target=advance, args=(getattr(numpy, kind)(0),))
    thread.start()
    if (child := os.fork()) == 0:
        os._exit(int(inner(numpy.float32(i)) != i + 1))
    assert os.waitpid(child, 0)[1] == 0
    thread.join()
print(advance(0))
"""
    assert advance(package, script)[0] == 1


def test_the_cache_follows_numba_cache_dir(package: Path, tmp_path: Path) -> None:
    advance(package, NUMBA_CACHE_DIR=str(tmp_path / "named"))
    assert list((tmp_path / "named").rglob("engine.advance-*.nbc"))
    assert not list(package.parent.joinpath("cache").rglob("*.nbc"))


def test_kernels_release_the_gil_and_start_no_threads() -> None:
    @compilation.kernel
    def identity(x: int) -> int:
        return x

    options = identity.targetoptions  # type: ignore[attr-defined]  # `kernel` keeps the type of the plain function
    assert options["nogil"] is True
    assert not options.get("parallel", False)
