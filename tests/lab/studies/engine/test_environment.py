"""What is recorded about machine and versions."""

import os
import platform
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

import dendritree
from dendritree_lab.studies.engine import environment as module
from dendritree_lab.studies.engine.environment import current_environment

ROOT = Path(dendritree.__file__).parents[1]


def test_versions_and_hardware_are_those_of_this_process_without_names_of_host_or_user():
    environment = current_environment()
    assert (environment.dendritree, environment.torch) == (dendritree.__version__, torch.__version__)
    assert (environment.numpy, environment.python) == (np.__version__, platform.python_version())
    assert environment.cpu
    assert environment.cores >= 1
    assert environment.ram > 2**20
    names = [platform.node(), os.environ.get("USER", ""), str(Path.home())]
    assert [name for name in names if len(name) > 3 and name in repr(environment)] == []


@pytest.mark.skipif(not (ROOT / ".git").exists() or not shutil.which("git"), reason="not in a repository")
def test_the_commit_is_that_of_the_repository():
    head = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout
    assert current_environment().commit.removesuffix("-dirty") == head.strip()


@pytest.mark.skipif(not shutil.which("git"), reason="no git")
def test_a_package_installed_inside_another_repository_has_no_commit(tmp_path, monkeypatch):
    package = tmp_path / "venv" / "lib" / "dendritree"
    package.mkdir(parents=True)
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    subprocess.run(["git", *identity, "-C", tmp_path, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    monkeypatch.setattr(module, "PACKAGE", package)
    assert current_environment().commit is None
    monkeypatch.setattr(module, "PACKAGE", tmp_path / "venv")
    assert current_environment().commit is not None  # a package at the top of it has
