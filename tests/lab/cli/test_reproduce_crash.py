"""The real command, killed at several moments and resumed: the store and the tables are those of an undisturbed run."""

import dataclasses
import random
import sqlite3
import time

import pytest
from command_runs import CommandRun, wait_until
from dendritree_lab.studies.paper.report import report_of_run
from small_paper import TRIALS, small_tables

from dendritree_lab.studies.engine.runner import Workers
from dendritree_lab.studies.engine.store import STORE_FILE, RunStore
from dendritree_lab.studies.paper.reproduction import RunPlan, reproduce

pytestmark = pytest.mark.slow

TIMED = {"machine.csv", "timing.csv", "missing.csv"}
"""Tables that say when and how long, or what the paper's own plan lacks."""


@pytest.fixture(scope="module")
def quiet(real_data, tmp_path_factory):
    """The folder of an undisturbed run, in this process."""
    real_data("mnist")
    folder = tmp_path_factory.mktemp("quiet")
    specs = small_tables(folder / "specs")
    reproduce(folder / "run", RunPlan.make(specs=specs), workers=Workers("here"))
    return folder / "run"


def contents(folder):
    with RunStore.open_for_reading(folder) as store:
        return [dataclasses.replace(trial, seconds=0.0) for trial in store.trials(with_weights=True)]


def tables(folder):
    files = sorted(path for path in (folder / "csv").glob("*.csv") if path.name not in TIMED)
    return {path.name: path.read_text(encoding="utf-8") for path in files}


def test_killed_and_resumed_again_and_again_a_run_is_that_of_a_quiet_one(installed, quiet, tmp_path):
    run, moments = tmp_path / "run", random.Random(4)
    for stored in (None, 6, 20, 33):  # the first one is killed as soon as there is a file, while workers start
        with CommandRun(run, "reproduce", root=installed) as killed:
            if stored is None:
                assert wait_until((run / STORE_FILE).exists, 60)
            else:
                assert killed.reaches(stored)
            time.sleep(moments.uniform(0, 0.3))
            assert killed.process.poll() is None
            assert killed.kill(), "workers outlive their parent"
    with CommandRun(run, "reproduce", root=installed) as last:
        status, out, errors = last.finish()
    assert status == 0, errors
    connection = sqlite3.connect(run / STORE_FILE)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert connection.execute("SELECT count(*), count(DISTINCT trial) FROM epoch").fetchone() == (100 * TRIALS, TRIALS)
    connection.close()
    assert contents(run) == contents(quiet)  # bit for bit, weights too
    report_of_run(quiet)
    report_of_run(run)
    assert tables(run) == tables(quiet)
    assert len(tables(run)) >= 6

    lines = errors.splitlines()  # no terminal: a line per table
    assert [line.split(" trials, ")[0] for line in lines] == ["binary-dendritic: 35", "binary-mlp: 12"]
    assert str(run / "report.html") in out
