"""The trials of the paper's experiments: a job draws their images, trains them together and returns them.

A job depends only on its own fields, so any process on any machine may run it, in any order and repeatedly.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from dendritree.models import create_model
from dendritree.models.chain import make_output
from dendritree.models.sizing import parameters_of
from dendritree.training import LOSSES, FitConfig, evaluate
from dendritree.training.examples import Examples

from ...data import load_dataset, normalize, read_images, upsample
from ...data.split import DataSplit
from ..engine.configuration import fit_through
from ..engine.runner import alone_on_one_thread
from ..engine.trial import CURVES, Trial, Value, seed_of, state_bytes
from .spec import LR_SEARCH, Protocol, TableRow
from .stacks import Stack, stack_models

STUDY = "paper"
SIDE = 32
"""Images are enlarged to 32x32, as in the paper: 1024 = 2^10 = 4^5 = 32^2."""


@dataclass(frozen=True)
class PaperTrial(Trial):
    """A trial of the paper's experiments: what its key and config say, under the names used here."""

    @classmethod
    def make(
        cls,
        protocol: str,
        row: TableRow,
        index: int,
        seed: int,
        dataset: str,
        lr: float,
        parameters: int,
        seconds: float,
        curves: Mapping[str, Sequence[float]],
        *,
        arguments: Mapping[str, Any] | None = None,
        scores: Mapping[str, float] | None = None,
        weights: bytes | None = None,
    ) -> Self:
        """A trial of a row.

        >>> row = TableRow("multiclass-mlp", "multiclass", "mlp", 11, 0.0)
        >>> PaperTrial.make("paper", row, 3, 1, "mnist", 0.001, 11_395, 0.1, {}).row == row
        True
        """
        config = {"network": row.network, "arguments": dict(arguments or {}), "dataset": dataset, "lr": lr}
        key = trial_key(protocol, row, index)
        return cls(STUDY, key, seed, config, parameters, seconds, curves, scores or {}, weights)

    @classmethod
    def of(cls, trial: Trial) -> Self:
        """A trial that the store returned."""
        return cls(*(getattr(trial, field.name) for field in fields(Trial)))

    @cached_property
    def row(self) -> TableRow:
        """The row of the table that it belongs to."""
        key = self.key
        size = int(key["branching" if "branching" in key else "mid_layer"])
        return TableRow(str(key["table"]), str(key["task"]), str(key["network"]), size, float(key["dropout"]))

    @property
    def protocol(self) -> str:
        """`paper`, `full`, or `LR_SEARCH`."""
        return str(self.key["protocol"])

    @property
    def index(self) -> int:
        """Number of the trial in its row, from 0; `iteration` in the authors' data."""
        return int(self.key["iteration"])

    @property
    def lr(self) -> float:
        """The learning rate."""
        return float(self.config["lr"])


def trial_key(protocol: str, row: TableRow, index: int) -> dict[str, Value]:
    """The key of a trial, with the column names of the authors' data.

    >>> trial_key("paper", TableRow("multiclass-mlp", "multiclass", "mlp", 11, 0.0), 3)["mid_layer"]
    11
    """
    size = {"branching" if row.dendritic else "mid_layer": row.size}
    names = {"protocol": protocol, "table": row.table, "task": row.task, "network": row.network}
    return {**names, **size, "dropout": float(row.dropout), "iteration": index}


