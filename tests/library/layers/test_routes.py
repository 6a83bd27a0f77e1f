"""A network in every form of deployment: the numbers stay the same, or an error says what to do instead."""

import pytest
import torch
from neuron_cases import NEURONS
from torch.func import functional_call, grad, jacrev, stack_module_state, vmap
from torch.nn import functional as F

from dendritree.models import DendriticNetwork
from dendritree.neurons import DMNN

safetensors = pytest.importorskip("safetensors.torch")
deprecated = pytest.mark.filterwarnings("ignore:.*(torch.jit|quantization|deprecated).*:DeprecationWarning")
X = torch.randn(5, 16, generator=torch.Generator().manual_seed(1))
Y = torch.tensor([0, 2, 1, 0, 2])


def network(seed=0, **options):
    """Unbalanced trees with synapses at the soma, then a dendritic read-out."""
    torch.manual_seed(seed)
    arguments = {"branching": [3, [2, [2]]], "readout": "dendritic", "output": "logits"} | options
    return DendriticNetwork(16, [6], 3, **arguments)


def gradients(model, call=None):
    model.zero_grad()
    F.cross_entropy((model if call is None else call)(X).float(), Y).backward()
    return {name: p.grad.clone() for name, p in model.named_parameters()}


# ---------------------------------------------------------------------------------------------- compile, export, script


def test_a_compiled_network_is_one_graph_with_the_same_outputs_and_gradients():
    torch._dynamo.reset()
    model = network()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(X), model(X))
    torch.testing.assert_close(gradients(model, compiled), gradients(model))


def test_an_exported_network_takes_any_batch_and_comes_back_from_its_file(tmp_path):
    model = network().eval()
    program = torch.export.export(model, (X,), dynamic_shapes=({0: torch.export.Dim("batch")},))
    torch.export.save(program, tmp_path / "model.pt2")
    loaded = torch.export.load(tmp_path / "model.pt2").module()
    for x in (X, X[:2], torch.randn(40, 16)):
        torch.testing.assert_close(loaded(x), model(x))


LAYERS = {**NEURONS, "smooth dmnn": lambda: DMNN(16, 3, dendrites=2, temperature=0.1)}
neurons = pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)


# ------------------------------------------------------------------------------------------------- files and precision


def test_autocast_trains_in_bfloat16_around_trees_that_compute_in_float32():
    model = network(readout="linear", norm="batch")
    seen = []
    model.hidden[0].register_forward_hook(lambda _module, _given, out: seen.append(out.dtype))

    def call(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return model(x)

    actual, expected = gradients(model, call), gradients(model)
    assert (seen[0], call(X).dtype) == (torch.float32, torch.bfloat16)
    assert {g.dtype for g in actual.values()} == {torch.float32}
    largest = max(g.abs().max() for g in expected.values())
    torch.testing.assert_close(actual, expected, rtol=0.1, atol=0.02 * largest.item())


# ---------------------------------------------------------------------------------------------------------- torch.func


def test_an_ensemble_runs_under_vmap():
    """Models of one wiring: it is part of the structure, not of the parameters."""
    models = [network() for _ in range(3)]
    for number, model in enumerate(models):
        model.load_state_dict(models[0].state_dict())
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(number)
    parameters, buffers = stack_module_state(models)
    actual = vmap(lambda p, b: functional_call(models[0], (p, b), (X,)))(parameters, buffers)
    torch.testing.assert_close(actual, torch.stack([model(X) for model in models]))


def test_grad_and_jacrev_are_those_of_autograd():
    model = network()
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def loss(p):
        return F.cross_entropy(functional_call(model, p, (X,)), Y)

    torch.testing.assert_close(grad(loss)(parameters), gradients(model))
    per_sample = vmap(jacrev(lambda p, x: functional_call(model, p, (x[None],))[0]), (None, 0))(parameters, X)
    for sample, output in ((0, 0), (3, 2)):
        model.zero_grad()
        model(X)[sample, output].backward()
        for name, p in model.named_parameters():
            torch.testing.assert_close(per_sample[name][sample, output], p.grad)
