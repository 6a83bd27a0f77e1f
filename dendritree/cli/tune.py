"""`dendritree tune`: search for the tree that suits a data set, within a budget."""

from __future__ import annotations

from ..errors import import_extra
from .options import DATA_DIR, Arguments, Option
from .progress import Progress, resumable


def run(arguments: Arguments) -> None:
    """Search for the best tree within a budget, and train it."""
    from ..studies.engine.task import Task
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
            observer=progress,
        )
    files = write_tuning(found, arguments.out, task=task.name)
    print("\n".join(found.verdict))
    print(f"\nmodel:  {files.html.parent / 'model'}\nreport: {files.html}")


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
