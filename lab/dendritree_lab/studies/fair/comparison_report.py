"""The findings of a comparison in a few sentences, and its report: from a run's folder to the files in it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dendritree.errors import FormatError
from dendritree.plot.style import show_size

from ...report import Report, print_report, write_report
from ...report.layout import Column, listed, show, show_seconds
from ..engine.machine_section import machine_section, run_info
from ..engine.statistics import SIGNIFICANT, show_p
from ..engine.store import RunStore
from ..engine.task import Task
from ..engine.trial import Trial
from .advice import Answer, answers
from .comparison import tasks_in
from .comparison_plan import ComparisonPlan
from .comparison_results import GAINS, Comparison, Gain, summarize
from .comparison_tables import (
    NOT_A_TREE_GAIN,
    NOTHING,
    Coverage,
    answers_section,
    cells_section,
    configurations_section,
    coverage,
    coverage_section,
    efficiency_section,
    gains_section,
    overview_section,
)
from .families import FAMILIES

if TYPE_CHECKING:
    from rich.console import Console

TITLE = "Models of the same size, tuned the same way"
RULE_SEEDS = 5
"""Minimum number of seeds per configuration for reliable intervals."""
FACTOR = Column("factor", "factor", "bounded")
DIFFERENCE = Column("gain", "gain", "difference", digits=2)


def write_comparison(
    folder: str | os.PathLike[str], *, plan: ComparisonPlan | None = None
) -> tuple[Comparison, list[Path]]:
    """Write the report of the run in `folder`, complete or not, to the same folder.

    Returns the results and their paths: `comparison.html`, `comparison.md`, and the folders `csv` and `figures`.

    Args:
        folder: the run's folder, which may still be written to.
        plan: what the complete run contains; by default, what was started.
    """
    with RunStore.open_for_reading(folder) as store:
        info, config = run_info(store), store.config
        if "comparison" not in config:
            raise FormatError(f"{folder} must be a run of `dendritree compare`: it holds another run")
        trials, tasks = store.trials(), tasks_in(store)
    comparison = summarize(trials, tasks)
    report = comparison_report(comparison, trials, config, info, plan=plan, tasks=tasks)
    return comparison, write_report(report, folder, name="comparison", pictures=True).places


def comparison_report(
    comparison: Comparison,
    trials: Sequence[Trial],
    config: Mapping[str, Any],
    info: Mapping[str, Any],
    *,
    plan: ComparisonPlan | None = None,
    tasks: Mapping[str, Task] = MappingProxyType({}),
) -> Report:
    """Build the report from the trials run so far, all, some or none.

    Args:
        comparison: what `summarize` returns for the trials.
        trials: the trials.
        config: the rule of the run, from `ComparisonPlan.as_config`.
        info: machine, versions and settings; nested mappings are shown with dotted keys.
        plan: what the complete run contains; by default, what was started.
        tasks: the tasks of the user's own data, by name.

    >>> plan = ComparisonPlan.make(["digits"])
    >>> report = comparison_report(summarize([]), [], plan.as_config(), {}, plan=plan)
    >>> report.summary[0]
    'The comparison is not complete: 0 of 10 cells have been evaluated. Not started: digits.'
    """
    covered, found = coverage(trials, config["trials"], plan, tasks), answers(comparison)
    sections = (
        overview_section(comparison),
        answers_section(found),
        cells_section(comparison),
        gains_section(comparison),
        efficiency_section(comparison),
        configurations_section(comparison),
        coverage_section(covered, config),
        machine_section(info),
    )
    use = (sentence for answer in found for sentence in answer.sentences)
    summary = (*_partial(covered), *_few_seeds(comparison), *use, *sentences(comparison))
    return Report(TITLE, summary, sections, (*best_scores(found), *facts(covered, trials)))


def print_comparison(comparison: Comparison, console: Console | None = None) -> None:
    """Print budgets x families with the gains and a summary to a rich console, by default the terminal.

    >>> print_comparison(summarize([]))
    At a glance
    No model has been evaluated on a test set yet.
    <BLANKLINE>
    Models of the same size, tuned the same way
    • No model has been evaluated on a test set yet.
    """
    print_report(
        Report(TITLE, (*_few_seeds(comparison), *sentences(comparison)), (overview_section(comparison),)), console
    )


def best_scores(found: Sequence[Answer]) -> Iterator[tuple[str, str]]:
    """The score of the model to use, for a comparison on one data set."""
    if len(found) == 1:
        (answer,) = found
        (low, high), seeds = answer.use.interval, len(answer.use.scores)
        around = "one seed" if seeds == 1 else f"{seeds} seeds"
        if seeds >= RULE_SEEDS and not math.isnan(low):
            around += f", 95% interval {low:.4f} to {high:.4f}"
        yield f"{answer.use.spread.mean:.4f}", f"test {answer.task.metric} of the model to use, {around}"


def facts(covered: Sequence[Coverage], trials: Sequence[Trial]) -> Iterator[tuple[str, str]]:
    """The key figures at the top: a value and what it counts."""
    yield (
        f"{sum(of.evaluated for of in covered)} of {sum(of.cells for of in covered)}",
        "cells evaluated on the test set",
    )
    if len(names := {of.task.dataset for of in covered}) > 1:
        begun = {of.task.dataset for of in covered if of.state != "not started"}
        yield f"{len(begun)} of {len(names)}", "data sets started"
    yield f"{len(trials):,}", "models trained"
    if trials:
        yield show_seconds(sum(trial.seconds for trial in trials)), "of training, summed over models"


def _few_seeds(comparison: Comparison) -> Iterator[str]:
    """What comes first if there are too few seeds to rely on."""
    fewest = min((len(result.scores) for result in comparison.cells), default=RULE_SEEDS)
    if fewest < RULE_SEEDS:
        number = "one seed" if fewest == 1 else f"{fewest} seeds"
        yield f"Some cells have {number}, fewer than the recommended five: their intervals and tests are unreliable."


def sentences(comparison: Comparison) -> Iterator[str]:
    """What a complete or partial run says about the families."""
    if not comparison.cells:
        yield NOTHING
        return
    for kind in sorted(GAINS, key=lambda kind: kind == "wiring"):  # it needs a remark, and so it comes last
        if kind != "both":
            yield from _gains([gain for gain in comparison.gains if gain.kind == kind], kind)
    yield from _factors(comparison)
    yield from _doubts(comparison)


def _partial(covered: Sequence[Coverage]) -> Iterator[str]:
    """What is missing."""
    missing = [of for of in covered if of.state == "not started"]
    begun = [of for of in covered if of.state == "partial"]
    if not missing and not begun:
        return
    evaluated, cells = sum(of.evaluated for of in covered), sum(of.cells for of in covered)
    text = f"The comparison is not complete: {evaluated} of {cells} cells have been evaluated."
    if begun:
        text += f" Partial: {listed([f'{of.task.name} ({of.evaluated} of {of.cells})' for of in begun])}."
    if missing:
        text += f" Not started: {listed([of.task.name for of in missing])}."
    yield text


def _cells(number: int) -> str:
    return f"{number} cell{'' if number == 1 else 's'}"


def _gains(gains: Sequence[Gain], kind: str) -> Iterator[str]:
    gains = [gain for gain in gains if not math.isnan(gain.test.mean)]
    if not gains:
        return
    name, end = GAINS[kind].name, NOT_A_TREE_GAIN if kind == "wiring" else ""
    if len(gains) == 1:
        yield (
            f"{name[0].upper()}{name[1:]} of the same budget: {_show_gain(gains[0])}, {gains[0].test.state} "
            f"({show_p(gains[0].test.p)}). {end}"
        ).strip()
        return
    states = [gain.test.state for gain in gains]
    text = (
        f"{name[0].upper()}{name[1:]} of the same budget: ahead in {states.count('ahead')} of {_cells(len(gains))} and"
        f" behind in {states.count('behind')} (corrected p < {SIGNIFICANT:g}; the rest are undecided)."
    )
    ranges = []
    for unit in dict.fromkeys(gain.unit for gain in gains):
        ordered = sorted((gain for gain in gains if gain.unit == unit), key=lambda gain: gain.in_units.mean)
        ranges.append(" to ".join(map(_show_gain, dict.fromkeys([ordered[0], ordered[-1]]))))
    yield f"{text} Range: {'; '.join(ranges)}. {end}".strip()


def _show_gain(gain: Gain) -> str:
    """A gain with its sign, its unit and its cell."""
    return f"{show(gain.in_units.mean, DIFFERENCE)} {gain.unit} ({gain.task.name}, {show_size(gain.budget)})"


def _factors(comparison: Comparison) -> Iterator[str]:
    """The factors at every budget, not only the best one; learning curves are only in the table."""
    for family in ("tree", "sparse"):
        lists = []
        for task in comparison.tasks:
            own = [e for e in comparison.efficiencies if (e.cell.task, e.cell.family) == (task, family)]
            factors = [f"{show((e.factor, e.bounds[0]), FACTOR)} at {show_size(e.cell.budget)}" for e in own]
            if factors and task.examples is None:
                lists.append(f"{', '.join(factors)} on {task.name}")
        if lists:
            name = FAMILIES[family].name + " perceptrons" * (family == "sparse")
            yield f"To match {name}, a dense MLP needs this many times as many parameters: {'; '.join(lists)}."


def _doubts(comparison: Comparison) -> Iterator[str]:
    diverged = [r for r in comparison.cells if not all(map(math.isfinite, r.scores))]
    if diverged:
        names = [f"{r.cell.name} of {r.parameters:,} on {r.cell.task.name}" for r in diverged]
        yield f"Training diverged for at least one seed of {listed(names)}: these cells have no score."
