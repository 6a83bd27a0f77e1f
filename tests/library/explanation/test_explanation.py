"""Contributions against recursions from the equations, sums against the outputs, and errors."""

import copy

import pytest
import torch
from forests import NAMED, edges_of, forests, seeds
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from dendritree import DendriticLayer, MLNBinaryClassifier, MLNClassifier
from dendritree.errors import DendritreeError, OptionError
from dendritree.explanation import explain
from dendritree.layers import trace
from dendritree.layers.activation import NAMED_ACTIVATIONS
from dendritree.models import MLP, DendriticNetwork, DenseNetwork, NeuronNetwork, Perceptrons
from dendritree.models.chain import Chain
from dendritree.pruning import importances


class Bump(nn.Module):
    """Neither monotone nor of one sign, and with a weight of its own."""

    def __init__(self):
        super().__init__()
        self.width = nn.Parameter(torch.tensor(0.7))

    def forward(self, x):
        return torch.exp(-self.width * x.square()) + 0.1 * torch.sin(3 * x)


EVERY = [*NAMED_ACTIVATIONS, nn.ELU, nn.Softplus, nn.Hardtanh, nn.PReLU, Bump]


def layer_of(forest, activation="leaky_relu", root_activation=True, bias=True, seed=0):
    """A layer of any forest with random weights."""
    torch.manual_seed(seed)
    layer = DendriticLayer.from_forest(
        forest, activation=activation, root_activation=root_activation, bias=bias, dtype=torch.float64, backend="eager"
    )
    if bias:
        nn.init.normal_(layer.bias)
    return layer


def by_recursion(layer, x, reference):
    """Contribution of every edge for one sample, one Python step per edge: secants multiplied along the path."""
    forest, act = layer.forest, layer.activation
    roots = set(forest.roots.tolist())

    def run(values):
        rows, sums = list(values), []
        for node in range(forest.nodes):
            total = torch.zeros((), dtype=torch.float64) if layer.bias is None else layer.bias[node]
            for place, row in enumerate(edges_of(forest, node)):
                total = total + layer.weight[forest.offsets[node] + place] * rows[row]
            sums.append(total)
            rows.append(act(total) if layer.root_activation or node not in roots else total)
        return rows, sums

    (rows, sums), (rows0, sums0) = run(x), run(reference)
    contributions = torch.zeros(forest.edges, dtype=torch.float64)

    def walk(node, factor):
        if layer.root_activation or node not in roots:
            factor = factor * (rows[forest.in_features + node] - rows0[forest.in_features + node])
            factor = factor / (sums[node] - sums0[node])
        for place, row in enumerate(edges_of(forest, node)):
            edge = forest.offsets[node] + place
            weight = layer.weight[edge]
            contributions[edge] = (factor * weight * (rows[row] - rows0[row])).detach()
            if row >= forest.in_features:
                walk(row - forest.in_features, factor * weight)

    for root in forest.roots.tolist():
        walk(root, torch.ones((), dtype=torch.float64))
    return contributions


@given(forests(), st.sampled_from([a for a in EVERY if a not in ("relu", nn.Hardtanh)]), st.booleans(), seeds)
def test_contributions_are_products_of_secants_along_the_path(forest, activation, root_activation, seed):
    layer = layer_of(forest, activation, root_activation, seed=seed)
    x, reference = torch.randn(2, forest.in_features, dtype=torch.float64).unbind()
    result, wanted = explain(layer, x, reference), by_recursion(layer.double(), x, reference)
    assert torch.allclose(result.synapses, wanted[forest.synapse_edges.tolist()], atol=1e-9)
    for edge in range(forest.edges):
        if forest.source[edge] >= forest.in_features:
            dendrite = forest.source[edge] - forest.in_features
            assert result.dendrites[dendrite] == pytest.approx(float(wanted[edge]), abs=1e-9)
    assert torch.allclose(result.dendrites[forest.roots.tolist()], result.output - result.baseline)


