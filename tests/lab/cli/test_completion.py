"""Completion of command lines, as a shell requests it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dendritree_lab.cli import COMMANDS
from dendritree_lab.cli.completion import completions

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("dendritree ", [*COMMANDS, "--help", "--version"]),
        ("dendritree comp", ["compare"]),
        ("dendritree --v", ["--version"]),
        ("dendritree compare --b", ["--budgets", "--backend"]),
        ("dendritree compare mnist  --bu", ["--budgets"]),
        ("dendritree data ", ["list", "get", "verify"]),
        ("dendritree report run --export ", ["csv", "parquet"]),
        ("dendritree view ", []),  # a folder: the shell's own completion
        ("dendritree no-such-command --", []),
    ],
)
def test_a_line_is_completed_with_what_its_command_takes(line, words):
    assert completions(line, COMMANDS) == words


def test_a_shell_asks_the_command_itself_and_no_torch_is_imported():
    asked = {"PYTHONPATH": str(ROOT), "COMP_LINE": "dendritree report run --ex", "COMP_POINT": "13"}
    command = [sys.executable, "-X", "importtime", "-m", "dendritree", "dendritree", "re", "dendritree"]
    done = subprocess.run(command, env=os.environ | asked, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "reproduce\nreport\n")  # the cursor stands behind `re`
    assert "dendritree_lab.cli" in done.stderr
    assert "torch" not in done.stderr
