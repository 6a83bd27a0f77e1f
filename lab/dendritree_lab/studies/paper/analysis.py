"""From trials to tables: summarize rows, compare them with the paper's, and test them against their controls.

A trial is evaluated at its best epoch, the one with the lowest validation loss, as in the paper. Its *accuracy* is the
test accuracy if the protocol has a test set, otherwise the validation accuracy at the best epoch.
"""

from __future__ import annotations

import csv
import math
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

from dendritree.errors import FormatError

from ..engine.statistics import (
    SIGNIFICANT,
    Difference,
    EffectSize,
    Spread,
    bootstrap_mean,
    hedges_g,
    holm,
    spread,
    t_test,
    welch,
)
from ..engine.trial import CURVES
from .paper_trials import PaperTrial
from .spec import PAPER_FOLDER, TableRow

Measure = Literal["val_acc", "test_acc", "gap"]
"""What is compared; `gap` is training minus validation accuracy at the best epoch, a measure of overfitting."""
PAPER_TRIALS = 10
"""Trials per row of the paper."""
FEWEST_TRIALS = 5
"""Minimum number of trials for a verdict on whether a row agrees with the paper's."""


class Model(NamedTuple):
    """A model of a task under a protocol, whatever its dropout."""

    protocol: str
    task: str
    network: str
    size: int


@dataclass(frozen=True)
class RowSummary:
    """One row over its trials; every `Spread` is the mean and sample sd at the best epochs."""

    protocol: str
    row: TableRow
    n: int
    train_acc: Spread
    val_acc: Spread
    train_loss: Spread
    val_loss: Spread
    test_acc: Spread | None
    """None unless every trial has a test accuracy."""
    interval: tuple[float, float]
    """Bootstrap 95% interval of the mean accuracy."""
    best_epoch: float
    """Mean over trials."""
    parameters: int
    lr: float
    """Learning rate; NaN if the trials used several."""

    @property
    def accuracy(self) -> Spread:
        """Test accuracy if there is a test set, otherwise validation accuracy."""
        return self.val_acc if self.test_acc is None else self.test_acc

    @property
    def model(self) -> Model:
        """The model, whatever its dropout."""
        return Model(self.protocol, self.row.task, self.row.network, self.row.size)


def summarize(trials: Iterable[PaperTrial]) -> list[RowSummary]:
    """One summary for each row of each protocol, sorted.

    >>> curves = {"train_loss": [2.0, 1.0], "val_loss": [2.0, 3.0], "train_acc": [0.4, 0.9], "val_acc": [0.5, 0.6]}
    >>> row = TableRow("multiclass-mlp", "multiclass", "mlp", 11, 0.0)
    >>> trials = [PaperTrial.make("paper", row, i, i, "mnist", 0.001, 11_395, 0.1, curves) for i in range(3)]
    >>> [(summary.row.model, summary.n, summary.val_acc) for summary in summarize(trials)]
    [('MLP h=11', 3, Spread(mean=0.5, sd=0.0))]
    """
    groups = by_row(trials)
    return [_summary(protocol, row, groups[protocol, row]) for protocol, row in sorted(groups)]


def _summary(protocol: str, row: TableRow, trials: Sequence[PaperTrial]) -> RowSummary:
    tested = all("test_acc" in trial.scores for trial in trials)
    rates = {trial.lr for trial in trials}
    return RowSummary(
        protocol=protocol,
        row=row,
        n=len(trials),
        test_acc=spread(values_of(trials, "test_acc")) if tested else None,
        **{curve: spread([trial.at_best(curve) for trial in trials]) for curve in CURVES},
        interval=bootstrap_mean(values_of(trials, "test_acc" if tested else "val_acc")),
        best_epoch=spread([trial.best_epoch for trial in trials]).mean,
        parameters=trials[0].parameters,
        lr=rates.pop() if len(rates) == 1 else math.nan,
    )


def by_row(trials: Iterable[PaperTrial]) -> Mapping[tuple[str, TableRow], list[PaperTrial]]:
    """The trials of each protocol and row."""
    groups: dict[tuple[str, TableRow], list[PaperTrial]] = defaultdict(list)
    for trial in trials:
        groups[trial.protocol, trial.row].append(trial)
    return dict(groups)


