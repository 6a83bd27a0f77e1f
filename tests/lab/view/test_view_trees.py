"""Single trees cut out of layers: the same arithmetic as the layer, node by node."""

import numpy as np
import pytest
import torch
from torch import nn

from dendritree import DendriticLayer
from dendritree.errors import OptionError
from dendritree.layers import trace
from dendritree.wiring import Local
from dendritree_lab.view.trees import TreeLayer, tree_json, tree_layers

LAYERS = {
    "balanced": lambda: DendriticLayer(32, 4, branching=2, wiring="partition"),
    "shared": lambda: DendriticLayer(16, 3, branching=4, wiring="shared"),
    "ragged": lambda: DendriticLayer(13, 2, branching=3, wiring="shared", ragged=True),
    "nested": lambda: DendriticLayer(20, 3, branching=[3, [2], [2, [4]]], wiring="random"),
    "k-tree": lambda: DendriticLayer(16, 2, branching=4, wiring="morton", repeats=2),
    "no bias": lambda: DendriticLayer(16, 4, branching=4, wiring="partition", bias=False, activation="tanh"),
    "linear root": lambda: DendriticLayer(16, 2, branching=[4, 2], fan_in=8, wiring="random", root_activation=False),
    "one level": lambda: DendriticLayer(8, 3, branching=8, wiring="shared"),
    "linear": lambda: nn.Linear(7, 3),
    "linear, no bias": lambda: nn.Linear(7, 3, bias=False),
}


@pytest.fixture(params=LAYERS)
def layer(request):
    torch.manual_seed(0)
    made = LAYERS[request.param]()
    if made.bias is not None:
        nn.init.normal_(made.bias)
    return made


def test_the_root_of_every_tree_is_the_output_of_its_neuron(layer):
    x = torch.randn(layer.in_features)
    shown = TreeLayer("layer", layer)
    roots = [trace(shown.tree(neuron), x).values[-1] for neuron in range(layer.out_features)]
    np.testing.assert_allclose(roots, layer(x).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_the_page_gets_inputs_from_0_on_and_dendrites_below():
    tree = tree_json(TreeLayer("layer", DendriticLayer(4, 1, branching=2)).tree(0))
    assert tree["source"] == [0, 1, 2, 3, -1, -2]
    assert tree["offsets"] == [0, 2, 4, 6]
    assert tree["text"] == "4 synapses, 2 + 1 dendrites"
    assert len(tree["weight"]) == 6
    with pytest.raises(OptionError, match="neuron"):
        TreeLayer("layer", LAYERS["balanced"]()).tree(4)


def test_the_image_of_a_layer_is_that_of_its_wiring():
    layer = DendriticLayer(32, 3, branching=2, fan_in=4, wiring=Local(window=2, image_shape=(2, 4, 4)))
    assert TreeLayer("a", layer).image_shape() == (2, 4, 4)
    assert TreeLayer("b", DendriticLayer(16, 1, branching=2, wiring="local", fan_in=4)).image_shape() == (1, 4, 4)
    assert TreeLayer("c", DendriticLayer(16, 1, branching=2)).image_shape() is None
    assert TreeLayer("d", nn.Linear(16, 1)).image_shape() is None
    assert [layer.name for layer in tree_layers(nn.Sequential(nn.ReLU(), nn.Linear(2, 1)))] == ["1"]
