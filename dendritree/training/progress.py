"""Progress of a training run: one line per epoch, with the time left."""

from __future__ import annotations

import math
import sys

from .history import Run


def show_progress(run: Run) -> None:
    """Print the last epoch of a run and the time that the rest will take: a callback of `fit`, used for `verbose=True`.

    On a terminal the line is written over; elsewhere there is a line per epoch.
    """
    epochs, total = run.history.epochs, run.history.config.epochs
    last = epochs[-1]
    left = (total - len(epochs)) * sum(epoch.seconds for epoch in epochs) / len(epochs)
    figures = [f"loss {last.train_loss:.4f}", f"validation loss {last.val_loss:.4f}", f"accuracy {last.val_acc:.4f}"]
    shown = [figure for figure in figures if not figure.endswith("nan")]
    line = f"epoch {len(epochs)} of {total}: {', '.join(shown)}, {_duration(left)} left"
    is_terminal = sys.stderr.isatty()
    done = len(epochs) == total or run.stop
    sys.stderr.write(f"\r\x1b[K{line}" + "\n" * done if is_terminal else f"{line}\n")
    sys.stderr.flush()


def _duration(seconds: float) -> str:
    """A duration as read at a glance.

    >>> _duration(4.2), _duration(75), _duration(7300)
    ('5 s', '1:15 min', '2:01 h')
    """
    whole = math.ceil(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60}:{whole % 60:02} min" if whole < 3600 else f"{whole // 3600}:{whole % 3600 // 60:02} h"
