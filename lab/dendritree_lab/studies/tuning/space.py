"""The search space, and the model that a point in it describes. The width is not searched: the budget gives it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dendritree.models.presets import activation_for, tied_preset
from dendritree.models.sizing import fill_budget
from dendritree.wiring import Local, Random, Strided, Tied, Wiring

from ..engine.configuration import Configuration

NETWORK = "dendritic-network"
PARAMETERS = {
    "wiring": "wiring",
    "window": "window of a dendrite",
    "depth": "depth",
    "branching": "branching",
    "fan_in": "fan-in",
    "copies": "copies of the tree",
    "stride": "pixels between copies",
    "shared_by": "neurons that share",
    "moving": "moving synapses",
    "share": "share of the budget",
    "dropout": "dropout",
    "lr": "learning rate",
    "weight_decay": "weight decay",
}
"""The parameters of the search, in display order, and their names in reports."""
SHARES = (0.25, 0.5, 1.0)
"""Fractions of the budget that a trial may use, to show how much accuracy fewer parameters cost."""
MOST_DEPTH, BRANCHINGS = 3, (2, 8)
IMAGE_FAN_INS, TABLE_FAN_INS = (9, 100), (3, 64)
WINDOWS = (3, 12)
COPIES, STRIDES, SHARED_BY = (4, 9, 16, 25), (1, 4), (1, 4, 9, 16, 25)
LEAST_TIED = 6
"""Sides of an image, in pixels, from which copies of a tree have several places."""
OF_IMAGES, OF_COPIES = ("window",), ("copies", "stride", "shared_by")
"""Parameters that only images have, and only those with room for copies."""


@dataclass(frozen=True)
class Space:
    """All configurations for given sizes and a budget."""

    in_features: int
    out_features: int
    budget: int
    image_shape: tuple[int, int, int] | None = None

    def suggest(self, trial: Any) -> dict[str, Any]:
        """Let an Optuna trial choose. Every trial has the same parameters, which keeps their importances comparable."""
        low, high = self._fan_ins()
        chosen: dict[str, Any] = {"wiring": trial.suggest_categorical("wiring", self.wirings)}
        if self.image_shape is not None:
            chosen["window"] = trial.suggest_int("window", *self._windows())
        chosen |= {
            "depth": trial.suggest_int("depth", 1, MOST_DEPTH),
            "branching": trial.suggest_int("branching", *BRANCHINGS),
            "fan_in": trial.suggest_int("fan_in", low, high, log=True),
        }
        if "tied" in self.wirings:
            chosen |= {
                "copies": trial.suggest_categorical("copies", COPIES),
                "stride": trial.suggest_int("stride", *STRIDES),
                "shared_by": trial.suggest_categorical("shared_by", SHARED_BY),
            }
        return chosen | {
            "moving": trial.suggest_categorical("moving", (0.0, 0.3)),
            "share": trial.suggest_categorical("share", SHARES),
            "dropout": trial.suggest_float("dropout", 0.0, 0.3, step=0.05),
            "lr": trial.suggest_float("lr", 0.002, 0.05, log=True),
            "weight_decay": trial.suggest_float("weight_decay", 1e-4, 0.1, log=True),
        }

    def default(self) -> dict[str, Any]:
        """The first values to try: near the preset, which comes from our comparison.

        >>> Space(64, 10, 2000).default()["branching"], Space(784, 10, 2000, (1, 28, 28)).default()["wiring"]
        (4, 'tied')
        """
        image = self.image_shape is not None
        low, high = self._fan_ins()
        chosen: dict[str, Any] = {"window": min(9, self._windows()[1])} if image else {}
        chosen |= {
            "wiring": "local" if image else "random",
            "depth": 2,
            "branching": 2 if image else 4,
            "fan_in": max(low, min(50 if image else 32, high)),
            "moving": 0.3 if image else 0.0,
            "share": 1.0,
            "dropout": 0.0,
            "lr": 0.015,
            "weight_decay": 0.03,
        }
        if "tied" in self.wirings:
            chosen |= {"copies": COPIES[0], "stride": STRIDES[0], "shared_by": SHARED_BY[0]}
        preset = None if self.image_shape is None else tied_preset(self.image_shape, self.out_features)
        if preset is None:
            return chosen
        (synapses, copies), wiring = preset
        chosen |= {"wiring": "tied", "window": wiring.window, "depth": 1, "fan_in": synapses, "moving": 0.0, "lr": 0.03}
        return chosen | {"copies": copies, "stride": wiring.stride, "shared_by": wiring.shared_by}

    def cheapest(self) -> dict[str, Any]:
        """The values with the fewest parameters: bare neurons with few synapses."""
        return self.default() | {"depth": 1, "fan_in": self._fan_ins()[0], "wiring": "random"}

    @property
    def wirings(self) -> tuple[str, ...]:
        """Wirings that support any fan-in: a neuron of a small model cannot read every input."""
        if self.image_shape is None:
            return ("random", "strided")
        tied = ("tied",) if min(self.image_shape[1:]) >= LEAST_TIED else ()
        return (*tied, "local", "random", "strided")

    def configuration(self, chosen: Mapping[str, Any]) -> Configuration | None:
        """The widest model that the chosen share of the budget allows; None if it does not even allow two neurons.

        >>> space = Space(64, 10, 2000)
        >>> configuration = space.configuration(space.default())
        >>> configuration.arguments["branching"], configuration.arguments["hidden"]
        ([8, 4], [37])
        """
        tree, wiring = self._tree(chosen)
        arguments = {
            "in_features": self.in_features,
            "out_features": self.out_features,
            "branching": tree,
            "wiring": wiring,
            "activation": activation_for(wiring),
            "norm": "batch",
            "dropout": round(float(chosen["dropout"]), 4),
            "output": "logits",
        }
        hidden = fill_budget(NETWORK, arguments, (1.0,), int(self.budget * chosen["share"]))
        if hidden is None:
            return None
        moving = float(chosen["moving"]) if wiring.drawn else 0.0
        lr, weight_decay = float(chosen["lr"]), float(chosen["weight_decay"])
        return Configuration(NETWORK, arguments | {"hidden": hidden}, lr, weight_decay, moving)

    def _tree(self, chosen: Mapping[str, Any]) -> tuple[list[int], Wiring]:
        """The branching of every level, leaf level first, near the chosen fan-in, and the wiring.

        Tied neurons have one level more: their somas, which read the copies of such a tree.
        """
        above = [int(chosen["branching"])] * (int(chosen["depth"]) - 1)
        leaf = max(2, round(chosen["fan_in"] / math.prod(above)))
        if self.image_shape is None or chosen["wiring"] not in ("local", "tied"):
            wiring = Random() if chosen["wiring"] != "strided" else Strided()
            return [min(leaf, max(2, self.in_features)), *above], wiring
        channels, *sides = self.image_shape
        if chosen["wiring"] == "tied":
            names = ("window", *OF_COPIES)
            tied, copies = Tied.fitted(self.image_shape, **{name: int(chosen[name]) for name in names})
            return [max(2, min(leaf, channels * tied.window**2)), *above, copies], tied
        leaf = max(2, min(leaf, channels * min(sides) ** 2))
        least = math.isqrt(-(-leaf // channels) - 1) + 1  # a window must hold the synapses of a dendrite
        window = min(max(int(chosen["window"]), least), *sides)
        return [leaf, *above], Local(window=window, image_shape=self.image_shape)

    def _fan_ins(self) -> tuple[int, int]:
        low, high = TABLE_FAN_INS if self.image_shape is None else IMAGE_FAN_INS
        high = min(high, max(4, 4 * self.in_features))
        return min(low, high), high

    def _windows(self) -> tuple[int, int]:
        assert self.image_shape is not None
        side = min(self.image_shape[1:])
        return min(WINDOWS[0], side), min(WINDOWS[1], side)
