"""Random networks of all covered parts: the C file gives the scores of the model."""

import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from dendritree import DendriticConv2d, DendriticLayer, to_c
from dendritree.errors import DendritreeError
from dendritree.export.checking import compiler

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler")
ACTIVATIONS = {"relu": nn.ReLU, "leaky": lambda: nn.LeakyReLU(0.1), "none": nn.Identity}


def pixels(shape):
    return shape[0] * shape[1] * shape[2]


@st.composite
def networks(draw, smooth=True):
    """A network and the shape of its inputs."""
    number = lambda low, high: draw(st.integers(low, high))  # noqa: E731
    kinds = {**ACTIVATIONS, **({"tanh": nn.Tanh, "sigmoid": nn.Sigmoid} if smooth else {})}
    shape = start = (number(1, 3), number(4, 9), number(4, 9))
    steps, act = [], lambda: kinds[draw(st.sampled_from(sorted(kinds)))]()
    for _ in range(number(1, 3)):
        channels, rows, columns = shape
        kernel = number(1, min(3, rows, columns))
        stride, padding, filters = number(1, 2), number(0, kernel // 2), number(1, 4)
        match draw(st.sampled_from(["conv", "depthwise", "placed", "trees", "max", "average", "adaptive", "norm"])):
            case "conv":
                steps += [nn.Conv2d(channels, filters, kernel, stride, padding), act()]
            case "depthwise":
                steps += [nn.Conv2d(channels, channels * 2, kernel, stride, padding, groups=channels), act()]
            case "placed":
                steps += [DendriticConv2d(channels, filters, kernel, stride, padding, places=2, activation="relu")]
            case "trees":
                steps += [DendriticConv2d(channels, filters, kernel, stride, padding, branching=2, ragged=True)]
            case "max":
                steps += [nn.MaxPool2d(kernel, stride, padding), act()]
            case "average":
                steps += [nn.AvgPool2d(kernel, stride)]
            case "adaptive":
                steps += [nn.AdaptiveAvgPool2d((number(1, rows), number(1, columns)))]
            case "norm":
                steps += [nn.BatchNorm2d(channels), act()]
        try:
            shape = tuple(nn.Sequential(*steps).eval()(torch.zeros(1, *start)).shape[1:])
        except (RuntimeError, ValueError):  # no room
            steps = steps[
                : -2 if isinstance(steps[-1], tuple({nn.ReLU, nn.LeakyReLU, nn.Identity, nn.Tanh, nn.Sigmoid})) else -1
            ]
    steps += [nn.Flatten()]
    if draw(st.booleans()):
        neurons, inputs = number(2, 6), pixels(shape)
        steps += [
            DendriticLayer(inputs, neurons, branching=2, fan_in=number(1, min(9, inputs)), ragged=True, wiring="random")
        ]
        steps += [nn.BatchNorm1d(neurons)] if draw(st.booleans()) else []
        shape = (neurons, 1, 1)
    return nn.Sequential(*steps, nn.Linear(pixels(shape), number(1, 4))), start


def lived(model):
    for part in model.modules():
        if isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d):
            nn.init.normal_(part.running_mean, 0, 0.3)
            nn.init.uniform_(part.running_var, 0.5, 2)
            nn.init.uniform_(part.weight, 0.5, 1.5)
    return model.eval()


OFTEN = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))


@OFTEN
@given(case=networks(), seed=st.integers(0, 99))
def test_a_random_network_in_float(case, seed):
    torch.manual_seed(seed)
    model, shape = case
    with tempfile.TemporaryDirectory() as folder:
        file = to_c(lived(model), Path(folder) / "model.c", examples=2 * torch.randn(4, *shape))
    assert file.difference < 1e-4


@OFTEN
@given(case=networks(smooth=False), seed=st.integers(0, 99))
def test_a_random_network_in_integers(case, seed):
    torch.manual_seed(seed)
    model, shape = case
    with tempfile.TemporaryDirectory() as folder:
        path, difference, rejected = Path(folder) / "model.c", 0.0, "of their spread"
        try:
            difference = to_c(lived(model), path, int8=True, examples=2 * torch.randn(64, *shape)).difference
        except DendritreeError as error:  # scores that hardly differ have no room for eight bits
            rejected = str(error) if not path.exists() else "a file was kept"
    assert difference < 0.5
    assert "of their spread" in rejected
