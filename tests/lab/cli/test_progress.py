"""What a command shows while it works, on a terminal and elsewhere."""

import io
import re
import signal

import pytest
from stopping import press_ctrl_c

from dendritree_lab.cli.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True

    def lines(self):
        """What was shown, without colors and cursor movements."""
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.getvalue()).replace("\r", "\n")
        return [line.rstrip() for line in text.splitlines() if line.strip()]


def on_terminal(monkeypatch):
    """Make standard error a terminal of 80 columns; to be called in the test itself, as pytest sets it before that."""
    terminal = Terminal()
    for variable in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stderr", terminal)
    return terminal


def test_elsewhere_a_finished_step_is_a_line_once_and_again_if_it_grows(capsys):
    with Progress("models") as progress:
        for what, done, total in [("comparing", 2, 3), ("comparing", 3, 3), ("all rows", 1, 1), ("comparing", 3, 3)]:
            progress(what, done, total)
        progress("comparing", 3, 4)
        progress("comparing", 4, 4)
    out, errors = capsys.readouterr()
    assert (out, errors.splitlines()) == ("", ["comparing: 3 models, 0 s", "all rows: 0 s", "comparing: 4 models, 0 s"])


def test_ctrl_c_is_answered_at_once(capsys):
    with pytest.raises(KeyboardInterrupt), Progress("models"):
        press_ctrl_c()
    assert capsys.readouterr().err == "dendritree: stopping: ending the models that are running\n"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_time_is_that_of_the_step_and_a_long_one_has_lines_in_between(capsys, monkeypatch):
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    with Progress() as progress:
        progress("search", 4, 8)  # done by an earlier run
        progress("test", 0, 2)
        now = 30.0
        progress("search", 6, 8, "accuracy 0.9")
        now = 31.0
        progress("test", 1, 2)
        now = 60.0
        progress("search", 8, 8)
        now = 61.5
        progress("test", 2, 2)
    assert capsys.readouterr().err.splitlines() == [
        "search: 6 of 8 trials, 30 s left, accuracy 0.9",
        "search: 8 trials, 59 s",
        "test: 2 trials, 2 s",
    ]


def test_a_terminal_has_a_bar_per_step_and_one_for_all(monkeypatch):
    terminal = on_terminal(monkeypatch)
    with Progress(overall="all") as progress:
        for done in range(4):
            progress("trees", done, 3)
            progress("controls", min(done, 2), 2, "accuracy 0.9")
    everything, trees, controls = terminal.lines()[-3:]
    assert re.fullmatch(r" +trees +━+ 3/3 0 s", trees)
    assert re.fullmatch(r" +controls +━+ 2/2 0 s accuracy 0.9", controls)
    assert re.fullmatch(r" +all +━+ 5/5 0 s", everything)
