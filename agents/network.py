"""The policy network: it treats the five paths alike, as the rules do.

A permutation of the elements leaves the basic game as it is. So one small network reads every path, and one small
network answers for each of them; what the whole game says passes through the mean and the maximum over the paths. A
plain MLP would have to learn everything for each of the 120 permutations.

A hold is scored by what it keeps. The score is a sum: for each face a number that depends on how many of its dice are
kept, one for how many dice are kept in all, and one for how many different elements they show.

A *planned* network also scores it by what it leads to: the network says what each end of the turn is worth, and the
turn planner, which is a layer of it (`agents.holds`), what every hold is worth then. Moves are scored by the same ends.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch as th
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.type_aliases import Schedule
from torch import nn

from agents.holds import planned_holds
from wotd_env.core.actions import Action, pairs
from wotd_env.core.dice import NUM_HOLDS, NUMBER_PARTS
from wotd_env.core.observation import DEADLINE, layout
from wotd_env.core.rules import DICE, DRAGON, MAX_PLAYERS, NUMBERED, PATHS, REROLLS, Phase, Rules
from wotd_env.planning.learned import LEAD

COUNTS = DICE + 1  # a face is shown by 0 to 5 dice
PLAIN = Action.FIRST_SWAP - Action.EQUILIBRIUM  # actions without a path
AFTER = 32  # units of the hidden layer for positions after the turn
SCALE = 10.0  # of what the ends of a turn are worth, so that they soon tell holds apart
IMPOSSIBLE = -1e3  # the score of an end that no roll can bring about
OF_GAME = ("rolls_left", "phase", "player", "powers", "perfection", "deadline")


class Afterstates(nn.Module):
    """What the ends of a turn are worth, for the observer, by the positions that they leave.

    As in `wotd_env.planning.learned`, rows for the pieces of the observer and another player on a path are added up
    over the paths; a move exchanges those of one path. One more row is for the observer's numbered pieces, the most of
    any other, and its lead in points: who may end the game, and who would win.

    Args:
        rules: the rules of the game.
        of_path: numbers that describe a path.
        of_board: numbers that describe the game but for its paths and dice.
        width: units of the first layer.
    """

    def __init__(self, rules: Rules, of_path: int, of_board: int, width: int) -> None:
        super().__init__()
        self.plain, self.spaces, self.others = rules.spaces, rules.spaces + NUMBERED + 1, rules.players - 1
        self.rows = nn.Embedding(self.others * self.spaces**2, width)
        self.standing = nn.Embedding((PATHS + 1) ** 2 * (2 * LEAD + 1), width)
        for rows in (self.rows, self.standing):
            nn.init.normal_(rows.weight, std=0.3)
        self.path, self.board = nn.Linear(of_path, width), nn.Linear(of_board, width)
        self.hidden, self.direct = nn.Linear(width, AFTER), nn.Linear(width, 1)
        self.out = nn.Linear(AFTER, 1, bias=False)
        nn.init.normal_(self.out.weight, std=0.05)

    def forward(
        self, pieces: th.Tensor, of_path: th.Tensor, of_board: th.Tensor, free: th.Tensor
    ) -> tuple[th.Tensor, th.Tensor, th.Tensor]:
        """Return scores of moves by 1 to 5 dice (N, 5, 5), of an equilibrium (N, 1) and of a pass (N, 1).

        Args:
            pieces: (N, n, 5, spaces), one-hot.
            of_path: (N, 5, ...).
            of_board: (N, ...).
            free: (N, 5, 5), see `PathNetwork.free`.
        """
        at = (pieces @ th.arange(self.spaces, dtype=pieces.dtype)).long()  # (N, n, 5)
        other = (th.arange(self.others)[:, None] * self.spaces + at[:, 1:]) * self.spaces
        mine = (at[:, 0, :, None] + th.arange(DICE + 1)).clamp(max=self.spaces - 1)  # (N, 5, 6)
        rows = self.rows(other[..., None] + mine[:, None]).sum(1)  # (N, 5, 6, width)
        rest = self.path(of_path).sum(1) + self.board(of_board)
        x = self.ends(rows, free) + self.standing(self.standings(at, mine, free)) + rest[:, None]
        x = x.relu()
        scores = SCALE * (self.direct(x) + self.out(self.hidden(x).relu())).squeeze(2)
        return scores[:, :-2].unflatten(1, (PATHS, DICE)), scores[:, -2:-1], scores[:, -1:]

    def ends(self, of_path: th.Tensor, free: th.Tensor) -> th.Tensor:
        """Return sums over the paths at each end, (N, 27, ...), of (N, 5, 6, ...) by path and steps gone there."""
        passed = of_path[:, :, 0].sum(1, keepdim=True)
        change = of_path[:, :, 1:] - of_path[:, :, :1]
        advanced = passed + (free[:, :, :1] * change[:, :, 0]).sum(1, keepdim=True)
        return th.cat([passed + change.flatten(1, 2), advanced, passed], 1)

    def standings(self, at: th.Tensor, mine: th.Tensor, free: th.Tensor) -> th.Tensor:
        """Return the numbers of the rows for the standing at each end, int64 (N, 27).

        Args:
            at: int64 (N, n, 5), the spaces of all pieces.
            mine: int64 (N, 5, 6), those of the observer's after 0 to 5 steps.
            free: as for `forward`.
        """
        points, theirs = (mine - self.plain).clamp(min=0), (at[:, 1:] - self.plain).clamp(min=0)
        score, numbered = self.ends(th.stack([points, (points > 0).long()], 3), free.long()).unbind(2)
        lead = (score - theirs.sum(2).amax(1, keepdim=True)).clamp(-LEAD, LEAD) + LEAD
        most = (theirs > 0).sum(2).amax(1, keepdim=True)
        return (numbered * (PATHS + 1) + most) * (2 * LEAD + 1) + lead


class PathNetwork(nn.Module):
    """Observations, float (N, D), to action logits (N, A) and values (N, 1).

    Args:
        rules: the rules of the game that is observed.
        width: units of each hidden layer.
        planned: score holds and moves by the ends of the turn, too.
    """

    held: th.Tensor  # (32, 5): whether a hold keeps a die
    ranks: th.Tensor  # (5, 6): the number of a roll is the sum of its dice's
    number: th.Tensor  # (6,): 0..5
    die: th.Tensor  # (5, 1): 0..4
    offset: th.Tensor  # (8,): where the scores of each face, of all dice and of elements begin

    def __init__(self, rules: Rules, width: int, planned: bool = False) -> None:
        super().__init__()
        self.rules, self.width, self.planned = rules, width, planned
        self.layout = layout(rules)
        self.pairs = pairs(rules.players)
        size = {name: part.stop - part.start for name, part in self.layout.items()}
        of_path = (size["pieces"] + size["dead"] + size["colors"]) // PATHS + COUNTS
        of_game = COUNTS + sum(size[name] for name in OF_GAME)

        self.path_in = nn.Linear(of_path, width)
        self.game_in = nn.Linear(of_game, width)
        self.path = nn.Linear(width, width)
        self.game = nn.Sequential(
            nn.Linear(3 * width, 2 * width), nn.ReLU(), nn.Linear(2 * width, 2 * width), nn.ReLU()
        )
        self.path_back = nn.Linear(width, width)
        self.game_back = nn.Linear(2 * width, width)
        # Of a path: its dice that are kept; its move, the same with the dragon (wood), its jump; its swaps;
        # the end by swap.
        self.path_parts = (COUNTS, 3, self.pairs, planned * 1)
        self.path_out = nn.Linear(width, sum(self.path_parts))
        # Of the game: dragons, dice and elements that are kept; plain actions; the other ends.
        self.game_parts = (3 * COUNTS, PLAIN, planned * 1)
        self.game_out = nn.Linear(2 * width, sum(self.game_parts))
        self.value = nn.Linear(2 * width, 1)
        for last in (self.path_out, self.game_out):  # all actions equally likely at first
            nn.init.normal_(last.weight, std=0.01)
            nn.init.zeros_(last.bias)

        holds = (np.arange(NUM_HOLDS)[:, None] >> np.arange(DICE)) & 1
        self.register_buffer("held", th.tensor(holds, dtype=th.float32), persistent=False)
        self.register_buffer("number", th.arange(COUNTS, dtype=th.float32), persistent=False)
        self.register_buffer("die", th.arange(DICE, dtype=th.float32)[:, None], persistent=False)
        if planned:
            self.register_buffer(
                "ranks", th.tensor(NUMBER_PARTS[:, : DRAGON + 1].astype(np.int64)), persistent=False
            )
            self.afterstates = Afterstates(rules, of_path - COUNTS, of_game - COUNTS, width)
        self.register_buffer("offset", COUNTS * th.arange(DRAGON + 3), persistent=False)

    def forward(self, observation: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        """Return the logits of all actions, legal or not, and the expected result for the observer."""
        n, players = observation.shape[0], self.rules.players
        part = {name: observation[:, where] for name, where in self.layout.items()}
        dice = part["dice"].reshape(n, DRAGON + 1, COUNTS)
        pieces = part["pieces"].reshape(n, players, PATHS, -1)
        free = self.free(pieces, part["dead"].reshape(n, PATHS, self.rules.spaces))
        of_path = th.cat(
            [
                pieces.transpose(1, 2).flatten(2),
                part["dead"].reshape(n, PATHS, self.rules.spaces),
                part["colors"].reshape(n, players, MAX_PLAYERS).transpose(1, 2),
                dice[:, :DRAGON],
            ],
            2,
        )
        part["deadline"] = part["deadline"] / DEADLINE
        of_game = self.game_in(th.cat([dice[:, DRAGON], *(part[name] for name in OF_GAME)], 1))

        paths = th.relu(self.path_in(of_path) + of_game[:, None])
        paths = th.relu(self.path(paths))
        game = self.game(th.cat([paths.mean(1), paths.amax(1), of_game], 1))
        paths = th.relu(self.path_back(paths) + self.game_back(game)[:, None])

        kept, moves, swaps, ends = self.path_out(paths).split(self.path_parts, 2)
        kept_in_all, plain, other_ends = self.game_out(game).split(self.game_parts, 1)
        holds = self.holds(dice, th.cat([kept.flatten(1), kept_in_all], 1))
        if self.planned:
            of_board = th.cat([part[name] for name in OF_GAME], 1)
            moved, advanced, passed = self.afterstates(pieces, of_path[:, :, :-COUNTS], of_board, free)
            ends = th.cat([moved.masked_fill(free == 0, IMPOSSIBLE), SCALE * ends], 2)
            all_ends = th.cat([ends.flatten(1), advanced, SCALE * other_ends, passed], 1)
            rerolls = part["phase"][:, Phase.KEEP] * (part["rolls_left"] @ self.number[: REROLLS + 1])
            holds = holds + planned_holds(all_ends, self.roll_numbers(dice), rerolls.long())
            # A move is worth what the turn is that ends so.
            shown = (dice[:, :DRAGON] @ self.number - 1).clamp(min=0).long()
            moves = th.cat([moves[..., :1] + ends.gather(2, shown[..., None]), moves[..., 1:]], 2)
        logits = th.cat([holds, moves.transpose(1, 2).flatten(1), plain, swaps.flatten(1)], 1)
        return logits, self.value(game)

    def free(self, pieces: th.Tensor, dead: th.Tensor) -> th.Tensor:
        """Return whether the observer's piece finds an empty space 1 to 5 spaces on, (N, 5 paths, 5) of 0 and 1."""
        taken = pieces[:, :, :, 1:].sum(1)  # (N, 5, S + 5)
        taken[:, :, : self.rules.spaces] += dead
        mine = pieces[:, 0, :, : self.rules.spaces + 1]  # on a plain space, or off the board
        ahead = taken.unfold(2, DICE, 1)  # (N, 5, S + 1, 5): the five spaces after each of those
        return (mine[..., None] * (1 - ahead)).sum(2)

    def roll_numbers(self, dice: th.Tensor) -> th.Tensor:
        """Return the numbers of rolls, int64 (N,); dice (N, 6, 6) as in `holds`."""
        up_to = (dice @ self.number).cumsum(1)[:, None]
        faces = (up_to <= self.die).sum(2).clamp(max=DRAGON)
        return self.ranks[th.arange(DICE, device=dice.device), faces].sum(1)

    def holds(self, dice: th.Tensor, scores: th.Tensor) -> th.Tensor:
        """Return the logits of the holds, (N, 32).

        Args:
            dice: (N, 6, 6), how many dice show each face, one-hot.
            scores: (N, 8 * 6), of keeping 0..5 dice of each face, of all, and 0..5 different elements.
        """
        up_to = (dice @ self.number).cumsum(1)[:, None]  # (N, 1, 6): dice that show this face or a lower one
        lower = (up_to > self.die).to(
            dice.dtype
        )  # (N, 5, 6): whether each die shows this face or a lower one
        shows = th.cat([lower[..., :1], lower[..., 1:] - lower[..., :-1]], 2)
        kept = self.held @ shows  # (N, 32, 6)
        elements = (kept[..., :DRAGON] > 0).to(dice.dtype).sum(2, keepdim=True)
        index = th.cat([kept, kept.sum(2, keepdim=True), elements], 2).long() + self.offset
        return scores.gather(1, index.flatten(1)).reshape(dice.shape[0], NUM_HOLDS, -1).sum(2)

    def forward_actor(self, observation: th.Tensor) -> th.Tensor:
        """Return the logits alone."""
        logits, _ = self.forward(observation)
        return logits

    def forward_critic(self, observation: th.Tensor) -> th.Tensor:
        """Return the value alone."""
        _, value = self.forward(observation)
        return value


class PathPolicy(MaskableActorCriticPolicy):
    """SB3's maskable policy with a `PathNetwork` in place of its MLPs.

    Args:
        rules: the rules of the game.
        width: units of each hidden layer.
        *args: as for SB3's policy.
        **kwargs: as for SB3's policy.
    """

    def __init__(
        self, *args: Any, rules: Rules, width: int = 64, planned: bool = False, **kwargs: Any
    ) -> None:
        self.rules, self.width, self.planned = rules, width, planned
        super().__init__(*args, **kwargs)

    def _build(self, lr_schedule: Schedule) -> None:
        self.mlp_extractor = PathNetwork(self.rules, self.width, self.planned)  # type: ignore[assignment]
        self.action_net = self.value_net = nn.Identity()  # type: ignore[assignment]
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)  # type: ignore[call-arg]

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return super()._get_constructor_parameters() | {
            "rules": self.rules,
            "width": self.width,
            "planned": self.planned,
        }
