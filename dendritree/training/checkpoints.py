"""The file that an interrupted run resumes from: what it stores, and which runs may resume from it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .examples import Split
from ..errors import FormatError, OptionError, import_extra
from ..files import followed, unfinished_files
from ..randomness import generator_on
from .history import Epoch, Run
from .tensor_file import check_writable, fingerprint, kind_of, read_checkpoint, write_checkpoint

Parts = dict[str, Mapping[str, Tensor]]

RATES = ("lr", "initial_lr")
"""What changes in the parameter groups of an optimizer."""
STEPS = ("last_epoch", "_step_count")
"""What changes in a scheduler."""
MOST_LISTED = 4
"""Maximum number of differences listed in a message."""


class Checkpoint:
    """A callback that writes the checkpoint of a run after each epoch, and resumes an interrupted run from it.

    Args:
        path: path of the file.
        run: the states of its model and its optimizer, its epochs and its best state are saved; the classes of the
            model's modules and the config must stay the same.
        scheduler: its position in the schedule is saved.
        order: shuffles the examples; its random state is saved, as is torch's.
        split: the training and validation examples, which must stay the same.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        run: Run,
        scheduler: torch.optim.lr_scheduler.LRScheduler | None,
        order: torch.Generator,
        split: Split,
    ) -> None:
        import_extra("safetensors.torch", extra="save")  # raise before any training
        if not isinstance(path, str | os.PathLike):
            raise OptionError(f"checkpoint must be a path or None: got {path!r}")
        for name, value in run.model.state_dict().items():
            if not isinstance(value, Tensor):
                raise OptionError(f"the state of a model with a checkpoint must be tensors: {name} is {value!r:.80}")
        self.path, self.run, self.scheduler, self.order = Path(path), run, scheduler, order
        target = followed(self.path)
        parts = {"train": vars(split.train), "val": vars(split.val)}
        examples = {f"{part}.{name}": value for part, values in parts.items() for name, value in values.items()}
        self.same = {
            "config": asdict(run.history.config),
            "model": {name or "the model": type(module).__name__ for name, module in run.model.named_modules()},
            "data": {name: fingerprint(value) for name, value in examples.items() if value is not None},
        }
        self._unfinished = unfinished_files(target.parent, target.name)

    # ---------------------------------------------------------------------------------------------------------- writing

    def __call__(self, run: Run) -> None:
        """Write everything that the rest of the run depends on, as a callback after each epoch."""
        tensors = {f"{part}.{name}": value for part, values in self._parts().items() for name, value in values.items()}
        facts = {
            **self.same,
            **self._place(),
            "tensors": sorted(tensors),
            "epochs": [asdict(epoch) for epoch in run.history.epochs],
            "stop": bool(run.stop),
        }
        write_checkpoint(self.path, tensors, facts)
        self.tidy()

    def tidy(self) -> None:
        """Remove the temporary files of a killed run.

        Only files that existed when this run started: a process that is alive has renamed its file by now.
        """
        for path in self._unfinished:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)

    def _parts(self) -> Parts:
        """The tensors of the run, by the prefix before the first dot of their names in the file."""
        return {
            "model": self.run.model.state_dict(),
            "best": self.run.history.best_state,
            "optimizer": optimizer_tensors(self.run.optimizer),
            "random": {name: generator.get_state() for name, generator in self._generators().items()},
        }

    def _place(self) -> dict[str, Any]:
        """The position in the schedule, and the learning rates, because a callback may have set them."""
        groups, scheduler = self.run.optimizer.param_groups, self.scheduler
        return {
            "rates": [{key: float(group[key]) for key in RATES if key in group} for group in groups],
            "schedule": None if scheduler is None else {key: getattr(scheduler, key) for key in STEPS},
        }

    def _generators(self) -> dict[str, torch.Generator]:
        """The random generators that the rest of the run uses."""
        device, cpu = next(self.run.model.parameters()).device, torch.device("cpu")
        found = {"order": self.order, "torch": generator_on(cpu) or torch.default_generator}
        if device.type == "cuda":
            found["cuda"] = generator_on(device) or torch.cuda.default_generators[device.index]
        return found

    # --------------------------------------------------------------------------------------------------------- resuming

    def resume(self) -> None:
        """Restore the run from the file; without a file, do nothing.

        Everything is checked first: if this raises, neither the model nor anything else in the run has changed.
        """
        run = self.run
        try:
            exists = self.path.exists()
        except OSError:  # no permission to look; `check_writable` gives the reason
            exists = False
        parts, facts = self._read() if exists else ({}, {"stop": False, "epochs": []})
        if not facts["stop"] and len(facts["epochs"]) < run.history.config.epochs:
            check_writable(self.path)
        if not exists:
            return
        self._load_model(parts)
        put_optimizer_tensors(run.optimizer, parts["optimizer"])
        for group, rates in zip(run.optimizer.param_groups, facts["rates"], strict=True):
            group.update(rates)
        if self.scheduler is not None:
            self.scheduler.load_state_dict(self.scheduler.state_dict() | facts["schedule"])
        for name, generator in self._generators().items():
            if name in parts["random"]:
                generator.set_state(parts["random"][name])
        devices = {name: value.device for name, value in run.model.state_dict().items()}
        run.history.best_state = {name: value.to(devices[name]) for name, value in parts["best"].items()}
        run.history.epochs = [Epoch(**epoch) for epoch in facts["epochs"]]
        run.stop = facts["stop"]

    def _read(self) -> tuple[Parts, dict[str, Any]]:
        """Tensors and facts of the file, after checking that they belong to this run and are complete."""
        tensors, facts = read_checkpoint(self.path)
        parts: dict[str, dict[str, Tensor]] = {part: {} for part in self._parts()}
        for name, value in tensors.items():
            part, _, rest = name.partition(".")
            parts.setdefault(part, {})[rest] = value
        for what, ours in self.same.items():
            self._check_same(what, facts.get(what), ours)
        kinds = {part: _kinds(values) for part, values in parts.items()}
        ours = {part: _kinds(values) for part, values in self._parts().items()}
        self._check_same("model", kinds["model"], ours["model"])
        for random in (kinds["random"], ours["random"]):
            random.pop("cuda", None)  # a run may resume on another device, with slightly different results
        epochs, row = facts.get("epochs"), dict.fromkeys(Epoch.__dataclass_fields__, 0.0)
        is_valid = {
            "tensors": facts.get("tensors") == sorted(tensors),
            "best state": kinds["best"] == ours["model"],
            "random state": kinds["random"] == ours["random"],
            "epochs": isinstance(epochs, list) and bool(epochs) and _form(epochs) == _form([row] * len(epochs)),
            "stop": isinstance(facts.get("stop"), bool),
            **{name: _form(facts.get(name)) == _form(example) for name, example in self._place().items()},
        }
        invalid = [name for name, valid in is_valid.items() if not valid]
        if invalid:
            rule = "a checkpoint must contain everything that its run needs to resume"
            raise FormatError(f"{rule}: {self.path} has no valid {', '.join(invalid)}")
        return dict(parts), facts

    def _check_same(self, what: str, theirs: object, ours: Mapping[str, Any]) -> None:
        """Raise if the file's run was started with something else, and list the differences."""
        theirs = theirs if isinstance(theirs, dict) else {}
        either = {**theirs, **ours}
        different = [key for key in either if not (key in theirs and key in ours and theirs[key] == ours[key])]
        if different:
            listed = [f"{key} {_shown(theirs, key)} -> {_shown(ours, key)}" for key in different[:MOST_LISTED]]
            listed += [f"{len(different) - MOST_LISTED} more"] * (len(different) > MOST_LISTED)
            raise FormatError(
                f"a run resumes with the {what} it was started with: {self.path} differs in {', '.join(listed)}"
            )

    def _load_model(self, parts: Parts) -> None:
        """Load the best and the last state, or neither: only the model itself can tell whether it accepts a wiring."""
        model = self.run.model
        before = {name: value.detach().clone() for name, value in model.state_dict().items()}
        try:
            for part in ("best", "model"):
                model.load_state_dict(parts[part])
        except Exception as error:  # the modules before the one that raised have already loaded
            model.load_state_dict(before)
            problem = " ".join(str(error).split())
            raise FormatError(
                f"a run resumes with the model it was started with: {self.path} differs ({problem})"
            ) from None


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimizer's state for each parameter, keyed by the parameter's index and the state's name."""
    return {
        f"{number}.{name}": value
        for number, parameter in enumerate(_parameters(optimizer))
        for name, value in optimizer.state.get(parameter, {}).items()
        if isinstance(value, Tensor)
    }


def put_optimizer_tensors(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Set an optimizer to the state that `optimizer_tensors` returned."""
    parameters = _parameters(optimizer)
    for key, value in tensors.items():
        number, _, name = key.partition(".")
        parameter = parameters[int(number)]
        # Torch keeps the step count on the CPU.
        optimizer.state[parameter][name] = value if name == "step" else value.to(parameter.device)


def _parameters(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _kinds(tensors: Mapping[str, Tensor]) -> dict[str, str]:
    return {name: kind_of(value) for name, value in tensors.items()}


def _shown(values: Mapping[str, Any], key: str) -> str:
    return repr(values[key]) if key in values else "nothing"


def _form(value: Any) -> Any:
    """A JSON value with `float` in place of every number."""
    if isinstance(value, dict):
        return {key: _form(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_form(each) for each in value]
    return float if isinstance(value, int | float) and not isinstance(value, bool) else value
