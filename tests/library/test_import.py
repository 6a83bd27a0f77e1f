"""The import is fast, needs only torch and changes nothing; the help of the command line needs not even that.

Each claim in a fresh interpreter.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from warm import run

ROOT = Path(__file__).parents[1]
OPTIONAL = ["numba", "sklearn", "safetensors", "matplotlib", "pandas", "scipy", "plotly", "onnx", "dask", "hypothesis"]
BAR = 0.3  # seconds of the processor that all public names may add to `import torch`, and that `--help` may take


def run_fresh(code):
    """What a fresh interpreter prints as JSON, with compiled files kept as they are for any user."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = str(ROOT)
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


IMPORT = """
import json, logging, random, signal, sys, time, warnings
import numpy, torch

def state():
    return [
        torch.get_rng_state().tolist(), str(numpy.random.get_state()), str(random.getstate()), str(warnings.filters),
        torch.get_num_threads(), str(torch.get_default_dtype()), torch.is_grad_enabled(), str(numpy.geterr()),
        torch.are_deterministic_algorithms_enabled(), len(logging.getLogger().handlers),
        str(signal.getsignal(signal.SIGINT)),
    ]

state_before, modules_before, start = state(), set(sys.modules), time.process_time()
import dendritree
for name in dendritree.__all__:
    if name not in ("DendriticClassifier", "DendriticRegressor"):  # they extend scikit-learn's classes
        getattr(dendritree, name)
seconds = time.process_time() - start
added = sorted({name.partition(".")[0] for name in set(sys.modules) - modules_before})
print(json.dumps([seconds, added, state() == state_before, dendritree.__version__]))
"""


def test_the_import_is_fast_brings_nothing_optional_and_changes_no_global_state():
    times = []
    while not times or (min(times) >= BAR and len(times) < 5):  # the first one lets Python write its compiled files
        seconds, added, same, version = run_fresh(IMPORT)  # anything printed besides would not be JSON
        times.append(seconds)
    assert "dendritree" in added
    assert set(added).isdisjoint(OPTIONAL)
    assert same
    assert version.count(".") >= 2
    assert min(times) < BAR, times


BLOCKED = f"""
import json, sys
sys.modules.update(dict.fromkeys({OPTIONAL!r}))  # None there makes an import fail as if the package were absent
import torch, dendritree
net = dendritree.MLNClassifier(16, 3, branching=4, output="logits")
examples = dendritree.training.examples.Examples(torch.randn(8, 16), torch.zeros(8, dtype=torch.long))
split = dendritree.training.examples.Split(examples, examples, examples)
history = dendritree.fit(net, split, dendritree.FitConfig(epochs=1))
print(json.dumps([list(net(torch.randn(2, 16)).shape), len(history.epochs), dendritree.count(net).total]))
"""


def test_building_counting_and_training_need_torch_alone():
    assert run(BLOCKED) == (0, f"{[[2, 3], 1, 3 * (16 + 4 + 4 + 1)]}\n", "")


LIGHT = """
import json, sys
import dendritree
from dendritree import __version__
known = set(dendritree.__all__) <= set(dir(dendritree))
print(json.dumps([known, [name for name in ("torch", "numpy") if name in sys.modules]]))
"""
LAZY = """
import json
import dendritree
from dendritree import *
from dendritree import fit, DendriticLayer as layer
import dendritree.training as training
same = fit is training.fit and dendritree.layers.DendriticLayer is layer and dendritree.sklearn is not None
absent = [name for name in ("__wrapped__", "nothing", "utils") if hasattr(dendritree, name)]
print(json.dumps([same, absent]))
"""


def test_names_are_imported_when_somebody_asks_for_them():
    assert run_fresh(LIGHT) == [True, []]
    assert run(LAZY) == (0, "[true, []]\n", "")


SAID = """
import contextlib, io, json, sys, time
from dendritree_lab.__main__ import main
sys.argv[1:], text = [{word!r}], io.StringIO()
with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
    main()
print(json.dumps([time.process_time(), [name for name in ("torch", "numpy") if name in sys.modules], text.getvalue()]))
"""


@pytest.mark.parametrize(("word", "start"), [("--help", "usage: dendritree"), ("--version", "dendritree 0.")])
def test_help_and_version_need_no_torch_and_next_to_no_time(word, start):
    times = []
    while not times or (min(times) >= BAR and len(times) < 5):
        seconds, heavy, text = run_fresh(SAID.format(word=word))
        times.append(seconds)
    assert heavy == []
    assert text.startswith(start)
    assert min(times) < BAR, times


def test_every_model_is_known_by_name_whatever_was_imported_before():
    status, out, errors = run("import json; from dendritree import list_models; print(json.dumps(list_models()))")
    assert (status, errors) == (0, "")
    assert {"dendritic", "dendritic-network", "mln"} <= set(json.loads(out))
