"""Two processes over gloo train as one does: DistributedDataParallel and FSDP2."""

import pytest
import torch
from distributed_cases import run_two

from dendritree import DendriticLayer
from dendritree.layers import share_wiring


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return run_two(tmp_path_factory.mktemp("two"))


def test_two_processes_with_half_the_batch_each_train_as_one(results):
    assert min(each["moved"] for each in results) > 0.01
    assert max(each["ddp"] for each in results) < 1e-6


def test_processes_that_drew_other_wirings_share_one_and_then_train_as_one(results):
    (first, after), (second, same) = (each["wiring"] for each in results)
    assert first != second
    assert first == after == same
    assert max(each["shared"] for each in results) < 1e-6


def test_fsdp_shards_the_edges_and_trains_as_one(results):
    assert max(each["fsdp"] for each in results) < 1e-6
    local = [each["local sizes"] for each in results]
    assert [a + b for a, b in zip(*local, strict=True)] == results[0]["sizes"]
    assert max(local[0]) < max(results[0]["sizes"])


def test_without_a_process_group_there_is_nothing_to_share():
    layer = DendriticLayer(16, 4, branching=2, fan_in=4, wiring="random")
    source = layer.forest.source.copy()
    share_wiring(torch.nn.Sequential(layer))
    assert (layer.forest.source == source).all()
