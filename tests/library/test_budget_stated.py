"""Layers that state their own multiply-adds."""

import pytest
import torch
from torch import nn

from dendritree import DendriticLayer, count
from dendritree.neurons import DANN, DENN, KTree


class Stated(nn.Module):
    """A layer that knows better than its parts: it runs its linear part twice and does five more."""

    def __init__(self) -> None:
        super().__init__()
        self.in_features = 3
        self.multiply_adds = 2 * 12 + 5
        self.linear = nn.Linear(3, 4)

    def forward(self, x):
        return self.linear(x) + self.linear(-x)


def test_what_a_layer_states_stands_for_all_of_its_parts():
    assert count(Stated()).multiply_adds == 29
    assert count(nn.Sequential(Stated(), nn.Linear(4, 2))).multiply_adds == 29 + 8


def test_a_layer_counts_once_for_each_row_it_is_given():
    assert count(Stated(), (7, 3)).multiply_adds == 7 * 29
    assert count(nn.Sequential(DENN(6, 2), nn.Linear(2, 1)), (5, 6)).multiply_adds == 5 * (12 + 2)


def test_a_layer_used_twice_counts_twice():
    square = DENN(4, 4)
    assert count(nn.Sequential(square, square)).multiply_adds == 2 * 16


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (DendriticLayer(8, 2, branching=2, wiring="partition"), 8 + 4),
        (KTree(8, 2, trees=3), 2 * (3 * (8 + 4 + 2) + 3)),
        (DENN(8, 3, branches=3), 24),
        (DANN(16, 3, dendrites=2, synapses=5), 3 * (2 * 5 + 2)),
        (DANN(16, 3, dendrites=2, field="all"), 3 * (2 * 16 + 2)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_our_layers(layer, expected):
    assert count(layer).multiply_adds == expected
    assert count(layer.to(torch.float64)).multiply_adds == expected
