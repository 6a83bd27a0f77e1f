"""Sections about what the results say: claims, comparisons, dropout, parameters, overfitting, other protocols."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ....report.layout import Chart, Column, Group, Line, Panel, Section
from ...engine.records import Row
from ..analysis import Comparison, Model, RowSummary
from ..claims import Verdict
from .matched import PAPER, family, reading_order

__all__ = [
    "claims_section",
    "comparisons_section",
    "curves_section",
    "dropout_section",
    "parameters_section",
    "results_section",
]

MODEL = (Column("model", "model"), Column("protocol"), Column("task"))
DROPOUT = Column("dropout", "p", "number", digits=1)
TRIALS = Column("trials", "trials", "count")
PARAMETERS = Column("parameters", "parameters", "count")
MEASURES = {"val_acc": "validation accuracy", "test_acc": "test accuracy", "gap": "training minus validation accuracy"}
ACCURACY = (Column("measure"), Column("accuracy", "accuracy", "spread"))
LEARNING_RATE = Column("lr", "learning rate", "number", digits=4, detail=True)
INTERVAL = Column("interval", "95 % interval of the mean", "interval", detail=True)


def claims_section(verdicts: Sequence[Verdict]) -> Section:
    """What the paper claims, and whether it held, for each protocol and task."""
    groups: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
    for verdict in verdicts:
        cells = (verdict.statement, verdict.protocol, verdict.task, verdict.outcome, verdict.evidence)
        groups.setdefault((verdict.protocol, verdict.task), []).append(cells)
    was_run = {(verdict.protocol, verdict.task) for verdict in verdicts if verdict.outcome != "not run"}
    return Section(
        "claims",
        "The paper's claims",
        "What the paper concludes, tested on our trials, without dropout and with every model at its best. A claim"
        " holds if every comparison it makes is won with p < 0.05, and does not hold if one is lost so; p values are"
        " Welch's, corrected by Holm's method over the comparisons of the claim.",
        (
            Column("claim", "claim"),
            Column("protocol"),
            Column("task"),
            Column("verdict", "verdict", "badge"),
            Column("evidence", "evidence", "evidence"),
        ),
        _by_task("claims", {key: rows for key, rows in groups.items() if key in was_run}),
        empty="No claim can be tested yet.",
    )


def comparisons_section(comparisons: Sequence[Comparison]) -> Section:
    """Each dendritic model against its controls."""
    groups: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
    for pair in comparisons:
        ours, control = pair.row, pair.against
        cells = (
            ours.model,
            pair.protocol,
            ours.task,
            ours.dropout,
            control.model,
            control.dropout,
            MEASURES[pair.measure],
            pair.difference,
            pair.interval,
            pair.corrected_p,
            pair.g,
            pair.g_interval,
            min(pair.n),
        )
        groups.setdefault((pair.protocol, ours.task), []).append(cells)
    return Section(
        "comparisons",
        "Dendritic models against their controls",
        "Difference of mean accuracies, dendritic minus control, with its 95 % interval and the p value of Welch's t"
        " test after Holm's correction; Hedges' g is the difference in units of the pooled standard deviation. Accuracy"
        " is measured on the test set where the protocol has one, otherwise on the validation images.",
        (
            *MODEL,
            DROPOUT,
            Column("control", "control"),
            Column("control_dropout", "its p", "number", digits=1),
            Column("measure"),
            Column("difference", "ahead by", "difference"),
            Column("interval", "95 % interval", "interval"),
            Column("corrected_p", "p value", "p"),
            Column("g", "Hedges' g", "difference", digits=2, detail=True),
            Column("g_interval", "its 95 % interval", "interval", digits=2, detail=True),
            Column("fewer_trials", "trials, at least", "count", detail=True),
        ),
        _by_task("comparisons", groups),
        empty="No dendritic model has been run together with a control yet.",
    )


def dropout_section(summaries: Sequence[RowSummary], best: Mapping[Model, Row]) -> Section:
    """Accuracy at every dropout."""

    def cells(summary: RowSummary) -> tuple[Any, ...]:
        chosen = "best" if best.get(summary.model) == summary.row else None
        return (_measure(summary), summary.accuracy, summary.interval, summary.val_loss, chosen, summary.n)

    return Section(
        "dropout",
        "Dropout",
        "Accuracy at each dropout p: the mean over trials, with a bar for its 95 % bootstrap interval. Best is the p"
        " above 0 with the lowest mean validation loss, the paper's rule.",
        (
            *MODEL,
            DROPOUT,
            *ACCURACY,
            INTERVAL,
            Column("val_loss", "val. loss", "spread", detail=True),
            Column("best", "best", "badge"),
            TRIALS,
        ),
        _summary_groups("dropout", summaries, cells),
        tuple(_charts_by_task("dropout", "dropout p", "sweep", summaries, lambda summary: summary.row.dropout)),
        brief=False,
    )


def parameters_section(summaries: Sequence[RowSummary], shown: Mapping[str, Mapping[Model, Row]]) -> Section:
    """What a model's parameters buy: every model at its best dropout, or without where it was run without alone."""
    rows = {**shown["none"], **shown["best"]}
    chosen = [summary for summary in summaries if rows.get(summary.model) == summary.row]
    chosen.sort(key=lambda summary: (reading_order(summary), summary.parameters))

    def cells(summary: RowSummary) -> tuple[Any, ...]:
        return (summary.parameters, _measure(summary), summary.accuracy, summary.interval, summary.n)

    return Section(
        "parameters",
        "Accuracy against parameters",
        "Every model at its best dropout: the mean over trials, with a bar for its 95 % bootstrap interval.",
        (*MODEL, DROPOUT, PARAMETERS, *ACCURACY, INTERVAL, TRIALS),
        _summary_groups("parameters", chosen, cells),
        tuple(_charts_by_task("parameters", "parameters", "points", chosen, lambda summary: summary.parameters)),
        brief=False,
    )


