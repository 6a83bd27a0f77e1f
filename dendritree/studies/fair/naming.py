"""What tasks and families are called in pictures and reports."""

from __future__ import annotations

from . import Task

__all__ = ["FAMILY_NAMES", "METRICS", "anchor", "title"]

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
METRICS = {"accuracy": "test accuracy", "rmse": "test RMSE"}


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
