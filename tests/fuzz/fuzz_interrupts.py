"""Ctrl-C while kernels run in threads: the program continues, and nothing is written to memory that was reused."""

import contextlib
import copy
import os
import random
import signal
import threading
import time
from contextlib import nullcontext
from unittest.mock import patch

import torch
from fuzz_layers import THREADS, results, threads

from dendritree import DendriticLayer, ops

STOPS = 6
MOST_SECONDS = 0.05


@contextlib.contextmanager
def ctrl_c_after(seconds):
    """Press Ctrl-C from another thread, unless the block is over before."""
    over = threading.Event()

    def press():
        if not over.wait(seconds):
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        thread.start()
        yield
    finally:
        over.set()
        while thread.is_alive():  # a late one must not hit what comes next
            with contextlib.suppress(KeyboardInterrupt):
                thread.join()
        with contextlib.suppress(KeyboardInterrupt):
            time.sleep(0)
        signal.signal(signal.SIGINT, before)


def make_case(random_numbers):
    """A layer whose step takes some milliseconds, and its batch."""
    branching, fan_in = random_numbers.choice([(2, 64), (4, 256), (32, 1024), ("auto", 400)])
    options = {
        "dropout": random_numbers.choice([0.0, 0.3]),
        "dtype": random_numbers.choice([torch.float32, torch.float64]),
        "activation": random_numbers.choice(["leaky_relu", "tanh"]),
    }
    shared = random_numbers.random() < 0.5
    sizes = (fan_in, 16) if shared else (2 * fan_in, 16)
    wiring = {} if shared else {"fan_in": fan_in, "wiring": "random"}
    layer = DendriticLayer(*sizes, branching=branching, **wiring, **options)
    samples = random_numbers.choice([65, 128, 500])
    x = torch.randn(samples, sizes[0], dtype=layer.weight.dtype, requires_grad=True)
    return layer, x, torch.randn(samples, 16, dtype=layer.weight.dtype)


def run(seed, _folder):
    """Interrupt steps again and again, in a random number of threads; the next step gives the same bits as ever."""
    random_numbers = random.Random(seed)
    stopped = 0
    own_pool = patch.object(ops.threads, "_openmp", lambda: None) if random_numbers.random() < 0.5 else nullcontext()
    with own_pool, torch.random.fork_rng(devices=[]), threads(random_numbers.choice(THREADS[1:]), always=True):
        torch.manual_seed(seed)
        layer, x, cotangent = make_case(random_numbers)
        wanted = results(layer, x, cotangent, seed, "fused")
        for _ in range(STOPS):
            other = copy.deepcopy(layer)
            try:
                with ctrl_c_after(random_numbers.uniform(0, MOST_SECONDS)):
                    while True:
                        results(other, x, cotangent, seed, "fused")
            except KeyboardInterrupt:
                stopped += 1
            # Memory that the interrupted call has given back: a thread still at work would write into it.
            reused = [torch.full((size,), 7, dtype=torch.uint8) for size in (1 << 12, 1 << 16, 1 << 20, 1 << 22)]
            found = results(layer, x, cotangent, seed, "fused")
            assert all(bool((memory == 7).all()) for memory in reused), "a thread wrote after its call was over"
            for name, value in wanted.items():
                assert torch.equal(found[name], value), f"{name} is another after Ctrl-C"
    assert stopped == STOPS
    return "the same bits"
