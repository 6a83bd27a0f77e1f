"""`NeuronNetwork`: a hidden layer of any of the other dendritic neurons, and a linear read-out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import OptionError, check_int, check_one_of
from ..layers import DANN, DENN, DMNN, DNM, DendriticLayer
from ..layers.ktree import KTREE_WIRINGS
from .controls import make_linear
from .network import between, check_sizes
from .output import make_output
from .registry import register


def _trees(in_features: int, trees: int, *, branching: int = 2, wiring: str = "original", **where: Any) -> nn.Module:
    """The trees of a k-tree: the read-out is then its linear soma, one for each output."""
    order = KTREE_WIRINGS[check_one_of("wiring", wiring, KTREE_WIRINGS)]()
    size: dict[str, Any] = {"fan_in": in_features} if order.any_fan_in else {"ragged": True}
    return DendriticLayer(
        in_features, trees, branching=branching, wiring=order, activation=nn.LeakyReLU(0.01), **size, **where
    )


NEURONS: dict[str, Callable[..., nn.Module]] = {
    "ktree": _trees,
    "denn": DENN,
    "dnm": DNM,
    "dmnn": DMNN,
    "dann": DANN,
}
"""Hidden layers by the name of their neurons."""


@register(
    "neuron-network",
    example={"in_features": 16, "hidden": [6], "out_features": 3, "neuron": "denn", "options": {"branches": 4}},
)
class NeuronNetwork(nn.Module):
    """A hidden layer of k-trees, DENN, DNM, DMNN or dANN neurons, and a linear read-out.

    Args:
        in_features: number of inputs.
        hidden: neurons of the hidden layer, as a list of one number; trees for `"ktree"`, somata for `"dann"`.
        out_features: number of outputs.
        neuron: a name of `NEURONS`.
        options: further arguments of the neurons, as `{"branches": 4}` for DENN.
        norm: `"batch"` or `"layer"` normalisation after the hidden layer, or None.
        dropout: probability of silencing a hidden neuron's output while training.
        output: `"logits"` or `"probabilities"`.
        device, dtype: as in `nn.Linear`.

    Example:
        >>> net = NeuronNetwork(784, [11], 10, neuron="denn", options={"branches": 4})
        >>> net(torch.randn(5, 784)).shape
        torch.Size([5, 10])
    """

    def __init__(
        self,
        in_features: int,
        hidden: Sequence[int],
        out_features: int = 10,
        *,
        neuron: str,
        options: Mapping[str, Any] | None = None,
        norm: str | None = None,
        dropout: float = 0.0,
        output: str = "logits",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        sizes = check_sizes(in_features, hidden)
        if len(sizes) != 2:
            raise OptionError(f"hidden must be a list of one number, the neurons of one layer: got {hidden!r}")
        out_features = check_int("out_features", out_features)
        build = NEURONS[check_one_of("neuron", neuron, NEURONS)]
        neurons = build(*sizes, **(options or {}), device=device, dtype=dtype)
        self.hidden = nn.Sequential(neurons, *between(sizes[1], norm, dropout, device, dtype))
        self.readout = make_linear(sizes[1], out_features, device, dtype)
        self.output = make_output(output, out_features)

    def forward(self, x: Tensor) -> Tensor:
        """Probabilities (or logits) of the classes."""
        y: Tensor = self.output(self.readout(self.hidden(x)))
        return y
