"""Networks of other authors' neurons: `NeuronNetwork` of any of them, and `DANNClassifier`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import OptionError, check_int, check_one_of
from ..layers import DendriticLayer
from ..layers.activation import Activation
from ..layers.linear import make_linear
from ..neurons import DANN, DENN, DMNN, DNM
from ..neurons.ktree import KTREE_WIRINGS
from .network import Network, between, check_sizes
from .neuron_families import neuron_family, neuron_names
from .output import Classifier
from .registry import register


def _trees(in_features: int, trees: int, *, branching: int = 2, wiring: str = "original", **where: Any) -> nn.Module:
    """The trees of a k-tree: the read-out is then its linear soma, one for each output."""
    order = KTREE_WIRINGS[check_one_of("wiring", wiring, KTREE_WIRINGS)]()
    size: dict[str, Any] = {"fan_in": in_features} if order.any_fan_in else {"ragged": True}
    return DendriticLayer(
        in_features, trees, branching=branching, wiring=order, activation=nn.LeakyReLU(0.01), **size, **where
    )


NEURON_LAYERS: dict[str, Callable[..., nn.Module]] = {
    "ktree": _trees,
    "denn": DENN,
    "dnm": DNM,
    "dmnn": DMNN,
    "dann": DANN,
}
"""Hidden layers by the name of their neurons; others may be registered, see `register_neuron`."""


def _layer_of(neuron: str) -> Callable[..., nn.Module]:
    if isinstance(neuron, str) and neuron in NEURON_LAYERS:
        return NEURON_LAYERS[neuron]
    return neuron_family(check_one_of("neuron", neuron, [*NEURON_LAYERS, *neuron_names()])).layer


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
        neuron: a name of `NEURON_LAYERS`, or of a neuron registered with `register_neuron`.
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
        build = _layer_of(neuron)
        neurons = build(*sizes[:2], **(options or {}), device=device, dtype=dtype)
        steps = [neurons, *between(sizes[1], norm, dropout, device, dtype)]
        super().__init__(steps, make_linear(sizes[1], sizes[2], device, dtype), output)


@register("dann", example={"in_features": 16, "out_features": 3, "somata": 5, "synapses": 4})
class DANNClassifier(Classifier):
    """The dANN of Chavlis and Poirazi (2025): somata with dendrites in receptive fields, and a dense read-out.

    With `S` somata of `D` dendrites of 16 synapses and `C` classes it has 17 D S + (D + 1) S + (S + 1) C parameters.

    Args:
        in_features: number of inputs.
        out_features: number of classes; 1 for binary classification.
        somata: number of somata, `S`.
        dendrites: dendrites per soma, `D`.
        synapses, field, image_shape, activation, seed, backend: as in `DANN`; field `"all"` is the source's pdANN.
        dropout: probability of silencing a soma's output while training.
        output: `"logits"` or `"probabilities"`.
        device, dtype: as in `nn.Linear`.

    Example:
        >>> net = DANNClassifier(784, 10, somata=64, dendrites=4, field="local")
        >>> sum(p.numel() for p in net.parameters()) == 17 * 4 * 64 + (4 + 1) * 64 + (64 + 1) * 10
        True
    """

    def __init__(
        self,
        in_features: int,
        out_features: int = 10,
        *,
        somata: int = 64,
        dendrites: int = 2,
        synapses: int | None = None,
        field: str = "random",
        image_shape: tuple[int, ...] | None = None,
        activation: Activation = "leaky_relu",
        seed: int | None = None,
        dropout: float = 0.0,
        output: str = "logits",
        backend: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(in_features, out_features, dropout, output)
        self.neurons = DANN(
            self.in_features,
            check_int("somata", somata),
            dendrites=dendrites,
            synapses=synapses,
            field=field,
            image_shape=image_shape,
            activation=activation,
            seed=seed,
            backend=backend,
            device=device,
            dtype=dtype,
        )
        self.readout = make_linear(self.neurons.out_features, self.out_features, device, dtype)

    def chain(self) -> list[nn.Module]:
        """The modules up to the logits."""
        return [self.neurons, self.dropout, self.readout]

    def forward(self, x: Tensor) -> Tensor:
        """Logits (or probabilities) of the classes."""
        y: Tensor = self.output(self.readout(self.dropout(self.neurons(x))))
        return y
