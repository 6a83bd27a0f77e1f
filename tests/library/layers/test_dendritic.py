"""DendriticLayer: the paper's law, the contract of nn.Linear, and its init."""

import copy
import io
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from dendritree import DendriticLayer
from dendritree.errors import DendritreeError, OptionError, ShapeError
from dendritree.wiring import Partition, Shared

# ------------------------------------------------------------------------------------------------------- sizes

PAPER = {"branching": 2, "wiring": "partition"}


@pytest.mark.parametrize("sizes", [(784, 10), (768, 768), (100, 10), (3, 1), (1, 1), (2, 5)])
def test_two_sizes_are_enough_as_for_nn_linear(sizes):
    layer, linear = DendriticLayer(*sizes), nn.Linear(*sizes)
    x = torch.randn(3, sizes[0])
    assert layer(x).shape == linear(x).shape
    assert layer.wirings == (Shared(),)
    assert layer.coverage().tolist() == [sizes[1]] * sizes[0]  # every neuron reads every input


def test_without_out_features_it_is_the_papers_layer():
    assert DendriticLayer(16, branching=2, depth=2).wirings == (Partition(),)
    assert DendriticLayer(16, branching=[4, 2]).out_features == 2


def test_one_neuron_has_one_forest_whatever_the_wiring():
    assert DendriticLayer(1024, 1, branching=32).forest == DendriticLayer(1024, branching=32, depth=2).forest


@pytest.mark.parametrize(
    ("sizes", "options"),
    [
        ((160, 10), {"branching": 2, "depth": 4}),
        ((160, 10), {"branching": 2}),
        ((160, 10), {"branching": [4, 4]}),
        ((160, 10), {"branching": 2, "fan_in": 16}),
        ((160, 10), {"branching": [8, [8]]}),
        ((1024, 4), {"branching": 2, "depth": 8}),
    ],
)
def test_where_the_papers_layer_would_fit_the_error_names_it(sizes, options):
    hint = f"wiring='partition' would fit: each of {sizes[1]} neurons then reads its own {sizes[0] // sizes[1]} inputs$"
    with pytest.raises(ShapeError, match=f"must be .*got .*; {hint}"):
        DendriticLayer(*sizes, **options)
    assert DendriticLayer(*sizes, **options, wiring="partition").out_features == sizes[1]


