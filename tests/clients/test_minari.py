"""Minari reads the datasets of recorded games and recovers the environment from them."""

import numpy as np
import pytest

pytest.importorskip("minari", reason="Minari is not installed: pip install 'wotd-env[minari]'")
pytest.importorskip("h5py")

import minari

from wotd_env import Rules, recording
from wotd_env.adapters.minari import write

pytestmark = pytest.mark.filterwarnings("default:.*:UserWarning")  # Minari warns about missing metadata


@pytest.fixture(autouse=True)
def own_datasets(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))


@pytest.mark.client("Minari", "minari", "wotd record greedy --minari ID")
def test_minari_loads_episodes_and_recovers_the_environment(tmp_path):
    recording.record(["greedy"], tmp_path / "games.parquet", 8, Rules(spaces=0))
    write(tmp_path / "games.parquet", "wotd/greedy-v0", "greedy")
    dataset = minari.load_dataset("wotd/greedy-v0")
    env = dataset.recover_environment()
    episode = dataset[0]
    assert all(env.observation_space.contains(seen) for seen in episode.observations)
    played = np.arange(len(episode.actions))
    assert episode.infos["action_mask"][played, episode.actions].all()
    (sampled,) = dataset.sample_episodes(1)
    assert abs(sampled.rewards.sum()) == 1
