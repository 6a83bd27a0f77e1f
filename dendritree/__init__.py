"""Dendritic-tree neurons for PyTorch.

Layers, the paper's models and their controls, parameter budgets, files, training: the names below are the library.
"""

from .budget import Count, count, matched_mln, matched_mlp, paper_rows
from .errors import DendritreeError, FormatError, MissingDataError, MissingExtraError, OptionError, ShapeError
from .explain import Explanation, ModelExplanation, explain
from .layers import DendriticLayer
from .masked import from_masked, load_masked, to_masked
from .models import (
    MLP,
    ConvMLN,
    ConvMLP,
    ConvPerceptrons,
    DendriticNetwork,
    DenseNetwork,
    MLNBinaryClassifier,
    MLNClassifier,
    Perceptrons,
    create_model,
    list_models,
    load,
    save,
)
from .plasticity import Rewiring, rewire
from .presets import dendritic_preset
from .prune import PruningPoint, importances, prune, pruning_curve
from .training import FitConfig, History, fit
from .tree import Forest
from .wiring import Columns, Custom, Local, Morton, Partition, Patches, Random, Rows, Shared, Strided, Wiring

__version__ = "0.1.0"

__all__ = [
    "MLP",
    "Columns",
    "ConvMLN",
    "ConvMLP",
    "ConvPerceptrons",
    "Count",
    "Custom",
    "DendriticLayer",
    "DendriticNetwork",
    "DendritreeError",
    "DenseNetwork",
    "Explanation",
    "FitConfig",
    "Forest",
    "FormatError",
    "History",
    "Local",
    "MLNBinaryClassifier",
    "MLNClassifier",
    "MissingDataError",
    "MissingExtraError",
    "ModelExplanation",
    "Morton",
    "OptionError",
    "Partition",
    "Patches",
    "Perceptrons",
    "PruningPoint",
    "Random",
    "Rewiring",
    "Rows",
    "ShapeError",
    "Shared",
    "Strided",
    "Wiring",
    "__version__",
    "count",
    "create_model",
    "dendritic_preset",
    "explain",
    "fit",
    "from_masked",
    "importances",
    "list_models",
    "load",
    "load_masked",
    "matched_mln",
    "matched_mlp",
    "paper_rows",
    "prune",
    "pruning_curve",
    "rewire",
    "save",
    "to_masked",
]