@given(forests(), st.sampled_from(EVERY), st.booleans(), st.booleans(), seeds, st.sampled_from([(), (3,), (2, 2)]))
def test_parts_add_up_to_the_output_for_every_activation(forest, activation, root_activation, bias, seed, leading):
    layer = layer_of(forest, activation, root_activation, bias, seed).double()
    x = torch.randn(*leading, forest.in_features, dtype=torch.float64)
    for reference in (0, torch.randn(forest.in_features), x.clone(), x + 1e-13):
        result = explain(layer, x, reference)
        assert result.check() < 1e-8
        assert torch.allclose(result.output, layer(x), atol=1e-10)
        start = torch.as_tensor(reference, dtype=torch.float64).expand_as(x)
        assert torch.allclose(result.baseline, layer(start), atol=1e-10)
        sums = result.baseline.clone()
        for synapse, neuron in enumerate(forest.neuron_of_synapse):
            sums[..., neuron] += result.synapses[..., synapse]
        assert torch.allclose(sums, result.output, rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", NAMED)
def test_a_dendrite_contributes_what_the_synapses_above_it_do(name):
    forest = NAMED[name]
    result = explain(layer_of(forest, "tanh"), torch.randn(forest.in_features))
    synapse = {int(edge): number for number, edge in enumerate(forest.synapse_edges)}

    def above(node):
        edges = range(forest.offsets[node], forest.offsets[node + 1])
        rows = [(edge, int(forest.source[edge]) - forest.in_features) for edge in edges]
        return sum(above(row) if row >= 0 else float(result.synapses[synapse[edge]]) for edge, row in rows)

    for node in range(forest.nodes):
        assert float(result.dendrites[node]) == pytest.approx(above(node), abs=1e-12)
    by_input = torch.zeros(forest.neurons, forest.in_features, dtype=torch.float64)
    for number, (neuron, source) in enumerate(zip(forest.neuron_of_synapse, forest.synapse_inputs, strict=True)):
        by_input[neuron, source] += result.synapses[number]
    assert torch.allclose(result.inputs, by_input, atol=1e-12)


def test_where_input_and_reference_coincide_multipliers_are_gradients():
    layer = layer_of(NAMED["unequal"], "tanh")
    x = torch.randn(NAMED["unequal"].in_features, dtype=torch.float64, requires_grad=True)
    result = explain(layer, x.detach(), x.detach())
    gradient = torch.autograd.functional.jacobian(layer, x.detach())
    summed = torch.zeros_like(gradient)
    forest = layer.forest
    for number, (neuron, source) in enumerate(zip(forest.neuron_of_synapse, forest.synapse_inputs, strict=True)):
        summed[neuron, source] += result.multipliers[number]
    assert torch.allclose(summed, gradient)
    assert not result.synapses.any()


def test_the_layer_is_left_as_it_was_and_is_taken_in_evaluation_mode():
    layer = DendriticLayer(16, 2, branching=[4, 2], wiring="partition", dropout=0.5, backend="eager").train()
    before, x = copy.deepcopy(layer.state_dict()), torch.randn(3, 16)
    result = explain(layer, x)
    assert layer.training
    assert layer.weight.dtype == torch.float32
    assert all(torch.equal(value, layer.state_dict()[key]) for key, value in before.items())
    assert result.output.dtype == torch.float64
    assert torch.allclose(result.output, layer.eval()(x).double(), atol=1e-5)


# ------------------------------------------------------------------------------------------------------------- models


def settled(model):
    """Running figures of batch norm that are not those of a fresh one, and biases that are not 0."""
    torch.manual_seed(1)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.bias)
    return model.double().eval()


class Own(Chain):
    """A user's model that states its chain."""

    def __init__(self):
        super().__init__()
        self.trees, self.last = DendriticLayer(16, 5), nn.Linear(5, 3)

    def chain(self):
        return [self.trees, nn.Tanh(), self.last]


