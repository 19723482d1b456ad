"""The engine against the second implementation of the rules in `reference.py`.

Both play the same random games of every variant with the same dice. In every state, the legal actions and the
successor of every legal action must agree. The engine computes all successors of all games in one batch call.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests import reference as ref
from tests.helpers.positions import differences, from_record, reference_rules, to_records
from tests.helpers.variants import KINDS, agree, all_variants, scatter, variants
from wotd_env import Game, Phase, Rules, describe_action

GAMES = 32


def kinds(before: ref.State, action: int, after: ref.State, rules: ref.Rules) -> Iterator[str]:
    """Yield the kinds that a decision belongs to."""
    if action >= ref.FIRST_SWAP:
        yield "swap"
        if before.player not in ref.swap_of(rules, before, action)[1:]:
            yield "swap of two others"
    else:
        yield KINDS[action]
    if action < ref.STOP_ROLLING and before.rolls_left == 0:
        yield "tiger"
    if after.perfection and not before.perfection and ref.DRAGON in before.dice:
        yield "wood perfection"
    if ref.is_over(after):
        won = "game shared" if len(ref.winners(rules, after)) > 1 else "game won"
        yield "game expired" if after.expired else won
        if action >= ref.FIRST_SWAP:
            yield "game won by a swap"


def new_games(game: Game, rng: np.random.Generator, count: int) -> np.ndarray:
    """Return games before a roll; in half of them the pieces are scattered."""
    state = game.reset(count, seed=int(rng.integers(1 << 32)), roll=False)
    scatter(game.rules, state[::2], rng)
    return state


def throw(state: ref.State, rng: np.random.Generator) -> tuple[int, ...]:
    """Return all five faces after a roll, from fair dice or from dice that make rare rolls common."""
    kept = [face for face in state.dice if face >= 0]
    free = 5 - len(kept)
    kind = rng.random()
    if kind < 0.5:
        thrown = rng.integers(6, size=free).tolist()
    elif kind < 0.8:  # mostly one face
        thrown = np.where(rng.random(free) < 0.85, rng.integers(6), rng.integers(6, size=free)).tolist()
    else:  # different faces
        thrown = rng.permutation(6)[:free].tolist()
    return tuple(sorted(kept + thrown))


def compare(ours: np.ndarray, theirs: np.ndarray, label: Callable[..., str], *columns: Sequence[Any]) -> None:
    """Fail at the first difference, with a label made from its entries of the columns."""
    wrong = differences(ours, theirs)
    if wrong.size:
        i = int(wrong[0])
        where = label(*(column[i] for column in columns))
        pytest.fail(f"{where}\nengine:    {from_record(ours[i])}\nreference: {from_record(theirs[i])}")


def walk(rules: Rules, steps: int, seed: int) -> Counter[str]:
    """Take `steps` decisions or rolls in each of GAMES games; count the compared decisions by kind."""
    rng = np.random.default_rng(seed)
    game = Game(rules, skip_forced=False)
    plain = reference_rules(rules)
    seen: Counter[str] = Counter()
    records = new_games(game, rng, GAMES)
    states = [from_record(record) for record in records]
    for _ in range(steps):
        waiting = np.flatnonzero(records["phase"] == Phase.CHANCE).tolist()
        throws = [throw(states[i], rng) for i in waiting]
        ours = records[waiting]
        stream = ours["rng"].copy()
        game.roll(ours, np.array(throws, np.int8).reshape(-1, 5))
        for i, dice in zip(waiting, throws, strict=True):
            states[i] = ref.roll(plain, states[i], dice)
        rolled = to_records([states[i] for i in waiting])
        compare(ours, rolled, lambda dice: f"{rules}: roll {dice}", throws)
        assert (ours["rng"] == stream).all(), "given dice do not advance the stream"
        records[waiting] = ours

        actions = [ref.legal_actions(plain, state) for state in states]
        mask = np.zeros((GAMES, game.num_actions), np.int8)
        for i in range(GAMES):
            mask[i, actions[i]] = 1
        masks = game.legal_actions(records)
        for i in np.flatnonzero((masks != mask).any(1)).tolist():
            pytest.fail(
                f"{rules}\n{states[i]}\nengine:    {np.flatnonzero(masks[i])}\nreference: {actions[i]}"
            )

        parents = [i for i, legal in enumerate(actions) for _ in legal]
        flat = [action for legal in actions for action in legal]
        ours = records[parents]
        game.decide(ours, np.array(flat))
        successors = [ref.decide(plain, states[i], action) for i, action in zip(parents, flat, strict=True)]
        compare(
            ours,
            to_records(successors),
            lambda action, state: f"{rules}\n{describe_action(action, rules)} in {state}",
            flat,
            [states[i] for i in parents],
        )
        assert (ours["rng"] == records["rng"][parents]).all(), "a decision does not advance the stream"
        results(game, plain, ours, successors)
        for i, action, after in zip(parents, flat, successors, strict=True):
            seen.update(kinds(states[i], action, after, plain))
        seen["decisions"] += GAMES

        chosen = pick(actions, rng)
        records, states = ours[chosen], [successors[i] for i in chosen]
        over = np.flatnonzero(records["phase"] == Phase.OVER).tolist()
        records[over] = new_games(game, rng, len(over))
        for i in over:
            states[i] = from_record(records[i])
    return seen


def results(game: Game, plain: ref.Rules, ours: np.ndarray, theirs: list[ref.State]) -> None:
    """Compare rewards and scores, also of running games, because the turn limit ends a game with its current scores."""
    assert game.scores(ours).tolist() == [ref.scores(plain, state) for state in theirs]
    expected = np.array([ref.rewards(plain, state) for state in theirs], np.float32)
    np.testing.assert_allclose(game.rewards(ours), expected, rtol=1e-6)


def pick(actions: list[list[int]], rng: np.random.Generator) -> np.ndarray:
    """Return the row of one successor for every game. At least half of the holds stop rolling, for short turns."""
    rows, first = [], 0
    for legal in actions:
        stops = legal[-1] == ref.STOP_ROLLING and rng.random() < 0.5
        rows.append(first + (len(legal) - 1 if stops else int(rng.integers(len(legal)))))
        first += len(legal)
    return np.array(rows)


@pytest.mark.parametrize("players", [2, 3, 4, 5])
def test_engine_and_reference_agree(players: int) -> None:
    assert agree(walk, variants(players), steps=25) > 18_000


@pytest.mark.slow
@pytest.mark.parametrize("players", [2, 3, 4, 5])
def test_engine_and_reference_agree_in_all_variants(players: int) -> None:
    assert agree(walk, all_variants(players), steps=60) > 200_000


@pytest.mark.parametrize("start", ["dragons", "loser", 1])
@pytest.mark.parametrize("players", [2, 3, 4, 5])
def test_new_games_agree_with_the_reference(players: int, start: str | int) -> None:
    rng = np.random.default_rng(players)
    for rules in variants(players):
        game, plain = Game(replace(rules, start=start)), reference_rules(rules)
        records = new_games(game, rng, 40)
        scatter(rules, records, rng)
        old = [from_record(record) for record in records]
        game.reset(records, where=np.ones(40, bool), roll=False)
        for before, after in zip(old, (from_record(record) for record in records), strict=True):
            assert after == ref.State(player=after.player, dead=after.dead, color=after.color)
            assert ref.layout_is_allowed(plain, after.dead)
            assert start != "loser" or after.player in ref.last_placed(plain, before)
            assert start != 1 or after.player == 1


# ------------------------------------------------------------------------------ combined engine calls

BATCH_SIZES = [1, 7, 8, 63, 64, 65, 1000]
POWERFUL = Rules(
    players=3, spaces=3, powers="any", immunity=True, dead_pieces=4, colors="random", max_turns=30
)
MODES = [Rules(spaces=2), Rules(players=5, powers="own", spaces=0), POWERFUL]


def random_actions(game: Game, state: np.ndarray, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return a random legal action for every game."""
    mask = game.legal_actions(state)
    actions: NDArray[np.int64] = (rng.random(mask.shape) * mask).argmax(1)
    return actions


