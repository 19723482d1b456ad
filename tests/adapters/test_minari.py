"""Minari datasets contain the observations and rewards of a learner in the Gymnasium environment."""

from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from tests.helpers.commands import wotd
from wotd_env import Game, Rules, recording
from wotd_env.cli import WRONG_USE
from wotd_env.core.observation import ENCODINGS
from wotd_env.envs.single import WayOfTheDragonEnv

minari: Any = pytest.importorskip("minari")
pytest.importorskip("h5py")

from wotd_env.adapters.minari import check, write  # noqa: E402 - needs the optional packages

pytestmark = pytest.mark.filterwarnings("default:.*:UserWarning")  # Minari warns about missing metadata


@pytest.fixture(autouse=True)
def own_datasets(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    monkeypatch.setattr("wotd_env.recording.writing.BLOCK", 8)


@pytest.mark.parametrize(
    ("rules", "encoding"),
    [
        (Rules(spaces=1), "one_hot"),
        (Rules(3, 2, "own", max_turns=20, colors=("wood", "fire", "metal")), "features"),
    ],
    ids=["2 players", "3 players, turn limit"],
)
def test_episodes_equal_games_in_the_gymnasium_environment(tmp_path, rules, encoding):
    names = ["greedy", "first", "greedy"][: rules.players]  # deterministic policies
    file = tmp_path / "games.parquet"
    recording.record(names, file, 20, rules, seed=4)
    episodes = write(file, "wotd/first-v0", "first", encoding)
    dataset = minari.load_dataset("wotd/first-v0")
    assert dataset.total_episodes == episodes > 0
    steps = 0
    for metadata, episode in zip(dataset.storage.get_episode_metadata(range(episodes)), dataset, strict=True):
        seat, seed = int(episode.infos["seat"][0]), metadata["seed"]
        assert (seed - 4 + 1) % rules.players == seat
        env = WayOfTheDragonEnv(opponents="greedy", seat=seat, encoding=encoding, **asdict(rules))
        observation, info = env.reset(seed=seed)
        for i, action in enumerate(episode.actions):
            assert np.array_equal(observation, episode.observations[i])
            assert np.array_equal(info["action_mask"], episode.infos["action_mask"][i])
            observation, reward, terminated, truncated, info = env.step(int(action))
            recorded = episode.rewards[i], episode.terminations[i], episode.truncations[i]
            assert (reward, terminated, truncated) == recorded
        assert terminated
        assert np.array_equal(observation, episode.observations[-1])
        assert np.array_equal(info["action_mask"], episode.infos["action_mask"][-1])
        steps += len(episode.actions)
    assert steps == dataset.total_steps == (np.array(names)[recording.load(file).policy] == "first").sum()


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_recover_environment_returns_the_environment_of_a_dataset(tmp_path, encoding):
    file = tmp_path / "games.parquet"
    recording.record(["random", "first", "greedy"], file, 9, Rules(players=3, spaces=0))
    write(file, "wotd/random-v0", "first", encoding)
    dataset = minari.load_dataset("wotd/random-v0")
    env = dataset.recover_environment()
    assert env.unwrapped.game.encoding == encoding
    assert isinstance(env.unwrapped, WayOfTheDragonEnv)
    assert env.unwrapped.game.rules == Rules(players=3, spaces=0)
    assert env.spec.kwargs["opponents"] == ["greedy", "random"]
    assert dataset.observation_space == env.observation_space
    assert dataset.action_space == env.action_space
    assert dataset.spec.env_spec.id == "wotd_env/WayOfTheDragon-v0"
    assert dataset.total_episodes > 0
    for episode in dataset:
        assert all(env.observation_space.contains(one) for one in episode.observations)


def test_a_failed_write_raises_and_leaves_nothing(tmp_path, monkeypatch):
    file = tmp_path / "games.parquet"
    recording.record(["first"], file, 9, Rules(spaces=0))
    with pytest.raises(ValueError, match="policy must be one of first, got 'greedy'"):
        write(file, "wotd/first-v0", "greedy")
    with pytest.raises(FileNotFoundError):
        write(tmp_path / "missing.parquet", "wotd/first-v0", "first")
    with monkeypatch.context() as patch:
        patch.setattr("wotd_env.adapters.minari.episodes", lambda *arguments: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            write(file, "wotd/first-v0", "first")
    assert write(file, "wotd/first-v0", "first") == 17  # both seats of nine games; one seat had no decision
    with pytest.raises(ValueError, match="the Minari dataset wotd/first-v0 exists"):
        write(file, "wotd/first-v0", "first")
    assert minari.load_dataset("wotd/first-v0").total_episodes == 17


def test_the_dataset_of_a_faster_process_is_kept(tmp_path, monkeypatch):
    file = tmp_path / "games.parquet"
    recording.record(["first"], file, 2, Rules(spaces=0))
    monkeypatch.setattr("wotd_env.adapters.minari.check", lambda *arguments: None)  # the other one came later
    other = tmp_path / "datasets" / "wotd" / "first-v0" / "data" / "main_data.hdf5"
    other.parent.mkdir(parents=True)
    other.write_text("theirs")
    with pytest.raises(ValueError, match="already exists"):
        write(file, "wotd/first-v0", "first")
    assert other.read_text() == "theirs"


def test_invalid_datasets_are_rejected_before_recording():
    for policies, policy, message in (
        (["greedy", "sb3:model.zip"], "greedy", "the opponent 'sb3:model.zip' needs trust=True"),
        (["sb3:model.zip"], "sb3:model.zip", "the opponent .* needs trust=True"),
        (["greedy", "first"], "random", "policy must be one of greedy, first, got 'random'"),
    ):
        with pytest.raises(ValueError, match=message):
            check("wotd/any-v0", Rules(), policies, policy)
    check("wotd/any-v0", Rules(), ["sb3:model.zip", "first"], "sb3:model.zip")
    with pytest.raises(ValueError, match="encoding must be one of 'one_hot'"):
        check("wotd/any-v0", Rules(), ["greedy"], "greedy", "pixels")
    with pytest.raises(ValueError, match="Malformed dataset ID"):
        check("no id", Rules(), ["greedy"], "greedy")


def test_the_encoding_option_needs_minari(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = wotd("record first --games 1 --encoding compact --quiet")
    assert result.exit_code == WRONG_USE
    assert "needs --minari" in result.stderr
    assert not list(tmp_path.iterdir())


def test_wotd_record_writes_games_and_dataset(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = "--games 9 --spaces 0 --quiet --minari wotd/greedy-v0 --out g.parquet --encoding compact"
    result = wotd(f"record greedy first {options}")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[1] == "wotd/greedy-v0: 9 episodes of greedy"
    expected = Game(Rules(spaces=0), encoding="compact").observation_size
    assert minari.load_dataset("wotd/greedy-v0").observation_space.shape == (expected,)
    result = wotd(f"record greedy first {options}")
    assert result.exit_code == WRONG_USE
    assert "the Minari dataset wotd/greedy-v0 exists" in result.stderr
