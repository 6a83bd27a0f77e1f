"""Build the sdist and from it the wheel, install it in a fresh environment, and use it from outside the source tree.

The environment shares our packages: copying torch and compiling it takes a minute. With `--alone` it sees only what pip
installs for the wheel, and then for the sdist; after that each extra is installed alone.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path

from check_extras import check_extras

ROOT = Path(__file__).parent.parent
PROBE = """
import dendritree, pathlib, torch
assert pathlib.Path(dendritree.__file__).is_relative_to({environment!r}), dendritree.__file__
package = pathlib.Path(dendritree.__file__).parent
for name in ("py.typed", "report/page.html", "report/page.css", "report/page.js", "view/static/app.js"):
    assert (package / name).is_file(), name
layer = dendritree.DendriticLayer(1024, 1, branching=32)
layer(torch.randn(2, 1024)).sum().backward()
assert sum(p.numel() for p in layer.parameters()) == 1089
"""


def run(*command: str | Path, cwd: Path) -> None:
    subprocess.run([str(part) for part in command], cwd=cwd, check=True)


def main(*, alone: bool) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        # --no-isolation: the build tools come from the constraints, like everything else
        run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", ROOT, cwd=folder)
        environment = folder / "fresh"
        venv.create(environment)  # without pip: our own installs into it
        python = environment / "bin" / "python"
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "--python", python)
        needed = ["-c", ROOT / "constraints.txt"] if alone else ["--no-deps"]
        if not alone:  # not an editable dendritree: that is a separate .pth file, which is not read there
            (site,) = environment.glob("lib/python*/site-packages")
            (site / "ours.pth").write_text(sysconfig.get_path("purelib"))
        for kind in ("*.whl", "*.tar.gz") if alone else ("*.whl",):
            (archive,) = (folder / "dist").glob(kind)
            run(*pip, "install", "--no-compile", *needed, archive, cwd=folder)
            run(python, "-c", PROBE.format(environment=str(environment)), cwd=folder)
            run(environment / "bin" / "dendritree", "--version", cwd=folder)
            run(*pip, "uninstall", "-y", "dendritree", cwd=folder)
            print(f"ok: {archive.name} installs and works", flush=True)  # noqa: T201
        if alone:
            (wheel,), (core,) = (folder / "dist").glob("*.whl"), environment.glob("lib/python*/site-packages")
            check_extras(wheel, core, folder)


if __name__ == "__main__":
    main(alone="--alone" in sys.argv)
