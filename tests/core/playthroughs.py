"""Readable transcripts of whole games, which reveal any change of behavior.

`python tests/core/playthroughs.py --regenerate` overwrites them; then review the difference.
"""

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from wotd_env import Game, Phase, Rules, describe_action

FOLDER = Path(__file__).with_suffix("")

# Rules and seeds; the seeds are chosen for varied games.
PLAYTHROUGHS = {
    "2_players": (Rules(spaces=4), 6),
    "2_players_powers": (Rules(spaces=3, powers="any", dead_pieces=4, immunity=True), 20),
    "3_players": (Rules(players=3, spaces=2), 6),
    "3_players_powers": (
        Rules(players=3, spaces=3, powers="own", colors=("metal", "earth", "wood"), dead_pieces=2),
        1,
    ),
    "4_players": (Rules(players=4, spaces=2), 117),
    "4_players_powers": (
        Rules(players=4, spaces=2, powers="own", colors="random", start=2, immunity=True),
        26,
    ),
    "5_players": (Rules(players=5, spaces=1, max_turns=60), 116),
    "5_players_powers": (Rules(players=5, spaces=1, powers="own"), 93),
}

ELEMENTS = ("water", "fire", "metal", "earth", "wood")
FACES = (*ELEMENTS, "dragon")


def path_in_words(rules: Rules, record: np.void, path: int) -> str:
    """Return one path: the pieces off the board, the plain spaces, the numbered spaces."""
    marks = ["."] * (rules.spaces + 6)
    for space in range(1, rules.spaces + 1):
        if record["dead"][path] >> space & 1:
            marks[space] = "#"
    waiting = ""
    for seat in range(rules.players):
        space = record["pieces"][seat, path]
        if space == 0:
            waiting += "abcde"[seat]
        else:
            marks[space] = "abcde"[seat]
    plain, numbered = "".join(marks[1 : rules.spaces + 1]), "".join(marks[rules.spaces + 1 :])
    return f"  {ELEMENTS[path]:<6}{waiting:>6} {plain}|{numbered}"


def board_in_words(rules: Rules, record: np.void) -> list[str]:
    return [path_in_words(rules, record, path) for path in range(5)]


def dice_in_words(record: np.void) -> str:
    return " ".join("?" if face < 0 else FACES[face] for face in record["dice"])


def seat_in_words(record: np.void, seat: int) -> str:
    used = ", power used" if record["used"] >> seat & 1 else ""
    return f"{'abcde'[seat]} ({ELEMENTS[record['color'][seat]]}{used})"


def transcript(rules: Rules, seed: int) -> Iterator[str]:
    """Yield the lines of one game, including forced decisions."""
    game = Game(rules, skip_forced=False)
    state = game.reset(1, seed=seed)
    record = state[0]
    yield f"{rules}, seed {seed}"
    yield "Letters are the seats' pieces, # is a dead piece; pieces off the board come before the path."
    turn, ply = -1, 0
    while record["phase"] != Phase.OVER:
        if record["turn"] != turn:
            turn = int(record["turn"])
            yield ""
            yield f"turn {turn}: {seat_in_words(record, int(record['player']))}"
            yield from board_in_words(rules, record)
        legal = np.flatnonzero(game.legal_actions(state)[0]).tolist()
        action = scripted(rules, record, legal, ply)
        phase = Phase(int(record["phase"]))
        extra = f", {record['rolls_left']} re-rolls left" if phase == Phase.KEEP else ""
        yield f"{ply:4} {phase.name}: {dice_in_words(record)}{extra}"
        words = legal_in_words(rules, record, legal)
        yield from textwrap.wrap(words, 110, initial_indent="     legal: ", subsequent_indent="            ")
        yield f"     -> {action}: {describe_action(action, rules)}"
        game.step(state, np.array([action]))
        ply += 1
    yield ""
    yield f"over after {record['turn']} finished turns{' (turn limit)' if record['expired'] else ''}"
    yield from board_in_words(rules, record)
    for seat, (score, reward) in enumerate(zip(game.scores(state)[0], game.rewards(state)[0], strict=True)):
        yield f"  {seat_in_words(record, seat)}: {score} points, reward {reward:+.3f}"


def legal_in_words(rules: Rules, record: np.void, legal: list[int]) -> str:
    if record["phase"] == Phase.KEEP:
        kept = ["+".join(FACES[record["dice"][i]][:2] for i in range(5) if mask >> i & 1) for mask in legal]
        return "keep " + ", ".join(f"{mask}:{faces or '-'}" for mask, faces in zip(legal, kept, strict=True))
    return "; ".join(f"{action} {describe_action(action, rules)}" for action in legal)


def scripted(rules: Rules, record: np.void, legal: list[int], ply: int) -> int:
    """Keep the most frequent face of an unfinished path; otherwise choose by a hash of the ply.

    Without a random generator, the transcripts depend only on the game.
    """
    scramble = (ply * 2654435761 >> 8) & 0xFFFF
    if record["phase"] == Phase.KEEP and scramble % 4:
        dice = record["dice"].tolist()
        unfinished = [path for path in range(5) if record["pieces"][record["player"], path] <= rules.spaces]
        face = max(unfinished, key=dice.count)
        kept = sum(1 << i for i in range(5) if dice[i] == face)
        return kept if kept in legal else legal[-1]
    return legal[(scramble >> 2) % len(legal)]


def text(name: str) -> str:
    return "\n".join(transcript(*PLAYTHROUGHS[name])) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] != ["--regenerate"]:
        sys.exit(__doc__)
    for name in PLAYTHROUGHS:
        (FOLDER / f"{name}.txt").write_text(text(name), encoding="utf-8")
