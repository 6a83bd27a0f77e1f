"""How the pieces of a kernel are compiled: *parts*, functions that only other kernels call, and *operations*, which
emit LLVM instructions.

Numba compiles a function as if Python would call it: it optimizes the function and emits machine code, and does so
again for every function it is inlined into. A part is left unoptimized, and the kernel that includes it is optimized
once, as a whole: that takes half the time. It also skips the Numba passes that do nothing for such plain functions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from numba import njit
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase
from numba.core.compiler_machinery import PassManager
from numba.core.typed_passes import (
    AnnotateTypes,
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.untyped_passes import (
    DeadBranchPrune,
    FixupArgs,
    IRProcessing,
    ReconstructSSA,
    RewriteSemanticConstants,
    TranslateByteCode,
)
from numba.extending import intrinsic

OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "arcp", "nsz"},  # sums vectorize; NaN and infinity are preserved
}

PASSES = (
    TranslateByteCode,
    FixupArgs,
    IRProcessing,
    RewriteSemanticConstants,  # arguments that are None are known at compile time
    DeadBranchPrune,
    ReconstructSSA,
    NopythonTypeInference,
    PreLowerStripPhis,
    IRLegalization,
    AnnotateTypes,
    NativeLowering,
    NoPythonBackend,
)
"""The Numba passes that a part needs."""


class LoopLibrary(JITCodeLibrary):
    """Code that is linked into a kernel and has no address of its own."""

    def _finalize_final_module(self):
        self._finalized = True

    def get_pointer_to_function(self, name):
        """Return 0, which to Numba means no address."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self):
        """The receiver of `set_env`: this library itself."""
        return self

    def set_env(self, name, environment):
        """Do nothing: a part uses no Python objects."""


class PartLibrary(LoopLibrary):
    """Code that is linked into a kernel unoptimized."""

    def _optimize_functions(self, ll_module):
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self):
        pass


class PartCompiler(CompilerBase):
    """Numba's compiler for parts."""

    library: type[LoopLibrary] = PartLibrary

    def __init__(self, typing, target, library, *rest):
        assert library is None
        super().__init__(typing, target, self.library(target.codegen(), "part"), *rest)

    def define_pipelines(self):
        """The only pipeline."""
        passes = PassManager("part")
        for each in PASSES:
            passes.add_pass(each, each.__name__)
        passes.finalize()
        return [passes]


class LoopCompiler(PartCompiler):
    """Numba's compiler for loops."""

    library = LoopLibrary


def part(function: Callable[..., Any], compiler: type[PartCompiler] = PartCompiler) -> Any:
    """Compile a function as a part of other kernels: it has no entry point from Python and no file of its own."""
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "forceinline": True, **OPTIONS}
    return njit(pipeline_class=compiler, **options)(function)


def loop(function: Callable[..., Any]) -> Any:
    """Compile a part in which kernels spend their time: it is optimized separately, then again with its kernel.

    Without that, the code that LLVM generates for tiles of 64 samples took a fifth longer.
    """
    return part(function, LoopCompiler)


def operation(rule: Callable[..., Any]) -> Any:
    """Compile a part made of LLVM instructions. Given the types of its arguments, `rule` returns a signature and a
    function that builds the result, if there is one, from the values of the arguments."""

    def typed(_context, *kinds):
        signature, build = rule(*kinds)

        def codegen(context, builder, _signature, values):
            result = build(builder, *values)
            return context.get_dummy_value() if result is None else result

        return signature, codegen

    context, _ = inspect.signature(typed).parameters.values()
    typed.__signature__ = inspect.Signature([context, *inspect.signature(rule).parameters.values()])  # type: ignore
    typed.__name__, typed.__doc__ = rule.__name__, rule.__doc__
    return intrinsic(typed)
