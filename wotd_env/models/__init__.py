"""Trained networks that come with the package: a file for each policy and rules, such as `td-3-any.npz`.

The names say the policy, the number of players and the powers; all else is as in `Rules()`. What they were trained by
and how strong they are is in docs/models.md, which `tools.models` writes beside them.
"""

from __future__ import annotations

from pathlib import Path

from wotd_env.core.rules import Rules
from wotd_env.policy import check_made_for

__all__ = ["FOLDER", "find", "name_of", "rules_of"]

FOLDER = Path(__file__).parent


def name_of(policy: str, rules: Rules) -> str:
    """Return the name of the file with the model of a policy for some rules, without its suffix."""
    return f"{policy}-{rules.players}-{rules.powers}"


def rules_of(rules: Rules) -> Rules:
    """Return what a model for the players and the powers of some rules is made for: `own` powers in all colours."""
    return Rules(
        players=rules.players, powers=rules.powers, colors="random" if rules.powers == "own" else None
    )


def find(policy: str, rules: Rules) -> Path:
    """Return the file with the model of a policy for some rules.

    Raises:
        ValueError: if there is none, naming those that there are.
    """
    name = name_of(policy, rules)
    there = {file.stem: file for file in sorted(FOLDER.glob(f"{policy}-*")) if file.suffix != ".json"}
    try:
        check_made_for(name, rules_of(rules), rules)
        return there[name]
    except (KeyError, ValueError):
        raise ValueError(
            f"no trained model of {policy} comes with the package for {rules}. There are "
            f"{', '.join(there) or 'none'} (players and powers, all else as in Rules()); train.py trains others"
        ) from None
