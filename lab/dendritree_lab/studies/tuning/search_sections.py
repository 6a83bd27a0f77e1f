"""The report of a search: its result, which parameters mattered, and what fewer parameters cost."""

from __future__ import annotations

import os
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from ...report.chart import Chart, Line, Panel
from ...report.files import ReportFiles, write_report
from ...report.layout import Column, Report, Section
from . import TrialResult, Tuned
from .space import PARAMETERS

TRIAL = Column("trial", "trial", "count", value="number")
PARAMETERS_COUNT = Column("parameters", "parameters", "count")
KINDS = {True: ("tree", "with dendrites"), False: ("sparse", "without (depth 1)")}
"""By `has_dendrites`: the palette's family, and the name in a legend."""


def write_tuning(result: Tuned, folder: str | os.PathLike[str], *, task: str = "") -> ReportFiles:
    """Write `report.html`, `report.md` and `csv/` into the folder."""
    return write_report(tuning_report(result, task=task), folder)


def tuning_report(result: Tuned, *, task: str = "") -> Report:
    """Build the report.

    Args:
        result: what `tune` returned.
        task: what was learned, for the title.
    """
    where = f" on {task}" if task else ""
    facts = (
        (f"{result.test_score:.4f}", f"{result.metric} on the test examples"),
        (f"{result.parameters:,}", f"parameters, of {result.budget:,}"),
        (f"{len(result.trials):,}", "trials"),
    )
    sections = (_best(result), _importance(result), _pareto(result), _trials(result))
    return Report(f"Tuned within {result.budget:,} parameters{where}", result.verdict, sections, facts)


def _best(result: Tuned) -> Section:
    return Section.of(
        "best",
        "The best configuration",
        "Branching is the number of children of a dendrite above the leaf level; the leaf level takes the rest of the "
        "fan-in. With wiring tied, neurons read copies of such a tree, which share its weights, and may themselves be "
        "shared. Moving synapses is the share of a neuron's synapses, the weakest ones, that move to other inputs "
        "after the first epoch. The width is the largest that the share of the budget allows.",
        (
            Column("parameter", "what", value=PARAMETERS.__getitem__),
            Column("value", "value", value=lambda name: _shown(result.best.chosen[name])),
        ),
        [name for name in PARAMETERS if name in result.best.chosen],
    )


def _importance(result: Tuned) -> Section:
    shares = [(PARAMETERS[name], share) for name, share in result.importance.items()]
    lines = tuple(Line(label, "tree", 0, (share,), (0.0,)) for label, share in shares)
    told = ", ".join(f"{label} {share:.0%}" for label, share in shares)
    alt = f"Share of each parameter in the differences between trials: {told}"
    chart = Chart("importance-chart", "What mattered", alt, "share of the variance", (Panel("", lines),), "shares")
    return Section.of(
        "importance",
        "What mattered",
        "How much of the difference between completed trials each parameter explains, alone and with the others "
        "(fANOVA on a random forest). A parameter that all good trials agree on early may look unimportant.",
        (
            Column("parameter", "what", value=itemgetter(0)),
            Column("importance", "share", "number", digits=3, value=itemgetter(1)),
        ),
        shares,
        charts=(chart,) if shares else (),
        empty="Too few completed trials to tell.",
    )


def _pareto(result: Tuned) -> Section:
    front = result.pareto
    x, y = _points(front)
    lines = [Line("", "tree", 0, x, y, faint=True)] if len(front) > 1 else []
    for has_dendrites, (family, label) in KINDS.items():
        px, py = _points([trial for trial in result.whole if trial.has_dendrites == has_dendrites])
        if px:
            lines.append(Line(label, family, 0, px, py))
    alt = (
        f"Validation {result.metric} against parameters of {len(result.whole)} trials; the best with "
        f"{front[-1].parameters:,} parameters has {front[-1].score:.4f}"
    )
    panel = Panel(f"validation {result.metric}", tuple(lines))
    chart = Chart("pareto-chart", "Parameters and what they buy", alt, "parameters", (panel,), "points")
    return Section.of(
        "pareto",
        "What fewer parameters cost",
        f"Every completed trial; the line joins those that no trial with as few parameters beats. Validation "
        f"{result.metric} of one short training each, so neighbors differ by chance.",
        (
            TRIAL,
            PARAMETERS_COUNT,
            Column("score", result.metric, "number", digits=4),
            Column("depth", "depth", "count", value=lambda trial: trial.chosen["depth"]),
        ),
        front,
        by=lambda _: ("front", "Best for their size"),
        charts=(chart,),
    )


def _points(trials: Sequence[TrialResult]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    pairs = [(float(t.parameters), t.score) for t in trials if t.parameters is not None and t.score is not None]
    return tuple(x for x, _ in pairs), tuple(y for _, y in pairs)


def _trials(result: Tuned) -> Section:
    def chosen(name: str) -> Column:
        return Column(name, PARAMETERS[name], detail=True, value=lambda trial: _shown(trial.chosen.get(name)))

    return Section.of(
        "trials",
        "All trials",
        "Validation figures are those of the epoch with the lowest validation loss, or of the last epoch of a stopped "
        "trial.",
        (
            TRIAL,
            Column("state", "state", "badge", value=lambda trial: "completed" if trial.whole else "stopped"),
            Column("score", result.metric, "number", digits=4),
            PARAMETERS_COUNT,
            Column("epochs", "epochs", "count"),
            Column("seconds", "time", "seconds", detail=True),
            *(chosen(name) for name in PARAMETERS if name in result.best.chosen),
        ),
        result.trials,
        brief=False,
    )


def _shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
