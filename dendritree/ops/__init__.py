"""Tree arithmetic on plain tensors: the one public op, and the only place that selects a backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..errors import DeviceError, OptionError, ShapeError, check_one_of, check_probability
from . import eager, fused, native, reference
from .dropout import draw_seed, synapse_scale
from .patches import PatchGrid
from .plan import Plan, make_plan

__all__ = ["BACKENDS", "PatchGrid", "Plan", "check_dense", "dendritic", "make_plan"]

BACKENDS = ("auto", "fused", "eager", "reference")
"""Accepted values of `backend`: `auto` picks the fastest backend that supports the call; any other name forces it."""


def dendritic(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    plan: Plan,
    activation: Callable[[Tensor], Tensor],
    *,
    root_activation: bool = True,
    dropout: float = 0.0,
    backend: str = "auto",
    patches: PatchGrid | None = None,
) -> Tensor:
    """Run inputs through a forest of dendritic trees.

    Args:
        x: inputs, shape (..., in_features); with `patches`, images (..., channels, height, width).
        weight: one per edge of the forest, with tied edges counted once: `forest.weights` values.
        bias: one per node of the forest, with tied nodes counted once: `forest.biases` values; or None.
        plan: the forest prepared for the device of `x`, from `make_plan`.
        activation: elementwise function applied at every node.
        root_activation: whether it is applied at the roots too.
        dropout: probability that a synapse is silenced, drawn per sample and synapse; the others are scaled up.
        backend: one of `BACKENDS`.
        patches: the patches of each image to run through the forest, which reads (channels, rows, columns) of a patch.

    Returns:
        The outputs of all neurons, shape (..., neurons), in the dtype of `weight`; with `patches`, images
        (..., neurons, height, width).

    Example:
        >>> from dendritree.tree import Forest
        >>> forest = Forest.grow(2, fan_in=4)
        >>> x, weight, bias = torch.ones(5, 4), torch.ones(forest.edges), torch.zeros(forest.nodes)
        >>> dendritic(x, weight, bias, make_plan(forest), torch.relu).flatten().tolist()
        [4.0, 4.0, 4.0, 4.0, 4.0]
    """
    check_dense(x)
    if backend not in BACKENDS:  # the checks are inlined because they run on every call
        check_one_of("backend", backend, BACKENDS)
    if dropout != 0.0:
        dropout = check_probability("dropout", dropout)
    forest = plan.forest
    if weight.dim() != 1 or weight.shape[0] != forest.weights:
        raise ShapeError(
            f"there must be one weight for each of {forest.weights} edges{_counted(plan)}: got {tuple(weight.shape)}"
        )
    if bias is not None and (bias.dim() != 1 or bias.shape[0] != forest.biases):
        raise ShapeError(
            f"there must be one bias for each of {forest.biases} nodes{_counted(plan)}: got {tuple(bias.shape)}"
        )
    if patches is not None:
        assert patches.features == forest.in_features
        patches.check(x)
    elif x.dim() == 0 or x.shape[-1] != forest.in_features:
        raise ShapeError(
            f"the last dimension of the input must be in_features {forest.in_features}: got {tuple(x.shape)}"
        )
    device = x.device
    if weight.device != device or (bias is not None and bias.device != device):
        others = weight.device if bias is None else f"{weight.device} and {bias.device}"
        raise DeviceError(
            f"all tensors must be on the same device: got the input on {device}, the parameters on {others}"
        )
    if not x.is_meta and torch.is_autocast_enabled(device.type):  # trees compute in the dtype of their weights
        with torch.autocast(device.type, enabled=False):
            return dendritic(
                x.to(weight.dtype),
                weight,
                bias,
                plan,
                activation,
                root_activation=root_activation,
                dropout=dropout,
                backend=backend,
                patches=patches,
            )
    if x.dtype != weight.dtype:
        raise OptionError(f"the input must have the dtype of the weights, {weight.dtype}: got {x.dtype}")
    if bias is not None and bias.dtype != weight.dtype:
        raise OptionError(f"the bias must have the dtype of the weights, {weight.dtype}: got {bias.dtype}")
    if plan.ties is not None:  # backends see untied edges and nodes; gradients of tied ones are summed in a fixed order
        weight = weight.index_select(0, plan.ties[0])
        bias = None if bias is None else bias.index_select(0, plan.ties[1])
    if backend in ("auto", "fused"):
        is_compiling = torch.compiler.is_compiling()
        reason = fused.obstacle(x, weight, activation, is_compiling)
        if reason is None:
            seed = draw_seed(x.device) if dropout else None
            run = fused.traced if is_compiling else fused.dendritic
            return run(x, weight, bias, plan, activation, root_activation, dropout, seed, patches)
        if backend == "fused":
            raise OptionError(f"backend 'fused' cannot do this: {reason}; 'auto' or 'eager' can")
        if reason == native.missing:
            native.warn_if_missing()
    rows, scale = x if patches is None else patches.copied(x), None
    if dropout:
        samples = rows.reshape(-1, forest.in_features).shape[0]
        scale = synapse_scale(draw_seed(x.device), samples, plan.pairs, dropout, x.dtype)
        scale = scale.reshape(*rows.shape[:-1], forest.synapses)
    if backend == "reference":
        y = reference.dendritic(rows, weight, bias, forest, activation, root_activation, scale)
    else:
        y = eager.dendritic(rows, weight, bias, plan.layout, activation, root_activation, scale)
    return y if patches is None else patches.arranged(y, x)


def check_dense(x: Any) -> None:
    """Reject an input that is not a dense tensor.

    >>> check_dense(torch.zeros(2, 3))
    """
    if not isinstance(x, Tensor) or x.layout is not torch.strided or x.is_nested:
        kind = f"{x.layout}{' (nested)' if x.is_nested else ''}" if isinstance(x, Tensor) else type(x).__name__
        raise OptionError(f"the input must be a dense torch.Tensor: got {kind}")


def _counted(plan: Plan) -> str:
    """A note for error messages on how the edges and nodes of a tied forest are counted."""
    return "" if plan.forest.template is None else ", tied ones counted once"
