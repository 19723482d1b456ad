"""Blocks: hidden random streams, forfeits and workers."""

import re
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.helpers import ROOT
from tests.helpers.arena_policies import Broken, Dies, Lowest, Refuses, Seer
from tests.helpers.tournaments import OWN, QUICK, blocks_of, played, same
from wotd_env import STATE, Action, Game, Phase, Rules, make_policy
from wotd_env.arena import BrokenPolicyError, Tournament, replay, run, workers
from wotd_env.arena.asking import Asker
from wotd_env.arena.tournament import Block, game_seed, play_block
from wotd_env.arena.workers import Here

# ------------------------------------------------------------------------------------------------ hidden streams


def test_rolls_predicted_from_the_shown_state_are_wrong():
    tournament = Tournament(("seer",), QUICK)
    arena, outside = Seer(), Seer()
    for first in range(100):
        block = Block(("seer", "seer"), first, 1)
        play_block(tournament, {"seer": arena}, block)
        game = Game(QUICK)
        state = game.reset(1, seed=game_seed(0, block.matchup, first))
        while state["phase"][0] != Phase.OVER:
            game.step(state, outside.act(game, state, np.random.default_rng(0)))
    assert np.mean(outside.right) == 1  # with the true stream, it predicts every roll
    assert min(len(arena.right), len(outside.right)) > 1000
    assert np.mean(arena.right) < 0.05


def test_policies_cannot_change_the_state():
    tournament = Tournament((OWN + "Vandal", "greedy"), QUICK)
    vandal = played(tournament, Block(tournament.matchups[0], 0, 50))
    policies = {OWN + "Vandal": make_policy(OWN + "Lowest"), "greedy": make_policy("greedy")}
    honest = play_block(tournament, policies, Block(tournament.matchups[0], 0, 50))
    assert np.array_equal(vandal.games, honest.games)
    assert not vandal.forfeits


# ------------------------------------------------------------------------------------------------ forfeits


@pytest.mark.parametrize("players", [2, 3])
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Illegal", r"illegal action 999 \(no such action\)"),
        ("Raises", "raised KeyError: 'turn four'"),
        ("Malformed", r"raised ValueError: act must return integers \(1,\), got int64 \(2,\) from Malformed"),
    ],
)
def test_a_policy_that_breaks_the_rules_forfeits_only_that_game(name, reason, players):
    rules = Rules(players=players, spaces=1)
    bad = OWN + name
    tournament = Tournament((bad, "greedy", "first")[:players], rules, games=120, seed=1)
    results = run(tournament)
    games = results.games[tournament.matchups[0]]
    lost = games["forfeit"] >= 0
    assert 0 < lost.sum() == len(results.forfeits)
    if name != "Malformed":
        assert lost.sum() < len(games)  # except games whose fourth turn is another player's
    for game in games[lost]:
        loser = int(game["forfeit"])
        assert tournament.matchups[0][game["place"][loser]] == bad
        assert game["share"][loser] == 0
        assert game["rank"][loser] == players
        assert np.delete(game["share"], loser) == pytest.approx(np.full(players - 1, 1 / (players - 1)))
    assert games["share"].sum(1) == pytest.approx(np.ones(len(games)))
    for forfeit in results.forfeits:
        assert re.fullmatch(reason, forfeit.reason)
        assert forfeit.policy == forfeit.seats[forfeit.seat] == bad
        position = replay(rules, forfeit.game_seed, forfeit.moves)
        assert position.dtype == STATE
        assert position["player"][0] == forfeit.seat
        if name != "Malformed":
            assert position["turn"][0] == 3
    traced = [forfeit.traceback for forfeit in results.forfeits if forfeit.traceback]
    assert len(traced) == (name == "Raises")  # one per block, only for errors that the policy raises
    for text in traced:
        assert text.startswith("Traceback")
        assert text.endswith("KeyError: 'turn four'")
        assert 'raise KeyError("turn four")' in text
        assert "wotd_env/arena" not in text
    assert next(row for row in results.rows if row.policy == bad).forfeits == len(results.forfeits)


