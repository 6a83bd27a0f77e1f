"""What stands in the place of a block: its shape, its size, its arithmetic."""

import pytest
import torch
from torch import nn

from dendritree.errors import OptionError
from dendritree.models.sizing import parameters_of
from dendritree.studies.inside.parts import KINDS, BlockLinear, Shuffle, make_part
from dendritree.studies.inside.plan import InsidePlan

PLACES = [(kind, where) for kind in KINDS for where in ("rows", "images") if getattr(KINDS[kind], where)]
SIZES = {"rows": (32, 128), "images": (16, 16)}


@pytest.mark.parametrize(("kind", "where"), PLACES)
@pytest.mark.parametrize("divisor", [2, 3, 10])
def test_a_part_keeps_shapes_and_fills_its_share(kind, where, divisor):
    size, hidden = SIZES[where]
    original = parameters_of(make_part("narrow", where, size, hidden, 1.0))
    part = make_part(kind, where, size, hidden, 1 / divisor)
    if part is None:
        assert divisor == 10
        return
    x = torch.randn(3, 5, size) if where == "rows" else torch.randn(3, size, 6, 6)
    assert part(x).shape == x.shape
    assert 0.5 / divisor < parameters_of(part) / original <= 1 / divisor


def test_the_original_is_a_plain_block():
    part = make_part("narrow", "rows", 8, 24, 1.0)
    assert [type(step) for step in part] == [nn.Linear, nn.GELU, nn.Linear]
    assert part[0].weight.shape == (24, 8)
    block = make_part("narrow", "images", 8, 8, 1.0)
    assert parameters_of(block) == 2 * 9 * 8 * 8 + 4 * 8


def test_a_kind_says_where_it_cannot_stand():
    with pytest.raises(OptionError, match="'separable' has no rows"):
        make_part("separable", "rows", 8, 8, 0.5)


def test_a_share_without_room_gives_nothing():
    assert make_part("low-rank", "rows", 64, 256, 1 / 100) is None


def test_a_block_diagonal_matrix_is_one():
    layer = BlockLinear(6, 9, blocks=3)
    dense = torch.block_diag(*layer.weight.detach().reshape(3, 3, 2))
    x = torch.randn(4, 5, 6)
    torch.testing.assert_close(layer(x), x @ dense.T + layer.bias)


@pytest.mark.parametrize("dimension", [1, -1])
def test_shuffling_deals_every_block_to_all(dimension):
    x = torch.arange(24.0).reshape(2, 12) if dimension == -1 else torch.arange(24.0).reshape(2, 12, 1, 1)
    y = Shuffle(4, dimension)(x)
    assert y.flatten(1)[0].tolist() == [0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11]


def test_one_dendrite_multiplies_another():
    part = make_part("gated", "rows", 32, 128, 1 / 3)
    x = torch.randn(4, 32)
    value, gate = part[0].value, part[0].gate
    assert len(set(value.forest.synapse_inputs[:8])) == 8  # of the first neuron
    torch.testing.assert_close(part(x), part[1](value(x) * nn.functional.gelu(gate(x))))


def test_ideas_are_compared_only_where_they_are_asked_for():
    ideas = {"gated", "max", "shared", "narrow-gated"}
    usual = InsidePlan.make(["vit"], datasets=["digits"], divisors=[3])
    asked = InsidePlan.make(["vit"], datasets=["digits"], divisors=[3], kinds=sorted(ideas))
    assert ideas.isdisjoint(cell.kind for cell in usual.cells)
    assert ideas | {"narrow"} == {cell.kind for cell in asked.cells}
