"""A run as files for other programs: CSV or Parquet tables, and folders of models."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ...errors import DendritreeError, FormatError, check_one_of, import_extra
from ...files import whole_file
from ...models import create_model
from ...storage import save
from .database import Database
from .records import CURVES, TrialRecord

__all__ = ["export_models", "export_tables", "kept_model"]

KEY_ORDER = ", ".join(f'trial."{name}"' for name in ("protocol", "table", "network", "size", "dropout", "iteration"))
QUERIES = {
    "trials": f"""SELECT trial.id AS trial, protocol, "table", task, network, size, dropout, iteration, seed, dataset,
        lr, parameters, seconds, test_loss, test_acc, model_config, created,
        machine, cpu, cores, ram, dendritree, torch, numpy, python, "commit"
        FROM trial JOIN environment ON environment.id = trial.environment ORDER BY {KEY_ORDER}""",
    "history": f"SELECT history.* FROM history JOIN trial ON trial.id = history.trial ORDER BY {KEY_ORDER}, epoch",
}

Column = tuple[str, list[Any]]


def export_tables(database: Database, folder: Path, file_format: str) -> list[Path]:
    """Write the files that `QUERIES` names; each appears whole or not at all."""
    check_one_of("format", file_format, ["csv", "parquet"])
    write = _write_csv if file_format == "csv" else _parquet_writer()
    with database.transaction("DEFERRED") as connection:  # both tables of one moment
        tables = {}
        for name, query in QUERIES.items():
            cursor = connection.execute(query)
            tables[name] = [column for column, *_ in cursor.description], cursor.fetchall()
    paths = []
    for name, (names, rows) in tables.items():
        columns = [(column, [_value(column, row[i]) for row in rows]) for i, column in enumerate(names)]
        paths.append(folder / f"{name}.{file_format}")
        with whole_file(paths[-1], "an export") as scratch:
            write(scratch, columns)
    return paths


def export_models(records: Sequence[TrialRecord], folder: Path) -> list[Path]:
    """Save the model of each record that carries weights under `folder/protocol/table/`, named for its row."""
    paths = []
    for record in records:
        if record.weights is None:
            continue
        row, model = record.row, kept_model(record)
        parts = (record.protocol, row.table, f"{row.network}-{row.size}-p{row.dropout:g}")
        # Names come from a file, perhaps somebody else's: none may lead out of the folder.
        paths.append(folder.joinpath(*(re.sub(r"[^\w.-]|^\.+$", "_", part) for part in parts)))
        save(model, paths[-1])
    return paths


def kept_model(record: TrialRecord) -> nn.Module:
    """The model of a record that carries weights, in evaluation mode. Torch's random state is left as it was."""
    safetensors = import_extra("safetensors.torch", extra="save")
    row = record.row
    try:
        state = safetensors.load(record.weights)
        with torch.random.fork_rng(devices=[]):  # the first weights, drawn and thrown away, cost the user nothing
            model = create_model(row.network, **record.model_config)
        dtypes = {tensor.dtype for tensor in state.values() if tensor.dtype.is_floating_point}
        if len(dtypes) == 1:
            model.to(dtypes.pop())
        model.load_state_dict(state)
    except (DendritreeError, RuntimeError, TypeError, import_extra("safetensors", extra="save").SafetensorError) as e:
        raise FormatError(f"kept weights must fit their model: {row.table} {row.model} p={row.dropout} ({e})") from None
    return model.eval()


def _value(column: str, stored: Any) -> Any:
    """What a stored value stands for: the store keeps NaN as NULL in curves and as text elsewhere (schema.py)."""
    if stored == "nan" or (stored is None and column in CURVES):
        return math.nan
    return stored


def _write_csv(path: Path, columns: Sequence[Column]) -> None:
    """Empty for absent, `nan` for NaN, and as many digits as bring every float back."""
    rows: Iterable[tuple[Any, ...]] = zip(*(values for _, values in columns), strict=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([name for name, _ in columns])
        writer.writerows(rows)


def _parquet_writer() -> Callable[[Path, Sequence[Column]], None]:
    arrow = import_extra("pyarrow", extra="parquet")
    parquet = import_extra("pyarrow.parquet", extra="parquet")
    types = {
        **dict.fromkeys((*CURVES, "dropout", "lr", "seconds", "test_loss", "test_acc"), arrow.float64()),
        **dict.fromkeys(("branching", "mid_layer"), arrow.int64()),
        "commit": arrow.string(),
    }

    def write(path: Path, columns: Sequence[Column]) -> None:
        # A column that is empty throughout must keep its type: readers join the files of several runs.
        arrays = {name: arrow.array(values, type=types.get(name)) for name, values in columns}
        parquet.write_table(arrow.table(arrays), path)

    return write
