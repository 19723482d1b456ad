"""Build wotd_env/web/wasm/wotd.wasm, the engine for web pages and other languages, or measure its speed."""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.pages import ROOT
from tools.wasm import BUILT, MODULE, speed, stamp

SETTINGS = {
    "NUMBA_OPT": "0",  # otherwise the code would already suit the processor
    "NUMBA_CPU_NAME": "generic",
    "NUMBA_CPU_FEATURES": "",
    "PYTHONHASHSEED": "0",
}


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.wasm", description=__doc__)
    parser.add_argument("--into", type=Path, metavar="FILE", help="write the module to another file")
    parser.add_argument(
        "--scalar", action="store_true", help="use no SIMD instructions, for hosts without them; needs --into"
    )
    parser.add_argument(
        "--speed", action="store_true", help="measure decisions per second in Node and on the processor"
    )
    options = parser.parse_args()
    if options.scalar and not options.into:
        parser.error("--scalar needs --into FILE: the module of the checkout has SIMD instructions")
    if options.speed:
        with tempfile.TemporaryDirectory() as folder:
            build(Path(folder, "scalar.wasm"), scalar=True)
            speed.measure({"WebAssembly": MODULE, "without SIMD": Path(folder, "scalar.wasm")})
        return
    build(options.into or MODULE, options.scalar)
    if not options.into:
        BUILT.write_text(stamp())


def build(file: Path, scalar: bool) -> None:
    """Write the module to a file, in another process, because numba reads its settings when it is imported."""
    with tempfile.TemporaryDirectory() as cache:  # kernels in the usual cache have other settings
        environment = {**os.environ, **SETTINGS, "NUMBA_CACHE_DIR": cache}
        command = [sys.executable, "-m", "tools.wasm.build", str(file.absolute()), *["--scalar"] * scalar]
        if status := subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode:
            sys.exit(status)


if __name__ == "__main__":
    main()
