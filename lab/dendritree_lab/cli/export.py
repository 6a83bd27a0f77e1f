"""`dendritree export`: a saved model as an ONNX file, or as a C file for small devices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .options import Arguments, Option

MOST_NAMES = 12
"""Maximum number of input names that are printed."""


def run(arguments: Arguments) -> None:
    """Export a saved model to ONNX, or to C for small devices."""
    from dendritree.errors import OptionError
    from dendritree.storage import load

    target = Path(arguments.file or Path(arguments.model) / "model.onnx")
    given = [f"--{name}" for name in ("int8", "bits", "data", "name") if getattr(arguments, name)]
    if given and target.suffix != ".c":
        raise OptionError(f"{given[0]} is for C files: the file name must end in .c, got {target}")
    model = load(arguments.model)
    if target.suffix == ".c":
        _export_c(model, target, arguments)
    else:
        _export_onnx(model, target)


def _export_onnx(model: Any, target: Path) -> None:
    from dendritree.export.onnx import to_onnx

    from ..data.tables.reading import first_few

    file = to_onnx(model, target)
    inputs, outputs = (", ".join(["batch", *map(str, shape)]) for shape in (file.input_shape, file.output_shape))
    print(f"{file.path}: input ({inputs}) -> output ({outputs}), opset {file.opset}")
    if file.inputs:
        what = "the columns, with NaN for missing cells" if file.raw else "rows as returned by `TableModel.encoded`"
        print(f"inputs: {what}: {first_few(file.inputs, MOST_NAMES)} (names are in the file's metadata)")
    if file.difference is None:
        print("not compared with the model: onnxruntime is not installed")
    else:
        print(f"onnxruntime reproduces the model's outputs to within {max(file.difference, 1e-9):.1g}")


def _export_c(model: Any, target: Path, arguments: Arguments) -> None:
    from torch import nn

    from dendritree.export.c_file import to_c

    from ..data import load_dataset

    examples = labels = None
    if arguments.data:
        split = load_dataset(arguments.data)
        part = split.scaled().val if isinstance(model, nn.Module) else split.val
        examples, labels = part.x, part.y if split.classes else None
    int8, bits = bool(arguments.int8 or arguments.bits), arguments.bits or 8
    file = to_c(model, target, examples=examples, labels=labels, name=arguments.name or "model", int8=int8, bits=bits)
    print(f"{file.path}: {file.inputs} inputs -> {file.outputs} outputs, {file.multiply_adds:,} multiply-adds")
    if file.difference is None:
        print("not compared with the model: no C compiler was found")
    else:
        print(f"compiled, the file reproduces the model's scores to within {max(file.difference, 1e-9):.1g}")
    if file.same_class is not None and examples is not None:
        print(f"it predicts the same class as the model for {file.same_class:.2%} of {len(examples):,} examples")
    if file.accuracy is not None:
        print(f"accuracy {file.accuracy[1]:.4f} (model: {file.accuracy[0]:.4f})")
    for sizes in file.sizes:
        print(sizes)


OPTIONS = [
    Option("model MODEL", "folder written by `dendritree.save` or `dendritree fit`"),
    Option("file [FILE]", "ONNX file, or C file if its name ends in .c (default: model.onnx in that folder)"),
    Option("--int8", "C: integers instead of floats; needs --data unless the model reads a table"),
    Option("--bits N", "C: bits per weight, 8 or 4; implies --int8", type=int),
    Option("--data DATA", "C: data whose validation examples calibrate the integers and test the result"),
    Option("--name NAME", "C: prefix of the function names (default: model)"),
]
EXAMPLES = "dendritree export tuned/model model.onnx\ndendritree export tuned/model model.c --int8 --data mnist"
