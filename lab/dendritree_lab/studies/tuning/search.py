"""The search: trials on the validation examples, then one training of the best, tested once."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import optuna
import torch
from filelock import FileLock, Timeout

from dendritree.errors import DendritreeError, OptionError, check_int
from dendritree.models.sizing import parameters_of, parse_count
from dendritree.storage import save
from dendritree.storage.folders import check_target
from dendritree.training import Callback, Run, evaluate
from dendritree.training.threads import torch_threads
from dendritree.wiring.image_orders import check_image_shape

from ...data.inputs import Inputs
from ...data.split import DataSplit
from ...report.files import check_report_target
from ..engine.configuration import train
from ..engine.runner import Observer, silent
from ..engine.task import Task, digest, epochs_for
from .search_result import TrialResult, Tuned
from .space import Space
from .study import counted, fail_left_trials, give_up, open_study, results

MODEL_FOLDER, DATABASE, LOCK = "model", "study.db", "study.lock"
LONGER = 4
"""How many times longer than a trial the best configuration is trained."""
FEWEST_FOR_IMPORTANCE = 8
FEWEST_RIVALS = 4
"""Minimum number of completed trials before a trial is stopped for being worse than most."""
FINAL = "final training"
"""The step in which the best configuration is trained again; an observer is notified of its epochs."""
TESTED = "dendritree tested"


@dataclass(frozen=True)
class TuningPlan:
    """What all trials have in common."""

    split: DataSplit
    task: Task
    space: Space
    steps: int
    seed: int

    @property
    def epochs(self) -> int:
        """Epochs per trial."""
        return epochs_for(len(self.split.train), self.steps)

    def settings(self) -> dict[str, Any]:
        """Settings that must be equal for all trials of a study, as JSON values."""
        shape = self.space.image_shape
        return {
            "data": digest(self.split),
            "budget": self.space.budget,
            "image shape": None if shape is None else list(shape),
            "steps": self.steps,
            "seed": self.seed,
        }


def tune(
    data: Any,
    *,
    budget: int | str,
    trials: int = 50,
    image_shape: Sequence[int] | None = None,
    target: Any = None,
    data_dir: str | None = None,
    steps: int = 1000,
    seed: int = 0,
    threads: int = 1,
    out: str | os.PathLike[str] | None = None,
    storage: str | None = None,
    name: str = "tune",
    observer: Observer = silent,
) -> Tuned:
    """Search for the best dendritic network within a parameter budget.

    Trials see only training and validation examples; bad ones are stopped early (the median rule). Then the best
    configuration is trained again, four times as long with a fresh seed, and tested once. In one process the result
    depends only on the data, the seed and the other arguments, even if the search was stopped in between: after Ctrl-C,
    and in its own folder also after a kill, the same call resumes.

    Args:
        data: a `DataSplit`, used as it is: classes if `y` holds integers from 0, a quantity if it holds floats. Or a
            `Task`, or anything that `load_dataset` accepts, scaled as by `load_dataset(...).scaled()`.
        budget: the most parameters that a model may have, such as 9000 or `"9k"`.
        trials: how many configurations are tried, including those of earlier calls and of other processes.
        image_shape: (channels, height, width) of inputs that are pixels, if the data does not state it; then neurons
            may be wired locally. Images of a folder are resized to it.
        target: the column of a table to predict.
        data_dir: a folder to search for built-in data sets first.
        steps: approximate number of training steps per trial.
        seed: seed of the whole search.
        threads: threads of torch that train a network; the last bits of the result depend on it.
        out: a folder for `study.db`, `inputs.json` (for `dendritree view`) and `model`, which `dendritree.load` opens.
            None keeps everything in memory.
        storage: a database URL that Optuna accepts, instead of `study.db`: processes on many machines that name the
            same one share the trials.
        name: name of the study in the database.
        observer: called after each trial with how many are done, those of other processes included, and how it went;
            also after each epoch of the first trial and of the final training.

    Example:
        >>> from dendritree_lab.data import load_dataset
        >>> result = tune(load_dataset("digits"), budget="1k", trials=2, steps=20, image_shape=(1, 8, 8))
        >>> result.parameters <= 1000, len(result.trials)
        (True, 2)
    """
    trials = check_int("trials", trials)
    check_int("seed", seed, least=0)
    split, inputs = _examples(data, image_shape, target, data_dir)
    task = Task.of(split, inputs.image_shape)
    space = Space(task.in_features, task.out_features, parse_count("budget", budget), task.image_shape)
    with torch.random.fork_rng(devices=[]):
        if space.configuration(space.cheapest()) is None:
            raise OptionError(
                f"budget must leave room for two neurons: {space.budget:,} parameters do not, from {space.in_features} "
                f"inputs to {space.out_features} outputs"
            )
    plan = TuningPlan(split, task, space, check_int("steps", steps), seed)
    folder = None if out is None else Path(out)
    if folder is not None:
        check_target(folder / MODEL_FOLDER)
        check_report_target(folder)
    with torch_threads(threads), torch.random.fork_rng(devices=[]), contextlib.ExitStack() as stack:
        alone = folder is not None and storage is None
        if folder is not None and storage is None:
            stack.enter_context(_locked(folder))
            storage = f"sqlite:///{(folder / DATABASE).resolve()}"
        direction = "maximize" if task.metric == "accuracy" else "minimize"
        study = stack.enter_context(open_study(storage, name, direction, plan.settings()))
        if folder is not None and (folder / MODEL_FOLDER).exists() and TESTED not in study.user_attrs:
            raise OptionError(
                f"--out must be a new folder for a new study: {folder / MODEL_FOLDER} is the model of another one"
            )
        if alone:
            fail_left_trials(study)
        study.enqueue_trial(space.default(), skip_if_exists=True)
        done = {trial.number: trial for trial in results(study)}
        observer("trials", len(done), max(trials, len(done)))
        while len(done) < trials:
            number = _run_trial(study, plan, _first_epochs(task, trials, observer) if not done else [])
            done = {trial.number: trial for trial in results(study)}
            observer("trials", len(done), max(trials, len(done)), _note(task, done, number))
        result = _test(study, plan, folder, observer)
    if folder is not None:
        inputs.write(folder)
    return result


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """The folder of a search, which only one process may use at a time."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / LOCK).acquire(blocking=False)
    except Timeout:
        raise DendritreeError(
            f"another process searches in {folder}; to share the trials, give both the same --storage"
        ) from None
    except OSError as error:
        raise DendritreeError(f"cannot write to {folder}: {error.strerror}") from None
    with lock:
        yield


