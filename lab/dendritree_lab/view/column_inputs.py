"""The columns of a table on the page: a slider for every number and date, a select box for every category."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas
import torch
from torch import Tensor

from dendritree.errors import OptionError

from ..data.tables.cells import DAY
from ..data.tables.encoding import MOST, MOST_DAYS

MOST_CONTROLS = 60
"""Maximum number of columns with a control on the page; the others keep their values from the selected row."""
REACH = 3.0
"""Standard deviations from the mean to either end of a slider, if the smallest and largest values are not stored."""
STEPS = 100
RARE, MISSING = "another, rare one", "missing"

CellValue = float | str | None
"""A number, a date in days since 1970, or a category; None for a missing cell."""


@dataclass(frozen=True)
class Control:
    """The control for one column on the page."""

    name: str
    kind: str
    """`number`, `category` or `date`."""
    value: CellValue
    """The initial value on the page."""
    low: float = 0.0
    high: float = 0.0
    step: float = 0.0
    """Step of the slider of a number or date."""
    options: tuple[tuple[str, CellValue], ...] = ()
    """The labels and cells of the options of a category."""
    missing: bool = False
    """Whether the model knows missing cells of this column."""


def slider(name: str, value: float, low: float, high: float, *, kind: str = "number", missing: bool = False) -> Control:
    """A control for numbers, from `low` to `high` in about a hundred round steps.

    >>> control = slider("rooms", 3.0, 0.7, 9.2)
    >>> control.low, control.high, control.step
    (0.7, 9.2, 0.1)
    """
    span = min(high - low, 1e300) or 1.0
    size = 10.0 ** math.floor(math.log10(span / STEPS))
    step = 1.0 if kind == "date" else next(size * by for by in (1, 2, 5, 10) if size * by * STEPS >= span * 0.8)
    digits = max(0, -math.floor(math.log10(step)))
    ends = (round(math.floor(low / step + 1e-9) * step, digits), round(math.ceil(high / step - 1e-9) * step, digits))
    return Control(name, kind, value, *ends, round(step, digits), missing=missing)


def finite(values: Tensor) -> Tensor:
    """Values whose differences are within the range of floats."""
    most = torch.finfo(torch.float64).max / 4
    return values.double().nan_to_num(0.0).clamp(-most, most)


class Columns:
    """The controls of a model of rows, and the model's input for their values.

    Args:
        controls: one for each column; without an encoding, one for each input.
        base: inputs (features,) of the initial row on the page.
        encoding: the encoding of a table; None if the columns are the inputs.

    >>> columns = Columns([slider("rooms", 3.0, 1, 9), slider("age", 10.0, 0, 90)], torch.tensor([3.0, 10.0]))
    >>> columns.to_input([4, 12.5])
    tensor([[ 4.0000, 12.5000]])
    """

    def __init__(self, controls: Sequence[Control], base: Tensor, encoding: Any = None) -> None:
        self.controls, self.base, self.encoding = list(controls), base, encoding

    @classmethod
    def of_inputs(cls, names: Sequence[str], base: Tensor, low: Tensor, high: Tensor) -> Columns:
        """A slider for each input."""
        names = list(names) or [f"feature {number}" for number in range(len(base))]
        values = zip(names, *(finite(each).tolist() for each in (base, low, high)), strict=True)
        return cls([slider(*each) for each in values], base)

    @classmethod
    def of_encoding(cls, encoding: Any, mean: Tensor, deviation: Tensor) -> Columns:
        """A control for each column of a table, from its encoding; sliders extend `REACH` standard deviations.

        Args:
            encoding: the `TableEncoding`.
            mean, deviation: mean and standard deviation of the encoded inputs in the training rows.
        """
        low, high = (finite(mean + side * REACH * deviation).tolist() for side in (-1, 1))
        controls, first = [], 0
        for column in encoding.columns:
            if column.kind == "category":
                options: list[tuple[str, CellValue]] = [(text, text) for text in column.categories]
                options += [(RARE, column.rare[0])] if column.rare else []
                options += [(MISSING, None)] if column.missing else []
                start = column.categories[0] if column.categories else None
                controls.append(Control(column.name, "category", start, options=tuple(options)))
            else:
                ends = low[first], high[first]
                control = slider(column.name, column.fill, *ends, kind=column.kind, missing=column.missing)
                controls.append(control)
            first += len(column.features)
        columns = cls(controls, mean, encoding)
        columns.base = columns.to_input([control.value for control in controls])[0]
        return columns

    def describe(self) -> list[dict[str, Any]]:
        """The controls, as JSON values, at most `MOST_CONTROLS`."""
        return [asdict(control) for control in self.controls[:MOST_CONTROLS]]

    def to_input(self, cells: Any) -> Tensor:
        """The model's input (1, features) for cells in the order of the controls; omitted cells have initial values.

        >>> Columns([slider("rooms", 3.0, 1, 9)], torch.zeros(1)).to_input(["four"])
        Traceback (most recent call last):
        dendritree.errors.OptionError: a cell of column 'rooms' must be a finite number: got 'four'
        """
        if not isinstance(cells, list) or len(cells) > len(self.controls):
            raise OptionError(f"a row must be a list of at most {len(self.controls)} cells: got {cells!r:.80}")
        cells = [*cells, *(control.value for control in self.controls[len(cells) :])]
        for control, cell in zip(self.controls, cells, strict=True):
            _check(control, cell)
        if self.encoding is None:
            x = self.base.clone()
            x[: len(cells)] = torch.tensor(cells, dtype=x.dtype)
            return x[None]
        row = {}
        for control, cell in zip(self.controls, cells, strict=True):
            if control.kind == "date":
                cell = np.datetime64("NaT" if cell is None else round(cell * 1000 * DAY), "ms")
            elif control.kind == "number":
                cell = math.nan if cell is None else cell
            row[control.name] = [cell]
        return torch.from_numpy(self.encoding.encode(pandas.DataFrame(row)).x)


def _check(control: Control, cell: Any) -> None:
    if control.kind == "category":
        known = [each for _, each in control.options]
        if cell not in known:
            raise OptionError(f"a cell of column {control.name!r:.60} must be one of {known!r:.200}: got {cell!r:.60}")
    elif cell is None and control.missing:
        return
    elif isinstance(cell, bool) or not isinstance(cell, int | float) or not abs(cell) <= MOST:
        raise OptionError(f"a cell of column {control.name!r:.60} must be a finite number: got {cell!r:.60}")
    elif control.kind == "date" and abs(cell) > MOST_DAYS:
        raise OptionError(
            f"a cell of column {control.name!r:.60} must be a date within {MOST_DAYS:g} days of 1970: got {cell!r:.60}"
        )
