"""Other work than trials of the paper, and a stop before all is done: in this process and in a real worker."""

import os
import time
from pathlib import Path

import pytest
from timed_work import deadly, timed

from dendritree.errors import OptionError
from dendritree_lab.studies.engine.runner import Workers, run_jobs


@pytest.fixture(scope="module")
def worker():
    """A pool of one process, the same for all tests."""
    with Workers("loky", count=1) as pool:
        run_jobs(["a first job, so that the worker is there"], pool, lambda *_: None, work=timed)
        yield pool


class Stop:
    """Says yes once so many jobs are done, and remembers when it first did."""

    def __init__(self, after):
        self.after, self.done, self.said_yes = after, {}, None

    def __call__(self):
        yes = len(self.done) >= self.after
        if yes and self.said_yes is None:
            self.said_yes = time.monotonic()
        return yes

    def keep(self, job, records):
        assert job not in self.done
        self.done[job] = records

    def begun_too_late(self):
        return [job for job, [(_, _, _, begun)] in self.done.items() if begun > self.said_yes]


# --------------------------------------------------------------------------------------------------------------- work


def test_any_work_is_done_in_this_process_in_order():
    found = []
    with Workers("here") as pool:
        run_jobs("abc", pool, lambda job, records: found.append((job, records)), work=lambda *asked: [*asked, 1])
        assert found == [("a", ["a", None, 1]), ("b", ["b", None, 1]), ("c", ["c", None, 1])]
        run_jobs("a", pool, lambda job, records: found.append((job, records)), work=lambda *a: [*a], data_dir="here")
    assert found[3:] == [("a", ["a", str(Path("here").resolve())])]  # other processes may be in other folders


def test_any_work_is_done_in_a_worker_once_each_with_the_data_folder(worker):
    found = {}
    run_jobs([3, 1, 2], worker, found.__setitem__, work=timed, data_dir="some/folder")
    assert list(found) == [3, 1, 2]
    assert {asked[:2] for (asked,) in found.values()} == {
        (job, str(Path("some/folder").resolve())) for job in (1, 2, 3)
    }
    (process,) = {asked[2] for (asked,) in found.values()}
    assert process != os.getpid()


def test_work_that_raises_shows_its_error():
    def refuse(job, _data_dir):
        raise OptionError(f"a job must be small: got {job}")

    with Workers("here") as pool, pytest.raises(OptionError, match="a job must be small: got 9"):
        run_jobs([9], pool, lambda *_: None, work=refuse)


# --------------------------------------------------------------------------------------------------------------- stop


@pytest.mark.parametrize("after", [0, 1, 4, 5, 9])
def test_here_nothing_is_begun_after_the_stop(after):
    stop, begun = Stop(after), []
    with Workers("here") as pool:
        run_jobs(range(5), pool, stop.keep, work=lambda job, _: begun.append(job) or [], stop=stop)
    assert begun == list(stop.done) == list(range(min(after, 5)))


def test_a_stop_at_once_starts_no_worker():
    with Workers("loky", count=1) as pool:
        run_jobs(range(5), pool, lambda *_: pytest.fail("nothing was to be done"), work=timed, stop=lambda: True)
        assert not getattr(pool._executor, "_processes", None)


@pytest.mark.parametrize("jobs", [12, 4, 3], ids=["more than are handed out", "all handed out", "few"])
def test_a_worker_begins_nothing_after_the_stop(worker, jobs):
    """What has started is finished and kept; what waits for the worker is not started."""
    stop = Stop(1)
    run_jobs(range(jobs), worker, stop.keep, work=timed, stop=stop)
    assert stop.said_yes is not None
    assert list(stop.done) == list(range(len(stop.done)))
    assert stop.begun_too_late() == []
    assert 1 <= len(stop.done) <= 2


def test_the_pool_is_as_good_as_before_after_a_stop(worker):
    stop, found = Stop(1), {}
    run_jobs(range(20, 30), worker, stop.keep, work=timed, stop=stop)
    assert len(stop.done) < 10
    run_jobs([7, 8], worker, found.__setitem__, work=timed)
    assert list(found) == [7, 8]


def test_a_stop_that_never_comes_changes_nothing(worker):
    found = {}
    run_jobs(range(6), worker, found.__setitem__, work=timed, stop=lambda: False)
    assert sorted(found) == list(range(6))


def test_after_the_stop_a_job_whose_worker_died_is_left(worker):
    """It would have to be started again: it is not, and that is not an error."""
    stop = Stop(1)
    run_jobs([0, 1, 2], worker, stop.keep, work=deadly, stop=stop)
    assert list(stop.done) == [0]
