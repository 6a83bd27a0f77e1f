"""Random convolutions against a loop over the edges of their trees, patch by patch, in float64."""

import torch
from fuzz_layers import (
    assert_close,
    assert_same_bits_on_any_threads,
    loop_over_edges,
    results,
    run_drawn,
    wanted_results,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from dendritree import DendriticConv1d, DendriticConv2d

MOST = 60_000
"""Numbers in all patches of a case."""


@st.composite
def convolutions(draw):
    """Options of a convolution, and images that it fits: often with rows and columns at the end that no patch reads."""
    axes = draw(st.sampled_from([1, 2, 2, 2]))
    kernel, stride, dilation, padding = (
        draw(st.tuples(*[st.integers(least, most)] * axes)) for least, most in ((1, 8), (1, 8), (1, 3), (0, 4))
    )
    if draw(st.booleans()):
        stride = kernel  # patches side by side
    channels = draw(st.integers(1, 3))
    span = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    size = [max(1, s - 2 * p) + draw(st.integers(0, 40)) for s, p in zip(span, padding, strict=True)]
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    return channels, kernel, options, size


cases = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32),
        "batch": st.sampled_from([1, 2, 8, 16, 31, 32, 33, 64]),
        "filters": st.integers(1, 9),
        "branching": st.sampled_from(["auto", 2, 3]),
        "activation": st.sampled_from(["leaky_relu", "relu", "tanh", "none"]),
        "dtype": st.sampled_from([torch.float32, torch.float64]),
        "needs_x": st.booleans(),
        "always_threads": st.booleans(),
        "channels_last": st.booleans(),
    }
)


def patch_by_patch(layer, x, near):
    """The trees of a convolution on the patches that torch cuts out."""
    one_axis = len(layer.kernel_size) == 1
    pairs = {name: getattr(layer, name) for name in ("kernel_size", "stride", "padding", "dilation")}
    if one_axis:
        pairs = {name: ((0 if name == "padding" else 1), *value) for name, value in pairs.items()}
    images = x.unsqueeze(-2) if one_axis else x
    rows = F.unfold(images, **pairs).transpose(1, 2)  # (batch, positions, inputs)
    y, kinks = loop_over_edges(layer, rows, near)
    sides = [
        (side + 2 * pairs["padding"][axis] - pairs["dilation"][axis] * (pairs["kernel_size"][axis] - 1) - 1)
        // pairs["stride"][axis]
        + 1
        for axis, side in enumerate(images.shape[2:])
    ]
    shape = (x.shape[0], layer.out_channels, *sides[one_axis:])
    if kinks is not None:  # of positions
        kinks = kinks.reshape(shape[0], 1, *shape[2:]).expand(shape)
    return y.transpose(1, 2).reshape(shape), kinks


@settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
@given(convolutions(), cases)
def check(convolution, case):
    channels, kernel, options, size = convolution
    torch.manual_seed(case["seed"])
    build = DendriticConv1d if len(kernel) == 1 else DendriticConv2d
    trees = {"branching": case["branching"], "ragged": case["branching"] != "auto", "activation": case["activation"]}
    layer = build(channels, case["filters"], kernel, **options, **trees, dtype=case["dtype"])
    torch.nn.init.normal_(layer.bias)
    x = torch.randn(case["batch"], channels, *size, dtype=case["dtype"])
    if case["channels_last"] and len(kernel) == 2:
        x = x.contiguous(memory_format=torch.channels_last)
    x.requires_grad_(case["needs_x"])
    with torch.no_grad():
        cotangent = torch.randn_like(layer(x))
    if cotangent[:, :1].numel() * layer.forest.in_features > MOST:
        return
    about = f"{convolution} {case}"
    wanted = wanted_results(layer, x, cotangent, patch_by_patch)
    assert_close(results(layer, x, cotangent, case["seed"], "eager"), wanted, f"eager: {about}", case["dtype"])
    assert_same_bits_on_any_threads(layer, x, cotangent, case, wanted, about, "fused")


def run(seed, _folder):
    """One convolution."""
    return run_drawn(check, seed)
