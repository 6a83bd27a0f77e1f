"""Doing jobs in other processes: one path through `concurrent.futures`, for processes here and for a Dask cluster.

A job that its worker did not survive is done again; one that raises is our bug and is shown. Results go to a callback
in this process, the only one that writes.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from typing import Any, Protocol, Self, TypeVar

import torch

from ...errors import DendritreeError, OptionError, check_int, check_one_of, import_extra
from ...files import followed
from ...models import MLNBinaryClassifier
from .provenance import usable_cores

Job = TypeVar("Job")
"""A piece of work: a picklable description that compares equal to itself alone."""
Done = TypeVar("Done")
BACKENDS = ("loky", "dask", "here")
"""Where jobs are done: processes of this machine, a Dask cluster, or this very process (for a debugger)."""
LOSSES_IN_A_ROW = 3
"""How often workers may die without a single job done in between, before we give up."""
SILENCE = 10.0
"""Seconds without a word from a Dask scheduler after which it counts as gone."""
_TORCH = threading.Lock()
"""One job at a time in a process: torch's random numbers are the process's, and a Dask worker may have threads."""


class Observer(Protocol):
    """What every study tells while it runs; a progress display is one. Called in the process that asked."""

    def __call__(self, what: str, done: int, total: int, note: str = "") -> None:
        """`done` of `total` trials of a step are there; `note` says how it stands."""


def silent(what: str, done: int, total: int, note: str = "") -> None:
    """An observer that does nothing."""


class WorkersLostError(DendritreeError):
    """Workers died again and again."""


class Workers:
    """Where jobs are done. A context manager; `executor()` gives a live executor, a new one after a loss.

    Args:
        backend: one of `BACKENDS`.
        count: processes; as many as this process may use cores by default. A cluster of the user's has its own.
        address: of the user's Dask scheduler; without one, `dask` starts a cluster of its own on this machine.
    """

    def __init__(self, backend: str = "loky", *, count: int | None = None, address: str | None = None) -> None:
        self.backend = check_one_of("backend", backend, BACKENDS)
        if address and backend != "dask":
            raise OptionError(f"an address is for backend 'dask': got {backend!r} and {address!r}")
        self.count = usable_cores() if count is None else check_int("workers", count)
        self.address = address
        self._cores = self.count
        self._client: Any = None
        self._executor: Executor | None = None
        self._silent_since: float | None = None

    def executor(self) -> Executor:
        """The executor in use."""
        if self._executor is None:
            with _without_ctrl_c():
                self._executor = self._start()
        return self._executor

    @property
    def cores(self) -> int:
        """Jobs that are done at the same time."""
        return max(1, self._cores)

    def check_alive(self) -> None:
        """Raise if a cluster is gone; its futures would never end."""
        if self._client is None or self._client.status == "running":
            self._silent_since = None
        elif self._silent_since is None:
            self._silent_since = time.monotonic()
        elif time.monotonic() - self._silent_since > SILENCE:
            raise WorkersLostError(f"the Dask scheduler must stay reachable: {self.address} has gone")

    def _start(self) -> Executor:
        if self.backend == "loky":
            loky = import_extra("loky", extra="experiments")
            # loky takes a worker that has loaded a data set for one that leaks, and replaces it; no job is lost.
            warnings.filterwarnings("ignore", "A worker was restarted", UserWarning)
            executor: Executor = loky.ProcessPoolExecutor(
                self.count, initializer=_begin_worker, initargs=(os.getpid(),), env={"OMP_NUM_THREADS": "1"}
            )
            return executor
        distributed = import_extra("distributed", extra="dask")
        if self._client is None:
            local = {"n_workers": self.count, "threads_per_worker": 1, "dashboard_address": None}
            options = {"address": self.address, "timeout": "10s"} if self.address else local
            try:
                self._client = distributed.Client(**options)
            except (OSError, ValueError) as error:
                raise DendritreeError(f"no Dask scheduler answers at {self.address}: {error}") from None
        self._cores = sum(self._client.nthreads().values())
        found: Executor = self._client.get_executor(retries=LOSSES_IN_A_ROW)
        return found

    def lost(self) -> None:
        """Forget an executor whose workers died, without waiting for work that nobody wants any more."""
        if self._executor is None:
            return
        if self.backend == "loky":  # kill the workers, they write nothing
            self._executor.shutdown(wait=True, kill_workers=True)  # type: ignore[call-arg]
        else:
            self._executor.shutdown(wait=False)
        self._executor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.lost()
        if self._client is not None:
            self._client.close()


def _begin_worker(parent: int) -> None:
    """Leave Ctrl-C to the parent, and end when the parent was killed: nobody else would end us."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # for workers that were started to replace another

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Ignore Ctrl-C for a moment: processes started meanwhile ignore it from their first one on.

    (A blocked signal would be inherited too, but the standard library's resource tracker unblocks it.)
    """
    if threading.current_thread() is not threading.main_thread():  # only there may it be set, and only there it counts
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def run_jobs(
    jobs: Sequence[Job],
    workers: Workers,
    on_done: Callable[[Job, Done], None],
    *,
    work: Callable[[Job, str | None], Done],
    data_dir: str | None = None,
    stop: Callable[[], bool] | None = None,
) -> None:
    """Do all jobs, each at least once; `on_done` gets the result of each as it is done, in this process.

    Args:
        jobs: what to do, the first ones first.
        workers: where.
        on_done: what to do with a result; a job whose worker died comes here only when it was done in the end.
        work: does a job, in a worker: a function of a module.
        data_dir: where the workers look for data sets first.
        stop: asked before a job is begun; once it says yes no more are.
    """
    data_dir = None if data_dir is None else str(followed(data_dir))  # workers may have another folder
    if workers.backend == "here":
        for job in jobs:
            if stop is None or not stop():
                on_done(job, work(job, data_dir))
        return
    waiting, losses = list(jobs), 0
    while waiting:
        unfinished: list[Job] = []
        for job, future in _submitted(waiting, workers, work, data_dir, stop):
            try:
                result = future.result()
            except _lost_errors() as error:
                unfinished.append(job)
                last_loss = error
            else:
                losses = 0
                on_done(job, result)
        if unfinished:
            losses += 1
            if losses >= LOSSES_IN_A_ROW:
                raise WorkersLostError(
                    f"workers must live to finish a job: {losses} times in a row they did not ({last_loss})"
                ) from None
            workers.lost()
        waiting = unfinished


def _submitted(
    jobs: Sequence[Job],
    workers: Workers,
    work: Callable[[Job, str | None], Any],
    data_dir: str | None,
    stop: Callable[[], bool] | None,
) -> Iterator[tuple[Job, Future[Any]]]:
    """Submit jobs a few ahead of the workers, give back each as it ends; an executor that broke ends them all."""
    executor, queue = workers.executor(), list(reversed(jobs))
    pending: dict[Future[Any], Job] = {}
    first = True
    # Enough that no worker waits for the next one; but jobs in a worker's queue could not be called back.
    ahead = 4 * workers.cores if stop is None else workers.cores
    while queue or pending:
        if queue and stop is not None and stop():
            queue.clear()
            continue
        while queue and len(pending) < ahead:
            job = queue.pop()
            future: Future[Any]
            try:
                with _without_ctrl_c() if first else contextlib.nullcontext():  # processes start with the first job
                    future = executor.submit(work, job, data_dir)
                first = False
            except (BrokenExecutor, RuntimeError) as error:  # broken since the last one
                future = Future()
                future.set_exception(BrokenExecutor(str(error)))
            pending[future] = job
        done, _ = wait(pending, timeout=2.0, return_when=FIRST_COMPLETED)
        workers.check_alive()
        for future in sorted(done, key=lambda f: jobs.index(pending[f])):
            yield pending.pop(future), future


def _lost_errors() -> tuple[type[BaseException], ...]:
    """What executors raise when workers died; a Dask cluster has errors of its own."""
    errors: tuple[type[BaseException], ...] = (BrokenExecutor, CancelledError)
    with contextlib.suppress(ImportError):
        from distributed.client import FutureCancelledError
        from distributed.scheduler import KilledWorker

        errors += (KilledWorker, FutureCancelledError)
    return errors


@contextlib.contextmanager
def alone_on_one_thread() -> Iterator[None]:
    """Train with one thread of torch and no other job of this process; torch's random numbers are put back."""
    with _TORCH:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            _load_kernels()
            with torch.random.fork_rng(devices=[]):
                yield
        finally:
            torch.set_num_threads(threads)


@functools.cache
def _load_kernels() -> None:
    """Load the fused kernels, or compile them, and what torch loads late, before a clock runs: once per process."""
    with torch.random.fork_rng(devices=[]):
        model = MLNBinaryClassifier(4, branching=2, dropout=0.5)
        optimizer = torch.optim.Adam(model.parameters(), fused=True)
        model(torch.zeros(2, 4)).sum().backward()
        optimizer.step()
