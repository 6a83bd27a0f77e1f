"""`dendritree export`: a saved model as an ONNX file."""

from __future__ import annotations

import argparse
from pathlib import Path

from .command import Command

__all__ = ["EXPORT"]


def _export(arguments: argparse.Namespace) -> None:
    from ..storage import load_model
    from ..storage.onnx import to_onnx

    file = to_onnx(load_model(arguments.model), arguments.file or Path(arguments.model) / "model.onnx")
    batch = ["batch", *map(str, file.input_shape)], ["batch", *map(str, file.output_shape)]
    print(f"{file.path}: input ({', '.join(batch[0])}) -> output ({', '.join(batch[1])}), opset {file.opset}")
    if file.difference is None:
        print("not compared with the model: onnxruntime is not installed")
    else:
        print(f"onnxruntime gives the model's outputs, to {max(file.difference, 1e-9):.1g}")


EXPORT = Command(
    "export a saved model to a file that needs no torch",
    "",
    _export,
    [
        (("model",), {"metavar": "MODEL", "help": "a folder that dendritree.save wrote"}),
        (("file",), {"nargs": "?", "metavar": "FILE", "help": "the ONNX file (default: model.onnx in the folder)"}),
    ],
    network_example="dendritree export tuned/model model.onnx",
)
