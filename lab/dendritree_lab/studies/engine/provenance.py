"""Where results come from: versions, machine and commit. No host or user name is kept."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
import torch

from dendritree import __version__
from dendritree.errors import OptionError

PACKAGE = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Environment:
    """The software and hardware that a trial ran on. Trials of one run may come from several environments."""

    dendritree: str
    """Version of this package; `torch`, `numpy` and `python` are versions too."""
    torch: str
    numpy: str
    python: str
    cpu: str
    """Model of the processor."""
    cores: int
    """Cores this process may use."""
    ram: int
    """Memory of the machine in bytes; 0 if the system does not report it."""
    commit: str | None
    """Git commit of the package's source, with `-dirty` if there are changes; None outside its repository."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            kinds = int if name in ("cores", "ram") else (str, NoneType) if name == "commit" else str
            if not isinstance(value, kinds):
                raise OptionError(f"{name} of an environment must be a string or an integer: got {value!r:.60}")

    @property
    def machine(self) -> str:
        """A short name of the hardware, the same for equal machines.

        >>> len(current_environment().machine)
        12
        """
        return hashlib.sha256(f"{self.cpu}|{self.cores}|{self.ram}".encode()).hexdigest()[:12]

    def describe(self) -> str:
        """One line for a report.

        >>> Environment("0.1.0", "2.6.0", "2.1.0", "3.11.2", "Some CPU", 2, 8 * 2**30, None).describe()
        'Some CPU, 2 cores, 8.0 GiB; dendritree 0.1.0, torch 2.6.0, numpy 2.1.0, python 3.11.2'
        """
        memory = f", {self.ram / 2**30:.1f} GiB" if self.ram else ""
        commit = f", commit {self.commit}" if self.commit else ""
        versions = ", ".join(f"{name} {getattr(self, name)}" for name in ("dendritree", "torch", "numpy", "python"))
        return f"{self.cpu}, {self.cores} core{'s' * (self.cores != 1)}{memory}; {versions}{commit}"


def current_environment() -> Environment:
    """This process's versions, machine and commit.

    >>> current_environment().numpy == np.__version__
    True
    """
    return Environment(
        dendritree=__version__,
        torch=str(torch.__version__),
        numpy=np.__version__,
        python=platform.python_version(),
        cpu=_cpu_model(),
        cores=usable_cores(),
        ram=_ram_bytes(),
        commit=_commit(),
    )


def usable_cores() -> int:
    """Cores that this process may use; all cores if the system does not report it (macOS)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def differences(old: Any, new: Any, prefix: str = "") -> list[str]:
    """Where two JSON values differ, key by key, as `dotted.key: old -> new`.

    >>> differences({"trials": 10, "fit": {"lr": 0.05}}, {"trials": 3, "fit": {"lr": 0.05, "epochs": 100}})
    ['fit.epochs: absent -> 100', 'trials: 10 -> 3']
    """
    if isinstance(old, list) and isinstance(new, list):
        old, new = dict(enumerate(old)), dict(enumerate(new))
    if not (isinstance(old, dict) and isinstance(new, dict)):
        same = type(old) is type(new) and old == new  # 1, 1.0 and True are different, as in JSON
        return [] if same else [f"{prefix}: {old!r} -> {new!r}"]
    lines = []
    for key in sorted({*old, *new}):
        dotted = f"{prefix}.{key}" if prefix else str(key)
        if key in old and key in new:
            lines += differences(old[key], new[key], dotted)
        else:
            was, now = (repr(of[key]) if key in of else "absent" for of in (old, new))
            lines.append(f"{dotted}: {was} -> {now}")
    return lines


def _cpu_model() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine() or "unknown"


def _ram_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0


def _commit() -> str | None:
    """The commit of the source, only if the package is at the top of its repository.

    Otherwise it is installed, possibly inside another repository, whose commit says nothing about it.
    """
    try:
        top = _git("rev-parse", "--show-toplevel")
        at_the_top = Path(top).resolve() == PACKAGE.parent
        return _git("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*") if at_the_top else None
    except (OSError, subprocess.SubprocessError):
        return None


def _git(*arguments: str) -> str:
    # No optional locks: reading the repository must not disturb anyone who works in it.
    command = ["git", "--no-optional-locks", "-C", str(PACKAGE), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
