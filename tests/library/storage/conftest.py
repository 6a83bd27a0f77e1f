"""What tests of saved models share."""

import pytest
import torch

from dendritree import MLNClassifier, save


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.fixture
def folder(tmp_path):
    """A saved model: 16 inputs, three neurons."""
    save(MLNClassifier(16, 3, branching=4), tmp_path / "net")
    return tmp_path / "net"
