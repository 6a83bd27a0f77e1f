"""One piece of work: train the trials of a row that belong together and return their records.

A job depends only on its own fields, so any process on any machine may run it, in any order and repeatedly.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from dendritree.errors import import_extra
from dendritree.models import create_model
from dendritree.models.output import make_output
from dendritree.models.sizing import parameters_of
from dendritree.training import LOSSES, FitConfig, evaluate
from dendritree.training.examples import Examples

from ...data.split import DataSplit
from ..engine.configuration import fit_through
from ..engine.runner import alone_on_one_thread
from ..engine.trial import CURVES, seed_of
from .draws import Draw, draw_trials, full_split
from .protocol import LR_SEARCH, Protocol
from .records import Row, TrialRecord
from .spec import ModelSpec, TableSpec
from .stacks import Stack, stack_models

IN_FEATURES = 1024


@dataclass(frozen=True)
class Job:
    """Trials of one row that are trained together."""

    protocol: Protocol
    row: Row
    dataset: str
    out_features: int
    first: int
    """Number of the first trial."""
    count: int
    """Number of trials: the spec's stack. All of them are computed, even if some are already stored."""
    lr: float
    phase: str = ""
    """The name under which records are stored; that of the protocol if empty."""

    @property
    def indices(self) -> range:
        """Numbers of the trials."""
        return range(self.first, self.first + self.count)

    @property
    def kept_as(self) -> str:
        """The protocol name in the records."""
        return self.phase or self.protocol.name


def model_config(row: Row, out_features: int, output: str) -> dict[str, Any]:
    """The arguments of a row's model.

    >>> model_config(Row("multiclass-dendritic", "multiclass", "mln", 32, 0.4), 10, "logits")
    {'in_features': 1024, 'out_features': 10, 'branching': 32, 'dropout': 0.4, 'output': 'logits'}
    """
    config: dict[str, Any] = {}
    if row.task != "cnn":
        config["in_features"] = IN_FEATURES
    if row.network != "mln-binary":
        config["out_features"] = out_features
    if row.size:
        config["branching" if row.dendritic else "hidden"] = row.size
    return config | {"dropout": row.dropout, "output": output}


def run_job(job: Job, data_dir: str | None = None) -> list[TrialRecord]:
    """Train the job's trials in this process, on one torch thread."""
    with alone_on_one_thread():
        return _run_full(job, data_dir) if job.protocol.batch_size else _run_drawn(job, data_dir)


def _trial_seed(job: Job, index: int) -> int:
    return seed_of("trial", job.kept_as, job.row.network, job.row.size, job.row.task, job.row.dropout, index)


def _record(job: Job, index: int, **measured: Any) -> TrialRecord:
    """The record of a trial, from its job and what was measured."""
    return TrialRecord(
        protocol=job.kept_as,
        row=job.row,
        index=index,
        seed=_trial_seed(job, index),
        dataset=job.dataset,
        lr=job.lr,
        model_config=model_config(job.row, job.out_features, job.protocol.output),
        **measured,
    )


def _loss_name(out_features: int, output: str) -> str:
    if out_features > 1:
        return "cross-entropy"
    return "binary-probabilities" if output == "probabilities" else "binary-logits"


