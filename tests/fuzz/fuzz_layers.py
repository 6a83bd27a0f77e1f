"""Random layers against a loop over their edges in float64: outputs and all gradients, the same bits on any threads."""

import contextlib
import copy
import random
from unittest.mock import patch

import torch
from forests import loop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wiring_cases import layer_options

from dendritree import DendriticLayer
from dendritree.ops import fused, launch, native
from dendritree.ops.dropout import draw_seed, synapse_scale
from dendritree.ops.neurons import dense
from dendritree.randomness import dropout as drop

THREADS = (1, 2, 3, 7)
BYTES = 1 << 14
"""What a case is drawn from."""
TOLERANCES = {torch.float32: 1e-4, torch.float64: 1e-11}
"""Of the largest number of a tensor. A wrong edge or a lost thread differs by much more."""
KINKS = {torch.float32: 1e-4, torch.float64: 1e-11}
"""Sums so near to 0 may get another sign by rounding, and with it another slope: their samples have no gradients."""


@st.composite
def batches(draw):
    """Leading dimensions: none, one, many, odd, empty; around the lengths of tiles and beyond."""
    one = st.sampled_from([0, 1, 2, 3, 15, 16, 17, 63, 64, 65, 127, 128, 129]) | st.integers(0, 400)
    return draw(st.just(()) | one.map(lambda n: (n,)) | st.tuples(st.integers(0, 5), st.integers(0, 9)))


def laid_out(values, kind):
    """The same numbers, lying in memory in another way."""
    if kind == "features apart":
        return torch.stack([values, torch.full_like(values, torch.nan)], dim=-1).flatten(-2)[..., ::2]
    if kind == "samples apart":
        return torch.stack([values, torch.full_like(values, torch.nan)], dim=-2).flatten(-2)[..., : values.shape[-1]]
    if kind == "transposed":
        return values.movedim(-1, 0).contiguous().movedim(0, -1)
    if kind == "one sample for all" and values.numel():
        return values[(0,) * (values.dim() - 1)].expand(values.shape)
    return values.contiguous()


LAYOUTS = ["plain", "plain", "features apart", "samples apart", "transposed", "one sample for all"]

layers = st.fixed_dictionaries(
    {
        "activation": st.sampled_from(["leaky_relu", "relu", "tanh", "sigmoid", "none", "gelu", "silu"]),
        "root_activation": st.booleans(),
        "dropout": st.sampled_from([0.0, 0.0, 0.3, 0.5, 0.97]),
        "dropout_per": st.sampled_from(["synapse", "synapse", "input"]),
        "dtype": st.sampled_from([torch.float32, torch.float64]),
    }
)
numbers = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32),
        "leading": batches(),
        "size": st.sampled_from([0.0, 1e-3, 1.0, 1.0, 30.0]),
        "layout": st.sampled_from(LAYOUTS),
        "cotangent": st.sampled_from(LAYOUTS),
        "training": st.booleans(),
        "needs_x": st.booleans(),
        "frozen": st.sampled_from(["", "", "", "weight", "bias"]),
        "always_threads": st.booleans(),
    }
)


@contextlib.contextmanager
def threads(count, *, always):
    """So many threads of torch; with `always` also for work that one would do alone."""
    before = torch.get_num_threads(), native.PARALLEL_FROM
    _force(count, 1 if always else before[1])
    try:
        yield
    finally:
        _force(*before)


def _force(count, parallel_from):
    torch.set_num_threads(count)
    native.PARALLEL_FROM = parallel_from
    for function in vars(launch).values():  # what it has worked out for the threads before
        if getattr(function, "__module__", "") == launch.__name__ and hasattr(function, "cache_clear"):
            function.cache_clear()


def results(layer, x, cotangent, seed, backend):
    """Outputs with and without autograd, and the gradients, by name."""
    for module in layer.modules():
        if hasattr(module, "backend"):
            module.backend = backend
    layer.zero_grad()
    x = x.detach().requires_grad_(x.requires_grad)
    plain_only = (
        patch.object(dense, "can_run", new=lambda *_: False) if backend == "eager" else contextlib.nullcontext()
    )
    with plain_only:
        with torch.no_grad():
            torch.manual_seed(seed)
            plain = layer(x)
        torch.manual_seed(seed)
        y = layer(x)
        if y.requires_grad:
            y.backward(cotangent)
    found = {"output": y.detach(), "output without autograd": plain, "gradient of x": x.grad}
    found |= {f"gradient of {name}": value.grad for name, value in layer.named_parameters()}
    return {name: value for name, value in found.items() if value is not None}


