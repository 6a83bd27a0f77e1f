"""`DendriticLayer`: a layer of dendritic-tree neurons with the contract of `nn.Linear`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypedDict

import numpy as np
import torch
from torch import Tensor, nn

from .. import ops
from ..errors import FormatError, OptionError, ShapeError, check_one_of, check_probability
from ..levels import AUTO, Branching
from ..randomness import dropout as drop
from ..randomness import generator_on
from ..tree import Forest, IntArray
from ..wiring import Custom, Wiring
from .activation import Activation, make_activation
from .base import PlannedLayer, check_dense
from .growth import Growth, Wirings
from .state import FOREST_KEYS, check_forest, forest_state, is_same_tree

DROPOUT_PER = ("synapse", "input")
"""What dropout silences: each neuron's synapses on their own, or an input for all neurons at once."""


class CommonOptions(TypedDict, total=False):
    """Options of `DendriticLayer` that layers made of it pass on."""

    bias: bool
    dropout_per: str
    backend: str
    device: torch.device | str | None
    dtype: torch.dtype | None


class LayerOptions(CommonOptions, total=False):
    """Options of `DendriticLayer` that models pass on."""

    depth: int | None
    fan_in: int | None
    repeats: int | None
    ragged: bool
    activation: Activation


class DendriticLayer(PlannedLayer):
    """A layer of neurons whose inputs run through trees of small nonlinear sums.

    Every dendrite (inner node) of a tree computes

        y = act(w_1 z_1 + ... + w_b z_b + c)

    from its `b` children, which are synapses (inputs) or other dendrites; the root is the neuron's output. Only real
    edges are stored: `weight` has one entry per edge, `bias` one per node.

    Args:
        in_features: size of the last dimension of the input, `I` in the paper.
        out_features: number of neurons, `O`. None for the number that fills the paper's layer, wiring `"partition"`:
            `in_features = out_features * branching ** depth`.
        branching: children of every node, `b`: `"auto"` for two levels near the square root of the fan-in, an int, one
            number per level, leaf level first, or an unbalanced tree as nested children: `[3, [2], [2, [4]]]` has
            three synapses at the root, a dendrite of two, and one of two and a dendrite of four.
        depth: edges from leaf to root, `d`.
        fan_in: synapses of a tree, where the wiring takes any number: `"random"`, `"strided"`, `"local"`.
        wiring: which inputs a neuron reads: `"shared"` (every neuron reads all inputs, as in `nn.Linear`),
            `"partition"` (neuron n reads its own slice of the inputs, as in the paper), another name of
            `dendritree.wiring.WIRINGS`, or a wiring object. None is `"shared"`, or `"partition"` without
            `out_features`.
        repeats: trees of a neuron, over the same inputs, joined by a linear soma: a k-tree. None has no soma. `wiring`
            may then be a list, one for each tree.
        ragged: accept sizes that are not powers of `branching`; a level of n children then has ceil(n / b) nodes.
        bias: whether nodes have a bias.
        dropout: probability of silencing while training, `p`; what stays is scaled by 1 / (1 - p).
        dropout_per: `"synapse"` (as in the paper's runs, each neuron drops its own synapses) or `"input"`.
        activation: `"leaky_relu"` (slope 0.1, as in the paper), `"relu"`, `"tanh"`, `"sigmoid"`, `"silu"`,
            `"gelu"`, an elementwise `nn.Module` class or instance, or None.
        root_activation: whether the root applies the activation too.
        backend: `"auto"`, or one of `dendritree.ops.BACKENDS` to insist on it.
        device, dtype: as in `nn.Linear`.

    Shape:
        - Input: `(*, in_features)` with any leading dimensions.
        - Output: `(*, out_features)`.

    Attributes:
        weight: shape `(edges,)`, at first N(0, 2 / children of its node): the paper's density-gain law.
        bias: shape `(nodes,)`, at first 0, or None.
        forest: the trees and their wiring, a `dendritree.tree.Forest`.
        windows: top, left, height and width of the window that a node's synapses were drawn from, shape `(nodes, 4)`,
            zeros for a node without synapses. They stay when synapses move. None unless the wiring is `Local`; for
            k-trees, that of every tree, all in one image.
        regrown: whether the trees are others than those that the arguments describe: pruned, or given as a forest.

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

    weight: nn.Parameter
    bias: nn.Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int | None = None,
        *,
        branching: Branching = AUTO,
        depth: int | None = None,
        fan_in: int | None = None,
        wiring: Wirings | None = None,
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
        super().__init__(growth.in_features, growth.neurons, dtype)
        self.branching, self.wirings, self.repeats = growth.branching, growth.wirings, growth.repeats
        self.ragged = bool(ragged)
        self.dropout = check_probability("dropout", dropout)
        self.dropout_per = check_one_of("dropout_per", dropout_per, DROPOUT_PER)
        self.backend = check_one_of("backend", backend, ops.BACKENDS)
        self.root_activation = bool(root_activation) and repeats is None  # a soma is linear
        self.forest, self.windows = growth.forest()
        self.activation = make_activation(activation)
        nodes = (self.forest.nodes,) if bias else None
        self._add_parameters(device, dtype, weight=(self.forest.edges,), bias=nodes)
        self._make_plan(self.forest)
        self.regrown = False
        self.reset_parameters()

    @classmethod
    def from_forest(cls, forest: Forest, **options: Any) -> DendriticLayer:
        """A layer of these very trees, wired as they are: unequal ones, pruned ones, any.

        Args:
            forest: the trees of the neurons.
            options: of the layer, apart from sizes, trees and wiring: `bias`, `dropout`, `activation`, `dtype`, ...

        Example:
            >>> trees = Forest.join([Forest.nested([3]), Forest.nested([1, [2]])])
            >>> DendriticLayer.from_forest(trees.wired([0, 1, 2, 3, 0, 1], in_features=4), activation="tanh")
            DendriticLayer(
              4, 2, wiring=Custom(6 inputs); 2 unequal trees of 6 synapses, 2 + 1 dendrites; 10 parameters
              (activation): Tanh()
            )
        """
        inputs = forest.synapse_inputs[np.argsort(forest.neuron_of_synapse, kind="stable")]
        seedling = Custom(np.zeros((forest.neurons, 1), dtype=np.int64))  # the least layer there is, to be regrown
        layer = cls(forest.in_features, forest.neurons, fan_in=1, wiring=seedling, **options)
        layer.wirings = (Custom(inputs),)
        layer.regrow(forest)
        return layer

    @property
    def depth(self) -> int:
        """Edges from leaf to root."""
        return self.forest.depth

    @property
    def fan_in(self) -> int:
        """Synapses of the largest neuron; of every neuron where the trees are equal."""
        return int(self.forest.fan_in_of_neuron.max())

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds for one sample."""
        return self.forest.multiply_adds

    @property
    def wiring(self) -> Wiring:
        """The wiring; of the first tree of a neuron where each has its own."""
        return self.wirings[0]

    def coverage(self) -> Tensor:
        """How many synapses read each input, shape (in_features,).

        >>> DendriticLayer(6, 2, branching=2, fan_in=3, wiring="random").coverage().tolist()
        [1, 1, 1, 1, 1, 1]
        """
        return torch.from_numpy(np.bincount(self.forest.synapse_inputs, minlength=self.in_features))

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw the weights anew from the paper's law, N(0, 2 / children), and set the biases to 0.

        The density gain of the paper's formula reduces to this: a node sees its own children, not the dense row.
        """
        if self.weight.is_meta:  # torch takes a third of a millisecond to draw nothing
            return
        std = np.repeat(np.sqrt(2.0 / self.forest.fan_ins), self.forest.fan_ins)
        self.weight.normal_(generator=generator_on(self.weight.device))
        self.weight.mul_(torch.as_tensor(std, dtype=self.weight.dtype, device=self.weight.device))
        if self.bias is not None:
            # NOTE[DIFF]: the authors left PyTorch's default, uniform within 1 / sqrt(full layer width).
            self.bias.zero_()

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of shape (..., out_features) for inputs of shape (..., in_features)."""
        check_dense(x)
        dropout = self.dropout if self.training else 0.0
        if dropout and self.dropout_per == "input":
            x, dropout = drop(x, dropout), 0.0
        return ops.dendritic(
            x,
            self.weight,
            self.bias,
            self._plan,
            self.activation,
            root_activation=self.root_activation,
            dropout=dropout,
            backend=self.backend,
        )

    def extra_repr(self) -> str:
        """The constructor's call, the trees that were grown, their parameters."""
        parameters = self.forest.parameters(bias=self.bias is not None)
        return f"{super().extra_repr()}; {self.forest.describe()}; {parameters:,} parameters"

    def _options(self) -> dict[str, Any]:
        options = self._tree_options() | self._changed(bias=self.bias is not None)
        if self.dropout:
            options |= {"dropout": self.dropout, "dropout_per": self.dropout_per}
        if self.repeats is None:
            options |= self._changed(root_activation=self.root_activation)
        return options | self._changed(backend=self.backend)

    def _tree_options(self) -> dict[str, Any]:
        wiring = {"wiring": self.wirings[0] if len(self.wirings) == 1 else list(self.wirings)}
        if self.regrown:
            return wiring
        size = {"fan_in": self.fan_in // (self.repeats or 1)} if self.wiring.any_fan_in else {}
        if self.ragged and not size:
            size = {"ragged": True}
        return {"branching": self.branching, **size, **wiring, **self._changed(repeats=self.repeats)}

    def __prepare_scriptable__(self) -> DendriticLayer:
        """Say no to `torch.jit.script`, which would fail with a word about type annotations."""
        raise OptionError(
            "torch.jit.script cannot read a DendriticLayer: torch.jit.trace, torch.export and to_onnx can"
        )

    # ------------------------------------------------------------------------------------------- state and devices

    def _structure(self) -> dict[str, Tensor]:
        return forest_state(self.forest, self.windows)

    def _check_structure(self, state: Mapping[str, Any]) -> Callable[[], None] | None:
        """Check that a state dict is of this tree and wiring."""
        if not any(key in state for key in FOREST_KEYS):
            return None
        drawn = check_forest(state, self.forest, self.windows, self.wirings)
        return None if drawn is None else lambda: self.rewire(*drawn)

    def rewire(self, forest: Forest, windows: IntArray | None = None) -> None:
        """Attach the synapses to other inputs: those of a forest with the same trees. Windows stay, or are as given."""
        if not is_same_tree(self.forest, forest):
            raise FormatError(f"a layer is rewired with the same trees: {self.forest.difference(forest)}")
        self.forest, self.windows = forest, self.windows if windows is None else windows
        self._make_plan(forest)

    def regrow(self, forest: Forest, *, bias: bool | None = None, windows: IntArray | None = None) -> None:
        """Take other trees for the same inputs and neurons, with new weights of the initial law.

        `weight` and `bias` are new parameters: make optimizers afterwards. `branching`, `wiring` and `repeats` still
        say what the layer was made with.

        Args:
            forest: the trees and their wiring.
            bias: whether nodes have a bias; None as before.
            windows: of the nodes, for a layer whose synapses move in windows.
        """
        if (forest.in_features, forest.neurons) != (self.in_features, self.out_features):
            raise ShapeError(
                f"a layer is regrown with trees for its {self.in_features} inputs and {self.out_features} neurons: got "
                f"{forest.in_features} and {forest.neurons}"
            )
        has_bias, like = self.bias is not None if bias is None else bias, self.weight
        self.forest, self.windows, self.regrown = forest, windows, True
        self.weight = nn.Parameter(like.new_empty(forest.edges), requires_grad=like.requires_grad)
        self.bias = nn.Parameter(like.new_empty(forest.nodes), like.requires_grad) if has_bias else None
        self._make_plan(forest)
        self.reset_parameters()
