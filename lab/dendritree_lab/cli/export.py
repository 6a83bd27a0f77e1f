"""`dendritree export`: a saved model as an ONNX file."""

from __future__ import annotations

from pathlib import Path

from .options import Arguments, Option

MOST_NAMES = 12
"""Maximum number of input names that are printed."""


def run(arguments: Arguments) -> None:
    """Export a saved model to ONNX, which runs without torch."""
    from dendritree.export.onnx import to_onnx
    from dendritree.storage import load

    from ..data.tables.reading import first_few

    file = to_onnx(load(arguments.model), arguments.file or Path(arguments.model) / "model.onnx")
    inputs, outputs = (", ".join(["batch", *map(str, shape)]) for shape in (file.input_shape, file.output_shape))
    print(f"{file.path}: input ({inputs}) -> output ({outputs}), opset {file.opset}")
    if file.inputs:
        what = "the columns, with NaN for missing cells" if file.raw else "rows as returned by `TableModel.encoded`"
        print(f"inputs: {what}: {first_few(file.inputs, MOST_NAMES)} (names are in the file's metadata)")
    if file.difference is None:
        print("not compared with the model: onnxruntime is not installed")
    else:
        print(f"onnxruntime reproduces the model's outputs to within {max(file.difference, 1e-9):.1g}")


OPTIONS = [
    Option("model MODEL", "folder that `dendritree.save` or `dendritree fit` wrote"),
    Option("file [FILE]", "the ONNX file (default: model.onnx in that folder)"),
]
EXAMPLES = "dendritree export tuned/model model.onnx"
