"""Inspect evaluates single decisions and games, with its mock model."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("inspect_ai", reason="inspect_ai is not installed: make test-doors", exc_type=ImportError)

from inspect_ai import eval as evaluate
from inspect_ai.model import ModelOutput, ModelUsage, get_model

from tests.helpers.games import first_legal
from wotd_env import Rules, text
from wotd_env.adapters.inspect import decisions, games

pytestmark = pytest.mark.filterwarnings("ignore")

SMALL = Rules(spaces=0)
BOARD: Any = {"spaces": 0}


def ran(task: Any, answer: Any, folder: Path, **options: Any) -> Any:
    """Evaluate a task with a model that replies `answer(prompt)`; return the log."""

    def reply(messages: Any, tools: Any, choice: Any, config: Any) -> ModelOutput:
        output = ModelOutput.from_content("mockllm/model", answer(messages[-1].text))
        # else it loads a tokenizer
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    model = get_model("mockllm/model", custom_outputs=reply)
    (log,) = evaluate(task, model=model, log_dir=str(folder), display="none", **options)
    assert log.status == "success", log.error
    return log


def metrics(log: Any, score: str) -> dict[str, float]:
    (found,) = (each for each in log.results.scores if each.name == score)
    return {name: metric.value for name, metric in found.metrics.items()}


@pytest.mark.client("Inspect", "inspect_ai", "decisions(spaces=3)")
def test_scores_of_decisions_are_their_grades(tmp_path):
    questions = [*text.decisions(rules=SMALL, size=5)]
    log = ran(decisions(**BOARD, size=5), first_legal, tmp_path)
    grades = [text.grade(question, first_legal(question["prompt"])) for question in questions]
    regrets = np.array([grade["regret"] for grade in grades])
    measured = metrics(log, "regret")
    assert measured["mean"] == pytest.approx(regrets.mean())
    _, game = np.unique([question["game"] for question in questions], return_inverse=True)
    sums = np.bincount(game, regrets - regrets.mean())
    clusters = len(sums)
    error = np.sqrt((sums**2).sum() * clusters / (clusters - 1)) / len(regrets)
    assert measured["stderr"] == pytest.approx(error)
    assert metrics(log, "agreement")["mean"] == pytest.approx(np.mean([grade["agrees"] for grade in grades]))
    assert metrics(log, "illegal")["mean"] == 0


def test_the_targets_have_no_regret(tmp_path):
    task = decisions(**BOARD, size=5, layout="random")
    best = {sample.input: sample.target for sample in task.dataset}
    log = ran(task, lambda prompt: f"<action>{best[prompt]}</action>", tmp_path)
    assert metrics(log, "regret")["mean"] == 0
    assert metrics(log, "agreement")["mean"] == 1


def test_replies_without_an_action_are_illegal(tmp_path):
    log = ran(decisions(**BOARD, size=1), lambda prompt: "stop", tmp_path)
    assert metrics(log, "illegal")["mean"] == 1
    assert metrics(log, "regret")["mean"] > 0.5


@pytest.mark.client("Inspect", "inspect_ai", 'games(opponent="oracle")')
def test_games_are_those_of_text_games(tmp_path):
    log = ran(games(count=2, **BOARD), first_legal, tmp_path)
    totals, results = [], []
    for seed in range(2):
        game = text.TextGame(SMALL, "oracle")
        message, over, total = game.reset(seed), False, 0.0
        while not over:
            message, reward, over, _, info = game.step(first_legal(message))
            total -= reward
        totals.append(total)
        results.append(info["result"])
    assert metrics(log, "per_game")["mean"] == pytest.approx(np.mean(totals))
    assert metrics(log, "result")["mean"] == pytest.approx(np.mean(results))
    assert metrics(log, "illegal")["mean"] == 0


def test_a_silent_model_forfeits(tmp_path):
    log = ran(games(count=2, retries=1, **BOARD), lambda prompt: "", tmp_path)
    assert metrics(log, "result")["mean"] == -1
    assert metrics(log, "illegal")["mean"] == 1
    assert all(len(sample.messages) == 4 for sample in log.samples)
