"""A summary of the results in a few sentences, all of them computed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...report.layout import Column, listed, show, show_seconds
from ..engine.statistics import SIGNIFICANT, show_p
from .analysis import FEWEST_TRIALS, ComparedRow, Comparison
from .claims import Verdict
from .paper_sections import Planned, ReferenceSeconds, speed_up
from .paper_trials import PaperTrial
from .several_draws import DrawnRow, Gap, gaps

DIFFERENCE = Column("difference", "difference", "difference")


@dataclass(frozen=True)
class Findings:
    """The results that the sentences are computed from."""

    trials: Sequence[PaperTrial]
    planned: Planned
    paper_rows: Sequence[ComparedRow]
    comparisons: Sequence[Comparison]
    verdicts: Sequence[Verdict]
    reference_seconds: ReferenceSeconds
    drawn: Sequence[DrawnRow] = ()
    """The paper's rows among several draws, if there are several."""


def facts(findings: Findings) -> Iterator[tuple[str, str]]:
    """The key figures at the top: a value and what it counts."""
    yield f"{len(findings.trials):,}", "trials run"
    if findings.paper_rows:
        run = [row for row in findings.paper_rows if row.ours]
        yield f"{len(run)} of {len(findings.paper_rows)}", "rows of the paper run"
        states = [row.state(tests=not findings.drawn) for row in run]
        decided = [state for state in states if state in ("within", "differs", "outside")]
        if decided:
            least = min(row.ours.n for row in run if row.ours)
            what = f"rows without a difference from the paper at p < {SIGNIFICANT:g}, {least} trials each or more"
            yield f"{decided.count('within')} of {len(decided)}", what
    if findings.trials:
        yield show_seconds(sum(trial.seconds for trial in findings.trials)), "of training, summed over trials"


def sentences(findings: Findings) -> Iterator[str]:
    """The sentences of the summary, for a complete or partial run."""
    if not findings.trials:
        yield "No trial has been run yet."
        return
    yield from _missing(findings)
    most = max(Counter((trial.protocol, trial.row) for trial in findings.trials).values())
    if most < FEWEST_TRIALS:
        number = "One trial" if most == 1 else f"{most} trials"
        yield f"{number} per row: nothing is decided, which takes at least {FEWEST_TRIALS}."
    else:
        rows = [row for row in findings.paper_rows if row.ours and row.ours.n >= FEWEST_TRIALS]
        yield from _agreement(rows, of=len(findings.paper_rows))
        yield from _draws(findings.drawn) if findings.drawn else _tests(rows)
        yield from _gaps(gaps(findings.drawn))
        yield from _claims(findings.verdicts)
        yield from _controls([test for test in findings.comparisons if min(test.n) >= FEWEST_TRIALS])
    yield from _speed(findings)


def _missing(findings: Findings) -> Iterator[str]:
    done = Counter((trial.protocol, trial.row) for trial in findings.trials)
    planned = sum(findings.planned.values())
    have = sum(min(done[key], trials) for key, trials in findings.planned.items())
    if have < planned:
        yield f"The run is not complete: this report is based on {have:,} of {planned:,} planned trials."


def _agreement(rows: Sequence[ComparedRow], of: int) -> Iterator[str]:
    compared = [row for row in rows if row.within is not None]
    if not compared:
        return
    within = sum(bool(row.within) for row in compared)
    sizes = [abs(row.difference) for row in compared if row.difference is not None]
    widths = [row.tolerance for row in compared if row.tolerance is not None]
    text = (
        f"Of the paper's {of} rows, {len(compared)} can be compared; in {within}, our mean validation accuracy"
        f" is within two joint standard deviations of the paper's, which are {min(widths):.2f} to {max(widths):.2f};"
        f" the mean distance is {sum(sizes) / len(sizes):.3f}."
    )
    outside = [row.row for row in compared if not row.within]
    if outside:
        names = ", ".join(f"{row.task} {row.model} at p={row.dropout:g}" for row in outside[:4])
        more = f" and {len(outside) - 4} more" if len(outside) > 4 else ""
        text += f" Outside: {names}{more}."
    yield text


