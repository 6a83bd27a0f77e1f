"""The control of the same size, and the dendritic model of the same size as a control."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from dendritree import (
    ConvMLN,
    DendriticConv1d,
    DendriticConv2d,
    DendriticLayer,
    MLNBinaryClassifier,
    MLNClassifier,
    count,
    matched_mlp,
)
from dendritree.budget import matched_conv, matched_mln
from dendritree.errors import OptionError
from dendritree.models import MLP, ConvMLP, Perceptrons


def tree_parameters(fan_in, branching, bias=True):
    """Edges and nodes of one ragged tree, level by level."""
    edges, nodes, level = 0, 0, fan_in
    while True:
        edges += level
        level = -(-level // branching)
        nodes += level
        if level == 1:
            return edges + nodes * bias


def mlp_parameters(in_features, out_features, hidden):
    return in_features * hidden + hidden + hidden * out_features + out_features


# ----------------------------------------------------------------------------------------------------- matched_mlp


@pytest.mark.parametrize(
    ("model", "hidden", "total"),
    [
        (lambda: MLNBinaryClassifier(1024, branching=2), 3, 3079),
        (lambda: MLNBinaryClassifier(1024, branching=4), 2, 2053),
        (lambda: MLNBinaryClassifier(1024, branching=32), 2, 2053),
        (lambda: MLNClassifier(1024, 10, branching=2), 30, 31060),
        (lambda: MLNClassifier(1024, 10, branching=4), 16, 16570),  # the paper matched its wrong count with h=14
        (lambda: MLNClassifier(1024, 10, branching=32), 11, 11395),
        (lambda: ConvMLN(10, branching=2), 29, 7753 + 4184),
        (lambda: ConvMLN(10, branching=4), 16, 4282 + 4184),
        (lambda: ConvMLN(10, branching=16), 11, 2947 + 4184),
    ],
)
def test_the_paper_s_controls_are_found(model, hidden, total):
    dendritic = model()
    control = matched_mlp(dendritic)
    assert type(control) is (ConvMLP if isinstance(dendritic, ConvMLN) else MLP)
    head = control.head if isinstance(control, ConvMLP) else control
    assert head.hidden_features == hidden
    assert count(control).total == total


@given(
    in_features=st.integers(2, 200),
    out_features=st.integers(1, 12),
    branching=st.integers(2, 20),
    min_hidden=st.integers(1, 4),
    bias=st.booleans(),
)
def test_no_other_number_of_hidden_units_is_nearer(in_features, out_features, branching, min_hidden, bias):
    layer = DendriticLayer(in_features, out_features, branching=branching, wiring="shared", ragged=True, bias=bias)
    budget = out_features * tree_parameters(in_features, branching, bias)
    control = matched_mlp(layer, min_hidden=min_hidden)
    assert (control.in_features, control.out_features) == (in_features, out_features)
    candidates = range(min_hidden, budget // in_features + min_hidden + 2)
    nearest = min(abs(mlp_parameters(in_features, out_features, h) - budget) for h in candidates)
    assert control.hidden_features >= min_hidden
    assert abs(sum(p.numel() for p in control.parameters()) - budget) == nearest


@pytest.mark.parametrize(("min_hidden", "hidden"), [(1, 1), (2, 2), (5, 5)])
def test_min_hidden_is_the_fewest_hidden_units(min_hidden, hidden):
    assert matched_mlp(MLNBinaryClassifier(1024, branching=32), min_hidden=min_hidden).hidden_features == hidden


@pytest.mark.parametrize("value", [0, -1, 1.5, True, None])
def test_min_hidden_must_be_a_positive_integer(value):
    with pytest.raises(OptionError, match=rf"min_hidden must be an integer of at least 1: got {value!r}"):
        matched_mlp(MLNBinaryClassifier(16, branching=4), min_hidden=value)


def test_options_reach_the_control():
    control = matched_mlp(MLNClassifier(16, 3, branching=4), dropout=0.25, output="logits", dtype=torch.float64)
    assert control.dropout.p == 0.25
    assert isinstance(control.output, nn.Identity)
    assert control.hidden.weight.dtype == torch.float64
    assert matched_mlp(ConvMLN(4, branching=16), dropout=0.25).head.dropout.p == 0.25


@pytest.mark.parametrize(
    "model", [nn.Linear(4, 2), Perceptrons(4, 2), MLP(4, 2, hidden=3)], ids=lambda m: type(m).__name__
)
def test_matched_mlp_needs_a_dendritic_model(model):
    with pytest.raises(OptionError, match=rf"matched_mlp takes a DendriticLayer.*: got {type(model).__name__}"):
        matched_mlp(model)


# ----------------------------------------------------------------------------------------------------- matched_mln


@pytest.mark.parametrize(
    ("control", "kind", "branching", "total"),
    [
        (lambda: MLP(1024, 1, hidden=3), MLNBinaryClassifier, 2, 3069),
        (lambda: MLP(1024, 1, hidden=1), MLNBinaryClassifier, 1024, 1025),
        (lambda: MLP(1024, 10, hidden=30), MLNClassifier, 2, 30690),
        (lambda: MLP(1024, 10, hidden=16), MLNClassifier, 4, 17050),
        (lambda: MLP(1024, 10, hidden=11), MLNClassifier, 32, 10890),
        (lambda: ConvMLP(10, hidden=29), ConvMLN, 2, 11834),
        (lambda: ConvMLP(10, hidden=16), ConvMLN, 4, 8434),
        (lambda: ConvMLP(10, hidden=11), ConvMLN, 16, 7074),
    ],
)
def test_the_paper_s_dendritic_models_are_found_from_their_controls(control, kind, branching, total):
    net = matched_mln(control())
    assert type(net) is kind
    layer = net.head.layer if kind is ConvMLN else net.layer
    assert layer.branching == branching
    assert count(net).total == total


@given(
    in_features=st.integers(2, 130),
    out_features=st.integers(1, 6),
    hidden=st.integers(1, 8),
    ragged=st.booleans(),
)
def test_no_other_branching_is_nearer(in_features, out_features, hidden, ragged):
    control = MLP(in_features, out_features, hidden=hidden)
    budget = mlp_parameters(in_features, out_features, hidden)
    net = matched_mln(control, ragged=ragged)
    fitting = [b for b in range(2, in_features + 1) if ragged or any(b**depth == in_features for depth in range(1, 8))]
    nearest = min(abs(out_features * tree_parameters(in_features, b) - budget) for b in fitting)
    assert (net.layer.in_features, net.layer.out_features) == (in_features, out_features)
    assert abs(sum(p.numel() for p in net.parameters()) - budget) == nearest


def test_trees_without_biases_are_matched_by_their_true_count():
    # 19 parameters; on 16 inputs trees without biases have 30 (b=2), 20 (b=4) or 16 (b=16), with biases 45, 25 or 17
    net = matched_mln(MLP(16, 1, hidden=1), bias=False)
    assert (net.layer.branching, count(net).total) == (4, 20)


def test_one_input_fits_no_branching_unless_ragged():
    control = MLP(1, 3, hidden=2)
    with pytest.raises(
        OptionError, match="in_features must be a power of some branching factor, or ragged=True: got 1"
    ):
        matched_mln(control)
    assert count(matched_mln(control, ragged=True)).total == 6


def test_options_reach_the_dendritic_model():
    net = matched_mln(MLP(16, 3, hidden=2), dropout=0.25, output="logits")
    assert net.layer.dropout == 0.25
    assert isinstance(net.output, nn.Identity)


@pytest.mark.parametrize("model", [nn.Linear(4, 2), Perceptrons(4, 2), MLNClassifier(4, 2, branching=2)])
def test_matched_mln_needs_a_control(model):
    with pytest.raises(OptionError, match=f"matched_mln takes an MLP or a ConvMLP: got {type(model).__name__}"):
        matched_mln(model)


# ---------------------------------------------------------------------------------------------------- matched_conv


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("fan_in", [3, 20, 72])
def test_the_plain_convolution_of_the_nearest_size_slides_alike(bias, fan_in):
    sliding = {"kernel_size": 3, "stride": 2, "padding": 2, "dilation": 2}
    layer = DendriticConv2d(8, 40, **sliding, wiring="random", fan_in=fan_in, bias=bias, dtype=torch.float64)
    control = matched_conv(layer)
    x = torch.randn(2, 8, 11, 9, dtype=torch.float64)
    assert control(x).shape[2:] == layer(x).shape[2:]
    each, total = 8 * 9 + bias, count(layer).total
    assert count(control).total == control.out_channels * each
    assert abs(count(control).total - total) <= each / 2


def test_a_control_has_the_filters_asked_for_and_its_own_kind():
    layer = DendriticConv1d(4, 2, 9, wiring="random", fan_in=4)
    assert type(matched_conv(layer)) is nn.Conv1d
    assert matched_conv(layer).out_channels == 1
    assert matched_conv(layer, min_filters=3).out_channels == 3
    with pytest.raises(OptionError, match=r"min_filters must be .*: got 0"):
        matched_conv(layer, min_filters=0)
    with pytest.raises(OptionError, match="matched_conv takes a DendriticConv1d or DendriticConv2d: got Conv2d"):
        matched_conv(nn.Conv2d(1, 1, 1))
