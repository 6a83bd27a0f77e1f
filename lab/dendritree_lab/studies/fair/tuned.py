"""The result of `tune`: the model to use, in words and as a report."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from scipy.stats import binomtest
from torch import nn

from dendritree.models.sizing import parameters_of

from ...report.files import ReportFiles, write_report
from ...report.layout import Column, Report, Section, show_seconds
from ..engine.configuration import Configuration
from ..engine.statistics import CONFIDENCE
from ..engine.task import Task
from ..engine.trial import FINAL, Trial
from .advice import NAMES
from .comparison_plan import configuration_of, validation_score
from .comparison_tables import NOT_SEARCHED, shown_option
from .families import FAMILIES

WITHOUT_DENDRITES = ("linear", "dense", "sparse", "cnn", "separable", "blueprint")
"""Families of models without dendrites."""


@dataclass(frozen=True)
class Tuned:
    """A finished search."""

    task: Task
    budget: int
    trials: tuple[Trial, ...]
    """Everything that was trained, short or long."""
    finals: tuple[Trial, ...]
    """The finalists, which were trained for longer, the best on validation first."""
    model: nn.Module = field(repr=False)
    """The first of them; in evaluation mode, returns logits."""
    test_score: float
    examples: tuple[int, int]
    """The number of validation and of test examples."""

    @property
    def metric(self) -> str:
        """`accuracy`, or `rmse`, where lower is better."""
        return self.task.metric

    @property
    def parameters(self) -> int:
        """Number of parameters of the model."""
        return parameters_of(self.model)

    @property
    def family(self) -> str:
        """The model's family, a name in `FAMILIES`."""
        return str(self.finals[0].key["family"])

    @property
    def configuration(self) -> Configuration:
        """The model and how it was trained."""
        return configuration_of(self.finals[0])

    @property
    def code(self) -> str:
        """The line of code that builds the model, untrained."""
        return f"model = {self.configuration.code}"

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson's interval of a test accuracy; None for an RMSE."""
        if self.metric != "accuracy" or math.isnan(self.test_score):
            return None
        tested = self.examples[1]
        found = binomtest(round(self.test_score * tested), tested).proportion_ci(CONFIDENCE, method="wilson")
        return float(found.low), float(found.high)

    @property
    def verdict(self) -> tuple[str, ...]:
        """The answer in a few sentences."""
        return tuple(self._sentences())

    def _sentences(self) -> Iterator[str]:
        around = "" if self.interval is None else " (95% interval {:.4f} to {:.4f})".format(*self.interval)
        yield (
            f"Use {_named(self.family)} with {self.parameters:,} parameters (budget: {self.budget:,}): {self.metric} "
            f"{self.test_score:.4f}{around} on {self.examples[1]:,} test examples, which were not used for selection."
        )
        without = self.family in WITHOUT_DENDRITES
        others = [trial for trial in self.finals if (trial.key["family"] in WITHOUT_DENDRITES) != without]
        what = "dendritic model" if without else "model without dendrites"
        if others:
            other = others[0]
            yield (
                f"The best {what}, {_named(str(other.key['family']))} with {other.parameters:,} parameters, is behind "
                f"by {self._behind(other)}."
            )
        tried = [trial for trial in self.trials if trial.key["phase"] != FINAL]
        yield (
            f"{len(tried)} configurations of {len({trial.key['family'] for trial in tried})} families were tried, "
            f"and {len(self.finals)} finalists trained for longer; the best on validation is kept."
        )

    def _behind(self, other: Trial) -> str:
        """A difference on the validation examples, and whether it could be due to chance."""
        best, score = (validation_score(self.task, trial) for trial in (self.finals[0], other))
        validated = self.examples[0]
        text = f"{self.task.goodness(best) - self.task.goodness(score):.4f} in validation {self.metric}"
        if self.metric == "accuracy":
            # Two models on the same examples: the variance is at most the sum of both, so this is conservative.
            rate = (best * validated + 1) / (validated + 2)
            if abs(best - score) < 2 * math.sqrt(2 * rate * (1 - rate) / validated):
                text += f", too little to distinguish from chance on {validated:,} examples"
        return text


