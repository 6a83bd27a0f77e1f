"""The report as data and as a table."""

import re

import pytest
from torch import nn

from dendritree import convert
from dendritree.conversion.report import ConversionReport


def test_layers_that_differ_in_their_number_share_a_line():
    blocks = [
        nn.ModuleDict({"body": nn.TransformerEncoderLayer(32, 2, 96), "out": nn.Linear(32, 32)}) for _ in range(12)
    ]
    model = nn.ModuleDict({"blocks": nn.ModuleList(blocks), "head": nn.Linear(32, 10), "other": nn.Linear(4, 4)})
    report = convert(model, where=["blocks", "head"])[1]
    text = str(report)
    assert [line.split("  ")[0] for line in text.splitlines()[:6]] == [
        "module",
        "12 x blocks.*.body.(linear1, linear2)",
        "12 x blocks.*.out",
        "head",
        "converted, in all",
        "the whole model",
    ]
    assert re.search(
        r"left alone \(MultiheadAttention reads.*\):\n  12 x blocks\.\*\.body\.self_attn\.out_proj$", text, re.M
    )
    assert re.search(r"left alone \(where= does not select it\):\n  other$", text, re.M)
    assert "distill" in text
    assert str(report.left_alone) in text
    assert "distill" not in str(ConversionReport((), (), 9, 9))


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
        }
    ]
    assert re.search(r"\(0, 2\) .* 9,610 -> 2,356  9,472 -> 2,116$", str(report), re.M)


# a neuron's parameters: 31 + 5 edges and 5 + 1 nodes; 29 + 10 + 4 + 2 edges and 10 + 4 + 2 + 1 nodes
@pytest.mark.parametrize(
    ("branching", "a_neuron", "shape"),
    [("auto", 42, "[7, 5]"), (3, 62, "b=3"), ([5, 4], 29, "[5, 4]"), ([4, [3]], 10, "[4, [3]]")],
)
def test_a_tree_is_shown_level_by_level(branching, a_neuron, shape):
    report = convert(nn.Linear(64, 20), branching=branching, budget=20 * a_neuron)[1]
    assert report.changes[0].after == f"64-20 {shape}"
    assert report.parameters_after == 20 * a_neuron
    assert "(the model)" in str(report)
