"""What a checkpoint keeps of a run, and when a run may go on from one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from ...errors import FormatError, OptionError, import_extra
from .files import check_writable, fingerprint, kind_of, read_checkpoint, unfinished_files, write_checkpoint
from .memory import optimizer_tensors, put_optimizer_tensors

__all__ = ["Checkpoint", "Progress"]

EpochT = TypeVar("EpochT")
Parts = dict[str, dict[str, Tensor]]

PARTS = ("model", "best", "optimizer", "random")
"""First words of the names of tensors in the file."""

RATES = ("lr", "initial_lr")
"""What changes in a group of an optimizer's parameters."""

STEPS = ("last_epoch", "_step_count")
"""What changes in a scheduler."""

MOST_TOLD = 4
"""Differences that a message lists."""


@dataclass(frozen=True)
class Progress(Generic[EpochT]):
    """How far a run is."""

    epochs: list[EpochT]
    best_state: dict[str, Tensor]
    """Of the model, after its best epoch."""
    stop: bool
    """A callback ended the run."""


class Checkpoint:
    """The file of a run: written after each epoch, and what a stopped run goes on from.

    Args:
        path: of the file.
        model: its state is kept; the classes of its modules must stay the same.
        optimizer: its memory and its rates are kept.
        scheduler: its place in the schedule is kept.
        order: shuffles the examples; its random state is kept, and torch's.
        config: of the run, as JSON values; must stay the same.
        data: what the run is trained and judged on; must stay the same.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        scheduler: torch.optim.lr_scheduler.LRScheduler | None,
        order: torch.Generator,
        *,
        config: Mapping[str, Any],
        data: Mapping[str, Tensor],
    ) -> None:
        import_extra("safetensors.torch", extra="save")  # told before an epoch is trained in vain
        if not isinstance(path, str | os.PathLike):
            raise OptionError(f"checkpoint must be a path or None: got {path!r}")
        for name, value in model.state_dict().items():
            if not isinstance(value, Tensor):
                raise OptionError(f"the state of a model with a checkpoint must be tensors: {name} is {value!r:.80}")
        self.path, self.model, self.optimizer = Path(path), model, optimizer
        self.scheduler, self.order = scheduler, order
        self.same = {
            "config": dict(config),
            "model": {name or "the model": type(module).__name__ for name, module in model.named_modules()},
            "data": {name: fingerprint(value) for name, value in data.items()},
        }
        self._unfinished = unfinished_files(self.path)

    # ---------------------------------------------------------------------------------------------------------- writing

    def write(self, epochs: Sequence[Mapping[str, float]], best_state: Mapping[str, Tensor], stop: bool) -> None:
        """Write all that the rest of the run depends on."""
        parts: dict[str, Mapping[str, Tensor]] = {
            "model": self.model.state_dict(),
            "best": best_state,
            "optimizer": optimizer_tensors(self.optimizer),
            "random": self._random_states(),
        }
        tensors = {f"{part}.{name}": value for part, values in parts.items() for name, value in values.items()}
        facts = {**self.same, **self._place(), "tensors": sorted(tensors), "epochs": list(epochs), "stop": bool(stop)}
        write_checkpoint(self.path, tensors, facts)
        self.tidy()

    def tidy(self) -> None:
        """Remove what a killed run left unfinished.

        Only files that were there when this run began: one of a process that is alive has taken its place meanwhile.
        """
        for path in self._unfinished:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)

    def _random_states(self) -> dict[str, Tensor]:
        states = {"order": self.order.get_state(), "torch": torch.get_rng_state()}
        if self._device.type == "cuda":
            states["cuda"] = torch.cuda.get_rng_state(self._device)
        return states

    def _place(self) -> dict[str, Any]:
        """Where the run is in its schedule; rates too, because a callback may have set them."""
        groups, scheduler = self.optimizer.param_groups, self.scheduler
        return {
            "rates": [{key: float(group[key]) for key in RATES if key in group} for group in groups],
            "schedule": None if scheduler is None else {key: getattr(scheduler, key) for key in STEPS},
        }

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    # --------------------------------------------------------------------------------------------------------- going on

    def go_on(self, epoch_class: type[EpochT]) -> Progress[EpochT]:
        """Put the run where the file left it; without a file, at its beginning.

        All is checked first: whatever is refused, neither the model nor anything else of the run has changed.
        """
        try:
            is_there = self.path.exists()
        except OSError:  # a place that nobody may look into; `check_writable` tells why
            is_there = False
        if not is_there:
            check_writable(self.path)
            return Progress([], {}, stop=False)
        parts, facts = self._read([field.name for field in fields(epoch_class)])  # type: ignore[arg-type]
        if not facts["stop"] and len(facts["epochs"]) < self.same["config"]["epochs"]:
            check_writable(self.path)
        self._put_model(parts)
        put_optimizer_tensors(self.optimizer, parts["optimizer"])
        for group, rates in zip(self.optimizer.param_groups, facts["rates"], strict=True):
            group.update(rates)
        if self.scheduler is not None:
            self.scheduler.load_state_dict(self.scheduler.state_dict() | facts["schedule"])
        self.order.set_state(parts["random"]["order"])
        torch.set_rng_state(parts["random"]["torch"])
        if self._device.type == "cuda" and "cuda" in parts["random"]:
            torch.cuda.set_rng_state(parts["random"]["cuda"], self._device)
        devices = {name: value.device for name, value in self.model.state_dict().items()}
        best_state = {name: value.to(devices[name]) for name, value in parts["best"].items()}
        return Progress([epoch_class(**epoch) for epoch in facts["epochs"]], best_state, facts["stop"])

    def _read(self, columns: Sequence[str]) -> tuple[Parts, dict[str, Any]]:
        """Tensors and facts of the file, once it is certain that they are of this run and complete."""
        tensors, facts = read_checkpoint(self.path)
        parts: Parts = {part: {} for part in PARTS}
        for name, value in tensors.items():
            part, _, rest = name.partition(".")
            parts.setdefault(part, {})[rest] = value
        for what, ours in self.same.items():
            self._check_same(what, facts.get(what), ours)
        kinds = _kinds(self.model.state_dict())
        self._check_same("model", _kinds(parts["model"]), kinds)
        epochs, row = facts.get("epochs"), dict.fromkeys(columns, 0.0)
        random, our_random = _kinds(parts["random"]), _kinds(self._random_states())
        for states in (random, our_random):
            states.pop("cuda", None)  # a run may go on elsewhere, though not to the same bits
        is_right = {
            "tensors": facts.get("tensors") == sorted(tensors),
            "best state": _kinds(parts["best"]) == kinds,
            "random state": random == our_random,
            "epochs": isinstance(epochs, list) and epochs != [] and all(_is_alike(epoch, row) for epoch in epochs),
            "stop": isinstance(facts.get("stop"), bool),
            **{name: _is_alike(facts.get(name), example) for name, example in self._place().items()},
        }
        wrong = [name for name, right in is_right.items() if not right]
        if wrong:
            rule = "a checkpoint must hold all that its run goes on with"
            raise FormatError(f"{rule}: {self.path} has no valid {', '.join(wrong)}")
        return parts, facts

    def _check_same(self, what: str, theirs: object, ours: Mapping[str, Any]) -> None:
        """Refuse the file of a run that was begun with something else, and tell what."""
        theirs = theirs if isinstance(theirs, dict) else {}
        either = {**theirs, **ours}
        different = [key for key in either if not (key in theirs and key in ours and theirs[key] == ours[key])]
        if different:
            told = [f"{key} {_told(theirs, key)} -> {_told(ours, key)}" for key in different[:MOST_TOLD]]
            told += [f"{len(different) - MOST_TOLD} more"] * (len(different) > MOST_TOLD)
            raise FormatError(
                f"a run goes on with the {what} it was begun with: {self.path} differs in {', '.join(told)}"
            )

    def _put_model(self, parts: Parts) -> None:
        """Load the best and the last state, or none: only the model itself knows whether it takes a wiring."""
        before = {name: value.detach().clone() for name, value in self.model.state_dict().items()}
        try:
            for part in ("best", "model"):
                self.model.load_state_dict(parts[part])
        except Exception as error:  # whatever a module raises, those before it have taken theirs
            self.model.load_state_dict(before)
            raise FormatError(
                f"a run goes on with the model it was begun with: {self.path} differs ({' '.join(str(error).split())})"
            ) from None


def _kinds(tensors: Mapping[str, Tensor]) -> dict[str, str]:
    return {name: kind_of(value) for name, value in tensors.items()}


def _told(values: Mapping[str, Any], key: str) -> str:
    return repr(values[key]) if key in values else "nothing"


def _is_alike(theirs: Any, ours: Any) -> bool:
    """Whether two JSON values have the same form and differ in numbers alone."""
    if isinstance(ours, dict):
        return (
            isinstance(theirs, dict)
            and theirs.keys() == ours.keys()
            and all(_is_alike(theirs[k], ours[k]) for k in ours)
        )
    if isinstance(ours, list):
        return isinstance(theirs, list) and len(theirs) == len(ours) and all(map(_is_alike, theirs, ours))
    if isinstance(ours, int | float):
        return isinstance(theirs, int | float) and not isinstance(theirs, bool)
    return bool(theirs == ours)
