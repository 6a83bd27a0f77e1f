"""`dendritree tune` as people run it: in one process, in two on one study, stopped and resumed."""

import re
import sqlite3
import subprocess
from pathlib import Path

import pytest
from command_runs import command_line, environment, interrupt_when

import dendritree

SMALL = ["tune", "digits", "--budget", "1k", "--steps", "20"]


def start(*arguments, cwd):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command_line(*SMALL, *arguments), env=environment(), cwd=cwd, **pipes)


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
    counts = states(database)
    return counts.get("COMPLETE", 0) + counts.get("PRUNED", 0)


def test_a_search_says_what_it_found_and_leaves_model_report_and_study(tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    status, out, progress = call(*SMALL, "--trials", "3")
    assert status == 0
    assert re.search(r"accuracy 0\.\d{4} on the test examples, which were not used before", out)
    assert "report: tuned/report.html" in out
    *trials, last = [line for line in progress.splitlines() if "first trial" not in line]
    assert [line.partition(":")[0] for line in trials] == [f"trials {number} of 3" for number in (1, 2, 3)]
    assert "; best accuracy 0." in trials[-1]
    assert re.fullmatch(r"final training: \d+ epochs, \d+ s", last)
    assert sum(p.numel() for p in dendritree.load("tuned/model").parameters()) <= 1000
    page = Path("tuned/report.html").read_text(encoding="utf-8")
    assert "Tuned within 1,000 parameters on digits" in page
    assert "Too few completed trials to tell." in page
    names = {path.name for path in Path("tuned").iterdir()}
    assert names >= {"csv", "inputs.json", "model", "report.html", "report.md", "study.db"}


@pytest.mark.slow
def test_two_processes_share_one_study(tmp_path):
    database = tmp_path / "shared.db"
    options = ("--trials", 8, "--storage", f"sqlite:///{database}", "--study", "both")
    processes = [start(*options, "--out", tmp_path / name, cwd=tmp_path) for name in ("one", "two")]
    ends = [process.communicate(timeout=400) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], ends
    lines = [
        [line for line in error.splitlines() if re.match(r"trials \d+ of \d+: (?!first)", line)] for _, error in ends
    ]
    assert 8 <= len(lines[0]) + len(lines[1]) == done(database) <= 9  # the other may be busy with one more
    assert min(map(len, lines)) >= 1
    assert set(states(database)) <= {"COMPLETE", "PRUNED"}
    assert all((tmp_path / name / "model" / "config.json").is_file() for name in ("one", "two"))


def test_ctrl_c_ends_in_a_line_and_the_same_command_resumes(tmp_path, call):
    folder, database = tmp_path / "out", tmp_path / "out" / "study.db"
    with interrupt_when(lambda: done(database) >= 2):
        status, out, errors = call(*SMALL, "--trials", 400, "--out", folder)
    assert (status, out) == (130, ""), errors
    assert errors.splitlines()[-1].startswith("dendritree: stopped; the study keeps the finished work")
    assert not (folder / "model").exists()
    assert states(database).get("RUNNING", 0) == 0
    before = done(database)
    assert call(*SMALL, "--trials", before + 1, "--out", folder)[0] == 0
    assert done(database) == before + 1


def test_another_study_and_files_of_others_are_noticed_before_any_training(tmp_path, call):
    assert call(*SMALL, "--trials", 1, "--out", tmp_path / "out")[0] == 0
    before = (tmp_path / "out" / "model" / "config.json").read_bytes()
    status, out, error = call(*SMALL, "--trials", 1, "--out", tmp_path / "out", "--study", "other")
    assert (status, out) == (2, "")
    assert "model of another one" in error
    assert (tmp_path / "out" / "model" / "config.json").read_bytes() == before
    (tmp_path / "mine" / "model").mkdir(parents=True)
    (tmp_path / "mine" / "model" / "letter.txt").touch()
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "report.html").write_text("mine")
    for folder in ("mine", "page"):
        status, out, error = call(*SMALL, "--trials", 1, "--out", tmp_path / folder)
        assert (status, out) == (2, "")
        assert "trials" not in error
