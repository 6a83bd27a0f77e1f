"""Count parameters and multiply-adds of a model and of each layer, and find a control of the same size.

`count(model).total` is the sum of `p.numel()`: nothing hidden, nothing estimated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from .errors import OptionError, check_int
from .layers import DendriticConv1d, DendriticConv2d, DendriticLayer
from .layers.forest_layer import ForestLayer
from .layers.neuron_layer import NeuronLayer
from .layers.placed_layer import PlacedLayer
from .models import MLP, ConvMLN, ConvMLP, MLNClassifier
from .models.holders import network_of
from .models.modes import evaluating
from .models.sizing import parameters_of

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, DendriticConv1d, DendriticConv2d)
"""Layers that do not state the size of their images."""


@dataclass(frozen=True)
class Count:
    """The cost of a model."""

    weights: int
    biases: int
    multiply_adds: int | None
    """For one sample, or None where it depends on an input shape that was not given."""
    masked_weights: int
    """Weights that the same model would store if its trees were the paper's masked dense matrices."""

    @property
    def total(self) -> int:
        """All parameters."""
        return self.weights + self.biases

    def __repr__(self) -> str:
        size = f"total={self.total}, weights={self.weights}, biases={self.biases}"
        return f"Count({size}, multiply_adds={self.multiply_adds})"


def count(model: Any, input_shape: tuple[int, ...] | None = None) -> Count:
    """Count a model's weights, biases and multiply-adds, each parameter once.

    Args:
        model: any module, or an estimator, a pipeline or a table model that holds one. Multiply-adds of linear layers
            and convolutions are computed. Any other layer may state its own, submodules included, as an attribute
            `multiply_adds`: for one sample, or for one position if it has `out_channels` (a convolution).
        input_shape: shape of one sample, needed only for multiply-adds of models that do not state theirs.

    Example:
        >>> count(MLNClassifier(1024, 10, branching=2))
        Count(total=30690, weights=20460, biases=10230, multiply_adds=20460)
    """
    model = network_of(model)
    weights = biases = masked_extra = 0
    for name, parameter in model.named_parameters():
        if name.rpartition(".")[2].startswith("bias"):  # nn.LSTM has bias_ih_l0
            biases += parameter.numel()
        else:
            weights += parameter.numel()
    for module in model.modules():
        if isinstance(module, ForestLayer):
            masked_extra += module.forest.masked_weights - module.forest.weights
    multiply_adds = _multiply_adds(model, input_shape)
    total = None if multiply_adds is None else sum(multiply_adds.values())
    return Count(weights, biases, total, weights + masked_extra)


