"""From a model to the steps that are left of it for inference: norms folded, shared trees as convolutions."""

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
from .steps import Act, Array, Conv, Network, Pool, Shape, Step, Trees

CLIP = 5.0
"""Where estimators clip their standardized inputs."""
COVERED = (
    "dendritic layers and convolutions, nn.Linear, nn.Conv1d and nn.Conv2d, batch normalization, ReLU, LeakyReLU, "
    "Tanh, Sigmoid, max- and average pooling, nn.Flatten, dropout, and nn.Softmax at the end"
)


def lower(model: nn.Module, input_shape: tuple[int, ...] | None = None) -> Network:
    """The steps of a model in evaluation mode.

    >>> net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3))
    >>> [step.out for step in lower(net, (1, 8, 8)).steps]
    [(4, 6, 6), (3, 1, 1)]
    """
    for name, values in model.state_dict().items():
        if isinstance(values, Tensor) and (values.is_meta or not bool(torch.isfinite(values).all())):
            raise OptionError(f"weights must be finite numbers: {name} has others, NaN or infinite")
    network = model.network if hasattr(model, "deviation") and hasattr(model, "network") else model
    shape = tuple(input_shape or stated_input_shape(model) or stated_input_shape(network) or ())  # type: ignore[arg-type]
    if not shape:
        raise OptionError(f"{type(model).__name__} does not state the shape of its inputs: pass examples")
    names = {id(part): name for name, part in model.named_modules()}
    lowering = _Lowering(shape)
    with evaluating(model), torch.no_grad():
        for part in _parts(network):  # type: ignore[arg-type]
            place = names.get(id(part)) or "model"
            try:
                lowering.add(part)
            except OptionError as error:
                raise OptionError(f"{place}: {type(part).__name__}: {error}") from None
        if network is not model:
            return lowering.estimator(model)
        return lowering.network()


def _parts(model: nn.Module) -> Iterator[nn.Module]:
    """The modules that inputs run through."""
    if type(model).forward is nn.Sequential.forward and not how_changed(model):
        for part in model:  # type: ignore[attr-defined]
            yield from _parts(part)
    elif isinstance(model, Chain) and not how_changed(model):
        for part in [*model.chain(), model.output]:
            yield from _parts(part)
    else:
        yield model


def _value(values: Any, like: int = 0) -> Array:
    return np.zeros(like) if values is None else values.detach().cpu().double().numpy().copy()


def _pair(value: Any) -> tuple[int, int]:
    """One number per axis; a sequence has height 1."""
    given = (value,) if isinstance(value, int) else tuple(value)
    return (given[0], given[-1]) if len(given) == 2 or isinstance(value, int) else (1, given[0])


def activation(module: nn.Module) -> Act:
    """The activation that a module is; others are rejected.

    >>> activation(nn.LeakyReLU(0.25))
    Act(kind='leaky', slope=0.25)
    """
    match module:
        case nn.Identity():
            return Act()
        case nn.ReLU():
            return Act("relu")
        case nn.LeakyReLU() if 0 <= module.negative_slope <= 1:
            return Act("leaky", float(module.negative_slope))
        case nn.Tanh():
            return Act("tanh")
        case nn.Sigmoid():
            return Act("sigmoid")
    raise OptionError(f"the activation must be ReLU, LeakyReLU, Tanh, Sigmoid or none: got {module}")


