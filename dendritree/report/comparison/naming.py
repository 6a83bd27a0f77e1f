"""What tasks, families and gains are called in the report."""

from __future__ import annotations

from ...comparison import Gain, Task
from ...experiments.claims import SIGNIFICANT
from ..layout import Column, show
from ..scaling import show_size

__all__ = ["FAMILY_NAMES", "GAIN_NAMES", "METRICS", "anchor", "show_gain", "title", "verdict"]

FAMILY_NAMES = {
    "tree": "trees",
    "sparse": "sparse",
    "dense": "dense",
    "linear": "linear",
    "ktree": "k-trees",
    "denn": "DENN",
    "dnm": "DNM",
    "dmnn": "DMNN",
    "dann": "dANN",
}
"""Short enough for a column or the end of a line."""
GAIN_NAMES = {
    "tree": "tree gain: trees over sparse",
    "wiring": "wiring gain: sparse over dense",
    "both": "both: trees over dense",
}
METRICS = {"accuracy": "test accuracy", "rmse": "test RMSE"}
DIFFERENCE = Column("gain", "gain", "difference", digits=2)


def title(task: Task) -> str:
    """A task as a heading.

    >>> title(Task("mnist")), title(Task("mnist", 1000))
    ('mnist', 'mnist, 1,000 training examples')
    """
    return task.dataset if task.examples is None else f"{task.dataset}, {task.examples:,} training examples"


def anchor(task: Task) -> str:
    """A task as part of an id or a file's name.

    >>> anchor(Task("mnist", 128))
    'mnist-128'
    """
    return task.name.replace(":", "-")


def verdict(gain: Gain) -> str | None:
    """Whether a gain is sure, and of which sign; None where seeds are too few to tell."""
    if not gain.p >= 0:  # NaN
        return None
    if gain.p >= SIGNIFICANT:
        return "undecided"
    return "ahead" if gain.test.difference > 0 else "behind"


def show_gain(gain: Gain) -> str:
    """A gain with its sign, its unit and its place."""
    return f"{show(gain.in_units[0], DIFFERENCE)} {gain.unit} ({gain.task.name}, {show_size(gain.budget)})"