def _multiply_adds(model: nn.Module, input_shape: tuple[int, ...] | None) -> dict[nn.Module, int] | None:
    """Multiply-adds by layer, recorded while one sample runs through the model; None if its shape is not known."""
    shape = input_shape or stated_input_shape(model)
    parameter = next(model.parameters(), None)
    if shape is None or parameter is None or parameter.is_meta:
        return None
    done_by: dict[nn.Module, int] = {}

    def add(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        stated, done = getattr(module, "multiply_adds", None), 0
        if isinstance(module, PlacedLayer):
            done = module.multiply_adds_on(inputs[0].shape[-len(module.axes) - 1 :])
        elif stated is not None:
            done = output.numel() // getattr(module, "out_channels", output.shape[-1]) * stated
        elif isinstance(module, nn.Linear):
            done = output.numel() * module.in_features
        elif isinstance(module, CONVOLUTIONS):
            done = output.numel() * module.weight[0].numel()
        elif any(parameter.dim() > 1 for parameter in module.parameters(recurse=False)):
            return  # unknown
        done_by[module] = done_by.get(module, 0) + done

    hooks = [module.register_forward_hook(add) for _, module in _counted(model, "", set())]
    try:
        with evaluating(model), torch.no_grad():
            model(torch.zeros(1, *shape, device=parameter.device, dtype=parameter.dtype))
    except (RuntimeError, ValueError, IndexError):
        if input_shape is not None:
            raise
        return None  # the shape read from the first layer may not be the model's
    finally:
        for hook in hooks:
            hook.remove()
    return done_by


def _counted(module: nn.Module, name: str, seen: set[nn.Module]) -> Iterator[tuple[str, nn.Module]]:
    """A module and its parts by name, except the parts of one that states its multiply-adds."""
    if module not in seen:
        seen.add(module)
        yield name, module
        if getattr(module, "multiply_adds", None) is None:
            for child, part in module.named_children():
                yield from _counted(part, f"{name}.{child}".lstrip("."), seen)


def stated_input_shape(model: nn.Module) -> tuple[int, ...] | None:
    """The shape of one sample, if the model or its first layer states it.

    >>> stated_input_shape(MLP(16, 3, hidden=4))
    (16,)
    """
    for module in model.modules():
        for attribute in ("input_shape", "in_features"):
            value = getattr(module, attribute, None)
            if value is not None:
                return (value,) if isinstance(value, int) else tuple(value)
        if isinstance(module, CONVOLUTIONS):
            return None
    return None


# --------------------------------------------------------------------------------------------------------- summary


@dataclass(frozen=True)
class LayerSummary:
    """A line of a `Summary`.

    The `dense_` fields are the cost of a dense layer in place of a layer of neurons; other layers count unchanged.
    """

    name: str
    layer: str
    trees: str
    wiring: str
    parameters: int
    dense_parameters: int
    multiply_adds: int | None
    """For one sample, or None where they are not known."""
    dense_multiply_adds: int | None


@dataclass(frozen=True, repr=False)
class Summary:
    """The layers of a model, one line each; prints as a table with totals."""

    layers: tuple[LayerSummary, ...]

    def __str__(self) -> str:
        head = ("name", "layer", "trees", "wiring", "parameters", "if dense", "mult-adds", "if dense")
        lines = [astuple(layer) for layer in self.layers]
        known = [[line[place] for line in lines if line[place] is not None] for place in range(4, 8)]
        lines.append(("total", "", "", "", *(sum(column) if column or not lines else None for column in known)))
        table = [head, *([_cell(value) for value in line] for line in lines)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        rule = ["-" * width for width in widths]
        table = [head, rule, *table[1:-1], rule, table[-1]]
        aligned = [[f"{text:{'<' if i < 4 else '>'}{widths[i]}}" for i, text in enumerate(line)] for line in table]
        return "\n".join("  ".join(line).rstrip() for line in aligned)

    __repr__ = __str__  # what a prompt or a notebook shows


def _cell(value: Any) -> str:
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else value


def summary(model: Any, input_shape: tuple[int, ...] | None = None) -> Summary:
    """The layers of a model: trees, wiring, parameters, multiply-adds, and the cost of dense layers of these sizes.

    Args:
        model: any module, or an object that holds one, as in `count`.
        input_shape: shape of one sample, as in `count`.

    Example:
        >>> summary(nn.Sequential(DendriticLayer(784, 64, branching=[16, 4], wiring="random"), nn.Linear(64, 10)))
        name   layer                    trees                         wiring  parameters  if dense  mult-adds  if dense
        -----  -----------------------  ----------------------------  ------  ----------  --------  ---------  --------
        0      DendriticLayer(784, 64)  64 synapses, 4 + 1 dendrites  random       4,672    50,240      4,352    50,176
        1      Linear(64, 10)                                                        650       650        640       640
        -----  -----------------------  ----------------------------  ------  ----------  --------  ---------  --------
        total                                                                      5,322    50,890      4,992    50,816
    """
    model = network_of(model)
    multiply_adds, seen = _multiply_adds(model, input_shape) or {}, set[nn.Parameter]()
    layers = []
    for name, module in _counted(model, "", set()):
        stated = getattr(module, "multiply_adds", None)
        parameters = [p for p in module.parameters(recurse=stated is not None) if p not in seen]
        if not parameters:
            continue
        seen.update(parameters)
        total = dense = sum(p.numel() for p in parameters)
        done = dense_done = multiply_adds.get(module)
        kind, names = type(module).__name__, getattr(module, "SIZES", NeuronLayer.SIZES)
        ins, outs = (getattr(module, name, None) for name in names)
        if isinstance(ins, int) and isinstance(outs, int):
            kind = f"{kind}({ins}, {outs})"
            if stated:
                ins = module.forest.in_features if isinstance(module, ForestLayer) else ins  # of a patch
                dense = outs * (ins + (getattr(module, "bias", ...) is not None))
                dense_done = None if done is None else done // stated * ins * outs
        wiring = module.wiring.name if isinstance(module, ForestLayer) else ""
        layers.append(LayerSummary(name or "model", kind, _trees(module), wiring, total, dense, done, dense_done))
    return Summary(tuple(layers))


def _trees(module: nn.Module) -> str:
    """The tree of each neuron; of more than four levels, only the first two and the last."""
    if isinstance(module, ForestLayer):
        levels = re.sub(r"^\d+ trees? of ", "", module.forest.describe()).split(" + ")
        return " + ".join(levels if len(levels) < 5 else [*levels[:2], "...", levels[-1]])
    options = module._options() if isinstance(module, NeuronLayer) else {}
    return ", ".join(f"{key}={value}" for key, value in options.items() if key in ("dendrites", "branches"))


# --------------------------------------------------------------------------------------------------------- matching


def matched_mlp(model: nn.Module, *, min_hidden: int = 2, **options: Any) -> MLP | ConvMLP:
    """The control MLP whose true parameter count is nearest to that of a dendritic model.

    Args:
        model: a `DendriticLayer`, `MLNBinaryClassifier`, `MLNClassifier` or `ConvMLN`.
        min_hidden: fewest hidden units; with one, the MLP is just a perceptron.
        options: passed on to the control, for example `dropout` and `output`.

    Example:
        >>> control = matched_mlp(MLNClassifier(1024, 10, branching=4))
        >>> control.hidden_features, count(control).total
        (16, 16570)
    """
    min_hidden = check_int("min_hidden", min_hidden)
    layer = _dendritic_layer(model)
    total = parameters_of(layer)
    ins, outs = layer.in_features, layer.out_features
    # h (in + 1) weights and biases of the hidden layer, (h + 1) out of the read-out: linear in h
    hidden = max(min_hidden, _nearest(total - outs, ins + 1 + outs))
    if isinstance(model, ConvMLN):
        return ConvMLP(outs, hidden=hidden, **options)
    return MLP(ins, outs, hidden=hidden, **options)


def matched_conv(layer: nn.Module, *, min_filters: int = 1) -> nn.Conv1d | nn.Conv2d:
    """The plain convolution whose parameter count is nearest to that of a dendritic one.

    It has the same kernel size, stride, padding and dilation, and a bias if the dendritic one has any. Only the number
    of filters differs.

    Args:
        layer: a `DendriticConv2d` or `DendriticConv1d`.
        min_filters: fewest filters.

    Example:
        >>> layer = DendriticConv2d(32, 64, 3, padding=1, wiring="random", branching=[12, 4])
        >>> control = matched_conv(layer)
        >>> control, count(layer).total, count(control).total
        (Conv2d(32, 13, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1)), 3648, 3757)
    """
    if not isinstance(layer, DendriticConv1d | DendriticConv2d):
        raise OptionError(f"matched_conv takes a DendriticConv1d or DendriticConv2d: got {type(layer).__name__}")
    min_filters, bias = check_int("min_filters", min_filters), layer.bias is not None
    filters = max(min_filters, _nearest(parameters_of(layer), layer.forest.in_features + bias))
    kind: Any = nn.Conv1d if isinstance(layer, DendriticConv1d) else nn.Conv2d
    sliding = (layer.kernel_size, layer.stride, layer.padding, layer.dilation)
    like = {"device": layer.weight.device, "dtype": layer.weight.dtype}
    control: nn.Conv1d | nn.Conv2d = kind(layer.in_channels, filters, *sliding, bias=bias, **like)
    return control


def _nearest(total: int, each: int) -> int:
    """How many units of `each` parameters come nearest to a total; of two equally near numbers, the smaller."""
    return min(total // each, total // each + 1, key=lambda number: (abs(number * each - total), number))


def _dendritic_layer(model: nn.Module) -> DendriticLayer:
    if isinstance(model, DendriticLayer):
        return model
    head = model.head if isinstance(model, ConvMLN) else model
    if isinstance(head, MLNClassifier):
        return head.layer
    raise OptionError(
        f"matched_mlp takes a DendriticLayer, MLNBinaryClassifier, MLNClassifier or ConvMLN: got {type(model).__name__}"
    )
