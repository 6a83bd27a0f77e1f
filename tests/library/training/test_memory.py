"""`fit` keeps the memory of its steps, and returns it at the end."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import resource, torch
from dendritree.training.memory import memory_kept

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()

def returned_by_a_step():
    activations = torch.empty(20_000_000).fill_(1.0)
    before = resident()
    del activations
    return before - resident()

usual = returned_by_a_step()
with memory_kept():
    kept, before = returned_by_a_step(), resident()
print(usual, kept, before - resident(), returned_by_a_step())
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux only")
def test_memory_is_kept_within_the_block_and_returned_at_its_end():
    output = subprocess.check_output([sys.executable, "-c", PROGRAM], text=True)
    usual, kept, at_the_end, after = (int(number) / 80e6 for number in output.split())
    assert min(usual, at_the_end, after) > 0.9
    assert kept < 0.1
