"""Losses by name, each with the prediction that is read off the same output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional as F

from ..errors import OptionError


@dataclass(frozen=True)
class Loss:
    """A loss, and how to read a prediction off the same output."""

    per_example: Callable[[Tensor, Tensor], Tensor]
    """(outputs, targets) -> one loss per example."""
    correct: Callable[[Tensor, Tensor], Tensor] | None
    """(outputs, targets) -> whether each example is right, or which share of it; None for regression."""


def _mean_each(values: Tensor) -> Tensor:
    return values.reshape(len(values), -1).mean(1)


def _binary(loss: Callable[..., Tensor], threshold: float) -> Loss:
    return Loss(
        lambda out, y: _mean_each(loss(out, y.to(out.dtype).reshape(out.shape), reduction="none")),
        lambda out, y: (out > threshold).reshape(len(y), -1).eq(y.reshape(len(y), -1).bool()).all(1),
    )


def _cross_entropy(out: Tensor, y: Tensor) -> Tensor:
    try:
        if y.dim() > 1:  # a class for every place of a sequence
            if out.shape[:-1] != y.shape:
                raise OptionError(
                    "y must be one class number for each example, or for each place of sequences, for cross-entropy: "
                    f"got {y.dtype} of shape {tuple(y.shape)} for outputs of shape {tuple(out.shape)}"
                )
            each = F.cross_entropy(out.flatten(0, -2), y.flatten().long(), reduction="none")
            return _mean_each(each.reshape(y.shape))
        return F.cross_entropy(out, y.long(), reduction="none")
    except IndexError:
        raise OptionError(
            f"the model must have an output for each class: it has {out.shape[-1]}, and there is class {y.max()}"
        ) from None


def _right(out: Tensor, y: Tensor) -> Tensor:
    """Whether the class is right; of a sequence, the share of its places where it is."""
    right = out.argmax(-1).eq(y)
    return right if y.dim() == 1 else _mean_each(right.float())


LOSSES: dict[str, Loss] = {
    "cross-entropy": Loss(_cross_entropy, _right),
    "binary-probabilities": _binary(F.binary_cross_entropy, 0.5),
    "binary-logits": _binary(F.binary_cross_entropy_with_logits, 0.0),
    "squared-error": Loss(lambda out, y: _mean_each((out - y.reshape(out.shape)).square()), None),
}
"""Losses by name. `cross-entropy` takes logits, (examples, classes), or (examples, places, classes) for sequences;
given probabilities it applies a second softmax, as the paper did."""
