"""Work for a pool that reports where and when it started; workers import it, so it imports very little."""

import os
import signal
import time


def timed(job, data_dir):
    """Wait a moment; return the argument, the process, and the start time on the clock of this machine."""
    begun = time.monotonic()
    time.sleep(0.2)
    return [(job, data_dir, os.getpid(), begun)]


def deadly(job, data_dir):
    """Kill the worker, unless the job is 0."""
    if job:
        os.kill(os.getpid(), signal.SIGKILL)
    return timed(job, data_dir)
