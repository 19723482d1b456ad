"""The bundled policies, each in its own file, and `make_policy`, which creates a policy from its name.

A new policy needs a file and an entry in `POLICIES`. A policy for compiled loops also needs a kernel that chooses the
action for one game; see `wotd_env.envs.opponents`.
"""

from __future__ import annotations

import difflib
import inspect
import os
import pkgutil
import sys
from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from wotd_env.extras import MissingExtraError
from wotd_env.policies.opened import watch
from wotd_env.policy import Policy, check_plays
from wotd_env.process import shell_command

if TYPE_CHECKING:
    from wotd_env.core.rules import Rules

__all__ = [
    "POLICIES", "STRENGTHS", "Named", "Policy", "Script", "Strength", "check_policy", "full_name", "make_policy",
    "objection", "plays", "runs_code", "script_of", "strongest",
]  # fmt: skip


class Script(IntEnum):
    """Numbers of the *scripts*: the policies that compiled loops can call."""

    OUTSIDE = 0  #: any other policy, which only Python code can call
    RANDOM = 1
    GREEDY = 2


class Named(NamedTuple):
    """An entry of `POLICIES`: the description and the factory of a policy."""

    words: str  #: description
    maker: str  #: import path of the factory, relative to this package, as module:name
    argument: str = ""  #: placeholder for the factory's argument in texts, such as FILE
    needs_argument: bool = False
    needs_trust: bool = False  #: whether its file can run code; if so, the factory takes `trust`
    script: Script = Script.OUTSIDE
    files: Callable[[str], list[str]] = lambda file: [file]
    """Argument -> the files that the policy reads. Paths without a file are ignored."""
    base: Callable[[str], str] | None = None
    """Argument -> name of the policy whose values it uses; its object is the attribute `policy`. None for no policy."""


POLICIES = {
    "random": Named("a legal action at random", "random:Random", script=Script.RANDOM),
    "first": Named("the legal action with the lowest number", "first:First"),
    "greedy": Named(
        "collects the dice of its best path, then maximizes its lead", "greedy:Greedy", script=Script.GREEDY
    ),
    "planner": Named("plans every turn exactly, with a hand-made value function", "planner:Planner"),
    "sampled": Named(
        "sampled:TEMPERATURE plays actions with probabilities proportional to exp(equity / TEMPERATURE)",
        "sampled:Sampled",
        "TEMPERATURE",
        needs_argument=True,
    ),
    "mcts": Named("Monte Carlo tree search; mcts:PLAYOUTS sets the playouts", "mcts:Mcts", "PLAYOUTS"),
    "oracle": Named("plays perfectly from a table of the solved two-player game", "oracle:Oracle", "FILE"),
    "td": Named(
        "plans every turn exactly, with the bundled learned value; td:FILE uses another", "td:Td", "FILE"
    ),
    "ppo": Named("the best action of a bundled policy network", "ppo:Ppo"),
    "deep": Named(
        "plans two turns exactly, with the bundled learned value; deep:NAME uses another",
        "deep:Deep",
        "NAME",
        base=lambda name: base_name(name or "td"),
    ),
    "onnx": Named(
        "onnx:FILE plays the best action of a network",
        "onnx:Onnx",
        "FILE",
        needs_argument=True,
        files=lambda file: [file, f"{file}.data"],  # the second file can contain the weights
    ),
    "sb3": Named(
        "sb3:FILE plays the best action of a MaskablePPO model; sb3:ENCODING:FILE sets its encoding",
        "sb3:load",
        "FILE",
        needs_argument=True,
        needs_trust=True,
        files=lambda file: [file, file.partition(":")[2]],
    ),
}
"""The bundled policies, by name."""


class Strength(NamedTuple):
    """An entry of `STRENGTHS`: the description and the name of a policy."""

    words: str
    policy: str


STRENGTHS = {
    "learner": Strength("plays at random", "random"),
    "newcomer": Strength("has a vague idea of a good move", "sampled:0.25"),
    "beginner": Strength("often overlooks the best move", "sampled:0.09"),
    "very easy": Strength("sometimes overlooks the best move", "sampled:0.045"),
    "easy": Strength("collects the dice of one path, without looking ahead", "greedy"),
    "strong": Strength("plans each turn", "planner"),
    "near perfect": Strength("plans each turn with a learned value", "td"),
}
"""The opponents for people, named after their strength, weakest first. `make_policy` knows these names too."""

