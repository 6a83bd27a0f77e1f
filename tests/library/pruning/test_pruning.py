"""Pruned layers against the whole ones with the same parts silenced, budgets, files and errors."""

import numpy as np
import pytest
import torch
from forests import NAMED, as_lists, edges_of, forests, seeds
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from dendritree import DendriticLayer, FitConfig, MLNClassifier, Rewiring, create_model, fit, load, save
from dendritree.errors import DendritreeError, ShapeError
from dendritree.models import DendriticNetwork
from dendritree.pruning import importances, prune, pruning_curve
from dendritree.training import evaluate
from dendritree.training.examples import Examples, Split
from dendritree.wiring import Local, Tied

EAGER = {"backend": "eager", "dtype": torch.float64}


def layer_of(forest, seed=0, **options):
    torch.manual_seed(seed)
    layer = DendriticLayer.from_forest(forest, **EAGER, **options)
    if layer.bias is not None:
        nn.init.normal_(layer.bias)
    return layer


def size(model):
    return sum(parameter.numel() for parameter in model.parameters())


def path_products(layer):
    """For each edge, the product of the weights from there to the root; by recursion."""
    forest, products, weights = layer.forest, np.zeros(layer.forest.edges), layer.weight.tolist()

    def walk(node, factor):
        for place, row in enumerate(edges_of(forest, node)):
            edge = int(forest.offsets[node]) + place
            products[edge] = factor * abs(weights[edge])
            if row >= forest.in_features:
                walk(row - forest.in_features, products[edge])

    for root in forest.roots.tolist():
        walk(root, 1.0)
    return products


# ----------------------------------------------------------------------------------------------------------- equality


@given(forests(), seeds, st.sampled_from(["tanh", "sigmoid", "leaky_relu", "relu"]), st.booleans(), st.booleans())
def test_without_parts_of_weight_zero_the_outputs_are_the_same(forest, seed, activation, bias, root_activation):
    layer = layer_of(forest, seed, activation=activation, bias=bias, root_activation=root_activation)
    random = np.random.default_rng(seed)
    with torch.no_grad():
        layer.weight[torch.from_numpy(random.random(forest.edges) < 0.4)] = 0.0
    small, x = prune(layer, threshold=0), torch.randn(5, forest.in_features).double() * 3
    assert torch.allclose(small(x), layer(x), atol=1e-9)
    reached = (path_products(layer)[forest.synapse_edges] > 0).sum()
    assert small.forest.synapses == reached + sum(  # neurons without any keep one, of weight 0
        not path_products(layer)[forest.synapse_edges][forest.neuron_of_synapse == n].any()
        for n in range(forest.neurons)
    )


@given(forests(), seeds, st.sampled_from(["tanh", "relu", "leaky_relu"]))
def test_what_never_moves_on_the_examples_can_go(forest, seed, activation):
    layer = layer_of(forest, seed, activation=activation)
    examples = torch.randn(6, forest.in_features, generator=torch.Generator().manual_seed(seed)).double()
    examples[:, torch.from_numpy(np.random.default_rng(seed).random(forest.in_features) < 0.5)] = 0.7  # always the same
    small = prune(layer, threshold=0, examples=examples)
    assert torch.allclose(small(examples), layer(examples), atol=1e-9)
    moving = set(np.flatnonzero((examples != 0.7).any(0).numpy()).tolist())
    synapses = zip(small.weight[small.forest.synapse_edges.tolist()].tolist(), small.forest.synapse_inputs, strict=True)
    assert {source for weight, source in synapses if weight} <= moving  # a silent neuron keeps one of weight 0


@given(forests(), seeds, st.floats(0, 3), st.booleans())
def test_the_reference_is_answered_as_before_whatever_goes(forest, seed, threshold, with_examples):
    layer = layer_of(forest, seed, activation="tanh")
    examples = torch.randn(5, forest.in_features).double() if with_examples else None
    reference = torch.randn(forest.in_features).double()
    small = prune(layer, threshold=threshold, examples=examples, reference=reference)
    assert torch.allclose(small(reference), layer(reference), atol=1e-9)


