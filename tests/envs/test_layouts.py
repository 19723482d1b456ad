"""Environments whose games draw a layout of dead pieces."""

import numpy as np
import pytest

from wotd_env import Rules
from wotd_env.core.layouts import dead_of, layout_of
from wotd_env.envs.single import WayOfTheDragonEnv
from wotd_env.envs.vector import WayOfTheDragonVectorEnv

LAYOUTS = ["##/#./../../..", "../../../../..", ".#/.#/.#/.#/.#"]
MODES = ["NextStep", "SameStep", "Disabled"]


def test_every_game_draws_a_layout_and_shows_it():
    env = WayOfTheDragonVectorEnv(600, spaces=2, layouts=LAYOUTS)
    observation, info = env.reset(seed=3)
    assert info["layout"].dtype == np.uint16
    assert np.array_equal(info["layout"], env.record["dead"])
    counts = [sum(layout_of(dead, 2) == layout for dead in info["layout"]) for layout in LAYOUTS]
    assert sum(counts) == 600
    assert min(counts) > 160
    shown = observation[:, env.game.observation_layout["dead"]].reshape(-1, 5, 2)
    assert np.array_equal(shown, info["layout"][:, :, None] >> [1, 2] & 1)


def test_a_seed_gives_the_same_layout_in_every_batch_and_the_dice_of_the_rules():
    whole, part = (WayOfTheDragonVectorEnv(games, spaces=2, layouts=LAYOUTS) for games in (50, 10))
    whole.reset(seed=20)
    part.reset(seed=45 - 5)
    assert np.array_equal(whole.record[20:30], part.record)
    fixed = WayOfTheDragonVectorEnv(50, spaces=2, dead_pieces=LAYOUTS[0])
    fixed.reset(seed=20)
    dealt = (whole.record["dead"] == dead_of(LAYOUTS[0])).all(1)
    assert dealt.any()
    assert np.array_equal(whole.record[dealt], fixed.record[dealt])


@pytest.mark.parametrize("mode", MODES)
def test_later_games_draw_other_layouts(mode):
    env = WayOfTheDragonVectorEnv(30, spaces=2, layouts=LAYOUTS, autoreset_mode=mode, opponents="random")
    _, info = env.reset(seed=1)
    rng, seen = np.random.default_rng(0), {layout_of(dead, 2) for dead in info["layout"][:1]}
    for _ in range(1500):
        before = info["layout"]
        actions = (info["action_mask"] * rng.random(info["action_mask"].shape)).argmax(1)
        _, _, terminated, truncated, info = env.step(actions)
        if "final_info" in info:
            assert np.array_equal(info["final_info"]["layout"], before * terminated[:, None])
        ended = terminated | truncated
        if mode == "Disabled" and ended.any():
            _, info = env.reset(options={"reset_mask": ended})
        assert np.array_equal(info["layout"], env.record["dead"])
        seen.add(layout_of(info["layout"][0], 2))
    assert seen == {*LAYOUTS}


def test_equivalent_layouts_are_equal_after_sorting():
    env = WayOfTheDragonEnv(spaces=2, layouts=["##/#./../../..", "../../#./##/.."])
    infos = [env.reset(seed=seed)[1]["layout"] for seed in range(20)]
    assert len({info.tobytes() for info in infos}) == 2
    assert len({np.sort(info).tobytes() for info in infos}) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"layouts": []}, r"layouts must be a list of layouts such as '#\./.*', got \[\]"),
        ({"layouts": LAYOUTS[0]}, "layouts must be a list"),
        ({"layouts": [LAYOUTS[0], "#./../.."]}, r"layouts\[1\]: dead_pieces must be a number or 5 paths"),
        ({"layouts": LAYOUTS, "dead_pieces": 3}, "dead_pieces must be 0 if layouts are given, got 3"),
    ],
)
def test_invalid_layouts_are_refused(arguments, words):
    for kind in (WayOfTheDragonEnv, WayOfTheDragonVectorEnv):
        with pytest.raises(ValueError, match=words):
            kind(spaces=2, **arguments)


@pytest.mark.parametrize("make", [WayOfTheDragonEnv, WayOfTheDragonVectorEnv])
def test_layouts_may_come_from_a_generator(make):
    env = make(spaces=2, layouts=(layout for layout in LAYOUTS))
    assert [layout_of(dead, 2) for dead in env.layouts] == LAYOUTS


def test_games_without_dead_pieces_show_no_layout():
    assert "layout" not in WayOfTheDragonVectorEnv(2).reset(seed=0)[1]
    assert Rules(spaces=2, dead_pieces=LAYOUTS[1]) == Rules(spaces=2)


@pytest.mark.parametrize("make", [WayOfTheDragonEnv, lambda **options: WayOfTheDragonVectorEnv(2, **options)])
def test_opponents_must_play_every_layout(make):
    assert make(spaces=2, opponents="td")
    with pytest.raises(ValueError, match="no trained model of td"):
        make(spaces=2, layouts=LAYOUTS, opponents="td")
    env = make(spaces=2, layouts=LAYOUTS, opponents="planner")
    with pytest.raises(ValueError, match="no trained model of td"):
        env.opponents = "td"
