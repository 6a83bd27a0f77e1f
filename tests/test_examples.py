"""Every example runs from any folder and prints a row per model."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from effort import thorough

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

# example: (row begins with, parameters). 10 trees of 64 + 8 edges and 8 + 1 nodes; (64 + 1) * 11 + (11 + 1) * 10,
# nearest to 810 of all hidden sizes; (64 + 1) * 10.
# 40 trees of 16 + 4 edges and 4 + 1 nodes, and (40 + 1) * 10. 41 trees of 25 + 8 + 1 edges, 2 nodes and 2 of the norm,
# and (41 + 1) * 10.
# 10 trees of 17 * 49 + 17 edges and 17 + 1 nodes.
# (192 + 1) * 128 + (128 + 1) * 10; of a tenth of that, 50 trees of 41 and 10 weights each; 12 perceptrons.
# 9,578 beside the MLPs, which have 2 * (128 * 65 + 32); 37 trees of 41 and 32 each; 41 perceptrons of 65 each.
ROWS = {
    "compare_digits.py": [("dendritic", 810), ("MLP", 835), ("perceptrons", 650)],
    "ddp.py": [("two processes", 1_410), ("one process", 1_410)],
    "local_wiring.py": [("local trees", 8_680)],
    "other_trainers.py": [("Lightning", 1_410), ("transformers", 1_410)],
    "replace_mlp_head.py": [("original", 25_994), ("trees, distilled", 2_560), ("MLP, distilled", 2_446)],
    "transformer_block.py": [
        ("original", 26_282),
        ("trees, trained", 15_044),
        ("trees, distilled", 15_044),
        ("narrow MLPs, trained", 14_972),
        ("narrow MLPs, distilled", 14_972),
    ],
    "serve_onnx.py": [("served by onnxruntime", 1_925)],
    # 7 inputs: 14 neurons of 4 * 7 + 4 edges, 5 nodes, 2 to normalize, 1 weight, and a bias; 54 of 7 + 1 + 2 + 1; 7 + 1
    "own_table.py": [("tree", 561), ("sparse", 595), ("dense", 595), ("linear", 8)],
    # 66 inputs, 10 classes: 75 neurons of 4 * 8 + 4 + 5 + 2 + 10; 190 of 8 + 1 + 2 + 10; 50 of 66 + 1 + 2 + 10; 10 * 67
    "sklearn_pipeline.py": [("tree", 3_985), ("sparse", 4_000), ("dense", 3_960), ("linear", 670)],
}
DATA = {"local_wiring.py": "mnist"}  # what an example loads, if it does not come with a package
SHORT = {"local_wiring.py": ["--images", thorough("700", "2000")]}
# They start processes, which import them, or import packages that warn; the others run in this process, much faster.
AS_A_PROCESS = ("ddp.py", "other_trainers.py")
SLOW = (*AS_A_PROCESS, "serve_onnx.py")


@pytest.fixture
def run_example(tmp_path, monkeypatch, capfd):
    """A function that runs an example in an empty folder and returns its exit status, output and errors."""

    def run(name, *options):
        command = [str(ROOT / "examples" / name), *options]
        monkeypatch.chdir(tmp_path)
        if name in AS_A_PROCESS and "--help" not in options:
            status = subprocess.run([sys.executable, *command], timeout=300, check=False).returncode
        else:
            monkeypatch.setattr(sys, "argv", command)
            with torch.random.fork_rng(devices=[]):
                status = run_as_main(command[0])
        return status, *capfd.readouterr()

    return run


def run_as_main(path):
    """Run a script in this process; its exit status."""
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        return end.code or 0
    return 0


def test_every_example_is_in_the_docs_with_its_result():
    page = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    for path in EXAMPLES:
        [row] = [line for line in page.splitlines() if f"(../examples/{path.name})" in line]
        first = re.search(r'f"Result: (\w*)', path.read_text(encoding="utf-8"))[1]  # the rest is computed
        assert row.split(" | ")[2].lower().startswith(first.lower()), path.name


def test_every_example_has_its_rows_listed_here():
    assert [path.name for path in EXAMPLES] == sorted(ROWS)


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in ROWS])
def test_an_example_runs_from_any_folder_and_prints_a_row_per_model(name, run_example, tmp_path, real_data):
    if name in DATA:
        real_data(DATA[name])
    status, printed, errors = run_example(name, "--seeds", "1", "--epochs", "1", *SHORT.get(name, []))
    assert (status, errors) == (0, "")
    assert list(tmp_path.iterdir()) == []
    assert re.fullmatch(r"Result: .*\.", printed.splitlines()[-1])
    for start, parameters in ROWS[name]:
        rows = [line for line in printed.splitlines() if line.startswith(start)]
        assert len(rows) == 1, f"{start!r} has {len(rows)} rows in:\n{printed}"
        assert re.search(rf"\s{parameters:,}\s", rows[0]), rows[0]
        accuracy = float(re.search(r"(\d\.\d+) \+- \d\.\d+$", rows[0])[1])
        assert 0.1 < accuracy <= 1.0  # ten classes: an epoch beats guessing


def test_an_example_explains_its_options(run_example):
    status, printed, errors = run_example("compare_digits.py", "--help")
    assert (status, errors) == (0, "")
    assert {"--seeds", "--epochs"} <= set(re.findall(r"--\w+", printed))
