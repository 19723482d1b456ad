"""The `wotd` command: output, files and errors."""

import dataclasses
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

import wotd_env
from tests.helpers import ROOT, tournaments
from tests.helpers.commands import wotd
from wotd_env import Game, Phase, Rules, analysis, models, notation, solver
from wotd_env.arena import Tournament, run
from wotd_env.cli import FAILED, FORFEITS, INTERRUPTED, WRONG_USE, app
from wotd_env.policies import POLICIES


@pytest.mark.parametrize("command", ["arena", "watch", "play"])
def test_every_rule_is_an_option_with_its_default(command):
    shown = {"immunity": "", "colors": ""} | ({"players": "(one for each"} if command != "arena" else {})
    text = wotd(command, "--help").stdout
    for field in dataclasses.fields(Rules):
        _, _, rest = text.partition(f"--{field.name.replace('_', '-')} ")
        default = shown.get(field.name, f"{field.default}]")
        assert (f"[default: {default}" if default else "") in rest.partition("--")[0]
        assert rest


def test_version_prints_the_package_version():
    result = wotd("--version")
    assert result.exit_code == 0
    assert result.stdout == f"wotd-env {wotd_env.__version__}\n"


def test_policies_are_listed_with_descriptions():
    without_ratings = re.sub(r" [+-]\d+ ±\d+", "", wotd("policies").stdout)
    text = " ".join(without_ratings.split())
    for name, known in POLICIES.items():
        assert f"{name} {known.words}" in text


def test_arena_prints_and_writes_what_run_returns():
    options = ("--spaces", 0, "--games", 300, "--seed", 4, "--workers", 0, "--quiet")
    result = wotd("arena greedy random --out a.json --out a.csv --plot a.png", *options)
    assert result.exit_code == 0, result.output
    results = run(Tournament(("greedy", "random"), Rules(spaces=0), 300, 4))
    assert json.loads(Path("a.json").read_text()) == json.loads(json.dumps(results.to_dict()))
    assert Path("a.csv").read_text().count("\n") == len(results.rows) + 1
    assert Path("a.png").read_bytes().startswith(b"\x89PNG")
    assert Path("arena.sqlite").exists()
    share = next(row for row in results.rows if row.policy == "greedy").share
    assert f"{100 * share.value:.1f} % ±{100 * share.error:.1f}" in result.stdout


def test_arena_accepts_every_rule():
    powers = "--powers own --immunity --dead-pieces #./../.#/../.. --colors wood,fire,earth"
    options = f"--players 3 --spaces 2 {powers} --start 1 --max-turns 30 --games 6 --workers 0 --out a.json"
    result = wotd(f"arena first greedy {options}")
    assert result.exit_code == 0, result.output
    rules = json.loads(Path("a.json").read_text())["tournament"]["rules"]
    assert rules == json.loads(
        json.dumps(
            dataclasses.asdict(Rules(3, 2, "own", True, "#./../.#/../..", ("wood", "fire", "earth"), 1, 30))
        )
    )


def test_arena_reports_forfeits_and_sets_the_exit_code():
    result = wotd("arena first tests.helpers.arena_policies:Illegal --spaces 1 --games 20 --workers 0")
    assert result.exit_code == FORFEITS
    assert "games were forfeited" in result.stderr
    assert "tests.helpers.arena_policies:Illegal in seat" in result.stderr
    assert "illegal action 999 (no such action) (game seed" in result.stderr
    assert "Position of the first, for wotd_env.notation.parse_position: " in result.stderr
    assert "Traceback" not in result.stderr  # an illegal action raises no error


def test_arena_shows_one_traceback_of_a_raising_policy():
    result = wotd("arena first tests.helpers.arena_policies:Raises --spaces 1 --games 20 --workers 0")
    assert result.exit_code == FORFEITS
    assert result.stderr.count("Traceback") == 1
    assert 'raise KeyError("turn four")' in result.stderr


