"""What a comparison says, in a few sentences, all of it computed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ....report.layout import Column, listed, show, show_seconds
from ....report.scaling import show_size
from ...engine.records import TrialRecord
from ...engine.statistics import SIGNIFICANT
from .. import Comparison, Gain
from .coverage import Coverage
from .naming import FAMILY_NAMES, show_gain, verdict
from .sections import NOT_A_TREE_GAIN, NOTHING

__all__ = ["facts", "sentences"]

RULE_SEEDS = 5
"""Models of each choice that the rule asks for, at least."""
FACTOR = Column("factor", "factor", "bounded")
KINDS = {
    "tree": ("Tree gain: trees against sparse perceptrons of the same budget are", ""),
    "wiring": ("Wiring gain: sparse perceptrons against dense MLPs of the same budget are", NOT_A_TREE_GAIN),
}


def facts(found: Sequence[Coverage], records: Sequence[TrialRecord]) -> Iterator[tuple[str, str]]:
    """The few figures at the top: a value and what it counts."""
    yield f"{sum(of.judged for of in found)} of {sum(of.cells for of in found)}", "cells judged on the test set"
    begun = {of.task.dataset for of in found if of.state != "not begun"}
    yield f"{len(begun)} of {len({of.task.dataset for of in found})}", "data sets begun"
    yield f"{len(records):,}", "models trained"
    if records:
        yield show_seconds(sum(record.seconds for record in records)), "of training, summed over models"


def sentences(comparison: Comparison, found: Sequence[Coverage] = ()) -> Iterator[str]:
    """The sentences, for a run of any size."""
    yield from _partial(found)
    if not comparison.cells:
        yield NOTHING
        return
    for kind in KINDS:
        yield from _gains([gain for gain in comparison.gains if gain.kind == kind], kind)
    yield from _factors(comparison)
    yield from _doubts(comparison)


def _partial(found: Sequence[Coverage]) -> Iterator[str]:
    """What is missing, said plainly."""
    missing = [of for of in found if of.state == "not begun"]
    begun = [of for of in found if of.state == "partial"]
    if not missing and not begun:
        return
    judged, cells = sum(of.judged for of in found), sum(of.cells for of in found)
    text = f"This is a part of the comparison: {judged} of {cells} cells are judged."
    if begun:
        text += f" Partial: {listed([f'{of.task.name} ({of.judged} of {of.cells})' for of in begun])}."
    if missing:
        text += f" Not begun: {listed([of.task.name for of in missing])}."
    yield text


def _gains(gains: Sequence[Gain], kind: str) -> Iterator[str]:
    gains = [gain for gain in gains if not math.isnan(gain.test.difference)]
    if not gains:
        return
    start, end = KINDS[kind]
    verdicts = [verdict(gain) for gain in gains]
    text = (
        f"{start} ahead in {verdicts.count('ahead')} of {len(gains)} cells and behind in {verdicts.count('behind')}"
        f" (corrected p < {SIGNIFICANT:g}; the rest is undecided)."
    )
    ranges = []
    for unit in dict.fromkeys(gain.unit for gain in gains):
        ordered = sorted((gain for gain in gains if gain.unit == unit), key=lambda gain: gain.in_units[0])
        ranges.append(" to ".join(map(show_gain, dict.fromkeys([ordered[0], ordered[-1]]))))
    yield f"{text} It is {'; '.join(ranges)}. {end}".strip()


def _factors(comparison: Comparison) -> Iterator[str]:
    """At every budget, never the best alone; learning curves are left to the table."""
    for family in ("tree", "sparse"):
        lists = []
        for task in comparison.tasks:
            found = [e for e in comparison.efficiencies if (e.cell.task, e.cell.family) == (task, family)]
            factors = [f"{show((e.factor, e.bounds[0]), FACTOR)} at {show_size(e.cell.budget)}" for e in found]
            if factors and task.examples is None:
                lists.append(f"{', '.join(factors)} on {task.name}")
        if lists:
            name = FAMILY_NAMES[family] + " perceptrons" * (family == "sparse")
            yield f"For the score of {name} a dense MLP needs so many times their parameters: {'; '.join(lists)}."


def _doubts(comparison: Comparison) -> Iterator[str]:
    fewest = min(len(result.scores) for result in comparison.cells)
    if fewest < RULE_SEEDS:
        number = "one seed" if fewest == 1 else f"{fewest} seeds"
        yield f"Some cells have {number}, fewer than the five of the rule: their intervals and tests say little."
    diverged = [r for r in comparison.cells if not all(map(math.isfinite, r.scores))]
    if diverged:
        names = [f"{FAMILY_NAMES[r.cell.family]} of {r.parameters:,} on {r.cell.task.name}" for r in diverged]
        yield f"Training diverged for a seed or more of {listed(names)}: these cells have no score."
