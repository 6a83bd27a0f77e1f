"""The paper's claims, and what the trials say to each."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from ..engine.statistics import show_p
from .analysis import Comparison, Measure, best_dropout, compare_samples, correct_family, summarise
from .records import TrialRecord

Control = tuple[str, int]
"""Network and size of a control."""
Matches = Mapping[tuple[str, int], Sequence[Control]]
"""The controls of each (task, branching)."""
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
    """What the trials of one task and protocol say to one claim."""

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


@dataclass(frozen=True)
class _Question:
    """A comparison that a claim needs: which of two models should come out ahead, and at which dropouts."""

    favourite: Control
    other: Control
    level: str
    """`p=0`, `best p`, or `dropout` for the best dropout against none."""
    measure: Measure | None = None


def claims(records: Iterable[TrialRecord], matches: Matches) -> list[Verdict]:
    """A verdict on each claim for each task of `matches` under each protocol that was run.

    The rule is one for all claims. A claim is a set of comparisons, each of which it says who wins:

    - `beats-control`: every tree with b > 2 against each of its control MLPs;
    - `small-branching`: the control MLPs against the tree with b = 2;
    - `dropout`: every tree at its best dropout against itself without;
    - `branching`: every tree against the one with the next smaller b;
    - `overfitting`: as `beats-control`, by the gap of training and validation accuracy at the best epoch, which
      should be the smaller one.

    All but `dropout` are made twice, as the paper says "both with and without dropout": at p = 0, and with both models
    at their own best dropout (lowest mean validation loss). Each is a two-sided Welch test; p values are corrected by
    Holm's method over the comparisons of one claim, task and protocol. The claim **holds** if every comparison is won
    with a corrected p < 0.05, **does not hold** if at least one is lost with p < 0.05, and is **undecided**
    otherwise, also if a comparison is missing. It was **not run** if all are missing. Best dropouts are chosen on
    the data they are then tested on where there is no test set, as in the paper: this favours dropout.

    Plain perceptrons among the controls do not decide, since the paper has none; the evidence of `beats-control`
    tells how trees fare against them, corrected as one more family.

    Args:
        records: the trials.
        matches: the controls (network, size) of each (task, branching).
    """
    trials = list(records)
    verdicts = []
    for protocol in sorted({trial.protocol for trial in trials}):
        for task in dict.fromkeys(task for task, _ in matches):
            bench = _Bench([trial for trial in trials if trial.protocol == protocol and trial.row.task == task])
            controls = {branching: matches[key] for key in matches for branching in key[1:] if key[0] == task}
            for claim, statement in CLAIMS.items():
                outcome, evidence, tests = bench.judge(list(_questions(claim, bench.network, controls)))
                if claim == "beats-control":
                    evidence += bench.perceptron_clause(controls)
                verdicts.append(Verdict(claim, statement, task, protocol, outcome, f"{evidence}.", tests))
    return verdicts


def _questions(claim: str, network: str, controls: Mapping[int, Sequence[Control]]) -> Iterator[_Question]:
    branchings = sorted(controls)
    if claim == "dropout":
        for branching in branchings:
            yield _Question((network, branching), (network, branching), "dropout")
    elif claim == "branching":
        for level in ("p=0", "best p"):
            for smaller, larger in pairwise(branchings):
                yield _Question((network, larger), (network, smaller), level)
    else:
        for branching in branchings:
            if (branching == 2) != (claim == "small-branching"):
                continue
            for control in controls[branching]:
                for level in ("p=0", "best p") if control[1] else ():  # size 0: perceptrons
                    tree = (network, branching)
                    if claim == "small-branching":
                        yield _Question(control, tree, level)
                    elif claim == "overfitting":
                        yield _Question(control, tree, level, "gap")  # the control's gap should be the larger one
                    else:
                        yield _Question(tree, control, level)


class _Bench:
    """The trials of one task and protocol, by model and dropout."""

    def __init__(self, trials: Sequence[TrialRecord]) -> None:
        self._trials: dict[Control, dict[float, list[TrialRecord]]] = defaultdict(dict)
        table_of: dict[tuple[Control, float], str] = {}
        for trial in sorted(trials, key=lambda trial: (trial.row, trial.index)):
            row, model = trial.row, (trial.row.network, trial.row.size)
            # A row that two tables share was trained twice from the same seeds: count it once.
            if table_of.setdefault((model, row.dropout), row.table) == row.table:
                self._trials[model].setdefault(row.dropout, []).append(trial)
        self._best = {
            (model.network, model.size): summary.row.dropout
            for model, summary in best_dropout(summarise(trials)).items()
        }
        self.network = min((trial.row.network for trial in trials if trial.row.dendritic), default="mln")

    def judge(self, questions: Sequence[_Question]) -> tuple[Outcome, str, tuple[Comparison, ...]]:
        """The outcome, its evidence without the full stop, and the corrected tests."""
        asked = [(question, test) for question in questions if (test := self._test(question)) is not None]
        tests = correct_family([test for _, test in asked])
        if not tests:
            return "not run", f"None of {len(questions)} comparisons was run", ()
        missing = len(questions) - len(tests)
        states = [test.verdict.state for test in tests]
        won, lost = states.count("ahead"), states.count("behind")
        outcome: Outcome = "undecided"
        if lost:
            outcome = "does not hold"
        elif won == len(questions):
            outcome = "holds"
        absent = f" and {missing} not run" if missing else ""
        open_ = len(tests) - won - lost
        counts = f"Of {len(questions)} comparisons {won} won, {lost} lost, {open_} open{absent}"
        return outcome, f"{counts}: {'; '.join(map(_figures, tests))}", tuple(tests)

    def perceptron_clause(self, controls: Mapping[int, Sequence[Control]]) -> str:
        """How the trees with b > 2 fare against plain perceptrons; empty if those were not run."""
        questions = [
            _Question((self.network, branching), control, level)
            for branching in sorted(controls)
            for control in controls[branching]
            for level in ("p=0", "best p")
            if branching > 2 and control[1] == 0
        ]
        tests = correct_family([test for test in map(self._test, questions) if test is not None])
        return f"; beside the claim: {'; '.join(map(_figures, tests))}" if tests else ""

    def _test(self, question: _Question) -> Comparison | None:
        dropout, other_dropout = {
            "p=0": (0.0, 0.0),
            "best p": (self._best.get(question.favourite), self._best.get(question.other)),
            "dropout": (self._best.get(question.favourite), 0.0),
        }[question.level]
        favourite = self._at(question.favourite, dropout)
        other = self._at(question.other, other_dropout)
        return compare_samples(favourite, other, question.measure) if favourite and other else None

    def _at(self, model: Control, dropout: float | None) -> list[TrialRecord]:
        return [] if dropout is None else self._trials.get(model, {}).get(dropout, [])


def _figures(test: Comparison) -> str:
    """As `dendritic b=32 p=0 against MLP h=11 p=0 +19.0 points (p < 0.001)`."""
    what = "gap of " if test.measure == "gap" else ""
    difference = "unknown" if math.isnan(test.difference) else f"{100 * test.difference:+.1f} points"
    names = [f"{row.model} p={row.dropout:g}" for row in (test.row, test.against)]
    return f"{what}{names[0]} against {names[1]} {difference} ({show_p(test.corrected_p)})"
