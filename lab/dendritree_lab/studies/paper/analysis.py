"""From records to tables: summarize rows, compare them with the paper's, and test them against their controls.

A trial is evaluated at its best epoch, the one with the lowest validation loss, as in the paper. Its *accuracy* is the
test accuracy if the protocol has a test set, otherwise the validation accuracy at the best epoch.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from ..engine.statistics import Difference, EffectSize, Spread, bootstrap_mean, hedges_g, holm, spread, welch
from ..engine.trial import CURVES
from .expected import ExpectedRow
from .records import Row, TrialRecord

Measure = Literal["val_acc", "test_acc", "gap"]
"""What is compared; `gap` is training minus validation accuracy at the best epoch, a measure of overfitting."""


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
    row: Row
    n: int
    train_acc: Spread
    val_acc: Spread
    train_loss: Spread
    val_loss: Spread
    test_acc: Spread | None
    """None unless every trial has a test accuracy; the same holds for `test_loss`."""
    test_loss: Spread | None
    interval: tuple[float, float]
    """Bootstrap 95% interval of the mean accuracy."""
    best_epoch: float
    """Mean over trials."""
    parameters: int
    seconds: float
    """Mean over trials."""
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


@dataclass(frozen=True)
class PaperRow:
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

    @property
    def row(self) -> Row:
        """The paper's row if there is one, otherwise ours."""
        found = self.expected or self.ours
        assert found is not None
        return found.row


@dataclass(frozen=True)
class Comparison:
    """A Welch test of one row against another. Numbers that the trials do not determine are NaN."""

    protocol: str
    row: Row
    against: Row
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


def summarize(records: Iterable[TrialRecord]) -> list[RowSummary]:
    """One summary for each row of each protocol, sorted.

    >>> curves = {"train_loss": [2.0, 1.0], "val_loss": [2.0, 3.0], "train_acc": [0.4, 0.9], "val_acc": [0.5, 0.6]}
    >>> row = Row("multiclass-mlp", "multiclass", "mlp", 11, 0.0)
    >>> trials = [TrialRecord("paper", row, i, i, "mnist", 0.001, 11_395, 0.1, curves) for i in range(3)]
    >>> [(summary.row.model, summary.n, summary.val_acc) for summary in summarize(trials)]
    [('MLP h=11', 3, Spread(mean=0.5, sd=0.0))]
    """
    groups = by_row(records)
    return [_summary(protocol, row, groups[protocol, row]) for protocol, row in sorted(groups)]


def best_dropout(summaries: Iterable[RowSummary]) -> dict[Model, RowSummary]:
    """For each model that was run with dropout, the row with the lowest mean validation loss, the paper's rule.

    Only dropouts above 0 are candidates; of equal losses the smaller dropout wins, and NaN comes last.
    """
    best: dict[Model, RowSummary] = {}
    for summary in sorted(summaries, key=lambda summary: (summary.protocol, summary.row.dropout, summary.row)):
        if summary.row.dropout > 0.0:
            leader = best.get(summary.model)
            if leader is None or _loss(summary) < _loss(leader):
                best[summary.model] = summary
    return best


def against_paper(summaries: Iterable[RowSummary], expected: Sequence[ExpectedRow]) -> list[PaperRow]:
    """The paper's rows in their order, each with ours at the same dropout."""
    ours = {without_table(summary.row): summary for summary in summaries if summary.protocol == "paper"}
    return [_beside(row, ours.get(without_table(row.row))) for row in expected]


def compare(records: Iterable[TrialRecord], pairs: Iterable[tuple[Row, Row]]) -> list[Comparison]:
    """Test the accuracy of each dendritic row against a control's, under each protocol that ran both.

    p values are corrected by Holm's method over all tests of one task and protocol. A pair is skipped if either side
    has no trials.

    Args:
        records: the trials.
        pairs: (dendritic row, control row).

    >>> curves = {"train_loss": [1.0], "val_loss": [1.0], "train_acc": [0.9]}
    >>> tree, mlp = Row("t", "multiclass", "mln", 32, 0.0), Row("m", "multiclass", "mlp", 11, 0.0)
    >>> trials = [
    ...     TrialRecord("paper", row, i, i, "mnist", 0.1, 10_890, 0.1, curves | {"val_acc": [accuracy]})
    ...     for row, accuracies in ((tree, (0.80, 0.82, 0.84)), (mlp, (0.70, 0.74, 0.78)))
    ...     for i, accuracy in enumerate(accuracies)
    ... ]
    >>> [test] = compare(trials, [(tree, mlp)])
    >>> round(test.difference, 2), round(test.corrected_p, 4)
    (0.08, 0.0548)
    """
    groups, pairs = by_row(records), list(pairs)
    tests = []
    for protocol in sorted({protocol for protocol, _ in groups}):
        families: dict[str, list[Comparison]] = defaultdict(list)
        for row, against in pairs:
            if (protocol, row) in groups and (protocol, against) in groups:
                families[row.task].append(compare_samples(groups[protocol, row], groups[protocol, against]))
        for family in families.values():
            tests += correct_family(family)
    return tests