def test_a_branch_is_replaced_by_its_answer_to_the_reference():
    layer = DendriticLayer(4, 1, branching=2, activation="sigmoid", **EAGER)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([1.0, 2.0, 0.01, 0.02, 1.5, 0.5]))
        layer.bias.copy_(torch.tensor([0.1, 0.2, 0.3]))
    small = prune(layer, threshold=0.02)
    assert as_lists(small.forest) == [[[0, 1]]]
    assert torch.allclose(small.weight, torch.tensor([1.0, 2.0, 1.5]).double())
    constant = 0.3 + 0.5 * torch.sigmoid(torch.tensor(0.2)).double()
    assert torch.allclose(small.bias, torch.stack([torch.tensor(0.1).double(), constant]))


def test_a_neuron_that_loses_everything_answers_a_constant():
    layer = DendriticLayer(8, 2, branching=2, wiring="partition", activation="tanh", **EAGER)
    small = prune(layer, threshold=1e9)
    assert as_lists(small.forest)[0][0] in range(4)
    assert (small.forest.edges, small.forest.nodes) == (2, 2)
    assert torch.allclose(small(torch.randn(5, 8).double()), layer(torch.zeros(5, 8).double()))


def test_constants_give_biases_to_a_layer_that_had_none():
    layer = DendriticLayer(4, 1, branching=2, activation="sigmoid", bias=False, **EAGER)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([1.0, 2.0, 0.0, 0.0, 1.5, 0.5]))
    small, x = prune(layer, threshold=0), torch.randn(5, 4).double()
    assert small.bias is not None
    assert torch.allclose(small(x), layer(x))
    odd = DendriticLayer(4, 1, branching=2, activation="tanh", bias=False, **EAGER)
    assert prune(odd, budget=4).bias is None  # tanh(0) is 0: nothing to fold


# --------------------------------------------------------------------------------------------------------- importance


@pytest.mark.parametrize("name", NAMED)
def test_importance_by_weights_is_the_product_along_the_path(name):
    layer = layer_of(NAMED[name])
    measured, wanted = importances(layer).numpy(), path_products(layer)
    synapses = NAMED[name].synapse_edges
    np.testing.assert_allclose(measured[synapses], wanted[synapses])
    # A branch matters as much as all its synapses together
    by_root = [
        measured[e] for r in NAMED[name].roots for e in range(NAMED[name].offsets[r], NAMED[name].offsets[r + 1])
    ]
    assert sum(by_root) == pytest.approx(wanted[synapses].sum())


def test_importance_on_examples_by_hand():
    layer = DendriticLayer(4, 1, branching=2, activation="tanh", root_activation=False, **EAGER)
    nn.init.normal_(layer.bias)
    x = torch.randn(7, 4).double()
    w, c, start = layer.weight.detach(), layer.bias.detach(), x.mean(0)
    wanted = torch.zeros(6).double()
    for dendrite in range(2):
        inputs = [2 * dendrite, 2 * dendrite + 1]
        sums, at = x[:, inputs] @ w[inputs] + c[dendrite], start[inputs] @ w[inputs] + c[dendrite]
        slope = ((sums.tanh() - at.tanh()) / (sums - at)).mean()
        for i in inputs:
            wanted[i] = (w[i] * (x[:, i] - start[i])).abs().mean() * slope * w[4 + dendrite].abs()
        wanted[4 + dendrite] = (w[4 + dendrite] * (sums.tanh() - at.tanh())).abs().mean()
    assert torch.allclose(importances(layer, x), wanted)


@given(forests(), seeds, st.floats(0.1, 1))
def test_a_budget_is_kept_and_the_weakest_go_first(forest, seed, share):
    layer = layer_of(forest, seed)
    budget = max(2 * forest.neurons, round(share * size(layer)))
    small = prune(layer, budget=budget)
    assert size(small) <= budget
    if size(layer) <= budget:
        assert small.forest == layer.forest
        assert torch.equal(small.weight, layer.weight)
        return
    products = path_products(layer)[forest.synapse_edges]
    kept = np.sort(products)[::-1][: small.forest.synapses]
    inputs = sorted(forest.synapse_inputs[np.argsort(-products, kind="stable")][: len(kept)].tolist())
    if len(set(products.tolist())) == len(products) and (small.weight != 0).all():  # no ties, nobody silent
        assert sorted(small.forest.synapse_inputs.tolist()) == inputs


def test_several_layers_share_a_budget():
    torch.manual_seed(0)
    net = DendriticNetwork(64, [12, 10], 4, fan_in=8, norm="batch", output="logits", backend="eager")
    x = torch.rand(50, 64)
    small = prune(net, budget=size(net) - 60, examples=x)
    assert size(net) - 66 <= size(small) <= size(net) - 60
    assert all(layer.regrown for layer in (small.hidden[0], small.hidden[2]))
    same = prune(net, threshold=0, examples=x)
    assert torch.allclose(same.eval()(x), net.eval()(x), atol=1e-5)


