"""Damaged files of every kind that we read: the same answer as before, an error of ours, never anything else.

Files with a checksum (checkpoints, data files, kernels) give the same answer or an error. Others may, when they are
damaged into another whole file, give another answer.
"""

import contextlib
import copy
import dataclasses
import hashlib
import json
import os
import random
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import torch
from checkpoint_cases import THREE_EPOCHS, make_network, outcome
from command_runs import ROOT
from fuzz_cases import outputs_of
from fuzz_commands import call, check
from fuzz_damage import DAMAGES, damage, damage_path, damage_state
from fuzz_world import STORE_CONFIG, TUNING, Own, copy_of, inputs, made
from table_cases import houses
from training_cases import make_split
from tune_cases import made_up, tried

import dendritree
from dendritree import DendriticLayer, MLNClassifier, fit
from dendritree.errors import DendritreeError, FormatError
from dendritree.neurons import DANN, DENN, DNM, KTree
from dendritree.storage.masked import from_masked, to_masked
from dendritree_lab.data import load_dataset
from dendritree_lab.data.content import DataFile
from dendritree_lab.data.formats import read_idx
from dendritree_lab.data.places import Place, read_verified
from dendritree_lab.studies.engine.store import RunStore
from dendritree_lab.studies.table import load_table_model, read_table
from dendritree_lab.studies.tuning import tune

MEMORY = 4 << 30
"""Bytes that a case may take beyond what there is: a huge number in a file must not fill the machine."""


@contextlib.contextmanager
def limited_memory():
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


# ------------------------------------------------------------------------------- what we do with a file, and its answer


def use_model(path):
    return dendritree.load(path)(inputs())


def fill_own(path):
    """Into a network of our own, in which the trees that were saved are a perceptron yet."""
    network = Own(torch.nn.Linear(16, 8)).eval()
    state = copy.deepcopy(network.state_dict())
    try:
        return dendritree.load(path, into=network)(inputs())
    except DendritreeError:
        found = network.state_dict()
        assert found.keys() == state.keys(), "a file that was rejected changed the network"
        assert all(torch.equal(found[key], value) for key, value in state.items()), (
            "a file that was rejected changed it"
        )
        raise


def use_estimator(path):
    estimator = dendritree.load(path)
    probabilities = getattr(estimator, "predict_proba", lambda _: None)(inputs().numpy())
    return repr(
        (estimator.predict(inputs().numpy()).tolist(), None if probabilities is None else probabilities.tolist())
    )


def use_table_model(path):
    return load_table_model(path).predict(houses(9)).to_csv()


def read_run(path):
    with RunStore.open_for_reading(path) as store:
        trials = [dataclasses.replace(trial, seconds=0.0) for trial in store.trials(with_weights=True)]
        return repr((len(store), store.config, store.created, store.environments, sorted(store.present()), trials))


def resume_run(path):
    with RunStore.create_or_open(path, STORE_CONFIG) as store:
        return repr((len(store), store.trials()))


def resume_study(path):
    return repr(tried(tune(made_up(), **TUNING, out=path)))


def resume_fit(path):
    model = make_network("plain", 5)
    return repr(outcome(model, fit(model, make_split(), THREE_EPOCHS, checkpoint=path)))


def use_table(path):
    return read_table(path).to_csv()


def use_data(path):
    split = load_dataset(path)
    return repr([(part.x.tolist(), part.y.tolist()) for part in (split.train, split.val, split.test)])


def use_idx(path):
    if not path.is_file():  # whoever calls `read_idx` has the bytes
        raise FormatError("no file")
    return read_idx(path.read_bytes()).tolist()


def use_data_file(path):
    content = made("images.idx").read_bytes()
    file = DataFile(path.name, len(content), f"md5:{hashlib.md5(content).hexdigest()}")
    found = Place("named", path.parent, "data_dir").find("images", file)
    if found is None:
        raise FormatError("no file")
    return read_verified(file, found)


def command(*words):
    """The output of a command on the path in place of `PATH`; a sentence and status 2 count as an error."""

    def use_by_command(path):
        line = [str(path) if word == "PATH" else word for word in words]
        status, out, errors = call(line, path.parent)
        check(line, status, errors)
        if status:
            raise DendritreeError(errors)
        return out

    return use_by_command


MODELS, TABLES = ("model", "network", "pruned", "sequential"), ("houses.csv", "houses.csv.gz", "houses.parquet")
USES = [
    *[(name, use_model) for name in MODELS],
    ("own", fill_own),
    *[(name, use_estimator) for name in ("classifier", "regressor")],
    ("fitted", use_table_model),
    ("fitted", command("predict", "PATH", "houses.csv")),
    ("comparison", read_run),
    ("comparison", command("report", "PATH", "--export", "csv")),
    ("reproduction", read_run),
    ("reproduction", resume_run),
    ("reproduction", command("report", "PATH", "--weights")),
    ("study", resume_study),
    ("checkpoint.safetensors", resume_fit),
    *[(name, use_table) for name in TABLES],
    ("houses.csv", command("predict", "fitted", "PATH")),
    ("images.npz", use_data),
    ("pets", use_data),
    ("pets", command("tune", "PATH", "--budget", "500", "--trials", "1", "--steps", "1", "--out", "new")),
    ("images.idx", use_idx),
    ("images.idx", use_data_file),
]
EXACT = (resume_fit, use_data_file)
"""Uses of files with a checksum."""


