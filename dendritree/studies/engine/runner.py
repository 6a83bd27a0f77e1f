"""Doing jobs in other processes: one path through `concurrent.futures`, for a pool here and for a Dask cluster.

A job that its worker did not survive is done again; one that raises is our bug and is shown. What has been done goes
to a callback in this process, the only one that writes.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from typing import Any, TypeVar

from ...errors import DendritreeError, OptionError, check_int, check_one_of, import_extra
from .records import TrialRecord

__all__ = ["BACKENDS", "Pool", "WorkersLostError", "run_jobs"]

AnyJob = TypeVar("AnyJob")
"""A piece of work: a picklable description that compares equal to itself alone."""

BACKENDS = ("loky", "dask", "here")
"""Where jobs are done: processes of this machine, a Dask cluster, or this very process (for a debugger)."""

LOSSES_IN_A_ROW = 3
"""How often workers may die without a single job done in between, before we give up."""


SILENCE = 10.0
"""Seconds without a word from a Dask scheduler after which it counts as gone."""


class WorkersLostError(DendritreeError):
    """Workers died again and again."""


class Pool:
    """Where jobs are done. A context manager; `executor()` gives a live executor, a new one after a loss.

    Args:
        backend: one of `BACKENDS`.
        workers: processes; as many as this process may use cores by default. A cluster of the user's has its own.
        address: of the user's Dask scheduler; without one, `dask` starts a cluster of its own on this machine.
    """

    def __init__(self, backend: str = "loky", *, workers: int | None = None, address: str | None = None) -> None:
        self.backend = check_one_of("backend", backend, BACKENDS)
        if address and backend != "dask":
            raise OptionError(f"an address is for backend 'dask': got {backend!r} and {address!r}")
        self.workers = len(os.sched_getaffinity(0)) if workers is None else check_int("workers", workers)
        self.address = address
        self._cores = self.workers
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

    @property
    def in_flight(self) -> int:
        """Jobs to hand out at a time: enough that no worker waits for the next one."""
        return 4 * self.cores

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
            executor: Executor = loky.ProcessPoolExecutor(
                self.workers, initializer=_begin_worker, initargs=(os.getpid(),), env={"OMP_NUM_THREADS": "1"}
            )
            return executor
        distributed = import_extra("distributed", extra="dask")
        if self._client is None:
            try:
                if self.address:
                    self._client = distributed.Client(self.address, timeout="10s")
                else:
                    self._client = distributed.Client(
                        n_workers=self.workers, threads_per_worker=1, dashboard_address=None
                    )
            except (OSError, ValueError) as error:
                raise DendritreeError(f"no Dask scheduler answers at {self.address}: {error}") from None
        self._cores = sum(self._client.nthreads().values())
        found: Executor = self._client.get_executor(retries=LOSSES_IN_A_ROW)
        return found

    def lost(self) -> None:
        """Forget an executor whose workers died."""
        if self._executor is not None:
            _stop(self._executor)
            self._executor = None

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *error: object) -> None:
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


def _stop(executor: Executor) -> None:
    """Stop without waiting for work that nobody wants any more."""
    if hasattr(executor, "_executor_manager_thread"):  # loky: kill workers, they write nothing
        executor.shutdown(wait=True, kill_workers=True)  # type: ignore[call-arg]
    else:
        executor.shutdown(wait=False)


def run_jobs(
    jobs: Sequence[AnyJob],
    pool: Pool,
    on_done: Callable[[AnyJob, list[TrialRecord]], None],
    *,
    data_dir: str | None = None,
    work: Callable[[AnyJob, str | None], list[TrialRecord]],
    stop: Callable[[], bool] | None = None,
) -> None:
    """Do all jobs, each at least once; `on_done` gets the records of each as it is done, in this process.

    Args:
        jobs: what to do, the first ones first.
        pool: where.
        on_done: what to do with the records; a job whose worker died comes here only when it was done in the end.
        data_dir: where the workers look for data sets first.
        work: does a job, in a worker: a function of a module.
        stop: asked before a job is begun; once it says yes no more are.
    """
    if pool.backend == "here":
        for job in jobs:
            if stop is None or not stop():
                on_done(job, work(job, data_dir))
        return
    waiting, losses = list(jobs), 0
    while waiting:
        unfinished: list[AnyJob] = []
        for job, future in _submitted(waiting, pool, lambda executor, job: executor.submit(work, job, data_dir), stop):
            try:
                records = future.result()
            except _lost_errors() as error:
                unfinished.append(job)
                last_loss = error
            else:
                losses = 0
                on_done(job, records)
        if unfinished:
            losses += 1
            if losses >= LOSSES_IN_A_ROW:
                raise WorkersLostError(
                    f"workers must live to finish a job: {losses} times in a row they did not ({last_loss})"
                ) from None
            pool.lost()
        waiting = unfinished


def _submitted(
    jobs: Sequence[AnyJob],
    pool: Pool,
    submit: Callable[[Executor, AnyJob], Future[Any]],
    stop: Callable[[], bool] | None,
) -> Iterator[tuple[AnyJob, Future[Any]]]:
    """Submit jobs a few ahead of the workers, give back each as it ends; an executor that broke ends them all."""
    executor, queue = pool.executor(), list(reversed(jobs))
    pending: dict[Future[Any], AnyJob] = {}
    first = True
    ahead = pool.in_flight if stop is None else pool.cores  # what waits in a worker's queue could not be called back
    while queue or pending:
        if queue and stop is not None and stop():
            queue.clear()
            continue
        while queue and len(pending) < ahead:
            job = queue.pop()
            future: Future[Any]
            try:
                with _without_ctrl_c() if first else contextlib.nullcontext():  # the pool starts its workers now
                    future = submit(executor, job)
                first = False
            except (BrokenExecutor, RuntimeError) as error:  # broken since the last one
                future = Future()
                future.set_exception(BrokenExecutor(str(error)))
            pending[future] = job
        done, _ = wait(pending, timeout=2.0, return_when=FIRST_COMPLETED)
        pool.check_alive()
        for future in sorted(done, key=lambda f: jobs.index(pending[f])):
            yield pending.pop(future), future


def _lost_errors() -> tuple[type[BaseException], ...]:
    """What executors say when workers died; a Dask cluster has words of its own."""
    errors: tuple[type[BaseException], ...] = (BrokenExecutor, CancelledError)
    with contextlib.suppress(ImportError):
        from distributed.client import FutureCancelledError
        from distributed.scheduler import KilledWorker

        errors += (KilledWorker, FutureCancelledError)
    return errors
