"""Rows of a user's own table, as the network of an estimator or a table model reads them.

Scaling and encoding are functions of single columns, so the contribution of an input of the network is that of its
column.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from ..errors import ShapeError
from ..models.holders import network_of


@dataclass(frozen=True, eq=False)
class PreparedRows:
    """Rows as inputs of a network, and the meaning of its outputs."""

    network: nn.Module
    x: Tensor
    """Shape (rows, inputs of the network), in float64."""
    reference: Tensor
    """The reference, of the same shape."""
    names: tuple[str, ...]
    """Names of the columns."""
    column: npt.NDArray[np.int64]
    """The column that each input of the network comes from."""
    scale: Tensor
    """Outputs in the user's units are those of the network times `scale` plus `shift`."""
    shift: Tensor
    outputs: tuple[str, ...]
    """Names of the outputs, if they have any: classes, or the target."""


def inputs_of(model: Any, x: Any) -> Tensor:
    """Rows as the network of a model reads them."""
    if hasattr(model, "encoding"):
        return inputs_of(model.estimator, model.encoded(x))
    return torch.from_numpy(model.network_inputs(x)).to(next(model.network_.parameters()).device)


def prepare_rows(model: Any, x: Any, reference: Any) -> PreparedRows:
    """The rows to explain, and the reference that they are compared with."""
    network_of(model)  # raises for anything else
    if not hasattr(model, "encoding"):
        return _of_estimator(model, x, reference)
    start = None if reference is None else model.encoded(like(x, reference))
    rows = _of_estimator(model.estimator, model.encoded(x), start)
    columns = model.encoding.columns
    number = np.repeat(np.arange(len(columns)), [len(column.features) for column in columns])
    names = tuple(column.name for column in columns)
    return replace(rows, names=names, column=number, outputs=rows.outputs or (model.target,))


def _of_estimator(estimator: Any, x: Any, reference: Any) -> PreparedRows:
    inputs = inputs_of(estimator, x)
    start = torch.zeros_like(inputs)  # the mean of the training rows: inputs are standardized
    if reference is not None:
        start = inputs_of(estimator, like(x, reference)).expand_as(inputs)
    columns = estimator.input_columns
    names = getattr(estimator, "feature_names_in_", [f"x{number}" for number in range(estimator.n_features_in_)])
    scale, shift, outputs = estimator.output_units()
    scale, shift = (torch.from_numpy(each).to(inputs.device) for each in (scale, shift))
    named = tuple(map(str, names))
    return PreparedRows(estimator.network_, inputs, start, named, columns, scale, shift, tuple(outputs))


def like(x: Any, reference: Any) -> Any:
    """Convert a reference, one row or as many as `x`, to the type of `x`: a data frame with its columns, or an array.

    >>> like(np.zeros((3, 2)), [1.0, 2.0]).shape
    (1, 2)
    """
    if hasattr(reference, "to_frame"):  # a series: one row
        reference = reference.to_frame().T.infer_objects()
    shape = np.shape(reference) if np.ndim(reference) == 2 else (1, *np.shape(reference))
    if len(shape) != 2 or shape[1] < np.shape(x)[1] or shape[0] not in (1, len(x)):
        raise ShapeError(
            f"reference must be one row like those of x, of shape {tuple(np.shape(x))}, or as many: got "
            f"{reference if not np.shape(reference) else f'shape {np.shape(reference)}'}"
        )
    if hasattr(x, "columns"):
        if not hasattr(reference, "columns"):
            reference = type(x)(np.reshape(reference, shape), columns=x.columns)
        if absent := [name for name in x.columns if name not in reference.columns]:
            raise ShapeError(f"reference must have the columns of the rows: it lacks {absent[0]!r}")
        return reference[list(x.columns)]
    return np.reshape(np.asarray(reference), shape)
