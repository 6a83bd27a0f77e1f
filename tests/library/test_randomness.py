"""Random numbers of a block's own: those of torch's generator with the same seed, which itself stays untouched."""

import threading

import pytest
import torch
from checkpoint_cases import Stopped, assert_same, callbacks_of, make_network, outcome, stop_by
from neuron_cases import NEURONS
from torch.nn import functional as F
from training_cases import make_split

from dendritree import DendriticLayer, FitConfig, MLNClassifier, fit
from dendritree.models import DenseNetwork
from dendritree.neurons import DANN, KTree
from dendritree.randomness import dropout, own_draws

MAKERS = {
    "drawn trees": lambda: DendriticLayer(16, 3, fan_in=5, wiring="random"),
    "windows": lambda: DendriticLayer(16, 3, wiring="local"),
    **NEURONS,
    "k-trees": lambda: KTree(16, 3, trees=2, wiring="random"),
    "receptive fields": lambda: DANN(16, 3, field="local"),
    "dense": lambda: DenseNetwork(16, [5], 3),
    "meta": lambda: DendriticLayer(16, 3, fan_in=5, wiring="random", device="meta"),
}


@pytest.fixture(autouse=True)
def torch_draws_nothing():
    before = torch.get_rng_state()
    yield
    assert torch.get_rng_state().equal(before)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_layers_draw_what_torch_would_have_drawn(make):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        expected = make()
    with own_draws(3):
        ours = make()
    for key, value in ours.state_dict().items():
        assert value.is_meta or value.equal(expected.state_dict()[key])


@pytest.mark.parametrize("p", [0.0, 0.1, 0.999])
@pytest.mark.parametrize("shape", [(1, 5), (70, 30)])
def test_dropout_is_torchs_to_the_last_bit(p, shape):
    x = torch.arange(1.0, 1 + torch.Size(shape).numel()).reshape(shape)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        expected = [F.dropout(x, p), F.dropout(x.T, p)]
    with own_draws(3):
        assert [dropout(x, p).equal(expected[0]), dropout(x.T, p).equal(expected[1])] == [True, True]
        assert dropout(x, p, training=False) is x


def test_a_block_in_a_thread_draws_what_it_draws_alone():
    """Two blocks of two seeds take turns, one draw each: neither sees the other's generator."""
    names, turns, actual = [*MAKERS], threading.Barrier(2), {}

    def alone(seed, wait=lambda: None):
        drawn = []
        with own_draws(seed):
            for name in names:
                wait()
                drawn.append(MAKERS[name]().state_dict())
        actual[seed, wait.__name__] = drawn

    alone(3)
    alone(4)
    threads = [threading.Thread(target=alone, args=(seed, turns.wait)) for seed in (3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for seed in (3, 4):
        for ours, expected in zip(actual[seed, "wait"], actual[seed, "<lambda>"], strict=True):
            assert all(ours[key].is_meta or ours[key].equal(value) for key, value in expected.items())


def test_an_inner_block_leaves_the_outer_one_as_it_was():
    with own_draws(1):
        first, second = (dropout(torch.ones(50), 0.5) for _ in range(2))
    with own_draws(1):
        assert dropout(torch.ones(50), 0.5).equal(first)
        with own_draws(7):
            dropout(torch.ones(50), 0.5)
        assert dropout(torch.ones(50), 0.5).equal(second)


def test_a_run_within_a_block_is_the_run_outside_and_resumes_as_it_does(tmp_path):
    config, name = FitConfig(epochs=4, batch_size=8, lr=0.05, seed=3), "drawn"  # with dropout

    def run(model, *stops, **options):
        return outcome(model, fit(model, make_split(), config, callbacks=[*callbacks_of(name), *stops], **options))

    whole, (same, stopped, resumed) = run(make_network(name)), (make_network(name, seed) for seed in (0, 0, 99))
    with own_draws(11):  # the run's seed counts, not the block's
        assert_same(run(same), whole)
        with pytest.raises(Stopped):
            run(stopped, stop_by(Stopped, 3), checkpoint=tmp_path / "run")
    with own_draws(12):
        assert_same(run(resumed, checkpoint=tmp_path / "run"), whole)


def test_dropout_of_inputs_within_a_block():
    with own_draws(0):
        net = MLNClassifier(16, 4, branching=4, dropout=0.5, dropout_per="input")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        expected = net(torch.ones(8, 16))
    with own_draws(3):
        assert net(torch.ones(8, 16)).equal(expected)
