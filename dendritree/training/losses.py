"""Losses by name, each with the prediction derived from the same output, and checks of data and models for them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import OptionError
from .examples import Examples, Split


@dataclass(frozen=True)
class Loss:
    """A loss, and how to derive a prediction from the same output."""

    per_example: Callable[[Tensor, Tensor], Tensor]
    """(outputs, targets) -> one loss per example."""
    correct: Callable[[Tensor, Tensor], Tensor] | None
    """(outputs, targets) -> whether each example is correct, or which share of it; None for regression."""


def _mean_each(values: Tensor) -> Tensor:
    return values.reshape(len(values), -1).mean(1)


def _binary(loss: Callable[..., Tensor], threshold: float) -> Loss:
    return Loss(
        lambda out, y: _mean_each(loss(out, y.to(out.dtype).reshape(out.shape), reduction="none")),
        lambda out, y: (out > threshold).reshape(len(y), -1).eq(y.reshape(len(y), -1).bool()).all(1),
    )


def _cross_entropy(out: Tensor, y: Tensor) -> Tensor:
    try:
        if y.dim() > 1:  # a class for every position of a sequence
            if out.shape[:-1] != y.shape:
                raise OptionError(
                    "y must be one class number for each example, or for each position of sequences, for "
                    f"cross-entropy: got {y.dtype} of shape {tuple(y.shape)} for outputs of shape {tuple(out.shape)}"
                )
            each = F.cross_entropy(out.flatten(0, -2), y.flatten().long(), reduction="none")
            return _mean_each(each.reshape(y.shape))
        return F.cross_entropy(out, y.long(), reduction="none")
    except IndexError:
        raise OptionError(
            f"the model must have an output for each class: it has {out.shape[-1]}, and there is class {y.max()}"
        ) from None


def _right(out: Tensor, y: Tensor) -> Tensor:
    """Whether the class is correct; for a sequence, the share of positions where it is."""
    right = out.argmax(-1).eq(y)
    return right if y.dim() == 1 else _mean_each(right.float())


LOSSES: dict[str, Loss] = {
    "cross-entropy": Loss(_cross_entropy, _right),
    "binary-probabilities": _binary(F.binary_cross_entropy, 0.5),
    "binary-logits": _binary(F.binary_cross_entropy_with_logits, 0.0),
    "squared-error": Loss(
        lambda out, y: _mean_each(F.mse_loss(out, y.to(out.dtype).reshape(out.shape), reduction="none")), None
    ),
}
"""Losses by name. `cross-entropy` takes logits, (examples, classes), or (examples, positions, classes) for sequences;
given probabilities it applies a second softmax, as the paper did."""


def smooth_labels(per_example: Tensor, out: Tensor, share: float) -> Tensor:
    """The cross-entropy of each example with labels of which this share is spread over all classes.

    >>> import torch
    >>> smooth_labels(torch.tensor([2.0]), torch.zeros(1, 4), 0.5)
    tensor([1.6931])
    """
    return (1 - share) * per_example - share * _mean_each(out.log_softmax(-1).mean(-1))


def check_split(split: Split, loss: str) -> None:
    """Raise for targets that do not fit the loss; warn about inputs that are not finite.

    >>> import torch
    >>> check_split(Split(*[Examples(torch.rand(5, 3), torch.zeros(5).long())] * 3), "cross-entropy")
    """
    for name in ("train", "val"):
        part: Examples = getattr(split, name)
        check_targets(part.y, loss, f"{name}.y")
        if part.x.is_floating_point() and not part.x.isfinite().all():
            warnings.warn(f"{name}.x has values that are NaN or infinite", stacklevel=3)


def check_targets(y: Tensor, loss: str, name: str = "y") -> None:
    """Raise for targets that do not fit a loss.

    >>> import torch
    >>> check_targets(torch.tensor([0, 2, 1]), "cross-entropy")
    """
    if loss == "cross-entropy":
        if y.dim() not in (1, 2) or y.is_floating_point() or y.is_complex():
            got = f"{y.dtype} of shape {tuple(y.shape)}"
            rule = "one class number for each example, or for each position of sequences,"
            raise OptionError(f"{name} must be {rule} for cross-entropy: got {got}")
        if len(y) and y.min() < 0:
            raise OptionError(f"{name} must be class numbers from 0 for cross-entropy: got {y.min()}")
    elif loss.startswith("binary") and y.numel() and not (y.min() >= 0 and y.max() <= 1):
        raise OptionError(f"{name} must be 0 or 1 for {loss}: got {y.min()} to {y.max()}")
    elif not y.isfinite().all():
        raise OptionError(f"{name} must be finite for {loss}: got {y[~y.isfinite()][0]}")


def check_output(model: nn.Module, loss: str) -> None:
    """Raise for a model whose output is known not to fit the loss; warn about a second softmax.

    >>> check_output(nn.Sequential(nn.Linear(3, 1), nn.Sigmoid()), "binary-probabilities")
    """
    last = model[-1] if isinstance(model, nn.Sequential) and len(model) else getattr(model, "output", None)
    gives = "probabilities" if isinstance(last, nn.Softmax | nn.Sigmoid) else None
    if isinstance(last, nn.Identity) and hasattr(model, "model_name"):  # one of ours, whose last step is its output
        gives = "logits"
    name, wanted = type(model).__name__, loss.removeprefix("binary-")
    if (gives, wanted) in (("probabilities", "logits"), ("logits", "probabilities")):
        raise OptionError(
            f"{loss} takes {wanted}, but {name} returns {gives}: build it with output={wanted!r}, or use the loss "
            f"'binary-{gives}'"
        )
    if gives == "probabilities" and loss == "cross-entropy":
        warnings.warn(
            f"cross-entropy takes logits, but {name} returns probabilities: a second softmax is applied, as in the "
            "paper, and training is slow; build it with output='logits'",
            stacklevel=3,
        )
