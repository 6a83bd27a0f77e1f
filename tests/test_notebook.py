"""The notebook for newcomers runs from top to bottom, as somebody would run it who has just cloned this."""

import os
from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")
ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "examples" / "first_steps.ipynb"


@pytest.fixture(scope="module")
def stored():
    return nbformat.read(NOTEBOOK, as_version=4)


def texts(notebook):
    """What each cell of code prints."""
    return ["".join(o.get("text", "") for o in cell.outputs) for cell in notebook.cells if cell.cell_type == "code"]


def pictures(notebook):
    outputs = [o for cell in notebook.cells if cell.cell_type == "code" for o in cell.outputs]
    return sum("image/png" in o.get("data", {}) for o in outputs)


@pytest.mark.filterwarnings("ignore")  # Jupyter's own; the notebook's are in its outputs, where the next test sees them
def test_it_runs_and_shows_what_it_shows_now(stored, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    fresh = nbformat.read(NOTEBOOK, as_version=4)
    client = nbclient.NotebookClient(fresh, timeout=300, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    outputs = [o for cell in fresh.cells if cell.cell_type == "code" for o in cell.outputs]
    assert [o for o in outputs if o.get("name") == "stderr"] == []
    assert pictures(fresh) == pictures(stored) == 3
    assert [text.split()[:2] for text in texts(fresh)] == [text.split()[:2] for text in texts(stored)]
    assert "1900 parameters" in "".join(texts(fresh))


def test_what_is_stored_names_no_machine(stored):
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert [word for word in ("/tmp/", "/home/", "/root/", "stderr") if word in text] == []
    assert all(cell.execution_count is not None for cell in stored.cells if cell.cell_type == "code")
