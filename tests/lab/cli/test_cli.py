"""The command line: help that fits a terminal, correct numbers, and what needs a separate process."""

import os
import re
import shlex
import subprocess
import sys

import pytest
from command_runs import environment, run_process

import dendritree
from dendritree_lab.cli import COMMANDS, main, make_parser
from dendritree_lab.cli.completion import completions

# Table, model, weights, biases, total of the models themselves, and the total that the paper prints.
# Tree: sum of b^k for k = 1 ... d edges and for k = 0 ... d - 1 nodes, times neurons. MLP: (in + out) h and h + out.
PAPER = [
    ("binary", "b=2", 2046, 1023, 3069, 3069),
    ("binary", "h=3", 3075, 4, 3079, 3079),
    ("binary", "b=4", 1364, 341, 1705, 1449),
    ("binary", "b=32", 1056, 33, 1089, 1089),
    ("binary", "h=2", 2050, 3, 2053, 2053),
    ("multiclass", "b=2", 20460, 10230, 30690, 30690),
    ("multiclass", "h=30", 31020, 40, 31060, 31060),
    ("multiclass", "b=4", 13640, 3410, 17050, 14490),
    ("multiclass", "h=14", 14476, 24, 14500, 14500),
    ("multiclass", "b=32", 10560, 330, 10890, 10890),
    ("multiclass", "h=11", 11374, 21, 11395, 11395),
    ("cnn", "b=2", 5100, 2550, 7650, 7650),
    ("cnn", "h=29", 7714, 39, 7753, 7753),
    ("cnn", "b=4", 3400, 850, 4250, 4250),
    ("cnn", "h=16", 4256, 26, 4282, 4282),
    ("cnn", "b=16", 2720, 170, 2890, 2890),
    ("cnn", "h=11", 2926, 21, 2947, 2947),
]


def numbers(line):
    return [int(number.replace(",", "")) for number in re.findall(r"(?<![\w=])\d[\d,]*", line)]


# --------------------------------------------------------------------------------------------------- version and help


def test_version_is_that_of_the_package(call):
    assert call("--version") == (0, f"dendritree {dendritree.__version__}\n", "")


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_fits_a_screen_of_80_by_32_and_has_an_example(name, call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    status, out, errors = call(*name.split(), "--help")
    lines = out.splitlines()
    assert (status, errors) == (0, "")
    assert len(lines) <= 32
    assert max(map(len, lines)) <= 80
    assert any(line.startswith(f"  dendritree {name}") for line in lines[lines.index("example:") :])
    if not name:
        assert all(re.search(rf"(?m)^ +{command} +\w", out) for command in COMMANDS)
        assert call() == (0, out, "")  # no command shows the help


@pytest.mark.parametrize("line", [line for command in COMMANDS.values() for line in command.EXAMPLES.splitlines()])
def test_the_examples_in_the_help_are_command_lines(line):
    program, *arguments = shlex.split(line)
    assert program == "dendritree"
    assert make_parser().parse_args(arguments).command == arguments[0]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("dendritree ", [*COMMANDS, "--help", "--version"]),
        ("dendritree --v", ["--version"]),
        ("dendritree compare mnist  --b", ["--budgets", "--backend"]),
        ("dendritree data ", ["list", "get", "verify"]),
        ("dendritree report run --export ", ["csv", "parquet"]),
        ("dendritree view ", []),  # a folder: the shell's own completion
        ("dendritree no-such-command --", []),
    ],
)
def test_a_line_is_completed_with_what_its_command_takes(line, words):
    assert completions(line, COMMANDS) == words


@pytest.mark.parametrize("asked", ["--help", "--version", "completion"])
def test_help_version_and_completion_import_nothing_heavy(asked):
    """A shell that completes a line calls the command with three words of its own."""
    words, variables = [asked], {}
    if asked == "completion":
        words, variables = (
            ["dendritree", "re", "dendritree"],
            {"COMP_LINE": "dendritree report --ex", "COMP_POINT": "13"},
        )
    command = [sys.executable, "-X", "importtime", "-m", "dendritree_lab", *words]
    done = subprocess.run(command, env=environment() | variables, capture_output=True, text=True)
    assert done.returncode == 0
    assert "dendritree" in done.stdout or done.stdout == "reproduce\nreport\n"  # the cursor stands behind `re`
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "dendritree_lab.cli" in imported
    assert not imported & {"torch", "numpy", "pandas", "matplotlib", "scipy", "sklearn", "rich"}


