"""Counts, and tables of layers: the paper's numbers and those of multiply-adds, all written out by hand."""

import pytest
import torch
from torch import nn

from dendritree import ConvMLN, DendriticLayer, MLNBinaryClassifier, MLNClassifier, count, create_model, summary
from dendritree.errors import OptionError
from dendritree.models import MLP, ConvMLP, DendriticNetwork, Perceptrons, list_models
from dendritree.models.registry import model_entry
from dendritree.neurons import DANN, DENN, DNM, KTree


def numel(model):
    return sum(parameter.numel() for parameter in model.parameters())


# --------------------------------------------------------------------------------------------------- the paper's models


@pytest.mark.parametrize(
    ("model", "weights", "biases"),
    [
        (lambda: MLNBinaryClassifier(1024, branching=2), 2046, 1023),
        (lambda: MLP(1024, 1, hidden=3), 3075, 4),
        (lambda: MLNBinaryClassifier(1024, branching=4), 1364, 341),
        (lambda: MLNClassifier(1024, 10, branching=2), 20460, 10230),
        (lambda: MLP(1024, 10, hidden=30), 31020, 40),
        (lambda: MLNClassifier(1024, 10, branching=4), 13640, 3410),
        (lambda: MLNClassifier(1024, 10, branching=32), 10560, 330),
        (lambda: MLP(1024, 10, hidden=11), 11374, 21),
        (lambda: ConvMLN(10, branching=2).head, 5100, 2550),
        (lambda: ConvMLP(10, hidden=29).head, 7714, 39),
        (lambda: ConvMLN(10, branching=16).head, 2720, 170),
        (lambda: ConvMLP(10, hidden=11).head, 2926, 21),
        (lambda: Perceptrons(1024, 10), 10240, 10),
    ],
)
def test_every_row_of_the_paper_is_counted_on_the_real_model(model, weights, biases):
    counted = count(model())
    assert (counted.weights, counted.biases, counted.total) == (weights, biases, weights + biases)
    assert numel(model()) == weights + biases  # what an optimizer sees, nothing hidden
    assert counted.multiply_adds == weights


CNN_WEIGHTS = 4 * 1 * 25 + 8 * 4 * 25 + 16 * 8 * 25 + (4 + 8 + 16)  # convolutions, and the gains of the batch norms
CNN_BIASES = 2 * (4 + 8 + 16)  # convolutions and batch norms
CNN_MULTIPLY_ADDS = 32 * 32 * 4 * 25 + 16 * 16 * 8 * 4 * 25 + 8 * 8 * 16 * 8 * 25


def test_a_cnn_and_its_head_are_counted_together():
    trees, dense = count(ConvMLN(10, branching=16)), count(ConvMLP(10, hidden=11))
    assert (trees.weights, trees.biases, trees.total) == (CNN_WEIGHTS + 2720, CNN_BIASES + 170, 7074)
    assert trees.multiply_adds == CNN_MULTIPLY_ADDS + 2720
    assert trees.masked_weights == CNN_WEIGHTS + 160 * 2560 + 10 * 160  # 160 dendrites on 2,560 repeated features
    assert (dense.total, dense.multiply_adds) == (CNN_WEIGHTS + CNN_BIASES + 2947, CNN_MULTIPLY_ADDS + 2926)
    assert dense.masked_weights == dense.weights  # no trees, no masks


# ----------------------------------------------------------------------------------------------------- trees and stacks


@pytest.mark.parametrize(
    ("layer", "weights", "biases", "masked"),
    [
        (lambda: DendriticLayer(1024, 10, branching=32, wiring="shared"), 10560, 330, 320 * 10240 + 10 * 320),
        (lambda: DendriticLayer(125, 1, branching=5), 155, 31, 25 * 125 + 5 * 25 + 5),
        (lambda: DendriticLayer(10, 1, branching=3, ragged=True), 16, 7, 4 * 10 + 2 * 4 + 2),
        (lambda: DendriticLayer(10, 1, branching=3, ragged=True, bias=False), 16, 0, 4 * 10 + 2 * 4 + 2),
        (lambda: DendriticLayer(7, 5, branching=7, wiring="shared"), 35, 5, 5 * 35),
    ],
    ids=["b=32", "b=5", "ragged", "no bias", "one level"],
)
def test_a_layer_costs_one_weight_per_edge_and_one_bias_per_node(layer, weights, biases, masked):
    counted = count(layer())
    assert (counted.weights, counted.biases, counted.total) == (weights, biases, weights + biases)
    assert (counted.multiply_adds, counted.masked_weights) == (weights, masked)


