"""What cases work on: one small thing of every kind that we write or read, made once in a process and copied."""

import contextlib
import functools
import io
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import torch
from checkpoint_cases import bytes_after_two_epochs
from compare_cases import small_plan
from own_data import write_pets
from report_cases import TABLES, made_up_records
from small_paper import CONTROLS, write_specs
from table_cases import houses
from tune_cases import made_up

import dendritree
from dendritree import DendriticLayer, MLNClassifier
from dendritree.models import DendriticNetwork
from dendritree.neurons import DANN, DENN, DMNN, DNM, KTree
from dendritree.sklearn import DendriticClassifier, DendriticRegressor
from dendritree.wiring import Local
from dendritree_lab.cli import main
from dendritree_lab.data.formats import write_idx
from dendritree_lab.studies.engine.runner import Workers
from dendritree_lab.studies.engine.store import RunStore
from dendritree_lab.studies.fair import compare
from dendritree_lab.studies.tuning import tune

QUICK_FIT = ["--splits", "2", "--epochs", "1", "--budget", "0.3k"]
TUNING = {"budget": "0.5k", "trials": 2, "steps": 4}
STORE_CONFIG = {"protocol": "paper", "fit": {"lr": 0.05}}


def inputs(features=16, rows=5):
    """The same few inputs at every call."""
    return torch.randn(rows, features, generator=torch.Generator().manual_seed(0))


def _model(path):
    dendritree.save(MLNClassifier(16, 3, branching=4, output="logits"), path)


def _network(path):
    wiring = Local(window=3, image_shape=(1, 4, 4))
    dendritree.save(DendriticNetwork(16, [8, 6], 3, fan_in=4, wiring=wiring, norm="batch"), path)


def _pruned(path):
    dendritree.save(dendritree.prune(MLNClassifier(16, 3, branching=4), budget=0.7), path)


class Own(torch.nn.Module):
    """A network of a class that no file can build."""

    def __init__(self, first):
        super().__init__()
        self.first, self.norm, self.second = first, torch.nn.BatchNorm1d(8), KTree(8, 4, trees=2, wiring="random")
        self.last = torch.nn.Linear(4, 3)

    def forward(self, x):
        return self.last(self.second(self.norm(self.first(x))))


def _sequential(path):
    layers = [
        DendriticLayer(16, 12, branching=4, fan_in=9, wiring="random"),
        torch.nn.LayerNorm(12),
        DENN(12, 8, branches=3),
        torch.nn.Dropout(0.1),
        DANN(8, 6, synapses=4),
        DMNN(6, 5, dendrites=2),
        torch.nn.Sequential(torch.nn.Sigmoid(), DNM(5, 4, dendrites=2).prune(), torch.nn.Linear(4, 3)),
    ]
    dendritree.save(torch.nn.Sequential(*layers), path)


def _classifier(path):
    x, y = inputs(rows=30).numpy(), np.array(["no", "perhaps", "yes"])[np.arange(30) % 3]
    dendritree.save(DendriticClassifier(epochs=2, budget=200, random_state=0).fit(x, y), path)


def _regressor(path):
    x = inputs(rows=30).numpy()
    dendritree.save(DendriticRegressor(epochs=2, budget=200, random_state=0).fit(x, x[:, :2]), path)


def _table_model(path):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        status = main(["fit", str(made("houses.csv")), "--target", "dear", "--out", str(path), *QUICK_FIT])
    assert status == 0


def _comparison(path):
    compare(path, small_plan(families=["tree"]), workers=Workers("here"))


def _reproduction(path):
    with RunStore.create_or_open(path, STORE_CONFIG) as store:
        store.add([record.as_trial() for record in made_up_records(TABLES[:1], trials=2, epochs=3)])


def _study(path):
    tune(made_up(), **TUNING, out=path)


def _taken(path):
    path.mkdir()
    (path / "notes.txt").write_text("a user's own file\n", encoding="utf-8")


def _pets(path):
    write_pets(path, count=12)
    write_pets(path, count=6, ending=".jpg")


MAKERS = {
    "model": _model,
    "sequential": _sequential,
    "own": lambda path: dendritree.save(Own(DendriticLayer(16, 8, branching=4)), path),
    "pets": _pets,
    "network": _network,
    "pruned": _pruned,
    "classifier": _classifier,
    "regressor": _regressor,
    "fitted": _table_model,
    "comparison": _comparison,
    "reproduction": _reproduction,
    "study": _study,
    "taken": _taken,
    "checkpoint.safetensors": bytes_after_two_epochs,
    "specs": lambda path: write_specs(path, CONTROLS),
    "houses.csv": lambda path: houses().to_csv(path, index=False),
    "houses.csv.gz": lambda path: houses().to_csv(path, index=False),
    "houses.parquet": lambda path: houses().to_parquet(path, index=False),
    "images.npz": lambda path: np.savez_compressed(path, x=inputs(rows=60).numpy(), y=np.arange(60) % 3),
    "images.idx": lambda path: path.write_bytes(write_idx(np.arange(24, dtype=np.uint8).reshape(2, 3, 4))),
}


@functools.cache
def made(name):
    """The path of a thing, which nobody may change."""
    path = Path(tempfile.mkdtemp(prefix=f"world-{os.getpid()}-")) / name
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        MAKERS[name](path)
    return path


def copy_of(name, folder):
    """A copy of a thing under its name in a folder."""
    source, target = made(name), folder / name
    return Path(shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target))
