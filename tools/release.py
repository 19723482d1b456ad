"""Build sdist and wheel, compare their files with the checkout, and test every extra (`make release-check`).

Each extra is installed from the wheel into a new environment, and tested there by a short program. The arguments select
extras; "bare" is the package without extras.
"""

import argparse
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

from tools.pages import ROOT

TOURNAMENT = """
import sys
from wotd_env.cli import main
sys.argv[1:] = ["arena", "greedy", "random", "--games", "20"]
main()
"""
PLAY = """
import numpy as np, gymnasium, wotd_env
from wotd_env import Game, way_of_the_dragon_v0
game = Game(); state = game.reset(8, seed=0); policy = wotd_env.make_policy("planner")
while not game.is_over(state).all():
    game.step(state, policy.act(game, state, np.random.default_rng(0)))
assert abs(game.rewards(state)).min() == 1
way_of_the_dragon_v0.env(players=5).reset(seed=0)
gymnasium.make_vec("wotd_env:wotd_env/WayOfTheDragon-v0", num_envs=8).reset(seed=0)
assert (wotd_env.make_policy("td").act(game, game.reset(4, seed=0), np.random.default_rng(0)) >= 0).all()
"""

SMOKE = {
    "bare": PLAY,
    "train": "import torch, sb3_contrib, rich, tyro\nfrom wotd_env.adapters.sb3 import SB3VecEnv\nSB3VecEnv(4).reset()",
    "arena": TOURNAMENT,
    "ray": "import wotd_env.adapters.ray",
    "tune": "import ray.tune, wotd_env.adapters.ray",
    "rllib": "import wotd_env.adapters.ray\nfrom wotd_env.adapters.rllib import multi_agent_env\n"
    "multi_agent_env({'players': 3}).reset(seed=0)",
    "minari": "import wotd_env.adapters.minari",
    "mcp": "from wotd_env import Rules\nfrom wotd_env.adapters.mcp import make_server\n"
    "make_server(Rules(spaces=0), opponents='greedy')",
    "render": "from wotd_env import Game\nfrom wotd_env.rendering import render_rgb\n"
    "game = Game()\nassert render_rgb(game, game.reset(1, seed=0)).ndim == 3\nimport av, pygame",
    "video": "import gymnasium\nenv = gymnasium.make('wotd_env:wotd_env/WayOfTheDragon-v0', render_mode='rgb_array')\n"
    "env = gymnasium.wrappers.RecordVideo(env, 'videos')\nenv.reset(seed=0)\nenv.close()\n"
    "open('videos/rl-video-episode-0.mp4').close()",
    "jax": "import jax\nfrom wotd_env.jax import WayOfTheDragon\nWayOfTheDragon().init(jax.random.key(0))",
    "cuda": "import os\nos.environ['NUMBA_ENABLE_CUDASIM'] = '1'\nfrom wotd_env import Rules\n"
    "from wotd_env.cuda import CudaGame\nCudaGame(Rules(), 8).observe(0)",
    "openspiel": "import pyspiel, wotd_env.adapters.openspiel\n"
    "pyspiel.load_game('way_of_the_dragon').new_initial_state()",
    "web": "import wotd_env.web.app, uvicorn, websockets",
}
"""Extra -> program that tests the extra. PLAY tests all other extras."""

NOT_FOR_USERS = {"all", "bench", "dev", "docs", "notebooks"}


def main() -> None:
    """Run the command line."""
    known = ["bare", *sorted(set(extras()) - NOT_FOR_USERS)]
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    words = f"of {', '.join(known)}; by default all"
    parser.add_argument("extras", nargs="*", choices=[*known, []], metavar="EXTRA", help=words)
    parser.add_argument("--python", default=sys.executable, help="the Python of the new environments")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wheel = build(Path(folder))
        for extra in options.extras or known:
            print(f"{extra}: ", end="", flush=True)
            try_extra(wheel, extra, Path(folder) / extra, options.python)
            print("passed")


def build(folder: Path) -> Path:
    """Build the sdist and the wheel into a folder, check their files, and return the wheel."""
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    tracked = set(subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines())
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
    compare(wheel.name, inside, {name for name in tracked if name.startswith("wotd_env/")})
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()} - {"PKG-INFO"}
    compare(sdist.name, inside, {name for name in tracked if not name.startswith(".ci/")})
    print(f"{wheel.name} ({wheel.stat().st_size / 1e6:.1f} MB) and {sdist.name} contain the expected files")
    return wheel


def compare(name: str, inside: set[str], wanted: set[str]) -> None:
    """End the program if a package does not contain exactly the wanted files."""
    if inside != wanted:
        sys.exit(
            f"{name} lacks {sorted(wanted - inside)}, and should not have {sorted(inside - wanted)}; see [tool.hatch] "
            "in pyproject.toml, and commit new files"
        )


def try_extra(wheel: Path, extra: str, folder: Path, python: str) -> None:
    """Install the wheel with one extra into a new environment, and run the program that tests the extra."""
    run(python, "-m", "venv", folder)
    interpreter = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    package = str(wheel) if extra == "bare" else f"{wheel}[{extra}]"
    # RLlib and MoviePy require older releases of some packages than constraints.txt allows.
    pins = [] if extra in ("rllib", "video") else ["--constraint", str(ROOT / "constraints.txt")]
    run(interpreter, "-m", "pip", "install", "--quiet", *pins, package)
    run(interpreter, "-m", "pip", "check")
    # -I keeps Python from importing the files of the checkout.
    run(interpreter, "-I", "-c", SMOKE.get(extra, PLAY), cwd=folder)


def run(*command: str | Path, cwd: Path = ROOT) -> None:
    """Run a command without showing its output; raise an error if it fails."""
    subprocess.run(command, check=True, cwd=cwd, stdout=subprocess.PIPE)


def extras() -> list[str]:
    """Return the extras of the project."""
    return list(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])


if __name__ == "__main__":
    main()