def answer(name, use, folder):
    """What we get of an undamaged thing."""
    folder.mkdir()
    return use(placed(name, use, folder))


def placed(name, use, folder):
    """A copy of a thing in a folder, beside what a command on it needs."""
    for other in {"houses.csv", "fitted"} - {name} if use.__name__ == "use_by_command" else ():
        copy_of(other, folder)
    return copy_of(name, folder)


def damaged_file(choose, folder):
    """One use of one damaged thing."""
    name, use = choose.choice(USES)
    if (name, use) not in KNOWN:
        KNOWN[name, use] = answer(name, use, folder / "whole")
    shutil.rmtree(folder / "whole", ignore_errors=True)
    (folder / "damaged").mkdir()
    path = placed(name, use, folder / "damaged")
    inside = sorted(file for file in path.rglob("*") if file.is_file())
    files = [file for file in inside if file.suffix in DAMAGES] or inside or [path]
    if choose.random() < 0.03:
        damage_path(path, choose)
    else:
        damage(choose.choice(files), choose)
    if use is resume_fit and not path.exists():  # nothing to resume from: a run begins
        return "gone"
    found = use(path)
    wanted = KNOWN[name, use]
    same = torch.equal(found, wanted) if isinstance(found, torch.Tensor) else found == wanted
    assert same or use not in EXACT, f"another answer of {name}"
    return "the same answer" if same else "another answer"


KNOWN = {}
"""Answers of undamaged things."""


# ------------------------------------------------------------------------------------------------ state dicts, kernels


def damaged_state(choose):
    """Nothing is taken of a state dict that is damaged: the layer gives the same answer as before."""
    random_wiring = {"fan_in": 6, "wiring": "random"}
    layer = choose.choice(
        [
            lambda: DendriticLayer(16, 3, branching=4),
            lambda: DendriticLayer(16, 3, branching=2, **random_wiring),
            lambda: MLNClassifier(16, 3, branching=4),
            lambda: DENN(16, 3, branches=3),
            lambda: DANN(16, 3),
            lambda: KTree(16, 3, trees=2, wiring="random"),
            lambda: DNM(16, 3, dendrites=2).prune(),
        ]
    )()
    before, state = layer(inputs()), damage_state(layer.state_dict(), choose)
    if isinstance(layer, DendriticLayer) and layer.wiring.name == "shared" and choose.random() < 0.5:
        with contextlib.suppress(DendritreeError):
            from_masked(damage_state(to_masked(layer), choose), wiring="shared")(inputs())
        return "masked"
    try:
        layer.load_state_dict(state)
    except (DendritreeError, RuntimeError) as error:  # torch's own, of missing keys and other shapes
        if len(list(layer.children())) < 2 and "Missing key" not in str(error):  # `strict=False` takes what is there
            assert torch.equal(layer(inputs()), before), "a state dict that was rejected changed the layer"
        raise DendritreeError("rejected") from None
    return "the same answer" if torch.equal(layer(inputs()), before) else "another answer"


KERNELS = """
import torch
from dendritree import DendriticLayer
torch.manual_seed(0)
layer = DendriticLayer(16, 3, branching=4)
x = torch.ones(5, 16, requires_grad=True)
y = layer(x)
y.sum().backward()
print([y.tolist(), x.grad.tolist(), layer.weight.grad.tolist()])
"""


def compute_with(cache):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error", "-c", KERNELS]
    with (
        subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process,
        contextlib.ExitStack() as stack,
    ):
        stack.callback(process.kill)
        out, errors = outputs_of(process, 200)
    assert process.returncode == 0, f"status {process.returncode}\n{errors[-3000:]}"
    return json.loads(out)


def damaged_kernels(choose, folder):
    """The cache of compiled kernels: whatever is in it, the numbers are the same."""
    if "kernels" not in KNOWN:
        cache = folder.parent / "kernels"
        KNOWN["kernels"] = cache, compute_with(cache)
    whole, wanted = KNOWN["kernels"]
    cache = Path(shutil.copytree(whole, folder / "cache"))
    damage(choose.choice(sorted(file for file in cache.rglob("*") if file.is_file())), choose)
    assert compute_with(cache) == wanted
    return "the same answer"


def run(seed, folder):
    """Damage one thing and use it."""
    choose = random.Random(seed)
    place = choose.random()
    try:
        with torch.random.fork_rng(devices=[]), limited_memory():
            torch.manual_seed(seed)
            if place < 0.2:
                return damaged_state(choose)
            return (damaged_kernels if place < 0.22 else damaged_file)(choose, folder)
    except DendritreeError:
        return "an error of ours"
