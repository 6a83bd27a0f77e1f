"""A run as files for other programs: CSV or Parquet tables, and folders of models."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import safetensors.torch
import torch
from torch import nn

from dendritree.errors import FormatError, check_one_of
from dendritree.files import whole_file
from dendritree.models import create_model
from dendritree.storage import save

from .store import RunStore
from .trial import CURVES, Trial

if TYPE_CHECKING:
    from pandas import DataFrame

TRIALS = """SELECT trial.id AS trial, study, key, seed, parameters, seconds, config, created,
    machine, cpu, cores, ram, dendritree, torch, numpy, python, "commit"
    FROM trial JOIN environment ON environment.id = trial.environment ORDER BY trial.id"""


def export_tables(store: RunStore, folder: Path, file_format: str = "csv") -> list[Path]:
    """Write all trials to `trials` and all epochs to `history`, as `csv` or `parquet`; return the paths."""
    check_one_of("format", file_format, ["csv", "parquet"])
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, table in zip(("trials", "history"), _tables(store), strict=True):
        paths.append(folder / f"{name}.{file_format}")
        with whole_file(paths[-1]) as file:
            table.to_csv(file, index=False) if file_format == "csv" else table.to_parquet(file, index=False)
    return paths


def _tables(store: RunStore) -> tuple[DataFrame, DataFrame]:
    """All trials and all epochs, with a column for each name in keys and scores."""
    import pandas as pd

    with store.reading() as connection:
        trials = pd.read_sql_query(TRIALS, connection, index_col="trial")
        scores = pd.read_sql_query("SELECT trial, name, value FROM score", connection)
        curves = f"SELECT trial, epoch, {', '.join(CURVES)} FROM epoch ORDER BY trial, epoch"
        history = pd.read_sql_query(curves, connection, dtype=dict.fromkeys(CURVES, float))
    taken = {*trials, "trial", "epoch"}  # a comparison has a key `trial`
    keys = pd.DataFrame([json.loads(key) for key in trials.pop("key")], trials.index, dtype=object)
    keys = keys.rename(columns={name: f"key_{name}" for name in keys if name in taken})
    for name, values in keys.items():  # integers stay integers if some trials lack them
        whole = all(isinstance(value, int) for value in values.dropna())
        keys[name] = values.astype("Int64") if whole else values.infer_objects()
    measured = scores.pivot(index="trial", columns="name", values="value").astype(float)
    start = list(trials).index("config")
    trials = pd.concat([trials[["study"]], keys, trials.iloc[:, 1:start], measured, trials.iloc[:, start:]], axis=1)
    return trials.reset_index(), history.join(keys, on="trial")


def export_models(trials: Iterable[Trial], folder: Path, name_of: Callable[[Trial], Sequence[str]]) -> list[Path]:
    """Save the model of each trial in the format of `dendritree.load`; return the paths.

    Args:
        trials: trials with weights.
        folder: where to write.
        name_of: names the folders from `folder` to a trial's model.
    """
    paths = []
    for trial in trials:
        # Names come from a file, which may not be trusted: none may lead out of the folder.
        parts = (re.sub(r"[^\w.-]|^\.+$", "_", part) for part in name_of(trial))
        paths.append(folder.joinpath(*parts))
        save(kept_model(trial), paths[-1])
    return paths


def kept_model(trial: Trial) -> nn.Module:
    """The model of a trial that has weights, in evaluation mode. Torch's random state is left unchanged."""
    assert trial.weights is not None
    try:
        state = safetensors.torch.load(trial.weights)
        with torch.random.fork_rng(devices=[]):  # initial weights are drawn and discarded
            model = create_model(trial.config["network"], **trial.config["arguments"])
        dtypes = {tensor.dtype for tensor in state.values() if tensor.dtype.is_floating_point}
        if len(dtypes) == 1:
            model.to(dtypes.pop())
        model.load_state_dict(state)
    except Exception as error:  # the weights and arguments come from a file and may be anything
        reason = " ".join(str(error).split())
        raise FormatError(f"the stored weights do not fit the model of {dict(trial.key)}: {reason:.300}") from None
    return model.eval()
