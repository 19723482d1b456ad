"""The layouts of dead pieces of the track `generalization`."""

import hashlib

import pytest

from wotd_env import Rules, benchmark
from wotd_env.core.layouts import standard, standard_layouts
from wotd_env.envs.vector import WayOfTheDragonVectorEnv


@pytest.mark.parametrize(("spaces", "train", "test"), [(2, 44, 12), (3, 788, 4)])
def test_train_and_test_layouts_are_disjoint_up_to_the_order_of_paths(spaces, train, test):
    splits = [benchmark.layouts(split, spaces) for split in ("train", "test")]
    assert [len({*map(standard, split)}) for split in splits] == [train, test]
    assert {*splits[0], *splits[1]} == {*standard_layouts(spaces)}
    assert not {*splits[0]} & {*splits[1]}
    assert all(Rules(spaces=spaces, dead_pieces=layout).dead_pieces for layout in splits[1])
    WayOfTheDragonVectorEnv(1, spaces=spaces, layouts=splits[0])


def test_the_lists_are_frozen():
    lists = [" ".join(benchmark.layouts(split, spaces)) for spaces in (2, 3) for split in ("train", "test")]
    assert hashlib.sha256(" ".join(lists).encode()).hexdigest()[:16] == "d80ba993d9aab63f"


def test_other_splits_and_boards_are_refused():
    with pytest.raises(ValueError, match="split must be one of 'train', 'test', got 'validation'"):
        benchmark.layouts("validation", 2)
    with pytest.raises(ValueError, match="spaces must be one of 2, 3 in this track, got 7"):
        benchmark.layouts("test", 7)
