"""What `import dendritree` brings and needs, each claim in a fresh interpreter."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
OPTIONAL = ["sklearn", "scipy", "matplotlib", "onnx", "onnxruntime", "pandas", "dendritree_lab"]


def run_fresh(code, *arguments):
    """What a fresh interpreter prints as JSON."""
    command = [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


ALONE = """
import json, sys
import dendritree
from dendritree import __version__
known = set(dendritree.__all__) <= set(dir(dendritree))
print(json.dumps([known, sorted({name.partition(".")[0] for name in sys.modules})]))
"""


def test_the_import_alone_brings_neither_torch_nor_anything_optional():
    known, imported = run_fresh(ALONE)
    assert known
    assert "dendritree" in imported
    assert {"torch", "numpy", "safetensors", *OPTIONAL}.isdisjoint(imported)


NAMES = """
import json, logging, random, signal, sys, warnings
import numpy, torch

def state():
    return [
        torch.get_rng_state().tolist(), str(numpy.random.get_state()), str(random.getstate()), str(warnings.filters),
        torch.get_num_threads(), str(torch.get_default_dtype()), torch.is_grad_enabled(), str(numpy.geterr()),
        len(logging.getLogger().handlers), str(signal.getsignal(signal.SIGINT)),
    ]

before, modules = state(), set(sys.modules)
import dendritree
for name in dendritree.__all__:
    if name not in ("DendriticClassifier", "DendriticRegressor"):  # they extend scikit-learn's classes
        getattr(dendritree, name)
from dendritree import fit, DendriticLayer as layer
same = fit is dendritree.training.fit and dendritree.layers.DendriticLayer is layer
absent = [name for name in ("__wrapped__", "nothing", "utils") if hasattr(dendritree, name)]
added = sorted({name.partition(".")[0] for name in set(sys.modules) - modules})
print(json.dumps([same, absent, added, state() == before]))
"""


def test_names_are_imported_on_request_and_change_no_global_state():
    same, absent, added, unchanged = run_fresh(NAMES)
    assert same
    assert absent == []
    assert unchanged
    assert set(added).isdisjoint(OPTIONAL)


BLOCKED = f"""
import json, sys
sys.modules.update(dict.fromkeys({OPTIONAL!r}))  # None there makes an import fail as if the package were absent
import torch
import dendritree
from dendritree.errors import MissingExtraError

torch.manual_seed(0)
layer = dendritree.DendriticLayer(16, 2, branching=4, dropout=0.1)
x, y = torch.randn(32, 16), torch.randint(2, (32,))
before = layer.weight.detach().clone()
history = dendritree.fit(layer, (x, y), dendritree.FitConfig(epochs=2))
dendritree.save(layer, sys.argv[1])
loaded = dendritree.load(sys.argv[1])
try:
    dendritree.DendriticClassifier
except MissingExtraError as error:
    message = str(error)
trained = not torch.equal(before, layer.weight)
print(json.dumps([len(history.epochs), trained, torch.equal(loaded(x), layer.eval()(x)), message]))
"""


def test_without_any_optional_package_a_layer_trains_saves_and_loads(tmp_path):
    epochs, trained, same, message = run_fresh(BLOCKED, tmp_path / "model")
    assert (epochs, trained, same) == (2, True, True)
    assert "pip install 'dendritree[sklearn]'" in message
