"""A layer that takes another wiring: by `rewire`, and from a state dict if its wiring was drawn."""

import copy
import io

import pytest
import torch
from hypothesis import given
from wiring_cases import layer_options

from dendritree import DendriticLayer
from dendritree.errors import FormatError
from dendritree.wiring import Custom, Local, Random

DRAWN = [Random, lambda seed: Local(window=3, seed=seed), lambda seed: Custom([[seed, seed + 1, 2, 3, 9]] * 3)]


def layer(wiring, **options):
    return DendriticLayer(16, 3, **{"branching": "auto", "fan_in": 5, "wiring": wiring, **options})


def redrawn(wiring):
    """A wiring of the same kind with another seed; other inputs, for a custom one."""
    if isinstance(wiring, Random):
        return Random(seed=99)
    if isinstance(wiring, Local):
        return Local(wiring.window, wiring.per, wiring.place, wiring.image_shape, seed=99)
    return Custom(wiring.inputs[::-1]) if isinstance(wiring, Custom) else wiring


@given(layer_options())
def test_a_state_dict_brings_its_wiring(options):
    source = DendriticLayer(**options)
    target = DendriticLayer(**{**options, "wiring": redrawn(options["wiring"])})
    buffer = io.BytesIO()
    torch.save(source.state_dict(), buffer)
    buffer.seek(0)
    target.load_state_dict(torch.load(buffer, weights_only=True))
    assert target.forest == source.forest
    x = torch.randn(3, source.in_features)
    for backend in ("eager", "fused"):
        source.backend = target.backend = backend
        assert torch.equal(target(x), source(x))


@pytest.mark.parametrize("draw", DRAWN)
@pytest.mark.parametrize("backend", ["eager", "fused", "reference"])
def test_what_was_computed_before_is_not_remembered(draw, backend):
    source, target, x = layer(draw(1), backend=backend), layer(draw(2), backend=backend), torch.randn(4, 16)
    assert source.forest != target.forest
    before = target(x)  # plans and programs of the old wiring are made
    target.load_state_dict(source.state_dict())
    assert torch.equal(target(x), source(x))
    assert not torch.equal(target(x), before)
    assert torch.equal(target.coverage(), source.coverage())
    assert torch.equal(target.state_dict()["forest_source"], source.state_dict()["forest_source"])


@pytest.mark.parametrize("other", [{"branching": 5}, {"branching": [2, [3]]}, {"repeats": 1}])
def test_another_tree_is_rejected_and_nothing_changes(other):
    target = layer(Random(seed=1))
    forest, state = target.forest, copy.deepcopy(target.state_dict())
    with pytest.raises(RuntimeError, match=r"the state dict must be of the same tree and wiring: "):
        target.load_state_dict(layer(Random(seed=2), **other).state_dict())
    assert target.forest is forest
    assert all(torch.equal(value, state[key]) for key, value in target.state_dict().items())


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [([1, [2]], [[2], 1]), ([[1, [2]], [1, 1]], [[1, 1], [1, [2]]])],  # as many children everywhere, in other places
)
def test_dendrites_in_other_places_are_another_tree(ours, theirs):
    target, source = (layer(Random(seed=1), fan_in=None, branching=tree) for tree in (ours, theirs))
    forest = target.forest
    with pytest.raises(RuntimeError, match=r"same tree and wiring: tree: source\["):
        target.load_state_dict(source.state_dict())
    with pytest.raises(FormatError, match=r"^a layer must be rewired with the same trees: tree: source\["):
        target.rewire(source.forest)
    assert target.forest is forest


# ------------------------------------------------------------------------------------------------------------- rewire


@pytest.mark.parametrize("backend", ["eager", "fused", "reference"])
def test_rewire_keeps_the_parameters_and_moves_the_synapses(backend):
    target, source, x = layer(Random(seed=1), backend=backend), layer(Random(seed=2), backend=backend), torch.ones(16)
    weight, ones = target.weight, torch.arange(16.0)
    target(x)
    target.rewire(source.forest)
    assert target.weight is weight
    assert target.forest == source.forest
    with torch.no_grad():
        source.weight.copy_(weight)
    assert torch.equal(target(ones), source(ones))
