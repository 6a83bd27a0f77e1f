"""The fused backend on the machine: any number of threads gives the same bits, many callers, forked children."""

import multiprocessing
import os
import threading
from functools import partial

import pytest
import torch
from forests import NAMED, assert_same_bits, random_case, run, share
from torch import nn

from dendritree.ops import dendritic, make_plan, native
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
def both_kinds_of_threads(request):
    """Where torch has no OpenMP of gcc, a pool of our own does the work."""
    if request.param == "our pool":
        native.kernels.use_openmp(False)
    elif not native.kernels.uses_openmp:
        pytest.skip("torch has no OpenMP of gcc here")
    yield
    native.kernels.use_openmp(True)


def seeded(forest, case, dropout=0.0, activation=torch.tanh):
    """Outputs and gradients for the same seed of dropout."""
    plan = make_plan(forest)
    torch.manual_seed(3)
    return run(lambda *t: dendritic(*t, plan, activation, dropout=dropout, backend="fused"), case)


# ------------------------------------------------------------------------------------------------ the number of threads


@names
@dropouts
@pytest.mark.parametrize(("samples", "dtype"), [(37, torch.float64), (1000, torch.float32)])
@pytest.mark.usefixtures("both_kinds_of_threads", "always_threads")
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


ACTIVATIONS = [nn.LeakyReLU(0.1), nn.ReLU(), nn.Sigmoid(), nn.GELU(), nn.SiLU(), nn.Identity()]


@pytest.mark.usefixtures("always_threads")
@pytest.mark.parametrize("activation", ACTIVATIONS, ids=repr)
@pytest.mark.parametrize("name", ["one neuron", "forty", "shared, deep"])
def test_every_activation_gives_the_same_bits_for_any_number_of_threads(name, activation, set_threads, thread_counts):
    forest = FORESTS[name]
    case = random_case(forest, (611,), torch.float32)
    set_threads(1)
    alone = seeded(forest, case, activation=activation)
    set_threads(2)
    assert_same_bits(seeded(forest, case, activation=activation), alone)
    assert 2 in thread_counts


def test_small_work_stays_in_the_calling_thread_and_large_work_takes_all_that_torch_has(set_threads, thread_counts):
    set_threads(3)
    seeded(FORESTS["unequal"], random_case(FORESTS["unequal"], (8,)))
    assert thread_counts == [1, 1]
    forest = Forest.grow(4, depth=4, neurons=12)
    seeded(forest, random_case(forest, (200,), torch.float32))
    assert thread_counts == [1, 1, 3, 3]


# -------------------------------------------------------------------------------------------------------- many callers


@pytest.mark.usefixtures("both_kinds_of_threads", "always_threads")
def test_four_threads_may_call_at_once(set_threads, thread_counts):
    set_threads(2)
    names_, actual, barrier = ["one neuron", "forty", "unequal", "shared"], {}, threading.Barrier(4)
    cases = {name: random_case(FORESTS[name], (400,)) for name in names_}
    plans = {name: make_plan(FORESTS[name]) for name in names_}

    def work(name):
        barrier.wait()
        op = partial(dendritic, plan=plans[name], activation=torch.tanh, backend="fused")
        actual[name] = [run(op, cases[name]) for _ in range(10)]

    callers = [threading.Thread(target=work, args=(name,)) for name in names_]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
    assert not any(caller.is_alive() for caller in callers)
    assert 2 in thread_counts
    for name in names_:
        expected = seeded(FORESTS[name], cases[name])
        for result in actual[name]:
            assert_same_bits(result, expected, name)


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
@pytest.mark.usefixtures("both_kinds_of_threads", "always_threads")
def test_a_forked_child_computes_after_its_parent_did(name, dropout, set_threads, thread_counts):
    set_threads(2)
    forest = FORESTS[name]
    case = random_case(forest, (FEW,))
    expected = seeded(forest, case, dropout)
    assert 2 in thread_counts

    def child():
        assert_same_bits(seeded(forest, case, dropout), expected)

    assert in_child(child) == 0
    assert_same_bits(seeded(forest, case, dropout), expected)
