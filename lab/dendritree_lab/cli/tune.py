"""`dendritree tune`: the best model within a budget, dendritic or not, trained and saved."""

from __future__ import annotations

from pathlib import Path

from .compare import RULE, SCALE
from .messages import print_next
from .options import DATA_DIR, DATA_HELP, IMAGE, TARGET, WORKERS, Arguments, Option, image_shape, make_workers, say_data
from .progress import Progress, resumable


def run(arguments: Arguments) -> None:
    """Search for the best model within a budget, dendritic or not, and save it."""
    from ..studies.engine.task import Task
    from ..studies.fair import tune, write_tuning

    task = Task.named(arguments.data, target=arguments.target, image=image_shape(arguments))
    say_data(task.held)
    with resumable(arguments.run or arguments.out), Progress() as progress:
        result = tune(
            task,
            **arguments.only("budget", "trials", "steps", "out", "run", "data_dir"),
            families=arguments.families or (),
            workers=make_workers(arguments),
            observer=progress,
        )
    files, model = write_tuning(result, arguments.out), Path(arguments.out) / "model"
    print("\n".join([*result.verdict, "", f"    {result.code}", f"    # {SCALE}"]))
    print(f"\nmodel:  {model}\nreport: {files.html}")
    print_next("view", model)


OPTIONS = [
    Option("data DATA", f"{DATA_HELP}; mnist:128 for 128 examples"),
    TARGET,
    IMAGE,
    Option("--budget N", "maximum number of parameters, such as 9k", required=True),
    Option("--families F ...", "model families (default: those that fit the budget)"),
    Option("--trials N", "configurations per family, and 2 N more of the leading one", RULE["trials"]),
    Option("--steps N", "training steps per configuration; 4 N for finalists", RULE["steps"]),
    Option("--out DIR", "folder for the model and the report", "tuned"),
    Option("--run DIR", "folder of the search, or of a compare run to reuse (default: OUT/search)"),
    DATA_DIR,
    *WORKERS,
]
EXAMPLES = """dendritree tune mnist --budget 9k --out tuned/
dendritree tune pets/ --budget 2k --out tuned/
dendritree tune houses.csv --target price --budget 1k --out tuned/"""
