"""`to_c`: a model as one C99 file for small devices, checked before it is written."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .. import __version__
from ..budget import stated_input_shape
from ..errors import DendritreeError, OptionError, ShapeError
from ..files import write_whole
from ..models.holders import network_of
from ..models.modes import evaluating
from .c_source import c_source
from .checking import Sizes, run_c, sizes_of
from .integers import in_integers
from .lowering import lower
from .steps import Network

TOLERANCE = 1e-4
"""Largest difference of scores in float, relative to the largest score above 1."""
ROUNDING = {8: 0.15, 4: 1.0}
"""Largest root mean square difference of scores in integers, relative to the spread of the scores, by bits."""
CHECKED, RANDOM = 20_000, 256
"""Maximum number of examples that a file is run on, and of random inputs if there are none."""
KEYWORDS = {"auto", "char", "const", "double", "float", "for", "if", "inline", "int", "long", "main", "return", "short",
            "signed", "static", "struct", "union", "unsigned", "void", "volatile", "while"}  # fmt: skip


@dataclass(frozen=True)
class CFile:
    """The file that `to_c` wrote."""

    path: Path
    inputs: int
    outputs: int
    multiply_adds: int
    difference: float | None
    """Largest difference between the scores of the compiled file and of the model, relative to the largest score above
    1; None if no C compiler was found."""
    accuracy: tuple[float, float] | None
    """Accuracy on the examples, of the model and of the file; None without labels."""
    same_class: float | None
    """Share of the examples for which model and file agree on the class."""
    sizes: tuple[Sizes, ...]
    """Flash and RAM on this machine, and on devices whose compiler is on the PATH."""


def to_c(
    model: Any,
    path: str | os.PathLike[str],
    *,
    int8: bool = False,
    bits: int = 8,
    examples: Any = None,
    labels: Any = None,
    name: str = "model",
) -> CFile:
    """Write a model in evaluation mode to one C99 file, for devices with a few kilobytes of memory.

    The file has no dependencies, uses no heap, and defines `void NAME_predict(const TYPE *x, float *scores)` and, for
    classifiers, `int NAME_classify(const TYPE *x)`. Batch normalization is folded into weights, and regular wiring
    is computed instead of stored. If a C compiler is found, the file is first compiled, run and compared with the
    model; it is not written if they differ.

    Args:
        model: a network of dendritic and common layers, one after the other; a fitted `DendriticClassifier` or
            `DendriticRegressor` is exported with its scaling. Scores are those of the model; with `int8`, those before
            softmax or sigmoid at the end.
        path: the file, replaced if it exists. Its folder must exist.
        int8: compute in integers instead of floats. `x` are then bytes that span the values of the examples per
            channel, as pixels do; rows of an estimator remain floats.
        bits: bits per weight with `int8`: 8, or 4 to pack two weights in a byte.
        examples: a batch of inputs, which determines the integer ranges and on which the file is compared.
        labels: the class of each example, to report the accuracy.
        name: prefix of the functions.

    Example:
        >>> import tempfile
        >>> from dendritree import MLNClassifier
        >>> file = to_c(MLNClassifier(16, 3, branching=4), Path(tempfile.mkdtemp()) / "model.c")
        >>> file.inputs, file.outputs, file.multiply_adds
        (16, 3, 60)
    """
    target = Path(path)
    if not target.parent.is_dir() or target.is_dir():
        raise OptionError(f"a C file must be written to a folder that exists: got {str(path)!r}")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or name in KEYWORDS:
        raise OptionError(f"name must be lower-case letters, digits and _, as C allows: got {name!r}")
    if bits not in ROUNDING or (bits != 8 and not int8):
        raise OptionError(f"bits must be 8, or 4 with int8: got {bits}")
    if not isinstance(model, nn.Module):
        network_of(model)  # raises for anything that holds none
        model = model.as_module()
    given = _batch(model, examples)
    network = floats = lower(model, None if given is None else tuple(given.shape[1:]))
    if int8 and given is None:
        raise OptionError("int8 needs examples, which determine the ranges of values: got none")
    shape = stated_input_shape(model) or network.shape
    x = torch.randn(RANDOM, *shape, generator=torch.Generator().manual_seed(0)) if given is None else given
    if math.prod(x.shape[1:]) != math.prod(network.shape):
        raise ShapeError(f"examples must have {math.prod(network.shape)} numbers each: got {tuple(x.shape)}")
    x = x[:CHECKED]
    network = in_integers(network, x, bits) if int8 else network
    wanted = _scores(model, floats if int8 else None, x)
    right = None if labels is None or not network.classifies else np.asarray(labels).reshape(-1)[:CHECKED]
    if right is not None and len(right) != len(x):
        raise ShapeError(f"labels must have one class per example: got {len(right)} for {len(x)}")
    notes = _notes(model, network)
    source = c_source(network, name, notes)
    scores = run_c(source, name, raw_inputs(network, x), wanted.shape[1])
    difference = same = accuracy = None
    if scores is not None:
        difference = _checked(scores, wanted, bits if int8 else None)
        ours, theirs = (_classes(each, network.output) for each in (wanted, scores))
        same = float((ours == theirs).mean()) if network.classifies else None
        if right is not None:
            accuracy = float((ours == right).mean()), float((theirs == right).mean())
            shown = f"{accuracy[1]:.4f}; of the model in PyTorch: {accuracy[0]:.4f}."
            source = c_source(network, name, [*notes, f"Accuracy on {len(x):,} examples: {shown}"])
    sizes = tuple(sizes_of(source, name))
    write_whole(target, source, "a C file")
    inputs = math.prod(network.shape)
    return CFile(target, inputs, wanted.shape[1], network.multiply_adds, difference, accuracy, same, sizes)


def _batch(model: nn.Module, examples: Any) -> Tensor | None:
    if examples is None:
        return model.example(RANDOM) if hasattr(model, "example") else None  # type: ignore[operator]
    x = torch.as_tensor(examples).detach().cpu()
    if x.dim() < 2 or not len(x) or not bool(torch.isfinite(x).all()):
        raise ShapeError(f"examples must be a batch of finite inputs: got shape {tuple(x.shape)}")
    return x if x.is_floating_point() else x.float()


def _scores(model: nn.Module, network: Network | None, x: Tensor) -> NDArray[np.float64]:
    """The scores of the model, one row per example; for integers those of its steps, before softmax or sigmoid."""
    if network is not None:
        return network.run(x)[-1].flatten(1).numpy()
    like = next(model.buffers() if hasattr(model, "deviation") else model.parameters())
    with evaluating(model), torch.no_grad():
        parts = [model(part.to(like.device, like.dtype)).flatten(1) for part in torch.split(x, 1000)]
    return torch.cat(parts).cpu().double().numpy()


def raw_inputs(network: Network, x: Tensor) -> NDArray[np.generic]:
    """Examples as the C file reads them."""
    if network.scale is None or network.zero is None or network.mean is not None:
        return x.reshape(len(x), -1).float().numpy()
    scale, zero = (each.reshape(-1, 1, 1) for each in (network.scale, network.zero))
    numbers = np.rint(x.double().reshape(-1, *network.shape).numpy() / scale + zero)
    raw: NDArray[np.generic] = numbers.clip(0, 255).astype(np.uint8).reshape(len(x), -1)
    return raw


def _classes(scores: NDArray[Any], output: str) -> NDArray[np.int64]:
    limit = 0.5 if output == "sigmoid" and scores.min() >= 0 and scores.max() <= 1 else 0.0
    classes: NDArray[np.int64] = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > limit).astype(int)
    return classes


def _checked(scores: NDArray[np.float32], wanted: NDArray[np.float64], bits: int | None) -> float:
    """The largest relative difference; raises if it is beyond the bound."""
    apart = np.abs(scores - wanted)
    difference = float(apart.max() / max(1.0, np.abs(wanted).max()))
    if bits is None:
        if not difference <= TOLERANCE:
            raise DendritreeError(
                f"the C file must agree with the model to {TOLERANCE}: it differs by {difference:.3g}"
            )
        return difference
    spread = float(np.sqrt(((wanted - wanted.mean()) ** 2).mean())) or 1.0
    rounding = float(np.sqrt((apart**2).mean())) / spread
    if not rounding <= ROUNDING[bits]:
        advice = (
            "fine-tune with FitConfig(quantized=4), or use bits=8" if bits == 4 else "more examples or float may help"
        )
        raise DendritreeError(
            f"scores in integers must differ from the model's by at most {ROUNDING[bits]} of their spread: they "
            f"differ by {rounding:.3g}; {advice}"
        )
    return difference


def _notes(model: nn.Module, network: Network) -> list[str]:
    kind = "float" if network.bits is None else f"integers, weights of {network.bits} bits"
    notes = [
        f"{type(model).__name__} of {sum(p.numel() for p in model.parameters()):,} parameters in {kind}.",
        f"Made by dendritree {__version__}, to_c.",
        f"{network.multiply_adds:,} multiply-adds per input.",
    ]
    if network.shape[1:] != (1, 1):
        notes.append("x: {} channels of {} x {}, one channel after the other.".format(*network.shape))
    if network.scale is not None and network.zero is not None and network.mean is None:
        pairs = zip(network.scale, network.zero, strict=True)
        shown = dict.fromkeys(f"input / {scale:.7g} + {zero:.5g}" for scale, zero in pairs)
        notes.append(f"x are bytes: {'; '.join(list(shown)[:4])}, rounded, from 0 to 255.")
    if network.bits is not None and network.output != "none":
        notes.append(f"Scores are those before {network.output}.")
    return notes
