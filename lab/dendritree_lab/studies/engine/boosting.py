"""Helpers for scikit-learn's gradient boosting in the studies on tables: one thread, and a size to compare."""

from __future__ import annotations

from typing import Any

from dendritree.errors import import_extra


def one_thread() -> Any:
    """A context in which BLAS and OpenMP of other packages, which torch's limit does not affect, use one thread.

    With several threads the order of sums varies, and results differ in the last bit.
    """
    return import_extra("threadpoolctl", extra="tables").threadpool_limits(1)


def nodes_of(estimator: Any) -> int:
    """The nodes of all trees of a fitted estimator, splits and leaves: its size.

    A split stores a column and a threshold, a leaf one value. Counting each as one number understates the size of
    boosting and never overstates it.
    """
    return sum(len(tree.nodes) for step in estimator._predictors for tree in step)