def _named(family: str) -> str:
    return NAMES.get(family, FAMILIES[family].name)


# ---------------------------------------------------------------------------------------------------------- the report


def write_tuning(result: Tuned, folder: str | os.PathLike[str]) -> ReportFiles:
    """Write `report.html`, `report.md` and `csv/` into the folder."""
    return write_report(tuning_report(result), folder)


def tuning_report(result: Tuned) -> Report:
    """Build the report of a search."""
    around = "" if result.interval is None else "; 95% interval {:.4f} to {:.4f}".format(*result.interval)
    facts = (
        (f"{result.test_score:.4f}", f"{result.metric} on {result.examples[1]:,} test examples{around}"),
        (f"{result.parameters:,}", f"parameters (budget: {result.budget:,})"),
        (f"{len(result.trials):,}", f"models trained, {show_seconds(sum(t.seconds for t in result.trials))} in all"),
    )
    title = f"The best model within {result.budget:,} parameters on {result.task.title}"
    sections = (_finalists(result), _chosen(result), _families(result), _trials(result))
    return Report(title, (*result.verdict, f"`{result.code}`"), sections, facts)


def _columns(result: Tuned) -> tuple[Column, ...]:
    def validation(trial: Trial) -> float:
        return validation_score(result.task, trial)

    return (
        Column("family", "family", value=lambda trial: FAMILIES[trial.key["family"]].name),
        Column("trial", "configuration", "count", value=lambda trial: trial.key["trial"]),
        Column("parameters", "parameters", "count"),
        Column("validation", f"validation {result.metric}", "number", digits=4, value=validation),
        Column("seconds", "training", "seconds"),
    )


def _finalists(result: Tuned) -> Section:
    return Section.of(
        "finalists",
        "Finalists",
        "The best configuration of every family and the next best of all, each trained with a fresh seed for four"
        " times as many steps as in the search. The first one is kept. Every score is that of one training run, so"
        " small differences are due to chance.",
        _columns(result),
        result.finals,
    )


def _chosen(result: Tuned) -> Section:
    of = result.configuration
    training = {"learning rate": of.lr, "weight decay": of.weight_decay, "rewired synapses": of.rewired}
    options = {name.replace("_", " "): shown_option(value) for name, value in of.arguments.items()}
    rows = [
        (name, value)
        for name, value in (options | {name: f"{value:g}" for name, value in training.items()}).items()
        if value is not None and name.replace(" ", "_") not in NOT_SEARCHED
    ]
    return Section.of("chosen", "Configuration of the model", "", _pair("option", "value"), rows)


def _pair(first: str, second: str) -> tuple[Column, Column]:
    return Column(first, first, value=lambda row: row[0]), Column(second, second, value=lambda row: row[1])


def _families(result: Tuned) -> Section:
    def best(trials: Sequence[Trial]) -> float:
        return max((validation_score(result.task, trial) for trial in trials), key=result.task.goodness)

    by_family: dict[Any, list[Trial]] = {}
    for trial in result.trials:
        if trial.key["phase"] != FINAL:
            by_family.setdefault(trial.key["family"], []).append(trial)
    return Section.of(
        "families",
        "The search",
        "Configurations of every family, drawn and trained as by `dendritree compare`; the leading family got more.",
        (
            Column("family", "family", value=lambda item: FAMILIES[item[0]].title),
            Column("tried", "configurations", "count", value=lambda item: len(item[1])),
            Column("best", f"best validation {result.metric}", "number", digits=4, value=lambda item: best(item[1])),
        ),
        by_family.items(),
    )


def _trials(result: Tuned) -> Section:
    return Section.of(
        "trials",
        "All models",
        "Validation scores are those of the epoch with the lowest validation loss.",
        (*_columns(result), Column("phase", "phase", value=lambda trial: trial.key["phase"])),
        result.trials,
        brief=False,
    )
