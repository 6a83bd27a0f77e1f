"""Neurons of other packages: real distributions on the import path, named by their entry points."""

import os
import subprocess
import sys

import pytest
import torch
from neuron_packages import GATED, install, installed_site  # noqa: F401  a fixture

import dendritree
from dendritree.errors import OptionError
from dendritree.models import create_model, list_models
from dendritree.neurons import families, register_neuron
from dendritree.neurons.families import neuron_family, neuron_names

SIZES = {"in_features": 12, "hidden": [5], "out_features": 3}


def test_an_installed_neuron_is_listed_without_an_import_and_built_by_name(site):
    install(site, "gated-neurons", GATED, "gated")
    assert "gated" in list_models("g*")
    assert neuron_names()[-1] == "gated"
    assert "gated_neurons" not in sys.modules
    net = create_model("gated", **SIZES, options={"gates": 2})
    assert neuron_family("gated").title == "A weighted sum times sigmoid gates."
    assert sum(p.numel() for p in net.parameters()) == 13 * 5 * 3 + 6 * 3
    same = create_model("neuron-network", **SIZES, neuron="gated", options={"gates": 2})
    assert same.state_dict().keys() == net.state_dict().keys()
    assert net(torch.randn(2, 7, 12)).shape == (2, 7, 3)


def test_it_is_saved_and_opened_where_the_package_was_not_imported_yet(site, tmp_path):
    install(site, "gated-neurons", GATED, "gated")
    net, x = create_model("gated", **SIZES, options={"gates": 2}).eval(), torch.randn(4, 12)
    dendritree.save(net, tmp_path / "model")
    assert torch.equal(dendritree.load(tmp_path / "model")(x), net(x))
    torch.save((x, net(x).detach()), tmp_path / "expected.pt")
    code = "import torch, dendritree; x, y = torch.load('expected.pt'); assert dendritree.load('model')(x).equal(y)"
    done, undone = (
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
        )
        for path in (str(site), "")
    )
    assert done.returncode == 0, done.stderr
    assert undone.returncode == 1
    assert "got 'gated'" in undone.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import no_such_module_at_all", "No module named 'no_such_module_at_all'"),
        ("raise RuntimeError('two\\nlines')", "RuntimeError: two lines"),
        ("def", "SyntaxError"),
        ("", "must register the neuron 'broken'"),
    ],
)
def test_a_broken_package_is_named_in_one_line_and_stops_nobody_else(site, source, message):
    install(site, "gated-neurons", GATED, "gated")
    install(site, "broken-neurons", source, "broken", version="2.5")
    for ask in (
        lambda: create_model("broken", **SIZES),
        lambda: create_model("neuron-network", **SIZES, neuron="broken"),
    ):
        with pytest.raises(OptionError, match=rf"broken-neurons 2\.5.*{message}") as caught:
            ask()
        assert len(str(caught.value).splitlines()) == 1
    create_model("gated", **SIZES)
    assert "broken" in list_models()


def test_a_name_of_two_packages_is_an_error_that_names_both(site):
    install(site, "gated-neurons", GATED, "gated")
    install(site, "other-neurons", GATED, "gated", version="3")
    with pytest.raises(OptionError, match=r"gated-neurons 0\.1 and other-neurons 3"):
        neuron_family("gated")


def test_a_package_cannot_take_a_name_of_ours(site):
    install(site, "thief", "raise RuntimeError", "dnm", "mlp")
    assert list_models().count("mlp") == list_models().count("dnm") == 1
    create_model("mlp", in_features=4, hidden=3)
    create_model("dnm", **SIZES, options={"dendrites": 1})
    assert "thief" not in sys.modules


class Plain(torch.nn.Linear):
    """A linear neuron."""


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("Plain", {}, "lower-case letters"),
        ("dnm", {}, "already dendritree.neurons.dnm.DNM"),
        ("mlp", {}, "'mlp' is a model"),
        ("plain", {"choices": {"gate": (1,)}}, "one of 'bias': got 'gate'"),
        ("plain", {"choices": {"bias": ()}}, "at least one"),
        ("plain", {"image_choices": {"bias": ([1],)}}, "plain values"),
    ],
)
def test_a_registration_that_cannot_work_is_rejected(name, options, message):
    with pytest.raises(OptionError, match=message):
        register_neuron(name, **options)(Plain)
    assert all(family.layer is not Plain for family in families._NEURONS.values())


@pytest.mark.usefixtures("site")
def test_a_layer_without_the_contract_is_rejected():
    with pytest.raises(OptionError, match=r"as nn\.Linear does: that of 'odd' takes start_dim, end_dim"):
        register_neuron("odd")(torch.nn.Flatten)


@pytest.mark.usefixtures("site")
def test_a_notebook_cell_that_is_run_again_replaces_its_neuron_and_another_place_does_not():
    def cell():
        class Again(torch.nn.Linear):
            pass

        return Again

    register_neuron("again")(cell())
    newer = cell()
    register_neuron("again")(newer)
    assert isinstance(create_model("again", **SIZES).hidden[0], newer)
    with pytest.raises(OptionError, match="Again"):
        register_neuron("again")(Plain)
