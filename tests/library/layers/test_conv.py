"""DendriticConv2d and DendriticConv1d: the contract of nn.Conv2d, and a DendriticLayer at every patch."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from dendritree import DendriticConv1d, DendriticConv2d, DendriticLayer, count, load, save, summary
from dendritree.errors import OptionError, ShapeError
from dendritree.wiring import Local, Random, Tied

TREES = {
    "shared": {"branching": [4, 3]},
    "auto": {},
    "deep": {"branching": 2, "ragged": True},
    "random": {"branching": [3, 2], "wiring": "random"},
    "local": {"branching": [4, 2], "wiring": Local(window=2)},
    "tied": {"branching": [2, 4], "wiring": Tied(window=1, stride=1)},
    "nested": {"branching": [2, [3], [1, [2]]], "wiring": "random"},
    "k-tree": {"branching": 3, "ragged": True, "repeats": 2},
}
trees = pytest.mark.parametrize("tree", TREES)


def at_every_patch(conv, x):
    """A DendriticLayer with the trees of a convolution, called at one patch after the other."""
    kernel, stride, dilation = conv.kernel_size, conv.stride, conv.dilation
    if isinstance(conv.padding, str):
        total = [d * (k - 1) if conv.padding == "same" else 0 for k, d in zip(kernel, dilation, strict=True)]
        x = F.pad(x, (total[1] // 2, total[1] - total[1] // 2, total[0] // 2, total[0] - total[0] // 2))
    else:
        x = F.pad(x, (conv.padding[1], conv.padding[1], conv.padding[0], conv.padding[0]))
    layer = DendriticLayer.from_forest(
        conv.forest,
        bias=conv.bias is not None,
        activation=conv.activation,
        root_activation=conv.root_activation,
        dtype=x.dtype,
        backend="reference",
    )
    layer.weight = conv.weight
    layer.bias = conv.bias
    rows = []
    for top in range(0, x.shape[-2] - dilation[0] * (kernel[0] - 1), stride[0]):
        row = []
        for left in range(0, x.shape[-1] - dilation[1] * (kernel[1] - 1), stride[1]):
            patch = x[
                ...,
                top : top + dilation[0] * (kernel[0] - 1) + 1 : dilation[0],
                left : left + dilation[1] * (kernel[1] - 1) + 1 : dilation[1],
            ]
            row.append(layer(patch.flatten(-3)))
        rows.append(torch.stack(row, dim=-1))
    return torch.stack(rows, dim=-2)


def numbers(conv, x, function=None):
    """Outputs and all gradients."""
    x = x.clone().requires_grad_()
    conv.zero_grad()
    y = (function or conv)(x)
    cotangent = torch.randn(y.shape, dtype=y.dtype, generator=torch.Generator().manual_seed(1))
    (y * cotangent).sum().backward()
    actual = {"output": y.detach(), "x": x.grad, "weight": conv.weight.grad.clone()}
    return actual if conv.bias is None else {**actual, "bias": conv.bias.grad.clone()}


def assert_same(actual, expected, tolerance=1e-10):
    assert actual.keys() == expected.keys()
    for name in expected:
        torch.testing.assert_close(
            actual[name], expected[name], rtol=tolerance, atol=tolerance, msg=lambda m, n=name: f"{n}: {m}"
        )


def with_biases(conv):
    """Biases that are not 0."""
    with torch.no_grad():
        if conv.bias is not None:
            conv.bias.copy_(torch.randn(conv.bias.shape, generator=torch.Generator().manual_seed(2)))
    return conv


# --------------------------------------------------------------------------------------------------------- the numbers

pairs = st.tuples(st.integers(1, 3), st.integers(1, 3))


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@settings(max_examples=60)
@given(
    st.data(),
    st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(1, 3)),
    pairs,
    pairs,
    pairs,
    st.sampled_from(["auto", "eager", "reference"]),
)
def test_one_level_without_an_activation_is_conv2d(data, sizes, kernel, stride, dilation, backend):
    batch, ins, outs = sizes
    padding = data.draw(st.tuples(st.integers(0, 4), st.integers(0, 4)) | st.sampled_from(["same", "valid"]))
    if padding == "same":
        stride = (1, 1)
    zeros = (0, 0) if isinstance(padding, str) else padding
    image = [
        data.draw(st.integers(1, 5)) + max(0, d * (k - 1) - 2 * p * (padding != "same"))
        for k, d, p in zip(kernel, dilation, zeros, strict=True)
    ]
    conv = with_biases(
        DendriticConv2d(
            ins,
            outs,
            kernel,
            stride,
            padding,
            dilation,
            branching=max(2, ins * kernel[0] * kernel[1]),
            ragged=True,
            activation=None,
            backend=backend,
            dtype=torch.float64,
        )
    )
    x = torch.randn(batch, ins, *image, dtype=torch.float64)

    def stock(x):
        return F.conv2d(x, conv.weight.view(outs, ins, *kernel), conv.bias, stride, padding, dilation)

    actual, expected = numbers(conv, x), numbers(conv, x, stock)
    assert_same(actual, expected)
    assert actual["output"].is_contiguous()


@trees
@pytest.mark.parametrize(
    "shape",
    [
        {"kernel_size": 3, "padding": 1},
        {"kernel_size": (2, 3), "stride": (2, 1), "padding": "valid"},
        {"kernel_size": (3, 2), "stride": 2, "padding": (0, 2), "dilation": (1, 2)},
        {"kernel_size": (2, 4), "padding": "same", "dilation": (3, 1)},
    ],
    ids=str,
)
def test_a_filter_is_a_dendritic_layer_at_every_patch(tree, shape):
    torch.manual_seed(0)
    if tree == "shared":
        shape = {**shape, "kernel_size": (2, 3)}  # twelve inputs
    conv = with_biases(DendriticConv2d(2, 3, **shape, **TREES[tree], activation="tanh", dtype=torch.float64))
    x = torch.randn(2, 2, 6, 7, dtype=torch.float64)
    assert_same(numbers(conv, x), numbers(conv, x, lambda x: at_every_patch(conv, x)))


def test_sequences_are_images_one_pixel_high():
    options = {"branching": [4, 3], "wiring": Random(seed=0), "dtype": torch.float64}
    one = DendriticConv1d(2, 3, 6, 2, 3, 2, **options)
    two = DendriticConv2d(2, 3, (1, 6), (1, 2), (0, 3), (1, 2), **options)
    two.load_state_dict(one.state_dict())
    x = torch.randn(3, 2, 17, dtype=torch.float64)
    assert_same(numbers(one, x), numbers(one, x, lambda x: at_every_patch(two_like(two, one), x[:, :, None])[:, :, 0]))
    assert one(x).shape == nn.Conv1d(2, 3, 6, 2, 3, 2).double()(x).shape
    assert torch.equal(one(x), two(x.unsqueeze(2)).squeeze(2))
    assert one(x[0]).shape == one(x).shape[1:]


def two_like(two, one):
    two.weight, two.bias = one.weight, one.bias
    return two


def test_images_need_no_batch_and_may_have_several():
    conv = DendriticConv2d(2, 3, 3, padding=1)
    x = torch.randn(2, 3, 2, 5, 4)
    expected = conv(x.flatten(0, 1)).unflatten(0, (2, 3))
    torch.testing.assert_close(conv(x), expected)
    torch.testing.assert_close(conv(x[0, 0]), expected[0, 0])
    assert conv(x[:0]).shape == (0, 3, 3, 5, 4)


# ------------------------------------------------------------------------------------------------------------- dropout


def test_dropout_silences_synapses_at_each_position_on_its_own():
    conv = DendriticConv2d(1, 1, 1, dropout=0.5, activation=None, bias=False)
    conv.weight.data.fill_(1.0)
    x = torch.ones(4, 1, 16, 16)
    y = conv(x)
    assert set(y.unique().tolist()) == {0.0, 2.0}
    assert 0.4 < (y == 0).float().mean() < 0.6
    assert torch.equal(conv.eval()(x), x)


@pytest.mark.parametrize("tree", ["shared", "nested", "tied"])
def test_all_backends_silence_the_same_synapses(tree):
    shape = (2, 3) if tree == "shared" else 3
    actual = {}
    for backend in ("fused", "eager", "reference"):
        torch.manual_seed(0)
        conv = with_biases(DendriticConv2d(2, 3, shape, 2, 1, **TREES[tree], dropout=0.4, dtype=torch.float64))
        conv.backend = backend
        torch.manual_seed(1)
        actual[backend] = numbers(conv, torch.randn(3, 2, 9, 8, dtype=torch.float64))
    assert_same(actual["fused"], actual["eager"])
    assert_same(actual["fused"], actual["reference"])


# ------------------------------------------------------------------------------------------------------- the contract


def test_the_wiring_sees_the_patch_as_an_image():
    conv = DendriticConv2d(3, 4, (5, 6), branching=[4, 2], wiring=Local(window=2, seed=0))
    assert conv.wiring.image_shape == (3, 5, 6)
    rows, columns = conv.forest.synapse_inputs // 6 % 5, conv.forest.synapse_inputs % 6
    top, left, high, wide = conv.windows[conv.forest.node_of_edge[conv.forest.synapse_edges]].T
    assert ((rows >= top) & (rows < top + high) & (columns >= left) & (columns < left + wide)).all()
    assert DendriticConv1d(3, 4, 6, wiring="morton").wiring.image_shape == (3, 1, 6)


def test_parameters_and_multiply_adds_are_counted_and_listed():
    conv = DendriticConv2d(3, 8, 5, stride=2, branching=[25, 3])
    model = nn.Sequential(conv, nn.Flatten(), nn.Linear(8 * 36, 10))
    counts = count(model, (3, 16, 16))
    assert counts.total == sum(p.numel() for p in model.parameters()) == 8 * (75 + 3 + 4) + 2890
    assert counts.multiply_adds == 36 * 8 * 78 + 2880
    assert count(model).multiply_adds is None
    line = summary(model, (3, 16, 16)).layers[0]
    assert (line.layer, line.trees, line.wiring) == ("DendriticConv2d(3, 8)", "75 synapses, 3 + 1 dendrites", "shared")
    assert (line.parameters, line.dense_parameters) == (656, 8 * 76)
    assert (line.multiply_adds, line.dense_multiply_adds) == (36 * 8 * 78, 36 * 8 * 75)


@trees
def test_it_is_saved_and_loaded_also_within_a_model(tree, tmp_path):
    torch.manual_seed(0)
    conv = DendriticConv2d(2, 3, (2, 3), 2, (1, 0), **TREES[tree], activation="tanh", dtype=torch.float64)
    model = nn.Sequential(conv, nn.Flatten(), nn.Linear(3 * 3 * 2, 2).double())
    save(model, tmp_path / "model")
    x = torch.randn(4, 2, 5, 6, dtype=torch.float64)
    opened = load(tmp_path / "model")
    assert repr(opened[0]) == repr(conv)
    assert torch.equal(opened(x), model.eval()(x))
    other = DendriticConv2d(2, 3, (2, 3), 2, (1, 0), **TREES[tree], activation="tanh", dtype=torch.float64)
    other.load_state_dict(conv.state_dict())
    assert torch.equal(other(x), conv(x))


def test_compilers_and_transforms_look_into_it():
    conv = DendriticConv2d(2, 3, 3, 2, padding="valid", branching=[6, 3], dtype=torch.float64)
    x = torch.randn(3, 2, 6, 5, dtype=torch.float64)
    expected = conv(x)
    torch.testing.assert_close(torch.compile(conv, fullgraph=True, backend="aot_eager")(x), expected)
    exported = torch.export.export(conv, (x,), dynamic_shapes=({0: torch.export.Dim("batch")},)).module()
    torch.testing.assert_close(exported(x[:2]), expected[:2])
    parameters = dict(conv.named_parameters())

    def outputs(x):
        return torch.func.functional_call(conv, parameters, (x,))

    torch.testing.assert_close(torch.func.vmap(outputs)(x), expected)
    assert torch.autograd.gradgradcheck(conv, (x[:1].requires_grad_(),))


@pytest.mark.parametrize(
    ("arguments", "options", "word"),
    [
        ((0, 1, 3), {}, "in_channels"),
        ((1, 1, 0), {}, "kernel_size"),
        ((1, 1, 3), {"stride": 0}, "stride"),
        ((1, 1, 3), {"padding": "full"}, "'same', 'valid'"),
        ((1, 1, 3), {"padding": "same", "stride": 2}, "stride 1"),
        ((3, 4, 3), {"branching": 2}, "fan_in 27"),
        ((3, 4, 3), {"wiring": Local(image_shape=(1, 5, 5))}, "image_shape"),
    ],
)
def test_arguments_that_do_not_fit_are_rejected(arguments, options, word):
    with pytest.raises((OptionError, ShapeError), match=word):
        DendriticConv2d(*arguments, **options)


@pytest.mark.parametrize(
    ("shape", "word"),
    [((2, 3), "images"), ((1, 3, 8, 8), "images"), ((1, 2, 8, 2), "kernel, 3 x 5"), ((1, 2, 0, 8), "pixels")],
)
def test_images_that_do_not_fit_are_rejected(shape, word):
    with pytest.raises(ShapeError, match=word):
        DendriticConv2d(2, 3, 3, padding=(0, 1), dilation=(1, 2))(torch.zeros(shape))
