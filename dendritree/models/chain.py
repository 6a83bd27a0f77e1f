"""The chain of a model: the modules that inputs run through one after the other."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ..errors import OptionError, ShapeError, check_one_of
from ..layers import DendriticConv1d, DendriticConv2d, DendriticLayer, trace
from ..layers.images import Images, Stages
from ..layers.linear import BatchNorm, Dropout, Linear
from ..ops import check_dense

OUTPUTS = ("logits", "probabilities")
"""The output of a classifier; the paper uses probabilities."""


def make_output(output: str, out_features: int) -> nn.Module:
    """The last step of a classifier: sigmoid for one output, softmax for more, or nothing for logits.

    >>> make_output("probabilities", 1), make_output("probabilities", 10), make_output("logits", 10)
    (Sigmoid(), Softmax(dim=-1), Identity())
    """
    if check_one_of("output", output, OUTPUTS) == "logits":
        return nn.Identity()
    return nn.Sigmoid() if out_features == 1 else nn.Softmax(dim=-1)


class Chain(nn.Module):
    """A model whose inputs run through modules one after the other, up to the logits, and then an output step.

    A subclass registers the modules and returns them from `chain`, which `forward`, `explain` and `prune` use.

    Args:
        output: `"logits"` or `"probabilities"`.
        out_features: number of outputs.
    """

    def __init__(self, output: str = "logits", out_features: int = 1) -> None:
        super().__init__()
        self.output = make_output(output, out_features)

    def chain(self) -> list[nn.Module]:
        """The modules up to the logits."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """Logits (or probabilities) of the classes; images may have their shape, or be rows of pixels."""
        check_dense(x)
        if x.dim() > 2:
            first = next((each for each in self.modules() if isinstance(getattr(each, "in_features", None), int)), None)
            pixels = None if first is None else first.in_features
            x = x.flatten(1) if x.shape[-1] != pixels == x.shape[1:].numel() else x
        for step in self.chain():
            x = step(x)
        y: Tensor = self.output(x)
        return y


# -------------------------------------------------------------------------------------------------- reading a chain

DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)
PASSES: tuple[type[nn.Module], ...] = (*DROPOUTS, nn.Identity, nn.Flatten)
"""Steps that leave rows unchanged in evaluation mode."""
ON_MAPS: tuple[type[nn.Module], ...] = (
    nn.Conv1d, nn.Conv2d, nn.BatchNorm2d, nn.AvgPool1d, nn.AvgPool2d, nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d,
    Images, nn.Unflatten,
)  # fmt: skip
"""Steps that are linear in images or sequences in evaluation mode, up to a constant."""
KNOWN: tuple[type[nn.Module], ...] = (
    Chain, Stages, nn.Sequential, DendriticLayer, DendriticConv1d, DendriticConv2d, Linear, nn.Linear, Dropout, *PASSES,
    BatchNorm, nn.BatchNorm1d, nn.LayerNorm, nn.RMSNorm, *ON_MAPS,
)  # fmt: skip
"""Modules whose forward is known, a subclass before its base."""
NOT_ELEMENTWISE = (nn.Softmax, nn.Softmax2d, nn.Softmin, nn.LogSoftmax, nn.GLU, nn.MultiheadAttention)


def run_chain(steps: Sequence[nn.Module], x: Tensor) -> list[Tensor]:
    """The inputs, shape (batch, in_features), and the output of every step.

    >>> import torch
    >>> [tuple(rows.shape) for rows in run_chain([nn.Linear(4, 3), nn.Tanh()], torch.ones(2, 4))]
    [(2, 4), (2, 3), (2, 3)]
    """
    rows = [x]
    for step in steps:
        if isinstance(step, DendriticLayer):  # not its fused kernels, which a first call would have to compile
            rows.append(trace(step, rows[-1]).values[:, step.forest.roots.tolist()])
            continue
        try:
            rows.append(step(rows[-1].clone()))  # an activation may work in place
        except RuntimeError as error:
            raise ShapeError(f"x must fit the model: {type(step).__name__} rejects shape {tuple(x.shape)}") from error
    return rows


def chain_of(model: nn.Module) -> list[nn.Module]:
    """The modules that inputs run through one after the other, up to the logits; other models are rejected.

    >>> from . import DendriticNetwork
    >>> [type(step).__name__ for step in chain_of(DendriticNetwork(16, [4], 2, norm="batch"))]
    ['DendriticLayer', 'BatchNorm', 'Linear']
    """
    changed = how_changed(model)
    match model:
        case _ if changed:
            pass
        case nn.Sequential():
            return [step for part in model for step in chain_of(part)]
        case Chain():
            return [step for part in model.chain() for step in chain_of(part)]
        case nn.Flatten() if (model.start_dim, model.end_dim) != (1, -1):
            changed = f" from dimension {model.start_dim} to {model.end_dim}"
        case DendriticLayer() | nn.Linear():
            return [model]
        case DendriticConv1d() | DendriticConv2d():
            return list(model.as_convolutions())
        case nn.BatchNorm2d() if model.running_var is None:
            changed = " without running statistics"
        case _ if isinstance(model, ON_MAPS):
            return [model]
        case _ if isinstance(model, PASSES):
            return [model]
        case nn.LayerNorm() | nn.RMSNorm() if len(model.normalized_shape) == 1:
            return [model]
        case nn.BatchNorm1d() if model.running_var is not None:
            return [model]
        case nn.Softmax() | nn.LogSoftmax() | nn.Softmin():
            changed = "; the modules before it can be explained, as model[:-1] of an nn.Sequential"
        case _ if _is_elementwise(model):
            return [model]
    raise OptionError(
        "a model that is explained or pruned must be made of dendritic and linear layers, convolutions, average "
        "pooling, norms, nn.Flatten, dropout and elementwise activations, one after the other: got "
        f"{type(model).__name__}{changed}"
    )


def _is_elementwise(step: nn.Module) -> bool:
    return type(step).__module__ == nn.ReLU.__module__ and not isinstance(step, NOT_ELEMENTWISE)


def split_shape(steps: Sequence[nn.Module], x: Tensor) -> tuple[torch.Size, torch.Size]:
    """The leading dimensions of inputs, and those of one sample: the last one, or all but the first with nn.Flatten.

    >>> split_shape([nn.Flatten(), nn.Linear(12, 2)], torch.zeros(5, 3, 4))
    (torch.Size([5]), torch.Size([3, 4]))
    """
    if isinstance(steps[0], ON_MAPS):
        return x.shape[:1], x.shape[1:]
    place = next((number for number, step in enumerate(steps) if isinstance(step, nn.Flatten)), None)
    if place is None:
        if x.dim() != 2 and any(isinstance(step, nn.BatchNorm1d) and not isinstance(step, BatchNorm) for step in steps):
            raise ShapeError(f"x must have shape (batch, in_features) for nn.BatchNorm1d: got {tuple(x.shape)}")
        return x.shape[:-1], x.shape[-1:]
    if x.dim() < 2:
        raise ShapeError(f"x must have shape (batch, ...) for nn.Flatten: got {tuple(x.shape)}")
    sized = [step for step in steps[:place] if not (isinstance(step, PASSES) or _is_elementwise(step))]
    if x.dim() > 2 and sized:
        name = type(sized[0]).__name__
        raise ShapeError(f"x must have shape (batch, in_features) for {name} before nn.Flatten: got {tuple(x.shape)}")
    return x.shape[:1], x.shape[1:]


def how_changed(model: nn.Module) -> str:
    """Why a module may not compute what its class is known to compute, as a clause; empty if it does."""
    known = next((kind for kind in KNOWN if isinstance(model, kind)), type(model))
    if type(model).forward is not known.forward or "forward" in vars(model):
        return ", which has its own forward"
    if model._forward_hooks or model._forward_pre_hooks:
        return ", which has forward hooks"
    return ""
