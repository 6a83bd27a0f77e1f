"""The eager backend on the machine: memory, one graph for the compiler, other devices."""

import pytest
import torch
from forests import NAMED, assert_same, loop, random_case, random_scale, run, share
from torch.utils._python_dispatch import TorchDispatchMode

from dendritree.ops import eager
from dendritree.ops.eager import make_layout
from dendritree.tree import Forest


class LargestTensor(TorchDispatchMode):
    """Remembers the largest number of elements that any operation returned."""

    most = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple | list) else [result]:
            if isinstance(tensor, torch.Tensor):
                self.most = max(self.most, tensor.numel())
        return result


@pytest.mark.parametrize("forest", [Forest.grow(32, fan_in=1024, neurons=10), Forest.grow(4, fan_in=64, neurons=20)])
def test_shared_inputs_are_never_repeated_for_the_neurons(forest):
    forest = share(forest)
    batch, nodes = 256, forest.levels[0].stop
    layout, case = make_layout(forest), random_case(forest, (batch,), torch.float32)
    with LargestTensor() as largest:
        run(lambda *tensors: eager.dendritic(*tensors, layout, torch.tanh), case)
    assert largest.most <= batch * max(forest.in_features, nodes) < batch * forest.synapses


@pytest.mark.parametrize(
    "device", [pytest.param("cuda", marks=pytest.mark.cuda), pytest.param("mps", marks=pytest.mark.mps)]
)
@pytest.mark.parametrize("name", NAMED)
def test_other_devices_give_the_numbers_of_the_loop(name, device):
    forest = NAMED[name]
    case, scale = random_case(forest, dtype=torch.float32), random_scale(forest, dtype=torch.float32)
    layout = make_layout(forest, device)
    there = type(case)(*(tensor.to(device) for tensor in case))
    actual = run(lambda *tensors: eager.dendritic(*tensors, layout, torch.tanh, False, scale.to(device)), there)
    assert {tensor.device.type for tensor in actual.values()} == {device}
    exact = case.to(torch.float64)
    expected = run(lambda *tensors: loop(*tensors, forest, torch.tanh, False, scale.double()), exact)
    assert_same({name: tensor.cpu() for name, tensor in actual.items()}, expected, rtol=1e-4, atol=1e-4)
