"""Create recorded games from decisions, and write them as text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wotd_env import files
from wotd_env.core.arguments import check_integers
from wotd_env.core.game import Game
from wotd_env.core.position import SEATS, letters, position
from wotd_env.core.rules import Phase, Rules
from wotd_env.core.state import ROW, States
from wotd_env.notation.words import word

NOBODY = "?"  # name of an unknown player


class RecordedGame(NamedTuple):
    """A recorded game with T decisions; `str` returns its text."""

    rules: Rules
    states: States
    """STATE (T + 1,), the position at every decision, including forced decisions, then the last position"""
    actions: NDArray[np.int64]  #: the decisions, int64 (T,)
    players: tuple[str, ...]  #: names of the players, by seat; "?" if unknown
    seed: int | None = None  #: seed of `Game.reset(1, seed=...)`; None if unknown

    def __str__(self) -> str:
        return _text(self)


def record_game(
    rules: Rules,
    actions: ArrayLike,
    *,
    seed: int | None = None,
    state: States | None = None,
    players: Sequence[str] = (),
) -> RecordedGame:
    """Replay a game from its seed, or from its first position with the random stream, and return it.

    Args:
        rules: the rules.
        actions: the decisions, integers (T,). Forced decisions may be left out.
        seed: seed of `Game.reset`.
        state: STATE (1,), the first position, if `seed` is not given.
        players: names of the players, by seat.

    Raises:
        IllegalActionError: for an illegal action.
        ValueError: for actions after the end of the game, or if not exactly one of `seed` and `state` is given.
    """
    if (seed is None) == (state is None):
        raise ValueError("a game is recorded from one of seed and state, got both or none")
    game = Game(rules, skip_forced=False)
    current = game.reset(1, seed=seed) if state is None else state.copy()
    game.roll(current)
    given = check_integers("actions", actions, (np.size(actions),))
    states, taken = [current.copy()], []

    def take(action: int) -> None:
        game.step(current, [action])
        taken.append(action)
        states.append(current.copy())

    for done, action in enumerate(given.tolist()):
        if (forced := _forced(game, current)) is not None and forced != action:
            take(forced)
        if current["phase"][0] == Phase.OVER:
            raise ValueError(f"the game is over after {done} actions, got {len(given)}")
        take(action)
    if (forced := _forced(game, current)) is not None:
        take(forced)
    names = tuple(players) or (NOBODY,) * rules.players
    if len(names) != rules.players:
        raise ValueError(f"players must be a name for each of the {rules.players} seats, got {names!r}")
    return RecordedGame(rules, np.concatenate(states), np.array(taken, np.int64), names, seed)


def _forced(game: Game, state: States) -> int | None:
    """Return the only legal move of a position; None if several moves are legal or no move is due."""
    if state["phase"][0] != Phase.MOVE:
        return None
    legal = np.flatnonzero(game.legal_actions(state)[0])
    return int(legal[0]) if len(legal) == 1 else None


def write_game(file: str | Path, game: RecordedGame) -> None:
    """Write a game to a file, as text.

    Raises:
        OSError: if the file cannot be written; an older file is unchanged.
        ValueError: for an invalid game, such as a game in which forced decisions are missing.
    """
    files.write(Path(file), str(game).encode())


def _text(recorded: RecordedGame) -> str:
    """Return the text of a game, after checking it."""
    rules, states, actions, players, seed = recorded
    game = Game(rules, skip_forced=False)
    if len(states) != len(actions) + 1 or len(players) != rules.players:
        raise ValueError(
            f"a game must have one position more than actions, and {rules.players} players, "
            f"got {len(states)}, {len(actions)} and {len(players)}"
        )
    after = states[:-1].copy()
    game.decide(after, actions)
    due = (after["phase"] == Phase.CHANCE) & (states[1:]["phase"] != Phase.CHANCE)
    by_hand, by_stream = after.copy(), after.copy()
    for rolled_states, dice in ((by_hand, states[1:]["dice"][due]), (by_stream, None)):
        rolled = rolled_states[due]
        game.roll(rolled, dice)
        rolled_states[due] = rolled
    if (same := same_but_stream(by_hand, states[1:])).sum() < len(actions):
        first = int(same.argmin())
        raise ValueError(
            f"position {first + 1} of the game must be the result of action {first}; all decisions are recorded, "
            "forced ones too, which record_game adds"
        )
    follows = bool(_equal(by_stream, states[1:]).all())
    if seed is not None and not (follows and _equal(game.reset(1, seed=seed), states[:1])[0]):
        raise ValueError(f"the dice of the game must be those of its seed, got seed {seed} and other dice")

    stream = seed is None and follows and bool(states["rng"][0])
    tags = {"Position": position(rules, states[:1], stream=stream)}
    if seed is not None:
        tags["Seed"] = str(seed)
    tags |= dict(zip(SEATS, players, strict=False)) | outcome(game, states[-1:])
    lines = [f"[{tag} {json.dumps(text, ensure_ascii=not text.isprintable())}]" for tag, text in tags.items()]
    turn = -1
    for i, state in enumerate(states):
        if state["phase"] in (Phase.OVER, Phase.CHANCE):
            break  # the last position: no decision follows
        if state["turn"] != turn:
            turn = int(state["turn"])
            lines += [""] * (i == 0) + [f"{turn + 1}. {SEATS[state['player']]}"]
        if i == 0 or due[i - 1]:
            lines[-1] += f" [{letters(state['dice'])}]"
        if i < len(actions):
            lines[-1] += f" {word(rules, state, after[i], int(actions[i]))}"
    return "\n".join(lines) + "\n"


def same_but_stream(one: States, other: States) -> NDArray[np.bool_]:
    """Return for each pair of states whether they are equal except for the random stream, bool (N,)."""
    other = other.copy()
    other["rng"] = one["rng"]
    return _equal(one, other)


def _equal(one: States, other: States) -> NDArray[np.bool_]:
    """Return for each pair of states whether they are equal bit by bit, bool (N,)."""
    equal: NDArray[np.bool_] = one.view(ROW) == other.view(ROW)
    return equal


def outcome(game: Game, state: States) -> dict[str, str]:
    """Return the tags `Result` and `Points` of a game, given its last position, STATE (1,)."""
    points = "-".join(map(str, game.scores(state)[0]))
    if not game.is_over(state)[0]:
        return {"Result": "*", "Points": points}
    rewards = game.rewards(state)[0]
    won = rewards == rewards.max()  # True for all seats if the game was truncated
    return {"Result": "-".join(str(Fraction(int(one), int(won.sum()))) for one in won), "Points": points}
