"""Lower a model to its inference steps: norms are folded, shared trees become convolutions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..budget import stated_input_shape
from ..errors import OptionError, ShapeError
from ..layers import DendriticConv1d, DendriticConv2d, DendriticLayer
from ..layers.images import Images
from ..layers.placed_layer import scale_and_shift
from ..models.chain import DROPOUTS, Chain, how_changed
from ..models.modes import evaluating
from .shared_trees import FirstFeatures, as_convolutions
from .steps import Act, Array, Conv, Network, Pool, Shape, Step, Trees, is_linear, is_scaling, scaling

CLIP = 5.0
"""Where estimators clip their standardized inputs."""
COVERED = (
    "dendritic layers and convolutions, nn.Linear, nn.Conv1d and nn.Conv2d, batch normalization, ReLU, LeakyReLU, "
    "Tanh, Sigmoid, max- and average pooling, nn.Flatten, dropout, and nn.Softmax at the end"
)
UNCHANGED = (nn.Identity, nn.Flatten, nn.Unflatten, Images, FirstFeatures, *DROPOUTS)
"""Modules that leave the numbers in memory as they are; later steps read as many as they need."""


def lower(model: nn.Module, input_shape: tuple[int, ...] | None = None) -> Network:
    """The steps of a model in evaluation mode.

    >>> net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3))
    >>> [step.out for step in lower(net, (1, 8, 8)).steps]
    [(4, 6, 6), (3, 1, 1)]
    """
    for name, values in model.state_dict().items():
        if isinstance(values, Tensor) and (values.is_meta or not bool(torch.isfinite(values).all())):
            raise OptionError(f"weights must be finite: {name} has values that are NaN, infinite or on the meta device")
    network: Any = model.network if hasattr(model, "deviation") and hasattr(model, "network") else model
    shape = tuple(input_shape or stated_input_shape(model) or stated_input_shape(network) or ())
    if not 0 < len(shape) < 4:
        raise OptionError(f"{type(model).__name__} must state the shape of rows, sequences or images; otherwise, pass examples: got {shape}")  # noqa: E501  # fmt: skip
    names = {id(part): name for name, part in model.named_modules()}
    parameter = next(model.parameters(), torch.zeros(0))
    lowering = _Lowering(torch.zeros(1, *shape, dtype=parameter.dtype, device=parameter.device))
    with evaluating(model), torch.no_grad():
        for part in _parts(network):
            try:
                lowering.add(part)
            except OptionError as error:
                raise OptionError(f"{names.get(id(part)) or 'model'}: {type(part).__name__}: {error}") from None
        return lowering.network() if network is model else lowering.estimator(model)


def _parts(model: nn.Module) -> Iterator[nn.Module]:
    """The modules that inputs run through."""
    if isinstance(model, nn.Sequential) and not how_changed(model):
        for part in model:
            yield from _parts(part)
    elif isinstance(model, Chain) and not how_changed(model):
        for part in [*model.chain(), model.output]:
            yield from _parts(part)
    else:
        yield model


def _value(values: Any, like: int = 0) -> Array:
    return np.zeros(like) if values is None else values.detach().cpu().double().numpy().copy()


def _shape(x: Tensor) -> Shape:
    """The shape of a sample: channels, height and width."""
    channels, *size = x.shape[1:]
    return (channels, *(1,) * (2 - len(size)), *size) if size else (channels, 1, 1)  # type: ignore[return-value]


def activation(module: nn.Module) -> Act:
    """The activation that a module is; others are rejected.

    >>> activation(nn.LeakyReLU(0.25))
    Act(kind='leaky', slope=0.25)
    """
    if isinstance(module, nn.LeakyReLU) and 0 <= module.negative_slope <= 1:
        return Act("leaky", float(module.negative_slope))
    for known, kind in ((nn.Identity, "none"), (nn.ReLU, "relu"), (nn.Tanh, "tanh"), (nn.Sigmoid, "sigmoid")):
        if isinstance(module, known):
            return Act(kind)
    raise OptionError(f"the activation must be ReLU, LeakyReLU, Tanh, Sigmoid or none: got {module}")


def _axes(layer: nn.Module) -> int:
    """The number of spatial dimensions of a dendritic layer's inputs."""
    return len(getattr(layer, "places", ()))


def _as_convolutions(module: nn.Module, x: Tensor) -> nn.Sequential | None:
    """The convolutions that compute a dendritic layer, or None; its activation is checked first."""
    if not isinstance(module, DendriticLayer | DendriticConv1d | DendriticConv2d):
        return None
    activation(module.activation)
    if isinstance(module, DendriticLayer):
        return as_convolutions(module) if x.dim() == 2 and x.shape[1] == module.in_features else None
    placed = max(module.places) > 1 and module.padding != "same" and module.backend == "auto"
    return module.folded().as_convolutions() if placed and x.dim() == _axes(module) + 2 else None


