"""The paper's claims, and what the trials say about each."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

from ..engine.statistics import show_p
from .analysis import Comparison, Measure, best_dropout, compare_samples, correct_family, summarize
from .paper_trials import PaperTrial

Control = tuple[str, int]
"""Network and size of a control."""
Matches = Mapping[tuple[str, int], Sequence[Control]]
"""The controls of each (task, branching)."""
Dropout = Literal["none", "best"]
"""No dropout, or each model's own best dropout."""
DROPOUTS: tuple[Dropout, ...] = ("none", "best")
Outcome = Literal["holds", "does not hold", "undecided", "not run"]

CLAIMS = {
    "beats-control": "Trees with b > 2 are more accurate than their control MLPs",
    "small-branching": "Trees with b = 2 are less accurate than their control MLPs",
    "dropout": "Dropout makes trees more accurate",
    "branching": "Trees with larger b are more accurate",
    "overfitting": "Trees with b > 2 overfit less than their control MLPs",
}
"""Name of each claim, and what it says."""


@dataclass(frozen=True)
class Verdict:
    """What the trials of one task and protocol say about one claim."""

    claim: str
    """A name from `CLAIMS`."""
    statement: str
    task: str
    protocol: str
    outcome: Outcome
    evidence: str
    """One sentence with the figures."""
    comparisons: tuple[Comparison, ...] = ()
    """The tests that decided it."""


class _Question(NamedTuple):
    """A comparison that a claim needs: which of two models should come out ahead, each with its dropout."""

    favorite: tuple[Control, Dropout]
    other: tuple[Control, Dropout]
    measure: Measure | None = None


def claims(trials: Iterable[PaperTrial], matches: Matches) -> list[Verdict]:
    """A verdict on each claim for each task of `matches` under each protocol that was run.

    The same rule applies to all claims. A claim is a set of comparisons, for each of which it states the winner:

    - `beats-control`: every tree with b > 2 against each of its control MLPs;
    - `small-branching`: the control MLPs against the tree with b = 2;
    - `dropout`: every tree at its best dropout against itself without dropout;
    - `branching`: every tree against the one with the next smaller b;
    - `overfitting`: as `beats-control`, but for the gap between training and validation accuracy at the best epoch,
      which should be smaller for trees.

    All but `dropout` are made twice, as the paper says "both with and without dropout": at p = 0, and with both models
    at their own best dropout (lowest mean validation loss). Each is a two-sided Welch test; p values are corrected by
    Holm's method over the comparisons of one claim, task and protocol. The claim **holds** if every comparison is won
    with a corrected p < 0.05, **does not hold** if at least one is lost with p < 0.05, and is **undecided**
    otherwise, also if a comparison is missing. It was **not run** if all are missing. Without a test set, best dropouts
    are selected and tested on the same data, as in the paper: this favors dropout.

    Plain perceptrons among the controls do not count, since the paper has none; the evidence of `beats-control`
    reports how trees compare with them, corrected as a separate family.

    Args:
        trials: the trials.
        matches: the controls (network, size) of each (task, branching).
    """
    trials = list(trials)
    verdicts = []
    for protocol in sorted({trial.protocol for trial in trials}):
        for task in dict.fromkeys(task for task, _ in matches):
            bench = _Bench([trial for trial in trials if trial.protocol == protocol and trial.row.task == task])
            controls = {branching: matches[key] for key in matches for branching in key[1:] if key[0] == task}
            for claim, statement in CLAIMS.items():
                outcome, evidence, tests = bench.outcome(_questions(claim, bench.network, controls))
                if claim == "beats-control":
                    beside = bench.tests(_questions("perceptrons", bench.network, controls))
                    evidence += f"; beside the claim: {'; '.join(map(_figures, beside))}" if beside else ""
                verdicts.append(Verdict(claim, statement, task, protocol, outcome, f"{evidence}.", tests))
    return verdicts


