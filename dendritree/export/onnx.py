"""A model as one ONNX file that runs without torch and without this package."""

from __future__ import annotations

import copy
import json
import logging
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..budget import stated_input_shape
from ..errors import DendritreeError, OptionError, ShapeError, import_extra
from ..files import write_whole
from ..layers import DendriticLayer
from ..layers.placed_layer import PlacedLayer
from ..models.chain import how_changed
from ..models.holders import network_of
from ..models.modes import evaluating
from .shared_trees import as_convolutions

TOLERANCE = 1e-5
"""Largest difference between the outputs of onnxruntime and of the model, relative to the largest output above 1."""
MOST_BYTES = 2**31 - 2**20
"""A protobuf file holds less than 2 GiB."""
MOST_ROWS = 2**31 - 1
"""For older versions of torch, whose exporter rejects slices of a batch as long as the largest integer."""
INPUT, OUTPUT = "input", "output"
ANY_BATCH = "an ONNX file must take any batch"


@dataclass(frozen=True)
class OnnxFile:
    """The file that `to_onnx` wrote."""

    path: Path
    input_shape: tuple[int, ...]
    """Shape of one sample, without the batch dimension, which may have any size."""
    output_shape: tuple[int, ...]
    opset: int
    """Version of ONNX's operators."""
    difference: float | None
    """Largest difference between the outputs of onnxruntime and of the model; None if onnxruntime is not installed."""
    inputs: tuple[str, ...] = ()
    """Names of the inputs of a table model; the file also holds them, as metadata `inputs` and `outputs`. Empty for
    other models."""
    raw: bool = True
    """Whether the file takes the same samples as the model; False if a table has columns that are not numeric."""


def to_onnx(model: Any, path: str | os.PathLike[str], example: Tensor | None = None) -> OnnxFile:
    """Write a model in evaluation mode to an ONNX file, for any batch size.

    If onnxruntime is installed, the exported model is first run on batches of several sizes, and the file is written
    only if the outputs agree with the model's to `TOLERANCE`. It appears whole or not at all. Needs the extra `onnx`.

    Args:
        model: takes one tensor with the batch first, and returns one. A fitted `DendriticClassifier` or
            `DendriticRegressor` is exported with its scaling: the file takes raw rows, in float64, and returns
            probabilities, or predictions in the units of the target. So is a table model: if all columns are numeric,
            the file takes them, with NaN for missing cells; with categories or dates it takes rows as the model's
            `encoded` returns them.
        path: the file, replaced if it exists. Its folder must exist.
        example: a batch of inputs; not needed if the model or its first layer states `in_features` or `input_shape`.

    Example:
        >>> import tempfile
        >>> from dendritree import MLNClassifier
        >>> file = to_onnx(MLNClassifier(16, 3, branching=4), Path(tempfile.mkdtemp()) / "model.onnx")
        >>> file.input_shape, file.output_shape, file.difference < 1e-5
        ((16,), (3,), True)
    """
    target = Path(path)
    if not target.parent.is_dir() or target.is_dir():
        raise OptionError(f"an ONNX file must be written to a folder that exists: got {str(path)!r}")
    for package in ("onnx", "onnxscript"):
        import_extra(package, extra="onnx")
    if not isinstance(model, nn.Module):
        network_of(model)  # raises for anything that holds none
        model = model.as_module()
        example = model.example() if example is None else example
    sample = _sample(model, example)
    with evaluating(model), torch.no_grad():
        _check_batches(model, sample)
        outputs = model(sample)
        if not isinstance(outputs, Tensor):
            raise OptionError(
                f"the model must return one tensor to be exported: got {type(outputs).__name__}; wrap the model in a "
                "module whose forward returns the tensor, such as `return self.model(x).logits`"
            )
        program = _program(_simplified(model, sample), sample)
        rows = program.model_proto.graph.input[0].type.tensor_type.shape.dim[0]
        if rows.dim_value:
            raise DendritreeError(
                f"{ANY_BATCH}: the code of {type(model).__name__} makes the batch size a constant, {rows.dim_value} "
                "here; it must not loop over the rows, branch on their number or convert it to an int"
            )
        inputs = tuple(getattr(model, "inputs", ()))
        proto = program.model_proto
        _strip(proto)
        for name in ("inputs", "outputs") if inputs else ():
            proto.metadata_props.add(key=name, value=json.dumps(getattr(model, name)))
        content = proto.SerializeToString()
        difference = _difference(model, sample, content)
    if difference is not None and not difference <= TOLERANCE:
        raise DendritreeError(f"onnxruntime must agree with the model to {TOLERANCE}: it differs by {difference:.3g}")
    write_whole(target, content, "an ONNX file")
    opset = next(entry.version for entry in proto.opset_import if not entry.domain)
    shapes = tuple(sample.shape[1:]), tuple(outputs.shape[1:])
    return OnnxFile(target, *shapes, opset, difference, inputs, getattr(model, "raw", True))


