"""Run jobs in other processes: one path through `concurrent.futures`, for local processes and for a Dask cluster.

A job whose worker died is run again; a job that raises is a bug of ours, and the error propagates. Results go to a
callback in this process, the only one that writes.
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

from dendritree.errors import DendritreeError, OptionError, check_int, check_one_of, import_extra
from dendritree.models import MLNBinaryClassifier

from .provenance import usable_cores

Job = TypeVar("Job")
"""A piece of work: a picklable description that is equal only to itself."""
Done = TypeVar("Done")
BACKENDS = ("loky", "dask", "here")
"""Where jobs run: processes of this machine, a Dask cluster, or this process itself (for a debugger)."""
LOSSES_IN_A_ROW = 3
"""How many times in a row workers may die without a job being finished before we give up."""
SILENCE = 10.0
"""Seconds without a response from a Dask scheduler after which it counts as lost."""
WORKER_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MALLOC_MMAP_THRESHOLD_": str(2**30),
    "MALLOC_TRIM_THRESHOLD_": str(2**32),
}
"""Of local processes. By default glibc returns every block of more than 32 MB to the system when it is freed, and a
step of a wide convolution spends up to half of its time getting pages of zeros back."""
_TORCH = threading.Lock()
"""One job at a time per process: torch's random state is global to it, and a Dask worker may have several threads."""


class Observer(Protocol):
    """Receives the progress of a study, for example to display it. Called in the process that started the study."""

    def __call__(self, what: str, done: int, total: int, note: str = "") -> None:
        """`done` of `total` trials of the step `what` are finished; `note` is a short status."""


def silent(what: str, done: int, total: int, note: str = "") -> None:
    """An observer that does nothing."""


class WorkersLostError(DendritreeError):
    """Workers died repeatedly."""


class Workers:
    """Where jobs run. A context manager; `executor()` returns a live executor, a new one after workers were lost.

    Args:
        backend: one of `BACKENDS`.
        count: number of processes; by default, the number of cores this process may use. Ignored with `address`.
        address: address of the user's Dask scheduler; without one, `dask` starts a cluster on this machine.
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
        """The number of jobs that run at the same time."""
        return max(1, self._cores)

    def check_alive(self) -> None:
        """Raise if the cluster is gone; its futures would never finish."""
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
                self.count, initializer=_begin_worker, initargs=(os.getpid(),), env=WORKER_ENVIRONMENT
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
        """Discard an executor whose workers died, without waiting for work that is no longer needed."""
        if self._executor is None:
            return
        if self.backend == "loky":  # killing the workers is safe: they write nothing
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
    """Leave Ctrl-C to the parent, and exit if the parent is killed: nothing else would end this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # for workers that replace another

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Ignore Ctrl-C for a moment: processes started in the meantime ignore it from the beginning.

    (A blocked signal would be inherited too, but the standard library's resource tracker unblocks it.)
    """
    if threading.current_thread() is not threading.main_thread():  # signals are set and handled only there
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
    """Run all jobs, each at least once; `on_done` gets each result as soon as it is available, in this process.

    Args:
        jobs: the jobs, in the order in which they start.
        workers: where the jobs run.
        on_done: called with each job and its result; for a job whose worker died, only once it has succeeded.
        work: runs a job in a worker: a function at module level.
        data_dir: where the workers look for data sets first.
        stop: called before each job starts; once it returns True, no more jobs start.
    """
    data_dir = None if data_dir is None else str(Path(data_dir).resolve())  # workers may have another working directory
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
                    f"workers must survive to finish a job: they died {losses} times in a row ({last_loss})"
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
    """Submit jobs, a few ahead of the workers, and yield each as it finishes; a broken executor fails them all."""
    executor, queue = workers.executor(), list(reversed(jobs))
    pending: dict[Future[Any], Job] = {}
    first = True
    # Enough that no worker has to wait; but with `stop`, no more, since queued jobs cannot be recalled.
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
    """The errors that executors raise when workers die; a Dask cluster has its own."""
    errors: tuple[type[BaseException], ...] = (BrokenExecutor, CancelledError)
    with contextlib.suppress(ImportError):
        from distributed.client import FutureCancelledError
        from distributed.scheduler import KilledWorker

        errors += (KilledWorker, FutureCancelledError)
    return errors


@contextlib.contextmanager
def alone_on_one_thread() -> Iterator[None]:
    """Train with one torch thread and no other job in this process; torch's random state is restored afterwards."""
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
    """Load or compile the fused kernels, and what torch loads lazily, before anything is timed: once per process."""
    with torch.random.fork_rng(devices=[]):
        model = MLNBinaryClassifier(4, branching=2, dropout=0.5)
        optimizer = torch.optim.Adam(model.parameters(), fused=True)
        model(torch.zeros(2, 4)).sum().backward()
        optimizer.step()
