"""The fused CPU kernels: Numba loops over a program, nothing but loops.

A *program* is a forest laid out for these loops (`ops/program.py`). Rows hold the batch in their contiguous axis, so
that every inner loop is long and vectorises; they are read through a table, so that any wiring costs the same.
Arguments are plain addresses: unboxing a dozen arrays would cost more than the arithmetic of a small layer.

`products` and `boxes` are loops of their own, for dendrites that read every input: there the inputs of a sample are the
contiguous axis, as they come.

Sums may be reassociated, which lets them vectorise, but nothing assumes finite numbers. The order of all sums is fixed
by the sizes alone, so a result does not depend on the number of threads.
"""

from .backward import backward, input_gradient
from .boxes import depths, smooth_depths, smooth_depths_backward
from .core import ACTIVATIONS, transpose
from .forward import forward
from .products import log_products, log_products_backward

__all__ = [
    "ACTIVATIONS",
    "backward",
    "depths",
    "forward",
    "input_gradient",
    "log_products",
    "log_products_backward",
    "smooth_depths",
    "smooth_depths_backward",
    "transpose",
]
