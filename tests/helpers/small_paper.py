"""A paper of two small tables, read as an installed package reads its own: runs of it take seconds, not minutes."""

import shutil
from pathlib import Path

import dendritree
from dendritree_lab.studies.paper.spec import paper_folder, read_specs

PACKAGE = Path(dendritree.__file__).parent

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
    """A copy of the package with the small paper inside; the compiled kernels go with it."""
    package = folder / "dendritree"
    shutil.copytree(PACKAGE, package)
    paper = package / "studies" / "paper" / "published"
    if paper.is_dir():  # dendritree itself is installed
        shutil.rmtree(paper)
    small_tables(paper / "specs")
    shutil.copytree(paper_folder() / "expected", paper / "expected")
    return folder
