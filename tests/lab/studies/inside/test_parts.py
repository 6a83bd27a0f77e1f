"""What stands in the place of a block: its shape, its size, its arithmetic."""

import pytest
import torch
from torch import nn

from dendritree.errors import OptionError
from dendritree.models.sizing import parameters_of
from dendritree_lab.studies.inside.blocks import BlockLinear, Nearby, Shift, Shuffle
from dendritree_lab.studies.inside.parts import KINDS, make_part
from dendritree_lab.studies.inside.place import Place
from dendritree_lab.studies.inside.plan import InsidePlan

ROWS = Place("rows", 32, 128)
PLACES = {
    "rows": ROWS,
    "sequence": Place("rows", 32, 128, sequence=True),
    "grid": Place("rows", 32, 128, grid=(2, 3)),
    "plane": Place("rows", 32, 128, plane=(4, 8)),
    "images": Place("images", 16, 16),
}
POSSIBLE = [(kind, name) for kind in KINDS for name, place in PLACES.items() if getattr(KINDS[kind], place.where)]


@pytest.mark.parametrize(("kind", "name"), POSSIBLE)
@pytest.mark.parametrize("divisor", [2, 3, 10])
def test_a_part_keeps_shapes_and_fills_its_share(kind, name, divisor):
    place = PLACES[name]
    original = parameters_of(make_part("narrow", place, 1.0))
    part = make_part(kind, place, 1 / divisor)
    if part is None:
        assert divisor == 10
        return
    x = torch.randn(3, 6, 32) if place.where == "rows" else torch.randn(3, 16, 6, 6)
    assert part(x).shape == x.shape
    most = (kind, name, divisor) == ("shared", "images", 2)  # its somata read all dendrites, and more is not possible
    assert (0.1 if most else 0.5) / divisor < parameters_of(part) / original <= 1 / divisor


@pytest.mark.parametrize("kind", [kind for kind in KINDS if KINDS[kind].rows])
def test_a_row_may_have_any_number_of_features(kind):
    place = Place("rows", 49, 98, plane=(7, 7))  # the patches of an image of 28 x 28 pixels
    x = torch.randn(3, 5, 49)
    assert make_part(kind, place, 1 / 3)(x).shape == x.shape


def test_the_original_is_a_plain_block():
    part = make_part("narrow", Place("rows", 8, 24), 1.0)
    assert [type(step) for step in part] == [nn.Linear, nn.GELU, nn.Linear]
    assert part[0].weight.shape == (24, 8)
    block = make_part("narrow", Place("images", 8, 8), 1.0)
    assert parameters_of(block) == 2 * 9 * 8 * 8 + 4 * 8


def test_a_kind_says_where_it_cannot_stand():
    with pytest.raises(OptionError, match="'separable' has no rows"):
        make_part("separable", Place("rows", 8, 8), 0.5)


def test_a_share_without_room_gives_nothing():
    assert make_part("low-rank", Place("rows", 64, 256), 1 / 100) is None


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
    part = make_part("gated", ROWS, 1 / 3)
    x = torch.randn(4, 32)
    value, gate = part[0].value, part[0].gate
    assert len(set(value.forest.synapse_inputs[:8])) == 8  # of the first neuron
    torch.testing.assert_close(part(x), part[1](value(x) * nn.functional.gelu(gate(x))))


def test_neurons_read_the_rows_beside_a_row():
    torch.manual_seed(0)
    part = make_part("sparse-near", PLACES["grid"], 1 / 2)
    x = torch.randn(1, 6, 32, requires_grad=True)  # places 0 1 2 / 3 4 5
    part(x)[0, 0].sum().backward()
    read = x.grad.abs().sum(-1)[0] > 0
    assert read.tolist() == [True, True, False, True, True, False]
    layer = part[0].convolution
    patches = torch.nn.functional.unfold(x.transpose(-1, -2).unflatten(-1, (2, 3)), 3, padding=1)  # (1, 288, 6)
    chosen = patches[0, layer.forest.synapse_inputs].unflatten(0, (-1, 16))  # (neurons, synapses, places)
    sums = (chosen * layer.weight.reshape(-1, 16, 1)).sum(1) + layer.bias[:, None]
    torch.testing.assert_close(part[0](x)[0], sums.T)


