"""`dendritree compare`: how many parameters do dendrites save, and what does the tree itself add?"""

from __future__ import annotations

from .messages import tell
from .options import DATA_DIR, DATA_HELP, IMAGE, TARGET, WORKERS, Arguments, Option, image_shape, make_workers, say_data
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
        target=arguments.target,
        image=image_shape(arguments),
        **arguments.only("trials", "seeds", "steps"),
        test_steps=4 * arguments.steps,
    )
    for task in plan.tasks:
        say_data(task.held)
    with resumable(folder), Progress() as progress:
        whole = compare(folder, plan, workers=workers, **arguments.only("data_dir", "hours"), observer=progress)
    if not whole:
        tell(f"out of time; {folder} keeps what is done")
    show_comparison(folder, plan)


OPTIONS = [
    Option("tasks [DATA ...]", f"{DATA_HELP}; mnist:128 for 128 examples (default: all built-in ones)"),
    TARGET,
    IMAGE,
    Option("--budgets N ...", "parameters, such as 9k (default: several per data set)"),
    Option(
        "--families F ...",
        "tree, sparse, dense, linear (the default), tied, tied-linear, conv, tree-conv, ktree, denn, dnm, dmnn, dann",
    ),
    Option("--trials N", "random configurations tried per family", 16),
    Option("--seeds N", "final models evaluated on the test set", 5),
    Option("--steps N", "steps per trial; x 4 for final models", 1000),
    Option("--hours H", "start nothing after this time (default: no limit)", type=float),
    Option("--run DIR", "folder of the run", "comparison"),
    DATA_DIR,
    *WORKERS,
]
EXAMPLES = """dendritree compare mnist --budgets 4k 9k --hours 1
dendritree compare mydata.npz --budgets 2k 8k
dendritree compare pets/ --image 28x28
dendritree compare houses.csv --target price"""
