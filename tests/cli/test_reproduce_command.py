"""`dendritree reproduce` and `dendritree report` as a person meets them."""

import os
import pty
import re
import select
import shutil
import subprocess
import time

import pytest
from command_runs import CommandRun, trials_in, wait_until
from small_paper import TRIALS, command, environment, install, small_tables

from dendritree.cli import COMMANDS, main
from dendritree.studies.engine.runner import Workers
from dendritree.studies.engine.store import STORE_FILE, RunStore
from dendritree.studies.paper.reproduce import RunPlan, reproduce


@pytest.fixture(scope="module")
def installed(real_data, tmp_path_factory):
    real_data("mnist")
    return install(tmp_path_factory.mktemp("installed"))


@pytest.fixture(scope="module")
def finished(real_data, tmp_path_factory):
    """A run of one trial of each row, of the small paper."""
    real_data("mnist")
    folder = tmp_path_factory.mktemp("finished")
    reproduce(folder / "run", RunPlan.make(specs=small_tables(folder / "specs"), trials=1), workers=Workers("here"))
    return folder / "run"


def call(arguments, capsys):
    """Exit status, standard output and standard error of `main`."""
    try:
        status = main([str(argument) for argument in arguments])
    except SystemExit as end:
        status = end.code or 0
    return status, *capsys.readouterr()


# --------------------------------------------------------------------------------------------------------------- help


