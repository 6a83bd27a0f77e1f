"""A table as a split: rows divided into parts, with columns learned from the training rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from dendritree.errors import OptionError
from dendritree.training.examples import Examples, cut

from ..arrays import describe_parts
from ..split import DataSplit
from .encoding import TableEncoding
from .reading import check_table
from .target import read_target

PARTS = 3


def split_table(frame: Any, target: Any, *, seed: int = 0, name: str = "") -> DataSplit:
    """The rows of a data frame that have a target, with a fifth for validation and a fifth for the test.

    Args:
        frame: the table.
        target: the column to predict.
        seed: seed of the split.
        name: the name of the data in reports.

    >>> import pandas
    >>> rows = pandas.DataFrame({"rooms": range(40), "town": ["Delft", "Gouda"] * 20, "sold": ["no", "yes"] * 20})
    >>> split = split_table(rows.sample(frac=1, random_state=0), "sold")
    >>> split.features, split.classes, [len(part) for part in split.parts]
    (('rooms', 'town=Delft', 'town=Gouda'), ('no', 'yes'), [24, 8, 8])
    """
    frame = check_table(frame)
    if target is None:
        columns = ", ".join(map(str, frame.columns[:20]))
        raise OptionError(f"target must name the column of the table to predict: its columns are {columns}")
    goal = read_target(frame, target, per_class=PARTS)
    inputs = frame.drop(columns=[goal.name]).iloc[goal.rows].reset_index(drop=True)
    classes: tuple[str, ...] = ()
    if goal.task == "classification":
        values, groups = np.unique(goal.y, return_inverse=True)
        classes, y = tuple(map(str, values.tolist())), groups.astype(np.int64)
    else:
        groups, y = np.zeros(len(inputs), np.int64), goal.y.astype(np.float32)
    parts = cut(groups, seed=seed)
    encoding = TableEncoding.learn(inputs.iloc[parts[0]])
    encoded = [encoding.encode(inputs.iloc[rows]) for rows in parts]
    examples = [
        Examples(torch.from_numpy(part.x.astype(np.float32)), torch.from_numpy(y[rows]))
        for part, rows in zip(encoded, parts, strict=True)
    ]
    left_out = (f"column {column!r} {why}: left out" for column, why in encoding.left_out)
    unknown = (notice for part in encoded for notice in part.notices("what is not in the training rows"))
    sizes = describe_parts([len(part) for part in examples], ("val", "test"), seed)
    return DataSplit(
        *examples,
        features=tuple(encoding.features),
        classes=classes,
        name=name,
        notes=(sizes, *goal.notices, *left_out, *unknown),
    )
