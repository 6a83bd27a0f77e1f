"""Neurons of other packages as families of a comparison."""

import os
import subprocess
import sys

import pytest
from neuron_packages import GATED, install, installed_site  # noqa: F401  a fixture

from dendritree.errors import OptionError
from dendritree.models import list_models
from dendritree.neurons import register_neuron
from dendritree_lab.cli import main
from dendritree_lab.studies.fair import FAMILIES, ComparisonPlan
from dendritree_lab.studies.fair.families import OWN


def test_it_is_a_family_of_a_comparison_whose_workers_find_it_too(site, tmp_path):
    install(site, "gated-neurons", GATED, "gated")
    options = ["--budgets", "1k", "--trials", "2", "--seeds", "2", "--steps", "5", "--run", "run", "--workers", "1"]
    command = ["compare", "digits", "--families", "gated", "linear", *options]
    done = subprocess.run(
        [sys.executable, "-m", "dendritree_lab", *command],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (page,) = (path.read_text() for path in (tmp_path / "run").rglob("*.html"))
    assert "gated" in page


def test_searches_choose_among_its_choices(site):
    install(site, "gated-neurons", GATED, "gated")
    (cell,) = ComparisonPlan.make(["digits:128"], budgets=[1000], families=["gated"]).cells
    drawn = [job.configuration for job in ComparisonPlan((cell,), trials=8).searches(cell)]
    assert {each.arguments["options"]["gates"] for each in drawn} == {1, 2}
    assert all(each.arguments["neuron"] == "gated" for each in drawn)


def test_families_are_listed_without_an_import_and_a_broken_one_stops_no_other(site, capsys):
    install(site, "gated-neurons", GATED, "gated")
    install(site, "broken-neurons", "raise RuntimeError", "broken", version="2.5")
    assert list(FAMILIES)[-2:] == ["broken", "gated"]
    assert "gated_neurons" not in sys.modules
    with pytest.raises(OptionError, match=r"broken-neurons 2\.5"):
        FAMILIES["broken"]
    assert main(["models"]) == 0
    listed = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert listed["gated"] == "A weighted sum times sigmoid gates."
    assert "broken-neurons 2.5" in listed["broken"]
    assert sorted(listed) == list_models()


def test_a_package_cannot_take_the_name_of_a_family(site):
    install(site, "thief", "raise RuntimeError", "tree")
    assert FAMILIES["tree"] is OWN["tree"]
    assert list(FAMILIES).count("tree") == 1
    with pytest.raises(OptionError, match="'tree' is a model"):
        register_neuron("tree")
