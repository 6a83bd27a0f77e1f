"""`dendritree figures`: the paper's two figures, drawn from real layers."""

from __future__ import annotations

import argparse
from pathlib import Path

from .command import Command

__all__ = ["FIGURES"]


def _figures(arguments: argparse.Namespace) -> None:
    import torch

    from ..layers import DendriticLayer
    from ..plot import plot_masks, plot_tree

    theme, folder = "dark" if arguments.dark else "light", Path(arguments.out)
    masks, neuron = (folder / f"{name}.{arguments.format}" for name in ("paper-masks", "paper-neuron"))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        plot_masks(DendriticLayer(4, 1, branching=2), theme=theme, path=masks)
        layer = DendriticLayer(27, 1, branching=3)
        plot_tree(layer, dropout=0.3, theme=theme, path=neuron)
    print(f"{masks}: masks of a tree of branching 2 and depth 2, the paper's figure 1")
    print(f"{neuron}: a neuron of branching 3, dropped inputs in red, the paper's appendix")


FIGURES = Command(
    "draw the paper's two figures: masks, and a neuron with dropout",
    "",
    _figures,
    [
        (("--out",), {"default": "figures", "metavar": "DIR", "help": "where they go (default: figures)"}),
        (("--format",), {"choices": ("svg", "png", "pdf"), "default": "svg", "help": "default: svg"}),
        (("--dark",), {"action": "store_true", "help": "on dark paper"}),
    ],
    network_example="dendritree figures --out figures --format png",
)
