"""Messages for agents that read text: the rules in words, and positions as several lines."""

from __future__ import annotations

from collections.abc import Iterator

from wotd_env.core.game import Game
from wotd_env.core.position import LETTERS, SEATS, position
from wotd_env.core.rules import Phase, Rules
from wotd_env.core.state import States
from wotd_env.notation.words import legal_words

_DUE = {
    Phase.KEEP: "choose the dice to keep",
    Phase.MOVE: "choose a move",
    Phase.EXTRA: "choose whether to take a further turn",
}


def describe(game: Game, state: States, legal: bool) -> str:
    """Return a position as several lines, with the legal actions if `legal` is true. `state` is STATE (1,)."""
    rules, record = game.rules, state[0]
    board, colors, turn, seat, _, left, dice, *_ = position(rules, state).split()
    facts = [f"Turn {turn}, {seat} to act: {_DUE[Phase(record['phase'])]}."]
    facts.append(f"Dice: {dice}, re-rolls left: {left}.")
    if record["perfection"]:
        facts.append("This turn has earned a further turn.")
    if rules.powers == "own" or rules.immunity:
        named = zip(SEATS, colors.partition("(")[0], strict=False)
        facts.append(f"Colors: {', '.join(f'{one} {color}' for one, color in named)}.")
    if rules.powers != "none":
        used = [letter for k, letter in enumerate(SEATS) if record["used"] >> k & 1]
        facts.append(f"Power used by: {', '.join(used) or 'nobody'}.")
    lines = [f"{face} {path}" for face, path in zip(LETTERS, board.split("/"), strict=False)]
    lines.append(" ".join(facts))
    if legal:
        lines.append(f"Legal actions: {', '.join(legal_words(game, state))}")
    return "\n".join(lines)


def explain(rules: Rules, retries: int) -> str:
    """Return the rules of the game and the format of replies in words, fewer than 500 of them."""
    return "\n".join(_explanation(rules, retries))


def _explanation(rules: Rules, retries: int) -> Iterator[str]:
    n = rules.players
    plain = f"{rules.spaces} plain space{'s' * (rules.spaces > 1)}, then | and " if rules.spaces else "| and "
    dead = " # is a dead piece, which never moves and occupies its space." if rules.dead_pieces else ""  # R15
    yield (
        f"Way of the Dragon is a dice race of {n} players, {', '.join(SEATS[:n])}, in turn order. The board has five "
        "paths: w (water), f (fire), m (metal), e (earth) and o (wood). "
        f"A path is drawn as {plain}5 numbered spaces, worth 1 to 5 points. A dot is an empty space, a letter is a "
        f"player's piece.{dead} Each player has one piece for each path; pieces that are not drawn are off the board, "
        "before the first space. A space holds one piece."
    )
    yield (  # R2, R3, R4, R5
        "Dice: In a turn you roll five dice, which show elements or d (dragon). You may re-roll any of them, up to two "
        "times. Then you choose an element, and your piece on its path moves one space for each die that shows the "
        "element. Only the destination must be empty; pieces in between do not block. A piece on a numbered space does "
        "not move by dice. You pass only if no move is possible."
    )
    yield (  # R7, R8
        "Equilibrium: with five different elements, each of your pieces that can advance one space does so, instead of "
        "a move. Perfection: a piece that moves by five dice of one element earns a further turn, which you may refuse."
    )
    immune = " Nobody can swap a piece on the path of its own color." if rules.immunity else ""
    yield (  # R6, R14
        "Calling the dragon: with four dragons you may, instead of moving, swap two pieces of any players that stand "
        "on the path of the fifth die, also on numbered spaces; with five dragons, on any one path." + immune
    )
    yield (  # R9, R10, R16
        "End: as soon as a player has five pieces on numbered spaces, the game ends. Most points win; if equal, most "
        "pieces on numbered spaces; if still equal, the win is shared. After "
        f"{rules.max_turns} turns the game ends without a winner."
    )
    if rules.powers != "none":
        whose = "the power of its color" if rules.powers == "own" else "one power of its choice"
        yield (  # R11, R12, R13
            f"Powers: once per game, each player may use {whose}. Water, fear: do not move although a move is "
            "possible. Fire, rebirth: a further turn after this one. Metal: a third re-roll. Earth: if the destination "
            "is occupied, the piece goes on to the next empty space; in an equilibrium all blocked pieces do. "
            "Wood: all dragons count as one element of your choice."
        )
    yield "Actions:"
    yield "- wwf: keep two waters and a fire, re-roll the rest; none: re-roll all dice; stop: keep all dice"
    yield "- m3: move on metal to plain space 3; m|2: move on metal to the number 2; equilibrium; pass"
    yield "- mA-B: swap the pieces of A and B on metal"
    yield "- perfection: take the further turn; end: end the turn"
    if rules.powers != "none":
        yield (
            "- fear; rebirth; others with the color of the power: wwf+metal (re-roll), m3+earth, m3+wood, "
            "equilibrium+earth, equilibrium+wood"
        )
    attempts = f"{retries + 1} attempts for each decision" if retries else "one attempt"
    yield (
        "Reply: think first if you like. Your action is the text in the last <action>...</action> of the reply, such "
        f"as <action>stop</action>. You have {attempts}; without a legal action you lose."
    )
