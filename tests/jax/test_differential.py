"""The JAX version against the engine, with the same dice.

Both play the same random games of every variant. After every decision the records, masks, observations and rewards
must agree, for `decide` and `throw` and for whole steps.
"""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from tests.helpers.variants import KINDS, agree, all_variants, scatter, variants
from wotd_env import Game, Phase, Rules
from wotd_env.core.actions import PAIRS, Action, pairs
from wotd_env.core.dice import (
    HOLD_KEEP,
    INDEX_PARTS,
    KEEP_DICE,
    NUM_KEEPS,
    THROW_ROLL,
    THROW_SIZE,
    THROW_START,
)

jax = pytest.importorskip("jax")
jnp = jax.numpy

from tests.helpers.positions import differences  # noqa: E402
from wotd_env.jax import WayOfTheDragon  # noqa: E402
from wotd_env.jax import rules as play  # noqa: E402

GAMES = 1024


def mostly_one_face(keep: np.ndarray, rng: np.random.Generator) -> Any:
    """Return random bits, uint32 (N,), whose throws of these keeps often make rare rolls."""
    throw = np.zeros(len(keep), np.int64)
    favorite = rng.integers(6, size=len(keep))
    kind = rng.random(len(keep))
    for die in range(5):
        fair = rng.integers(6, size=len(keep))
        face = np.where(kind < 0.5, fair, np.where(rng.random(len(keep)) < 0.85, favorite, fair))
        throw = throw * 6 + np.where(kind < 0.8, face, (favorite + die) % 6)
    return (throw % THROW_SIZE[keep]).astype(np.uint32)


def dice_of(keep: np.ndarray, bits: np.ndarray) -> Any:
    """Return the dice, int8 (N, 5), that the bits make of the keeps."""
    return KEEP_DICE[THROW_ROLL[THROW_START[keep] + bits % THROW_SIZE[keep]]]


def index(dice: np.ndarray) -> Any:
    """Return the index of the keep of each row of dice."""
    return INDEX_PARTS[np.arange(5), dice & 7].sum(1).astype(np.int64)


def count_kinds(before: np.ndarray, actions: np.ndarray, after: np.ndarray, game: Game) -> Counter[str]:
    """Return how often every kind of decision has occurred."""
    seen: Counter[str] = Counter()
    numbers, counts = np.unique(actions, return_counts=True)
    for action, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        seen[KINDS.get(action, "swap")] += count
    n = game.rules.players
    swaps = actions[actions >= Action.FIRST_SWAP] - Action.FIRST_SWAP
    seen["swap of two others"] += int((PAIRS[n, swaps % pairs(n), 0] > 0).sum())
    seen["tiger"] += int(((actions < Action.STOP_ROLLING) & (before["rolls_left"] == 0)).sum())
    earned = (after["perfection"] > before["perfection"]) & (before["dice"] == 5).any(1)
    seen["wood perfection"] += int(earned.sum())
    over = after["phase"] == Phase.OVER
    won = over & (after["expired"] == 0)
    seen["game expired"] += int((over & (after["expired"] != 0)).sum())
    seen["game won"] += int(won.sum())
    seen["game won by a swap"] += int((won & (actions >= Action.FIRST_SWAP)).sum())
    seen["game shared"] += int(((game.rewards(after) > 0).sum(1)[won] > 1).sum())
    return seen


