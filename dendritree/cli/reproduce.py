"""`dendritree reproduce`: run the paper's experiments, as far as they have not been run."""

from __future__ import annotations

import argparse
import sys

from ..errors import import_extra
from .bar import StepBar
from .command import Command
from .report import print_files

__all__ = ["REPRODUCE"]


def _reproduce(arguments: argparse.Namespace) -> int:
    from ..report import print_report
    from ..studies.engine.runner import Workers
    from ..studies.paper.report import report_of_run
    from ..studies.paper.reproduce import RunPlan, reproduce

    import_extra("scipy", extra="experiments")  # what the report needs: now, not after the training
    import_extra("matplotlib", extra="report")
    plan = RunPlan.make(arguments.tables, arguments.protocol, trials=arguments.trials, draw=arguments.draw)
    workers = Workers(arguments.backend, count=arguments.workers, address=arguments.address)
    try:
        with StepBar() as bar:

            def observe(what: str, done: int, total: int, note: str = "") -> None:
                bar(what, done, total, note)
                if done == total:
                    report_of_run(arguments.run, plan)

            reproduce(arguments.run, plan, workers=workers, data_dir=arguments.data_dir, observer=observe)
    except KeyboardInterrupt:
        print(f"dendritree: stopped; {arguments.run} keeps what is done, the same command resumes", file=sys.stderr)
        return 130
    report, files = report_of_run(arguments.run, plan)
    print_report(report)
    print_files(files)
    return 0


REPRODUCE = Command(
    "run the paper's experiments and report them beside its tables",
    "",
    _reproduce,
    [
        (
            ("tables",),
            {"nargs": "*", "metavar": "TABLE", "help": "binary, multiclass, cnn, or one as binary-mlp (default: all)"},
        ),
        (
            ("--protocol",),
            {"default": "paper", "metavar": "P", "help": "paper: as the authors did (default); full: all images"},
        ),
        (("--trials",), {"type": int, "metavar": "N", "help": "trials of each row (default: 10, as the paper)"}),
        (("--run",), {"default": "reproduction", "metavar": "DIR", "help": "the run's folder (default: reproduction)"}),
        (("--data-dir",), {"metavar": "DIR", "help": "look for MNIST here first"}),
        (("--draw",), {"metavar": "D", "help": "per-trial: each its own images (default); once: one draw"}),
        (("--workers",), {"type": int, "metavar": "N", "help": "processes (default: one a core)"}),
        (
            ("--backend",),
            {"default": "loky", "metavar": "B", "help": "loky: processes (default); dask: a cluster; here: none"},
        ),
        (("--address",), {"metavar": "URL", "help": "of a Dask scheduler (default: a local cluster)"}),
    ],
    usage="dendritree reproduce [options] [TABLE ...]",
    network_example="dendritree reproduce multiclass --trials 3\n  dendritree reproduce --backend dask --address tcp://10.0.0.1:8786",
)
