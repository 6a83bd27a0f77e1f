"""Examples of a data set to click on."""

from __future__ import annotations

from collections.abc import Sequence

from ..data import Examples
from .exhibit import Sample

TRIED = 500
"""Test examples that are looked at: enough to tell how good a model is, and evaluated in milliseconds."""
ROUNDS = 4
MOST_SAMPLES = 40


def samples_of(examples: Examples, names: Sequence[str]) -> list[Sample]:
    """Some examples of each class in turn; without classes, the first ones.

    >>> import torch
    >>> examples = Examples(torch.rand(4, 2), torch.tensor([1, 1, 0, 0]))
    >>> [sample.label for sample in samples_of(examples, ("no", "yes"))]
    ['no', 'yes', 'no', 'yes']
    """
    if not names:
        return [Sample(x[None], f"{float(y):.2f}") for x, y in zip(examples.x[:20], examples.y, strict=False)]
    of_class = [(examples.y == number).nonzero().flatten().tolist() for number in range(len(names))]
    rounds = [[found[turn] for found in of_class if turn < len(found)] for turn in range(ROUNDS)]
    chosen = [place for each in rounds for place in each][:MOST_SAMPLES]
    return [Sample(examples.x[place][None], names[int(examples.y[place])]) for place in chosen]
