"""The results of the study: scores by table and family, ranks, and how trees compare with each family."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..engine.ranks import Ranking, rank_models
from ..engine.statistics import Spread, bootstrap_mean, paired_mean, spread
from ..engine.trial import Trial
from .families import BOOSTING, FAMILIES, MLP
from .plan import ALL, SCORES
from .tables import CHOOSE, CLASSIFICATION, HELD_OUT, REGRESSION, TABLES, Table, half_of

TREE = "tree"
AHEAD, LEVEL, BEHIND = "ahead", "level", "behind"
MOST_PARAMETERS = 15_000
"""Maximum parameters of trees in the comparison with gradient boosting."""
TITLES = {CHOOSE: "the half for choosing defaults", HELD_OUT: "the held-out half", ALL: "all tables"}


@dataclass(frozen=True)
class Measured:
    """The results of a family on a table, with every fold evaluated."""

    scores: tuple[float, ...]
    """Accuracy or R², by fold."""
    parameters: int
    """Parameters in the largest fold: a fold that lacks a category has one input fewer."""
    fit_seconds: float
    """Mean processor time over folds, including the encoding of the columns."""
    predict_seconds: float
    """Mean over folds of the time to predict all rows of a fold."""

    @property
    def spread(self) -> Spread:
        """Mean and standard deviation of the scores."""
        return spread(self.scores)

    @property
    def mean(self) -> float:
        """Mean score over the folds."""
        return self.spread.mean

    @property
    def sd(self) -> float:
        """Standard deviation of the scores over the folds."""
        return self.spread.sd


@dataclass(frozen=True)
class TableResult:
    """A table and what was measured on it."""

    table: Table
    families: dict[str, Measured]

    @property
    def half(self) -> str:
        """`choose` or `held-out`."""
        return half_of(self.table.name)

    def gain(self, rival: str) -> tuple[float, float] | None:
        """Score of trees minus that of a rival, and its standard error; None if one of them is missing.

        Each of k folds is the test part once, so the ratio of test rows to training rows is 1 : (k - 1).
        """
        if TREE not in self.families or rival not in self.families:
            return None
        first, second = self.families[TREE].scores, self.families[rival].scores
        return paired_mean(first, second, 1 / (len(first) - 1))

    def standing(self, rival: str) -> str | None:
        """Trees against a rival: `level` if the means differ by no more than one standard error of their difference."""
        found = self.gain(rival)
        if found is None:
            return None
        mean, error = found
        return LEVEL if abs(mean) <= error else AHEAD if mean > 0 else BEHIND

    def holds(self, rival: str, most: float) -> bool | None:
        """Whether trees with at most `most` parameters are ahead or level; None if one of them is missing."""
        standing = self.standing(rival)
        return None if standing is None else standing != BEHIND and self.families[TREE].parameters <= most


def summarize_tables(trials: Iterable[Trial], folds: int) -> list[TableResult]:
    """The tables on which a family has all its folds, in the order of `TABLES`."""
    found: dict[tuple[str, str], list[Trial]] = {}
    for trial in sorted(trials, key=lambda trial: int(trial.key["fold"])):
        found.setdefault((str(trial.key["table"]), str(trial.key["family"])), []).append(trial)
    results = []
    for name, table in TABLES.items():
        own = {family: found.get((name, family), []) for family in FAMILIES}
        families = {family: _measured(of, SCORES[table.task]) for family, of in own.items() if len(of) == folds}
        if families:
            results.append(TableResult(table, families))
    return results


def _measured(trials: Sequence[Trial], score: str) -> Measured:
    return Measured(
        tuple(trial.scores[score] for trial in trials),
        max(trial.parameters for trial in trials),
        float(np.mean([trial.seconds for trial in trials])),
        float(np.mean([trial.scores["predict_seconds"] for trial in trials])),
    )


@dataclass(frozen=True)
class Gain:
    """Gain of trees over a rival on the tables of one kind of task."""

    task: str
    rival: str
    mean: float
    low: float
    high: float
    """Ends of the 95% bootstrap interval of the mean over tables."""
    count: int


@dataclass(frozen=True)
class Standing:
    """A family in a half: its rank, and how trees compare with it."""

    family: str
    rank: float
    ahead: int
    level: int
    behind: int
    """Tables on which trees are ahead of it, level with it, behind it."""


@dataclass(frozen=True)
class Bar:
    """A bar that trees should reach."""

    what: str
    found: str
    needed: str
    state: str
    """`holds`, `does not hold`, or `partial` if tables are missing."""


@dataclass(frozen=True)
class Half:
    """The results of a half of the tables, or of all."""

    name: str
    results: tuple[TableResult, ...]

    @classmethod
    def of(cls, name: str, results: Iterable[TableResult]) -> Half:
        """Select the results that belong to a half."""
        return cls(name, tuple(result for result in results if name in (ALL, result.half)))

    @property
    def title(self) -> str:
        """The name of the half in a sentence."""
        return TITLES[self.name]

    @property
    def size(self) -> int:
        """Number of tables in the complete study."""
        return sum(self.name in (ALL, half_of(name)) for name in TABLES)

    @property
    def families(self) -> list[str]:
        """The families measured on any of its tables."""
        return [family for family in FAMILIES if any(family in result.families for result in self.results)]

    @property
    def ranking(self) -> Ranking | None:
        """Ranking of all families, over the tables that have all of them."""
        families = self.families
        whole = [result for result in self.results if len(result.families) == len(families)]
        if len(families) < 2 or not whole:
            return None
        return rank_models({name: [result.families[name].spread.mean for result in whole] for name in families})

    def standings(self) -> list[Standing]:
        """Every family, best rank first."""
        ranking = self.ranking
        ranks = dict(zip(ranking.names, ranking.ranks, strict=True)) if ranking else {}
        order = [*ranks, *(family for family in self.families if family not in ranks)]
        found = []
        for family in order:
            states = [result.standing(family) for result in self.results] if family != TREE else []
            counts = (states.count(state) for state in (AHEAD, LEVEL, BEHIND))
            found.append(Standing(family, ranks.get(family, math.nan), *counts))
        return found

    def gains(self) -> list[Gain]:
        """Mean gains of trees over each other family, by kind of task: accuracy and R² have no common unit."""
        found = []
        for task in (CLASSIFICATION, REGRESSION):
            for rival in self.families:
                own = [result.gain(rival) for result in self.results if result.table.task == task and rival != TREE]
                means = [gain[0] for gain in own if gain is not None]
                if means:
                    found.append(Gain(task, rival, float(np.mean(means)), *bootstrap_mean(means), len(means)))
        return found

    def bars(self) -> list[Bar]:
        """The bars that the study was made for."""
        found = []
        ranking = self.ranking
        if ranking and {TREE, MLP} <= set(ranking.names):
            ranks = dict(zip(ranking.names, ranking.ranks, strict=True))
            shown = f"{ranks[TREE]:.2f} against {ranks[MLP]:.2f}"
            state = self._state(ranking.count, ranks[TREE] < ranks[MLP])
            found.append(Bar("mean rank of trees against mlp", shown, "a lower one", state))
        for rival, most, share in ((MLP, None, 0.9), (BOOSTING, MOST_PARAMETERS, 0.5)):
            own = [result for result in self.results if rival in result.families]
            states = [result.holds(rival, most or result.families[rival].parameters) for result in own]
            held = [state for state in states if state is not None]
            if held:
                what = f"trees ahead of or level with {rival}, with " + (
                    f"at most {most:,} parameters" if most else "no more parameters"
                )
                state = self._state(len(held), sum(held) >= share * len(held))
                found.append(Bar(what, f"{sum(held)} of {len(held)} tables", f"{share:.0%} of them", state))
        return found

    def _state(self, count: int, holds: bool) -> str:
        return "partial" if count < self.size else "holds" if holds else "does not hold"
