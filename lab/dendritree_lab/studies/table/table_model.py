"""A model for a user's own table: an estimator, the columns it reads, and the description of both."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dendritree.errors import FormatError, OptionError, check_one_of
from dendritree.storage import folders

from ...data.tables.cells import as_numbers, as_text
from ...data.tables.encoding import TableColumn, TableEncoding
from ...data.tables.reading import check_table
from ...data.tables.target import TASKS
from ...report.layout import four_digits

TABLE_FORMAT = "dendritree-table"
"""The format of a table model's folder, which pyproject.toml registers with the library (`dendritree.formats`)."""


class UnknownCellsWarning(UserWarning):
    """New rows have cells that are unknown to the model; they are treated as missing."""


@dataclass(frozen=True)
class TableModel:
    """A fitted estimator and the columns it reads."""

    estimator: Any
    encoding: TableEncoding
    target: str
    task: str
    folder_format: ClassVar[str] = TABLE_FORMAT

    def predict(self, frame: Any, *, strict: bool = False) -> Any:
        """The rows with a column `prediction` (see `prediction_name`) and, for classes, their probabilities.

        Unknown cells, such as categories that the model has not seen, count as missing, with one `UnknownCellsWarning`
        per column.

        Args:
            frame: rows with all columns that the model reads.
            strict: raise an error for unknown cells.
        """
        x, name, table = self.encoded(frame, strict=strict), self.prediction_name, check_table(frame)
        classes = self.estimator.classes_ if self.task == "classification" else np.empty(0)
        names = [f"probability {each}" for each in classes]
        taken = [each for each in (name, *names) if each in table.columns]
        if taken:
            raise OptionError(f"the table must not have a column {taken[0]!r}: predictions go there")
        rows, predicted = len(frame), frame.copy()  # scikit-learn rejects an empty table
        if self.task != "classification":
            predicted[name] = self.estimator.predict(x) if rows else np.empty(0)
            return predicted
        probabilities = self.estimator.predict_proba(x) if rows else np.empty((0, len(names)))
        predicted[name] = classes[probabilities.argmax(1)]
        predicted[names] = probabilities.round(6)
        return predicted

    @property
    def prediction_name(self) -> str:
        """The column that `predict` adds: `prediction`, unless the training table has a column of this name."""
        return "prediction" if "prediction" not in self.encoding.schema.columns else f"predicted {self.target}"

    def encoded(self, frame: Any, *, strict: bool = False) -> NDArray[np.float64]:
        """Rows of a table as inputs of the estimator; warnings and errors as in `predict`."""
        encoded = self.encoding.encode(frame)
        notices = list(encoded.notices())
        if strict and notices:
            raise OptionError(f"strict prediction requires every cell to be known to the model: {notices[0]}")
        for notice in notices:
            warnings.warn(notice, UnknownCellsWarning, stacklevel=3)
        return encoded.x

    def as_module(self, *, probabilities: bool = True) -> TableModule:
        """A copy as one module, which takes rows of numbers as described in `TableModule`.

        Args:
            probabilities: whether to return class probabilities; otherwise log-odds.
        """
        classes = [str(each) for each in getattr(self.estimator, "classes_", ())]
        names = classes if probabilities or len(classes) > 2 else classes[1:]
        inner = self.estimator.as_module(probabilities=probabilities)
        return TableModule(inner, self.encoding.columns, names or [self.target])

    def evaluate(self, predicted: Any) -> str | None:
        """The quality of predictions as text, if their table also has the target; otherwise None."""
        predicted = check_table(predicted)
        if self.target not in predicted.columns:
            return None
        from sklearn.metrics import accuracy_score, root_mean_squared_error

        truth = self.encoding.schema.read(predicted, [self.target])[0][self.target]
        known, truth = predicted[truth.notna()], truth[truth.notna()]
        if not len(known):
            return None
        if self.task == "classification":
            labels = known[self.prediction_name].to_numpy(dtype=str)
            metric = f"accuracy {accuracy_score(as_text(truth).to_numpy(dtype=str), labels):.4f}"
        else:
            metric = f"RMSE {four_digits(root_mean_squared_error(as_numbers(truth), known[self.prediction_name]))}"
        rows = f"{len(known):,} of these rows" if len(known) < len(predicted) else f"these {len(known):,} rows"
        return f"{metric} on {rows}, which have {self.target!r}; too good if the model was trained on them"


