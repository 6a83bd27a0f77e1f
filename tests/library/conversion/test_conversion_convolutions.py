"""Convolutions become dendritic ones on request, with their contract and within the budget."""

import pytest
import torch
from torch import nn

from dendritree import DendriticConv1d, DendriticConv2d, DendriticLayer, convert, count
from dendritree.errors import OptionError


def network():
    return nn.Sequential(
        nn.Conv2d(3, 8, 5, stride=2, padding=2),
        nn.ReLU(),
        nn.Conv2d(8, 12, 3, padding="same", dilation=2, bias=False),
        nn.Flatten(),
        nn.Linear(12 * 16, 10),
    )


def test_filters_become_trees_within_the_budget_and_the_report_counts_them():
    model = network()
    converted, report = convert(model, where=nn.Conv2d, convolutions=True, budget=0.4)
    assert [change.modules for change in report.changes] == [("0",), ("2",)]
    assert [change.before for change in report.changes] == ["75-8", "72-12"]
    for change, place in zip(report.changes, (0, 2), strict=True):
        before, after = model[place], converted[place]
        assert type(after) is DendriticConv2d
        for name in ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation"):
            assert getattr(after, name) == getattr(before, name)
        assert (after.bias is None) == (before.bias is None)
        parameters = sum(p.numel() for p in after.parameters())
        assert parameters == change.parameters_after <= 0.4 * change.parameters_before
        assert change.multiply_adds_after == after.multiply_adds
    assert type(converted[4]) is nn.Linear
    assert count(converted).total == report.parameters_after
    x = torch.randn(2, 3, 8, 8)
    assert converted(x).shape == model(x).shape


def test_outputs_keep_their_scale_and_their_biases():
    torch.manual_seed(0)
    conv = nn.Conv2d(16, 200, 3)
    with torch.no_grad():
        conv.weight *= torch.linspace(0.1, 10, 200)[:, None, None, None]
        conv.bias.fill_(3.0)
    converted, _ = convert(conv, convolutions=True, budget=0.5)
    y = converted(torch.randn(64, 16, 8, 8)).detach()
    ratio = (y - 3.0).square().mean((0, 2, 3)) / conv.weight.detach().square().sum((1, 2, 3))
    assert 0.85 < ratio.mean() < 1.15  # the mean of 200 draws
    assert torch.equal(converted.bias[converted.forest.roots.tolist()], conv.bias)


def test_convolutions_are_left_as_they_are_unless_asked_for():
    converted, report = convert(network(), budget=0.4)
    assert [type(module) for module in converted][::2] == [nn.Conv2d, nn.Conv2d, DendriticLayer]
    assert report.left_alone == ()
    with pytest.raises(OptionError, match="convolutions=True"):
        convert(network(), where=nn.Conv2d)


@pytest.mark.parametrize(
    ("conv", "reason"),
    [
        (nn.Conv2d(4, 4, 3, groups=2), "its channels are in 2 groups"),
        (nn.Conv2d(4, 4, 3, padding=1, padding_mode="reflect"), "its padding is 'reflect', not zeros"),
    ],
)
def test_what_trees_cannot_do_is_left_alone_with_the_reason(conv, reason):
    model = nn.Sequential(conv, nn.Flatten(), nn.Linear(4, 64))
    _, report = convert(model, convolutions=True, budget=0.9, dry_run=True)
    assert [each.module for each in report.left_alone] == ["0"]
    assert report.left_alone[0].reason.startswith(reason)


def test_convolutions_of_one_by_one_are_not_taken_for_an_mlp():
    class Mixing(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = nn.Conv2d(16, 32, 1), nn.Conv2d(32, 16, 1)

        def forward(self, x):
            return self.fc2(torch.relu(self.fc1(x)))

    converted, report = convert(Mixing(), convolutions=True, budget=0.5)
    assert [change.modules for change in report.changes] == [("fc1",), ("fc2",)]
    assert converted(torch.randn(2, 16, 5, 5)).shape == (2, 16, 5, 5)


def test_a_convolution_of_sequences_is_converted_too():
    converted, _ = convert(nn.Conv1d(4, 8, 9, stride=2), convolutions=True)
    assert type(converted) is DendriticConv1d
    assert converted(torch.randn(3, 4, 21)).shape == (3, 8, 7)


def test_a_layer_whose_inputs_are_no_image_is_left_alone_with_the_reason():
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.Flatten(), nn.Linear(32, 10))
    for dry_run in (True, False):
        converted, report = convert(model, convolutions=True, wiring="local", dry_run=dry_run)
        assert [(each.module, "takes a square image" in each.reason) for each in report.left_alone] == [("2", True)]
    assert isinstance(converted[0], DendriticConv2d)
    assert isinstance(converted[2], nn.Linear)