def _new_model(job: Job, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return create_model(job.row.network, **model_config(job.row, job.out_features, job.protocol.output))


# ----------------------------------------------------------------------------------- a few images, one step per epoch


def _run_drawn(job: Job, data_dir: str | None) -> list[TrialRecord]:
    """All trials of the job as one stacked model, one full-batch step per epoch."""
    draw = draw_trials(job.dataset, job.protocol, job.indices, data_dir)
    seeds = [_trial_seed(job, index) for index in job.indices]
    models = [_new_model(job, seed) for seed in seeds]
    parameters = parameters_of(models[0])
    stack = stack_models(models)
    torch.manual_seed(seed_of("dropout", seeds[0]))  # for trees, whose layers use torch's generator
    stack.seed_dropout(seed_of("dropout", seeds[0]))
    start = time.perf_counter()
    curves, best = train_stack(stack, draw, job)
    seconds = (time.perf_counter() - start) / job.count
    return [
        _record(
            job,
            index,
            parameters=parameters,
            seconds=seconds,
            history={name: curves[k, :, place].tolist() for k, name in enumerate(CURVES)},
            weights=_safetensors(_new_model(job, seed), best) if index == 0 else None,
        )
        for place, (index, seed) in enumerate(zip(job.indices, seeds, strict=True))
    ]


def train_stack(stack: Stack, draw: Draw, job: Job) -> tuple[Tensor, dict[str, Tensor]]:
    """Train a stack in place; return curves (4, epochs, trials) and the first trial's state at its best epoch."""
    loss = LOSSES[_loss_name(job.out_features, job.protocol.output)]
    correct = loss.correct
    assert correct is not None
    last = make_output(job.protocol.output, job.out_features)
    train_x, val_x = stack.prepare(draw.train_x), stack.prepare(draw.val_x)
    optimizer = torch.optim.Adam(stack.parameters(), lr=job.lr, fused=True)
    curves = torch.zeros(4, job.protocol.epochs, job.count, dtype=torch.float64)
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


def _run_full(job: Job, data_dir: str | None) -> list[TrialRecord]:
    """Each trial of the job, with the training loop of the library."""
    split = full_split(job.dataset, data_dir)
    if job.row.task == "cnn":
        split = DataSplit(*(Examples(part.x.view(-1, 1, 32, 32), part.y) for part in split.parts))
    return [_fit_one(job, index, split) for index in job.indices]


def _fit_one(job: Job, index: int, split: DataSplit) -> TrialRecord:
    protocol, seed = job.protocol, _trial_seed(job, index)
    model = _new_model(job, seed)
    if job.row.task == "cnn":
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    loss = _loss_name(job.out_features, protocol.output)
    config = FitConfig(loss=loss, epochs=protocol.epochs, batch_size=protocol.batch_size, lr=job.lr, seed=seed)
    start = time.perf_counter()
    history = fit_through(model, split, config)
    seconds = time.perf_counter() - start
    searching = job.kept_as == LR_SEARCH  # the test set is only for the chosen learning rate
    test_loss, test_acc = evaluate(model, split.test, loss) if protocol.tests and not searching else (None, None)
    columns = history.columns()
    return _record(
        job,
        index,
        parameters=parameters_of(model),
        seconds=seconds,
        history={name: columns[name] for name in CURVES},
        test_loss=test_loss,
        test_acc=test_acc,
        weights=_safetensors(model, {}) if index == 0 and not searching else None,
    )


def _safetensors(model: nn.Module, state: dict[str, Tensor]) -> bytes:
    """The model's complete state, after loading `state` into it, as the bytes of a safetensors file."""
    model.load_state_dict(model.state_dict() | state)
    tensors = {name: value.contiguous() for name, value in model.state_dict().items()}
    content: bytes = import_extra("safetensors.torch", extra="experiments").save(tensors)
    return content


# ------------------------------------------------------------------------------------------------ the masked reference

LEAST_SECONDS = 0.5
"""How long to time a model, excluding warm-up."""


def reference_seconds(spec: TableSpec, model: ModelSpec, protocol: Protocol, data_dir: str | None = None) -> float:
    """Seconds that a trial of a dendritic model would take with `backend="reference"`, on one thread as in the trials.

    At least two epochs and half a second are timed and scaled to all epochs. The reference has no optimizer state for
    the masked-out weights, unlike the authors' code, so it is a little faster than theirs.
    """
    row = spec.row(model, 0.0)
    job = Job(replace(protocol, epochs=1), row, spec.dataset, spec.out_features, 1, 1, spec.lr)
    config = model_config(row, spec.out_features, protocol.output) | {"backend": "reference"}
    draw = draw_trials(spec.dataset, protocol, job.indices, data_dir)
    with alone_on_one_thread():
        torch.manual_seed(0)
        stack = stack_models([create_model(row.network, **config)])
        train_stack(stack, draw, job)  # warm-up
        epochs, start = 0, time.perf_counter()
        while epochs < 2 or time.perf_counter() - start < LEAST_SECONDS:
            train_stack(stack, draw, job)
            epochs += 1
        return (time.perf_counter() - start) / epochs * protocol.epochs
