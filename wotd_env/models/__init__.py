"""Find the bundled trained networks. A file such as `td-3-any.npz` is the network of one policy for one set of rules.

A file name consists of the policy, the number of players and the powers. If the number of plain spaces is not the
default, this number is the last part of the name, as in `td-2-none-3`. The training and the strength of the networks
are documented in docs/results/models.md.
"""

from __future__ import annotations

import functools
from pathlib import Path

from wotd_env.core.rules import Rules
from wotd_env.policy import check_made_for

__all__ = ["FOLDER", "find", "name_of", "rules_of"]

FOLDER = Path(__file__).parent


def name_of(policy: str, rules: Rules) -> str:
    """Return the file name, without suffix, of the model of a policy for these rules."""
    board = "" if rules.spaces == Rules.spaces else f"-{rules.spaces}"
    return f"{policy}-{rules.players}-{rules.powers}{board}"


def rules_of(rules: Rules) -> Rules:
    """Return the rules of the games in which the model for `rules` was trained.

    The result has the players, powers and spaces of `rules`. If `powers` is "own", `colors` is "random". All other
    rules have default values.
    """
    colors = "random" if rules.powers == "own" else None
    return Rules(players=rules.players, powers=rules.powers, spaces=rules.spaces, colors=colors)


def find(policy: str, rules: Rules) -> Path:
    """Return the path of the bundled model of a policy for these rules.

    Raises:
        ValueError: if there is no such model.
    """
    return _find(FOLDER, policy, rules)


@functools.lru_cache(maxsize=256)  # bounded, because users can pass any rules
def _find(folder: Path, policy: str, rules: Rules) -> Path:
    name = name_of(policy, rules)
    available = {file.stem: file for file in sorted(folder.glob(f"{policy}-*")) if file.suffix != ".json"}
    try:
        check_made_for(name, rules_of(rules), rules)
        return available[name]
    except (KeyError, ValueError):
        raise ValueError(
            f"no trained model of {policy} comes with the package for {rules}. There are "
            f"{', '.join(available) or 'none'} (players, powers, plain spaces if not 7; other rules as in Rules()); "
            "train.py trains others"
        ) from None
