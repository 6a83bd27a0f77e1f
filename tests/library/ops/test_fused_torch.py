"""The fused backend inside torch: compile, export, torch.func, autocast; what it rejects and why."""

from functools import partial

import pytest
import torch
from forests import NAMED, assert_same, loop, random_case, run, share
from torch import nn
from torch.autograd import forward_ad
from torch.func import grad, jacrev, jvp, vmap
from warm import run as run_program

from dendritree.errors import OptionError
from dendritree.layers import DendriticLayer
from dendritree.ops import dendritic, make_plan
from dendritree.tree import Forest

FOREST = NAMED["balanced, own inputs"]
FORESTS = {"matmul": share(Forest.grow([8, 2], neurons=2)), "balanced": FOREST, "unequal": NAMED["unequal, shared"]}
names = pytest.mark.parametrize("name", FORESTS)
dropouts = pytest.mark.parametrize("dropout", [0.0, 0.4])
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # torch warns of what it uses itself


@pytest.fixture(autouse=True)
def _fresh_compiler():
    """Every test compiles the same lambda: forget what others made of it."""
    torch._dynamo.reset()


def op(forest, dropout=0.0, activation=torch.tanh, backend="fused", **options):
    plan = make_plan(forest)
    return lambda *t: dendritic(*t, plan, activation, dropout=dropout, backend=backend, **options)


def seeded(function, case):
    torch.manual_seed(5)
    return run(function, case)


# ------------------------------------------------------------------------------------------------------- torch.compile


@names
@dropouts
@pytest.mark.parametrize("leading", [(2, 3), pytest.param((6,), marks=pytest.mark.slow)])
def test_compiles_as_one_graph_with_the_numbers_of_eager_mode(name, dropout, leading):
    forest = FORESTS[name]
    function, case = op(forest, dropout), random_case(forest, leading, bias=name != "unequal")
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    assert_same(seeded(compiled, case), seeded(function, case))


@pytest.mark.parametrize("bias", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "activation", [nn.LeakyReLU(0.3), nn.ReLU(), nn.Sigmoid(), nn.GELU(), nn.SiLU(), nn.Identity()], ids=repr
)
def test_every_activation_compiles(activation, bias):
    case = random_case(FOREST, (4,), bias=bias)
    compiled = torch.compile(
        op(FOREST, activation=activation, root_activation=False), fullgraph=True, backend="aot_eager"
    )
    assert_same(run(compiled, case), run(lambda *t: loop(*t, FOREST, activation, False), case))


def test_a_compiled_op_takes_any_batch():
    compiled = torch.compile(op(FOREST), fullgraph=True, backend="aot_eager", dynamic=True)
    for samples in (5, 2, 300, 1, 0):
        case = random_case(FOREST, (samples,))
        assert_same(run(compiled, case), run(lambda *t: loop(*t, FOREST, torch.tanh), case))


@pytest.mark.compiler
@dropouts
def test_inductor_gives_the_numbers_of_the_loop(dropout):
    function, case = op(FOREST, dropout), random_case(FOREST, (6,))
    compiled = torch.compile(function, fullgraph=True)
    actual = seeded(compiled, case)
    if dropout:  # inductor has a generator of its own: as often silent, but other synapses
        assert all(tensor.isfinite().all() for tensor in actual.values())
        assert_same(seeded(compiled, case), actual, rtol=0, atol=0)
    else:
        assert_same(actual, run(lambda *t: loop(*t, FOREST, torch.tanh), case))


# -------------------------------------------------------------------------------------------------------------- export


def layer(**options):
    torch.manual_seed(0)
    return DendriticLayer(16, 2, branching=8, wiring="shared", ragged=True, activation="tanh", **options)


@pytest.mark.parametrize("strict", [True, False])
def test_an_export_has_no_op_of_ours_and_gives_the_same_numbers(strict):
    model, x = layer(), torch.randn(3, 16)
    program = torch.export.export(model, (x,), strict=strict)
    assert "dendritree" not in str(program.graph)
    torch.testing.assert_close(program.module()(x), model(x))


def test_a_saved_export_loads_without_this_package(tmp_path):
    model, x = layer(), torch.randn(3, 16)
    torch.export.save(torch.export.export(model, (x,)), tmp_path / "model.pt2")
    torch.save((x, model(x).detach()), tmp_path / "numbers.pt")
    code = (
        "import sys; sys.modules['dendritree'] = None\n"
        "import torch; x, y = torch.load('numbers.pt')\n"
        "torch.testing.assert_close(torch.export.load('model.pt2').module()(x), y)"
    )
    assert run_program(code, folder=tmp_path) == (0, "", "")


