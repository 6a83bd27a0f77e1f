"""The command line: help that fits a terminal, correct numbers, and what needs a separate process."""

import contextlib
import io
import os
import re
import shlex
import subprocess

import pytest
from command_runs import run_process
from warm import run, run_command

import dendritree
from dendritree_lab.cli import COMMANDS, main, make_parser

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


def test_help_names_every_command(call):
    _, out, _ = call("--help")
    assert {"params", "models"} <= set(COMMANDS)
    for name in COMMANDS:
        assert re.search(rf"(?m)^ +{name} +\w", out)


EXAMPLES = [line for command in COMMANDS.values() for line in command.EXAMPLES.splitlines()]
WORK_ANYWHERE = ("params", "models", "data list", "data verify")  # the others need a network, a file or minutes


@pytest.mark.parametrize("line", EXAMPLES)
def test_the_examples_in_the_help_work(line, call):
    program, *arguments = shlex.split(line)
    assert program == "dendritree"
    assert make_parser().parse_args(arguments).command == arguments[0]
    if " ".join(arguments).startswith(WORK_ANYWHERE):
        status, out, errors = call(*arguments)
        assert (status, errors) == (0, "")
        assert out


def test_no_command_shows_the_help(call):
    assert call() == call("--help")


# ------------------------------------------------------------------------------------------------------------- params


@pytest.mark.parametrize(
    ("arguments", "tree", "control"),
    [
        # weights, biases, total, multiply-adds, dense weights of the masked form: 10240 * 320 + 320 * 10
        ("1024 10 --branching 32", [10560, 330, 10890, 10560, 3280000], ["h=11", 11374, 21, 11395, 11374]),
        ("1024 10", [10560, 330, 10890, 10560, 3280000], ["h=11", 11374, 21, 11395, 11374]),  # 32 is the default
        ("1024 1 --branching 2", [2046, 1023, 3069, 2046, 699050], ["h=3", 3075, 4, 3079, 3075]),
        ("1024 10 --branching 4", [13640, 3410, 17050, 13640, 27962000], ["h=16", 16544, 26, 16570, 16544]),
        ("128 1 --branching 16,8", [136, 9, 145, 136, 1032], ["h=2", 258, 3, 261, 258]),
        ("1024 4 --branching 16 --wiring partition", [1088, 68, 1156, 1088, 65792], ["h=2", 2056, 6, 2062, 2056]),
        ("784 1 --branching 2 --ragged", [1570, 787, 2357, 1570, 409849], ["h=3", 2355, 4, 2359, 2355]),
        ("10 1 --branching 3 --ragged", [16, 7, 23, 16, 50], ["h=2", 22, 3, 25, 22]),
    ],
)
def test_params_counts_the_layer_and_its_control(arguments, tree, control, call):
    status, out, error = call("params", *arguments.split())
    assert (status, error) == (0, "")
    (dendritic,) = [line for line in out.splitlines() if line.startswith("dendritic")]
    (mlp,) = [line for line in out.splitlines() if line.startswith("MLP")]
    assert numbers(dendritic) == tree
    assert f"MLP {control[0]} " in mlp
    assert numbers(mlp) == control[1:]


def test_params_heads_its_columns_and_describes_the_trees(call):
    _, out, _ = call("params", "1024", "10", "--branching", "32")
    first, header, *rows = out.splitlines()
    assert numbers(first) == [10, 1024, 32, 1]
    assert re.split(r" {2,}", header.strip()) == ["weights", "biases", "total", "multiply-adds", "masked form stores"]
    assert len(rows) == 2
    assert [rows[0].rindex("10,890"), rows[1].rindex("11,395")] == [header.index("total") - 1] * 2  # under its head


def test_params_of_the_paper_recounts_its_17_rows(call):
    status, out, error = call("params", "--paper")
    assert (status, error) == (0, "")
    rows = [line for line in out.splitlines() if line.split() and re.fullmatch(r"[bh]=\d+", line.split()[1])]
    assert [(*line.split()[:2], *numbers(line)) for line in rows] == PAPER


def test_params_of_the_paper_marks_its_two_wrong_rows(call):
    _, out, _ = call("params", "--paper")
    marked = [line.split()[:2] for line in out.splitlines() if "wrong" in line]
    assert marked == [["binary", "b=4"], ["multiclass", "b=4"]]
    assert "341" in out.splitlines()[-1]  # the reason: how many nodes the tree has


# ------------------------------------------------------------------------------------------------------------- models


def test_models_lists_all_of_them_with_what_they_are(call):
    status, out, error = call("models")
    assert (status, error) == (0, "")
    listed = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert {"mln-binary", "mln", "conv-mln", "perceptrons", "mlp", "conv-mlp"} <= set(listed)
    assert sorted(listed) == dendritree.list_models()
    assert all(text.endswith(".") for text in listed.values())


def test_models_takes_a_pattern(call):
    _, out, _ = call("models", "conv-*")
    assert [line.split()[0] for line in out.splitlines()] == [
        "conv-dnm",
        "conv-mln",
        "conv-mlp",
        "conv-network",
        "conv-perceptrons",
    ]


# ---------------------------------------------------------------------------------------------- processes of their own

SMALL_MACHINE = """
import pathlib, resource, sys
import torch
import dendritree_lab.cli
used = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**28, used + 2**28))
sys.exit(dendritree_lab.cli.main(["params", "100000000", "10", "--branching", "10"]))
"""


def test_a_layer_too_large_for_memory_is_counted_or_rejected_without_a_traceback():
    """Ten trees of 10^8 synapses are within the 2^31 rows of a forest; their edges alone take gigabytes."""
    status, out, errors = run(SMALL_MACHINE)
    assert "Traceback" not in errors
    if status == 0:
        assert 1222222210 in numbers(out)  # 1,111,111,100 edges and 111,111,110 nodes
    else:
        assert status == 2
        assert 1 <= len(errors.splitlines()) <= 2


def test_the_module_runs_as_a_command_and_a_mistake_shows_no_traceback():
    status, out, errors = run_command("params", "1000", "10")
    assert (status, out) == (2, "")
    assert errors.startswith("dendritree: ")
    assert len(errors.splitlines()) == 1


@contextlib.contextmanager
def closed_pipe():
    """A file descriptor whose reader went away, as in `dendritree params --paper | head -1`."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        yield write_end
    finally:
        os.close(write_end)


@pytest.mark.parametrize("buffered", [True, False], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("command", ["--help", "models", "params --paper"])
def test_a_reader_that_went_away_is_no_error_to_talk_about(command, buffered, monkeypatch, capsys):
    with closed_pipe() as pipe, os.fdopen(pipe, "wb", buffering=-1 if buffered else 0, closefd=False) as file:
        stdout = io.TextIOWrapper(file, write_through=not buffered)
        monkeypatch.setattr("sys.stdout", stdout)
        try:
            status = main(command.split())
        except SystemExit as end:
            status = end.code
        stdout.flush()  # as Python does at its end: nothing is left that could not be written
    assert status in (0, 1)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("line", ["--help", pytest.param("params --paper", marks=pytest.mark.slow)])
def test_a_process_whose_reader_went_away_ends_in_silence(line):
    with closed_pipe() as pipe:
        done = run_process(*line.split(), capture_output=False, stdout=pipe, stderr=subprocess.PIPE)
    assert done.stderr == ""
    assert done.returncode != 120  # Python's own status for output it could not flush
