"""Packages with neurons, as real distributions on the import path."""

import sys

import pytest

from dendritree.neurons import families

GATED = '''
import torch
from torch import nn
from dendritree.neurons import register_neuron


@register_neuron("gated", choices={"gates": (1, 2)})
class Gated(nn.Module):
    """A weighted sum times sigmoid gates."""

    def __init__(self, in_features, out_features, *, gates=1, device=None, dtype=None):
        super().__init__()
        self.gates = gates
        self.sums = nn.Linear(in_features, out_features * (1 + gates), device=device, dtype=dtype)

    def forward(self, x):
        value, *gates = self.sums(x).chunk(1 + self.gates, dim=-1)
        for gate in gates:
            value = value * torch.sigmoid(gate)
        return value
'''


def install(site, package, source, *names, version="0.1"):
    """Write a distribution as pip would: a module, and a .dist-info folder with its metadata and entry points."""
    module = package.replace("-", "_")
    (site / f"{module}.py").write_text(source)
    info = site / f"{module}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    points = "".join(f"{name} = {module}\n" for name in names)
    (info / "entry_points.txt").write_text(f"[dendritree.neurons]\n{points}")
    return site


@pytest.fixture(name="site")
def installed_site(tmp_path, monkeypatch):
    """A folder of packages on the import path; what they register is forgotten afterwards."""
    folder = tmp_path / "site"
    folder.mkdir()
    modules = set(sys.modules)
    monkeypatch.setattr(families, "_NEURONS", dict(families._NEURONS))
    monkeypatch.syspath_prepend(folder)
    yield folder
    for name in set(sys.modules) - modules:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(folder)):
            del sys.modules[name]