MODELS = {
    "own chain": Own,
    "k-trees": lambda: NeuronNetwork(16, [5], 3, neuron="ktree"),
    "network": lambda: DendriticNetwork(16, [6, 5], 3, fan_in=4, norm="batch", dropout=0.2, output="logits"),
    "dendritic read-out": lambda: DendriticNetwork(16, [6], 3, fan_in=4, readout="dendritic", output="logits"),
    "classifier": lambda: MLNClassifier(16, 3, branching=4, activation="gelu", output="logits"),
    "binary": lambda: MLNBinaryClassifier(16, branching=4, output="logits"),
    "dense": lambda: DenseNetwork(16, [5, 4], 3, norm="batch", output="logits"),
    "perceptrons": lambda: Perceptrons(16, 3, output="logits"),
    "control": lambda: MLP(16, 3, hidden=5, output="logits"),
    "layer norm": lambda: DendriticNetwork(16, [6, 5], 3, fan_in=4, norm="layer", output="logits"),
    "rms norm": lambda: nn.Sequential(nn.Linear(16, 8), nn.RMSNorm(8, 1e-3), nn.AlphaDropout(), DendriticLayer(8, 3)),
    "sequential": lambda: nn.Sequential(
        nn.Linear(16, 8),
        nn.Tanh(),
        nn.Sequential(DendriticLayer(8, 2, branching=4, wiring="partition"), nn.Dropout()),
        nn.PReLU(),
    ),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("leading", [(), (0,), (2, 3)])
def test_a_model_is_taken_apart_by_inputs_and_at_every_layer(name, leading):
    model = settled(MODELS[name]())
    x = torch.randn(*leading, 16, dtype=torch.float64)
    for reference in (0.0, torch.randn(16), 0.5):
        result = explain(model, x, reference)
        assert result.check() < 1e-8
        assert torch.allclose(result.output, model(x), atol=1e-10)
        start = torch.as_tensor(reference, dtype=torch.float64).expand_as(x)
        assert torch.allclose(result.baseline, model(start), atol=1e-10)
        assert torch.allclose(result.baseline + result.inputs.sum(-1), result.output, rtol=0, atol=1e-8)
        for layer in range(len(result.layers)):
            for output in range(result.output.shape[-1]):
                change = (result.output - result.baseline)[..., output]
                assert torch.allclose(result.synapses(output, layer).sum(-1), change, atol=1e-8)
                roots = result.layers[layer].forest.roots.tolist()
                assert torch.allclose(result.dendrites(output, layer)[..., roots].sum(-1), change, atol=1e-8)


def test_probabilities_are_explained_by_their_logits():
    model = MLNClassifier(16, 3, branching=4, output="probabilities")
    x = torch.randn(4, 16)
    result = explain(model, x)
    assert torch.allclose(result.output.softmax(-1), model(x).double(), atol=1e-5)


# ------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: explain(DendriticLayer(4, 1), 3.0), "x must be a tensor"),
        (lambda: explain(DendriticLayer(4, 1), torch.ones(3)), "in_features 4"),
        (lambda: explain(DendriticLayer(4, 1), torch.ones(4), torch.ones(3)), "reference must be"),
        (lambda: explain(nn.Conv2d(1, 1, 1), torch.ones(4)), "Conv2d rejects"),
        (lambda: explain(nn.Conv2d(1, 1, 1), torch.ones(2, 1, 3, 3)), "nn.Flatten"),
        (lambda: explain(nn.MaxPool2d(2), torch.ones(2, 1, 4, 4)), "got MaxPool2d"),
        (lambda: explain(nn.Softmax(dim=-1), torch.ones(4)), r"model\[:-1\]"),
        (lambda: explain(nn.Flatten(2), torch.ones(2, 2)), "got Flatten from dimension 2"),
        (lambda: explain(nn.Flatten(), torch.ones(4)), r"\(batch, ...\)"),
        (lambda: explain(nn.Sequential(nn.Linear(4, 2), nn.Flatten()), torch.ones(3, 2, 4)), "for Linear"),
        (lambda: explain(nn.Linear(3, 1), torch.ones(4)), "Linear rejects shape"),
        (lambda: explain(nn.BatchNorm1d(4).eval(), torch.ones(5, 3, 4)), "for nn.BatchNorm1d"),
        (lambda: explain(MLNClassifier(4, 2, branching=2), torch.ones(4)).synapses(2), "got 2"),
    ],
)
def test_what_cannot_be_explained_is_rejected(make, rule):
    with pytest.raises(DendritreeError, match=rule):
        make()


