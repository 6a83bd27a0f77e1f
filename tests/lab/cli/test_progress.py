"""What a command shows while it works, on a terminal and elsewhere."""

import io
import re

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
    with Progress("models", counted={"final training": "epochs"}) as progress:
        for what, done, total in [("comparing", 2, 3), ("comparing", 3, 3), ("all rows", 1, 1), ("comparing", 3, 3)]:
            progress(what, done, total)
        progress("final training", 20, 20)
        progress("comparing", 3, 4)
        progress("comparing", 4, 4)
    out, errors = capsys.readouterr()
    steps = [re.sub(r"\d+ s$", "n s", line) for line in errors.splitlines()]
    expected = [
        "comparing: 3 models, n s",
        "all rows: n s",
        "final training: 20 epochs, n s",
        "comparing: 4 models, n s",
    ]
    assert (out, steps) == ("", expected)


def test_a_terminal_has_a_bar_per_step_and_one_for_all(monkeypatch):
    terminal = on_terminal(monkeypatch)
    with Progress(overall="all") as progress:
        for done in range(4):
            progress("trees", done, 3)
            progress("controls", min(done, 2), 2)
    everything, trees, controls = terminal.lines()[-3:]
    assert re.fullmatch(r"trees +━+ 3/3 +[\d:]+ +\d+\.\d trials/s", trees)
    assert re.fullmatch(r"controls +━+ 2/2 +[\d:]+ +\d+\.\d trials/s", controls)
    assert re.fullmatch(r"all +━+ 5/5 +[\d:]+ +\d+\.\d trials/s", everything)