class TableModule(nn.Module):
    """An estimator's module preceded by the encoding of a table's columns.

    If all columns are numeric, a row is one number per column, NaN if it is missing. With categories or dates, a row is
    the output of `TableModel.encoded`, and the encoding is left to the caller.

    Args:
        inner: the estimator as a module, which takes encoded rows.
        columns: the columns of the table, as the model reads them.
        outputs: names of the outputs.
    """

    fill: Tensor
    order: Tensor

    def __init__(self, inner: Any, columns: Sequence[TableColumn], outputs: Sequence[str]) -> None:
        super().__init__()
        self.inner = inner
        self.raw = all(column.kind == "number" for column in columns)
        """Whether rows are those of the table, not encoded."""
        encoded = [name for column in columns for name in column.features]
        self.inputs = [column.name for column in columns] if self.raw else encoded
        """Names of the numbers in a row."""
        self.outputs = list(outputs)
        self.in_features = len(self.inputs)
        self.may_miss = [column.missing for column in columns]
        order = [place for n, each in enumerate(columns) for place in ((n, len(columns) + n) if each.missing else (n,))]
        fill = torch.tensor([column.fill for column in columns], dtype=torch.float64)
        device = next(inner.parameters()).device
        self.register_buffer("fill", fill.to(device))
        self.register_buffer("order", torch.tensor(order, device=device))
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        """Predictions of shape (rows, 1), or probabilities of shape (rows, classes)."""
        if self.raw:
            absent = ~torch.isfinite(x)
            filled = torch.where(absent, self.fill, x)
            x = torch.cat([filled, absent.to(x.dtype)], dim=1)[:, self.order]  # numbers, then which are missing
        y: Tensor = self.inner(x)
        return y

    def example(self, rows: int = 2) -> Tensor:
        """Some rows that this module accepts; in the last one, all numbers that may be missing are missing."""
        encoded: Tensor = self.inner.example(rows)
        if not self.raw:
            return encoded
        places = torch.argsort(self.order)[: self.in_features]  # where the numbers are among the encoded ones
        rows_of_table = encoded[:, places].clone()
        rows_of_table[-1, torch.tensor(self.may_miss, device=encoded.device)] = torch.nan
        return rows_of_table


def describe(model: TableModel) -> folders.Description:
    """The target, the task and the columns of a model, and the description of its estimator."""
    estimator, tensors = folders.describe(model.estimator)
    return {"target": model.target, "task": model.task, **model.encoding.as_dict(), "estimator": estimator}, tensors


def rebuild(config: dict[str, Any], tensors: Mapping[str, Tensor], device: torch.device | str | None) -> TableModel:
    """The model of a description."""
    target, task = config.get("target"), check_one_of("task", config.get("task"), TASKS[1:])
    if not isinstance(target, str):
        raise FormatError(f"target of a table model must be a string: got {target!r:.60}")
    encoding = TableEncoding.from_dict(config)
    estimator = folders.rebuild(config.get("estimator"), tensors, folders.ESTIMATOR_FORMAT, device=device)
    if estimator.n_features_in_ != len(encoding.features):
        raise FormatError(
            f"columns must be the inputs of the estimator: got {len(encoding.features)} and {estimator.n_features_in_}"
        )
    if hasattr(estimator, "classes_") != (task == "classification"):
        raise FormatError(f"the estimator must be one for its task, {task}: got {type(estimator).__name__}")
    return TableModel(estimator, encoding, target, task)


def load_table_model(folder: str | os.PathLike[str], *, device: torch.device | str | None = None) -> TableModel:
    """Read a table model that `dendritree fit` or `dendritree.save` wrote; other folders raise `FormatError`."""
    if not Path(folder).is_dir():
        raise FormatError(f"a model must be a folder written by `dendritree fit`: {folder} does not exist")
    model: TableModel = folders.read_folder(folder, TABLE_FORMAT, device=device)
    return model
