"""The report of the study of tables: bars, ranks, gains, and every table."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dendritree.errors import FormatError, check_int, check_one_of

from ...report import Report, print_report, write_report
from ...report.files import ReportFiles
from ...report.layout import Column, Section
from ..engine.machine_section import machine_section, run_info
from ..engine.store import RunStore
from .charts import rank_chart
from .families import BOOSTING, FAMILIES, MLP
from .plan import ALL, read_table_trial
from .results import AHEAD, BEHIND, LEVEL, TREE, Half, Standing, TableResult, summarize_tables
from .tables import HALVES

if TYPE_CHECKING:
    from rich.console import Console

TITLE = "Trees, MLPs and gradient boosting on tables"
STATES = {AHEAD: "trees ahead", LEVEL: "level", BEHIND: "behind"}
MAIN = (TREE, MLP, BOOSTING)
"""Families whose scores are shown in a narrow terminal."""
LEVEL_RULE = (
    "Trees are level with a family on a table if the means over folds differ by no more than one standard error of"
    " their difference, s sqrt(1/k + 1/(k - 1)): s is the standard deviation of the k differences by fold, and"
    " 1/(k - 1) is for folds that share training rows (Nadeau and Bengio 2003)."
)


def write_tables(folder: str | os.PathLike[str]) -> tuple[Report, ReportFiles]:
    """Write the results so far of the run in `folder` to the same folder; needs the extra `report`."""
    with RunStore.open_for_reading(folder) as store:
        info, results = run_info(store), read_results(store)
    halves = [half for name in HALVES if (half := Half.of(name, results)).results]
    if len(halves) == len(HALVES):
        halves.append(Half.of(ALL, results))
    sections = (
        bars_section(halves),
        ranks_section(halves),
        gains_section(halves),
        tables_section(results),
        costs_section(results),
        machine_section(info),
    )
    report = Report(TITLE, tuple(sentences(halves)), sections)
    return report, write_report(report, folder, name="tables", pictures=True)


def read_results(store: RunStore) -> list[TableResult]:
    """The results of a run so far."""
    if "collection" not in store.config:
        raise FormatError(f"the folder must be made by `dendritree compare tables`: {store.folder} holds another run")
    folds = check_int("folds", store.config.get("folds"), least=2)
    return summarize_tables(store.read_trials(read_table_trial, with_weights=False), folds)


def read_half(folder: str | os.PathLike[str], half: str = ALL) -> Half:
    """The results of a half of the tables, `choose`, `held-out` or `all`, of the run in `folder`."""
    check_one_of("half", half, (*HALVES, ALL))
    with RunStore.open_for_reading(folder) as store:
        return Half.of(half, read_results(store))


def print_tables(report: Report, console: Console | None = None) -> None:
    """Print the report to a rich console, by default the terminal."""
    print_report(report, console)


def sentences(halves: Sequence[Half]) -> Iterator[str]:
    """The sentences of the summary."""
    for half in halves:
        for bar in half.bars():
            yield f"On {half.title}, {bar.what}: {bar.found} (needed: {bar.needed}; {bar.state})."


def bars_section(halves: Sequence[Half]) -> Section:
    """The bars of each half."""
    return Section.of(
        "bars",
        "Bars",
        LEVEL_RULE,
        (
            Column("what", "bar", value=lambda of: of[1].what),
            Column("half", value=lambda of: of[0].name),
            Column("found", "found", value=lambda of: of[1].found),
            Column("needed", "needed", value=lambda of: of[1].needed),
            Column("state", "state", "badge", value=lambda of: of[1].state),
        ),
        [(half, bar) for half in halves for bar in half.bars()],
        by=_by_half,
        empty="No table has trees and a family to compare them with yet.",
    )


def ranks_section(halves: Sequence[Half]) -> Section:
    """Mean ranks, and how often trees are ahead."""
    return Section.of(
        "ranks",
        "Ranks",
        "Mean rank over the tables that have every family, 1 being the best, and the number of tables on which trees"
        " are ahead of each family, level with it, or behind it. In the diagrams (Demšar 2006) bars join families whose"
        " mean ranks differ by less than Nemenyi's critical difference at 5%, which is not significant. The p value is"
        " that of Friedman's test, in Iman and Davenport's form, of the hypothesis that all families are equally good.",
        (
            Column("family", "family", value=lambda of: of[1].family),
            Column("what", "what it is", value=lambda of: FAMILIES[of[1].family], detail=True),
            Column("half", value=lambda of: of[0].name),
            Column("rank", "mean rank", "number", digits=2, value=lambda of: of[1].rank),
            *(
                Column(state, label, "count", value=functools.partial(_of_standing, state))
                for state, label in STATES.items()
            ),
        ),
        [(half, standing) for half in halves for standing in half.standings()],
        by=_by_half,
        charts=tuple(chart for half in halves if (chart := rank_chart(half)) is not None),
        empty="No table is complete yet.",
    )


def _of_standing(state: str, item: tuple[Half, Standing]) -> int | None:
    """The number of tables in a state; None for trees themselves, and if there are no trees to compare."""
    found: int = getattr(item[1], state)
    return found if item[1].ahead + item[1].level + item[1].behind else None


def gains_section(halves: Sequence[Half]) -> Section:
    """Mean gains of trees."""
    return Section.of(
        "gains",
        "What trees gain",
        "Mean over tables of the score of trees minus that of another family, in accuracy or R², with a 95% bootstrap"
        " interval over tables.",
        (
            Column("rival", "over", value=lambda of: of[1].rival),
            Column("half", value=lambda of: of[0].name),
            Column("task", "task", value=lambda of: of[1].task),
            Column("gain", "mean gain", "difference", digits=4, value=lambda of: of[1].mean),
            Column("interval", "95% interval", "interval", digits=4, value=lambda of: (of[1].low, of[1].high)),
            Column("tables", "tables", "count", value=lambda of: of[1].count),
        ),
        [(half, gain) for half in halves for gain in half.gains()],
        by=_by_half,
        empty="No table has trees and a family to compare them with yet.",
    )


def _by_half(item: tuple[Half, Any]) -> tuple[str, str]:
    half = item[0]
    count = f"{len(half.results)} of {half.size} tables" if len(half.results) < half.size else f"{half.size} tables"
    return half.name, f"{half.title[0].upper()}{half.title[1:]} ({count})"


def _of_family(family: str, attribute: str, result: TableResult) -> Any:
    found = result.families.get(family)
    return None if found is None else getattr(found, attribute)


def _columns(attribute: str, suffix: str, label: str, form: str) -> list[Column]:
    """A column per family; without a label, it is only in CSV files."""
    return [
        Column(
            f"{family}{suffix}",
            label and f"{family}{label}",
            form,
            detail=family not in MAIN,
            value=functools.partial(_of_family, family, attribute),
        )
        for family in FAMILIES
    ]


TABLE_COLUMNS = (
    Column("table", "table", value="table.name"),
    Column("half", value="half"),
    Column("task", value="table.task"),
)


def _by_task(result: TableResult) -> tuple[str, str]:
    score = "accuracy" if result.table.classes else "R²"
    return (
        f"{result.half}-{result.table.task}",
        f"{Half(result.half, ()).title.capitalize()}: {result.table.task}, {score}",
    )


def tables_section(results: Sequence[TableResult]) -> Section:
    """Every table, in one row each."""
    return Section.of(
        "tables",
        "Every table",
        "Mean and standard deviation over folds of the accuracy, or of R² for regressions, on held-out rows.",
        (
            *TABLE_COLUMNS,
            Column("rows", "rows", "count", value="table.rows", detail=True),
            Column("columns", "columns", "count", value="table.columns", detail=True),
            *_columns("mean", "", " ", "number"),
            *_columns("sd", "_sd", "", "number"),
            *_columns("parameters", "_parameters", "", "count"),
            *_columns("fit_seconds", "_fit_seconds", "", "seconds"),
            *_columns("predict_seconds", "_predict_seconds", "", "seconds"),
        ),
        sorted(results, key=lambda result: (HALVES.index(result.half), result.table.task)),
        by=_by_task,
        empty="No table is complete yet.",
    )


def costs_section(results: Sequence[TableResult]) -> Section:
    """Parameters and times, in one row per table."""
    return Section.of(
        "costs",
        "Parameters and time",
        "Parameters of the largest fold (for gradient boosting, the splits and leaves of all its trees, which is less"
        " than the numbers it stores), and mean processor time to fit one fold, on one thread.",
        (
            *TABLE_COLUMNS,
            *_columns("parameters", "_parameters", " ", "count"),
            *_columns("fit_seconds", "_fit_seconds", " fit", "seconds"),
        ),
        sorted(results, key=lambda result: (HALVES.index(result.half), result.table.task)),
        by=_by_task,
        empty="No table is complete yet.",
        brief=False,
    )