# -------------------------------------------------------------------------------------------------- params and models


@pytest.mark.parametrize(
    ("arguments", "tree", "control"),
    [
        # weights, biases, total, multiply-adds, dense weights of the masked form: 10240 * 320 + 320 * 10
        ("1024 10", [10560, 330, 10890, 10560, 3280000], ["h=11", 11374, 21, 11395, 11374]),  # 32 is the default
        ("1024 10 --branching 4", [13640, 3410, 17050, 13640, 27962000], ["h=16", 16544, 26, 16570, 16544]),
        ("128 1 --branching 16,8", [136, 9, 145, 136, 1032], ["h=2", 258, 3, 261, 258]),
        ("1024 4 --branching 16 --wiring partition", [1088, 68, 1156, 1088, 65792], ["h=2", 2056, 6, 2062, 2056]),
        ("784 1 --branching 2 --ragged", [1570, 787, 2357, 1570, 409849], ["h=3", 2355, 4, 2359, 2355]),
    ],
)
def test_params_counts_the_layer_and_its_control(arguments, tree, control, call):
    status, out, error = call("params", *arguments.split())
    assert (status, error) == (0, "")
    _, header, dendritic, mlp = out.splitlines()
    assert re.split(r" {2,}", header.strip()) == ["weights", "biases", "total", "multiply-adds", "masked weights"]
    assert numbers(dendritic) == tree
    assert f"MLP {control[0]} " in mlp
    assert numbers(mlp) == control[1:]


def test_params_of_the_paper_recounts_its_17_rows_and_marks_the_two_wrong_ones(call):
    status, out, error = call("params", "--paper")
    assert (status, error) == (0, "")
    rows = [line for line in out.splitlines() if line.split() and re.fullmatch(r"[bh]=\d+", line.split()[1])]
    assert [(*line.split()[:2], *numbers(line)) for line in rows] == PAPER
    assert [line.split()[:2] for line in rows if "wrong" in line] == [["binary", "b=4"], ["multiclass", "b=4"]]
    assert "341" in out.splitlines()[-1]  # the reason: how many nodes the tree has


def test_models_lists_all_of_them_or_those_of_a_pattern(call):
    status, out, error = call("models")
    assert (status, error) == (0, "")
    listed = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert sorted(listed) == dendritree.list_models()
    assert all(text.endswith(".") for text in listed.values())
    _, out, _ = call("models", "conv-*")
    assert [line.split()[0] for line in out.splitlines()] == [name for name in sorted(listed) if name[:5] == "conv-"]


# ---------------------------------------------------------------------------------------------- ends of the process


def test_the_module_runs_as_a_command_and_a_mistake_shows_no_traceback():
    done = run_process("params", "1000", "10")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("dendritree: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (KeyboardInterrupt("stopped; the run keeps"), 130, "stopped; the run keeps"),
        (MemoryError("8 GB"), 2, "not enough memory: 8 GB"),
        (ModuleNotFoundError("No module torch", name="torch"), 2, "could not import torch: No module torch"),
    ],
)
def test_ctrl_c_ends_with_130_and_errors_of_the_machine_with_one_line(error, status, said, call, monkeypatch):
    def fail(_):
        raise error

    monkeypatch.setattr(COMMANDS["models"], "run", fail)
    assert call("models") == (status, "", f"dendritree: {said}\n")


def test_a_bug_is_not_hidden(monkeypatch):
    monkeypatch.setattr(COMMANDS["models"], "run", lambda _: {}["missing"])
    with pytest.raises(KeyError):
        main(["models"])


@pytest.mark.parametrize("line", ["--help", "models"])
def test_a_reader_that_has_left_is_not_an_error(line):
    """As in `dendritree models | head -1`."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = run_process(*line.split(), capture_output=False, stdout=write_end, stderr=subprocess.PIPE)
    os.close(write_end)
    assert done.stderr == ""
    assert done.returncode != 120  # Python's own status for output it could not flush
