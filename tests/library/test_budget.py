"""Counts of the paper and of the multiply-adds, all written out by hand."""

import pytest
import torch
from torch import nn

from dendritree import ConvMLN, DendriticLayer, MLNBinaryClassifier, MLNClassifier, count
from dendritree.models import MLP, ConvMLP, Perceptrons
from dendritree.wiring import Tied
from dendritree_lab.studies.paper.parameter_tables import paper_rows


def numel(model):
    return sum(parameter.numel() for parameter in model.parameters())


# -------------------------------------------------------------------------------------------- the paper's three tables

# Table, model, weights and biases as printed, weights and biases as they are (the same but for the two b=4 rows).
PAPER = [
    ("binary", "b=2", 2046, 1023, 2046, 1023),
    ("binary", "h=3", 3075, 4, 3075, 4),
    ("binary", "b=4", 1364, 85, 1364, 341),
    ("binary", "b=32", 1056, 33, 1056, 33),
    ("binary", "h=2", 2050, 3, 2050, 3),
    ("multiclass", "b=2", 20460, 10230, 20460, 10230),
    ("multiclass", "h=30", 31020, 40, 31020, 40),
    ("multiclass", "b=4", 13640, 850, 13640, 3410),
    ("multiclass", "h=14", 14476, 24, 14476, 24),
    ("multiclass", "b=32", 10560, 330, 10560, 330),
    ("multiclass", "h=11", 11374, 21, 11374, 21),
    ("cnn", "b=2", 5100, 2550, 5100, 2550),
    ("cnn", "h=29", 7714, 39, 7714, 39),
    ("cnn", "b=4", 3400, 850, 3400, 850),
    ("cnn", "h=16", 4256, 26, 4256, 26),
    ("cnn", "b=16", 2720, 170, 2720, 170),
    ("cnn", "h=11", 2926, 21, 2926, 21),
]


def model_of_row(table, name):
    family, size = name.split("=")
    options = {"branching": int(size)} if family == "b" else {"hidden": int(size)}
    if table == "binary":
        return MLNBinaryClassifier(1024, **options) if family == "b" else MLP(1024, 1, **options)
    if table == "multiclass":
        return MLNClassifier(1024, 10, **options) if family == "b" else MLP(1024, 10, **options)
    return (ConvMLN(10, **options) if family == "b" else ConvMLP(10, **options)).head


@pytest.mark.parametrize(("table", "name", "_w", "_b", "weights", "biases"), PAPER)
def test_every_row_of_the_paper_is_counted_on_the_real_model(table, name, _w, _b, weights, biases):
    model = model_of_row(table, name)
    counted = count(model)
    assert (counted.weights, counted.biases, counted.total) == (weights, biases, weights + biases)
    assert numel(model) == weights + biases  # what an optimizer sees, nothing hidden
    assert counted.multiply_adds == weights


def test_paper_rows_are_the_three_tables():
    assert [tuple(row) for row in paper_rows()] == PAPER
    assert [row.paper_total for row in paper_rows()] == [row[2] + row[3] for row in PAPER]
    assert [row.total for row in paper_rows()] == [row[4] + row[5] for row in PAPER]


def test_the_two_b_4_rows_on_1024_inputs_are_the_errata():
    errata = [(row.table, row.model, row.paper_total, row.total) for row in paper_rows() if row.erratum]
    assert errata == [("binary", "b=4", 1449, 1705), ("multiclass", "b=4", 14490, 17050)]


def test_paper_rows_leave_the_random_state_alone():
    before = torch.get_rng_state()
    paper_rows()
    assert torch.equal(torch.get_rng_state(), before)


# ------------------------------------------------------------------------------------------------------- ConvMLN

CNN_WEIGHTS = 4 * 1 * 25 + 8 * 4 * 25 + 16 * 8 * 25 + (4 + 8 + 16)  # convolutions, and the gains of the batch norms
CNN_BIASES = 2 * (4 + 8 + 16)  # convolutions and batch norms
CNN_MULTIPLY_ADDS = 32 * 32 * 4 * 25 + 16 * 16 * 8 * 4 * 25 + 8 * 8 * 16 * 8 * 25


