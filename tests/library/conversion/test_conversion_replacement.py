"""The new modules: sizes within the budget, the interface of the old ones, their scale, the model's life afterwards."""

import copy
import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from dendritree import DendriticLayer, convert, count, load, save
from dendritree.errors import FormatError
from dendritree.models import MLP
from dendritree.wiring import Local


def total(model):
    return sum(parameter.numel() for parameter in model.parameters())


def mlp(*sizes, **options):
    steps = []
    for ins, outs in itertools.pairwise(sizes):
        steps += [nn.Linear(ins, outs, **options), nn.GELU()]
    return nn.Sequential(*steps[:-1])


# ------------------------------------------------------------------------------------------------------------- sizes


@given(
    sizes=st.lists(st.integers(24, 60), min_size=2, max_size=4),
    budget=st.floats(0.5, 1.0),
    branching=st.sampled_from(["auto", 2, 5, [3, 2], [2, [3]]]),
    wiring=st.sampled_from(["random", "strided"]),
    bias=st.booleans(),
)
def test_sizes_are_within_the_budget_and_the_report_counts_them(sizes, budget, branching, wiring, bias):
    model = mlp(*sizes, bias=bias)
    if len(sizes) == 2:  # a single layer cannot be much smaller than trees of a given shape
        budget = 1.0
    options = {"budget": budget, "branching": branching, "wiring": wiring}
    before = copy.deepcopy(model.state_dict())
    converted, report = convert(model, where="*", **options)
    (change,) = report.changes
    assert total(converted) == report.parameters_after == change.parameters_after <= budget * total(model)
    assert report.parameters_before == change.parameters_before == total(model)
    shape = (sizes[0],)
    assert change.multiply_adds_before == count(model, shape).multiply_adds
    assert change.multiply_adds_after == count(converted, shape).multiply_adds
    assert converted(torch.randn(3, sizes[0])).shape == (3, sizes[-1])
    assert all(bool((before[key] == value).all()) for key, value in model.state_dict().items())
    assert {type(module) for module in model} <= {nn.Linear, nn.GELU}


def test_a_single_layer_has_as_many_synapses_as_the_budget_allows():
    converted, _ = convert(nn.Linear(50, 7), budget=0.5)
    assert isinstance(converted, DendriticLayer)
    allowed = 7 * 51 // 2
    larger = DendriticLayer(50, 7, branching="auto", wiring="random", fan_in=converted.fan_in + 1)
    assert total(converted) <= allowed < total(larger)
    assert converted.coverage().max() - converted.coverage().min() <= 1


def test_an_mlp_has_as_many_hidden_neurons_as_the_budget_allows():
    converted, _ = convert(mlp(30, 40, 9), budget=0.5)
    hidden = converted[0].out_features
    a_neuron = 32 + 4 + 4 + 1 + 9  # edges, nodes, and what the read-out has for it
    assert hidden * a_neuron + 9 <= 0.5 * (31 * 40 + 41 * 9) < (hidden + 1) * a_neuron + 9
    assert converted[0].forest.fan_ins.tolist() == [8] * 4 * hidden + [4] * hidden


def test_a_number_of_parameters_is_shared_out_among_what_can_be_converted():
    model = nn.ModuleDict({"large": mlp(40, 80, 40), "small": mlp(20, 40, 20), "tiny": nn.Linear(2, 2)})
    converted, report = convert(model, budget="4k")
    large, small = (change.parameters_after for change in report.changes)
    assert 3_800 < large + small <= 4_000
    assert total(converted["tiny"]) == 6
    assert large / small == pytest.approx(total(model["large"]) / total(model["small"]), rel=0.1)


def test_an_image_is_wired_locally_in_the_first_layer_only():
    wiring = Local(window=3, image_shape=(1, 8, 8))
    converted, _ = convert(mlp(64, 50, 40, 10), wiring=wiring, branching=[6, 2])
    assert converted[0].wiring == wiring
    assert converted[0].out_features == pytest.approx(1.25 * converted[2].out_features, abs=1)  # proportions stay
    assert converted[2].wiring.name == "random"
    assert converted[0].windows is not None


