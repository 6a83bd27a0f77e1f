"""`dendritree tune`: search for the tree that suits a data set, within a budget."""

from __future__ import annotations

from .messages import print_next
from .options import DATA_DIR, DATA_HELP, IMAGE, TARGET, THREADS, Arguments, Option, image_shape, say_data
from .progress import Progress, resumable


def run(arguments: Arguments) -> None:
    """Search for the best tree within a budget, and train it."""
    from ..studies.engine.task import Task
    from ..studies.tuning import tune
    from ..studies.tuning.search import FINAL
    from ..studies.tuning.search_sections import write_tuning

    task = Task.named(arguments.data, target=arguments.target, image=image_shape(arguments))
    say_data(task.held)
    with resumable("the study"), Progress(counted={FINAL: "epochs"}) as progress:
        result = tune(
            task,
            **arguments.only("budget", "trials", "steps", "seed", "threads", "out", "storage", "data_dir"),
            name=arguments.study or f"{task.name} {arguments.budget}",
            observer=progress,
        )
    files = write_tuning(result, arguments.out, task=task.name)
    print("\n".join([*result.verdict, "", f"    {result.code}"]))
    print(f"\nmodel:  {files.html.parent / 'model'}\nreport: {files.html}")
    print_next("view", files.html.parent / "model")


OPTIONS = [
    Option("data DATA", f"{DATA_HELP}; mnist:128 for 128 examples"),
    TARGET,
    IMAGE,
    Option("--budget N", "maximum number of parameters, such as 9k", required=True),
    Option("--trials N", "configurations to try in total", 50),
    Option("--steps N", "training steps per trial", 1000),
    Option("--seed N", "random seed of the search", 0),
    THREADS,
    Option("--out DIR", "folder for model, report and study.db", "tuned"),
    Option("--storage URL", "database shared by several machines"),
    Option("--study NAME", "name in the database (default: data and budget)"),
    DATA_DIR,
]
EXAMPLES = """dendritree tune mnist --budget 9k --trials 50 --out tuned/
dendritree tune pets/ --budget 2k --out tuned/
dendritree tune houses.csv --target price --budget 1k --out tuned/"""
