"""The paper's models: a single dendritic neuron, a layer of class neurons (MLN: multi-layer neuron), and the controls.

The controls are what a dendritic model has to be compared with. Their dense weights are He-initialized,
N(0, 2 / fan-in), and their biases start at 0. Dropout acts on the inputs, as for the trees.
"""

from __future__ import annotations

from typing import Unpack

import torch
from torch import nn

from ..errors import check_int, check_probability
from ..layers import DendriticLayer
from ..layers.dendritic import LayerOptions
from ..layers.linear import Dropout, make_linear
from ..tree.levels import Branching
from ..wiring import Wiring
from .chain import Chain
from .registry import register


@register("mln", example={"in_features": 16, "out_features": 3, "branching": 4})
class MLNClassifier(Chain):
    """One dendritic neuron per class, each reading all inputs.

    Args:
        in_features: number of inputs.
        out_features: number of classes, one neuron each.
        branching: children of every node; an int, or one number per level, leaf level first.
        wiring: which inputs each neuron reads.
        dropout: probability of silencing a synapse while training.
        output: `"logits"` (the roots themselves) or `"probabilities"` (softmax over the neurons, as in the paper).
        options: further options of `DendriticLayer`.

    Shape:
        - Input: `(*, in_features)`.
        - Output: `(*, out_features)`.

    Example:
        >>> net = MLNClassifier(1024, 10, branching=32, dropout=0.4, output="probabilities")
        >>> net(torch.randn(5, 1024)).sum(-1).round(decimals=4).tolist()
        [1.0, 1.0, 1.0, 1.0, 1.0]
    """

    def __init__(
        self,
        in_features: int,
        out_features: int = 10,
        *,
        branching: Branching = 32,
        wiring: str | Wiring = "shared",
        dropout: float = 0.0,
        output: str = "logits",
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(output, out_features)
        self.layer = DendriticLayer(
            in_features, out_features, branching=branching, wiring=wiring, dropout=dropout, **options
        )

    def chain(self) -> list[nn.Module]:
        """The modules up to the logits."""
        return [self.layer]


@register("mln-binary", example={"in_features": 16, "branching": 4})
class MLNBinaryClassifier(MLNClassifier):
    """One dendritic neuron for binary classification.

    Args:
        in_features: number of inputs.
        branching, wiring, dropout, options: as in `MLNClassifier`.
        output: `"logits"` (the root itself) or `"probabilities"` (sigmoid of the root, as in the paper).

    Shape:
        - Input: `(*, in_features)`.
        - Output: `(*, 1)`.

    Example:
        >>> net = MLNBinaryClassifier(1024, branching=32, dropout=0.3)
        >>> net(torch.randn(5, 1024)).shape
        torch.Size([5, 1])
    """

    def __init__(
        self,
        in_features: int,
        *,
        branching: Branching = 32,
        wiring: str | Wiring = "shared",
        dropout: float = 0.0,
        output: str = "logits",
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(in_features, 1, branching=branching, wiring=wiring, dropout=dropout, output=output, **options)


class _Control(Chain):
    """The base of the controls: checked sizes, and dropout of the inputs."""

    def __init__(self, in_features: int, out_features: int, dropout: float, output: str) -> None:
        super().__init__(output, check_int("out_features", out_features))
        self.in_features, self.out_features = check_int("in_features", in_features), out_features
        self.dropout = Dropout(check_probability("dropout", dropout))


@register("perceptrons", example={"in_features": 16, "out_features": 3})
class Perceptrons(_Control):
    """One linear unit per output: what a dendritic neuron is without its dendrites.

    Args:
        in_features: number of inputs.
        out_features: number of classes; 1 for binary classification.
        dropout: probability of silencing an input while training.
        output: `"logits"` or `"probabilities"`.
        device, dtype: as in `nn.Linear`.

    Example:
        >>> Perceptrons(64, 10)(torch.randn(5, 64)).shape
        torch.Size([5, 10])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int = 10,
        *,
        dropout: float = 0.0,
        output: str = "logits",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(in_features, out_features, dropout, output)
        self.units = make_linear(self.in_features, self.out_features, device, dtype)

    def chain(self) -> list[nn.Module]:
        """The modules up to the logits."""
        return [self.dropout, self.units]


@register("mlp", example={"in_features": 16, "out_features": 3, "hidden": 5})
class MLP(_Control):
    """The paper's control: one hidden layer of ReLU perceptrons; `out_features=1` is its binary MLP.

    Args:
        in_features: number of inputs.
        out_features: number of classes; 1 for binary classification.
        hidden: number of hidden units, `h` in the paper.
        dropout: probability of silencing an input while training.
        output: `"logits"` or `"probabilities"`.
        device, dtype: as in `nn.Linear`.

    Example:
        >>> sum(p.numel() for p in MLP(1024, 10, hidden=11).parameters())
        11395
    """

    def __init__(
        self,
        in_features: int,
        out_features: int = 10,
        *,
        hidden: int,
        dropout: float = 0.0,
        output: str = "logits",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(in_features, out_features, dropout, output)
        self.hidden_features = check_int("hidden", hidden)
        self.hidden = make_linear(self.in_features, self.hidden_features, device, dtype)
        self.activation = nn.ReLU()
        self.readout = make_linear(self.hidden_features, self.out_features, device, dtype)

    def chain(self) -> list[nn.Module]:
        """The modules up to the logits."""
        return [self.dropout, self.hidden, self.activation, self.readout]
