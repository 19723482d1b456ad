"""verifiers evaluates and trains language models: single decisions, and games of 2 to 5 models.

verifiers finds a task set by the name of a module that exports it. Write such a module, e.g. `wotd_games.py`:

    from wotd_env.adapters.verifiers import Games, GamesEnv

    __all__ = ["Games", "GamesEnv"]

Then run `vf-eval wotd_games`, or export only `Decisions` for single decisions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any, Literal

import verifiers.v1 as vf

from wotd_env import text
from wotd_env.core.rules import Rules


class BoardConfig(vf.TasksetConfig):
    """The rules, as in `Rules`, and the messages, as in `wotd_env.text.TextTable`."""

    players: int = 2
    spaces: int = 1
    powers: Literal["none", "own", "any"] = "none"
    layout: Literal["random"] | None = None
    show_legal: bool = True

    def rules(self) -> Rules:
        """Return the rules."""
        return Rules(players=self.players, spaces=self.spaces, powers=self.powers)


class DecisionsConfig(BoardConfig):
    """The positions, see `wotd_env.text.decisions`."""

    spaces: int = 3
    split: Literal["train", "validation", "test"] = "test"
    file: str | None = None
    size: int = 50


class DecisionData(vf.TaskData):
    """A question of `wotd_env.text.decisions`."""

    question: dict[str, Any]


class Decision(vf.Task[DecisionData]):
    """A single decision. The reward is minus the regret, so 0 is the best."""

    @vf.reward
    async def minus_regret(self, trace: vf.Trace) -> float:
        """Return minus the regret of the reply."""
        return 0.0 - float(text.grade(self.data.question, trace.last_reply)["regret"])

    @vf.metric
    async def agreement(self, trace: vf.Trace) -> float:
        """Return 1 if no action is better."""
        return float(text.grade(self.data.question, trace.last_reply)["agrees"])

    @vf.metric
    async def illegal(self, trace: vf.Trace) -> float:
        """Return 1 if the reply has no legal action."""
        return float(text.grade(self.data.question, trace.last_reply)["action"] is None)

    async def validate(self, runtime: vf.Runtime) -> bool:
        """Return whether the best action has no regret, and a reply without an action has one."""
        question = self.data.question
        _, best = max(zip(question["equities"], question["actions"], strict=True))
        top, none = (text.grade(question, reply)["regret"] for reply in (f"<action>{best}</action>", ""))
        return bool(top == 0 < none)


class Decisions(vf.Taskset[Decision, DecisionsConfig]):
    """Single decisions."""

    def load(self) -> Iterator[Decision]:
        """Yield a task for each position."""
        config = self.config
        for question in text.decisions(
            config.split, None if config.file else config.rules(), file=config.file, size=config.size,
            layout=config.layout, show_legal=config.show_legal,
        ):  # fmt: skip
            data = DecisionData(id=question["id"], prompt=question["prompt"], question=question)
            yield Decision(data, config.task)


class GamesConfig(BoardConfig):
    """Games; game i has the seed `first_seed + i`.

    The reward of a seat is minus the sum of its regrets or, without a solution, the result of the game.
    """

    games: int = 100
    first_seed: int = 0
    reward: Literal["regret", "result"] = "regret"
    retries: int = 1


class GameData(vf.TaskData):
    """The game of a seed, and the arguments of its table."""

    seed: int
    options: dict[str, Any]


class GameTask(vf.Task[GameData]):
    """A game. Its environment records the rewards."""

    async def validate(self, runtime: vf.Runtime) -> bool:
        """Return whether the game can be set up."""
        return not start(self.data).over


class Games(vf.Taskset[GameTask, GamesConfig]):
    """Whole games."""

    def load(self) -> Iterator[GameTask]:
        """Yield a task for each seed."""
        names = ("players", "spaces", "powers", "layout", "show_legal", "reward", "retries")
        options = {name: getattr(self.config, name) for name in names}
        for seed in range(self.config.first_seed, self.config.first_seed + self.config.games):
            yield GameTask(GameData(name=f"game {seed}", seed=seed, options=options), self.config.task)


def start(data: GameData) -> text.TextTable:
    """Return the table of a game at its first decision."""
    options = dict(data.options)
    rules = Rules(**{name: options.pop(name) for name in ("players", "spaces", "powers")})
    table = text.TextTable(rules, **options)
    table.reset(data.seed)
    return table


class GamesEnvConfig(vf.EnvConfig):
    """A model for each seat; only the first `players` seats play."""

    p0: vf.AgentConfig = vf.AgentConfig()
    p1: vf.AgentConfig = vf.AgentConfig()
    p2: vf.AgentConfig = vf.AgentConfig()
    p3: vf.AgentConfig = vf.AgentConfig()
    p4: vf.AgentConfig = vf.AgentConfig()


class GamesEnv(vf.Env[GamesEnvConfig]):
    """Play a game between models.

    `trace.info["turns"]` has the reward of each turn of a seat, beside the reward of the game and the metrics `result`
    and `illegal`. A model that reaches a limit forfeits the game.
    """

    async def run(self, task: GameTask, agents: vf.Agents) -> None:
        """Play the game of the task."""
        table = start(task.data)
        turns: list[list[dict[str, Any]]] = [[] for _ in range(table.rules.players)]
        async with AsyncExitStack() as stack:
            seats = [
                await stack.enter_async_context(getattr(agents, f"p{seat}").interaction(task))
                for seat in range(table.rules.players)
            ]
            while not table.over:
                seat = table.seat
                segment = await seats[seat].turn(table.message())
                turns[seat].append(table.reply("" if segment.terminated else segment.last_reply))
            for seat, interaction in enumerate(seats):
                rewards = [turn["reward"] for turn in turns[seat]]
                result = float(table.results[seat])
                total = sum(rewards) if table.reward == "regret" else result
                interaction.trace.info["turns"] = rewards
                interaction.trace.record_reward(table.reward, total)
                interaction.trace.record_metric("result", result)
                interaction.trace.record_metric(
                    "illegal", float(sum(bool(turn["fault"]) for turn in turns[seat]))
                )
