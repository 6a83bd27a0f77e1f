"""The training loop, its config, losses, callbacks and history; checkpoints, rewiring and distillation."""

from .config import OPTIMIZERS, SCHEDULES, FitConfig, make_optimizer
from .examples import Examples, Split
from .history import Callback, EarlyStopping, Epoch, History, Run
from .loop import evaluate, fit
from .losses import LOSSES, Loss
from .memory import memory_kept

__all__ = [
    "LOSSES",
    "OPTIMIZERS",
    "SCHEDULES",
    "Callback",
    "EarlyStopping",
    "Epoch",
    "Examples",
    "FitConfig",
    "History",
    "Loss",
    "Run",
    "Split",
    "evaluate",
    "fit",
    "make_optimizer",
    "memory_kept",
]