RUN_FILES = {"td": "value.npz", "onnx": "model.onnx"}  # policy -> its file in a run folder of train.py
FILES = {".npz": "td", ".onnx": "onnx", ".zip": "sb3"}  # suffix of a file -> policy that reads the file
STRONGEST = ("oracle", "deep", "deep:planner")  # strongest first; `deep:planner` plays under any rules

_NO_FOLDER = (
    ". Write module:object, the module without folder and .py, and run the program in the module's folder"
)

_SCRIPTS = {f"{__name__}.{known.maker}": known.script for known in POLICIES.values()}


def full_name(name: str) -> str:
    """Return the policy of a strength or in a run folder: `easy` -> `greedy`, `RUN` or `td:RUN` -> `td:RUN/value.npz`.

    Return other names unchanged.

    Raises:
        ValueError: if the folder contains no policy.
    """
    if name in STRENGTHS:
        return STRENGTHS[name].policy
    kind, _, folder = name.partition(":")
    # os.path.isdir returns False if the name is too long to be a path; Path.is_dir would raise.
    if kind in RUN_FILES and folder and os.path.isdir(folder):
        return f"{kind}:{Path(folder, RUN_FILES[kind])}"
    if not name or name in POLICIES or not os.path.isdir(name):
        return name
    for kind, file in RUN_FILES.items():
        if Path(name, file).is_file():
            return f"{kind}:{Path(name, file)}"
    resume = shell_command("python", "train.py", "--resume", Path(name))
    raise ValueError(
        f"the folder {name} contains no policy: it has none of {', '.join(RUN_FILES.values())}. A training run writes "
        f"them when it is finished or stopped by Ctrl-C; to continue a killed one: {resume}"
    )


def base_name(name: str) -> str:
    """Return the name of the policy that `deep:NAME` uses, e.g. `td` -> `td`, `a.npz` -> `td:a.npz`."""
    kind, colon, _ = name.partition(":")
    is_policy = kind in POLICIES or (colon and not os.path.exists(name))
    return name if is_policy else f"td:{name}"


def runs_code(name: str) -> bool:
    """Return whether making the policy with this name can run code that does not belong to this package.

    A name that comes from a file, such as a recorded game or a checkpoint, needs the user's consent if this is true.
    """
    with suppress(ValueError):  # a folder without a policy
        kind, _, argument = full_name(name).partition(":")
        while kind in POLICIES and (base := POLICIES[kind].base):
            kind, _, argument = full_name(base(argument)).partition(":")
        return POLICIES[kind].needs_trust if kind in POLICIES else bool(argument)
    return False


def strongest(rules: Rules) -> str:
    """Return the strongest bundled policy for the rules. Return `oracle` only if its table is in the cache folder."""
    from wotd_env.solver import cache_file

    playing = (name for name in STRONGEST if plays(name, rules))
    return next(name for name in playing if name != "oracle" or cache_file(rules).exists())


def make_policy(name: str | Policy, *, trust: bool = False) -> Policy:
    """Return the policy with the given name.

    Args:
        name: a name in `POLICIES` such as `td`, or NAME:ARGUMENT such as `mcts:500`; a name in `STRENGTHS`; a run
            folder of train.py; or `module:object`. The object is a policy, or a callable without arguments that
            returns a policy. For `module:object:ARGUMENT`, it is a callable that takes the text ARGUMENT, such as the
            name of a file. A policy object passed as `name` is returned unchanged.
        trust: consent to read files that can run code. Only `sb3:FILE` needs it.

    Raises:
        ValueError: if the policy is unknown, its argument is missing or wrong, or the policy needs `trust=True`.
        FileNotFoundError: if the file of the policy does not exist.
        ImportError: if the policy needs an extra that is not installed.
    """
    if not isinstance(name, str):
        return check_policy(name, name)
    kind, _, argument = full_name(name).partition(":")
    if kind not in POLICIES:
        return _from_module(name)
    known = POLICIES[kind]
    if argument and not known.argument:
        raise ValueError(f"policy {kind!r} takes nothing after a colon, got {name!r}")
    if known.needs_argument and not argument:
        raise ValueError(f"policy {kind!r} needs its {known.argument}: '{kind}:{known.argument}'")
    arguments = [argument] if argument else []
    consent = {"trust": trust} if known.needs_trust else {}
    try:
        return check_policy(name, pkgutil.resolve_name(f"{__name__}.{known.maker}")(*arguments, **consent))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ValueError(f"policy {name!r} cannot be made: {error}") from error


