"""`dendritree reproduce`: run the experiments of the paper that have not been run yet."""

from __future__ import annotations

from .messages import print_next
from .options import DATA_DIR, WORKERS, Arguments, Option, make_workers
from .progress import Progress, resumable
from .report import show_reproduction


def run(arguments: Arguments) -> None:
    """Run the paper's experiments and report them next to its tables."""
    from ..studies.paper.paper_report import report_of_run
    from ..studies.paper.reproduction import RunPlan, reproduce

    folder, workers = arguments.run, make_workers(arguments)
    plan = RunPlan.make(arguments.tables, **arguments.only("protocol", "trials", "draw"))
    with resumable(folder), Progress(overall="all") as progress:
        reproduce(folder, plan, workers=workers, data_dir=arguments.data_dir, observer=progress)
    show_reproduction(*report_of_run(folder, plan))
    print_next("view", folder)


OPTIONS = [
    Option("tables [TABLE ...]", "tables or tasks: binary, multiclass, cnn (default: all)"),
    Option("--protocol P", "paper: as in the paper (default); full: all images", "paper"),
    Option("--trials N", "trials per row (default: 10, as in the paper)", type=int),
    Option("--draw D", "image draws: per-trial (default), once, or ten (of ten trials each)"),
    Option("--run DIR", "folder of the run", "reproduction"),
    DATA_DIR,
    *WORKERS,
]
EXAMPLES = """dendritree reproduce multiclass binary-mlp --trials 3
dendritree reproduce --backend dask --address tcp://10.0.0.1:8786"""
