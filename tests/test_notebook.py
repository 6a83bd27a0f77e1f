"""The notebook for newcomers runs from top to bottom, as in a fresh clone."""

import ast
from pathlib import Path

import matplotlib.pyplot as plt
import nbclient
import nbformat
import pytest
import torch
from matplotlib.figure import Figure

NOTEBOOK = Path(__file__).parents[1] / "examples" / "first_steps.ipynb"


@pytest.fixture(scope="module")
def stored():
    return nbformat.read(NOTEBOOK, as_version=4)


def code_of(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown_by(notebook):
    """What each cell of code prints, without figures, which differ between machines, and how many pictures it shows."""
    outputs = [cell.outputs for cell in code_of(notebook)]
    texts = [words("".join(output.get("text", "") for output in cell)) for cell in outputs]
    return texts, [sum("image/png" in output.get("data", {}) for output in cell) for cell in outputs]


def words(text):
    return text.split()[:2]


def run_cell(source, namespace):
    """Run a cell; returns what its last line is worth, which Jupyter shows."""
    *before, last = ast.parse(source).body
    if not isinstance(last, ast.Expr):
        exec(source, namespace)
        return None
    exec(compile(ast.Module(before, []), "cell", "exec"), namespace)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # matplotlib is given tensors
def test_its_code_prints_and_draws_what_is_stored(stored, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    namespace, printed, drawn = {"__name__": "__main__"}, [], []
    with plt.ioff(), torch.random.fork_rng(devices=[]):
        plt.close("all")
        for cell in code_of(stored):
            shown = run_cell(cell.source, namespace)
            printed.append(words(capsys.readouterr().out))
            drawn.append(len(plt.get_fignums()) + isinstance(shown, Figure))
            plt.close("all")
    assert (printed, drawn) == shown_by(stored)
    assert sum(drawn) == 4
    assert ["1900", "parameters"] in printed


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Jupyter's own; the notebook's are in its outputs
def test_it_runs_in_jupyter_and_shows_what_it_shows_now(stored, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    fresh = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(fresh, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert [o for cell in code_of(fresh) for o in cell.outputs if o.get("name") == "stderr"] == []
    assert shown_by(fresh) == shown_by(stored)


def test_what_is_stored_names_no_machine(stored):
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert [word for word in ("/tmp/", "/home/", "/root/", "stderr") if word in text] == []
    assert all(cell.execution_count is not None for cell in code_of(stored))
