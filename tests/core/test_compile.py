"""`kernel`: the cache and its invalidation, the messages to the user, and unwritable folders.

Each test starts new processes on a small stub package with a copy of the real decorator.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from wotd_env import files
from wotd_env.core import compilation

ANNOUNCEMENT = "compiling kernels, once on this machine"


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
    shutil.copy(files.__file__, package / "files.py")
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
    return shutil.copytree(compiled_once, tmp_path / "wotd_env")


SCRIPT = "from wotd_env.core.engine import advance; print(advance(0))"


def started(package: Path, script: str, **environment: str) -> subprocess.Popen[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
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


def test_compiling_is_announced_once_and_cached(package: Path) -> None:
    value, stderr = advance(package)
    assert value == 1
    assert stderr.count("compiling") == 1
    assert ANNOUNCEMENT in stderr
    assert advance(package) == (1, "")


def test_only_changes_in_imported_sources_invalidate_the_cache(compiled: Path) -> None:
    (compiled / "unrelated.py").write_text("# not imported by the engine\n")
    assert advance(compiled) == (1, "")
    (compiled / "tables.py").write_text("STEP = 5\n")
    value, stderr = advance(compiled)
    assert value == 5
    assert ANNOUNCEMENT in stderr
    assert advance(compiled) == (5, "")


def test_kernels_work_without_a_writable_cache_folder(package: Path) -> None:
    (package / "core" / "__pycache__").touch()  # a file instead of a folder stops even root
    value, stderr = advance(package, HOME=os.devnull, XDG_CACHE_HOME=os.devnull)
    assert value == 1
    assert stderr.count("compiling") == 1
    assert "no cache folder is writable" in stderr


def test_every_damage_of_a_cache_file_is_noticed(tmp_path: Path) -> None:
    cache = compilation._Files(tmp_path, "kernel", "stamp")
    cache.save("key", "compiled code")
    assert cache.load("key") == "compiled code"
    (file,) = tmp_path.iterdir()
    intact = file.read_bytes()
    flipped = (intact[:at] + bytes([intact[at] ^ 1]) + intact[at + 1 :] for at in range(len(intact)))
    for content in [*flipped, *(intact[:length] for length in range(len(intact)))]:
        file.write_bytes(content)
        with pytest.raises(ValueError, match="does not match its checksum"):
            cache.load("key")


@pytest.mark.parametrize("kernel", ["advance", "inner"])
def test_a_damaged_cache_file_is_reported_once_and_rebuilt(compiled: Path, kernel: str) -> None:
    (file,) = compiled.rglob(f"engine.{kernel}-*.nbc")
    intact = file.read_bytes()
    file.write_bytes(intact[: len(intact) // 2])
    if kernel == "inner":  # `inner` is only read if its caller is compiled
        next(compiled.rglob("engine.advance-*.nbc")).unlink()
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
    assert not list(package.rglob("*.nbc*"))
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


def test_cache_files_of_old_sources_are_deleted(compiled: Path) -> None:
    before = set(compiled.rglob("*.nbc"))
    (compiled / "tables.py").write_text("STEP = 5\n")
    advance(compiled)
    after = set(compiled.rglob("*.nbc"))
    assert len(after) == len(before) == 2
    assert not after & before


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
    advance(package, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert list((tmp_path / "cache").rglob("engine.advance-*.nbc"))
    assert not list(package.rglob("*.nbc"))


def test_kernels_release_the_gil_and_start_no_threads() -> None:
    @compilation.kernel
    def identity(x: int) -> int:
        return x

    options = identity.targetoptions  # type: ignore[attr-defined]  # `kernel` keeps the type of the plain function
    assert options["nogil"] is True
    assert not options.get("parallel", False)
