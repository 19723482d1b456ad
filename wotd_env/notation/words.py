"""Short words for the legal actions of a position, such as `mm`, `m3` or `pass`."""

from __future__ import annotations

import functools

import numpy as np

from wotd_env.core.actions import PAIRS, Action, pairs, power_of
from wotd_env.core.checks import check_one
from wotd_env.core.game import Game
from wotd_env.core.position import LETTERS, SEATS, letters, wrong
from wotd_env.core.rules import DICE, ELEMENTS, Phase, Power, Rules
from wotd_env.core.state import States

FIXED_WORDS: dict[int, str] = {
    Action.STOP_ROLLING: "stop",
    Action.EQUILIBRIUM: "equilibrium",
    Action.WOOD_EQUILIBRIUM: "equilibrium+wood",
    Action.EARTH_EQUILIBRIUM: "equilibrium+earth",
    Action.PASS: "pass",
    Action.NO_MOVE_BY_FEAR: "fear",
    Action.END_TURN: "end",
    Action.PERFECTION_TURN: "perfection",
    Action.REBIRTH_TURN: "rebirth",
}
"""A dict from action to word. These words are the same in every position."""


def action_text(game: Game, state: States, action: int) -> str:
    """Return the short word of a legal action, such as `mm`, `m3` or `pass`. `state` is a position, STATE (1,).

    Raises:
        IllegalActionError: if the action is not legal.
        ValueError: if `state` is not one record, or the record is invalid under the rules of `game`.
    """
    check_one(state)
    after = state.copy()
    game.decide(after, [action])
    return word(game.rules, state[0], after[0], int(action))


def legal_words(game: Game, state: States) -> dict[str, int]:
    """Return the legal actions as a dict {word: action}, sorted by action. `state` is a position, STATE (1,).

    The result is empty if the game is over or a roll is due.

    Raises:
        ValueError: if `state` is not one record, or the record is invalid under the rules of `game`.
    """
    check_one(state)
    legal = np.flatnonzero(game.legal_actions(state)[0])
    if state["phase"][0] == Phase.OVER or not len(legal):
        return {}
    if state["phase"][0] == Phase.KEEP:
        holds = _hold_words(state[0])
        return {holds[action]: action for action in legal.tolist()}
    before = np.repeat(state, len(legal))
    after = before.copy()
    game.decide(after, legal)
    return {word(game.rules, *each): each[2] for each in zip(before, after, legal.tolist(), strict=True)}


def parse_action(game: Game, state: States, text: str) -> int:
    """Return the legal action with the word `text`. `state` is a position, STATE (1,).

    Raises:
        ValueError: if no legal action has this word; the message lists the legal words.
    """
    words = legal_words(game, state)
    if not isinstance(text, str):
        raise ValueError(f"action must be a string such as {next(iter(words), 'pass')!r}, got {text!r}")
    if not words:
        over = state["phase"][0] == Phase.OVER
        raise wrong("action", f"none, because {'the game is over' if over else 'a roll is due'}", text)
    if (found := sort_kept(text)) not in words:
        raise wrong("action", f"one of {', '.join(words)}", text)
    return words[found]


def sort_kept(text: str) -> str:
    """Return the word of an action with its kept dice in ascending order, such as `wwf` for `fww`."""
    kept, plus, power = text.partition("+")
    return "".join(sorted(kept, key=LETTERS.index)) + plus + power if set(kept) <= set(LETTERS) else text


def word(rules: Rules, before: np.void, after: np.void, action: int) -> str:
    """Return the word of an action, given the positions before and after the action."""
    if before["phase"] == Phase.KEEP:
        return _hold_words(before)[action]
    if action in FIXED_WORDS:
        return FIXED_WORDS[action]
    if action >= Action.FIRST_SWAP:
        path, pair = divmod(action - Action.FIRST_SWAP, pairs(rules.players))
        one, other = sorted((before["player"] + PAIRS[rules.players, pair]) % rules.players)
        return f"{LETTERS[path]}{SEATS[one]}-{SEATS[other]}"
    path = (action - Action.MOVE_ON) % len(ELEMENTS)
    space = int(after["pieces"][before["player"], path])
    number = space - rules.spaces
    power = power_of(action)
    destination = f"|{number}" if number > 0 else f"{space}"
    return f"{LETTERS[path]}{destination}" + ("" if power is None else f"+{ELEMENTS[power]}")


def _hold_words(record: np.void) -> list[str]:
    """Return the word of each hold; the index is the action. If no re-roll is left, a hold uses the tiger."""
    return _holds(record["dice"].tobytes(), "" if record["rolls_left"] else f"+{ELEMENTS[Power.TIGER]}")


@functools.cache
def _holds(dice: bytes, power: str) -> list[str]:
    faces = np.frombuffer(dice, np.int8)
    kept = [letters(faces[die] for die in range(DICE) if hold >> die & 1) for hold in range(1 << DICE)]
    rerolls = [(dice_kept or "none") + power for dice_kept in kept[: Action.STOP_ROLLING]]
    return [*rerolls, FIXED_WORDS[Action.STOP_ROLLING]]
