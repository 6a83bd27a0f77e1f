"""Count parameters and multiply-adds, and find the control of the same size.

`count(model).total` is the sum of `p.numel()`: nothing hidden, nothing estimated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from .errors import OptionError, check_int, check_module
from .layers import DendriticLayer
from .levels import level_sizes
from .models import MLP, ConvMLN, ConvMLP, MLNBinaryClassifier, MLNClassifier
from .models.modes import evaluating
from .models.sizing import parameters_of


@dataclass(frozen=True)
class Count:
    """What a model costs."""

    weights: int
    biases: int
    multiply_adds: int | None
    """For one sample, or None where it depends on an input shape that was not given."""
    masked_weights: int
    """Weights the same model stores when its trees are the paper's masked dense matrices."""

    @property
    def total(self) -> int:
        """All parameters."""
        return self.weights + self.biases


def count(model: nn.Module, input_shape: tuple[int, ...] | None = None) -> Count:
    """Count a model's weights, biases and multiply-adds, each parameter once.

    Args:
        model: any module. Linear layers and convolutions are known to the multiply-add count; every other layer may
            state its own, for one sample and all of its parts, as an attribute `multiply_adds`.
        input_shape: shape of one sample, needed only for multiply-adds of models that do not state theirs.

    Example:
        >>> count(MLNClassifier(1024, 10, branching=2))
        Count(weights=20460, biases=10230, multiply_adds=20460, masked_weights=69905000)
    """
    check_module(model)
    weights = biases = masked_extra = 0
    for name, parameter in model.named_parameters():
        if name.rpartition(".")[2].startswith("bias"):  # nn.LSTM has bias_ih_l0
            biases += parameter.numel()
        else:
            weights += parameter.numel()
    for module in model.modules():
        if isinstance(module, DendriticLayer):
            masked_extra += module.forest.masked_weights - module.forest.edges
    return Count(weights, biases, _multiply_adds(model, input_shape), weights + masked_extra)


def _multiply_adds(model: nn.Module, input_shape: tuple[int, ...] | None) -> int | None:
    """Run one sample through the model and add up what its layers did with it."""
    shape = input_shape or stated_input_shape(model)
    parameter = next(model.parameters(), None)
    if shape is None or parameter is None or parameter.is_meta:
        return None
    total = 0

    def add(module: nn.Module, _inputs: tuple[Tensor, ...], output: Tensor) -> None:
        nonlocal total
        stated = getattr(module, "multiply_adds", None)
        if stated is not None:
            total += output.shape[:-1].numel() * stated
        elif isinstance(module, nn.Linear):
            total += output.numel() * module.in_features
        elif isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d):
            total += output.numel() * module.weight[0].numel()

    hooks = [module.register_forward_hook(add) for module in _counted(model)]
    try:
        with evaluating(model), torch.no_grad():
            model(torch.zeros(1, *shape, device=parameter.device, dtype=parameter.dtype))
    except (RuntimeError, ValueError, IndexError):
        if input_shape is not None:
            raise
        return None  # a shape read off the first layer need not be the model's
    finally:
        for hook in hooks:
            hook.remove()
    return total


def _counted(module: nn.Module) -> Iterator[nn.Module]:
    """A module and its parts, but for the parts of one that states its multiply-adds."""
    seen: set[nn.Module] = set()
    pending = [module]
    while pending:
        each = pending.pop()
        if each not in seen:
            seen.add(each)
            yield each
            if getattr(each, "multiply_adds", None) is None:
                pending += each.children()


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
        if isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d):
            return None
    return None


# --------------------------------------------------------------------------------------------------------- matching


def matched_mlp(model: nn.Module, *, min_hidden: int = 2, **options: Any) -> MLP | ConvMLP:
    """The control MLP whose true parameter count is nearest to that of a dendritic model.

    Args:
        model: a `DendriticLayer`, `MLNBinaryClassifier`, `MLNClassifier` or `ConvMLN`.
        min_hidden: fewest hidden units; with one, the MLP is no more than a perceptron.
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
    each = ins + 1 + outs
    hidden = max(min_hidden, min((total - outs) // each, (total - outs) // each + 1, key=_distance(total - outs, each)))
    if isinstance(model, ConvMLN):
        return ConvMLP(outs, hidden=hidden, **options)
    return MLP(ins, outs, hidden=hidden, **options)


def matched_mln(
    control: MLP | ConvMLP, *, ragged: bool = False, **options: Any
) -> MLNBinaryClassifier | MLNClassifier | ConvMLN:
    """The paper's dendritic model whose true parameter count is nearest to that of a control.

    The branching factors tried are those that fit the inputs, or all of them with `ragged=True`.

    Example:
        >>> count(matched_mln(MLP(1024, 10, hidden=30))).total
        30690
    """
    head = control.head if isinstance(control, ConvMLP) else control
    if not isinstance(head, MLP):
        raise OptionError(f"matched_mln takes an MLP or a ConvMLP: got {type(control).__name__}")
    ins, outs = head.in_features, head.out_features
    total = parameters_of(head)
    bias = options.get("bias", True)
    sizes = {
        b: outs * (sum(s[:-1]) + (sum(s[1:]) if bias else 0))  # edges and nodes
        for b in range(2, max(ins, 2) + 1)
        if (s := _sizes(b, ins, ragged))
    }
    if not sizes:
        raise OptionError(f"in_features must be a power of some branching factor, or ragged=True: got {ins}")
    branching = min(sizes, key=lambda b: (abs(sizes[b] - total), b))
    if isinstance(control, ConvMLP):
        return ConvMLN(outs, branching=branching, ragged=ragged, **options)
    if outs == 1:
        return MLNBinaryClassifier(ins, branching=branching, ragged=ragged, **options)
    return MLNClassifier(ins, outs, branching=branching, ragged=ragged, **options)


def _distance(target: int, each: int) -> Any:
    return lambda hidden: (abs(hidden * each - target), hidden)


def _sizes(branching: int, fan_in: int, ragged: bool) -> list[int] | None:
    """Level sizes, or None where the branching does not fit: `fan_in` of 2 ... 2**31 asked many times over."""
    if not ragged:
        power = branching
        while power < fan_in:
            power *= branching
        if power != fan_in:
            return None
    return level_sizes(branching, fan_in=fan_in, ragged=ragged)


def _dendritic_layer(model: nn.Module) -> DendriticLayer:
    if isinstance(model, DendriticLayer):
        return model
    head = model.head if isinstance(model, ConvMLN) else model
    if isinstance(head, MLNBinaryClassifier | MLNClassifier):
        return head.layer
    raise OptionError(
        f"matched_mlp takes a DendriticLayer, MLNBinaryClassifier, MLNClassifier or ConvMLN: got {type(model).__name__}"
    )
