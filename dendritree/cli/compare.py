"""`dendritree compare`: how many parameters do dendrites save, and what does the tree itself add?"""

from __future__ import annotations

from ..errors import OptionError
from .messages import tell
from .options import DATA_DIR, IMAGE, TARGET, WORKERS, Arguments, Option, image_shape, make_workers, say_data
from .progress import Progress, resumable
from .report import show_comparison, show_inside, show_tables

TABLES = "tables"
"""The word that asks for the study of tables; a folder of that name is ./tables."""
OF_TABLES, OF_OTHERS = ("tables", "half", "folds"), ("target", "image", "budgets", "inside", "trials", "seeds", "steps")


def run(arguments: Arguments) -> None:
    """Compare trees with other models of the same size, tuned alike."""
    if arguments.tasks == [TABLES]:
        _run_tables(arguments)
        return
    if given := [name for name in OF_TABLES if getattr(arguments, name) is not None]:
        raise OptionError(
            f"--{given[0]} is for dendritree compare tables: got {' '.join(arguments.tasks) or 'no word'}"
        )
    arguments.trials = 16 if arguments.trials is None else arguments.trials
    arguments.steps = 1000 if arguments.steps is None else arguments.steps
    if arguments.inside:
        _run_inside(arguments)
        return
    from ..studies.fair import ComparisonPlan, compare

    folder, workers = arguments.run, make_workers(arguments)
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
    with resumable(folder), Progress() as progress:
        whole = compare(folder, plan, workers=workers, **arguments.only("data_dir", "hours"), observer=progress)
    if not whole:
        tell(f"out of time; {folder} keeps what is done")
    show_comparison(folder, plan)


def _run_inside(arguments: Arguments) -> None:
    """Compare what may stand in the place of the parts of deep networks."""
    from ..studies.inside import InsidePlan, compare_inside

    if given := [name for name in ("target", "image") if getattr(arguments, name)]:
        raise OptionError(f"--inside takes images and text as they are: got --{given[0]}")
    folder, workers = arguments.run, make_workers(arguments)
    plan = InsidePlan.make(
        arguments.inside,
        datasets=arguments.tasks,
        kinds=arguments.families or (),
        divisors=[_divisor(share) for share in arguments.budgets or ()],
        data_dir=arguments.data_dir,
        seeds=3 if arguments.seeds is None else arguments.seeds,
        steps=arguments.steps,
    )
    with resumable(folder), Progress() as progress:
        whole = compare_inside(folder, plan, workers=workers, **arguments.only("data_dir", "hours"), observer=progress)
    if not whole:
        tell(f"out of time; {folder} keeps what is done")
    show_inside(folder)


def _run_tables(arguments: Arguments) -> None:
    """Compare the estimators as they come with MLPs and gradient boosting."""
    from ..studies.tables import TablesPlan, compare_tables

    if given := [name for name in OF_OTHERS if getattr(arguments, name) is not None]:
        raise OptionError(f"compare tables takes estimators as they come, on its own tables: got --{given[0]}")
    folder, workers = arguments.run, make_workers(arguments)
    plan = TablesPlan.make(
        arguments.tables or (),
        half=arguments.half or "all",
        families=arguments.families or (),
        folds=5 if arguments.folds is None else arguments.folds,
    )
    with resumable(folder), Progress("models") as progress:
        whole = compare_tables(folder, plan, workers=workers, **arguments.only("data_dir", "hours"), observer=progress)
    if not whole:
        tell(f"out of time; {folder} keeps what is done")
    show_tables(folder)


def _divisor(share: str) -> int:
    numerator, _, divisor = share.partition("/")
    if numerator != "1" or not (divisor.isdecimal() and divisor.isascii() and int(divisor[:9]) > 0):
        raise OptionError(f"--budgets takes shares of the parameters with --inside, as 1/3: got {share!r}")
    return int(divisor[:9])


OPTIONS = [
    Option(
        "tasks [DATA ...]",
        "built-in name (dendritree data list), .npz, x.npy, folder of images, table; or: tables (default: all)",
    ),
    TARGET,
    IMAGE,
    Option("--budgets N ...", "parameters, such as 9k (default: several per data set)"),
    Option("--families F ...", "such as tied conv (default: tree sparse dense linear)"),
    Option("--inside N ...", "as parts of cnn, vit, mixer, gpt; budgets such as 1/3"),
    Option("--trials N", "random configurations tried per family (default: 16)", type=int),
    Option("--seeds N", "final models evaluated (default: 5; 3 with --inside)", type=int),
    Option("--steps N", "steps per trial; x 4 for final models (default: 1000)", type=int),
    Option("--tables T ...", "of compare tables: iris, adult ... (default: all 47)"),
    Option("--half H", "of its tables: choose, held-out or all (default: all)"),
    Option("--folds N", "of each of its tables (default: 5)", type=int),
    Option("--hours H", "start nothing after this time (default: no limit)", type=float),
    Option("--run DIR", "folder of the run", "comparison"),
    DATA_DIR,
    *WORKERS,
]
EXAMPLES = """dendritree compare mnist:128 --budgets 4k 9k --hours 1
dendritree compare cifar10 --inside vit --budgets 1/10
dendritree compare tables --half held-out --run tables"""