@dataclass(frozen=True)
class PaperJob:
    """Trials of one row that are trained together."""

    protocol: Protocol
    row: TableRow
    dataset: str
    out_features: int
    first: int
    """Number of the first trial."""
    stack: int
    """Number of trials that are trained together; the results depend on it."""
    size: int
    """Number of trials that are returned, the first ones of the stack."""
    lr: float
    phase: str = ""
    """The protocol name of the trials; that of the protocol if empty."""

    @property
    def indices(self) -> range:
        """Numbers of the trials that are trained."""
        return range(self.first, self.first + self.stack)

    @property
    def kept_as(self) -> str:
        """The protocol name of the trials."""
        return self.phase or self.protocol.name

    @property
    def group(self) -> str:
        """The table, in the progress of a run."""
        return f"{self.row.table}, learning rates" if self.phase == LR_SEARCH else self.row.table

    @property
    def keys(self) -> list[dict[str, Value]]:
        """The keys of the trials that are returned."""
        return [trial_key(self.kept_as, self.row, index) for index in self.indices[: self.size]]

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the row's model."""
        row, arguments = self.row, dict[str, Any]()
        if row.task != "cnn":
            arguments["in_features"] = SIDE**2
        if row.network != "mln-binary":
            arguments["out_features"] = self.out_features
        if row.size:
            arguments["branching" if row.dendritic else "hidden"] = row.size
        return arguments | {"dropout": row.dropout, "output": self.protocol.output}

    @property
    def loss(self) -> str:
        """The name of the loss in `dendritree.fit`."""
        if self.out_features > 1:
            return "cross-entropy"
        return "binary-probabilities" if self.protocol.output == "probabilities" else "binary-logits"

    def seed(self, index: int) -> int:
        """The seed of a trial."""
        row = self.row
        return seed_of("trial", self.kept_as, row.network, row.size, row.task, row.dropout, index)

    def new_model(self, seed: int) -> nn.Module:
        """The model of a trial before training."""
        torch.manual_seed(seed)
        return create_model(self.row.network, **self.arguments)

    def trial(self, index: int, **measured: Any) -> PaperTrial:
        """A trial, from the job and what was measured."""
        what = self.kept_as, self.row, index, self.seed(index), self.dataset, self.lr
        return PaperTrial.make(*what, arguments=self.arguments, **measured)


def run_job(job: PaperJob, data_dir: str | None = None) -> list[PaperTrial]:
    """Train the job's trials in this process, on one torch thread."""
    with alone_on_one_thread():
        return _run_full(job, data_dir) if job.protocol.batch_size else _run_drawn(job, data_dir)


# ----------------------------------------------------------------------------------- a few images, one step per epoch


@dataclass(frozen=True)
class Draw:
    """The examples of several trials, features-major, so that their stacked models read them without a copy."""

    train_x: Tensor
    """(trials, features, images)"""
    train_y: Tensor
    """(trials, images)"""
    val_x: Tensor
    val_y: Tensor


def draw_trials(dataset: str, protocol: Protocol, indices: range, data_dir: str | None = None) -> Draw:
    """Draw the training and validation images of the trials `indices`.

    The draw depends on the data set and the trial's number, not on the model: comparisons are paired.
    """
    # NOTE[DIFF]: both parts come from the training images and do not overlap; the authors sampled 4-9 MNIST with
    # replacement. The test images are not used.
    images, labels = _images(dataset, data_dir)
    assert protocol.train_images is not None
    assert protocol.val_images is not None
    total, train = protocol.train_images + protocol.val_images, protocol.train_images
    picks = []
    for index in indices:
        generator = np.random.default_rng(seed_of("draw", dataset, protocol.draw_of(index)))
        picks.append(generator.choice(len(labels), total, replace=False))
    x = enlarged(images[np.concatenate(picks)]).view(len(picks), total, -1)  # (trials, images, features)
    y = torch.from_numpy(labels[np.stack(picks)])
    x = x.transpose(1, 2)
    return Draw(x[:, :, :train].contiguous(), y[:, :train], x[:, :, train:].contiguous(), y[:, train:])


