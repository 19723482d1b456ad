"""Pools that play blocks in this process or in worker processes."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import pickle
import queue
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Protocol

from wotd_env.arena.tournament import Block, PlayedBlock, Tournament, make_equity, play_block
from wotd_env.policies import make_policy
from wotd_env.policy import Policy
from wotd_env.process import prepare_streams, restore_environment, without_current_folder

_STARTING = -1  # value of `Worker._current_call` until the process runs `_serve`
_DEATHS = 3  # a block fails if its process dies this many times while no policy is called


def make_policies(tournament: Tournament, given: Mapping[str, Policy], trust: bool) -> dict[str, Policy]:
    """Return the policies of a tournament by name."""
    return {name: make_policy(given.get(name, name), trust=trust) for name in tournament.policies}


class Pool(AbstractContextManager[Any], Protocol):
    """A pool that plays the blocks of a tournament for the function `run`."""

    @property
    def size(self) -> int:
        """Number of blocks that the pool can play at once."""

    def submit(self, block: Block, untried: frozenset[str]) -> Future[PlayedBlock]:
        """Start playing a block. The policies in `untried` make their first decision of the run in this block."""


class Here(AbstractContextManager["Here"]):
    """Plays blocks in this process. A policy that hangs cannot be stopped."""

    size = 1

    def __init__(self, tournament: Tournament, policies: Mapping[str, Policy], trust: bool = False) -> None:
        self._tournament, self._policies = tournament, policies
        self._equity = make_equity(tournament.luck, trust) if tournament.luck else None

    def __exit__(self, *error: object) -> None:
        pass

    def play(self, block: Block, **options: Any) -> PlayedBlock:
        """Play a block, see `play_block` for the options."""
        return play_block(self._tournament, self._policies, block, equity=self._equity, **options)

    def submit(self, block: Block, untried: frozenset[str]) -> Future[PlayedBlock]:
        """Play a block, then return a finished future."""
        future: Future[PlayedBlock] = Future()
        future.set_result(self.play(block, untried=untried))
        return future


class Processes(AbstractContextManager["Processes"]):
    """Plays blocks on several workers at once."""

    def __init__(self, workers: Sequence[Worker]) -> None:
        self.size, self._workers = len(workers), workers
        self._idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        for worker in workers:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(self.size, thread_name_prefix="arena")

    def __exit__(self, *error: object) -> None:
        for worker in self._workers:
            worker.close()
        self._threads.shutdown(cancel_futures=True)

    def submit(self, block: Block, untried: frozenset[str]) -> Future[PlayedBlock]:
        """Play a block on the next free worker."""
        return self._threads.submit(self._play_block, block, untried)

    def _play_block(self, block: Block, untried: frozenset[str]) -> PlayedBlock:
        worker = self._idle.get()
        try:
            return worker.play_block(block, untried)
        finally:
            self._idle.put(worker)


class Worker:
    """A process that plays one block at a time. If a policy hangs or ends the process, a new process starts.

    A call of a policy is fatal if it exceeds the time limit, or if it ends the process in two attempts. The block is
    then played again without this call, and the policy forfeits the games of the call.

    Args:
        time_limit: seconds that a policy may take for one call.
        policies: name -> policy object, for policies that are not made from their names. The objects must be picklable.
        trust: allow policy files that can run code, see `make_policy`.
    """

    def __init__(
        self,
        tournament: Tournament,
        time_limit: float,
        policies: Mapping[str, Policy] | None = None,
        trust: bool = False,
    ) -> None:
        for name, policy in (policies or {}).items():
            try:
                pickle.dumps(policy)
            except Exception as error:  # pickling a user's class can raise any exception
                failed = f"policy {name!r} cannot be sent to a worker process: {error}"
                raise ValueError(f"{failed}. Play with workers=0, or name it as 'module:object'") from error
        self._time_limit = time_limit
        self._arguments = tournament, dict(policies or {}), trust
        self._context = multiprocessing.get_context("spawn")
        self._current_call: Any = self._context.RawValue(ctypes.c_int64, 0)
        self._running: tuple[BaseProcess, Connection] | None = None
        self._closed = False

    def play_block(self, block: Block, untried: frozenset[str] = frozenset()) -> PlayedBlock:
        """Play a block. An exception in the process is raised again here."""
        fatal_calls: dict[int, str] = {}
        deaths: list[int] = []
        while True:
            outcome = self._attempt(block, fatal_calls, untried)
            if isinstance(outcome, PlayedBlock):
                return outcome
            if isinstance(outcome, Exception):
                raise outcome
            call, why = outcome
            if self._closed:
                raise RuntimeError("the tournament has been stopped")
            if call and (why.startswith("took") or call in deaths):
                fatal_calls[call] = why
            deaths.append(call)
            if deaths.count(0) == _DEATHS:
                raise RuntimeError(
                    f"a worker process has ended {_DEATHS} times outside of any policy, most recently because it "
                    f"{why}, in {block}; is there enough memory?"
                )

    def close(self) -> None:
        """End the process."""
        self._closed = True
        self._stop()

    def _attempt(
        self, block: Block, fatal_calls: dict[int, str], untried: frozenset[str]
    ) -> PlayedBlock | Exception | tuple[int, str]:
        """Return the played block or the raised error. If the process has ended, return the pair (call, reason).

        `call` is the number of the call of `Policy.act` during which the process ended, or 0 outside such a call.
        """
        pipe = self._start()
        watched, since = 0, time.monotonic()
        try:
            pipe.send((block, {"fatal_calls": fatal_calls, "untried": untried}))
            while not pipe.poll(0.05):
                call = self._current_call.value
                if call != watched:
                    watched, since = call, time.monotonic()
                elif call > 0 and time.monotonic() - since > self._time_limit:
                    self._stop()
                    return call, f"took more than {self._time_limit:g} s"
            outcome: PlayedBlock | Exception = pipe.recv()
            return outcome
        except (EOFError, OSError):
            running, call = self._running, self._current_call.value
            self._stop()
            code = running[0].exitcode if running else None
            if call == _STARTING and code is not None and code > 0:  # ended by an exception, not a signal
                return RuntimeError(
                    f"a worker process cannot start (exit code {code}); its output above says why. A script that "
                    'asks for workers must call run under `if __name__ == "__main__":`, because every worker '
                    "imports the script"
                )
            return max(call, 0), f"ended the process (exit code {code})"

    def _start(self) -> Connection:
        if self._running is None:
            self._current_call.value = _STARTING
            pipe, theirs = self._context.Pipe()
            arguments = (*self._arguments, theirs, self._current_call)
            process = self._context.Process(target=_serve, args=arguments, daemon=True)
            with without_current_folder():
                process.start()
            theirs.close()
            self._running = process, pipe
        return self._running[1]

    def _stop(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            process, pipe = running
            process.kill()
            process.join()
            pipe.close()


def _serve(
    tournament: Tournament, given: Mapping[str, Policy], trust: bool, pipe: Connection, current_call: Any
) -> None:
    restore_environment()
    prepare_streams()  # so printing never raises an error in a policy, even if nobody reads the output
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # networks in a worker use one core
    current_call.value = 0

    note = partial(setattr, current_call, "value")
    here: Here | None = None
    with contextlib.suppress(EOFError):
        while True:
            block, options = pipe.recv()
            try:
                here = here or Here(tournament, make_policies(tournament, given, trust), trust)
                outcome: PlayedBlock | Exception = here.play(block, on_call=note, **options)
            except Exception as error:
                outcome = error
            pipe.send(outcome)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