@pytest.mark.parametrize("options", [{"branching": 2}, {"branching": 16, "fan_in": 32}, {"branching": [1, [2]]}])
def test_where_no_wiring_would_fit_none_is_named(options):
    with pytest.raises(ShapeError) as error:
        DendriticLayer(161, 10, **options)
    assert "partition" not in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "out_features", "depth", "parameters"),
    [
        ({"in_features": 1024, "out_features": 1, "branching": 32}, 1, 2, 1089),
        ({"in_features": 1024, "out_features": 1, "branching": 2}, 1, 10, 3069),
        ({"in_features": 1024, "out_features": 1, "branching": 4}, 1, 5, 1705),
        ({"in_features": 1024, "branching": 2, "depth": 4}, 64, 4, 64 * 45),
        ({"in_features": 10240, "branching": 8, "depth": 2}, 160, 2, 160 * 81),
        ({"in_features": 160, "out_features": 10, "branching": 2, "depth": 4, "wiring": "partition"}, 10, 4, 10 * 45),
        ({"in_features": 250, "branching": 5, "depth": 3}, 2, 3, 2 * (125 + 25 + 5 + 31)),
        ({"in_features": 256, "branching": [16, 8]}, 2, 2, 2 * (128 + 8 + 9)),
        ({"in_features": 128, "out_features": 1, "branching": [16, 8], "depth": 2}, 1, 2, 128 + 8 + 9),
        ({"in_features": 1024, "out_features": 10, "branching": 32, "wiring": "shared"}, 10, 2, 10890),
        ({"in_features": 784, "out_features": 1, "branching": 2, "ragged": True}, 1, 10, 2357),
        ({"in_features": 20, "out_features": 2, "branching": 3, "ragged": True, "wiring": "partition"}, 2, 3, 46),
        ({"in_features": 3, "out_features": 3, "branching": 2, "ragged": True, "wiring": "partition"}, 3, 1, 6),
        ({"in_features": 7, "out_features": 2, "branching": 3, "wiring": "shared", "ragged": True}, 2, 2, 2 * 14),
    ],
)
def test_sizes_follow_the_papers_law(arguments, out_features, depth, parameters):
    layer = DendriticLayer(**arguments)
    assert (layer.out_features, layer.depth) == (out_features, depth)
    assert sum(p.numel() for p in layer.parameters()) == parameters
    assert layer(torch.randn(3, layer.in_features)).shape == (3, out_features)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((784, 10, PAPER), r"in_features must be out_features \* branching \*\* depth: got in_features 784, out_feat"),
        ((784, 10, PAPER), r"640 or 1280 inputs would fit, or ragged=True"),
        ((1024, 10, PAPER), r"got in_features 1024, out_features 10, branching 2; 640 or 1280 inputs would fit"),
        ((1024, {"branching": 2}), r"give out_features or depth, got neither"),
        ((1024,), r"out_features must be given for branching 'auto': got None"),
        ((1024, None, {"depth": 4}), r"out_features must be given for branching 'auto': got None"),
        ((6, None, {"branching": [1, [2]]}), r"out_features must be given for branching \[1, \[2\]\]: got None"),
        (
            (784, 10, {"branching": 2}),
            r"fan_in must be branching \*\* depth: got fan_in 784.*512 or 1024 would fit, or r",
        ),
        ((160, 10, {"depth": 4}), r"depth must be left out for branching 'auto', which grows 2 levels.*: got 4"),
        ((3, 1, {"depth": 2}), r"depth must be left out for branching 'auto', which grows 1 levels.*: got 2"),
        ((1024, 10, {"wiring": "shared", "branching": 3}), r"fan_in 1024, branching 3; 729 or 2187 would fit"),
        ((1024, None, {"wiring": "shared"}), r"out_features is required for wiring 'shared': got None"),
        ((1024, 1, {**PAPER, "depth": 9}), r"branching \*\* depth: .*depth 9; 512 inputs would fit"),
        (
            (1000, None, {"branching": 2, "depth": 4}),
            r"in_features 1000, branching 2, depth 4; 992 or 1008 inputs would fit",
        ),
        ((8, None, {"branching": 2, "depth": 4}), r"in_features 8, branching 2, depth 4; 16 inputs would fit"),
        (
            (100, 1, {**PAPER, "branching": [16, 8]}),
            r"the product of branching: got in_features 100.*128 inputs would fit",
        ),
        ((128, 1, {"branching": [16, 8], "depth": 3}), r"depth must be the number of levels: got depth 3"),
        (
            (785, 2, {**PAPER, "ragged": True}),
            r"multiple of out_features for wiring 'partition': got 785 and 2; 784 or 786",
        ),
        (
            (784, 1, {"branching": 2, "ragged": True, "depth": 3}),
            r"got depth 3, but fan_in 784 with branching 2 has depth 10",
        ),
        ((4, 4, PAPER), r"got in_features 4, out_features 4, branching 2; 8 inputs would fit, or ragged=True"),
    ],
)
def test_sizes_that_do_not_fit_are_rejected_with_what_would(arguments, message):
    *sizes, options = arguments if isinstance(arguments[-1], dict) else (*arguments, {})
    with pytest.raises((ShapeError, OptionError), match=message):
        DendriticLayer(*sizes, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"in_features": 0}, r"in_features must be an integer of at least 1: got 0"),
        ({"in_features": -4}, r"in_features must be an integer of at least 1: got -4"),
        ({"in_features": 4.0}, r"in_features must be an integer of at least 1: got 4\.0"),
        ({"in_features": True}, r"in_features must be an integer of at least 1: got True"),
        ({"in_features": "4"}, r"in_features must be an integer of at least 1: got '4'"),
        ({"out_features": 0}, r"out_features must be an integer of at least 1: got 0"),
        ({"out_features": 1.5}, r"out_features must be an integer of at least 1: got 1\.5"),
        ({"branching": 1}, r"branching must be an integer of at least 2: got 1"),
        ({"branching": 0}, r"branching must be an integer of at least 2: got 0"),
        ({"branching": -2}, r"branching must be an integer of at least 2: got -2"),
        ({"branching": 2.0}, r"branching must be an integer of at least 2: got 2\.0"),
        ({"branching": "2"}, r"branching must be one of 'auto': got '2'"),
        ({"branching": []}, r"branching must have one number per level: got an empty list"),
        ({"branching": [2, 1]}, r"branching of a level must be an integer of at least 2: got 1"),
        ({"branching": [2, 2.0]}, r"branching of a level must be an integer of at least 2: got 2\.0"),
        ({"depth": 0}, r"depth must be an integer of at least 1: got 0"),
        ({"depth": 2.0}, r"depth must be an integer of at least 1: got 2\.0"),
        ({"dropout": float("nan")}, r"dropout must be a probability in \[0, 1\): got nan"),
        ({"dropout": -0.1}, r"dropout must be a probability in \[0, 1\): got -0\.1"),
        ({"dropout": 1.0}, r"dropout must be a probability in \[0, 1\): got 1\.0"),
        ({"dropout": "0.5"}, r"dropout must be a probability in \[0, 1\): got '0\.5'"),
        ({"dropout_per": "synapses"}, r"dropout_per must be .*got 'synapses'; did you mean 'synapse'\?"),
        ({"wiring": "share"}, r"wiring must be one of .*got 'share'; did you mean 'shared'\?"),
        ({"wiring": 3}, r"wiring must be a name or a Wiring object: got 3"),
        ({"activation": "leakyrelu"}, r"activation must be .*got 'leakyrelu'; did you mean 'leaky_relu'\?"),
        ({"activation": torch.relu}, r"activation must be a name, an nn.Module class or instance, or None"),
        ({"backend": "eagre"}, r"backend must be .*got 'eagre'; did you mean 'eager'\?"),
        ({"dtype": torch.int64}, r"dtype must be a floating-point torch.dtype: got torch.int64"),
    ],
)
def test_bad_options_are_refused_by_rule_and_value(options, message):
    with pytest.raises(DendritreeError, match=message):
        DendriticLayer(**{"in_features": 4, "out_features": 1, **options})


