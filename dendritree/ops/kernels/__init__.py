"""The fused CPU kernels: Numba loops, nothing but loops.

`forward` and `backward` run a forest laid out by `ops/program.py`. They are made of *tiles*, the numbers of many
samples in vector registers, so that any tree and any wiring costs the same. They take one address, that of the named
fields of `ops/header.py`: unboxing dozens of arrays would cost more than the arithmetic of a small layer.

`products` and `boxes` are loops of their own, for dendrites that read every input: there the inputs of a sample are the
contiguous axis, as they come.

Sums may be reassociated, which lets them vectorize, but nothing assumes finite numbers. The order of all sums is fixed
by the sizes alone, so a result does not depend on the number of threads.
"""

from .entries import compile_kernel

__all__ = ["compile_kernel"]