def test_interrupted_arena_keeps_games_and_says_how_to_continue(tmp_path):
    file = tmp_path / "games.sqlite"
    command = f"arena random greedy --spaces 0 --games 10000000 --quiet --workers 1 --file {file}"
    process = tournaments.wotd(*command.split())
    while len(tournaments.blocks_of(file)) < 2:
        assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == INTERRUPTED
    assert "Interrupted" in errors
    assert f"Finished games are saved in {file}; run the same command to continue." in errors
    assert "Traceback" not in errors
    assert len(tournaments.blocks_of(file)) >= 2


def test_watch_prints_every_turn_until_the_end():
    command = "watch greedy random first --spaces 1 --seed 3 --powers any"
    result = wotd(command)
    assert result.exit_code == 0, result.output
    turns = [line for line in result.stdout.splitlines() if line.startswith("Turn ")]
    assert [int(line.split()[1].rstrip(":")) for line in turns] == list(range(1, len(turns) + 1))
    assert f"The game is over in turn {len(turns)}" in result.stdout
    for letter, name in zip("ABC", ("greedy", "random", "first"), strict=True):
        assert f"\n{name} ({letter}), " in result.stdout
        assert f" {letter}  {name} " in result.stdout
    assert wotd(command).stdout == result.stdout


def test_replay_escapes_control_characters_in_names(tmp_path):
    file = tmp_path / "game.txt"
    notation.write_game(file, notation.record_game(Rules(), [31], seed=3, players=("\x1b[2J",) * 2))
    printed = wotd("replay", file).stdout
    assert "\x1b" not in printed
    assert r"'\x1b[2J' (B), " in printed


def test_a_recorded_game_can_be_analyzed(table):
    assert wotd("watch random --spaces 0 --record game.txt").exit_code == 0
    recorded = notation.read_game("game.txt")
    assert recorded.players == ("random", "random")
    assert recorded.seed == 0
    result = wotd("analyze", "game.txt", "--table", table.file)
    assert result.exit_code == 0, result.output
    first, *rest, definition = result.stdout.splitlines()
    assert definition == analysis.define_errors(2)
    assert first == f"game.txt: 0 plain spaces, graded by {table.file}"
    asked = Game(recorded.rules).legal_actions(recorded.states[:-1]).sum(1) > 1
    assert sum(line.startswith("turn ") for line in rest) == asked.sum()


def test_analyze_names_the_estimates_for_more_than_two_players():
    assert wotd("watch random --players 3 --spaces 0 --record game.txt").exit_code == 0
    line = notation.position(Rules(players=3), Game(Rules(players=3)).reset(1, seed=0))
    for what, call in (("game.txt", "analysis.review("), (line, "analysis.Advisor(")):
        result = wotd("analyze", what)
        words = " ".join(result.stderr.split())
        assert result.exit_code == 2
        assert "players must be 2, got 3" in words
        assert f"wotd_env.{call}" in words


def test_a_position_can_be_analyzed(table):
    line = "|AB.../|B..../|...../|...../|..... wf(meo) 3 A move 0 ffddd"
    result = wotd("analyze", line, "--table", table.file)
    assert result.exit_code == 0, result.output
    first, *actions = result.stdout.splitlines()
    rules, state = notation.parse_position(line)
    exact = analysis.analyze(Game(rules), state, table)
    assert first == f"{exact.equity[0]:+.3f} for seat 0, by {table.file}"
    assert len(actions) == 1
    assert actions[0].split()[:2] == [f"{exact.equity[0]:+.3f}", "f|2"]
    assert "move on fire, to number 2" in actions[0]
    result = wotd("analyze", line.replace("move 0 ffddd", "over 0 ffddd"), "--table", table.file)
    assert len(result.stdout.splitlines()) == 1
    result = wotd("analyze", line, "--table", table.file, "--games", 5)
    assert result.exit_code == WRONG_USE
    assert "--games is for grading policies" in result.output


