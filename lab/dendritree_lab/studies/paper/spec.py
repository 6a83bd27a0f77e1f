"""What is run, as data: the paper's tables, one TOML file each, and the protocols by which their trials are run."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any

from dendritree.errors import FormatError, OptionError, check_int, check_one_of, check_probability
from dendritree.models.chain import OUTPUTS
from dendritree.models.registry import list_models

TASKS = ("binary", "multiclass", "cnn")
"""Tasks in the order they are run: the fast ones first."""
DRAWS = ("per-trial", "once", "ten", "all")
TRIALS_OF_A_DRAW = 10
"""How many trials share a draw if there are ten draws: as many as the paper has in all."""
PAPER_FOLDER = Path(__file__).parent
"""Where the paper's specs and numbers are."""


@dataclass(frozen=True, order=True)
class TableRow:
    """A row of a table of results: one model at one dropout, for all its trials."""

    table: str
    """Name of the spec, such as `multiclass-dendritic`."""
    task: str
    """`binary`, `multiclass` or `cnn`: rows of one task are compared."""
    network: str
    """Name of the model in the registry, such as `mln`, `mlp` or `perceptrons`."""
    size: int
    """Branching of a dendritic model, hidden units of an MLP, 0 for perceptrons."""
    dropout: float

    @property
    def dendritic(self) -> bool:
        """Whether the model has trees.

        >>> TableRow("multiclass-dendritic", "multiclass", "mln", 32, 0.4).dendritic
        True
        """
        return "mln" in self.network

    @property
    def model(self) -> str:
        """The name of the model in tables.

        >>> TableRow("multiclass-mlp", "multiclass", "mlp", 11, 0.0).model
        'MLP h=11'
        """
        if self.dendritic:
            return f"dendritic b={self.size}"
        return f"MLP h={self.size}" if self.size else "perceptrons"


# --------------------------------------------------------------------------------------------------------- the tables


@dataclass(frozen=True)
class ModelSpec:
    """A model in a table, which runs it at each of its dropouts."""

    network: str
    """Its name in the model registry."""
    size: int
    """Branching, hidden units, or 0 for perceptrons."""
    full_dropout: float
    """The dropout that protocol `full` runs besides 0: the paper's best one for this model, or for the nearest one."""
    full_trials: int = 3
    """Number of seeds in protocol `full`."""
    controls: tuple[str, ...] = ()
    """What the model is compared with, such as `mlp 30` or `perceptrons`; the paper's own control first."""
    extra: bool = False
    """Whether the paper has no such row."""

    def __post_init__(self) -> None:
        check_one_of("network", self.network, list_models())
        check_int("size", self.size, least=0)
        check_probability("full_dropout", self.full_dropout)
        check_int("full_trials", self.full_trials)
        object.__setattr__(self, "controls", tuple(self.controls))
        for control in self.controls:
            _control(control)


@dataclass(frozen=True)
class TableSpec:
    """A table of results: its models, each at every dropout with several trials."""

    table: str
    """Its name here, such as `multiclass-dendritic`."""
    title: str
    label: str
    """Its label in the paper."""
    task: str
    """One of `TASKS`."""
    dataset: str
    lr: float
    """Learning rate of protocol `paper`."""
    dropouts: tuple[float, ...]
    trials: int
    stack: int
    """Trials trained together as one model."""
    models: tuple[ModelSpec, ...]

    def __post_init__(self) -> None:
        check_one_of("task", self.task, TASKS)
        check_one_of("dataset", self.dataset, ("mnist", "mnist-4-9", "fashion-mnist"))
        for name in ("trials", "stack"):
            check_int(name, getattr(self, name))
        if not self.lr > 0:
            raise OptionError(f"lr must be a positive number: got {self.lr!r}")
        object.__setattr__(self, "dropouts", tuple(check_probability("dropouts", p) for p in self.dropouts))
        names = [(model.network, model.size) for model in self.models]
        if len(set(names)) < len(names) or len(set(self.dropouts)) < len(self.dropouts):
            raise OptionError(f"models and dropouts of a table must differ: got {names} and {self.dropouts}")

    @property
    def out_features(self) -> int:
        """The number of classes; 1 for binary classification."""
        return 1 if self.task == "binary" else 10

    def row(self, model: ModelSpec, dropout: float) -> TableRow:
        """The row of a model at a dropout."""
        return TableRow(self.table, self.task, model.network, model.size, dropout)

    def as_config(self) -> dict[str, Any]:
        """Everything that determines the result of a trial, as JSON values; the number of trials is not part of it."""
        config = asdict(self) | {"dropouts": list(self.dropouts)}
        del config["trials"], config["models"]
        config["models"] = {f"{m.network} {m.size}": {"full_dropout": m.full_dropout} for m in self.models}
        return config


def _control(text: str) -> tuple[str, int]:
    """`mlp 30` -> ("mlp", 30); `perceptrons` -> ("perceptrons", 0)."""
    name, _, size = text.partition(" ")
    return check_one_of("a control's network", name, list_models()), int(size or 0)


