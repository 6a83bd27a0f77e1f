"""`dendritree tune`: search for the tree that suits a data set, within a budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import import_extra
from .options import DATA_DIR, Arguments, Option
from .progress import Progress, resumable

if TYPE_CHECKING:
    from ..studies.tuning import TrialResult


def run(arguments: Arguments) -> None:
    """Search for the best tree within a budget, and train it."""
    from ..studies.fair.tasks import Task
    from ..studies.tuning import tune
    from ..studies.tuning.sections import write_tuning

    task = Task.parse(arguments.data)
    import_extra("matplotlib", extra="tune")  # what the report needs: now, not after the search
    split = task.load(arguments.data_dir)
    with resumable("the study"), Progress() as progress:
        found = tune(
            split,
            **arguments.only("budget", "trials", "steps", "seed", "out", "storage"),
            image_shape=task.image_shape,
            name=arguments.study or f"{task.name} {arguments.budget}",
            observer=_adapt(progress, task.metric),
        )
    files = write_tuning(found, arguments.out, task=task.name)
    print("\n".join(found.verdict))
    print(f"\nmodel:  {files.html.parent / 'model'}\nreport: {files.html}")


def _adapt(progress: Progress, metric: str) -> Callable[[TrialResult, int, int], None]:
    """Progress as the study calls it today."""
    best: float | None = None

    def observe(trial: TrialResult, done: int, total: int) -> None:
        nonlocal best
        if trial.whole and trial.score is not None:
            best = trial.score if best is None else (min if metric == "rmse" else max)(best, trial.score)
        shown = "does not fit" if trial.score is None else f"{metric} {trial.score:.4f}"
        size = "" if trial.parameters is None else f", {trial.parameters:,} parameters"
        end = "" if trial.whole else ", stopped early"
        so_far = "" if best is None else f"; best {metric} {best:.4f}"
        progress("trials", done, total, f"{shown}{size}{end}{so_far}")

    return observe


OPTIONS = [
    Option("data DATA", "mnist, digits, adult, ...; mnist:128 for 128 examples of it"),
    Option("--budget N", "parameters at most, such as 9k", required=True),
    Option("--trials N", "configurations tried, in all", 50),
    Option("--steps N", "training steps per trial", 1000),
    Option("--seed N", "random seed of the search", 0),
    Option("--out DIR", "folder of model, report and study.db", "tuned"),
    Option("--storage URL", "database shared by several machines"),
    Option("--study NAME", "name in the database (default: data and budget)"),
    DATA_DIR,
]
EXAMPLES = "dendritree tune mnist --budget 9k --trials 50 --out tuned/"
