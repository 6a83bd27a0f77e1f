"""`NeuronNetwork`: a hidden layer of neurons that are registered by name, and a linear read-out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ..errors import OptionError
from ..layers.linear import make_linear
from ..neurons.families import neuron_family
from .network import Network, between, check_sizes
from .registry import register


@register(
    "neuron-network",
    example={"in_features": 16, "hidden": [6], "out_features": 3, "neuron": "denn", "options": {"branches": 4}},
)
class NeuronNetwork(Network):
    """A hidden layer of k-trees, DENN, DNM, DMNN, dANN or registered neurons, and a linear read-out.

    Args:
        in_features: number of inputs.
        hidden: neurons of the hidden layer, as a list of one number; trees for `"ktree"`, somata for `"dann"`.
        out_features: number of outputs.
        neuron: `"ktree"`, `"denn"`, `"dnm"`, `"dmnn"`, `"dann"`, or the name of a neuron that is registered with
            `dendritree.neurons.register_neuron`.
        options: further arguments of the neurons, such as `{"branches": 4}` for DENN.
        norm: `"batch"` or `"layer"` normalization after the hidden layer, or None.
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
        sizes = check_sizes(in_features, hidden, out_features)
        if len(sizes) != 3:
            raise OptionError(f"hidden must be a list of one number, the neurons of one layer: got {hidden!r}")
        neurons = neuron_family(neuron).layer(*sizes[:2], **(options or {}), device=device, dtype=dtype)
        steps = [neurons, *between(sizes[1], norm, dropout, device, dtype)]
        super().__init__(steps, make_linear(sizes[1], sizes[2], device, dtype), output)