def curves_section(
    summaries: Sequence[RowSummary], shown: Mapping[str, Mapping[Model, Row]], charts: Sequence[Chart]
) -> Section:
    """Learning curves, and in numbers when training was best and how far training and validation then were apart."""
    chosen = [
        summary for summary in summaries if any(rows.get(summary.model) == summary.row for rows in shown.values())
    ]

    def cells(summary: RowSummary) -> tuple[Any, ...]:
        measures = (summary.train_acc, summary.val_acc, summary.train_loss, summary.val_loss)
        return (summary.best_epoch, *measures, summary.train_acc.mean - summary.val_acc.mean, summary.lr)

    return Section(
        "curves",
        "Learning curves and overfitting",
        "Mean over trials of each epoch. The strong line is validation, with a band of one standard deviation; the thin"
        " line of the same colour is training. The charts of a task share their axes. The table is taken at each"
        " trial's best epoch; the gap is training minus validation accuracy.",
        (
            *MODEL,
            DROPOUT,
            Column("best_epoch", "best epoch", "number", digits=1),
            Column("train_acc", "train acc.", "spread"),
            Column("val_acc", "val. acc.", "spread"),
            Column("train_loss", "train loss", "spread", detail=True),
            Column("val_loss", "val. loss", "spread", detail=True),
            Column("gap", "gap", "difference"),
            LEARNING_RATE,
        ),
        _summary_groups("curves", chosen, cells),
        tuple(charts),
        brief=False,
    )


def results_section(summaries: Sequence[RowSummary]) -> Section:
    """Every row of the other protocols, which the paper has no numbers for."""

    def cells(summary: RowSummary) -> tuple[Any, ...]:
        measures = (summary.test_acc, summary.val_acc, summary.train_acc)
        return (*measures, summary.lr, summary.n, summary.parameters)

    return Section(
        "results",
        "Other protocols",
        "Mean and sample standard deviation over trials, at each trial's best epoch by validation loss; the test set"
        " was used once, with the weights of that epoch.",
        (
            *MODEL,
            DROPOUT,
            Column("test_acc", "test acc.", "spread", digits=4),
            Column("val_acc", "val. acc.", "spread", digits=4),
            Column("train_acc", "train acc.", "spread", digits=4, detail=True),
            LEARNING_RATE,
            TRIALS,
            PARAMETERS,
        ),
        _summary_groups("results", [row for row in summaries if row.protocol != PAPER], cells),
        empty="No other protocol has been run.",
    )


def _summary_groups(
    name: str, summaries: Sequence[RowSummary], cells: Callable[[RowSummary], tuple[Any, ...]]
) -> tuple[Group, ...]:
    """Rows that begin with model, protocol, task and dropout, grouped by protocol and task."""
    groups: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
    for summary in summaries:
        row = summary.row
        start = (row.model, summary.protocol, row.task, row.dropout)
        groups.setdefault((summary.protocol, row.task), []).append((*start, *cells(summary)))
    return _by_task(name, groups)


def _by_task(name: str, groups: Mapping[tuple[str, str], Sequence[tuple[Any, ...]]]) -> tuple[Group, ...]:
    return tuple(
        Group(f"{name}-{protocol}-{task}", f"{task}, protocol {protocol}", tuple(rows))
        for (protocol, task), rows in groups.items()
    )


def _charts_by_task(
    name: str, x_label: str, form: str, summaries: Sequence[RowSummary], x_of: Callable[[RowSummary], float]
) -> list[Chart]:
    """One chart a task: every model's mean accuracy over x, with the interval of the mean."""
    tasks: dict[tuple[str, str], dict[Model, list[RowSummary]]] = {}
    for summary in summaries:
        tasks.setdefault((summary.protocol, summary.row.task), {}).setdefault(summary.model, []).append(summary)
    charts = []
    for (protocol, task), models in tasks.items():
        lines = tuple(_line(sorted(rows, key=x_of), x_of) for rows in models.values())
        measure = _measure(next(iter(models.values()))[0])
        charts.append(
            Chart(
                name=f"{name}-chart-{protocol}-{task}",
                title=f"{task}, protocol {protocol}",
                alt=f"Mean {measure} against {x_label} of {len(lines)} models, task {task}, protocol"
                f" {protocol}, with 95 % intervals: {', '.join(line.label for line in lines)}.",
                x_label=x_label,
                panels=(Panel(measure, lines),),
                form=form,
            )
        )
    return charts


def _line(rows: Sequence[RowSummary], x_of: Callable[[RowSummary], float]) -> Line:
    row = rows[0].row
    return Line(
        row.model,
        family(row),
        row.size,
        tuple(x_of(summary) for summary in rows),
        tuple(summary.accuracy.mean for summary in rows),
        tuple(summary.interval[0] for summary in rows),
        tuple(summary.interval[1] for summary in rows),
    )


def _measure(summary: RowSummary) -> str:
    """What `summary.accuracy` is."""
    return MEASURES["val_acc" if summary.test_acc is None else "test_acc"]
