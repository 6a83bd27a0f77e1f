"""A model of a user's own table: an estimator, the columns it reads, and the folder that keeps both."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..budget import parse_count
from ..errors import FormatError, OptionError, check_int, check_one_of
from ..models.folders import (
    COLUMNS_FILE,
    FORMAT_VERSION,
    check_format,
    model_folder,
    read_json,
)
from .columns import as_numbers, as_text
from .controls import FamilyScores, Observer, compare_families, make_estimator, score
from .encoding import TableEncoding
from .reading import check_table
from .target import read_target

__all__ = ["TableFit", "TableModel", "fit_table", "load_table_model", "save_table_model"]

FORMAT = "dendritree-table"
NEURONS = ("tree", "sparse")


@dataclass(frozen=True)
class TableModel:
    """A fitted estimator and the columns it reads."""

    estimator: Any
    encoding: TableEncoding
    target: str
    task: str

    def predict(self, frame: Any, *, strict: bool = False) -> tuple[Any, list[str]]:
        """A table with `prediction` and, for classes, their probabilities; and what one should know about the rows.

        Args:
            frame: rows with all columns that the model reads.
            strict: refuse cells that the model cannot know, which otherwise count as missing.
        """
        encoded = self.encoding.encode(frame)
        notices = list(encoded.notices())
        if strict and notices:
            raise OptionError(f"with --strict every cell must be known to the model: {notices[0]}")
        result = frame.copy()
        added = ["prediction", *self._probabilities()]
        taken = [name for name in added if name in check_table(frame).columns]
        if taken:
            raise OptionError(f"the table must not have a column {taken[0]!r}: predictions go there")
        if self.task == "classification":
            names = self._probabilities()
            probabilities = self.estimator.predict_proba(encoded.x) if len(result) else np.empty((0, len(names)))
            result["prediction"] = self.estimator.classes_[probabilities.argmax(1)]
            for place, name in enumerate(names):
                result[name] = probabilities[:, place].round(6)
        else:  # scikit-learn refuses to predict no rows
            result["prediction"] = self.estimator.predict(encoded.x) if len(result) else np.empty(0)
        return result, notices

    def _probabilities(self) -> list[str]:
        return [f"probability {each}" for each in self.estimator.classes_] if self.task == "classification" else []

    def judge(self, predicted: Any) -> str | None:
        """How good predictions are, if their table has the target too; else None."""
        predicted = check_table(predicted)
        if self.target not in predicted.columns:
            return None
        known = predicted[predicted[self.target].notna()]
        if not len(known):
            return None
        if self.task == "classification":
            right = score(as_text(known[self.target]).to_numpy(dtype=str), known["prediction"].to_numpy(dtype=str))
            return f"accuracy {right:.4f} on {len(known):,} rows with {self.target!r}"
        numbers = as_numbers(known[self.target])
        if not np.isfinite(numbers).all():
            return None
        return f"RMSE {score(numbers, known['prediction'].to_numpy()):.4g} on {len(known):,} rows with {self.target!r}"

    def write(self, folder: Path) -> None:
        """Write its files into a folder that is there."""
        from ..estimators.storage import write_estimator

        write_estimator(self.estimator, folder)
        config = {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "target": self.target,
            "task": self.task,
            **self.encoding.as_dict(),
        }
        text = json.dumps(config, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        (folder / COLUMNS_FILE).write_text(text, encoding="utf-8")


def save_table_model(model: TableModel, folder: str | os.PathLike[str]) -> None:
    """Write a model to a folder, whole or not at all; `dendritree.save` calls this."""
    with model_folder(folder) as fresh:
        model.write(fresh)


def load_table_model(folder: str | os.PathLike[str], *, device: torch.device | str | None = None) -> TableModel:
    """Read a model that `dendritree fit` or `dendritree.save` wrote; `dendritree.load` calls this."""
    from ..estimators.storage import load_estimator

    path = Path(folder)
    if not path.is_dir():
        raise FormatError(f"a model must be a folder that `dendritree fit` wrote: found none at {path}")
    config = read_json(path, COLUMNS_FILE)
    check_format(config, path / COLUMNS_FILE, FORMAT)
    for key in ("target", "task"):
        if not isinstance(config.get(key), str):
            raise FormatError(f"{key} in {path / COLUMNS_FILE} must be a text: got {config.get(key)!r}")
    encoding = TableEncoding.from_dict(config)
    estimator = load_estimator(path, device=device)
    if estimator.n_features_in_ != len(encoding.features):
        raise FormatError(
            f"{path / COLUMNS_FILE} must describe the model's inputs: {len(encoding.features)} are not those"
        )
    return TableModel(estimator, encoding, config["target"], config["task"])


@dataclass(frozen=True)
class TableFit:
    """A new model, and what was found on the way."""

    model: TableModel
    results: list[FamilyScores]
    rows: int
    budget: int
    splits: int
    seed: int
    notices: tuple[str, ...]


def fit_table(
    frame: Any,
    target: Any,
    *,
    budget: int | str = "auto",
    task: str = "auto",
    neurons: str = "tree",
    splits: int = 5,
    seed: int = 0,
    epochs: int | str = "auto",
    observer: Observer | None = None,
) -> TableFit:
    """Train a model on all rows of a table, after trees and their controls have been compared on parts of them.

    Args:
        frame: a data frame; names of columns that are no texts are read as such, 0 as `"0"`.
        target: the column to predict.
        budget: parameters of the network; by default what the table's size suggests.
        task: `classification`, `regression` or `auto`.
        neurons: of the model that is kept: `tree` or `sparse`.
        splits: parts of the rows, each of which is the test part once.
        seed: of everything random.
        epochs: passes over the rows, by default as many as the estimators take.
        observer: called with what is done, and how many models of how many are.
    """
    from ..estimators.networks import auto_budget, make_network

    check_one_of("neurons", neurons, NEURONS)
    seed = check_int("seed", seed, least=0) % 2**32
    splits = check_int("splits", splits, least=2)
    given = None if budget == "auto" else parse_count("budget", budget)
    frame = check_table(frame)
    found = read_target(frame, target, task, per_class=splits)
    inputs = frame.drop(columns=[found.name]).iloc[found.rows].reset_index(drop=True)
    encoding = TableEncoding.learn(inputs)
    if not encoding.columns:
        raise OptionError("a table must have a column to learn from besides its target: found none")
    classes = len(np.unique(found.y)) if found.task == "classification" else 0
    sizes = len(encoding.features), classes if classes > 2 else 1
    parameters = auto_budget(len(found.y), *sizes) if given is None else given
    with torch.random.fork_rng(devices=[]):
        for family in ("tree", "sparse", "dense"):  # too small a budget is refused now, not after some training
            make_network(family, *sizes, budget=parameters)
    results = compare_families(
        inputs, found, budget=parameters, splits=splits, seed=seed, epochs=epochs, observer=observer
    )
    estimator = make_estimator(found.task, neurons=neurons, budget=parameters, epochs=epochs, random_state=seed)
    encoded = encoding.encode(inputs)
    estimator.fit(encoded.x, found.y)
    if observer is not None:
        observer("training on all rows", 1, 1)
    notices = (*found.notices, *encoded.notices("no number"), *_notices(encoding))
    model = TableModel(estimator, encoding, found.name, found.task)
    return TableFit(model, results, len(found.y), parameters, splits, seed, notices)


def _notices(encoding: TableEncoding) -> Iterator[str]:
    for name, why in encoding.left_out:
        yield f"column {name!r} {why}: left out"
