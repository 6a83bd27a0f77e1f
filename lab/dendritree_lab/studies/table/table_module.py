"""A table model as one module: rows of numbers in, predictions or probabilities out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ...data.tables.columns import TableColumn


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
        found: Tensor = self.inner(x)
        return found

    def example(self, rows: int = 2) -> Tensor:
        """Some rows that this module accepts; in the last one, all numbers that may be missing are missing."""
        encoded: Tensor = self.inner.example(rows)
        if not self.raw:
            return encoded
        places = torch.argsort(self.order)[: self.in_features]  # where the numbers are among the encoded ones
        found = encoded[:, places].clone()
        found[-1, torch.tensor(self.may_miss, device=found.device)] = torch.nan
        return found
