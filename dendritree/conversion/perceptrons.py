"""The perceptrons of any model, and why some of them cannot be replaced."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ..layers import DendriticConv1d, DendriticConv2d, DendriticLayer
from ..layers.forest_layer import ForestLayer
from ..layers.linear import Linear

CONVOLUTIONS: dict[type[nn.Module], Any] = {nn.Conv1d: DendriticConv1d, nn.Conv2d: DendriticConv2d}
"""Layers whose filters are perceptrons over patches, and their replacements."""


@dataclass(frozen=True)
class Perceptron:
    """A module that computes W x + c: an `nn.Linear`, GPT-2's `Conv1D`, which stores its weights transposed, or a
    convolution, whose x is a patch."""

    name: str
    module: Any

    @property
    def is_convolution(self) -> bool:
        """Whether it slides over an image or a sequence."""
        return isinstance(self.module, tuple(CONVOLUTIONS))

    @property
    def bias(self) -> Tensor | None:
        """Its bias, or None."""
        return self.module.bias  # type: ignore[no-any-return]

    @property
    def weight(self) -> Tensor:
        """Its weights, shape (out_features, in_features)."""
        weight: Tensor = self.module.weight
        if self.is_convolution:
            return weight.flatten(1)
        return weight if isinstance(self.module, nn.Linear) else weight.t()

    @property
    def in_features(self) -> int:
        """Number of inputs."""
        return self.weight.shape[1]

    @property
    def out_features(self) -> int:
        """Number of neurons."""
        return self.weight.shape[0]

    @property
    def patch(self) -> tuple[int, int, int] | None:
        """(channels, height, width) of what a filter reads; None if it is not a convolution."""
        return (self.module.in_channels, *(1, *self.module.kernel_size)[-2:]) if self.is_convolution else None

    @property
    def parameters(self) -> int:
        """Number of weights and biases."""
        return self.out_features * (self.in_features + (self.bias is not None))

    def dendritic(self, in_features: int, out_features: int, **options: Any) -> ForestLayer:
        """A layer of trees with the interface of this module; for a convolution, `in_features` is the patch size."""
        if not self.is_convolution:
            return DendriticLayer(in_features, out_features, **options)
        kind = next(new for old, new in CONVOLUTIONS.items() if isinstance(self.module, old))
        sliding = (getattr(self.module, name) for name in ("kernel_size", "stride", "padding", "dilation"))
        layer: ForestLayer = kind(self.module.in_channels, out_features, *sliding, **options)
        return layer


def find_perceptrons(
    model: nn.Module, readers: Mapping[str, str], *, convolutions: bool = False
) -> tuple[dict[str, Perceptron], dict[str, str]]:
    """The perceptrons of a model that can be replaced, by name; and the reasons why others cannot, by name.

    Args:
        model: any model.
        readers: layers whose weights are read directly, and the class of the module that does.
        convolutions: whether to include convolutions.

    >>> layer = nn.Linear(2, 2)
    >>> find_perceptrons(nn.Sequential(layer, layer), {})[1]
    {'0': 'it is shared: the same module is 1'}
    """
    perceptrons: dict[str, Perceptron] = {}
    reasons: dict[str, str] = {}
    names, owners = defaultdict(list), defaultdict(set)  # of identical modules and parameters
    for name, module in model.named_modules(remove_duplicate=False):
        names[id(module)].append(name)
    for name, parameter in model.named_parameters(remove_duplicate=False):
        owners[id(parameter)].add(name)
    for name, module in model.named_modules():
        if not is_perceptron(module, convolutions=convolutions):
            continue
        twins = names[id(module)]
        own = {f"{each}.{kind}".lstrip(".") for each in twins for kind in ("weight", "bias")}
        others = {owner for p in module.parameters(recurse=False) for owner in owners[id(p)]} - own
        if reason := _unfit(module):
            reasons[name] = reason
        elif len(twins) > 1:
            reasons[name] = f"it is shared: the same module is {next(each for each in twins if each != name)}"
        elif others:
            reasons[name] = f"its weights are tied: {min(others)} is the same tensor"
        elif name in readers:
            reasons[name] = f"{readers[name]} reads its .weight or .bias directly"
        else:
            perceptrons[name] = Perceptron(name, module)
    return perceptrons, reasons


def is_perceptron(module: nn.Module, *, convolutions: bool = False) -> bool:
    """Whether it is an `nn.Linear`, a `Conv1D` of transformers (which need not be installed), or a convolution."""
    conv1d = type(module).__name__ == "Conv1D" and type(module).__module__ == "transformers.pytorch_utils"
    return isinstance(module, (nn.Linear, *CONVOLUTIONS) if convolutions else nn.Linear) or conv1d


def _unfit(module: nn.Module) -> str | None:
    """Why a linear layer cannot be replaced in any model; None if it can."""
    weight = dict(module.named_parameters(recurse=False)).get("weight")
    if weight is None:
        return "its weight is computed from others (a parametrization, weight norm or pruning)"
    if is_lazy(weight):
        return "it is lazy and has no size yet: run a batch through the model first"
    if not weight.is_floating_point():
        return f"its weights are of type {str(weight.dtype).removeprefix('torch.')}, as quantized ones are"
    known: tuple[type[nn.Module], ...] = (Linear, nn.Linear, *CONVOLUTIONS)
    if isinstance(module, known) and type(module).forward not in [kind.forward for kind in known]:
        return f"{type(module).__name__} has its own forward"
    if getattr(module, "groups", 1) > 1:
        return f"its channels are in {module.groups} groups"
    if getattr(module, "padding_mode", "zeros") != "zeros":
        return f"its padding is {module.padding_mode!r}, not zeros"
    if any(getattr(module, f"_{kind}_hooks") for kind in ("forward", "forward_pre", "backward", "backward_pre")):
        return "it has hooks, which a new module would lose"
    return None
