"""Progress of a training run: a bar in a terminal or a notebook, a line per epoch in a log."""

from __future__ import annotations

import math
import shutil
import sys

from .history import Run

WIDTH = 20
"""Characters of a bar."""


def show_progress(run: Run, *, validation: bool = True) -> None:
    """Show the completed epochs, the metrics of the last one and the time left, for `fit(verbose=True)`.

    In a terminal or a notebook, one line with a bar is updated in place; elsewhere, there is a line per epoch.

    Args:
        run: the run.
        validation: whether to show the metrics of the validation examples, if there are any.
    """
    epochs, total = run.history.epochs, run.history.config.epochs
    last, spent = epochs[-1], sum(epoch.seconds for epoch in epochs)
    ended = len(epochs) == total or run.stop
    time = f"{_duration(spent)} in all" if ended else f"{_duration((total / len(epochs) - 1) * spent)} left"
    figures = [f"accuracy {last.val_acc:.4g}", f"loss {last.train_loss:.4g}", f"validation loss {last.val_loss:.4g}"]
    figures = figures if validation else figures[1:2]
    shown, count = [figure for figure in figures if not figure.endswith("nan")], f"epoch {len(epochs)} of {total}"
    if sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel"):  # a notebook's stream
        bar = f"|{'█' * (WIDTH * len(epochs) // total):{WIDTH}}|"
        line = f"{count} {bar} {', '.join([time, *shown])}"[: shutil.get_terminal_size().columns - 1]
        line = f"\r\x1b[K{line}" + "\n" * ended
    else:
        line = f"{count}: {', '.join([*shown, time])}\n"
    sys.stderr.write(line)
    sys.stderr.flush()


def _duration(seconds: float) -> str:
    """A duration in a short form.

    >>> _duration(4.2), _duration(75), _duration(7300)
    ('5 s', '1:15 min', '2:01 h')
    """
    whole = math.ceil(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60}:{whole % 60:02} min" if whole < 3600 else f"{whole // 3600}:{whole % 3600 // 60:02} h"