def _questions(claim: str, network: str, controls: Mapping[int, Sequence[Control]]) -> list[_Question]:
    """The comparisons of a claim; `perceptrons` is not a claim of the paper, but is reported with one."""
    trees = [(network, branching) for branching in sorted(controls)]
    if claim == "dropout":
        return [_Question((tree, "best"), (tree, "none")) for tree in trees]
    if claim == "branching":
        steps = [(larger, smaller, level) for level in DROPOUTS for smaller, larger in pairwise(trees)]
        return [_Question((larger, level), (smaller, level)) for larger, smaller, level in steps]
    pairs = [
        (tree, control)
        for tree in trees
        for control in controls[tree[1]]
        if (tree[1] == 2) == (claim == "small-branching") and (control[1] == 0) == (claim == "perceptrons")
    ]
    if claim in ("small-branching", "overfitting"):  # the control should have more: accuracy, or a gap
        pairs = [(control, tree) for tree, control in pairs]
    measure: Measure | None = "gap" if claim == "overfitting" else None
    return [_Question((first, level), (second, level), measure) for first, second in pairs for level in DROPOUTS]


class _Bench:
    """The trials of one task and protocol, by model and dropout."""

    def __init__(self, trials: Sequence[PaperTrial]) -> None:
        self._trials: dict[Control, dict[float, list[PaperTrial]]] = defaultdict(dict)
        table_of: dict[tuple[Control, float], str] = {}
        for trial in sorted(trials, key=lambda trial: (trial.row, trial.index)):
            row, model = trial.row, (trial.row.network, trial.row.size)
            # A row that two tables share was trained twice from the same seeds: count it once.
            if table_of.setdefault((model, row.dropout), row.table) == row.table:
                self._trials[model].setdefault(row.dropout, []).append(trial)
        self._best = {
            (model.network, model.size): summary.row.dropout
            for model, summary in best_dropout(summarize(trials)).items()
        }
        self.network = min((trial.row.network for trial in trials if trial.row.dendritic), default="mln")

    def tests(self, questions: Iterable[_Question]) -> list[Comparison]:
        """The comparisons whose models were both run, corrected for each other."""
        asked = [(self._trials_at(*each.favorite), self._trials_at(*each.other), each.measure) for each in questions]
        return correct_family([compare_samples(*each) for each in asked if each[0] and each[1]])

    def _trials_at(self, model: Control, dropout: Dropout) -> list[PaperTrial]:
        return self._trials.get(model, {}).get(self._best.get(model, math.nan) if dropout == "best" else 0.0, [])

    def outcome(self, questions: Sequence[_Question]) -> tuple[Outcome, str, tuple[Comparison, ...]]:
        """The outcome, its evidence without the final period, and the corrected tests."""
        tests = self.tests(questions)
        if not tests:
            return "not run", f"None of the {len(questions)} comparisons was run", ()
        missing = len(questions) - len(tests)
        states = [test.verdict.state for test in tests]
        won, lost = states.count("ahead"), states.count("behind")
        outcome: Outcome = "does not hold" if lost else "holds" if won == len(questions) else "undecided"
        absent = f" and {missing} not run" if missing else ""
        counts = f"Of {len(questions)} comparisons, {won} won, {lost} lost, {len(tests) - won - lost} undecided{absent}"
        return outcome, f"{counts}: {'; '.join(map(_figures, tests))}", tuple(tests)


def _figures(test: Comparison) -> str:
    """A test as text, such as `dendritic b=32 p=0 against MLP h=11 p=0 +19.0 points (p < 0.001)`."""
    what = "gap of " if test.measure == "gap" else ""
    difference = "unknown" if math.isnan(test.difference) else f"{100 * test.difference:+.1f} points"
    names = [f"{row.model} p={row.dropout:g}" for row in (test.row, test.against)]
    return f"{what}{names[0]} against {names[1]} {difference} ({show_p(test.corrected_p)})"
