"""The policy network of `ppo` and `sb3`.

The five paths share all weights, so a permutation of the elements permutes the logits in the same way. The logit of a
hold depends on the dice that it keeps. The network contains no rules of the game.
"""

import numpy as np
import torch as th
from torch import nn

from wotd_env.core.actions import Action, pairs
from wotd_env.core.dice import NUM_HOLDS
from wotd_env.core.observation import DEADLINE, layout
from wotd_env.core.rules import DICE, DRAGON, MAX_PLAYERS, PATHS, Rules

PATHLESS = Action.FIRST_SWAP - Action.EQUILIBRIUM  # number of actions that belong to no path
NUM_COUNTS = DICE + 1  # 0 to 5 dice can show a face
OF_GAME = ("rolls_left", "phase", "player", "powers", "perfection", "deadline")


def sorted_faces(dice: th.Tensor) -> th.Tensor:
    """Return the faces of the five dice in ascending order, int64 (N, 5). Before the first roll they are `DRAGON + 1`.

    `dice`, (N, 6 faces, 6), contains the number of dice with each face, one-hot.
    """
    number, die = (th.arange(count, device=dice.device) for count in (NUM_COUNTS, DICE))
    up_to = (dice @ number.to(dice.dtype)).cumsum(1)[:, None]  # dice with this face or a lower one
    return (up_to <= die[:, None]).sum(2)


class KeptDice(nn.Module):
    """Scores holds by the dice that they keep. The score of a hold is a sum of eight terms.

    Each of the first six terms depends on the number of kept dice with one face. The seventh term depends on the number
    of kept dice, the eighth on the number of different elements among them.
    """

    held: th.Tensor  # (32, 5): whether a hold keeps a die
    face: th.Tensor  # (6,)
    offset: th.Tensor  # (8,): the first column of each term in `scores`

    def __init__(self) -> None:
        super().__init__()
        holds = (np.arange(NUM_HOLDS)[:, None] >> np.arange(DICE)) & 1
        constants = {
            "held": th.tensor(holds, dtype=th.float32),
            "face": th.arange(DRAGON + 1),
            "offset": NUM_COUNTS * th.arange(DRAGON + 3),
        }
        for name, constant in constants.items():
            self.register_buffer(name, constant, persistent=False)

    def forward(self, faces: th.Tensor, scores: th.Tensor) -> th.Tensor:
        """Return the scores of the holds, (N, 32), for the sorted faces, int64 (N, 5).

        `scores`, (N, 8 * 6), contains the values of the eight terms for the numbers 0 to 5.
        """
        kept = self.held @ (faces[..., None] == self.face).to(scores.dtype)
        elements = (kept[..., :DRAGON] > 0).to(scores.dtype).sum(2, keepdim=True)
        index = th.cat([kept, kept.sum(2, keepdim=True), elements], 2).long() + self.offset
        return scores.gather(1, index.flatten(1)).reshape(faces.shape[0], NUM_HOLDS, -1).sum(2)


class Network(nn.Module):
    """The policy network.

    Args:
        rules: the rules.
        width: units of the hidden layers for a path. The hidden layers for the game have twice as many units.
    """

    def __init__(self, rules: Rules, width: int) -> None:
        super().__init__()
        self.rules, self.width = rules, width
        self.layout = layout(rules)
        size = {name: part.stop - part.start for name, part in self.layout.items()}
        of_path = (size["pieces"] + size["dead"] + size["colors"]) // PATHS
        of_board = sum(size[name] for name in OF_GAME)
        self.path_in, self.game_in = (
            nn.Linear(of_path + NUM_COUNTS, width),
            nn.Linear(of_board + NUM_COUNTS, width),
        )
        self.path = nn.Linear(width, width)
        first, second = nn.Linear(3 * width, 2 * width), nn.Linear(2 * width, 2 * width)
        self.game = nn.Sequential(first, nn.ReLU(), second, nn.ReLU())
        self.path_back, self.game_back = nn.Linear(width, width), nn.Linear(2 * width, width)
        # Scores for each path: of keeping 0 to 5 dice, of moves (plain, with dragons, jump) and of swaps.
        self.path_parts = (NUM_COUNTS, 3, pairs(rules.players))
        self.path_out = nn.Linear(width, sum(self.path_parts))
        # Other scores: of keeping 0 to 5 dragons, 0 to 5 dice in all, and 0 to 5 different elements; of actions without
        # a path.
        self.game_parts = (3 * NUM_COUNTS, PATHLESS)
        self.game_out = nn.Linear(2 * width, sum(self.game_parts))
        for last in (self.path_out, self.game_out):  # so that all actions start about equally likely
            nn.init.normal_(last.weight, std=0.01)
            nn.init.zeros_(last.bias)
        self.kept = KeptDice()

    def forward(self, observation: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        """Return the logits (N, A) of all actions, legal or not, and features (N, 2 * width) of the game."""
        n, players, spaces = observation.shape[0], self.rules.players, self.rules.spaces
        part = {name: observation[:, columns] for name, columns in self.layout.items()}
        part["deadline"] = part["deadline"] / DEADLINE
        dice = part["dice"].reshape(n, DRAGON + 1, NUM_COUNTS)
        pieces = part["pieces"].reshape(n, players, PATHS, -1).transpose(1, 2).flatten(2)
        colors = part["colors"].reshape(n, players, MAX_PLAYERS).transpose(1, 2)
        # ONNX cannot reshape an empty array.
        dead = [part["dead"].reshape(n, PATHS, spaces)] if spaces else []
        of_path = th.cat([pieces, *dead, colors, dice[:, :DRAGON]], 2)
        of_board = th.cat([dice[:, DRAGON], *(part[name] for name in OF_GAME)], 1)

        of_game = self.game_in(of_board)
        paths = (self.path_in(of_path) + of_game[:, None]).relu()
        paths = self.path(paths).relu()
        game = self.game(th.cat([paths.mean(1), paths.amax(1), of_game], 1))
        paths = (self.path_back(paths) + self.game_back(game)[:, None]).relu()

        kept, moves, swaps = self.path_out(paths).split(self.path_parts, 2)
        kept_in_all, pathless = self.game_out(game).split(self.game_parts, 1)
        holds = self.kept(sorted_faces(dice), th.cat([kept.flatten(1), kept_in_all], 1))
        return th.cat([holds, moves.transpose(1, 2).flatten(1), pathless, swaps.flatten(1)], 1), game