def wanted_results(layer, x, cotangent, judge):
    """The same by `judge(layer, x, near)` in float64, which gives outputs and whether they are `near` a kink.

    Those lose their cotangent, in place.
    """
    layer = copy.deepcopy(layer).double()
    near = KINKS[x.dtype] * max([1.0, *x.detach().abs().flatten().tolist()])
    x64 = x.detach().double().requires_grad_(x.requires_grad)  # it lies in memory as x does: dropout is drawn so
    with torch.enable_grad():
        y, kinks = judge(layer, x64, near)
    if kinks is not None and y.numel():
        cotangent[kinks] = 0
    if y.requires_grad:
        y.backward(cotangent.double())
    wanted = {"output": y.detach(), "output without autograd": y.detach(), "gradient of x": x64.grad}
    wanted |= {f"gradient of {name}": value.grad for name, value in layer.named_parameters()}
    return {name: value for name, value in wanted.items() if value is not None}


def loop_over_edges(trees, x, near, scale=None):
    """The trees of a `DendriticLayer`, one edge after the other; samples are near a kink if any of their sums is."""
    kinks = []

    def activation(sums):
        kinks.append((sums.detach() != 0) & (sums.detach().abs() < near))
        return trees.activation(sums)

    y = loop(x, trees.weight, trees.bias, trees.forest, activation, trees.root_activation, scale)
    return y, torch.stack(kinks).any(0) if kinks else None


def dropped_out(seed, dtype):
    """A judge of trees with dropout, which is drawn once more from the seed, in the type of the input."""

    def judge(layer, x, near):
        torch.manual_seed(seed)
        if not (layer.training and layer.dropout):
            return loop_over_edges(layer, x, near)
        if layer.dropout_per == "input":
            kept = drop(torch.ones_like(x, dtype=dtype), layer.dropout).double()
            return loop_over_edges(layer, x * kept, near)
        samples = x.reshape(-1, x.shape[-1]).shape[0]
        scale = synapse_scale(draw_seed(x.device), samples, layer._plan.pairs, layer.dropout, torch.float64)
        return loop_over_edges(layer, x, near, scale.reshape(*x.shape[:-1], layer.forest.synapses))

    return judge


def assert_close(found, wanted, what, dtype, room=1.0):
    assert found.keys() == wanted.keys(), f"{what}: {found.keys()} instead of {wanted.keys()}"
    for name, right in wanted.items():
        value = found[name]
        assert value.shape == right.shape, f"{what}, {name}: shape {value.shape} instead of {right.shape}"
        if not right.numel():
            continue
        error, size = (value.double() - right).abs().max().item(), max(1.0, right.abs().max().item())
        allowed = room * TOLERANCES[dtype] * size
        assert error <= allowed, f"{what}, {name}: off by {error:g} where numbers are up to {size:g}"


def compare(layer, case, judge, about, backend, room=1.0):
    """A layer against its judge on the numbers of a case: all backends, and one that has the same bits on any threads.

    That one is None where no such thing is promised. `room`: how many times the tolerance, where terms cancel.
    """
    dtype = next(layer.parameters()).dtype
    layer.train(case["training"])
    x = laid_out(torch.randn(*case["leading"], layer.in_features, dtype=dtype) * case["size"], case["layout"])
    x.requires_grad_(case["needs_x"])
    cotangent = laid_out(torch.randn(*case["leading"], layer.out_features, dtype=dtype), case["cotangent"])
    plain = cotangent.clone()
    wanted = wanted_results(layer, x, plain, judge)
    if not torch.equal(plain, cotangent):
        cotangent = plain  # samples were taken out
    for each in ("eager", "auto"):
        assert_close(results(layer, x, cotangent, case["seed"], each), wanted, f"{each}: {about}", dtype, room)
    if backend is not None:
        assert_same_bits_on_any_threads(layer, x, cotangent, case, wanted, about, backend)


def assert_same_bits_on_any_threads(layer, x, cotangent, case, wanted, about, backend):
    bits = {}
    for count in THREADS:
        with threads(count, always=case["always_threads"]):
            bits[count] = results(layer, x, cotangent, case["seed"], backend)
        assert_close(bits[count], wanted, f"{count} threads: {about}", x.dtype)
        for name, value in bits[count].items():
            assert torch.equal(value, bits[1][name]), f"{name} differs between 1 and {count} threads: {about}"


@settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
@given(layer_options(side=9, most_neurons=12), layers, numbers)
def check(trees, options, case):
    torch.manual_seed(case["seed"])
    layer = DendriticLayer(**trees, **options)
    if layer.bias is not None:
        torch.nn.init.normal_(layer.bias)
    if case["frozen"] == "weight" or (case["frozen"] and layer.bias is not None):
        getattr(layer, case["frozen"]).requires_grad_(False)
    can_fuse = fused.obstacle(layer.weight, layer.weight, layer.activation) is None
    judge = dropped_out(case["seed"], layer.weight.dtype)
    compare(layer, case, judge, f"{trees} {options} {case}", "fused" if can_fuse else None)


def run_drawn(check, seed):
    """A case drawn from bytes of the seed; bytes that make none are counted."""
    with torch.random.fork_rng(devices=[]):
        drawn = check.hypothesis.fuzz_one_input(random.Random(seed).randbytes(BYTES))
    return "no layer" if drawn is None else "right"


def run(seed, _folder):
    """One layer of trees."""
    return run_drawn(check, seed)
