"""Pictures of grades."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wotd_env.analysis.grading import STAGES, Grades
from wotd_env.extras import needed_for
from wotd_env.files import save_figure


def picture(grades: dict[str, Grades], file: str | Path) -> None:
    """Draw the regret of policies by kind of decision and by stage of the game. Equal grades give equal files.

    Args:
        grades: name of a policy -> its grades.
        file: the picture to write; its suffix selects the format.

    Raises:
        ImportError: if matplotlib is not installed.
    """
    with needed_for("a picture", "arena"):
        from matplotlib.figure import Figure
    figure = Figure(figsize=(11, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    width = 0.8 / max(len(grades), 1)
    names = [grade.kind for of in list(grades.values())[:1] for grade in of.kinds[:-1]]
    for i, (name, of) in enumerate(grades.items()):
        at, each = np.arange(len(names)) + (i - (len(grades) - 1) / 2) * width, of.kinds[:-1]
        left.bar(at, [g.per_game for g in each], width, yerr=[g.per_game_error for g in each], label=name)
        right.plot((np.arange(STAGES) + 0.5) / STAGES * 100, of.stages, marker="o", label=name)
    left.set_xticks(np.arange(len(names)), names)
    left.set(ylabel="regret per game", title="by kind of decision")
    right.set(xlabel="progress of the game in %", ylabel="regret per decision", title="by stage of the game")
    right.set_ylim(bottom=0)
    left.legend()
    save_figure(figure, file)
