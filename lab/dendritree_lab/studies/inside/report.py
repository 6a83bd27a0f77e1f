"""Results of the study of parts: scores against parameters and seconds, and which kind to use at which share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dendritree.errors import FormatError

from ...report import Report, write_report
from ...report.chart import Chart, Line, Panel
from ...report.files import ReportFiles
from ...report.layout import Column, Section, anchor, listed
from ..engine.machine_section import machine_section, run_info
from ..engine.phases import TEST
from ..engine.statistics import Difference, Spread, bootstrap_mean, corrected, spread, welch
from ..engine.store import RunStore
from ..engine.trial import Trial
from .hosts import HOSTS
from .parts import KINDS, ORIGINAL
from .plan import Cell, cell_of, read_inside_trial

TITLE = "Trees and other replacements inside deep networks"
KEPT = 0.99
"""The share of the original's score that a good replacement keeps."""
LEVEL = 0.05
"""A part is level with the first of its share if Welch's test, uncorrected, gives a p value above this."""


@dataclass(frozen=True)
class Part:
    """A cell that was evaluated."""

    cell: Cell
    parameters: int
    """Of the whole network."""
    scores: tuple[float, ...]
    step_seconds: float
    lr: float
    kept: float
    """Its mean score, as a share of the original's."""
    slower: float
    """Its time per step, relative to the narrower network of its share."""
    over_narrow: Difference
    """Its score minus that of the narrower network; p values are corrected over all cells."""

    @property
    def spread(self) -> Spread:
        """Mean and standard deviation of the scores."""
        return spread(self.scores)


def summarize_inside(trials: Sequence[Trial]) -> list[Part]:
    """The results in a store's trials, for all cells that were evaluated."""
    tests: dict[Cell, list[Trial]] = {}
    for trial in trials:
        if trial.key["phase"] == TEST:
            tests.setdefault(cell_of(trial), []).append(trial)
    scores = {cell: tuple(trial.scores["test_acc"] for trial in found) for cell, found in tests.items()}
    seconds = {cell: min(trial.scores["step_seconds"] for trial in found) for cell, found in tests.items()}
    hosts, kinds, nothing = list(HOSTS), list(KINDS), (float("nan"),)
    parts = []
    for cell in sorted(tests, key=lambda of: (hosts.index(of.host), of.dataset, of.divisor, kinds.index(of.kind))):
        original = Cell(cell.host, cell.dataset, ORIGINAL, 1)
        narrow = Cell(cell.host, cell.dataset, ORIGINAL, cell.divisor)
        first = tests[cell][0]
        parts.append(
            Part(
                cell,
                first.parameters,
                scores[cell],
                seconds[cell],
                float(first.config["lr"]),
                float(np.mean(scores[cell]) / np.mean(scores.get(original, nothing))),
                seconds[cell] / seconds.get(narrow, float("nan")),
                welch(scores[cell], scores.get(narrow, nothing)),
            )
        )
    tests_of = corrected(part.over_narrow for part in parts)
    return [Part(**{**vars(part), "over_narrow": test}) for part, test in zip(parts, tests_of, strict=True)]


def parts_section(parts: Sequence[Part]) -> Section:
    """Every cell, by host and data set."""
    return Section.of(
        "inside",
        "Parts of deep networks",
        "Test accuracy of networks whose feed-forward blocks or convolutions were replaced, trained from scratch, over"
        " fresh seeds; the learning rate is chosen on validation for each. The share is that of the replaced parts'"
        " parameters. `kept` is the share of the original's score. Times are processor time per step, on one"
        " thread, validation included, against the narrower network of the same share.",
        (
            Column("kind", "part", value=lambda of: "original" if of.cell.divisor == 1 else of.cell.kind),
            Column("host", value="cell.host"),
            Column("task", value="cell.dataset"),
            Column("share", "share", value=lambda of: "1" if of.cell.divisor == 1 else f"1/{of.cell.divisor}"),
            Column("parameters", "parameters", "count"),
            Column("score", "test accuracy", "spread", digits=4, value="spread"),
            Column("kept", "kept", "number", digits=3),
            Column("gain", "over narrow", "difference", digits=4, value="over_narrow.mean"),
            Column("p", "p value", "p", value="over_narrow.p", detail=True),
            Column("slower", "time", "number", digits=2),
            Column("lr", "learning rate", "number", digits=4, detail=True),
            Column("seeds", "seeds", "count", value=lambda of: len(of.scores), detail=True),
        ),
        parts,
        by=lambda of: (f"{of.cell.host}-{of.cell.dataset}", f"{HOSTS[of.cell.host].title} on {of.cell.dataset}"),
        charts=(
            *_charts(parts, "parameters", lambda part: part.parameters),
            *_charts(parts, "processor time per step, in ms", lambda part: 1000 * part.step_seconds),
        ),
        empty="No network has been evaluated yet.",
    )


