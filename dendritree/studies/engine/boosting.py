"""Gradient boosting of scikit-learn, as the studies of tables run and count it."""

from __future__ import annotations

from typing import Any

from ...errors import import_extra


def one_thread() -> Any:
    """A block in which linear algebra and OpenMP of other packages use one thread, which torch's limit does not reach.

    Sums of several threads come in any order, and differ in the last bit.
    """
    return import_extra("threadpoolctl", extra="tables").threadpool_limits(1)


def nodes_of(estimator: Any) -> int:
    """The nodes of all trees of a fitted estimator, splits and leaves: its size.

    A split keeps a column and a threshold, a leaf a value: counted as one number each, boosting is made to look
    smaller than it is, never larger.
    """
    return sum(len(tree.nodes) for step in estimator._predictors for tree in step)