def plays(policy: str | Policy, rules: Rules) -> bool:
    """Return whether a policy can be created and supports these rules."""
    return objection(policy, rules) is None


def objection(policy: str | Policy, rules: Rules) -> str | None:
    """Return the reason why a policy cannot be created or does not support these rules; None if there is no reason."""
    try:
        check_plays(make_policy(policy), rules)
    except (ValueError, OSError, MissingExtraError) as error:  # wrong rules, a missing table or extra
        return str(error)
    return None


def _from_module(name: str) -> Policy:
    module, _, rest = name.partition(":")
    attribute, colon, argument = rest.partition(":")
    arguments = [argument] if colon else []
    if not attribute or module.startswith("."):  # relative imports are not supported
        kind = FILES.get(os.path.splitext(name)[1])
        cure = f": write '{kind}:{name}' for the policy in this file" if kind else ""
        if ".py" in name:
            cure = _NO_FOLDER
        elif os.sep in name:
            cure = cure or ": there is no such folder"
        elif similar := difflib.get_close_matches(name.lower(), POLICIES, 1):
            cure = f": did you mean {similar[0]}?"
        raise ValueError(
            f"policy must be one of {', '.join(POLICIES)}, a run folder or 'module:object', got {name[:80]!r}{cure}"
        )
    with watch(module):
        try:
            found = pkgutil.resolve_name(f"{module}:{attribute}")
        except (ModuleNotFoundError, AttributeError, ValueError) as error:
            raise ValueError(
                f"policy {name[:80]!r} is neither one of {', '.join(POLICIES)} nor 'module:object': {error}"
                f"{_cure(module, attribute, error)}"
            ) from error
        if callable(found) and not _acts(found):
            try:
                inspect.signature(found).bind(*arguments)
            except ValueError:  # some callables written in C have no signature
                pass
            except TypeError:
                how = "with a string" if colon else "without arguments"
                raise ValueError(
                    f"{name!r} must be a policy, or return one when called {how}, got {found!r}. To use a "
                    "function (observation, mask) -> action, write wotd_env.policies.function.FunctionPolicy(function)"
                ) from None
            found = found(*arguments)
        elif colon:
            raise ValueError(
                f"{module}:{attribute} is a policy and takes nothing after a colon, got {name!r}"
            )
    return check_policy(name, found)


def _cure(module: str, attribute: str, error: Exception) -> str:
    """Return the end of the error message after a failed import of `module:attribute`."""
    if module.lower() in POLICIES:
        return f": did you mean {module.lower()}:{attribute}?"
    missing = isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}.")
    if missing or os.sep in module:
        return _NO_FOLDER
    defined = [name for name in vars(sys.modules.get(module, object)) if not name.startswith("_")]
    similar = difflib.get_close_matches(attribute, defined, 1)
    return f": did you mean {module}:{similar[0]}?" if similar else ""


def check_policy(name: object, candidate: object) -> Policy:
    """Return `candidate` if it is a policy object. Otherwise raise ValueError with `name` in the message."""
    if not _acts(candidate):
        got, cure = repr(candidate), ""
        if isinstance(candidate, type):
            got, cure = f"the class {candidate.__name__}", f": create an object, {candidate.__name__}()"
        elif callable(candidate):
            cure = ". To use a function (observation, mask) -> action, write wotd_env.policies.function."
            cure += "FunctionPolicy(function)"
        raise ValueError(f"policy {name!r} must have a method act(game, state, rng), got {got}{cure}")
    return candidate


def script_of(policy: Policy) -> Script:
    """Return the script of a policy, or OUTSIDE if the policy has no script."""
    return _SCRIPTS.get(f"{type(policy).__module__}:{type(policy).__qualname__}", Script.OUTSIDE)


def _acts(candidate: object) -> TypeGuard[Policy]:
    return isinstance(candidate, Policy) and not isinstance(candidate, type)
