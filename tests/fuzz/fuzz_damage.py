"""Damaged model folders, checkpoints and runs: what is read is right, or is rejected with an error of ours."""

import functools
import json
import random
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np
import torch
from checkpoint_cases import THREE_EPOCHS, bytes_after_two_epochs, make_network, outcome
from compare_cases import small_plan, trials_in
from safetensors.torch import load, save
from training_cases import make_split

import dendritree
from dendritree import DendriticLayer, MLNClassifier, fit
from dendritree.errors import DendritreeError
from dendritree.models import DendriticNetwork
from dendritree.neurons import DANN, DENN, DMNN, DNM, KTree
from dendritree.sklearn import DendriticClassifier
from dendritree.wiring import Local
from dendritree_lab.studies.engine.runner import Workers
from dendritree_lab.studies.fair import compare

VALUES = [None, True, 0, -1, 3, 2.5, 1e300, "", "x", [], {}, [[1]], {"a": 1}]


def inputs():
    """The same few inputs at every call."""
    return torch.randn(5, 16, generator=torch.Generator().manual_seed(0))


def networks():
    """Models of every kind that a folder can hold."""
    yield MLNClassifier(16, 3, branching=4)
    yield DendriticNetwork(16, [8, 6], 3, fan_in=4, wiring=Local(window=3, image_shape=(1, 4, 4)), norm="batch")
    yield dendritree.prune(MLNClassifier(16, 3, branching=4), examples=inputs(), budget=0.7)
    layers = [DendriticLayer(16, 12, fan_in=9, wiring="random"), DENN(12, 8, branches=3), DANN(8, 6, synapses=4)]
    rest = [DMNN(6, 5, dendrites=2), torch.nn.Sigmoid(), DNM(5, 4, dendrites=2), KTree(4, 3, trees=2)]
    yield torch.nn.Sequential(*layers, *rest)
    yield DendriticClassifier(epochs=2, budget=200, random_state=0).fit(inputs().numpy(), np.array(list("abcab")))


@functools.cache
def originals():
    """Folders and files as we wrote them, made once, by name, with the function that reads them."""
    place = Path(tempfile.mkdtemp(prefix="dendritree-fuzz-"))
    made = {}
    for number, network in enumerate(networks()):
        dendritree.save(network, place / f"model-{number}")
        made[place / f"model-{number}"] = use_model
    (place / "checkpoint").mkdir()
    bytes_after_two_epochs(place / "checkpoint" / "file")
    made[place / "checkpoint"] = resume_fit
    compare(place / "run", small_plan(families=["linear"]), workers=Workers("here"))
    made[place / "run"] = lambda folder: repr(trials_in(folder))
    return made


def use_model(folder):
    model = dendritree.load(folder)
    return repr(model.predict(inputs().numpy()) if hasattr(model, "predict") else model(inputs()))


def resume_fit(folder):
    model = make_network("plain", 5)
    return repr(outcome(model, fit(model, make_split(), THREE_EPOCHS, checkpoint=folder / "file")))


def damage_bytes(path, choose):
    """Cut a file, or change, insert or repeat some of its bytes."""
    content = bytearray(path.read_bytes())
    first = choose.randrange(len(content))
    kind = choose.choice(["cut", "change", "change", "insert", "repeat"])
    if kind == "cut":
        del content[first:]
    elif kind == "change":
        content[first] ^= 1 << choose.randrange(8)
    else:
        content[first:first] = choose.randbytes(3) if kind == "insert" else content[first : first + 100]
    path.write_bytes(content)


def damage_config(folder, choose):
    """Another value, or none, somewhere in config.json."""
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    slots, pending = [], [config]
    while pending:
        part = pending.pop()
        for key in part if isinstance(part, dict) else range(len(part)):
            slots.append((part, key))
            if isinstance(part[key], dict | list):
                pending.append(part[key])
    part, key = choose.choice(slots)
    if choose.random() < 0.3:
        del part[key]
    else:
        part[key] = choose.choice(VALUES)
    path.write_text(json.dumps(config), encoding="utf-8")


def damage_tensors(folder, choose):
    """Other tensors in a whole file whose digest is right."""
    import hashlib

    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (path,) = folder.glob("weights-*.safetensors")
    tensors = load(path.read_bytes())
    name = choose.choice(sorted(tensors))
    tensor = tensors.pop(name)
    kind = choose.choice(["value", "value", "shape", "type", "lost"])
    if kind == "value" and tensor.numel():
        tensor.view(-1)[choose.randrange(tensor.numel())] = choose.choice([-1, 0, 1, 100])
    if kind == "shape":
        tensor = tensor.reshape(-1)[:-1].contiguous()
    if kind != "lost":
        tensors[name] = tensor.to(torch.int16) if kind == "type" else tensor
    content = save(tensors)
    config["weights_sha256"] = hashlib.sha256(content).hexdigest()
    path.unlink()
    (folder / f"weights-{config['weights_sha256'][:8]}.safetensors").write_bytes(content)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")


def damage_cells(folder, choose):
    """Another value in a column of the database."""
    with closing(sqlite3.connect(folder / "trials.sqlite", isolation_level=None)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        table = choose.choice(sorted(tables))
        column = choose.choice([row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')])
        value = choose.choice(["NULL", "'x'", "'{}'", "-1", "1e999", "x'00ff'"])
        connection.execute(f'UPDATE OR IGNORE "{table}" SET "{column}" = {value} WHERE random() % 2')


def run(seed, folder):
    """Damage a copy of something that we wrote, and read it."""
    choose = random.Random(seed)
    original, use = choose.choice(list(originals().items()))
    copy = folder / "copy"
    shutil.copytree(original, copy)
    exact = True  # a damaged byte is noticed; another value that is valid gives another answer
    if choose.random() < 0.5:
        damage_bytes(choose.choice(sorted(path for path in copy.iterdir() if path.stat().st_size)), choose)
        exact = original.name.startswith("model") or original.name == "checkpoint"
    elif original.name == "run":
        exact = damage_cells(copy, choose)
    elif original.name.startswith("model"):
        exact = choose.choice([damage_config, damage_tensors])(copy, choose)
    try:
        answer = use(copy)
    except DendritreeError:
        return "rejected"
    if exact and answer != use(original) and not _same_json(original, copy):
        raise AssertionError(f"another answer from a damaged {original.name}")
    return "read"


def _same_json(one, other):
    """Whether two configs still describe different, valid objects: a changed byte of JSON text can be valid too."""
    configs = [folder / "config.json" for folder in (one, other)]
    return all(path.exists() for path in configs) and configs[0].read_bytes() != configs[1].read_bytes()