class _Lowering:
    """The steps so far, and a sample that runs through the modules to determine shapes."""

    def __init__(self, x: Tensor) -> None:
        self.x, self.first = x, _shape(x)
        self.steps: list[Step] = []
        self.output = "none"

    def add(self, module: nn.Module) -> None:
        """Add what a module computes."""
        if self.output != "none" and not isinstance(module, (nn.Identity, *DROPOUTS)):
            raise OptionError(f"nothing may follow {self.output} at the end")
        if changed := how_changed(module):
            raise OptionError(f"it must compute what its class does: got one with{changed.removeprefix(', which has')}")
        if (convolutions := _as_convolutions(module, self.x)) is not None:
            for part in convolutions:
                self.add(part)
            return
        before, shape = self.x, _shape(self.x)
        try:
            self.x = module(self.x)
        except (RuntimeError, ShapeError, ValueError, IndexError) as error:
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise OptionError(f"it must fit inputs of shape {tuple(before.shape[1:])}: {reason}") from None
        match module:
            case _ if isinstance(module, UNCHANGED):
                self.first = self.first if self.steps else _shape(self.x)
            case DendriticLayer() | DendriticConv1d() | DendriticConv2d() if before.dim() == _axes(module) + 2:
                self._trees(module, shape)
            case nn.Linear() if before.dim() == 2:
                self._linear(_value(module.weight), _value(module.bias, module.out_features), shape)
            case nn.Conv1d() | nn.Conv2d() if before.dim() > 2 and module.padding_mode == "zeros":
                self._convolution(module, shape)
            case nn.BatchNorm1d() | nn.BatchNorm2d():
                scale, shift = scale_and_shift(module)
                self._affine(_value(scale), _value(shift), shape)
            case nn.MaxPool1d() | nn.MaxPool2d() | nn.AvgPool1d() | nn.AvgPool2d() if before.dim() > 2:
                self._pool(module, shape)
            case nn.AdaptiveAvgPool1d() | nn.AdaptiveAvgPool2d() | nn.AdaptiveMaxPool1d() | nn.AdaptiveMaxPool2d() if (
                before.dim() > 2
            ):
                kind, parts = "max" if "Max" in type(module).__name__ else "average", _shape(self.x)[1:]
                size = shape[1] // parts[0], shape[2] // parts[1]
                equal = (size[0] * parts[0], size[1] * parts[1]) == shape[1:]
                self.steps.append(Pool(shape, kind, size, size, parts=None if equal else parts))
            case nn.Softmax() if before.dim() == 2:
                self.output = "softmax"
            case nn.ReLU() | nn.LeakyReLU() | nn.Tanh() | nn.Sigmoid():
                self._activate(activation(module), shape)
            case _:
                raise OptionError(f"C code supports {COVERED}: this is none of these, or not for inputs of this shape")

    # --------------------------------------------------------------------------------------------------- the parts

    def _pair(self, value: Any, along: int) -> tuple[int, int]:
        """One number per axis; for sequences, `along` for their height comes first."""
        axes = self.x.dim() - 2
        given = (value,) * axes if isinstance(value, int) else tuple(value)
        return (along, *given) if axes == 1 else given  # type: ignore[return-value]

    def _linear(self, weight: Array, bias: Array, shape: Shape) -> None:
        self.steps.append(Conv((math.prod(shape), 1, 1), weight[:, :, None, None], bias))

    def _convolution(self, module: nn.Conv1d | nn.Conv2d, shape: Shape) -> None:
        weight, bias = _value(module.weight), _value(module.bias, module.out_channels)
        weight = weight[:, :, None] if weight.ndim == 3 else weight
        rows, columns = self._pair(module.dilation, 1)
        span = (weight.shape[2] - 1) * rows + 1, (weight.shape[3] - 1) * columns + 1
        spread = np.zeros((*weight.shape[:2], *span))
        spread[:, :, ::rows, ::columns] = weight
        if module.padding == "same":
            (top, bottom), (left, right) = (((n - 1) // 2, n // 2) for n in span)
        else:
            top, left = bottom, right = self._pair(0 if module.padding == "valid" else module.padding, 0)
        if module.groups == 1 and spread.shape[1:] == shape and not any((left, right, top, bottom)):
            return self._linear(spread.reshape(len(spread), -1), bias, shape)
        stride = self._pair(module.stride, 1)
        return self.steps.append(Conv(shape, spread, bias, stride, (left, right, top, bottom), module.groups))

    def _trees(self, layer: Any, shape: Shape) -> None:
        act, patches = activation(layer.activation), getattr(layer, "_patches", None)
        root = act if layer.root_activation else Act()
        if patches is not None and patches.dilation != (1, 1):
            raise OptionError(f"dilation must be 1: got {patches.dilation}")
        if patches is not None and any(patches.padding):
            edged = replace(scaling(shape), padding=patches.padding)
            self.steps.append(edged)
            shape, patches = edged.out, patches._replace(padding=(0, 0, 0, 0))
        bias = _value(layer.bias, layer.forest.biases)
        self.steps.append(Trees(shape, _value(layer.weight), bias, layer.forest, act, root, patches))

    def _pool(self, module: Any, shape: Shape) -> None:
        plain = not getattr(module, "ceil_mode", False) and getattr(module, "dilation", 1) in (1, (1, 1))
        if not plain or getattr(module, "divisor_override", None):
            raise OptionError("pooling must have neither ceil_mode nor dilation nor divisor_override")
        kind = "max" if isinstance(module, nn.MaxPool1d | nn.MaxPool2d) else "average"
        kernel, stride, padding = map(self._pair, (module.kernel_size, module.stride, module.padding), (1, 1, 0))
        self.steps.append(Pool(shape, kind, kernel, stride, padding, getattr(module, "count_include_pad", True)))

    def _affine(self, scale: Array, shift: Array, shape: Shape) -> None:
        """y * scale + shift, per channel."""
        last = self.steps[-1] if self.steps else None
        if isinstance(last, Conv) and last.act == Act() and last.out == shape:
            weight = last.weight * scale[:, None, None, None]
            self.steps[-1] = replace(last, weight=weight, bias=last.bias * scale + shift)
        else:
            self.steps.append(scaling(shape, scale, shift))

    def _activate(self, act: Act, shape: Shape) -> None:
        index = len(self.steps) - 1
        if index >= 0 and isinstance(pool := self.steps[index], Pool) and pool.kind == "max":
            index -= 1  # a non-decreasing activation can be applied first
        last = self.steps[index] if index >= 0 else None
        if isinstance(last, Conv) and last.act == Act():
            self.steps[index] = replace(last, act=act)
        elif isinstance(last, Trees) and last.root == Act():
            self.steps[index] = replace(last, root=act)
        else:
            self.steps.append(scaling(shape, act=act))

    # --------------------------------------------------------------------------------------------------- the whole

    def network(self) -> Network:
        """The network of these steps."""
        steps, shape = _folded(self.steps), _shape(self.x)
        if not steps:
            raise OptionError("the model must have a layer with weights: got none")
        if math.prod(shape) < math.prod(steps[-1].out):  # later steps read only the first trees
            steps.append(scaling(shape))
        last, what = steps[-1], "root" if isinstance(steps[-1], Trees) else "act"
        if math.prod(last.out) == 1 and self.output == "none" and getattr(last, what, Act()).kind == "sigmoid":
            steps[-1], self.output = replace(last, **{what: Act()}), "sigmoid"  # type: ignore[arg-type]
        return Network(self.first, tuple(steps), self.output)

    def estimator(self, module: Any) -> Network:
        """The network of an estimator, between the scales of its inputs and outputs."""
        shape = _shape(self.x)
        if module.probabilities:
            if shape[0] == 1:  # the logit of the second class; that of the first is 0
                self._linear(np.array([[0.0], [1.0]]), np.zeros(2), shape)
                self.x = self.x.expand(-1, 2)
            self.output = "softmax"
        else:
            scale, shift = (np.resize(_value(each), shape[0]) for each in (module.scale, module.shift))
            self._affine(scale, shift, shape)
        scaled = replace(self.network(), mean=_value(module.mean), deviation=_value(module.deviation), clip=CLIP)
        return replace(scaled, classifies=bool(module.probabilities))


def _folded(steps: list[Step]) -> list[Step]:
    """Steps, with scalings folded into the weights of the next step where possible."""
    out: list[Step] = []
    for step in steps:
        norm = out[-1] if out else None
        if (
            norm is not None
            and is_scaling(norm)
            and isinstance(norm, Conv)
            and norm.act == Act()
            and not isinstance(step, Pool)
        ):
            size = math.prod(norm.shape[1:]) if step.shape[1:] == (1, 1) else 1
            scale, shift = (np.repeat(v.reshape(-1), size)[: step.shape[0]] for v in (norm.weight, norm.bias))
            if isinstance(step, Conv) and (is_linear(step) or (step.groups == 1 and not any(step.padding))):
                moved = (step.weight * shift[:, None, None]).sum(axis=(1, 2, 3))
                out[-1] = replace(step, weight=step.weight * scale[:, None, None], bias=step.bias + moved)
                continue
            if isinstance(step, Trees) and step.forest.template is None and step.shape[1:] == (1, 1):
                f, at, add = step.forest, step.forest.synapse_edges, np.zeros(step.forest.edges)
                add[at], weight = step.weight[at] * shift[f.source[at]], step.weight.copy()
                weight[at] *= scale[f.source[at]]
                out[-1] = replace(step, weight=weight, bias=step.bias + np.add.reduceat(add, f.offsets[:-1]))
                continue
        out.append(step)
    return out
