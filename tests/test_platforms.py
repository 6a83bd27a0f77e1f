"""The core runs where what only Linux has is missing; this is not a test on those systems themselves."""

import os
import subprocess
import sys
from pathlib import Path

HELPERS = Path(__file__).parent / "helpers"


def test_the_core_without_what_only_linux_has(tmp_path):
    soft = ["-W", "ignore:only soft file lock is available"]  # of filelock, which torch may import
    command = [sys.executable, "-W", "error", *soft, HELPERS / "other_systems.py", tmp_path]
    environment = {**os.environ, "PYTHONPATH": str(HELPERS.parents[1])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "answers.csv").is_file()
