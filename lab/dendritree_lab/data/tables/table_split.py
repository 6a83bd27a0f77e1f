"""A table as a split: rows divided into parts, with columns learned from the training rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from dendritree.errors import OptionError
from dendritree.training.examples import Examples, cut

from ..arrays import how_cut
from ..labels import Labels
from ..split import DataSplit
from .encoding import TableEncoding
from .reading import check_table
from .target import read_target

PARTS = 3


def split_table(frame: Any, target: Any, *, seed: int = 0, name: str = "") -> DataSplit:
    """DataSplit the rows of a data frame that have a target, with a fifth for validation and a fifth for the test.

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
    found = read_target(frame, target, per_class=PARTS)
    inputs = frame.drop(columns=[found.name]).iloc[found.rows].reset_index(drop=True)
    if found.task == "classification":
        values, codes = np.unique(found.y, return_inverse=True)
        labels = Labels(codes.astype(np.int64), tuple(map(str, values.tolist())))
    else:
        labels = Labels(found.y.astype(np.float32))
    groups = labels.y if labels.classes else np.zeros(len(inputs), np.int64)
    places = cut(groups, seed=seed)
    encoding = TableEncoding.learn(inputs.iloc[places[0]])
    encoded = [encoding.encode(inputs.iloc[rows]) for rows in places]
    examples = [
        Examples(torch.from_numpy(part.x.astype(np.float32)), torch.from_numpy(labels.y[rows]))
        for part, rows in zip(encoded, places, strict=True)
    ]
    left_out = (f"column {column!r} {why}: left out" for column, why in encoding.left_out)
    unknown = (notice for part in encoded for notice in part.notices("what is not in the training rows"))
    return DataSplit(
        *examples,
        features=tuple(encoding.features),
        classes=labels.classes,
        name=name,
        notes=(how_cut([len(part) for part in examples], ("val", "test"), seed), *found.notices, *left_out, *unknown),
    )
