"""Build the sdist and the wheel into dist/, check them, and list what to upload. Nothing is uploaded."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"


def not_ready(version: str) -> list[str]:
    """What keeps a version from being released."""
    found = []
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        found.append(f"__version__ is {version}, which is not a release version")
    if not re.search(
        rf"(?m)^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", (ROOT / "CHANGELOG.md").read_text("utf-8")
    ):
        found.append(f"CHANGELOG.md has no heading '## {version} (date)'")
    changes = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True)
    if changes.returncode or changes.stdout:
        found.append("the work tree has changes that are not committed, or is not a git clone")
    return found


def main() -> None:
    waiting = []
    shutil.rmtree(DIST, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "build", "--no-isolation", "--outdir", DIST, ROOT], check=True)
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    if not wheel.name.endswith("-py3-none-any.whl"):
        sys.exit(f"the wheel must be pure Python: got {wheel.name}")
    with zipfile.ZipFile(wheel) as archive:
        foreign = {name.partition("/")[0] for name in archive.namelist()} - {"dendritree"}
    if any(not name.endswith(".dist-info") for name in foreign):
        sys.exit(f"the wheel must hold dendritree alone: got {sorted(foreign)}")
    if importlib.util.find_spec("twine"):
        subprocess.run([sys.executable, "-m", "twine", "check", "--strict", wheel, sdist], check=True)
    else:
        waiting.append(
            "twine is not installed: `pip install 'dendritree[release]'`, then `twine check --strict dist/*`"
        )
    waiting += not_ready(wheel.name.split("-")[1])
    lines = ["", "To upload:"]
    for file in (sdist, wheel):
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        lines.append(f"  {file.relative_to(ROOT)}  {file.stat().st_size:,} bytes  sha256 {digest}")
    lines += [
        "with",
        "  twine upload dist/*",
        *(["", "Not ready yet:"] if waiting else []),
        *(f"  {each}" for each in waiting),
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
