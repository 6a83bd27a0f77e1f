"""The report of a search: its result, which parameters mattered, and what fewer parameters cost."""

from __future__ import annotations

import itertools
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


def write_tuning(found: Tuned, folder: str | os.PathLike[str], *, task: str = "") -> ReportFiles:
    """Write `report.html`, `report.md` and `csv/` into the folder; needs the extra `tune`."""
    return write_report(tuning_report(found, task=task), folder)


def tuning_report(found: Tuned, *, task: str = "") -> Report:
    """Build the report.

    Args:
        found: what `tune` returned.
        task: what was learned, for the title.
    """
    where = f" on {task}" if task else ""
    facts = (
        (f"{found.test_score:.4f}", f"{found.metric} on the test examples"),
        (f"{found.parameters:,}", f"parameters, of {found.budget:,}"),
        (f"{len(found.trials):,}", "trials"),
    )
    sections = (_best(found), _importance(found), _pareto(found), _progress(found), _trials(found))
    return Report(f"Tuned within {found.budget:,} parameters{where}", found.verdict, sections, facts)


def _best(found: Tuned) -> Section:
    return Section.of(
        "best",
        "The best choice",
        "Branching is the number of children of a dendrite above the leaf level; the leaf level takes the rest of the "
        "fan-in. With wiring tied, neurons read copies of such a tree, which share its weights, and may themselves be "
        "shared. Moving synapses is the share of a neuron's synapses, the weakest ones, that move to other inputs "
        "after the first epoch. The width is the largest that the share of the budget allows.",
        (
            Column("parameter", "what", value=PARAMETERS.__getitem__),
            Column("value", "choice", value=lambda name: _shown(found.best.chosen[name])),
        ),
        [name for name in PARAMETERS if name in found.best.chosen],
    )


def _importance(found: Tuned) -> Section:
    shares = [(PARAMETERS[name], share) for name, share in found.importance.items()]
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


def _pareto(found: Tuned) -> Section:
    front = found.pareto
    x, y = _points(front)
    lines = [Line("", "tree", 0, x, y, faint=True)] if len(front) > 1 else []
    for has_dendrites, (family, label) in KINDS.items():
        px, py = _points([trial for trial in found.whole if trial.has_dendrites == has_dendrites])
        if px:
            lines.append(Line(label, family, 0, px, py))
    alt = (
        f"Validation {found.metric} against parameters of {len(found.whole)} trials; the best with "
        f"{front[-1].parameters:,} parameters has {front[-1].score:.4f}"
    )
    panel = Panel(f"validation {found.metric}", tuple(lines), _limits(found))
    chart = Chart("pareto-chart", "Parameters and what they buy", alt, "parameters", (panel,), "points")
    return Section.of(
        "pareto",
        "What fewer parameters cost",
        f"Every completed trial; the line joins those that no trial with as few parameters beats. Validation "
        f"{found.metric} of one short training each, so neighbors differ by chance.",
        (
            TRIAL,
            PARAMETERS_COUNT,
            Column("score", found.metric, "number", digits=4),
            Column("depth", "depth", "count", value=lambda trial: trial.chosen["depth"]),
        ),
        front,
        by=lambda _: ("front", "Best for their size"),
        charts=(chart,),
    )


def _limits(found: Tuned) -> tuple[float, float] | None:
    """Limits of the y axis for most trials: an outlier must not flatten all others."""
    scores = sorted(trial.score for trial in found.whole if trial.score is not None)
    if len(scores) < 4:
        return None
    quarter = len(scores) // 4
    best, middle = (scores[-1], scores[quarter]) if found.metric == "accuracy" else (scores[0], scores[-1 - quarter])
    room = max(abs(best - middle), 1e-4)
    low, high = sorted((middle - (best - middle), best + 0.25 * (room if best > middle else -room)))
    return low, min(high, 1.0) if found.metric == "accuracy" else high


def _points(trials: Sequence[TrialResult]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    pairs = [(float(t.parameters), t.score) for t in trials if t.parameters is not None and t.score is not None]
    return tuple(x for x, _ in pairs), tuple(y for _, y in pairs)


def _progress(found: Tuned) -> Section:
    """The best score so far, over the trials."""
    scores = [trial.score for trial in found.whole if trial.score is not None]
    best = list(itertools.accumulate(scores, lambda *pair: max(pair, key=found.task.goodness)))
    numbers = [trial.number for trial in found.whole]
    line = Line("best so far", "tree", 0, tuple(map(float, numbers)), tuple(best))
    chart = Chart(
        "progress-chart",
        "The best so far",
        f"Best validation {found.metric} so far over the trials, from {best[0]:.4f} to {best[-1]:.4f}",
        "trial",
        (Panel(f"validation {found.metric}", (line,)),),
    )
    return Section.of(
        "progress",
        "Would more trials help?",
        "If the line has been flat for long, probably not.",
        (
            Column("trial", "trial", "count", value=itemgetter(0)),
            Column("best", f"best {found.metric} so far", "number", digits=4, value=itemgetter(1)),
        ),
        zip(numbers, best, strict=True),
        charts=(chart,),
    )


def _trials(found: Tuned) -> Section:
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
            Column("score", found.metric, "number", digits=4),
            PARAMETERS_COUNT,
            Column("epochs", "epochs", "count"),
            Column("seconds", "time", "seconds", detail=True),
            *(chosen(name) for name in PARAMETERS if name in found.best.chosen),
        ),
        found.trials,
        brief=False,
    )


def _shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
