"""Files of every released format can still be opened, with the same results: see write.py, which wrote them."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from compatibility_cases import CONFIG, rows, split, trained_model
from safetensors.torch import load_file

from dendritree import fit, load
from dendritree.sklearn.tables import TableModel
from dendritree.studies.engine.store import RunStore
from dendritree.training.tensor_file import read_checkpoint
from dendritree.wiring import Random

HERE = Path(__file__).parent
EXPECTED = {path.parent: json.loads(path.read_text()) for path in sorted(HERE.glob("*/expected.json"))}
NETWORKS = [(of, name) for of, told in EXPECTED.items() for name, value in told.items() if "inputs" in value]
MOST_BYTES = 90_000
"""Of a version's folder: a run, an SQLite file, takes half of it."""


def having(*names):
    """The folders of versions that have these formats."""
    return pytest.mark.parametrize(
        "of", [of for of, told in EXPECTED.items() if told.keys() >= set(names)], ids=lambda of: of.name
    )


def close(got, expected):
    """To the last digits of float32: kernels of another machine sum in another order."""
    np.testing.assert_allclose(np.asarray(got, dtype=float), np.asarray(expected), rtol=2e-5, atol=2e-6)


def test_versions_are_there():
    assert {of.name for of in EXPECTED} >= {"0.1", "0.2"}


@pytest.mark.parametrize("of", EXPECTED, ids=lambda of: of.name)
def test_files_are_small(of):
    assert sum(path.stat().st_size for path in of.rglob("*") if path.is_file()) < MOST_BYTES


@pytest.mark.parametrize(("of", "name"), NETWORKS, ids=lambda each: getattr(each, "name", each))
def test_a_network_gives_what_it_gave(of, name):
    model, told = load(of / name), EXPECTED[of][name]
    x = rows(4, told["inputs"]).to(next(model.parameters()).dtype)
    with torch.no_grad():
        close(model(x), told["outputs"])


@having("classifier")
def test_a_classifier_gives_what_it_gave(of):
    classifier, told = load(of / "classifier"), EXPECTED[of]["classifier"]
    assert classifier.classes_.tolist() == told["classes"]
    close(classifier.predict_proba(rows(24, 5).numpy()), told["outputs"])


@having("regressor")
def test_a_regressor_gives_what_it_gave(of):
    close(load(of / "regressor").predict(rows(24, 5).numpy()), EXPECTED[of]["regressor"]["outputs"])


@having("table")
def test_a_model_of_a_table_gives_what_it_gave(of):
    pandas = pytest.importorskip("pandas")
    model, told = load(of / "table"), EXPECTED[of]["table"]
    assert isinstance(model, TableModel)
    predicted = model.predict(pandas.DataFrame(told["cells"]))
    close(predicted["probability yes"], told["outputs"])


@having("state")
def test_a_state_dict_loads_and_gives_what_it_gave(of):
    model = trained_model()
    model.load_state_dict(load_file(of / "state.safetensors"))
    with torch.no_grad():
        close(model.eval()(rows(4, 6).float()), EXPECTED[of]["state"]["outputs"])


@having("checkpoint", "state")
def test_a_run_resumes_from_a_checkpoint_and_ends_as_it_did(of, tmp_path):
    """A file that is written into is a copy."""
    shutil.copy(of / "checkpoint", tmp_path / "checkpoint")
    assert len(read_checkpoint(tmp_path / "checkpoint")[1]["epochs"]) == 1
    model, told = trained_model(), EXPECTED[of]["checkpoint"]
    history = fit(model, split(), CONFIG, checkpoint=tmp_path / "checkpoint")
    assert history.epochs[0].train_loss == told["first_loss"]  # read, not trained
    close(history.epochs[1].train_loss, told["last_loss"])
    with torch.no_grad():
        close(model.eval()(rows(4, 6).float()), EXPECTED[of]["state"]["outputs"])


@having("run")
def test_a_run_opens(of, tmp_path):
    shutil.copytree(of / "run", tmp_path / "run")
    with RunStore.open_for_reading(tmp_path / "run") as store:
        (trial,) = store.trials()
    told = EXPECTED[of]["run"]
    assert (trial.study, trial.key, trial.seed) == ("fair", {"task": "digits", "trial": 0}, 1)
    assert (trial.parameters, trial.seconds) == (223, 0.25)
    assert (trial.curves, trial.scores) == (told["curves"], told["scores"])
    assert trial.config["arguments"] == {"hidden": 3, "wiring": Random(seed=1)}