@pytest.mark.parametrize(
    ("branching", "total", "head", "head_weights"),
    [(2, 11834, 7650, 5100), (4, 8434, 4250, 3400), (16, 7074, 2890, 2720)],
)
def test_conv_mln_counts_head_and_total(branching, total, head, head_weights):
    net = ConvMLN(10, branching=branching)
    counted = count(net)
    assert (count(net.head).total, counted.total, numel(net)) == (head, total, total)
    assert counted.weights == CNN_WEIGHTS + head_weights
    assert counted.biases == CNN_BIASES + head - head_weights
    assert counted.multiply_adds == CNN_MULTIPLY_ADDS + head_weights
    assert CNN_MULTIPLY_ADDS == 512_000


def test_conv_mln_masked_weights_are_those_of_two_dense_levels_for_b_16():
    # 160 dendrites on 2,560 repeated features, 10 roots on 160 dendrites
    assert count(ConvMLN(10, branching=16)).masked_weights == CNN_WEIGHTS + 160 * 2560 + 10 * 160


def test_conv_mlp_counts_head_and_total():
    counted = count(ConvMLP(10, hidden=11))
    assert (counted.total, counted.multiply_adds) == (CNN_WEIGHTS + CNN_BIASES + 2947, CNN_MULTIPLY_ADDS + 2926)
    assert counted.masked_weights == counted.weights  # no trees, no masks


# ------------------------------------------------------------------------------------------------- trees and stacks


@pytest.mark.parametrize(("branching", "masked"), [(2, 69_905_000), (4, 27_962_000), (32, 3_280_000)])
def test_masked_weights_of_ten_neurons_on_1024_inputs(branching, masked):
    # b=32: 320 dendrites on 10,240 repeated inputs, 10 roots on 320 dendrites; the others likewise, level by level
    assert count(MLNClassifier(1024, 10, branching=branching)).masked_weights == masked


@pytest.mark.parametrize(
    ("layer", "weights", "biases", "masked"),
    [
        (lambda: DendriticLayer(1024, 1, branching=32), 1056, 33, 32 * 1024 + 32),
        (lambda: DendriticLayer(125, 1, branching=5), 155, 31, 25 * 125 + 5 * 25 + 5),
        (lambda: DendriticLayer(128, 1, branching=[16, 8]), 136, 9, 8 * 128 + 8),
        (lambda: DendriticLayer(10, 1, branching=3, ragged=True), 16, 7, 4 * 10 + 2 * 4 + 2),
        (
            lambda: DendriticLayer(20, 2, branching=3, wiring="partition", ragged=True, bias=False),
            32,
            0,
            8 * 20 + 4 * 8 + 2 * 4,
        ),
        (lambda: DendriticLayer(7, 5, branching=7, wiring="shared"), 35, 5, 5 * 35),
    ],
    ids=["b=32", "b=5", "levels", "ragged", "no bias", "one level"],
)
def test_a_layer_costs_one_weight_per_edge_and_one_bias_per_node(layer, weights, biases, masked):
    counted = count(layer())
    assert (counted.weights, counted.biases, counted.total) == (weights, biases, weights + biases)
    assert counted.multiply_adds == weights
    assert counted.masked_weights == masked


def test_784_inputs_with_b_2_have_2357_parameters():
    assert count(MLNBinaryClassifier(784, branching=2, ragged=True)).total == 2357


def test_a_stack_of_layers_with_different_branching():
    stack = nn.Sequential(DendriticLayer(10240, branching=8, depth=2), DendriticLayer(160, branching=2, depth=4))
    assert stack(torch.randn(3, 10240)).shape == (3, 10)
    counted = count(stack)
    assert counted.weights == counted.multiply_adds == (10240 + 1280) + (160 + 80 + 40 + 20)
    assert counted.biases == (1280 + 160) + (80 + 40 + 20 + 10)
    first, second = 1280 * 10240 + 160 * 1280, 80 * 160 + 40 * 80 + 20 * 40 + 10 * 20
    assert counted.masked_weights == first + second


def test_perceptrons_cost_a_dense_matrix():
    counted = count(Perceptrons(1024, 10))
    assert (counted.weights, counted.biases, counted.multiply_adds) == (10240, 10, 10240)


# ------------------------------------------------------------------------------------------------------ any module