def test_nothing_is_allocated_before_sizes_are_checked():
    with pytest.raises(ShapeError, match=r"fewer than 2\*\*31"):
        DendriticLayer(2**31, 2**15, branching=2, wiring="shared")


def test_inputs_of_another_type_are_refused():
    with pytest.raises(OptionError, match=r"type of the weights, torch.float32: got torch.float64"):
        DendriticLayer(4, 1)(torch.zeros(4, dtype=torch.float64))


# --------------------------------------------------------------------------------------------- what it computes


def test_two_levels_by_hand():
    layer = DendriticLayer(4, 1, branching=2)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([1.0, 2.0, -3.0, 1.0, 0.5, 2.0]))
        layer.bias.copy_(torch.tensor([0.5, 0.0, -1.0]))
    # dendrites: 1 + 2 + 0.5 = 3.5 and -3 + 1 = -2 -> -0.2; root: 1.75 - 0.4 - 1 = 0.35
    assert layer(torch.ones(4)).item() == pytest.approx(0.35, abs=1e-6)


def test_shared_neurons_read_the_same_inputs_and_partitioned_ones_their_own():
    x = torch.randn(5, 8, requires_grad=True)
    for wiring, reads in (("shared", [True] * 8), ("partition", [False] * 4 + [True] * 4)):
        layer = DendriticLayer(8, 2, branching=[4, 2] if wiring == "shared" else [2, 2], wiring=wiring)
        (gradient,) = torch.autograd.grad(layer(x)[:, 1].sum(), x)
        assert (gradient != 0).all(0).tolist() == reads


@given(
    branching=st.one_of(st.integers(2, 5), st.lists(st.integers(2, 4), min_size=1, max_size=3)),
    neurons=st.integers(1, 3),
    wiring=st.sampled_from(["shared", "partition"]),
    fan_in=st.integers(1, 24),
    leading=st.lists(st.integers(0, 3), max_size=3),
    bias=st.booleans(),
    root_activation=st.booleans(),
)
def test_every_backend_gives_the_reference(branching, neurons, wiring, fan_in, leading, bias, root_activation):
    if isinstance(branching, list):
        fan_in = min(fan_in, int(np.prod(branching)))
    in_features = fan_in * (neurons if wiring == "partition" else 1)
    layer = DendriticLayer(
        in_features,
        neurons,
        branching=branching,
        wiring=wiring,
        ragged=True,
        bias=bias,
        root_activation=root_activation,
        dtype=torch.float64,
    )
    assert sum(p.numel() for p in layer.parameters()) == layer.forest.parameters(bias)
    x = torch.randn(*leading, in_features, dtype=torch.float64, requires_grad=True)
    results = {}
    for backend in ("reference", "eager", "auto"):
        layer.backend = backend
        y = layer(x)
        assert y.shape == (*leading, neurons)
        results[backend] = (y, *torch.autograd.grad(y.square().sum(), [x, *layer.parameters()]))
    for backend in ("eager", "auto"):
        torch.testing.assert_close(results[backend], results["reference"])


