"""The report on a user's own table: whether dendrites help, the findings, and what the model reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...data.tables.encoding import TableColumn
from ...data.tables.reading import first_few
from ...report.layout import Column, Report, Section, show, unit_digits
from .controls import BOOSTING, LABELS, FamilyScores
from .findings import findings, one_table
from .recommendation import by_family, reason, verdict
from .table_fit import TableFit

CATEGORIES_SHOWN = 8


def table_report(fit: TableFit, source: str) -> Report:
    """The report of a table model.

    Args:
        fit: the result of `fit_table`.
        source: the name of the table.
    """
    model = fit.model
    facts = (
        (f"{fit.rows:,}", "rows"),
        (f"{len(model.encoding.columns):,}", "columns read"),
        (f"{model.estimator.n_parameters_:,}", "parameters of the model"),
        (f"{fit.splits}", "splits"),
    )
    about = (_columns_section(fit), _rule_section(fit, source))
    sections = (_scores_section(fit), *findings(fit), *about)
    return Report(f"{model.target} from {source}", tuple(_sentences(fit)), sections, facts)


def _unit(fit: TableFit) -> tuple[str, int]:
    """Name of the metric, and the number of digits for its differences."""
    if fit.model.task == "classification":
        return "accuracy", 4
    return "RMSE", unit_digits(min(result.mean for result in fit.results))


def _sentences(fit: TableFit) -> Iterator[str]:
    metric, digits = _unit(fit)
    guess = "the most frequent class" if metric == "accuracy" else "the mean"
    score, change, interval = (Column("", form=form, digits=digits) for form in ("number", "difference", "interval"))
    of = by_family(fit.results)
    means = {family: show(result.mean, score) for family, result in of.items()}
    yield f"Do dendrites help? {verdict(fit.results)}"
    yield reason(fit.keep, fit.results)
    yield f"On held-out rows, trees have an {metric} of {means['tree']}; guessing {guess} gives {means['baseline']}."
    for family in ("linear", "dense", "sparse", BOOSTING):
        gain = of[family].gain
        assert gain is not None
        yield (
            f"Trees against {LABELS[family]} ({means[family]}): {gain.state}, a gain of {show(gain.mean, change)} "
            f"(95% interval {show((gain.low, gain.high), interval)})."
        )
    yield from (f"Note: {notice}." for notice in fit.notices)


def _scores_section(fit: TableFit) -> Section:
    metric, digits = _unit(fit)
    return one_table(
        "scores",
        "Trees, their controls and gradient boosting",
        f"Mean and standard deviation of the {metric} over {fit.splits} splits, each evaluated on held-out rows. The"
        " gain is how much better trees are, with a 95% interval that accounts for training rows shared by splits. "
        "Gradient boosting uses scikit-learn's defaults, has the nodes of its trees as parameters, and is never kept.",
        (
            Column("family"),
            Column("model", "model"),
            Column("parameters", "parameters", "count"),
            Column("score", metric, "spread", digits=digits),
            Column("gain", "gain of trees", "difference", digits=digits, detail=True),
            Column("interval", "95% interval", "interval", digits=digits, detail=True),
            Column("state", "trees are", "badge"),
            Column("fit_time", "fit time", "seconds"),
        ),
        (_scores_row(result, kept=result.family == fit.kept) for result in fit.results),
    )


def _scores_row(result: FamilyScores, *, kept: bool) -> tuple[Any, ...]:
    gain, trained = result.gain, result.family != "baseline"
    return (
        result.family,
        f"{LABELS[result.family]} (kept)" if kept else LABELS[result.family],
        result.parameters if trained else None,
        (result.mean, float(np.std(result.scores, ddof=1))),
        *((None, None, None) if gain is None else (gain.mean, (gain.low, gain.high), gain.state)),
        result.fit_time if trained else None,
    )


def _columns_section(fit: TableFit) -> Section:
    encoding = fit.model.encoding
    rows = [(column.name, column.kind, len(column.features), _details(column)) for column in encoding.columns]
    rows += [(name, "left out", 0, why) for name, why in encoding.left_out]
    return one_table(
        "columns",
        "What the model reads",
        "Numbers are standardized, categories are one-hot encoded, and missing numbers are replaced by the median.",
        (
            Column("column", "column"),
            Column("kind", "kind"),
            Column("inputs", "inputs", "count"),
            Column("details", "details"),
        ),
        rows,
        brief=False,
    )


def _details(column: TableColumn) -> str:
    if column.kind == "category":
        parts = [first_few(column.categories, CATEGORIES_SHOWN)]
        parts += [f"{len(column.rare)} rare ones share an input"] if column.rare else []
    else:
        parts = [f"median {column.fill:.6g}" if column.kind == "number" else "day, month, weekday"]
    return "; ".join([*parts, "one input flags missing cells"] if column.missing else parts)


def _rule_section(fit: TableFit, source: str) -> Section:
    estimator = fit.model.estimator
    decay = "by the number of rows" if estimator.weight_decay == "auto" else estimator.weight_decay
    return one_table(
        "rule",
        "Settings",
        "The same for every model; nothing was tuned on this table. The defaults were selected for trees on other"
        " tables.",
        (Column("what", "setting"), Column("value", "value")),
        (
            ("table", source),
            ("target", f"{fit.model.target} ({fit.model.task})"),
            ("budget", f"{fit.budget:,} parameters for trees, sparse neurons and the dense MLP"),
            ("model kept", f"{LABELS[fit.kept]}; requested: {fit.keep}"),
            ("training", f"AdamW, weight decay {decay}, one-cycle learning rate up to {estimator.lr:g}"),
            ("epochs", f"{estimator.n_iter_} for the model kept, which is trained on all rows"),
            ("splits", f"{fit.splits}, shuffled with seed {fit.seed}; the same rows for every model"),
        ),
        brief=False,
    )
