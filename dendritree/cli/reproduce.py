"""`dendritree reproduce`: run the experiments of the paper that have not been run yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .options import DATA_DIR, POOL, Arguments, Option, make_pool
from .progress import Progress, resumable
from .report import show_reproduction

if TYPE_CHECKING:
    from ..studies.paper.reproduce import Observer
    from ..studies.paper.trials import Job


def run(arguments: Arguments) -> None:
    """Run the paper's experiments and report them beside its tables."""
    from ..studies.paper.report.writing import write_reproduction
    from ..studies.paper.reproduce import RunPlan, reproduce

    folder, pool = arguments.run, make_pool(arguments)
    plan = RunPlan.make(arguments.tables, **arguments.only("protocol", "trials", "draw"))
    with resumable(folder), Progress(on_done=lambda _: write_reproduction(folder, plan), overall="all") as progress:
        reproduce(folder, plan, pool=pool, data_dir=arguments.data_dir, observer=_adapt(progress))
    show_reproduction(*write_reproduction(folder, plan))


def _adapt(progress: Progress) -> Observer:
    """Progress as the study calls it today."""
    from ..studies.paper.reproduce import Observer

    class Adapter(Observer):
        def planned(self, totals: dict[str, int], done: dict[str, int]) -> None:
            for table, total in totals.items():
                progress(table, done[table], total)

        def stored(self, job: Job, trials: int) -> None:
            done, total = progress.counts[job.row.table]
            progress(job.row.table, done + trials, total)

    return Adapter()


OPTIONS = [
    Option("tables [TABLE ...]", "tables or tasks: binary, multiclass, cnn (default: all)"),
    Option("--protocol P", "paper: as the authors did (default); full: all images", "paper"),
    Option("--trials N", "trials per row (default: 10, as in the paper)", type=int),
    Option("--draw D", "draw images per-trial (default) or once for all trials"),
    Option("--run DIR", "folder of the run", "reproduction"),
    DATA_DIR,
    *POOL,
]
EXAMPLES = """dendritree reproduce multiclass binary-mlp --trials 3
dendritree reproduce --backend dask --address tcp://10.0.0.1:8786"""
