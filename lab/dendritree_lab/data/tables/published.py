"""Data sets with named columns: Adult (census income) and California housing."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dendritree.errors import import_extra
from dendritree.training.examples import Examples, fixed_order

from ..split import DataSplit

ADULT_COLUMNS = [
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race",
    "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country",
]  # fmt: skip
ADULT_NUMERIC = {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}
DOLLARS = 100_000  # a house value of 1.0
FIFTH = 5


def split_adult(train_file: bytes, test_file: bytes) -> DataSplit:
    """Whether a person earned more than 50,000 dollars: y is 1 for yes.

    The first fifth of the official training file in `fixed_order` is for validation; the official test file is the test
    part. Numbers are standardized with the mean and sd of the training part. A category becomes a column of 0 and 1,
    named like `workclass=Private`; an unknown value, `?`, is a category too. Categories are those of both files,
    sorted, so that the columns do not depend on the split.
    """
    train_rows, test_rows = _adult_rows(train_file), _adult_rows(test_file)
    order = fixed_order(len(train_rows))
    validation = len(order) // FIFTH
    parts = {
        "train": [train_rows[i] for i in order[validation:]],
        "val": [train_rows[i] for i in order[:validation]],
        "test": test_rows,
    }
    features: list[str] = []
    columns: dict[str, list[NDArray[np.float64]]] = {part: [] for part in parts}
    for place, column in enumerate(ADULT_COLUMNS):
        if column in ADULT_NUMERIC:
            numbers = {part: np.array([float(row[place]) for row in rows]) for part, rows in parts.items()}
            mean, sd = numbers["train"].mean(), numbers["train"].std()
            features.append(column)
            for part, values in numbers.items():
                columns[part].append((values - mean)[:, None] / (sd or 1.0))
        else:
            categories = sorted({row[place] for row in [*train_rows, *test_rows]})
            code = {category: i for i, category in enumerate(categories)}
            features += [f"{column}={category}" for category in categories]
            for part, rows in parts.items():
                columns[part].append(np.eye(len(categories))[[code[row[place]] for row in rows]])
    examples = [
        Examples(
            torch.from_numpy(np.concatenate(columns[part], axis=1).astype(np.float32)),
            torch.tensor([int(row[-1] == ">50K") for row in rows]),
        )
        for part, rows in parts.items()
    ]
    return DataSplit(*examples, features=tuple(features))


def adult_frame(train_file: bytes, test_file: bytes) -> tuple[Any, Any]:
    """Both files as one frame of raw columns, and the targets `>50K` or `<=50K`. Unknown values are missing."""
    pandas = import_extra("pandas", extra="tables")
    rows = [*_adult_rows(train_file), *_adult_rows(test_file)]
    cells = pandas.DataFrame(rows, columns=[*ADULT_COLUMNS, "income"]).replace("?", None)
    kinds = {name: "float64" if name in ADULT_NUMERIC else "category" for name in ADULT_COLUMNS}
    return cells[ADULT_COLUMNS].astype(kinds), cells["income"].to_numpy(dtype=str)


def california_frame(content: bytes) -> tuple[Any, NDArray[np.float64]]:
    """The eight columns as in the file, and the median value of houses in units of 100,000 dollars."""
    pandas = import_extra("pandas", extra="tables")
    header, *lines = content.decode("ascii").splitlines()
    table = np.array([line.split(",") for line in lines], dtype=np.float64)
    return pandas.DataFrame(table[:, :-1], columns=header.split(",")[:-1]), table[:, -1] / DOLLARS


def _adult_rows(content: bytes) -> list[list[str]]:
    """Fields of each person. The test file begins with a comment (`|`), and its targets end in a period."""
    lines = content.decode("ascii").splitlines()
    return [line.rstrip(".").split(", ") for line in lines if line and not line.startswith("|")]


def split_california(content: bytes) -> DataSplit:
    """The median value of houses, in units of 100,000 dollars, from eight columns as in the file.

    In `fixed_order`, the first fifth of the districts is for validation, the second for testing, the rest for training.
    """
    header, *lines = content.decode("ascii").splitlines()
    table = np.array([line.split(",") for line in lines], dtype=np.float64)
    order = fixed_order(len(table))
    fifth = len(table) // FIFTH
    x = torch.from_numpy(table[order, :-1].astype(np.float32))
    y = torch.from_numpy((table[order, -1] / DOLLARS).astype(np.float32))
    parts = slice(2 * fifth, None), slice(0, fifth), slice(fifth, 2 * fifth)
    return DataSplit(*(Examples(x[part], y[part]) for part in parts), features=tuple(header.split(",")[:-1]))
