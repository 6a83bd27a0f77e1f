"""How trials are run, as data. A protocol says where examples come from and how a model is trained and evaluated.

`paper` is what the authors did, according to their per-epoch data; `full` is a sensible reading of the paper's text.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from dendritree.errors import OptionError, check_int, check_one_of
from dendritree.models.chain import OUTPUTS

DRAWS = ("per-trial", "once", "ten", "all")
TRIALS_OF_A_DRAW = 10
"""How many trials share a draw if there are ten draws: as many as the paper has in all."""


@dataclass(frozen=True)
class Protocol:
    """How every trial of a run is trained."""

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
        for name in ("train_images", "val_images", "batch_size"):
            if getattr(self, name) is not None:
                check_int(name, getattr(self, name))
        check_int("epochs", self.epochs)
        numbers = [self.train_images, self.val_images]
        if [number is None for number in numbers] != [self.draw == "all"] * 2:
            raise OptionError(
                f"only draw 'all' takes no numbers of images: got {self.draw!r} and {numbers[0]}, {numbers[1]}"
            )
        check_one_of("output", self.output, OUTPUTS)
        if not all(rate > 0 for rate in self.lr_grid):
            raise OptionError(f"lr_grid must be positive numbers: got {self.lr_grid}")

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


PAPER = Protocol(
    name="paper",
    draw="per-trial",  # NOTE[DIFF]: the authors drew once for all trials of a task; `--draw once` does that
    epochs=100,
    output="probabilities",
    train_images=128,
    val_images=100,
)
FULL = Protocol(
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
"""The protocol name of the trials by which `full` chooses learning rates: trial i has the grid's rate i."""
