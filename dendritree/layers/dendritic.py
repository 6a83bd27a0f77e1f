"""`DendriticLayer`: a layer of dendritic-tree neurons with the contract of `nn.Linear`; `trace`: its dendrites."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..tree import Forest
from ..tree.levels import AUTO, Branching
from ..wiring import Custom, Wiring
from .activation import Activation
from .forest_layer import CommonOptions, ForestLayer
from .growth import Growth
from .neuron_layer import as_rows, index_of


class LayerOptions(CommonOptions, total=False):
    """Options of `DendriticLayer` that models pass on."""

    depth: int | None
    fan_in: int | None
    repeats: int | None
    ragged: bool
    activation: Activation


class DendriticLayer(ForestLayer):
    """A layer of neurons whose inputs run through trees of small nonlinear sums.

    Every dendrite (inner node) of a tree computes

        y = act(w_1 z_1 + ... + w_b z_b + c)

    from its `b` children, which are synapses (inputs) or other dendrites; the root is the neuron's output. Only real
    edges are stored: `weight` has one entry per edge, `bias` one per node. Tied nodes (wiring `Tied`) share theirs.

    Args:
        in_features: size of the last dimension of the input, `I` in the paper.
        out_features: number of neurons, `O`. None computes it for the paper's layer, wiring `"partition"`, in which
            `in_features = out_features * branching ** depth`.
        branching: children of every node, `b`: an int; a list with one number per level, leaf level first; `"auto"`,
            two levels near the square root of the fan-in; or nested lists for an unbalanced tree: `[3, [2], [2, [4]]]`
            has three synapses at the root, a dendrite of two, and one of two and a dendrite of four.
        depth: edges from leaf to root, `d`.
        fan_in: synapses per tree, for wirings that accept any number: `"random"`, `"strided"`, `"local"`.
        wiring: which inputs a neuron reads: `"shared"` (every neuron reads all inputs, as in `nn.Linear`),
            `"partition"` (neuron n reads its own slice of the inputs, as in the paper), another name of
            `dendritree.wiring.WIRINGS`, or a wiring object. None is `"shared"`, or `"partition"` without
            `out_features`.
        repeats: trees per neuron over the same inputs, joined by a linear soma: a k-tree. None for one without a soma.
        ragged: accept sizes that are not powers of `branching`; a level of n children then has ceil(n / b) nodes.
        bias: whether nodes have a bias.
        dropout: probability of silencing a synapse or an input while training, `p`, rounded to a multiple of 1/65536;
            the rest is scaled by 1 / (1 - p).
        dropout_per: `"synapse"` (as in the paper's runs, each neuron drops its own synapses) or `"input"`.
        activation: `"leaky_relu"` (slope 0.1, as in the paper), `"relu"`, `"tanh"`, `"sigmoid"`, `"silu"`,
            `"gelu"`, an elementwise `nn.Module` class or instance, or None.
        root_activation: whether the root applies the activation too.
        backend: `"auto"`, or one of `dendritree.ops.BACKENDS` to require it.
        device, dtype: as in `nn.Linear`.

    Shape:
        - Input: `(*, in_features)` with any leading dimensions.
        - Output: `(*, out_features)`.

    Attributes:
        weight: shape `(edges,)`, initially N(0, 2 / children of its node): the paper's density gain. Tied nodes share
            one set of weights: the shape is then `(forest.weights,)`, and `edge_weight` has one entry per edge. All
            edges to copies of one rectified dendrite start with the weight 1 / sqrt(children).
        bias: shape `(nodes,)`, initially 0, or None. Tied nodes share one bias: the shape is then `(forest.biases,)`.
        forest: the trees and their wiring, a `dendritree.tree.Forest`.
        windows: top, left, height and width of the window that a node's synapses were drawn from, shape `(nodes, 4)`,
            zeros for a node without synapses. They do not change when synapses move. None unless the wiring is `Local`
            or `Tied`.
        regrown: whether the trees differ from those that the arguments describe: pruned, or given as a forest.

    Example:
        >>> layer = DendriticLayer(784, 10)
        >>> layer(torch.randn(128, 784)).shape
        torch.Size([128, 10])
        >>> layer
        DendriticLayer(
          784, 10, branching='auto', wiring=Shared(); 10 trees of 784 synapses, 28 + 1 dendrites; 8,410 parameters
          (activation): LeakyReLU(negative_slope=0.1)
        )
    """

    def __init__(
        self,
        in_features: int,
        out_features: int | None = None,
        *,
        branching: Branching = AUTO,
        depth: int | None = None,
        fan_in: int | None = None,
        wiring: str | Wiring | None = None,
        repeats: int | None = None,
        ragged: bool = False,
        bias: bool = True,
        dropout: float = 0.0,
        dropout_per: str = "synapse",
        activation: Activation = "leaky_relu",
        root_activation: bool = True,
        backend: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        growth = Growth(in_features, out_features, branching, depth, fan_in, wiring, repeats, ragged)
        super().__init__(
            growth,
            {"in_features": growth.in_features, "out_features": growth.neurons},
            bias=bias,
            dropout=dropout,
            dropout_per=dropout_per,
            activation=activation,
            root_activation=root_activation,
            backend=backend,
            device=device,
            dtype=dtype,
        )

    @classmethod
    def from_forest(cls, forest: Forest, **options: Any) -> DendriticLayer:
        """A layer with exactly these trees and their wiring; they may be unequal or pruned.

        Args:
            forest: the trees of the neurons.
            options: other options of the layer: `bias`, `dropout`, `activation`, `dtype`, ...

        Example:
            >>> trees = Forest.join([Forest.nested([3]), Forest.nested([1, [2]])])
            >>> DendriticLayer.from_forest(trees.wired([0, 1, 2, 3, 0, 1], in_features=4), activation="tanh")
            DendriticLayer(
              4, 2, wiring=Custom(6 inputs); 2 unequal trees of 6 synapses, 2 + 1 dendrites; 10 parameters
              (activation): Tanh()
            )
        """
        inputs = forest.synapse_inputs[np.argsort(forest.neuron_of_synapse, kind="stable")]
        seedling = Custom(np.zeros((forest.neurons, 1), dtype=np.int64))  # the smallest possible layer, to be regrown
        layer = cls(forest.in_features, forest.neurons, fan_in=1, wiring=seedling, **options)
        layer.wiring = Custom(inputs)
        layer.regrow(forest)
        return layer


class Trace(NamedTuple):
    """The dendrites of all neurons, in the order of `layer.forest`'s nodes; the neurons are `forest.roots`."""

    sums: Tensor
    """The weighted sum of each dendrite, bias included, shape (..., nodes)."""
    values: Tensor
    """The output of each dendrite, the activation of its sum, shape (..., nodes)."""


@torch.no_grad()
def trace(layer: ForestLayer, x: Tensor) -> Trace:
    """The sum and the output of every dendrite for some inputs, without dropout or gradients.

    Args:
        layer: the layer to run; a convolution is run at one position.
        x: inputs, shape (..., in_features), in the dtype of the weights; patches for a convolution.

    Example:
        >>> layer = DendriticLayer(4, 1, branching=2)
        >>> x = torch.ones(3, 4)
        >>> trace(layer, x).values.shape  # two dendrites and the root
        torch.Size([3, 3])
        >>> bool((trace(layer, x).values[:, layer.forest.roots.tolist()] - layer(x)).abs().max() < 1e-6)
        True
    """
    forest, weight, bias = layer.forest, layer.edge_weight, layer.node_bias
    flat = as_rows(x, forest.in_features, weight.dtype)
    source, owner = (index_of(index, x) for index in (forest.source, forest.node_of_edge))
    is_root = torch.zeros(forest.nodes, dtype=torch.bool, device=x.device)
    is_root[forest.roots.tolist()] = True
    sums = flat.new_zeros(len(flat), forest.nodes)
    if bias is not None:
        sums += bias
    rows = torch.cat([flat, torch.zeros_like(sums)], dim=-1)  # (batch, inputs and nodes)
    for level, edges, _ in forest.ascend():
        sums.index_add_(1, owner[edges], rows[:, source[edges]] * weight[edges])
        values = layer.activation(sums[:, level].clone())  # it may work in place
        if not layer.root_activation:
            values = torch.where(is_root[level], sums[:, level], values)
        rows[:, forest.in_features + level.start : forest.in_features + level.stop] = values
    shape = (*x.shape[:-1], forest.nodes)
    return Trace(sums.reshape(shape), rows[:, forest.in_features :].reshape(shape))
