"""A paper of two small tables, read as an installed package reads its own: runs of it take seconds, not minutes."""

import shutil
from pathlib import Path

import dendritree_lab
from dendritree_lab.studies.paper.spec import read_specs

TREES = """
table = "binary-dendritic"
title = "A neuron of 32 dendrites"
label = "single-neuron-results"
task = "binary"
dataset = "mnist-4-9"
lr = 0.05
dropouts = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
trials = 5
stack = 2

[[models]]
network = "mln-binary"
size = 32
full_dropout = 0.3
controls = ["mlp 2"]
"""
CONTROLS = """
table = "binary-mlp"
title = "Its controls"
label = "mlp-binary-results"
task = "binary"
dataset = "mnist-4-9"
lr = 0.001
dropouts = [0.0, 0.4]
trials = 3
stack = 2

[[models]]
network = "mlp"
size = 2
full_dropout = 0.4

[[models]]
network = "perceptrons"
size = 0
full_dropout = 0.4
extra = true
"""
TRIALS = 7 * 5 + 2 * 2 * 3
"""Of one run."""


def write_specs(folder, *texts):
    """Write TOML texts as spec files, and read them as tables."""
    folder.mkdir(parents=True)
    for number, text in enumerate(texts):
        (folder / f"table-{number}.toml").write_text(text, encoding="utf-8")
    return read_specs(folder)


def small_tables(folder):
    """The tables of the small paper, for calls in this process."""
    return write_specs(folder, TREES, CONTROLS)


def install(folder):
    """A copy of the lab with the small paper inside."""
    lab = Path(dendritree_lab.__file__).parent
    copy = folder / lab.name
    shutil.copytree(lab, copy)
    specs = copy / "studies" / "paper" / "specs"
    shutil.rmtree(specs)
    small_tables(specs)
    return folder
