"""`DendriticConv2d`, `DendriticConv1d`: convolutions whose filters are dendritic neurons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias

import torch
from torch import Tensor, nn

from ..errors import OptionError, ShapeError, check_int, check_one_of
from ..ops import PatchGrid, check_dense
from ..tree.levels import AUTO, Branching
from ..wiring import Wiring, with_image
from .activation import Activation
from .growth import Growth
from .placed_layer import PlacedLayer, make_norm
from .placement import Placement

Length: TypeAlias = int | Sequence[int]
"""One number for all axes, or one per axis."""


class DendriticConv(PlacedLayer):
    """Base of both convolutions. `axes` are the names of the axes along which a filter slides."""

    SIZES: ClassVar[tuple[str, ...]] = ("in_channels", "out_channels")

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Length,
        stride: Length = 1,
        padding: Length | str = 0,
        dilation: Length = 1,
        *,
        places: Length = 1,
        dendrite_norm: str | None = None,
        branching: Branching = AUTO,
        depth: int | None = None,
        fan_in: int | None = None,
        wiring: str | Wiring = "shared",
        repeats: int | None = None,
        ragged: bool = False,
        bias: bool = True,
        dropout: float = 0.0,
        dropout_per: str = "synapse",
        activation: Activation = "leaky_relu",
        root_activation: bool = True,
        backend: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        channels, filters = check_int("in_channels", in_channels), check_int("out_channels", out_channels)
        kernel, strides = self._lengths("kernel_size", kernel_size), self._lengths("stride", stride)
        dilations = self._lengths("dilation", dilation)
        if isinstance(padding, str):
            check_one_of("padding", padding, ("same", "valid"))
            if padding == "same" and max(strides) > 1:
                raise OptionError(f"padding 'same' requires stride 1: got stride {stride}")
        else:
            padding = self._lengths("padding", padding, least=0)
        standing = self._lengths("places", places)
        growth: Growth | Placement
        if max(standing) > 1:
            levels = check_int("depth", 2 if depth is None else depth, least=2)
            growth = Placement(channels, filters, kernel, standing, levels)
            growth.check(
                {
                    "branching": branching,
                    "fan_in": fan_in,
                    "wiring": wiring,
                    "repeats": repeats,
                    "ragged": ragged,
                }
            )
            if max(dilations) > 1:
                raise OptionError(f"dilation must be 1 with places: got {dilation}")
            if dropout and dropout_per != "input":
                raise OptionError(f"dropout_per must be 'input' with places: got {dropout_per!r}")
        else:
            high = (1,) * (2 - len(kernel)) + kernel  # a sequence is an image one pixel high
            wirings = with_image(wiring, (channels, high[0], high[1]))
            growth = Growth(channels * high[0] * high[1], filters, branching, depth, fan_in, wirings, repeats, ragged)
        if dendrite_norm is not None and (max(standing) == 1 or backend != "auto"):
            got = f"places {places}, backend {backend!r}"
            raise OptionError(f"dendrite_norm requires places=2 or more and backend 'auto': got {got}")
        super().__init__(
            growth,
            {"in_channels": channels, "out_channels": filters},
            bias=bias,
            dropout=dropout,
            dropout_per=dropout_per,
            activation=activation,
            root_activation=root_activation,
            backend=backend,
            device=device,
            dtype=dtype,
        )
        self.kernel_size, self.stride, self.padding, self.dilation = kernel, strides, padding, dilations
        self.places = standing
        self._patches = self._make_patches()
        self.dendrite_norm: nn.ModuleList | None = None
        if dendrite_norm is not None:
            self.dendrite_norm = nn.ModuleList(
                make_norm(dendrite_norm, filters, len(self.axes), device=device, dtype=dtype)
                for _ in range(self.depth - 1)
            )

    def _lengths(self, name: str, value: Length, *, least: int = 1) -> tuple[int, ...]:
        """One number per axis."""
        given = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value] * len(self.axes)
        if len(given) != len(self.axes):
            raise OptionError(f"{name} must be an integer, or one for each of {', '.join(self.axes)}: got {value!r}")
        return tuple(check_int(name, each, least=least) for each in given)

    def _make_patches(self) -> PatchGrid:
        """The patches that the filters read; a sequence is an image one pixel high."""
        patch = self.kernel_size if self._placement is None else self._placement.patch
        kernel, stride, dilation = ((1,) * (2 - len(sizes)) + sizes for sizes in (patch, self.stride, self.dilation))
        if self.padding == "same":  # as in nn.Conv2d: an odd zero is added right and below
            totals = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
            (top, bottom), (left, right) = ((total // 2, total - total // 2) for total in totals)
        else:
            each = (0, 0) if isinstance(self.padding, str) else (0,) * (2 - len(self.axes)) + self.padding
            top, bottom, left, right = each[0], each[0], each[1], each[1]
        return PatchGrid(self.in_channels, kernel, stride, (left, right, top, bottom), dilation)  # type: ignore[arg-type]

    def _options(self) -> dict[str, Any]:
        shape = {
            name: value
            for name, default in (("stride", 1), ("padding", 0), ("dilation", 1), ("places", 1))
            if (value := getattr(self, name)) != (default,) * len(self.axes)
        }
        norm = {} if self.dendrite_norm is None else {"dendrite_norm": "batch"}
        return {"kernel_size": self.kernel_size, **shape, **norm, **super()._options()}


class DendriticConv2d(DendriticConv):
    """A convolution of images whose filters are dendritic neurons, with the contract of `nn.Conv2d`.

    A filter is a tree over its patch of `in_channels * kernel_height * kernel_width` inputs, the same tree at every
    position:

        y[n, :, i, j] = trees(patch of x[n] at row i * stride, column j * stride)

    where `trees` is what a `DendriticLayer` of that many inputs and `out_channels` neurons computes.

    With `places=3`, a neuron has one dendrite, which reads a whole window of `kernel_size` and stands at 3 x 3
    adjacent places; the soma weighs the places:

        z[n, o, a, b] = act(w[o] . window of x[n] at row a, column b + c[o])
        y[n, o, i, j] = act(sum over p, q of v[o, p, q] * z[n, o, i * stride + p, j * stride + q] + s[o])

    With `depth=3`, there are branches between dendrites and soma: a branch weighs dendrites at 3 x 3 places, and the
    soma weighs branches at 3 x 3 places, each with an activation.

    This is equivalent to, and computed as, a convolution followed by `depth - 1` depthwise convolutions with
    activations between them, the last of which has the neurons' stride (a learned pooling). It runs on any device and
    supports autocast, `torch.compile` and export. A neuron reads a patch with sides
    `kernel_size + (depth - 1) * (places - 1)`; the output has the sizes of a convolution with such filters.

    Args:
        in_channels, out_channels: as in `nn.Conv2d`; there is one filter, or neuron, per output channel.
        kernel_size, stride, dilation: an int, or one each for height and width. With `places`, the kernel is the window
            of a dendrite and the stride is the distance between neurons.
        places: places of a dendrite or branch along each axis: an int, or one each for height and width. If larger than
            1, `places` and `depth` (2 by default) determine the tree.
        dendrite_norm: `"batch"` normalizes dendrites and branches before their activation; requires `places` of 2 or
            more. If another normalization follows the layer, biases are redundant: pass `bias=False`.
        padding: zeros around the image: an int, one each for height and width, `"same"` or `"valid"`.
        branching, depth, fan_in, repeats, ragged: the tree of a filter, as in `DendriticLayer`.
        wiring: which inputs of a patch a filter reads: `"shared"` (all), another name of `dendritree.wiring.WIRINGS`,
            or a wiring object. Those for images see the patch as an image of shape (in_channels, kernel height,
            kernel width).
        bias: whether nodes have a bias.
        dropout: probability of silencing a synapse or an input while training.
        dropout_per: `"synapse"` (each synapse of each filter at each position separately) or `"input"` (a pixel, for
            all synapses that read it).
        activation, root_activation, backend: as in `DendriticLayer`.
        device, dtype: as in `nn.Conv2d`.

    Shape:
        - Input: `(*, in_channels, height, width)` with any leading dimensions, or none.
        - Output: `(*, out_channels, height', width')`, with the sizes of `nn.Conv2d`.

    Attributes:
        weight: shape `(edges,)`, initially N(0, 2 / children of its node), as in `DendriticLayer`. With `places`, a
            soma initially weighs them equally if the activation is a rectifier; a branch mostly passes on its middle
            place.
        bias: shape `(nodes,)`, initially 0, or None.
        forest: the trees and their wiring in a patch, a `dendritree.tree.Forest`.
        multiply_adds: multiply-adds per output position.

    Example:
        >>> layer = DendriticConv2d(3, 32, 5, padding="same", branching=[25, 3])
        >>> layer(torch.randn(8, 3, 28, 28)).shape
        torch.Size([8, 32, 28, 28])
        >>> layer.forest.describe(), sum(p.numel() for p in layer.parameters())
        ('32 trees of 75 synapses, 3 + 1 dendrites', 2624)

        Dendrites of 3 x 3 pixels at 3 x 3 places, neurons at every second pixel:

        >>> layer = DendriticConv2d(3, 32, 3, stride=2, padding=1, places=3)
        >>> layer(torch.randn(8, 3, 28, 28)).shape, sum(p.numel() for p in layer.parameters())
        (torch.Size([8, 32, 13, 13]), 1216)
    """

    axes = ("height", "width")


class DendriticConv1d(DendriticConv):
    """A convolution of sequences whose filters are dendritic neurons, with the contract of `nn.Conv1d`.

    Like `DendriticConv2d` with one axis: a filter is a tree over `in_channels * kernel_size` inputs. Wirings for images
    see a patch as an image of shape (in_channels, 1, kernel_size).

    Shape:
        - Input: `(*, in_channels, length)` with any leading dimensions, or none.
        - Output: `(*, out_channels, length')`, with the length of `nn.Conv1d`.

    Example:
        >>> layer = DendriticConv1d(4, 16, 9, stride=2, fan_in=12, branching=[4, 3], wiring="random")
        >>> layer(torch.randn(8, 4, 100)).shape
        torch.Size([8, 16, 46])
    """

    axes = ("length",)

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of shape (..., out_channels, length') for (..., in_channels, length)."""
        check_dense(x)
        if x.dim() < 2 or x.shape[-2] != self.in_channels:
            raise ShapeError(
                f"the input must be sequences of shape (..., {self.in_channels}, length): got {tuple(x.shape)}"
            )
        if self._as_convolutions:
            return super().forward(x)
        return super().forward(x.unsqueeze(-2)).squeeze(-2)
