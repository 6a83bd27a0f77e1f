"""The paper's dendritic models: a single neuron, a layer of class neurons, and the same behind a small CNN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, Unpack

import torch
from torch import Tensor, nn

from ..layers import DendriticLayer
from ..layers.activation import Activation
from ..levels import Branching
from ..wiring import Wiring, with_image
from .output import make_output
from .registry import register


class LayerOptions(TypedDict, total=False):
    """Options of `DendriticLayer` that the models pass on."""

    depth: int | None
    fan_in: int | None
    repeats: int | None
    ragged: bool
    bias: bool
    dropout_per: str
    activation: Activation
    backend: str
    device: torch.device | str | None
    dtype: torch.dtype | None


@register("mln-binary", example={"in_features": 16, "branching": 4})
class MLNBinaryClassifier(nn.Module):
    """One dendritic neuron that answers a yes-or-no question.

    Args:
        in_features: number of inputs.
        branching: children of every node; an int, or one number per level, leaf level first.
        wiring: which inputs the neuron reads.
        dropout: probability of silencing a synapse while training.
        output: `"logits"` (the root itself) or `"probabilities"` (sigmoid of the root, as in the paper).
        options: further options of `DendriticLayer`.

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
        wiring: str | Wiring | Sequence[str | Wiring] = "shared",
        dropout: float = 0.0,
        output: str = "logits",
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__()
        self.output = make_output(output, 1)
        self.layer = DendriticLayer(in_features, 1, branching=branching, wiring=wiring, dropout=dropout, **options)

    def forward(self, x: Tensor) -> Tensor:
        """Probability (or logit) of class 1."""
        y: Tensor = self.output(self.layer(x))
        return y


@register("mln", example={"in_features": 16, "out_features": 3, "branching": 4})
class MLNClassifier(nn.Module):
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
        wiring: str | Wiring | Sequence[str | Wiring] = "shared",
        dropout: float = 0.0,
        output: str = "logits",
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__()
        self.layer = DendriticLayer(
            in_features, out_features, branching=branching, wiring=wiring, dropout=dropout, **options
        )
        self.output = make_output(output, out_features)

    def forward(self, x: Tensor) -> Tensor:
        """Probabilities (or logits) of the classes."""
        y: Tensor = self.output(self.layer(x))
        return y


class PaperCNN(nn.Sequential):
    """The appendix CNN: three times convolution 5x5, max-pooling, batch norm, ReLU; then flattened.

    Shape:
        - Input: `(batch, 1, 32, 32)`.
        - Output: `(batch, 256)`: 16 maps of 4x4.
    """

    input_shape = (1, 32, 32)
    out_features = 256
    out_maps = (16, 4, 4)

    def __init__(self, *, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> None:
        steps: list[nn.Module] = []
        for channels_in, channels_out in ((1, 4), (4, 8), (8, 16)):
            steps += [
                nn.Conv2d(channels_in, channels_out, kernel_size=5, padding=2, device=device, dtype=dtype),
                nn.MaxPool2d(kernel_size=2, stride=2),
                nn.BatchNorm2d(channels_out, device=device, dtype=dtype),
                nn.ReLU(),
            ]
        super().__init__(*steps, nn.Flatten())


@register("conv-mln", example={"branching": 16})
class ConvMLN(nn.Module):
    """The appendix CNN with dendritic neurons as its classifier.

    Args:
        out_features: number of classes, one neuron each, reading all 256 features.
        branching: children of every node; an int, or one number per level, leaf level first.
        wiring: which of the features each neuron reads; wirings for images take them as 16 maps of 4x4.
        dropout: probability of silencing a synapse (a feature of one neuron) while training.
        output: `"logits"` or `"probabilities"`.
        options: further options of `DendriticLayer`.

    Shape:
        - Input: `(batch, 1, 32, 32)`.
        - Output: `(batch, out_features)`.

    Example:
        >>> net = ConvMLN(branching=16)
        >>> net(torch.randn(2, 1, 32, 32)).shape
        torch.Size([2, 10])
    """

    input_shape = PaperCNN.input_shape

    def __init__(
        self,
        out_features: int = 10,
        *,
        branching: Branching = 16,
        wiring: str | Wiring | Sequence[str | Wiring] = "shared",
        dropout: float = 0.0,
        output: str = "logits",
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__()
        wiring = with_image(wiring, PaperCNN.out_maps)
        self.cnn = PaperCNN(device=options.get("device"), dtype=options.get("dtype"))
        self.head = MLNClassifier(
            PaperCNN.out_features,
            out_features,
            branching=branching,
            wiring=wiring,
            dropout=dropout,
            output=output,
            **options,
        )

    def forward(self, x: Tensor) -> Tensor:
        """Probabilities (or logits) of the classes."""
        y: Tensor = self.head(self.cnn(x))
        return y