def _tests(rows: Sequence[ComparedRow]) -> Iterator[str]:
    """The same by a test and by signs, since the tolerance is wide."""
    tested = [
        (row.row.table, row.difference, row.p) for row in rows if row.difference is not None and row.p is not None
    ]
    if not tested:
        return
    differ = sum(p < SIGNIFICANT for _, _, p in tested)
    counts, below = Counter(table for table, _, _ in tested), Counter(table for table, sign, _ in tested if sign < 0)
    tables = [f"{below[table]} of {count} rows of {table}" for table, count in counts.items()]
    yield (
        f"By Welch's test, uncorrected, {differ} of these {len(tested)} rows differ from the paper's (p <"
        f" {SIGNIFICANT:g}). The test assumes independent trials, which the paper's are not: those of a task share one"
        f" draw of images. Our mean is below the paper's in {listed(tables)}."
    )


def _draws(rows: Sequence[DrawnRow]) -> Iterator[str]:
    """Where the paper's values fall among several draws."""
    inside, differ = sum(row.inside for row in rows), sum(row.test.p < SIGNIFICANT for row in rows)
    yield (
        f"Among our {len(rows[0].means)} draws of images, each with ten trials, the paper's value is between the lowest"
        f" and the highest in {inside} of {len(rows)} rows; in {differ} it is unlikely to come from one more draw (p <"
        f" {SIGNIFICANT:g}, uncorrected)."
    )


def _gaps(gaps_of_tasks: Sequence[Gap]) -> Iterator[str]:
    """The same for how far trees are ahead, where the variation between draws cancels."""
    for gap in gaps_of_tasks:
        low, high, paper = (show(value, DIFFERENCE) for value in (min(gap.ours), max(gap.ours), gap.paper))
        yield (
            f"In {gap.task}, trees are ahead of their MLPs by {paper} in the paper, averaged over rows, and by {low} to"
            f" {high} in our draws ({show_p(gap.test.p)} for one more draw)."
        )


def _claims(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """How many claims hold in each task, and which do not, one sentence per protocol."""
    for protocol in dict.fromkeys(verdict.protocol for verdict in verdicts):
        tested = [v for v in verdicts if v.protocol == protocol and v.outcome != "not run"]
        counts = []
        for task in dict.fromkeys(verdict.task for verdict in tested):
            outcomes = [verdict.outcome for verdict in tested if verdict.task == task]
            counts.append(f"{outcomes.count('holds')} of {len(outcomes)} in {task}")
        if not tested:
            continue
        text = f"Of the paper's claims, tested under protocol {protocol}, {listed(counts)} hold."
        refuted = [f"“{v.statement}” ({v.task})" for v in tested if v.outcome == "does not hold"]
        undecided = sum(verdict.outcome == "undecided" for verdict in tested)
        text += f" Does not hold: {listed(refuted)}." if refuted else ""
        text += f" Undecided: {undecided}." if undecided else ""
        yield text


def _controls(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """How the dendritic models compare with MLPs, and with plain perceptrons, which the paper did not include."""
    for protocol in dict.fromkeys(test.protocol for test in comparisons):
        for kind, has_hidden in (("MLP controls", True), ("plain perceptrons", False)):
            tests = [
                test
                for test in comparisons
                if test.protocol == protocol
                and bool(test.against.size) == has_hidden
                and not math.isnan(test.corrected_p)
            ]
            if tests:
                yield _tally(tests, kind, protocol)


def _tally(tests: Sequence[Comparison], kind: str, protocol: str) -> str:
    states = [test.verdict.state for test in tests]
    ahead, behind = states.count("ahead"), states.count("behind")
    best = max(tests, key=lambda test: test.difference)
    place = "Furthest ahead" if best.difference > 0 else "Least behind"
    return (
        f"Against {kind} under protocol {protocol}, dendritic models are ahead in {ahead} of {len(tests)} comparisons"
        f" and behind in {behind} (corrected p < {SIGNIFICANT:g}; the rest are undecided). {place}: {best.row.task}"
        f" {best.row.model} against {best.against.model}, {show(best.difference, DIFFERENCE)} in accuracy"
        f" ({show_p(best.corrected_p)})."
    )


def _speed(findings: Findings) -> Iterator[str]:
    total = sum(trial.seconds for trial in findings.trials)
    text = f"Training took {show_seconds(total)}, summed over {len(findings.trials):,} trials."
    for name, of_cnn in (("without a CNN", False), ("with a CNN", True)):
        trials = [trial for trial in findings.trials if trial.row.dendritic and (trial.row.task == "cnn") == of_cnn]
        times = speed_up(trials, findings.reference_seconds)
        if times is not None:
            text += f" Dendritic trials {name} were {times:,.0f} times faster than with the masked reference"
            text += ", for the rows where it was measured."
    yield text
