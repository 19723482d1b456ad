"""Names and digests of policies. Stored games are reused only if the digests of their policies are unchanged.

The digest of a policy covers its source files, its data files and the versions of NumPy and numba. A policy from a
module outside this package can describe its state with a method `fingerprint`, see `wotd_env.policy.Fingerprinted`.
Without this method, the digest also covers the pickled policy and the files that were opened while the policy was made.
A policy that cannot be pickled gets a new digest in each run, so its games are played again.
"""

from __future__ import annotations

import hashlib
import logging
import pickle
import uuid
from collections.abc import Iterable
from pathlib import Path

import wotd_env
from wotd_env import models, sources
from wotd_env.policies import POLICIES, Policy, full_name
from wotd_env.policies.opened import opened_by
from wotd_env.policy import Fingerprinted

_log = logging.getLogger("wotd_env")


def name_of(policy: str | Policy) -> str:
    """Return the name of a policy. The name of a policy object is the import path of its class."""
    return policy if isinstance(policy, str) else f"{type(policy).__module__}:{type(policy).__qualname__}"


def policy_digest(name: str, policy: Policy | None = None, given: bool = False) -> str:
    """Return the digest of the policy with this name. `given` is true if the policy was not made from its name.

    If `policy` is None and the name refers to a module outside this package, the digest omits the state of the policy.
    """
    kind, _, argument = full_name(name).partition(":")
    digest = hashlib.sha256()
    if kind in POLICIES and not given:
        known = POLICIES[kind]
        module = known.maker.partition(":")[0]
        digest.update(sources.digest(sources.reached(f"wotd_env.policies.{module}")).encode())
        if known.base:
            digest.update(policy_digest(known.base(argument), getattr(policy, "policy", None)).encode())
        elif argument:
            digest.update(_digests(map(Path, known.files(argument))))
        else:
            digest.update(_digests(models.FOLDER.glob(f"{kind}-*")))
    else:
        module = type(policy).__module__ if given else kind
        package = Path(wotd_env.__file__).parent
        digest.update(sources.digest(sources.reached(module).union(package.rglob("*.py"))).encode())
        if policy is not None:
            digest.update(f"given {given}\0{_state(name, policy)}".encode())
            if not isinstance(policy, Fingerprinted):
                digest.update(_digests(opened_by(module)))
    return digest.hexdigest()[:16]


def _state(name: str, policy: Policy) -> str:
    """Return a string that differs between policies with the same sources but different states."""
    if isinstance(policy, Fingerprinted):
        return policy.fingerprint()
    try:
        if type(policy).__module__ == "__main__" and not sources.main_file():
            raise ValueError("its source is not in a file")
        return hashlib.sha256(pickle.dumps(policy)).hexdigest()
    except Exception as error:  # pickling a user's class can raise any exception
        _log.warning(
            f"policy {name} plays all its games again, because its state is unknown: {error}. Give it a method "
            "fingerprint() that returns a digest of its weights to keep games of earlier runs"
        )
        return uuid.uuid4().hex


def _digests(files: Iterable[Path]) -> bytes:
    digests = b""
    for path in sorted({path for path in files if path.is_file()}):
        with path.open("rb") as file:
            digests += hashlib.file_digest(file, "sha256").digest()
    return digests
