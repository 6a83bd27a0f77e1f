"""Dendritic-tree neurons for PyTorch.

Layers, the paper's models and their controls, parameter budgets, files, training: the names below are the library.
"""

from .budget import Count, count, matched_mln, matched_mlp
from .conversion import Change, ConversionReport, LeftAlone, convert
from .errors import DendritreeError, FormatError, MissingDataError, MissingExtraError, OptionError, ShapeError
from .explanation import Explanation, ModelExplanation, explain
from .layers import DANN, DENN, DMNN, DNM, DendriticLayer, KTree, share_wiring
from .models import (
    MLP,
    ConvDNM,
    ConvMLN,
    ConvMLP,
    ConvPerceptrons,
    DANNClassifier,
    DendriticNetwork,
    DenseNetwork,
    MLNBinaryClassifier,
    MLNClassifier,
    NeuronNetwork,
    Perceptrons,
    create_model,
    list_models,
)
from .models.presets import dendritic_preset
from .pruning import PruningPoint, importances, prune, pruning_curve
from .storage import load, save
from .storage.masked import from_masked, load_masked, to_masked
from .storage.onnx import OnnxFile, to_onnx
from .studies.paper.parameters import paper_rows
from .training import FitConfig, History, fit
from .training.distillation import distill
from .training.rewiring import Rewiring, rewire
from .tree import Forest
from .wiring import Columns, Custom, Local, Morton, Partition, Patches, Random, Rows, Shared, Strided, Wiring

__version__ = "0.1.0"

__all__ = [
    "DANN",
    "DENN",
    "DMNN",
    "DNM",
    "MLP",
    "Change",
    "Columns",
    "ConvDNM",
    "ConvMLN",
    "ConvMLP",
    "ConvPerceptrons",
    "ConversionReport",
    "Count",
    "Custom",
    "DANNClassifier",
    "DendriticLayer",
    "DendriticNetwork",
    "DendritreeError",
    "DenseNetwork",
    "Explanation",
    "FitConfig",
    "Forest",
    "FormatError",
    "History",
    "KTree",
    "LeftAlone",
    "Local",
    "MLNBinaryClassifier",
    "MLNClassifier",
    "MissingDataError",
    "MissingExtraError",
    "ModelExplanation",
    "Morton",
    "NeuronNetwork",
    "OnnxFile",
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
    "convert",
    "count",
    "create_model",
    "dendritic_preset",
    "distill",
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
    "share_wiring",
    "to_masked",
    "to_onnx",
]
