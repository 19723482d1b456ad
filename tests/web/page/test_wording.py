"""The words of the page agree with those of the package, in games with all kinds of decisions."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the fixtures of tests/web need the extra web")

from tests.helpers.node import check_agreement
from wotd_env import Game, Rules
from wotd_env.core.actions import Action
from wotd_env.core.words import describe_decision
from wotd_env.rendering.text import describe_result
from wotd_env.web import views

COMPARISON = Path(__file__).with_name("wording.js")
RULES = (
    Rules(),
    Rules(spaces=1, powers="any"),
    Rules(players=3, spaces=2, powers="own"),
    Rules(spaces=1, powers="own", colors=("earth", "metal")),
    Rules(spaces=0, max_turns=3),
)
NAMED = {
    Rules(): "2 players, no powers",
    Rules(players=3, dead_pieces=1, immunity=True): "3 players, no powers, immunity, 1 dead piece",
    Rules(spaces=1, powers="any", start="loser"): (
        "2 players, any one power, 1 plain space, the loser starts the next game"
    ),
    Rules(powers="own", colors="random"): "2 players, own powers, random colors",
}


def test_words_agree_with_the_package(tmp_path: Path) -> None:
    played = [play(Game(rules, skip_forced=False), seed) for rules in RULES for seed in range(12)]
    decisions = [decision for each, _ in played for decision in each]
    kinds = {(decision["parts"]["kind"], decision["parts"]["power"]) for decision in decisions}
    assert {("keep", None), ("keep", 2), ("move", None), ("jump", 3), ("wood", 4), ("fear", 0)} <= kinds
    assert {("pass", None), ("equilibrium", None), ("stop", None), ("end", None), ("rebirth", 1)} <= kinds
    file = tmp_path / "decisions.json"
    rules = [{"values": asdict(each), "words": words} for each, words in NAMED.items()]
    results = [result for _, result in played]
    file.write_text(json.dumps({"decisions": decisions, "results": results, "rules": rules}))
    check_agreement(COMPARISON, WOTD_DECISIONS=str(file))


def play(game: Game, seed: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the decisions and the result of a game of random actions, with their words."""
    rng, state = np.random.default_rng(seed), game.reset(1, seed=seed)
    names = ["Ann", "Bob", "Cem", "Dora", "Eve"][: game.rules.players]
    decisions = []
    while not game.is_over(state)[0]:
        action = int(rng.choice(np.flatnonzero(game.legal_actions(state)[0])))
        parts, after = views.action_parts(game, state, action), state.copy()
        game.decide(after, [action])
        words = describe_decision(game.rules, state[0], after[0], action)
        if action == Action.PASS:
            words = "pass: no piece can move by the dice"
        elif parts["kind"] == "swap":
            one, other = (names[seat] for seat in parts["seats"])
            words = f"swap the pieces of {one} and {other} on {words.split()[2]}"
        shown = {"rules": asdict(game.rules), "names": names, "dice": state["dice"][0].tolist()}
        decisions.append({**shown, "parts": parts, "words": words})
        game.step(state, [action])
    return decisions, {
        "result": views.result(game, state),
        "names": names,
        "words": describe_result(game, state, names),
    }