def values_of(trials: Iterable[PaperTrial], measure: Measure) -> list[float]:
    """A measure of each trial."""
    if measure == "gap":
        return [trial.at_best("train_acc") - trial.at_best("val_acc") for trial in trials]
    if measure == "test_acc":
        return [trial.scores.get("test_acc", math.nan) for trial in trials]
    return [trial.at_best(measure) for trial in trials]


def best_dropout(summaries: Iterable[RowSummary]) -> dict[Model, RowSummary]:
    """For each model that was run with dropout, the row with the lowest mean validation loss, the paper's rule.

    Only dropouts above 0 are candidates; among equal losses, the smaller dropout wins; NaN comes last.
    """

    def loss(summary: RowSummary) -> float:
        return math.inf if math.isnan(summary.val_loss.mean) else summary.val_loss.mean

    best: dict[Model, RowSummary] = {}
    for summary in sorted(summaries, key=lambda summary: (summary.protocol, summary.row.dropout, summary.row)):
        if summary.row.dropout > 0.0:
            leader = best.get(summary.model)
            if leader is None or loss(summary) < loss(leader):
                best[summary.model] = summary
    return best


# ------------------------------------------------------------------------------------------------- the paper's numbers


@dataclass(frozen=True)
class ExpectedRow:
    """A row of the paper's result tables."""

    row: TableRow
    train_acc: Spread
    val_acc: Spread


def read_expected(path: str | os.PathLike[str] = PAPER_FOLDER / "expected" / "results.csv") -> list[ExpectedRow]:
    """The rows of the paper's result tables, in order.

    >>> len(read_expected()), read_expected()[0].val_acc
    (34, Spread(mean=0.85, sd=0.09))
    """
    try:
        with Path(path).open(newline="", encoding="utf-8") as file:
            return [_expected_row(line) for line in csv.DictReader(file)]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise FormatError(f"cannot read the paper's numbers from {path}: {error}") from None


def _expected_row(line: Mapping[str, str]) -> ExpectedRow:
    dropout, train_acc, train_sd, val_acc, val_sd = (
        float(line[name]) for name in ("dropout", "train_acc", "train_sd", "val_acc", "val_sd")
    )
    row = TableRow(line["table"], line["task"], line["network"], int(line["size"]), dropout)
    return ExpectedRow(row, Spread(train_acc, train_sd), Spread(val_acc, val_sd))


@dataclass(frozen=True)
class ComparedRow:
    """A row of the paper and ours at the same dropout; None where ours was not run, or only once."""

    expected: ExpectedRow | None
    """None for a row of ours that the paper does not have."""
    ours: RowSummary | None
    difference: float | None = None
    """Our mean validation accuracy minus the paper's."""
    tolerance: float | None = None
    """Twice the root of the sum of both squared standard deviations."""
    within: bool | None = None
    """Whether the difference is within the tolerance."""
    interval: tuple[float, float] | None = None
    """The 95% interval of the difference, by Welch's test."""
    p: float | None = None
    """The p value of Welch's test of our mean against the paper's, from means and standard deviations.

    It assumes that all trials are independent. The paper's are not: those of a task share one draw of images, so their
    standard deviations do not include the variation between draws, and the errors of its rows are correlated.
    """

    def state(self, *, tests: bool = True) -> str:
        """What the trials say, in a word; without tests, if they are not independent, only by the tolerance."""
        if self.expected is None:
            return "not in the paper"
        if self.ours is None:
            return "not run"
        if self.ours.n < FEWEST_TRIALS or self.p is None:
            return "one trial" if self.ours.n == 1 else "few trials"
        if not self.within:
            return "outside"
        return "differs" if tests and self.p < SIGNIFICANT else "within"

    @property
    def row(self) -> TableRow:
        """The paper's row if there is one, otherwise ours."""
        row = self.expected or self.ours
        assert row is not None
        return row.row


def against_paper(summaries: Iterable[RowSummary], expected: Sequence[ExpectedRow]) -> list[ComparedRow]:
    """The paper's rows in their order, each with ours at the same dropout."""
    ours = {without_table(summary.row): summary for summary in summaries if summary.protocol == "paper"}
    return [_compared(row, ours.get(without_table(row.row))) for row in expected]


def without_table(row: TableRow) -> tuple[str, str, int, float]:
    """The row as the paper identifies it; rounding errors of dropouts such as 3 * 0.1 are removed."""
    return row.task, row.network, row.size, round(row.dropout, 6)