def test_a_hanging_policy_forfeits_and_the_tournament_continues(tmp_path):
    bad = OWN + "Hangs"
    tournament = Tournament((bad, "first"), QUICK, games=80)
    file = tmp_path / "games.sqlite"
    results = run(tournament, file, workers=1, time_limit=3)
    assert {forfeit.policy for forfeit in results.forfeits} == {bad}
    assert {forfeit.reason for forfeit in results.forfeits} == {"took more than 3 s"}
    for forfeit in results.forfeits:
        position = replay(QUICK, forfeit.game_seed, forfeit.moves)
        assert position["player"][0] == forfeit.seat
        assert position["turn"][0] <= 1
    games = results.games[tournament.matchups[0]]
    assert 0 < len(results.forfeits) == (games["forfeit"] >= 0).sum() < len(games)
    # forfeits are stored, so no game is played again and nothing hangs
    assert same(run(tournament, file), results)


def test_a_policy_that_ends_its_process_forfeits_the_batch():
    # The name decides the dice, so it must not be the import path of the policy.
    tournament = Tournament(("bad", "first"), QUICK, games=8)
    results = run(tournament, workers=1, policies={"bad": Dies()})
    asked = run(tournament, policies={"bad": Refuses()})
    assert {forfeit.reason for forfeit in results.forfeits} == {"ended the process (exit code 7)"}
    assert {forfeit.policy for forfeit in results.forfeits} == {"bad"}
    assert len(results.forfeits) > 4
    (games,), (refused,) = results.games.values(), asked.games.values()
    forfeited = games["forfeit"] >= 0
    assert forfeited.sum() == len(results.forfeits)
    assert forfeited[refused["forfeit"] >= 0].all()  # these games, and others of their batch
    np.testing.assert_array_equal(games[~forfeited], refused[~forfeited])


def test_an_illegal_action_is_reported_with_its_phase():
    game = Game(Rules(spaces=1))
    state = game.reset(1, seed=0)
    moves_now = SimpleNamespace(act=lambda game, state, rng: np.full(len(state), Action.MOVE_ON))
    _, failures = Asker(game, [moves_now], [np.random.default_rng(0)], {}, lambda call: None)(0, state)
    assert failures[0].reason == "illegal action 32 (move on water, in phase KEEP)"


@pytest.mark.parametrize(
    ("name", "workers", "message"),
    [
        ("Broken", 0, "raised ZeroDivisionError: nothing can be divided by it"),
        ("Broken", 2, "raised ZeroDivisionError: nothing can be divided by it"),
        ("Nonsense", 0, r"illegal action 999 \(no such action\)"),
        ("Stuck", 1, "took more than 3 s"),
        ("Deadly", 1, r"ended the process \(exit code 9\)"),
    ],
)
def test_a_policy_that_fails_in_its_first_decision_stops_the_tournament(tmp_path, name, workers, message):
    bad = OWN + name
    tournament = Tournament(("random", bad, "first"), QUICK, games=2000)
    file = tmp_path / "games.sqlite"
    with pytest.raises(BrokenPolicyError) as stopped:
        run(tournament, file, workers=workers, time_limit=3)
    first, *traceback = str(stopped.value).splitlines()
    assert re.fullmatch(f"policy '{bad}' failed in its first decision: {message}", first)
    if name == "Broken":
        assert traceback[1] == "Traceback (most recent call last):"
        # the first frame is the policy's
        assert re.search(r'arena_policies\.py", line \d+, in act$', traceback[2])
        assert re.search(r"in _helper$", "\n".join(traceback), re.MULTILINE)
    else:
        assert not traceback
    assert not [row for row in blocks_of(file) if bad in str(row[1])]  # none of its games is stored


