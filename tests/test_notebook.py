"""The notebook for newcomers runs from top to bottom, as in a fresh clone."""

import ast
import os
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
import torch
from matplotlib.figure import Figure

nbformat = pytest.importorskip("nbformat")
ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "examples" / "first_steps.ipynb"


@pytest.fixture(scope="module")
def stored():
    return nbformat.read(NOTEBOOK, as_version=4)


def code_of(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def texts(notebook):
    """What each cell of code prints."""
    return ["".join(output.get("text", "") for output in cell.outputs) for cell in code_of(notebook)]


def pictures(notebook):
    """How many pictures each cell of code shows."""
    return [sum("image/png" in output.get("data", {}) for output in cell.outputs) for cell in code_of(notebook)]


def run_cell(source, namespace):
    """Run a cell; returns what its last line is worth, which Jupyter shows."""
    *before, last = ast.parse(source).body
    if not isinstance(last, ast.Expr):
        exec(source, namespace)
        return None
    exec(compile(ast.Module(before, []), "cell", "exec"), namespace)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)


def begins(texts):
    """Of each text what is the same on every machine."""
    return [text.split()[:2] for text in texts]


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # matplotlib is given tensors
def test_its_code_prints_and_draws_what_is_stored(stored, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    namespace, printed, drawn = {"__name__": "__main__"}, [], []
    with plt.ioff(), torch.random.fork_rng(devices=[]):
        plt.close("all")
        for cell in code_of(stored):
            shown = run_cell(cell.source, namespace)
            printed.append(capsys.readouterr().out)
            drawn.append(len(plt.get_fignums()) + isinstance(shown, Figure))
            plt.close("all")
    assert drawn == pictures(stored)
    assert sum(drawn) == 4
    assert begins(printed) == begins(texts(stored))
    assert "1900 parameters" in "".join(printed)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Jupyter's own; the notebook's are in its outputs
def test_it_runs_in_jupyter_and_shows_what_it_shows_now(stored, tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    fresh = nbformat.read(NOTEBOOK, as_version=4)
    client = nbclient.NotebookClient(fresh, timeout=300, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    assert [o for cell in code_of(fresh) for o in cell.outputs if o.get("name") == "stderr"] == []
    assert pictures(fresh) == pictures(stored)
    assert begins(texts(fresh)) == begins(texts(stored))


def test_what_is_stored_names_no_machine(stored):
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert [word for word in ("/tmp/", "/home/", "/root/", "stderr") if word in text] == []
    assert all(cell.execution_count is not None for cell in code_of(stored))
