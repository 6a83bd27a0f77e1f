"""Layers whose dendrites may stand at several places, and the convolutions that compute them, one per level."""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import OptionError, check_one_of
from ..ops import Plan, check_dense, make_plan
from ..ops.normalize import normalize
from ..randomness import dropout as drop
from ..randomness import generator_on
from ..tree import Forest, IntArray
from .forest_layer import ForestLayer
from .growth import Growth
from .placement import Placement

NORMS: Mapping[str, tuple[type[nn.Module], ...]] = {"batch": (nn.BatchNorm1d, nn.BatchNorm2d)}
"""Normalizations of dendrites before their activation: the module for sequences, and for images."""
EVEN = nn.ReLU, nn.LeakyReLU, nn.SiLU, nn.GELU
"""Activations whose outputs are mostly positive, so that equal weights at the soma are a good start."""
BRANCH_NOISE = 0.2
"""Standard deviation of the initial weights of a branch around those that pass on its middle place."""
CONVOLUTIONS = F.conv1d, F.conv2d
CONVOLUTION_MODULES: tuple[type[nn.Module], ...] = nn.Conv1d, nn.Conv2d


def make_norm(name: str, neurons: int, axes: int, **placed: Any) -> nn.Module:
    """The normalization of dendrites.

    >>> type(make_norm("batch", 8, axes=2)).__name__
    'BatchNorm2d'
    """
    return NORMS[check_one_of("dendrite_norm", name, NORMS)][axes - 1](neurons, **placed)


def scale_and_shift(norm: nn.Module) -> tuple[Tensor, Tensor]:
    """The scale and shift of a batch normalization in evaluation mode: x * scale + shift.

    >>> [values.tolist() for values in scale_and_shift(nn.BatchNorm2d(1, eps=0.0))]
    [[1.0], [0.0]]
    """
    assert isinstance(norm, nn.BatchNorm1d | nn.BatchNorm2d)
    if norm.running_mean is None or norm.running_var is None:
        raise OptionError("a norm must have running statistics to be folded: got track_running_stats=False")
    scale = (norm.running_var + norm.eps).rsqrt()
    scale = scale if norm.weight is None else scale * norm.weight
    shift = norm.running_mean * scale
    return scale, -shift if norm.bias is None else norm.bias - shift


