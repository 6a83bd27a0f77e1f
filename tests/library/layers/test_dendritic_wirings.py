"""Layers of every tree, wiring and repeat: backends against a loop, counts, coverage, files, copies."""

import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from forests import assert_same, loop, random_case, run
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from wiring_cases import by_neuron, layer_options

import dendritree
from dendritree import DendriticLayer, MLNClassifier, budget
from dendritree.wiring import Custom, Local, Random

ACTIVATIONS = {"leaky_relu": nn.LeakyReLU(0.1), "tanh": torch.tanh}


def run_layer(layer, case):
    """`forests.run` through the layer's own forward."""

    def forward(x, weight, bias):
        parameters = {"weight": weight} if bias is None else {"weight": weight, "bias": bias}
        return torch.func.functional_call(layer, parameters, x)

    return run(forward, case)


@given(layer_options(), st.sampled_from(sorted(ACTIVATIONS)), st.sampled_from([(3,), (), (2, 2), (0,)]))
def test_outputs_and_all_gradients_of_every_backend_equal_the_loop(options, activation, leading):
    layer = DendriticLayer(**options, activation=activation, dtype=torch.float64)
    case = random_case(layer.forest, leading, bias=options["bias"])
    with_soma = options["repeats"] is not None
    expected = run(
        lambda x, weight, bias: loop(x, weight, bias, layer.forest, ACTIVATIONS[activation], not with_soma), case
    )
    for layer.backend in ("reference", "eager", "fused", "auto"):
        assert_same(run_layer(layer, case), expected)


@given(layer_options())
def test_counts_and_coverage_are_what_can_be_counted(options):
    layer = DendriticLayer(**options)
    parameters = sum(p.numel() for p in layer.parameters())
    assert budget.count(layer).total == layer.forest.parameters(bias=options["bias"]) == parameters
    assert layer.weight.shape == (layer.forest.edges,)
    times = Counter(i for inputs in by_neuron(layer.forest) for i in inputs)
    coverage = layer.coverage()
    assert coverage.tolist() == [times[i] for i in range(layer.in_features)]
    trees = options["repeats"] or 1
    assert layer.fan_in == max(map(len, by_neuron(layer.forest)))
    if "fan_in" in options:
        assert layer.fan_in == trees * options["fan_in"]


# -------------------------------------------------------------------------------------------------------------- files


@given(layer_options())
def test_saved_models_come_back_exactly(options):
    model = MLNClassifier(**options).eval()
    with tempfile.TemporaryDirectory() as folder:
        dendritree.save(model, Path(folder) / "model")
        state = torch.get_rng_state()
        actual = dendritree.load(Path(folder) / "model")
        assert torch.equal(torch.get_rng_state(), state)
    assert actual.layer.forest == model.layer.forest
    assert actual.layer.wiring == model.layer.wiring
    assert actual.layer.repeats == options["repeats"]
    for name, value in model.state_dict().items():
        assert torch.equal(actual.state_dict()[name], value), name
    x = torch.randn(4, options["in_features"])
    assert torch.equal(actual(x), model(x))


@pytest.mark.parametrize(
    "wiring", [Random(), Random(seed=np.int64(3)), Local(window=2, place="free"), Custom(torch.arange(6).reshape(3, 2))]
)
def test_options_of_wirings_are_saved(wiring, tmp_path):
    model = MLNClassifier(16, 3, branching="auto", wiring=wiring)
    dendritree.save(model, tmp_path / "model")
    assert dendritree.load(tmp_path / "model").layer.wiring == wiring


# --------------------------------------------------------------------------------------------------- seeds and devices


def test_dropout_and_training_work_on_every_kind_of_tree():
    torch.manual_seed(0)
    for branching in ("auto", 3, [4, 3], [2, [4], [3, [3]]]):
        for repeats in (None, 2):
            layer = DendriticLayer(30, 4, branching=branching, wiring="random", dropout=0.3, repeats=repeats)
            x = torch.randn(64, 30)
            assert not torch.equal(layer(x), layer(x))
            layer(x).square().mean().backward()
            assert layer.weight.grad.abs().sum() > 0
            assert torch.equal(layer.eval()(x), layer(x))
