"""`DENN`: neurons whose output is the maximum over a few branches, each a weighted sum of its own inputs.

Source: X. Wu, X. Liu, W. Li, Q. Wu, "Improved expressivity through dendritic neural networks", NeurIPS 2018.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .. import ops
from ..errors import FormatError, OptionError, check_int, check_one_of
from ..layers.neuron_layer import PlannedLayer
from ..layers.state import integers
from ..randomness import generator_on
from ..tree import Forest, IntArray
from ..wiring.interface import check_seed, generator
from .families import register_neuron

INPUTS_KEY = "inputs"
"""Entry of the wiring in a state dict."""


@register_neuron(
    "denn",
    label="DENN",
    title="DENN: neurons that take the maximum of their branches",
    choices={"branches": (2, 3, 4, 8)},
)
class DENN(PlannedLayer):
    r"""A layer of neurons that split their inputs at random into disjoint branches and output the largest branch.

    .. math:: y_n = \max_{j=1 \dots d} \Big( c_{nj} + \sum_{i \in B_{nj}} w_{ni} x_i \Big), \qquad
        B_{n1} \cup \dots \cup B_{nd} = \text{all inputs}, \text{ disjoint}

    Like `nn.Linear`, it has one weight per input; with one branch, it is `nn.Linear`.

    Args:
        in_features: number of inputs.
        out_features: number of neurons.
        branches: branches per neuron, `d`, at most `in_features`. Their sizes are equal, or differ by one.
        bias: whether branches have a bias.
        seed: seed of the split; None draws it from torch's generator.
        backend: `"auto"`, or one of `dendritree.ops.BACKENDS` to require it.
        device, dtype: as in `nn.Linear`.

    Shape:
        - Input: `(*, in_features)` with any leading dimensions.
        - Output: `(*, out_features)`.

    Attributes:
        weight: shape `(out_features, in_features)`; `weight[n, s]` is that of input `inputs[n, s]`. Initially
            N(0, 1 / size of its branch): the maximum of two branches then has the mean square of the inputs.
        bias: shape `(out_features, branches)`, initially 0, or None.
        inputs: the wiring, integers of shape `(out_features, in_features)`: for each neuron the inputs of its first
            branch, then of its second, ... It is part of the state dict; a layer adopts the one it loads.

    Example:
        >>> layer = DENN(784, 64, branches=4)
        >>> layer(torch.randn(5, 784)).shape, sum(p.numel() for p in layer.parameters())
        (torch.Size([5, 64]), 50432)
    """

    weight: nn.Parameter
    bias: nn.Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        branches: int = 2,
        bias: bool = True,
        seed: int | None = None,
        backend: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(dtype, in_features=in_features, out_features=out_features)
        self.branches = check_int("branches", branches)
        if self.branches > self.in_features:
            raise OptionError(f"branches must be at most in_features {self.in_features}: got {self.branches}")
        check_seed(seed)
        self.backend = check_one_of("backend", backend, ops.BACKENDS)
        self.seed = seed
        sums = (self.out_features, self.branches) if bias else None
        self._add_parameters(device, dtype, weight=(self.out_features, self.in_features), bias=sums)
        ordered = np.tile(np.arange(self.in_features, dtype=np.int32), (self.out_features, 1))
        self._wire(generator(seed).permuted(ordered, axis=1))
        self.reset_parameters()

    @property
    def inputs(self) -> IntArray:
        """The wiring: the inputs of each neuron's branches, one branch after the other."""
        return self._plan.forest.source.reshape(self.out_features, self.in_features)

    @property
    def branch_sizes(self) -> list[int]:
        """Inputs of each branch.

        >>> DENN(8, 1, branches=3).branch_sizes
        [3, 3, 2]
        """
        size, larger = divmod(self.in_features, self.branches)
        return [size + (branch < larger) for branch in range(self.branches)]

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds for one sample."""
        return self.in_features * self.out_features

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Redraw the weights from N(0, 1 / size of the branch) and set the biases to 0. The wiring is kept."""
        # The source gives no distribution for branches. This one keeps the scale of a maximum of two.
        std = torch.tensor([size**-0.5 for size in self.branch_sizes for _ in range(size)])
        self.weight.normal_(generator=generator_on(self.weight.device)).mul_(std.to(self.weight))
        if self.bias is not None:
            self.bias.zero_()

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of shape (..., out_features) for inputs of shape (..., in_features)."""
        # A forest of one-level trees, one per branch: memory is linear in the weights. The alternative is a masked
        # dense matrix with `branches` times the weights. CPU time, 784 inputs, 64 neurons, batch 256, forward +
        # backward: 2, 4, 8, 28 branches take 3.5, 3.3, 4.2, 7.4 ms as a forest and 1.6, 3.7, 6.6, 20.8 ms masked
        # (nn.Linear 0.8). A gathered copy of the inputs for each neuron took hundreds of ms.
        bias = None if self.bias is None else self.bias.flatten()
        sums = ops.dendritic(
            x, self.weight.flatten(), bias, self._plan, nn.Identity(), root_activation=False, backend=self.backend
        )
        largest: Tensor = sums.reshape(*x.shape[:-1], self.out_features, self.branches).max(-1)[0]
        return largest

    def _options(self) -> dict[str, Any]:
        changed = self._changed(bias=self.bias is not None, seed=self.seed, backend=self.backend)
        return {"branches": self.branches} | changed

    # ------------------------------------------------------------------------------------------------------- state

    def _wire(self, inputs: IntArray) -> None:
        offsets = np.cumsum([0, *self.branch_sizes * self.out_features]).astype(np.int32)
        roots = np.arange(self.out_features * self.branches, dtype=np.int32)
        forest = Forest(self.in_features, inputs.ravel().astype(np.int32), offsets, roots)
        self._make_plan(forest)

    def _structure(self) -> dict[str, Tensor]:
        # On the CPU whatever torch's default device is, and a copy: what was saved must not change with the wiring.
        return {INPUTS_KEY: torch.tensor(self.inputs, device="cpu")}

    def _check_structure(self, state: Mapping[str, Any]) -> Callable[[], None] | None:
        """Check that the wiring in a state dict gives each neuron every input once."""
        if INPUTS_KEY not in state:
            return None
        inputs, shape = integers(state, INPUTS_KEY), (self.out_features, self.in_features)
        if inputs.shape != shape or (np.sort(inputs, axis=1) != np.arange(self.in_features)).any():
            raise FormatError(
                f"inputs in a state dict must have each of {self.in_features} inputs once for each of "
                f"{self.out_features} neurons: got shape {inputs.shape}"
            )
        return lambda: self._wire(inputs)
