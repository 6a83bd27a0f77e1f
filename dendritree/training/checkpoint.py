"""The file that an interrupted run resumes from."""

from __future__ import annotations

import hashlib
import os
import pickle
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import FormatError, OptionError
from ..files import whole_file
from ..randomness import generator_on
from .examples import Split
from .history import Epoch, Run

FORMAT, VERSION = "dendritree-checkpoint", 1


class Checkpoint:
    """A callback that writes the state of a run after each epoch, and resumes an interrupted run from it.

    Args:
        path: path of the file, which `torch.load(path, weights_only=True)` reads.
        run: the run; its model and config must be those that the file was written with.
        scheduler: the learning rate schedule, or None.
        order: the generator that shuffles the examples.
        split: the training and validation examples, which must be those that the file was written with.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        run: Run,
        scheduler: torch.optim.lr_scheduler.LRScheduler | None,
        order: torch.Generator,
        split: Split,
    ) -> None:
        if not isinstance(path, str | os.PathLike):
            raise OptionError(f"checkpoint must be a path or None: got {path!r}")
        self.path, self.run, self.scheduler, self.order = Path(path), run, scheduler, order
        self.started_with = {
            "config": asdict(run.history.config),
            "model": {name: type(module).__name__ for name, module in run.model.named_modules()}
            | {name: f"{value.dtype} {tuple(value.shape)}" for name, value in run.model.named_parameters()},
            "data": [_digest(part) for examples in (split.train, split.val) for part in vars(examples).values()],
        }

    def __call__(self, run: Run) -> None:
        """Write everything that the rest of the run depends on."""
        state = {
            "format": FORMAT,
            "version": VERSION,
            **self.started_with,
            "weights": run.model.state_dict(),
            "best": run.history.best_state,
            "optimizer": run.optimizer.state_dict(),
            "scheduler": None if self.scheduler is None else self.scheduler.state_dict(),
            "random": {name: generator.get_state() for name, generator in self._generators().items()},
            "epochs": [asdict(epoch) for epoch in run.history.epochs],
            "stop": bool(run.stop),
        }
        with whole_file(self.path, "a checkpoint") as scratch:
            torch.save(state, scratch)

    def resume(self) -> None:
        """Restore the run from the file; without a file, do nothing. After an error the model is unchanged."""
        if not self.path.exists():
            return
        state, run = self._read(), self.run
        before = {name: value.detach().clone() for name, value in run.model.state_dict().items()}
        try:
            run.model.load_state_dict(state["weights"])
            run.optimizer.load_state_dict(state["optimizer"])
            if self.scheduler is not None:
                self.scheduler.load_state_dict(state["scheduler"])
            for name, generator in self._generators().items():
                if name in state["random"]:  # a run may resume on another device
                    generator.set_state(state["random"][name])
            epochs = [Epoch(**epoch) for epoch in state["epochs"]]
            best_state = {name: value.to(before[name].device) for name, value in state["best"].items()}
        except (RuntimeError, ValueError, KeyError, TypeError, AttributeError) as error:
            run.model.load_state_dict(before)
            raise FormatError(f"cannot resume from {self.path}: {' '.join(str(error).split())}") from None
        run.history.epochs, run.history.best_state, run.stop = epochs, best_state, state["stop"]

    def _read(self) -> dict[str, Any]:
        """The state in the file, checked to be that of this run."""
        try:
            state = torch.load(self.path, map_location="cpu", weights_only=True)
        except (OSError, RuntimeError, ValueError, KeyError, EOFError, pickle.UnpicklingError) as error:
            raise FormatError(f"cannot read the checkpoint {self.path}: {str(error).partition(chr(10))[0]}") from None
        if not isinstance(state, dict) or (state.get("format"), state.get("version")) != (FORMAT, VERSION):
            raise FormatError(f"{self.path} is not a checkpoint of this version of dendritree")
        for what, ours in self.started_with.items():
            if state.get(what) != ours:
                changed = _changes(state.get(what), ours)
                raise FormatError(f"cannot resume from {self.path}: the {what} changed{changed}; use another file")
        return state

    def _generators(self) -> dict[str, torch.Generator]:
        """The random generators that the rest of the run uses."""
        device, cpu = next(self.run.model.parameters()).device, torch.device("cpu")
        generators = {"order": self.order, "torch": generator_on(cpu) or torch.default_generator}
        if device.type == "cuda":
            generators["cuda"] = generator_on(device) or torch.cuda.default_generators[device.index]
        return generators


def _changes(theirs: Any, ours: Any) -> str:
    """`: lr from 0.1 to 0.2` for two mappings."""
    if not isinstance(theirs, dict) or not isinstance(ours, dict):
        return ""
    changed = [key for key in {**theirs, **ours} if theirs.get(key) != ours.get(key)]
    return ": " + ", ".join(
        f"{key or 'the model'} from {theirs.get(key)!r} to {ours.get(key)!r}" for key in changed[:4]
    )


def _digest(values: Tensor | None) -> str | None:
    """The type, shape and a hash of the values of a tensor."""
    if values is None:
        return None
    content = values.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    return f"{values.dtype} {tuple(values.shape)} {hashlib.blake2b(content.data, digest_size=16).hexdigest()}"
