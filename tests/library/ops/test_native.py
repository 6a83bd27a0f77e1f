"""The library of kernels: each instruction set, none at all, and what `python -m dendritree.ops` says."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch

from dendritree import DendriticLayer
from dendritree.errors import OptionError
from dendritree.neurons import DMNN, DNM
from dendritree.ops import native

ROOT = Path(__file__).parents[3]


def run(*arguments, **environment):
    """A fresh interpreter."""
    command = [sys.executable, "-W", "error", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120, check=False
    )


CASES = """
import json, torch
from dendritree import DendriticConv2d, DendriticLayer
from dendritree.neurons import DMNN, DNM
from dendritree.ops import native

def largest_error(layer, x):
    results = []
    for backend in ("fused", "reference"):
        layer.backend = backend
        layer.zero_grad()
        leaf = x.clone().requires_grad_()
        torch.manual_seed(1)
        y = layer(leaf)
        y.square().sum().backward()
        results.append([y, leaf.grad, *(p.grad for p in layer.parameters())])
    return max(((a - b).abs().max() / b.abs().max()).item() for a, b in zip(*results, strict=True))

torch.manual_seed(0)
errors = []
for dtype in (torch.float32, torch.float64):
    for activation in ("leaky_relu", "relu", "tanh", "sigmoid", "gelu", "silu", "none"):
        for dropout in (0.0, 0.4):
            layer = DendriticLayer(64, 5, branching=4, activation=activation, dropout=dropout, dtype=dtype)
            for batch in (1, 33, 130):
                errors.append(largest_error(layer, torch.randn(batch, 64, dtype=dtype)) * torch.finfo(torch.float32).eps
                              / torch.finfo(dtype).eps)
    shared = DendriticLayer(32, 9, branching=8, fan_in=32, ragged=True, wiring="shared", dtype=dtype)
    errors.append(largest_error(shared, torch.randn(70, 32, dtype=dtype)))
    conv = DendriticConv2d(3, 4, 3, stride=2, padding=1, dtype=dtype)
    errors.append(largest_error(conv, torch.randn(5, 3, 9, 7, dtype=dtype)))
print(json.dumps([native.kernels.selected, max(errors)]))
"""


@pytest.mark.parametrize("name", native.kernels.supported)
def test_every_instruction_set_of_this_machine_computes_what_the_reference_does(name):
    done = run("-c", CASES, DENDRITREE_CPU=name)
    assert done.returncode == 0, done.stderr
    selected, error = json.loads(done.stdout)
    assert selected == name
    assert error < 2e-5


def test_an_instruction_set_that_does_not_exist_is_an_error():
    done = run("-c", "import dendritree.ops", DENDRITREE_CPU="mmx")
    assert done.returncode == 1
    assert "DENDRITREE_CPU on this machine must be one of" in done.stderr
    assert "got 'mmx'" in done.stderr


def test_the_command_says_what_was_built_and_selected():
    done = run("-m", "dendritree.ops", DENDRITREE_CPU="base")
    assert done.returncode == 0, done.stderr
    lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert lines["kernels"].endswith("libdendritree.so")
    assert lines["selected"].startswith("base")
    assert "base" in done.stdout.splitlines()[1]


@pytest.fixture
def no_kernels(monkeypatch, tmp_path):
    monkeypatch.setattr(native, "FILE", tmp_path / "none.so")
    kernels, missing = native._load()
    monkeypatch.setattr(native, "kernels", kernels)
    monkeypatch.setattr(native, "missing", missing)
    monkeypatch.setattr(native, "_warned", False)


@pytest.mark.usefixtures("no_kernels")
@pytest.mark.parametrize("first", range(3))
def test_without_kernels_there_is_one_warning_and_eager_does_the_work(first):
    layer, x = DendriticLayer(16, 2, branching=4, backend="reference"), torch.randn(3, 16)
    y = layer(x)
    layer.backend = "auto"
    layers = [layer, DNM(16, 2, dendrites=3), DMNN(16, 2, dendrites=3)]
    with pytest.warns(UserWarning, match=r"which are slower.*install a C\+\+ compiler") as caught:
        layers[first](x).sum().backward()
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.testing.assert_close(layer(x), y)
        for other in layers:
            other(x).sum().backward()


@pytest.mark.usefixtures("no_kernels")
def test_without_kernels_fused_is_an_error_with_the_reason():
    with pytest.raises(OptionError, match="kernels were not built"):
        DendriticLayer(16, 2, branching=4, backend="fused")(torch.randn(3, 16))


def test_a_library_that_cannot_be_loaded_gives_the_reason(monkeypatch, tmp_path):
    file = tmp_path / "broken.so"
    file.write_bytes(b"not a library")
    monkeypatch.setattr(native, "FILE", file)
    kernels, missing = native._load()
    assert kernels is None
    assert "cannot be loaded" in missing
