"""Sections of a table's report about the model: its accuracy, the columns it uses, and explained predictions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from sklearn.metrics import (
    confusion_matrix,
    mean_absolute_error,
    precision_recall_fscore_support,
    r2_score,
    root_mean_squared_error,
)

from ...report.chart import Chart, Line, Panel
from ...report.layout import Column, Group, Section, unit_digits
from .contributions import (
    MOST_ROWS,
    QUANTILES,
    Effect,
    EffectPoint,
    bins,
    column_effects,
    column_importances,
    explain_rows,
)
from .controls import IN_WORDS, LABELS
from .explained_rows import explained_rows
from .table_fit import TableFit

STRONGEST = 6
"""Number of columns whose effects are shown."""
WIDEST_MATRIX = 12
"""Maximum classes of a confusion matrix that fits a page; with more, the most frequent mistakes are listed."""
MISTAKES, BARS, POINTS_SHOWN = 20, 12, 300
RESIDUAL_QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
LONGEST_NAME = 18
"""Maximum characters of a name in a figure."""


def findings(fit: TableFit) -> Iterator[Section]:
    """The sections about the model that is kept."""
    yield from _class_sections(fit) if fit.model.task == "classification" else _number_sections(fit)
    yield from _column_sections(fit)
    yield _example_section(fit)


def one_table(
    name: str, title: str, text: str, columns: Iterable[Column], rows: Iterable[Any], *, heading: str = "", **more: Any
) -> Section:
    """A section with one table, whose rows are tuples."""
    return Section(name, title, text, tuple(columns), (Group(f"{name}-table", heading, tuple(rows)),), **more)


def short(name: str, most: int = LONGEST_NAME) -> str:
    """A name for a figure, truncated if it is long.

    >>> short("distance to the next station")
    'distance to the n…'
    """
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _held_out(fit: TableFit) -> str:
    return f"Predictions of {IN_WORDS[fit.kept]} in the comparison, each by a model that was not trained on the row."


# ---------------------------------------------------------------------------------------------------------- how good


def _class_sections(fit: TableFit) -> Iterator[Section]:
    classes = fit.model.estimator.classes_
    names, predicted = [str(each) for each in classes], classes[fit.predicted.values]
    matrix = confusion_matrix(fit.y, predicted, labels=classes)
    # NaN if undefined, such as the precision of a class that is never predicted
    scores = precision_recall_fscore_support(fit.y, predicted, labels=classes, zero_division=np.nan)
    precision, recall, f1, counts = (each.tolist() for each in scores)
    yield one_table(
        "quality",
        "Accuracy by class",
        f"{_held_out(fit)} Precision: how often a prediction of the class is right. Recall: how much of the class "
        "is found. F1: the harmonic mean of the two.",
        (
            Column("name", "class"),
            Column("rows", "rows", "count"),
            Column("precision", "precision", "number"),
            Column("recall", "recall", "number"),
            Column("f1", "F1", "number"),
        ),
        zip(names, counts, precision, recall, f1, strict=True),
        brief=len(names) <= WIDEST_MATRIX,
    )
    if len(names) <= WIDEST_MATRIX:
        columns = (Column("class", "class"), *(Column(f"predicted {each}", f"as {each}", "count") for each in names))
        rows = [(name, *row) for name, row in zip(names, matrix.tolist(), strict=True)]
        text = "Rows of each class, and what they were predicted as."
    else:
        columns = (Column("class", "class"), Column("predicted", "predicted as"), Column("rows", "rows", "count"))
        wrong = np.where(np.eye(len(names), dtype=bool), 0, matrix)
        order = [divmod(int(place), len(names)) for place in np.argsort(-wrong, axis=None, kind="stable")[:MISTAKES]]
        rows = [(names[a], names[b], int(wrong[a, b])) for a, b in order if wrong[a, b]]
        text = f"The most frequent mistakes, at most {MISTAKES}."
    yield one_table("confusion", "Confusion matrix", text, columns, rows, empty="No mistakes.", brief=False)


def _number_sections(fit: TableFit) -> Iterator[Section]:
    pair = fit.y, fit.predicted.values
    errors = pair[1] - pair[0]
    rmse = root_mean_squared_error(*pair)
    digits = unit_digits(rmse)
    columns = (
        Column("r2", "R²", "number"),
        Column("rmse", "RMSE of all rows", "number", digits=digits),
        Column("mae", "mean absolute error", "number", digits=digits),
        Column("bias", "mean error", "difference", digits=digits),
    )
    text = (
        f"{_held_out(fit)} R² is 1 for a perfect model, and 0 for one that is no better than the mean. The RMSE of all "
        "rows is not exactly the mean of the splits' RMSEs, by which the comparison above is made."
    )
    scores = (r2_score(*pair), rmse, mean_absolute_error(*pair), float(errors.mean()))
    yield one_table("quality", "Accuracy of the predictions", text, columns, [scores])
    yield one_table(
        "residuals",
        "Errors",
        "Predicted minus true, on the same rows. The first chart shows every row, or a sample of a long table; the "
        "second shows the median error of rows with similar predictions, and a band with the middle 80%.",
        (Column("share", "rows below", "number", digits=2), Column("error", "error", "difference", digits=digits)),
        zip(RESIDUAL_QUANTILES, np.quantile(errors, RESIDUAL_QUANTILES).tolist(), strict=True),
        heading="Quantiles of the errors",
        charts=tuple(_residual_charts(fit)),
        brief=False,
    )


def _residual_charts(fit: TableFit) -> Iterator[Chart]:
    truth, predicted, label = fit.y, fit.predicted.values, LABELS[fit.kept]
    some = np.arange(len(truth))
    if len(some) > POINTS_SHOWN:
        some = np.sort(np.random.default_rng(fit.seed).choice(len(some), POINTS_SHOWN, replace=False))
    ends = float(truth.min()), float(truth.max())
    lines = (
        Line(label, fit.kept, 0, tuple(truth[some].tolist()), tuple(predicted[some].tolist())),
        Line("right", fit.kept, 0, ends, ends, faint=True),
    )
    name = short(fit.model.target)
    yield Chart(
        "predicted",
        "Predicted against true",
        f"Predicted against true values of {fit.model.target}, a point per row, and the line where both are equal.",
        f"true {name}",
        (Panel(f"predicted {name}", lines),),
        form="cloud",
    )
    parts = bins(predicted)
    spreads = [np.quantile((predicted - truth)[part], QUANTILES).tolist() for part in parts]
    low, middle, high = (tuple(column) for column in zip(*spreads, strict=True))
    x = tuple(float(np.median(predicted[part])) for part in parts)
    yield Chart(
        "residuals-by-prediction",
        "Error by prediction",
        f"Median error of rows with a similar predicted {fit.model.target}, and the 10% and 90% quantiles.",
        f"predicted {name}",
        (Panel("predicted minus true", (Line(label, fit.kept, 0, x, middle, low, high),)),),
        form="values",
    )


# ----------------------------------------------------------------------------------------------------- what it uses


def _column_sections(fit: TableFit) -> Iterator[Section]:
    contributions = explain_rows(fit.model, fit.frame, seed=fit.seed)
    importances = column_importances(contributions, seed=fit.seed)
    target = fit.model.target
    unit = f"the units of {target}" if fit.model.task == "regression" else "log-odds"
    rows = f"{len(contributions.values):,} of {fit.rows:,} rows" if fit.rows > MOST_ROWS else f"all {fit.rows:,} rows"
    bars = tuple(
        Line(short(each.column), fit.kept, 0, (each.share,), (0.0,), (each.low,), (each.high,))
        for each in importances[:BARS]
    )
    shown = f"the {BARS} strongest columns" if len(importances) > BARS else "every column"
    chart = Chart(
        "importances-bars",
        f"Share of all contributions, {shown}",
        f"Share of {shown} in the magnitude of all contributions, with 95% intervals.",
        "share",
        (Panel("", bars),),
        form="shares",
    )
    size = max((each.size for each in importances), default=1.0)
    yield Section.of(
        "importances",
        "Which columns matter",
        "How far each column moves the prediction of the kept model away from its prediction for the mean row: the "
        f"mean magnitude of exact contributions over {rows}, in {unit}, and its share of all columns. The interval "
        "shows what other rows from the same source would give. A retrained model may use other columns with the same "
        "information.",
        (
            Column("column", "column"),
            Column("share", "share", "number"),
            Column("interval", "95% interval", "interval", value=lambda each: (each.low, each.high)),
            Column("size", "mean magnitude", "number", digits=unit_digits(size)),
        ),
        importances,
        charts=(chart,) if bars else (),
        brief=len(importances) <= 2 * BARS,
    )
    effects = column_effects(
        contributions, fit.model.encoding.columns, names=[each.column for each in importances[:STRONGEST]]
    )
    yield _effect_section(fit, effects, unit, unit_digits(size))


def _effect_section(fit: TableFit, effects: list[Effect], unit: str, digits: int) -> Section:
    pairs = [(effect, point) for effect in effects for point in effect.points]
    return Section.of(
        "effects",
        "How the strongest columns act",
        f"Contributions by value, in {unit}: the median of rows with a similar value, and the 10% and 90% quantiles. "
        "A band wider than the step to the next value means that the effect depends on other columns. Dates are shown "
        "as years.",
        (
            Column("column", value=lambda pair: pair[0].column),
            Column("output", value=lambda pair: pair[0].output),
            Column("value", "value", value=lambda pair: _value_text(pair[1])),
            Column("rows", "rows", "count", value=lambda pair: pair[1].rows),
            Column("median", "median", "difference", digits=digits, value=lambda pair: pair[1].median),
            Column("range", "10% to 90%", "interval", digits=digits, value=lambda pair: (pair[1].low, pair[1].high)),
        ),
        pairs,
        by=lambda pair: (str(effects.index(pair[0])), f"{pair[0].column}, to {pair[0].output}"),
        charts=tuple(_effect_chart(fit, number, effect) for number, effect in enumerate(effects)),
        brief=False,
    )


def _value_text(point: EffectPoint) -> str:
    return point.value if isinstance(point.value, str) else f"{point.value:.6g}"


def _effect_chart(fit: TableFit, number: int, effect: Effect) -> Chart:
    classifies = fit.model.task == "classification"
    answer = f"log-odds of {short(effect.output, 10)}" if classifies else short(effect.output)
    title, name = f"{effect.column} on {answer}", f"effect-{number}"
    alt = f"Contributions of {effect.column} to {answer} by its values: medians, 10% and 90% quantiles."
    numbers = [point for point in effect.points if not isinstance(point.value, str)]
    if not numbers:
        points = effect.points[:BARS]
        lines = tuple(
            Line(short(str(each.value)), fit.kept, 0, (each.median,), (0.0,), (each.low,), (each.high,))
            for each in points
        )
        return Chart(name, title, alt, "contribution", (Panel("", lines),), form="levels")
    columns = zip(*((each.value, each.median, each.low, each.high) for each in numbers), strict=True)
    x, middle, low, high = (tuple(map(float, column)) for column in columns)
    line = Line(LABELS[fit.kept], fit.kept, 0, x, middle, low, high)
    label = short(effect.column, 30) if effect.kind == "number" else f"{short(effect.column)}, year"
    return Chart(name, title, alt, label, (Panel("contribution", (line,)),), form="values")


def _example_section(fit: TableFit) -> Section:
    groups = explained_rows(fit)
    size = max((abs(part[-1]) for group in groups for part in group.rows[1:-1]), default=1.0)
    text = (
        "The prediction of the kept model for three rows, and what each column adds to its output for the mean "
        "training row; the parts add up exactly. The rows were selected by their predictions held out in the "
        "comparison, by a model that was not trained on the row; the kept model was."
    )
    columns = (
        *(Column(name) for name in ("row", "why", "truth", "held_out", "predicted")),
        Column("part", "part"),
        Column("cell", "cell"),
        Column("contribution", "contribution", "difference", digits=unit_digits(size)),
    )
    return Section("examples", "Three rows explained", text, columns, tuple(groups), brief=False)
