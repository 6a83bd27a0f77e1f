"""Sections of a table's report about the model: its accuracy, the columns it uses, and explained predictions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...report.chart import Chart, Line, Panel
from ...report.layout import Column, Group, Section
from .contributions import MOST_ROWS, Effect, EffectPoint, bins, column_effects, column_importances, explain_rows
from .controls import IN_WORDS, LABELS
from .explained_rows import ExampleRow, example_rows
from .quality import class_scores, confusion, number_scores, residual_quantiles
from .table_fit import TableFit

STRONGEST = 6
"""Number of columns whose effects are shown."""
WIDEST_MATRIX = 12
"""Maximum classes of a confusion matrix that fits a page; with more, the most frequent mistakes are listed."""
MISTAKES, PARTS_SHOWN, BARS, POINTS_SHOWN = 20, 8, 12, 300
LONGEST_NAME = 18
"""Maximum characters of a name in a figure."""


def findings(fit: TableFit) -> Iterator[Section]:
    """The sections about the model that is kept."""
    yield from _class_sections(fit) if fit.model.task == "classification" else _number_sections(fit)
    yield from _column_sections(fit)
    yield _example_section(fit)


def short(name: str, most: int = LONGEST_NAME) -> str:
    """A name for a figure, truncated if it is long.

    >>> short("distance to the next station")
    'distance to the n…'
    """
    return name if len(name) <= most else f"{name[: most - 1]}…"


def unit_digits(size: float) -> int:
    """Decimal places that show about four significant digits of a number of this size.

    >>> unit_digits(21.5), unit_digits(0.012), unit_digits(40_000.0)
    (2, 5, 0)
    """
    return int(np.clip(3 - np.floor(np.log10(max(abs(size), 1e-12))), 0, 9))


def _held_out(fit: TableFit) -> str:
    return f"Predictions of {IN_WORDS[fit.kept]} in the comparison, each by a model that was not trained on the row."


# ---------------------------------------------------------------------------------------------------------- how good


def _class_sections(fit: TableFit) -> Iterator[Section]:
    classes = fit.model.estimator.classes_
    names = [str(each) for each in classes]
    matrix = confusion(np.searchsorted(classes, fit.y), fit.predicted.values, len(names))
    yield Section.of(
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
        class_scores(matrix, names),
        brief=len(names) <= WIDEST_MATRIX,
    )
    if len(names) <= WIDEST_MATRIX:
        columns = (Column("class", "class"), *(Column(f"predicted {each}", f"as {each}", "count") for each in names))
        rows = tuple((name, *map(int, counts)) for name, counts in zip(names, matrix, strict=True))
        text = "Rows of each class, and what they were predicted as."
    else:
        columns = (Column("class", "class"), Column("predicted", "predicted as"), Column("rows", "rows", "count"))
        wrong = np.where(np.eye(len(names), dtype=bool), 0, matrix)
        order = [divmod(int(place), len(names)) for place in np.argsort(-wrong, axis=None, kind="stable")[:MISTAKES]]
        rows = tuple((names[a], names[b], int(wrong[a, b])) for a, b in order if wrong[a, b])
        text = f"The most frequent mistakes, at most {MISTAKES}."
    group = (Group("confusion-table", "", rows),)
    yield Section("confusion", "Confusion matrix", text, columns, group, empty="No mistakes.", brief=False)


def _number_sections(fit: TableFit) -> Iterator[Section]:
    predicted = fit.predicted.values
    scores = number_scores(fit.y, predicted)
    digits = unit_digits(scores.rmse)
    columns = (
        Column("r2", "R²", "number"),
        Column("rmse", "RMSE", "number", digits=digits),
        Column("mae", "mean absolute error", "number", digits=digits),
        Column("bias", "mean error", "difference", digits=digits),
    )
    text = f"{_held_out(fit)} R² is 1 for a perfect model, and 0 for one that is no better than the mean."
    yield Section.of("quality", "Accuracy of the predictions", text, columns, [scores])
    quantiles = residual_quantiles(fit.y, predicted)
    yield Section(
        "residuals",
        "Errors",
        "Predicted minus true, on the same rows. The first chart shows every row, or a sample of a long table; the "
        "second shows the median error of rows with similar predictions, and a band with the middle 80%.",
        (Column("share", "rows below", "number", digits=2), Column("error", "error", "difference", digits=digits)),
        (Group("residuals-table", "Quantiles of the errors", tuple(quantiles)),),
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
    points = [(float(np.median(predicted[part])), *_spread((predicted - truth)[part])) for part in parts]
    x, low, middle, high = (tuple(column) for column in zip(*points, strict=True))
    yield Chart(
        "residuals-by-prediction",
        "Error by prediction",
        f"Median error of rows with a similar predicted {fit.model.target}, and the 10% and 90% quantiles.",
        f"predicted {name}",
        (Panel("predicted minus true", (Line(label, fit.kept, 0, x, middle, low, high),)),),
        form="values",
    )


def _spread(values: np.ndarray) -> tuple[float, float, float]:
    low, middle, high = np.quantile(values, (0.1, 0.5, 0.9)).tolist()
    return low, middle, high


# ----------------------------------------------------------------------------------------------------- what it uses


def _column_sections(fit: TableFit) -> Iterator[Section]:
    found = explain_rows(fit.model, fit.frame, seed=fit.seed)
    importances = column_importances(found, seed=fit.seed)
    target = fit.model.target
    unit = f"the units of {target}" if fit.model.task == "regression" else "log-odds"
    rows = f"{len(found.values):,} of {fit.rows:,} rows" if fit.rows > MOST_ROWS else f"all {fit.rows:,} rows"
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
    effects = column_effects(found, fit.model.encoding.columns, names=[each.column for each in importances[:STRONGEST]])
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
        charts=tuple(_effect_chart(fit, number, effect) for number, effect in enumerate(effects) if _has_axis(effect)),
        brief=False,
    )


def _value_text(point: EffectPoint) -> str:
    return point.value if isinstance(point.value, str) else f"{point.value:.6g}"


def _has_axis(effect: Effect) -> bool:
    """Whether its values fit on an axis: matplotlib computes their differences, which must not overflow a float."""
    return all(isinstance(point.value, str) or abs(point.value) < 1e300 for point in effect.points)


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


# --------------------------------------------------------------------------------------------------------- examples


def _example_section(fit: TableFit) -> Section:
    examples = example_rows(fit)
    size = max((abs(part[2]) for each in examples for part in each.parts), default=1.0)
    groups = (Group(f"examples-{place}", _example_title(each), _parts(each)) for place, each in enumerate(examples))
    text = (
        "The output of the model for three rows, and what each column adds to its output for the mean training row; "
        "the parts add up exactly. The prediction is from the comparison, by a model that was not trained on the row; "
        "the contributions are those of the kept model, which was."
    )
    columns = (
        *(Column(name) for name in ("row", "why", "truth", "predicted")),
        Column("part", "part"),
        Column("cell", "cell"),
        Column("contribution", "contribution", "difference", digits=unit_digits(size)),
    )
    return Section("examples", "Three rows explained", text, columns, tuple(groups), brief=False)


def _example_title(each: ExampleRow) -> str:
    return f"Row {each.number:,}, {each.why}: true {each.truth}, predicted {each.predicted}"


def _parts(each: ExampleRow) -> tuple[tuple[int | str | float | None, ...], ...]:
    shown, others = each.parts[:PARTS_SHOWN], each.parts[PARTS_SHOWN:]
    rest = [(f"{len(others)} other columns", None, sum(part[2] for part in others))] if others else []
    parts = (("mean row", None, each.baseline), *shown, *rest, (f"sum: {each.about}", None, each.output))
    return tuple((each.number, each.why, each.truth, each.predicted, *part) for part in parts)
