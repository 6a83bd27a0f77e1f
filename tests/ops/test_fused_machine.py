"""The fused backend on the machine: any number of threads gives the same bits, many callers, forked children."""

import ast
import multiprocessing
import os
import threading
import time
from functools import partial
from pathlib import Path

import pytest
import torch
from forests import NAMED, loop, random_case, run, share
from torch import nn
from torch.utils.data import DataLoader, Dataset

from dendritree.ops import dendritic, kernels, launch, leaves, make_plan, threads
from dendritree.tree import Forest

FORESTS = {
    "one neuron": Forest.grow(2, depth=4),
    "two": Forest.grow(3, depth=3, neurons=2),
    "forty": Forest.grow(2, depth=4, neurons=40),
    "unequal": NAMED["unequal"],
    "shared": share(Forest.grow(3, depth=3, neurons=21)),
    "matmul": share(Forest.grow(16, fan_in=256, neurons=48)),
    "matmul, deep": share(Forest.grow([8, 4, 2], neurons=9)),
}
names = pytest.mark.parametrize("name", FORESTS)
dropouts = pytest.mark.parametrize("dropout", [0.0, 0.4])


def forks(test):
    """Where there is no fork there is nothing to test; newer Pythons warn about it."""
    test = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")(test)
    return pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")(test)


@pytest.fixture
def set_threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture
def job_counts(monkeypatch):
    """Work is shared however small it is; how many jobs each call of `threads.run` had."""
    counts, real = [], threads.run

    def counting(function, jobs):
        counts.append(len(jobs))
        real(function, jobs)

    monkeypatch.setattr(launch, "PARALLEL_FROM", 1)
    monkeypatch.setattr(threads, "run", counting)
    return counts


def seeded(forest, case, dropout=0.0, activation=torch.tanh):
    """Outputs and gradients for the same seed of dropout."""
    plan = make_plan(forest)
    torch.manual_seed(3)
    return run(lambda *t: dendritic(*t, plan, activation, dropout=dropout, backend="fused"), case)


def assert_same_bits(found, wanted, about=""):
    for key in wanted:
        assert torch.equal(found[key], wanted[key]), f"{key} differs {about}"


# ------------------------------------------------------------------------------------------------ the number of threads


@names
@dropouts
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("samples", [37, 1000])
def test_results_are_the_same_bits_for_any_number_of_threads(name, dropout, dtype, samples, set_threads, job_counts):
    forest = FORESTS[name]
    assert (leaves.make_leaves(forest) is not None) == ("matmul" in name)
    case = random_case(forest, (samples,), dtype)
    set_threads(1)
    alone = seeded(forest, case, dropout)
    assert set(job_counts) <= {1}
    for count in (2, 3, 5):
        job_counts.clear()
        set_threads(count)
        assert_same_bits(seeded(forest, case, dropout), alone, f"with {count} threads")
        assert max(job_counts) > 1
        assert max(job_counts) <= count


@pytest.mark.parametrize("activation", [nn.LeakyReLU(0.1), nn.ReLU(), nn.Sigmoid(), nn.Identity()], ids=repr)
@pytest.mark.parametrize("name", ["one neuron", "forty", "matmul, deep"])
def test_every_activation_gives_the_same_bits_for_any_number_of_threads(name, activation, set_threads, job_counts):
    forest = FORESTS[name]
    case = random_case(forest, (611,), torch.float32)
    set_threads(1)
    alone = seeded(forest, case, activation=activation)
    set_threads(2)
    assert_same_bits(seeded(forest, case, activation=activation), alone)
    assert 2 in job_counts


@names
@dropouts
def test_the_same_seed_gives_the_same_bits_again(name, dropout):
    forest = FORESTS[name]
    case = random_case(forest, (300,), torch.float32)
    first = seeded(forest, case, dropout)
    for _ in range(3):
        assert_same_bits(seeded(forest, case, dropout), first)


def test_small_work_stays_in_the_calling_thread(set_threads, monkeypatch):
    set_threads(2)
    monkeypatch.setattr(threads, "_pool", threads.Pool())
    seeded(FORESTS["unequal"], random_case(FORESTS["unequal"], (8,)))
    assert threads._pool.size == 0


def test_large_work_is_shared_by_as_many_threads_as_torch_has(set_threads, monkeypatch):
    set_threads(3)
    monkeypatch.setattr(threads, "_pool", threads.Pool())
    forest = Forest.grow(4, depth=4, neurons=12)
    seeded(forest, random_case(forest, (2000,), torch.float32))
    assert threads._pool.size == 2


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


def test_four_threads_may_call_at_once(set_threads, job_counts):
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
    assert 2 in job_counts
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
def test_a_forked_child_computes_after_its_parent_did(name, dropout, set_threads, job_counts):
    set_threads(2)
    forest = FORESTS[name]
    case = random_case(forest, (FEW,))
    wanted = seeded(forest, case, dropout)
    parents_pool = threads._pool
    assert parents_pool.size >= 1

    def child():
        job_counts.clear()
        assert threads._pool is not parents_pool
        assert_same_bits(seeded(forest, case, dropout), wanted)
        assert 2 in job_counts
        assert threads._pool.size >= 1

    assert in_child(child) == 0
    assert_same_bits(seeded(forest, case, dropout), wanted)


@forks
@pytest.mark.usefixtures("job_counts")
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
@pytest.mark.usefixtures("job_counts")
@pytest.mark.parametrize("name", ["forty", "matmul, deep"])
def test_forked_workers_of_a_data_loader_compute_after_their_parent_did(name, set_threads):
    set_threads(2)
    forest = FORESTS[name]
    case = random_case(forest, (12,))
    seeded(forest, case)
    data = Features(forest, *case[:3])
    loader = DataLoader(data, batch_size=4, num_workers=2, multiprocessing_context="fork", timeout=60)
    found = torch.cat(list(loader))
    torch.testing.assert_close(found, loop(*case[:3], forest, torch.tanh))


@pytest.mark.parametrize("file", ["forward.py", "backward.py"])
def test_a_buffer_read_by_its_address_lives_until_the_kernel_returns(file):
    """Numba frees an array right after its last use in the source, whatever still points into it."""
    source = Path(kernels.__file__).with_name(file).read_text(encoding="utf-8")
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    borrowing = [function for function in functions if "buffer.ctypes.data" in ast.unparse(function)]
    assert borrowing
    for function in borrowing:
        assert "buffer" in ast.unparse(function.body[-1]), function.name
