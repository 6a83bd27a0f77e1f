"""What is run, as data: one TOML file per table, read into frozen dataclasses that reject unknown keys."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from dendritree.errors import FormatError, OptionError, check_int, check_one_of, check_probability
from dendritree.models.registry import list_models

from .records import Row

TASKS = ("binary", "multiclass", "cnn")
"""Tasks in the order they are run: the fast ones first."""


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
        object.__setattr__(self, "size", check_int("size", self.size, least=0))
        object.__setattr__(self, "full_dropout", check_probability("full_dropout", self.full_dropout))
        object.__setattr__(self, "full_trials", check_int("full_trials", self.full_trials))
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
        for name in ("table", "title", "label"):
            if not isinstance(getattr(self, name), str):
                raise OptionError(f"{name} must be a string: got {getattr(self, name)!r}")
        check_one_of("task", self.task, TASKS)
        check_one_of("dataset", self.dataset, ("mnist", "mnist-4-9", "fashion-mnist"))
        for name in ("trials", "stack"):
            object.__setattr__(self, name, check_int(name, getattr(self, name)))
        if isinstance(self.lr, bool) or not isinstance(self.lr, int | float) or not 0 < self.lr < math.inf:
            raise OptionError(f"lr must be a positive number: got {self.lr!r}")
        object.__setattr__(self, "dropouts", tuple(check_probability("dropouts", p) for p in self.dropouts))
        if not self.dropouts or not self.models:
            raise OptionError(f"a table must have models and dropouts: {self.table} has none")
        names = [(model.network, model.size) for model in self.models]
        if len(set(names)) < len(names) or len(set(self.dropouts)) < len(self.dropouts):
            raise OptionError(f"models and dropouts of a table must differ: got {names} and {self.dropouts}")

    @cached_property
    def out_features(self) -> int:
        """The number of classes; 1 for binary classification."""
        return 1 if self.task == "binary" else 10

    def row(self, model: ModelSpec, dropout: float) -> Row:
        """The row of a model at a dropout."""
        return Row(self.table, self.task, model.network, model.size, dropout)

    def as_config(self) -> dict[str, Any]:
        """Everything that determines the result of a trial, as JSON values; the number of trials is not part of it."""
        config = asdict(self) | {"dropouts": list(self.dropouts)}
        del config["trials"], config["models"]
        config["models"] = {f"{m.network} {m.size}": {"full_dropout": m.full_dropout} for m in self.models}
        return config


def _control(text: object) -> tuple[str, int]:
    """`mlp 30` -> ("mlp", 30); `perceptrons` -> ("perceptrons", 0)."""
    name, _, size = str(text).partition(" ")
    check_one_of("a control's network", name, list_models())
    if size and not size.isdecimal():
        raise OptionError(f"a control must be a network and a size, as 'mlp 30': got {text!r}")
    return name, int(size or 0)


def _build(kind: type, values: Mapping[str, Any], where: str) -> Any:
    """Build a dataclass from plain values; errors name unknown and missing keys."""
    known = {field.name: field for field in fields(kind)}
    for key in values:
        check_one_of(f"a key of {where}", key, known)
    missing = [name for name, field in known.items() if name not in values and field.default is MISSING]
    if missing:
        raise OptionError(f"{where} needs {', '.join(missing)}: got {', '.join(values) or 'nothing'}")
    return kind(**values)


def read_spec(path: str | Path) -> TableSpec:
    """Read a table's TOML file.

    >>> read_spec(paper_folder() / "specs" / "multiclass-mlp.toml").title
    'Their controls: MLPs on MNIST'
    """
    path = Path(path)
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FormatError(f"a spec must be a TOML file: no {path}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"a spec must be TOML: {path.name}: {error}") from None
    try:
        models = values.get("models", [])
        if not isinstance(models, list) or not all(isinstance(model, dict) for model in models):
            raise OptionError(f"models must be tables, [[models]]: got {models!r}")
        built = tuple(_build(ModelSpec, model, "a model") for model in models)
        spec: TableSpec = _build(TableSpec, values | {"models": built}, "a spec")
    except (OptionError, TypeError) as error:
        raise FormatError(f"{path.name}: {error}") from None
    return spec


def paper_folder() -> Path:
    """Where the paper's specs and numbers are.

    >>> (paper_folder() / "specs").is_dir(), (paper_folder() / "expected").is_dir()
    (True, True)
    """
    return Path(__file__).parent


def read_specs(folder: Path | None = None) -> list[TableSpec]:
    """All tables of the paper, fast tasks first, dendritic before control.

    >>> [spec.table for spec in read_specs()][:3]
    ['binary-dendritic', 'binary-mlp', 'multiclass-dendritic']
    """
    specs = [read_spec(path) for path in sorted((folder or paper_folder() / "specs").glob("*.toml"))]
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
    return {
        (spec.task, model.size): [_control(control) for control in model.controls]
        for spec in specs
        for model in spec.models
        if model.controls
    }
