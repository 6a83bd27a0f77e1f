"""The fused backend on the machine: any number of threads gives the same bits, many callers, forked children."""

import multiprocessing
import os
import threading
import time
from functools import partial

import pytest
import torch
from effort import thorough
from forests import NAMED, assert_same_bits, loop, random_case, run, share
from torch import nn
from torch.utils.data import DataLoader, Dataset
from warm import run as run_program

from dendritree.ops import dendritic, make_plan, threads
from dendritree.tree import Forest

FORESTS = {
    "one neuron": Forest.grow(2, depth=4),
    "two": Forest.grow(3, depth=3, neurons=2),
    "forty": Forest.grow(2, depth=4, neurons=40),
    "unequal": NAMED["unequal"],
    "shared": share(Forest.grow(3, depth=3, neurons=21)),
    "wide": share(Forest.grow(16, fan_in=256, neurons=48)),
    "shared, deep": share(Forest.grow([8, 4, 2], neurons=9)),
}
names = pytest.mark.parametrize("name", FORESTS)
dropouts = pytest.mark.parametrize("dropout", [0.0, 0.4])


def forks(test):
    """Where there is no fork there is nothing to test; newer Pythons warn about it."""
    test = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")(test)
    return pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")(test)


@pytest.fixture(params=["torch's threads", "our pool"])
def both_kinds_of_threads(request, monkeypatch):
    """Where torch has no OpenMP that we know, a pool does its work."""
    if request.param == "our pool":
        monkeypatch.setattr(threads, "_openmp", lambda: None)
    elif threads._openmp() is None:
        pytest.skip("torch has no GNU OpenMP here")


def seeded(forest, case, dropout=0.0, activation=torch.tanh):
    """Outputs and gradients for the same seed of dropout."""
    plan = make_plan(forest)
    torch.manual_seed(3)
    return run(lambda *t: dendritic(*t, plan, activation, dropout=dropout, backend="fused"), case)


# ------------------------------------------------------------------------------------------------ the number of threads


@names
@dropouts
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("samples", [37, 1000])
@pytest.mark.usefixtures("both_kinds_of_threads")
def test_results_are_the_same_bits_for_any_number_of_threads(name, dropout, dtype, samples, set_threads, thread_counts):
    forest = FORESTS[name]
    case = random_case(forest, (samples,), dtype)
    set_threads(1)
    alone = seeded(forest, case, dropout)
    assert thread_counts == [1, 1]
    for count in (2, 3, 7):
        thread_counts.clear()
        set_threads(count)
        assert_same_bits(seeded(forest, case, dropout), alone, f"with {count} threads")
        assert thread_counts == [count, count]


@pytest.mark.parametrize("activation", [nn.LeakyReLU(0.1), nn.ReLU(), nn.Sigmoid(), nn.Identity()], ids=repr)
@pytest.mark.parametrize("name", ["one neuron", "forty", "shared, deep"])
def test_every_activation_gives_the_same_bits_for_any_number_of_threads(name, activation, set_threads, thread_counts):
    forest = FORESTS[name]
    case = random_case(forest, (611,), torch.float32)
    set_threads(1)
    alone = seeded(forest, case, activation=activation)
    set_threads(2)
    assert_same_bits(seeded(forest, case, activation=activation), alone)
    assert 2 in thread_counts


@names
@dropouts
def test_the_same_seed_gives_the_same_bits_again(name, dropout):
    forest = FORESTS[name]
    case = random_case(forest, (300,), torch.float32)
    first = seeded(forest, case, dropout)
    for _ in range(3):
        assert_same_bits(seeded(forest, case, dropout), first)


def test_small_work_stays_in_the_calling_thread_and_large_work_takes_all_that_torch_has(set_threads, monkeypatch):
    set_threads(3)
    counts, real = [], threads.run_together
    monkeypatch.setattr(threads, "run_together", lambda *call: (counts.append(call[2]), real(*call)))
    seeded(FORESTS["unequal"], random_case(FORESTS["unequal"], (8,)))
    assert counts == [1, 1]
    forest = Forest.grow(4, depth=4, neurons=12)
    seeded(forest, random_case(forest, (200,), torch.float32))
    assert counts == [1, 1, 3, 3]


# ------------------------------------------------------------------------------------------------------- threads.run


def test_every_job_runs_once_the_first_in_the_caller():
    ran = []
    threads.run(lambda i: ran.append((i, threading.get_ident())), [(i,) for i in range(6)])
    assert sorted(i for i, _ in ran) == list(range(6))
    assert dict(ran)[0] == threading.get_ident()
    assert all(ident != threading.get_ident() for i, ident in ran if i)


@pytest.mark.parametrize("failing", [0, 1, 3])
def test_an_error_in_a_job_is_raised_in_the_caller_after_all_jobs_have_ended(failing):
    ended = []

    def job(i):
        if i == failing:
            raise KeyError(f"job {i}")
        time.sleep(0.1)
        ended.append(i)

    with pytest.raises(KeyError, match=f"job {failing}"):
        threads.run(job, [(i,) for i in range(4)])
    assert sorted(ended) == [i for i in range(4) if i != failing]
    threads.run(lambda i: ended.append(i), [(10,), (11,), (12,), (13,)])  # the pool still works
    assert set(ended) >= {10, 11, 12, 13}


