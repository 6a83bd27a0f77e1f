"""What a long run shows: a bar where a line can be written over, a line per epoch in a log."""

import io
import math
import sys

import pytest
import torch
from torch import nn

from dendritree import FitConfig, fit
from dendritree.training.history import Epoch, History, Run
from dendritree.training.progress import show_progress


def run():
    data = torch.randn(30, 4), torch.arange(30) % 3
    fit(nn.Linear(4, 3), data, FitConfig(epochs=2), verbose=True)


def test_a_log_has_a_line_per_epoch(capsys):
    run()
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["epoch 1 of 2", "epoch 2 of 2"]
    assert lines[0].endswith(" s left")
    assert lines[-1].endswith(" s in all")


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Notebook(io.StringIO):
    __module__ = "ipykernel.iostream"


@pytest.mark.parametrize("kind", [Terminal, Notebook])
def test_elsewhere_a_bar_is_written_over(kind, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys, "stderr", kind())
    run()
    first, last = sys.stderr.getvalue().split("\r\x1b[K")[1:]
    assert first.startswith("epoch 1 of 2 |██████████          | 1 s left, accuracy")
    assert last.startswith("epoch 2 of 2 |████████████████████| 1 s in all")
    assert last.count("\n") == 1
    assert max(len(first), len(last.rstrip())) < 60


def test_small_losses_have_four_digits_and_those_of_no_validation_split_are_left_out(capsys):
    history = History(FitConfig(epochs=2), [Epoch(0, 0.000123456, 0.5, 0.9, math.nan, 1.0)])
    run = Run(nn.Linear(1, 1), None, history)
    show_progress(run)
    assert capsys.readouterr().err == "epoch 1 of 2: loss 0.0001235, validation loss 0.5, 1 s left\n"
    show_progress(run, validation=False)
    assert capsys.readouterr().err == "epoch 1 of 2: loss 0.0001235, 1 s left\n"
