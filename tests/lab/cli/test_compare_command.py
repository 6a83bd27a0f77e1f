"""`dendritree compare` as a user runs it: Ctrl-C, a kill, a time limit, and finally a report."""

import re

import pytest
from command_runs import CommandRun, count_trials, interrupt_when
from compare_cases import trials_in
from effort import thorough

from dendritree_lab.studies.engine.runner import Workers
from dendritree_lab.studies.engine.store import STORE_FILE, RunStore
from dendritree_lab.studies.fair import ComparisonPlan, compare

FAMILIES = ["sparse", "tree"]
RULE = thorough({"trials": 2, "seeds": 2, "steps": 10}, {"trials": 4, "seeds": 3, "steps": 15})
TRIALS = 2 * (RULE["trials"] + RULE["seeds"])
OPTIONS = [word for name, value in RULE.items() for word in (f"--{name}", str(value))]
SMALL = ["compare", "digits:128", "--budgets", "500", "--families", *FAMILIES, *OPTIONS]


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The trials of the same comparison in one go, in this process."""
    folder = tmp_path_factory.mktemp("expected") / "run"
    plan = ComparisonPlan.make(["digits:128"], budgets=[500], families=FAMILIES, **RULE, test_steps=4 * RULE["steps"])
    assert compare(folder, plan, workers=Workers("here"))
    return trials_in(folder)


def assert_stopped(run, status, out, errors):
    """Check what an interrupted comparison says and that it is not done."""
    *steps, last = errors.splitlines()
    assert (status, out) == (130, "")
    assert last == f"dendritree: stopped; {run} keeps the finished work, and the same command resumes it"
    result = r"digits:128, .*, (search|test)(: \d+ trials, \d+ s| \d+ of \d+: \w+, validation accuracy \d\.\d+)"
    assert all(re.fullmatch(result, step) for step in steps)
    assert count_trials(run) < TRIALS


def test_the_folder_of_another_run_is_rejected_and_left_as_it_is(tmp_path, call):
    RunStore.create_or_open(tmp_path / "run", {"protocols": {}}).close()
    before = (tmp_path / "run" / STORE_FILE).read_bytes()
    status, out, errors = call(*SMALL, "--run", tmp_path / "run", "--backend", "here")
    assert (status, out) == (2, "")
    assert len(errors.splitlines()) == 1
    assert re.search(f"{re.escape(str(tmp_path / 'run'))} differs in", errors)
    assert (tmp_path / "run" / STORE_FILE).read_bytes() == before


def test_interrupted_and_resumed_it_ends_as_in_one_go(expected, tmp_path, call):
    run = tmp_path / "run"
    command = (*SMALL, "--run", run, "--backend", "here")
    with interrupt_when(lambda: count_trials(run) >= 3):
        assert_stopped(run, *call(*command))
    kept = trials_in(run)
    assert len(kept) >= 3
    assert all(record in expected for record in kept)  # a model whose training was stopped is not among them

    status, out, errors = call(*command)
    assert status == 0, errors
    assert trials_in(run) == expected
    assert str(run / "comparison.html") in out
    for name in ("comparison.html", "comparison.md"):
        assert (run / name).stat().st_size > 0

    status, out, errors = call(*command, "--trials", RULE["trials"] + 1)
    assert (status, out) == (2, "")
    assert re.fullmatch(
        "dendritree: a run resumes with the settings it was started with: .* differs in trials: "
        rf"{RULE['trials']} -> {RULE['trials'] + 1}\n",
        errors,
    )
    assert trials_in(run) == expected


@pytest.mark.slow
def test_processes_killed_and_interrupted_keep_the_trials_of_one_go(expected, tmp_path):
    """First with two workers, then with none: the trials are those of this process, bit for bit."""
    run = tmp_path / "run"
    with CommandRun(run, *SMALL, "--workers", "2") as first:
        assert first.reaches(3)
        assert first.kill()  # the workers too
    kept = trials_in(run)
    assert 3 <= len(kept) < TRIALS
    assert all(record in expected for record in kept)

    with CommandRun(run, *SMALL, "--backend", "here") as second:
        assert second.reaches(len(kept) + 1)
        assert_stopped(run, *second.interrupt())
    assert all(record in expected for record in trials_in(run))

    with CommandRun(run, *SMALL, "--workers", "2") as last:
        assert last.finish()[0] == 0
    assert trials_in(run) == expected


def test_out_of_time_is_said_and_is_no_error_and_a_report_can_be_had_of_what_is_there(tmp_path, call):
    run = tmp_path / "run"
    status, out, errors = call(*SMALL, "--run", run, "--backend", "here", "--hours", "1e-9")
    assert status == 0
    assert (
        errors.splitlines()[-1]
        == f"dendritree: out of time; {run} keeps the finished work, and the same command resumes it"
    )
    assert "comparison.html" in out
    assert count_trials(run) <= 1
    (run / "comparison.html").unlink()
    before = (run / STORE_FILE).read_bytes()
    status, out, errors = call("report", run)
    assert (status, errors) == (0, "")
    assert (run / "comparison.html").stat().st_size > 0
    assert (run / STORE_FILE).read_bytes() == before
    for option in ("--all", "--weights", "--out=elsewhere"):
        status, out, errors = call("report", run, option)
        assert (status, out) == (2, "")
        assert errors == f"dendritree: the report of a comparison takes only --export: {run} is a comparison\n"
