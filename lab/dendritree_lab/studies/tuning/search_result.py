"""The result of a search, and a summary in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from dendritree.models.registry import model_origin
from dendritree.models.sizing import parameters_of

from ..engine.configuration import Configuration
from ..engine.task import Task
from .space import PARAMETERS


@dataclass(frozen=True)
class TrialResult:
    """One configuration, and how good it was on the validation examples."""

    number: int
    whole: bool
    """Whether it was trained to the end; others were stopped because they were worse than most at that point."""
    chosen: Mapping[str, Any]
    """The chosen values, by the names in `space.PARAMETERS`."""
    score: float | None
    """Score at the best epoch by validation loss, or at the last one before a stop; None if no epoch was trained."""
    parameters: int | None
    epochs: int
    seconds: float

    @property
    def has_dendrites(self) -> bool:
        """Whether its neurons are trees; at depth 1 they are sparse perceptrons, unless they read copies of those."""
        return int(self.chosen["depth"]) > 1 or self.chosen["wiring"] == "tied"


@dataclass(frozen=True)
class Tuned:
    """A finished search."""

    name: str
    task: Task
    budget: int
    trials: tuple[TrialResult, ...]
    best: TrialResult
    preset: TrialResult | None
    """The trial of the configuration that our comparison recommends; None if it was stopped early."""
    importance: Mapping[str, float]
    """Share of each parameter in the differences between trials; empty if there are too few trials."""
    model: nn.Module = field(repr=False)
    """The best configuration, trained again and longer with a fresh seed; in evaluation mode, returns logits."""
    epochs: int
    """Epochs of that training."""
    val_score: float
    test_score: float
    val_examples: int
    test_looks: int
    """How often this study has evaluated a best configuration on the test set, including this time."""

    @property
    def metric(self) -> str:
        """`accuracy`, or `rmse`, where lower is better."""
        return self.task.metric

    @property
    def parameters(self) -> int:
        """Number of parameters of the model."""
        return parameters_of(self.model)

    @property
    def whole(self) -> list[TrialResult]:
        """Trials that were trained to the end."""
        return [trial for trial in self.trials if trial.whole and trial.score is not None]

    @property
    def pareto(self) -> list[TrialResult]:
        """Trials that no other trial with as few parameters beats, from small to large."""
        front: list[TrialResult] = []
        for trial in sorted(self.whole, key=lambda of: (of.parameters, -self._goodness(of))):
            if not front or self._goodness(trial) > self._goodness(front[-1]):
                front.append(trial)
        return front

    @property
    def verdict(self) -> tuple[str, ...]:
        """A summary of the result in a few sentences."""
        stopped = len(self.trials) - len(self.whole)
        looks = (
            "which were not used before"
            if self.test_looks == 1
            else f"which this study has now used {self.test_looks} times"
        )
        sentences = [
            f"The best of {len(self.trials)} trials ({stopped} stopped early) has {self.metric} "
            f"{self._show(self.best.score)} on the validation examples: {self._describe(self.best)}.",
            f"Trained again for {self.epochs} epochs with a fresh seed, it has {self.parameters:,} parameters (budget: "
            f"{self.budget:,}) and {self.metric} {self._show(self.test_score)} on the test examples, {looks}.",
        ]
        if self.preset is self.best:
            sentences.append("No configuration was better than the first one tried, the best of our comparison.")
        elif self.preset is not None:
            start = "Over the first configuration tried, the best of our comparison, the search gains"
            sentences.append(self._compare(start, self.preset))
        bare = [trial for trial in self.whole if not trial.has_dendrites]
        trees = [trial for trial in self.whole if trial.has_dendrites]
        if bare and trees:
            tops = [max(each, key=self._goodness) for each in (trees, bare)]
            better, other = sorted(tops, key=self._goodness, reverse=True)
            words = {True: "neurons with dendrites", False: "neurons without dendrites (depth 1)"}
            start = f"The best {words[better.has_dendrites]} are ahead of the best {words[other.has_dendrites]} by"
            sentences.append(self._compare(start, other, better))
        if self.importance:
            top = [f"{PARAMETERS[name]} ({share:.0%})" for name, share in list(self.importance.items())[:3]]
            sentences.append(f"What mattered most in this search: {', '.join(top)}.")
        small = [trial for trial in self.pareto if 2 * (trial.parameters or 0) <= self.parameters]
        if small:
            sentences.append(
                f"With {small[-1].parameters:,} parameters the best trial has {self.metric} "
                f"{self._show(small[-1].score)} on the validation examples."
            )
        return tuple(sentences)

    @property
    def code(self) -> str:
        """The line of code that builds the model, untrained."""
        return f"model = {Configuration(*model_origin(self.model), lr=float(self.best.chosen['lr'])).code}"

    def _goodness(self, trial: TrialResult) -> float:
        return self.task.goodness(math.nan if trial.score is None else trial.score)

    def _show(self, score: float | None) -> str:
        return "none" if score is None else f"{score:.4f}"

    def _compare(self, start: str, other: TrialResult, better: TrialResult | None = None) -> str:
        """A difference on the validation examples, and whether it could be due to chance."""
        better = better or self.best
        gain = self._goodness(better) - self._goodness(other)
        text = f"{start} {gain:.4f} in validation {self.metric}"
        if self.metric == "accuracy" and better.score is not None:
            # Two models on the same examples: the variance is at most the sum of both, so this is conservative.
            noise = 2 * math.sqrt(2 * better.score * (1 - better.score) / self.val_examples)
            if gain < noise:
                return f"{text}, too little to tell from chance on {self.val_examples:,} examples."
        return f"{text}."

    def _describe(self, trial: TrialResult) -> str:
        chosen = trial.chosen
        tree = f"depth {chosen['depth']}"
        if chosen["depth"] > 1:
            tree += f", branching {chosen['branching']}"
        tree += f", fan-in near {chosen['fan_in']}"
        if chosen["wiring"] == "tied":
            tree += (
                f", {chosen['copies']} copies {chosen['stride']} pixels apart, shared by {chosen['shared_by']} neurons"
            )
        return f"{tree}, wiring {chosen['wiring']}, dropout {chosen['dropout']:g}, learning rate {chosen['lr']:.2g}"
