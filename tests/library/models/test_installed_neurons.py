"""Neurons of other packages: real distributions on the import path, found by their entry points."""

import os
import subprocess
import sys

import pytest
import torch

import dendritree
from dendritree.errors import OptionError
from dendritree.models import create_model, list_models, neuron_families, register_neuron, registry
from dendritree.models.neuron_families import RESERVED, neuron_family
from dendritree.models.neurons import NEURON_LAYERS
from dendritree_lab.cli import main
from dendritree_lab.studies.fair import FAMILIES, ComparisonPlan
from dendritree_lab.studies.fair.families import OF_THIS_LIBRARY

GATED = '''
import torch
from torch import nn
from dendritree.models import register_neuron


@register_neuron("gated", choices={"gates": (1, 2)})
class Gated(nn.Module):
    """A weighted sum times sigmoid gates."""

    def __init__(self, in_features, out_features, *, gates=1, device=None, dtype=None):
        super().__init__()
        self.gates = gates
        self.sums = nn.Linear(in_features, out_features * (1 + gates), device=device, dtype=dtype)

    def forward(self, x):
        value, *gates = self.sums(x).chunk(1 + self.gates, dim=-1)
        for gate in gates:
            value = value * torch.sigmoid(gate)
        return value
'''


def install(site, package, source, *names, version="0.1"):
    """Write a distribution as pip would: a module, and a .dist-info folder with its metadata and entry points."""
    module = package.replace("-", "_")
    (site / f"{module}.py").write_text(source)
    info = site / f"{module}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    points = "".join(f"{name} = {module}\n" for name in names)
    (info / "entry_points.txt").write_text(f"[dendritree.neurons]\n{points}")
    return site


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder of packages on the import path; what they register is forgotten afterwards."""
    folder = tmp_path / "site"
    folder.mkdir()
    modules = set(sys.modules)
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))
    monkeypatch.setattr(neuron_families, "_NEURONS", dict(neuron_families._NEURONS))
    monkeypatch.syspath_prepend(folder)
    yield folder
    for name in set(sys.modules) - modules:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(folder)):
            del sys.modules[name]


def test_an_installed_neuron_is_listed_without_an_import_and_built_by_name(site):
    install(site, "gated-neurons", GATED, "gated")
    assert "gated" in list_models()
    assert "gated" in FAMILIES
    assert list(FAMILIES)[-1] == "gated"
    sizes = {"in_features": 12, "hidden": [5], "out_features": 3}
    net = create_model("gated", **sizes, options={"gates": 2})
    assert sum(p.numel() for p in net.parameters()) == 13 * 5 * 3 + 6 * 3
    same = create_model("neuron-network", **sizes, neuron="gated", options={"gates": 2})
    assert same.state_dict().keys() == net.state_dict().keys()
    assert net(torch.randn(2, 7, 12)).shape == (2, 7, 3)


def test_listing_imports_nothing(site):
    install(site, "gated-neurons", GATED, "gated")
    assert "gated" in list_models("g*")
    assert list(FAMILIES)[-1] == "gated"
    assert "gated_neurons" not in sys.modules
    assert FAMILIES["gated"].title == "A weighted sum times sigmoid gates."
    assert "gated_neurons" in sys.modules


def test_it_is_summed_up_saved_and_opened_where_the_package_was_not_imported_yet(site, tmp_path):
    install(site, "gated-neurons", GATED, "gated")
    net = create_model("gated", in_features=12, hidden=[5], out_features=3, options={"gates": 2}).eval()
    assert [(of.name, of.parameters) for of in dendritree.summary(net).layers] == [
        ("hidden.0.sums", 195),
        ("readout", 18),
    ]
    x = torch.randn(4, 12)
    dendritree.save(net, tmp_path / "model")
    assert torch.equal(dendritree.load(tmp_path / "model")(x), net(x))
    torch.save((x, net(x).detach()), tmp_path / "expected.pt")
    code = (
        "import torch, dendritree; x, y = torch.load('expected.pt'); "
        "assert torch.equal(dendritree.load('model')(x), y); import sys; assert 'gated_neurons' in sys.modules"
    )
    assert run_python(site, "-c", code, cwd=tmp_path) == (0, "")
    status, errors = run_python(None, "-c", code, cwd=tmp_path)
    assert status == 1
    known = ", ".join(map(repr, NEURON_LAYERS))
    assert f"neuron must be one of {known}: got 'gated'" in errors.splitlines()[-1]


def run_python(site, *command, cwd):
    paths = [str(site)] if site else []
    kept = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path and path != str(site)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*paths, *kept])}
    done = subprocess.run([sys.executable, *command], cwd=cwd, env=environment, capture_output=True, text=True)
    return done.returncode, done.stderr


def test_it_is_a_family_of_a_comparison_whose_workers_find_it_too(site, tmp_path):
    install(site, "gated-neurons", GATED, "gated")
    options = ["--budgets", "1k", "--trials", "2", "--seeds", "2", "--steps", "5", "--run", "run", "--workers", "1"]
    command = ["compare", "digits", "--families", "gated", "linear", *options]
    status, errors = run_python(site, "-m", "dendritree", *command, cwd=tmp_path)
    assert status == 0, errors
    (page,) = (path.read_text() for path in (tmp_path / "run").rglob("*.html"))
    assert "gated" in page
    assert "<svg" in page


def test_searches_choose_among_its_choices(site):
    install(site, "gated-neurons", GATED, "gated")
    (cell,) = ComparisonPlan.make(["digits:128"], budgets=[1000], families=["gated"]).cells
    choices = [job.choice for job in ComparisonPlan((cell,), trials=8).searches(cell)]
    assert {choice.arguments["options"]["gates"] for choice in choices} == {1, 2}
    assert all(choice.arguments["neuron"] == "gated" for choice in choices)


# ------------------------------------------------------------------------------------------------------------- mistakes


BROKEN = [
    (
        "import no_such_module_at_all",
        r"cannot be imported: ModuleNotFoundError: No module named 'no_such_module_at_all'",
    ),
    ("raise RuntimeError('two\\nlines')", r"cannot be imported: RuntimeError: two lines"),
    ("def", r"cannot be imported: SyntaxError: "),
    ("", r"must register the neuron 'broken' that its entry point names: importing broken_neurons did not"),
]


@pytest.mark.parametrize(("source", "message"), BROKEN)
def test_a_broken_package_is_named_in_one_line_and_stops_nobody_else(site, capsys, source, message):
    install(site, "gated-neurons", GATED, "gated")
    install(site, "broken-neurons", source, "broken", version="2.5")
    arguments = {"in_features": 4, "hidden": [3], "out_features": 2}
    for ask in (
        lambda: create_model("broken", **arguments),
        lambda: create_model("neuron-network", **arguments, neuron="broken"),
        lambda: FAMILIES["broken"],
    ):
        with pytest.raises(OptionError, match=rf"broken-neurons 2\.5 {message}") as caught:
            ask()
        assert len(str(caught.value).splitlines()) == 1
    create_model("gated", **arguments)
    assert main(["models"]) == 0
    listed = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert listed["gated"] == "A weighted sum times sigmoid gates."
    assert "broken-neurons 2.5" in listed["broken"]
    assert sorted(listed) == list_models()


def test_a_name_of_two_packages_is_an_error_that_names_both(site):
    install(site, "gated-neurons", GATED, "gated")
    install(site, "other-neurons", GATED, "gated", version="3")
    with pytest.raises(OptionError, match=r"'gated' is in gated-neurons 0\.1 and other-neurons 3$"):
        neuron_family("gated")


def test_a_package_cannot_take_a_name_of_ours(site):
    install(site, "thief", "raise RuntimeError", "tree", "dnm", "mlp")
    assert FAMILIES["tree"] is OF_THIS_LIBRARY["tree"]
    assert list(FAMILIES).count("tree") == list_models().count("mlp") == 1
    create_model("mlp", in_features=4, hidden=3)
    assert "thief" not in sys.modules


def test_families_of_this_library_are_reserved():
    assert set(RESERVED) == set(OF_THIS_LIBRARY)


class Plain(torch.nn.Linear):
    """A linear neuron."""


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("Plain", {}, "lower-case letters, digits and hyphens: got 'Plain'"),
        ("tree", {}, "'tree' is a family of this library"),
        ("mlp", {}, "'mlp' is already MLP"),
        ("plain", {"choices": {"gate": (1,)}}, "a choice of 'plain' must be one of 'bias': got 'gate'"),
        ("plain", {"choices": {"bias": ()}}, "choices of bias must be plain values, at least one"),
        ("plain", {"choices": {"bias": ([1],)}}, "choices of bias must be plain values, at least one"),
    ],
)
def test_a_registration_that_cannot_work_is_rejected(name, options, message):
    with pytest.raises(OptionError, match=message):
        register_neuron(name, **options)(Plain)
    assert name not in neuron_families._NEURONS


@pytest.mark.usefixtures("site")
def test_a_layer_without_the_contract_is_rejected():
    with pytest.raises(OptionError, match=r"as nn\.Linear does: that of 'odd' takes start_dim, end_dim"):
        register_neuron("odd")(torch.nn.Flatten)


@pytest.mark.usefixtures("site")
def test_a_cell_that_is_run_again_replaces_its_neuron_and_another_place_does_not():
    def cell():
        class Again(torch.nn.Linear):
            pass

        return Again

    register_neuron("again")(cell())
    newer = cell()
    register_neuron("again")(newer)
    assert neuron_family("again").layer is newer
    assert isinstance(create_model("again", in_features=4, hidden=[3], out_features=2).hidden[0], newer)
    with pytest.raises(OptionError, match=r"'again' is already .*Again"):
        register_neuron("again")(Plain)
