"""What a comparison consists of: cells, the configurations that are drawn for each, and the jobs that train them."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from dendritree.errors import OptionError, check_int, check_one_of
from dendritree.models.sizing import parse_count

from ...data.naming import is_table
from ..engine.configuration import Configuration
from ..engine.task import BATCH_SIZES, CLIP, FEWEST_EPOCHS, MOST_EPOCHS, Task
from ..engine.trial import FINAL, MORE, SEARCH, TEST, Trial, Value, seed_of
from .families import FAMILIES, FOR_IMAGES, LEARNING_RATES, ON_IMAGES, OURS, small_budget

BUDGETS = {
    "mnist": "4k 9k 18k 36k",
    "fashion-mnist": "4k 9k 18k 36k",
    "mnist-pairs": "9k 18k 36k",
    "fashion-pairs": "9k 18k 36k",
    "digits": "1k 2k 4k",
    "adult": "1k 2k 4k 8k",
    "california-housing": "1k 2k 4k 8k",
}
"""The data sets of the comparison, in display order, and the default parameter budgets of each."""
STEPS = {MORE: "further search", FINAL: "finalists"}
"""Names of phases in the progress of a run, if they differ."""
LARGER_DENSE = (72_000, 144_000)
"""Additional budgets of dense MLPs on image tasks: how large must an MLP be to match trees?"""


def default_budgets(task: Task) -> list[int]:
    """Budgets of a data set: those in `BUDGETS`, or a small one and two and four times as many parameters.

    >>> default_budgets(Task.parse("digits")), default_budgets(Task.parse("cifar10"))
    ([1000, 2000, 4000], [16000, 32000, 64000])
    """
    if task.dataset in BUDGETS and not task.digest:
        return [parse_count("budget", text) for text in BUDGETS[task.dataset].split()]
    return [factor * small_budget(task) for factor in (1, 2, 4)]


@dataclass(frozen=True)
class ComparisonCell:
    """A family at a parameter budget on a task: one search, several evaluated models."""

    task: Task
    budget: int
    """Number of parameters; 0 for a family that has only one size."""
    family: str

    @classmethod
    def of(cls, trial: Trial, tasks: Mapping[str, Task] = MappingProxyType({})) -> ComparisonCell:
        """The cell that a trial belongs to.

        Args:
            trial: the trial.
            tasks: the tasks of the user's own data, by name; others are built-in.
        """
        name = str(trial.key["task"])
        task = tasks[name] if name in tasks else Task.parse(name)
        return cls(task, int(trial.key["budget"]), check_one_of("family", trial.key["family"], FAMILIES))

    @property
    def key(self) -> dict[str, Value]:
        """The part of a trial's key that identifies the cell."""
        return {"task": self.task.name, "budget": self.budget, "family": self.family}

    @property
    def name(self) -> str:
        """The family, short enough for a column."""
        return FAMILIES[self.family].name


@dataclass(frozen=True)
class FairJob:
    """A model of a cell to train. It depends only on its own fields."""

    study: ClassVar[str] = "fair"
    size: ClassVar[int] = 1
    """Number of its trials."""
    phase: str
    cell: ComparisonCell
    index: int
    configuration: Configuration
    steps: int

    @property
    def key(self) -> dict[str, Value]:
        """The key of its trial."""
        return {"phase": self.phase, **self.cell.key, "trial": self.index}

    @property
    def group(self) -> str:
        """Name of the group of jobs whose progress is shown together."""
        budget = f"{self.cell.budget:,} parameters" if self.cell.budget else "fixed size"
        return f"{self.cell.task.name}, {budget}, {STEPS.get(self.phase, self.phase)}"

    @property
    def seed(self) -> int:
        """The seed for weights, wiring and batches."""
        cell = self.cell
        return seed_of("compare", self.phase, cell.task.name, cell.family, cell.budget, self.index)


