"""The command line: right numbers, help that fits a terminal, and one line for every mistake."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dendritree
from dendritree.cli import COMMANDS, main

ROOT = Path(__file__).parents[2]

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


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def call(arguments, capsys):
    """Exit status, standard output and standard error of `main`."""
    try:
        status = main(arguments)
    except SystemExit as end:  # argparse ends this way
        status = end.code or 0
    return status, *capsys.readouterr()


def run_module(*arguments, **options):
    """`python -m dendritree` in a process of its own."""
    command = [sys.executable, "-W", "error", "-m", "dendritree", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False, **options)


def numbers(line):
    return [int(number.replace(",", "")) for number in re.findall(r"(?<![\w=])\d[\d,]*", line)]


# --------------------------------------------------------------------------------------------------- version and help


def test_version_is_that_of_the_package(capsys):
    assert call(["--version"], capsys) == (0, f"dendritree {dendritree.__version__}\n", "")


def test_the_module_runs_as_a_command():
    done = run_module("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"dendritree {dendritree.__version__}\n", "")


@pytest.mark.parametrize("arguments", [["--help"], *([name, "--help"] for name in COMMANDS)], ids=" ".join)
def test_help_fits_a_terminal_and_has_an_example(arguments, capsys):
    status, out, error = call(arguments, capsys)
    lines = out.splitlines()
    assert (status, error) == (0, "")
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100
    assert any(line.strip().startswith("dendritree ") for line in lines[lines.index("example:") :])


def test_help_names_every_command(capsys):
    _, out, _ = call(["--help"], capsys)
    assert {"params", "models"} <= set(COMMANDS)
    for name in COMMANDS:
        assert re.search(rf"(?m)^ +{name} +\w", out)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_in_the_help_work(name, capsys):
    for line in COMMANDS[name].example.splitlines():
        program, *arguments = line.replace("'", "").split()
        assert program == "dendritree"
        status, out, error = call(arguments, capsys)
        assert (status, error) == (0, "")
        assert out


def test_no_command_shows_the_help(capsys):
    assert call([], capsys) == call(["--help"], capsys)


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
def test_params_counts_the_layer_and_its_control(arguments, tree, control, capsys):
    status, out, error = call(["params", *arguments.split()], capsys)
    assert (status, error) == (0, "")
    (dendritic,) = [line for line in out.splitlines() if line.startswith("dendritic")]
    (mlp,) = [line for line in out.splitlines() if line.startswith("MLP")]
    assert numbers(dendritic) == tree
    assert f"MLP {control[0]} " in mlp
    assert numbers(mlp) == control[1:]


def test_params_heads_its_columns_and_describes_the_trees(capsys):
    _, out, _ = call(["params", "1024", "10", "--branching", "32"], capsys)
    first, header, *rows = out.splitlines()
    assert numbers(first) == [10, 1024, 32, 1]
    assert re.split(r" {2,}", header.strip()) == ["weights", "biases", "total", "multiply-adds", "masked form stores"]
    assert len(rows) == 2
    assert [rows[0].rindex("10,890"), rows[1].rindex("11,395")] == [header.index("total") - 1] * 2  # under its head


def test_params_of_the_paper_recounts_its_17_rows(capsys):
    status, out, error = call(["params", "--paper"], capsys)
    assert (status, error) == (0, "")
    rows = [line for line in out.splitlines() if line.split() and re.fullmatch(r"[bh]=\d+", line.split()[1])]
    assert [(*line.split()[:2], *numbers(line)) for line in rows] == PAPER


def test_params_of_the_paper_marks_its_two_wrong_rows(capsys):
    _, out, _ = call(["params", "--paper"], capsys)
    marked = [line.split()[:2] for line in out.splitlines() if "wrong" in line]
    assert marked == [["binary", "b=4"], ["multiclass", "b=4"]]
    assert "341" in out.splitlines()[-1]  # the reason: how many nodes the tree has


# ------------------------------------------------------------------------------------------------------------- models


def test_models_lists_all_of_them_with_what_they_are(capsys):
    status, out, error = call(["models"], capsys)
    assert (status, error) == (0, "")
    listed = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert {"mln-binary", "mln", "conv-mln", "perceptrons", "mlp", "conv-mlp"} <= set(listed)
    assert sorted(listed) == dendritree.list_models()
    assert all(text.endswith(".") for text in listed.values())


def test_models_takes_a_pattern(capsys):
    _, out, _ = call(["models", "conv-*"], capsys)
    assert [line.split()[0] for line in out.splitlines()] == ["conv-dnm", "conv-mln", "conv-mlp", "conv-perceptrons"]


# ----------------------------------------------------------------------------------------------------------- mistakes

MISTAKES = [
    ("params", "params takes IN and OUT, or --paper"),
    ("params 1024", "params takes IN and OUT, or --paper"),
    ("params 1000 10", r"branching \*\* depth: got fan_in 1000, branching 32; 32 or 1024 would fit, or .*ragged"),
    ("params 0 1", "in_features must be an integer of at least 1: got 0"),
    ("params -5 1", "in_features must be an integer of at least 1: got -5"),
    ("params 1024 0", "out_features must be an integer of at least 1: got 0"),
    ("params 1024 -3", "out_features must be an integer of at least 1: got -3"),
    ("params 1024 10 --branching 1", "branching must be an integer of at least 2: got 1"),
    ("params 1024 10 --branching 0", "branching must be an integer of at least 2: got 0"),
    ("params 1024 10 --branching -2", "branching must be an integer of at least 2: got -2"),
    ("params 1024 10 --branching 2.5", "--branching takes an integer, or one per level.*: got '2.5'"),
    ("params 1024 10 --branching x", "--branching takes an integer, or one per level.*: got 'x'"),
    ("params 1024 10 --branching 16,", "--branching takes an integer, or one per level.*: got '16,'"),
    ("params 1024 10 --branching 16,8", r"product of branching, 128 .*\[16, 8\]: got 1024"),
    ("params 1024 10 --branching 32,1", "branching.* at least 2: got 1"),
    ("params 1024 3 --wiring partition", r"out_features \* branching \*\* depth: got in_features 1024, out_features 3"),
    ("params 1024 10 --wiring sharde", "wiring must be one of .*: got 'sharde'; did you mean 'shared'"),
    ("params 10000000000 10 --branching 10", r"fewer than 2\*\*31"),
    ("models nothing-*", r"no model matches 'nothing-\*': known are .*mln"),
    # argparse's own
    ("params a 10", "IN.*'a'"),
    ("params 1024 1.5", "OUT.*'1.5'"),
    ("params 1024 10 20", "20"),
    ("params 1024 10 --branching", "--branching"),
    ("params 1024 10 --brnching 2", "--brnching"),
    ("models mln mlp", "mlp"),
    ("parms 1024 10", "'parms'.*params"),
    ("--verson", "--verson"),
]


@pytest.mark.parametrize(("command", "message"), MISTAKES, ids=[command for command, _ in MISTAKES])
def test_a_mistake_gives_status_2_and_a_line_or_two_that_say_what_is_wrong(command, message, capsys):
    status, out, error = call(command.split(), capsys)
    assert status == 2
    assert out == ""
    assert re.search(message, error)
    assert error.startswith(("dendritree", "usage: dendritree"))
    assert 1 <= len(error.splitlines()) <= 2


@pytest.mark.parametrize("command", ["params 1000 10", "params 1024 ten"])
def test_a_mistake_in_a_real_process_shows_no_traceback(command):
    done = run_module(*command.split())
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert 1 <= len(done.stderr.splitlines()) <= 2


SMALL_MACHINE = """
import resource, sys
import dendritree.cli
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**29, used + 2**29))
sys.exit(dendritree.cli.main(["params", "100000000", "10", "--branching", "10"]))
"""


def test_a_layer_too_large_for_memory_is_counted_or_refused_without_a_traceback():
    """Ten trees of 10^8 synapses are within the 2^31 rows of a forest; their edges alone take gigabytes."""
    command = [sys.executable, "-c", SMALL_MACHINE]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert "Traceback" not in done.stderr
    if done.returncode == 0:
        assert 1222222210 in numbers(done.stdout)  # 1,111,111,100 edges and 111,111,110 nodes
    else:
        assert done.returncode == 2
        assert 1 <= len(done.stderr.splitlines()) <= 2


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("command", ["--help", "models", "params --paper"])
def test_a_reader_that_went_away_is_no_error_to_talk_about(command, unbuffered):
    """As in `dendritree params --paper | head -1`: the pipe is closed before anything is written."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "dendritree", *command.split()],
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            stdout=write_end,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
        )
    finally:
        os.close(write_end)
    assert done.stderr == ""
    assert done.returncode != 120  # Python's own status for output it could not flush
