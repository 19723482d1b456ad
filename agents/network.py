"""The policy network: it treats the five paths alike, as the rules do.

A permutation of the elements leaves the basic game as it is. So one small network reads every path, and one small
network answers for each of them; what the whole game says passes through the mean and the maximum over the paths. A
plain MLP would have to learn everything for each of the 120 permutations.

A hold is scored by what it keeps. The score is a sum: for each face a number that depends on how many of its dice are
kept, one for how many dice are kept in all, and one for how many different elements they show.

A *planned* network also scores it by what it leads to: the network says what each end of the turn is worth, and the
turn planner, which is a layer of it (`agents.holds`), what every hold is worth then. Moves and swaps, an equilibrium
and a pass are scored by the same ends. Which ends are possible (R3, R5, R6, R14) is worked out of the observation here,
because it is asked of all rolls to come; a test compares that with what the engine allows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch as th
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.type_aliases import Schedule
from torch import nn
from torch.nn.functional import pad

from agents.holds import IMPOSSIBLE, planned_holds
from wotd_env.core.actions import PAIRS, Action, pairs
from wotd_env.core.dice import NUM_HOLDS, NUMBER_PARTS
from wotd_env.core.observation import DEADLINE, layout
from wotd_env.core.rules import DICE, DRAGON, MAX_PLAYERS, NUMBERED, PATHS, REROLLS, Phase, Rules
from wotd_env.planning.learned import LEAD

COUNTS = DICE + 1  # a face is shown by 0 to 5 dice
PLAIN = Action.FIRST_SWAP - Action.EQUILIBRIUM  # actions without a path
AFTER = 32  # units of the hidden layer for positions after the turn
SCALE = 10.0  # of what the ends of a turn are worth, so that they soon tell holds apart
OF_GAME = ("rolls_left", "phase", "player", "powers", "perfection", "deadline")


class Afterstates(nn.Module):
    """What the ends of a turn are worth, for the observer, by the positions that they leave.

    As in `wotd_env.planning.learned`, rows for the pieces of the observer and another player on a path are added up
    over the paths; a move or swap exchanges those of one path. One more row is for the observer's numbered pieces, the
    most of any other, and its lead in points: who may end the game, and who would win.

    Args:
        rules: the rules of the game.
        of_path: numbers that describe a path.
        of_board: numbers that describe the game but for its paths and dice.
        width: units of the first layer.
    """

    others: th.Tensor  # (n - 1, 1): where the rows of each other player begin
    exchanged: th.Tensor  # (pairs, n): all seats, those of a pair exchanged
    perfect: th.Tensor  # (E, 1): 1 for ends by five dice, which earn one further turn (R8)

    def __init__(self, rules: Rules, of_path: int, of_board: int, width: int) -> None:
        super().__init__()
        self.plain, self.spaces = rules.spaces, rules.spaces + NUMBERED + 1
        self.rows = nn.Embedding((rules.players - 1) * self.spaces**2, width)
        self.standing = nn.Embedding((PATHS + 1) ** 2 * (2 * LEAD + 1), width)
        for rows in (self.rows, self.standing):
            nn.init.normal_(rows.weight, std=0.3)
        self.again = nn.Parameter(th.zeros(width))
        self.path, self.board = nn.Linear(of_path, width), nn.Linear(of_board, width)
        self.hidden, self.direct = nn.Linear(width, AFTER), nn.Linear(width, 1)
        self.out = nn.Linear(AFTER, 1, bias=False)
        nn.init.normal_(self.out.weight, std=0.05)

        exchanged = np.tile(np.arange(rules.players), (pairs(rules.players), 1))
        for seats, pair in zip(exchanged, PAIRS[rules.players], strict=False):
            seats[pair] = pair[::-1]
        perfect = np.arange(PATHS * (DICE + len(exchanged)) + 2) // PATHS == DICE - 1
        self.register_buffer("others", self.spaces * th.arange(rules.players - 1)[:, None], persistent=False)
        self.register_buffer("exchanged", th.from_numpy(exchanged), persistent=False)
        self.register_buffer("perfect", th.tensor(perfect[:, None], dtype=th.float32), persistent=False)

    def forward(
        self, at: th.Tensor, of_path: th.Tensor, of_board: th.Tensor, free: th.Tensor
    ) -> tuple[th.Tensor, th.Tensor, th.Tensor, th.Tensor]:
        """Return scores of ends, possible or not.

        These are, by path, moves by 1 to 5 dice (N, 5, 5) and swaps (N, 5, pairs); an equilibrium and a pass, (N, 1).

        Args:
            at: int64 (N, n, 5), the spaces of all pieces.
            of_path: (N, 5, ...).
            of_board: (N, ...).
            free: (N, 5, 5), see `PathNetwork.free`.
        """
        steps = th.arange(DICE + 1, device=at.device)[:, None, None]
        mine = (at[:, None, :1] + steps).clamp(max=self.spaces - 1)
        moved = th.cat([mine, at[:, None, 1:].expand(-1, DICE + 1, -1, -1)], 2)
        after = th.cat([moved, at[:, self.exchanged]], 1)  # (N, 6 + pairs, n, 5), first as it is

        rows = self.rows((self.others + after[:, :, 1:]) * self.spaces + after[:, :, :1]).sum(2)
        rest = self.path(of_path).sum(1) + self.board(of_board)
        x = self.ends(rows, free) + self.standing(self.standings(after, free))
        x = (x + rest[:, None] + self.perfect * self.again).relu()
        scores = SCALE * (self.direct(x) + self.out(self.hidden(x).relu())).squeeze(2)
        by_path = scores[:, :-2].unflatten(1, (-1, PATHS)).transpose(1, 2)
        return by_path[..., :DICE], by_path[..., DICE:], scores[:, -2:-1], scores[:, -1:]

    def ends(self, of_path: th.Tensor, free: th.Tensor) -> th.Tensor:
        """Return sums over the paths at each end, (N, E, k), of (N, 6 + pairs, 5, k) by what is done on a path."""
        passed = of_path[:, :1].sum(2)
        change = of_path[:, 1:] - of_path[:, :1]
        advanced = passed + (free[:, :, :1] * change[:, 0]).sum(1, keepdim=True)
        return th.cat([passed + change.flatten(1, 2), advanced, passed], 1)

    def standings(self, after: th.Tensor, free: th.Tensor) -> th.Tensor:
        """Return the numbers of the rows for the standing at each end, int64 (N, E).

        Args:
            after: int64 (N, 6 + pairs, n, 5), the spaces of all pieces by what is done on their path.
            free: as for `forward`.
        """
        points = (after - self.plain).clamp(min=0).transpose(2, 3)
        score = self.ends(points, free.long())
        numbered = self.ends((points > 0).long(), free.long())
        lead = (score[..., 0] - score[..., 1:].amax(2)).clamp(-LEAD, LEAD) + LEAD
        return (numbered[..., 0] * (PATHS + 1) + numbered[..., 1:].amax(2)) * (2 * LEAD + 1) + lead


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
    space: th.Tensor  # (S + 6,): 0..S + 5
    seats: th.Tensor  # (2, pairs): the two of every pair
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
        # Of a path: its dice that are kept; its move, the same with the dragon (wood), its jump; its swaps.
        self.path_parts = (COUNTS, 3, self.pairs)
        self.path_out = nn.Linear(width, sum(self.path_parts))
        # Of the game: dragons, dice and elements that are kept; plain actions.
        self.game_parts = (3 * COUNTS, PLAIN)
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
            self.register_buffer(
                "space", th.arange(rules.spaces + NUMBERED + 1, dtype=th.float32), persistent=False
            )
            seats = PAIRS[rules.players, : self.pairs].T.astype(np.int64)
            self.register_buffer("seats", th.tensor(seats), persistent=False)
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

        kept, moves, swaps = self.path_out(paths).split(self.path_parts, 2)
        kept_in_all, plain = self.game_out(game).split(self.game_parts, 1)
        holds = self.holds(dice, th.cat([kept.flatten(1), kept_in_all], 1))
        if self.planned:
            of_board = th.cat([part[name] for name in OF_GAME], 1)
            at = (pieces @ self.space).long()
            moved, swapped, advanced, passed = self.afterstates(at, of_path[:, :, :-COUNTS], of_board, free)
            moved = moved.masked_fill(free == 0, IMPOSSIBLE)
            swapped = swapped.masked_fill(self.still(pieces, part["colors"]), IMPOSSIBLE)
            best_swap = swapped.amax(2, keepdim=True)
            ends = th.cat([moved, best_swap], 2).flatten(1)
            ends = th.cat([ends, advanced, best_swap.amax(1), passed], 1)
            rerolls = part["phase"][:, Phase.KEEP] * (part["rolls_left"] @ self.number[: REROLLS + 1])
            holds = holds + planned_holds(ends, self.roll_numbers(dice), rerolls.long())
            # A move, swap, equilibrium or pass is worth what the turn is that ends so.
            shown = (dice[:, :DRAGON] @ self.number - 1).clamp(min=0).long()
            moves = th.cat([moves[..., :1] + moved.gather(2, shown[..., None]), moves[..., 1:]], 2)
            swaps = swaps + swapped
            before = Action.PASS - Action.EQUILIBRIUM
            plain = plain + pad(advanced, (0, PLAIN - 1)) + pad(passed, (before, PLAIN - 1 - before))
        logits = th.cat([holds, moves.transpose(1, 2).flatten(1), plain, swaps.flatten(1)], 1)
        return logits, self.value(game)

    def free(self, pieces: th.Tensor, dead: th.Tensor) -> th.Tensor:
        """Return whether the observer's piece finds an empty space 1 to 5 spaces on, (N, 5 paths, 5) of 0 and 1."""
        taken = pieces[:, :, :, 1:].sum(1)  # (N, 5, S + 5)
        taken[:, :, : self.rules.spaces] += dead
        mine = pieces[:, 0, :, : self.rules.spaces + 1]  # on a plain space, or off the board
        ahead = taken.unfold(2, DICE, 1)  # (N, 5, S + 1, 5): the five spaces after each of those
        return (mine[..., None] * (1 - ahead)).sum(2)

    def still(self, pieces: th.Tensor, colors: th.Tensor) -> th.Tensor:
        """Return whether one of a pair of pieces cannot be swapped, bool (N, 5 paths, pairs) (R6, R14)."""
        still = pieces[..., 0]  # not on the board
        if self.rules.immunity:
            still = still + colors.reshape(still.shape)
        return (still[:, self.seats[0]] + still[:, self.seats[1]] > 0).transpose(1, 2)

    def roll_numbers(self, dice: th.Tensor) -> th.Tensor:
        """Return the numbers of rolls, int64 (N,); dice (N, 6, 6) as in `holds`."""
        faces = (self.up_to(dice) <= self.die).sum(2).clamp(max=DRAGON)
        return self.ranks[th.arange(DICE, device=dice.device), faces].sum(1)

    def up_to(self, dice: th.Tensor) -> th.Tensor:
        """Return how many dice show each face or a lower one, int64 (N, 1, 6); dice (N, 6, 6) as in `holds`.

        Whole numbers are added up, because their sums do not depend on the order in which a GPU adds.
        """
        return (dice @ self.number).long().cumsum(1)[:, None]

    def holds(self, dice: th.Tensor, scores: th.Tensor) -> th.Tensor:
        """Return the logits of the holds, (N, 32).

        Args:
            dice: (N, 6, 6), how many dice show each face, one-hot.
            scores: (N, 8 * 6), of keeping 0..5 dice of each face, of all, and 0..5 different elements.
        """
        lower = self.up_to(dice) > self.die  # (N, 5, 6): whether each die shows this face or a lower one
        lower = lower.to(dice.dtype)
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
