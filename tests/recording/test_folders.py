"""The names of folders are no part of the data in a Parquet file."""

import pytest

pytest.importorskip("pyarrow")

from wotd_env import Rules, benchmark, recording
from wotd_env.benchmark import positions


@pytest.mark.parametrize("folder", ["seed=4", "game=a", "_private", ".hidden"])
def test_recordings_do_not_depend_on_the_name_of_their_folder(folder, tmp_path):
    files = [tmp_path / "plain" / "games.parquet", tmp_path / folder / "games.parquet"]
    for file in files:
        file.parent.mkdir()
        recording.record(("first", "first"), file, 2, Rules(spaces=0), seed=1)
    plain, other = (recording.load(file) for file in files)
    assert plain.state.tobytes() == other.state.tobytes()
    filtered = [recording.load(file, filters=[("seed", "=", 2)]) for file in files]
    assert len(filtered[1].state) == len(filtered[0].state) > 0


@pytest.mark.parametrize("folder", ["kind=move", "game=3", "split=train"])
def test_positions_do_not_depend_on_the_name_of_their_folder(folder, tmp_path):
    bundled = positions.FOLDER / sorted(file.name for file in positions.FOLDER.glob("*.parquet"))[0]
    file = tmp_path / folder / "positions.parquet"
    file.parent.mkdir()
    file.write_bytes(bundled.read_bytes())
    assert benchmark.load(file=file).state.tobytes() == benchmark.load(file=bundled).state.tobytes()
