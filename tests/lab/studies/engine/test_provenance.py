"""What is told about machine and versions, and how two configs differ."""

import os
import platform
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from warm import run

import dendritree
from dendritree_lab.studies.engine.provenance import current_environment, differences

ROOT = Path(dendritree.__file__).parents[1]
VALUES = st.none() | st.booleans() | st.integers(0, 3) | st.floats(0, 3) | st.text("ab", max_size=2)
CONFIGS = st.dictionaries(
    st.text("abc", min_size=1, max_size=2),
    st.recursive(
        VALUES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("xyz", min_size=1), inner)
    ),
    max_size=4,
)


def test_versions_are_those_of_this_process():
    environment = current_environment()
    assert (environment.dendritree, environment.torch) == (dendritree.__version__, torch.__version__)
    assert (environment.numpy, environment.python) == (np.__version__, platform.python_version())
    assert type(environment.torch) is str
    assert environment.cpu
    assert environment.cores >= 1
    assert environment.ram > 2**20


def test_no_name_of_host_or_user_is_told():
    text = repr(current_environment())
    names = [platform.node(), os.environ.get("USER", ""), str(Path.home())]
    assert [name for name in names if len(name) > 3 and name in text] == []


def test_equal_machines_have_one_name_whatever_runs_on_them():
    environment = current_environment()
    assert replace(environment, torch="9", commit=None).machine == environment.machine
    assert replace(environment, cores=environment.cores + 1).machine != environment.machine


def test_one_core_is_one_core():
    one = replace(current_environment(), cpu="C", cores=1, ram=0, commit="abc").describe()
    assert one.startswith("C, 1 core; dendritree ")
    assert one.endswith(", commit abc")


@pytest.mark.skipif(not (ROOT / ".git").exists() or not shutil.which("git"), reason="not in a repository")
def test_the_commit_is_the_repositorys():
    head = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout
    assert current_environment().commit.removesuffix("-dirty") == head.strip()


@pytest.mark.skipif(not shutil.which("git"), reason="no git")
def test_a_package_installed_inside_another_repository_does_not_tell_that_ones_commit(tmp_path):
    package = tmp_path / "venv" / "lib" / "dendritree"
    shutil.copytree(ROOT / "dendritree", package, ignore=shutil.ignore_patterns("__pycache__"))
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    subprocess.run(["git", *identity, "-C", tmp_path, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    code = "from dendritree_lab.studies.engine import provenance as p; print(p.PACKAGE, p.current_environment().commit)"
    assert run(code, root=package.parent, folder=tmp_path) == (0, f"{package} None\n", "")


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": True}, ["a: 1 -> True"]),
        ({"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 2}}}, ["a.b.c: 1 -> 2"]),
        ({"a": {"b": 1}}, {"a": 3}, ["a: {'b': 1} -> 3"]),
        ({"a": [1, [2, 3]]}, {"a": [1, [2, 4]]}, ["a.1.1: 3 -> 4"]),
        ({"a": [1, 2]}, {"a": [1]}, ["a.1: 2 -> absent"]),
        ({"a": [1] * 12}, {"a": [1, *[2] * 11]}, [f"a.{i}: 1 -> 2" for i in range(1, 12)]),
    ],
)
def test_differences_are_told_by_dotted_key(old, new, lines):
    assert differences(old, new) == lines


@given(CONFIGS, CONFIGS)
def test_differences_are_none_exactly_for_equal_configs(one, other):
    assert differences(one, one) == []
    assert bool(differences(one, other)) == (repr(sorted_deep(one)) != repr(sorted_deep(other)))


def sorted_deep(value):
    if isinstance(value, dict):
        return {key: sorted_deep(value[key]) for key in sorted(value)}
    return [sorted_deep(item) for item in value] if isinstance(value, list) else value
