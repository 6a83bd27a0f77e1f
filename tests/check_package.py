"""Build both wheels, install them in fresh environments, and use them from outside the source tree.

The library is first used alone: with torch, numpy and safetensors and nothing else, a layer trains, saves and loads.
The environment sees our own packages, because copying torch takes a minute; with `--alone` pip installs them anew.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
OPTIONAL = ["sklearn", "scipy", "matplotlib", "onnx", "onnxruntime", "pandas", "rich", "loky"]
LIBRARY = """
import sys
sys.modules.update(dict.fromkeys({optional!r}))  # None: not to be imported
import pathlib, tempfile, dendritree, torch
package = pathlib.Path(dendritree.__file__).parent
assert package.is_relative_to({environment!r}), package
for name in ("ops/cpu/libdendritree.so", "py.typed", "__init__.pyi"):
    assert (package / name).is_file(), name
layer = dendritree.DendriticLayer(64, 3, branching=8)
data = torch.randn(60, 64), torch.arange(60) % 3
dendritree.fit(layer, data, dendritree.FitConfig(epochs=1))
folder = pathlib.Path(tempfile.mkdtemp()) / "layer"
dendritree.save(layer, folder)
assert torch.equal(dendritree.load(folder)(data[0]), layer.eval()(data[0]))
"""
LAB = """
import pathlib, dendritree_lab
package = pathlib.Path(dendritree_lab.__file__).parent
assert package.is_relative_to({environment!r}), package
for name in ("report/page.html", "view/static/app.js", "studies/paper/specs", "studies/paper/expected"):
    assert (package / name).exists(), name
"""


def run(*command: str | Path, cwd: Path) -> None:
    subprocess.run([str(part) for part in command], cwd=cwd, check=True)


def fresh_environment(folder: Path, *, alone: bool = False) -> tuple[Path, Path, tuple[str | Path, ...]]:
    """An environment without dendritree: its folder, its Python, and the command that installs into it."""
    venv.create(folder)  # without pip: our own installs into it
    python = folder / "bin" / "python"
    if not alone:  # an editable dendritree is a separate .pth file, which is not read there
        (site,) = folder.glob("lib/python*/site-packages")
        (site / "ours.pth").write_text(sysconfig.get_path("purelib"))
    return folder, python, (sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "--python", python)


def main(*, alone: bool) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for project in (ROOT, ROOT / "lab"):  # --no-isolation: the build tools come from the constraints
            run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", project, cwd=folder)
        environment, python, pip = fresh_environment(folder / "fresh", alone=alone)
        options = ["-c", ROOT / "constraints.txt"] if alone else ["--no-deps"]
        (library,), (lab,) = (folder / "dist").glob("dendritree-*.whl"), (folder / "dist").glob("dendritree_lab-*.whl")
        run(*pip, "install", "--no-compile", *options, library, cwd=folder)
        run(python, "-c", LIBRARY.format(environment=str(environment), optional=OPTIONAL), cwd=folder)
        run(*pip, "install", "--no-compile", *options, library, lab, cwd=folder)
        run(python, "-c", LAB.format(environment=str(environment)), cwd=folder)
        run(environment / "bin" / "dendritree", "params", "1024", "10", "--branching", "32", cwd=folder)
        print(f"ok: {library.name} and {lab.name} install and work", flush=True)  # noqa: T201


if __name__ == "__main__":
    main(alone="--alone" in sys.argv)
