"""Run the jobs of a study in other processes, on this machine or on a Dask cluster, and store their trials.

A job whose worker died is run again; a job that raises is a bug of ours, and the error propagates. Only the process
that started the study writes to its store.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import signal
import threading
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import torch

from dendritree.errors import DendritreeError, OptionError, check_int, check_one_of, import_extra
from dendritree.models import MLNBinaryClassifier

from .environment import usable_cores
from .store import RunStore
from .trial import Trial


class Job(Protocol):
    """A piece of work: a picklable description that is equal only to itself."""

    @property
    def group(self) -> str:
        """Name of the group of jobs whose progress is shown together."""

    @property
    def size(self) -> int:
        """How many trials it makes."""


AnyJob = TypeVar("AnyJob")
GroupedJob = TypeVar("GroupedJob", bound=Job)
Result = TypeVar("Result")
BACKENDS = ("loky", "dask", "here")
"""Where jobs run: processes of this machine, a Dask cluster, or this process itself (for a debugger)."""
LOSSES_IN_A_ROW = 3
"""How many times in a row workers may die, with no job finished in between, before the run fails."""
SILENCE = 10.0
"""Seconds without a response from a Dask scheduler after which it counts as lost."""
_TORCH = threading.Lock()
"""One job at a time per process: torch's random state is global to it, and a Dask worker may have several threads."""


class Observer(Protocol):
    """Receives the progress of a study, for example to display it. Called in the process that started the study."""

    def __call__(self, what: str, done: int, total: int, note: str = "") -> None:
        """`done` of `total` trials of the step `what` are finished; `note` is a short status."""


def silent(what: str, done: int, total: int, note: str = "") -> None:
    """An observer that does nothing."""


def run_rounds(
    store: RunStore,
    rounds: Iterable[Sequence[GroupedJob]],
    work: Callable[[GroupedJob, str | None], Sequence[Trial]],
    *,
    stored: Callable[[GroupedJob], bool],
    workers: Workers | None = None,
    data_dir: str | None = None,
    hours: float | None = None,
    observer: Observer = silent,
) -> bool:
    """Run the jobs of a study, one round after another, and store every trial immediately; return whether all ran.

    Args:
        store: the run, open for writing.
        rounds: the jobs, stored ones included; the next round may depend on the trials of those before it.
        work: makes the trials of a job, in a worker: a function at module level. Trials that are already stored are
            ignored.
        stored: whether the store has the trials of a job, which then is not run.
        workers: where the jobs run; all cores of this machine by default.
        data_dir: where the workers look for data sets first.
        hours: start no job after this time.
        observer: notified of how many trials of each group of jobs are done.
    """
    deadline = math.inf if hours is None else time.monotonic() + 3600 * hours

    def late() -> bool:
        return time.monotonic() > deadline

    with workers or Workers() as pool:
        for jobs in rounds:
            missing = [job for job in jobs if not stored(job)]
            progress = _Progress(jobs, missing, observer)
            for job, trials in run_jobs(missing, pool, work, data_dir=data_dir, stop=None if hours is None else late):
                store.add([trial for trial in trials if trial not in store])
                progress.tell(job, trials)
            if not all(map(stored, missing)):  # no time is left
                return False
    return True


class _Progress:
    """How many trials of each group are done, and the best score of each family in it."""

    def __init__(self, jobs: Sequence[Job], missing: Sequence[Job], observer: Observer) -> None:
        self.observer, self.best = observer, dict[tuple[str, object], float]()
        self.total: Counter[str] = Counter()
        for job in jobs:
            self.total[job.group] += job.size
        self.done = self.total.copy()
        for job in missing:
            self.done[job.group] -= job.size
        for group, total in self.total.items():
            observer(group, self.done[group], total)

    def tell(self, job: Job, trials: Sequence[Trial]) -> None:
        """Report the trials of a job, with a score if it is the first or the best of its family."""
        group = job.group
        self.done[group] += job.size
        note = ""
        family = trials[-1].key.get("family")
        if family is not None:
            accuracy, loss = trials[-1].at_best("val_acc"), trials[-1].at_best("val_loss")
            measure, score = ("loss", -loss) if math.isnan(accuracy) else ("accuracy", accuracy)
            best = self.best.get((group, family), -math.inf)
            self.best[group, family] = max(score, best)
            if self.done[group] < self.total[group] and score > best:
                note = f"{family}, validation {measure} {abs(score):.4f}"
        self.observer(group, self.done[group], self.total[group], note)