class Residual(nn.Sequential):
    def forward(self, x):
        return x + super().forward(x)


class Bent(DendriticLayer):
    def forward(self, x):
        return super().forward(x).square()


def patched(module):
    """A module whose forward was exchanged by hand."""
    module.forward = torch.neg
    return module


def hooked(module, kind="forward_hook"):
    getattr(module, f"register_{kind}")(lambda *_: None)
    return module


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: nn.Sequential(Residual(nn.Linear(4, 4)), nn.Linear(4, 2)), "Residual, which has its own forward"),
        (lambda: Bent(4, 2, branching=2), "Bent, which has its own forward"),
        (lambda: nn.Sequential(nn.Linear(4, 4), patched(nn.ReLU())), "ReLU, which has its own forward"),
        (lambda: hooked(MLNClassifier(4, 2, branching=2)), "MLNClassifier, which has forward hooks"),
        (lambda: hooked(nn.Sequential(nn.Linear(4, 2)), "forward_pre_hook"), "Sequential, which has forward hooks"),
    ],
)
def test_a_module_that_may_compute_something_else_than_its_class_is_rejected(make, rule):
    with pytest.raises(OptionError, match=rule):
        explain(make(), torch.ones(1, 4))


def test_a_sum_that_is_off_is_reported():
    result = explain(DendriticLayer(4, 1, branching=2), torch.ones(4))
    wrong = type(result)(result.output + 1e-6, *(getattr(result, name) for name in list(vars(result))[1:]))
    with pytest.raises(DendritreeError, match="add up to the output"):
        wrong.check()


@pytest.mark.parametrize("root_activation", [True, False])
@pytest.mark.parametrize("activation", [nn.SiLU, nn.ReLU, nn.ELU])
def test_activations_that_change_what_they_are_given_are_explained(activation, root_activation):
    def network(inplace):
        torch.manual_seed(0)
        acts = [activation(inplace=inplace) for _ in range(4)]
        options = {"root_activation": root_activation, "dtype": torch.float64}
        first = DendriticLayer(16, 6, branching=2, activation=acts[0], **options)
        second = DendriticLayer(6, 2, branching=2, fan_in=4, wiring="random", activation=acts[1], **options)
        return nn.Sequential(acts[2], first, acts[3], second)

    x = torch.randn(7, 16, dtype=torch.float64)
    kept, one, other = x.clone(), network(False), network(True)
    for result, wanted in ((trace(m[1], x), explain(m, x)) for m in (one, other)):
        torch.testing.assert_close(result, trace(one[1], kept), rtol=0, atol=0)
        torch.testing.assert_close(wanted.inputs, explain(one, kept).inputs)
        assert wanted.check() < 1e-8
    torch.testing.assert_close(importances(other[1], x), importances(one[1], kept))
    assert torch.equal(x, kept)


def test_images_are_explained_in_their_shape_where_the_model_flattens_them():
    trees = DendriticLayer(24, 5, branching=[4, 2], wiring="random")
    model = settled(nn.Sequential(nn.Hardtanh(), nn.Flatten(), trees, nn.LayerNorm(5), nn.Flatten(), nn.Linear(5, 3)))
    x = torch.randn(4, 2, 3, 4, dtype=torch.float64)
    for reference in (None, 0.5, x.mean(0)):
        result = explain(model, x, reference)
        assert result.inputs.shape == (4, 3, 2, 3, 4)
        assert result.check() < 1e-8
        assert torch.allclose(result.output, model(x), atol=1e-10)
        assert torch.allclose(result.baseline + result.inputs.sum((2, 3, 4)), result.output, rtol=0, atol=1e-8)
