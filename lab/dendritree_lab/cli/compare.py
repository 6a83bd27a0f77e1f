"""`dendritree compare`: how many parameters do dendrites save, and what does the tree itself add?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from dendritree.errors import OptionError

from .messages import print_next, tell
from .options import DATA_DIR, DATA_HELP, IMAGE, TARGET, WORKERS, Arguments, Option, image_shape, make_workers, say_data
from .progress import Progress, resumable
from .report import show_comparison, show_inside, show_tables

if TYPE_CHECKING:
    from ..studies.fair import ComparisonPlan

TABLES = "tables"
"""The argument that selects the study on tables; a folder of that name is ./tables."""
OF_TABLES, OF_OTHERS = ("tables", "half", "folds"), ("target", "image", "budgets", "inside", "trials", "seeds", "steps")


def run(arguments: Arguments) -> None:
    """Compare trees with other models of the same size, tuned alike."""
    workers = make_workers(arguments, extra="tables" if arguments.tasks == [TABLES] else "report")
    folder = arguments.run
    study, show, items, following = _study(arguments)
    with resumable(folder), Progress(items) as progress:
        whole = study(folder, workers=workers, **arguments.only("data_dir", "hours"), observer=progress)
    if not whole:
        tell(f"out of time; {folder} keeps the finished work, and the same command resumes it")
    show(folder)
    print_next(*following)


Study = tuple[Callable[..., bool], Callable[[str], None], str, Sequence[str]]
"""The function that runs in a folder, the one that shows its report, what progress counts, and the next command."""


def _study(arguments: Arguments) -> Study:
    if arguments.tasks == [TABLES]:
        return _tables(arguments)
    if given := [name for name in OF_TABLES if getattr(arguments, name) is not None]:
        raise OptionError(
            f"--{given[0]} is for dendritree compare tables: got {' '.join(arguments.tasks) or 'no word'}"
        )
    arguments.trials = 16 if arguments.trials is None else arguments.trials
    arguments.steps = 1000 if arguments.steps is None else arguments.steps
    return _inside(arguments) if arguments.inside else _comparison(arguments)


def _comparison(arguments: Arguments) -> Study:
    """Families of models at several budgets."""
    from ..studies.fair import ComparisonPlan, compare

    plan = ComparisonPlan.make(
        arguments.tasks,
        budgets=arguments.budgets or (),
        families=arguments.families or (),
        target=arguments.target,
        image=image_shape(arguments),
        **arguments.only("trials", "steps"),
        seeds=5 if arguments.seeds is None else arguments.seeds,
        test_steps=4 * arguments.steps,
    )
    for task in plan.tasks:
        say_data(task.held)
    return (
        partial(compare, plan=plan),
        partial(show_comparison, plan=plan),
        "trials",
        _tune(arguments, plan),
    )


def _tune(arguments: Arguments, plan: ComparisonPlan) -> list[str]:
    """The command that searches for a better tree on the same data, at the first budget; linear models have none."""
    budget = next((cell.budget for cell in plan.cells if cell.budget), 2000)
    given = {"--target": arguments.target, "--image": arguments.image, "--data-dir": arguments.data_dir}
    options = [word for option in given.items() if option[1] for word in option]
    return ["tune", *(arguments.tasks[:1] or ["mnist"]), *options, "--budget", str(budget), "--out", "tuned"]


def _inside(arguments: Arguments) -> Study:
    """Replacements for parts of deep networks."""
    from ..studies.inside import InsidePlan, compare_inside

    if given := [name for name in ("target", "image") if getattr(arguments, name)]:
        raise OptionError(f"--inside uses images and text unchanged: got --{given[0]}")
    plan = InsidePlan.make(
        arguments.inside,
        datasets=arguments.tasks,
        kinds=arguments.families or (),
        divisors=[_divisor(share) for share in arguments.budgets or ()],
        data_dir=arguments.data_dir,
        seeds=3 if arguments.seeds is None else arguments.seeds,
        steps=arguments.steps,
    )
    return partial(compare_inside, plan=plan), show_inside, "trials", ("report", arguments.run, "--export", "csv")


def _tables(arguments: Arguments) -> Study:
    """The estimators with default settings, against MLPs and gradient boosting."""
    from ..studies.tables import TablesPlan, compare_tables

    if given := [name for name in OF_OTHERS if getattr(arguments, name) is not None]:
        raise OptionError(f"compare tables uses default estimators on its own tables: got --{given[0]}")
    plan = TablesPlan.make(
        arguments.tables or (),
        half=arguments.half or "all",
        families=arguments.families or (),
        folds=5 if arguments.folds is None else arguments.folds,
    )
    following = ("fit", "your.csv", "--target", "COLUMN", "--out", "model")
    return partial(compare_tables, plan=plan), show_tables, "models", following


def _divisor(share: str) -> int:
    numerator, _, divisor = share.partition("/")
    if numerator != "1" or not (divisor.isdecimal() and divisor.isascii() and int(divisor[:9]) > 0):
        raise OptionError(f"--budgets takes shares of the parameters with --inside, such as 1/3: got {share!r}")
    return int(divisor[:9])


OPTIONS = [
    Option("tasks [DATA ...]", f"{DATA_HELP}; tables (default: all)"),
    TARGET,
    IMAGE,
    Option("--budgets N ...", "parameters, such as 9k (default: several per data set)"),
    Option("--families F ...", "such as tied conv (default: tree sparse dense linear)"),
    Option("--inside N ...", "replace parts of cnn, vit, mixer or gpt; budgets: 1/3"),
    Option("--trials N", "random configurations tried per family (default: 16)", type=int),
    Option("--seeds N", "final models evaluated (default: 5; 3 with --inside)", type=int),
    Option("--steps N", "steps per trial; x 4 for final models (default: 1000)", type=int),
    Option("--tables T ...", "compare tables: such as iris adult (default: all 47)"),
    Option("--half H", "compare tables: choose, held-out or all (default: all)"),
    Option("--folds N", "compare tables: folds per table (default: 5)", type=int),
    Option("--hours H", "start no new work after this time (default: no limit)", type=float),
    Option("--run DIR", "folder of the run", "comparison"),
    DATA_DIR,
    *WORKERS,
]
EXAMPLES = """dendritree compare pets/ --budgets 4k 9k --hours 1
dendritree compare cifar10 --inside vit --budgets 1/10
dendritree compare tables --half held-out --run tables"""
