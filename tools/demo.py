"""Build the demo: `python -m tools.demo FOLDER` writes a web page for games against `td`.

Any host of static files can serve FOLDER, for example `python -m http.server --directory FOLDER`.
"""

import argparse
import shutil
from pathlib import Path

from tools.wasm.weights import weights
from wotd_env import Rules
from wotd_env.rendering.cases import CASES, draw_case
from wotd_env.rendering.svg import style, symbols

WEB = Path(__file__).parents[1] / "wotd_env" / "web"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.demo", description=__doc__)
    parser.add_argument(
        "folder", type=Path, metavar="FOLDER", help="folder of the page; created if it is missing"
    )
    build(parser.parse_args().folder)


def build(folder: Path) -> None:
    """Write the demo into a folder."""
    # Keep the names of the folders, because modules in demo/ import modules by paths such as ../static/.
    for part in ("static", "demo", "wasm"):
        data = shutil.ignore_patterns("*.html", "lesson.json", "puzzles.json")
        shutil.copytree(WEB / part, folder / part, ignore=data, dirs_exist_ok=True)
    (folder / "rules" / "pictures").mkdir(parents=True, exist_ok=True)
    for file in (WEB / "rules").glob("*.html"):
        shutil.copy(file, folder / "rules" / file.stem)
    page = (WEB / "static" / "index.html").read_text(encoding="utf-8")
    contents = {
        "index.html": page.replace("static/main.js", "demo/main.js"),
        "colors.css": style(),
        "drawings.svg": symbols(),
    }
    contents |= {f"rules/pictures/{name}.svg": draw_case(name) for name in CASES}
    for name, content in contents.items():
        (folder / name).write_text(content, encoding="utf-8")
    (folder / "demo" / "td").write_bytes(weights(Rules()))


if __name__ == "__main__":
    main()
