"""What tests of the command line share."""

import pytest
from small_paper import install

from dendritree.cli import main


@pytest.fixture
def call(capsys):
    """A function that runs a command in this process; returns exit status, standard output and standard error."""

    def run(*arguments):
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as end:  # argparse ends this way
            status = end.code or 0
        return status, *capsys.readouterr()

    return run


@pytest.fixture(scope="session")
def installed(real_data, tmp_path_factory):
    """A folder with a copy of the package that reproduces the small paper."""
    real_data("mnist")
    return install(tmp_path_factory.mktemp("installed"))
