"""Random networks of all covered parts: the C file gives the scores of the model."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from dendritree import DendriticConv2d, DendriticLayer, to_c
from dendritree.export.c_file import raw_inputs
from dendritree.export.c_source import c_source
from dendritree.export.c_steps import SLOPE
from dendritree.export.checking import compiler, run_c
from dendritree.export.integers import NODE, in_integers
from dendritree.export.lowering import lower
from dendritree.export.steps import Conv, Pool

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler")
SANITIZED = ("-O1", "-fsanitize=undefined", "-fno-sanitize-recover=all")
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


def finished(sums, act, rows, step, ctype):
    """From sums to values, as C computes them; `rows` are the multipliers and shifts."""
    slope = round(act.slope * SLOPE)
    part = lambda v, by: np.sign(v) * (np.abs(v) // by)  # noqa: E731  # division in C
    if ctype == "int32_t":
        low = np.zeros_like(sums) if act.kind == "relu" else sums
        leaky = part(sums, SLOPE) * slope + part((sums - part(sums, SLOPE) * SLOPE) * slope, SLOPE)
        return np.where(sums < 0, leaky if act.kind == "leaky" else low, sums)
    most = {"uint8_t": 255, "int8_t": 127, "int16_t": NODE}[ctype]
    s = np.maximum(sums, 0) if act.kind == "relu" else sums
    s = np.minimum(((((s >> step.pre) * (rows & 2047)) >> ((rows >> 11) - 1)) + 1) >> 1, most)
    s = np.where(s < 0, part(np.maximum(s, -32000) * slope, SLOPE), s) if act.kind == "leaky" else s
    return np.maximum(s, 0 if ctype == "uint8_t" else -most)


def in_numpy(network, raw):
    """The sums of a network of integers."""
    x, zero = raw.reshape(-1, *network.shape).astype(np.int64), np.rint(network.zero).astype(np.int64)
    for number, step in enumerate(network.steps):
        x = x.reshape(len(x), -1)[:, : pixels(step.shape)].reshape(-1, *step.shape)
        if isinstance(step, Conv):
            left, right, top, bottom = step.padding
            beyond = (zero if number == 0 else 0 * zero[:1]).reshape(1, -1, 1, 1)
            edged = np.pad(x - beyond, ((0, 0), (0, 0), (top, bottom), (left, right))) + beyond
            weight, bias = torch.from_numpy(step.weight), torch.from_numpy(step.bias)
            sums = F.conv2d(torch.from_numpy(edged).double(), weight, bias, step.stride, groups=step.groups)
            rows = np.zeros(len(weight), np.int64) if step.rescale is None else step.rescale
            x = finished(sums.numpy().astype(np.int64), step.act, rows.reshape(-1, 1, 1), step, step.ctype)
        elif isinstance(step, Pool):
            windows = torch.from_numpy(x).double()
            sizes = step(torch.ones_like(windows)) if step.parts is None else None
            y = step(windows).numpy()
            if step.kind == "average":
                n = step.kernel[0] * step.kernel[1] if sizes is not None else adaptive_counts(step)
                sums = np.rint(y * n).astype(np.int64)
                y = np.sign(sums) * ((np.abs(sums) + n // 2) // n)
            x = y.astype(np.int64)
        else:
            x = trees_in_numpy(step, x)
    return x.reshape(len(x), -1)


def adaptive_counts(step):
    sizes = [
        np.array([-(-(i + 1) * n // m) - i * n // m for i in range(m)])
        for n, m in zip(step.shape[1:], step.parts, strict=True)
    ]
    return np.outer(*sizes)


def trees_in_numpy(step, x):
    f, images = step.forest, len(x)
    rows = x.reshape(images, -1)[:, : f.in_features]
    if step.patches is not None:
        rows = step.patches.copied(torch.from_numpy(x).double()).flatten(0, 1).numpy().astype(np.int64)
    rows = np.concatenate([rows, np.zeros((len(rows), f.nodes), np.int64)], axis=1)
    out = np.zeros((len(rows), f.neurons), np.int64)
    for n in range(f.nodes):
        edges, which = slice(f.offsets[n], f.offsets[n + 1]), f.bias_of_node[n]
        weight = step.weight[f.weight_of_edge[edges]].astype(np.int64)
        sums = rows[:, f.source[edges]] @ weight + int(step.bias[which])
        rows[:, f.in_features + n] = finished(sums, step.act, step.rescale[which], step, "int16_t")
        if n in f.roots:
            out[:, np.flatnonzero(f.roots == n)[0]] = finished(sums, step.root, step.rescale[which], step, step.ctype)
    return out.reshape(images, -1, f.neurons).transpose(0, 2, 1).reshape(-1, *step.out)


@OFTEN
@given(case=networks(smooth=False), seed=st.integers(0, 99), bits=st.sampled_from([8, 4]))
def test_a_random_network_in_integers_computes_what_numpy_computes(case, seed, bits):
    torch.manual_seed(seed)
    model, shape = case
    x = 2 * torch.randn(64, *shape)
    network = in_integers(lower(lived(model), shape), x, bits)
    raw = raw_inputs(network, x)
    scores = run_c(c_source(network, "model", ["a test"]), "model", raw, network.steps[-1].out[0], SANITIZED)
    np.testing.assert_allclose(scores, in_numpy(network, raw) * network.score_scale, rtol=1e-6)
