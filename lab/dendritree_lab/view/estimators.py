"""Estimators and table models on the page: their inputs are raw rows, by column name."""

from __future__ import annotations

from typing import Any

import torch

from dendritree.errors import OptionError
from dendritree.models.holders import held_by

from .column_inputs import REACH, Columns
from .exhibit import Exhibit, Sample

MOST_COLUMNS = 19
"""Maximum number of columns with their own sample, besides the mean row."""


def exhibit_of_estimator(name: str, model: Any, **options: Any) -> Exhibit:
    """A fitted estimator, or a table model, as an exhibit.

    The samples of an estimator are rows around the mean of its training rows; that of a table is its typical row.

    >>> from sklearn.datasets import load_iris
    >>> from dendritree.sklearn import DendriticClassifier
    >>> rows, kinds = load_iris(return_X_y=True, as_frame=True)
    >>> exhibit = exhibit_of_estimator("iris", DendriticClassifier(epochs=2).fit(rows, kinds))
    >>> exhibit.features[0], exhibit.class_names, exhibit.samples[1].label
    ('sepal length (cm)', ['0', '1', '2'], 'sepal length (cm) + 1 sd')
    """
    given = ", ".join(option for option, value in options.items() if value is not None)
    if given:
        raise OptionError(f"an estimator has its own columns and scaling: got {given}")
    estimator = held_by(model) or model
    module = estimator.as_module(probabilities=False)
    scale, _, _ = estimator.output_units()
    classes = [str(each) for each in getattr(estimator, "classes_", ())]
    if not classes and len(scale) > 1:
        raise OptionError(f"a regression model must have one output to be shown: got {len(scale)}")
    encoding = getattr(model, "encoding", None)
    own = getattr(estimator, "feature_names_in_", [f"x{number}" for number in range(module.in_features)])
    features = [str(each) for each in (own if encoding is None else encoding.features)]
    mean, deviation = module.mean.cpu(), module.deviation.cpu()
    if encoding is not None:
        columns = Columns.of_encoding(encoding, mean, deviation)
        cells = [control.value for control in columns.controls]
        samples = [Sample(columns.base[None], "the typical row", cells)]
        note = (
            f"Target: {model.target}. The typical row has the median of every number and the most frequent category. "
            "Sliders extend three standard deviations to either side of the mean."
        )
    else:
        columns = Columns.of_inputs(features, mean, mean - REACH * deviation, mean + REACH * deviation)
        above = zip(torch.diag(deviation)[:MOST_COLUMNS], features, strict=False)
        samples = [Sample(mean[None], "the mean row")]
        samples += [Sample((mean + row)[None], f"{label} + 1 sd") for row, label in above]
        note = "Samples: the mean of the training rows, and each column in turn one standard deviation above it."
    return Exhibit(
        name, module, None, classes=classes, samples=samples, features=features, columns=columns, notes=[note]
    )
