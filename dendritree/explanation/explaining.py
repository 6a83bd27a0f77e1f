"""`explain`: a layer, a network, or anything that holds one, on inputs as the user has them."""

from __future__ import annotations

from typing import Any, overload

import torch
from torch import Tensor, nn

from ..errors import ShapeError
from ..layers import DendriticLayer
from ..models.chain import chain_of, run_chain, split_shape
from .chains import explain_chain, explain_layer, in_float64
from .contributions import Explanation, ModelExplanation, index_of
from .rows import Rows, rows_of


@overload
def explain(model: DendriticLayer, x: Tensor, reference: float | Tensor | None = None) -> Explanation: ...
@overload
def explain(model: nn.Module, x: Tensor, reference: float | Tensor | None = None) -> Explanation | ModelExplanation: ...
@overload
def explain(model: Any, x: Any, reference: Any = None) -> Any: ...
@torch.no_grad()
def explain(model: Any, x: Any, reference: Any = None) -> Explanation | ModelExplanation:
    """Take the outputs of a layer or a model apart: contributions of inputs, synapses and dendrites, and a baseline.

    The model is taken in evaluation mode, and left as it is. Anything whose contributions would not add up to its
    output raises an error.

    Args:
        model: a `DendriticLayer`; an `nn.Sequential` of dendritic and linear layers, norms, `nn.Flatten`, dropout and
            activations; or a model that is a `Chain` of these, as `MLNClassifier`, `DendriticNetwork`, `DenseNetwork`,
            `MLP` and `Perceptrons` are. Subclasses with a forward of their own and
            modules with forward hooks are rejected. Or what holds a network: a fitted `DendriticClassifier` or
            `DendriticRegressor`, a pipeline that ends in one, a model of a table. These are explained by column, in
            the units of the target or, for classes, in log-odds.
        x: inputs, shape (..., in_features), or (batch, ...) with `nn.Flatten`; raw rows, as for `predict`, if the model
            holds a network.
        reference: the input to compare with: a number, or a tensor that broadcasts to `x`, such as the mean input; by
            default 0. A row, or as many as `x` has, if the model holds a network; by default the mean training row,
            but for a pipeline with steps before its last.

    Example:
        >>> layer = DendriticLayer(16, 2, branching=[4, 2], wiring="partition", activation="tanh")
        >>> found = explain(layer, torch.randn(5, 16))
        >>> found.synapses.shape, found.dendrites.shape, found.inputs.shape
        (torch.Size([5, 16]), torch.Size([5, 6]), torch.Size([5, 2, 16]))
        >>> found.check() < 1e-8
        True
    """
    if not isinstance(model, nn.Module):
        return _explain_rows(rows_of(model, x, reference))
    steps = chain_of(in_float64(model))
    if not isinstance(x, Tensor) or x.dim() == 0:
        raise ShapeError(f"x must be a tensor of shape (..., in_features): got {x!r:.60}")
    leading, features = split_shape(steps, x)
    at = x.double().reshape(leading.numel(), features.numel())  # -1 is not defined for an empty batch
    start = 0.0 if reference is None else reference
    try:
        base = torch.as_tensor(start, device=x.device).double().expand_as(x).reshape(at.shape)
    except (RuntimeError, TypeError, ValueError):
        got = tuple(reference.shape) if isinstance(reference, Tensor) else repr(reference)
        raise ShapeError(f"reference must be a number or broadcast to x of shape {tuple(x.shape)}: got {got}") from None
    if isinstance(model, DendriticLayer):
        return explain_layer(steps[0], at, base, leading)  # type: ignore[arg-type]
    pairs = list(zip(run_chain(steps, at), run_chain(steps, base), strict=True))
    return explain_chain(steps, pairs, leading, features)


def _explain_rows(rows: Rows) -> ModelExplanation:
    """The explanation of a network, with the inputs of a column as one and outputs in the user's units."""
    steps = chain_of(in_float64(rows.network))
    pairs = list(zip(run_chain(steps, rows.x), run_chain(steps, rows.reference), strict=True))
    found = explain_chain(steps, pairs, rows.x.shape[:1], rows.x.shape[1:])
    by_column = found.inputs.new_zeros(*found.inputs.shape[:-1], len(rows.names))
    by_column.index_add_(-1, index_of(rows.column, by_column), found.inputs)
    return ModelExplanation(
        found.output * rows.scale + rows.shift,
        found.baseline * rows.scale + rows.shift,
        by_column * rows.scale[:, None],
        found.layers,
        tuple(effect * rows.scale[:, None] for effect in found.effects),
        rows.names,
        rows.outputs,
    )
