"""`dendritree compare`: how many parameters do dendrites save, and what does the tree itself add?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .messages import print_next, tell
from .options import DATA_DIR, DATA_HELP, IMAGE, TARGET, WORKERS, Arguments, Option, image_shape, make_workers, say_data
from .progress import Progress, resumable

if TYPE_CHECKING:
    from ..studies.fair import Answer, ComparisonPlan


SCALE = "scale its inputs as load_dataset(...).scaled() does"
"""What the printed code of a model needs besides."""
RULE = {"trials": 16, "steps": 1000}
"""Default number of configurations tried per family, and of training steps for each."""


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
        tell(f"time limit reached; {folder} keeps the finished work, and the same command resumes it")
    names = [task.name for task in plan.tasks]
    data = dict(zip(names, arguments.tasks or names, strict=True))
    for answer in show_comparison(folder, plan):
        if answer.task.name in data:
            print_next("tune", data[answer.task.name], *_tuning(arguments, answer))


def show_comparison(folder: str, plan: ComparisonPlan | None = None) -> list[Answer]:
    """Write a comparison's report to its folder and print it; return its recommendations."""
    from ..studies.fair import answers, print_comparison, write_comparison

    comparison, files = write_comparison(folder, plan=plan)
    print_comparison(comparison)
    print(f"\nwrote {', '.join(map(str, files))}")
    found = answers(comparison)
    for answer in found:
        use, *others = answer.sentences
        print("\n".join(["", *others, use, f"    {answer.code}", f"    # {SCALE}"]))
    return found


def _tuning(arguments: Arguments, answer: Answer) -> list[object]:
    """Options of the `tune` command that resumes this search and saves the recommended model, or a better one."""
    cell = answer.use.cell
    budget = cell.budget or answer.use.parameters  # a linear model has one size
    only = "" if cell.budget else cell.family
    given = {"--target": arguments.target, "--image": arguments.image, "--data-dir": arguments.data_dir}
    given |= {"--budget": budget, "--families": only, "--run": arguments.run}
    given |= {f"--{name}": value for name, value in arguments.only("trials", "steps").items() if value != RULE[name]}
    return [word for option in given.items() if option[1] for word in option]


OPTIONS = [
    Option("tasks [DATA ...]", f"{DATA_HELP} (default: all)"),
    TARGET,
    IMAGE,
    Option("--budgets N ...", "parameter budgets, such as 9k (default: several per data set)"),
    Option(
        "--families F ...",
        "model families (default: deep cnn dense linear on images, tree sparse dense linear on tables)",
    ),
    Option("--trials N", "random configurations tried per family", RULE["trials"]),
    Option("--seeds N", "final models per family, one per seed", 5),
    Option("--steps N", "training steps per trial; 4 N for final models", RULE["steps"]),
    Option("--hours H", "hours after which no trial starts (default: no limit)", type=float),
    Option("--run DIR", "folder of the run", "comparison"),
    DATA_DIR,
    *WORKERS,
]
EXAMPLES = "dendritree compare pets/ --budgets 4k 9k --hours 1"
