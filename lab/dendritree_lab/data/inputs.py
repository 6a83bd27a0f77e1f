"""What a model was trained on, saved next to it: where the data is, its shape and names, and how it was scaled."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dendritree.errors import FormatError
from dendritree.files import write_whole

from .split import Scaling

INPUTS_FILE = "inputs.json"


@dataclass(frozen=True)
class Inputs:
    """The inputs and outputs of a model, described in terms of its data.

    >>> import tempfile
    >>> inputs = Inputs("pets", classes=("cat", "dog"), image_shape=(1, 8, 8), scaling=Scaling((0.5,), (0.25,)))
    >>> folder = Path(tempfile.mkdtemp())
    >>> inputs.write(folder)
    >>> Inputs.read(folder) == inputs, Inputs.read(folder.parent) is None
    (True, True)
    """

    data: str | None = None
    """The argument of `load_dataset`: a built-in name or a path; None for examples that were in memory."""
    target: str | None = None
    """The column of a table."""
    image: tuple[int, int, int] | None = None
    """The shape that images were resized to, if that was requested."""
    image_shape: tuple[int, int, int] | None = None
    classes: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    scaling: Scaling | None = None
    """How x was scaled; None if it was not."""

    def write(self, folder: Path) -> None:
        """Write it into a folder."""
        text = json.dumps(asdict(self), indent=2, ensure_ascii=False)
        write_whole(folder / INPUTS_FILE, f"{text}\n", "the description of the inputs")

    @classmethod
    def read(cls, folder: Path) -> Inputs | None:
        """Read it from a folder; None if there is none."""
        path = folder / INPUTS_FILE
        if not path.is_file():
            return None
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            fields: dict[str, Any] = {name: tuple(map(str, values[name])) for name in ("classes", "features")}
            for name in ("image", "image_shape"):
                fields[name] = None if values[name] is None else tuple(map(int, values[name]))
            if (scaling := values["scaling"]) is not None:
                mean, sd = (tuple(map(float, scaling[name])) for name in ("mean", "sd"))
                fields["scaling"] = Scaling(mean, sd, None if scaling["clip"] is None else float(scaling["clip"]))
            return cls(values["data"], values["target"], **fields)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FormatError(f"{path} must be a file written by `dendritree tune`: {error!r}") from None