def test_a_stack_of_layers_with_different_branching():
    counted = count(
        nn.Sequential(DendriticLayer(10240, branching=8, depth=2), DendriticLayer(160, branching=2, depth=4))
    )
    assert counted.weights == counted.multiply_adds == (10240 + 1280) + (160 + 80 + 40 + 20)
    assert counted.biases == (1280 + 160) + (80 + 40 + 20 + 10)
    first, second = 1280 * 10240 + 160 * 1280, 80 * 160 + 40 * 80 + 20 * 40 + 10 * 20
    assert counted.masked_weights == first + second


# ----------------------------------------------------------------------------------------------------------- any module


def test_parameters_used_twice_are_counted_once_and_their_work_twice():
    shared = nn.Linear(6, 6)
    counted = count(nn.Sequential(shared, nn.ReLU(), shared))
    assert (counted.weights, counted.biases, counted.multiply_adds) == (36, 6, 72)
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)
    second.weight = first.weight
    assert [layer.parameters for layer in summary(nn.Sequential(first, second)).layers] == [20, 4]


def test_multiply_adds_of_other_convolutions_need_the_input_shape():
    net = nn.Sequential(nn.Conv2d(4, 6, 3, stride=2, groups=2), nn.Flatten(), nn.Linear(6 * 3 * 4, 5))
    assert count(net).multiply_adds is None
    # 3 x 4 places, 6 maps, each reading 2 of the 4 channels through 3 x 3
    assert count(net, (4, 7, 9)).multiply_adds == 3 * 4 * 6 * 2 * 9 + 72 * 5
    assert count(net).total == numel(net)


@pytest.mark.parametrize(
    "model",
    [
        nn.Sequential(nn.Upsample(size=(32, 32)), nn.Flatten(), MLNClassifier(1024, 10)),
        nn.Sequential(nn.AvgPool2d(2), nn.Flatten(), nn.Linear(16, 3)),
        nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 2)),
        MLNClassifier(1024, 10, device="meta"),
    ],
    ids=["upsampled", "pooled", "embedded", "meta"],
)
def test_a_model_that_does_not_state_its_input_is_counted_without_multiply_adds(model):
    assert (count(model).total, count(model).multiply_adds) == (numel(model), None)


class Stated(nn.Module):
    """A layer that states its multiply-adds: it runs its linear part twice and does five more."""

    def __init__(self):
        super().__init__()
        self.in_features = 3
        self.multiply_adds = 2 * 12 + 5
        self.linear = nn.Linear(3, 4)

    def forward(self, x):
        return self.linear(x) + self.linear(-x)