def test_parameters_used_twice_are_counted_once_and_their_work_twice():
    shared = nn.Linear(6, 6)
    counted = count(nn.Sequential(shared, nn.ReLU(), shared))
    assert (counted.weights, counted.biases, counted.multiply_adds) == (36, 6, 72)


def test_multiply_adds_of_other_convolutions_need_the_input_shape():
    net = nn.Sequential(nn.Conv2d(4, 6, 3, stride=2, groups=2), nn.Flatten(), nn.Linear(6 * 3 * 4, 5))
    assert count(net).multiply_adds is None
    # 3 x 4 places, 6 maps, each reading 2 of the 4 channels through 3 x 3
    assert count(net, (4, 7, 9)).multiply_adds == 3 * 4 * 6 * 2 * 9 + 72 * 5
    assert count(net).total == numel(net)


def test_layers_along_a_sequence_work_at_every_place():
    net = nn.Sequential(DendriticLayer(16, 1, branching=4), nn.Linear(1, 3))
    assert count(net).multiply_adds == 20 + 3
    assert count(net, (7, 16)).multiply_adds == 7 * (20 + 3)


@pytest.mark.parametrize(
    "model",
    [
        nn.Sequential(nn.Upsample(size=(32, 32)), nn.Flatten(), MLNClassifier(1024, 10)),
        nn.Sequential(nn.AvgPool2d(2), nn.Flatten(), nn.Linear(16, 3)),
        nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 2)),
    ],
    ids=["upsampled", "pooled", "embedded"],
)
def test_a_model_that_does_not_state_its_input_is_counted_without_multiply_adds(model):
    counted = count(model)
    assert counted.total == numel(model)
    assert counted.multiply_adds is None


@pytest.mark.parametrize("model", [nn.LSTM(4, 3), nn.GRUCell(4, 3)], ids=["lstm", "gru"])
def test_biases_are_counted_as_biases_under_any_name(model):
    biases = sum(parameter.numel() for name, parameter in model.named_parameters() if "bias" in name)
    counted = count(model)
    assert biases > 0
    assert (counted.biases, counted.weights) == (biases, numel(model) - biases)


def test_a_model_without_parameters_costs_nothing():
    counted = count(nn.Sequential(nn.Flatten(), nn.ReLU()))
    assert (counted.weights, counted.biases, counted.total, counted.masked_weights) == (0, 0, 0, 0)


@pytest.mark.parametrize("options", [{"device": "meta"}, {"dtype": torch.float64}, {"dtype": torch.bfloat16}], ids=str)
def test_parameters_are_counted_on_any_device_and_in_any_type(options):
    counted = count(MLNClassifier(1024, 10, branching=32, **options))
    assert (counted.weights, counted.biases, counted.masked_weights) == (10560, 330, 320 * 10240 + 10 * 320)


# ---------------------------------------------------------------------------------------------- what count leaves alone


def test_count_leaves_modes_and_statistics_and_hooks_alone():
    net = ConvMLN(10, branching=16, dropout=0.5).train()
    net.cnn[2].eval()  # a frozen batch norm in a training model
    modes = {name: module.training for name, module in net.named_modules()}
    state = {key: value.clone() for key, value in net.state_dict().items()}
    random_state = torch.get_rng_state()
    count(net)
    assert {name: module.training for name, module in net.named_modules()} == modes
    assert all(torch.equal(value, state[key]) for key, value in net.state_dict().items())
    assert torch.equal(torch.get_rng_state(), random_state)
    assert not any(module._forward_hooks for module in net.modules())
    assert all(parameter.grad is None for parameter in net.parameters())


def test_count_leaves_them_alone_when_the_input_shape_is_wrong():
    net = MLNClassifier(16, 3, branching=4).train()
    with pytest.raises(ValueError, match=r"in_features 16: got \(1, 17\)"):
        count(net, (17,))
    assert all(module.training for module in net.modules())
    assert not any(module._forward_hooks for module in net.modules())


def test_masked_weights_do_not_depend_on_ties():
    options = {"branching": [9, 4], "fan_in": 36}
    tied = DendriticLayer(64, 6, wiring=Tied(window=3, stride=1), **options)
    assert count(tied).masked_weights == count(DendriticLayer(64, 6, wiring="random", **options)).masked_weights
