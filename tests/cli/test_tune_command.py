"""`dendritree tune` as people run it: in one process, in two on one study, stopped and gone on with."""

import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

import dendritree
from dendritree.cli import main

pytest.importorskip("optuna")
ROOT = Path(__file__).parents[2]
SMALL = ["tune", "digits", "--budget", "1k", "--steps", "20"]


def start(*arguments, cwd):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "error", "-m", "dendritree", *SMALL, *map(str, arguments)]
    return subprocess.Popen(
        command, env=environment, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def states(database):
    """How many trials the study has in each state, read without Optuna; none while there is no file."""
    if not database.exists():
        return {}
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=60)
    try:
        return dict(connection.execute("SELECT state, COUNT(*) FROM trials GROUP BY state"))
    except sqlite3.OperationalError:
        return {}
    finally:
        connection.close()


def done(database):
    found = states(database)
    return found.get("COMPLETE", 0) + found.get("PRUNED", 0)


def test_a_search_says_what_it_found_and_leaves_model_report_and_study(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([*SMALL, "--trials", "3"]) == 0
    out, progress = capsys.readouterr()
    assert re.search(r"accuracy 0\.\d{4} on the test examples, which was not looked at before", out)
    assert "report: tuned/report.html" in out
    assert [line.partition(":")[0] for line in progress.splitlines()] == ["1 of 3", "2 of 3", "3 of 3"]
    assert sum(p.numel() for p in dendritree.load("tuned/model").parameters()) <= 1000
    page = Path("tuned/report.html").read_text(encoding="utf-8")
    assert "Tuned within 1,000 parameters on digits" in page
    assert "Too few whole trials to tell." in page
    names = {path.name for path in Path("tuned").iterdir()}
    assert names == {"csv", "model", "report.html", "report.md", "study.db"}


@pytest.mark.slow
def test_two_processes_share_one_study(tmp_path):
    database = tmp_path / "shared.db"
    options = ("--trials", 8, "--storage", f"sqlite:///{database}", "--study", "both")
    processes = [start(*options, "--out", tmp_path / name, cwd=tmp_path) for name in ("one", "two")]
    ends = [process.communicate(timeout=400) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], ends
    lines = [[line for line in error.splitlines() if " of " in line] for _, error in ends]
    assert 8 <= len(lines[0]) + len(lines[1]) == done(database) <= 9  # the other may be busy with one more
    assert min(map(len, lines)) >= 1
    assert set(states(database)) <= {"COMPLETE", "PRUNED"}
    assert all((tmp_path / name / "model" / "config.json").is_file() for name in ("one", "two"))


def test_ctrl_c_ends_in_a_line_and_the_same_command_goes_on(tmp_path):
    database = tmp_path / "out" / "study.db"
    process = start("--trials", 400, "--out", tmp_path / "out", cwd=tmp_path)
    end = time.monotonic() + 300
    while done(database) < 2 and process.poll() is None and time.monotonic() < end:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=120)
    assert process.returncode == 130, error
    assert out == ""
    assert error.splitlines()[-1] == "dendritree: stopped; what is done is kept, and the same command goes on"
    assert "Traceback" not in error
    assert not (tmp_path / "out" / "model").exists()
    before = done(database)
    assert before >= 2
    assert states(database).get("RUNNING", 0) == 0
    assert main([*SMALL, "--trials", str(before + 1), "--out", str(tmp_path / "out")]) == 0
    assert done(database) == before + 1


MISTAKES = [
    ("tune digits", "--budget"),
    ("tune digit --budget 1k", "data set must be one of .*: got 'digit'; did you mean 'digits'"),
    ("tune digits --budget many", "budget must be a whole number of parameters.*'many'"),
    ("tune digits --budget 20", "budget must leave room for two neurons"),
    ("tune digits --budget 1k --trials 0", "trials must be an integer of at least 1: got 0"),
    ("tune digits --budget 1k --storage nowhere", "a database that Optuna can open: got 'nowhere'"),
    ("tune digits:5000 --budget 1k", "from 1 to the 1197 training examples: got 5000"),
]


@pytest.mark.parametrize(("command", "message"), MISTAKES, ids=[command for command, _ in MISTAKES])
def test_a_mistake_is_a_line_or_two_and_leaves_nothing(command, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    try:
        status = main(command.split())
    except SystemExit as end:
        status = end.code
    out, error = capsys.readouterr()
    assert (status, out) == (2, "")
    assert re.search(message, error)
    assert 1 <= len(error.splitlines()) <= 2
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert left == []


@pytest.mark.parametrize("name", ["tune", "export"])
def test_the_help_fits_a_small_terminal(name, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([name, "--help"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