def test_what_a_layer_states_stands_for_all_of_its_parts_and_for_every_row():
    assert count(nn.Sequential(Stated(), nn.Linear(4, 2))).multiply_adds == 29 + 8
    assert count(nn.Sequential(Stated(), nn.Linear(4, 2)), (7, 3)).multiply_adds == 7 * (29 + 8)
    square = DENN(4, 4)
    assert count(nn.Sequential(square, square)).multiply_adds == 2 * 16


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (DendriticLayer(8, 2, branching=2, wiring="partition"), 8 + 4),
        (KTree(8, 2, trees=3), 2 * (3 * (8 + 4 + 2) + 3)),
        (DENN(8, 3, branches=3), 24),
        (DANN(16, 3, dendrites=2, synapses=5), 3 * (2 * 5 + 2)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_multiply_adds_of_neurons(layer, expected):
    assert count(layer).multiply_adds == count(layer.double()).multiply_adds == expected


# ------------------------------------------------------------------------------------------------------------- summary


def small():
    return nn.Sequential(
        DendriticLayer(16, 8, branching=[4, 2], wiring="random"), nn.ReLU(), nn.BatchNorm1d(8), nn.Linear(8, 3)
    )


def test_a_line_per_layer_and_the_sums():
    table = str(summary(small()))
    assert table.splitlines() == [
        "name   layer                  trees                        wiring  parameters  if dense  mult-adds  if dense",
        "-----  ---------------------  ---------------------------  ------  ----------  --------  ---------  --------",
        "0      DendriticLayer(16, 8)  8 synapses, 2 + 1 dendrites  random         104       136         80       128",
        "2      BatchNorm1d                                                         16        16          0         0",
        "3      Linear(8, 3)                                                        27        27         24        24",
        "-----  ---------------------  ---------------------------  ------  ----------  --------  ---------  --------",
        "total                                                                     147       179        104       152",
    ]
    assert repr(summary(small())) == table  # a prompt shows it too


@pytest.mark.parametrize("name", list_models())
def test_every_parameter_and_multiply_add_of_a_model_is_in_one_line(name):
    model = create_model(name, **model_entry(name).example)
    layers, counted = summary(model).layers, count(model)
    assert sum(layer.parameters for layer in layers) == counted.total
    assert sum(layer.multiply_adds for layer in layers) == counted.multiply_adds
    assert [layer.name for layer in layers if layer.name != "model"] == [
        name for name, _ in model.named_modules() if name in {layer.name for layer in layers}
    ]


def test_dense_layers_have_the_sizes_of_the_neurons_and_their_bias():
    (with_bias,) = summary(DendriticLayer(64, 10)).layers
    assert (with_bias.name, with_bias.dense_parameters, with_bias.dense_multiply_adds) == ("model", 650, 640)
    (without,) = summary(DendriticLayer(64, 10, bias=False)).layers
    assert without.dense_parameters == 640
    (dnm,) = summary(DNM(6, 2, dendrites=3)).layers
    assert (dnm.trees, dnm.parameters, dnm.dense_parameters) == ("dendrites=3", 72, 14)
    (conv, *_, head) = summary(ConvMLN()).layers
    assert conv.dense_parameters == conv.parameters
    assert (head.parameters, head.dense_parameters) == (2890, 2570)
    (often,) = summary(small()[:1], (7, 16)).layers
    assert (often.multiply_adds, often.dense_multiply_adds) == (7 * 80, 7 * 128)


def test_what_is_not_known_is_a_dash():
    attention = summary(nn.TransformerEncoderLayer(8, 2, dim_feedforward=4)).layers
    assert {layer.name: layer.multiply_adds for layer in attention} == {
        "self_attn": None, "self_attn.out_proj": None, "linear1": 32, "linear2": 32, "norm1": 0, "norm2": 0,
    }  # fmt: skip
    meta = summary(DendriticLayer(10, 2, device="meta"))
    assert meta.layers[0].multiply_adds is None
    assert str(meta).split()[-2:] == ["-", "-"]
    assert str(summary(nn.ReLU())).split()[-4:] == ["0"] * 4


@pytest.mark.parametrize("look", [count, summary])
def test_the_model_is_left_as_it_was(look):
    net = DendriticNetwork(16, [4], 3, norm="batch", dropout=0.5).train()
    net.hidden[1].eval()  # a frozen batch norm in a training model
    modes = {name: module.training for name, module in net.named_modules()}
    state = {key: value.clone() for key, value in net.state_dict().items()}
    random_state = torch.get_rng_state()
    look(net)
    with pytest.raises(ValueError, match="in_features 16"):
        look(net, (17,))
    assert {name: module.training for name, module in net.named_modules()} == modes
    assert all(torch.equal(value, state[key]) for key, value in net.state_dict().items())
    assert torch.equal(torch.get_rng_state(), random_state)
    assert not any(module._forward_hooks for module in net.modules())


def test_anything_that_is_not_a_module_is_rejected():
    with pytest.raises(OptionError, match=r"an nn\.Module.*: got int"):
        summary(3)


def test_a_count_shows_the_total_and_keeps_what_masks_would_store():
    cost = count(MLNClassifier(16, 3, branching=4))
    size = f"total={cost.total}, weights={cost.weights}, biases={cost.biases}"
    assert repr(cost) == f"Count({size}, multiply_adds={cost.multiply_adds})"
    assert cost.masked_weights > cost.weights
