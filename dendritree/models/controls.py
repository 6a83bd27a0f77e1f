"""The controls: what a dendritic model has to be compared with.

Dense weights start from He's law N(0, 2 / fan-in), their biases from 0. Dropout acts on the inputs, as for the trees.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..errors import check_int
from ..layers.base import check_dense
from ..layers.linear import make_linear
from .output import Classifier
from .registry import register


@register("perceptrons", example={"in_features": 16, "out_features": 3})
class Perceptrons(Classifier):
    """One linear unit per output: what a dendritic neuron is without its dendrites.

    Args:
        in_features: number of inputs.
        out_features: number of classes; 1 for a yes-or-no question.
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

    def forward(self, x: Tensor) -> Tensor:
        """Logits (or probabilities) of the classes."""
        check_dense(x)
        y: Tensor = self.output(self.units(self.dropout(x)))
        return y


@register("mlp", example={"in_features": 16, "out_features": 3, "hidden": 5})
class MLP(Classifier):
    """The paper's control: one hidden layer of ReLU perceptrons; `out_features=1` is its binary MLP.

    Args:
        in_features: number of inputs.
        out_features: number of classes; 1 for a yes-or-no question.
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
        self.readout = make_linear(self.hidden_features, self.out_features, device, dtype)

    def chain(self) -> list[nn.Module]:
        """The modules up to the logits."""
        return [self.dropout, self.hidden, nn.ReLU(), self.readout]

    def forward(self, x: Tensor) -> Tensor:
        """Logits (or probabilities) of the classes."""
        check_dense(x)
        y: Tensor = self.output(self.readout(torch.relu(self.hidden(self.dropout(x)))))
        return y
