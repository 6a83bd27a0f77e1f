"""The results of a comparison: curves, the parameter-efficiency factor, the tree gain and the wiring gain.

All results come from the test set and from fresh seeds; configurations were selected on validation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from dendritree.budget import count
from dendritree.errors import FormatError
from dendritree.models import create_model

from ..engine.configuration import Configuration
from ..engine.statistics import (
    BOOTSTRAP_SEED,
    CONFIDENCE,
    Difference,
    Luck,
    Spread,
    bootstrap_mean,
    corrected,
    expected_best,
    resampled_means,
    spread,
    welch,
)
from ..engine.task import Task
from ..engine.trial import SEARCH, TEST, Trial
from .comparison_plan import BUDGETS, ComparisonCell, configuration_of, validation_score
from .families import FAMILIES

RESAMPLES = 2000


@dataclass(frozen=True)
class CellResult:
    """The models of a cell that were evaluated on the test set."""

    cell: ComparisonCell
    configuration: Configuration
    parameters: int
    multiply_adds: int | None
    """Multiply-adds for one example."""
    scores: tuple[float, ...]
    """Scores on the test set, one per seed: accuracy, or RMSE."""
    searched: tuple[float, ...]
    """The validation scores of the configurations that were tried."""
    seconds: float
    """Training time per model; several were trained at once on the machine, so compare with care."""

    @property
    def expected_best(self) -> Spread:
        """The best validation score that such a search finds on average, and its standard deviation."""
        sign = self.cell.task.goodness(1.0)
        best = expected_best([sign * score for score in self.searched])
        return Spread(sign * best.mean, best.sd)

    @property
    def luck(self) -> list[Luck]:
        """The noise of the search, if there was one."""
        sd = self.expected_best.sd
        return [Luck(sd, len(self.searched) - 1)] if sd > 0 else []

    @property
    def spread(self) -> Spread:
        """Mean and standard deviation of the scores."""
        return spread(self.scores)

    @property
    def interval(self) -> tuple[float, float]:
        """Bootstrap interval of the mean; NaN if all scores are equal, from which there is none."""
        return bootstrap_mean(self.scores) if self.spread.sd > 0 else (math.nan, math.nan)


@dataclass(frozen=True)
class Efficiency:
    """How many times more parameters the dense MLP needs for the same score."""

    cell: ComparisonCell
    """The family that is compared with dense MLPs."""
    factor: float
    low: float
    high: float
    bounds: tuple[str, str, str]
    """For factor, low and high: `>` if no dense MLP that was tried is as good and `<` if even the smallest is better,
    which makes the number a bound; otherwise empty."""


@dataclass(frozen=True)
class Gain:
    """How far one family is ahead of another at the same budget; positive is better, whatever the metric."""

    task: Task
    budget: int
    kind: str
    """A name in `GAINS`."""
    test: Difference
    """The difference, with its p value corrected by Holm's method over all gains of this kind."""
    raw_p: float
    control: float
    """Mean score of the other family."""

    @property
    def unit(self) -> str:
        """The unit of `in_units`: `points` of accuracy, or `%` of the control's RMSE."""
        return "points" if self.task.metric == "accuracy" else "%"

    @property
    def in_units(self) -> Difference:
        """The difference and its interval in `unit`.

        >>> gain = Gain(Task.parse("california-housing"), 4000, "tree", Difference(0.02, -0.01, 0.05, 0.17), 0.17, 0.5)
        >>> round(gain.in_units.mean, 3), round(gain.in_units.low, 3)
        (4.0, -2.0)
        """
        return self.test.scaled(100.0 if self.task.metric == "accuracy" else 100.0 / (self.control or math.nan))


@dataclass(frozen=True)
class Comparison:
    """All results of a run."""

    cells: tuple[CellResult, ...]
    efficiencies: tuple[Efficiency, ...]
    gains: tuple[Gain, ...]

    @property
    def tasks(self) -> list[Task]:
        """The tasks, in order."""
        return list(dict.fromkeys(result.cell.task for result in self.cells))

    def of(self, task: Task, family: str) -> list[CellResult]:
        """A family's results on a task, small budgets first."""
        results = [r for r in self.cells if (r.cell.task, r.cell.family) == (task, family)]
        return sorted(results, key=lambda result: result.parameters)


