"""`dendritree reproduce`: run the paper's experiments, as far as they have not been run."""

from __future__ import annotations

import argparse
import sys
from functools import partial

from ..errors import import_extra
from .command import Command
from .report import make_report, print_files

__all__ = ["REPRODUCE"]


def _reproduce(arguments: argparse.Namespace) -> int:
    from ..report import print_report
    from ..studies.engine.runner import Pool
    from ..studies.paper.reproduce import RunPlan, reproduce
    from .progress import make_display

    import_extra("scipy", extra="experiments")  # what the report needs: now, not after the training
    import_extra("matplotlib", extra="report")
    plan = RunPlan.make(arguments.tables, arguments.protocol, trials=arguments.trials, draw=arguments.draw)
    pool = Pool(arguments.backend, workers=arguments.workers, address=arguments.address)
    try:
        with make_display(plan, partial(make_report, arguments.run, plan)) as display:
            reproduce(arguments.run, plan, pool=pool, data_dir=arguments.data_dir, observer=display)
    except KeyboardInterrupt:
        print(f"dendritree: stopped; {arguments.run} keeps what is done, and the same command goes on", file=sys.stderr)
        return 130
    report, files = make_report(arguments.run, plan)
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
