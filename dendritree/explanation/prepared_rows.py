"""Rows of a user's own table, as the network of an estimator, a pipeline or a table model reads them.

Scaling and encoding are functions of single columns, so the contribution of an input of the network is that of its
column. The steps of a pipeline may be anything, so this is tested on the given rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from ..errors import OptionError, ShapeError
from ..models.holders import held_by, network_of

Floats = npt.NDArray[np.float64]
CLOSE = 1e-9
"""Relative tolerance: results for equal numbers may differ in the last digits with their position in an array."""


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
    if hasattr(model, "steps"):
        x = _transformed(model, x)
    elif hasattr(model, "encoding"):
        x = model.encoded(x)
    held = held_by(model)
    if held is not None:
        return inputs_of(held, x)
    return torch.from_numpy(model.network_inputs(x)).to(next(model.network_.parameters()).device)


def prepare_rows(model: Any, x: Any, reference: Any) -> PreparedRows:
    """The rows to explain, and the reference that they are compared with."""
    network_of(model)  # raises for anything else
    if hasattr(model, "steps"):
        return _of_pipeline(model, x, reference)
    if hasattr(model, "encoding"):
        start = None if reference is None else model.encoded(like(x, reference))
        rows = prepare_rows(model.estimator, model.encoded(x), start)
        columns = model.encoding.columns
        number = np.repeat(np.arange(len(columns)), [len(column.features) for column in columns])
        names = tuple(column.name for column in columns)
        return replace(rows, names=names, column=number, outputs=rows.outputs or (model.target,))
    held = held_by(model)
    return _of_estimator(model, x, reference) if held is None else prepare_rows(held, x, reference)


def _of_estimator(estimator: Any, x: Any, reference: Any) -> PreparedRows:
    inputs = inputs_of(estimator, x)
    start = torch.zeros_like(inputs)  # the mean of the training rows: inputs are standardized
    if reference is not None:
        start = inputs_of(estimator, like(x, reference)).expand_as(inputs)
    columns = np.arange(inputs.shape[1])
    names = getattr(estimator, "feature_names_in_", [f"x{number}" for number in columns])
    scale, shift, outputs = estimator.output_units()
    scale, shift = (torch.from_numpy(each).to(inputs.device) for each in (scale, shift))
    named = tuple(map(str, names))
    return PreparedRows(estimator.network_, inputs, start, named, columns, scale, shift, tuple(outputs))


# ------------------------------------------------------------------------------------------------------------ pipelines


def _transformed(pipeline: Any, x: Any) -> Any:
    """Rows transformed by all steps but the last."""
    transformed = pipeline[:-1].transform(x) if len(pipeline.steps) > 1 else x
    return transformed.toarray() if hasattr(transformed, "toarray") else transformed


def _of_pipeline(pipeline: Any, x: Any, reference: Any) -> PreparedRows:
    last = pipeline.steps[-1][1]
    if all(step in (None, "passthrough") for _, step in pipeline.steps[:-1]):
        return prepare_rows(last, x, reference)
    if reference is None:
        raise OptionError("a pipeline needs a reference row to be explained, such as reference=X[:1]: got none")
    start = like(x, reference, repeat=True)
    rows = prepare_rows(last, _transformed(pipeline, x), _transformed(pipeline, start))
    names = tuple(map(str, x.columns)) if hasattr(x, "columns") else tuple(f"x{n}" for n in range(np.shape(x)[1]))
    column = _columns(lambda given: np.asarray(_transformed(pipeline, given), dtype=np.float64), x, start, names)
    return replace(rows, names=names, column=column[rows.column])


def _columns(transform: Callable[[Any], Floats], x: Any, start: Any, names: tuple[str, ...]) -> npt.NDArray[np.int64]:
    """The column that each transformed input comes from; raises if it comes from several.

    Each column in turn is taken from the rows, and the others from the reference. An input comes from a column if that
    column alone gives it the value that it has for the whole row.
    """
    at, base = transform(x), transform(start)
    column = np.full(at.shape[1], -1)
    mixed = np.zeros(at.shape[1], dtype=bool)
    for number in range(len(names)):
        moved = transform(_with_column(start, x, number))
        changed = ~_agree(moved, base)
        mixed |= changed & ((column >= 0) | ~_agree(moved, at))
        column[changed] = number
    mixed |= (column < 0) & ~_agree(at, base)
    if mixed.any():
        raise OptionError(
            "a pipeline must make each input of its last step from one column to be explained by columns: input "
            f"{np.flatnonzero(mixed)[0]} comes from several; explain(pipeline[-1], pipeline[:-1].transform(X)) "
            "explains the last step by its inputs"
        )
    return column.clip(0)  # inputs that never change contribute nothing


def _agree(one: Floats, other: Floats) -> npt.NDArray[np.bool_]:
    """Which inputs are equal in all rows."""
    return np.asarray(np.isclose(one, other, rtol=CLOSE, atol=CLOSE * 1e-3).all(axis=0))


def _with_column(start: Any, x: Any, number: int) -> Any:
    if hasattr(start, "isetitem"):
        given = start.copy()
        given.isetitem(number, x.iloc[:, number].set_axis(start.index))
        return given
    given = np.array(start)
    given[:, number] = np.asarray(x)[:, number]
    return given


def like(x: Any, reference: Any, *, repeat: bool = False) -> Any:
    """Convert a reference, one row or as many as `x`, to the type of `x`: a data frame with its columns, or an array.

    >>> like(np.zeros((3, 2)), [1.0, 2.0], repeat=True).shape
    (3, 2)
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
        rows: Any = reference[list(x.columns)]
    else:
        rows = np.reshape(np.asarray(reference), shape)
    if not repeat or len(rows) == len(x):
        return rows
    return rows.iloc[[0] * len(x)] if hasattr(rows, "iloc") else np.repeat(rows, len(x), axis=0)
