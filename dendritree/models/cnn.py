"""The CNN of the paper's appendix, followed by a classifier: dendritic neurons or their controls."""

from __future__ import annotations

from typing import Any, TypedDict, Unpack

import torch
from torch import nn

from ..layers.dendritic import LayerOptions
from ..tree.levels import Branching
from ..wiring import Wiring, with_image
from .chain import Chain
from .paper import MLP, MLNClassifier, Perceptrons
from .registry import register


class PaperCNN(nn.Sequential):
    """The appendix CNN: three blocks of 5x5 convolution, max-pooling, batch norm and ReLU, then flattened.

    Its weights have PyTorch's default initialization, whatever classifier follows.

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


class HeadOptions(TypedDict, total=False):
    """Arguments of a control that is used as classifier, other than its sizes."""

    dropout: float
    output: str
    device: torch.device | str | None
    dtype: torch.dtype | None


class ConvClassifier(Chain):
    """The appendix CNN and a classifier of its 256 features.

    Args:
        head: class of the classifier.
        out_features: number of classes.
        device, dtype: as in `nn.Linear`.
        options: further arguments of the classifier.

    Shape:
        - Input: `(batch, 1, 32, 32)`.
        - Output: that of the head.
    """

    input_shape = PaperCNN.input_shape

    def __init__(
        self,
        head: type[nn.Module],
        out_features: int,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self.cnn = PaperCNN(device=device, dtype=dtype)
        self.head = head(PaperCNN.out_features, out_features, device=device, dtype=dtype, **options)

    def chain(self) -> list[nn.Module]:
        """The modules up to the output."""
        return [self.cnn, self.head]


@register("conv-mln", example={"branching": 16})
class ConvMLN(ConvClassifier):
    """The appendix CNN with dendritic neurons as its classifier.

    Args:
        out_features: number of classes, one neuron each, reading all 256 features.
        branching: children of every node; an int, or one number per level, leaf level first.
        wiring: which of the features each neuron reads; wirings for images take them as 16 maps of 4x4.
        dropout: probability of silencing a synapse (a feature of one neuron) while training.
        output: `"logits"` or `"probabilities"`.
        options: further options of `DendriticLayer`.

    Example:
        >>> net = ConvMLN(branching=16)
        >>> net(torch.randn(2, 1, 32, 32)).shape
        torch.Size([2, 10])
    """

    head: MLNClassifier

    def __init__(
        self,
        out_features: int = 10,
        *,
        branching: Branching = 16,
        wiring: str | Wiring = "shared",
        dropout: float = 0.0,
        output: str = "logits",
        **options: Unpack[LayerOptions],
    ) -> None:
        wiring = with_image(wiring, PaperCNN.out_maps)
        super().__init__(
            MLNClassifier, out_features, branching=branching, wiring=wiring, dropout=dropout, output=output, **options
        )


@register("conv-mlp", example={"hidden": 5})
class ConvMLP(ConvClassifier):
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

    head: MLP

    def __init__(self, out_features: int = 10, *, hidden: int, **options: Unpack[HeadOptions]) -> None:
        super().__init__(MLP, out_features, hidden=hidden, **options)


@register("conv-perceptrons", example={})
class ConvPerceptrons(ConvClassifier):
    """The appendix CNN with one linear unit per class as its classifier.

    Args:
        out_features, dropout, output, device, dtype: as in `ConvMLP`.

    Example:
        >>> ConvPerceptrons()(torch.randn(2, 1, 32, 32)).shape
        torch.Size([2, 10])
    """

    head: Perceptrons

    def __init__(self, out_features: int = 10, **options: Unpack[HeadOptions]) -> None:
        super().__init__(Perceptrons, out_features, **options)
