"""Bundled models: selection by rules, digests, and the page that lists them."""

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.damage import survive
from tests.helpers.games import positions
from tests.helpers.learned import some_value
from tests.helpers.networks import network
from tools import models as tool
from wotd_env import Game, Rules, make_policy, models
from wotd_env.arena import Tournament, run
from wotd_env.planning import learned
from wotd_env.policies import ppo, td
from wotd_env.policies.identity import policy_digest
from wotd_env.policies.onnx import is_intact
from wotd_env.policy import check_plays

OWN = Rules(players=3, powers="own", colors="random")


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder of bundled models with random weights: `td` for two sets of rules, `ppo` for one."""
    for rules in (Rules(), OWN):
        (tmp_path / f"{models.name_of('td', rules)}.npz").write_bytes(
            learned.save(some_value(rules), np.float16)
        )
    (tmp_path / "td-4-none.json").write_text("{}")
    game = Game()
    weights = np.random.default_rng(0).normal(size=(game.observation_size, game.num_actions))
    network(tmp_path, game, weights.astype(np.float32)).rename(tmp_path / "ppo-2-none.onnx")
    monkeypatch.setattr(models, "FOLDER", tmp_path)
    for policy in (td, ppo):
        policy.load_model.cache_clear()
    yield tmp_path
    for policy in (td, ppo):
        policy.load_model.cache_clear()


@pytest.mark.parametrize(
    "rules", [Rules(), Rules(start=1, max_turns=50), OWN, Rules(players=3, powers="own")], ids=str
)
def test_td_plays_with_the_model_for_the_rules(bundle: Path, rules: Rules):
    game, state, rng = Game(rules), positions(rules), np.random.default_rng(0)
    file = bundle / f"{models.name_of('td', rules)}.npz"
    expected = make_policy(f"td:{file}").act(game, state, rng)
    policy = make_policy("td")
    np.testing.assert_array_equal(policy.act(game, state, rng), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(policy)).act(game, state, rng), expected)


def test_ppo_plays_with_its_bundled_network(bundle: Path):
    game, state, rng = Game(), positions(Rules()), np.random.default_rng(0)
    expected = make_policy(f"onnx:{bundle / 'ppo-2-none.onnx'}").act(game, state, rng)
    np.testing.assert_array_equal(make_policy("ppo").act(game, state, rng), expected)
    with pytest.raises(ValueError, match=r"no trained model of ppo .*players=3.* There are ppo-2-none "):
        run(Tournament(("ppo", "random"), Rules(players=3), games=3), workers=0)


@pytest.mark.parametrize(
    "other", [{"players": 4}, {"spaces": 6}, {"powers": "any"}, {"immunity": True}], ids=str
)
def test_error_for_rules_without_a_model_lists_the_models(bundle: Path, other: dict[str, object]):
    rules = Rules(**other)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"no trained model of td .* There are td-2-none, td-3-own "):
        run(Tournament(("td", "random"), rules, games=2), workers=0)
    with pytest.raises(ValueError, match="no trained model of td"):
        make_policy("td").act(Game(rules), Game(rules).reset(1), np.random.default_rng(0))


def test_a_model_is_loaded_once_for_all_rules(bundle: Path):
    players = [(make_policy("td"), OWN), (make_policy("ppo"), Rules())]
    for policy, own in players:
        for turns in range(1, 2001):
            check_plays(policy, Rules(own.players, powers=own.powers, colors=own.colors, max_turns=turns))
    for module in (td, ppo):
        assert module.load_model.cache_info().currsize == 1
    assert models._find.cache_info().currsize <= 256


def test_digest_changes_with_the_bundled_model(bundle: Path):
    before = policy_digest("td")
    assert policy_digest("td") == before
    (bundle / "td-2-none.npz").write_bytes(learned.save(some_value(Rules(), seed=1)))
    assert policy_digest("td") != before


CARDS = sorted(models.FOLDER.glob("*.json"))


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.stem)
def test_the_page_matches_the_model_cards(card: Path):
    known = json.loads(card.read_text())
    rules = Rules.from_dict(known["rules"])
    assert models.find(known["policy"], rules).stem == card.stem
    game = Game(models.rules_of(rules))
    make_policy(known["policy"]).act(game, game.reset(4, seed=0), np.random.default_rng(0))
    page = (tool.PAGES / tool.PAGE).read_text()
    assert f"{known['command']}\n" in page
    assert known["curve"][-1][0] > 0
    assert all(counts["games"] >= 1000 for counts in known["result"].values())


@pytest.mark.parametrize("file", sorted(models.FOLDER.glob("*.onnx")), ids=lambda file: file.stem)
def test_bundled_networks_have_a_digest(file: Path):
    content = file.read_bytes()
    assert is_intact(content)
    assert not is_intact(content[:1000] + b"\xff" + content[1001:])


@pytest.mark.parametrize("flips", [200, pytest.param(3000, marks=pytest.mark.slow)])
def test_damaged_values_are_refused_or_unchanged(tmp_path: Path, flips: int):
    file = tmp_path / "value.npz"
    file.write_bytes(learned.save(some_value(Rules(spaces=0)), np.float16))

    def read(file: Path) -> list[Any]:
        value = learned.load(file)
        return [value.rules, *(array.tobytes() for array in value.network)]

    survive(file, read, flips)


def test_the_page_is_up_to_date():
    cards = [json.loads(card.read_text()) for card in CARDS]
    assert tool.table(cards, models.FOLDER) in (tool.PAGES / tool.PAGE).read_text()


def test_train_accepts_the_command_of_a_model():
    pytest.importorskip("torch", reason="needs the extra train")
    from agents import command, ppo

    usual, rules = vars(ppo.PRESETS["quick"]), Rules(players=3, immunity=True)
    changed = {"seed": 3, "ent_coef": 0.1, "num_envs": 64}
    words = tool.command("ppo", usual | changed, rules).split()
    assert words[:2] == ["python", "train.py"]
    _, settings = command.parse(words[2:])
    assert vars(settings) | {"folder": None} == usual | changed | {"rules": rules}


def test_the_page_shows_the_sizes_of_the_given_files(tmp_path: Path):
    (tmp_path / f"{CARDS[0].stem}.npz").write_bytes(bytes(2_000_000))
    assert "2,000 kB" in tool.table([json.loads(CARDS[0].read_text())], tmp_path)
