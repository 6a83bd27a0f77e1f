"""The fuzzers: a few cases of every kind, and failures that are reported with their seeds."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parent / "fuzz"
SEEDS = {
    "layers": range(6),
    "convolutions": range(4),
    "norms": range(6),
    "neurons": range(6),
    "damage": range(30),
    "stops": range(3),
}


@pytest.mark.parametrize("kind", SEEDS)
def test_a_few_cases_of_every_kind(kind, tmp_path):
    for seed in SEEDS[kind]:
        folder = tmp_path / str(seed)
        folder.mkdir()
        assert importlib.import_module(f"fuzz_{kind}").run(seed, folder)


def fuzz(*arguments, path=FUZZ):
    return subprocess.run([sys.executable, path, *arguments], capture_output=True, text=True, timeout=120)


def test_a_failure_is_reported_with_its_seed(tmp_path):
    (tmp_path / "__main__.py").write_text((FUZZ / "__main__.py").read_text())
    (tmp_path / "fuzz_layers.py").write_text("def run(seed, folder):\n    raise ValueError('a wrong number')\n")
    done = fuzz("--only", "layers", "--seed", "3", path=tmp_path)
    assert done.returncode == 1
    assert "make fuzz ONLY=layers SEED=3" in done.stdout
    assert "ValueError: a wrong number" in done.stdout


def test_a_seed_needs_its_kind():
    done = fuzz("--seed", "3")
    assert done.returncode == 2
    assert "--only" in done.stderr
