"""Checks of data and model before the first step of training."""

from __future__ import annotations

import warnings

import torch
from torch import nn

from ..data import Examples, Split
from ..errors import OptionError


def check_split(split: Split, loss: str) -> None:
    """Raise for targets that do not fit the loss; warn of inputs that are not finite.

    >>> check_split(Split(*[Examples(torch.rand(5, 3), torch.zeros(5).long())] * 3), "cross-entropy")
    """
    for name in ("train", "val"):
        part: Examples = getattr(split, name)
        check_targets(part.y, loss, f"{name}.y")
        if part.x.is_floating_point() and not part.x.isfinite().all():
            warnings.warn(f"{name}.x has values that are NaN or infinite", stacklevel=3)


def check_targets(y: torch.Tensor, loss: str, name: str = "y") -> None:
    """Raise for targets that do not fit a loss.

    >>> check_targets(torch.tensor([0, 2, 1]), "cross-entropy")
    """
    if loss == "cross-entropy":
        if y.dim() not in (1, 2) or y.is_floating_point() or y.is_complex():
            got = f"{y.dtype} of shape {tuple(y.shape)}"
            rule = "one class number for each example, or for each place of sequences,"
            raise OptionError(f"{name} must be {rule} for cross-entropy: got {got}")
        if len(y) and y.min() < 0:
            raise OptionError(f"{name} must be class numbers from 0 for cross-entropy: got {y.min()}")
    elif loss.startswith("binary") and y.numel() and not (y.min() >= 0 and y.max() <= 1):
        raise OptionError(f"{name} must be 0 or 1 for {loss}: got {y.min()} to {y.max()}")
    elif not y.isfinite().all():
        raise OptionError(f"{name} must be finite for {loss}: got {y[~y.isfinite()][0]}")


def check_output(model: nn.Module, loss: str) -> None:
    """Raise for a model whose output is known not to fit the loss; warn of a second softmax.

    >>> check_output(nn.Sequential(nn.Linear(3, 1), nn.Sigmoid()), "binary-probabilities")
    """
    last = model[-1] if isinstance(model, nn.Sequential) and len(model) else getattr(model, "output", None)
    gives = "probabilities" if isinstance(last, nn.Softmax | nn.Sigmoid) else None
    if isinstance(last, nn.Identity) and hasattr(model, "model_name"):  # one of ours, whose last step is its output
        gives = "logits"
    name, wanted = type(model).__name__, loss.removeprefix("binary-")
    if (gives, wanted) in (("probabilities", "logits"), ("logits", "probabilities")):
        raise OptionError(
            f"{loss} takes {wanted}, and {name} gives {gives}: build it with output={wanted!r}, or take the loss "
            f"'binary-{gives}'"
        )
    if gives == "probabilities" and loss == "cross-entropy":
        warnings.warn(
            f"cross-entropy takes logits, and {name} gives probabilities: a second softmax is applied, as in the paper,"
            " and training is slow; build it with output='logits'",
            stacklevel=3,
        )
