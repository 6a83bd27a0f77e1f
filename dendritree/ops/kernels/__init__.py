"""The fused CPU kernels, written as Numba loops.

`forward` and `backward` run a forest laid out by `ops/program.py`. They work on *tiles*, the numbers of many samples in
vector registers, so that any tree and any wiring costs the same. Their only argument is the address of a struct, see
`ops/header.py`: unboxing dozens of arrays would cost more than the arithmetic of a small layer.

`products` and `boxes` are separate loops, for dendrites that read every input: there the contiguous axis is the inputs
of a sample, as in the tensor itself.

Sums may be reassociated, which lets them vectorize, but nothing assumes finite numbers. The order of all sums depends
only on the sizes, so a result does not depend on the number of threads.
"""

from .entries import compile_kernel

__all__ = ["compile_kernel"]
