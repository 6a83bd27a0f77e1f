"""Models as files for other programs."""

from .c_file import CFile, to_c
from .onnx import OnnxFile, to_onnx

__all__ = ["CFile", "OnnxFile", "to_c", "to_onnx"]
