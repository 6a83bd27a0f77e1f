"""`dendritree compare`: how many parameters do dendrites save, and what does the tree itself add?"""

from __future__ import annotations

import argparse
import sys

from ..errors import import_extra
from .bar import StepBar
from .command import Command

__all__ = ["COMPARE"]


def _compare(arguments: argparse.Namespace) -> int:
    from ..studies.engine.runner import Workers
    from ..studies.fair import ComparisonPlan, compare, print_comparison, write_comparison

    import_extra("scipy", extra="experiments")  # what the report needs: now, not after the training
    import_extra("matplotlib", extra="report")
    plan = ComparisonPlan.make(
        arguments.tasks,
        budgets=arguments.budgets or (),
        families=arguments.families or (),
        trials=arguments.trials,
        seeds=arguments.seeds,
        steps=arguments.steps,
        test_steps=4 * arguments.steps,
    )
    workers = Workers(arguments.backend, count=arguments.workers, address=arguments.address)
    try:
        with StepBar() as bar:
            whole = compare(
                arguments.run, plan, workers=workers, data_dir=arguments.data_dir, hours=arguments.hours, observer=bar
            )
    except KeyboardInterrupt:
        print(f"dendritree: stopped; {arguments.run} keeps what is done, the same command resumes", file=sys.stderr)
        return 130
    if not whole:
        print(f"dendritree: out of time; {arguments.run} keeps what is done", file=sys.stderr)
    comparison, files = write_comparison(arguments.run, plan=plan)
    print_comparison(comparison)
    print(f"wrote {', '.join(map(str, files))}")
    return 0


COMPARE = Command(
    "compare trees with other models of the same size, tuned alike",
    "",
    _compare,
    [
        (
            ("tasks",),
            {"nargs": "*", "metavar": "DATA", "help": "mnist, mnist:128 for 128 examples (default: all)"},
        ),
        (
            ("--budgets",),
            {"nargs": "+", "metavar": "N", "help": "parameters, as 9k (default: several for each data set)"},
        ),
        (
            ("--families",),
            {
                "nargs": "+",
                "metavar": "F",
                "help": "of tree, sparse, dense, linear (the default), ktree, denn, dnm, dmnn, dann",
            },
        ),
        (("--trials",), {"type": int, "default": 16, "metavar": "N", "help": "random choices tried (default: 16)"}),
        (
            ("--seeds",),
            {"type": int, "default": 5, "metavar": "N", "help": "models judged on the test set (default: 5)"},
        ),
        (
            ("--steps",),
            {"type": int, "default": 1000, "metavar": "N", "help": "of a try; four times as many when judged (1000)"},
        ),
        (("--hours",), {"type": float, "metavar": "H", "help": "begin nothing after this time (default: no limit)"}),
        (("--run",), {"default": "comparison", "metavar": "DIR", "help": "the run's folder (default: comparison)"}),
        (("--data-dir",), {"metavar": "DIR", "help": "look for data sets here first"}),
        (("--workers",), {"type": int, "metavar": "N", "help": "processes (default: one a core)"}),
        (
            ("--backend",),
            {"default": "loky", "metavar": "B", "help": "loky: processes (default); dask: a cluster; here: none"},
        ),
        (("--address",), {"metavar": "URL", "help": "of a Dask scheduler (default: a local cluster)"}),
    ],
    usage="dendritree compare [options] [DATA ...]",
    network_example="dendritree compare mnist --budgets 4k 9k --hours 1",
)
