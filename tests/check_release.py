"""Build the sdists and wheels of both packages into dist/, check them, and list what to upload. Nothing is uploaded."""

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
    problems = []
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        problems.append(f"__version__ is {version}, which is not a release version")
    if not re.search(
        rf"(?m)^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", (ROOT / "CHANGELOG.md").read_text("utf-8")
    ):
        problems.append(f"CHANGELOG.md has no heading '## {version} (date)'")
    changes = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True)
    if changes.returncode or changes.stdout:
        problems.append("the work tree has changes that are not committed, or is not a git clone")
    return problems


def main() -> None:
    waiting = []
    shutil.rmtree(DIST, ignore_errors=True)
    for project in (ROOT, ROOT / "lab"):
        subprocess.run([sys.executable, "-m", "build", "--no-isolation", "--outdir", DIST, project], check=True)
    files = sorted([*DIST.glob("*.tar.gz"), *DIST.glob("*.whl")])
    for wheel in DIST.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            foreign = {name.partition("/")[0] for name in archive.namelist()} - {wheel.name.partition("-")[0]}
        if any(not name.endswith(".dist-info") for name in foreign):
            sys.exit(f"a wheel must hold its package alone: {wheel.name} has {sorted(foreign)}")
    if importlib.util.find_spec("twine"):
        subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *files], check=True)
    else:
        waiting.append("twine is not installed: `pip install twine`, then `twine check --strict dist/*`")
    waiting += not_ready(files[0].name.split("-")[1])
    lines = ["", "To upload:"]
    for file in files:
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