class _Lowering:
    """The steps so far, the shape of their result, and how many of its numbers count."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        if len(shape) > 3:
            raise ShapeError(f"inputs must be rows, sequences or images: got shape {shape}")
        self.first = self.shape = self._shape(shape)
        self.flat = len(shape) == 1
        self.kept = math.prod(shape)
        self.steps: list[Step] = []
        self.output = "none"

    @staticmethod
    def _shape(shape: tuple[int, ...]) -> Shape:
        channels, *size = shape
        return (channels, 1, 1) if not size else (channels, 1, size[0]) if len(size) == 1 else (channels, *size)  # type: ignore[return-value]

    def add(self, module: nn.Module) -> None:
        """Add what a module computes."""
        if self.output != "none" and not isinstance(module, (nn.Identity, *DROPOUTS)):
            raise OptionError(f"nothing may follow {self.output} at the end")
        if changed := how_changed(module):
            raise OptionError(f"it must compute what its class does: got one{changed.removeprefix(', which has')}")
        match module:
            case nn.Identity() | nn.Flatten():
                self.flat = self.flat or isinstance(module, nn.Flatten)
            case _ if isinstance(module, DROPOUTS):
                pass
            case Images() | nn.Unflatten():
                self._view(module.image_shape if isinstance(module, Images) else tuple(module.unflattened_size))
            case FirstFeatures():
                self.kept = module.features
            case DendriticLayer():
                self._layer(module)
            case DendriticConv1d() | DendriticConv2d() if module.places != (1,) * len(module.places) and (
                module.padding != "same" and module.backend == "auto"
            ):
                for part in module.folded().as_convolutions():
                    self.add(part)
            case DendriticConv1d() | DendriticConv2d():
                self._trees(module, module._patches)
            case nn.Linear():
                self._linear(_value(module.weight), _value(module.bias, module.out_features))
            case nn.Conv1d() | nn.Conv2d():
                self._convolution(module)
            case nn.BatchNorm1d() | nn.BatchNorm2d():
                scale, shift = scale_and_shift(module)
                self._affine(_value(scale), _value(shift))
            case nn.MaxPool1d() | nn.MaxPool2d() | nn.AvgPool1d() | nn.AvgPool2d():
                self._pool(module)
            case nn.AdaptiveAvgPool1d() | nn.AdaptiveAvgPool2d() | nn.AdaptiveMaxPool1d() | nn.AdaptiveMaxPool2d():
                kind = "max" if "Max" in type(module).__name__ else "average"
                size: Any = module.output_size
                parts = (1, *np.atleast_1d(size)) if "1d" in type(module).__name__ else _pair(size)
                self._push(Pool(self._map(), kind, parts=(int(parts[0]), int(parts[1]))))
            case nn.Softmax() if module.dim in (-1, 1, None) and math.prod(self.shape[1:]) == 1:
                self.output = "softmax"
            case nn.ReLU() | nn.LeakyReLU() | nn.Tanh() | nn.Sigmoid():
                self._activate(activation(module))
            case _:
                raise OptionError(f"C code can be made of {COVERED}")

    # --------------------------------------------------------------------------------------------------- the parts

    def _push(self, step: Step) -> None:
        if min(step.out) < 1:
            raise OptionError(f"inputs of shape {self.shape} are too small for it")
        self.steps.append(step)
        self.shape, self.kept, self.flat = step.out, math.prod(step.out), isinstance(step, Conv) and step.covers

    def _map(self) -> Shape:
        if self.kept != math.prod(self.shape) or (self.flat and self.shape[1:] != (1, 1)):
            raise OptionError("it must follow maps, not rows of numbers")
        return self.shape

    def _view(self, shape: tuple[int, ...]) -> None:
        if math.prod(shape) != self.kept or (self.steps and self._shape(shape) != self.shape):
            raise OptionError(f"it must view inputs of {self.kept} numbers, before other layers: got {shape}")
        self.shape, self.flat = self._shape(shape), False
        self.first = self.shape if not self.steps else self.first

    def _linear(self, weight: Array, bias: Array) -> None:
        if weight.shape[1] != self.kept or not (self.flat or self.shape[1:] == (1, 1)):
            raise OptionError(f"it must read rows of {self.kept} numbers: got in_features {weight.shape[1]}")
        missing = math.prod(self.shape) - self.kept
        weight = np.concatenate([weight, np.zeros((len(weight), missing))], axis=1)
        self._push(Conv(self.shape, weight.reshape(-1, *self.shape), bias))

    def _convolution(self, module: nn.Conv1d | nn.Conv2d) -> None:
        shape = self._map()
        if module.padding_mode != "zeros" or shape[0] != module.in_channels:
            raise OptionError(f"it must read {shape[0]} channels, with padding_mode 'zeros'")
        weight = _value(module.weight)
        weight = weight[:, :, None] if weight.ndim == 3 else weight
        rows, columns = _pair(module.dilation)
        spread = np.zeros(
            (*weight.shape[:2], *(d * (k - 1) + 1 for d, k in zip((rows, columns), weight.shape[2:], strict=True)))
        )
        spread[:, :, ::rows, ::columns] = weight
        if isinstance(module.padding, str):
            totals = [0 if module.padding == "valid" else side - 1 for side in spread.shape[2:]]
            (top, bottom), (left, right) = ((n // 2, n - n // 2) for n in totals)
        else:
            top, left = (0, *module.padding) if len(module.padding) == 1 else module.padding
            bottom, right = top, left
        bias = _value(module.bias, module.out_channels)
        self._push(Conv(shape, spread, bias, _pair(module.stride), (left, right, top, bottom), module.groups))

    def _layer(self, layer: DendriticLayer) -> None:
        if layer.in_features != self.kept:
            raise OptionError(f"it must read rows of {self.kept} numbers: got in_features {layer.in_features}")
        convolutions = None if self.steps else as_convolutions(layer)
        if convolutions is None:
            self._trees(layer, None)
            return
        for part in convolutions:
            self.add(part)

    def _trees(self, layer: Any, patches: Any) -> None:
        act = activation(layer.activation)
        weight, bias = _value(layer.weight), _value(layer.bias, layer.forest.biases)
        shape = self.shape if patches is None else self._map()
        if patches is not None and patches.dilation != (1, 1):
            raise OptionError(f"dilation must be 1: got {patches.dilation}")
        self._push(Trees(shape, layer.forest, weight, bias, act, act if layer.root_activation else Act(), patches))
        self.flat = patches is None

    def _pool(self, module: Any) -> None:
        if getattr(module, "ceil_mode", False) or getattr(module, "dilation", 1) not in (1, (1, 1)):
            raise OptionError("pooling must have neither ceil_mode nor dilation")
        if getattr(module, "divisor_override", None):
            raise OptionError("pooling must have no divisor_override")
        flat = isinstance(module, nn.MaxPool1d | nn.AvgPool1d)

        def pair(value: Any, along: int) -> tuple[int, int]:
            one = value[0] if isinstance(value, tuple) and len(value) == 1 else value
            return (along, one) if flat else _pair(one)

        kind = "max" if isinstance(module, nn.MaxPool1d | nn.MaxPool2d) else "average"
        sizes = pair(module.kernel_size, 1), pair(module.stride, 1), pair(module.padding, 0)
        self._push(Pool(self._map(), kind, *sizes, getattr(module, "count_include_pad", True)))

    # ------------------------------------------------------------------------------------ scaling and activations

    def _affine(self, scale: Array, shift: Array) -> None:
        """y * scale + shift, per channel, or per number of a row."""
        per_number = self.flat and self.shape[1:] != (1, 1)
        if len(scale) != (self.kept if per_number else self.shape[0]):
            raise OptionError(f"it must have as many features as what it follows: got {len(scale)}")
        last = self.steps[-1] if self.steps else None
        if isinstance(last, Conv) and last.act == Act() and not per_number:
            weight = last.weight * scale[:, None, None, None]
            self.steps[-1] = replace(last, weight=weight, bias=last.bias * scale + shift)
            return
        missing = math.prod(self.shape) - self.kept if per_number else 0
        scale, shift = np.append(scale, np.ones(missing)), np.append(shift, np.zeros(missing))
        if not per_number:
            kept, flat = self.kept, self.flat
            self._push(Conv(self.shape, scale.reshape(-1, 1, 1, 1), shift, groups=self.shape[0], out=self.shape))
            self.kept, self.flat = kept, flat
            return
        order = np.arange(len(scale)).reshape(self.shape).transpose(1, 2, 0).ravel()  # channels are last in memory
        step = Conv(
            (len(scale), 1, 1), scale[order].reshape(-1, 1, 1, 1), shift[order], groups=len(scale), out=self.shape
        )
        self.steps.append(step)

    def _activate(self, act: Act) -> None:
        index = len(self.steps) - 1
        if index >= 0 and isinstance(pool := self.steps[index], Pool) and pool.kind == "max":
            index -= 1  # an activation that does not fall can be applied first
        last = self.steps[index] if index >= 0 else None
        if isinstance(last, Conv) and last.act == Act():
            self.steps[index] = replace(last, act=act)
        elif isinstance(last, Trees) and last.root == Act():
            self.steps[index] = replace(last, root=act)
        else:
            channels = self.shape[0]
            kept, flat = self.kept, self.flat
            self._push(Conv(self.shape, np.ones((channels, 1, 1, 1)), np.zeros(channels), groups=channels, act=act))
            self.kept, self.flat = kept, flat

    # --------------------------------------------------------------------------------------------------- the whole

    def network(self) -> Network:
        """The network of these steps."""
        steps = _folded(self.steps)
        if not steps:
            raise OptionError("the model must have a layer with weights: got none")
        if self.kept != math.prod(self.shape):  # of trees at the end, only the first
            identity = np.eye(math.prod(self.shape))[: self.kept]
            steps.append(Conv(self.shape, identity.reshape(-1, *self.shape), np.zeros(self.kept)))
        last = steps[-1]
        if self.output == "none" and isinstance(last, Conv) and last.act.kind == "sigmoid" and math.prod(last.out) == 1:
            steps[-1], self.output = replace(last, act=Act()), "sigmoid"
        if isinstance(last, Trees) and last.root.kind == "sigmoid" and math.prod(last.out) == 1:
            steps[-1], self.output = replace(last, root=Act()), "sigmoid"
        return Network(self.first, tuple(steps), self.output)

    def estimator(self, module: Any) -> Network:
        """The network of an estimator, between the scales of its inputs and outputs."""
        if module.probabilities:
            if math.prod(self.shape) == 1:  # a logit of the second class, that of the first being 0
                self._linear(np.array([[0.0], [1.0]]), np.zeros(2))
            self.output = "softmax"
        else:
            scale, shift = (_value(each).reshape(-1) for each in (module.scale, module.shift))
            self._affine(np.resize(scale, self.shape[0]), np.resize(shift, self.shape[0]))
        scaled = replace(self.network(), mean=_value(module.mean), deviation=_value(module.deviation), clip=CLIP)
        return replace(scaled, classifies=bool(module.probabilities))


def _folded(steps: list[Step]) -> list[Step]:
    """Steps without those that only scale and shift, where the weights of the next step can take that over."""
    out: list[Step] = []
    for step in steps:
        norm = out[-1] if out else None
        if not (
            isinstance(norm, Conv) and norm.is_elementwise and norm.act == Act() and isinstance(step, Conv | Trees)
        ):
            out.append(step)
            continue
        channels, rows, columns = norm.out
        if norm.shape == norm.out:  # one factor per channel
            scale, shift = (np.broadcast_to(v.reshape(-1, 1, 1), norm.out) for v in (norm.weight, norm.bias))
        else:
            scale, shift = (v.reshape(rows, columns, channels).transpose(2, 0, 1) for v in (norm.weight, norm.bias))
        folded = _into(step, scale, shift, norm.shape == norm.out)
        if folded is None:
            out.append(step)
        else:
            out[-1] = folded
    return out


def _into(step: Conv | Trees, scale: Array, shift: Array, per_channel: bool) -> Step | None:
    """A step that scales and shifts its inputs first; None if its weights cannot do that."""
    if isinstance(step, Trees):
        f, size = step.forest, step.forest.in_features
        if f.template is not None or step.patches is not None:
            return None
        at, add = f.synapse_edges, np.zeros(f.edges)
        add[at] = step.weight[at] * shift.reshape(-1)[:size][f.source[at]]
        weight = step.weight.copy()
        weight[at] *= scale.reshape(-1)[:size][f.source[at]]
        return replace(step, weight=weight, bias=step.bias + np.add.reduceat(add, f.offsets[:-1]))
    if step.covers:
        moved = (step.weight * shift).sum(axis=(1, 2, 3))
        return replace(step, weight=step.weight * scale, bias=step.bias + moved)
    if per_channel and step.groups == 1 and not any(step.padding):
        moved = (step.weight * shift[:, :1, :1]).sum(axis=(1, 2, 3))
        return replace(step, weight=step.weight * scale[:, :1, :1], bias=step.bias + moved)
    return None