def _compared(expected: ExpectedRow, ours: RowSummary | None) -> ComparedRow:
    if ours is None or math.isnan(ours.val_acc.sd):
        return ComparedRow(expected, ours)
    difference = ours.val_acc.mean - expected.val_acc.mean
    tolerance = 2.0 * math.hypot(ours.val_acc.sd, expected.val_acc.sd)
    test = Difference(difference, difference, difference, 0.0 if difference else 1.0)  # neither has any spread
    if tolerance:
        samples = ((ours.val_acc.sd, ours.n), (expected.val_acc.sd, PAPER_TRIALS))
        test = t_test(difference, [(sd**2 / trials, trials - 1) for sd, trials in samples])
    # The paper's numbers have two digits: a rounding error must not decide.
    within = abs(difference) <= tolerance + 1e-9
    return ComparedRow(expected, ours, difference, tolerance, within, (test.low, test.high), test.p)


# ------------------------------------------------------------------------------------------- tests against controls


@dataclass(frozen=True)
class Comparison:
    """A Welch test of one row against another. Numbers that the trials do not determine are NaN."""

    protocol: str
    row: TableRow
    against: TableRow
    measure: Measure
    n: tuple[int, int]
    test: Difference
    """Mean of `row` minus mean of `against`, with an uncorrected p value."""
    effect: EffectSize
    """Hedges' g."""
    corrected_p: float
    """After Holm's correction over the family the test belongs to."""

    @property
    def difference(self) -> float:
        """Mean of `row` minus mean of `against`."""
        return self.test.mean

    @property
    def verdict(self) -> Difference:
        """The test with its corrected p value."""
        return replace(self.test, p=self.corrected_p)


def compare(trials: Iterable[PaperTrial], pairs: Iterable[tuple[TableRow, TableRow]]) -> list[Comparison]:
    """Test the accuracy of each dendritic row against a control's, under each protocol that ran both.

    p values are corrected by Holm's method over all tests of one task and protocol. A pair is skipped if either side
    has no trials.

    Args:
        trials: the trials.
        pairs: (dendritic row, control row).

    >>> curves = {"train_loss": [1.0], "val_loss": [1.0], "train_acc": [0.9]}
    >>> tree, mlp = TableRow("t", "multiclass", "mln", 32, 0.0), TableRow("m", "multiclass", "mlp", 11, 0.0)
    >>> trials = [
    ...     PaperTrial.make("paper", row, i, i, "mnist", 0.1, 10_890, 0.1, curves | {"val_acc": [accuracy]})
    ...     for row, accuracies in ((tree, (0.80, 0.82, 0.84)), (mlp, (0.70, 0.74, 0.78)))
    ...     for i, accuracy in enumerate(accuracies)
    ... ]
    >>> [test] = compare(trials, [(tree, mlp)])
    >>> round(test.difference, 2), round(test.corrected_p, 4)
    (0.08, 0.0548)
    """
    groups, pairs = by_row(trials), list(pairs)
    families: dict[tuple[str, str], list[Comparison]] = defaultdict(list)
    for protocol in sorted({protocol for protocol, _ in groups}):
        for row, against in pairs:
            if (protocol, row) in groups and (protocol, against) in groups:
                test = compare_samples(groups[protocol, row], groups[protocol, against])
                families[protocol, row.task].append(test)
    return [test for family in families.values() for test in correct_family(family)]


def compare_samples(
    trials: Sequence[PaperTrial], against: Sequence[PaperTrial], measure: Measure | None = None
) -> Comparison:
    """One test, not yet corrected; the measure is accuracy by default."""
    if measure is None:
        tested = all("test_acc" in trial.scores for trial in (*trials, *against))
        measure = "test_acc" if tested else "val_acc"
    first, second = values_of(trials, measure), values_of(against, measure)
    test, rows = welch(first, second), (trials[0].row, against[0].row)
    counts = len(first), len(second)
    return Comparison(trials[0].protocol, *rows, measure, counts, test, hedges_g(first, second), test.p)


def correct_family(tests: Sequence[Comparison]) -> list[Comparison]:
    """The tests with their p values corrected for each other."""
    corrected = holm([each.test.p for each in tests])
    return [replace(each, corrected_p=p) for each, p in zip(tests, corrected, strict=True)]
