"""What a trial would take with the paper's masked matrices, from a few of its steps."""

from __future__ import annotations

import time
from dataclasses import replace

import torch

from ...models import create_model
from .draws import draw_trials
from .protocol import Protocol
from .spec import ModelSpec, TableSpec
from .stacks import stack_models
from .trials import Job, model_config, train_stack

LEAST_SECONDS = 0.5
"""How long to measure a model, warm-up apart."""


def reference_seconds(spec: TableSpec, model: ModelSpec, protocol: Protocol, data_dir: str | None = None) -> float:
    """Seconds of a trial of a dendritic model with `backend="reference"`, on one thread as the trials are.

    Some epochs are timed (two, or half a second of them) and scaled to all. The reference holds no optimizer state
    for the masked-out weights, as the authors' code did: it is a little faster than theirs.
    """
    row = spec.row(model, 0.0)
    job = Job(replace(protocol, epochs=1), row, spec.dataset, spec.out_features, 1, 1, spec.lr)
    config = model_config(row, spec.out_features, protocol.output) | {"backend": "reference"}
    draw, threads = draw_trials(spec.dataset, protocol, job.indices, data_dir), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            stack = stack_models([create_model(row.network, **config)])
            train_stack(stack, draw, job)  # warm-up
            epochs, start = 0, time.perf_counter()
            while epochs < 2 or time.perf_counter() - start < LEAST_SECONDS:
                train_stack(stack, draw, job)
                epochs += 1
            return (time.perf_counter() - start) / epochs * protocol.epochs
    finally:
        torch.set_num_threads(threads)