def reading_order(cell: ComparisonCell) -> tuple[int, str, int, int, int]:
    """Sort key for display: data sets in the order of `BUDGETS`, each first with all its examples.

    >>> names = ["mnist", "digits", "mnist:1000", "mnist:128"]
    >>> cells = [ComparisonCell(Task.parse(name), 0, "linear") for name in names]
    >>> [cell.task.name for cell in sorted(cells, key=reading_order)]
    ['mnist', 'mnist:128', 'mnist:1000', 'digits']
    """
    task, data_sets = cell.task, [*BUDGETS, cell.task.dataset]
    place = data_sets.index(task.dataset)
    return place, task.dataset, task.examples or 0, cell.budget, list(FAMILIES).index(cell.family)


def summarize(trials: Sequence[Trial], tasks: Mapping[str, Task] = MappingProxyType({})) -> Comparison:
    """The results of a store's trials, for all cells that were evaluated.

    Args:
        trials: the trials.
        tasks: the tasks of the user's own data, by name.
    """
    tests: dict[ComparisonCell, list[Trial]] = {}
    searched: dict[ComparisonCell, list[float]] = {}
    for trial in trials:
        cell = ComparisonCell.of(trial, tasks)
        if trial.key["phase"] == TEST:
            tests.setdefault(cell, []).append(trial)
        elif trial.key["phase"] == SEARCH:  # `tune` may have tried more of a family
            searched.setdefault(cell, []).append(validation_score(cell.task, trial))
    results = tuple(_result(cell, tests[cell], searched.get(cell, [])) for cell in sorted(tests, key=reading_order))
    return Comparison(results, tuple(_efficiencies(results)), tuple(_gains(results)))


def _result(cell: ComparisonCell, trials: Sequence[Trial], searched: Sequence[float]) -> CellResult:
    trials = sorted(trials, key=lambda trial: trial.key["trial"])
    configuration = configuration_of(trials[0])
    return CellResult(
        cell,
        configuration,
        trials[0].parameters,
        _multiply_adds(configuration),
        tuple(cell.task.score(trial.scores["test_loss"], trial.scores["test_acc"]) for trial in trials),
        tuple(searched),
        float(np.mean([trial.seconds for trial in trials])),
    )


def _multiply_adds(configuration: Configuration) -> int | None:
    try:
        with torch.random.fork_rng(devices=[]):  # reading results must not change later random numbers
            return count(create_model(configuration.network, **configuration.arguments)).multiply_adds
    except Exception as error:  # the arguments come from a file and may be anything
        raise FormatError(f"could not build the model of a trial: {configuration!r:.200} ({error!s:.200})") from error


# ------------------------------------------------------------------------------------------------------- efficiency


def _efficiencies(results: Sequence[CellResult]) -> list[Efficiency]:
    efficiencies = []
    for result in results:
        dense = [r for r in results if r.cell.task == result.cell.task and r.cell.family == "dense"]
        dense = [r for r in dense if math.isfinite(r.spread.mean)]  # a diverged MLP says nothing about the size needed
        if result.cell.family not in ("dense", "linear") and len(dense) > 1 and math.isfinite(result.spread.mean):
            efficiencies.append(efficiency(result, dense))
    return efficiencies