class PlacedLayer(ForestLayer):
    """A convolution whose neurons may have dendrites at several places, computed by one of PyTorch's convolutions per
    level of the tree."""

    axes: ClassVar[tuple[str, ...]]
    in_channels: int
    out_channels: int
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...] | str
    places: tuple[int, ...]
    dendrite_norm: nn.ModuleList | None
    """The normalization of each level below the soma."""
    _placement: Placement | None = None
    """The dendrites and their places, if they stand at several."""

    def _grow(self, growth: Growth | Placement) -> tuple[int, int]:
        if isinstance(growth, Growth):
            return super()._grow(growth)
        self._placement, self.windows = growth, None
        return growth.weights, growth.biases

    def regrow(self, forest: Forest, *, bias: bool | None = None, windows: IntArray | None = None) -> None:
        """Replace the trees, as in `DendriticLayer`. Places become a tree over the patch, of any shape."""
        if self.dendrite_norm is not None:
            raise OptionError("a layer with dendrite_norm must be folded before its trees are replaced: call folded()")
        if self._placement is not None:
            _ = self.forest  # grown here, since the new trees are compared with it
            self.kernel_size, self.places, self._placement = self._placement.patch, (1,) * len(self.axes), None
        super().regrow(forest, bias=bias, windows=windows)

    @functools.cached_property
    def forest(self) -> Forest:  # type: ignore[override]
        """The trees at one position; those of neurons with places are grown on first access."""
        assert self._placement is not None
        return self._placement.forest()[0]

    @functools.cached_property
    def _plan(self) -> Plan:  # type: ignore[override]
        return make_plan(self.forest, self.weight.device)

    @property
    def _as_convolutions(self) -> bool:
        """Whether the trees are computed by convolutions; a pruned tree, or one of a named backend, is not."""
        return self._placement is not None and self.backend == "auto"

    @property
    def depth(self) -> int:
        """Edges from leaf to root."""
        return super().depth if self._placement is None else self._placement.depth

    @property
    def fan_in(self) -> int:
        """Synapses of the largest neuron; of every neuron where the trees are equal."""
        return super().fan_in if self._placement is None else math.prod(self._placement.branching)

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds for one position: one per edge, but a dendrite that neurons share is computed once."""
        if self._placement is None:
            return super().multiply_adds
        *inner, root = self._placement.branching
        shared = sum(inner) * math.prod(self.stride)  # this many places are new at every position
        return self.out_channels * (min(shared, self.fan_in) + root)

    def multiply_adds_on(self, shape: Sequence[int]) -> int:
        """The exact number of multiply-adds for one image or sequence of shape (channels, ...).

        >>> import dendritree
        >>> layer = dendritree.DendriticConv2d(1, 5, 3, stride=2, padding=1, places=3)
        >>> layer.multiply_adds_on((1, 28, 28)), 5 * (28 * 28 * 9 + 13 * 13 * 9)
        (42885, 42885)
        """
        assert self._patches is not None
        high = (1,) * (3 - len(shape)) + tuple(shape[1:])
        positions = math.prod(self._patches.counts(*high))
        if self._placement is None:
            return positions * self.multiply_adds
        *inner, root = self._placement.branching
        total = positions * root
        for level, children in enumerate(inner, 1):
            window = (1,) * (2 - len(self.axes)) + self._placement.reach(level)
            total += children * math.prod(self._patches._replace(kernel=window, stride=(1, 1)).counts(*high))  # type: ignore[arg-type]
        return self.out_channels * total

    def _describe(self) -> str:
        if self._placement is None:
            return super()._describe()
        one = dataclasses.replace(self._placement, neurons=1).forest()[0].describe()
        return one if self.out_channels == 1 else one.replace("1 tree", f"{self.out_channels} trees", 1)

    def _structure(self) -> dict[str, Tensor]:
        return super()._structure() if self._placement is None else {}

    def _tree_options(self) -> dict[str, Any]:
        if self._placement is None:
            return super()._tree_options()
        return {} if self.depth == 2 else {"depth": self.depth}

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Redraw the weights and set the biases to 0, as in `DendriticLayer`.

        A soma weighs the places of a rectified branch or dendrite equally at first, 1 / sqrt(places); a branch above
        dendrites mostly passes on the place in its middle.
        """
        if self._placement is None:
            return super().reset_parameters()
        if self.weight.is_meta:
            return None
        generator = generator_on(self.weight.device)
        (dendrites, _), *branches, (somata, _) = self._placement.filters(self.weight, None)
        dendrites.normal_(0, math.sqrt(2 / self._placement.synapses), generator=generator)
        for branch, _ in branches:
            branch.normal_(0, BRANCH_NOISE, generator=generator)
            branch.view(len(branch), -1)[:, self._placement.copies // 2] += 1
        if isinstance(self.activation, EVEN):
            somata.fill_(math.sqrt(1 / self._placement.copies))
        else:
            somata.normal_(0, math.sqrt(2 / self._placement.copies), generator=generator)
        if self.bias is not None:
            self.bias.zero_()
        return None

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of shape (..., out_channels, height', width') for (..., in_channels, height, width)."""
        if not self._as_convolutions:
            return super().forward(x)
        check_dense(x)
        assert self._placement is not None
        assert self._patches is not None
        self._patches.check(x if len(self.axes) == 2 else x.unsqueeze(-2))
        axes = len(self.axes)
        images = x if x.dim() == axes + 2 else x.reshape(-1, *x.shape[-axes - 1 :])
        images = drop(images, self.dropout, self.training) if self.dropout else images
        convolve: Any = CONVOLUTIONS[axes - 1]
        (dendrites, shift), *higher = self._placement.filters(self.weight, self.bias)
        padding, images = self._padded(images)
        y: Tensor = convolve(images, dendrites, shift, padding=padding)
        for level, (weight, bias) in enumerate(higher, 1):
            stride = self.stride if level == len(higher) else 1
            norm = None if self.dendrite_norm is None else self.dendrite_norm[level - 1]
            y = self.activation(y) if norm is None else normalize(y, norm, self.activation)
            y = convolve(y, weight, bias, stride, groups=self.out_channels)
        y = self.activation(y) if self.root_activation else y
        return y if y.dim() == x.dim() else y.reshape(*x.shape[: -axes - 1], *y.shape[1:])

    def _padded(self, images: Tensor) -> tuple[tuple[int, ...], Tensor]:
        """The padding of the first convolution, and the images; asymmetric padding is added to them here."""
        assert self._patches is not None
        left, right, top, bottom = self._patches.padding
        if left == right and top == bottom:
            return (top, left)[2 - len(self.axes) :], images
        return (0,) * len(self.axes), F.pad(images, self._patches.padding[: 2 * len(self.axes)])

    def as_convolutions(self) -> nn.Sequential:
        """The same neurons as PyTorch's own modules, with copies of the parameters.

        Example:
            >>> import dendritree
            >>> layer = dendritree.DendriticConv2d(3, 8, 3, stride=2, padding=1, places=3, activation="relu")
            >>> [type(step).__name__ for step in layer.as_convolutions()]
            ['Conv2d', 'ReLU', 'Conv2d', 'ReLU']
        """
        if not self._as_convolutions or self.padding == "same":
            raise OptionError(f"only a layer with places and a numeric padding consists of convolutions: got {self!r}")
        assert self._placement is not None
        kind: Any = CONVOLUTION_MODULES[len(self.axes) - 1]
        like = {"device": self.weight.device, "dtype": self.weight.dtype, "bias": self.bias is not None}
        neurons = self.out_channels
        padding = 0 if isinstance(self.padding, str) else self.padding
        steps = [kind(self.in_channels, neurons, self.kernel_size, padding=padding, **like)]
        for level in range(1, self._placement.depth):
            stride = self.stride if level == self._placement.depth - 1 else 1
            steps += [] if self.dendrite_norm is None else [copy.deepcopy(self.dendrite_norm[level - 1])]
            steps += [
                copy.deepcopy(self.activation),
                kind(neurons, neurons, self.places, stride, groups=neurons, **like),
            ]
        filters = self._placement.filters(self.weight, self.bias)
        with torch.no_grad():
            for module, (weight, bias) in zip((s for s in steps if isinstance(s, kind)), filters, strict=True):
                module.weight.copy_(weight)
                if bias is not None:
                    module.bias.copy_(bias)
        last = [copy.deepcopy(self.activation)] if self.root_activation else []
        return nn.Sequential(*steps, *last).train(self.training)

    @torch.no_grad()
    def folded(self, after: nn.Module | None = None) -> Self:
        """A copy for inference, with the normalization of the dendrites folded into their weights and biases.

        Args:
            after: a batch normalization of the layer's outputs to fold into the somata as well, for a layer with
                `root_activation=False`.

        Example:
            >>> import dendritree
            >>> layer = dendritree.DendriticConv2d(3, 8, 3, places=3, dendrite_norm="batch", bias=False).eval()
            >>> x = torch.randn(2, 3, 9, 9)
            >>> bool((layer.folded()(x) - layer(x)).abs().max() < 1e-5)
            True
        """
        if not self._as_convolutions or (after is not None and self.root_activation):
            raise OptionError(
                f"only a layer with places can be folded, and `after` requires root_activation=False: got {self!r}"
            )
        assert self._placement is not None
        twin = copy.deepcopy(self).eval()
        del twin.dendrite_norm
        twin.dendrite_norm = None  # not a submodule that is None, which a repr would show
        values = twin.weight.new_zeros(self._placement.biases) if twin.bias is None else twin.bias
        norms = [*([None] * (self.depth - 1) if self.dendrite_norm is None else self.dendrite_norm), after]
        for norm, (weight, bias) in zip(norms, self._placement.filters(twin.weight, values), strict=True):
            assert bias is not None
            if norm is not None:
                scale, move = scale_and_shift(norm)
                weight.mul_(scale.reshape(-1, *(1,) * (weight.dim() - 1)))
                bias.mul_(scale).add_(move)
        if twin.bias is None:
            twin.bias = nn.Parameter(values, requires_grad=twin.weight.requires_grad)
        return twin
