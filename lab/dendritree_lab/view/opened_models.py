"""What `dendritree view` can open: a saved model, a folder of them, a run with kept models, or a demonstration."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from dendritree.errors import DendritreeError, FormatError, OptionError, check_index
from dendritree.models import create_model
from dendritree.models.holders import estimator_of
from dendritree.storage import load
from dendritree.storage.folders import CONFIG_FILE
from dendritree.training import FitConfig, fit
from dendritree.training.examples import Examples
from dendritree.wiring import Local

from ..data import DATASETS, load_dataset
from ..data.builtin import PAPER
from ..data.inputs import Inputs
from ..data.split import DataSplit
from .column_inputs import REACH, Columns
from .exhibit import Exhibit, Sample, samples_of
from .kept_epochs import EPOCH
from .page_examples import examples_of, exhibit_of
from .pixels import Pixels

MOST_MODELS = 500
MOST_COLUMNS = 19
"""Maximum number of columns with their own sample, besides the mean row."""
DEMO: dict[str, dict[str, Any]] = {
    "one neuron per digit": {"model": "mln", "branching": 4, "wiring": "morton", "repeats": 4},
    "neurons on neurons": {
        "model": "dendritic-network",
        "hidden": [40],
        "branching": [6, 4],
        "wiring": Local(window=4),
        "norm": "batch",
        "readout": "dendritic",
    },
}


@dataclass(frozen=True, eq=False)
class Gallery:
    """The models that can be shown. Each is opened on first use and then cached.

    >>> gallery = Gallery("none", ["a", "b"], lambda number: None)
    >>> gallery[7]
    Traceback (most recent call last):
    dendritree.errors.OptionError: model must be one of 0 ... 1: got 7
    """

    title: str
    names: Sequence[str]
    opener: Callable[[int], Exhibit]

    @property
    def is_training(self) -> bool:
        """Whether these are the epochs of one training run, which can be played."""
        return len(self.names) > 1 and all(name.startswith(EPOCH) for name in self.names)

    def __post_init__(self) -> None:
        object.__setattr__(self, "opener", lru_cache(16)(self.opener))

    def __getitem__(self, number: int) -> Exhibit:
        return self.opener(check_index("model", number, len(self.names)))


def open_gallery(path: str | os.PathLike[str], **options: Any) -> Gallery:
    """The models under a path: one that `save` or `dendritree fit` wrote, a folder of such, or a run with kept models.

    Args:
        path: the folder.
        options: `image`, `data`, `target` and `normalized` of `exhibit_of`, for saved models; a run records them, and
            `dendritree tune` writes them to a file next to the model.

    >>> open_gallery("nowhere")
    Traceback (most recent call last):
    dendritree.errors.FormatError: nowhere has no model (config.json) and no run (trials.sqlite) to view
    """
    from ..studies.engine.store import STORE_FILE

    folder = Path(path)
    if (folder / STORE_FILE).is_file():
        given = ", ".join(name for name, value in options.items() if value is not None)
        if given:
            raise OptionError(f"a run records the settings of its models: remove {given}")
        return _run_gallery(folder)
    folders = [folder]
    if not (folder / CONFIG_FILE).is_file():
        folders = sorted(config.parent for config in folder.rglob(CONFIG_FILE))[:MOST_MODELS]
    if not folders:
        raise FormatError(f"{folder} has no model ({CONFIG_FILE}) and no run ({STORE_FILE}) to view")
    names = [str(each.relative_to(folder)) if each != folder else Path(folder).resolve().name for each in folders]

    def opened(number: int) -> Exhibit:
        place = folders[number].resolve()
        model = load(place)
        if not isinstance(model, nn.Module):
            return exhibit_of_estimator(names[number], model, **options)
        inputs = Inputs.read(place) or Inputs.read(place.parent)
        return exhibit_of(names[number], model, inputs=inputs, **options)

    return Gallery(Path(folder).resolve().name, names, opened)


def _run_gallery(folder: Path) -> Gallery:
    from ..studies.engine.export_files import kept_model
    from ..studies.engine.store import RunStore
    from ..studies.paper.paper_trials import STUDY, PaperTrial

    with RunStore.open_for_reading(folder) as store:
        kept = [PaperTrial.of(trial) for trial in store.kept_trials() if trial.study == STUDY]
    if not kept:
        raise FormatError(f"the run in {folder} has no kept models to view")
    kept.sort(key=lambda trial: (not trial.row.dendritic, trial.row.task != "multiclass", trial.row.table))
    names = [f"{each.row.task}: {each.row.model}, p={each.row.dropout:g}, {each.protocol}" for each in kept]

    def opened(number: int) -> Exhibit:
        trial, samples = kept[number], []
        dataset = trial.config["dataset"]
        model, classes = kept_model(trial), DATASETS[dataset].class_names
        pixels = Pixels((1, 28, 28), PAPER, side=32, as_image=hasattr(model, "input_shape"))
        notes = [f"Trained on {dataset}; validation accuracy {trial.at_best('val_acc'):.1%}."]
        try:
            samples = samples_of(examples_of(dataset)[0], classes)
        except DendritreeError as error:
            notes.append(f"No samples: {error}")
        return Exhibit(names[number], model, pixels, classes, samples, notes=notes)

    return Gallery(Path(folder).resolve().name, names, opened)


def exhibit_of_estimator(name: str, model: Any, **options: Any) -> Exhibit:
    """A fitted estimator, or a table model, as an exhibit.

    The samples of an estimator are rows around the mean of its training rows; that of a table is its typical row.

    >>> from sklearn.datasets import load_iris
    >>> from dendritree.sklearn import DendriticClassifier
    >>> rows, kinds = load_iris(return_X_y=True, as_frame=True)
    >>> exhibit = exhibit_of_estimator("iris", DendriticClassifier(epochs=2).fit(rows, kinds))
    >>> exhibit.features[0], exhibit.class_names, exhibit.samples[1].label
    ('sepal length (cm)', ['0', '1', '2'], 'sepal length (cm) + 1 sd')
    """
    given = ", ".join(option for option, value in options.items() if value is not None)
    if given:
        raise OptionError(f"an estimator has its own columns and scaling: remove {given}")
    estimator = estimator_of(model)
    module = estimator.as_module(probabilities=False)
    scale, _, _ = estimator.output_units()
    classes = [str(each) for each in getattr(estimator, "classes_", ())]
    if not classes and len(scale) > 1:
        raise OptionError(f"a regression model must have one output to be shown: got {len(scale)}")
    encoding = getattr(model, "encoding", None)
    own = getattr(estimator, "feature_names_in_", [f"x{number}" for number in range(module.in_features)])
    features = [str(each) for each in (own if encoding is None else encoding.features)]
    mean, deviation = module.mean.cpu(), module.deviation.cpu()
    if encoding is not None:
        columns, target = Columns.of_encoding(encoding, mean, deviation), str(model.target)
        cells = [control.value for control in columns.controls]
        samples = [Sample(columns.base[None], "the typical row", cells)]
        note = (
            f"Target: {target}. The typical row has the median of every number and the most frequent category. "
            "Sliders extend three standard deviations to either side of the mean."
        )
    else:
        columns, target = Columns.of_inputs(features, mean, mean - REACH * deviation, mean + REACH * deviation), ""
        above = zip(torch.diag(deviation)[:MOST_COLUMNS], features, strict=False)
        samples = [Sample(mean[None], "the mean row")]
        samples += [Sample((mean + row)[None], f"{label} + 1 sd") for row, label in above]
        note = "Samples: the mean of the training rows, and each column in turn one standard deviation above it."
    shown: dict[str, Any] = {
        "classes": classes,
        "samples": samples,
        "features": features,
        "columns": columns,
        "target": target,
    }
    return Exhibit(name, module, None, **shown, notes=[note])


def demo_gallery(epochs: int = 12) -> Gallery:
    """Two small models, trained on scikit-learn's digits when they are opened: a few seconds on an idle core."""
    split = _with_shifts(load_dataset("digits"))
    return Gallery("demonstration", list(DEMO), partial(_demo, split, epochs))


def _demo(split: DataSplit, epochs: int, number: int) -> Exhibit:
    """Train one of the two models. Torch's random state is not changed."""
    name = list(DEMO)[number]
    options = dict(DEMO[name])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = create_model(str(options.pop("model")), in_features=64, out_features=10, output="logits", **options)
        fit(model, split, FitConfig(epochs=epochs, lr=0.03, schedule="one-cycle"))
    return exhibit_of(name, model, data="digits", normalized=False)


def _with_shifts(split: DataSplit) -> DataSplit:
    """Add the training images shifted by one pixel to the left and right, as drawings may be."""
    images = F.pad(split.train.x.reshape(-1, 8, 8), (1, 1))
    x = torch.cat([images[:, :, shift : shift + 8].reshape(-1, 64) for shift in (1, 0, 2)])
    return replace(split, train=Examples(x, split.train.y.repeat(3)))
