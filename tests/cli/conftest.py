"""What tests of the command line share."""

import pytest

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
