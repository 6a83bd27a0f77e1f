"""Models as files for other programs."""

from .onnx import OnnxFile, to_onnx

__all__ = ["OnnxFile", "to_onnx"]
