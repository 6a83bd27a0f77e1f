"""Jobs in a real pool of processes: workers are killed, jobs fail, and nothing is lost, doubled or changed."""

import os
import resource
import signal
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
from runner_cases import Collected, alone, impossible_job, some_jobs

from dendritree.errors import DendritreeError, OptionError, ShapeError
from dendritree_lab.studies.engine.runner import BACKENDS, LOSSES_IN_A_ROW, Workers, WorkersLostError, run_jobs
from dendritree_lab.studies.paper.paper_trials import run_job

JOBS = 14


@pytest.fixture(scope="module", autouse=True)
def _mnist(real_data):
    real_data("mnist")


@pytest.fixture(scope="module")
def expected():
    return alone(some_jobs(4))


def worker_pids(pool):
    return list(getattr(pool._executor, "_processes", None) or ())


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def test_this_process_does_jobs_in_order(expected):
    done = Collected()
    with Workers("here") as pool:
        run_jobs(some_jobs(4), pool, done, work=run_job)
    done.must_be({job: expected[job] for job in some_jobs(4)})
    assert [job for job, _ in done.calls] == some_jobs(4)


def pages_of_a_block(repeats, _):
    """How many pages of memory the last of several blocks of 128 MB takes from the system."""
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        torch.zeros(2**25)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="settings of glibc")
def test_a_worker_keeps_the_memory_of_large_tensors():
    pages = {}
    with Workers("loky", count=1) as pool:
        run_jobs([3], pool, pages.__setitem__, work=pages_of_a_block)
    assert pages[3] < pages_of_a_block(3, None) / 4  # which may be of 4 kB or of 2 MB


@pytest.mark.slow
def test_a_killed_worker_loses_and_doubles_nothing():
    """Killed in mid-run; the callback runs in this process, results are those of this process bit for bit."""
    killed, seen = [], set()

    def kill(count):
        seen.add(os.getpid())
        if count == 3:
            killed.append(worker_pids(pool)[-1])
            os.kill(killed[0], signal.SIGKILL)

    done = Collected(kill)
    with Workers("loky", count=2) as pool:
        run_jobs(some_jobs(JOBS), pool, done, work=run_job)
        pids = worker_pids(pool)
    done.must_be(alone(some_jobs(JOBS)))
    assert killed
    assert seen == {os.getpid()}
    assert wait_until(lambda: not any(map(is_alive, [*pids, *killed])))


def test_workers_that_always_die_are_not_waited_for_forever():
    """A stranger kills every worker as soon as it is there."""
    killed, stop = set(), threading.Event()

    def kill_all():
        while not stop.wait(0.02):
            for pid in worker_pids(pool):
                if pid not in killed and is_alive(pid):
                    os.kill(pid, signal.SIGKILL)
                    killed.add(pid)

    killer = threading.Thread(target=kill_all)
    done = Collected()
    with Workers("loky", count=1) as pool:
        killer.start()
        try:
            with pytest.raises(
                WorkersLostError, match="workers must survive to finish a job: they died 3 times in a row"
            ):
                run_jobs(some_jobs(2), pool, done, work=run_job)
        finally:
            stop.set()
            killer.join()
    assert done.calls == []
    assert len(killed) >= LOSSES_IN_A_ROW


# A worker takes four seconds to start and to import what its job needs.
@pytest.mark.parametrize("backend", ["here", pytest.param("loky", marks=pytest.mark.slow)])
def test_a_job_that_raises_shows_its_error_and_the_workers_end(backend, expected):
    done = Collected()
    with Workers(backend, count=1) as pool:
        with pytest.raises(ShapeError, match=r"branching \*\* depth: got .*1024.*branching 3"):
            run_jobs([impossible_job(), *some_jobs(1)], pool, done, work=run_job)
        pids = worker_pids(pool)
        run_jobs(some_jobs(2), pool, done, work=run_job)  # the pool is as good as before
    done.must_be({job: expected[job] for job in some_jobs(2)})
    assert wait_until(lambda: not any(map(is_alive, pids)))


def test_an_error_in_the_callback_is_not_taken_for_a_lost_worker():
    def full(_job, _records):
        raise DendritreeError("the disk is full")

    with Workers("here") as pool, pytest.raises(DendritreeError, match="the disk is full"):
        run_jobs(some_jobs(1), pool, full, work=run_job)


KEPT = []
"""What a worker holds on to."""


def keep_400_megabytes(job, _data_dir):
    if job == 1:
        KEPT.append(bytearray(os.urandom(1)) * 400_000_000)
    time.sleep(0.6)  # loky looks at a worker's memory once per second
    return os.getpid()


@pytest.mark.slow
def test_a_worker_that_holds_data_is_replaced_without_a_warning(recwarn):
    done = []
    with Workers("loky", count=1) as workers:
        run_jobs(range(8), workers, lambda job, pid: done.append((job, pid)), work=keep_400_megabytes)
    assert sorted(job for job, _ in done) == list(range(8))
    assert len({pid for _, pid in done}) > 1
    assert not recwarn.list


def test_nothing_to_do_starts_nothing():
    with Workers("loky") as pool:
        run_jobs([], pool, Collected(), work=run_job)
        assert pool._executor is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"backend": "loki"}, r"backend must be one of 'loky', 'dask', 'here': got 'loki'; did you mean 'loky'\?"),
        ({"address": "tcp://127.0.0.1:1"}, "an address is for backend 'dask': got 'loky' and 'tcp://127.0.0.1:1'"),
        ({"backend": "here", "address": "x"}, "an address is for backend 'dask': got 'here'"),
        ({"count": -1}, "workers must be an integer of at least 1: got -1"),
        ({"count": 0}, "workers must be an integer of at least 1: got 0"),
    ],
    ids=str,
)
def test_a_pool_that_cannot_be_is_refused_before_anything_starts(arguments, message):
    with pytest.raises(OptionError, match=message):
        Workers(**arguments)


def test_backends_are_known_by_name():
    assert BACKENDS == ("loky", "dask", "here")