# --------------------------------------------------------------------------------------------- torch.func, forward mode


@names
def test_torch_func_takes_derivatives_of_auto(name):
    forest = FORESTS[name]
    auto, case = op(forest, backend="auto"), random_case(forest, (4,))
    plain = lambda *t: loop(*t, forest, torch.tanh)  # noqa: E731
    x, weight, bias, _ = case
    for transform in (
        lambda f: vmap(f, (0, None, None)),
        lambda f: grad(lambda *t: f(*t).sum(), argnums=(0, 1, 2)),
        lambda f: jacrev(f, argnums=1),
        lambda f: vmap(grad(lambda *t: f(*t).sum(), argnums=1), (0, None, None)),
        lambda f: lambda *t: jvp(f, t, tuple(torch.ones_like(u) for u in t)),
    ):
        torch.testing.assert_close(transform(auto)(x, weight, bias), transform(plain)(x, weight, bias))


# --------------------------------------------------------------------------------------------- autocast and rejections


@names
def test_autocast_computes_in_the_type_of_the_weights(name):
    forest = FORESTS[name]
    case = random_case(forest, (4,), torch.float32)

    def under_autocast(*tensors):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return op(forest)(*tensors)

    actual, expected = run(under_autocast, case), run(op(forest), case)
    assert actual["output"].dtype == torch.float32
    assert_same(actual, expected, rtol=0, atol=0)


class Subclass(torch.Tensor):
    pass


def hooked():
    activation = nn.Tanh()
    activation.register_forward_hook(lambda _module, _given, output: output * 2)
    return activation


KNOWN = "GELU, Identity, LeakyReLU, ReLU, SiLU, Sigmoid, Tanh with a positive slope, not "
REJECTED = {
    "bfloat16": (lambda t: t.bfloat16(), torch.tanh, "computes in float32 and float64, and .* torch.bfloat16"),
    "elu": (lambda t: t, nn.ELU(), KNOWN + "ELU"),
    "approximate gelu": (lambda t: t, nn.GELU("tanh"), KNOWN + "GELU"),
    "negative slope": (lambda t: t, nn.LeakyReLU(-0.1), KNOWN + r"LeakyReLU\(negative_slope=-0.1\)"),
    "a hook": (lambda t: t, hooked(), KNOWN + "Tanh"),
    "a lambda": (lambda t: t, lambda x: x.sin(), KNOWN + "<function"),
    "meta device": (lambda t: t.to("meta"), torch.tanh, "runs on the CPU, and the input is on meta"),
    "a subclass": (lambda t: t.as_subclass(Subclass), torch.tanh, "takes plain tensors, not Subclass"),
}


@pytest.mark.parametrize("reason", REJECTED)
def test_what_the_fused_backend_cannot_do_is_rejected_with_the_reason_and_done_by_auto(reason):
    change, activation, message = REJECTED[reason]
    case = random_case(FOREST, (4,), torch.float32)
    tensors = [change(t) for t in case[:3]]
    plan = make_plan(FOREST, tensors[0].device)
    with pytest.raises(OptionError, match=f"backend 'fused' cannot do this: .*{message}.*'auto' or 'eager' can"):
        dendritic(*tensors, plan, activation, backend="fused")
    actual = dendritic(*tensors, plan, activation)
    assert actual.shape == (4, FOREST.neurons)
    if not actual.is_meta:
        expected = loop(*case[:3], FOREST, activation)
        close = 1e-5 if tensors[0].dtype == torch.float32 else 0.2
        torch.testing.assert_close(torch.Tensor(actual.float()), expected, rtol=close, atol=close)


def assert_rejected(function, message):
    with pytest.raises(Exception, match=f"backend 'fused' cannot do this: .*{message}"):
        function()


def test_fused_alone_is_rejected_where_nobody_can_look_into_it():
    fused, (x, weight, bias, _) = op(FOREST), random_case(FOREST, (4,))
    assert_rejected(partial(vmap(fused, (0, None, None)), x, weight, bias), "torch.func transforms")
    assert_rejected(partial(jacrev(fused), x, weight, bias), "torch.func transforms")
    with forward_ad.dual_level():
        assert_rejected(lambda: fused(forward_ad.make_dual(x, x), weight, bias), "forward-mode gradients")
