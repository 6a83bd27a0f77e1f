"""`dendritree compare`: how many parameters do dendrites save, and what does the tree itself add?"""

from __future__ import annotations

import argparse
import sys
import time
from types import TracebackType
from typing import Any, Self

from ..errors import import_extra
from .command import Command

__all__ = ["COMPARE"]


def _compare(arguments: argparse.Namespace) -> int:
    from ..comparison import ComparisonPlan, compare
    from ..experiments.runner import Pool
    from ..report.comparison import print_comparison, write_comparison

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
    pool = Pool(arguments.backend, workers=arguments.workers, address=arguments.address)
    try:
        with Bar() as bar:
            whole = compare(
                arguments.run, plan, pool=pool, data_dir=arguments.data_dir, hours=arguments.hours, observer=bar
            )
    except KeyboardInterrupt:
        print(f"dendritree: stopped; {arguments.run} keeps what is done, and the same command goes on", file=sys.stderr)
        return 130
    if not whole:
        print(f"dendritree: out of time; {arguments.run} keeps what is done", file=sys.stderr)
    comparison, files = write_comparison(arguments.run)
    print_comparison(comparison)
    print(f"wrote {', '.join(map(str, files))}")
    return 0


class Bar:
    """What is being done: a bar on a terminal, a line a step elsewhere."""

    def __init__(self, of: str = "trials") -> None:
        self.of = of
        self.live: Any = None
        if sys.stderr.isatty():
            progress = import_extra("rich.progress", extra="experiments")
            console = import_extra("rich.console", extra="experiments").Console(stderr=True)
            self.live = progress.Progress(*progress.Progress.get_default_columns(), console=console)
        self.bars: dict[str, Any] = {}
        self.start = time.monotonic()

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show that `done` of `total` are there."""
        if self.live is None:
            if done == total:
                count = f"{total} {self.of}, " if total > 1 else ""
                print(f"{what}: {count}{time.monotonic() - self.start:.0f} s", file=sys.stderr, flush=True)
            return
        if what not in self.bars:
            self.bars[what] = self.live.add_task(what, total=total)
        self.live.update(self.bars[what], completed=done)

    def __enter__(self) -> Self:
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live is not None:
            self.live.stop()


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
