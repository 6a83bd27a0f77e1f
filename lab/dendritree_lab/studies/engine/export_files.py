"""A run as files for other programs: CSV or Parquet tables, and folders of models."""

from __future__ import annotations

import csv
import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from dendritree.folders import files_together, reserved
from torch import nn

from dendritree.errors import FormatError, check_one_of, import_extra
from dendritree.models import create_model
from dendritree.storage import save

from .database import Database
from .schema import describe, number, read_trials
from .trial import CURVES, Trial

TRIALS = """SELECT trial.id AS trial, study, key, seed, parameters, seconds, config, created,
    machine, cpu, cores, ram, dendritree, torch, numpy, python, "commit"
    FROM trial JOIN environment ON environment.id = trial.environment"""
Table = dict[str, list[Any]]
"""The values of each column by its name."""


def export_tables(database: Database, folder: Path, file_format: str) -> list[Path]:
    """Write `trials` and `history`, with a column for each name in keys and scores. Both are replaced together."""
    check_one_of("format", file_format, ["csv", "parquet"])
    write = _write_csv if file_format == "csv" else _parquet_writer()
    with database.reading() as connection:
        trials, history = _tables(connection)
    tables = {f"trials.{file_format}": trials, f"history.{file_format}": history}
    with reserved(folder, "an export") as target, files_together(target, tables, "an export") as fresh:
        for name, table in tables.items():
            write(fresh / name, table)
    return [folder / name for name in tables]


def _tables(connection: sqlite3.Connection) -> tuple[Table, Table]:
    """All trials and all epochs, from one snapshot."""
    read_trials(connection, {}, with_weights=False)  # raises for cells of the wrong type
    cursor = connection.execute(TRIALS)
    names = [column for column, *_ in cursor.description]
    rows = [dict(zip(names, row, strict=True)) for row in cursor]
    scores = connection.execute("SELECT trial, name, value FROM score").fetchall()
    epochs = connection.execute(f"SELECT trial, epoch, {', '.join(CURVES)} FROM epoch").fetchall()
    keys = {row["trial"]: json.loads(row.pop("key")) for row in rows}
    rows.sort(key=lambda row: (row["study"], list(keys[row["trial"]].values())))
    of_key = list(dict.fromkeys(name for key in keys.values() for name in key))
    of_score = sorted({name for _, name, _ in scores})
    measured = {(trial, name): number(value) for trial, name, value in scores}
    trials: Table = {"trial": [row["trial"] for row in rows], "study": [row["study"] for row in rows]}
    ids = trials["trial"]
    column = {name: f"key_{name}" if name in (*names, "epoch") else name for name in of_key}  # `trial` of a comparison
    trials |= {column[name]: [keys[id_].get(name) for id_ in ids] for name in of_key}
    trials |= {name: [row[name] for row in rows] for name in ("seed", "parameters", "seconds")}
    trials |= {name: [measured.get((id_, name)) for id_ in ids] for name in of_score}
    trials |= {name: [row[name] for row in rows] for name in names[names.index("config") :]}
    place = {id_: number for number, id_ in enumerate(ids)}
    epochs.sort(key=lambda point: (place[point[0]], point[1]))
    history: Table = {"trial": [point[0] for point in epochs], "epoch": [point[1] for point in epochs]}
    history |= {curve: [number(point[2 + i]) for point in epochs] for i, curve in enumerate(CURVES)}
    history |= {column[name]: [keys[id_].get(name) for id_ in history["trial"]] for name in of_key}
    return trials, history


def export_models(trials: Iterable[Trial], folder: Path, name_of: Callable[[Trial], Sequence[str]]) -> list[Path]:
    """Save the model of each trial that has weights, in the format of `dendritree.load`; return the paths.

    Args:
        trials: read with their weights.
        folder: where to write.
        name_of: names the folders from `folder` to a trial's model.
    """
    paths = []
    for trial in trials:
        if trial.weights is not None:
            # Names come from a file, which may not be trusted: none may lead out of the folder.
            parts = (re.sub(r"[^\w.-]|^\.+$", "_", part) for part in name_of(trial))
            paths.append(folder.joinpath(*parts))
            save(kept_model(trial), paths[-1])
    return paths


def kept_model(trial: Trial) -> nn.Module:
    """The model of a trial that has weights, in evaluation mode. Torch's random state is left unchanged."""
    safetensors = import_extra("safetensors.torch", extra="save")
    try:
        state = safetensors.load(trial.weights)
        with torch.random.fork_rng(devices=[]):  # initial weights are drawn and discarded
            model = create_model(trial.config["network"], **trial.config["arguments"])
        dtypes = {tensor.dtype for tensor in state.values() if tensor.dtype.is_floating_point}
        if len(dtypes) == 1:
            model.to(dtypes.pop())
        model.load_state_dict(state)
    except Exception as error:  # the weights and arguments come from a file and may be anything
        reason = " ".join(str(error).split())
        raise FormatError(f"kept weights must fit their model: {describe(trial)} ({reason:.300})") from None
    return model.eval()


def _write_csv(path: Path, table: Table) -> None:
    """Write a CSV file: absent values are empty, NaN is `nan`, and floats have enough digits to round-trip."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))


def _parquet_writer() -> Callable[[Path, Table], None]:
    arrow = import_extra("pyarrow", extra="parquet")
    parquet = import_extra("pyarrow.parquet", extra="parquet")
    types = {**dict.fromkeys((*CURVES, "seconds", "test_loss", "test_acc"), arrow.float64()), "commit": arrow.string()}

    def write(path: Path, table: Table) -> None:
        # A completely empty column must keep its type: readers join the files of several runs.
        arrays = {name: arrow.array(values, type=types.get(name)) for name, values in table.items()}
        parquet.write_table(arrow.table(arrays), path)

    return write
