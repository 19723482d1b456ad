"""`python -m tools.models [RUN...]`: put trained networks into the package, and list them in docs/results/models.md.

The network of a run replaces the bundled model for the same policy and rules. Each bundled network has a *card*: a JSON
file that describes the training run. The table of the page is made from the cards.
"""

import argparse
import csv
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agents import checkpoint
from agents.checkpoint import CHECKPOINT
from agents.evaluate import Measurement, curves_of, in_percent, plot_curves
from agents.export import load, to_onnx
from agents.loop import RESULT, module_of
from tools import pages
from wotd_env import Rules, files, models
from wotd_env.core.rules import options_of
from wotd_env.planning import learned
from wotd_env.policy import check_made_for
from wotd_env.process import shell_command
from wotd_env.reporting import markdown

PAGES = pages.ROOT / "docs" / "results"
PAGE, PICTURE = "models.md", "models.svg"

OWN = {"preset", "seed", "rules", "folder", "resume", "final_games"}
"""Settings that `command` handles separately, or omits because they change no network."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code: 0, or 2 for an unusable run."""
    parser = argparse.ArgumentParser(prog="python -m tools.models", description=__doc__)
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="run folder of train.py")
    try:
        for run in parser.parse_args(arguments).runs:
            print(f"wrote {put(run, models.FOLDER)}")
    except (ValueError, OSError) as error:
        print(f"tools.models: error: {error}", file=sys.stderr)
        return 2
    cards = [json.loads(file.read_text()) for file in sorted(models.FOLDER.glob("*.json"))]
    draw(cards, PAGES / PICTURE)
    page = PAGES / PAGE
    page.write_text(pages.renew(page.read_text(), {"models": table(cards, models.FOLDER)}))
    print(f"wrote {page}")
    return 0


def put(run: Path, folder: Path) -> Path:
    """Write the network and the card of a finished run to a folder. Return the file of the network."""
    policy = str(checkpoint.load(run / CHECKPOINT)[1].get("learner"))
    config = json.loads((run / "config.json").read_text())
    settings = config["settings"]
    rules = Rules.from_dict(settings["rules"])
    check_made_for(f"the network in {run}", rules, models.rules_of(rules))
    if policy not in ("ppo", "td"):
        raise ValueError(f"{run} must be a run of ppo or td, not of {policy}")
    if not (run / RESULT).is_file():
        finish = shell_command("python", "train.py", "--resume", run)
        raise ValueError(f"{run} is not finished: {finish}")
    with (run / "curve.csv").open(newline="") as lines:
        head, *rows = csv.reader(lines)
    card = {
        "policy": policy,
        "rules": settings["rules"],
        "command": command(policy, settings, rules),
        "columns": head,
        "curve": [[int(done), float(seconds), name, *map(int, rest)] for done, seconds, name, *rest in rows],
        "result": json.loads((run / RESULT).read_text()),
        "versions": config["versions"],
    }
    file = folder / f"{models.name_of(policy, rules)}.{'npz' if policy == 'td' else 'onnx'}"
    if policy == "td":
        files.write(file, learned.save(learned.load(run / "value.npz"), np.float16))
    else:
        files.write(file, to_onnx(load(run).network))
    files.write(file.with_suffix(".json"), (json.dumps(card, indent=1) + "\n").encode())
    return file


def command(policy: str, settings: dict[str, Any], rules: Rules) -> str:
    """Return the command line of a training run."""
    preset = module_of(policy).PRESETS[settings["preset"]]
    words = ["python", "train.py", policy, "--preset", settings["preset"], "--seed", settings["seed"]]
    for name in sorted(settings.keys() - OWN):
        if settings[name] != getattr(preset, name):
            option = name.replace("_", "-")
            if isinstance(settings[name], bool):
                words += [f"--{option}" if settings[name] else f"--no-{option}"]
            else:
                words += [f"--{option}", settings[name]]
    return " ".join(map(str, [*words, *options_of(rules)]))


def table(cards: list[dict[str, Any]], folder: Path) -> str:
    """Return the table of the cards, the picture and the training commands as Markdown text."""
    opponents = list(dict.fromkeys(name for card in cards for name in card["result"]))
    rows = []
    for card in cards:
        rules = Rules.from_dict(card["rules"])
        file = next(folder.glob(f"{models.name_of(card['policy'], rules)}.[no]*"), None)
        counts = [card["result"][name] for name in opponents]
        shares = (in_percent(each["wins"], each["games"]) for each in counts)
        size = f"{file.stat().st_size / 1000:,.0f} kB" if file else ""
        time = f"{card['curve'][-1][1] / 60:.0f} min"
        cells = (card["policy"], rules.players, rules.powers, rules.spaces, size, time)
        rows.append((*cells, *shares))
    against = (f"against `{name}`, %" for name in opponents)
    head = ("policy", "players", "powers", "plain spaces", "file size", "training time", *against)
    versions = sorted({f"{name} {number}" for card in cards for name, number in card["versions"].items()})
    commands = "\n".join(card["command"] for card in cards)
    parts = [
        markdown(head, rows, right=(1, 3, 4, 5)),
        f"![Win shares during training]({PICTURE})",
        f"Trained with {', '.join(versions)}, by these commands in the order of the rows:",
        f"```sh\n{commands}\n```",
    ]
    return "\n\n".join(parts)


def draw(cards: list[dict[str, Any]], file: Path) -> None:
    """Draw the training curves of all models."""
    from matplotlib.figure import Figure

    columns = 3
    lines = max(1, -(-len(cards) // columns))
    figure = Figure((9, 2.4 * lines), layout="constrained")
    grid = figure.subplots(lines, columns, squeeze=False, sharey=True).ravel()
    for axes, card in zip(grid, cards, strict=False):
        rules = Rules.from_dict(card["rules"])
        plot_curves(axes, curves_of(Measurement(*row) for row in card["curve"]), rules.players)
        board = "" if rules.spaces == Rules.spaces else f", {rules.spaces} plain spaces"
        axes.set_title(f"{card['policy']}, {rules.players} players, powers {rules.powers}{board}", fontsize=8)
        axes.set_xlabel(f"million {card['columns'][0]}", fontsize=8)
    for axes in grid[len(cards) :]:
        axes.set_axis_off()
    if cards:
        grid[0].legend(fontsize=8)
        figure.supylabel("win share", fontsize=9)
    files.save_figure(figure, file)


if __name__ == "__main__":
    sys.exit(main())
