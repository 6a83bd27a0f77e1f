"""784 -> 10, 3 -> 7, 1 -> 1, 10,000 -> 3: every wiring that makes sense for them, and what the others say."""

import pytest
import torch
from wiring_cases import by_neuron

from dendritree import DendriticLayer, budget
from dendritree.errors import ShapeError

SIZES = [(784, 10), (3, 7), (1, 1), (10_000, 3)]
ANY = ["random", "strided"]


def check(layer, inputs, neurons, fan_in):
    """The layer has the neurons and synapses it should have, counts right and learns; backends agree."""
    assert [len(read) for read in by_neuron(layer.forest)] == [fan_in] * neurons
    assert int(layer.coverage().sum()) == neurons * fan_in
    assert budget.count(layer).total == sum(p.numel() for p in layer.parameters())
    x = torch.randn(2, inputs, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    actual = []
    for layer.backend in ("eager", "fused"):
        layer.zero_grad()
        y = layer(x)
        assert y.shape == (2, neurons)
        y.square().sum().backward()
        actual.append((y.detach(), layer.weight.grad, layer.bias.grad))
    torch.testing.assert_close(*actual)


def grow(inputs, neurons, wiring, **options):
    return DendriticLayer(inputs, neurons, wiring=wiring, dtype=torch.float64, **options)


@pytest.mark.parametrize(("inputs", "neurons"), SIZES)
@pytest.mark.parametrize("branching", ["auto", 2, 5])
@pytest.mark.parametrize("wiring", ANY)
def test_wirings_of_any_fan_in(inputs, neurons, branching, wiring):
    check(grow(inputs, neurons, wiring, branching=branching), inputs, neurons, inputs)
    for fan_in in (1, 16, 50):
        check(grow(inputs, neurons, wiring, branching=branching, fan_in=fan_in), inputs, neurons, fan_in)


@pytest.mark.parametrize(("inputs", "neurons"), [(784, 10), (1, 1), (10_000, 3)])
@pytest.mark.parametrize("wiring", ["morton", "local"])
def test_square_images(inputs, neurons, wiring):
    fan_in = min(inputs, 49) if wiring == "local" else inputs
    check(grow(inputs, neurons, wiring, branching="auto"), inputs, neurons, fan_in)


def test_a_fan_in_that_is_the_wirings_own_is_accepted():
    assert DendriticLayer(784, 10, branching=28, fan_in=784, wiring="shared").fan_in == 784
    assert DendriticLayer(80, 10, branching=2, fan_in=8, wiring="partition").fan_in == 8


@pytest.mark.parametrize("wiring", ["shared", "morton"])
def test_wirings_that_read_all_inputs_name_their_fan_in(wiring):
    with pytest.raises(ShapeError, match="fan_in must be 784"):
        DendriticLayer(784, 10, branching=4, fan_in=16, wiring=wiring)
