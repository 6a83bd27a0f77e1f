"""`dendritree compare`: how many parameters do dendrites save, and what does the tree itself add?"""

from __future__ import annotations

from .messages import tell
from .options import DATA_DIR, WORKERS, Arguments, Option, make_workers
from .progress import Progress, resumable
from .report import show_comparison


def run(arguments: Arguments) -> None:
    """Compare trees with other models of the same size, tuned alike."""
    from ..studies.fair import ComparisonPlan, compare

    folder, workers = arguments.run, make_workers(arguments)
    plan = ComparisonPlan.make(
        arguments.tasks,
        budgets=arguments.budgets or (),
        families=arguments.families or (),
        **arguments.only("trials", "seeds", "steps"),
        test_steps=4 * arguments.steps,
    )
    with resumable(folder), Progress() as progress:
        whole = compare(folder, plan, workers=workers, **arguments.only("data_dir", "hours"), observer=progress)
    if not whole:
        tell(f"out of time; {folder} keeps what is done")
    show_comparison(folder, plan)


OPTIONS = [
    Option("tasks [DATA ...]", "data sets; mnist:128 for 128 examples (default: all)"),
    Option("--budgets N ...", "parameters, such as 9k (default: several per data set)"),
    Option("--families F ...", "tree, sparse, dense, linear (the default), ktree, denn, dnm, dmnn, dann"),
    Option("--trials N", "random configurations tried per family", 16),
    Option("--seeds N", "final models evaluated on the test set", 5),
    Option("--steps N", "steps per trial; x 4 for final models", 1000),
    Option("--hours H", "start nothing after this time (default: no limit)", type=float),
    Option("--run DIR", "folder of the run", "comparison"),
    DATA_DIR,
    *WORKERS,
]
EXAMPLES = "dendritree compare mnist --budgets 4k 9k --hours 1"
