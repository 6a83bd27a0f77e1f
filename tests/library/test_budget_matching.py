"""Controls of the same size, and numbers of parameters as text."""

import re
from decimal import Decimal

import pytest
import torch
from hypothesis import example, given
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
from dendritree.budget import matched_conv
from dendritree.errors import OptionError
from dendritree.models import MLP, ConvMLP, Perceptrons
from dendritree.models.sizing import UNITS, parse_count


@pytest.mark.parametrize(
    ("model", "hidden", "total"),
    [
        (lambda: MLNBinaryClassifier(1024, branching=2), 3, 3079),
        (lambda: MLNBinaryClassifier(1024, branching=4), 2, 2053),
        (lambda: MLNClassifier(1024, 10, branching=2), 30, 31060),
        (lambda: MLNClassifier(1024, 10, branching=4), 16, 16570),  # the paper matched its wrong count with h=14
        (lambda: MLNClassifier(1024, 10, branching=32), 11, 11395),
        (lambda: ConvMLN(10, branching=2), 29, 7753 + 4184),
        (lambda: ConvMLN(10, branching=16), 11, 2947 + 4184),
    ],
)
def test_the_controls_of_the_paper_are_the_matched_ones(model, hidden, total):
    dendritic = model()
    control = matched_mlp(dendritic)
    assert type(control) is (ConvMLP if isinstance(dendritic, ConvMLN) else MLP)
    head = control.head if isinstance(control, ConvMLP) else control
    assert (head.hidden_features, count(control).total) == (hidden, total)


@given(
    in_features=st.integers(2, 200),
    out_features=st.integers(1, 12),
    branching=st.integers(2, 20),
    min_hidden=st.integers(1, 4),
    bias=st.booleans(),
)
def test_no_other_number_of_hidden_units_is_nearer(in_features, out_features, branching, min_hidden, bias):
    layer = DendriticLayer(in_features, out_features, branching=branching, wiring="shared", ragged=True, bias=bias)
    budget = sum(p.numel() for p in layer.parameters())
    control = matched_mlp(layer, min_hidden=min_hidden)
    assert (control.in_features, control.out_features) == (in_features, out_features)
    candidates = range(min_hidden, budget // in_features + min_hidden + 2)
    nearest = min(abs((in_features + 1) * h + (h + 1) * out_features - budget) for h in candidates)
    assert control.hidden_features >= min_hidden
    assert abs(sum(p.numel() for p in control.parameters()) - budget) == nearest


def test_options_reach_the_control():
    control = matched_mlp(MLNClassifier(16, 3, branching=4), dropout=0.25, output="logits", dtype=torch.float64)
    assert control.dropout.p == 0.25
    assert isinstance(control.output, nn.Identity)
    assert control.hidden.weight.dtype == torch.float64
    assert matched_mlp(ConvMLN(4, branching=16), dropout=0.25).head.dropout.p == 0.25


@pytest.mark.parametrize("model", [nn.Linear(4, 2), Perceptrons(4, 2), MLP(4, 2, hidden=3)])
def test_matched_mlp_needs_a_dendritic_model(model):
    with pytest.raises(OptionError, match=rf"DendriticLayer.*: got {type(model).__name__}"):
        matched_mlp(model)
    with pytest.raises(OptionError, match="min_hidden"):
        matched_mlp(MLNBinaryClassifier(16, branching=4), min_hidden=0)


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


def test_a_plain_convolution_has_the_filters_asked_for_and_its_own_kind():
    layer = DendriticConv1d(4, 2, 9, wiring="random", fan_in=4)
    assert type(matched_conv(layer)) is nn.Conv1d
    assert (matched_conv(layer).out_channels, matched_conv(layer, min_filters=3).out_channels) == (1, 3)
    with pytest.raises(OptionError, match=r"min_filters.*: got 0"):
        matched_conv(layer, min_filters=0)
    with pytest.raises(OptionError, match="DendriticConv1d or DendriticConv2d: got Conv2d"):
        matched_conv(nn.Conv2d(1, 1, 1))


# ---------------------------------------------------------------------------------------------- numbers of parameters


@given(st.integers(1, 10**12 - 1))
def test_a_whole_number_is_itself_as_text_or_not(number):
    assert parse_count("budget", number) == number
    assert parse_count("budget", str(number)) == number
    assert parse_count("budget", f" {number:,} ") == number


@given(st.integers(1, 10**7), st.integers(0, 6), st.sampled_from(list(UNITS)))
@example(41, 1, "M")
@example(1001, 3, "k")
def test_decimals_mean_what_they_say(digits, places, unit):
    """In decimal arithmetic: 4.1M is 4,100,000, though no float is 4.1."""
    text = f"{Decimal(digits).scaleb(-places):f}{unit}"
    value = Decimal(digits).scaleb(-places) * UNITS[unit]
    if value == int(value) and value >= 1:
        assert parse_count("budget", text) == value
    else:
        with pytest.raises(OptionError, match=f"budget must be .*: got {re.escape(repr(text))}"):
            parse_count("budget", text)


@pytest.mark.parametrize(
    "text",
    ["9q", "", "k", "9 k", "1e3", "-9k", ".5k", "0.5", "1.0005k", "nan", "9" * 400, "1,5k", "0", "0.0M", -1, 9e3, True],
)
def test_anything_that_is_not_a_number_of_parameters_is_rejected(text):
    with pytest.raises(OptionError, match="size must be an integer"):
        parse_count("size", text)