def test_four_threads_may_call_at_once(set_threads, thread_counts):
    set_threads(2)
    names_, found, barrier = ["one neuron", "forty", "unequal", "shared"], {}, threading.Barrier(4)
    cases = {name: random_case(FORESTS[name], (400,)) for name in names_}
    plans = {name: make_plan(FORESTS[name]) for name in names_}

    def work(name):
        barrier.wait()
        op = partial(dendritic, plan=plans[name], activation=torch.tanh, backend="fused")
        found[name] = [run(op, cases[name]) for _ in range(10)]

    callers = [threading.Thread(target=work, args=(name,)) for name in names_]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
    assert not any(caller.is_alive() for caller in callers)
    assert 2 in thread_counts
    for name in names_:
        wanted = seeded(FORESTS[name], cases[name])
        for result in found[name]:
            assert_same_bits(result, wanted, name)


# --------------------------------------------------------------------------------------------------- forked children


def in_child(function):
    """Run in a forked child; its exit code."""
    child = multiprocessing.get_context("fork").Process(target=function)
    child.start()
    child.join(20)
    if child.is_alive():
        child.kill()
        return "hangs"
    return child.exitcode


FEW = 40
"""Samples for forked children: so few that torch's own operations, which may hang there, start no threads."""


@forks
@dropouts
@pytest.mark.parametrize("name", ["one neuron", "forty", "unequal"])
def test_a_forked_child_computes_after_its_parent_did(name, dropout, set_threads, thread_counts):
    set_threads(2)
    forest = FORESTS[name]
    case = random_case(forest, (FEW,))
    wanted = seeded(forest, case, dropout)
    assert 2 in thread_counts

    def child():
        assert_same_bits(seeded(forest, case, dropout), wanted)

    assert in_child(child) == 0
    assert_same_bits(seeded(forest, case, dropout), wanted)


@forks
@pytest.mark.usefixtures("thread_counts")
def test_a_child_forked_while_another_thread_computes(set_threads):
    set_threads(2)
    forest, stop = FORESTS["forty"], threading.Event()
    case, plan = random_case(forest, (FEW,)), make_plan(forest)

    def output():
        with torch.no_grad():
            return dendritic(*case[:3], plan, torch.tanh, backend="fused")

    def busy():
        while not stop.is_set():
            output()

    def child():
        assert torch.equal(output(), wanted)

    wanted, other = output(), threading.Thread(target=busy)
    other.start()
    try:
        assert [in_child(child) for _ in range(5)] == [0] * 5
    finally:
        stop.set()
        other.join(60)


class Features(Dataset):
    """Samples that a dendritic layer has looked at."""

    def __init__(self, forest, x, weight, bias):
        self.plan, self.x, self.tensors = make_plan(forest), x, (weight, bias)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        torch.set_num_threads(2)  # a worker starts with one
        return dendritic(self.x[i], *self.tensors, self.plan, torch.tanh, backend="fused")


@forks
@pytest.mark.usefixtures("thread_counts")
@pytest.mark.parametrize("name", ["forty", "shared, deep"])
def test_forked_workers_of_a_data_loader_compute_after_their_parent_did(name, set_threads):
    set_threads(2)
    forest = FORESTS[name]
    case = random_case(forest, (12,))
    seeded(forest, case)
    data = Features(forest, *case[:3])
    loader = DataLoader(data, batch_size=4, num_workers=2, multiprocessing_context="fork", timeout=60)
    found = torch.cat(list(loader))
    torch.testing.assert_close(found, loop(*case[:3], forest, torch.tanh))


# ------------------------------------------------------------------------------------------------------------ Ctrl-C

INTERRUPTED = """
import signal, sys, time
import torch
from dendritree import DendriticLayer
from dendritree.ops import threads

if sys.argv[2] == "pool":
    threads._openmp = lambda: None
torch.set_num_threads(int(sys.argv[1]))
torch.manual_seed(0)
layer = DendriticLayer(1024, 16, branching=4, wiring="shared")
x = torch.randn(int(sys.argv[4]), 1024, requires_grad=True)

def gradients():
    layer.zero_grad()
    x.grad = None
    layer(x).sum().backward()
    return layer.weight.grad.clone()

wanted = gradients()
start = time.perf_counter()
gradients()
usual = time.perf_counter() - start
signal.signal(signal.SIGALRM, signal.default_int_handler)  # as Ctrl-C, at a moment of our choice
interrupts = 0
for i in range(int(sys.argv[3])):
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-4 + usual * (i * 37 % 100) / 100)
        while True:
            assert torch.equal(gradients(), wanted)
    except KeyboardInterrupt:
        interrupts += 1
assert torch.equal(gradients(), wanted)
print(interrupts)
"""


@pytest.mark.covering(1)
@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("kind", ["openmp", "pool"])
def test_ctrl_c_while_threads_compute_corrupts_nothing(count, kind):
    times = thorough(60, 200)
    assert run_program(INTERRUPTED, count, kind, times, thorough(400, 600)) == (0, f"{times}\n", "")