@pytest.mark.parametrize(
    ("activation", "function"),
    [
        ("relu", torch.relu),
        ("tanh", torch.tanh),
        ("sigmoid", torch.sigmoid),
        ("silu", nn.functional.silu),
        ("gelu", nn.functional.gelu),
        ("leaky_relu", lambda x: nn.functional.leaky_relu(x, 0.1)),
        (None, lambda x: x),
        (nn.ELU, nn.functional.elu),
        (nn.LeakyReLU(0.3), lambda x: nn.functional.leaky_relu(x, 0.3)),
        (nn.ReLU(inplace=True), torch.relu),
    ],
)
def test_activations_act_at_every_node(activation, function):
    layer = DendriticLayer(4, 1, branching=2, activation=activation)
    x = torch.randn(6, 4)
    w = layer.weight.detach()
    dendrites = function((x * w[:4]).reshape(6, 2, 2).sum(-1))
    expected = function((dendrites * w[4:]).sum(-1, keepdim=True))
    torch.testing.assert_close(layer(x), expected)
    layer(x).sum().backward()
    linear_root = DendriticLayer(4, 1, branching=2, activation=activation, root_activation=False)
    linear_root.load_state_dict(layer.state_dict())
    torch.testing.assert_close(linear_root(x), (dendrites * w[4:]).sum(-1, keepdim=True))


def test_a_learned_activation_counts_as_parameter():
    layer = DendriticLayer(4, 1, branching=2, activation=nn.PReLU)
    assert sum(p.numel() for p in layer.parameters()) == 6 + 3 + 1
    layer(torch.randn(3, 4)).sum().backward()
    assert layer.activation.weight.grad is not None


# -------------------------------------------------------------------------------------------------------- init


def test_weights_start_from_the_density_gain_law_at_every_level():
    torch.manual_seed(0)
    layer = DendriticLayer(64 * 1024, branching=[16, 4, 16])
    forest = layer.forest
    for level, children in zip(forest.levels, (16, 4, 16), strict=True):
        weights = layer.weight[forest.offsets[level.start] : forest.offsets[level.stop]].detach()
        error = (2 / children) ** 0.5 / len(weights) ** 0.5
        assert abs(weights.mean()) < 5 * error
        assert weights.var() == pytest.approx(2 / children, rel=5 * (2 / len(weights)) ** 0.5)
    assert (layer.bias == 0).all()


def test_ragged_nodes_start_by_their_own_number_of_children():
    torch.manual_seed(0)
    layer = DendriticLayer(
        5 * 4096, 4096, branching=3, wiring="partition", ragged=True
    )  # dendrites of 3 and 2 synapses
    fan_ins = np.repeat(layer.forest.fan_ins, layer.forest.fan_ins)
    for children in (2, 3):
        weights = layer.weight.detach()[torch.as_tensor(fan_ins == children)]
        assert weights.var() == pytest.approx(2 / children, rel=5 * (2 / len(weights)) ** 0.5)


def test_init_is_governed_by_torchs_seed_and_leaves_numpys_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    weights = []
    for _ in range(2):
        torch.manual_seed(7)
        weights.append(DendriticLayer(64, 4).weight)
    assert torch.equal(*weights)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


# ----------------------------------------------------------------------------------------------------- dropout


def test_dropout_is_per_synapse_and_only_while_training():
    layer = DendriticLayer(16, 200, branching=16, wiring="shared", dropout=0.5, activation=None)
    with torch.no_grad():
        layer.weight.fill_(1.0)
    x = torch.ones(50, 16)
    counts = layer(x) / 2  # synapses left, of 16
    assert torch.equal(counts, counts.round())
    assert counts.mean().item() == pytest.approx(8, abs=0.2)
    assert counts.std(dim=1).min() > 1  # neurons differ: each drops its own
    assert torch.equal(layer.eval()(x), torch.full((50, 200), 16.0))


def test_dropout_per_input_is_the_same_for_all_neurons():
    layer = DendriticLayer(16, 20, branching=16, wiring="shared", dropout=0.5, dropout_per="input", activation=None)
    with torch.no_grad():
        layer.weight.fill_(1.0)
    counts = layer(torch.ones(50, 16)) / 2
    assert (counts == counts[:, :1]).all()
    assert counts[:, 0].std() > 1


