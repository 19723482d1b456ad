"""The module wotd.wasm (`python -m tools.wasm`) is up to date and agrees with the engine."""

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers import run_python
from tests.helpers.node import check_agreement, run_node
from tests.helpers.variants import typical_variants
from tools import wasm
from tools.wasm import build
from tools.wasm.weights import weights
from wotd_env import Game, Phase, Rules
from wotd_env.core.starting import roll_off_of
from wotd_env.planning.planner import best_actions, plan
from wotd_env.planning.values import hand_made
from wotd_env.policies.td import BundledValue

GAMES, STEPS, PLANS = 8, 60, 24  # of each variant
AGREEMENT = Path(__file__).with_name("agreement.js")


def test_built_module_is_not_stale():
    built = json.loads(wasm.BUILT.read_text())
    assert built["sources"] == wasm.source_digest(), "sources have changed: run `python -m tools.wasm`"
    assert built["module"] == wasm.digest(wasm.MODULE.read_bytes())


def test_decisions_agree_in_all_variants(tmp_path):
    variants = [record(tmp_path, number, rules) for number, rules in enumerate(typical_variants())]
    assert sum(variant["decisions"] for variant in variants) > 20_000
    (tmp_path / "variants.json").write_text(json.dumps({"module": str(wasm.MODULE), "variants": variants}))
    check_agreement(AGREEMENT, WOTD_DECISIONS=str(tmp_path))


def test_missing_linker_is_named(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match="wasm-ld of LLVM: apt-get install lld"):
        build.build(simd=True)


def test_invalid_options_and_values_of_other_rules_are_refused(tmp_path):
    (tmp_path / "td").write_bytes(weights(Rules(players=3)))
    code = f"""
        import {{ readFileSync }} from "node:fs";
        import {{ load }} from {json.dumps(wasm.MODULE.with_suffix(".js").as_uri())};
        const engine = await load(readFileSync({json.dumps(str(wasm.MODULE))}));
        const refused = (call) => {{ try {{ call(); }} catch (error) {{ console.log(error.message); }} }};
        refused(() => engine.game().learned(readFileSync("td")));
        refused(() => engine.game({{ players: 9 }}));
        refused(() => engine.game({{ dead_pieces: 20 }}));
        refused(() => engine.game({{ powers: "all" }}));
        refused(() => engine.game({{ colors: ["fire", "fire"] }}));
    """
    (tmp_path / "page.mjs").write_text(code)
    refused = run_node("page.mjs", cwd=tmp_path)
    assert refused.stdout.splitlines() == [
        "the value is for players 3, but the game has 2",
        "players must be 2 to 5, got 9",
        "dead_pieces must be 0 to 15, got 20",
        'powers must be "none" or "own" or "any", got "all"',
        "colors must be 2 different names among water, fire, metal, earth, wood, got fire,fire",
    ]


@pytest.mark.slow
def test_rebuilt_module_has_the_same_bytes(tmp_path):
    built = json.loads(wasm.BUILT.read_text())
    if built["versions"] != wasm.versions():
        pytest.skip(f"the module was built with {built['versions']}")
    rebuilt = tmp_path / "wotd.wasm"
    run_python("-m", "tools.wasm", "--into", rebuilt)
    assert rebuilt.read_bytes() == wasm.MODULE.read_bytes()


def record(folder: Path, number: int, rules: Rules) -> dict[str, Any]:
    """Play random games, write all decisions to files in a folder, and return their description."""
    encoding = ("one_hot", "compact", "tokens", "features")[number % 4]
    game = Game(rules, skip_forced=number % 3 > 0, encoding=encoding)
    rows = played(game, np.random.default_rng(number))
    arrays = {name: np.concatenate(each) for name, each in rows.items()}
    kinds = [arrays["before"]["phase"] == phase for phase in (Phase.KEEP, Phase.MOVE, Phase.EXTRA)]
    chosen = [arrays["before"][kind][: PLANS // 4] for kind in kinds]
    chance = arrays["decided"][arrays["decided"]["phase"] == Phase.CHANCE][: PLANS // 4]
    arrays["planned"] = np.concatenate([*chosen, chance])
    arrays |= plans("handmade", game, arrays["planned"], hand_made)
    network = None
    if number % 4 == 0:
        arrays |= plans("learned", game, arrays["planned"], BundledValue())
        network = f"{number}-network"
        (folder / network).write_bytes(weights(rules))
    for name, array in arrays.items():
        (folder / f"{number}-{name}").write_bytes(np.ascontiguousarray(array).tobytes())
    return {
        "options": {**asdict(rules), "skip_forced": game.skip_forced, "encoding": encoding},
        "games": GAMES,
        "decisions": len(arrays["before"]),
        "plans": len(arrays["planned"]),
        "network": network,
        "roll_offs": [
            [[None if -1 in dice else dice for dice in seats] for seats in roll_off_of(game, seed).tolist()]
            for seed in range(3)
        ],
        "arrays": [{"name": f"{number}-{name}", "size": array[0].nbytes} for name, array in arrays.items()],
    }


def played(game: Game, rng: np.random.Generator) -> dict[str, list[np.ndarray]]:
    """Return decisions of random games, and all that the engine says about them."""
    rows: dict[str, list[np.ndarray]] = {}
    state = game.reset(GAMES, seed=0)
    for _ in range(STEPS):
        mask = game.legal_actions(state)
        action = np.array([rng.choice(np.flatnonzero(each)) for each in mask], np.uint8)
        decided, after = state.copy(), state.copy()
        game.decide(decided, action)
        game.step(after, action)
        following = after.copy()
        game.reset(following, where=game.is_over(after))
        found = {
            "before": state,
            "mask": mask,
            "action": action,
            "observation": game.observe(state),
            "decided": decided,
            "after": after,
            "scores": game.scores(after).astype(np.uint8),
            "rewards": game.rewards(after),
            "next": following,
        }
        for name, array in found.items():
            rows.setdefault(name, []).append(array.copy())
        state = following
    return rows


def plans(name: str, game: Game, state: np.ndarray, value: Any) -> dict[str, np.ndarray]:
    """Return the values of all actions and states, and the best actions (-1 if there is no decision)."""
    actions, values = plan(game, state, value)
    best = np.where(np.isfinite(actions).any(1), best_actions(actions, values), -1)
    return {f"{name}-actions": actions, f"{name}-value": np.stack([values.astype(float), best], 1)}
