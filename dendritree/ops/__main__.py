"""`python -m dendritree.ops`: which kernels were built and which are used, or why there are none."""

import torch

from . import native

kernels = native.kernels
if kernels is None:
    print(f"kernels    none: {native.missing}\nbackend    'auto' selects 'eager'")
else:
    print(f"kernels    {native.FILE}")
    print(f"built for  {', '.join(kernels.built)}")
    print(f"supported  {', '.join(kernels.supported)}")
    print(f"selected   {kernels.selected} (DENDRITREE_CPU selects another)")
    print(f"threads    {torch.get_num_threads()}, {'OpenMP of torch' if kernels.uses_openmp else 'own pool'}")