@pytest.mark.parametrize("steps", [(nn.BatchNorm1d(12), nn.Tanh()), (nn.Dropout(0.3), nn.ReLU()), ()])
def test_whole_neurons_go_with_their_column_of_the_readout(steps):
    torch.manual_seed(0)
    layer = DendriticLayer(30, 12, fan_in=6, branching=3, wiring="random")
    net, x = nn.Sequential(layer, *steps, nn.Linear(12, 5)), torch.randn(200, 30)
    net.train()(x)  # statistics of the norm
    idle = torch.tensor([2, 7])
    with torch.no_grad():
        layer.bias[layer.forest.roots[idle].tolist()] = 0.3
        layer.weight[torch.from_numpy(np.isin(layer.forest.neuron_of_node[layer.forest.node_of_edge], idle))] = 0.0
        net[-1].weight[:, 4] = 0.0  # does not matter to any output
    same = prune(net.eval(), threshold=0, examples=x)
    assert same[0].out_features == same[-1].in_features == 9
    assert torch.allclose(same(x), net(x), atol=1e-5)
    small = prune(net, budget=0.5, examples=x)
    assert size(small) <= 0.5 * size(net)
    assert small[0].out_features < 12
    assert torch.allclose(small(x.mean(0, keepdim=True)), net(x.mean(0, keepdim=True)), atol=1e-5)


@pytest.mark.parametrize("step", [nn.LayerNorm(12), nn.PReLU(12)])
def test_neurons_stay_where_a_step_mixes_them(step):
    net = nn.Sequential(DendriticLayer(30, 12, fan_in=6, branching=3, wiring="random"), step, nn.Linear(12, 5))
    small = prune(net, budget=0.7, examples=torch.randn(50, 30))
    assert small[0].out_features == 12


# -------------------------------------------------------------------------------------------------- files and training


@pytest.fixture
def data():
    x = torch.rand(300, 36, generator=torch.Generator().manual_seed(0))
    x[:, :6] = 0.25  # never move
    y = (x[:, 6:20].sum(1) > x[:, 20:34].sum(1)).long() + 2 * (x[:, 34] > 0.5).long()
    return Split(Examples(x[:200], y[:200]), Examples(x[200:250], y[200:250]), Examples(x[250:], y[250:]))


