"""The practical result of a comparison: the sizes at which families score equally, and which model to use."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...report.layout import listed
from ..engine.statistics import SIGNIFICANT, corrected, welch
from ..engine.task import Task
from .comparison_results import CellResult, Comparison, needed_size

IN_WORDS = {
    "deep": "a deep dendritic network",
    "cnn": "a CNN",
    "tree": "trees",
    "sparse": "sparse neurons",
    "dense": "a dense MLP",
}
"""Families whose sizes are compared at equal scores."""
NAMES = IN_WORDS | {
    "linear": "one linear unit per output",
    "tied": "tied trees",
    "tied-linear": "tied trees with linear dendrites",
    "deep-linear": "a deep network with linear dendrites",
    "separable": "a depthwise-separable CNN",
    "blueprint": "a blueprint-separable CNN",
}


@dataclass(frozen=True)
class Answer:
    """What a comparison says about one data set."""

    task: Task
    score: float | None
    """The best score that every family in `sizes` reaches; None with fewer than two families."""
    sizes: Mapping[str, tuple[float, str]]
    """Parameters at which each family reaches it; with `<` if even its smallest model is better."""
    best: CellResult
    """The result with the best mean score."""
    use: CellResult
    """The smallest model whose mean score is within one standard error of the best one's."""
    certain: bool
    """Whether there are enough seeds to decide."""
    level: Sequence[CellResult] = ()
    """Other families of the same budget that a test does not tell apart from `use`."""

    @property
    def sentences(self) -> Iterator[str]:
        """The answer in words: the model to use, then the sizes at which the families are equally good."""
        metric, use, best = self.task.metric, self.use, self.best
        seeds = f" over {len(use.scores)} seeds" if self.certain else ""
        text = (
            f"On {self.task.title}, use {_name(use)} with {use.parameters:,} parameters: {metric} {_score(use)}{seeds}"
        )
        if not self.certain:
            yield f"{text}, the best of models with one seed each, which are too few to tell them apart."
        else:
            if self.level:
                text += f", level with {listed([_name(other) for other in self.level])} of this budget"
                text += f" (corrected p ≥ {SIGNIFICANT:g})"
            if use is not best:
                other = f"{_name(best)} with {best.parameters:,} parameters and {_score(best)}"
                text += f". The best, {other}, is ahead by at most one standard error"
            yield f"{text}."
        if self.score is not None:
            fewer = {"<": " or fewer"}
            first, *others = [
                f"{_rounded(size)}{fewer.get(bound, '')} as {IN_WORDS[family]}"
                for family, (size, bound) in self.sizes.items()
            ]
            sizes = listed([first.replace(" as ", " parameters as ", 1), *others])
            what = "An RMSE" if metric == "rmse" else "An accuracy"
            yield f"{what} of {self.score:.4g} on {self.task.title} takes {sizes}."

    def shown_size(self, family: str) -> str | None:
        """The parameters of a family, for a table."""
        if family not in self.sizes:
            return None
        parameters, bound = self.sizes[family]
        return f"{bound} {_rounded(parameters)}".strip()

    @property
    def code(self) -> str:
        """The line of code that builds the model to use."""
        return f"model = {self.use.configuration.code}"


def _rounded(parameters: float) -> str:
    """Round to three digits: an interpolated size is not known more precisely."""
    return f"{float(f'{parameters:.3g}'):,.0f}"


def _name(result: CellResult) -> str:
    return NAMES.get(result.cell.family, result.cell.name)


def _score(result: CellResult) -> str:
    mean, sd = result.spread
    return f"{mean:.4f}" if math.isnan(sd) else f"{mean:.4f} ± {sd:.4f}"


def answers(comparison: Comparison) -> list[Answer]:
    """One answer per data set on which a model was evaluated."""
    return [answer for task in comparison.tasks if (answer := _answer(comparison, task))]


def _answer(comparison: Comparison, task: Task) -> Answer | None:
    results = [r for r in comparison.cells if r.cell.task == task and math.isfinite(r.spread.mean)]
    if not results:
        return None
    best = max(results, key=lambda result: task.goodness(result.spread.mean))
    certain = min(len(result.scores) for result in results) > 1
    equal = [r for r in results if r is best or (certain and _within_one_error(best, r))]
    score, sizes = _equal_score(comparison, task)
    use = min(equal, key=lambda r: r.parameters)
    rivals = [r for r in results if r.cell.budget == use.cell.budget and r is not use]
    tests = corrected(welch(use.scores, rival.scores, [*use.luck, *rival.luck]) for rival in rivals)
    level = [rival for rival, test in zip(rivals, tests, strict=True) if certain and not test.p < SIGNIFICANT]
    return Answer(task, score, sizes, best, use, certain, level)


def _within_one_error(best: CellResult, other: CellResult) -> bool:
    """Whether two mean scores differ by no more than one standard error of their difference.

    A significance test would take "not significantly different" for "equally good", as nearly all pairs with two seeds.
    """
    error = math.sqrt(sum(result.spread.sd**2 / len(result.scores) for result in (best, other)))
    return abs(best.spread.mean - other.spread.mean) <= error


def _equal_score(comparison: Comparison, task: Task) -> tuple[float | None, dict[str, tuple[float, str]]]:
    """The best score that all families in `IN_WORDS` that were evaluated reach, and their sizes there; None if there
    is only one size of each."""
    curves = {}
    for family in IN_WORDS:
        results = [result for result in comparison.of(task, family) if math.isfinite(result.spread.mean)]
        if results:
            sizes = np.log([result.parameters for result in results])
            curves[family] = sizes, np.array([task.goodness(result.spread.mean) for result in results])
    if len(curves) < 2 or all(len(sizes) == 1 for sizes, _ in curves.values()):
        return None, {}
    target = min(float(goodness.max()) for _, goodness in curves.values())
    needed = {family: needed_size(target, *curve) for family, curve in curves.items()}
    return abs(target), {family: (math.exp(size), bound) for family, (size, bound) in needed.items()}