def _examples(
    data: Any, image_shape: Sequence[int] | None, target: Any, data_dir: str | None
) -> tuple[DataSplit, Inputs]:
    """The examples for the search, and the description of them that is saved."""
    if isinstance(data, DataSplit):
        split, scaling, origin = data, None, Inputs()
    else:
        task = data if isinstance(data, Task) else Task.named(data, target=target, image=image_shape)
        split = task.load(data_dir)
        scaling, origin = split.scaling, task.origin
    shape = check_image_shape(split.image_shape if image_shape is None else tuple(image_shape))
    names = {"classes": split.classes, "features": split.features}
    return split, replace(origin, image_shape=shape, scaling=scaling, **names)  # type: ignore[arg-type]


def _first_epochs(task: Task, trials: int, observer: Observer) -> list[Callback]:
    """Report every epoch while no trial is done: on a large data set the first trial takes a minute."""

    def tell(run: Run) -> None:
        epoch, epochs = run.history.epochs[-1], run.history.config.epochs
        score = task.score(epoch.val_loss, epoch.val_acc)
        observer("trials", 0, trials, f"first trial, epoch {epoch.epoch + 1} of {epochs}: {task.metric} {score:.4f}")

    return [tell]


def _note(task: Task, done: dict[int, TrialResult], number: int) -> str:
    """How a trial went, and the best so far."""
    trial = done[number]
    scores = [each.score for each in done.values() if each.whole and each.score is not None]
    shown = "does not fit" if trial.score is None else f"{task.metric} {trial.score:.4f}"
    size = "" if trial.parameters is None else f", {trial.parameters:,} parameters"
    best = f"; best {task.metric} {max(scores, key=task.goodness):.4f}" if scores else ""
    return f"{shown}{size}{'' if trial.whole else ', stopped early'}{best}"


def _seed(plan: TuningPlan, what: str, index: int) -> int:
    """A separate seed for every purpose."""
    text = f"tune {plan.seed} {what} {index}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


# ------------------------------------------------------------------------------------------------------------- trials


