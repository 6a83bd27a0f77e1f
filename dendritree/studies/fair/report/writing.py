"""From a run's folder to the report in it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....errors import FormatError
from ....report.files import write_report
from ....report.layout import Report
from ....report.terminal import print_report
from ...engine.records import TrialRecord
from ...engine.sections import machine_section, run_info
from ...engine.store import RunStore
from .. import Comparison, ComparisonPlan, summarise
from .coverage import coverage, coverage_section
from .findings import facts, sentences
from .sections import cells_section, choices_section, efficiency_section, gains_section, overview_section

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["comparison_report", "print_comparison", "write_comparison"]

TITLE = "Trees, sparse, dense and linear models of the same size"


def write_comparison(
    folder: str | os.PathLike[str], *, plan: ComparisonPlan | None = None
) -> tuple[Comparison, list[Path]]:
    """Write what the run in `folder` found, as far as it is, into the same folder; needs the extra `report`.

    Returns the results, and where they are: `comparison.html`, `comparison.md`, and the folders `csv` and `figures`.

    Args:
        folder: the run's folder, which may still be written to.
        plan: what is to be there in the end; all data sets at their own budgets by default.
    """
    with RunStore.open_for_reading(folder) as store:
        info, config, records = run_info(store), store.config, store.records()
    if "comparison" not in config:
        raise FormatError(f"a comparison's folder must be made by `dendritree compare`: {folder} holds another run")
    comparison = summarise(records)
    report = comparison_report(comparison, records, config, info, plan=plan)
    files = write_report(report, folder, name="comparison", pictures=True)
    folders = {path.parent for path in (*files.csvs, *files.pictures)}
    return comparison, [files.html, files.markdown, *sorted(folders)]


def comparison_report(
    comparison: Comparison,
    records: Sequence[TrialRecord],
    config: Mapping[str, Any],
    info: Mapping[str, Any],
    *,
    plan: ComparisonPlan | None = None,
) -> Report:
    """Everything the report says, from the trials run so far, be they all or none. Needs the extra `experiments`.

    Args:
        comparison: what `summarise` made of the records.
        records: the trials.
        config: the rule of the run, as `ComparisonPlan.as_config` has it.
        info: machine, versions and settings; nested mappings are shown with dotted keys.
        plan: what is to be there in the end; all data sets at their own budgets by default.

    >>> plan = ComparisonPlan.make(["digits"])
    >>> report = comparison_report(summarise([]), [], plan.as_config(), {}, plan=plan)
    >>> report.summary
    ('This is a part of the comparison: 0 of 10 cells are judged. Not begun: digits.', \
'No model has been judged on a test set yet.')
    """
    found = coverage(records, config["trials"], plan)
    sections = (
        overview_section(comparison),
        cells_section(comparison),
        gains_section(comparison),
        efficiency_section(comparison),
        choices_section(comparison),
        coverage_section(found, config),
        machine_section(info),
    )
    return Report(TITLE, tuple(sentences(comparison, found)), sections, tuple(facts(found, records)))


def print_comparison(comparison: Comparison, console: Console | None = None) -> None:
    """Print budgets x families with the gains, and what they say, to a rich console, by default the terminal.

    >>> print_comparison(summarise([]))
    At a glance
    No model has been judged on a test set yet.
    <BLANKLINE>
    Trees, sparse, dense and linear models of the same size
    • No model has been judged on a test set yet.
    """
    print_report(Report(TITLE, tuple(sentences(comparison)), (overview_section(comparison),)), console)
