"""What the layers of all neurons share: checked arguments, inputs as rows, a state dict that holds a structure."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from .. import ops
from ..errors import DendritreeError, OptionError, ShapeError, check_int
from ..tree import Forest


class NeuronLayer(nn.Module):
    """A layer of neurons with the contract of `nn.Linear`, or of `nn.Conv2d`: its `SIZES`, then options.

    Besides parameters and buffers, its state dict may hold a structure: trees, a wiring, a list of synapses. The
    structure is saved as tensors but not registered as buffers: it is known before the weights are (meta device), is
    never cast, and DistributedDataParallel must not broadcast it at every step.
    """

    SIZES: ClassVar[tuple[str, ...]] = ("in_features", "out_features")
    """The constructor's first arguments, which are also attributes. A convolution has others."""
    in_features: int
    out_features: int

    def __init__(self, dtype: torch.dtype | None, **sizes: int) -> None:
        super().__init__()
        for name in self.SIZES:
            setattr(self, name, check_int(name, sizes[name]))
        if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
            raise OptionError(f"dtype must be a floating-point torch.dtype: got {dtype!r}")

    def _add_parameters(
        self, device: torch.device | str | None, dtype: torch.dtype | None, **shapes: Sequence[int] | None
    ) -> None:
        """Register uninitialized parameters of these shapes; None for a parameter that the layer does not have."""
        for name, shape in shapes.items():
            values = None if shape is None else nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
            self.register_parameter(name, values)

    def extra_repr(self) -> str:
        """The constructor's call, as `nn.Module.__repr__` shows it."""
        options = (f"{name}={value!r}" for name, value in self._options().items())
        return ", ".join([*(str(getattr(self, name)) for name in self.SIZES), *options])

    def _options(self) -> dict[str, Any]:
        """The arguments that `extra_repr` shows after the sizes."""
        return {}

    def _changed(self, **options: Any) -> dict[str, Any]:
        """The options whose values are not the constructor's defaults."""
        defaults: dict[str, Any] = {}
        for kind in reversed(type(self).__mro__[:-2]):  # without nn.Module and object
            defaults |= {p.name: p.default for p in inspect.signature(kind).parameters.values()}
        return {name: value for name, value in options.items() if value != defaults[name]}

    def _structure(self) -> dict[str, Tensor]:
        """Entries of the state dict that are neither parameters nor buffers."""
        return {}

    def _check_structure(self, state: Mapping[str, Any]) -> Callable[[], None] | None:
        """Check the structure in a state dict; return a function that adopts it once the weights are loaded."""
        return None

    def _follow_device(self) -> None:
        """Move everything that is derived from the structure to the device of the weights."""

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination.update({prefix + key: value for key, value in self._structure().items()})

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: Mapping[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Check the structure before any weight is loaded, and adopt it after all are."""
        own = {key.removeprefix(prefix): value for key, value in state_dict.items() if key.startswith(prefix)}
        try:
            adopt = self._check_structure(own)
        except DendritreeError as error:
            error_msgs.append(f"{prefix.rstrip('.') or type(self).__name__}: {error}")
            return  # weights of other trees must not be loaded
        for key in self._structure():
            if state_dict.pop(prefix + key, None) is None and strict:
                missing_keys.append(prefix + key)
        errors = len(error_msgs)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )
        if adopt is not None and len(error_msgs) == errors:
            adopt()
        self._follow_device()  # load_state_dict(assign=True) may have moved the weights


class PlannedLayer(NeuronLayer):
    """A layer whose trees are computed by a plan, which is kept on the device of the weights."""

    weight: nn.Parameter
    _plan: ops.Plan

    def _make_plan(self, forest: Forest) -> None:
        self._plan = ops.make_plan(forest, self.weight.device)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Follow `.to()`, `.cuda()`, `to_empty()`: rebuild the plan on the new device of the weights."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self._follow_device()
        return self

    def _follow_device(self) -> None:
        plan = vars(self).get("_plan")  # a layer may not have needed one yet
        if plan is not None and plan.device != self.weight.device:
            self._make_plan(plan.forest)


def index_of(index: npt.NDArray[np.integer[Any]], like: Tensor) -> Tensor:
    """A NumPy index as a tensor on the device of `like`."""
    return torch.tensor(index, device=like.device).long()  # a copy: a forest's arrays are read-only


def as_rows(x: Tensor, in_features: int, dtype: torch.dtype) -> Tensor:
    """An input with any leading dimensions as (samples, in_features), in the dtype of the weights.

    >>> as_rows(torch.zeros(2, 3, 4), 4, torch.float32).shape
    torch.Size([6, 4])
    """
    ops.check_dense(x)
    if x.dim() == 0 or x.shape[-1] != in_features:
        raise ShapeError(f"the last dimension of the input must be in_features {in_features}: got {tuple(x.shape)}")
    if x.dtype != dtype:
        if x.is_meta or not torch.is_autocast_enabled(x.device.type):
            raise OptionError(f"the input must have the dtype of the weights, {dtype}: got {x.dtype}")
        x = x.to(dtype)
    return x.flatten(0, -2) if x.dim() > 1 else x.unsqueeze(0)  # a row count would be a constant in an export