def walk(rules: Rules, steps: int, seed: int) -> Counter[str]:
    """Take `steps` decisions in each of GAMES games by both implementations; count the decisions by kind."""
    rng = np.random.default_rng(seed)
    env, asking, skipping = WayOfTheDragon(rules), Game(rules, skip_forced=False), Game(rules)

    @jax.jit
    @jax.vmap
    def both(state, action, roll, bits):
        """Return the game after the decision, after the roll, and after a whole step with the same dice."""
        decided = env.decide(state, action)
        whole = env._after(state, action, *play.advance(rules, state, action, bits))
        return decided, env.throw(decided, roll), whole

    def compare(state, records: np.ndarray, game: Game, what: str) -> None:
        ours = env.to_records(state)
        wrong = differences(ours, records)
        assert not wrong.size, f"{rules}, {what}:\n{ours[wrong[:1]]}\n{records[wrong[:1]]}"
        mask = np.asarray(state.legal_action_mask)
        np.testing.assert_array_equal(mask, game.legal_actions(records).astype(bool), what)
        np.testing.assert_array_equal(state.observation, game.observe(records), what)
        np.testing.assert_array_equal(state.rewards, game.rewards(records), what)

    def new_games(count: int) -> np.ndarray:
        records = asking.reset(count, seed=int(rng.integers(1 << 32)))
        scatter(rules, records[::2], rng)
        return records

    seen: Counter[str] = Counter()
    records = new_games(GAMES)
    for _ in range(steps):
        state = env.from_records(records)
        mask = np.asarray(state.legal_action_mask)
        actions = (mask * rng.random(mask.shape)).argmax(1)
        stops = mask[:, Action.STOP_ROLLING] & (rng.random(GAMES) < 0.5)
        actions[stops] = Action.STOP_ROLLING

        dice = index(records["dice"])
        kept = np.where(
            records["phase"] == Phase.KEEP, HOLD_KEEP[dice % 252, actions % 32], np.int64(NUM_KEEPS - 1)
        )
        first = mostly_one_face(kept, rng)
        after_hold = dice_of(kept, first)
        second = mostly_one_face(np.full(GAMES, NUM_KEEPS - 1), rng)
        next_turn = dice_of(np.full(GAMES, NUM_KEEPS - 1), second)
        decided, thrown, whole = both(
            state, jnp.asarray(actions), jnp.asarray(index(after_hold)), jnp.stack([first, second], 1)
        )

        theirs = records.copy()
        asking.decide(theirs, actions)
        seen += count_kinds(records, actions, theirs, asking)
        compare(decided, theirs, asking, "decide")

        rolled = theirs["phase"] == Phase.CHANCE
        asking.roll(theirs, after_hold)
        nothing_to_reward = np.asarray(decided.terminated)
        compare(
            thrown.replace(rewards=jnp.where(nothing_to_reward[:, None], decided.rewards, thrown.rewards)),
            theirs,
            asking,
            "throw",
        )

        # The whole step: roll the hold's dice, take a forced move, roll the next turn's dice.
        step = records.copy()
        held = records["phase"] == Phase.KEEP
        asking.decide(step, actions)
        starts = (step["phase"] == Phase.CHANCE) & ~held
        asking.roll(step, np.where(starts[:, None], next_turn, after_hold))
        legal = asking.legal_actions(step)
        forced = np.flatnonzero((step["phase"] == Phase.MOVE) & (legal.sum(1) == 1))
        some = step[forced]
        asking.decide(some, legal[forced].argmax(1))
        asking.roll(some, next_turn[forced])
        step[forced] = some
        seen["forced"] += len(forced)
        compare(whole, step, skipping, "step")
        assert rolled.any()

        seen["decisions"] += GAMES
        # Half of the games continue by a whole step, in which no forced moves are left to take.
        records = np.where(rng.random(GAMES) < 0.5, theirs, step)
        over = np.flatnonzero(records["phase"] == Phase.OVER)
        records[over] = new_games(len(over))
    return seen


@pytest.mark.parametrize("players", [2, 3, 4, 5])
def test_jax_and_engine_agree(players: int) -> None:
    """Each variant takes seconds to compile, so each board size occurs once per setting of powers."""
    own, any_seat = (
        [rules for rules in variants(players) if rules.powers == powers] for powers in ("own", "any")
    )
    first = 11 - 2 * players
    assert agree(walk, [own[first], any_seat[first - 2]], steps=51) > 100_000


@pytest.mark.slow
@pytest.mark.parametrize("players", [2, 3, 4, 5])
def test_jax_and_engine_agree_in_many_variants(players: int) -> None:
    """Every fifth of all combinations has every pair of values of two fields; each one takes seconds to compile."""
    assert agree(walk, list(all_variants(players))[::5], steps=25) > 600_000
