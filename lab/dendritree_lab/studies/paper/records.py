"""The trials of the paper's experiments: rows of its tables, and one record per trial."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dendritree.errors import OptionError, check_int, check_number, check_one_of

from ...data import DATASETS
from ..engine.trial import Trial, Value, key_text

STUDY = "paper"


@dataclass(frozen=True, order=True)
class Row:
    """A row of a table: one model at one dropout, for all its trials."""

    table: str
    """Name of the spec, such as `multiclass-dendritic`."""
    task: str
    """`binary`, `multiclass` or `cnn`: rows of one task are compared."""
    network: str
    """Name of the model in the registry, such as `mln`, `mlp` or `perceptrons`."""
    size: int
    """Branching of a dendritic model, hidden units of an MLP, 0 for perceptrons."""
    dropout: float

    def __post_init__(self) -> None:
        texts = self.table, self.task, self.network
        if not all(isinstance(text, str) for text in texts) or not isinstance(self.dropout, int | float):
            raise OptionError(f"a row must have a table, a task, a network and its dropout: got {self!r:.160}")
        check_int("size of a row", self.size, least=0)

    @property
    def dendritic(self) -> bool:
        """Whether the model has trees.

        >>> Row("multiclass-dendritic", "multiclass", "mln", 32, 0.4).dendritic
        True
        """
        return "mln" in self.network

    @property
    def model(self) -> str:
        """The name of the model in tables.

        >>> Row("multiclass-mlp", "multiclass", "mlp", 11, 0.0).model
        'MLP h=11'
        """
        if self.dendritic:
            return f"dendritic b={self.size}"
        return f"MLP h={self.size}" if self.size else "perceptrons"


@dataclass(frozen=True)
class TrialRecord:
    """One trained model: what it was, what happened, what it cost."""

    protocol: str
    """`paper` or `full`."""
    row: Row
    index: int
    """Number of the trial in its row, from 0; `iteration` in the authors' data."""
    seed: int
    dataset: str
    lr: float
    parameters: int
    seconds: float
    """Training time of this trial: its share of the time of its stack."""
    history: dict[str, list[float]]
    """The curves; row i is epoch i."""
    test_loss: float | None = None
    """Loss and accuracy of the best epoch's weights on the test set, if the protocol has one."""
    test_acc: float | None = None
    model_config: dict[str, Any] = field(default_factory=dict)
    """The arguments of `create_model(row.network, ...)`."""
    weights: bytes | None = field(default=None, repr=False)
    """The best epoch's weights as safetensors; only for trial 0."""

    @cached_property
    def best_epoch(self) -> int:
        """The epoch with the lowest validation loss."""
        return self.as_trial().best_epoch

    def at_best(self, curve: str) -> float:
        """A curve's value at the best epoch.

        >>> curves = {"train_loss": [2.0, 1.0], "val_loss": [2.0, 3.0], "train_acc": [0.4, 0.9], "val_acc": [0.5, 0.6]}
        >>> row = Row("multiclass-mlp", "multiclass", "mlp", 11, 0.0)
        >>> TrialRecord("paper", row, 0, 1, "mnist", 0.001, 11_395, 0.1, curves).at_best("val_acc")
        0.5
        """
        return self.history[curve][self.best_epoch]

    def as_trial(self) -> Trial:
        """The record as a trial for the store."""
        key = trial_key(self.protocol, self.row, self.index)
        config = {"network": self.row.network, "arguments": self.model_config, "dataset": self.dataset, "lr": self.lr}
        scores = {"test_loss": self.test_loss, "test_acc": self.test_acc}
        measured = {name: value for name, value in scores.items() if value is not None}
        return Trial(STUDY, key, self.seed, config, self.parameters, self.seconds, self.history, measured, self.weights)

    @classmethod
    def of(cls, trial: Trial) -> TrialRecord:
        """The record of a trial that `as_trial` made."""
        key, config = dict(trial.key), trial.config
        protocol, index = str(key.pop("protocol")), int(key.pop("iteration"))
        size = key.pop("branching" if "branching" in key else "mid_layer")
        return cls(
            protocol,
            Row(size=int(size), **key),  # type: ignore[arg-type]
            index,
            trial.seed,
            check_one_of("dataset", config["dataset"], DATASETS),
            check_number("lr", config["lr"]),
            trial.parameters,
            trial.seconds,
            {name: list(values) for name, values in trial.curves.items()},
            trial.scores.get("test_loss"),
            trial.scores.get("test_acc"),
            dict(config["arguments"]),
            trial.weights,
        )


def trial_key(protocol: str, row: Row, index: int) -> dict[str, Value]:
    """The key of a trial, with the column names of the authors' data.

    >>> trial_key("paper", Row("multiclass-mlp", "multiclass", "mlp", 11, 0.0), 3)["mid_layer"]
    11
    """
    size = {"branching" if row.dendritic else "mid_layer": row.size}
    names = {"protocol": protocol, "table": row.table, "task": row.task, "network": row.network}
    return {**names, **size, "dropout": float(row.dropout), "iteration": index}


def stored_key(protocol: str, row: Row, index: int) -> tuple[str, str]:
    """The study and the key, as `RunStore.present` returns them."""
    return STUDY, key_text(trial_key(protocol, row, index))


def folder_names(trial: Trial) -> tuple[str, str, str]:
    """The folders of a trial's kept model: protocol, table, and a name for its row."""
    record = TrialRecord.of(trial)
    row = record.row
    return record.protocol, row.table, f"{row.network}-{row.size}-p{row.dropout:g}"