def _build(kind: type, values: Mapping[str, Any], where: str) -> Any:
    """Build a dataclass from plain values; errors name unknown and missing keys."""
    known = {field.name: field for field in fields(kind)}
    for key in values:
        check_one_of(f"a key of {where}", key, known)
    if missing := [name for name, field in known.items() if name not in values and field.default is MISSING]:
        raise OptionError(f"{where} lacks {', '.join(missing)}")
    return kind(**values)


def read_spec(path: str | Path) -> TableSpec:
    """Read a table's TOML file.

    >>> read_spec(PAPER_FOLDER / "specs" / "multiclass-mlp.toml").title
    'Their controls: MLPs on MNIST'
    """
    path = Path(path)
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
        models = tuple(_build(ModelSpec, model, "a model") for model in values.get("models", []))
        spec: TableSpec = _build(TableSpec, values | {"models": models}, "a spec")
    except (OSError, TypeError, ValueError) as error:
        raise FormatError(f"cannot read the spec {path}: {error}") from None
    return spec


def read_specs(folder: Path | None = None) -> list[TableSpec]:
    """All tables of the paper, fast tasks first, dendritic before control.

    >>> [spec.table for spec in read_specs()][:3]
    ['binary-dendritic', 'binary-mlp', 'multiclass-dendritic']
    """
    specs = [read_spec(path) for path in sorted((folder or PAPER_FOLDER / "specs").glob("*.toml"))]
    return sorted(specs, key=lambda spec: (TASKS.index(spec.task), spec.table))


def select(specs: Sequence[TableSpec], names: Iterable[str]) -> list[TableSpec]:
    """The tables with these names or of these tasks; all of them if no name is given.

    >>> [spec.table for spec in select(read_specs(), ["multiclass"])]
    ['multiclass-dendritic', 'multiclass-mlp']
    """
    wanted = set(names)
    for name in wanted:
        check_one_of("a table or task", name, [*TASKS, *(spec.table for spec in specs)])
    return [spec for spec in specs if not wanted or spec.table in wanted or spec.task in wanted]


def matches(specs: Iterable[TableSpec]) -> dict[tuple[str, int], list[tuple[str, int]]]:
    """The controls of each dendritic model, (task, branching) -> [(network, size), ...]; the paper's own first.

    >>> matches(read_specs())["multiclass", 4]
    [('mlp', 14), ('mlp', 16), ('perceptrons', 0)]
    """
    models = [(spec.task, model) for spec in specs for model in spec.models if model.controls]
    return {(task, model.size): [_control(control) for control in model.controls] for task, model in models}


# ------------------------------------------------------------------------------------------------------ the protocols


@dataclass(frozen=True)
class Protocol:
    """How every trial of a run is trained: where its examples come from, and how the model is evaluated."""

    name: str
    draw: str
    """`per-trial`: each trial draws its own few images, the same for all models; `once`: one draw for all trials, as
    the authors did; `ten`: the same with ten draws of ten trials each; `all`: the data set's fixed parts."""
    epochs: int
    output: str
    """What the models pass to the loss, `probabilities` or `logits`."""
    train_images: int | None = None
    """Number of images drawn for training; None for all."""
    val_images: int | None = None
    batch_size: int | None = None
    """None uses all training images in every step, so that an epoch is one step."""
    lr_grid: tuple[float, ...] = ()
    """Learning rates to choose from, by the validation loss of one trial each; if empty, the spec's is used."""
    every_dropout: bool = True
    """Whether to run all dropouts of the spec, or only 0 and the model's best one."""
    tests: bool = False
    """Whether the best epoch's weights are evaluated on the test set, once."""

    def __post_init__(self) -> None:
        check_one_of("draw", self.draw, DRAWS)
        check_one_of("output", self.output, OUTPUTS)
        check_int("epochs", self.epochs)

    def draw_of(self, index: int) -> int:
        """The number of the draw that a trial trains on.

        >>> from dataclasses import replace
        >>> [PAPER.draw_of(13), replace(PAPER, draw="once").draw_of(13), replace(PAPER, draw="ten").draw_of(13)]
        [13, 0, 1]
        """
        return {"once": 0, "ten": index // TRIALS_OF_A_DRAW}.get(self.draw, index)

    def as_config(self) -> dict[str, Any]:
        """The protocol as JSON values."""
        return asdict(self) | {"lr_grid": list(self.lr_grid)}


PAPER = Protocol(  # what the authors did, according to their per-epoch data
    name="paper",
    draw="per-trial",  # NOTE[DIFF]: the authors drew once for all trials of a task; `--draw once` does that
    epochs=100,
    output="probabilities",
    train_images=128,
    val_images=100,
)
FULL = Protocol(  # a sensible reading of the paper's text
    name="full",
    draw="all",
    epochs=20,
    output="logits",
    batch_size=128,
    lr_grid=(0.001, 0.003, 0.01, 0.03),
    every_dropout=False,
    tests=True,
)
PROTOCOLS = {protocol.name: protocol for protocol in (PAPER, FULL)}
"""Protocols by name."""
LR_SEARCH = "full, learning rates"
"""The protocol name of the trials by which `full` selects learning rates: trial i has the grid's rate i."""