# ----------------------------------------------------------------------------------- behaves as nn.Linear does


def test_repr_shows_how_it_was_made_and_what_was_grown():
    layer = DendriticLayer(16, 2, branching=4, wiring="shared", dropout=0.2, bias=False, root_activation=False)
    assert repr(layer).splitlines()[1].strip() == (
        "16, 2, branching=4, wiring=Shared(), bias=False, dropout=0.2, dropout_per='synapse', "
        "root_activation=False; 2 trees of 16 synapses, 4 + 1 dendrites; 40 parameters"
    )


@pytest.mark.parametrize("wiring", ["partition", Partition(), Shared()])
def test_wirings_by_name_and_by_object(wiring):
    assert DendriticLayer(16, 1, branching=4, wiring=wiring)(torch.zeros(16)).shape == (1,)


def test_copies_and_pickles_are_equal_and_apart():
    layer = DendriticLayer(16, 2, branching=4, wiring="shared")
    x = torch.randn(3, 16)
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(twin(x), layer(x))
        with torch.no_grad():
            twin.weight.zero_()
        assert not torch.equal(twin(x), layer(x))


def test_whole_module_through_torch_save():
    layer = DendriticLayer(16, 2, branching=4, wiring="shared")
    buffer = io.BytesIO()
    torch.save(layer, buffer)
    buffer.seek(0)
    assert torch.equal(torch.load(buffer, weights_only=False).weight, layer.weight)


def test_to_changes_type_and_never_the_tree():
    layer = DendriticLayer(16, 2, branching=4, wiring="shared").to(torch.float64)
    assert layer(torch.zeros(16, dtype=torch.float64)).dtype == torch.float64
    assert layer.state_dict()["forest_source"].dtype == torch.int32


def test_meta_device_then_to_empty_then_reset():
    layer = DendriticLayer(16, 2, branching=3, wiring="shared", ragged=True, device="meta")
    assert layer(torch.zeros(5, 16, device="meta")).shape == (5, 2)
    layer.to_empty(device="cpu")
    layer.reset_parameters()
    reference = copy.deepcopy(layer)
    reference.backend = "reference"
    x = torch.randn(5, 16)
    torch.testing.assert_close(layer(x), reference(x))


def test_meta_device_then_load_with_assign():
    source = DendriticLayer(16, 2, branching=3, wiring="shared", ragged=True)
    layer = DendriticLayer(16, 2, branching=3, wiring="shared", ragged=True, device="meta")
    layer.load_state_dict(source.state_dict(), assign=True)
    x = torch.randn(5, 16)
    assert torch.equal(layer(x), source(x))


def test_functional_call_with_a_state_dict():
    layer = DendriticLayer(16, 2, branching=4, wiring="shared")
    x = torch.randn(3, 16)
    zeros = {key: torch.zeros_like(value) for key, value in layer.named_parameters()}
    assert torch.func.functional_call(layer, zeros, x).count_nonzero() == 0
    assert torch.equal(torch.func.functional_call(layer, layer.state_dict(), x), layer(x))


def test_stack_of_layers_with_different_branching():
    stack = nn.Sequential(DendriticLayer(10240, branching=8, depth=2), DendriticLayer(160, branching=2, depth=4))
    assert stack(torch.randn(3, 10240)).shape == (3, 10)
    assert sum(p.numel() for p in stack.parameters()) == 160 * 81 + 10 * 45


@pytest.mark.parametrize("ragged", [False, True])
def test_compiles_without_graph_breaks(ragged):
    layer = DendriticLayer(16, 2, branching=3 if ragged else 4, wiring="shared", ragged=ragged)
    x = torch.randn(3, 16)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), layer(x))
    gradients = [torch.autograd.grad(net(x).square().sum(), layer.parameters()) for net in (compiled, layer)]
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize(
    "device", [pytest.param("cuda", marks=pytest.mark.cuda), pytest.param("mps", marks=pytest.mark.mps)]
)
@pytest.mark.parametrize("ragged", [False, True])
def test_other_devices_give_what_the_cpu_gives(device, ragged):
    layer = DendriticLayer(64, 4, branching=5 if ragged else 8, wiring="shared", ragged=ragged)
    x = torch.randn(9, 64)
    expected = layer(x)
    torch.testing.assert_close(layer.to(device)(x.to(device)).cpu(), expected, rtol=1e-4, atol=1e-5)