# --------------------------------------------------------------------------------------------------------- interface


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("training", [True, False])
def test_dtype_training_mode_and_leading_dimensions_stay(dtype, training):
    model = nn.ModuleDict({"mlp": mlp(16, 30, 5), "one": nn.Linear(16, 5, bias=False)}).to(dtype).train(training)
    converted, _ = convert(model, where="*")
    assert {parameter.dtype for parameter in converted.parameters()} == {dtype}
    assert {module.training for module in converted.modules()} == {training}
    assert converted["one"].bias is None
    for layer in converted.values():
        for shape in [(), (3,), (2, 3), (2, 0), (1, 2, 3)]:
            y = layer(torch.randn(*shape, 16, dtype=dtype))
            assert y.shape == (*shape, 5)
            assert y.dtype == dtype


def test_other_modules_are_copied_and_frozen_ones_stay_frozen():
    model = nn.ModuleDict({"frozen": nn.Linear(10, 10), "norm": nn.LayerNorm(10), "head": nn.Linear(10, 4)})
    model.requires_grad_(False)
    converted, _ = convert(model, where="head")
    assert converted["frozen"] is not model["frozen"]
    assert torch.equal(converted["frozen"].weight, model["frozen"].weight)
    assert not converted["frozen"].weight.requires_grad
    assert all(parameter.requires_grad for parameter in converted["head"].parameters())


def by_loops(layer, x):
    """The trees' equations, node by node; the roots are linear."""
    forest, rows = layer.forest, x.tolist()
    roots = set(forest.roots.tolist())
    for node in range(forest.nodes):
        edges = range(forest.offsets[node], forest.offsets[node + 1])
        z = sum(layer.weight[e].item() * rows[forest.source[e]] for e in edges) + layer.bias[node].item()
        rows.append(z if node in roots or z > 0 else 0.1 * z)
    return torch.tensor([rows[forest.in_features + root] for root in forest.roots], dtype=x.dtype)


def test_an_mlp_is_trees_then_its_own_activation_then_a_linear_readout():
    converted, _ = convert(mlp(12, 20, 4).double())
    x = torch.randn(12, dtype=torch.float64)
    hidden = nn.functional.gelu(by_loops(converted[0], x))
    expected = converted[2].weight @ hidden + converted[2].bias
    torch.testing.assert_close(converted(x), expected)
    single, _ = convert(nn.Linear(12, 6).double())
    torch.testing.assert_close(single(x), by_loops(single, x))


# ------------------------------------------------------------------------------------------------------------- scale


def test_outputs_begin_on_the_scale_of_what_they_replace():
    torch.manual_seed(0)
    layer = nn.Linear(100, 400)
    with torch.no_grad():
        layer.weight *= torch.linspace(0.1, 10, 400)[:, None]
        layer.bias.fill_(3.0)
    converted, _ = convert(layer)
    y = converted(torch.randn(4000, 100)).detach()
    ratio = (y - 3.0).square().mean(0) / layer.weight.detach().square().sum(1)
    assert 0.85 < ratio.mean() < 1.15  # the mean of 400 draws
    assert torch.equal(converted.bias.detach()[converted.forest.roots.tolist()], layer.bias)


# ------------------------------------------------------------------------------------------------------ life afterwards


def test_the_conversion_depends_on_torchs_seed_alone():
    model = mlp(16, 30, 5)

    def converted(seed):
        torch.manual_seed(seed)
        return convert(model)[0].state_dict()

    first, again, other = converted(0), converted(0), converted(1)
    assert all(torch.equal(first[key], again[key]) for key in first)
    assert not torch.equal(first["0.weight"], other["0.weight"])
    assert not torch.equal(first["0.forest_source"], other["0.forest_source"])


def test_a_dry_run_reports_the_same_and_changes_nothing():
    model = mlp(16, 30, 5)
    state = torch.get_rng_state()
    same, planned = convert(model, dry_run=True)
    assert same is model
    assert torch.equal(torch.get_rng_state(), state)
    assert {type(module) for module in model} == {nn.Linear, nn.GELU}
    assert planned == convert(model)[1]


def test_a_converted_model_of_ours_is_not_saved_as_what_it_was(tmp_path):
    model = MLP(64, 10, hidden=40)
    converted, report = convert(model)
    assert [change.modules for change in report.changes] == [("hidden", "readout")]
    save(converted, tmp_path / "model")
    with pytest.raises(FormatError, match=r"load\(folder, into=model\)"):
        load(tmp_path / "model")
    x = torch.randn(3, 64)
    assert torch.equal(load(tmp_path / "model", into=model)(x), converted.eval()(x))
