"""The eager backend as GPUs run it, without one: nothing waits for the device, few operations, one graph."""

from collections import Counter

import pytest
import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

from dendritree import DendriticConv2d, DendriticLayer
from dendritree.ops.eager import make_layout
from dendritree.tree import Forest
from dendritree.wiring import Tied


def pruned(neurons):
    """Leaf dendrites of every fan-in from 1 to 16: what is left after pruning."""
    tree = [16 - n for n in range(16)]
    forest = Forest.join([Forest.nested([[fan_in] for fan_in in tree])] * neurons)
    generator = torch.Generator().manual_seed(0)
    return forest.wired(torch.randint(32, (forest.synapses,), generator=generator).numpy(), 32)


def unbalanced(neurons):
    return Forest.join([Forest.nested([3, [2], [2, [4]]])] * neurons)


LAYERS = {
    "shared": lambda n, **options: DendriticLayer(16, n, branching=4, **options),
    "partition": lambda n, **options: DendriticLayer(16 * n, n, branching=4, wiring="partition", **options),
    "random": lambda n, **options: DendriticLayer(64, n, fan_in=16, branching=4, wiring="random", **options),
    "ragged": lambda n, **options: DendriticLayer(23, n, branching=4, ragged=True, **options),
    "k-trees": lambda n, **options: DendriticLayer(16, n, branching=4, repeats=3, **options),
    "tied": lambda n, **options: DendriticLayer(64, n, branching=[6, 4], wiring=Tied(window=3), **options),
    "unbalanced": lambda n, **options: DendriticLayer.from_forest(unbalanced(n), **options),
    "pruned": lambda n, **options: DendriticLayer.from_forest(pruned(n), **options),
    "convolution": lambda n, **options: DendriticConv2d(2, n, 3, padding=1, branching=[9, 2], **options),
    "uneven padding": lambda n, **options: DendriticConv2d(2, n, 2, padding="same", branching=[4, 2], **options),
}
OPTIONS = {
    "plain": {},
    "dropout": {"dropout": 0.5},
    "inputs dropped": {"dropout": 0.5, "dropout_per": "input"},
    "linear roots": {"root_activation": False, "bias": False},
}
every_layer = pytest.mark.parametrize("name", LAYERS)
every_option = pytest.mark.parametrize("options", OPTIONS)

CONSTANTS = {"arange", "lift_fresh", "scalar_tensor", "linspace", "eye", "tril_indices", "triu_indices"}
"""Operations that make numbers out of nothing: what could be an index."""


def inputs_of(layer, batch, **options):
    shape = (layer.in_channels, 7, 8) if isinstance(layer, DendriticConv2d) else (layer.in_features,)
    return torch.zeros(batch, *shape, **options)


class Operations(TorchDispatchMode):
    """The operations that are run, by name; one that sees two devices or leaves one for another raises."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        given, kwargs = torch.utils._pytree.tree_leaves((args, kwargs)), kwargs or {}
        result = func(*args, **kwargs)
        actual = torch.utils._pytree.tree_leaves(result)
        devices = {each.device.type for each in (*given, *actual) if isinstance(each, torch.Tensor)}
        assert len(devices) <= 1, f"{func} is given or gives tensors on {devices}"
        self.names.append(func.overloadpacket.__name__)
        return result


def step(layer, x, backward=True):
    """A training step's work, or only its way forward."""
    with torch.set_grad_enabled(backward), torch.autograd.set_multithreading_enabled(False):
        y = layer(x)
        if backward:
            torch.autograd.grad(y, [x, *layer.parameters()], torch.ones_like(y))
    return y


# ------------------------------------------------------------------------------------- nothing waits for the device


@every_option
@every_layer
def test_nothing_waits_for_a_device_without_numbers(name, options):
    """There is nothing on the meta device that could be waited for: `item`, `nonzero` and copies to the host raise."""
    layer = LAYERS[name](4, **OPTIONS[options], device="meta")
    with Operations() as operations:
        y = step(layer, inputs_of(layer, 5, device="meta", requires_grad=True))
    assert y.shape[:2] == (5, 4)
    constants = [each for each in operations.names if each in CONSTANTS]
    assert constants == (["arange"] if options == "dropout" else [])  # the numbers of the samples, for their masks


# ------------------------------------------------------------------------------------------------- few operations

VIEWS = {
    *(
        "as_strided",
        "expand",
        "expand_as",
        "narrow",
        "permute",
        "reshape",
        "select",
        "slice",
        "split",
        "split_with_sizes",
    ),
    *("squeeze", "t", "transpose", "unfold", "unsqueeze", "view", "_reshape_alias", "_unsafe_view"),
    *("alias", "detach", "resolve_conj", "result_type"),
}
"""Operations that start no kernel."""


def counts(layer, batch):
    """How often a step starts each operation, as the profiler sees it; those in a matrix product are of the CPU."""
    x = inputs_of(layer, batch, requires_grad=True)
    step(layer, x)
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        step(layer, x)
    names = [event.name.removeprefix("aten::") for event in seen.events() if is_ours(event)]
    return Counter(name for name in names if name not in VIEWS)


def is_ours(event):
    return event.name.startswith("aten::") and not in_product(event.cpu_parent)


def in_product(event):
    return event is not None and (event.name == "aten::bmm" or in_product(event.cpu_parent))


@every_option
@every_layer
def test_the_number_of_operations_depends_on_neither_batch_nor_neurons(name, options):
    few = counts(LAYERS[name](3, **OPTIONS[options], backend="eager"), 2)
    many = counts(LAYERS[name](24, **OPTIONS[options], backend="eager"), 64)
    assert many == few
    assert few.keys().isdisjoint({"item", "_local_scalar_dense", "nonzero", "masked_select"})
    assert few["arange"] == few["lift_fresh"] == 0 or options == "dropout"


@pytest.mark.parametrize("largest", [5, 16, 300])
def test_a_level_of_many_fan_ins_is_a_few_groups(largest):
    forest = Forest.join([Forest.nested([fan_in]) for fan_in in range(1, largest + 1)])
    groups = make_layout(forest).levels[0].groups
    assert len(groups) <= largest.bit_length()
    assert sum(group.fan_in * group.nodes_each * group.shared_by for group in groups) < 2 * forest.edges


# ------------------------------------------------------------------------------------------------------- one graph