def test_watch_starts_from_a_given_position():
    line = "|AB.../|B..../|...../|...../|..... wf(meo) 3 A move 0 ffddd powers=own"
    result = wotd("watch", "first", "greedy", "--position", line, "--record", "game.txt")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0].startswith("Turn 3: first (A)")
    assert line in result.stdout.splitlines()
    recorded = notation.read_game("game.txt")
    assert notation.position(recorded.rules, recorded.states[:1]) == line
    assert recorded.seed is None
    other = wotd("watch", "first", "greedy", "--position", line, "--seed", 1)
    assert other.stdout.splitlines()[0] == result.stdout.splitlines()[0]
    assert other.stdout != result.stdout
    result = wotd("watch", "first", "--position", line, "--dead-pieces", 2)
    assert result.exit_code == WRONG_USE
    assert "--dead-pieces cannot be combined with --position" in result.output


def test_watch_records_an_interrupted_game(monkeypatch):
    def interrupt(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr("wotd_env.cli.watch.time.sleep", interrupt)
    assert wotd("watch", "first", "--record", "game.txt").exit_code == INTERRUPTED
    assert notation.read_game("game.txt").states["phase"][-1] == Phase.OVER


def test_watch_records_an_interrupted_policy(monkeypatch):
    from wotd_env.policies.first import First

    act, asked = First.act, []

    def interrupted(self, game, state, rng):
        asked.append(1)
        if len(asked) == 5:
            raise KeyboardInterrupt
        return act(self, game, state, rng)

    monkeypatch.setattr(First, "act", interrupted)
    assert wotd("watch", "first", "--record", "game.txt").exit_code == INTERRUPTED
    assert len(notation.read_game("game.txt").actions) > 0


def test_solve_and_verify_print_the_value_and_the_residual(table):
    again = wotd("solve", "--spaces", 0, "--out", table.file, "--quiet")
    value = again.stdout.split()[-1]
    assert float(value) == pytest.approx(0.2735635, abs=1e-6)
    assert len(value.partition(".")[2]) == 7
    loud = wotd("solve", "--spaces", 0, "--out", table.file)
    assert loud.stderr == f"{table.file} is solved already\n"
    result = wotd("solve", "--verify", table.file, "--quiet")
    assert result.exit_code == 0, result.output
    assert float(result.stdout.split()[-1]) < 1e-6


def test_analyze_grades_policies(table):
    options = ("--spaces", 0, "--table", table.file, "--games", 200, "--quiet")
    result = wotd("analyze", "greedy", "oracle", *options, "--out", "a.json", "--plot", "a.svg")
    assert result.exit_code == 0, result.output
    grades = json.loads(Path("a.json").read_text())
    regrets = {name: grade["kinds"][-1]["regret"] for name, grade in grades.items()}
    assert regrets["greedy"] > 0.01 > 1e-6 > regrets["oracle"]
    assert Path("a.svg").exists()
    assert "first hold" in result.stdout
    words = " ".join(result.stdout.split())
    assert "greedy: 200 games in self-play on 0 plain spaces mean result of the starting player: " in words
    assert "regret in thousandths of equity: of a decision, and of a game, one seat, in self-play" in words
    total = grades["greedy"]["kinds"][-1]
    assert f"{1000 * total['regret']:.2f} ±{1000 * total['regret_error']:.2f}" in words
    assert f"{1000 * total['per_game']:.1f} ±{1000 * total['per_game_error']:.1f}" in words
    assert analysis.define_errors(2) in words


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("arena greedy ranom", "policy must be one of random, first"),
        ("arena greedy greedy", "got 'greedy' twice"),
        ("arena greedy nowhere:Policy", "No module named 'nowhere'"),
        ("arena greedy tests.helpers.arena_policies:Nobody", "has no attribute 'Nobody'"),
        ("arena greedy tests.helpers.arena_policies:np", "must have a method act"),
        ("arena greedy onnx:missing.onnx", "missing.onnx"),
        ("arena greedy random --players 6", "players must be an integer from 2 to 5, got 6"),
        ("arena greedy random --powers all", "powers must be one of 'none', 'own', 'any', got 'all'"),
        ("arena greedy random --colors red,blue", "2 different names among water"),
        ("arena greedy random --start me", "start must be 'dragons', 'loser' or a seat number, got 'me'"),
        ("arena greedy random --games 0", "games must be an integer from 1"),
        ("arena greedy random --luck random --workers 0", "luck must name a policy with a method equity"),
        ("arena greedy random --out results.xls", "must end in .json, .csv, got results.xls"),
        ("arena greedy random --plot nowhere/a.png", "no folder nowhere"),
        ("arena greedy random --file nowhere/a.sqlite", "no folder nowhere"),
        ("arena greedy random --file notes.txt", "notes.txt is not a tournament file"),
        ("arena greedy random --workers -1", "workers must be an integer of at least 0"),
        ("arena td greedy --spaces 4", "no trained model of td"),
        ("record td greedy --spaces 4 --out games.parquet", "no trained model of td"),
        ("solve", "give one of --spaces"),
        ("solve --spaces 11", "spaces must be an integer from 0 to 10, got 11"),
        ("solve --verify notes.txt", "notes.txt is not a table"),
        ("analyze greedy --table missing.wotd", "missing.wotd"),
        ("analyze missing.txt", "missing.txt"),
        ("analyze notes.txt", "notes.txt: a game must begin with its first position"),
        ("watch greedy random first --players 2", "give 1 or 2 policies for 2 seats, got 3"),
        ("watch greedy --players 0", "players must be an integer from 2 to 5, got 0"),
        ("watch greedy --seed -1", "seed must be an integer from 0 to 2**64 - 1, got -1"),
        (f"watch greedy --seed {2**64}", "seed must be an integer from 0 to 2**64 - 1"),
        ("watch greedy --delay -1", "delay must be from 0 to 3600, got -1.0"),
        ("watch greedy --delay nan", "delay must be from 0 to 3600, got nan"),
        ("watch greedy --delay inf", "delay must be from 0 to 3600, got inf"),
        ("watch greedy --record game.json", "must end in .txt, got game.json"),
        ("watch greedy --record nowhere/game.txt", "no folder nowhere"),
        ("watch greedy oracle:missing.wotd", "missing.wotd"),
        ("watch greedy --position nonsense", "a position must begin with board, colors"),
        ("watch oracle --players 3", "players must be 2, got 3"),
        ("watch td --spaces 4", "no trained model of td"),
        ("speed --players 7", "players must be an integer from 2 to 5, got 7"),
        ("speed --powers all", "powers must be one of 'none', 'own', 'any', got 'all'"),
        ("speed --batch 0", "batch must be an integer from 1 to 1000000, got 0"),
        ("speed --batch 1000000000000", "batch must be an integer from 1 to 1000000, got 1000000000000"),
        ("speed --batch many", "Invalid value for"),
        ("speed --threads 0", "threads must be an integer from 1 to 1024, got 0"),
        ("speed --threads 100000", "threads must be an integer from 1 to 1024, got 100000"),
        ("speed --seconds 0", "seconds must be from 0.01 to 3600, got 0.0"),
        ("speed --seconds nan", "seconds must be from 0.01 to 3600, got nan"),
        ("speed --seconds inf", "seconds must be from 0.01 to 3600, got inf"),
        ("analyze greedy --players 3", "use: wotd benchmark AGENT --players N"),
        ("record greedy --out games.csv", "must end in .parquet, got games.csv"),
        ("record greedy --out nowhere/g.parquet", "no folder nowhere"),
        ("record greedy random first --players 2", "one for each of the 2 seats, or one for all, got 3"),
        ("record ranom", "policy must be one of"),
        ("record greedy --games 0", "games must be an integer from 1"),
        ("record greedy --table missing.wotd", "missing.wotd"),
        ("replay missing.parquet", "missing.parquet"),
        ("replay missing.txt", "missing.txt"),
        ("replay notes.txt", "notes.txt: a game must begin with"),
        ("replay notes.txt --game 1", "--game needs a .parquet file"),
        ("replay notes.txt --out game.avi", "must end in .txt, .html, .gif, .mp4, got game.avi"),
        ("replay notes.csv", "must end in .txt or .parquet, got notes.csv"),
        (
            "replay notes.parquet --out a.html",
            "--out writes one game: choose a game of notes.parquet with --game",
        ),
        ("replay notes.txt --delay -1", "delay must be from 0"),
        ("benchmark greedy random", "give one agent"),
        ("benchmark greedy --format html", "--format must be one of"),
        ("benchmark greedy --spaces 6", "no test positions"),
        ("benchmark greedy --games 1", "games must be"),
        ("benchmark greedy --size 1 --spaces 0", "size must be"),
        ("benchmark greedy --out a.txt", "must end in .json"),
        ("benchmark nobody", "policy must be one of"),
        ("benchmark greedy --powers all", "with all powers are bundled; there are those for"),
        ("benchmark greedy --powers own", "with own powers are bundled; there are those for 3 plain spaces"),
        ("benchmark ppo --players 3 --spaces 7", "no trained model of ppo"),
        ("benchmark --compare a.json", "two result files"),
        ("benchmark --compare a.json b.json --games 10", "--games cannot be combined"),
        ("benchmark --compare a.json b.json --format json", "table, markdown and latex"),
        ("benchmark --compare a.json b.json", "a.json"),
        ("benchmark td --spaces 2 --dead-pieces 5", "no trained model of td"),
        ("benchmark greedy --dead-pieces 5", "--dead-pieces needs --spaces"),
        (
            "benchmark greedy --spaces 2 --dead-pieces 3",
            "no test positions for 2 plain spaces and dead_pieces=3",
        ),
        ("benchmark greedy --spaces 2 --dead-pieces #./#./../..", "dead_pieces must be a number or 5 paths"),
        (f"benchmark greedy --spaces 5 --dead-pieces #####{'/.....' * 4}", "fewer than 5 in a row"),
        ("positions --spaces 2", "wotd solve --spaces 2"),
        ("positions --players 3 --table a.wotd", "--table is for two players"),
        ("positions --players 3 --powers own --colors water,fire,metal", "leave out --colors"),
        ("positions --players 3 --spaces 2", "no trained model of td"),
    ],
)
def test_invalid_arguments_are_reported_before_any_output(arguments, message):
    text = "no database, no table, but long enough to be looked into" * 20
    Path("notes.txt").write_text(text)
    result = wotd(arguments)
    assert result.exit_code == WRONG_USE, result.output
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    assert [file.name for file in Path().iterdir()] == ["notes.txt"]
    assert Path("notes.txt").read_text() == text


