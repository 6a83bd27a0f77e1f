"""`tune`: search as `compare` does, then further in the leading family, and save the best model within a budget."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dendritree.errors import OptionError
from dendritree.models import create_model
from dendritree.models.sizing import parameters_of, parse_count
from dendritree.storage import save
from dendritree.storage.folders import check_target
from dendritree.training import evaluate

from ...report.files import check_report_target
from ..engine.export_files import kept_model
from ..engine.runner import Observer, Workers, run_rounds, silent
from ..engine.store import RunStore
from ..engine.task import Task
from ..engine.trial import FINAL, MORE, SEARCH, TEST, Trial
from .comparison import DATA_FOLDER, check_data, run_fair_job
from .comparison_plan import (
    ComparisonCell,
    ComparisonPlan,
    FairJob,
    configuration_of,
    draw_configuration,
    validation_score,
)
from .families import FAMILIES, ON_IMAGES, OURS
from .tuned import Tuned

MODEL_FOLDER, SEARCH_FOLDER = "model", "search"
MORE_TRIALS = 1
"""The leading family then gets this many times as many further configurations."""
MORE_FINALISTS = 2
"""Number of finalists besides the best configuration of every family."""


def tune(
    data: Any,
    *,
    budget: int | str,
    out: str | os.PathLike[str],
    trials: int = 16,
    steps: int = 1000,
    families: Sequence[str] = (),
    image_shape: Sequence[int] | None = None,
    target: Any = None,
    run: str | os.PathLike[str] | None = None,
    workers: Workers | None = None,
    data_dir: str | None = None,
    observer: Observer = silent,
) -> Tuned:
    """Search for the best model within a parameter budget, among dendritic networks and standard ones.

    Every family is searched as by `compare`, with the same configurations and seeds; then the leading family gets
    as many further ones. The best configuration of every family and the next two of all are trained with a fresh seed
    for four times as many steps. The best of these by validation score is saved, and evaluated on the test set once.
    After Ctrl-C or a crash, the same call resumes and ends with the same model.

    Args:
        data: anything that `load_dataset` accepts, or a `Task`; scaled as by `load_dataset(...).scaled()`.
        budget: maximum number of parameters, such as 9000 or `"9k"`.
        out: the folder for `model`, which `dendritree.load` opens, and `inputs.json`, for `dendritree view`.
        trials: number of configurations tried per family.
        steps: approximate number of training steps of each.
        families: names in `FAMILIES`; by default those that `compare` uses for such data and that fit the budget.
        image_shape: (channels, height, width) of inputs that are pixels, if the data does not state it. Images of a
            folder are resized to it.
        target: the column of a table to predict.
        run: the folder of the trials, such as that of a `compare` whose search is used; by default `search` in `out`.
        workers: where the models are trained; by default one process per core, with one thread each.
        data_dir: a folder to search for built-in data sets first.
        observer: notified of how many trials of each step are done.

    Example:
        >>> import tempfile
        >>> here = Workers("here")
        >>> result = tune("digits:200", budget="1k", trials=1, steps=5, out=tempfile.mkdtemp(), workers=here)
        >>> result.parameters <= 1000, result.family in ON_IMAGES
        (True, True)
    """
    task = Task.named(data, target=target, image=image_shape)
    split, most = task.load(data_dir), parse_count("budget", budget)
    plan = _plan(task, most, families, trials=trials, steps=steps, test_steps=4 * steps)
    folder = Path(out)
    check_target(folder / MODEL_FOLDER)
    check_report_target(folder)
    with RunStore.create_or_open(run or folder / SEARCH_FOLDER, plan.as_config()) as store:
        options: dict[str, Any] = {"workers": workers, "data_dir": data_dir, "observer": observer}
        run_rounds(store, _rounds(plan, store), run_fair_job, stored=store.__contains__, **options)
        found = [trial for cell in plan.cells for trial in store.trials(**cell.key) if trial.key["phase"] != TEST]
        keys = [job.key for job in _finals(plan, store)]
        finals = _ordered(task, [trial for trial in store.kept_trials() if trial.key in keys])
    model = kept_model(finals[0])
    save(model, folder / MODEL_FOLDER)
    known = {"scaling": split.scaling, "classes": split.classes, "features": split.features}
    replace(task.origin, image_shape=task.image_shape, **known).write(folder)  # type: ignore[arg-type]
    return Tuned(
        task=task,
        budget=most,
        trials=tuple(found),
        finals=tuple(finals),
        model=model,
        test_score=task.score(*evaluate(model, split.test, task.loss)),
        examples=(len(split.val), len(split.test)),
    )


def _plan(task: Task, budget: int, families: Sequence[str], **options: Any) -> ComparisonPlan:
    """The families that have a model within the budget; an error if none has."""
    names = families or (OURS if task.image_shape is None else ON_IMAGES)
    plan = ComparisonPlan.make([task], budgets=[budget], families=names, seeds=1, **options)
    cells, why = [], ""
    for cell in plan.cells:
        try:
            configuration = draw_configuration(cell, 0)
        except OptionError as error:
            why = str(error)
            continue
        model = create_model(configuration.network, **configuration.arguments, device="meta")
        if (least := parameters_of(model)) <= budget:
            cells.append(cell)
        else:
            why = why or f"budget must be at least {least:,} for {FAMILIES[cell.family].title}: got {budget:,}"
    if not cells:
        raise OptionError(why)
    return replace(plan, cells=tuple(cells))


def _rounds(plan: ComparisonPlan, store: RunStore) -> Iterator[list[FairJob]]:
    """The trials of a plan: the search of every family, more of the best one, then the finalists."""
    check_data(store, plan)
    plan = plan.kept_in(store.folder / DATA_FOLDER)
    for jobs in (_searches, _more, _finals):
        yield jobs(plan, store)


def _searches(plan: ComparisonPlan, store: RunStore) -> list[FairJob]:
    del store
    return [job for cell in plan.cells for job in plan.searches(cell)]


def _more(plan: ComparisonPlan, store: RunStore) -> list[FairJob]:
    """More configurations of the leading family; those of a single size are excluded: only their rates vary."""
    (task,) = plan.tasks
    searched = [trial for cell in plan.cells if cell.budget for trial in store.trials(phase=SEARCH, **cell.key)]
    if not searched:
        return []
    leading = str(_ordered(task, searched)[0].key["family"])
    (cell,) = (cell for cell in plan.cells if cell.family == leading)
    numbers = range(plan.trials, plan.trials * (1 + MORE_TRIALS))
    return [FairJob(MORE, cell, index, draw_configuration(cell, index), plan.steps) for index in numbers]


def _finals(plan: ComparisonPlan, store: RunStore) -> list[FairJob]:
    """The best configuration of every family, and the next best of all."""
    task = plan.tasks[0]
    chosen: list[tuple[ComparisonCell, Trial]] = []
    rest: list[tuple[ComparisonCell, Trial]] = []
    for cell in plan.cells:
        tried = [trial for trial in store.trials(**cell.key) if trial.key["phase"] in (SEARCH, MORE)]
        first, *others = [(cell, trial) for trial in _ordered(task, tried)]
        chosen.append(first)
        rest += others
    rest.sort(key=lambda pair: -task.goodness(validation_score(task, pair[1])))
    return [
        FairJob(FINAL, cell, int(trial.key["trial"]), configuration_of(trial), plan.test_steps)
        for cell, trial in chosen + rest[:MORE_FINALISTS]
    ]


def _ordered(task: Task, trials: Sequence[Trial]) -> list[Trial]:
    """Trials from the best to the worst on validation; among equals, the smaller model first."""
    return sorted(trials, key=lambda trial: (-task.goodness(validation_score(task, trial)), trial.parameters))
