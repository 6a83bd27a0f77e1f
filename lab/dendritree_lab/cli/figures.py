"""`dendritree figures`: the paper's two figures, drawn from real layers."""

from __future__ import annotations

from pathlib import Path

from .options import Arguments, Option


def run(arguments: Arguments) -> None:
    """Draw the paper's two figures: masks, and a neuron with dropout."""
    import torch

    from dendritree.layers import DendriticLayer
    from dendritree.plot import plot_masks, plot_tree

    theme, folder = "dark" if arguments.dark else "light", Path(arguments.out)
    masks, neuron = (folder / f"{name}.{arguments.format}" for name in ("paper-masks", "paper-neuron"))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        plot_masks(DendriticLayer(4, 1, branching=2), theme=theme, path=masks)
        plot_tree(DendriticLayer(27, 1, branching=3), dropout=0.3, theme=theme, path=neuron)
    print(f"{masks}: masks of a tree of branching 2 and depth 2, as in the paper's figure 1")
    print(f"{neuron}: a neuron of branching 3, with dropped inputs in red, as in the paper's appendix")


OPTIONS = [
    Option("--out DIR", "folder for the figures", "figures"),
    Option("--format svg|png|pdf", "file format", "svg"),
    Option("--dark", "use a dark background"),
]
EXAMPLES = "dendritree figures --out figures --format png"