def efficiency(result: CellResult, dense: Sequence[CellResult]) -> Efficiency:
    """Interpolate the size at which a dense MLP has the same score, with a confidence interval.

    Between two sizes, the score is interpolated linearly in the logarithm of the parameters; a larger MLP never counts
    as worse than a smaller one. The interval resamples the seeds of every cell; with single seeds it is NaN.
    """
    sign = 1.0 if result.cell.task.metric == "accuracy" else -1.0
    dense = sorted(dense, key=lambda r: r.parameters)
    sizes = np.log([r.parameters for r in dense])
    curve = np.array([sign * r.spread.mean for r in dense])
    points = [needed_size(sign * result.spread.mean, sizes, curve)]
    if min(len(r.scores) for r in (result, *dense)) > 1:
        random = np.random.default_rng(BOOTSTRAP_SEED)
        ours = sign * resampled_means(result.scores, RESAMPLES, random)
        means = [sign * resampled_means(r.scores, RESAMPLES, random) for r in dense]
        curves = np.stack(means, axis=1)  # (resamples, sizes)
        needed = [needed_size(target, sizes, resampled) for target, resampled in zip(ours, curves, strict=True)]
        needed.sort(key=lambda point: (point[0], ("<", "", ">").index(point[1])))
        tail = round(RESAMPLES * (1 - CONFIDENCE) / 2)
        points += [needed[tail], needed[-1 - tail]]
    else:
        points += [(math.nan, "")] * 2
    factors = [math.exp(size - math.log(result.parameters)) for size, _ in points]
    bounds = [bound for _, bound in points]
    return Efficiency(result.cell, factors[0], factors[1], factors[2], (bounds[0], bounds[1], bounds[2]))


def needed_size(target: float, sizes: NDArray[np.float64], curve: NDArray[np.float64]) -> tuple[float, str]:
    """Logarithm of the size at which a curve, made monotonic, reaches the target.

    Returned with `>` and the largest size if it never does, with `<` and the smallest if it starts above.
    """
    rising = np.maximum.accumulate(curve)
    if target > rising[-1]:
        return float(sizes[-1]), ">"
    if target < rising[0]:
        return float(sizes[0]), "<"
    after = int(np.searchsorted(rising, target, side="left"))
    if after == 0:
        return float(sizes[0]), ""
    share = (target - rising[after - 1]) / (rising[after] - rising[after - 1])
    return float(sizes[after - 1] + share * (sizes[after] - sizes[after - 1])), ""


# ------------------------------------------------------------------------------------------------------------ gains


class GainKind(NamedTuple):
    """A comparison of two families at the same budget."""

    ahead: str
    """The family expected to be ahead."""
    behind: str
    name: str


GAINS = {
    "tree": GainKind("tree", "sparse", "tree gain, trees over sparse perceptrons"),
    "wiring": GainKind("sparse", "dense", "wiring gain, sparse perceptrons over dense MLPs"),
    "both": GainKind("tree", "dense", "both, trees over dense MLPs"),
    "tied-tree": GainKind("tied", "tied-linear", "tree gain of tied dendrites, nonlinear over linear ones"),
    "tying": GainKind("tied", "tree", "tying gain, tied over untied trees"),
    "tied-sparse": GainKind("tied", "sparse", "tied trees over sparse neurons"),
    "deep-cnn": GainKind("deep", "cnn", "deep dendritic networks over CNNs"),
    "deep-tree": GainKind("deep", "deep-linear", "tree gain of deep networks, nonlinear dendrites over linear ones"),
    "deep-separable": GainKind("deep", "separable", "deep dendritic networks over depthwise-separable CNNs"),
    "deep-blueprint": GainKind("deep", "blueprint", "deep dendritic networks over blueprint-separable CNNs"),
}
"""Kinds of gains, in display order."""


def _gains(results: Sequence[CellResult]) -> list[Gain]:
    by_cell = {(r.cell.task, r.cell.budget, r.cell.family): r for r in results}
    gains: list[Gain] = []
    for kind, pair in GAINS.items():
        own = []
        for (task, budget, family), result in by_cell.items():
            other = by_cell.get((task, budget, pair.behind))
            if family == pair.ahead and other is not None:
                sides = (result.scores, other.scores)
                luck = [*result.luck, *other.luck]
                test = welch(*(sides if task.metric == "accuracy" else sides[::-1]), luck)
                own.append(Gain(task, budget, kind, test, test.p, other.spread.mean))
        tests = corrected(gain.test for gain in own)
        gains += [replace(gain, test=test) for gain, test in zip(own, tests, strict=True)]
    return gains
