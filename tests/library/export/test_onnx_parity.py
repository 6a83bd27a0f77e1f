"""Random layers of every wiring and shape of tree, in onnxruntime: the numbers of a loop over their edges.

The exporter takes a second of CPU for each.
"""

import numpy as np
import pytest
import torch
from effort import thorough
from forests import loop
from torch import nn

from dendritree import DendriticConv2d, DendriticLayer, to_onnx
from dendritree.neurons import DMNN, DNM
from dendritree.wiring import WIRINGS

onnxruntime = pytest.importorskip("onnxruntime")
IMAGE = (1, 3, 4)
INPUTS = 12
NAMES = [*(name for name in WIRINGS if name != "tied"), "tied"]
NUMBERS = thorough([0, 1, 2, 5, 7], range(50))
"""Of the layers. Few: every kind of tree, and shared weights. A wiring is nothing but other indices in the file."""
TREES = {
    "one number": lambda _: 3,
    "levels": lambda fan_in: [2, 2, max(2, -(-fan_in // 4))],
    "auto": lambda _: "auto",
    "nested": lambda fan_in: [fan_in // 3, [fan_in - fan_in // 3 - 2, [1, 1]]],
}


def random_layer(number):
    """Layer `number`: every wiring and kind of tree in turn, sizes and the rest at random."""
    random = np.random.default_rng(number)
    name = NAMES[number % len(NAMES)]
    neurons = int(random.integers(1, 4))
    fan_in = int(random.integers(5, 10))
    free = name in ("random", "strided", "local", "tied", "custom")
    if name == "partition":
        fan_in, neurons = INPUTS // neurons, neurons
    elif not free:
        fan_in = INPUTS
    tree = list(TREES.values())[(number + number // len(NAMES)) % len(TREES)](fan_in)
    if name == "tied":
        fan_in, tree = 8, [2, 4]
    wiring = {
        "custom": lambda: WIRINGS[name](random.integers(0, INPUTS, neurons * fan_in).tolist()),
        "local": lambda: WIRINGS[name](window=3, image_shape=IMAGE),
        "tied": lambda: WIRINGS[name](2, 1, IMAGE, shared_by=1 + number // len(NAMES) % 2),
        "morton": lambda: WIRINGS[name](IMAGE),
    }.get(name, WIRINGS[name])()
    return DendriticLayer(
        INPUTS,
        neurons,
        branching=tree,
        wiring=wiring,
        repeats=[None, None, 2][number % 3],
        bias=number % 4 != 3,
        root_activation=number % 2 == 0,
        activation=["leaky_relu", "tanh", "gelu", "silu", "sigmoid", "relu", None][number % 7],
        **({"fan_in": fan_in} if free else {"ragged": True}),
    )


class Many(nn.Module):
    """All layers on the same inputs, their outputs side by side: one export for all of them."""

    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x):
        return torch.cat([layer(x) for layer in self.layers], dim=-1)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    torch.manual_seed(0)
    model = Many([random_layer(number) for number in NUMBERS])
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))  # biases too
    path = tmp_path_factory.mktemp("onnx") / "many.onnx"
    return model, to_onnx(model, path, torch.randn(3, INPUTS)), onnxruntime.InferenceSession(path)


def test_the_layers_have_many_wirings_and_every_kind_of_tree(exported):
    layers = exported[0].layers
    assert len({type(layer.wiring) for layer in layers}) == thorough(len(NUMBERS), len(WIRINGS))
    assert len({(number + number // len(NAMES)) % len(TREES) for number in NUMBERS}) == len(TREES)
    assert sum(layer.repeats is not None for layer in layers) >= len(layers) // 4
    ragged = sum(len(set(layer.forest.fan_ins[layer.forest.levels[0]])) > 1 for layer in layers)
    assert ragged >= thorough(1, 3)


@pytest.mark.parametrize("samples", [1, 2, 7, 64])
def test_onnxruntime_gives_the_numbers_of_the_loop_for_any_batch(exported, samples):
    model, _, session = exported
    x = torch.randn(samples, INPUTS, generator=torch.Generator().manual_seed(samples))
    outputs = torch.from_numpy(session.run(["output"], {"input": x.numpy()})[0])
    with torch.no_grad():
        for number, layer in zip(NUMBERS, model.layers, strict=True):
            mine, outputs = outputs[:, : layer.out_features], outputs[:, layer.out_features :]
            wanted = loop(x, layer.edge_weight, layer.node_bias, layer.forest, layer.activation, layer.root_activation)
            torch.testing.assert_close(mine, wanted, rtol=1e-5, atol=1e-5, msg=lambda m, n=number: f"layer {n}: {m}")
    assert outputs.shape == (samples, 0)


def test_the_export_says_how_close_it_is(exported):
    file = exported[1]
    assert (file.input_shape, file.output_shape) == ((INPUTS,), (sum(n.out_features for n in exported[0].layers),))
    assert 0 <= file.difference < 1e-5


# --------------------------------------------------------------------------------------------- neurons of other authors


def test_neurons_of_other_authors_and_filters_give_their_numbers_for_any_batch(tmp_path):
    torch.manual_seed(0)
    dnms = [DNM(16, 3, dendrites=4, soma=soma, soma_k=1.0) for soma in ("sigmoid", "logit", "log")]
    dmnns = [DMNN(16, 3, dendrites=2), DMNN(16, 3, dendrites=2, temperature=0.05)]  # hard and smooth
    filters = nn.Sequential(nn.Unflatten(1, (1, 4, 4)), DendriticConv2d(1, 2, 3, branching=3), nn.Flatten())
    same_numbers(Many([*dnms, *dmnns, filters]), tmp_path, (16,))


def same_numbers(model, folder, shape):
    file = to_onnx(model, folder / "model.onnx", torch.randn(3, *shape))
    assert file.difference < 1e-5
    session = onnxruntime.InferenceSession(file.path)
    for samples in (1, 2, 7):
        x = torch.randn(samples, *shape)
        outputs = torch.from_numpy(session.run(["output"], {"input": x.numpy()})[0])
        torch.testing.assert_close(outputs, model.eval()(x).detach(), rtol=1e-5, atol=1e-5)
