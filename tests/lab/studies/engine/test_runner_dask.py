"""Jobs on a real Dask cluster of the user's: a scheduler and two worker processes, one of them killed in mid-run."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from runner_cases import alone, collect, impossible_job, some_jobs

from dendritree.errors import DendritreeError, ShapeError
from dendritree_lab.studies.engine.runner import Workers

pytestmark = pytest.mark.slow

pytest.importorskip("distributed")
JOBS = 14
HELPERS = Path(__file__).parents[3] / "helpers"


def start(*arguments, folder):
    command = [sys.executable, "-m", "dask", *arguments, "--no-dashboard", "--scheduler-file", str(folder / "where")]
    if arguments[0] == "worker":
        command += ["--nthreads", "1", "--no-nanny", "--local-directory", str(folder)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.fixture
def cluster(tmp_path):
    """Address of a scheduler, its two workers and itself as processes."""
    scheduler = start("scheduler", "--host", "127.0.0.1", "--port", "0", folder=tmp_path)
    workers = [start("worker", folder=tmp_path) for _ in range(2)]  # they wait for the file
    try:
        end = time.monotonic() + 60
        while not (tmp_path / "where").exists() and time.monotonic() < end:
            time.sleep(0.1)
        yield json.loads((tmp_path / "where").read_text())["address"], workers, scheduler
    finally:
        for process in [*workers, scheduler]:
            process.kill()
            process.wait()


def test_a_killed_worker_loses_and_doubles_nothing_then_a_job_that_raises_shows_its_error(cluster, real_data):
    real_data("mnist")
    expected = alone(some_jobs(JOBS))
    address, workers, _ = cluster
    killed = []

    def kill(count):
        if count == 3:
            workers[0].send_signal(signal.SIGKILL)
            killed.append(workers[0].wait(timeout=20))

    with Workers("dask", address=address) as pool:
        results = collect(some_jobs(JOBS), pool, kill)
        assert len(results) == JOBS
        assert dict(results) == expected  # bit for bit what this process gives
        assert killed == [-signal.SIGKILL]
        with pytest.raises(ShapeError, match="branching 3"):
            collect([impossible_job()], pool)
    assert workers[1].poll() is None  # the user's cluster lives on


ABANDONED = """
import os, signal, sys
from runner_cases import collect, some_jobs
from dendritree.errors import DendritreeError
from dendritree_lab.studies.engine.runner import Workers

def kill(count):
    if count == 2:
        os.kill(int(sys.argv[2]), signal.SIGKILL)

try:
    with Workers("dask", address=sys.argv[1]) as pool:
        collect(some_jobs(14), pool, kill)
except DendritreeError as error:
    print(f"error: {error}")
"""


def test_a_cluster_that_is_gone_is_an_error_and_not_waited_for_forever(cluster, real_data):
    """As when the time of a batch job is over: the scheduler dies in mid-run."""
    real_data("mnist")
    address, _, scheduler = cluster
    done = subprocess.run(
        [sys.executable, "-c", ABANDONED, address, str(scheduler.pid)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(HELPERS), *filter(None, [os.environ.get("PYTHONPATH")])]),
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 1), done.stderr
    assert done.stdout.startswith("error: ")


def closed_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.parametrize("form", ["tcp://127.0.0.1:{port}", "nowhere://127.0.0.1"])
def test_an_address_without_a_scheduler_is_rejected_in_one_line(form):
    address = form.format(port=closed_port())
    with (
        Workers("dask", address=address) as pool,
        pytest.raises(DendritreeError, match=f"responds at {address}") as error,
    ):
        collect(some_jobs(1), pool)
    assert len(str(error.value).splitlines()) == 1
