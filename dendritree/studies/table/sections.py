"""The report of a user's own table: do dendrites help here, and what does the model read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...report.chart import Chart, Line, Panel
from ...report.layout import Column, Group, Report, Section, show
from .controls import FamilyScores, verdict
from .fit import TableFit

__all__ = ["table_report"]

FAMILY_NAMES = {
    "tree": "trees",
    "sparse": "sparse neurons",
    "dense": "dense MLP",
    "linear": "linear",
    "baseline": "guessing",
}
ENTRIES_SHOWN = 8


def table_report(fit: TableFit, source: str) -> Report:
    """All that is to be said about a model of a table.

    Args:
        fit: what `fit_table` gave.
        source: what the table is called.
    """
    model = fit.model
    facts = (
        (f"{fit.rows:,}", "rows"),
        (f"{len(model.encoding.columns):,}", "columns read"),
        (f"{model.estimator.n_parameters_:,}", "parameters of the model"),
        (f"{fit.splits}", "splits"),
    )
    sections = (_scores_section(fit), _splits_section(fit), _columns_section(fit), _rule_section(fit, source))
    return Report(f"{model.target} from {source}", tuple(_sentences(fit)), sections, facts)


def _unit(fit: TableFit) -> tuple[str, int]:
    """Name of the metric, and the digits that its differences deserve."""
    if fit.model.task == "classification":
        return "accuracy", 4
    smallest = min(result.mean for result in fit.results)
    return "RMSE", int(np.clip(3 - np.floor(np.log10(max(smallest, 1e-12))), 0, 9))


def _sentences(fit: TableFit) -> Iterator[str]:
    metric, digits = _unit(fit)
    by_family = {result.family: result for result in fit.results}
    guess = "the most frequent class" if metric == "accuracy" else "the mean"
    number = Column("score", "score", "number", digits=digits)
    change = Column("gain", "gain", "difference", digits=digits)
    interval = Column("interval", "interval", "interval", digits=digits)
    yield f"Do dendrites help? {verdict(fit.results)}"
    yield (
        f"On rows they were not trained on, trees have an {metric} of {show(by_family['tree'].mean, number)}; guessing "
        f"{guess} has {show(by_family['baseline'].mean, number)}."
    )
    for family in ("linear", "dense", "sparse"):
        gain = by_family[family].gain
        assert gain is not None
        yield (
            f"Trees against {FAMILY_NAMES[family]} ({show(by_family[family].mean, number)}): {gain.state}, a gain of "
            f"{show(gain.mean, change)} (95 % interval {show((gain.low, gain.high), interval)})."
        )
    yield from (f"Note: {notice}." for notice in fit.notices)


def _scores_section(fit: TableFit) -> Section:
    metric, digits = _unit(fit)
    rows = tuple(_row(result) for result in fit.results)
    return Section(
        "scores",
        "Trees and their controls",
        f"Mean and standard deviation of the {metric} over {fit.splits} splits, each judged on rows not trained on."
        " A gain is how much better trees are, with a 95 % interval that allows for splits sharing training rows.",
        (
            Column("model", "model"),
            Column("parameters", "parameters", "count"),
            Column("score", metric, "spread", digits=digits),
            Column("gain", "gain of trees", "difference", digits=digits),
            Column("interval", "95 % interval", "interval", digits=digits, detail=True),
            Column("state", "trees are", "badge"),
            Column("seconds", "training", "seconds", detail=True),
        ),
        (Group("scores-table", "", rows),),
    )


def _splits_section(fit: TableFit) -> Section:
    """Every split's score: how sure is the order of the models?"""
    metric, digits = _unit(fit)
    models = [result for result in fit.results if result.family != "baseline"]
    columns = (Column("split", "split", "count"), *_score_columns(models, digits))
    rows = tuple((split + 1, *(result.scores[split] for result in models)) for split in range(fit.splits))
    return Section(
        "splits",
        "Split by split",
        "Every model is judged on the same rows of a split, so what counts is whether the order stays the same.",
        columns,
        (Group("splits-table", "", rows),),
        tuple(_charts(models, fit.splits, metric)),
        brief=False,
    )


def _score_columns(models: Sequence[FamilyScores], digits: int) -> Iterator[Column]:
    for result in models:
        yield Column(result.family, FAMILY_NAMES[result.family], "number", digits=digits)


def _row(result: FamilyScores) -> tuple[Any, ...]:
    spread = (result.mean, float(np.std(result.scores, ddof=1)))
    gain = result.gain
    known: tuple[Any, ...] = (None, None, None) if gain is None else (gain.mean, (gain.low, gain.high), gain.state)
    of_model = result.family != "baseline"
    return (
        FAMILY_NAMES[result.family],
        result.parameters if of_model else None,
        spread,
        *known,
        result.seconds if of_model else None,
    )


def _charts(models: Sequence[FamilyScores], splits: int, metric: str) -> Iterator[Chart]:
    lines = tuple(
        Line(
            FAMILY_NAMES[result.family],
            result.family,
            0,
            tuple(float(split) for split in range(1, splits + 1)),
            result.scores,
        )
        for result in models
    )
    yield Chart(
        "scores-by-split",
        f"{metric} on each split",
        f"{metric} of every model on the test rows of each of {splits} splits.",
        "split",
        (Panel(f"test {metric}", lines),),
        form="curves",
    )


def _columns_section(fit: TableFit) -> Section:
    encoding = fit.model.encoding
    rows = [(column.name, column.kind, len(column.features), _details(column)) for column in encoding.columns]
    rows += [(name, "left out", 0, why) for name, why in encoding.left_out]
    return Section(
        "columns",
        "What the model reads",
        "Numbers are standardised, a category is an input of 0 or 1, a missing number is the median of the others.",
        (
            Column("column", "column"),
            Column("kind", "kind"),
            Column("inputs", "inputs", "count"),
            Column("details", "details"),
        ),
        (Group("columns-table", "", tuple(rows)),),
        brief=False,
    )


def _details(column: Any) -> str:
    if column.kind == "category":
        shown = ", ".join(column.categories[:ENTRIES_SHOWN]) + (
            ", ..." if len(column.categories) > ENTRIES_SHOWN else ""
        )
        parts = [shown, f"{len(column.rare)} rare ones share an input" if column.rare else ""]
    else:
        parts = [f"median {column.fill:.6g}" if column.kind == "number" else "day, month, weekday"]
    return "; ".join(filter(None, [*parts, "an input tells missing cells" if column.missing else ""]))


def _rule_section(fit: TableFit, source: str) -> Section:
    estimator = fit.model.estimator
    decay = "by the number of rows" if estimator.weight_decay == "auto" else estimator.weight_decay
    rows = [
        ("table", source),
        ("target", f"{fit.model.target} ({fit.model.task})"),
        ("budget", f"{fit.budget:,} parameters for trees, sparse neurons and the dense MLP"),
        ("training", f"AdamW, weight decay {decay}, one cycle up to a rate of {estimator.lr:g}"),
        ("epochs", f"{estimator.n_iter_} for the model that is kept, which is trained on all rows"),
        ("splits", f"{fit.splits}, shuffled with seed {fit.seed}; the same rows for every model"),
    ]
    return Section(
        "rule",
        "The rule",
        "The same for every model; nothing was tuned on this table. The defaults were chosen on others, for trees.",
        (Column("what", "what"), Column("value", "value")),
        (Group("rule-table", "", tuple(rows)),),
        brief=False,
    )
