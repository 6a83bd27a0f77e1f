"""Trees that neurons share across an image, converted to convolutions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ..layers import DendriticLayer
from ..tree import Forest
from ..tree.forest import IntArray


@dataclass(frozen=True)
class SharedTrees:
    """Trees shared on a grid: the window of each tree's dendrite, the grid of its copies, and the grid of neurons."""

    image_shape: tuple[int, int, int]
    kernel: tuple[int, int]
    places: tuple[int, int]
    """Copies of the dendrite along each axis."""
    step: tuple[int, int]
    """Pixels between two copies."""
    stride: tuple[int, int]
    """Copies between two neurons that share a tree."""
    counts: tuple[int, int]
    """Neurons that share a tree, along each axis; the last tree may have fewer."""
    taps: IntArray
    """The position in its window that each synapse of a dendrite reads, shape (trees, synapses)."""


def find_shared_trees(layer: DendriticLayer) -> SharedTrees | None:
    """The shared trees of a layer that convolutions can compute, or None.

    >>> from dendritree.wiring import Tied
    >>> wiring = Tied(window=4, stride=1, image_shape=(1, 28, 28), shared_by=25)
    >>> found = find_shared_trees(DendriticLayer(784, 50, branching=[16, 25], wiring=wiring))
    >>> found.kernel, found.places, found.stride, found.counts
    ((4, 4), (5, 5), (5, 5), (5, 5))
    """
    shape = getattr(layer.wiring, "image_shape", None)
    shared_by, f = getattr(layer.wiring, "shared_by", 1), layer.forest
    if shape is None or shared_by < 2 or f.depth != 2 or f.template is None or np.ptp(f.fan_in_of_neuron):
        return None
    source = _synapses(f)
    if source is None:
        return None
    neurons, copies, _ = source.shape
    tree, at = np.arange(neurons) // shared_by, np.arange(neurons) % shared_by
    if not np.array_equal(f.tree_of_neuron, tree) or neurons <= shared_by:
        return None
    channels, height, width = shape
    rows, columns = source // width % height, source % width
    corner_y, corner_x = rows.min(axis=2), columns.min(axis=2)  # (neurons, copies)
    # The corner of a window is that of all its trees: a tree may leave out its first row or column.
    top = np.array([corner_y[at == place].min(axis=0) for place in range(shared_by)])
    left = np.array([corner_x[at == place].min(axis=0) for place in range(shared_by)])
    y, x = rows - top[at][:, :, None], columns - left[at][:, :, None]
    kernel = int(y.max()) + 1, int(x.max()) + 1
    channel = source // (width * height)
    taps = (channel * kernel[0] + y) * kernel[1] + x
    down, right = _grid(top), _grid(left)
    if down is None or right is None or y.min() < 0 or x.min() < 0:
        return None
    (places_y, step_y, count_y, go_y), (places_x, step_x, count_x, go_x) = down, right
    wanted_y = np.add.outer(
        np.repeat(np.arange(count_y) * go_y, count_x), np.repeat(np.arange(places_y) * step_y, places_x)
    )
    wanted_x = np.add.outer(
        np.tile(np.arange(count_x) * go_x, count_y), np.tile(np.arange(places_x) * step_x, places_y)
    )
    first = taps[:, 0]
    equal = np.array_equal(taps, np.broadcast_to(first[::shared_by][tree][:, None], taps.shape))
    if not (equal and copies == places_y * places_x and shared_by == count_y * count_x):
        return None
    if not (np.array_equal(top - top[0, 0], wanted_y) and np.array_equal(left - left[0, 0], wanted_x)):
        return None
    if go_y % step_y or go_x % step_x or top[0, 0] or left[0, 0]:
        return None
    stride = max(go_y // step_y, 1), max(go_x // step_x, 1)
    return SharedTrees(
        (channels, height, width), kernel, (places_y, places_x), (step_y, step_x), stride, (count_y, count_x),
        first[::shared_by].astype(np.int32),
    )  # fmt: skip


def _synapses(f: Forest) -> IntArray | None:
    """The input of each synapse, shape (neurons, copies, synapses), of equal trees in order; None for others."""
    low = f.height_of_node == 1
    fan_ins, copies = f.fan_ins[low], f.fan_ins[~low]
    if np.ptp(fan_ins) or np.ptp(copies) or low.sum() != f.neurons * copies[0]:
        return None
    children = f.source[f.synapses :] - f.in_features
    in_order = np.array_equal(children, np.arange(len(children))) and np.array_equal(f.roots, np.flatnonzero(~low))
    return f.source[: f.synapses].reshape(f.neurons, copies[0], -1) if in_order else None


def _grid(values: IntArray) -> tuple[int, int, int, int] | None:
    """Copies and their distance, neurons and their distance, along one axis; None without a regular grid."""
    copies, neurons = np.unique(values[0]), np.unique(values[:, 0])
    result = []
    for each in (copies, neurons):
        steps = np.unique(np.diff(each))
        if len(steps) > 1:
            return None
        result += [len(each), int(steps[0]) if len(steps) else 1]
    return result[0], result[1], result[2], result[3]


class FirstFeatures(nn.Module):
    """The first features of each row."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.features = features

    def forward(self, x: Tensor) -> Tensor:
        """Shape (batch, features)."""
        return x[:, : self.features]


@torch.no_grad()
def as_convolutions(layer: DendriticLayer) -> nn.Sequential | None:
    """A layer whose neurons share trees, as PyTorch's own modules; None for other layers.

    >>> from dendritree.wiring import Tied
    >>> layer = DendriticLayer(784, 40, branching=[16, 25], wiring=Tied(4, 1, (1, 28, 28), 0, shared_by=25))
    >>> x = torch.randn(3, 784)
    >>> bool((as_convolutions(layer)(x) - layer(x)).abs().max() < 1e-5)
    True
    """
    found = find_shared_trees(layer)
    if found is None:
        return None
    trees, synapses = found.taps.shape
    channels, size = found.image_shape[0], int(np.prod(found.places))
    bias = layer.bias is not None
    like = {"device": layer.weight.device, "dtype": layer.weight.dtype, "bias": bias}
    first = nn.Conv2d(channels, trees, found.kernel, found.step, **like)  # type: ignore[arg-type]
    second = nn.Conv2d(trees, trees, found.places, found.stride, groups=trees, **like)  # type: ignore[arg-type]
    dendrites, somata = layer.weight[: trees * synapses].view(trees, -1), layer.weight[trees * synapses :]
    taps = torch.from_numpy(found.taps).long().to(layer.weight.device)
    flat = torch.zeros_like(first.weight).flatten(1)
    first.weight.copy_(flat.scatter_add(1, taps, dendrites).view_as(first.weight))
    second.weight.copy_(somata.view(trees, size).view_as(second.weight))
    if layer.bias is not None and first.bias is not None and second.bias is not None:
        first.bias.copy_(layer.bias[:trees])
        second.bias.copy_(layer.bias[trees:])
    # Windows beyond the last place are cut off: PyTorch would compute more neurons where the image has room for them.
    rows, columns = ((n - k) // s + 1 for n, k, s in zip(found.image_shape[1:], found.kernel, found.step, strict=True))
    fits = [(n - p) // s + 1 for n, p, s in zip((rows, columns), found.places, found.stride, strict=True)]
    if tuple(fits) != found.counts:
        return None
    steps = [nn.Unflatten(1, found.image_shape), first, layer.activation, second]
    steps += [layer.activation] if layer.root_activation else []
    cut = [] if layer.out_features == trees * fits[0] * fits[1] else [FirstFeatures(layer.out_features)]
    return nn.Sequential(*steps, nn.Flatten(), *cut).eval()