def compare_samples(
    trials: Sequence[TrialRecord], against: Sequence[TrialRecord], measure: Measure | None = None
) -> Comparison:
    """One test, not yet corrected; the measure is accuracy by default."""
    if measure is None:
        tested = all(trial.test_acc is not None for trial in (*trials, *against))
        measure = "test_acc" if tested else "val_acc"
    first, second = values_of(trials, measure), values_of(against, measure)
    test = welch(first, second)
    return Comparison(
        trials[0].protocol,
        trials[0].row,
        against[0].row,
        measure,
        (len(first), len(second)),
        test,
        hedges_g(first, second),
        test.p,
    )


def correct_family(tests: Sequence[Comparison]) -> list[Comparison]:
    """The tests with their p values corrected for each other."""
    corrected = holm([each.test.p for each in tests])
    return [replace(each, corrected_p=p) for each, p in zip(tests, corrected, strict=True)]


def values_of(trials: Iterable[TrialRecord], measure: Measure) -> list[float]:
    """A measure of each trial."""
    if measure == "gap":
        return [trial.at_best("train_acc") - trial.at_best("val_acc") for trial in trials]
    if measure == "test_acc":
        return [math.nan if trial.test_acc is None else trial.test_acc for trial in trials]
    return [trial.at_best(measure) for trial in trials]


def by_row(records: Iterable[TrialRecord]) -> Mapping[tuple[str, Row], list[TrialRecord]]:
    """The trials of each protocol and row."""
    groups: dict[tuple[str, Row], list[TrialRecord]] = defaultdict(list)
    for record in records:
        groups[record.protocol, record.row].append(record)
    return dict(groups)


def _summary(protocol: str, row: Row, trials: Sequence[TrialRecord]) -> RowSummary:
    tested = {name: [getattr(trial, name) for trial in trials] for name in ("test_acc", "test_loss")}
    tests = {name: None if None in values else spread(values) for name, values in tested.items()}
    rates = {trial.lr for trial in trials}
    return RowSummary(
        protocol=protocol,
        row=row,
        n=len(trials),
        test_acc=tests["test_acc"],
        test_loss=tests["test_loss"],
        **{curve: spread([trial.at_best(curve) for trial in trials]) for curve in CURVES},
        interval=bootstrap_mean(values_of(trials, "val_acc" if tests["test_acc"] is None else "test_acc")),
        best_epoch=spread([trial.best_epoch for trial in trials]).mean,
        parameters=trials[0].parameters,
        seconds=spread([trial.seconds for trial in trials]).mean,
        lr=rates.pop() if len(rates) == 1 else math.nan,
    )


def _beside(expected: ExpectedRow, ours: RowSummary | None) -> PaperRow:
    if ours is None or math.isnan(ours.val_acc.sd):
        return PaperRow(expected, ours)
    difference = ours.val_acc.mean - expected.val_acc.mean
    tolerance = 2.0 * math.hypot(ours.val_acc.sd, expected.val_acc.sd)
    # The paper's numbers have two digits: a rounding error must not decide.
    return PaperRow(expected, ours, difference, tolerance, abs(difference) <= tolerance + 1e-9)


def without_table(row: Row) -> tuple[str, str, int, float]:
    """The row as the paper identifies it; rounding errors of dropouts such as 3 * 0.1 are removed."""
    return row.task, row.network, row.size, round(row.dropout, 6)


def _loss(summary: RowSummary) -> float:
    return math.inf if math.isnan(summary.val_loss.mean) else summary.val_loss.mean
