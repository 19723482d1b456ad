"""Inspect evaluates language models: single decisions, and games against policies.

    from inspect_ai import eval
    from wotd_env.adapters.inspect import decisions, games

    eval(decisions(spaces=3), model="provider/model")

The scores have Inspect's own confidence intervals, clustered by game because decisions of one game are dependent.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageUser
from inspect_ai.scorer import Score, Scorer, Target, ci, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, generate, solver

from wotd_env import text
from wotd_env.core.rules import Rules

_CLUSTERED = [mean(), stderr(cluster="game"), ci(cluster="game")]
_INDEPENDENT = [mean(), ci()]


@task
def decisions(
    players: int = 2, spaces: int = 3, powers: str = "none", *, file: str | None = None,
    size: int = 50, layout: str | None = None, show_legal: bool = True,
) -> Task:  # fmt: skip
    """Ask for the action in each test position; see `wotd_env.text.decisions`.

    Args:
        players: number of players; ignored if `file` is given.
        spaces: number of plain spaces; ignored if `file` is given.
        powers: `Rules.powers`; ignored if `file` is given.
        file: a file of test positions, written by `wotd positions`.
        size: number of positions for each pair of kind and stage.
        layout: `"random"` renames the paths of each position.
        show_legal: whether the prompt lists the legal actions.
    """
    rules = None if file else Rules(players=players, spaces=spaces, powers=powers)
    questions = text.decisions(rules=rules, file=file, size=size, layout=layout, show_legal=show_legal)
    return Task(
        dataset=[
            Sample(
                id=question["id"],
                input=question["prompt"],
                target=question["actions"][max(enumerate(question["equities"]), key=lambda pair: pair[1])[0]],
                metadata=question,
            )
            for question in questions
        ],
        solver=generate(),
        scorer=regret(),
    )


@scorer(metrics={"regret": _CLUSTERED, "agreement": _CLUSTERED, "illegal": [mean()]})
def regret() -> Scorer:
    """Score a decision: its regret, whether no action is better, and whether the reply has no legal action."""

    async def score(state: TaskState, target: Target) -> Score:
        grade = text.grade(state.metadata, state.output.completion)
        illegal = grade["action"] is None
        value = {"regret": grade["regret"], "agreement": float(grade["agrees"]), "illegal": float(illegal)}
        return Score(value=value, answer=grade["action"], explanation=grade["fault"] or None)

    return score


@task
def games(
    count: int = 20, players: int = 2, spaces: int = 1, powers: str = "none", *, opponent: str = "oracle",
    layout: str | None = None, show_legal: bool = True, retries: int = 1,
) -> Task:  # fmt: skip
    """Play games against policies; game i has the seed i. See `wotd_env.text.TextGame` for the other arguments.

    Games without a solution have no regret.
    """
    rules = Rules(players=players, spaces=spaces, powers=powers)
    options: dict[str, Any] = {"layout": layout, "show_legal": show_legal, "retries": retries}
    samples = [
        Sample(id=seed, input=f"game {seed}", metadata={"game": seed, "rules": asdict(rules)})
        for seed in range(count)
    ]
    return Task(dataset=samples, solver=play(opponent, options), scorer=game_regret())


@solver
def play(opponent: str, options: dict[str, Any]) -> Solver:
    """Play the game of a sample to its end."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        game = text.TextGame(Rules.from_dict(state.metadata["rules"]), opponent, **options)
        message, over, replies = game.reset(state.metadata["game"]), False, []
        state.messages.clear()
        while not (over or state.completed):
            state.messages.append(ChatMessageUser(content=message))
            state = await generate(state)
            message, _, over, _, info = game.step(state.output.completion)
            replies.append(info)
        state.store.set("replies", replies)
        return state

    return solve


@scorer(metrics={**dict.fromkeys(("regret", "per_game", "result"), _INDEPENDENT), "illegal": [mean()]})
def game_regret() -> Scorer:
    """Score a game: mean and sum of the regrets of its decisions, its result, and the share of faulty replies."""

    async def score(state: TaskState, target: Target) -> Score:
        replies = state.store.get("replies")
        regrets = [reply["regret"] for reply in replies if "regret" in reply]
        value = {
            "regret": sum(regrets) / max(len(regrets), 1),
            "per_game": sum(regrets),
            "result": replies[-1]["result"] if replies else 0.0,
            "illegal": sum(bool(reply["fault"]) for reply in replies) / max(len(replies), 1),
        }
        return Score(value=value)

    return score
