"""Files from which an interrupted training goes on: tensors and plain facts, in one safetensors file.

`files` writes and reads them, `memory` takes an optimizer apart, `runs` knows what of a run a file must keep.
"""

from __future__ import annotations

from .files import read_checkpoint, write_checkpoint
from .memory import optimizer_tensors, put_optimizer_tensors
from .runs import Checkpoint, Progress

__all__ = [
    "Checkpoint",
    "Progress",
    "optimizer_tensors",
    "put_optimizer_tensors",
    "read_checkpoint",
    "write_checkpoint",
]
