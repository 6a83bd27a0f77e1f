"""Work for a pool that says where and when it was begun; workers import it, so it needs next to nothing."""

import os
import signal
import time


def timed(job, data_dir):
    """Take a moment; say what was asked, in which process, and when it was begun on the clock of this machine."""
    begun = time.monotonic()
    time.sleep(0.2)
    return [(job, data_dir, os.getpid(), begun)]


def deadly(job, data_dir):
    """Kill the worker, unless the job is 0."""
    if job:
        os.kill(os.getpid(), signal.SIGKILL)
    return timed(job, data_dir)
