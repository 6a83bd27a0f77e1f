"""Dendritic-tree neurons for PyTorch.

Layers, the paper's models and their controls, parameter budgets, files, training: the names below are the library.
"""

from .budget import Count, count, matched_mln, matched_mlp, paper_rows
from .errors import DendritreeError, FormatError, MissingDataError, MissingExtraError, OptionError, ShapeError
from .layers import DMNN, DNM, DendriticLayer
from .masked import from_masked, load_masked, to_masked
from .models import (
    MLP,
    ConvDNM,
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
from .training import FitConfig, History, fit
from .tree import Forest
from .wiring import Columns, Custom, Local, Morton, Partition, Patches, Random, Rows, Shared, Strided, Wiring

__version__ = "0.1.0"

__all__ = [
    "DMNN",
    "DNM",
    "MLP",
    "Columns",
    "ConvDNM",
    "ConvMLN",
    "ConvMLP",
    "ConvPerceptrons",
    "Count",
    "Custom",
    "DendriticLayer",
    "DendriticNetwork",
    "DendritreeError",
    "DenseNetwork",
    "FitConfig",
    "Forest",
    "FormatError",
    "History",
    "Local",
    "MLNBinaryClassifier",
    "MLNClassifier",
    "MissingDataError",
    "MissingExtraError",
    "Morton",
    "OptionError",
    "Partition",
    "Patches",
    "Perceptrons",
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
    "fit",
    "from_masked",
    "list_models",
    "load",
    "load_masked",
    "matched_mln",
    "matched_mlp",
    "paper_rows",
    "rewire",
    "save",
    "to_masked",
]
