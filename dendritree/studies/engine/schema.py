"""The tables of a run's SQLite file, and trial records as their rows.

Three things SQLite does to floats decide the types here. NaN is written as NULL: so a NULL in a curve means NaN, and
in columns that may be empty NaN is the text 'nan'. A column declared REAL keeps whole numbers as integers and loses
the sign of -0.0: so floats go to columns without a type, which keep the double as it is. And float32 is not a type it
takes: so everything is made a plain float first.
"""

from __future__ import annotations

import json
import math
import operator
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ...errors import DendritreeError, OptionError
from ...storage.models import decode_argument, encode_argument
from .records import CURVES, Row, TrialRecord

__all__ = ["APPLICATION_ID", "FORMAT_VERSION", "SCHEMA", "TrialKey", "check_record", "insert_trial", "read_records"]

APPLICATION_ID = 0x64656E64  # "dend": how a run is told from any other SQLite file
FORMAT_VERSION = 1

SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT_VERSION};
BEGIN;
CREATE TABLE run (config TEXT NOT NULL, created TEXT NOT NULL);
CREATE TABLE environment (
    id INTEGER PRIMARY KEY, machine TEXT NOT NULL,
    dendritree TEXT NOT NULL, torch TEXT NOT NULL, numpy TEXT NOT NULL, python TEXT NOT NULL,
    cpu TEXT NOT NULL, cores INTEGER NOT NULL, ram INTEGER NOT NULL, "commit" TEXT
);
CREATE TABLE trial (
    id INTEGER PRIMARY KEY,
    protocol TEXT NOT NULL, "table" TEXT NOT NULL, task TEXT NOT NULL, network TEXT NOT NULL,
    size INTEGER NOT NULL, dropout NOT NULL, iteration INTEGER NOT NULL,
    seed INTEGER NOT NULL, dataset TEXT NOT NULL, lr NOT NULL, parameters INTEGER NOT NULL, seconds NOT NULL,
    test_loss, test_acc, model_config TEXT NOT NULL,
    created TEXT NOT NULL, environment INTEGER NOT NULL REFERENCES environment (id),
    UNIQUE (protocol, "table", network, size, dropout, iteration)
);
CREATE TABLE epoch (
    trial INTEGER NOT NULL REFERENCES trial (id), epoch INTEGER NOT NULL,
    train_loss, val_loss, train_acc, val_acc,
    PRIMARY KEY (trial, epoch)
) WITHOUT ROWID;
CREATE TABLE weights (trial INTEGER PRIMARY KEY REFERENCES trial (id), safetensors BLOB NOT NULL);
-- What a trial of the row would have taken with the paper's masked matrices, measured on a few of its steps.
CREATE TABLE reference (
    "table" TEXT NOT NULL, task TEXT NOT NULL, network TEXT NOT NULL, size INTEGER NOT NULL, dropout NOT NULL,
    seconds NOT NULL, PRIMARY KEY ("table", network, size, dropout)
);
-- The authors' columns, without keeping the trial's own in each of its hundred epochs.
CREATE VIEW history AS
    SELECT epoch.trial AS trial, epoch.epoch AS epoch, train_loss, val_loss, train_acc, val_acc, iteration,
        CASE WHEN instr(network, 'mln') THEN size END AS branching,
        CASE WHEN NOT instr(network, 'mln') THEN size END AS mid_layer,
        dropout, dataset, network, lr
    FROM epoch JOIN trial ON trial.id = epoch.trial;
