"""`dendritree compare` as a person meets it: mistakes, Ctrl-C, a kill, out of time, and at last a report."""

import os
import re
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from command_runs import MARK, CommandRun, trials_in, wait_until
from compare_cases import records_in

import dendritree
from dendritree.cli import main
from dendritree.studies.engine.runner import Workers
from dendritree.studies.engine.store import STORE_FILE, RunStore
from dendritree.studies.fair import ComparisonPlan, compare

ROOT = Path(dendritree.__file__).parents[1]
FAMILIES = ["sparse", "tree"]
RULE = {"trials": 4, "seeds": 3, "steps": 15}
TRIALS = 2 * (4 + 3)
OPTIONS = [word for name, value in RULE.items() for word in (f"--{name.replace('_', '-')}", str(value))]
SMALL = ["digits:128", "--budgets", "500", "--families", *FAMILIES, *OPTIONS]


def call(arguments, capsys):
    """Exit status, standard output and standard error of `main`."""
    try:
        status = main([str(argument) for argument in arguments])
    except SystemExit as end:
        status = end.code or 0
    return status, *capsys.readouterr()


class CompareRun(CommandRun):
    """A running `dendritree compare`, the leader of a process group; a context manager that leaves none behind."""

    def __init__(self, folder, *arguments):
        self.folder, self.mark = folder, uuid.uuid4().hex
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "dendritree", "compare", *SMALL, "--run", str(folder), *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT), MARK: self.mark},
            cwd=folder.parent,
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The trials of the same comparison in one go, in this process."""
    folder = tmp_path_factory.mktemp("expected") / "run"
    plan = ComparisonPlan.make(["digits:128"], budgets=[500], families=FAMILIES, **RULE, test_steps=60)
    assert compare(folder, plan, workers=Workers("here"))
    return records_in(folder)


# ----------------------------------------------------------------------------------------------------------- mistakes

MISTAKES = [
    ("digts", r"data set must be one of .*: got 'digts'; did you mean 'digits'\?"),
    ("mnist-4-9", "data set must be one of .*: got 'mnist-4-9'"),
    ("digits:x", "a task must be a data set, or one and a number of examples, as mnist:128: got 'digits:x'"),
    (
        "digits: --families linear --trials 1 --seeds 1 --steps 1",
        "a task must be a data set, or one and a number of examples, as mnist:128: got 'digits:'",
    ),
    ("digits:0", "examples must be an integer of at least 1: got 0"),
    ("digits:5000 --families linear", "1 to the 1197 training examples: got 5000"),
    ("digits digits", "a comparison must name each data set and budget once"),
    ("digits --budgets 9q", "budget must be a whole number of parameters, as 9000, 9k or 1.5M: got '9q'"),
    ("digits --budgets -5", "-5"),
    ("digits --budgets 0", "budget must be an integer of at least 1: got 0"),
    ("digits --budgets 2k 2000", "a comparison must name each data set and budget once"),
    ("digits --families dense --budgets 10", "a budget must leave room for two neurons: 10 parameters do not"),
    ("digits --budgets", "--budgets"),
    ("digits --families oak", "family must be one of 'tree', 'sparse', 'dense', 'linear', 'ktree', .*: got 'oak'"),
    ("digits --families tre", r"family must be one of .*: got 'tre'; did you mean 'tree'\?"),
    ("digits --trials 0", "trials must be an integer of at least 1: got 0"),
    ("digits --seeds -1", "seeds must be an integer of at least 1: got -1"),
    ("digits --steps many", "--steps.*'many'"),
    ("digits --steps 0", "steps must be an integer of at least 1: got 0"),
    ("digits --hours 0", "hours must be a positive number: got 0.0"),
    ("digits --hours -1", "hours must be a positive number: got -1.0"),
    ("digits --hours nan", "hours must be a positive number: got nan"),
    ("digits --hours soon", "--hours.*'soon'"),
    ("digits --workers 0", "workers must be an integer of at least 1: got 0"),
    ("digits --backend loki", r"backend must be one of .*got 'loki'; did you mean 'loky'\?"),
    ("digits --address tcp://127.0.0.1:1", "an address is for backend 'dask': got 'loky'"),
    ("mnist --families linear --data-dir no/such", "data_dir must name a folder: got '.*no/such'"),
    ("digits --treees", "--treees"),
]


@pytest.mark.parametrize(("line", "message"), MISTAKES, ids=[line for line, _ in MISTAKES])
def test_a_mistake_gives_status_2_one_line_and_no_folder(line, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    backend = [] if "--backend" in line or "--address" in line else ["--backend", "here"]  # what begins, begins here
    status, out, errors = call(["compare", *line.split(), *backend], capsys)
    assert (status, out) == (2, "")
    assert re.search(message, errors)
    assert errors.startswith("dendritree")
    assert len(errors.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_another_run_is_refused_and_left_as_it_is(tmp_path, capsys):
    RunStore.create_or_open(tmp_path / "run", {"protocols": {}}).close()
    before = (tmp_path / "run" / STORE_FILE).read_bytes()
    status, out, errors = call(["compare", *SMALL, "--run", tmp_path / "run", "--backend", "here"], capsys)
    assert (status, out) == (2, "")
    assert len(errors.splitlines()) == 1
    assert re.search(f"{re.escape(str(tmp_path / 'run'))} differs in", errors)
    assert (tmp_path / "run" / STORE_FILE).read_bytes() == before


# ------------------------------------------------------------------------------------------------ a run, from outside


@pytest.mark.slow
def test_killed_interrupted_and_gone_on_it_ends_as_in_one_go(expected, tmp_path, capsys):
    """First with two workers, then with none: the trials are those of this process, bit for bit."""
    run = tmp_path / "run"
    with CompareRun(run, "--workers", "2") as first:
        assert first.reaches(3)
        os.kill(first.process.pid, signal.SIGKILL)
        first.process.wait()
        assert wait_until(lambda: not first.processes(), 30)  # the workers too
    kept = records_in(run)
    assert 3 <= len(kept) < TRIALS
    assert all(record in expected for record in kept)

    with CompareRun(run, "--backend", "here") as second:
        assert second.reaches(len(kept) + 1)
        second.interrupt()
        status, out, errors = second.finish(60)
    assert (status, out) == (130, "")
    *steps, last = errors.splitlines()
    assert last == f"dendritree: stopped; {run} keeps what is done, and the same command goes on"
    assert all(re.fullmatch(r"digits:128, .*, (search|test): \d+ trials, \d+ s", step) for step in steps)
    kept = records_in(run)
    assert all(record in expected for record in kept)  # a model whose training was stopped is not among them
    assert len(kept) < TRIALS

    status, out, errors = call(["compare", *SMALL, "--run", run, "--backend", "here"], capsys)
    assert status == 0, errors
    assert records_in(run) == expected
    assert str(run / "comparison.html") in out
    for name in ("comparison.html", "comparison.md"):
        assert (run / name).stat().st_size > 0

    status, out, errors = call(["compare", *SMALL, "--trials", "5", "--run", run, "--backend", "here"], capsys)
    assert (status, out) == (2, "")
    assert re.fullmatch(r"dendritree: a run goes on as it was begun: .* differs in trials: 4 -> 5\n", errors)
    assert records_in(run) == expected


def test_out_of_time_is_said_and_is_no_error_and_a_report_can_be_had_of_what_is_there(tmp_path, capsys):
    run = tmp_path / "run"
    status, out, errors = call(["compare", *SMALL, "--run", run, "--backend", "here", "--hours", "1e-9"], capsys)
    assert status == 0
    assert errors.splitlines()[-1] == f"dendritree: out of time; {run} keeps what is done"
    assert "comparison.html" in out
    assert trials_in(run) <= 1
    (run / "comparison.html").unlink()
    before = (run / STORE_FILE).read_bytes()
    status, out, errors = call(["report", run], capsys)
    assert (status, errors) == (0, "")
    assert (run / "comparison.html").stat().st_size > 0
    assert (run / STORE_FILE).read_bytes() == before
