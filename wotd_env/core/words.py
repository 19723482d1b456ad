"""Actions and dice in words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from wotd_env.core.actions import PAIRS, Action, num_actions, pairs
from wotd_env.core.arguments import check_integer
from wotd_env.core.rules import DICE, ELEMENTS, PATHS, Phase, Rules

_FIXED: dict[int, str] = {
    Action.STOP_ROLLING: "keep all dice and stop rolling",
    Action.EQUILIBRIUM: "equilibrium: advance every piece that can",
    Action.WOOD_EQUILIBRIUM: "equilibrium with the dragon as the missing element: advance every piece that can (wood)",
    Action.EARTH_EQUILIBRIUM: "equilibrium: advance every piece, blocked ones jump (earth)",
    Action.PASS: "pass",
    Action.NO_MOVE_BY_FEAR: "stay put although a move is possible (fear, water)",
    Action.END_TURN: "end the turn",
    Action.PERFECTION_TURN: "take the extra turn of perfection",
    Action.REBIRTH_TURN: "take an extra turn (rebirth, fire)",
}
_SEATS = ("me", "the next seat", "the 2nd next seat", "the 3rd next seat", "the 4th next seat")


def describe_action(action: int, rules: Rules | None = None) -> str:
    """Return an action in words; raise ValueError for an unknown action.

    Dice are counted from 0, like the bits of a hold. Without `rules`, the action belongs to a game of two players.
    """
    players = 2 if rules is None else rules.players
    action = check_integer("action", action, 0, num_actions(players) - 1, f"for {players} players")
    if action in _FIXED:
        return _FIXED[action]
    if action < Action.STOP_ROLLING:
        kept = [str(die) for die in range(DICE) if action >> die & 1]
        if not kept:
            return "re-roll all dice"
        return f"keep {'dice' if len(kept) > 1 else 'die'} {', '.join(kept)} and re-roll the rest"
    if action < Action.EQUILIBRIUM:
        kind, path = divmod(action - Action.MOVE_ON, PATHS)
        words = ("move on {0}", "move on {0}, dragons counted as {0} (wood)", "jump on {0} (earth)")[kind]
        return words.format(ELEMENTS[path])
    path, pair = divmod(action - Action.FIRST_SWAP, pairs(players))
    one, other = PAIRS[players, pair]
    return f"swap on {ELEMENTS[path]} the pieces of {_SEATS[one]} and {_SEATS[other]}"


def describe_illegal(rules: Rules, record: Any, action: int, legal: list[int]) -> str:
    """Return the reason why an action is illegal, and the legal actions. `record` is the record of the game."""
    known = 0 <= action < num_actions(rules.players)
    return (
        f"action {action} ({describe_action(action, rules) if known else 'no such action'}) is illegal "
        f"for seat {record['player']} in phase {Phase(record['phase']).name} "
        f"with dice {show_dice(record['dice'])}; "
        f"legal: {'; '.join(f'{each} ({describe_action(each, rules)})' for each in legal)}"
    )


def describe_decision(rules: Rules, before: Any, after: Any, action: int) -> str:
    """Return a legal action in words, with the kept faces or the destinations of the pieces.

    `before` is the record of the game at the decision; `after` is the record after the action, before the next roll.
    """
    words = describe_action(action, rules)
    if before["phase"] == Phase.KEEP:
        if action == Action.STOP_ROLLING:
            return words
        if action:
            words = f"keep {show_dice(after['dice'])} and re-roll the rest"
        return words if before["rolls_left"] else f"{words} (eye of the tiger, metal)"
    if action >= Action.FIRST_SWAP:
        return words
    for seat, path in np.argwhere(before["pieces"] != after["pieces"]):
        element = "" if action < Action.EQUILIBRIUM else f"{ELEMENTS[path]} "
        space = int(after["pieces"][seat, path])
        words += f", {element}to "
        words += f"space {space}" if space <= rules.spaces else f"number {space - rules.spaces}"
    return words


def show_dice(faces: ArrayLike) -> str:
    """Return faces in words, e.g. "water, dragon". Unrolled dice, -1, are left out."""
    return ", ".join((*ELEMENTS, "dragon")[face] for face in np.asarray(faces) if face >= 0) or "none"
