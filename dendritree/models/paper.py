"""The paper's dendritic models: a single neuron, and a layer of class neurons (MLN: multi-layer neuron)."""

from __future__ import annotations

from typing import Unpack

from torch import Tensor, nn

from ..layers import DendriticLayer
from ..layers.dendritic import LayerOptions
from ..layers.growth import Wirings
from ..levels import Branching
from .chain import Chain
from .output import make_output
from .registry import register


@register("mln", example={"in_features": 16, "out_features": 3, "branching": 4})
class MLNClassifier(Chain):
    """One dendritic neuron per class, every one reading all inputs.

    Args:
        in_features: number of inputs.
        out_features: number of classes, one neuron each.
        branching: children of every node; an int, or one number per level, leaf level first.
        wiring: which inputs each neuron reads; a list with one for each of repeated trees.
        dropout: probability of silencing a synapse while training.
        output: `"logits"` (the roots themselves) or `"probabilities"` (softmax over the neurons, as in the paper).
        options: further options of `DendriticLayer`.

    Shape:
        - Input: `(*, in_features)`.
        - Output: `(*, out_features)`.

    Example:
        >>> import torch
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
        wiring: Wirings = "shared",
        dropout: float = 0.0,
        output: str = "logits",
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__()
        self.layer = DendriticLayer(
            in_features, out_features, branching=branching, wiring=wiring, dropout=dropout, **options
        )
        self.output = make_output(output, out_features)

    def chain(self) -> list[nn.Module]:
        """The modules up to the logits."""
        return [self.layer]

    def forward(self, x: Tensor) -> Tensor:
        """Logits (or probabilities) of the classes."""
        y: Tensor = self.output(self.layer(x))
        return y


@register("mln-binary", example={"in_features": 16, "branching": 4})
class MLNBinaryClassifier(MLNClassifier):
    """One dendritic neuron that answers a yes-or-no question.

    Args:
        in_features: number of inputs.
        branching, wiring, dropout, options: as in `MLNClassifier`.
        output: `"logits"` (the root itself) or `"probabilities"` (sigmoid of the root, as in the paper).

    Shape:
        - Input: `(*, in_features)`.
        - Output: `(*, 1)`.

    Example:
        >>> import torch
        >>> net = MLNBinaryClassifier(1024, branching=32, dropout=0.3)
        >>> net(torch.randn(5, 1024)).shape
        torch.Size([5, 1])
    """

    def __init__(
        self,
        in_features: int,
        *,
        branching: Branching = 32,
        wiring: Wirings = "shared",
        dropout: float = 0.0,
        output: str = "logits",
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(in_features, 1, branching=branching, wiring=wiring, dropout=dropout, output=output, **options)
