"""Pictures in environments, windows and notebooks."""

import copy
import pickle
import re
from xml.etree import ElementTree

import gymnasium
import numpy as np
import pytest

from tests.helpers.positions import board
from wotd_env import Game, Rules, way_of_the_dragon_v0
from wotd_env.envs.single import WayOfTheDragonEnv
from wotd_env.envs.vector import WayOfTheDragonVectorEnv
from wotd_env.rendering import RENDER_MODES, RENDERERS, Renderer, render_rgb, render_svg, show
from wotd_env.rendering.scene import PALETTES

ID = "wotd_env:wotd_env/WayOfTheDragon-v0"


# ------------------------------------------------------------------------------------------------ environments

makers = pytest.mark.parametrize(
    "make",
    [way_of_the_dragon_v0.env, way_of_the_dragon_v0.raw_env, WayOfTheDragonEnv, WayOfTheDragonVectorEnv],
    ids=["env", "raw_env", "single", "vector"],
)


@makers
@pytest.mark.parametrize("mode", RENDER_MODES)
def test_all_environments_support_all_render_modes(make, mode, hidden_window):
    env = make(render_mode=mode, players=3, powers="own")
    assert mode in env.metadata["render_modes"]
    env.reset(seed=0)
    picture = env.render()
    if make is WayOfTheDragonVectorEnv and mode != "human":
        (picture,) = picture
    kinds = {"human": type(None), "rgb_array": np.ndarray}
    assert type(picture) is kinds.get(mode, str)
    env.close()


def test_environments_mark_the_last_move():
    env = way_of_the_dragon_v0.raw_env(render_mode="svg")
    env.reset(seed=0)
    before = env.record
    assert env.render() == render_svg(env.game, before)
    while (env.record["pieces"] == before["pieces"]).all():
        env.step(int(env.action_masks().nonzero()[0][-1]))
    marked = render_svg(env.game, env.record, before)
    assert env.render() == marked != render_svg(env.game, env.record)
    assert env.render() == marked  # the mark stays until the next move
    env.reset(seed=1)
    assert env.render() == render_svg(env.game, env.record)


def test_a_viewer_remembers_the_last_move_of_each_game():
    game = Game()
    state = board(Rules(), water="a......|.....", dice="fire " * 5).repeat(2)
    viewer, before = Renderer(game, "svg"), state.copy()
    viewer.render(state)
    state["pieces"][1, 0, 0] = 5
    expected = (render_svg(game, state[:1]), render_svg(game, state[1:], before[1:]))
    assert viewer.render(state) == expected
    assert viewer.render(state.copy()) == expected


def test_a_renderer_can_be_added_to_renderers(monkeypatch):
    monkeypatch.setitem(RENDERERS, "turn", lambda game, states, before: tuple(states["turn"]))
    assert Renderer(Game(), "turn").render(Game().reset(2, seed=0)) == (0, 0)


def test_sb3_gets_images_of_all_games():
    from stable_baselines3.common.env_util import make_vec_env

    env = make_vec_env(ID, n_envs=2, seed=0)
    assert env.get_attr("render_mode") == ["rgb_array"] * 2
    env.reset()
    assert [image.shape for image in env.get_images() if image is not None] == [(480, 640, 3)] * 2
    tiled = env.render("rgb_array")
    assert tiled is not None
    assert tiled.shape == (960, 640, 3)


def test_gymnasium_shows_pixels_in_a_window(hidden_window):
    env = gymnasium.wrappers.HumanRendering(gymnasium.make(ID, render_mode="rgb_array"))
    _, info = env.reset(seed=0)
    env.step(int(info["action_mask"].argmax()))
    assert screen().shape == (480, 640, 3)
    env.close()


# ------------------------------------------------------------------------------------------------ the window


def screen() -> np.ndarray:
    """Return the pixels of the window, uint8 (height, width, 3)."""
    import pygame

    surface = pygame.display.get_surface()
    assert surface is not None
    return pygame.surfarray.array3d(surface).swapaxes(0, 1)


def test_the_window_shows_the_same_pixels(hidden_window):
    env = WayOfTheDragonEnv(render_mode="human")
    env.reset(seed=0)
    np.testing.assert_array_equal(screen(), render_rgb(env.game, env.record, width=800))
    before = env.record
    env.step(0)
    np.testing.assert_array_equal(screen(), render_rgb(env.game, env.record, before, width=800))
    assert env.render() is None


def test_the_window_shows_many_games_in_a_grid(hidden_window):
    env = WayOfTheDragonVectorEnv(100, render_mode="human")
    env.reset(seed=0)
    np.testing.assert_array_equal(screen()[:150, :200], render_rgb(env.game, env.record[:1], width=200))
    np.testing.assert_array_equal(screen()[450:, 600:], render_rgb(env.game, env.record[15:16], width=200))


def test_the_window_can_be_resized_and_closed(hidden_window):
    import pygame

    env = WayOfTheDragonEnv(render_mode="human")
    env.reset(seed=0)
    pygame.display.set_mode((1000, 300), pygame.RESIZABLE)
    env.render()
    np.testing.assert_array_equal(screen()[:, 300:700], render_rgb(env.game, env.record, width=400))
    assert not screen()[:, :300].any()
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    env.render()
    env.step(0)
    assert not pygame.display.get_init()  # it stays closed ...
    env.close()
    env.render()
    assert pygame.display.get_init()  # ... until the environment is closed


def test_copies_of_an_environment_with_a_window_can_step(hidden_window):
    env = WayOfTheDragonEnv(render_mode="human")
    env.reset(seed=0)
    for again in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        again.step(0)
        assert again.render() is None


def test_a_missing_display_raises_an_error_with_a_fix(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "none such")
    with pytest.raises(RuntimeError, match=r"use render_mode='rgb_array', or set .* SDL_VIDEODRIVER=dummy"):
        WayOfTheDragonEnv(render_mode="human").reset(seed=0)


# ------------------------------------------------------------------------------------------------ notebooks


def test_notebooks_show_a_batch_as_a_grid():
    game = Game()
    states = game.reset(20, seed=0)
    shown = show(game, states)
    page = ElementTree.fromstring(f"<div>{shown._repr_html_()}</div>")
    assert len(list(page.iter("{http://www.w3.org/2000/svg}svg"))) == 16
    assert "and 4 more" in "".join(page.itertext())
    assert repr(shown) == "<pictures of 16 games, 4 more are not drawn>"
    assert render_svg(game, states[3:4], theme="dark") in show(game, states, theme="dark")._repr_html_()
    assert repr(show(game, states[:0])) == "<pictures of 0 games>"


def test_pictures_in_notebooks_have_the_theme_of_the_page():
    game = Game()
    html = show(game, game.reset(1, seed=0))._repr_html_()
    for theme, page in (("light", "data-jp-theme-light=true"), ("dark", "data-jp-theme-light=false")):
        (rule,) = re.findall(rf":is\([^)]*\[{page}\][^)]*\) \.wotd{{([^}}]+)}}", html)
        assert dict(pair.split(":") for pair in rule.split(";")) == {
            f"--wotd-{name}": color for name, color in PALETTES[theme].items()
        }
