"""Figures of trees, of what they read and learned, and of how they perform. Needs matplotlib: the extra `plot`.

Every function returns a new matplotlib Figure, unknown to pyplot, takes `theme="light"` or `"dark"`, and writes an
.svg, .png or .pdf file if `path` is given. The numbers behind the drawings come from `tree_layout` and `fields`.
"""

from .curves import plot_history, plot_pruning
from .explanation import plot_explanation
from .image_grids import plot_weights, plot_wiring
from .tree import plot_masks, plot_tree
from .tree_layout import TreeLayout, lay_out

__all__ = [
    "TreeLayout",
    "lay_out",
    "plot_explanation",
    "plot_history",
    "plot_masks",
    "plot_pruning",
    "plot_tree",
    "plot_weights",
    "plot_wiring",
]
