"""Check each extra alone: with it, README's first block and a use of the extra run; without it, one line names it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "helpers"))
from own_data import blobs, write_houses, write_pets  # noqa: E402

NOT_OF_USERS = {"all", "docs", "test", "dev", "release"}
USES = {
    "save": "dendritree.save(MODEL, 'model')\ndendritree.load('model')",
    "data": "dendritree_lab.data.load_dataset('digits')",
    "images": "dendritree_lab.data.load_dataset('pets')",
    "sklearn": "from dendritree.sklearn import DendriticClassifier\nDendriticClassifier(epochs=2).fit(X, Y).predict(X)",
    "plot": "from dendritree.plot import plot_tree\nplot_tree(MODEL[0], path='tree.svg')",
    "onnx": "from dendritree.export.onnx import to_onnx\nto_onnx(MODEL, 'model.onnx')",
    "parquet": """
from dendritree_lab.studies.engine.store import RunStore
with RunStore.create_or_open("run", {}) as store:
    store.export("tables", "parquet")
""",
    "dask": """
from dendritree_lab.studies.engine.runner import Workers
with Workers("dask", count=1) as workers:
    assert workers.executor().submit(abs, -3).result() == 3
""",
    "experiments": """
from dendritree_lab.studies.engine.runner import Workers
from dendritree_lab.studies.engine.statistics import welch
with Workers("loky", count=1) as workers:
    assert workers.executor().submit(abs, -3).result() == 3
assert welch([0.1, 0.2, 0.3], [0.7, 0.8, 0.9]).p < 0.05
""",
    "view": """
import signal, threading, urllib.request
from dendritree_lab.view import Exhibit, Gallery, serve
def look(url):
    with urllib.request.urlopen(url) as page:
        assert b"<html" in page.read()
    signal.raise_signal(signal.SIGINT)
def start(line):
    threading.Thread(target=look, args=(line.split(": ")[1].split()[0],)).start()
serve(Gallery("mine", ["one"], lambda number: Exhibit("one", MODEL, None)), browser=False, say=start)
""",
    "report": "dendritree compare mine.npz --budgets 300 --trials 1 --seeds 2 --steps 1 --workers 1 --run compared",
    "tables": "dendritree fit houses.csv --target price --epochs 1 --splits 2 --out fitted",
    "tune": "dendritree tune mine.npz --budget 300 --trials 2 --steps 1 --out tuned",
}
"""A minimal use of each extra: Python code, or a command."""
PYTHON = """
import numpy, torch, dendritree, dendritree_lab.data
from dendritree.errors import MissingExtraError
MODEL = torch.nn.Sequential(dendritree.DendriticLayer(16, 2, branching=4))
X, Y = numpy.random.default_rng(0).normal(size=(60, 4)), numpy.arange(60) % 2
if __name__ == "__main__":
    try:
{use}
    except MissingExtraError as error:
        raise SystemExit(f"dendritree: {{error}}")
"""


def check_extras(wheel: Path, core: Path, folder: Path) -> None:
    """Exit with an error if an extra is not enough for its use, or if no single line says that it is missing.

    Args:
        wheel: the wheel to install, with one extra or none.
        core: the folder of the packages that it needs without extras, and no others; all environments share it.
        folder: where the environments are created.
    """
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    if set(extras) - NOT_OF_USERS != set(USES):
        sys.exit(f"every extra must have a use here: {sorted(set(extras) - NOT_OF_USERS ^ set(USES))} differ")
    _check_one("", wheel, core, folder)
    for extra in USES:
        _check_one(extra, wheel, core, folder)


def _check_one(extra: str, wheel: Path, core: Path, folder: Path) -> None:
    """Check one extra; if it is empty, check the wheel without extras."""
    environment, work = folder / f"with-{extra}", folder / f"work-{extra}"
    venv.create(environment)
    (site,) = environment.glob("lib/python*/site-packages")
    (site / "core.pth").write_text(str(core))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "--python", environment / "bin" / "python"]
    asked = f"dendritree{f'[{extra}]' if extra else ''} @ {wheel.as_uri()}"
    subprocess.run([*pip, "install", "--no-compile", "-c", ROOT / "constraints.txt", asked], check=True)
    work.mkdir()
    write_houses(work / "houses.csv")
    write_pets(work / "pets")
    x, y = blobs(60)
    np.savez(work / "mine.npz", x=x, y=y)
    block = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert block is not None
    status, out, err = _run(["python", "-c", block[1]], environment, work)
    if status or out.strip() != block[1].strip().rpartition("# ")[2]:
        sys.exit(f"README's first block must run with {asked}: {out}{err}")
    for name in [extra] if extra else USES:
        (work / "use.py").write_text(PYTHON.format(use=_indented(USES[name])), encoding="utf-8")
        command = shlex.split(USES[name]) if USES[name].startswith("dendritree ") else ["python", "use.py"]
        status, out, err = _run(command, environment, work)
        told = re.fullmatch(rf"dendritree: [^\n]+: pip install 'dendritree\[{name}\]'\n", err)
        if extra and status:
            sys.exit(f"dendritree[{extra}] must be enough for {USES[extra]}:\n{out}{err}")
        if not extra and (status not in (1, 2) or not told):
            sys.exit(f"without dendritree[{name}] one line must name it, for {USES[name]}:\n{status} {out}{err}")
    sys.stdout.write(f"ok: {f'dendritree[{extra}] alone' if extra else 'no extra: each is named where it is needed'}\n")
    sys.stdout.flush()


def _indented(text: str) -> str:
    return "\n".join(f"        {line}" for line in text.splitlines())


def _run(command: list[str], environment: Path, work: Path) -> tuple[int, str, str]:
    """Run a program of an environment; return its status, output and errors. Environments share compiled kernels."""
    place = {**os.environ, "NUMBA_CACHE_DIR": str(environment.parent / "kernels"), "OMP_NUM_THREADS": "1"}
    place.pop("PYTHONPATH", None)
    done = subprocess.run(
        [environment / "bin" / command[0], *command[1:]], cwd=work, env=place, capture_output=True, text=True
    )
    return done.returncode, done.stdout, done.stderr