def test_a_window_is_one_of_the_image_that_a_row_is():
    layer = make_part("tree-near", Place("rows", 64, 128, plane=(8, 8)), 1 / 2)[0]
    inputs = torch.as_tensor(layer.forest.synapse_inputs).reshape(layer.out_features, 16)
    for places in (inputs // 8, inputs % 8):
        assert int((places.amax(1) - places.amin(1)).max()) < 5


def test_the_same_dendrite_stands_at_the_rows_beside_a_row():
    torch.manual_seed(0)
    part = make_part("tied", PLACES["grid"], 1 / 2)
    x = torch.randn(1, 6, 32)
    dendrites, somata = part[0]
    values = dendrites(x).transpose(-1, -2).unflatten(-1, (2, 3))  # (1, neurons, 2, 3)
    padded = nn.functional.pad(values, (1, 1, 1, 1))
    weight = somata.convolution.weight[:, 0]  # (neurons, 3, 3)
    sums = [
        (padded[0, :, i : i + 3, j : j + 3] * weight).sum((1, 2)) + somata.convolution.bias
        for i in range(2)
        for j in range(3)
    ]
    torch.testing.assert_close(part[0](x)[0], torch.stack(sums))
    assert part[0](x).is_contiguous()  # a transposed view slows the gradient of the next activation down


def test_a_tied_filter_is_a_tree_over_its_patch():
    torch.manual_seed(0)
    layer = make_part("tied", PLACES["images"], 1 / 2)[0]
    dendrites, somata = layer
    x = torch.randn(2, 16, 5, 5)
    tree = torch.zeros(2, dendrites.out_channels, 5, 5)
    for i, j in [(i, j) for i in range(3) for j in range(3)]:  # a dendrite of nine places, with the same weights
        moved = nn.functional.pad(dendrites(x), (1, 1, 1, 1))[..., i : i + 5, j : j + 5]
        tree += somata.weight[:, 0, i, j, None, None] * moved
    torch.testing.assert_close(layer(x), tree)
    assert dendrites.forest.edges == 8 * dendrites.out_channels


@pytest.mark.parametrize("name", ["sequence", "grid", "plane", "images"])
def test_linear_dendrites_have_no_activation(name):
    bent, straight = (make_part(kind, PLACES[name], 1 / 2)[0] for kind in ("tied", "tied-linear"))
    x = torch.randn(4, 6, 32) if PLACES[name].where == "rows" else torch.randn(4, 16, 5, 5)
    for part, is_linear in ((bent, False), (straight, True)):
        bend = part(x) + part(-x) - 2 * part(torch.zeros_like(x))
        assert (bend.abs().max() < 1e-4) == is_linear


def test_features_are_shifted_by_one_place():
    x = torch.arange(1.0, 49.0).reshape(1, 6, 8)  # six places of 2 x 3 with eight features
    y = Shift((2, 3))(x)[0].unflatten(0, (2, 3))
    image = x[0].unflatten(0, (2, 3))
    assert torch.equal(y[..., 4:], image[..., 4:])
    assert torch.equal(y[1, :, 0], image[0, :, 0])
    assert torch.equal(y[0, :, 1], image[1, :, 1])
    assert torch.equal(y[:, 1:, 2], image[:, :-1, 2])
    assert torch.equal(y[:, :-1, 3], image[:, 1:, 3])
    for outside in (y[0, :, 0], y[1, :, 1], y[:, 0, 2], y[:, -1, 3]):
        assert not outside.any()
    past = Nearby(nn.Conv1d(8, 2, 3), None, past=2)
    torch.testing.assert_close(past(x)[0, 2], past.convolution(x[:, :3].transpose(-1, -2))[0, :, 0])


def test_ideas_are_compared_only_where_they_are_asked_for():
    ideas = {"gated", "max", "shared", "narrow-gated"}
    usual = InsidePlan.make(["vit"], datasets=["digits"], divisors=[3])
    asked = InsidePlan.make(["vit"], datasets=["digits"], divisors=[3], kinds=sorted(ideas))
    assert ideas.isdisjoint(cell.kind for cell in usual.cells)
    assert ideas | {"narrow"} == {cell.kind for cell in asked.cells}
