"""Training for integers: rounded weights that `to_c` takes as they are."""

import pytest
import torch
from torch import nn

from dendritree import DendriticConv2d, DendriticLayer, FitConfig, create_model, fit
from dendritree.errors import OptionError
from dendritree.export.integers import in_integers
from dendritree.export.lowering import lower
from dendritree.export.steps import Conv
from dendritree.training.quantization import rounded


def test_the_weights_that_are_left_are_those_that_the_c_file_has():
    torch.manual_seed(0)
    model = create_model("dendritic", image_shape=(1, 12, 12), budget="500")
    x, y = torch.rand(64, 144), torch.arange(64) % 10
    history = fit(model, (x, y), FitConfig(epochs=2, lr=0.01, quantized=4))
    assert history.config.quantized == 4
    assert history.best_state.keys() == model.state_dict().keys()
    network = lower(model.eval(), (144,))
    pairs = list(zip(network.steps, in_integers(network, x, bits=4).steps, strict=True))
    for plain, coded in (pair for pair in pairs if isinstance(pair[0], Conv)):
        ratio = (abs(coded.weight).max(axis=(1, 2, 3)) / abs(plain.weight).max(axis=(1, 2, 3))).max()
        largest = abs(plain.weight).max(axis=(1, 2, 3), keepdims=True)
        largest = largest.max() if plain is network.steps[-1] else largest
        assert ratio > 0
        assert abs(plain.weight / largest * 7 - coded.weight).max() < 1e-3  # integers already, and the same


@pytest.mark.parametrize(
    "layer",
    [
        nn.Linear(6, 4),
        nn.Conv2d(2, 3, 3),
        DendriticLayer(12, 3, branching=2, fan_in=4, wiring="random"),
        DendriticConv2d(2, 3, 3, places=2),
    ],
)
def test_gradients_pass_and_rounded_weights_remain(layer):
    x = torch.randn(5, 12 if isinstance(layer, DendriticLayer) else 6)
    x = x if isinstance(layer, DendriticLayer | nn.Linear) else torch.randn(5, 2, 6, 6)
    before = layer.weight.detach().clone()
    with rounded(layer, bits=4):
        used = layer.weight.detach().clone()
        layer(x).square().sum().backward()
    torch.testing.assert_close(layer.weight.detach(), used)
    assert not torch.equal(before, used)
    assert layer.weight.grad.abs().sum() > 0
    assert not layer._forward_hooks


def test_other_bits_and_models_without_layers_are_rejected():
    with pytest.raises(OptionError, match="quantized must be 8 or 4 bits, or None: got 3"):
        FitConfig(quantized=3)
    with pytest.raises(OptionError, match="needs dendritic, linear or convolutional layers"), rounded(nn.ReLU(), 8):
        pass