TREES = {"branching": [4, 4], "wiring": Tied(window=3, stride=1, seed=0)}
MODELS = {
    "shared": lambda: MLNClassifier(64, 4, branching=8, output="logits"),
    "local": lambda: MLNClassifier(64, 4, branching=6, wiring=Local(window=3, seed=0), fan_in=12, output="logits"),
    "tied layer": lambda: DendriticLayer(64, 6, **TREES),
    "tied sequence": lambda: nn.Sequential(DendriticLayer(64, 6, **TREES), nn.Linear(6, 3)),
    "tied network": lambda: DendriticNetwork(64, [8], 3, **TREES),
    "preset": lambda: create_model("dendritic-single", in_features=64, image_shape=(1, 8, 8), budget=900),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_pruned_model_is_saved_and_loaded(name, tmp_path):
    torch.manual_seed(0)
    model, x = MODELS[name](), torch.randn(20, 64)
    small = prune(model, budget=0.8, examples=x)
    assert size(small) <= 0.8 * size(model)
    save(small, tmp_path / "small")
    again = load(tmp_path / "small")
    assert size(again) == size(small)
    assert torch.equal(again.eval()(x), small.eval()(x))
    if name == "local":
        assert "unequal trees" in repr(again)
        np.testing.assert_array_equal(again.layer.windows, small.layer.windows)


def test_a_pruned_model_learns_and_its_synapses_move(data):
    torch.manual_seed(0)
    net = MLNClassifier(36, 4, branching=4, wiring=Local(window=3), fan_in=16, backend="eager", output="logits")
    small = prune(net, budget=70, examples=data.train.x)
    before = small.layer.forest.source.copy()
    config = FitConfig(epochs=4, lr=0.02, restore_best=False)
    history = fit(small, data, config, callbacks=[Rewiring(0.3, where="window")])
    assert history.epochs[-1].train_loss < history.epochs[0].train_loss
    assert (small.layer.forest.source != before).any()


@pytest.mark.parametrize("seconds", [60.0, 1e-9, 0.0])
def test_data_retrain_the_smaller_model_within_a_time(data, seconds):
    torch.manual_seed(0)
    net = DendriticNetwork(36, [20], 4, fan_in=12, norm="batch", backend="eager")
    fit(net, data, FitConfig(epochs=8, lr=0.02))
    small = prune(net, budget=0.4, data=data, seconds=seconds)
    assert size(small) <= 0.4 * size(net)
    bare = prune(net, budget=0.4, examples=data.train.x)
    assert torch.equal(small.readout.weight, bare.readout.weight) == (seconds == 0)
    if seconds == 60.0:
        assert evaluate(small, data.train)[0] < evaluate(bare, data.train)[0]


def test_the_curve_falls_from_the_whole_model(data):
    torch.manual_seed(0)
    net = MLNClassifier(36, 4, branching=6, backend="eager", output="logits")
    fit(net, data, FitConfig(epochs=8, lr=0.02))
    curve = pruning_curve(net, data)
    assert curve[0].parameters == size(net)
    assert [p.parameters for p in curve] == sorted({p.parameters for p in curve}, reverse=True)
    assert [p.synapses for p in curve] == sorted((p.synapses for p in curve), reverse=True)
    with torch.no_grad():
        right = (net.eval()(data.val.x).argmax(-1) == data.val.y).double().mean()
    assert curve[0].accuracy == pytest.approx(float(right))
    assert curve[-1].accuracy < curve[0].accuracy
    trained = pruning_curve(net, data, budgets=[200], retrain=FitConfig(epochs=3, lr=0.01), part="test")
    assert trained[0].loss < pruning_curve(net, data, budgets=[200], part="test")[0].loss


# ----------------------------------------------------------------------------------------------------------- errors


LAYER = DendriticLayer(4, 1, branching=2)
NET = MLNClassifier(4, 2, branching=2)
SQUARE = DendriticLayer(4, 4, branching=2, wiring="random")
AGAIN = nn.Sequential(SQUARE, nn.Tanh(), nn.Sequential(SQUARE), nn.Linear(4, 2))


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: prune(LAYER), "a budget or a threshold"),
        (lambda: prune(LAYER, threshold=-1), "threshold must be"),
        (lambda: prune(LAYER, budget=0), "budget must be"),
        (lambda: prune(LAYER, budget=1), "at least 2 parameters, the fewest"),
        (lambda: prune(NET, budget=9), "with examples=.* or data="),
        (lambda: prune(LAYER, budget="9k"), "at most the model's own .* got 9,000"),
        (lambda: prune(nn.Linear(4, 1), budget=4), "got Linear"),
        (lambda: prune(AGAIN, budget=9), "layer once"),
        (lambda: prune(LAYER, budget=4, examples=torch.ones(4)), "examples must be"),
        (lambda: prune(LAYER, budget=4, reference=torch.ones(3)), "reference must be"),
        (lambda: importances(NET), "got MLNClassifier"),
        (lambda: prune(LAYER, budget=4, data=(torch.ones(9, 4), torch.ones(9, 1)), seconds=-1), "seconds must be"),
    ],
)
def test_what_cannot_be_pruned_is_rejected(make, rule):
    with pytest.raises(DendritreeError, match=rule):
        make()


@pytest.mark.parametrize(("budget", "most"), [(0.5, 40), ("40", 40), ("0.05k", 50)])
def test_a_budget_may_be_a_share_or_written_as_people_do(budget, most):
    small = prune(DendriticLayer(64, 1, branching=8), budget=budget)
    assert most - 3 < size(small) <= most


def test_a_model_that_flattens_images_is_pruned_on_images():
    torch.manual_seed(0)
    images = torch.randn(50, 1, 4, 4)
    images[:, :, 0] = 0.5  # the first row of pixels never changes
    net = nn.Sequential(nn.Flatten(), DendriticLayer(16, 6, branching=4), nn.LayerNorm(6), nn.Linear(6, 3)).eval()
    same = prune(net, threshold=0, examples=images)
    assert same[1].forest.synapses < net[1].forest.synapses
    assert torch.allclose(same(images), net(images), atol=1e-5)
    small = prune(net, budget=100, examples=images, reference=images.mean(0))
    assert size(small) <= 100
    with pytest.raises(ShapeError, match="examples must be a tensor of shape"):
        prune(net[1], budget=60, examples=images.flatten(2))
