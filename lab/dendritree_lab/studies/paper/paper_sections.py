"""The sections of a reproduction's report: claims, comparisons, dropout, time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from ...report.chart import Chart
from ...report.layout import Column, Section
from .analysis import Comparison, Model, RowSummary
from .claims import Verdict
from .matched import reading_order
from .paper_charts import MEASURES, charts_by_task, measure_of
from .paper_trials import PaperTrial
from .spec import PAPER, TableRow

Planned = Mapping[tuple[str, TableRow], int]
"""How many trials are planned for each row of a protocol."""
ReferenceSeconds = Mapping[tuple[str, TableRow], float]
"""Seconds per trial of a protocol's row with the masked reference, where it was measured."""
MODEL = Column("model", "model", value="row.model")
PROTOCOL = Column("protocol")
TASK = Column("task", value="row.task")
DROPOUT = Column("dropout", "p", "number", digits=1, value="row.dropout")
ROW = (MODEL, PROTOCOL, TASK, DROPOUT)
TRIALS = Column("trials", "trials", "count", value="n")
PARAMETERS = Column("parameters", "parameters", "count")
ACCURACY = (Column("measure", value=measure_of), Column("accuracy", "accuracy", "spread"))
LEARNING_RATE = Column("lr", "learning rate", "number", digits=4, detail=True)
INTERVAL = Column("interval", "95% interval of the mean", "interval", detail=True)


def _by_task(item: Any) -> tuple[str, str]:
    task = item.task if isinstance(item, Verdict) else item.row.task
    return f"{item.protocol}-{task}", f"{task}, protocol {item.protocol}"


def claims_section(verdicts: Sequence[Verdict]) -> Section:
    """What the paper claims, and whether it holds, for each protocol and task."""
    was_run = {(verdict.protocol, verdict.task) for verdict in verdicts if verdict.outcome != "not run"}
    return Section.of(
        "claims",
        "The paper's claims",
        "The paper's conclusions, tested on our trials, without dropout and with every model at its best. A claim"
        " holds if every comparison it makes is won with p < 0.05, and does not hold if one is lost at that"
        " level; p values are Welch's, corrected by Holm's method over the comparisons of the claim.",
        (
            Column("claim", "claim", value="statement"),
            PROTOCOL,
            Column("task"),
            Column("verdict", "verdict", "badge", value="outcome"),
            Column("evidence", "evidence", "evidence"),
        ),
        [verdict for verdict in verdicts if (verdict.protocol, verdict.task) in was_run],
        by=_by_task,
        empty="No claim can be tested yet.",
    )


def comparisons_section(comparisons: Sequence[Comparison]) -> Section:
    """Each dendritic model against its controls."""
    return Section.of(
        "comparisons",
        "Dendritic models against their controls",
        "Difference of mean accuracies, dendritic minus control, with its 95% interval and the p value of Welch's t"
        " test after Holm's correction; Hedges' g is the difference in units of the pooled standard deviation. Accuracy"
        " is measured on the test set where the protocol has one, otherwise on the validation images.",
        (
            *ROW,
            Column("control", "control", value="against.model"),
            Column("control_dropout", "its p", "number", digits=1, value="against.dropout"),
            Column("measure", value=lambda pair: MEASURES[pair.measure]),
            Column("difference", "ahead by", "difference"),
            Column("interval", "95% interval", "interval", value=lambda pair: (pair.test.low, pair.test.high)),
            Column("corrected_p", "p value", "p"),
            Column("g", "Hedges' g", "difference", digits=2, detail=True, value="effect.g"),
            Column(
                "g_interval", "its 95% interval", "interval", digits=2, detail=True, value=lambda pair: pair.effect[1:]
            ),
            Column("fewer_trials", "trials, at least", "count", detail=True, value=lambda pair: min(pair.n)),
        ),
        comparisons,
        by=_by_task,
        empty="No dendritic model has been run with its control yet.",
    )


def results_section(summaries: Sequence[RowSummary]) -> Section:
    """Every row of the other protocols, for which the paper has no numbers."""
    return Section.of(
        "results",
        "Other protocols",
        "Mean and sample standard deviation over trials, at each trial's best epoch by validation loss; the test set"
        " was used once, with the weights of that epoch.",
        (
            *ROW,
            Column("test_acc", "test acc.", "spread", digits=4),
            Column("val_acc", "val. acc.", "spread", digits=4),
            Column("train_acc", "train acc.", "spread", digits=4, detail=True),
            LEARNING_RATE,
            TRIALS,
            PARAMETERS,
        ),
        [row for row in summaries if row.protocol != PAPER.name],
        by=_by_task,
        empty="No other protocol has been run.",
    )


def dropout_section(summaries: Sequence[RowSummary], best: Mapping[Model, TableRow]) -> Section:
    """Accuracy at every dropout."""
    return Section.of(
        "dropout",
        "Dropout",
        "Accuracy at each dropout p: the mean over trials, with a bar for its 95% bootstrap interval. Best is the p"
        " above 0 with the lowest mean validation loss, the paper's rule.",
        (
            *ROW,
            *ACCURACY,
            INTERVAL,
            Column("val_loss", "val. loss", "spread", detail=True),
            Column("best", "best", "badge", value=lambda row: "best" if best.get(row.model) == row.row else None),
            TRIALS,
        ),
        summaries,
        by=_by_task,
        charts=tuple(charts_by_task("dropout", "dropout p", "sweep", summaries, lambda row: row.row.dropout)),
        brief=False,
    )