def _charts(parts: Sequence[Part], x_label: str, cost: Callable[[Part], float]) -> Iterator[Chart]:
    """One chart per host and data set: the score of each kind against what it costs."""
    for host, dataset in _runs(parts):
        lines = []
        for kind in KINDS:
            own = sorted(
                (p for p in parts if (p.cell.host, p.cell.dataset, p.cell.kind) == (host, dataset, kind)), key=cost
            )
            if own:
                low, high = zip(*(bootstrap_mean(part.scores) for part in own), strict=True)
                at, means = tuple(float(cost(part)) for part in own), tuple(part.spread.mean for part in own)
                lines.append(Line(kind, kind, 0, at, means, low, high))
        title = f"{HOSTS[host].title} on {dataset}"
        alt = f"Mean test accuracy against {x_label}, {title}: {', '.join(line.label for line in lines)}."
        name, group = anchor(f"{host}-{dataset}-{x_label.split()[0]}"), f"Score against {x_label}"
        panel = Panel("test accuracy", tuple(lines), scale="errors")
        yield Chart(name, title.replace("a", "A", 1), alt, x_label, (panel,), "scaling", group)


def _runs(parts: Sequence[Part]) -> list[tuple[str, str]]:
    """The hosts and data sets, in order."""
    return list(dict.fromkeys((part.cell.host, part.cell.dataset) for part in parts))


def verdicts(parts: Sequence[Part]) -> Iterator[str]:
    """The first of each share, the kinds level with it, and the smallest of each kind that keeps 99% of the score."""
    for host, dataset in _runs(parts):
        own = [part for part in parts if (part.cell.host, part.cell.dataset) == (host, dataset)]
        firsts = []
        for divisor in sorted({part.cell.divisor for part in own} - {1}):
            best, *others = sorted(
                (part for part in own if part.cell.divisor == divisor), key=lambda part: part.spread.mean, reverse=True
            )
            level = [part.cell.kind for part in others if welch(part.scores, best.scores).p > LEVEL]
            beside = f", level with {listed(level)}" if level else ""
            firsts.append(f"{best.cell.kind} at 1/{divisor} ({best.spread.mean:.3f}{beside})")
        smallest = []
        for kind in KINDS:
            found = [p.cell.divisor for p in own if p.cell.kind == kind and p.kept >= KEPT and p.cell.divisor > 1]
            if found:
                smallest.append(f"{kind} at 1/{max(found)}")
        if firsts:
            share = f"{KEPT:.0%} of the original's score"
            kept = f"{share} is kept by {listed(smallest)}" if smallest else f"no part keeps {share}"
            title = HOSTS[host].title.replace("a", "A", 1)
            yield f"{title} on {dataset}: first {'is' if len(firsts) == 1 else 'are'} {listed(firsts)}; {kept}."


def write_inside(folder: str | os.PathLike[str]) -> tuple[Report, ReportFiles]:
    """Write the results of the run in `folder`, finished or not, into the same folder; needs the extra `report`."""
    with RunStore.open_for_reading(folder) as store:
        if "inside" not in store.config:
            raise FormatError(f"the folder must be of `dendritree compare --inside`: {folder} holds another run")
        info, trials = run_info(store), store.read_trials(read_inside_trial, with_weights=False)
    parts = summarize_inside(trials)
    report = Report(TITLE, tuple(verdicts(parts)), (parts_section(parts), machine_section(info)))
    return report, write_report(report, folder, name="inside", pictures=True)
