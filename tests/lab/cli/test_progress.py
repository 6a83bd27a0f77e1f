"""What a command shows while it works, on a terminal and elsewhere."""

import io
import re

import pytest

from dendritree_lab.cli.progress import Progress, resumable


class Terminal(io.StringIO):
    def isatty(self):
        return True

    def lines(self):
        """What was shown, without colors and cursor movements."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.getvalue()).replace("\r", "\n").splitlines()


def on_terminal(monkeypatch):
    """Make standard error a terminal of 80 columns; to be called in the test itself, as pytest sets it before that."""
    terminal = Terminal()
    for variable in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stderr", terminal)
    return terminal


def test_elsewhere_a_line_tells_of_every_step_that_is_done(capsys):
    with Progress("models", counted={"final training": "epochs"}) as progress:
        for done in range(4):
            progress("comparing", done, 3)
        progress("training on all rows", 1, 1)
        progress("final training", 20, 20)
    out, errors = capsys.readouterr()
    assert out == ""
    expected = r"comparing: 3 models, \d+ s\ntraining on all rows: \d+ s\nfinal training: 20 epochs, \d+ s\n"
    assert re.fullmatch(expected, errors)


def test_elsewhere_a_note_is_a_line_of_its_own(capsys):
    with Progress() as progress:
        progress("trials", 1, 2, "accuracy 0.9, 850 parameters; best accuracy 0.9")
        progress("trials", 2, 2, "accuracy 0.8, stopped early; best accuracy 0.9")
    assert capsys.readouterr().err.splitlines() == [
        "trials 1 of 2: accuracy 0.9, 850 parameters; best accuracy 0.9",
        "trials 2 of 2: accuracy 0.8, stopped early; best accuracy 0.9",
    ]


@pytest.mark.parametrize("shown", ["lines", "bars"])
def test_a_step_is_done_once_and_again_if_it_grows(shown, capsys, monkeypatch):
    if shown == "bars":
        on_terminal(monkeypatch)
    told = []
    with Progress(on_done=told.append) as progress:
        for what, done, total in [("a", 2, 2), ("b", 0, 1), ("a", 2, 2), ("b", 1, 1), ("b", 1, 3), ("b", 3, 3)]:
            progress(what, done, total)
    assert told == ["a", "b", "b"]
    assert len(capsys.readouterr().err.splitlines()) == (3 if shown == "lines" else 0)


def test_a_terminal_has_a_bar_per_step_and_one_for_all(monkeypatch):
    terminal = on_terminal(monkeypatch)
    with Progress(overall="all") as progress:
        progress("trees", 1, 3)
        progress("controls", 0, 2)
        for done in (2, 3):
            progress("trees", done, 3)
        for done in (1, 2):
            progress("controls", done, 2)
    everything, trees, controls = [line.rstrip() for line in terminal.lines() if line.strip()][-3:]
    assert re.fullmatch(r"trees +━+ 3/3 +\d+\.\d trials/s +[\d:]+ to go +[\d:]+", trees)
    assert re.fullmatch(r"controls +━+ 2/2 +\d+\.\d trials/s +[\d:]+ to go +[\d:]+", controls)
    assert re.fullmatch(r"all +━+ 5/5 +\d+\.\d trials/s +[\d:]+ to go +[\d:]+", everything)
    assert max(map(len, terminal.lines())) <= 80


def test_a_bar_ends_with_the_last_part_of_a_note(monkeypatch):
    terminal = on_terminal(monkeypatch)
    with Progress() as progress:
        progress("trials", 1, 50, "accuracy 0.9123, 850 parameters, stopped early; best accuracy 0.9000")
        progress("trials", 2, 50, "does not fit")
    shown = "\n".join(line.rstrip() for line in terminal.lines())
    assert re.search(r"(?m)^trials \S+ +2/50 to go .* does not fit$", shown)
    assert "stopped early" not in shown


def test_a_note_leaves_room_for_the_count_on_80_columns(monkeypatch):
    terminal = on_terminal(monkeypatch)
    with Progress() as progress:
        progress("mnist, one size, search", 16, 16)
        progress("mnist, 4,000 parameters, search", 1, 48, "sparse, validation accuracy 0.9123")
    last = [line for line in terminal.lines() if line.strip()][-1]
    assert re.fullmatch(r"mnist, 4,000 paramete\w?… ━+ +1/48 to go -:--:-- sparse, validation accuracy 0.9123", last)
    assert len(last) <= 80


def test_ctrl_c_says_what_is_kept():
    message = "stopped; runs/a keeps the finished work, and the same command resumes it"
    with pytest.raises(KeyboardInterrupt, match=f"^{message}$"), resumable("runs/a"):
        raise KeyboardInterrupt
