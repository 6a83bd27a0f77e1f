"""`dendritree reproduce` and `dendritree report` as a user runs them."""

import dataclasses
import re
import shutil
import sqlite3

import pytest
from command_runs import CommandRun, count_trials, run_process, wait_until
from small_paper import CONTROLS, TREES, TRIALS, small_tables, write_specs

from dendritree_lab.studies.engine.runner import Workers
from dendritree_lab.studies.engine.store import STORE_FILE, RunStore
from dendritree_lab.studies.paper.reproduction import RunPlan, reproduce

ROWS = 3
"""Of `finished`."""


@pytest.fixture(scope="module")
def finished(real_data, tmp_path_factory):
    """A run of one trial per row of the small paper, with one dropout rate."""
    real_data("mnist")
    folder = tmp_path_factory.mktemp("finished")
    texts = [re.sub(r"dropouts = .*", "dropouts = [0.4]", text) for text in (TREES, CONTROLS)]
    specs = write_specs(folder / "specs", *texts)
    reproduce(folder / "run", RunPlan.make(specs=specs, trials=1), workers=Workers("here"))
    return folder / "run"


@pytest.mark.usefixtures("bare_machine")
def test_without_data_nothing_is_run_and_one_message_says_what_was_tried(call, tmp_path, monkeypatch):
    for variable in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(variable, "http://127.0.0.1:1")  # nothing listens there: the same as no network
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("NO_PROXY", "")
    status, out, errors = call("reproduce", "binary", "--backend", "here", "--run", tmp_path / "run")
    assert status == 2
    assert out == ""
    assert "Traceback" not in errors
    assert "mnist" in errors
    assert count_trials(tmp_path / "run") == 0


# ------------------------------------------------------------------------------------------------------------- report


def test_report_is_rebuilt_without_training(finished, tmp_path, call):
    run = shutil.copytree(finished, tmp_path / "run")
    before = (run / STORE_FILE).read_bytes()
    status, out, errors = call("report", run, "--out", tmp_path / "out", "--export", "csv", "--weights")
    assert (status, errors) == (0, "")
    assert (run / STORE_FILE).read_bytes() == before
    assert sorted(path.name for path in run.iterdir()) == sorted(path.name for path in finished.iterdir())
    assert str(tmp_path / "out" / "report.html") in out
    for name in ("report.html", "report.md", "csv/paper.csv", "data/trials.csv", "data/history.csv"):
        assert (tmp_path / "out" / name).stat().st_size > 0
    assert len((tmp_path / "out" / "data" / "trials.csv").read_text().splitlines()) == 1 + ROWS
    assert len(list((tmp_path / "out" / "models").rglob("*.safetensors"))) == ROWS
    for text in (out, (tmp_path / "out" / "report.md").read_text(encoding="utf-8")):
        assert "dendritic b=32" in text
        assert "MLP h=2" in text
        assert "0.91" in text  # the paper's own figure of b=32


# ------------------------------------------------------------------------------------------------ a run, from outside


@pytest.mark.slow
def test_ctrl_c_a_second_process_and_another_draw(installed, tmp_path):
    run = tmp_path / "run"
    with CommandRun(run, "reproduce", root=installed) as first:
        assert wait_until((run / STORE_FILE).exists, 60)
        second = run_process("reproduce", "--run", run, root=installed)
        assert (second.returncode, second.stdout, second.stderr.count("\n")) == (2, "", 1)
        assert first.reaches(4)
        status, out, errors = first.interrupt()
        assert (status, out) == (130, "")
        assert f"dendritree: stopped; {run} keeps the finished work" in errors
        assert wait_until(lambda: not first.processes(), 15)
    kept = count_trials(run)
    assert 4 <= kept < TRIALS
    rejected = run_process("reproduce", "--run", run, "--draw", "once", root=installed)
    assert (rejected.returncode, rejected.stderr.count("\n")) == (2, 1)
    assert "draw" in rejected.stderr
    assert count_trials(run) == kept


def contents(folder):
    with RunStore.open_for_reading(folder) as store:
        return [dataclasses.replace(trial, seconds=0.0) for trial in store.trials(with_weights=True)]


@pytest.mark.slow
def test_killed_and_resumed_a_run_is_that_of_a_quiet_one(real_data, installed, tmp_path):
    real_data("mnist")
    run, quiet = tmp_path / "run", tmp_path / "quiet"
    reproduce(quiet, RunPlan.make(specs=small_tables(tmp_path / "specs")), workers=Workers("here"))
    for stored in (0, 6, 33):  # the first one is killed as soon as there is a file, while workers start
        with CommandRun(run, "reproduce", root=installed) as killed:
            assert wait_until((run / STORE_FILE).exists, 60)
            assert killed.reaches(stored)
            assert killed.kill(), "workers outlive their parent"
    with CommandRun(run, "reproduce", root=installed) as last:
        status, out, errors = last.finish()
    assert status == 0, errors
    connection = sqlite3.connect(run / STORE_FILE)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    assert contents(run) == contents(quiet)  # bit for bit, weights too
    assert errors.splitlines()[-1].startswith("binary-mlp: ")  # no terminal: a line per table that was resumed
    assert str(run / "report.html") in out
