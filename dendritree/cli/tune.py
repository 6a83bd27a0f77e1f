"""`dendritree tune`: search for the tree that suits a data set, within a budget."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ..errors import import_extra
from .bar import LiveBar
from .command import Command

__all__ = ["TUNE"]


def _tune(arguments: argparse.Namespace) -> int:
    from ..studies.engine.task import Task
    from ..studies.tuning import tune
    from ..studies.tuning.sections import write_tuning

    task = Task.parse(arguments.data)
    import_extra("matplotlib", extra="tune")  # what the report needs: now, not after the search
    split = task.load(arguments.data_dir)
    try:
        with TrialBar() as bar:
            found = tune(
                split,
                budget=arguments.budget,
                trials=arguments.trials,
                image_shape=task.image_shape,
                steps=arguments.steps,
                seed=arguments.seed,
                out=arguments.out,
                storage=arguments.storage,
                name=arguments.study or f"{task.name} {arguments.budget}",
                observer=bar,
            )
    except KeyboardInterrupt:
        print("dendritree: stopped; what is done is kept, and the same command goes on", file=sys.stderr)
        return 130
    files = write_tuning(found, arguments.out, task=task.name)
    for sentence in found.verdict:
        print(sentence)
    print(f"\nmodel:  {files.html.parent / 'model'}\nreport: {files.html}")
    return 0


class TrialBar(LiveBar):
    """The trials: a bar on a terminal, a line per trial elsewhere."""

    def __init__(self) -> None:
        super().__init__(lambda: import_extra("rich.progress", extra="tune"), "{task.fields[note]}")
        self.task: Any = None

    def __call__(self, what: str, done: int, total: int, note: str = "") -> None:
        """Show a trial."""
        if self.live is None:
            print(f"{done} of {total}: {note}", file=sys.stderr, flush=True)
            return
        if self.task is None:
            self.task = self.live.add_task(what, total=total, note="")
        self.live.update(self.task, completed=done, total=total, note=note)


TUNE = Command(
    "search for the best tree within a budget, and train it",
    "",
    _tune,
    [
        (("data",), {"metavar": "DATA", "help": "mnist, digits, adult, ...; mnist:128 for 128 examples"}),
        (("--budget",), {"required": True, "metavar": "N", "help": "most parameters, as 9k"}),
        (("--trials",), {"type": int, "default": 50, "metavar": "N", "help": "choices tried, in all (50)"}),
        (("--steps",), {"type": int, "default": 1000, "metavar": "N", "help": "training steps of a trial (1000)"}),
        (("--seed",), {"type": int, "default": 0, "metavar": "N", "help": "of the whole search (0)"}),
        (("--out",), {"default": "tuned", "metavar": "DIR", "help": "for model, report and study.db (tuned)"}),
        (("--storage",), {"metavar": "URL", "help": "a database that machines share"}),
        (("--study",), {"metavar": "NAME", "help": "its name in the database (data and budget)"}),
        (("--data-dir",), {"metavar": "DIR", "help": "look for data sets here first"}),
    ],
    usage="dendritree tune DATA --budget N [options]",
    network_example="dendritree tune mnist --budget 9k --trials 50 --out tuned/",
)