class Workers:
    """Where jobs run. As a context manager, it stops the workers at the end.

    Args:
        backend: one of `BACKENDS`.
        count: number of processes; by default, the number of cores this process may use. Ignored with `address`.
        address: address of the user's Dask scheduler; without one, `dask` starts a cluster on this machine.
    """

    def __init__(self, backend: str = "loky", *, count: int | None = None, address: str | None = None) -> None:
        self.backend = check_one_of("backend", backend, BACKENDS)
        if address and backend != "dask":
            raise OptionError(f"address requires backend 'dask': got {backend!r} and {address!r}")
        self.count = usable_cores() if count is None else check_int("workers", count)
        self.address = address
        self.cores = self.count
        """Number of jobs that run at the same time."""
        self._client: Any = None
        self._executor: Executor | None = None
        self._silent_since: float | None = None

    def submit(self, work: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Run a function in a worker; the first call starts the workers."""
        if self._executor is None:
            self._executor = self._start_loky() if self.backend == "loky" else self._start_dask()
        try:
            return self._executor.submit(work, *arguments)
        except (BrokenExecutor, RuntimeError) as error:  # broken since the last call
            future: Future[Result] = Future()
            future.set_exception(BrokenExecutor(str(error)))
            return future

    def _start_loky(self) -> Executor:
        import loky  # type: ignore[import-untyped]

        # loky takes a worker that has loaded a data set for one that leaks, and replaces it; no job is lost.
        warnings.filterwarnings("ignore", "A worker was restarted", UserWarning)
        options = {"initializer": _begin_worker, "initargs": (os.getpid(),), "env": {"OMP_NUM_THREADS": "1"}}
        executor: Executor = loky.ProcessPoolExecutor(self.count, **options)
        return executor

    def _start_dask(self) -> Executor:
        distributed = import_extra("distributed", extra="dask")
        local = {"n_workers": self.count, "threads_per_worker": 1, "dashboard_address": None}
        options = {"address": self.address, "timeout": "10s"} if self.address else local
        try:
            self._client = self._client or distributed.Client(**options)
            self.cores = max(1, sum(self._client.nthreads().values()))
        except (OSError, ValueError) as error:
            raise DendritreeError(f"no Dask scheduler responds at {self.address}: {error}") from None
        executor: Executor = self._client.get_executor(retries=LOSSES_IN_A_ROW)
        return executor

    def check_alive(self) -> None:
        """Raise if the Dask scheduler is lost: its futures would never finish."""
        if self._client is None or self._client.status == "running":
            self._silent_since = None
            return
        self._silent_since = self._silent_since or time.monotonic()
        if time.monotonic() - self._silent_since > SILENCE:
            raise DendritreeError(f"lost the Dask scheduler at {self.address}")

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
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def run_jobs(
    jobs: Sequence[AnyJob],
    workers: Workers,
    work: Callable[[AnyJob, str | None], Result],
    *,
    data_dir: str | None = None,
    stop: Callable[[], bool] | None = None,
) -> Iterator[tuple[AnyJob, Result]]:
    """Run all jobs, each at least once; yield each with its result as soon as it is available.

    Args:
        jobs: the jobs, in the order in which they start.
        workers: where the jobs run.
        work: runs a job in a worker: a function at module level.
        data_dir: where the workers look for data sets first.
        stop: called before each job starts; once it returns True, no more jobs start.
    """
    data_dir = None if data_dir is None else str(Path(data_dir).resolve())  # workers may have another working directory
    if workers.backend == "here":
        for job in jobs:
            if stop is None or not stop():
                yield job, work(job, data_dir)
        return
    queue, losses = deque(jobs), 0
    pending: dict[Future[Result], AnyJob] = {}
    while queue or pending:
        # Enough jobs that no worker has to wait; but with `stop`, no more, since queued jobs cannot be recalled.
        ahead = 4 * workers.cores if stop is None else workers.cores
        while queue and len(pending) < ahead:
            if stop is not None and stop():
                queue.clear()
                break
            job = queue.popleft()
            pending[workers.submit(work, job, data_dir)] = job
        done, _ = wait(pending, timeout=2.0, return_when=FIRST_COMPLETED)
        workers.check_alive()
        for future in [future for future in pending if future in done]:
            try:
                result = future.result()
            except _lost_errors() as error:  # whatever else is pending is lost too, or may be run again
                losses += 1
                if losses >= LOSSES_IN_A_ROW:
                    raise DendritreeError(f"workers died {losses} times in a row: {error}") from None
                queue.extendleft(reversed(pending.values()))
                pending.clear()
                workers.lost()
                break
            losses = 0
            yield pending.pop(future), result


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