@pytest.mark.parametrize("rules", MODES)
@pytest.mark.parametrize("skip_forced", [False, True])
def test_decide_and_roll_equal_step(rules: Rules, skip_forced: bool) -> None:
    rng = np.random.default_rng(0)
    game = Game(rules, skip_forced=skip_forced)
    whole = game.reset(64, seed=0)
    halves = game.reset(64, seed=0, roll=False)
    game.roll(halves)
    for _ in range(200):
        assert whole.tobytes() == halves.tobytes()
        actions = random_actions(game, whole, rng)
        game.step(whole, actions)
        game.decide(halves, actions)
        given = halves.copy()
        game.roll(halves)
        if not skip_forced:  # otherwise several rolls may follow
            game.roll(given, halves["dice"])
            assert not differences(given, halves).size, "own dice and equal given dice lead to the same state"


@pytest.mark.parametrize("rules", MODES)
@pytest.mark.parametrize("batch_size", BATCH_SIZES)
def test_skip_forced_takes_only_forced_decisions(rules: Rules, batch_size: int) -> None:
    """The result equals taking every decision without a choice explicitly."""
    rng = np.random.default_rng(batch_size)
    skipping, asking = Game(rules), Game(rules, skip_forced=False)

    def take_forced(state: np.ndarray) -> None:
        while True:
            mask = asking.legal_actions(state)
            forced = np.flatnonzero((mask.sum(1) == 1) & (state["phase"] != Phase.OVER))
            if forced.size == 0:
                return
            some = state[forced]
            asking.step(some, mask[forced].argmax(1))
            state[forced] = some

    ours = skipping.reset(batch_size, seed=batch_size)
    theirs = asking.reset(batch_size, seed=batch_size)
    take_forced(theirs)
    for _ in range(max(8, 3000 // batch_size)):
        assert ours.tobytes() == theirs.tobytes()
        actions = random_actions(skipping, ours, rng)
        skipping.step(ours, actions)
        asking.step(theirs, actions)
        take_forced(theirs)


@pytest.mark.parametrize("rules", [*MODES, replace(POWERFUL, start="loser")])
@pytest.mark.parametrize("batch_size", BATCH_SIZES)
def test_step_autoreset_equals_step_reset_and_observe(rules: Rules, batch_size: int) -> None:
    rng = np.random.default_rng(batch_size)
    game = Game(rules, num_threads=2)
    fast = game.reset(batch_size, seed=batch_size)
    slow = fast.copy()
    observation = np.full((batch_size, game.observation_size), 77, np.int8)
    mask = np.full((batch_size, game.num_actions), 77, np.int8)
    rewards = np.full((batch_size, rules.players), 77, np.float32)
    done = np.full(batch_size, True)
    ended = 0
    for i in range(max(200, 3000 // batch_size)):
        actions = random_actions(game, slow, rng)
        if i % 7 == 3:
            game.step_autoreset(fast, actions)
        else:
            game.step_autoreset(fast, actions, observation=observation, mask=mask, rewards=rewards, done=done)
        game.step(slow, actions)
        over = slow["phase"] == Phase.OVER
        won = game.rewards(slow)
        game.reset(slow, where=over)
        ended += over.sum()
        assert fast.tobytes() == slow.tobytes()
        if i % 7 != 3:
            np.testing.assert_array_equal(observation, game.observe(slow))
            np.testing.assert_array_equal(mask, game.legal_actions(slow))
            np.testing.assert_array_equal(rewards, won)
            np.testing.assert_array_equal(done, over)
    assert ended > 0
