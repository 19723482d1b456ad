"""The policy network of `ppo` and `sb3`.

The layer `KeptDice` scores holds by the dice that they keep. The optional layer `Planned` scores all actions by the
ends of the turn (see `agents.holds`). The score of an action that ends the turn is the value of its end. The turn
planner computes the scores of the holds from these values.

The possible ends (R3, R5, R6, R12, R14) are computed from the observation, because the action mask covers only the
current roll.
"""

import numpy as np
import torch as th
from torch import nn
from torch.nn.functional import pad

from agents.holds import IMPOSSIBLE, POWER_ENDS, planned_holds
from wotd_env.core.actions import PAIRS, Action, pairs
from wotd_env.core.dice import INDEX_PARTS, NUM_HOLDS
from wotd_env.core.observation import DEADLINE, layout
from wotd_env.core.rules import DICE, DRAGON, MAX_PLAYERS, NUMBERED, PATHS, REROLLS, Phase, Rules
from wotd_env.planning.learned import LEAD

AFTER = 32  # units of the second hidden layer of `Afterstates`
SCALE = 10.0  # factor of the values of ends, so that the scores of holds differ early in training
PATHLESS = Action.FIRST_SWAP - Action.EQUILIBRIUM
COUNTS = DICE + 1  # 0 to 5 dice can show a face


def register(module: nn.Module, **constants: th.Tensor) -> None:
    """Add constants to a module. They move to another device with the module, but are not in its checkpoints."""
    for name, constant in constants.items():
        module.register_buffer(name, constant, persistent=False)


def sorted_faces(dice: th.Tensor) -> th.Tensor:
    """Return the faces of the five dice in ascending order, int64 (N, 5). Before the first roll they are `DRAGON + 1`.

    `dice`, (N, 6 faces, 6), contains the number of dice with each face, one-hot.
    """
    number, die = (th.arange(count, device=dice.device) for count in (COUNTS, DICE))
    up_to = (dice @ number.to(dice.dtype)).cumsum(1)[
        :, None
    ]  # for each face: the number of dice with this or a lower face
    return (up_to <= die[:, None]).sum(2)


class KeptDice(nn.Module):
    """Scores holds by the dice that they keep. The score of a hold is a sum of eight terms.

    Each of the first six terms depends on the number of kept dice with one face. The seventh term
    depends on the number of kept dice, the eighth on the number of different elements among them.
    """

    held: th.Tensor  # (32, 5): whether a hold keeps a die
    face: th.Tensor
    offset: th.Tensor  # (8,): the first column of each term in `scores`

    def __init__(self) -> None:
        super().__init__()
        holds = (np.arange(NUM_HOLDS)[:, None] >> np.arange(DICE)) & 1
        held = th.tensor(holds, dtype=th.float32)
        register(self, held=held, face=th.arange(DRAGON + 1), offset=COUNTS * th.arange(DRAGON + 3))

    def forward(self, faces: th.Tensor, scores: th.Tensor) -> th.Tensor:
        """Return the scores of the holds, (N, 32), for the sorted faces, int64 (N, 5).

        `scores`, (N, 8 * 6), contains the values of the eight terms for the numbers 0 to 5.
        """
        kept = self.held @ (faces[..., None] == self.face).to(scores.dtype)
        elements = (kept[..., :DRAGON] > 0).to(scores.dtype).sum(2, keepdim=True)
        index = th.cat([kept, kept.sum(2, keepdim=True), elements], 2).long() + self.offset
        return scores.gather(1, index.flatten(1)).reshape(faces.shape[0], NUM_HOLDS, -1).sum(2)