def parameters_section(summaries: Sequence[RowSummary], shown: Mapping[str, Mapping[Model, TableRow]]) -> Section:
    """Accuracy against parameters: every model at its best dropout, or without if it was only run without."""
    rows = {**shown["none"], **shown["best"]}
    chosen = [summary for summary in summaries if rows.get(summary.model) == summary.row]
    chosen.sort(key=lambda summary: (reading_order(summary), summary.parameters))
    return Section.of(
        "parameters",
        "Accuracy against parameters",
        "Every model at its best dropout: the mean over trials, with a bar for its 95% bootstrap interval.",
        (*ROW, PARAMETERS, *ACCURACY, INTERVAL, TRIALS),
        chosen,
        by=_by_task,
        charts=tuple(charts_by_task("parameters", "parameters", "points", chosen, lambda row: row.parameters)),
        brief=False,
    )


def curves_section(
    summaries: Sequence[RowSummary], shown: Mapping[str, Mapping[Model, TableRow]], charts: Sequence[Chart]
) -> Section:
    """Learning curves, and a table of the best epoch and of the gap between training and validation there."""
    return Section.of(
        "curves",
        "Learning curves and overfitting",
        "Mean over trials, by epoch. The thick line is validation, with a band of one standard deviation; the thin"
        " line of the same color is training. The charts of a task share their axes. The table is taken at each"
        " trial's best epoch; the gap is training minus validation accuracy.",
        (
            *ROW,
            Column("best_epoch", "best epoch", "number", digits=1),
            Column("train_acc", "train acc.", "spread"),
            Column("val_acc", "val. acc.", "spread"),
            Column("train_loss", "train loss", "spread", detail=True),
            Column("val_loss", "val. loss", "spread", detail=True),
            Column("gap", "gap", "difference", value=lambda row: row.train_acc.mean - row.val_acc.mean),
            LEARNING_RATE,
        ),
        [row for row in summaries if any(rows.get(row.model) == row.row for rows in shown.values())],
        by=_by_task,
        charts=tuple(charts),
        brief=False,
    )


# ---------------------------------------------------------------------------------------------------- the run itself


def timing_section(trials: Sequence[PaperTrial], reference_seconds: ReferenceSeconds) -> Section:
    """Seconds per trial of every model, and how many times longer the masked reference takes, where measured."""
    models: dict[tuple[str, str, str, int], list[PaperTrial]] = defaultdict(list)
    for trial in sorted(trials, key=lambda trial: (reading_order(trial), trial.row)):
        models[trial.protocol, trial.row.table, trial.row.network, trial.row.size].append(trial)

    def reference(trials: Sequence[PaperTrial]) -> float | None:
        measured = [reference_seconds.get((trial.protocol, trial.row)) for trial in trials]
        known = [seconds for seconds in measured if seconds is not None]
        return fmean(known) if known else None

    return Section.of(
        "timing",
        "Time",
        "Training time of a trial, including validation; trials that were trained together share their time. The masked"
        " reference is the authors' method, dense matrices with masks, timed on a sample of the same trials on the same"
        " machine.",
        (
            Column("model", "model", value=lambda trials: trials[0].row.model),
            Column("protocol", value=lambda trials: trials[0].protocol),
            Column("table", value=lambda trials: trials[0].row.table),
            Column("task", value=lambda trials: trials[0].row.task),
            Column("trials", "trials", "count", value=len),
            Column("seconds_per_trial", "per trial", "seconds", value=lambda of: fmean(each.seconds for each in of)),
            Column("seconds", "all trials", "seconds", value=lambda of: sum(each.seconds for each in of)),
            Column(
                "reference_seconds_per_trial", "masked reference, per trial", "seconds", detail=True, value=reference
            ),
            Column("times_faster", "times faster", "ratio", value=lambda of: speed_up(of, reference_seconds)),
        ),
        models.values(),
        by=lambda of: (f"{of[0].protocol}-{of[0].row.table}", f"{of[0].row.table}, protocol {of[0].protocol}"),
        empty="No trial has been run yet.",
    )


def speed_up(trials: Iterable[PaperTrial], reference_seconds: ReferenceSeconds) -> float | None:
    """How many times longer the masked reference takes for the trials whose row was measured; None if none was.

    >>> row = TableRow("multiclass-dendritic", "multiclass", "mln", 32, 0.0)
    >>> trials = [PaperTrial.make("paper", row, i, i, "mnist", 0.05, 10_890, 0.02, {}) for i in range(3)]
    >>> speed_up(trials, {("paper", row): 3.0})
    150.0
    """
    pairs = [(trial.seconds, reference_seconds.get((trial.protocol, trial.row))) for trial in trials]
    measured = [(ours, reference) for ours, reference in pairs if reference is not None]
    ours = sum(seconds for seconds, _ in measured)
    return sum(reference for _, reference in measured) / ours if ours else None


def missing_section(trials: Iterable[PaperTrial], planned: Planned) -> Section:
    """Rows with fewer trials than planned, including those not started."""
    done = Counter((trial.protocol, trial.row) for trial in trials)
    return Section.of(
        "missing",
        "What is missing",
        "Rows with fewer trials than planned.",
        (
            Column("model", "model", value=lambda key: key[1].model),
            Column("protocol", value=lambda key: key[0]),
            Column("table", value=lambda key: key[1].table),
            Column("dropout", "p", "number", digits=1, value=lambda key: key[1].dropout),
            Column("trials", "trials", "count", value=lambda key: done[key]),
            Column("planned", "planned", "count", value=lambda key: planned[key]),
            Column("state", "state", "badge", value=lambda key: "partial" if done[key] else "not run"),
        ),
        [key for key, trials in planned.items() if done[key] < trials],
        by=lambda key: (f"{key[0]}-{key[1].table}", f"{key[1].table}, protocol {key[0]}"),
        empty="Nothing: every planned trial has been run.",
    )