@dataclass(frozen=True)
class ComparisonPlan:
    """Data sets x budgets x families, and the rule that applies to all of them."""

    cells: tuple[ComparisonCell, ...]
    trials: int = 16
    """Number of random configurations tried per cell."""
    seeds: int = 5
    """Number of models of the best configuration that are evaluated on the test set."""
    steps: int = 1000
    """Approximate number of training steps of each configuration in the search."""
    test_steps: int = 4000
    """Approximate number of training steps of the models that are evaluated."""

    def __post_init__(self) -> None:
        for name in ("trials", "seeds", "steps", "test_steps"):
            check_int(name, getattr(self, name))

    @classmethod
    def make(
        cls,
        tasks: Iterable[Any] = (),
        *,
        budgets: Iterable[str | int] = (),
        families: Iterable[str] = (),
        target: Any = None,
        image: Sequence[int] | None = None,
        **options: int,
    ) -> ComparisonPlan:
        """Check and resolve the user's options; the default is everything.

        Args:
            tasks: data in any form that `load_dataset` takes; `mnist:128` for the first 128 training examples.
            budgets: parameters, such as 9000 or `9k`; by default those of each data set.
            families: names in `FAMILIES`; by default trees and their controls, and deep networks and CNNs on images.
            target: the column of tables to predict.
            image: (channels, height, width) to resize images of folders to, or of images stored as rows of numbers.
            options: `trials`, `seeds`, `steps` and `test_steps` of the plan.

        >>> [(cell.family, cell.budget) for cell in ComparisonPlan.make(["digits"], budgets=["2k"]).cells]
        [('linear', 0), ('dense', 2000), ('deep', 2000), ('cnn', 2000)]
        """
        given = [check_one_of("family", family, FAMILIES) for family in families]
        asked = [parse_count("budget", budget) for budget in budgets]
        cells = []
        tasks = list(tasks)
        if target is not None and not any(map(is_table, tasks)):
            raise OptionError("target must name a column of a table: there is no table among the data")
        named = [Task.named(data, target=target if is_table(data) else None, image=image) for data in tasks]
        named = named or [Task.parse(name) for name in BUDGETS]
        if twice := [name for name, count in Counter(task.name for task in named).items() if count > 1]:
            raise OptionError(f"a comparison must name each data set once: {twice[0]!r} occurs twice")
        for task in named:
            chosen = given or list(OURS if task.image_shape is None else ON_IMAGES)
            sized = [family for family in ("dense", "sparse", "tree", *list(FAMILIES)[len(OURS) :]) if family in chosen]
            if task.image_shape is None and (sharing := [family for family in FOR_IMAGES if family in chosen]):
                raise OptionError(
                    f"families that share weights between places need images: got {sharing[0]!r}, {task.name} has none"
                )
            sizes = asked or default_budgets(task)
            cells += [ComparisonCell(task, 0, "linear")] * ("linear" in chosen)
            cells += [ComparisonCell(task, size, family) for size in sizes for family in sized]
            whole = task.name in BUDGETS and task.image_shape and task.out_features == 10 and not asked
            if whole and not task.digest and "dense" in chosen and max(sizes) > 9000:
                cells += [ComparisonCell(task, size, "dense") for size in LARGER_DENSE]
        if len(set(cells)) < len(cells):
            raise OptionError("a comparison must name each budget once")
        return cls(tuple(cells), **options)

    def as_config(self) -> dict[str, Any]:
        """Everything that determines the result of a configuration, as JSON values, except for cells, which may be
        added later, and configurations, which trials store."""
        return {
            "comparison": 1,
            "trials": self.trials,
            "steps": self.steps,
            "test_steps": self.test_steps,
            "batch_size": list(BATCH_SIZES),
            "learning_rates": list(LEARNING_RATES),
            "epochs": [FEWEST_EPOCHS, MOST_EPOCHS],
            "clip": CLIP,
        }

    @property
    def tasks(self) -> list[Task]:
        """The tasks, in order."""
        return list(dict.fromkeys(cell.task for cell in self.cells))

    def kept_in(self, folder: Path) -> ComparisonPlan:
        """The same plan with copies of the user's own data in a folder, for the processes that train."""
        kept = {task: task.kept_in(folder) for task in self.tasks}
        return replace(self, cells=tuple(replace(cell, task=kept[cell.task]) for cell in self.cells))

    def rounds(self) -> list[list[ComparisonCell]]:
        """Groups of cells that are run together, so that results are comparable whenever the run stops."""
        groups: dict[tuple[Task, int], list[ComparisonCell]] = {}
        for cell in self.cells:
            groups.setdefault((cell.task, cell.budget), []).append(cell)
        return list(groups.values())

    def searches(self, cell: ComparisonCell) -> Iterator[FairJob]:
        """The trials that select a cell's configuration."""
        for index in range(self.trials):
            yield FairJob(SEARCH, cell, index, draw_configuration(cell, index), self.steps)

    def tests(self, cell: ComparisonCell, trials: Sequence[Trial]) -> Iterator[FairJob]:
        """The trials that evaluate a cell's best configuration; none before its search is complete."""
        best = self.best(cell, trials)
        if best is not None:
            for index in range(self.seeds):
                yield FairJob(TEST, cell, index, best, self.test_steps)

    def best(self, cell: ComparisonCell, trials: Sequence[Trial]) -> Configuration | None:
        """The best configuration on validation; None before all have been tried."""
        key = {"phase": SEARCH, **cell.key}
        searched = [trial for trial in trials if trial.key.items() >= key.items()]
        if len(searched) < self.trials:
            return None

        def goodness(trial: Trial) -> float:
            return cell.task.goodness(validation_score(cell.task, trial))

        return configuration_of(max(sorted(searched, key=lambda trial: trial.key["trial"]), key=goodness))


@functools.lru_cache(maxsize=1024)  # called repeatedly to find missing trials; filling a budget builds models
def draw_configuration(cell: ComparisonCell, index: int) -> Configuration:
    """Configuration number `index` of a cell's search."""
    random = np.random.default_rng(seed_of("choice", cell.task.name, cell.family, cell.budget, index))
    return FAMILIES[cell.family].configure(random, cell.task, cell.budget)


def validation_score(task: Task, trial: Trial) -> float:
    """The score by which configurations are compared."""
    return task.score(trial.at_best("val_loss"), trial.at_best("val_acc"))


def configuration_of(trial: Trial) -> Configuration:
    """The configuration that a trial was made with."""
    return Configuration(**trial.config)
