"""`dendritree compare`: how many parameters do dendrites save, and what does the tree itself add?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .messages import print_next, tell
from .options import DATA_DIR, DATA_HELP, IMAGE, TARGET, WORKERS, Arguments, Option, image_shape, make_workers, say_data
from .progress import Progress, resumable

if TYPE_CHECKING:
    from ..studies.fair import ComparisonPlan


def run(arguments: Arguments) -> None:
    """Compare trees with other models of the same size, tuned the same way."""
    from ..studies.fair import ComparisonPlan, compare

    workers, folder = make_workers(arguments), arguments.run
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
        tell(f"out of time; {folder} keeps the finished work, and the same command resumes it")
    show_comparison(folder, plan)
    print_next(*_tune(arguments, plan))


def show_comparison(folder: str, plan: ComparisonPlan | None = None) -> None:
    """Write the report of a comparison into its folder, and print it."""
    from ..studies.fair import answers, print_comparison, write_comparison

    comparison, files = write_comparison(folder, plan=plan)
    print_comparison(comparison)
    for answer in answers(comparison):
        print("\n".join(["", *answer.sentences, f"    {answer.code}"]))
    print(f"\nwrote {', '.join(map(str, files))}")


def _tune(arguments: Arguments, plan: ComparisonPlan) -> list[str]:
    """The command that searches for a better tree on the same data, at the first budget; linear models have none."""
    budget = next((cell.budget for cell in plan.cells if cell.budget), 2000)
    given = {"--target": arguments.target, "--image": arguments.image, "--data-dir": arguments.data_dir}
    options = [word for option in given.items() if option[1] for word in option]
    return ["tune", *(arguments.tasks[:1] or ["mnist"]), *options, "--budget", str(budget), "--out", "tuned"]


OPTIONS = [
    Option("tasks [DATA ...]", f"{DATA_HELP} (default: all)"),
    TARGET,
    IMAGE,
    Option("--budgets N ...", "parameters, such as 9k (default: several per data set)"),
    Option(
        "--families F ...",
        "such as deep cnn (default: deep cnn dense linear on images, tree sparse dense linear on tables)",
    ),
    Option("--trials N", "random configurations tried per family", 16),
    Option("--seeds N", "final models evaluated", 5),
    Option("--steps N", "steps per trial; x 4 for final models", 1000),
    Option("--hours H", "start no trial after this time (default: no limit)", type=float),
    Option("--run DIR", "folder of the run", "comparison"),
    DATA_DIR,
    *WORKERS,
]
EXAMPLES = "dendritree compare pets/ --budgets 4k 9k --hours 1"
