"""The families of the study: estimators with default settings, on the same columns, and their sizes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dendritree.errors import import_extra

from ..engine.boosting import nodes_of
from .tables import CLASSIFICATION

NEURONS = ("tree", "sparse", "dense", "linear")
MLP, BOOSTING = "mlp", "boosting"
FAMILIES = {
    "tree": "dendritic trees",
    "sparse": "sparse neurons, the same wiring",
    "dense": "dense networks of the same size",
    "linear": "one linear unit per output",
    MLP: "scikit-learn's MLP",
    BOOSTING: "scikit-learn's gradient boosting",
}
"""Families by name, and what they are."""


def make_estimator(family: str, task: str, seed: int | None = None, changes: Mapping[str, Any] | None = None) -> Any:
    """The estimator of a family, with default options except `random_state`.

    Args:
        family: a name in `FAMILIES`.
        task: `classification` or `regression`.
        seed: its `random_state`.
        changes: options to set, to try something other than the defaults.

    >>> make_estimator("mlp", "classification", 3)
    MLPClassifier(random_state=3)
    """
    from dendritree.sklearn import DendriticClassifier, DendriticRegressor

    classes, options = task == CLASSIFICATION, {"random_state": seed, **(changes or {})}
    if family in NEURONS:
        return (DendriticClassifier if classes else DendriticRegressor)(neurons=family, **options)
    module = import_extra("sklearn.neural_network" if family == MLP else "sklearn.ensemble", extra="tables")
    name = "MLP" if family == MLP else "HistGradientBoosting"
    return getattr(module, f"{name}{'Classifier' if classes else 'Regressor'}")(**options)


def make_model(family: str, task: str, seed: int, changes: Mapping[str, Any] | None = None) -> Any:
    """A pipeline of column encoding and estimator. Gradient boosting takes the frame unchanged, with its categories
    and missing values.

    All others get standardized numbers (a missing one is replaced by the median and flagged by another input) and one
    0/1 input per category (missing is a category).
    """
    estimator = make_estimator(family, task, seed, changes)
    names = ("compose", "impute", "pipeline", "preprocessing")
    compose, impute, pipeline, preprocessing = (import_extra(f"sklearn.{name}", extra="tables") for name in names)
    if family == BOOSTING:
        return pipeline.make_pipeline("passthrough", estimator)
    filled = impute.SimpleImputer(strategy="median", add_indicator=True)
    numbers = pipeline.make_pipeline(filled, preprocessing.StandardScaler())
    one_hot = preprocessing.OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = compose.make_column_transformer(
        (numbers, compose.make_column_selector(dtype_include="number")),
        (one_hot, compose.make_column_selector(dtype_exclude="number")),
    )
    return pipeline.make_pipeline(columns, estimator)


def size_of(estimator: Any) -> int:
    """Parameters of a fitted estimator; for gradient boosting, the nodes of its trees."""
    if hasattr(estimator, "n_parameters_"):
        return int(estimator.n_parameters_)
    if hasattr(estimator, "coefs_"):
        return sum(part.size for part in (*estimator.coefs_, *estimator.intercepts_))
    return nodes_of(estimator)


def options_of(estimator: Any) -> dict[str, Any]:
    """The options of an estimator as JSON values, without its seed."""
    options: dict[str, Any] = json.loads(json.dumps(estimator.get_params()))
    del options["random_state"]
    return options
