"""Build the kernels with sanitizers and run the fuzzers of what they compute on them: `make sanitize MINUTES=5`.

First AddressSanitizer and UndefinedBehaviorSanitizer, then ThreadSanitizer. For the latter the kernels run on our own
threads, since an OpenMP library is not instrumented. A report ends the run.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from check_package import ROOT, fresh_environment, run

RUNS = {"address,undefined": ("asan", "ubsan"), "thread": ("tsan",)}
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0",  # Python keeps memory until it ends
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": "halt_on_error=1:ignore_noninstrumented_modules=1:report_signal_unsafe=0",
}


def library(name: str) -> str:
    """The path of a sanitizer's library, which must be loaded before Python."""
    compiler = os.environ.get("CXX", "g++")
    return subprocess.check_output([compiler, f"-print-file-name=lib{name}.so"], text=True).strip()


def sanitize(sanitizers: str, minutes: float, folder: Path) -> None:
    environment, python, pip = fresh_environment(folder / sanitizers)
    options = ("--no-build-isolation", "--no-deps", "-C", f"cmake.define.SANITIZE={sanitizers}")
    run(*pip, "install", *options, ROOT, cwd=folder)
    if not [*environment.rglob("libdendritree.so")]:
        sys.exit(f"the kernels could not be built with -fsanitize={sanitizers}: it needs gcc")
    preloaded = " ".join(library(name) for name in RUNS[sanitizers])
    # Without random addresses, which ThreadSanitizer may not find room in.
    command = ["setarch", platform.machine(), "-R", str(python), str(ROOT / "tests" / "fuzz")]
    command += ["--only", "layers", "convolutions", "norms", "--minutes", str(minutes)]
    variables = {**os.environ, **OPTIONS, "LD_PRELOAD": preloaded, "OMP_NUM_THREADS": "2"}
    subprocess.run(command, cwd=folder, env=variables, check=True)
    print(f"ok: no report of {sanitizers}", flush=True)  # noqa: T201


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="for each of the two runs")
    parser.add_argument("--only", choices=RUNS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for sanitizers in RUNS if arguments.only is None else (arguments.only,):
            sanitize(sanitizers, arguments.minutes, Path(folder))


if __name__ == "__main__":
    main()
