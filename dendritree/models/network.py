"""Networks of hidden layers and a read-out: `DendriticNetwork`, and `DenseNetwork`, its control."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from ..errors import OptionError, check_int, check_one_of, check_probability
from ..layers import DendriticLayer
from ..layers.activation import Activation, make_activation
from ..layers.linear import BatchNorm, Dropout, make_linear
from ..tree.levels import AUTO, Branching
from ..wiring import Wiring, resolve_wiring
from .chain import Chain
from .registry import register

NORMS = {"batch": BatchNorm, "layer": nn.LayerNorm}
READOUTS = ("linear", "dendritic")
DEFAULT_FAN_IN = 16


class Network(Chain):
    """Hidden layers, a read-out and an output step: the base of networks of all kinds of neurons."""

    def __init__(self, hidden: Sequence[nn.Module], readout: nn.Module, output: str) -> None:
        super().__init__(output, readout.out_features)  # type: ignore[arg-type]
        self.hidden = nn.Sequential(*hidden)
        self.readout = readout

    def chain(self) -> list[nn.Module]:
        """The modules up to the logits."""
        return [self.hidden, self.readout]


@register("dendritic-network", example={"in_features": 16, "hidden": [6], "out_features": 3, "fan_in": 4})
class DendriticNetwork(Network):
    """Hidden layers of dendritic neurons with few synapses each, and a read-out.

    Args:
        in_features: number of inputs.
        hidden: neurons of each hidden layer.
        out_features: number of outputs.
        fan_in: synapses per hidden neuron: one number, or one per hidden layer; at most the layer's inputs. By default
            that of the tree's shape (50 for `branching=[25, 2]`), or 16 if the shape does not determine it.
        branching: branching of the hidden trees, as in `DendriticLayer`, the same for all layers. A dendritic read-out
            uses `"auto"`.
        wiring: wiring of the first hidden layer (the others are `"random"`), or a list with one per hidden layer.
        norm: `"batch"` or `"layer"` normalization after each hidden layer, or None.
        dropout: probability of silencing a hidden neuron's output while training.
        synapse_dropout: probability of silencing a synapse of a hidden layer while training.
        readout: `"linear"`, or `"dendritic"` for one tree per output that reads all hidden neurons; its root is linear.
        activation: activation of the dendrites, as in `DendriticLayer`.
        linear_dendrites: apply the activation only at the somata: the control that shows what nonlinear dendrites add.
        output: `"logits"` or `"probabilities"`.
        backend, device, dtype: as in `DendriticLayer`.

    Example:
        >>> net = DendriticNetwork(784, [128], 10, fan_in=16, wiring="local")
        >>> net(torch.randn(5, 784)).shape
        torch.Size([5, 10])
        >>> sum(p.numel() for p in net.parameters())
        4490
    """

    def __init__(
        self,
        in_features: int,
        hidden: Sequence[int],
        out_features: int = 10,
        *,
        fan_in: int | Sequence[int] | None = None,
        branching: Branching = AUTO,
        wiring: str | Wiring | Sequence[str | Wiring] = "random",
        norm: str | None = None,
        dropout: float = 0.0,
        synapse_dropout: float = 0.0,
        readout: str = "linear",
        activation: Activation = "leaky_relu",
        linear_dendrites: bool = False,
        output: str = "logits",
        backend: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        sizes = check_sizes(in_features, hidden, out_features)
        fan_ins = _one_per_layer("fan_in", fan_in, len(hidden))
        wirings = _wirings(wiring, len(hidden))
        common: dict[str, Any] = {"activation": activation, "backend": backend, "device": device, "dtype": dtype}
        hidden_layers = common | {"dropout": synapse_dropout}
        hidden_layers |= {"activation": None} if linear_dendrites else {}
        steps: list[nn.Module] = []
        for inputs, neurons, synapses, each in zip(sizes[:-2], sizes[1:-1], fan_ins, wirings, strict=True):
            given = {"fan_in": _at_most(synapses, inputs, branching)} if each.any_fan_in else {"ragged": True}
            steps.append(DendriticLayer(inputs, neurons, branching=branching, wiring=each, **given, **hidden_layers))
            steps += [make_activation(activation)] if linear_dendrites else []
            steps += between(neurons, norm, dropout, device, dtype)
        if check_one_of("readout", readout, READOUTS) == "linear":
            last: nn.Module = make_linear(sizes[-2], sizes[-1], device, dtype)
        else:
            last = DendriticLayer(*sizes[-2:], root_activation=False, **common)
        super().__init__(steps, last, output)


@register("dense-network", example={"in_features": 16, "hidden": [6], "out_features": 3})
class DenseNetwork(Network):
    """Hidden layers of perceptrons that read all inputs, and a linear read-out: an MLP of any depth.

    Args:
        in_features: number of inputs.
        hidden: neurons of each hidden layer.
        out_features: number of outputs.
        norm: `"batch"` or `"layer"` normalization after each hidden layer, or None.
        dropout: probability of silencing a hidden neuron's output while training.
        activation: activation of the hidden neurons, as in `DendriticLayer`.
        output: `"logits"` or `"probabilities"`.
        device, dtype: as in `nn.Linear`.

    Example:
        >>> sum(p.numel() for p in DenseNetwork(784, [32, 16], 10).parameters())
        25818
    """

    def __init__(
        self,
        in_features: int,
        hidden: Sequence[int],
        out_features: int = 10,
        *,
        norm: str | None = None,
        dropout: float = 0.0,
        activation: Activation = "relu",
        output: str = "logits",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        sizes = check_sizes(in_features, hidden, out_features)
        steps: list[nn.Module] = []
        for inputs, neurons in itertools.pairwise(sizes[:-1]):
            steps += [make_linear(inputs, neurons, device, dtype), make_activation(activation)]
            steps += between(neurons, norm, dropout, device, dtype)
        super().__init__(steps, make_linear(sizes[-2], sizes[-1], device, dtype), output)


def check_sizes(in_features: int, hidden: Sequence[int], out_features: int) -> list[int]:
    """Check sizes; return inputs, the neurons of each hidden layer, outputs."""
    if isinstance(hidden, str) or not isinstance(hidden, Sequence) or not len(hidden):
        raise OptionError(f"hidden must be a list with the neurons of one layer or more: got {hidden!r}")
    sizes = [check_int("in_features", in_features), *(check_int("hidden", size) for size in hidden)]
    return [*sizes, check_int("out_features", out_features)]


def between(
    neurons: int, norm: str | None, dropout: float, device: torch.device | str | None, dtype: torch.dtype | None
) -> list[nn.Module]:
    """The modules that follow a hidden layer."""
    steps: list[nn.Module] = []
    if norm is not None:
        steps.append(NORMS[check_one_of("norm", norm, NORMS)](neurons, device=device, dtype=dtype))
    if check_probability("dropout", dropout):
        steps.append(Dropout(dropout))
    return steps


def _at_most(fan_in: int | None, inputs: int, branching: Branching) -> int | None:
    """The fan-in of a layer; None if it follows from the tree's shape."""
    if fan_in is None and not isinstance(branching, int | str):
        return None
    return min(DEFAULT_FAN_IN if fan_in is None else check_int("fan_in", fan_in), inputs)


def _one_per_layer(name: str, value: Any, layers: int) -> list[Any]:
    """One value for each hidden layer."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        return [value] * layers
    if len(value) != layers:
        raise OptionError(f"{name} must be one value, or one for each of {layers} hidden layers: got {len(value)}")
    return list(value)


def _wirings(wiring: str | Wiring | Sequence[str | Wiring], layers: int) -> list[Wiring]:
    """The wiring of each hidden layer: only the first one reads an image."""
    if isinstance(wiring, str | Wiring):
        wiring = [wiring, *["random"] * (layers - 1)]
    return [resolve_wiring(each) for each in _one_per_layer("wiring", wiring, layers)]
