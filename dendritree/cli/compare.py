"""`dendritree compare`: how many parameters do dendrites save, and what does the tree itself add?"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..errors import OptionError
from .messages import tell
from .options import DATA_DIR, DATA_HELP, IMAGE, TARGET, WORKERS, Arguments, Option, image_shape, make_workers, say_data
from .progress import Progress, resumable
from .report import show_comparison, show_inside


def run(arguments: Arguments) -> None:
    """Compare trees with other models of the same size, tuned alike."""
    folder, workers = arguments.run, make_workers(arguments)
    study, show = _inside(arguments) if arguments.inside else _comparison(arguments)
    with resumable(folder), Progress() as progress:
        whole = study(folder, workers=workers, **arguments.only("data_dir", "hours"), observer=progress)
    if not whole:
        tell(f"out of time; {folder} keeps what is done")
    show(folder)


Study = tuple[Callable[..., bool], Callable[[str], None]]
"""What runs in a folder, and what shows its report."""


def _comparison(arguments: Arguments) -> Study:
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
    return partial(compare, plan=plan), partial(show_comparison, plan=plan)


def _inside(arguments: Arguments) -> Study:
    """What may stand in the place of the parts of deep networks."""
    from ..studies.inside import InsidePlan, compare_inside

    if given := [name for name in ("target", "image") if getattr(arguments, name)]:
        raise OptionError(f"--inside takes images and text as they are: got --{given[0]}")
    plan = InsidePlan.make(
        arguments.inside,
        datasets=arguments.tasks,
        kinds=arguments.families or (),
        divisors=[_divisor(share) for share in arguments.budgets or ()],
        data_dir=arguments.data_dir,
        seeds=3 if arguments.seeds is None else arguments.seeds,
        steps=arguments.steps,
    )
    return partial(compare_inside, plan=plan), show_inside


def _divisor(share: str) -> int:
    numerator, _, divisor = share.partition("/")
    if numerator != "1" or not (divisor.isdecimal() and divisor.isascii() and int(divisor[:9]) > 0):
        raise OptionError(f"--budgets takes shares of the parameters with --inside, as 1/3: got {share!r}")
    return int(divisor[:9])


OPTIONS = [
    Option("tasks [DATA ...]", f"{DATA_HELP}; mnist:128 for 128 examples (default: all built-in ones)"),
    TARGET,
    IMAGE,
    Option("--budgets N ...", "parameters, such as 9k (default: several per data set)"),
    Option("--families F ...", "such as tied conv (default: tree sparse dense linear)"),
    Option("--inside NET ...", "as parts of cnn, vit, mixer, gpt; budgets such as 1/3"),
    Option("--trials N", "random configurations tried per family", 16),
    Option("--seeds N", "final models evaluated (default: 5; 3 with --inside)", type=int),
    Option("--steps N", "steps per trial; x 4 for final models", 1000),
    Option("--hours H", "start nothing after this time (default: no limit)", type=float),
    Option("--run DIR", "folder of the run", "comparison"),
    DATA_DIR,
    *WORKERS,
]
EXAMPLES = """dendritree compare mnist --budgets 4k 9k --hours 1
dendritree compare pets/ --image 28x28
dendritree compare houses.csv --target price
dendritree compare cifar10 --inside vit --budgets 1/10"""
