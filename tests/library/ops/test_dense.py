"""The fused loops of `ops/neurons/dense.py` match PyTorch's operations, and are not used if those are needed."""

import math

import pytest
import torch
from torch.nn import functional as F

from dendritree.ops import native
from dendritree.ops.neurons import dense
from dendritree.ops.neurons.box_depths import box_depths
from dendritree.ops.neurons.log_products import log_sigmoid_products

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # torch warns of what it uses itself
DTYPES = (torch.float32, torch.float64)
SHAPES = ((1, 1, 1), (3, 5, 2), (65, 129, 3), (70, 897, 2), (130, 64, 1), (2, 2000, 3))  # samples, inputs, dendrites
OPS = {
    "products": log_sigmoid_products,
    "hard": box_depths,
    "smooth": lambda x, low, high: box_depths(x, low, high, 0.1),
}
DEFINITIONS = {
    "products": lambda x, gain, shift: F.logsigmoid(x.unsqueeze(1) * gain - shift).sum(-1),
    "hard": lambda x, low, high: torch.cat([x.unsqueeze(1) - low, high - x.unsqueeze(1)], -1).amin(-1),
    "smooth": lambda x, low, high: (
        -0.1 * (torch.cat([low - x.unsqueeze(1), x.unsqueeze(1) - high], -1) / 0.1).logsumexp(-1)
    ),
}
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}


def draw(shape, dtype, scale=1.0, seed=0):
    samples, inputs, dendrites = shape
    generator = torch.Generator().manual_seed(seed)
    rows = [torch.randn(count, inputs, generator=generator, dtype=dtype) for count in (samples, dendrites, dendrites)]
    return rows[0], rows[1] * scale, rows[2] * scale


def gradients(op, tensors, weights):
    leaves = [tensor.clone().requires_grad_() for tensor in tensors]
    y = op(*leaves)
    return [y.detach(), *torch.autograd.grad(y, leaves, weights.to(y.dtype))]


@pytest.fixture
def calls(monkeypatch):
    """The steps that the kernels did, by name."""
    seen, original = [], dense._run

    def record(step, *tensors, **options):
        seen.append(step.name)
        original(step, *tensors, **options)

    monkeypatch.setattr(dense, "_run", record)
    return seen


def close(actual, expected, tolerance, floor=1e-30):
    expected = expected.double()
    return bool(((actual.double() - expected).abs() <= tolerance * expected.abs().max() + floor).all())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", OPS)
def test_outputs_and_gradients_are_those_of_the_equations_in_float64(name, shape, dtype, calls):
    tensors = draw(shape, dtype)
    weights = torch.randn(shape[0], shape[2], generator=torch.Generator().manual_seed(1), dtype=dtype)
    actual = gradients(OPS[name], tensors, weights)
    assert len(calls) == (1 if name == "hard" else 2)
    expected = gradients(DEFINITIONS[name], [tensor.double() for tensor in tensors], weights)
    for mine, right in zip(actual, expected, strict=True):
        assert mine.dtype == dtype
        assert close(mine, right, TOLERANCE[dtype])


