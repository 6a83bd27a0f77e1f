"""`fit` keeps the memory of its steps, and returns it at the end."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import resource, torch
from dendritree.training.memory import memory_kept

def faults_of_steps():
    for _ in range(3):  # what the first steps need, in any case
        torch.empty(20_000_000).fill_(1.0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        torch.empty(20_000_000).fill_(1.0)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()

usual = faults_of_steps()
with memory_kept():
    kept, inside = faults_of_steps(), resident()
print(usual, kept, inside - resident(), faults_of_steps())
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux only")
def test_memory_is_kept_within_the_block_and_returned_at_its_end():
    usual, kept, returned, after = map(int, subprocess.check_output([sys.executable, "-c", PROGRAM], text=True).split())
    assert kept < usual / 10
    assert returned > 70_000_000
    assert after > usual / 2