def _sample(model: nn.Module, example: Tensor | None) -> Tensor:
    """Two samples to trace with: with one, the exporter would treat the batch size as a constant."""
    parameters = list(model.parameters())
    if not parameters or any(p.is_meta or p.dtype not in (torch.float32, torch.float64) for p in parameters):
        kinds = sorted({f"{p.dtype} on {p.device}" for p in parameters}) or ["none"]
        raise OptionError(f"parameters must be float32 or float64, not on the meta device, for ONNX: got {kinds}")
    if sum(p.numel() * p.element_size() for p in parameters) > MOST_BYTES:
        raise OptionError("a model in one ONNX file must be smaller than 2 GiB")
    if example is None:
        shape = stated_input_shape(model)
        if shape is None:
            raise OptionError(f"{type(model).__name__} does not state the shape of its inputs: pass an example")
        random = torch.Generator().manual_seed(0)  # leaves torch's own generator unchanged
        return torch.randn(2, *shape, generator=random, dtype=parameters[0].dtype).to(parameters[0].device)
    if not isinstance(example, Tensor) or example.dim() < 2 or not len(example):
        shown = tuple(example.shape) if isinstance(example, Tensor) else type(example).__name__
        raise ShapeError(f"example must be a batch of inputs, a tensor of two dimensions or more: got {shown}")
    return example.detach()[:2] if len(example) > 1 else example.detach().expand(2, *example.shape[1:]).clone()


def _simplified(model: nn.Module, sample: Tensor) -> nn.Module:
    """A copy in which shared trees are convolutions; the model itself if it has none."""
    dimensions: dict[nn.Module, int] = {}
    layers = [part for part in model.modules() if isinstance(part, DendriticLayer | PlacedLayer)]
    hooks = [
        part.register_forward_pre_hook(lambda part, inputs: dimensions.update({part: inputs[0].dim()}))
        for part in layers
        if not how_changed(part)
    ]
    try:
        model(sample)
    finally:
        for hook in hooks:
            hook.remove()
    others: dict[int, nn.Module] = {}
    for part, count in dimensions.items():
        if isinstance(part, DendriticLayer):
            other = as_convolutions(part) if count == 2 else None
        else:
            assert isinstance(part, PlacedLayer)
            placed = max(part.places) > 1 and part.padding != "same" and part.backend == "auto"
            other = part.folded().as_convolutions() if placed and count == len(part.axes) + 2 else None
        if other is not None:
            others[id(part)] = other.eval()
    return copy.deepcopy(model, others) if others else model


def _strip(proto: Any) -> None:
    """Remove the exporter's notes on where each node comes from, which take more space than a small network."""
    del proto.graph.value_info[:]
    for part in (proto.graph, *proto.graph.node, *proto.graph.initializer, *proto.graph.input, *proto.graph.output):
        del part.metadata_props[:]
        part.doc_string = ""


def _check_batches(model: nn.Module, sample: Tensor) -> None:
    """Raise for a model that does not run on batches of several sizes."""
    for size in (1, 2, 3):
        try:
            model(sample[torch.arange(size) % 2])
        except DendritreeError:
            raise
        except Exception as error:  # a model may contain any modules
            name = type(model).__name__
            raise DendritreeError(f"{ANY_BATCH}: {name} fails on {size} samples ({_first_line(error)})") from error


def _program(model: nn.Module, sample: Tensor) -> Any:
    """The exported program. The exporter's messages about packages that are not needed here are silenced."""
    chatter = {logging.getLogger(name): logging.getLogger(name).level for name in ("torch.onnx", "onnxscript")}
    try:
        for logger in chatter:
            logger.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.onnx.export(
                model,
                (sample,),
                dynamo=True,
                dynamic_shapes=({0: torch.export.Dim("batch", max=MOST_ROWS)},),
                input_names=[INPUT],
                output_names=[OUTPUT],
                verbose=False,
            )
    except Exception as error:  # the exporter wraps the original error in its own
        cause = error.__cause__ or error
        raise DendritreeError(f"{type(model).__name__} cannot be exported to ONNX: {_first_line(cause)}") from error
    finally:
        for logger, level in chatter.items():
            logger.setLevel(level)


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]


def _difference(model: nn.Module, sample: Tensor, content: bytes) -> float | None:
    """Largest difference from the model's outputs on batches of 1, 2 and 5; None without onnxruntime."""
    try:
        import onnxruntime
    except ImportError:
        return None
    worst, session = 0.0, None
    for rows in ([0], [0, 1], [0, 1, 1, 0, 1]):
        x = sample[rows]
        wanted = model(x).cpu()
        try:
            session = session or onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
            outputs = torch.from_numpy(session.run(None, {INPUT: x.cpu().numpy()})[0])
            if outputs.shape != wanted.shape:
                raise ShapeError(f"{tuple(outputs.shape)}, not {tuple(wanted.shape)}")
        except Exception as error:  # onnxruntime has its own error classes
            raise DendritreeError(f"{ANY_BATCH}: onnxruntime fails on {len(rows)}: {_first_line(error)}") from error
        scale = max(1.0, wanted.abs().max().item())
        worst = max(worst, (outputs - wanted).abs().max().item() / scale)
    return worst
