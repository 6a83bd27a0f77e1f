"""The report as data and as a table."""

import re

import pytest
from torch import nn

from dendritree import convert
from dendritree.conversion.report import Change, ConversionReport, LeftAlone


def deep(layers, size=32):
    long_name = "a_rather_long_name_of_a_block_that_goes_on_for_quite_a_while_until_the_column_is_full"
    blocks = [
        nn.ModuleDict({long_name: nn.TransformerEncoderLayer(size, 2, 3 * size), "out": nn.Linear(size, size)})
        for _ in range(layers)
    ]
    return nn.ModuleDict({"blocks": nn.ModuleList(blocks), "head": nn.Linear(size, 10)})


def test_layers_that_differ_in_their_number_share_a_line():
    lines = str(convert(deep(12))[1]).splitlines()
    assert [line.split("  ")[0].strip() for line in lines[:6]] == [
        "module",
        next(line for line in lines if "linear1" in line).split("  ")[0].strip(),
        "12 x blocks.*.out",
        "head",
        "converted, in all",
        "the whole model",
    ]
    assert lines[1].startswith("12 x ...")
    assert re.search(r"left alone:\n +12 x\s+\S+\.self_attn\.out_proj:\s+MultiheadAttention reads", "\n".join(lines))
    assert max(map(len, lines)) <= 100


def test_the_table_fits_for_large_numbers():
    change = Change(("x" * 200,), "12288-49152-12288", "12288-99999-12288 [8, 4]", *[123_456_789_012] * 4)
    report = ConversionReport((change,) * 3, (LeftAlone("y" * 90, "because " * 30),), 1, 10**12, 10**12)
    lines = str(report).splitlines()
    assert max(map(len, lines)) <= 100
    assert "1 other perceptron layer not selected" in lines


def test_it_ends_with_what_to_expect_unless_nothing_was_converted():
    report = convert(nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)))[1]
    text = " ".join(str(report).split())
    assert text.endswith(
        "within about a point of a narrower MLP of the same size, ahead or behind: train one beside them."
    )
    assert "distill" not in str(ConversionReport((), report.left_alone, 2, 9, 9))


def test_convolutions_are_told_what_to_expect_of_convolutions():
    model = nn.Sequential(nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 10))
    only, both = (
        " ".join(str(convert(model, where=where, convolutions=True)[1]).split())
        for where in (nn.Conv2d, (nn.Conv2d, nn.Linear))
    )
    assert only.endswith("followed by a depthwise one: train these beside them.")
    assert "narrower MLP" not in only
    assert "narrower MLP" in both
    assert both.endswith("followed by a depthwise one: train these beside them.")


def test_rows_are_exact_and_the_table_shows_their_sums():
    report = convert(nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)), budget=0.25)[1]
    # 46 trees of 8 * 4 + 4 edges and 4 + 1 nodes; 46 * 10 + 10 of the read-out
    assert report.rows() == [
        {
            "modules": "0 + 2",
            "before": "64-128-10",
            "after": "64-46-10 [8, 4]",
            "parameters_before": 64 * 128 + 128 + 128 * 10 + 10,
            "parameters_after": 46 * 41 + 46 * 10 + 10,
            "multiply_adds_before": 64 * 128 + 128 * 10,
            "multiply_adds_after": 46 * 36 + 46 * 10,
            "is_convolution": False,
        }
    ]
    assert re.search(r"\(0, 2\) .* 9,610 -> 2,356  9,472 -> 2,116$", str(report), re.M)


def test_the_model_itself_has_a_name_in_the_table():
    assert "(the model)" in str(convert(nn.Linear(30, 30))[1])


# a neuron's parameters: 31 + 5 edges and 5 + 1 nodes; 29 + 10 + 4 + 2 edges and 10 + 4 + 2 + 1 nodes
@pytest.mark.parametrize(
    ("branching", "a_neuron", "shape"),
    [("auto", 42, "[7, 5]"), (3, 62, "b=3"), ([5, 4], 29, "[5, 4]"), ([4, [3]], 10, "[4, [3]]")],
)
def test_a_tree_is_shown_level_by_level(branching, a_neuron, shape):
    report = convert(nn.Linear(64, 20), branching=branching, budget=20 * a_neuron)[1]
    assert report.changes[0].after == f"64-20 {shape}"
    assert report.parameters_after == 20 * a_neuron
