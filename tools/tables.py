"""Write the tables of docs/environment.md that follow from the code (`make docs-tables`)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tools import pages
from wotd_env import STATE, Game, Phase, Rules, describe_action
from wotd_env.core import actions
from wotd_env.core.actions import Action
from wotd_env.core.dice import FACES, UNROLLED
from wotd_env.core.observation import DIE_TOKEN, GAME_TOKEN, PATH_TOKEN, PIECE_TOKEN, TOKEN_WIDTH
from wotd_env.core.rules import NUMBERED

PAGE = Path(__file__).parents[1] / "docs" / "environment.md"
PLAYERS = range(2, 6)


def indices(part: slice) -> str:
    """Return first..last, or the only one."""
    return f"{part.start}..{part.stop - 1}" if part.stop - part.start > 1 else f"{part.start}"


def state() -> str:
    """Return the table of the fields of a state."""
    meaning = {
        "rng": "the game's own random stream: the state of a 64-bit generator",
        "dead": "by path; bit t set: a dead piece stands on space t",
        "turn": "turns finished so far",
        "player": "seat to act; at OVER the seat that acted last",
        "phase": ", ".join(f"{phase.value} {phase.name}" for phase in Phase),
        "rolls_left": "re-rolls left that cost no power",
        "dice": "faces, ascending; at CHANCE the kept dice first, then -1 for each die to be rolled",
        "pieces": "[seat, path] -> space; unused seats stay 0",
        "color": "colour of each seat; behind them the unused colours, whose animals are the dead pieces",
        "used": "bit k set: seat k has used its power",
        "perfection": "1: this turn has earned the extra turn of R8",
        "truncated": "1: over by R16",
    }
    rows = []
    for name in STATE.names or ():
        field = STATE[name]
        if not name.startswith("_"):
            rows.append((f"`{name}`", f"{field.base} {field.shape or ''}".strip(), meaning[name]))
    return pages.table(("field", "type", "meaning"), rows)


def _parts(encoding: str, meaning: dict[str, str], **rules: Any) -> str:
    """Return the table of the parts of an observation, and where they stand for each number of players."""
    layouts = [Game(Rules(players=n, **rules), encoding=encoding).observation_layout for n in PLAYERS]
    rows: list[tuple[object, ...]] = [
        (f"`{name}`", *(indices(layout[name]) for layout in layouts), meaning[name]) for name in layouts[0]
    ]
    sizes = [Game(Rules(players=n, **rules), encoding=encoding).observation_size for n in PLAYERS]
    rows.append(("*size*", *sizes, ""))
    return pages.table(("part", *(f"{n} players" for n in PLAYERS), "meaning"), rows)


def observation() -> str:
    """Return the table of the encoding "one_hot"."""
    meaning = {
        "pieces": f"[seat, path, space 0..S+{NUMBERED}], one-hot: where each piece stands; space 0 is off the board",
        "dead": "[path, plain space 1..S], 1: a dead piece stands there",
        "dice": f"[face, 0..{FACES - 1}], one-hot: how many dice show that face; a die still to be rolled shows none",
        "rolls_left": "one-hot: re-rolls left that cost no power, 0..2",
        "phase": f"one-hot: {', '.join(phase.name for phase in Phase)}",
        "player": "[seat], one-hot: who is to act",
        "powers": "[seat, colour], 1: the seat still holds that colour's power",
        "perfection": "1: this turn has earned an extra turn",
        "colors": "[seat, colour], one-hot: whose animals the seat plays",
        "deadline": "127 less the turns that are left before the game is truncated; 0 while more are left",
    }
    return _parts("one_hot", meaning)


def compact() -> str:
    """Return the table of the encoding "compact"."""
    meaning = {
        "pieces": f"[seat, path]: the space where the piece stands, 0..S+{NUMBERED}; 0 is off the board",
        "dead": "[path, plain space 1..S], 1: a dead piece stands there",
        "dice": "[face]: how many dice show it, 0..5; a die still to be rolled shows none",
        "rolls_left": "re-rolls left that cost no power, 0..2",
        "phase": ", ".join(f"{phase.value} {phase.name}" for phase in Phase),
        "player": "the seat to act",
        "powers": '[seat], 1: the seat still holds a power, that of its colour or (`powers="any"`) each of them',
        "perfection": "1: this turn has earned an extra turn",
        "colors": "[seat]: the number of its colour, 0..4",
        "deadline": "127 less the turns that are left before the game is truncated; 0 while more are left",
    }
    return _parts("compact", meaning)


def tokens() -> str:
    """Return the table of the encoding "tokens"."""
    meaning = {
        "game": "one token",
        "dice": 'five tokens, in the order of `state["dice"]`',
        "paths": "[path], five tokens",
        "pieces": "[seat, path], five tokens for each seat",
    }
    return _parts("tokens", meaning)


def token() -> str:
    """Return the table of the numbers of each kind of token."""
    rows = [
        (GAME_TOKEN, "game", "phase", "rolls left", "seat to act", "perfection", "deadline"),
        (DIE_TOKEN, "die", f"face, {UNROLLED}: still to be rolled", "", "", "", ""),
        (PATH_TOKEN, "path", "path", "1: dead piece on space 1", "on space 2", "on space 3", "... up to S"),
        (
            PIECE_TOKEN,
            "piece",
            "path",
            "space",
            "seat",
            "colour of the seat",
            "1: the seat still holds a power",
        ),
    ]
    return pages.table(("number 0", "kind", *(f"number {i}" for i in range(1, TOKEN_WIDTH))), rows)


def features() -> str:
    """Return the table of the encoding "features"."""
    meaning = {
        "pieces": f"[path]: the space where the observer's piece stands, 0..S+{NUMBERED}; 0 is off the board",
        "rivals": "[path]: the space of the piece that is furthest among those of the other seats",
        "free": "[path]: how many of the five spaces ahead of the observer's piece are empty; 0 on a numbered space",
        "goals": (
            "[path]: the space to which the dice shown would move the observer's piece; 0 if they do not, and for a "
            "seat that is not to act"
        ),
        "dice": "[face]: how many dice show it, 0..5; a die still to be rolled shows none",
        "rolls_left": "re-rolls left that cost no power, 0..2",
        "phase": f"one-hot: {', '.join(phase.name for phase in Phase)}",
        "player": "[seat], one-hot: who is to act",
        "perfection": "1: this turn has earned an extra turn",
        "deadline": "127 less the turns that are left before the game is truncated; 0 while more are left",
        "points": "[seat]: its points, 0..25",
        "numbered": "[seat]: its pieces on numbered spaces, 0..5",
        "progress": "[seat]: the sum of the spaces of its five pieces",
        "powers": "[seat], 1: the seat still holds a power; only with powers",
        "power": "[colour], 1: the observer still holds that colour's power; only with powers",
        "home": "[path], 1: it is that of the observer's colour; only with immunity",
    }
    return _parts("features", meaning, powers="own", immunity=True)


def action() -> str:
    """Return the table of the actions that are the same for every number of players."""
    phases = {0: Phase.KEEP, Action.MOVE_ON: Phase.MOVE, Action.END_TURN: Phase.EXTRA}
    rows: list[tuple[object, ...]] = [
        (f"0..{Action.STOP_ROLLING - 1}", Phase.KEEP.name, "keep die i if bit i is set, re-roll the rest")
    ]
    for number in range(Action.STOP_ROLLING, Action.FIRST_SWAP):
        phase = phases[max(first for first in phases if first <= number)]
        rows.append((number, phase.name, describe_action(number)))
    return pages.table(("number", "phase", "action"), rows)


def swap() -> str:
    """Return the table of the swaps, by number of players."""
    rows = []
    for n in PLAYERS:
        pairs = actions.pairs(n)
        step = f"{pairs}e" if pairs > 1 else "e"
        seats = enumerate(actions.PAIRS[n, :pairs], Action.FIRST_SWAP)
        swaps = [f"{first} + {step}: {one}-{two}" for first, (one, two) in seats]
        rows.append((n, actions.num_actions(n), ", ".join(swaps)))
    return pages.table(("players", "actions in all", "swaps on path e: of the pieces of which seats"), rows)


def reward() -> str:
    """Return the table of the rewards, by the number of winners."""
    rows = []
    for n in PLAYERS:
        game = Game(Rules(players=n))
        states = game.reset(n - 1, seed=0)  # who ends the game shares with nobody (R10): at most n - 1 win
        states["phase"] = Phase.OVER
        states["pieces"][:, n - 1] = game.rules.spaces + 1  # it has five pieces on numbers, and five points
        for winners, state in enumerate(states, 1):
            for seat in range(winners):
                state["pieces"][seat, [seat, seat + 1]] = game.rules.spaces + 5, game.rules.spaces + 3
        rewards = [f"{reward[0]:.4g}" for reward in game.rewards(states)]
        rows.append((n, *rewards, *[""] * (max(PLAYERS) - n), f"{game.rewards(states)[0, n - 1]:.4g}"))
    return pages.table(
        ("players", "the winner", *(f"each of {w}" for w in PLAYERS[:-1]), "anyone else"), rows
    )


TABLES: dict[str, Callable[[], str]] = {
    "state": state,
    "observation": observation,
    "compact": compact,
    "tokens": tokens,
    "token": token,
    "features": features,
    "action": action,
    "swap": swap,
    "reward": reward,
}
"""The tables of the page by their names."""


if __name__ == "__main__":
    PAGE.write_text(pages.renew(PAGE.read_text(), TABLES))