class Pruning:
    """A callback of `fit` that records every epoch in the study and stops a trial that is worse than most.

    This is the median rule among completed trials with the same share of the budget: compared with large models, no
    small one would finish, and the search would not show what fewer parameters cost.
    """

    def __init__(self, trial: Any, task: Task, epochs: int) -> None:
        self.trial, self.task, self.stopped = trial, task, False
        self.patient_until = max(1, epochs // 4)
        self.best = -math.inf
        rivals = [t for t in counted(trial.study) if t.state.name == "COMPLETE"]
        share = trial.params["share"]
        self.rivals = [t.intermediate_values for t in rivals if t.params["share"] == share]

    def __call__(self, run: Run) -> None:
        """Called after each epoch."""
        epoch = run.history.epochs[-1]
        score = self.task.score(epoch.val_loss, epoch.val_acc)
        if math.isfinite(score):
            self.trial.report(score, epoch.epoch)
            self.best = max(self.best, self.task.goodness(score))
        last = epoch.epoch + 1 == run.history.config.epochs
        if not math.isfinite(score) or (not last and self._is_bad(epoch.epoch)):
            run.stop = self.stopped = True

    def _is_bad(self, epoch: int) -> bool:
        reached = [self.task.goodness(values[epoch]) for values in self.rivals if epoch in values]
        if epoch < self.patient_until or len(reached) < FEWEST_RIVALS:
            return False
        return self.best < statistics.median(reached)


def _run_trial(study: Any, plan: TuningPlan, callbacks: Sequence[Callback]) -> int:
    """Choose, train and report to the study; return the trial's number.

    A trial's seeds depend on its position among those that did not fail: an interrupted search tries the same
    configurations as one that was not interrupted.
    """
    trial, chosen = study.ask(), dict[str, Any]()
    try:
        index = _place(study, trial.number)
        study.sampler = optuna.samplers.TPESampler(seed=_seed(plan, "choice", index))
        chosen = plan.space.suggest(trial)
        state, score = _train(trial, chosen, plan, _seed(plan, "trial", index), callbacks)
        study.tell(trial, score, state=getattr(optuna.trial.TrialState, state))
    except KeyboardInterrupt:
        give_up(study, trial.number, chosen)
        raise
    except Exception:  # no trial may be left in the running state
        study.tell(trial, state=optuna.trial.TrialState.FAIL, skip_if_finished=True)
        raise
    return int(trial.number)


def _place(study: Any, number: int) -> int:
    """The number that a trial would have if none before it had failed."""
    failed = [t for t in study.get_trials(deepcopy=False) if t.state.name == "FAIL" and t.number < number]
    return number - len(failed)


def _train(
    trial: Any, chosen: dict[str, Any], plan: TuningPlan, seed: int, callbacks: Sequence[Callback]
) -> tuple[str, float | None]:
    """The final state of the trial, and its score."""
    configuration = plan.space.configuration(chosen)
    if configuration is None:
        return "PRUNED", None  # too expensive for the share of the budget that it chose
    start, pruning = time.perf_counter(), Pruning(trial, plan.task, plan.epochs)
    model, history = train(
        configuration, plan.task, plan.split, epochs=plan.epochs, seed=seed, callbacks=[pruning, *callbacks]
    )
    trial.set_user_attr("parameters", parameters_of(model))
    trial.set_user_attr("epochs", len(history.epochs))
    trial.set_user_attr("seconds", time.perf_counter() - start)
    score = plan.task.score(history.best.val_loss, history.best.val_acc)
    return ("PRUNED", None) if pruning.stopped or not math.isfinite(score) else ("COMPLETE", score)


# -------------------------------------------------------------------------------------------------------------- verdict


def _test(study: Any, plan: TuningPlan, folder: Path | None, observer: Observer) -> Tuned:
    """Train the best configuration again and evaluate it on the test examples."""
    trials = results(study)
    whole = {trial.number: trial for trial in trials if trial.whole}
    if not whole:
        raise OptionError(f"none of {len(trials)} trials was completed; try more trials")
    best = whole[study.best_trial.number]
    configuration = plan.space.configuration(best.chosen)
    assert configuration is not None  # it was trained
    epochs = epochs_for(len(plan.split.train), LONGER * plan.steps)
    seed = _seed(plan, "best", _place(study, best.number))

    def tell(run: Run) -> None:
        observer(FINAL, len(run.history.epochs), epochs)

    observer(FINAL, 0, epochs)
    model, history = train(configuration, plan.task, plan.split, epochs=epochs, seed=seed, callbacks=[tell])
    tested = sorted({*study.user_attrs.get(TESTED, []), best.number})
    study.set_user_attr(TESTED, tested)
    if folder is not None:
        save(model, folder / MODEL_FOLDER)
    importance: dict[str, float] = {}
    if len(whole) >= FEWEST_FOR_IMPORTANCE:
        evaluator = optuna.importance.FanovaImportanceEvaluator(seed=plan.seed % 2**32)
        importance = dict(optuna.importance.get_param_importances(study, evaluator=evaluator))
    return Tuned(
        name=study.study_name,
        task=plan.task,
        budget=plan.space.budget,
        trials=trials,
        best=best,
        preset=next((trial for trial in whole.values() if trial.chosen == plan.space.default()), None),
        importance=importance,
        model=model,
        epochs=epochs,
        val_score=plan.task.score(history.best.val_loss, history.best.val_acc),
        test_score=plan.task.score(*evaluate(model, plan.split.test, plan.task.loss)),
        val_examples=len(plan.split.val),
        test_looks=len(tested),
    )
