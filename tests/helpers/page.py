"""Actions and queries on the page of `wotd serve` through Playwright."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page

from wotd_env import Game, Rules, make_policy, notation


def set_up(
    page: Page, *, agent: str = "greedy", powers: str = "none", spaces: int = 7, position: str = ""
) -> None:
    """Set up a table for one person and an agent that plays without delay."""
    page.get_by_label("name of seat A").fill("Ann")
    page.get_by_label("agent of seat B").select_option(agent)
    page.get_by_label("Powers of the animals").select_option(powers)
    open_rules(page)
    page.get_by_label("Speed of agents").select_option("fast")
    page.get_by_label("Plain spaces").fill(str(spaces))
    page.get_by_label("Start from a position").fill(position)
    page.get_by_role("button", name="Start the game").click()
    page.wait_for_selector(".play[data-at]")


def open_rules(page: Page) -> None:
    """Show all rules of the form."""
    page.wait_for_selector(".set-up form")
    if not page.locator(".set-up details[open]").count():
        page.get_by_text("More rules").click()


def at(page: Page) -> str:
    """Return the identifier of the position that a page shows."""
    return page.locator(".play").get_attribute("data-at") or ""


def rested(page: Page) -> None:
    """Wait until the page accepts keys; it ignores presses for a moment after a position appears."""
    page.wait_for_selector(".actions:not([aria-disabled])")


@contextmanager
def a_step(page: Page) -> Iterator[None]:
    """Wait after the block until the page shows another position."""
    before = at(page)
    yield
    page.wait_for_function("old => document.querySelector('.play').dataset.at !== old", arg=before)


def my_turn(page: Page) -> bool:
    """Wait for a decision of a person or the end of the game; return whether it is a decision."""
    page.wait_for_selector(".dock.mine, .result")
    return page.locator(".result").count() == 0


def decide(page: Page, press: Callable[[Locator], None]) -> None:
    """Take any decision that the dock or the board offers.

    The first press waits for the end of the rest: Playwright scrolls the page when it retries on a disabled element.
    """
    rested(page)
    cell = page.locator(".cell[data-mark=move]")
    die = page.locator(".die[aria-pressed=false]")
    stop = page.locator("[data-name=stop]")
    with a_step(page):
        if die.count() == 5:
            press(die.first)
            press(page.locator("[data-name=roll]"))
        elif stop.count():
            press(stop)
        elif cell.count():
            press(cell.first)
            if page.locator(".cell[data-mark=picked]").count():  # several actions have this destination
                press(page.locator(".actions .primary").first)
        else:
            press(page.locator(".actions button").first)


def played(page: Page) -> list[str]:
    """Return the lines of the log."""
    return page.locator(".log li").all_inner_texts()


def board(page: Page) -> list[str]:
    """Return the label of every cell of the board."""
    cells = page.locator("[role=gridcell]")
    labels: list[str] = cells.evaluate_all("cells => cells.map(cell => cell.getAttribute('aria-label'))")
    return labels


def violations(page: Page) -> list[str]:
    """Return the violations that an accessibility checker reports."""
    page.wait_for_function(
        "() => document.getAnimations().every(animation => animation.effect.getTiming().iterations > 1)"
    )
    found = Axe().run(page).response["violations"]
    return [f"{node['html']}: {node['failureSummary']}" for each in found for node in each["nodes"]]


def line(water: str, rest: str) -> str:
    """Return a position in which all paths but water are empty."""
    return "/".join([water, *[".......|....."] * 4]) + " " + rest


def step_through(page: Page) -> None:
    """Review `recorded()` from the lobby."""
    page.get_by_label("text of a game").fill(recorded())
    page.get_by_role("button", name="Step through").click()
    page.wait_for_selector(".review")


def recorded() -> str:
    """Return a game between agents as text."""
    game, policy = Game(Rules(spaces=2)), make_policy("greedy")
    state, actions = game.reset(1, seed=4), []
    rng = np.random.default_rng(0)
    while not game.is_over(state)[0]:
        actions.append(int(policy.act(game, state, rng)[0]))
        game.step(state, actions[-1:])
    return str(notation.record_game(game.rules, actions, seed=4, players=("Ann", "greedy")))
