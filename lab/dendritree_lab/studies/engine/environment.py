"""Where results come from: versions, machine and commit. No host or user name is recorded."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

import dendritree

PACKAGE = Path(dendritree.__file__).resolve().parent


@dataclass(frozen=True)
class Environment:
    """The software and hardware that a trial ran on. Trials of one run may come from several environments."""

    dendritree: str
    """Version of the library; `torch`, `numpy` and `python` are versions too."""
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
    """Git commit of the library's source, with `-dirty` if there are changes; None outside its repository."""

    @property
    def machine(self) -> str:
        """A short name of the hardware, the same for equal machines.

        >>> len(current_environment().machine)
        12
        """
        return hashlib.sha256(f"{self.cpu}|{self.cores}|{self.ram}".encode()).hexdigest()[:12]


def current_environment() -> Environment:
    """This process's versions, machine and commit.

    >>> current_environment().numpy == np.__version__
    True
    """
    return Environment(
        dendritree=dendritree.__version__,
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
    """The commit of the source, if the library is at the top of its repository.

    Otherwise it is installed, possibly inside another repository, whose commit says nothing about it.
    """
    try:
        at_the_top = Path(_git("rev-parse", "--show-toplevel")).resolve() == PACKAGE.parent
        return _git("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*") if at_the_top else None
    except (OSError, subprocess.SubprocessError):
        return None


def _git(*arguments: str) -> str:
    # No optional locks: reading the repository must not disturb anyone who works in it.
    command = ["git", "--no-optional-locks", "-C", str(PACKAGE), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
