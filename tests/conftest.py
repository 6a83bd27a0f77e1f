"""What every test file may count on: the helpers that lie in tests/, and honest skips for absent hardware."""

import shutil
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))

ABSENT = {
    "cuda": None if torch.cuda.is_available() else "no CUDA device",
    "mps": None if torch.backends.mps.is_available() else "no Apple GPU",
    "compiler": None if shutil.which("g++") else "no g++ for torch.compile",
}


def pytest_collection_modifyitems(items):
    for item in items:
        for marker, reason in ABSENT.items():
            if reason and item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))
