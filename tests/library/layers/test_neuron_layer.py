"""What holds for the layers of all neurons: the contract of nn.Linear, and state dicts that carry a structure."""

import copy
import pickle
from functools import partial

import pytest
import torch
from neuron_cases import NEURONS

from dendritree import DendriticLayer
from dendritree.errors import DendritreeError, OptionError, ShapeError
from dendritree.layers.neuron_layer import PlannedLayer
from dendritree.neurons import DMNN, DNM, KTree


def make_layer(kind, in_features=16, out_features=3, **options):
    return kind(in_features, out_features, **options)


FAMILIES = {
    "trees": partial(make_layer, DendriticLayer),
    "drawn trees": partial(make_layer, DendriticLayer, fan_in=5, wiring="random"),
    **NEURONS,
    "k-trees": partial(make_layer, KTree, trees=2, wiring="random"),
    "dnm, logit": partial(make_layer, DNM, dendrites=2, soma="logit"),
    "dnm, log": partial(make_layer, DNM, dendrites=2, soma="log"),
    "smooth dmnn": partial(make_layer, DMNN, dendrites=2, temperature=0.1),
}
families = pytest.mark.parametrize("make", FAMILIES.values(), ids=FAMILIES)
NOT_TREES = [name for name, make in FAMILIES.items() if not any(isinstance(m, PlannedLayer) for m in make().modules())]


@families
@pytest.mark.parametrize(
    "options", [{"in_features": 0}, {"in_features": 2.0}, {"out_features": True}, {"dtype": torch.int64}], ids=str
)
def test_bad_sizes_and_types_are_rejected_by_name(make, options):
    with pytest.raises(DendritreeError, match=next(iter(options))):
        make(**options)


@families
@pytest.mark.parametrize("shape", [(), (3, 5)])
def test_inputs_of_another_width_are_rejected(make, shape):
    with pytest.raises(ShapeError, match="in_features 16"):
        make()(torch.zeros(shape))


X = torch.ones(4, 16)


@families
@pytest.mark.parametrize("x", [X.numpy(), X.tolist(), X.to_sparse(), None], ids=["numpy", "list", "sparse", "None"])
def test_anything_that_is_not_a_dense_tensor_is_rejected(make, x):
    with pytest.raises(OptionError, match="dense"):
        make()(x)


@pytest.mark.parametrize("name", NOT_TREES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_inputs_of_another_type_are_rejected_unless_autocast_is_on(name, dtype):
    layer = FAMILIES[name]()
    with pytest.raises(DendritreeError, match=rf"type of the weights, torch.float32: got {dtype}"):
        layer(torch.zeros(16, dtype=dtype))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert layer(torch.zeros(16, dtype=torch.bfloat16)).dtype in (torch.float32, torch.bfloat16)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_types_lose_no_more_than_their_own_rounding(name, dtype):
    torch.manual_seed(0)
    ins = 256 if name in NOT_TREES else 16
    small, x = FAMILIES[name](ins, dtype=dtype), torch.rand(6, ins).to(dtype)
    y, exact = small(x), copy.deepcopy(small).double()(x.double())
    assert y.dtype == dtype
    torch.testing.assert_close(y.double(), exact, rtol=0.03, atol=0.03)
    y.sum().backward()
    assert {parameter.grad.dtype for parameter in small.parameters()} == {dtype}


@families
@pytest.mark.parametrize("leading", [(), (0,), (4,), (2, 3)])
def test_any_leading_dimensions(make, leading):
    layer, x = make(), torch.rand(*leading, 16)
    assert layer(x).shape == (*leading, 3)
    for row, y in zip(x.reshape(-1, 16), layer(x).reshape(-1, 3), strict=True):
        torch.testing.assert_close(layer(row), y)


@families
def test_state_dicts_copies_pickles_and_meta_layers_give_the_same_layer(make):
    layer, other, x = make(), make(), torch.rand(4, 16)
    assert not torch.equal(other(x), layer(x))
    other.load_state_dict(layer.state_dict())
    meta, filled = make(device="meta"), make(device="meta")
    assert meta(torch.zeros(4, 16, device="meta")).shape == (4, 3)
    meta.load_state_dict(layer.state_dict(), assign=True)
    filled.to_empty(device="cpu").load_state_dict(layer.state_dict())
    for twin in (other, meta, filled, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(twin(x), layer(x))


@families
def test_a_state_dict_of_another_size_is_rejected_and_nothing_changes(make):
    layer, x = make(), torch.rand(4, 16)
    before, state = layer(x), make(out_features=4).state_dict()
    with pytest.raises(RuntimeError):
        layer.load_state_dict(state)
    assert torch.equal(layer(x), before)


@pytest.mark.parametrize("name", ["drawn trees", "k-trees", "denn", "dann"])
def test_a_drawn_wiring_is_loaded_along_with_the_weights_also_if_others_are_missing(name):
    layer, state = FAMILIES[name](), FAMILIES[name]().state_dict()
    bias = next(key for key in state if key.endswith("bias"))
    del state[bias]
    with pytest.raises(RuntimeError, match="Missing key"):
        FAMILIES[name]().load_state_dict(state)
    assert layer.load_state_dict(state, strict=False).missing_keys == [bias]
    assert all(value.equal(layer.state_dict()[key]) for key, value in state.items())


@families
def test_the_seed_of_torch_governs_the_draw(make):
    states = []
    for _ in range(2):
        torch.manual_seed(3)
        states.append(make().state_dict())
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # torch's own, of its compiler
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * name.startswith("dnm, ")) for name in NOT_TREES]
)
def test_neurons_of_other_authors_compile_and_export(name):
    torch._dynamo.reset()
    layer, x = FAMILIES[name](), torch.rand(3, 16)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    gradients = [torch.autograd.grad(net(x).square().sum(), layer.parameters()) for net in (compiled, layer)]
    torch.testing.assert_close(*gradients)
    exported = torch.export.export(layer.eval(), (x,)).module()
    torch.testing.assert_close(exported(x), layer(x))