def test_products_of_a_few_synapses_by_loops(calls):
    x, gain, shift = draw((4, 7, 3), torch.float64, scale=3.0)
    y = log_sigmoid_products(x, gain, shift)
    assert calls == ["LOG_PRODUCTS"]
    for s in range(4):
        for d in range(3):
            product = math.prod(1 / (1 + math.exp(shift[d, i] - gain[d, i] * x[s, i])) for i in range(7))
            assert y[s, d].item() == pytest.approx(math.log(product), rel=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("u", [0.0, 1e-6, 0.3, 1.0, 5.0, 17.0, 30.0, 80.0, 86.0, 500.0, 1e4])
def test_every_size_of_the_argument_is_precise_relative_to_the_result(u, dtype, calls):
    """Alone and among 899 of its kind, of either sign: a sum of tiny logarithms is as precise as one of large ones."""
    for value, inputs in ((u, 1), (-u, 1), (u, 900), (-u, 900)):
        one = torch.ones(1, inputs, dtype=dtype)
        tensors = value * one, one, 0 * one
        actual = gradients(log_sigmoid_products, tensors, torch.ones(1, 1))
        expected = gradients(DEFINITIONS["products"], [tensor.double() for tensor in tensors], torch.ones(1, 1))
        for mine, right in zip(actual, expected, strict=True):
            error = (mine.double() - right).abs()
            assert (error <= TOLERANCE[dtype] * right.abs() + (1e-35 if dtype == torch.float32 else 1e-300)).all()
    assert calls


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("scale", [1e2, 1e4])
def test_extreme_weights(name, scale):
    tensors, weights = draw((70, 200, 3), torch.float32, scale=scale), torch.ones(70, 3)
    actual = gradients(OPS[name], tensors, weights)
    expected = gradients(DEFINITIONS[name], [tensor.double() for tensor in tensors], weights)
    assert close(actual[0], expected[0], 1e-5)
    if name == "products":
        assert all(close(mine, right, 1e-5) for mine, right in zip(actual[1:], expected[1:], strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("by_torch", [False, True])
@pytest.mark.parametrize("away", [0.0, 1e4])
def test_no_rounding_is_divided_by_the_temperature(away, by_torch, dtype, monkeypatch):
    """Boxes far from 0, points in them and far outside: shares of the gradient are as precise as their type."""
    if by_torch:
        monkeypatch.setattr(dense, "can_run", lambda *_: False)
    x, low, high = (1e4 + 0.02 * tensor for tensor in draw((5, 6, 2), torch.float32))
    tensors = [tensor.to(dtype) for tensor in (x + away, low, high + 0.05)]
    weights = torch.ones(5, 2)
    actual = gradients(lambda *t: box_depths(*t, 0.01), tensors, weights)
    expected = gradients(lambda *t: box_depths(*t, 0.01), [tensor.double() for tensor in tensors], weights)
    for mine, right in zip(actual, expected, strict=True):
        assert close(mine, right, 10 * torch.finfo(dtype).eps, floor=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_nan_and_infinity_go_where_they_go_in_pytorch(name, odd, which, dtype, monkeypatch):
    tensors = draw((4, 150, 3), dtype)
    tensors[which][1, 7] = tensors[which][1, 140] = odd
    tensors[0][2, 5] = 0.0
    actual = gradients(OPS[name], tensors, torch.ones(4, 3))
    monkeypatch.setattr(dense, "can_run", lambda *_: False)
    expected = gradients(OPS[name], tensors, torch.ones(4, 3))
    for mine, right in zip(actual, expected, strict=True):
        torch.testing.assert_close(mine, right, equal_nan=True, rtol=1e-4, atol=1e-5)


def test_the_first_of_equal_faces_gets_the_gradient(calls):
    low, high = torch.zeros(1, 200, requires_grad=True), torch.ones(1, 200, requires_grad=True)
    x = torch.full((1, 200), 0.5)
    x[0, [3, 67, 131, 190]] = 0.25  # all in one place of the loop's, and one beside
    box_depths(x, low, high).sum().backward()
    assert calls == ["DEPTHS"]
    assert low.grad.nonzero().tolist() == [[0, 3]]
    assert not high.grad.any()


@pytest.mark.parametrize("name", OPS)
def test_threads_change_no_bit(name, monkeypatch):
    tensors, weights = draw((67, 300, 3), torch.float32), torch.ones(67, 3)
    alone = gradients(OPS[name], tensors, weights)
    monkeypatch.setattr(native, "workers_for", lambda _: 3)
    together = gradients(OPS[name], tensors, weights)
    assert all(torch.equal(a, b) for a, b in zip(alone, together, strict=True))


# ------------------------------------------------------------------------------------------ where PyTorch does the work


@pytest.mark.parametrize("name", OPS)
def test_double_backward_and_gradcheck(name):
    tensors = [tensor.requires_grad_() for tensor in draw((3, 4, 2), torch.float64)]
    assert torch.autograd.gradcheck(OPS[name], tensors, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(OPS[name], tensors, check_fwd_over_rev=True)


@pytest.mark.parametrize("name", OPS)
def test_transforms(name, calls):
    x, a, b = draw((3, 4, 2), torch.float64)
    rows = torch.func.vmap(lambda row: OPS[name](row.unsqueeze(0), a, b))(x)
    assert calls == []
    total = torch.func.grad(lambda x: OPS[name](x, a, b).sum())(x)  # the way forward is one of plain tensors
    jacobian = torch.func.jacrev(lambda x: OPS[name](x, a, b))(x)
    assert not any("BACKWARD" in call for call in calls)
    torch.testing.assert_close(rows.squeeze(1), DEFINITIONS[name](x, a, b))
    torch.testing.assert_close(total, jacobian.sum((0, 1)))
    torch.testing.assert_close(total, gradients(DEFINITIONS[name], (x, a, b), torch.ones(3, 2))[1])


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # torch's own, of tracing
@pytest.mark.parametrize("name", OPS)
def test_compiled_code_contains_no_kernel(name, calls):
    tensors, weights = draw((3, 4, 2), torch.float64), torch.ones(3, 2)
    compiled = torch.compile(OPS[name], backend="aot_eager", fullgraph=True)
    actual = gradients(compiled, tensors, weights)
    assert calls == []
    for mine, right in zip(actual, gradients(DEFINITIONS[name], tensors, weights), strict=True):
        torch.testing.assert_close(mine, right)
    torch.compiler.reset()