def test_watch_needs_consent_for_files_that_can_run_code():
    pytest.importorskip("sb3_contrib")
    Path("model.zip").write_text("no model")
    for more, message in (
        ((), "consent with trust=True or --trust"),
        (("--trust",), "model.zip contains no model"),
    ):
        result = wotd("watch", "sb3:model.zip", *more)
        assert result.exit_code == WRONG_USE
        assert message in result.stderr


@pytest.mark.parametrize(
    ("name", "source", "failed"),
    [
        ("broken_policy", "1 / 0\n", "cannot be made"),
        (
            "unsure_policy",
            "class Policy:\n    def check_rules(self, rules): 1 / 0\n    def act(self, game, state, rng): ...\n",
            "cannot check its rules",
        ),
    ],
)
def test_errors_in_the_module_of_a_policy_name_the_policy(monkeypatch, tmp_path, name, source, failed):
    (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    result = wotd("watch", f"{name}:Policy")
    assert result.exit_code == WRONG_USE
    assert f"policy '{name}:Policy' {failed}: ZeroDivisionError" in result.stderr


def test_error_for_a_missing_extra_says_what_to_install():
    code = "import sys; sys.modules['typer'] = None; from wotd_env.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, text=True, capture_output=True, check=False)
    assert done.returncode == FAILED
    assert done.stderr == (
        "the wotd command needs typer, part of the extra arena: pip install 'wotd-env[arena]', "
        "or '.[arena]' in a checkout\n"
    )


def test_speed_measures_every_interface(monkeypatch):
    monkeypatch.setattr("wotd_env.speed.CHUNK", 256)
    result = wotd("speed --seconds 0.01 --batch 64 --players 3 --powers own")
    assert result.exit_code == 0, result.output
    rows = [
        line.rsplit(maxsplit=3)
        for line in result.stdout.splitlines()
        if line.strip().endswith(tuple("0123456789"))
    ]
    assert len(rows) == 6
    for _, _, rate, inside in rows:
        assert 0 < int(rate.replace(",", "")) <= int(inside.replace(",", ""))


def test_solve_makes_a_compact_table(table, tmp_path):
    result = wotd("solve", "--compact", table.file, "--out", tmp_path / "small.wotd", "--quiet")
    assert result.exit_code == 0, result.output
    assert "largest difference" in result.stdout
    assert wotd("solve", "--compact", table.file, "--quiet").exit_code == WRONG_USE
    assert wotd("solve", "--compact", table.file, "--spaces", 1, "--quiet").exit_code == WRONG_USE


@pytest.mark.parametrize("option", [[], ["--against"]], ids=["policy", "opponent"])
def test_analyze_refuses_unsupported_rules_before_grading(table, option):
    network = models.FOLDER / "ppo-2-none.onnx"
    result = wotd("analyze", "greedy", *option, f"onnx:{network}", "--table", table.file)
    assert result.exit_code == WRONG_USE
    assert f"{network} is made for spaces=7, not for spaces=0" in " ".join(result.stderr.split())
    assert result.stdout == ""


def test_arena_reports_a_missing_table(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "wotd_env.policies.oracle.cache_file", lambda rules: tmp_path / f"{rules.spaces}.wotd"
    )
    result = wotd("arena", "oracle", "greedy", "--spaces", 3, "--games", 100, "--quiet")
    assert result.exit_code == WRONG_USE
    assert "wotd solve --spaces 3" in result.output
    assert "minutes" in result.output


GROUP: Any = typer.main.get_command(app)


@pytest.mark.parametrize("name", sorted(GROUP.commands))
def test_help_texts_have_an_example_and_name_only_files_in_the_wheel(name):
    assert f" {name} " in wotd("--help").stdout
    assert f"Example: wotd {name}" in wotd(f"{name} --help").stdout
    command = GROUP.commands[name]
    texts = [command.help or "", *(parameter.help or "" for parameter in command.params)]
    assert all(texts)
    assert not [text for text in texts if "docs/" in text or "agents/" in text]


def test_analyze_checks_policies_before_it_makes_a_table(monkeypatch):
    monkeypatch.setattr(solver, "solve", lambda *_: pytest.fail("a table is made"))
    monkeypatch.setattr("wotd_env.policies.oracle.solve", lambda *_: pytest.fail("a table is made"))
    network = models.FOLDER / "ppo-2-none.onnx"
    for names in (
        [f"onnx:{network}"],
        ["oracle", f"onnx:{network}"],
        ["greedy", "--against", f"onnx:{network}"],
    ):
        result = wotd("analyze", *names, "--spaces", 0)
        assert result.exit_code == WRONG_USE
        assert "is made for spaces=7, not for spaces=0" in " ".join(result.stderr.split())
