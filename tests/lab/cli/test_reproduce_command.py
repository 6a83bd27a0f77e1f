"""`dendritree reproduce` and `dendritree report` as a user runs them."""

import os
import pty
import re
import select
import shutil
import time

import pytest
from command_runs import CommandRun, count_trials, run_process, wait_until
from small_paper import CONTROLS, TREES, TRIALS, write_specs

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


def test_report_prints_more_if_asked(finished, tmp_path, call):
    _, short, _ = call("report", finished, "--out", tmp_path)
    status, long, _ = call("report", finished, "--out", tmp_path, "--all")
    assert status == 0
    assert len(long.splitlines()) > len(short.splitlines())
    assert max(map(len, short.splitlines())) <= 100


def test_report_of_a_run_that_has_no_trial_yet_is_no_crash(tmp_path, call):
    with RunStore.create_or_open(tmp_path / "run", {}):
        pass
    status, out, errors = call("report", tmp_path / "run")
    assert status in (0, 2)
    assert len(errors.splitlines()) <= 2
    assert out or errors


# ------------------------------------------------------------------------------------------------ a run, from outside


def watch(descriptor, process, seconds):
    """All that a process writes to a terminal until it ends, without colors."""
    seen, end = b"", time.monotonic() + seconds
    while time.monotonic() < end:
        if select.select([descriptor], [], [], 0.2)[0]:
            try:
                seen += os.read(descriptor, 65536)
            except OSError:  # the other side is closed
                break
        elif process.poll() is not None:
            break
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())


@pytest.mark.slow
def test_ctrl_c_second_process_another_draw_and_resuming_with_a_live_bar(installed, tmp_path):
    run = tmp_path / "run"
    with CommandRun(run, "reproduce", root=installed) as first:
        assert wait_until((run / STORE_FILE).exists, 60)
        second = run_process("reproduce", "--run", run, root=installed)
        assert (second.returncode, second.stdout) == (2, "")
        assert re.fullmatch(rf"dendritree: .* takes one writer .* process {first.process.pid}\n", second.stderr)
        assert first.reaches(4)
        status, out, errors = first.interrupt()
        assert (status, out) == (130, "")
        assert f"dendritree: stopped; {run} keeps the finished work" in errors
        assert wait_until(lambda: not first.processes(), 15)
    kept = count_trials(run)
    assert 4 <= kept < TRIALS

    rejected = run_process("reproduce", "--run", run, "--draw", "once", root=installed)
    assert rejected.returncode == 2
    assert "protocols.paper.draw" in rejected.stderr
    assert len(rejected.stderr.splitlines()) <= 2
    assert count_trials(run) == kept

    terminal, side = pty.openpty()
    with CommandRun(run, "reproduce", "--trials", "3", root=installed, stderr=side, stdin=side) as last:
        os.close(side)
        shown = watch(terminal, last.process, 180)
        status = last.process.wait(60)
        out = last.process.stdout.read()
    os.close(terminal)
    assert status == 0, shown
    assert count_trials(run) >= 7 * 3 + 4 * 3
    assert re.search(r"binary-dendritic\W[^\n]* 21/21 ", shown)
    assert re.search(r"all\W[^\n]* 33/33 +\d+\.\d trials/s +[\d:]+ to go ", shown)
    totals = [int(done) for done in re.findall(r"all\W[^\n]* (\d+)/33", shown)]
    assert totals == sorted(totals)
    assert totals[0] <= kept  # the bar begins with what was there
    assert max(len(line.split("\r")[-1]) for line in shown.splitlines()) <= 80
    assert "report.html" in out
    assert len(errors.splitlines()) == 1, errors  # of the interrupted run, at last


@pytest.mark.slow
def test_ctrl_c_while_workers_start_is_one_line_too(installed, tmp_path):
    """Workers that are still importing have not been told yet to leave Ctrl-C to their parent."""
    with CommandRun(tmp_path / "run", "reproduce", root=installed) as run:
        assert wait_until(lambda: len(run.processes()) >= 3, 60)
        time.sleep(0.3)
        status, out, errors = run.interrupt()
        assert (status, out) == (130, "")
        assert wait_until(lambda: not run.processes(), 15)
        assert re.fullmatch(r"dendritree: stopped; .*\n", errors)