@pytest.mark.parametrize("arguments", [[], *([name] for name in COMMANDS)], ids=lambda words: " ".join(words) or "none")
def test_help_fits_a_screen_of_80_by_24_and_has_an_example(arguments, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    status, out, errors = call([*arguments, "--help"], capsys)
    lines = out.splitlines()
    assert (status, errors) == (0, "")
    assert max(map(len, lines)) <= 80
    assert any(line.startswith(f"  dendritree {' '.join(arguments)}".rstrip()) for line in lines)
    assert len(lines) <= 24


# ----------------------------------------------------------------------------------------------------------- mistakes

MISTAKES = [
    ("reproduce bianry", r"a table or task must be one of .*'bianry'; did you mean 'binary'\?"),
    ("reproduce --protocol papr", r"protocol must be one of 'paper', 'full': got 'papr'; did you mean 'paper'\?"),
    ("reproduce --trials 0", "trials must be an integer of at least 1: got 0"),
    ("reproduce --trials many", "--trials.*'many'"),
    ("reproduce --draw twice", "draw must be one of 'per-trial', 'once': got 'twice'"),
    ("reproduce --draw once --protocol full", "draw is for protocol 'paper': 'full' uses all images"),
    ("reproduce --backend loki", r"backend must be one of .*got 'loki'; did you mean 'loky'\?"),
    ("reproduce --address tcp://127.0.0.1:1", "an address is for backend 'dask': got 'loky'"),
    ("report", "RUN"),
    ("report no/such/run", "a run folder must hold trials.sqlite: none in no/such/run"),
    ("report RUN --export xlsx", "csv"),
]


@pytest.mark.parametrize(("line", "message"), MISTAKES, ids=[line for line, _ in MISTAKES])
def test_a_mistake_gives_status_2_a_line_or_two_and_no_folder(line, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, errors = call(line.split(), capsys)
    assert status == 2
    assert out == ""
    assert re.search(message, errors)
    assert 1 <= len(errors.splitlines()) <= 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("bare_machine")
def test_without_data_nothing_is_run_and_one_message_says_what_was_tried(capsys, tmp_path, monkeypatch):
    for variable in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(variable, "http://127.0.0.1:1")  # nobody listens: as good as no network
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("NO_PROXY", "")
    status, out, errors = call(["reproduce", "binary", "--backend", "here", "--run", tmp_path / "run"], capsys)
    assert status == 2
    assert out == ""
    assert "Traceback" not in errors
    assert "mnist" in errors
    assert trials_in(tmp_path / "run") == 0


# ------------------------------------------------------------------------------------------------------------- report


def test_report_is_rebuilt_without_training(finished, tmp_path, capsys):
    run = shutil.copytree(finished, tmp_path / "run")
    before = (run / STORE_FILE).read_bytes()
    status, out, errors = call(["report", run, "--out", tmp_path / "out", "--export", "csv", "--weights"], capsys)
    assert (status, errors) == (0, "")
    assert (run / STORE_FILE).read_bytes() == before
    assert sorted(path.name for path in run.iterdir()) == sorted(path.name for path in finished.iterdir())
    assert str(tmp_path / "out" / "report.html") in out
    for name in ("report.html", "report.md", "csv/paper.csv", "data/trials.csv", "data/history.csv"):
        assert (tmp_path / "out" / name).stat().st_size > 0
    assert len((tmp_path / "out" / "data" / "trials.csv").read_text().splitlines()) == 1 + 7 + 4
    assert len(list((tmp_path / "out" / "models").rglob("*.safetensors"))) == 7 + 4
    for text in (out, (tmp_path / "out" / "report.md").read_text(encoding="utf-8")):
        assert "dendritic b=32" in text
        assert "MLP h=2" in text
        assert "0.91" in text  # the paper's own figure of b=32


def test_report_prints_more_if_asked(finished, tmp_path, capsys):
    _, short, _ = call(["report", finished, "--out", tmp_path], capsys)
    status, long, _ = call(["report", finished, "--out", tmp_path, "--all"], capsys)
    assert status == 0
    assert len(long.splitlines()) > len(short.splitlines())
    assert max(map(len, short.splitlines())) <= 100


def test_report_of_a_run_that_has_no_trial_yet_is_no_crash(tmp_path, capsys):
    with RunStore.create_or_open(tmp_path / "run", {}):
        pass
    status, out, errors = call(["report", tmp_path / "run"], capsys)
    assert status in (0, 2)
    assert len(errors.splitlines()) <= 2
    assert out or errors


# ------------------------------------------------------------------------------------------------ a run, from outside


def watch(descriptor, process, seconds):
    """All that a process writes to a terminal until it ends, without colours."""
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
def test_ctrl_c_second_process_another_draw_and_going_on_with_a_live_bar(installed, tmp_path):
    run = tmp_path / "run"
    with CommandRun(installed, run) as first:
        assert wait_until((run / STORE_FILE).exists, 60)
        second = subprocess.run(
            command("reproduce", "--run", run),
            env=environment(installed),
            cwd=installed,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (second.returncode, second.stdout) == (2, "")
        assert re.fullmatch(
            rf"dendritree: a run folder takes one writer .* process {first.process.pid}\n", second.stderr
        )
        assert first.reaches(4)
        first.interrupt()
        status, out, errors = first.finish(60)
        assert (status, out) == (130, "")
        assert f"dendritree: stopped; {run} keeps what is done" in errors
        assert wait_until(lambda: not first.processes(), 15)
    kept = trials_in(run)
    assert 4 <= kept < TRIALS

    once = command("reproduce", "--run", run, "--draw", "once")
    refused = subprocess.run(
        once, env=environment(installed), cwd=installed, capture_output=True, text=True, timeout=120, check=False
    )
    assert refused.returncode == 2
    assert "protocols.paper.draw" in refused.stderr
    assert len(refused.stderr.splitlines()) <= 2
    assert trials_in(run) == kept

    terminal, side = pty.openpty()
    with CommandRun(installed, run, "--trials", "3", stderr=side, stdin=side) as last:
        os.close(side)
        shown = watch(terminal, last.process, 180)
        status = last.process.wait(60)
        out = last.process.stdout.read()
    os.close(terminal)
    assert status == 0, shown
    assert trials_in(run) >= 7 * 3 + 4 * 3
    assert re.search(r"binary-dendritic\W[^\n]* 21/21 ", shown)
    assert re.search(r"all\W[^\n]* 33/33 \d+\.\d trials/s [\d:]+ to go ", shown)
    totals = [int(done) for done in re.findall(r"all\W[^\n]* (\d+)/33", shown)]
    assert totals == sorted(totals)
    assert totals[0] <= kept  # the bar begins with what was there
    assert max(len(line.split("\r")[-1]) for line in shown.splitlines()) <= 80
    assert "report.html" in out
    assert len(errors.splitlines()) == 1, errors  # of the interrupted run, at last


@pytest.mark.slow
def test_ctrl_c_while_workers_start_is_one_line_too(installed, tmp_path):
    """Workers that are still importing have not been told yet to leave Ctrl-C to their parent."""
    with CommandRun(installed, tmp_path / "run") as run:
        assert wait_until(lambda: len(run.processes()) >= 3, 60)
        time.sleep(0.3)
        run.interrupt()
        status, out, errors = run.finish(60)
        assert (status, out) == (130, "")
        assert wait_until(lambda: not run.processes(), 15)
        assert re.fullmatch(r"dendritree: stopped; .*\n", errors)
