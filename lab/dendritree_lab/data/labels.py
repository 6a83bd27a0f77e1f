"""The meaning of y: named classes, or a quantity; and checks for labels that cannot be learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dendritree.errors import OptionError, ShapeError

FEW_NUMBERS = 10
"""Integers stored as floats, or in a column of a table, are classes if they have at most this many distinct values."""


@dataclass(frozen=True)
class Labels:
    """Class numbers from 0 (int64) with the names of the classes; or quantities (float32), without names."""

    y: NDArray[Any]
    classes: tuple[str, ...] = ()


def read_labels(y: NDArray[Any], names: Sequence[str] = ()) -> Labels:
    """Decide what labels mean: strings, booleans and integers are classes, other floats a quantity.

    Args:
        y: one label per example.
        names: names of the classes, if y numbers them from 0; by default the labels themselves.

    >>> read_labels(np.array(["dog", "cat", "dog"]))
    Labels(y=array([1, 0, 1]), classes=('cat', 'dog'))
    >>> read_labels(np.array([0.5, 1.25])).classes
    ()
    """
    y = y.reshape(len(y)) if y.ndim == 2 and y.shape[1] == 1 else y
    if y.ndim != 1:
        raise ShapeError(f"y must be one label for each example (argmax(1) of one-hot rows): got shape {y.shape}")
    if y.dtype == object and all(isinstance(label, str) for label in y):
        y = y.astype(str)
    if y.dtype.kind not in "biufU":
        raise OptionError(f"y must be numbers or strings: got {y.dtype}")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        row = int(np.flatnonzero(~np.isfinite(y))[0])
        raise OptionError(f"y must be finite: got {y[row]} for example {row}")
    if names:
        bad = y if y.dtype.kind == "U" else y[(y != np.round(y)) | (y < 0) | (y >= len(names))]
        if len(bad):
            raise OptionError(f"y must number the {len(names)} classes from 0 to {len(names) - 1}: got {bad[0]}")
        return Labels(y.astype(np.int64), tuple(map(str, names)))
    if y.dtype.kind == "f":
        values = np.unique(y)
        if len(values) > FEW_NUMBERS or not (values == np.round(values)).all():
            return Labels(y.astype(np.float32))
        y = y.astype(np.int64)
    values, codes = np.unique(y, return_inverse=True)
    return Labels(codes.astype(np.int64), tuple(map(str, values.tolist())))


def check_labels(labels: Labels, *, least: int, trained: NDArray[Any]) -> None:
    """Raise for labels that cannot be learned: a single class or value, or classes with too few examples.

    Args:
        labels: labels of all examples.
        least: how many examples each class must have, one for each part that is split off.
        trained: labels of the examples that parts are split off from.
    """
    if not labels.classes:
        if len(np.unique(trained)) < 2:
            raise OptionError(f"y must have different values: it is {trained[0]:g} in every example")
        return
    if len(labels.classes) < 2:
        raise OptionError(f"there must be two classes or more: all examples are {labels.classes[0]!r}")
    counts = np.bincount(trained, minlength=len(labels.classes))
    few = np.flatnonzero(counts < least)
    if len(few):
        shown = ", ".join(f"{labels.classes[number]!r} has {counts[number]}" for number in few[:3])
        hint = "; a quantity must be given as floats" if len(few) > len(labels.classes) // 2 else ""
        rule = f"each class must have at least {least} example{'s' * (least > 1)} to train, validate and test with"
        raise OptionError(f"{rule}: {shown}{', ...' * (len(few) > 3)}{hint}")
