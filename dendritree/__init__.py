"""Dendritic-tree neurons for PyTorch: the names used most often. Everything else is imported from its own module."""

from __future__ import annotations

TYPE_CHECKING = False  # importing `typing` takes milliseconds in which Ctrl-C ends the command with a traceback
if TYPE_CHECKING:
    from typing import Any

    from .budget import count, matched_mlp, summary
    from .conversion import convert
    from .data import Examples, Split
    from .explanation import explain
    from .layers import DANN, DENN, DMNN, DNM, DendriticConv1d, DendriticConv2d, DendriticLayer, KTree
    from .models import (
        MLP,
        ConvMLN,
        DendriticNetwork,
        DenseNetwork,
        MLNBinaryClassifier,
        MLNClassifier,
        create_model,
        dendritic_preset,
        list_models,
    )
    from .pruning import prune, pruning_curve
    from .sklearn import DendriticClassifier, DendriticRegressor
    from .storage import load, save
    from .storage.onnx import to_onnx
    from .training import EarlyStopping, FitConfig, History, evaluate, fit
    from .training.distillation import distill
    from .training.rewiring import Rewiring
    from .wiring import Custom, Local, Morton, Partition, Patches, Random, Shared, Strided, Tied

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
    "DendriticConv1d",
    "DendriticConv2d",
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
    "Tied",
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

_HOMES = {
    "budget": "count matched_mlp summary",
    "conversion": "convert",
    "data": "Examples Split",
    "explanation": "explain",
    "layers": "DANN DENN DMNN DNM DendriticConv1d DendriticConv2d DendriticLayer KTree",
    "models": "MLP ConvMLN DendriticNetwork DenseNetwork MLNBinaryClassifier MLNClassifier create_model"
    " dendritic_preset list_models",
    "pruning": "prune pruning_curve",
    "sklearn": "DendriticClassifier DendriticRegressor",
    "storage": "load save",
    "storage.onnx": "to_onnx",
    "training": "EarlyStopping FitConfig History evaluate fit",
    "training.distillation": "distill",
    "training.rewiring": "Rewiring",
    "wiring": "Custom Local Morton Partition Patches Random Shared Strided Tied",
}
"""The modules of the public names. Each name is imported when it is first used, so that the command line can show its
version and help without torch, and can handle Ctrl-C during the seconds that importing torch takes."""

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
"""The new modules of names from version 0.1; importing them from the package still works for one more version."""


def __getattr__(name: str) -> Any:
    import importlib.util
    import warnings

    if home := _home(name, _HOMES):
        value = globals()[name] = getattr(importlib.import_module(home), name)
        return value
    if home := _home(name, _MOVED):
        warnings.warn(f"dendritree.{name} is now {home}.{name}", DeprecationWarning, stacklevel=2)
        return getattr(importlib.import_module(home), name)
    if not name.startswith("_") and importlib.util.find_spec(f"{__name__}.{name}"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _home(name: str, homes: dict[str, str]) -> str | None:
    """The module of a name, or None if the name is unknown."""
    return next((f"{__name__}.{module}" for module, names in homes.items() if name in names.split()), None)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - {"TYPE_CHECKING"})