"""

KEY_COLUMNS = 'protocol, "table", network, size, dropout, iteration'
TRIAL_COLUMNS = (
    'id, protocol, "table", task, network, size, dropout, iteration, '
    "seed, dataset, lr, parameters, seconds, test_loss, test_acc, model_config"
)
FIXED_ORDER = f"{KEY_COLUMNS}, id"
"""Records are read in this order, whatever the order they came in."""


class TrialKey(NamedTuple):
    """What a trial is known by; two trials of one run never share it."""

    protocol: str
    table: str
    network: str
    size: int
    dropout: float
    iteration: int
    """The record's index, by the authors' name for it: `index` is a method of every tuple."""

    @classmethod
    def of(cls, record: TrialRecord) -> TrialKey:
        """The key of a record.

        >>> curves = {curve: [0.5] for curve in CURVES}
        >>> row = Row("multiclass-mlp", "multiclass", "mlp", 11, 0.0)
        >>> TrialKey.of(TrialRecord("paper", row, 3, 1, "mnist", 0.001, 11_395, 0.1, curves))
        TrialKey(protocol='paper', table='multiclass-mlp', network='mlp', size=11, dropout=0.0, iteration=3)
        """
        row = record.row
        # Adding 0.0 makes -0.0 the same key as 0.0, as they are the same dropout.
        return cls(record.protocol, row.table, row.network, int(row.size), float(row.dropout) + 0.0, int(record.index))

    def __str__(self) -> str:
        return f"{self.protocol}/{self.table} {self.network} {self.size} p={self.dropout:g} trial {self.iteration}"


def check_record(record: TrialRecord) -> None:
    """Refuse a record that the tables could not give back as it is."""
    key = TrialKey.of(record)
    if set(record.history) != set(CURVES):
        raise OptionError(f"a history must have the curves {', '.join(CURVES)}: {key} has {', '.join(record.history)}")
    lengths = {curve: len(record.history[curve]) for curve in CURVES}
    if len(set(lengths.values())) > 1 or not lengths["val_loss"]:
        raise OptionError(f"curves must have one value an epoch, at least one: {key} has {lengths}")
    if key.iteration < 0 or key.size < 0:
        raise OptionError(f"index and size must not be negative: got {key}")
    if not -(2**63) <= operator.index(record.seed) < 2**63:
        raise OptionError(f"seed must fit 64 bits with a sign: {key} has {record.seed}")
    if not math.isfinite(key.dropout):
        raise OptionError(f"dropout must be finite: got {key}")
    _config_text(record)


def insert_trial(connection: sqlite3.Connection, record: TrialRecord, *, environment: int, created: str) -> None:
    """Write a checked record, its history and its weights, inside the caller's transaction."""
    key, row = TrialKey.of(record), record.row
    tests = [_nan_as_text(value) for value in (record.test_loss, record.test_acc)]
    values = (
        *(key.protocol, key.table, row.task, key.network, key.size, key.dropout, key.iteration),
        *(operator.index(record.seed), record.dataset, _nan_as_text(record.lr), operator.index(record.parameters)),
        *(_nan_as_text(record.seconds), *tests, _config_text(record), created, environment),
    )
    columns = f"{TRIAL_COLUMNS.removeprefix('id, ')}, created, environment"
    marks = ", ".join("?" * len(values))
    trial = connection.execute(f"INSERT INTO trial ({columns}) VALUES ({marks})", values).lastrowid
    curves = [map(float, record.history[curve]) for curve in CURVES]
    epochs = ((trial, epoch, *point) for epoch, point in enumerate(zip(*curves, strict=True)))
    connection.executemany("INSERT INTO epoch VALUES (?, ?, ?, ?, ?, ?)", epochs)
    if record.weights is not None:
        connection.execute("INSERT INTO weights VALUES (?, ?)", (trial, record.weights))


def read_records(
    connection: sqlite3.Connection, where: str, values: Sequence[Any], *, with_weights: bool
) -> list[TrialRecord]:
    """The records of the trials that a condition on table `trial` picks, inside the caller's transaction."""
    histories: dict[int, list[tuple[float | None, ...]]] = {}
    epochs = f"""SELECT trial, train_loss, val_loss, train_acc, val_acc FROM epoch
        WHERE trial IN (SELECT id FROM trial WHERE {where}) ORDER BY trial, epoch"""
    for trial, *point in connection.execute(epochs, values):
        histories.setdefault(trial, []).append(tuple(point))
    weights = {}
    if with_weights:
        picked = f"SELECT trial, safetensors FROM weights WHERE trial IN (SELECT id FROM trial WHERE {where})"
        weights = dict(connection.execute(picked, values).fetchall())
    trials = connection.execute(f"SELECT {TRIAL_COLUMNS} FROM trial WHERE {where} ORDER BY {FIXED_ORDER}", values)
    return [_record(trial, histories[trial[0]], weights.get(trial[0])) for trial in trials]


def _record(trial: tuple[Any, ...], points: Iterable[tuple[float | None, ...]], weights: bytes | None) -> TrialRecord:
    _, protocol, table, task, network, size, dropout, index, seed, dataset, lr, parameters, *rest = trial
    seconds, test_loss, test_acc, model_config = rest
    return TrialRecord(
        protocol=protocol,
        row=Row(table, task, network, size, dropout),
        index=index,
        seed=seed,
        dataset=dataset,
        lr=float(lr),
        parameters=parameters,
        seconds=float(seconds),
        history={
            curve: [math.nan if value is None else value for value in values]
            for curve, values in zip(CURVES, zip(*points, strict=True), strict=True)
        },
        test_loss=None if test_loss is None else float(test_loss),
        test_acc=None if test_acc is None else float(test_acc),
        model_config={key: decode_argument(value) for key, value in json.loads(model_config).items()},
        weights=weights,
    )


def _nan_as_text(value: float | None) -> float | str | None:
    if value is None:
        return None
    return "nan" if math.isnan(value) else float(value)


def _config_text(record: TrialRecord) -> str:
    try:
        encoded = {key: encode_argument(key, value) for key, value in record.model_config.items()}
        return json.dumps(encoded, sort_keys=True, allow_nan=False)
    except DendritreeError:
        raise
    except (TypeError, ValueError) as error:
        raise OptionError(f"model_config must be plain values: {TrialKey.of(record)} has {error}") from None
