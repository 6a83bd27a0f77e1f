"""Compile and run a generated C file, and measure its size on devices."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import DendritreeError

FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror")
TARGETS = {
    "Cortex-M4": ("arm-none-eabi-", ("-mcpu=cortex-m4", "-mthumb")),
    "AVR (ATmega328P)": ("avr-", ("-mmcu=atmega328p",)),
}
"""Devices: the prefix and the options of their compilers."""


@dataclass(frozen=True)
class Sizes:
    """Bytes of a compiled file on a device."""

    target: str
    flash: int
    """Code and constants."""
    ram: int
    """Buffers and the largest stack frame."""

    def __str__(self) -> str:
        return f"{self.target}: {self.flash:,} bytes of flash, {self.ram:,} of RAM"


def compiler() -> str | None:
    """The C compiler of this machine: the one that the variable CC names, or the first on the PATH."""
    names = [os.environ.get("CC", ""), "cc", "gcc", "clang"]
    return next((found for name in names if name and (found := shutil.which(name))), None)


def run_c(
    source: str, name: str, inputs: NDArray[np.generic], outputs: int, options: tuple[str, ...] = ("-O2",)
) -> NDArray[np.float32] | None:
    """The scores of a C file for inputs, one row each; None without a compiler."""
    command = compiler()
    if command is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program"
        (Path(folder) / "model.c").write_text(source, encoding="utf-8")
        define = f"-D{name.upper()}_MAIN"
        _call(
            [command, *FLAGS, *options, define, "-o", str(program), str(program.with_name("model.c")), "-lm"], "compile"
        )
        done = _call([str(program)], "run", np.ascontiguousarray(inputs).tobytes())
    scores = np.frombuffer(done.stdout, np.float32)
    if scores.size != len(inputs) * outputs:
        raise DendritreeError(
            f"the C file must return {outputs} scores for each of {len(inputs)} inputs: got {scores.size}"
        )
    return scores.reshape(-1, outputs)


def _call(command: list[str], what: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(command, input=given, capture_output=True, check=False)
    if done.returncode:
        text = done.stderr.decode(errors="replace").strip()
        raise DendritreeError(f"the C file does not {what} (status {done.returncode}): {text[:400]}")
    return done


def sizes_of(source: str, name: str) -> list[Sizes]:
    """The sizes of a C file on this machine, and on each device whose compiler is on the PATH.

    Code is optimized for size. Library routines for arithmetic that a processor lacks are not counted.
    """
    known: list[tuple[str, str | None, tuple[str, ...]]] = [("this machine", compiler(), ())]
    known += [(target, shutil.which(f"{prefix}gcc"), options) for target, (prefix, options) in TARGETS.items()]
    found = []
    for target, command, options in known:
        tool = command and (shutil.which(f"{command.removesuffix('gcc')}size") or shutil.which("size"))
        if command is None or not tool:
            continue
        with tempfile.TemporaryDirectory() as folder:
            path, made = Path(folder) / f"{name}.c", Path(folder) / "model.o"
            path.write_text(source, encoding="utf-8")
            compiling = [command, *FLAGS, "-Os", "-fstack-usage", *options, "-c", "-o", str(made), str(path)]
            if subprocess.run(compiling, capture_output=True, check=False).returncode:
                continue  # its tables are larger than the device can address
            text, data, bss = map(int, _call([tool, str(made)], "measure").stdout.decode().splitlines()[1].split()[:3])
            reports = "".join(report.read_text(encoding="utf-8") for report in Path(folder).glob("*.su"))
        frames = map(int, re.findall(r"\t(\d+)\t", reports))
        found.append(Sizes(target, text + data, data + bss + max(frames, default=0)))
    return found
