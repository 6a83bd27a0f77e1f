"""What a comparison consists of, and which of its trials a store still lacks."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import OptionError, check_int, check_one_of
from ...models.sizing import parse_count
from ..engine.records import TrialRecord
from ..engine.seeds import seed_of
from .families import FAMILIES, LEARNING_RATES, Choice
from .rivals import ALL_FAMILIES, RIVALS
from .tasks import BATCH_SIZE, CLIP, FEWEST_EPOCHS, MOST_EPOCHS, TASKS, Task
from .trials import SEARCH, TEST, CompareJob, table_of

__all__ = ["Cell", "ComparisonPlan"]

LARGER_DENSE = (72_000, 144_000)
"""Budgets of dense MLPs beyond those of an image task: how large must one be to equal a tree?"""


@dataclass(frozen=True)
class Cell:
    """A family at a parameter budget on a task: one search, one choice, several judged models."""

    task: Task
    budget: int
    """0 for a family that has one size only."""
    family: str

    @property
    def table(self) -> str:
        """The table of its trials in the store."""
        return table_of(self.task, self.family)


@dataclass(frozen=True)
class ComparisonPlan:
    """Data sets x budgets x families, and the one rule for all of them."""

    cells: tuple[Cell, ...]
    trials: int = 16
    """Random choices that are tried in each cell."""
    seeds: int = 5
    """Models of the best choice that are judged on the test set."""
    steps: int = 1000
    """About how many steps a choice is trained to see how good it is."""
    test_steps: int = 4000
    """About how many steps the models that are judged are trained."""

    def __post_init__(self) -> None:
        for name in ("trials", "seeds", "steps", "test_steps"):
            check_int(name, getattr(self, name))

    @classmethod
    def make(
        cls,
        tasks: Iterable[str] = (),
        *,
        budgets: Iterable[str | int] = (),
        families: Iterable[str] = (),
        trials: int = 16,
        seeds: int = 5,
        steps: int = 1000,
        test_steps: int = 4000,
    ) -> ComparisonPlan:
        """Check and resolve what a user asks for; nothing said means all.

        Args:
            tasks: data sets, `mnist:128` for the first 128 training examples.
            budgets: parameters, as 9000 or `9k`; each data set's own by default.
            families: names of `ALL_FAMILIES`; trees and their controls by default.
            trials: random choices tried in each cell.
            seeds: models judged on the test set.
            steps: about how many steps a choice is trained.
            test_steps: about how many steps the judged models are trained.

        >>> [(cell.family, cell.budget) for cell in ComparisonPlan.make(["digits"], budgets=["2k"]).cells]
        [('linear', 0), ('dense', 2000), ('sparse', 2000), ('tree', 2000)]
        """
        chosen = [check_one_of("family", family, ALL_FAMILIES) for family in families] or list(FAMILIES)
        sized = [family for family in ("dense", "sparse", "tree", *RIVALS) if family in chosen]
        asked = [parse_count("budget", budget) for budget in budgets]
        cells = []
        for task in [Task.parse(text) for text in tasks] or [Task(name) for name in TASKS]:
            sizes = asked or [parse_count("budget", text) for text in TASKS[task.dataset].split()]
            cells += [Cell(task, 0, "linear")] * ("linear" in chosen)
            cells += [Cell(task, size, family) for size in sizes for family in sized]
            if (
                task.image_shape
                and task.out_features == 10
                and task.examples is None
                and not asked
                and "dense" in chosen
            ):
                cells += [Cell(task, size, "dense") for size in LARGER_DENSE if max(sizes) > 9000]
        if len(set(cells)) < len(cells):
            raise OptionError("a comparison must name each data set and budget once")
        return cls(tuple(cells), trials, seeds, steps, test_steps)

    def as_config(self) -> dict[str, Any]:
        """All that decides the result of a choice, as JSON values. Cells may be added later; a trial has its choice."""
        return {
            "comparison": 1,
            "trials": self.trials,
            "steps": self.steps,
            "test_steps": self.test_steps,
            "batch_size": BATCH_SIZE,
            "learning_rates": list(LEARNING_RATES),
            "epochs": [FEWEST_EPOCHS, MOST_EPOCHS],
            "clip": CLIP,
        }

    def rounds(self) -> list[list[Cell]]:
        """Cells that are run together, so that what is done is comparable whenever it stops."""
        found: dict[tuple[Task, int], list[Cell]] = {}
        for cell in self.cells:
            found.setdefault((cell.task, cell.budget), []).append(cell)
        return list(found.values())

    def searches(self, cell: Cell, in_features: int) -> Iterator[CompareJob]:
        """The trials by which a cell's model is chosen."""
        for index in range(self.trials):
            choice = draw_choice(cell, index, in_features)
            yield CompareJob(SEARCH, cell.task, cell.family, cell.budget, index, choice, self.steps)

    def tests(self, cell: Cell, records: Sequence[TrialRecord]) -> Iterator[CompareJob]:
        """The trials that judge a cell's choice; none before its search is whole."""
        choice = self.chosen(cell, records)
        if choice is not None:
            for index in range(self.seeds):
                yield CompareJob(TEST, cell.task, cell.family, cell.budget, index, choice, self.test_steps)

    def chosen(self, cell: Cell, records: Sequence[TrialRecord]) -> Choice | None:
        """The best choice on validation; None before all were tried."""
        searched = [r for r in records if (r.protocol, r.row.table, r.row.size) == (SEARCH, cell.table, cell.budget)]
        if len(searched) < self.trials:
            return None
        sign = -1.0 if cell.task.metric == "accuracy" else 1.0

        def badness(record: TrialRecord) -> float:
            score = sign * cell.task.score(record.at_best("val_loss"), record.at_best("val_acc"))
            return math.inf if math.isnan(score) else score

        best = min(sorted(searched, key=lambda record: record.index), key=badness)
        return Choice.of(best)


@functools.lru_cache(maxsize=1024)  # asked for again to see what a store lacks; filling a budget builds models
def draw_choice(cell: Cell, index: int, in_features: int) -> Choice:
    """The choice number `index` of a cell's search."""
    random = np.random.default_rng(seed_of("choice", cell.task.name, cell.family, cell.budget, index))
    return ALL_FAMILIES[cell.family].choose(random, cell.task, in_features, cell.budget)


@functools.lru_cache(maxsize=16)
def in_features_of(task: Task, data_dir: str | None) -> int:
    """Inputs of a task's models."""
    if task.image_shape is not None:
        return math.prod(task.image_shape)
    return int(task.load(data_dir).train.x.shape[1])