class Afterstates(nn.Module):
    """The values of the ends of a turn for the observer (the seat to act), from the positions after the turn.

    The first layer adds up rows of weights, as in `wotd_env.planning.learned`. For each path and each other player, it
    selects a row by the spaces of this player's piece and of the observer's piece. One more row depends on the
    observer's *standing*, which `wotd_env.planning.learned` defines.

    Args:
        rules: the rules.
        of_path: number of inputs for each path, without the dice.
        of_board: number of inputs for the whole game, without the dice.
        width: units of the first layer.
    """

    others: th.Tensor  # (n - 1, 1): the first row of weights for each other player
    exchanged: th.Tensor  # (pairs, n): the seats after each swap of a pair, e.g. [1, 0, 2]
    perfect: th.Tensor  # (E ends, 1): 1 for moves by five dice, which earn another turn (R8)

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
        self.used = nn.Linear(PATHS, width, bias=False) if rules.powers != "none" else None

        exchanged = np.tile(np.arange(rules.players), (pairs(rules.players), 1))
        for seats, pair in zip(exchanged, PAIRS[rules.players], strict=False):
            seats[pair] = pair[::-1]
        self.swaps = PATHS * len(exchanged)
        perfect = np.arange(PATHS * DICE + self.swaps + 2) // PATHS == DICE - 1
        if self.used:
            perfect = np.append(perfect, np.arange(PATHS * DICE + 1) // PATHS == DICE - 1)
        others = self.spaces * th.arange(rules.players - 1)[:, None]
        by_five = th.tensor(perfect[:, None], dtype=th.float32)
        register(self, others=others, exchanged=th.from_numpy(exchanged), perfect=by_five)

    def forward(
        self, at: th.Tensor, goals: th.Tensor, of_path: th.Tensor, of_board: th.Tensor, held: th.Tensor
    ) -> tuple[tuple[th.Tensor, ...], tuple[th.Tensor, ...]]:
        """Return two tuples: the values of the ends if no power is used, and the values of the ends if a power is used.

        The first four items of each tuple are the values of moves by 1 to 5 dice on each path (N, 5, 5), swaps (N, 5,
        pairs), an equilibrium (N, 1) and a pass (N, 1). Impossible ends also have values. In the second tuple, a move
        to an occupied space is a jump. The fifth item of the second tuple, (N, 1), is the value of an equilibrium with
        jumps. If the rules have no powers, the second tuple is empty.

        Args:
            at: int64 (N, n, 5), the spaces of all pieces.
            goals: int64 (N, 5 dice, 5 paths), see `Planned.goals`.
            of_path: (N, 5, ...), the inputs for each path.
            of_board: (N, ...), the inputs for the game.
            held: (N, 5), 1 for each power that the observer can use, else 0.
        """
        steps = th.arange(DICE + 1, device=at.device)[:, None, None]
        mine = (at[:, None, :1] + steps).clamp(max=self.spaces - 1)
        moved = th.cat([mine, at[:, None, 1:].expand(-1, DICE + 1, -1, -1)], 2)
        changes = [moved, at[:, self.exchanged]]
        if self.used:
            changes.append(th.cat([goals[:, :, None], moved[:, 1:, 1:]], 2))
        # (N, C, n, 5): the spaces after each of C changes; change 0 moves nothing
        changed = th.cat(changes, 1)
        free = (goals[:, 0] == at[:, 0] + 1)[:, :, None]

        rows = self.rows((self.others + changed[:, :, 1:]) * self.spaces + changed[:, :, :1]).sum(2)
        rest = self.path(of_path).sum(1) + self.board(of_board)
        x = self.ends(rows, free.float())
        x += self.standing(self.standings(changed, free.long()))
        x += rest[:, None]
        x += self.perfect * self.again
        sizes = [PATHS * DICE, self.swaps, 1, 1]
        if self.used:
            moves, both, by_power = th.split(x, [PATHS * DICE, self.swaps + 2, PATHS * DICE + 1], 1)
            x = th.cat([moves, both, th.cat([both, by_power], 1) + self.used(held)[:, None]], 1)
            sizes += [self.swaps, 1, 1, PATHS * DICE, 1]
        x = x.relu()
        values = SCALE * (self.direct(x) + self.out(self.hidden(x).relu())).squeeze(2)
        moved, swapped, advanced, passed, *later = th.split(values, sizes, 1)
        plain = by_path(moved), by_path(swapped), advanced, passed
        if not later:
            return plain, ()
        swapped, advanced, passed, moved, jumped = later
        return plain, (by_path(moved), by_path(swapped), advanced, passed, jumped)

    def ends(self, of_path: th.Tensor, free: th.Tensor) -> th.Tensor:
        """Sum `of_path` over the five paths for each end of the turn; return the sums, (N, E, k).

        Args:
            of_path: (N, C, 5, k), k numbers that describe each path after each of C changes. The changes are, in
                this order: no change, moves, swaps and, with powers, moves to `goals`.
            free: (N, 5, 1), 1 for the paths on which the observer's piece can move by one space.
        """
        before, after = th.split(of_path, [1, of_path.shape[1] - 1], 1)
        passed, change = before.sum(2), after - before
        if self.used:
            change, goals = th.split(change, [change.shape[1] - DICE, DICE], 1)
        advanced = passed + (free * change[:, 0]).sum(1, keepdim=True)
        ends = [passed + change.flatten(1, 2), advanced, passed]
        if self.used:
            ends += [passed + goals.flatten(1, 2), passed + goals[:, 0].sum(1, keepdim=True)]
        return th.cat(ends, 1)

    def standings(self, changed: th.Tensor, free: th.Tensor) -> th.Tensor:
        """Return the row of `self.standing` for each end of the turn, int64 (N, E)."""
        points = (changed - self.plain).clamp(min=0).transpose(2, 3)
        score = self.ends(points, free)
        numbered = self.ends((points > 0).long(), free)
        lead = (score[..., 0] - score[..., 1:].amax(2)).clamp(-LEAD, LEAD) + LEAD
        return (numbered[..., 0] * (PATHS + 1) + numbered[..., 1:].amax(2)) * (2 * LEAD + 1) + lead


def possible(
    ends: tuple[th.Tensor, ...], free: th.Tensor, still: th.Tensor
) -> tuple[th.Tensor, th.Tensor, th.Tensor, th.Tensor]:
    """Return `ends` with the value IMPOSSIBLE for illegal moves and swaps.

    `free` is true for legal moves, and `still` for illegal swaps.
    """
    moved, swapped, advanced, passed = ends
    return moved.masked_fill(~free, IMPOSSIBLE), swapped.masked_fill(still, IMPOSSIBLE), advanced, passed


def turn_ends(moved: th.Tensor, swapped: th.Tensor, advanced: th.Tensor, passed: th.Tensor) -> th.Tensor:
    """Return the values of the first `ENDS` ends, in the order of `agents.holds`, (N, ENDS)."""
    best_swap = swapped.amax(2, keepdim=True)
    return th.cat([th.cat([moved, best_swap], 2).flatten(1), advanced, best_swap.amax(1), passed], 1)


def at_count(moved: th.Tensor, dice: th.Tensor) -> th.Tensor:
    """Return the value of the move by `dice[:, path]` dice on each path, (N, 5, 1)."""
    return moved.gather(2, (dice - 1).clamp(0, DICE - 1).long())


def by_path(values: th.Tensor) -> th.Tensor:
    """Reshape values (N, k * 5), in which the path varies fastest, to (N, 5, k)."""
    return values.reshape(values.shape[0], -1, PATHS).transpose(1, 2)


class Planned(nn.Module):
    """Scores all actions by the values of the ends of the turn. The arguments are those of `Afterstates`."""

    ranks: th.Tensor  # (5, 7): the index of a roll is the sum of ranks[i, face of die i]; column 6 is 0
    number: th.Tensor
    space: th.Tensor
    seats: th.Tensor  # (2, pairs): the two seats of every pair

    def __init__(self, rules: Rules, of_path: int, of_board: int, width: int) -> None:
        super().__init__()
        self.rules = rules
        self.afterstates = Afterstates(rules, of_path, of_board, width)
        ranks = pad(th.from_numpy(INDEX_PARTS[:, : DRAGON + 1].astype(np.int64)), (0, 1))
        seats = th.tensor(PAIRS[rules.players, : pairs(rules.players)].T.astype(np.int64))
        number = th.arange(COUNTS, dtype=th.float32)
        space = th.arange(rules.spaces + NUMBERED + 1, dtype=th.float32)
        register(self, ranks=ranks, number=number, space=space, seats=seats)

    def forward(
        self, part: dict[str, th.Tensor], faces: th.Tensor, of_path: th.Tensor, of_board: th.Tensor
    ) -> tuple[th.Tensor, th.Tensor, th.Tensor, th.Tensor]:
        """Return scores of holds (N, 32), moves (N, 5, 3), swaps (N, 5, pairs) and actions without a path (N, 8).

        `part` contains the parts of the observation. `faces` are the sorted faces, int64 (N, 5).
        """
        n = of_path.shape[0]  # the ONNX exporter would make len() a constant
        pieces = part["pieces"].reshape(n, self.rules.players, PATHS, -1)
        count = part["dice"].reshape(n, DRAGON + 1, COUNTS) @ self.number
        held = part["powers"].reshape(n, self.rules.players, PATHS)[:, 0]
        at = (pieces @ self.space).long()
        reached = at[:, :1] + self.number[1:, None].long()
        goals = self.goals(pieces, part["dead"], reached)
        free, blocked = (goals == reached).transpose(1, 2), (goals > reached).transpose(1, 2)
        still = self.still(pieces, part["colors"])
        plain, used = self.afterstates(at, goals, of_path, of_board, held)
        moved, swapped, advanced, passed = possible(plain, free, still)
        advances = free[:, :, 0].any(1, True)
        if used:  # fear requires a possible move, and an equilibrium that moves no piece is not a move (R12)
            advanced = advanced.masked_fill(~advances, IMPOSSIBLE)
        ends = turn_ends(moved, swapped, advanced, passed)
        dice, dragons = count[:, :DRAGON, None], count[:, DRAGON:, None]
        moves, none = [at_count(moved, dice)], th.zeros_like(passed)
        pathless = [advanced, none, none, passed, none]
        rerolls = part["rolls_left"] @ self.number[: REROLLS + 1]
        if used:
            fear, _, tiger, anxiety, dragon = (held > 0).T[..., None]  # (N, 1) each
            later = possible(used[:4], free, still)
            wood = later[0].masked_fill(~dragon[..., None], IMPOSSIBLE)
            jump = used[0].masked_fill(~(blocked & anxiety[..., None]), IMPOSSIBLE)
            wood_advanced = later[2].masked_fill(~(dragon & advances), IMPOSSIBLE)
            earth_advanced = used[4].masked_fill(~(anxiety & blocked[:, :, 0].any(1, True)), IMPOSSIBLE)
            feared = later[3].masked_fill(~fear, IMPOSSIBLE)
            moves += [at_count(wood, dice + dragons), at_count(jump, dice)]
            pathless = [advanced, wood_advanced, earth_advanced, passed, feared]
            ends = th.cat([ends, wood.flatten(1), jump.flatten(1), wood_advanced, earth_advanced, feared], 1)
            # If the last re-roll uses the tiger, no power is left after it.
            last = pad(turn_ends(*later), (0, POWER_ENDS), value=IMPOSSIBLE)
            last = th.where(tiger, last, ends)
            rerolls = rerolls + tiger[:, 0]
        ends = th.stack([ends, last] if used else [ends], 1)
        roll = self.ranks[th.arange(DICE, device=faces.device), faces].sum(1)
        holds = planned_holds(ends, roll, (part["phase"][:, Phase.KEEP] * rerolls).long())
        return holds, pad(th.cat(moves, 2), (0, 3 - len(moves))), swapped, pad(th.cat(pathless, 1), (0, 3))

    def goals(self, pieces: th.Tensor, dead: th.Tensor, reached: th.Tensor) -> th.Tensor:
        """Return the first empty space at or beyond each space in `reached`, int64 (N, 5 dice, 5 paths).

        `reached` contains the spaces of the observer's pieces, increased by 1 to 5. If there is no such empty space or
        the piece cannot move, return the present space of the piece (R3, R4, R12).
        """
        taken = pieces[:, :, :, 1:].sum(1)  # (N, 5, S + 5)
        if spaces := self.rules.spaces:
            taken[:, :, :spaces] += dead.reshape(dead.shape[0], PATHS, spaces)
        last, before = self.rules.spaces + NUMBERED, reached[:, :1] - 1
        # empty[i] becomes the first empty space at or beyond the space `last + 1 - i`.
        empty = [th.full_like(before[:, 0], last + 1)]
        for space in range(last, 0, -1):
            empty.append(th.where(taken[:, :, space - 1] > 0, empty[-1], space))
        goals = th.stack(empty[::-1], 1).gather(1, (reached - 1).clamp(max=last))
        return th.where((goals <= last) & (before <= self.rules.spaces), goals, before)

    def still(self, pieces: th.Tensor, colors: th.Tensor) -> th.Tensor:
        """Return whether R6 or R14 forbids each swap, bool (N, 5 paths, pairs)."""
        still = pieces[..., 0]  # 1 for pieces off the board
        if self.rules.immunity:
            still = still + colors.reshape(still.shape)
        return (still[:, self.seats[0]] + still[:, self.seats[1]] > 0).transpose(1, 2)


OF_GAME = ("rolls_left", "phase", "player", "powers", "perfection", "deadline")


class Network(nn.Module):
    """The policy network.

    All paths share the same weights, so a permutation of the elements permutes the logits in the same way.

    Args:
        rules: the rules.
        width: units of the hidden layers for a path. The hidden layers for the game have twice as many units.
        planned: whether to add the scores of `Planned` to the logits.
    """

    def __init__(self, rules: Rules, width: int, planned: bool = False) -> None:
        super().__init__()
        self.rules, self.width = rules, width
        self.layout = layout(rules)
        size = {name: part.stop - part.start for name, part in self.layout.items()}
        of_path = (size["pieces"] + size["dead"] + size["colors"]) // PATHS
        of_board = sum(size[name] for name in OF_GAME)
        self.path_in, self.game_in = nn.Linear(of_path + COUNTS, width), nn.Linear(of_board + COUNTS, width)
        self.path = nn.Linear(width, width)
        first, second = nn.Linear(3 * width, 2 * width), nn.Linear(2 * width, 2 * width)
        self.game = nn.Sequential(first, nn.ReLU(), second, nn.ReLU())
        self.path_back, self.game_back = nn.Linear(width, width), nn.Linear(2 * width, width)
        # Scores for each path: of keeping 0 to 5 dice, of moves (plain, with dragons, jump) and of swaps.
        self.path_parts = (COUNTS, 3, pairs(rules.players))
        self.path_out = nn.Linear(width, sum(self.path_parts))
        # Other scores: of keeping 0 to 5 dragons, 0 to 5 dice in all, and 0 to 5 different elements; of actions without
        # a path.
        self.game_parts = (3 * COUNTS, PATHLESS)
        self.game_out = nn.Linear(2 * width, sum(self.game_parts))
        for last in (self.path_out, self.game_out):  # so that all actions start about equally likely
            nn.init.normal_(last.weight, std=0.01)
            nn.init.zeros_(last.bias)
        self.kept = KeptDice()
        self.planned = Planned(rules, of_path, of_board, width) if planned else None

    def forward(self, observation: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        """Return the logits (N, A) of all actions, legal or not, and features (N, 2 * width) of the game."""
        n, players, spaces = observation.shape[0], self.rules.players, self.rules.spaces
        part = {name: observation[:, columns] for name, columns in self.layout.items()}
        part["deadline"] = part["deadline"] / DEADLINE
        dice = part["dice"].reshape(n, DRAGON + 1, COUNTS)
        pieces = part["pieces"].reshape(n, players, PATHS, -1).transpose(1, 2).flatten(2)
        colors = part["colors"].reshape(n, players, MAX_PLAYERS).transpose(1, 2)
        # ONNX cannot reshape an empty array.
        dead = [part["dead"].reshape(n, PATHS, spaces)] if spaces else []
        of_path = th.cat([pieces, *dead, colors], 2)
        of_board = th.cat([part[name] for name in OF_GAME], 1)

        of_game = self.game_in(th.cat([dice[:, DRAGON], of_board], 1))
        paths = (self.path_in(th.cat([of_path, dice[:, :DRAGON]], 2)) + of_game[:, None]).relu()
        paths = self.path(paths).relu()
        game = self.game(th.cat([paths.mean(1), paths.amax(1), of_game], 1))
        paths = (self.path_back(paths) + self.game_back(game)[:, None]).relu()

        kept, moves, swaps = self.path_out(paths).split(self.path_parts, 2)
        kept_in_all, pathless = self.game_out(game).split(self.game_parts, 1)
        faces = sorted_faces(dice)
        scores = self.kept(faces, th.cat([kept.flatten(1), kept_in_all], 1)), moves, swaps, pathless
        if self.planned:
            planned = self.planned(part, faces, of_path, of_board)
            scores = tuple(own + more for own, more in zip(scores, planned, strict=True))
        holds, moves, swaps, pathless = scores
        return th.cat([holds, moves.transpose(1, 2).flatten(1), pathless, swaps.flatten(1)], 1), game