@lru_cache(maxsize=2)
def _images(dataset: str, data_dir: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Training images and labels to draw from; 4 -> 0 and 9 -> 1 for the binary task."""
    arrays = read_images("mnist" if dataset == "mnist-4-9" else dataset, data_dir=data_dir)
    images, labels = arrays.train_images, arrays.train_labels.astype(np.int64)
    if dataset == "mnist-4-9":
        chosen = (labels == 4) | (labels == 9)
        images, labels = images[chosen], (labels[chosen] == 9).astype(np.int64)
    return images, labels


def enlarged(images: np.ndarray) -> Tensor:
    """Images of bytes as rows of the models' inputs."""
    return upsample(normalize(torch.from_numpy(images).float().div_(255).flatten(1)), SIDE)


def _run_drawn(job: PaperJob, data_dir: str | None) -> list[PaperTrial]:
    """All trials of the job as one stacked model, one full-batch step per epoch."""
    draw = draw_trials(job.dataset, job.protocol, job.indices, data_dir)
    seeds = [job.seed(index) for index in job.indices]
    models = [job.new_model(seed) for seed in seeds]
    parameters = parameters_of(models[0])
    stack = stack_models(models)
    torch.manual_seed(seed_of("dropout", seeds[0]))  # for trees, whose layers use torch's generator
    stack.seed_dropout(seed_of("dropout", seeds[0]))
    start = time.perf_counter()
    curves, best = train_stack(stack, draw, job)
    seconds = (time.perf_counter() - start) / job.stack
    return [
        job.trial(
            index,
            parameters=parameters,
            seconds=seconds,
            curves={name: curves[k, :, place].tolist() for k, name in enumerate(CURVES)},
            weights=state_bytes(job.new_model(seeds[0]), best) if index == 0 else None,
        )
        for place, index in enumerate(job.indices[: job.size])
    ]


def train_stack(stack: Stack, draw: Draw, job: PaperJob) -> tuple[Tensor, dict[str, Tensor]]:
    """Train a stack in place; return curves (4, epochs, trials) and the first trial's state at its best epoch."""
    loss = LOSSES[job.loss]
    correct = loss.correct
    assert correct is not None
    last = make_output(job.protocol.output, job.out_features)
    train_x, val_x = stack.prepare(draw.train_x), stack.prepare(draw.val_x)
    optimizer = torch.optim.Adam(stack.parameters(), lr=job.lr, fused=True)
    curves = torch.zeros(4, job.protocol.epochs, job.stack, dtype=torch.float64)
    lowest, best = float("inf"), stack.state_of(0)

    def measure(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Loss and accuracy of each trial."""
        out = last(stack(x).transpose(1, 2)).flatten(0, 1)  # (trials * images, outputs)
        per_example = loss.per_example(out, y.flatten())
        return per_example.view(y.shape).mean(1), correct(out.detach(), y.flatten()).view(y.shape).double().mean(1)

    for epoch in range(job.protocol.epochs):
        stack.train()
        train_loss, curves[2, epoch] = measure(train_x, draw.train_y)
        optimizer.zero_grad(set_to_none=True)
        train_loss.sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        stack.eval()
        with torch.no_grad():
            curves[0, epoch] = train_loss.detach()
            curves[1, epoch], curves[3, epoch] = measure(val_x, draw.val_y)
        if job.first == 0 and (first := float(curves[1, epoch, 0])) < lowest:
            lowest, best = first, stack.state_of(0)
    return curves, best


# ------------------------------------------------------------------------------------------------- all images, batches


def _run_full(job: PaperJob, data_dir: str | None) -> list[PaperTrial]:
    """Each trial of the job, with the training loop of the library."""
    split = full_split(job.dataset, data_dir)
    if job.row.task == "cnn":
        split = DataSplit(*(Examples(part.x.view(-1, 1, SIDE, SIDE), part.y) for part in split.parts))
    return [_fit_one(job, index, split) for index in job.indices]


@lru_cache(maxsize=1)
def full_split(dataset: str, data_dir: str | None = None) -> DataSplit:
    """The data set's fixed parts, as the models take them."""
    split = load_dataset(dataset, data_dir=data_dir)
    return DataSplit(*(Examples(upsample(normalize(part.x), SIDE), part.y) for part in split.parts))


def _fit_one(job: PaperJob, index: int, split: DataSplit) -> PaperTrial:
    protocol, seed = job.protocol, job.seed(index)
    model = job.new_model(seed)
    if job.row.task == "cnn":
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    config = FitConfig(loss=job.loss, epochs=protocol.epochs, batch_size=protocol.batch_size, lr=job.lr, seed=seed)
    start = time.perf_counter()
    history = fit_through(model, split, config)
    seconds, columns = time.perf_counter() - start, history.columns()
    searching = job.kept_as == LR_SEARCH  # the test set is only for the selected learning rate
    tested = evaluate(model, split.test, job.loss) if protocol.tests and not searching else ()
    return job.trial(
        index,
        parameters=parameters_of(model),
        seconds=seconds,
        curves={name: columns[name] for name in CURVES},
        scores=dict(zip(("test_loss", "test_acc"), tested, strict=False)),
        weights=state_bytes(model) if index == 0 and not searching else None,
    )
