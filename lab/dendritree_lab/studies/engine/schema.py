"""The tables of a run's SQLite file, and trials as their rows.

Three properties of SQLite determine the types here. It stores NaN as NULL, so NULL among curves and scores means NaN.
A column declared REAL stores whole numbers as integers and loses the sign of -0.0, so floats go to columns without a
type, which store the double unchanged. And it does not accept float32, so everything is converted to float first.
"""

from __future__ import annotations

import json
import math
import operator
import sqlite3
from typing import Any

from dendritree.errors import DendritreeError, FormatError, OptionError, check_int
from dendritree.storage.models import decode_argument, encode_argument

from .trial import CURVES, Trial, key_text

APPLICATION_ID = 0x64656E64  # "dend": distinguishes a run from other SQLite files
FORMAT_VERSION = 2
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
    id INTEGER PRIMARY KEY, study TEXT NOT NULL, key TEXT NOT NULL,  -- named values, as JSON
    seed INTEGER NOT NULL, config TEXT NOT NULL, parameters INTEGER NOT NULL, seconds,
    created TEXT NOT NULL, environment INTEGER NOT NULL REFERENCES environment (id),
    UNIQUE (study, key)
);
CREATE TABLE epoch (
    trial INTEGER NOT NULL REFERENCES trial (id), epoch INTEGER NOT NULL,
    train_loss, val_loss, train_acc, val_acc,
    PRIMARY KEY (trial, epoch)
) WITHOUT ROWID;
CREATE TABLE score (
    trial INTEGER NOT NULL REFERENCES trial (id), name TEXT NOT NULL, value, PRIMARY KEY (trial, name)
) WITHOUT ROWID;
CREATE TABLE weights (trial INTEGER PRIMARY KEY REFERENCES trial (id), safetensors BLOB NOT NULL);
CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL);  -- what a study keeps besides its trials, as JSON
"""


def describe(trial: Trial) -> str:
    """How messages refer to a trial.

    >>> describe(Trial("fair", {"task": "mnist", "trial": 3}, 1, {}, 10, 0.1, {}))
    'fair: task mnist, trial 3'
    """
    return f"{trial.study}: {', '.join(f'{name} {value}' for name, value in trial.key.items())}"


def check_trial(trial: Trial) -> None:
    """Reject a trial that the tables could not return unchanged."""
    name = describe(trial)
    if not isinstance(trial.study, str):
        raise OptionError(f"study of a trial must be a string: got {trial.study!r:.60}")
    check_int(f"parameters of {name}", trial.parameters, least=0)
    if set(trial.curves) != set(CURVES):
        raise OptionError(f"a trial must have the curves {', '.join(CURVES)}: {name} has {', '.join(trial.curves)}")
    lengths = {curve: len(trial.curves[curve]) for curve in CURVES}
    if len(set(lengths.values())) > 1 or not lengths["val_loss"]:
        raise OptionError(f"curves must have one value per epoch, at least one: {name} has {lengths}")
    if not -(2**63) <= operator.index(trial.seed) < 2**63:
        raise OptionError(f"seed must be a signed 64-bit integer: {name} has {trial.seed}")
    for key, value in trial.key.items():
        if not isinstance(value, str | int | float) or (isinstance(value, float) and not math.isfinite(value)):
            raise OptionError(f"a key must hold strings and finite numbers: {name} has {key} {value!r}")
    _config_text(trial)


def insert_trial(connection: sqlite3.Connection, trial: Trial, *, environment: int, created: str) -> None:
    """Write a checked trial inside the caller's transaction."""
    values = (
        *(trial.study, key_text(trial.key), operator.index(trial.seed), _config_text(trial)),
        *(operator.index(trial.parameters), float(trial.seconds), created, environment),
    )
    row = connection.execute("INSERT INTO trial VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)", values).lastrowid
    points = zip(*(map(float, trial.curves[curve]) for curve in CURVES), strict=True)
    epochs = ((row, epoch, *point) for epoch, point in enumerate(points))
    connection.executemany("INSERT INTO epoch VALUES (?, ?, ?, ?, ?, ?)", epochs)
    scores = [(row, name, float(value)) for name, value in trial.scores.items()]
    connection.executemany("INSERT INTO score VALUES (?, ?, ?)", scores)
    if trial.weights is not None:
        connection.execute("INSERT INTO weights VALUES (?, ?)", (row, trial.weights))


def read_trials(connection: sqlite3.Connection, wanted: dict[str, Any], *, with_weights: bool) -> list[Trial]:
    """The trials whose key has the wanted values, sorted by their keys, inside the caller's transaction."""
    columns = "SELECT id, study, key, seed, config, parameters, seconds FROM trial"
    rows = [(*row, _mapping(row[2])) for row in connection.execute(columns)]
    rows = [row for row in rows if all(row[-1].get(name) == value for name, value in wanted.items())]
    ids = {row[0] for row in rows}
    curves: dict[int, list[tuple[float, ...]]] = {}
    for trial, *point in connection.execute(f"SELECT trial, {', '.join(CURVES)} FROM epoch ORDER BY trial, epoch"):
        if trial in ids:
            curves.setdefault(trial, []).append(tuple(map(number, point)))
    scores: dict[int, dict[str, float]] = {}
    for trial, name, value in connection.execute("SELECT trial, name, value FROM score"):
        scores.setdefault(trial, {})[name] = number(value)
    weights = dict(connection.execute("SELECT trial, safetensors FROM weights")) if with_weights else {}
    found = [
        Trial(
            study,
            key,
            seed,
            {name: decode_argument(value) for name, value in _mapping(config).items()},
            parameters,
            number(seconds),
            dict(zip(CURVES, map(list, zip(*curves[id_], strict=True)), strict=True)),
            scores.get(id_, {}),
            weights.get(id_),
        )
        for id_, study, _, seed, config, parameters, seconds, key in rows
    ]
    for trial in found:
        check_trial(trial)  # another program may have written anything
    return sorted(found, key=lambda trial: (trial.study, list(trial.key.values())))


def read_config(connection: sqlite3.Connection) -> dict[str, Any]:
    """The config of the run."""
    return _mapping(connection.execute("SELECT config FROM run").fetchone()[0])


def _mapping(text: Any) -> dict[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise FormatError(f"a config and a key must be JSON objects: got {text!r:.60}")
    return value


def number(stored: Any) -> float:
    """Convert a number stored in SQLite to a float; NULL is NaN."""
    if not isinstance(stored, int | float | None):
        raise FormatError(f"a curve, a score and seconds must be numbers: got {stored!r:.60}")
    return math.nan if stored is None else float(stored)


def _config_text(trial: Trial) -> str:
    try:
        encoded = {key: encode_argument(key, value) for key, value in trial.config.items()}
        return json.dumps(encoded, sort_keys=True, allow_nan=False)
    except DendritreeError:
        raise
    except (TypeError, ValueError) as error:
        raise OptionError(f"a config must hold plain values: {describe(trial)} has {error}") from None
