"""`dendritree tune` as people run it: to the end, stopped and resumed, and with other people's files in its way."""

import re
from pathlib import Path

from command_runs import interrupt_when

import dendritree
from dendritree.errors import DendritreeError
from dendritree_lab.studies.engine.store import RunStore

SMALL = ["tune", "digits:128", "--families", "linear", "sparse", "--budget", "700", "--steps", "2", "--backend", "here"]


def done(folder):
    """How many trials a search has."""
    try:
        with RunStore.open_for_reading(folder) as store:
            return len(store)
    except DendritreeError:
        return 0


def test_a_search_says_what_to_use_and_leaves_model_and_report(tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    status, out, progress = call(*SMALL, "--trials", "2")
    assert status == 0
    assert re.search(r"^Use .* parameters \(budget: 700\): accuracy 0\.\d{4} \(95% interval .*\) on 300 test", out)
    assert "report: tuned/report.html" in out
    assert re.search(r"^digits:128, 700 parameters, finalists: 2 trials, \d+", progress, re.MULTILINE)
    assert sum(p.numel() for p in dendritree.load("tuned/model").parameters()) <= 700
    names = {path.name for path in Path("tuned").iterdir()}
    assert names == {"csv", "inputs.json", "model", "report.html", "report.md", "search"}


def test_ctrl_c_ends_in_a_line_and_the_same_command_resumes(tmp_path, call):
    folder = tmp_path / "out"
    with interrupt_when(lambda: done(folder / "search") >= 2):
        status, out, errors = call(*SMALL, "--trials", 400, "--out", folder)
    assert (status, out) == (130, ""), errors
    assert errors.splitlines()[-1].endswith("keeps the finished work, and the same command resumes it")
    assert not (folder / "model").exists()
    before = done(folder / "search")
    with interrupt_when(lambda: done(folder / "search") >= before + 2):
        assert call(*SMALL, "--trials", 400, "--out", folder)[0] == 130


def test_another_search_and_files_of_others_are_noticed_before_any_training(tmp_path, call):
    assert call(*SMALL, "--trials", 1, "--out", tmp_path / "out")[0] == 0
    status, out, error = call(*SMALL, "--trials", 2, "--out", tmp_path / "out")
    assert (status, out) == (2, "")
    assert "trials changed from 1 to 2" in error
    (tmp_path / "mine" / "model").mkdir(parents=True)
    (tmp_path / "mine" / "model" / "letter.txt").touch()
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "report.html").write_text("mine")
    for folder in ("mine", "page"):
        status, out, error = call(*SMALL, "--trials", 1, "--out", tmp_path / folder)
        assert (status, out) == (2, "")
        assert ", search" not in error
