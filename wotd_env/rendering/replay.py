"""Show recorded games in notebooks and browsers, and write them as HTML, GIF and MP4."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from html import escape
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wotd_env.core.arguments import check_integers
from wotd_env.core.game import Game
from wotd_env.core.starting import roll_off_of
from wotd_env.core.state import States
from wotd_env.core.words import describe_action
from wotd_env.extras import needed_for
from wotd_env.files import replacing
from wotd_env.notation import RecordedGame
from wotd_env.rendering.raster import render_rgb
from wotd_env.rendering.scene import HEIGHT, WIDTH, scene
from wotd_env.rendering.svg import style
from wotd_env.rendering.text import render_text, roll_off_text, seat_names

FORMATS = (".html", ".gif", ".mp4")
"""The endings of file names that `Replay.save` accepts."""


class Replay:
    """A recorded game to display or save. A notebook displays a `Replay` that is the last expression of a cell.

    Args:
        game: the rules.
        states: STATE (T,), the positions of one game in order, T >= 1.
        actions: integers (T,), the decision taken at each position, or (T - 1,) if the last decision is unknown. By
            default, all decisions are unknown.
        roll_off: int8 (R, n, 5), the result of `roll_off_of`. If given, its dice are shown with the first position.
        names: the players' names by seat; by default "player_0", "player_1" and so on.

    Raises:
        ValueError: if `states` is empty, the number of actions or names is wrong, or a record is invalid under these
            rules.
    """

    def __init__(
        self,
        game: Game,
        states: States,
        actions: ArrayLike | None = None,
        *,
        roll_off: NDArray[np.int8] | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        game.check(states)
        if len(states) == 0:
            raise ValueError("states must contain at least one position, got none")
        taken: list[int | None] = []
        if actions is not None:
            taken += check_integers("actions", actions, (np.size(actions),), 0, game.num_actions - 1).tolist()
        if taken and len(taken) not in (len(states) - 1, len(states)):
            raise ValueError(
                f"actions must be one for each of the {len(states)} positions, or for all but the last, "
                f"got {len(taken)}"
            )
        seat_names(names, game.rules.players)  # raises ValueError for a wrong number of names
        self.game, self.states = game, states.copy()
        self.actions = taken + [None] * (len(states) - len(taken))
        self.roll_off = roll_off
        self.names = names

    def __repr__(self) -> str:
        return f"<replay of {len(self.states)} positions>"

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{escape(self.html())}" sandbox="allow-scripts" title="a recorded game" '
            f'style="width:100%;max-width:{WIDTH}px;aspect-ratio:{WIDTH}/{HEIGHT + 190};border:0"></iframe>'
        )

    def html(self, theme: str = "auto") -> str:
        """Return a self-contained HTML page for stepping through the game.

        Args:
            theme: "light", "dark", or "auto" for the preference of the reader's system.

        Raises:
            ValueError: for an unknown theme.
        """
        data = json.dumps(self._content(theme), separators=(",", ":")).replace("<", "\\u003c")
        page, look, script = (
            (files("wotd_env.rendering") / f"replay.{kind}").read_text("utf-8")
            for kind in ("html", "css", "js")
        )
        look += style()
        if theme != "auto":
            look = look.replace("color-scheme: light dark", f"color-scheme: {theme}")
        policy = f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(look)}'"
        parts = {"POLICY": policy, "STYLE": look, "DATA": data, "SCRIPT": script}
        # One pass, because the parts can contain marks: a player can be named {{SCRIPT}}.
        return re.sub(r"{{(\w+)}}", lambda mark: parts[mark[1]], page)

    def _content(self, theme: str) -> dict[str, list[Any]]:
        """Return the data that replay.js reads.

        A frame is the picture of one position: a list of indices into `places`. A place has the index of a drawing, two
        coordinates and a scale.
        """
        drawings: dict[str, int] = {}
        places: dict[tuple[int, str, str, str], int] = {}
        frames, captions = [], []
        for state, before, action, roll_off in self._steps():
            frame = []
            for mark in scene(self.game, state, before, action, theme, roll_off=roll_off, names=self.names):
                drawing = drawings.setdefault(mark.svg, len(drawings))
                at = (drawing, f"{mark.x:.2f}", f"{mark.y:.2f}", f"{mark.scale:.5g}")
                frame.append(places.setdefault(at, len(places)))
            frames.append(frame)
            news = render_text(self.game, state, names=self.names).partition("\n")[0]
            decided = "" if action is None else f": {describe_action(action, self.game.rules)}"
            captions.append(". ".join([*roll_off_text(roll_off), news + decided]))
        return {
            "drawings": list(drawings),
            "places": list(places),
            "frames": frames,
            "captions": captions,
            "turns": self.states["turn"].tolist(),
        }

    def save(self, file: str | Path, *, theme: str | None = None, width: int = 640, fps: float = 2) -> None:
        """Save the game as an HTML page for stepping through it, or as a GIF or MP4 video.

        Args:
            file: path. Its ending, one of `FORMATS`, selects the format.
            theme: "light", "dark", or "auto" (only for HTML). The default is "auto" for HTML, "light" for GIF and MP4.
            width: width of the pictures in pixels; ignored in HTML.
            fps: positions per second; ignored in HTML.

        Raises:
            ImportError: if the format needs the extra `render` and this extra is not installed.
            OSError: if the file cannot be written. An existing file then stays unchanged.
            ValueError: for an unknown ending or theme.
        """
        target = Path(file)
        if target.suffix not in FORMATS:
            raise ValueError(f"file must end in {', '.join(FORMATS)}, got {file}")
        with replacing(target) as part:
            if target.suffix == ".html":
                part.write_text(self.html(theme or "auto"), "utf-8")
            else:
                write = _write_gif if target.suffix == ".gif" else _write_mp4
                write(part, self.pictures(theme or "light", width), fps)

    def pictures(self, theme: str = "light", width: int = 640) -> Iterator[NDArray[np.uint8]]:
        """Yield the picture of each position, drawn by `render_rgb`, as uint8 (3/4 `width`, `width`, 3)."""
        for state, before, action, roll_off in self._steps():
            yield render_rgb(
                self.game, state, before, action, theme, width=width, roll_off=roll_off, names=self.names
            )

    def _steps(self) -> Iterator[tuple[States, States, int | None, NDArray[np.int8] | None]]:
        """Yield (position, position before the last move, decision, roll-off) for each position."""
        before = self.states[:1]
        for i, action in enumerate(self.actions):
            state, last = self.states[i : i + 1], self.states[max(i - 1, 0) : max(i, 1)]
            if (state["pieces"] != last["pieces"]).any():
                before = last
            yield state, before, action, None if i else self.roll_off


def replay_game(recorded: RecordedGame) -> Replay:
    """Return the replay of a recorded game, such as the result of `wotd_env.notation.read_game`."""
    game, seed = Game(recorded.rules), recorded.seed
    roll_off = None if seed is None else roll_off_of(game, seed)
    return Replay(game, recorded.states, recorded.actions, roll_off=roll_off, names=recorded.players)


def _hash(text: str) -> str:
    """Return the digest that a content security policy needs to allow this script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _write_gif(file: Path, pictures: Iterator[NDArray[np.uint8]], fps: float) -> None:
    with needed_for("a GIF", "render"):
        from PIL import Image
    images = [Image.fromarray(picture) for picture in pictures]
    # One palette for all pictures avoids flicker. The last picture has the most pieces, so it determines the palette.
    colors = images[-1].quantize(256)
    first, *others = (image.quantize(palette=colors, dither=Image.Dither.NONE) for image in images)
    first.save(file, save_all=True, append_images=others, duration=round(1000 / fps), loop=0)


def _write_mp4(file: Path, pictures: Iterator[NDArray[np.uint8]], fps: float) -> None:
    with needed_for("an MP4", "render"):
        import av

    first = next(pictures)
    with av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=Fraction(fps).limit_denominator(1000))
        stream.height, stream.width = (side // 2 * 2 for side in first.shape[:2])  # H.264 needs even sides
        stream.pix_fmt = "yuv420p"
        for picture in chain([first], pictures):
            pixels = np.ascontiguousarray(picture[: stream.height, : stream.width])
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode())
