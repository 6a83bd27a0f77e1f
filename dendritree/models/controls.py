"""The controls: what a dendritic model has to be compared with.

Dense weights start from He's law N(0, 2 / fan-in), their biases from 0; the CNN is that of the dendritic models, with
PyTorch's own init. Dropout acts on the inputs, as for the trees.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..errors import check_int, check_probability
from ..layers.linear import Linear
from .output import make_output
from .paper import PaperCNN
from .registry import register


def make_linear(
    in_features: int, out_features: int, device: torch.device | str | None, dtype: torch.dtype | None
) -> nn.Linear:
    """A linear layer with He's law for its weights and biases of 0."""
    linear = Linear(in_features, out_features, device=device, dtype=dtype)
    nn.init.kaiming_normal_(linear.weight, nonlinearity="relu")
    # NOTE[DIFF]: the authors left PyTorch's default biases; zero on both sides keeps the comparison even.
    nn.init.zeros_(linear.bias)
    return linear


@register("perceptrons", example={"in_features": 16, "out_features": 3})
class Perceptrons(nn.Module):
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
        super().__init__()
        self.in_features = check_int("in_features", in_features)
        self.out_features = check_int("out_features", out_features)
        self.dropout = nn.Dropout(check_probability("dropout", dropout))
        self.output = make_output(output, self.out_features)
        self.units = make_linear(self.in_features, self.out_features, device, dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Probabilities (or logits) of the classes."""
        y: Tensor = self.output(self.units(self.dropout(x)))
        return y


@register("mlp", example={"in_features": 16, "out_features": 3, "hidden": 5})
class MLP(nn.Module):
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
        super().__init__()
        self.in_features = check_int("in_features", in_features)
        self.out_features = check_int("out_features", out_features)
        self.hidden_features = check_int("hidden", hidden)
        self.dropout = nn.Dropout(check_probability("dropout", dropout))
        self.output = make_output(output, self.out_features)
        self.hidden = make_linear(self.in_features, self.hidden_features, device, dtype)
        self.readout = make_linear(self.hidden_features, self.out_features, device, dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Probabilities (or logits) of the classes."""
        y: Tensor = self.output(self.readout(torch.relu(self.hidden(self.dropout(x)))))
        return y


@register("conv-mlp", example={"hidden": 5})
class ConvMLP(nn.Module):
    """The appendix CNN with the control MLP as its classifier.

    Args:
        out_features: number of classes.
        hidden: number of hidden units.
        dropout: probability of silencing a feature while training.
        output: `"logits"` or `"probabilities"`.
        device, dtype: as in `nn.Linear`.

    Example:
        >>> ConvMLP(hidden=11)(torch.randn(2, 1, 32, 32)).shape
        torch.Size([2, 10])
    """

    input_shape = PaperCNN.input_shape

    def __init__(
        self,
        out_features: int = 10,
        *,
        hidden: int,
        dropout: float = 0.0,
        output: str = "logits",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.cnn = PaperCNN(device=device, dtype=dtype)
        self.head = MLP(
            PaperCNN.out_features,
            out_features,
            hidden=hidden,
            dropout=dropout,
            output=output,
            device=device,
            dtype=dtype,
        )

    def forward(self, x: Tensor) -> Tensor:
        """Probabilities (or logits) of the classes."""
        y: Tensor = self.head(self.cnn(x))
        return y


@register("conv-perceptrons", example={})
class ConvPerceptrons(nn.Module):
    """The appendix CNN with one linear unit per class as its classifier.

    Args:
        out_features: number of classes.
        dropout: probability of silencing a feature while training.
        output: `"logits"` or `"probabilities"`.
        device, dtype: as in `nn.Linear`.

    Example:
        >>> ConvPerceptrons()(torch.randn(2, 1, 32, 32)).shape
        torch.Size([2, 10])
    """

    input_shape = PaperCNN.input_shape

    def __init__(
        self,
        out_features: int = 10,
        *,
        dropout: float = 0.0,
        output: str = "logits",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.cnn = PaperCNN(device=device, dtype=dtype)
        self.head = Perceptrons(
            PaperCNN.out_features, out_features, dropout=dropout, output=output, device=device, dtype=dtype
        )

    def forward(self, x: Tensor) -> Tensor:
        """Probabilities (or logits) of the classes."""
        y: Tensor = self.head(self.cnn(x))
        return y
