"""The base class of layers whose weights are those of a forest: its trees, their parameters, their state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypedDict

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from .. import ops
from ..errors import FormatError, ShapeError, check_index, check_one_of, check_probability
from ..randomness import dropout as drop
from ..randomness import generator_on
from ..tree import Forest, IntArray
from .activation import Activation, make_activation
from .growth import Growth
from .neuron_layer import PlannedLayer
from .placement import Placement
from .state import FOREST_KEYS, WINDOWS_KEY, check_forest, forest_state, is_same_tree, read_forest

DROPOUT_PER = ("synapse", "input")
"""What dropout silences: each neuron's synapses separately, or an input for all neurons at once."""


class CommonOptions(TypedDict, total=False):
    """Options of all dendritic layers, which layers built from them pass on."""

    bias: bool
    dropout_per: str
    backend: str
    device: torch.device | str | None
    dtype: torch.dtype | None


class ForestLayer(PlannedLayer):
    """A layer of dendritic trees: a forest with one weight per edge and one bias per node.

    Subclasses define what the trees read: all inputs, or patches of them.
    """

    bias: nn.Parameter | None
    _patches: ops.PatchGrid | None = None
    """The patches of an image that the trees read, for a convolution."""

    def __init__(
        self,
        growth: Growth | Placement,
        sizes: Mapping[str, int],
        *,
        bias: bool = True,
        dropout: float = 0.0,
        dropout_per: str = "synapse",
        activation: Activation = "leaky_relu",
        root_activation: bool = True,
        backend: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(dtype, **sizes)
        self.branching, self.wiring = growth.branching, growth.wiring
        self.repeats, self.ragged = growth.repeats, growth.ragged
        self.dropout = check_probability("dropout", dropout)
        self.dropout_per = check_one_of("dropout_per", dropout_per, DROPOUT_PER)
        self.backend = check_one_of("backend", backend, ops.BACKENDS)
        self.root_activation = bool(root_activation) and self.repeats is None  # a soma is linear
        self.regrown = False
        weights, biases = self._grow(growth)
        self.activation = make_activation(activation)
        self._add_parameters(device, dtype, weight=(weights,), bias=(biases,) if bias else None)
        if "forest" in vars(self):
            self._make_plan(self.forest)
        self.reset_parameters()

    def _grow(self, growth: Growth | Placement) -> tuple[int, int]:
        """Grow the trees; return the number of their weights and of their biases."""
        self.forest, self.windows = growth.forest()
        return self.forest.weights, self.forest.biases

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
        """Multiply-adds for one sample: one per edge."""
        return self.forest.edges

    @property
    def edge_weight(self) -> Tensor:
        """The weight of each edge, shape (edges,): `weight`, repeated where nodes are tied."""
        return self.weight if self._plan.ties is None else self.weight[self._plan.ties[0]]

    @property
    def node_bias(self) -> Tensor | None:
        """The bias of each node, shape (nodes,): `bias`, repeated where nodes are tied."""
        return self.bias if self.bias is None or self._plan.ties is None else self.bias[self._plan.ties[1]]

    def coverage(self) -> Tensor:
        """How many synapses read each input, shape (in_features,).

        >>> from dendritree import DendriticLayer
        >>> DendriticLayer(6, 2, branching=2, fan_in=3, wiring="random").coverage().tolist()
        [1, 1, 1, 1, 1, 1]
        """
        return torch.from_numpy(np.bincount(self.forest.synapse_inputs, minlength=self.forest.in_features))

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Redraw the weights from the paper's distribution, N(0, 2 / children), and set the biases to 0.

        The density gain of the paper's formula reduces to this: a node sees its own children, not the dense row.
        Edges to copies of one rectified dendrite start with equal weights, 1 / sqrt(children): at first the parent
        responds to the dendrite at any place, then it learns which places matter. On CIFAR-10 this gains one to two
        points over random signs (docs/single-layer.md).
        """
        if self.weight.is_meta:  # drawing on the meta device takes a third of a millisecond
            return
        forest, weight = self.forest, self.weight
        own = forest.is_template[forest.node_of_edge]  # edges with a weight of their own, in the order of the weights
        fan_ins = forest.fan_ins[forest.node_of_edge][own]
        weight.normal_(generator=generator_on(weight.device))
        weight.mul_(torch.as_tensor(np.sqrt(2.0 / fan_ins)).to(weight))
        if forest.template is not None and isinstance(self.activation, nn.ReLU | nn.LeakyReLU):
            equal = torch.as_tensor(forest.reads_copy[own], device=weight.device)
            weight.copy_(torch.where(equal, torch.as_tensor(np.sqrt(1.0 / fan_ins)).to(weight), weight))
        if self.bias is not None:
            # NOTE[DIFF]: the authors left PyTorch's default, uniform within 1 / sqrt(full layer width).
            self.bias.zero_()

    def forward(self, x: Tensor) -> Tensor:
        """The outputs of all trees: shape (..., out_features) for inputs (..., in_features)."""
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
            patches=self._patches,
        )

    def extra_repr(self) -> str:
        """The constructor's call, the trees, and their number of parameters."""
        parameters = sum(values.numel() for values in self.parameters(recurse=False))
        return f"{super().extra_repr()}; {self._describe()}; {parameters:,} parameters"

    def _describe(self) -> str:
        """The trees in one line."""
        return self.forest.describe()

    def _options(self) -> dict[str, Any]:
        options = self._tree_options() | self._changed(bias=self.bias is not None)
        if self.dropout:
            options |= {"dropout": self.dropout, "dropout_per": self.dropout_per}
        if self.repeats is None:
            options |= self._changed(root_activation=self.root_activation)
        return options | self._changed(backend=self.backend)

    def _tree_options(self) -> dict[str, Any]:
        if self.regrown:
            return {"wiring": self.wiring}
        size = {"fan_in": self.fan_in // (self.repeats or 1)} if self.wiring.any_fan_in else {}
        if self.ragged and not size:
            size = {"ragged": True}
        return {"branching": self.branching, **size, "wiring": self.wiring, **self._changed(repeats=self.repeats)}

    def _structure(self) -> dict[str, Tensor]:
        return forest_state(self.forest, self.windows)

    def _check_structure(self, state: Mapping[str, Any]) -> Callable[[], None] | None:
        """Check that a state dict has this tree and wiring."""
        if not any(key in state for key in FOREST_KEYS):
            return None
        drawn = check_forest(state, self.forest, self.windows, self.wiring)
        return None if drawn is None else lambda: self.rewire(*drawn)

    def rewire(self, forest: Forest, windows: IntArray | None = None) -> None:
        """Attach the synapses to the inputs of another forest with the same trees. Windows are kept unless given."""
        if not is_same_tree(self.forest, forest):
            raise FormatError(f"a layer must be rewired with the same trees: {self.forest.difference(forest)}")
        self.forest, self.windows = forest, self.windows if windows is None else windows
        self._make_plan(forest)

    def regrow(self, forest: Forest, *, bias: bool | None = None, windows: IntArray | None = None) -> None:
        """Replace the trees, for the same inputs and neurons, and draw new initial weights.

        `weight` and `bias` are new parameters: create optimizers afterwards. `branching`, `wiring` and `repeats` keep
        the values that the layer was created with.

        Args:
            forest: the trees and their wiring.
            bias: whether nodes have a bias; None keeps it as it is.
            windows: windows of the nodes, for a layer whose synapses move in windows.
        """
        ours, theirs = ((trees.in_features, trees.neurons) for trees in (self.forest, forest))
        if theirs != ours:
            raise ShapeError(
                f"a layer must be regrown with trees for its {ours[0]} inputs and {ours[1]} neurons: got {theirs[0]} "
                f"and {theirs[1]}"
            )
        has_bias, like = self.bias is not None if bias is None else bias, self.weight
        self.forest, self.windows, self.regrown = forest, windows, True
        self.weight = nn.Parameter(like.new_empty(forest.weights), requires_grad=like.requires_grad)
        self.bias = nn.Parameter(like.new_empty(forest.biases), like.requires_grad) if has_bias else None
        self._make_plan(forest)
        self.reset_parameters()


def share_wiring(model: nn.Module, *, source: int = 0) -> None:
    """Give every process the wiring that the model has in process `source`; call it in all of them.

    `DistributedDataParallel` copies parameters and buffers to all processes when it wraps a model. A wiring is
    neither: processes that drew it with different seeds would train different networks as if they were one. Does
    nothing without a process group.

    Args:
        model: a model whose dendritic layers have equal trees in all processes.
        source: rank of the process whose wiring is used.

    Example:
        >>> from dendritree import DendriticLayer
        >>> share_wiring(DendriticLayer(16, 4, branching=2, fan_in=4, wiring="random"))
    """
    if not (dist.is_available() and dist.is_initialized()):
        return
    check_index("source", source, dist.get_world_size())
    for layer in model.modules():
        if isinstance(layer, ForestLayer) and layer.wiring.drawn:
            entries = forest_state(layer.forest, layer.windows)
            device = layer.weight.device if dist.get_backend() == "nccl" else torch.device("cpu")
            for key, value in entries.items():
                dist.broadcast(shared := value.to(device), source)
                entries[key] = shared.cpu()
            layer.rewire(read_forest(entries), entries[WINDOWS_KEY].numpy() if WINDOWS_KEY in entries else None)