def test_only_the_first_block_of_a_policy_can_stop_the_tournament():
    tournament = Tournament(("bad", "first"), QUICK)
    policies = {"bad": Broken(), "first": make_policy("first")}
    block = Block(("bad", "first"), 0, 3)
    with pytest.raises(BrokenPolicyError, match="policy 'bad' failed in its first decision"):
        play_block(tournament, policies, block, untried=frozenset({"bad", "first"}))
    assert len(play_block(tournament, policies, block, untried=frozenset({"first"})).forfeits) == 6

    asked = []

    class Pool(Here):
        def submit(self, block, untried):
            asked.append((block.matchup, block.first, set(untried)))
            return super().submit(block, untried)

    tournament = Tournament(("first", "greedy", "random"), QUICK, games=600)
    run(tournament, pool=Pool(tournament, {name: make_policy(name) for name in tournament.policies}))
    assert asked[:2] == [(("first", "greedy"), 0, {"first", "greedy"}), (("first", "random"), 0, {"random"})]
    assert not any(untried for _, _, untried in asked[2:])


def test_policy_objects_cannot_be_combined_with_a_pool():
    tournament = Tournament(("greedy", "first"), QUICK, games=10)
    policies = {"greedy": make_policy("random")}
    pool = Here(tournament, {name: make_policy(name) for name in tournament.policies})
    with pytest.raises(ValueError, match="policies cannot be given together with a pool"):
        run(tournament, policies=policies, pool=pool)


def test_a_block_is_stored_before_the_next_one_starts(tmp_path):
    file, started = tmp_path / "games.sqlite", 0

    class Pool(Here):
        def submit(self, block, untried):
            nonlocal started
            started += 1
            assert len(blocks_of(file)) == started - 1
            return super().submit(block, untried)

    tournament = Tournament(("first", "random"), QUICK, games=512 * 3)
    run(tournament, file, pool=Pool(tournament, {name: make_policy(name) for name in tournament.policies}))
    assert started == 3


def test_an_object_without_act_is_refused_before_play(tmp_path):
    file = tmp_path / "games.sqlite"
    wrong: Any
    for wrong in (Lowest, None, 5, "greedy"):
        with pytest.raises(
            ValueError, match=r"policy 'mine' must have a method act\(game, state, rng\), got "
        ):
            run(Tournament(("mine", "first"), QUICK, games=10), file, policies={"mine": wrong})
    assert not file.exists()


def test_an_unpicklable_policy_is_refused_with_workers():
    class Local(Lowest):
        pass

    with pytest.raises(ValueError, match=r"policy 'mine' cannot be sent to a worker process: .*workers=0"):
        run(Tournament(("mine", "first"), QUICK, games=10), policies={"mine": Local()}, workers=1)


def test_error_for_a_missing_main_guard_names_the_fix(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from wotd_env.arena import Tournament, run\nrun(Tournament(('random', 'first'), games=10), workers=1)\n"
    )
    done = subprocess.run([sys.executable, script], cwd=ROOT, text=True, capture_output=True, check=False)
    assert done.returncode == 1
    assert 'must call run under `if __name__ == "__main__":`' in done.stderr.splitlines()[-1]
    assert "AttributeError" not in done.stderr
    assert "memory" not in done.stderr


def kill(worker: workers.Worker) -> None:
    """Kill the process of a worker."""
    assert worker._running
    process, _ = worker._running
    process.kill()
    process.join()


def test_a_worker_killed_three_times_raises_an_error():
    class Doomed(workers.Worker):
        starts = 0

        def _start(self):
            pipe = super()._start()
            self.starts += 1
            kill(self)
            return pipe

    worker = Doomed(Tournament(("random", "first"), QUICK), 60)
    with pytest.raises(RuntimeError, match=r"ended 3 times outside of any policy, .*\(exit code -9\)"):
        worker.play_block(Block(("first", "random"), 0, 2))
    assert worker.starts == 3


def test_a_killed_worker_loses_no_game():
    tournament = Tournament(("random", "first"), QUICK, games=1000)
    matchup = tournament.matchups[0]
    worker = workers.Worker(tournament, 60)
    try:
        for i in range(tournament.num_blocks):
            block = tournament.block(matchup, i)
            worker._start()
            kill(worker)
            again = worker.play_block(block)
            assert not again.forfeits
            assert np.array_equal(again.games, played(tournament, block).games)
    finally:
        worker.close()
