"""`dendritree compare` as a user runs it: Ctrl-C, a kill, a time limit, and finally a report."""

import pytest
from command_runs import count_trials, interrupt_when
from compare_cases import trials_in

from dendritree_lab.studies.engine.runner import Workers
from dendritree_lab.studies.engine.store import STORE_FILE
from dendritree_lab.studies.fair import ComparisonPlan, compare

FAMILIES = ["sparse", "tree"]
RULE = {"trials": 2, "seeds": 2, "steps": 10}
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


def test_interrupted_and_resumed_it_ends_as_in_one_go(expected, tmp_path, call):
    run = tmp_path / "run"
    command = (*SMALL, "--run", run, "--backend", "here")
    with interrupt_when(lambda: count_trials(run) >= 3):
        status, out, errors = call(*command)
    assert (status, out) == (130, "")
    assert f"stopped; {run} keeps the finished work" in errors.splitlines()[-1]
    assert count_trials(run) < TRIALS
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
    assert (status, out, errors.count("\n")) == (2, "", 1)
    assert "trials" in errors
    assert trials_in(run) == expected


def test_out_of_time_is_not_an_error_and_a_report_can_be_had_of_what_is_there(tmp_path, call):
    run = tmp_path / "run"
    status, out, errors = call(*SMALL, "--run", run, "--backend", "here", "--hours", "1e-9")
    assert status == 0
    assert errors.splitlines()[-1].startswith(f"dendritree: time limit reached; {run} keeps the finished work")
    assert "comparison.html" in out
    assert count_trials(run) <= 1
    (run / "comparison.html").unlink()
    before = (run / STORE_FILE).read_bytes()
    assert call("report", run)[0] == 0
    assert (run / "comparison.html").stat().st_size > 0
    assert (run / STORE_FILE).read_bytes() == before
    for option in ("--all", "--weights", "--out=elsewhere"):
        status, out, errors = call("report", run, option)
        assert (status, out, errors.count("\n")) == (2, "", 1)
        assert "--export" in errors
