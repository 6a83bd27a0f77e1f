"""The state dict of a DendriticLayer: everything is in it, and another tree or wiring is rejected by name."""

import pytest
import torch

from dendritree import DendriticLayer


def layer(**options):
    return DendriticLayer(**{"in_features": 16, "out_features": 2, "branching": 4, "wiring": "shared", **options})


def test_holds_weights_forest_and_format():
    state = layer().state_dict()
    assert sorted(state) == [
        "bias",
        "forest_format",
        "forest_in_features",
        "forest_offsets",
        "forest_roots",
        "forest_source",
        "weight",
    ]
    assert state["forest_format"].item() == 1
    assert state["forest_source"].tolist()[:32] == [*range(16)] * 2


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"branching": 2}, r"same tree and wiring: edges 40 against 60"),
        ({"out_features": 3}, r"same tree and wiring: neurons 2 against 3"),
        ({"in_features": 32, "wiring": "partition"}, r"same tree and wiring: in_features 16 against 32"),
        ({"bias": False}, r"Missing key\(s\) in state_dict: \"bias\""),
    ],
)
def test_rejects_another_tree_with_the_difference_named(other, message):
    target = layer()
    before = target.weight.detach().clone()
    with pytest.raises(RuntimeError, match=message):
        target.load_state_dict(layer(**other).state_dict())
    if "bias" not in other:
        assert torch.equal(target.weight, before)


def test_rejects_another_wiring_of_the_same_tree_even_when_not_strict():
    target, state = layer(), layer().state_dict()
    state["forest_source"] = state["forest_source"].clone()
    state["forest_source"][3] = 7
    before = target.weight.detach().clone()
    with pytest.raises(RuntimeError, match=r"wiring: source\[3\] is 3 against 7"):
        target.load_state_dict(state, strict=False)
    assert torch.equal(target.weight, before)


def test_rejects_a_broken_forest():
    state = layer().state_dict()
    state["forest_source"] = state["forest_source"] + 1000
    with pytest.raises(RuntimeError, match=r"DendriticLayer: .*source must name one of 16 inputs or an earlier node"):
        layer().load_state_dict(state)


def test_missing_forest_is_missing_unless_not_strict():
    source, target = layer(), layer()
    bare = {key: value for key, value in source.state_dict().items() if not key.startswith("forest")}
    with pytest.raises(RuntimeError, match=r"Missing key\(s\).*forest_source"):
        target.load_state_dict(bare)
    target.load_state_dict(bare, strict=False)
    assert torch.equal(source.weight, target.weight)


def test_a_forest_without_one_of_its_entries_is_rejected_with_its_weights():
    target, state = layer(), layer().state_dict()
    before = target.weight.clone()
    del state["forest_roots"]
    with pytest.raises(RuntimeError, match="forest_roots is missing"):
        target.load_state_dict(state, strict=False)
    assert torch.equal(target.weight, before)
