"""Jobs in a real pool of processes: workers are killed, jobs fail, studies stop, and nothing is lost or changed."""

import os
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from command_runs import wait_until
from made_trials import kept_trial
from runner_cases import alone, collect, impossible_job, some_jobs
from timed_work import deadly, timed

from dendritree.errors import DendritreeError, ShapeError
from dendritree_lab.studies.engine.runner import LOSSES_IN_A_ROW, Workers, run_jobs, run_rounds
from dendritree_lab.studies.engine.store import RunStore

JOBS = 14


@pytest.fixture(scope="module")
def _mnist(real_data):
    real_data("mnist")


@pytest.fixture(scope="module")
def worker():
    """A pool of one process, the same for all tests."""
    with Workers("loky", count=1) as pool:
        list(run_jobs(["a first job, so that the worker is there"], pool, timed))
        yield pool


def worker_pids(pool):
    return list(getattr(pool._executor, "_processes", None) or ())


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


# -------------------------------------------------------------------------------------------------------------- rounds


def job_of(index, family="mlp"):
    trial = kept_trial(index, family=family)
    return SimpleNamespace(study=trial.study, key=trial.key, group="search", size=1, index=index, family=family)


def make_trial(job, _data_dir=None):
    return [kept_trial(job.index, family=job.family)]


def test_rounds_store_every_trial_at_once_and_tell_how_many_are_done(tmp_path):
    calls, counts = [], []
    with RunStore.create_or_open(tmp_path, {}) as store:

        def rounds():
            for indices in ((0, 1), (2,)):
                yield [job_of(index) for index in indices]
                counts.append(len(store))

        store.add(make_trial(job_of(1)))  # by an earlier run: it counts, and is not run again
        arguments = {"workers": Workers("here"), "observer": lambda *call: calls.append(call)}
        assert run_rounds(store, rounds(), make_trial, stored=store.__contains__, **arguments)
        assert store.trials() == [kept_trial(index) for index in (0, 1, 2)]
    assert counts == [2, 3]
    assert calls == [("search", 1, 2), ("search", 2, 2, ""), ("search", 0, 1), ("search", 1, 1, "")]


def test_no_round_begins_after_the_time_is_over(tmp_path):
    with RunStore.create_or_open(tmp_path, {}) as store:
        rounds = ([job_of(index)] for index in range(5))
        assert not run_rounds(
            store, rounds, make_trial, stored=store.__contains__, workers=Workers("here"), hours=1e-12
        )
        assert len(store) == 0


# ---------------------------------------------------------------------------------------------------------------- jobs


@pytest.mark.usefixtures("_mnist")
def test_this_process_does_jobs_in_order():
    with Workers("here") as pool:
        assert collect(some_jobs(4), pool) == list(alone(some_jobs(4)).items())


def test_a_worker_does_any_work_once_each_with_the_data_folder(worker):
    results = dict(run_jobs([3, 1, 2], worker, timed, data_dir="some/folder"))
    assert list(results) == [3, 1, 2]
    folder = str(Path("some/folder").resolve())  # other processes may be in other folders
    assert {result[:2] for (result,) in results.values()} == {(job, folder) for job in (1, 2, 3)}
    (process,) = {result[2] for (result,) in results.values()}
    assert process != os.getpid()


@pytest.mark.slow
@pytest.mark.usefixtures("_mnist")
def test_a_killed_worker_loses_and_doubles_nothing():
    killed = []

    def kill(count):
        if count == 3:
            killed.append(worker_pids(pool)[-1])
            os.kill(killed[0], signal.SIGKILL)

    with Workers("loky", count=2) as pool:
        results = collect(some_jobs(JOBS), pool, kill)
        pids = worker_pids(pool)
    assert len(results) == JOBS
    assert dict(results) == alone(some_jobs(JOBS))  # bit for bit
    assert killed
    assert wait_until(lambda: not any(map(is_alive, [*pids, *killed])), 20)


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
    with Workers("loky", count=1) as pool:
        killer.start()
        try:
            with pytest.raises(DendritreeError, match="workers died 3 times in a row"):
                list(run_jobs([1, 2], pool, timed))
        finally:
            stop.set()
            killer.join()
    assert len(killed) >= LOSSES_IN_A_ROW


# A worker takes four seconds to start and to import what its job needs.
@pytest.mark.parametrize("backend", ["here", pytest.param("loky", marks=pytest.mark.slow)])
@pytest.mark.usefixtures("_mnist")
def test_a_job_that_raises_shows_its_error_and_the_pool_goes_on(backend):
    with Workers(backend, count=1) as pool:
        with pytest.raises(ShapeError, match="branching 3"):
            collect([impossible_job(), *some_jobs(1)], pool)
        pids = worker_pids(pool)
        assert dict(collect(some_jobs(2), pool)) == alone(some_jobs(2))
    assert wait_until(lambda: not any(map(is_alive, pids)), 20)


# ---------------------------------------------------------------------------------------------------------------- stop


@pytest.mark.parametrize("after", [0, 1, 4, 5, 9])
def test_here_nothing_is_begun_after_the_stop(after):
    begun = []
    with Workers("here") as pool:
        list(run_jobs(range(5), pool, lambda job, _: begun.append(job), stop=lambda: len(begun) >= after))
    assert begun == list(range(min(after, 5)))


def test_nothing_to_do_or_a_stop_at_once_starts_no_worker():
    with Workers("loky", count=1) as pool:
        assert list(run_jobs([], pool, timed)) == []
        assert list(run_jobs(range(5), pool, timed, stop=lambda: True)) == []
        assert pool._executor is None


@pytest.mark.parametrize("jobs", [12, 3])
def test_a_worker_begins_nothing_after_the_stop_and_then_goes_on(worker, jobs):
    done, said_yes = {}, []

    def stop():
        if done and not said_yes:
            said_yes.append(time.monotonic())
        return bool(done)

    for job, [result] in run_jobs(range(jobs), worker, timed, stop=stop):
        done[job] = result
    assert list(done) == list(range(len(done)))
    assert 1 <= len(done) <= 2, "what has started is finished"
    assert all(begun <= said_yes[0] for *_, begun in done.values())
    assert [job for job, _ in run_jobs([7, 8], worker, timed)] == [7, 8]


def test_after_the_stop_a_job_whose_worker_died_is_left(worker):
    """It would have to be started again: it is not, and that is not an error."""
    done = []
    for job, _ in run_jobs([0, 1, 2], worker, deadly, stop=lambda: bool(done)):
        done.append(job)
    assert done == [0]
