"""DANN against its equations, and its receptive fields against the rule of the source, by loops."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from wiring_cases import by_dendrite

from dendritree import budget
from dendritree.errors import DendritreeError
from dendritree.neurons import DANN

FIELDS = ["random", "local", "global"]


def leaky(value):
    return value if value > 0 else 0.1 * value


def by_hand(layer, x):
    """One sample: dendrites that each sum their own inputs, somata that each sum their own dendrites."""
    forest, trees, y = layer.trees.forest, layer.trees, []
    values = [v.item() for v in x]
    node_values = []
    for node in range(forest.nodes):
        total = 0.0 if trees.bias is None else trees.bias[node].item()
        for edge in range(int(forest.offsets[node]), int(forest.offsets[node + 1])):
            row = int(forest.source[edge])
            child = values[row] if row < forest.in_features else node_values[row - forest.in_features]
            total += trees.weight[edge].item() * child
        node_values.append(leaky(total))
    y = [node_values[root] for root in forest.roots.tolist()]
    return torch.tensor(y, dtype=torch.float64)


@given(
    st.sampled_from(FIELDS),
    st.tuples(st.integers(1, 2), st.integers(2, 4), st.integers(2, 4)),
    st.integers(1, 3),
    st.integers(1, 4),
    st.integers(1, 4),
    st.booleans(),
    st.sampled_from([(3,), (), (2, 2), (0,)]),
)
def test_outputs_are_those_of_the_equations(field, image, somata, dendrites, synapses, bias, leading):
    inputs = int(np.prod(image))
    options = {"dendrites": dendrites, "synapses": synapses, "bias": bias}
    layer = DANN(inputs, somata, field=field, image_shape=image, dtype=torch.float64, **options)
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    x = torch.randn(*leading, inputs, dtype=torch.float64)
    y = layer(x)
    assert y.shape == (*leading, somata)
    for sample, output in zip(x.reshape(-1, inputs), y.reshape(-1, somata), strict=True):
        torch.testing.assert_close(output, by_hand(layer, sample))
    weights = somata * dendrites * (synapses + 1)
    counted = budget.count(layer)
    assert (counted.weights, counted.multiply_adds) == (weights, weights)
    assert counted.biases == (somata * (dendrites + 1) if bias else 0)


@pytest.mark.parametrize("field", FIELDS)
def test_gradients_are_those_of_finite_differences(field):
    torch.manual_seed(0)
    layer = DANN(9, 2, dendrites=2, synapses=3, field=field, dtype=torch.float64)
    x = torch.randn(2, 9, dtype=torch.float64, requires_grad=True)
    parameters = tuple(layer.parameters())
    assert torch.autograd.gradcheck(lambda x, *_: layer(x), (x, *parameters))


# ------------------------------------------------------------------------------------------------- receptive fields


def ring(a, b, width):
    """Chessboard distance of two pixels."""
    return max(abs(a // width - b // width), abs(a % width - b % width))


def could_be_a_field(pixels, center, height, width):
    """The rule: the center's neighborhood first (a part of it if it is too large), then as few rings as are enough."""
    everything = range(height * width)
    near = {p for p in everything if ring(p, center, width) <= 1}
    if len(pixels) <= len(near):
        return pixels <= near
    enough = next(r for r in itertools.count(2) if sum(ring(p, center, width) <= r for p in everything) >= len(pixels))
    return near <= pixels and all(ring(p, center, width) <= enough for p in pixels)


@given(st.integers(2, 7), st.integers(2, 7), st.integers(1, 20), st.integers(0, 2**30))
def test_a_local_field_is_a_neighborhood_and_its_rings(height, width, synapses, seed):
    synapses = min(synapses, height * width)
    layer = DANN(
        height * width, 3, dendrites=2, synapses=synapses, field="local", image_shape=(height, width), seed=seed
    )
    for dendrite in itertools.chain.from_iterable(by_dendrite(layer.trees.forest)):
        pixels = set(dendrite)
        assert len(pixels) == synapses  # none twice
        assert any(could_be_a_field(pixels, center, height, width) for center in range(height * width))


def middle(pixels, side):
    """The center of a field of nine that is a whole neighborhood; None near a border, where it is ambiguous."""
    center = sorted(pixels)[4]
    block = {center + y * side + x for y in (-1, 0, 1) for x in (-1, 0, 1)}
    inside = all(1 < place < side - 2 for place in divmod(center, side))
    return center if inside and set(pixels) == block else None


@given(st.integers(1, 40), st.integers(0, 2**30))
def test_the_dendrites_of_a_global_field_have_centers_of_their_own_around_one(dendrites, seed):
    layer = DANN(144, 4, dendrites=dendrites, synapses=9, field="global", seed=seed)
    for soma in by_dendrite(layer.trees.forest):
        centers = [c for pixels in soma if (c := middle(pixels, 12)) is not None]
        assert len(set(centers)) == len(centers)
        farthest = max(1, math.ceil(dendrites**0.5))  # from a corner, where a ring is the smallest
        assert all(ring(a, b, 12) <= 2 * farthest for a, b in itertools.combinations(centers, 2))


def test_a_seed_fixes_the_fields_and_torch_s_generator_does_without():
    for field in ("random", "local", "global"):
        a, b, c = (DANN(64, 4, field=field, seed=s).trees.forest.source.tolist() for s in (1, 1, 2))
        assert a == b != c
        torch.manual_seed(0)
        first = DANN(64, 4, field=field).trees.forest.source.tolist()
        torch.manual_seed(0)
        assert DANN(64, 4, field=field).trees.forest.source.tolist() == first


# -------------------------------------------------------------------------------------------------- state and types


def test_initial_law():
    torch.manual_seed(0)
    layer = DANN(100, 300, dendrites=8)
    dendrites, somata = layer.trees.weight.detach().clone().split([16 * 2400, 2400])
    assert somata.std().item() == pytest.approx((2 / 8) ** 0.5, rel=0.05)
    assert dendrites.std().item() == pytest.approx((2 / 16) ** 0.5, rel=0.02)
    assert not layer.trees.bias.any()
    wiring = layer.trees.forest
    layer.reset_parameters()
    assert layer.trees.forest is wiring
    assert not torch.equal(layer.trees.weight[: len(dendrites)], dendrites)


def test_extra_repr_shows_the_call():
    text = DANN(32, 4, dendrites=3, synapses=8, field="local", image_shape=(4, 8), seed=2).extra_repr()
    assert text == "32, 4, dendrites=3, synapses=8, field='local', image_shape=(1, 4, 8), seed=2"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dendrites": 0}, "dendrites"),
        ({"synapses": 0}, "synapses"),
        ({"synapses": 65}, "at most in_features 64"),
        ({"field": "locale"}, "did you mean 'local'"),
        ({"in_features": 60, "field": "local"}, "49 or 64 would fit"),
        ({"image_shape": (4, 4), "field": "global"}, "16 pixels"),
        ({"dendrites": 65, "field": "global"}, "64 pixels"),
        ({"seed": -1}, "seed"),
    ],
)
def test_invalid_options_are_rejected(options, message):
    with pytest.raises(DendritreeError, match=message):
        DANN(**{"in_features": 64, "out_features": 4, **options})
