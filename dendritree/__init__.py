"""Dendritic-tree neurons for PyTorch: what a user types often. Everything else lives in its module."""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

from .budget import count, matched_mlp, summary
from .conversion import convert
from .data import Examples, Split
from .explanation import explain
from .layers import DANN, DENN, DMNN, DNM, DendriticLayer, KTree
from .models import (
    MLP,
    ConvMLN,
    DendriticNetwork,
    DenseNetwork,
    MLNBinaryClassifier,
    MLNClassifier,
    create_model,
    list_models,
)
from .models.presets import dendritic_preset
from .pruning import prune, pruning_curve
from .storage import load, save
from .storage.onnx import to_onnx
from .training import EarlyStopping, FitConfig, History, evaluate, fit
from .training.distillation import distill
from .training.rewiring import Rewiring
from .wiring import Custom, Local, Morton, Partition, Patches, Random, Shared, Strided

if TYPE_CHECKING:
    from .sklearn import DendriticClassifier, DendriticRegressor

__version__ = "0.2.0.dev0"

__all__ = [
    "DANN",
    "DENN",
    "DMNN",
    "DNM",
    "MLP",
    "ConvMLN",
    "Custom",
    "DendriticClassifier",
    "DendriticLayer",
    "DendriticNetwork",
    "DendriticRegressor",
    "DenseNetwork",
    "EarlyStopping",
    "Examples",
    "FitConfig",
    "History",
    "KTree",
    "Local",
    "MLNBinaryClassifier",
    "MLNClassifier",
    "Morton",
    "Partition",
    "Patches",
    "Random",
    "Rewiring",
    "Shared",
    "Split",
    "Strided",
    "__version__",
    "convert",
    "count",
    "create_model",
    "dendritic_preset",
    "distill",
    "evaluate",
    "explain",
    "fit",
    "list_models",
    "load",
    "matched_mlp",
    "prune",
    "pruning_curve",
    "save",
    "summary",
    "to_onnx",
]

_LAZY = ("DendriticClassifier", "DendriticRegressor")
"""Of `dendritree.sklearn`, imported when somebody asks: they extend scikit-learn's classes."""

_MOVED = {
    "budget": "Count matched_mln",
    "conversion": "Change ConversionReport LeftAlone",
    "errors": "DendritreeError FormatError MissingDataError MissingExtraError OptionError ShapeError",
    "explanation": "Explanation ModelExplanation",
    "layers": "share_wiring",
    "models": "ConvDNM ConvMLP ConvPerceptrons DANNClassifier NeuronNetwork Perceptrons",
    "pruning": "PruningPoint importances",
    "storage.masked": "from_masked load_masked to_masked",
    "storage.onnx": "OnnxFile",
    "studies.paper.parameters": "paper_rows",
    "training.rewiring": "rewire",
    "tree": "Forest",
    "wiring": "Columns Rows Wiring",
}
"""Where names of version 0.1 live now; they work from here for one more version."""


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(".sklearn", __name__), name)
    for module, names in _MOVED.items():
        if name in names.split():
            where = f"{__name__}.{module}"
            warnings.warn(f"dendritree.{name} is now {where}.{name}", DeprecationWarning, stacklevel=2)
            return getattr(importlib.import_module(where), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
